#include "planner/recordings/checkpoint.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "planner/recordings/team.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/planner/kept_recordings.hpp"
#include "traces/file_error.hpp"

namespace fs = std::filesystem;
using namespace specdec;
using namespace specdec::tests::kept;
using planner::AnalysisQuestion;
using planner::Division;
using planner::RecordingFiles;
using planner::RecordingSummary;

namespace {

/// Thrown to end a process in the test.
struct Killed {};

/// A process that is killed when it asks for a unit beyond so many.
class Mortal : public planner::Team {
 public:
  explicit Mortal(std::int64_t units) : left_(units) {}
  std::int64_t next() override {
    if (left_-- == 0) throw Killed();
    return Team::next();
  }

 private:
  std::int64_t left_;
};

/// Another rank beside a process that was begun, which is dealt every second unit and leaves its summary.
class Other : public planner::Team {
 public:
  Other(std::int64_t rank, std::int64_t of) : rank_(rank), of_(of), unit_(rank - of) {}
  std::int64_t rank() const override { return rank_; }
  std::int64_t next() override { return unit_ += of_; }

 private:
  std::int64_t rank_, of_, unit_;
};

Division in_folder(const fs::path& folder, std::size_t* taken_up = nullptr) {
  Division division{37, folder, "1.2.3", {{"c", 0.05}}, {}};
  if (taken_up != nullptr) division.taken_up = [taken_up](std::size_t units) { *taken_up = units; };
  return division;
}

std::string answer_of(planner::Team& team, const RecordingFiles& recording, const AnalysisQuestion& question,
                      const Division& division) {
  return text_of(planner::summary_by(team, recording, {}, question, division).answer());
}

/// Kills a run after more and more of its units, goes on each time, and compares the answer of the last with that of
/// one run; each restart finds at least what the one before it found.
void require_same_after_kills(const RecordingFiles& recording, const AnalysisQuestion& question) {
  const std::string whole = text_of(planner::analyze(recording, question));
  const Folder folder;
  std::size_t taken_up = 0;
  for (const std::int64_t units : {1, 2, 0, 3}) {
    Mortal team(units);
    const std::size_t before = taken_up;
    CHECK_THROWS_AS(answer_of(team, recording, question, in_folder(folder / "kept", &taken_up)), Killed);
    CHECK(taken_up >= before);
  }
  planner::Team team;
  CHECK((answer_of(team, recording, question, in_folder(folder / "kept", &taken_up)) == whole));
  CHECK(taken_up > 0);
  // All is there now.
  planner::Team again;
  CHECK((answer_of(again, recording, question, in_folder(folder / "kept", &taken_up)) == whole));
  CHECK(taken_up >= 3);
}

std::string refusal(const RecordingFiles& recording, const AnalysisQuestion& question, const Division& division) {
  planner::Team team;
  try {
    planner::summary_by(team, recording, {}, question, division);
  } catch (const traces::FileError& error) {
    return std::string(error.what()).substr(error.path().parent_path().string().size());
  }
  return "none";
}

}  // namespace

TEST_CASE("an analysis that was killed between any units goes on from its checkpoint, to the same bits") {
  const Folder folder;
  require_same_after_kills({{full(folder / "full").string()}}, with_cost());
  require_same_after_kills({{scalar(folder / "scalar").string()}}, with_cost());
  require_same_after_kills({{top_k(folder / "top_k.safetensors").string()}}, with_cost());
  require_same_after_kills({{of_depths(folder / "depths.safetensors").string()}}, with_cost());
  require_same_after_kills({{accepted_lengths(folder / "lengths.safetensors").string()}}, with_cost());
  require_same_after_kills(of_two_tiers(folder), with_cost());
  AnalysisQuestion by_context = with_cost();
  by_context.by = {"context", {10, 25}};
  require_same_after_kills({{(folder / "full").string()}}, by_context);
}

TEST_CASE("a recording whose tasks are known only once it is read goes on from a checkpoint, too") {
  const Folder folder;
  const fs::path file = folder / "pairs.jsonl";
  std::ofstream out(file);
  for (int i = 0; i < 300; ++i) {
    out << R"({"seq": )" << i / 10 << R"(, "p": 0.5, "q": 0.)" << 2 + i % 7 << R"(, "task": "task )" << i / 60
        << "\"}\n";
  }
  out.close();
  require_same_after_kills({{file.string()}}, with_cost());
}

TEST_CASE("what several ranks left is taken up by one, and each unit counts once") {
  const Folder folder;
  const RecordingFiles recording = {{full(folder / "trace").string()}};
  const std::string whole = text_of(planner::analyze(recording, with_cost()));
  const fs::path kept = folder / "kept";
  fs::create_directory(kept);
  for (const std::int64_t rank : {1, 2}) {
    Other other(rank, 3);
    planner::summary_by(other, recording, {}, with_cost(), in_folder(kept));
  }
  CHECK(fs::exists(kept / "1.checkpoint"));
  const fs::path left = folder / "left.checkpoint";
  fs::copy(kept / "2.checkpoint", left);
  std::size_t taken_up = 0;
  planner::Team team;
  CHECK((answer_of(team, recording, with_cost(), in_folder(kept, &taken_up)) == whole));
  CHECK(taken_up > 2);
  CHECK_FALSE(fs::exists(kept / "2.checkpoint"));
  // A run that was killed before it removed what it took up: that counts once.
  fs::copy(left, kept / "2.checkpoint");
  planner::Team again;
  CHECK((answer_of(again, recording, with_cost(), in_folder(kept)) == whole));
  CHECK_FALSE(fs::exists(kept / "2.checkpoint"));
  // Neither of two units that overlap is known to be whole.
  fs::remove(kept / "0.checkpoint");
  Other third(0, 6), fourth(3, 4);
  fs::copy(left, kept / "2.checkpoint");
  planner::summary_by(fourth, recording, {}, with_cost(), in_folder(kept));
  CHECK(refusal(recording, with_cost(), in_folder(kept)).find("/3.checkpoint: units is unit ") == 0);
}

TEST_CASE("a checkpoint of another recording, question, division, version or share is refused by name") {
  const Folder folder;
  const RecordingFiles recording = {{full(folder / "trace").string()}};
  const fs::path kept = folder / "kept";
  planner::Team team;
  planner::summary_by(team, recording, {}, with_cost(), in_folder(kept));
  CHECK(refusal(recording, with_cost(), in_folder(kept)) == "none");
  Division other = in_folder(kept);
  other.version = "1.2.4";
  CHECK(refusal(recording, with_cost(), other) == "/0.checkpoint: version is 1.2.3, but must be 1.2.4, as in this run");
  other = in_folder(kept);
  other.options["c"] = 0.1;
  CHECK(refusal(recording, with_cost(), other) == "/0.checkpoint: --c is 0.05, but must be 0.1, as in this run");
  other = in_folder(kept);
  other.unit_positions = 38;
  CHECK(refusal(recording, with_cost(), other) ==
        "/0.checkpoint: unit_positions is 37, but must be 38, as in this run");
  AnalysisQuestion seed = with_cost();
  seed.seed = 2;
  planner::Team same;
  CHECK_THROWS_WITH(planner::summary_by(same, recording, {}, seed, in_folder(kept)),
                    Catch::Contains("another question or another recording"));
  const RecordingFiles scalars = {{scalar(folder / "scalar").string()}};
  CHECK(refusal(scalars, with_cost(), in_folder(kept)).find("/0.checkpoint: metadata ") == 0);
  planner::Team sharded;
  CHECK_THROWS_WITH(planner::summary_by(sharded, recording, {1, 2}, with_cost(), in_folder(kept)),
                    Catch::Contains("0.checkpoint: shard is 1/1, but must be 2/2, as in this run"));
}

TEST_CASE("a checkpoint that was cut off, or is in use, is refused by name") {
  const Folder folder;
  const RecordingFiles recording = {{of_depths(folder / "t.safetensors").string()}};
  const fs::path kept = folder / "kept";
  planner::Team team;
  planner::summary_by(team, recording, {}, with_cost(), in_folder(kept));
  {
    const traces::FolderLock lock(kept);
    CHECK(refusal(recording, with_cost(), in_folder(kept)) ==
          "/kept: folder is being written by another run, but must be written by one at a time");
  }
  fs::resize_file(kept / "0.checkpoint", fs::file_size(kept / "0.checkpoint") - 1);
  CHECK(refusal(recording, with_cost(), in_folder(kept)) == "/0.checkpoint: part is cut off, but must be whole");
  fs::rename(kept / "0.checkpoint", kept / "mine.checkpoint");
  CHECK(refusal(recording, with_cost(), in_folder(kept)) ==
        "/mine.checkpoint: name is mine.checkpoint, but must be RANK.checkpoint");
}

TEST_CASE("a unit is a share of a large recording, and all of a small one") {
  const Folder folder;
  const auto source = planner::share_of({{scalar(folder / "trace").string()}}, {}, {});
  CHECK(planner::usual_unit_positions(*source) == 23 * 41);
  const fs::path large = folder / "large.safetensors";
  const auto wide = sim::synthetic_trace({{"", sim::LogitNoiseLaw{}}}, {.sequences = 6, .tokens = 1000});
  traces::TraceWriter writer(large, wide->metadata());
  traces::PositionBatch batch;
  while (wide->read(batch)) writer.write(batch);
  writer.finish();
  const auto units = static_cast<std::int64_t>(fs::file_size(large) >> 24U);
  REQUIRE(units > 1);
  CHECK(planner::usual_unit_positions(*planner::share_of({{large.string()}}, {}, {})) == 6000 / units);
}
