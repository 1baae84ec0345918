// How often does `specdec validate` raise a false alarm, and how often does it catch a wrong sampler? Whole runs of the
// validation on a synthetic bigram pair, one seed each, without the transformer.
//
//   validation_false_alarms RUNS TOKENS [DEFECT [VOCABULARY [NOISE [TASKS]]]]
//
// TOKENS per configuration (gamma = 2, 4, 8; temperature 1); DEFECT: none (the default), residual_not_subtracted,
// acceptance_without_ratio, bonus_from_draft, bonus_from_wrong_prefix, uniform_used_twice.

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "analysis/estimate/acceptance_counts.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/validate.hpp"
#include "tests/support/wrong_samplers.hpp"

using namespace specdec;
using test_support::Defect;

namespace {

struct Arguments {
  std::int64_t runs = 1000;
  std::int64_t tokens = 1024;
  std::string defect = "none";
  std::int64_t vocabulary = 16;
  double noise = 1;
  std::int64_t tasks = 1;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  if (argc > 1) a.runs = std::atoll(argv[1]);
  if (argc > 2) a.tokens = std::atoll(argv[2]);
  if (argc > 3) a.defect = argv[3];
  if (argc > 4) a.vocabulary = std::atoll(argv[4]);
  if (argc > 5) a.noise = std::atof(argv[5]);
  if (argc > 6) a.tasks = std::atoll(argv[6]);
  return a;
}

Defect defect_named(const std::string& name) {
  const std::vector<std::string> names{"none",           "residual_not_subtracted", "acceptance_without_ratio",
                                       "bonus_from_draft", "bonus_from_wrong_prefix", "uniform_used_twice"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Defect>(i);
  throw std::invalid_argument("unknown defect " + name);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  const Defect defect = defect_named(arguments.defect);
  const sim::TablePair pair = sim::synthetic_bigram_pair(arguments.vocabulary, arguments.noise, 1);
  const validation::ModelPair models{[&](std::int64_t) { return validation::OwnedModel(pair.target); },
                                     [&](std::int64_t) { return validation::OwnedModel(pair.draft); }};
  std::vector<validation::Prompt> prompts;
  for (std::int64_t task = 0; task < arguments.tasks; ++task)
    for (sim::Token token = 0; token < 16; ++token) prompts.push_back({fmt::format("task {}", task), {token}});

  validation::Options options;
  options.temperatures = {1};
  options.tokens = arguments.tokens;
  options.timed_prompts = 0;
  if (defect != Defect::none)
    options.decoder = [defect](sim::LanguageModelRef target, sim::LanguageModelRef draft,
                               std::span<const sim::Token> prompt, const sim::DecodingOptions& decoding,
                               const sim::UniformSource& uniforms) {
      return test_support::decode_with_defect(defect, target, draft, prompt, decoding, uniforms);
    };

  std::atomic<std::int64_t> next = 0;
  std::atomic<std::int64_t> failed = 0;
  const auto work = [&] {
    validation::Options mine = options;
    for (std::int64_t run = next++; run < arguments.runs; run = next++) {
      mine.seed = static_cast<std::uint64_t>(run);
      if (!validate(models, prompts, mine).passed) ++failed;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) threads.emplace_back(work);
    work();
  }

  options.seed = 0;
  const validation::Report example = validate(models, prompts, options);
  const estimate::Interval interval = estimate::clopper_pearson_interval(failed, arguments.runs);
  fmt::print("{}: {} of {} runs failed: {:.3g}, 95% interval {:.3g} to {:.3g}\n", arguments.defect, failed.load(),
             arguments.runs, static_cast<double>(failed) / static_cast<double>(arguments.runs), interval.lo,
             interval.hi);
  fmt::print("one run: {} tokens in each of {} configurations, {} tests planned, alpha {:.3f}, vocabulary {}\n",
             example.configurations.front().counters.tokens, example.configurations.size(), example.planned_tests,
             example.configurations.front().alpha.value, arguments.vocabulary);
}
