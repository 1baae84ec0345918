// How often does `specdec validate` raise a false alarm, and how often does it catch a wrong sampler? Whole runs of the
// validation at temperature 1 and gamma = 2, 4, 8, one seed each: on a synthetic bigram pair, or with --models on a
// folder that holds target/, draft/ and prompts.jsonl. docs/validation.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "analysis/estimate/acceptance_counts.hpp"
#include "sim/table_models.hpp"
#include "sim/transformer/tokenizer.hpp"
#include "sim/transformer/transformer.hpp"
#include "sim/validation/validate.hpp"
#include "tests/support/wrong_samplers.hpp"
#include "traces/formats/prompts.hpp"

using namespace specdec;
using sim::ModelFactory;
using sim::ModelPair;
using sim::Prompt;
using test_support::Defect;

namespace {

const std::map<std::string, Defect> defects{{"none", Defect::none},
                                            {"residual_not_subtracted", Defect::residual_not_subtracted},
                                            {"acceptance_without_ratio", Defect::acceptance_without_ratio},
                                            {"bonus_from_draft", Defect::bonus_from_draft},
                                            {"bonus_from_wrong_prefix", Defect::bonus_from_wrong_prefix},
                                            {"uniform_used_twice", Defect::uniform_used_twice}};

struct Material {
  ModelPair models;
  std::vector<Prompt> prompts;
};

Material synthetic(std::int64_t vocabulary, double noise, std::int64_t tasks) {
  const sim::TablePair pair = sim::synthetic_bigram_pair(vocabulary, noise, 1);
  Material material{{sim::factory_of(pair.target), sim::factory_of(pair.draft)}, {}};
  for (std::int64_t task = 0; task < tasks; ++task)
    for (sim::Token token = 0; token < 16; ++token) material.prompts.push_back({fmt::format("task {}", task), {token}});
  return material;
}

ModelFactory checkpoint(const std::filesystem::path& folder) {
  return [weights = sim::load_checkpoint(folder)](std::int64_t) { return std::make_shared<sim::Transformer>(weights); };
}

Material trained(const std::filesystem::path& folder) {
  Material material{{checkpoint(folder / "target"), checkpoint(folder / "draft")}, {}};
  const sim::Tokenizer tokenizer = sim::Tokenizer::load(folder / "target" / "tokenizer.model");
  for (const traces::Prompt& prompt : traces::read_prompts(folder / "prompts.jsonl"))
    material.prompts.push_back({prompt.task, tokenizer.encode(prompt.text, true)});
  return material;
}

std::int64_t count_failures(const Material& material, const validation::Options& options, std::int64_t runs) {
  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> failed = 0;
  const auto work = [&] {
    validation::Options mine = options;
    for (std::int64_t run = next++; run < runs; run = next++) {
      mine.seed = static_cast<std::uint64_t>(run);
      if (!validate(material.models, material.prompts, mine).passed) ++failed;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
  threads.clear();
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t runs = 1000;
  std::int64_t vocabulary = 32;
  std::int64_t tasks = 1;
  double noise = 1.2;
  std::string models;
  Defect defect = Defect::none;
  validation::Options options;
  options.temperatures = {1};
  options.timed_prompts = 0;
  CLI::App app("Rates of false alarms and of caught samplers over many seeds");
  app.add_option("--runs", runs)->capture_default_str();
  app.add_option("--tokens", options.tokens, "per configuration")->capture_default_str();
  app.add_option("--defect", defect)->transform(CLI::CheckedTransformer(defects));
  app.add_option("--vocabulary", vocabulary)->capture_default_str();
  app.add_option("--noise", noise, "of the draft's logits")->capture_default_str();
  app.add_option("--tasks", tasks)->capture_default_str();
  app.add_option("--models", models, "folder of a trained pair");
  CLI11_PARSE(app, argc, argv);

  if (defect != Defect::none)
    options.decoder = [defect](auto&&... arguments) { return test_support::decode_with_defect(defect, arguments...); };
  const Material material = models.empty() ? synthetic(vocabulary, noise, tasks) : trained(models);
  const std::int64_t failed = count_failures(material, options, runs);
  const estimate::Interval interval =
      estimate::clopper_pearson_interval_of_share(static_cast<double>(failed), static_cast<double>(runs));
  const validation::Report example = validate(material.models, material.prompts, options);
  fmt::print("{} of {} runs failed: {:.3g}, 95% interval {:.3g} to {:.3g}\n", failed, runs,
             static_cast<double>(failed) / static_cast<double>(runs), interval.lo, interval.hi);
  fmt::print("a run: {} configurations of {} tokens, {} tests planned, alpha {:.3f}\n", example.configurations.size(),
             example.configurations.front().counters.tokens, example.planned_tests,
             example.configurations.front().alpha.value);
}
