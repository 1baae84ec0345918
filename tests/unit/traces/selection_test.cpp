#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/trace_file.hpp"
#include "traces/context_stretches.hpp"
#include "traces/file_error.hpp"
#include "traces/joined_recordings.hpp"
#include "traces/selected_positions.hpp"

using namespace specdec::traces;
using specdec::tests::WholeTrace;

namespace {

/// Sequences of the given lengths with a token, a task and two log-probabilities each; batches of three positions.
class Recording : public PositionSource {
 public:
  Recording(std::vector<std::int64_t> lengths, std::vector<std::int32_t> tasks, TraceMetadata metadata = {})
      : metadata_(std::move(metadata)) {
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      for (std::int64_t t = 0; t < lengths[s]; ++t) {
        sequence_.push_back(static_cast<std::int64_t>(s));
        place_.push_back(t);
        task_.push_back(tasks[s]);
        token_.push_back(static_cast<std::int32_t>(100 * s + static_cast<std::size_t>(t)));
        draft_.push_back(-1);
        draft_.push_back(-2);
      }
    }
  }

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {"recording"}; }
  std::string format() const override { return "memory"; }
  bool read(PositionBatch& batch) override {
    const std::int64_t size = std::min<std::int64_t>(3, std::ssize(token_) - next_);
    if (size == 0) return false;
    const auto part = [&](const auto& column, std::int64_t width) {
      return std::span(column).subspan(static_cast<std::size_t>(next_ * width), static_cast<std::size_t>(size * width));
    };
    batch = {};
    batch.first = next_;
    batch.size = size;
    batch.sequence = part(sequence_, 1);
    batch.place = part(place_, 1);
    batch.task = part(task_, 1);
    batch.token = part(token_, 1);
    batch.draft_token_logprob = part(draft_, 2);
    batch.depths = 2;
    next_ += size;
    return true;
  }
  FileError refusal(std::int64_t position, Role, std::string found, std::string expected) const override {
    return {"recording", FileError::line(position), "row", std::move(found), std::move(expected)};
  }

 private:
  TraceMetadata metadata_;
  std::vector<std::int64_t> sequence_, place_;
  std::vector<std::int32_t> task_, token_;
  std::vector<float> draft_;
  std::int64_t next_ = 0;
};

TraceMetadata named(std::vector<std::string> tasks) {
  TraceMetadata metadata;
  metadata.task_names = std::move(tasks);
  return metadata;
}

WholeTrace selected(Selection selection) {
  SelectedPositions source(std::make_unique<Recording>(std::vector<std::int64_t>{4, 2, 3},
                                                       std::vector<std::int32_t>{0, 1, 0}, named({"prose", "code"})),
                           std::move(selection));
  return WholeTrace(source);
}

std::vector<std::unique_ptr<PositionSource>> two(const TraceMetadata& first, const TraceMetadata& second) {
  std::vector<std::unique_ptr<PositionSource>> sources;
  sources.push_back(
      std::make_unique<Recording>(std::vector<std::int64_t>{2, 2}, std::vector<std::int32_t>{0, 1}, first));
  sources.push_back(
      std::make_unique<Recording>(std::vector<std::int64_t>{1, 3}, std::vector<std::int32_t>{-1, 0}, second));
  return sources;
}

}  // namespace

TEST_CASE("a selection of a task keeps its sequences whole and numbers them anew") {
  const WholeTrace part = selected({{"prose"}, {}, {}});
  CHECK(part.token == std::vector<std::int32_t>{0, 1, 2, 3, 200, 201, 202});
  CHECK(part.sequence == std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 1});
  CHECK(part.place == std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2});
  CHECK(part.draft_logprob.size() == 14);
}

TEST_CASE("a selection of sequences counts them from 0 and leaves the end out") {
  const WholeTrace part = selected({{}, {1, 2}, {}});
  CHECK(part.token == std::vector<std::int32_t>{100, 101});
  CHECK(part.sequence == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("a selection of positions may cut sequences, whose places stay") {
  const WholeTrace part = selected({{}, {}, {2, 5}});
  CHECK(part.token == std::vector<std::int32_t>{2, 3, 100});
  CHECK(part.sequence == std::vector<std::int64_t>{0, 0, 1});
  CHECK(part.place == std::vector<std::int64_t>{2, 3, 0});
}

TEST_CASE("everything in a selection must hold at once") {
  CHECK(selected({{"prose"}, {1, 3}, {0, 8}}).token == std::vector<std::int32_t>{200, 201});
  CHECK(selected({{"code"}, {0, 1}, {}}).token.empty());
}

TEST_CASE("a task that the recording lacks is named once all has been read") {
  CHECK_THROWS_WITH(selected({{"prose", "poems"}, {}, {}}),
                    "SelectedPositions: task is poems, but must be a task of the recording");
}

TEST_CASE("a refusal of a selected position names the place in the recording itself") {
  SelectedPositions source(
      std::make_unique<Recording>(std::vector<std::int64_t>{4, 2, 3}, std::vector<std::int32_t>{0, 1, 0}),
      Selection{{}, {1, 3}, {}});
  PositionBatch batch;
  REQUIRE(source.read(batch));  // positions 4 and 5
  REQUIRE(batch.size == 2);
  CHECK(source.refusal(batch.first + 1, Role::draft, "bad", "good").location().number == 5);
  REQUIRE(source.read(batch));  // 6, 7 and 8
  CHECK(source.refusal(batch.first, Role::draft, "bad", "good").location().number == 6);
}

TEST_CASE("joined recordings number positions and sequences on and agree on the tasks by name") {
  JoinedRecordings source(two(named({"prose", "code"}), named({"code"})));
  const WholeTrace whole(source);
  CHECK(whole.sequence == std::vector<std::int64_t>{0, 0, 1, 1, 2, 3, 3, 3});
  CHECK(whole.task == std::vector<std::int32_t>{0, 0, 1, 1, -1, 1, 1, 1});
  CHECK(source.metadata().task_names == std::vector<std::string>{"prose", "code"});
}

TEST_CASE("tasks without names keep their numbers, unless the other recording names its own") {
  JoinedRecordings unnamed(two({}, {}));
  CHECK(WholeTrace(unnamed).task == std::vector<std::int32_t>{0, 0, 1, 1, -1, 0, 0, 0});
  JoinedRecordings mixed(two(named({"prose", "code"}), {}));
  CHECK_THROWS_WITH(
      WholeTrace(mixed),
      "recording: task is 0 and has no name, but must be named, as the tasks of the other recordings are");
  SelectedPositions by_number(
      std::make_unique<Recording>(std::vector<std::int64_t>{1, 2}, std::vector<std::int32_t>{0, 7}),
      Selection{{"7"}, {}, {}});
  CHECK(WholeTrace(by_number).token == std::vector<std::int32_t>{100, 101});
}

TEST_CASE("a refusal of a joined position counts within its own recording") {
  JoinedRecordings source(two({}, {}));
  PositionBatch batch;
  while (source.read(batch)) continue;
  CHECK(batch.first == 7);
  CHECK(source.refusal(7, Role::target, "bad", "good").location().number == 3);
}

TEST_CASE("joined metadata keeps what all say, and what one leaves open stays open") {
  TraceMetadata first;
  first.vocab_size = 10;
  first.temperature = 1;
  first.path = TextSource::target;
  first.target_model = "big";
  first.other = {{"seed", "1"}, {"host", "a"}};
  TraceMetadata second = first;
  second.path = TextSource::unknown;
  second.target_model = "";
  second.other = {{"seed", "2"}, {"host", "a"}};
  const TraceMetadata common = common_metadata(two(first, second));
  CHECK(common.vocab_size == 10);
  CHECK(common.temperature == 1.0);
  CHECK(common.path == TextSource::unknown);
  CHECK(common.target_model.empty());
  CHECK(common.other == std::map<std::string, std::string>{{"host", "a"}});
}

TEST_CASE("recordings that contradict each other are not joined") {
  TraceMetadata first, second;
  first.temperature = 1;
  second.temperature = 0.5;
  CHECK_THROWS_WITH(JoinedRecordings(two(first, second)),
                    "recording: the metadata's temperature is 0.5, but must be 1 as in the recordings before it");
  CHECK_THROWS_AS(JoinedRecordings({}), std::invalid_argument);
}

TEST_CASE("sequences are cut at contexts, and their stretches stay one observation") {
  auto recording = std::make_unique<Recording>(std::vector<std::int64_t>{5, 2, 4}, std::vector<std::int32_t>{0, 1, 0});
  ContextStretches cut(std::move(recording), {2, 4}, {"<2", "2-4", ">=4"});
  CHECK(cut.metadata().task_names == std::vector<std::string>{"<2", "2-4", ">=4"});
  std::vector<std::int64_t> sequence, prompt, place;
  std::vector<std::int32_t> task;
  PositionBatch batch;
  while (cut.read(batch)) {
    sequence.insert(sequence.end(), batch.sequence.begin(), batch.sequence.end());
    prompt.insert(prompt.end(), batch.prompt.begin(), batch.prompt.end());
    place.insert(place.end(), batch.place.begin(), batch.place.end());
    task.insert(task.end(), batch.task.begin(), batch.task.end());
  }
  CHECK(place == std::vector<std::int64_t>{0, 1, 2, 3, 4, 0, 1, 0, 1, 2, 3});
  CHECK(sequence == std::vector<std::int64_t>{0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5});
  CHECK(task == std::vector<std::int32_t>{0, 0, 1, 1, 2, 0, 0, 0, 0, 1, 1});
  CHECK(prompt == std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2});
  CHECK_THROWS_AS(
      ContextStretches(std::make_unique<Recording>(std::vector<std::int64_t>{1}, std::vector<std::int32_t>{0}), {2},
                       {"one"}),
      std::invalid_argument);
}
