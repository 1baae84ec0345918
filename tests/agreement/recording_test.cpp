// Acceptance and steps of Algorithm 1 by a recording of the shipped pair, against decoding with it.
// Deviations are told in the standard errors of both sides, taken over prompts. The two continue the same prompts,
// which makes their difference smaller than that; a sound recorder stays within 5 but for a probability of 6e-7.

#include <cmath>
#include <filesystem>
#include <vector>

#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/ratio_of_sums.hpp"
#include "analysis/theory/replay.hpp"
#include "sim/ngram_model.hpp"
#include "sim/recording.hpp"
#include "sim/transformer/checkpoint.hpp"
#include "sim/transformer/tokenizer.hpp"
#include "sim/transformer/transformer.hpp"
#include "sim/validation/validate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/formats/prompts.hpp"
#include "traces/trace_reader.hpp"
#include "traces/trace_writer.hpp"

using namespace specdec;

namespace {

const std::filesystem::path models = std::filesystem::path(tests::source_dir()) / "sim/models";
constexpr std::int64_t tokens_per_text = 12;
constexpr std::int64_t drafted = 3;

sim::ModelFactory transformer(const char* name) {
  const auto weights = sim::load_checkpoint(models / name);
  return [weights](std::int64_t threads) {
    return std::make_shared<sim::Transformer>(weights, sim::TransformerOptions{.threads = static_cast<int>(threads)});
  };
}

std::vector<sim::Prompt> code_prompts() {
  const auto tokenizer = sim::Tokenizer::load(models / "target/tokenizer.model");
  std::vector<sim::Prompt> prompts;
  for (const traces::Prompt& prompt : traces::read_prompts(models / "prompts.jsonl")) {
    if (prompt.task != "code") continue;
    prompts.push_back({prompt.task, tokenizer.encode(prompt.text, true)});
    prompts.back().tokens.resize(std::min<std::size_t>(prompts.back().tokens.size(), 12));
  }
  return prompts;
}

struct Found {
  estimate::Estimate alpha;
  double tokens_per_step = 0;
};

/// Records, and reads what was recorded.
Found recorded(const sim::ModelPair& pair, const std::vector<sim::Prompt>& prompts, traces::Tier tier) {
  const tests::TemporaryFolder folder;
  sim::RecordingOptions options;
  options.tier = tier;
  options.sequences = static_cast<std::int64_t>(prompts.size());
  options.max_new_tokens = tokens_per_text;
  options.standardisation.temperature = 0.8;
  options.seed = 77;
  const auto file = folder.path() / "trace.safetensors";
  traces::TraceWriter writer(file, sim::recording_metadata(prompts, pair.target(1)->vocab_size(), options));
  sim::record_texts(pair, prompts, options, 0, [&](const traces::PositionBatch& batch) { writer.write(batch); });
  writer.finish();

  const auto reader = traces::read_trace(file);
  estimate::Observer observer(reader->metadata(), {});
  std::vector<double> sums(prompts.size());
  std::vector<std::vector<double>> texts(prompts.size());
  const std::vector<double> counts(prompts.size(), static_cast<double>(tokens_per_text));
  traces::PositionBatch batch;
  while (reader->read(batch)) {
    const estimate::Observations seen = observer.observe(*reader, batch);
    for (std::size_t i = 0; i < seen.mean_acceptance.lower.size(); ++i) {
      const auto text = static_cast<std::size_t>(seen.sequence[i]);
      sums[text] += seen.mean_acceptance.lower[i];
      texts[text].push_back(seen.acceptance.lower[i]);
    }
  }
  double steps = 0;
  for (const std::vector<double>& acceptance : texts) steps += theory::replay_steps(acceptance, drafted).expected;
  return {estimate::ratio_of_sums(sums, counts),
          static_cast<double>(prompts.size()) * static_cast<double>(tokens_per_text) / steps};
}

/// Half the width of the interval in standard errors, for as many clusters as there are prompts (t about 2.07).
double standard_error(const estimate::Estimate& e) { return (e.ci95->hi - e.ci95->lo) / 2 / 2.07; }

double deviation(const Found& found, const validation::Configuration& decoded) {
  return (found.alpha.value - decoded.alpha.value) /
         std::hypot(standard_error(found.alpha), standard_error(decoded.alpha));
}

}  // namespace

TEST_CASE("what a recording of the shipped pair says agrees with decoding, and that of another draft does not") {
  const sim::ModelPair pair{transformer("target"), transformer("draft")};
  const std::vector<sim::Prompt> prompts = code_prompts();
  validation::Options options;
  options.temperatures = {0.8};
  options.gammas = {drafted};
  options.max_new_tokens = tokens_per_text;
  options.tokens = tokens_per_text * static_cast<std::int64_t>(prompts.size());
  options.timed_prompts = 0;
  options.threads = 2;
  const validation::Configuration decoded = validation::validate(pair, prompts, options).configurations.front();

  const Found full = recorded(pair, prompts, traces::Tier::full);
  const Found scalar = recorded(pair, prompts, traces::Tier::scalar);
  CHECK(std::abs(deviation(full, decoded)) < 5);
  // The same text in two tiers: the same numbers but for the rounding of f32.
  CHECK(scalar.alpha.value == Approx(full.alpha.value).epsilon(1e-6));
  CHECK(scalar.tokens_per_step == Approx(full.tokens_per_step).epsilon(1e-5));
  const double error = standard_error(decoded.tokens_per_step.measured);
  CHECK(std::abs(full.tokens_per_step - decoded.tokens_per_step.measured.value) < 5 * std::sqrt(2.0) * error);

  const auto tables = sim::read_ngram_tables(models / "ngrams.safetensors");
  const sim::ModelPair other{pair.target, sim::factory_of(sim::unigram_model(tables.unigram))};
  CHECK(std::abs(deviation(recorded(other, prompts, traces::Tier::full), decoded)) > 5);
}
