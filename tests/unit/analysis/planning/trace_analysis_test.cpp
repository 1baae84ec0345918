#include "analysis/planning/trace_analysis.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "analysis/theory/replay.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded_pair.hpp"
#include "traces/batch_slice.hpp"

using namespace specdec;
using planning::TraceAnalysis;
using planning::TraceAnalysisOptions;
using tests::MemorySource;
using tests::RecordedPair;

namespace {

TraceAnalysis analysis_of(const RecordedPair& pair, const TraceAnalysisOptions& options,
                          traces::TraceMetadata metadata = {}) {
  MemorySource source(std::move(metadata), {pair.full()});
  return planning::analyse(source, options);
}

/// min(1, q / p) at the emitted tokens of one sequence, from the rows.
std::vector<double> acceptance_of(const RecordedPair& pair, std::int64_t sequence) {
  std::vector<double> acceptance;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (pair.sequence[at] != sequence) continue;
    const auto token = static_cast<std::size_t>(pair.token[at]);
    acceptance.push_back(std::min(1.0, static_cast<double>(pair.draft_row(i)[token]) / pair.target_row(i)[token]));
  }
  return acceptance;
}

bool noted(const TraceAnalysis& analysis, const std::string& code) {
  return std::any_of(analysis.notes.begin(), analysis.notes.end(), [&](const auto& note) { return note.code == code; });
}

/// Two numbers a token: every emitted token has p = 1/2 and is accepted with the same probability.
struct ScalarShard {
  std::vector<std::int64_t> sequence, place;
  std::vector<float> target, draft;
  traces::PositionBatch batch;

  ScalarShard(std::int64_t positions, float acceptance, std::int64_t of_sequence = 100)
      : sequence(static_cast<std::size_t>(positions), of_sequence),
        place(sequence.size()),
        target(sequence.size(), std::log(0.5F)),
        draft(sequence.size(), std::log(0.5F * acceptance)) {
    std::iota(place.begin(), place.end(), 0);
    batch.size = positions;
    batch.sequence = sequence;
    batch.place = place;
    batch.target_token_logprob = target;
    batch.draft_token_logprob = draft;
  }
  ScalarShard(const ScalarShard&) = delete;
  ScalarShard& operator=(const ScalarShard&) = delete;
};

}  // namespace

namespace {

/// The texts of a recording as batches of their own, in a given order.
TraceAnalysis analysis_in_order(const RecordedPair& pair, std::span<const std::int64_t> prompt,
                                std::span<const std::int64_t> order, std::int64_t length) {
  TraceAnalysisOptions options;
  options.max_gamma = 4;
  options.cost = core::StepCost{.c = 0.1};
  options.observe.lenience = {0.5};
  options.observe.confidence_bins = 10;
  traces::PositionBatch whole = pair.full();
  whole.prompt = prompt;
  MemorySource source({}, {whole});
  planning::TraceAnalyzer analyzer({}, 1, options);
  for (const std::int64_t text : order) analyzer.add(source, traces::slice_of(whole, text * length, length));
  return analyzer.finish({});
}

void require_same(const estimate::Interval& a, const estimate::Interval& b) {
  REQUIRE(a.lo == b.lo);
  REQUIRE(a.hi == b.hi);
}

void require_same(const std::optional<estimate::Estimate>& a, const std::optional<estimate::Estimate>& b) {
  REQUIRE(a.has_value() == b.has_value());
  if (!a) return;
  REQUIRE(a->value == b->value);
  REQUIRE(a->ci95.has_value() == b->ci95.has_value());
  if (a->ci95) require_same(*a->ci95, *b->ci95);
}

void require_same(const std::optional<estimate::AcceptanceEstimate>& a,
                  const std::optional<estimate::AcceptanceEstimate>& b) {
  REQUIRE(a.has_value() == b.has_value());
  if (!a) return;
  REQUIRE(a->value == b->value);
  require_same(*a->ci95, *b->ci95);
  REQUIRE(a->degrees_of_freedom == b->degrees_of_freedom);
  REQUIRE(a->length_dependence.has_value() == b->length_dependence.has_value());
}

}  // namespace

TEST_CASE("no number of an analysis depends on the order of the texts, to the last bit") {
  constexpr std::int64_t texts = 40;
  constexpr std::int64_t length = 15;
  const RecordedPair pair = tests::recorded_pair(20, texts * length, length, 9);
  std::vector<std::int64_t> prompts;
  for (const std::int64_t sequence : pair.sequence) prompts.push_back(sequence % 17);
  std::vector<std::int64_t> order(texts);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::int64_t> shuffled = order;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(4));
  for (const std::span<const std::int64_t> prompt :
       {std::span<const std::int64_t>{}, std::span<const std::int64_t>{prompts}}) {
    const TraceAnalysis a = analysis_in_order(pair, prompt, order, length);
    const TraceAnalysis b = analysis_in_order(pair, prompt, shuffled, length);
    REQUIRE(a.alpha->clusters == (prompt.empty() ? texts : 17));
    require_same(a.alpha, b.alpha);
    require_same(a.alpha_emitted, b.alpha_emitted);
    require_same(a.d_lk, b.d_lk);
    require_same(a.lenience[0].alpha, b.lenience[0].alpha);
    require_same(a.lenience[0].distance_strict, b.lenience[0].distance_strict);
    REQUIRE(a.text_source.acceptance.variance == b.text_source.acceptance.variance);
    for (std::size_t bin = 0; bin < a.calibration.size(); ++bin) {
      REQUIRE(a.calibration[bin].confidence == b.calibration[bin].confidence);
      require_same(a.calibration[bin].acceptance, b.calibration[bin].acceptance);
    }
    for (std::size_t gamma = 0; gamma <= 4; ++gamma) {
      const estimate::GammaReplay& row = a.replay->lower.gammas[gamma];
      const estimate::GammaReplay& other = b.replay->lower.gammas[gamma];
      require_same(row.tokens_per_step, other.tokens_per_step);
      require_same(row.speedup, other.speedup);
    }
    REQUIRE(a.replay->lower.optimum->near_optimal_gammas == b.replay->lower.optimum->near_optimal_gammas);
    for (std::size_t j = 0; j < a.replay->positions.size(); ++j) {
      require_same(a.replay->positions[j].unconditional, b.replay->positions[j].unconditional);
      require_same(*a.replay->positions[j].conditional_ci95, *b.replay->positions[j].conditional_ci95);
    }
  }
}

TEST_CASE("the replay of a recording is the exact law over each of its sequences") {
  const RecordedPair pair = tests::recorded_pair(20, 120, 30, 5);
  TraceAnalysisOptions options;
  options.max_gamma = 5;
  const TraceAnalysis analysis = analysis_of(pair, options);
  REQUIRE(analysis.replay);
  CHECK_FALSE(analysis.replay->upper);
  for (std::int64_t gamma = 0; gamma <= 5; ++gamma) {
    double steps = 0;
    for (std::int64_t s = 0; s < 4; ++s) steps += theory::replay_steps(acceptance_of(pair, s), gamma).expected;
    const auto& row = analysis.replay->lower.gammas[static_cast<std::size_t>(gamma)];
    CHECK(row.tokens_per_step.value == Approx(120 / steps).epsilon(1e-6));
    CHECK_FALSE(row.speedup);
  }
}

TEST_CASE("acceptance by place in the round is consistent with the tokens per step") {
  const RecordedPair pair = tests::recorded_pair(20, 400, 400, 6);
  TraceAnalysisOptions options;
  options.max_gamma = 4;
  const TraceAnalysis analysis = analysis_of(pair, options);
  const auto& positions = analysis.replay->positions;
  REQUIRE(positions.size() == 4);
  // Tokens per step = 1 + the chances that draft 1, 2, ... stand, but for the end of the text.
  double tokens = 1;
  double survival = 1;
  for (const auto& row : positions) {
    CHECK(row.unconditional.lo == row.unconditional.hi);
    CHECK(row.unconditional.lo <= survival);
    survival = row.unconditional.lo;
    tokens += survival;
  }
  CHECK(tokens == Approx(analysis.replay->lower.gammas[4].tokens_per_step.value).margin(1e-9));
  CHECK(positions[0].conditional->lo >= positions[0].unconditional.lo);
}

TEST_CASE("a text from elsewhere is not replayed unless forced, and everything else is computed") {
  const RecordedPair pair = tests::recorded_pair(20, 120, 30, 5);
  traces::TraceMetadata metadata;
  metadata.path = traces::TextSource::other;
  TraceAnalysisOptions options;
  const TraceAnalysis without = analysis_of(pair, options, metadata);
  CHECK_FALSE(without.replay);
  CHECK(noted(without, "path_other"));
  REQUIRE(without.alpha);
  const double alpha = *without.alpha->value;
  REQUIRE(without.iid.size() == 16);
  CHECK(without.iid[2].gamma == 3);
  CHECK(*without.iid[2].tokens_per_step == Approx(1 + alpha + alpha * alpha + alpha * alpha * alpha));
  CHECK_FALSE(without.iid[2].speedup);
  options.force_replay = true;
  const TraceAnalysis forced = analysis_of(pair, options, metadata);
  CHECK(forced.replay);
  CHECK(forced.iid.empty());
}

TEST_CASE("greedy acceptance of text that was not sampled at temperature 0 is noted") {
  // The most probable tokens, which are a possible text of every temperature.
  const RecordedPair pair = tests::recorded_pair(20, 120, 30, 5, {0, 0, 1});
  TraceAnalysisOptions options;
  options.observe.rule = traces::AcceptanceRule::greedy;
  const auto noted_at = [&](std::optional<double> temperature) {
    traces::TraceMetadata metadata;
    metadata.temperature = temperature;
    return noted(analysis_of(pair, options, metadata), "greedy_of_sampled_text");
  };
  CHECK(noted_at(1));
  CHECK(noted_at(std::nullopt));
  CHECK_FALSE(noted_at(0));
  options.observe.rule = traces::AcceptanceRule::rejection;
  CHECK_FALSE(noted_at(1));
}

TEST_CASE("a sweep reshapes the rows as sampling from them would") {
  const RecordedPair pair = tests::recorded_pair(20, 60, 30, 9);
  TraceAnalysisOptions options;
  const core::Standardisation cooler = {0.7, 5, 0.95};
  options.sweep = {{planning::SweepSetting::Applies::both, cooler}, {planning::SweepSetting::Applies::target, cooler}};
  options.cost = core::StepCost{0.1};
  const TraceAnalysis analysis = analysis_of(pair, options);
  REQUIRE(analysis.sweep.size() == 2);
  double both = 0, target = 0;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto p_row = pair.target_row(i);
    const auto q_row = pair.draft_row(i);
    std::vector<double> p(p_row.begin(), p_row.end()), q(q_row.begin(), q_row.end());
    core::standardise(p, cooler);
    for (std::size_t x = 0; x < p.size(); ++x) target += std::min(p[x], q[x]);
    core::standardise(q, cooler);
    for (std::size_t x = 0; x < p.size(); ++x) both += std::min(p[x], q[x]);
  }
  CHECK(*analysis.sweep[0].alpha.value == Approx(both / 60).epsilon(1e-6));
  CHECK(*analysis.sweep[1].alpha.value == Approx(target / 60).epsilon(1e-6));
  CHECK(analysis.sweep[0].gamma);
  CHECK(analysis.sweep[0].speedup);
}

TEST_CASE("rows that were kept after reshaping are not swept") {
  const RecordedPair pair = tests::recorded_pair(20, 60, 30, 9);
  traces::TraceMetadata metadata;
  metadata.logprob_space = traces::LogprobSpace::processed;
  metadata.temperature = 0.7;
  TraceAnalysisOptions options;
  options.sweep = {{planning::SweepSetting::Applies::both, {0.5, 0, 1}}};
  const TraceAnalysis analysis = analysis_of(pair, options, metadata);
  CHECK(analysis.sweep.empty());
  CHECK(noted(analysis, "sweep_needs_raw_rows"));
}

TEST_CASE("rows that are assumed to be kept after reshaping are not swept") {
  const RecordedPair pair = tests::recorded_pair(20, 60, 30, 9);
  traces::TraceMetadata metadata;
  metadata.temperature = 0.5;
  TraceAnalysisOptions options;
  options.observe.assume_processed = true;
  options.sweep = {{planning::SweepSetting::Applies::both, {0.5, 0, 1}}};
  const TraceAnalysis analysis = analysis_of(pair, options, metadata);
  CHECK(analysis.sweep.empty());
  CHECK(noted(analysis, "sweep_needs_raw_rows"));
  metadata.temperature = 1;
  CHECK(analysis_of(pair, options, metadata).sweep.size() == 1);
}

TEST_CASE("where only some positions have distributions, the emitted tokens give the alpha to go by") {
  const RecordedPair pair = tests::recorded_pair(20, 120, 30, 5);
  const ScalarShard scalars(120, 0.25F);
  MemorySource source({}, {pair.full(), scalars.batch});
  const TraceAnalysis mixed = planning::analyse(source, {});
  CHECK(mixed.alpha->positions == 120);
  CHECK(mixed.alpha_emitted->positions == 240);
  CHECK(mixed.best_alpha() == &*mixed.alpha_emitted);
  CHECK(noted(mixed, "alpha_of_part"));

  const TraceAnalysis whole = analysis_of(pair, {});
  CHECK(whole.best_alpha() == &*whole.alpha);
  CHECK_FALSE(noted(whole, "alpha_of_part"));
}

TEST_CASE("shards of several depths are replayed at the largest, whichever comes first") {
  const ScalarShard one(30, 0.5F);
  ScalarShard three(30, 0.5F, 101);
  std::vector<float> deep;
  for (int i = 0; i < 30; ++i) {
    for (const float acceptance : {0.5F, 0.25F, 0.125F}) deep.push_back(std::log(0.5F * acceptance));
  }
  three.batch.depths = 3;
  three.batch.draft_token_logprob = deep;
  MemorySource rising({}, {one.batch, three.batch});
  MemorySource falling({}, {three.batch, one.batch});
  const TraceAnalysis first = planning::analyse(rising, {}), second = planning::analyse(falling, {});
  CHECK(first.depths > 1);
  REQUIRE(first.replay);
  REQUIRE(second.replay);
  for (std::size_t gamma = 0; gamma < first.replay->lower.gammas.size(); ++gamma) {
    CHECK(first.replay->lower.gammas[gamma].tokens_per_step.value ==
          second.replay->lower.gammas[gamma].tokens_per_step.value);
  }
}

TEST_CASE("what misses in some positions is told alike, wherever they stand") {
  const RecordedPair pair = tests::recorded_pair(20, 120, 30, 5);
  const ScalarShard scalars(120, 0.25F, 101);
  TraceAnalysisOptions options;
  options.cost = core::StepCost{.c = 0.1};
  options.sweep = {{planning::SweepSetting::Applies::both, {0.5, 0, 1}}};
  options.observe.lenience = {0.5};
  const auto codes = [&](const std::vector<traces::PositionBatch>& batches) {
    MemorySource source({}, batches);
    std::vector<std::string> found;
    for (const auto& note : planning::analyse(source, options).notes) found.push_back(note.code);
    return found;
  };
  const std::vector<std::string> rows_first = codes({pair.full(), scalars.batch});
  CHECK(std::count(rows_first.begin(), rows_first.end(), "sweep_needs_full_tier") == 1);
  CHECK(codes({scalars.batch, pair.full()}) == rows_first);
  // Nobody misses what nobody asked for.
  options.asked_for_sweep = options.asked_for_lenience = false;
  CHECK(codes({scalars.batch, pair.full()}) == rows_first);
  const std::vector<std::string> of_scalars = codes({scalars.batch});
  CHECK(std::count(of_scalars.begin(), of_scalars.end(), "sweep_needs_full_tier") == 0);
  CHECK(std::count(of_scalars.begin(), of_scalars.end(), "lenience_needs_full_tier") == 0);
}

TEST_CASE("a largest gamma out of range is refused") {
  TraceAnalysisOptions options;
  options.max_gamma = 0;
  CHECK_THROWS_AS(planning::TraceAnalyzer({}, 1, options), std::domain_error);
  options.max_gamma = theory::largest_replayed_gamma + 1;
  CHECK_THROWS_AS(planning::TraceAnalyzer({}, 1, options), std::domain_error);
}

TEST_CASE("acceptance by place has an interval over sequences, and a chain where the rates rise with the place") {
  // A sequence is easy or hard throughout: the longer a round goes on, the likelier it is an easy one's.
  std::vector<std::int64_t> sequence, place;
  std::vector<float> target, draft;
  for (std::int64_t s = 0; s < 40; ++s) {
    for (std::int64_t t = 0; t < 50; ++t) {
      sequence.push_back(s);
      place.push_back(t);
      target.push_back(std::log(0.5F));
      draft.push_back(std::log(0.5F * (s % 2 == 0 ? 0.9F : 0.4F)));
    }
  }
  traces::PositionBatch batch;
  batch.size = std::ssize(sequence);
  batch.sequence = sequence;
  batch.place = place;
  batch.target_token_logprob = target;
  batch.draft_token_logprob = draft;
  MemorySource source({}, {batch});
  TraceAnalysisOptions options;
  options.max_gamma = 6;
  const auto analysis = planning::analyse(source, options);
  const auto& positions = analysis.replay->positions;
  // Two rates of sequences, both seen by every sequence alike: by the definition of the mixture.
  for (const auto& row : positions) {
    REQUIRE(row.conditional);
    REQUIRE(row.conditional_ci95);
    CHECK(row.conditional_ci95->lo < row.conditional->lo);
    CHECK(row.conditional->lo < row.conditional_ci95->hi);
  }

  const RecordedPair single = tests::recorded_pair(20, 120, 120, 5);
  const TraceAnalysis of_one = analysis_of(single, options);
  for (const auto& row : of_one.replay->positions) CHECK_FALSE(row.conditional_ci95);
}
