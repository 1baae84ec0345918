#include "planner/recordings/recording_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "planner/question_error.hpp"
#include "render/analysis.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/planner/kept_recordings.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"
#include "traces/trace_writer.hpp"

namespace fs = std::filesystem;
using namespace specdec;
using namespace specdec::tests::kept;
using planner::AnalysisQuestion;
using planner::PartOrigin;
using planner::RecordingFiles;
using planner::RecordingSummary;
using traces::Shard;

namespace {

constexpr const char* version = "1.2.3";

PartOrigin origin_of(const RecordingSummary& summary, const Shard& shard) {
  PartOrigin origin{"analyze", shard, version, {{"c", 0.05}}, {{"traces", summary.files()}}, {}};
  for (const std::string& file : summary.files()) origin.files.push_back({{"path", file}});
  return origin;
}

fs::path part_of(const RecordingFiles& recording, const Shard& shard, const AnalysisQuestion& question,
                 const fs::path& folder) {
  RecordingSummary summary = RecordingSummary::of(recording, shard, question);
  const fs::path path = planner::part_path(folder, shard);
  planner::save_part(path, summary, origin_of(summary, shard));
  return path;
}

std::vector<std::string> shuffled(std::vector<std::string> paths, std::uint64_t seed) {
  std::shuffle(paths.begin(), paths.end(), std::mt19937_64(seed));
  return paths;
}

/// The answers of 1, 2, 3, 7 and 64 parts, shuffled, with the recording gone, against that of one run.
void require_same_answers(const RecordingFiles& recording, const AnalysisQuestion& question) {
  const std::string whole = text_of(planner::analyze(recording, question));
  const Folder folder;
  std::vector<std::vector<std::string>> cuts;
  for (const std::int64_t of : {1, 2, 3, 7, 64}) {
    const fs::path parts = folder / std::to_string(of);
    fs::create_directory(parts);
    cuts.emplace_back();
    for (std::int64_t i = 0; i < of; ++i) cuts.back().push_back(part_of(recording, {i, of}, question, parts).string());
  }
  for (const std::string& file : recording.files) fs::remove_all(file);
  for (const std::vector<std::string>& parts : cuts) {
    CAPTURE(parts.size());
    const planner::PartSet set = planner::read_parts(shuffled(parts, parts.size()), version, false);
    CHECK(set.notes.empty());
    CHECK((text_of(planner::merge_parts(set)) == whole));
  }
}

}  // namespace

TEST_CASE("parts of whole rows answer as one run to the bit, however many they are and in whatever order") {
  const Folder folder;
  require_same_answers({{full(folder / "trace").string()}}, with_cost());
}

TEST_CASE("parts of top tokens, known as brackets and exactly, answer as one run to the bit") {
  const Folder folder;
  require_same_answers({{top_k(folder / "trace.safetensors").string()}}, with_cost());
}

TEST_CASE("parts of two numbers a token answer as one run to the bit") {
  const Folder folder;
  AnalysisQuestion question = with_cost();
  question.cost.verify_factor = core::VerificationCost::table(std::vector<core::VerificationCost::Point>{{5, 1.1}});
  require_same_answers({{scalar(folder / "trace").string()}}, question);
}

TEST_CASE("parts of more prompts than a table keeps apart answer as one run to the bit", "[long]") {
  const Folder folder;
  const fs::path path =
      synthetic(folder / "trace", sim::MarkovLaw{}, sim::BetaLaw{.alpha = 0.6}, {.sequences = 5000, .tokens = 6});
  require_same_answers({{path.string()}}, with_cost());
}

TEST_CASE("parts of acceptance by depth answer as one run to the bit") {
  const Folder folder;
  require_same_answers({{of_depths(folder / "trace.safetensors").string()}}, with_cost());
}

TEST_CASE("parts of accepted lengths answer as one run to the bit") {
  const Folder folder;
  require_same_answers({{accepted_lengths(folder / "trace.safetensors").string()}}, with_cost());
}

TEST_CASE("parts of files of two tiers answer as one run to the bit, though some parts see one tier alone") {
  const Folder folder;
  require_same_answers(of_two_tiers(folder), with_cost());
}

TEST_CASE("parts of a recording of one text answer as one run to the bit") {
  const Folder folder;
  const fs::path path = folder / "one.safetensors";
  const auto source = sim::synthetic_trace({{"", sim::MarkovLaw{}}}, {.sequences = 1, .tokens = 900});
  traces::TraceWriter writer(path, source->metadata());
  traces::PositionBatch batch;
  while (source->read(batch)) writer.write(batch);
  writer.finish();
  require_same_answers({{path.string()}}, with_cost());
}

TEST_CASE("parts of texts that are cut by context answer as one run to the bit") {
  AnalysisQuestion question = with_cost();
  question.by = {"context", {10, 25}};
  for (const auto& make : {full, scalar}) {
    const Folder folder;
    require_same_answers({{make(folder / "trace").string()}}, question);
  }
}

// The comparison must fail where an answer is one of other sequences: two shards of three.
TEST_CASE("the answer of some parts is another one, which says what is missing") {
  const Folder folder;
  const RecordingFiles recording = {{full(folder / "trace").string()}};
  const std::vector<std::string> two = {part_of(recording, {0, 3}, with_cost(), folder / "a.part").string(),
                                        part_of(recording, {2, 3}, with_cost(), folder / "c.part").string()};
  CHECK_THROWS_WITH(planner::merge_parts(planner::read_parts(two, version, false)),
                    Catch::Contains("PART lacks the shards 2/3"));
  const planner::PartSet set = planner::read_parts(two, version, true);
  REQUIRE(set.notes.size() == 1);
  CHECK(set.notes.front().code == "parts_missing");
  CHECK(set.notes.front().message == "the answer is that of 2 of 3 shards; missing: 2/3");
  CHECK_FALSE((text_of(planner::merge_parts(set)) == text_of(planner::analyze(recording, with_cost()))));
}

TEST_CASE("a part that does not belong to the others is refused by name") {
  const Folder folder;
  const RecordingFiles recording = {{full(folder / "trace").string()}};
  const std::string first = part_of(recording, {0, 2}, with_cost(), folder / "1.part").string();
  const std::string second = part_of(recording, {1, 2}, with_cost(), folder / "2.part").string();
  const auto refusal = [&](const std::string& other, const char* of_version = version) {
    try {
      planner::merge_parts(planner::read_parts({first, other}, of_version, false));
    } catch (const traces::FileError& error) {
      return std::string(error.what()).substr(error.path().string().size());
    }
    return std::string("none");
  };
  CHECK(refusal(second) == "none");
  CHECK(refusal(second, "1.2.4") == ": version is 1.2.3, but must be 1.2.4, which is to merge it");

  const std::string again = part_of(recording, {0, 2}, with_cost(), folder / "again.part").string();
  CHECK(refusal(again) == ": shard is 1/2 again, but must be each shard once; " + first + " is that one, too");
  const std::string of_three = part_of(recording, {1, 3}, with_cost(), folder / "three.part").string();
  CHECK(refusal(of_three) == ": shard is 2/3, but must be one of 2, as " + first + " says");

  const std::string of_other = part_of({{scalar(folder / "other").string()}}, {1, 2}, with_cost(), folder / "o.part");
  CHECK(refusal(of_other).find(": metadata truth.alpha is ") == 0);
  AnalysisQuestion tolerant = with_cost();
  tolerant.row_tolerance = 0.5;
  const std::string of_tolerant = part_of(recording, {1, 2}, tolerant, folder / "tolerant.part").string();
  CHECK(refusal(of_tolerant) == ": state is of another question or recording, but must be of that of " + first);

  RecordingSummary summary = RecordingSummary::of(recording, {1, 2}, with_cost());
  PartOrigin origin = origin_of(summary, {1, 2});
  origin.options["c"] = 0.1;
  planner::save_part(folder / "c.part", summary, origin);
  CHECK(refusal((folder / "c.part").string()) == ": --c is 0.1, but must be 0.05, as " + first + " says");
}

TEST_CASE("a recording that was changed is another one, though its header is the same") {
  const Folder folder;
  const fs::path trace = folder / "t.safetensors";
  const RecordingFiles recording = {{of_depths(trace).string()}};
  const std::string first = part_of(recording, {0, 2}, with_cost(), folder / "1.part").string();
  std::fstream file(trace, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('\x3f');
  file.close();
  const std::string second = part_of(recording, {1, 2}, with_cost(), folder / "2.part").string();
  CHECK_THROWS_WITH(planner::merge_parts(planner::read_parts({first, second}, version, false)),
                    Catch::Contains("file 1 of the recording is " + trace.string()));
}

TEST_CASE("a part that was cut off or damaged anywhere is refused") {
  const Folder folder;
  const std::string part =
      part_of({{of_depths(folder / "t.safetensors").string()}}, {0, 1}, with_cost(), folder / "a.part").string();
  std::ifstream in(part, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const fs::path broken = folder / "broken.part";
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(broken, std::ios::binary) << bytes;
    try {
      planner::merge_parts(planner::read_parts({broken.string()}, version, false));
    } catch (const traces::FileError& error) {
      return error.path() == broken;
    }
    return false;
  };
  CHECK_FALSE(refused(whole));
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    const std::size_t at = random() % whole.size();
    CHECK(refused(whole.substr(0, at)));
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    CHECK(refused(flipped));
  }
  CHECK(refused("a shopping list, which is another kind of file"));
}

namespace {

/// The outcome of merging one part: "" for an answer, or the refusal.
std::string outcome_of(const fs::path& path, const traces::PartFile& part) {
  traces::write_part_file(path, part);
  try {
    planner::merge_parts(planner::read_parts({path.string()}, version, true));
  } catch (const traces::FileError& error) {
    return std::string(error.what()).substr(path.string().size());
  } catch (const planner::QuestionError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a header that says what none can is refused by its member, though its digest is right") {
  const Folder folder;
  const fs::path path = folder / "a.part";
  part_of({{of_depths(folder / "t.safetensors").string()}}, {0, 1}, with_cost(), path);
  const traces::PartFile whole = traces::read_part_file(path);
  CHECK(outcome_of(path, whole).empty());
  const nlohmann::json no_values[] = {nullptr, -1, 1.5, "text", nlohmann::json::array({1}), {{"a", 1}}, true, 1e300};
  for (const char* place : {"/version", "/made_with", "/shard", "/shard/number", "/shard/of", "/options",
                            "/other_options", "/recording", "/recording/metadata", "/recording/files",
                            "/recording/files/0", "/recording/files/0/path", "/recording/files/0/fingerprint"}) {
    for (const nlohmann::json& value : no_values) {
      nlohmann::json header = nlohmann::json::parse(whole.header);
      nlohmann::json& member = header.at(nlohmann::json::json_pointer(place));
      const bool is_of_same_kind = member.type() == value.type() && !member.is_number();
      member = value;
      INFO(place << " " << value);
      // Texts may be others, and objects hold other members.
      if (!is_of_same_kind) CHECK(outcome_of(path, {header.dump(), whole.state}).find(": ") == 0);
    }
  }
  for (const char* header : {"", "[]", "null", "{", "\"text\""})
    CHECK(outcome_of(path, {header, whole.state}).find(": header") == 0);
  nlohmann::json many = nlohmann::json::parse(whole.header);
  many["shard"]["of"] = 1'000'001;
  CHECK(outcome_of(path, {many.dump(), whole.state}) ==
        ": shard is 1/1000001, but must be I/N with 1 <= I <= N <= 1000000");
}

TEST_CASE("a state of any bytes is refused or read, and never a defect, though its digest is right") {
  const Folder folder;
  const fs::path path = folder / "a.part";
  std::mt19937_64 random(11);
  for (const fs::path& trace : {of_depths(folder / "d.safetensors"), full(folder / "f"), scalar(folder / "s")}) {
    AnalysisQuestion question = with_cost();
    question.gamma = {1, 2};
    part_of({{trace.string()}}, {0, 1}, question, path);
    const traces::PartFile whole = traces::read_part_file(path);
    std::size_t refused = 0;
    for (int i = 0; i < 100; ++i) {
      traces::PartFile changed = whole;
      // Half of them among the question and the first tables, where a byte decides most.
      const std::size_t at =
          random() % (i % 2 == 0 ? std::min<std::size_t>(600, whole.state.size()) : whole.state.size());
      changed.state[at] = static_cast<char>(random());
      refused += outcome_of(path, changed).empty() ? 0 : 1;
    }
    CHECK(refused > 0);
    CHECK_FALSE(outcome_of(path, {whole.header, whole.state + "x"}).empty());
    CHECK_FALSE(outcome_of(path, {whole.header, ""}).empty());
  }
}
