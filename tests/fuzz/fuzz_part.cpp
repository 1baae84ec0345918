#include <array>
#include <cstring>
#include <span>
#include <string>

#include "planner/question_error.hpp"
#include "planner/recordings/recording_parts.hpp"
#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/formats/part_file.hpp"
#include "traces/memory_recording.hpp"

namespace {

using namespace specdec;

constexpr const char* header =
    R"({"command": "analyze", "version": "1", "made_with": "", "shard": {"number": 1, "of": 1}, "options": {}, "other_options": {},)"
    R"( "recording": {"metadata": {}, "files": []}})";

/// Header, line feed and state of the part of four whole rows in two texts.
std::string whole_part() {
  static constexpr std::array p = {0.5F, 0.5F, 0.75F, 0.25F, 0.25F, 0.75F, 0.5F, 0.5F};
  static constexpr std::array q = {0.25F, 0.75F, 0.5F, 0.5F, 0.5F, 0.5F, 0.9F, 0.1F};
  traces::MemoryPositions positions;
  positions.size = 4;
  positions.vocab = 2;
  positions.target = std::as_bytes(std::span(p)).data();
  positions.draft = std::as_bytes(std::span(q)).data();
  positions.tokens = {0, 1, 1, 0};
  positions.sequences = {0, 0, 1, 1};
  traces::MemoryRecording recording;
  recording.append(std::move(positions));
  planner::AnalysisQuestion question;
  question.cost.c = 0.1;
  question.gamma = {1, 2};
  return std::string(header) + '\n' + planner::RecordingSummary::of(*recording.open(), question).state();
}

}  // namespace

// The bytes are changes of that part, each of four bytes that say where and one that says what, put into a file with
// the right lengths and digest, which no mutation of a file's own bytes would have.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string whole = whole_part();
  std::string changed = whole;
  for (std::size_t at = 0; at + 5 <= size; at += 5) {
    std::uint32_t place = 0;
    std::memcpy(&place, data + at, sizeof place);
    changed[place % changed.size()] = static_cast<char>(data[at + 4]);
  }
  const std::size_t end = std::min(changed.find('\n'), changed.size() - 1);
  const std::string part = traces::part_file_bytes({changed.substr(0, end), changed.substr(end + 1)});
  const fuzz::FuzzedFile file(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  return fuzz::expect_file_errors_only([&] {
    try {
      planner::merge_parts(planner::read_parts({file.path().string()}, "1", true));
    } catch (const planner::QuestionError&) {
    }
  });
}
