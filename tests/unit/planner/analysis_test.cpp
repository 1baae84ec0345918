#include "planner/recordings/analysis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "planner/acceptance.hpp"
#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/memory_recording.hpp"

using namespace specdec;
using planner::Analysis;
using planner::AnalysisQuestion;
using planner::analyze;
using planner::QuestionError;

namespace {

const planner::RecordingFiles shipped = {{tests::source_dir() + "/sim/models/recording.safetensors"}};

bool warns(const Analysis& analysis, const std::string& code) {
  return std::any_of(analysis.warnings.begin(), analysis.warnings.end(),
                     [&](const Note& warning) { return warning.code == code; });
}

}  // namespace

TEST_CASE("an analysis and a plan of one recording agree") {
  const Analysis analysis = analyze(shipped, {.cost = {.c = 0.05}, .gamma = {1, 4, 9}});
  const planner::Acceptance recorded = planner::Acceptance::from_recording(shipped.files);
  REQUIRE(analysis.recording.replay);
  CHECK(analysis.recording.best_alpha()->value == recorded.alpha);
  CHECK(analysis.gammas == std::vector<std::int64_t>{1, 4, 9});
  for (const std::int64_t gamma : analysis.gammas) {
    CHECK(analysis.recording.replay->lower.gammas[static_cast<std::size_t>(gamma)].tokens_per_step.value ==
          Approx(recorded.curve->tokens_per_step(gamma).value).epsilon(1e-12));
  }
  CHECK(analysis.files == shipped.files);
  CHECK(warns(analyze(shipped), "no_cost"));
  CHECK_FALSE(warns(analysis, "no_cost"));
}

TEST_CASE("texts that do not say their prompts are warned of, for intervals take them as independent") {
  const std::vector<float> p = {0.5F, 0.5F, 0.75F, 0.25F, 0.25F, 0.75F}, q = {0.25F, 0.75F, 0.5F, 0.5F, 0.5F, 0.5F};
  const auto warned = [&](std::vector<std::int64_t> prompt) {
    traces::MemoryPositions positions;
    positions.size = 3;
    positions.vocab = 2;
    positions.target = std::as_bytes(std::span(p)).data();
    positions.draft = std::as_bytes(std::span(q)).data();
    positions.sequences = {0, 1, 2};
    positions.prompt = std::move(prompt);
    traces::MemoryRecording recording;
    recording.append(std::move(positions));
    const auto source = recording.open();
    return warns(analyze(*source), "prompts_unknown");
  };
  CHECK(warned({}));
  CHECK_FALSE(warned({4, 4, 5}));
  // The text whose prompt is unknown may continue one of the others.
  CHECK(warned({4, 5, traces::no_prompt}));
}

TEST_CASE("numbers of tokens that do not say how the text was sampled are warned of, for nothing in them tells") {
  const tests::TemporaryFolder folder;
  std::string text = "seq,pos,target_logprob,draft_logprob\n";
  for (int t = 0; t < 40; ++t) text += "0," + std::to_string(t) + ",-1.5,-2.0\n";
  const planner::RecordingFiles pairs = {{folder.write("pairs.csv", text)}};
  CHECK(warns(analyze(pairs), "sampling_not_stated"));
  CHECK_FALSE(warns(analyze(pairs, {.rules = {.assume_processed = true}}), "sampling_not_stated"));
  CHECK_FALSE(warns(analyze(shipped), "sampling_not_stated"));
}

TEST_CASE("an analysis does not depend on threads") {
  const Analysis one = analyze(shipped, {.gamma = {3}, .threads = 1});
  const Analysis four = analyze(shipped, {.gamma = {3}, .threads = 4});
  CHECK(one.recording.alpha->ci95->lo == four.recording.alpha->ci95->lo);
}

TEST_CASE("a question that cannot be answered is refused before the recording is opened") {
  const planner::RecordingFiles missing = {{"missing.safetensors"}};
  CHECK_THROWS_WITH(analyze(missing, {.gamma = {4, 4}}), "gamma is 4, but must be an integer in [5, 512]");
  CHECK_THROWS_WITH(analyze(missing, {.cost = {.overhead = 0.1}}), "overhead is given, but needs c beside it");
}

TEST_CASE("an interrupted analysis is that of what was read, and one of all that there is is whole") {
  const std::vector<float> p = {0.5F, 0.5F, 0.75F, 0.25F}, q = {0.25F, 0.75F, 0.5F, 0.5F};
  std::vector<double> told;
  const auto interrupted_analysis = [&](int batches) {
    traces::MemoryRecording recording;
    for (int batch = 0; batch < batches; ++batch) {
      traces::MemoryPositions positions;
      positions.size = 2;
      positions.vocab = 2;
      positions.target = std::as_bytes(std::span(p)).data();
      positions.draft = std::as_bytes(std::span(q)).data();
      recording.append(std::move(positions));
    }
    const core::RunHooks at_once = {[&](double share) { told.push_back(share); }, [] { return true; }};
    return analyze(*recording.open(), {}, at_once);
  };
  const Analysis first = interrupted_analysis(3);
  CHECK(first.partial);
  CHECK(warns(first, "partial"));
  CHECK(first.recording.positions == 2);
  CHECK(told.back() == 1);
  const Analysis whole = interrupted_analysis(1);
  CHECK_FALSE(whole.partial);
  CHECK(first.recording.best_alpha()->value == whole.recording.best_alpha()->value);
}
