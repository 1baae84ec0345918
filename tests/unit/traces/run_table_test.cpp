#include "traces/serving/counts_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/known_rounds.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using Catch::Matchers::StartsWith;
using traces::ServingCounts;

namespace {

namespace fs = std::filesystem;

const traces::CountsFormat format = traces::run_table_format();

std::string refusal(const std::string& content) { return tests::refusal_of_counts(format, content, "runs.csv"); }

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// All that is known of a run, in a line.
std::string line_of(const ServingCounts& run) {
  std::string line = fmt::format("{}: {}", run.line, run.engine);
  const auto add = [&](const char* name, const auto& value) {
    if (value) line += fmt::format(" {}={:.6g}", name, static_cast<double>(*value));
  };
  for (const traces::CountLabel& label : run.labels) line += fmt::format(" {}={}", label.name, label.value);
  add("gamma", run.gamma);
  add("topk", run.top_k);
  add("verified", run.verified_per_round);
  add("length", run.tokens_per_round);
  add("rounds", run.rounds);
  add("drafted", run.drafted);
  add("accepted", run.accepted);
  if (!run.accepted_at.empty()) line += fmt::format(" at={:g}", fmt::join(run.accepted_at, ","));
  if (run.rounds) line += run.from_rates ? " rounded" : " exact";
  if (!run.bench) return line;
  add("concurrency", run.bench->max_concurrency);
  add("batch", run.bench->batch);
  add("tok/s", run.bench->output_throughput);
  add("ms", run.bench->mean_tpot_ms);
  add("itl", run.bench->mean_itl_ms);
  add("requests", run.bench->completed);
  add("seconds", run.bench->duration_s);
  add("input", run.bench->input_tokens_per_request);
  add("output", run.bench->output_tokens_per_request);
  add("all_input", run.bench->total_input_tokens);
  add("all_output", run.bench->total_output_tokens);
  return line;
}

/// What reading a file as servers' counts gives, or the refusal.
std::string answer_to(const fs::path& path) {
  try {
    const tests::AllCounts counts({path});
    std::string answer;
    for (const ServingCounts& run : counts.units) answer += line_of(run) + "\n";
    for (const Note& note : counts.warnings) answer += note.code + "\n";
    return tests::without_folder(answer, path.parent_path());
  } catch (const traces::FileError& error) {
    return tests::without_folder(error.what(), path.parent_path()) + "\n";
  }
}

}  // namespace

TEST_CASE("tables of runs are read as people paste them, or refused by line and column") {
  const fs::path folder = tests::source_dir() + "/tests/fixtures/run_tables";
  std::size_t tables = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    INFO(entry.path().filename().string());
    CHECK(answer_to(entry.path()) == content_of(fs::path(entry.path()).replace_extension(".expected")));
    ++tables;
  }
  CHECK(tables >= 20);
}

TEST_CASE("a table of runs is told from other tables by the columns that it must have") {
  CHECK(tests::recognises(format, "concurrency,gamma,ms_per_token\n"));
  CHECK(tests::recognises(format, "concurrency\tms_per_token\n"));
  CHECK(tests::recognises(format, "\n\ngamma;output_throughput\n"));
  CHECK_FALSE(tests::recognises(format, "batch,tokens,context,seconds\n1,1,0,0.01\n"));
  CHECK_FALSE(tests::recognises(format, "concurrency\n"));
  CHECK_FALSE(tests::recognises(format, "{\"gamma\": 3, \"concurrency\": 2}\n"));
  CHECK_FALSE(tests::recognises(format, "num_speculative_tokens: 3\nmax_batch_size: 8\n"));
  CHECK_FALSE(tests::recognises(format, "| model | size | test | t/s |\n| --- | --- | --- | --- |\n"));
  CHECK_FALSE(tests::recognises(format, ""));
}

TEST_CASE("what a table of runs lacks or contradicts is refused with line and column") {
  CHECK(refusal("concurrency,gamma,tokens_per_step\n") ==
        "runs.csv:1: column output_tokens_per_second or ms_per_token is missing, but must be in the header of a table "
        "of runs");
  CHECK_THAT(refusal("gamma,tokens_per_step,acceptance_rate,ms_per_token\n2,2.86,0.4284,10\n"),
             StartsWith("runs.csv:2: acceptance_rate is 0.4284, but must be accepted / drafted, which is 0.93 at least"));
  CHECK_THAT(refusal("concurrency,ms_per_token\n"), StartsWith("runs.csv:1: column gamma is missing"));
  CHECK_THAT(refusal("concurrency,max_concurrency,gamma,ms_per_token\n"),
             StartsWith("runs.csv:1: column max_concurrency is there twice, also as concurrency"));
  const std::string header = "concurrency,gamma,output_tokens_per_second,ms_per_token,tokens_per_step,rounds,batch\n";
  CHECK(refusal(header) == "runs.csv: the number of runs is 0, but must be 1 or more");
  CHECK_THAT(refusal(header + "1,0,100\n"), StartsWith("runs.csv:2: row is 3 fields long (1, 0, 100)"));
  CHECK(refusal(header + "0,0,100,,,,\n") == "runs.csv:2: concurrency is 0, but must be a number above 0");
  CHECK(refusal(header + "1,1.5,100,,,,\n") == "runs.csv:2: gamma is 1.5, but must be a whole number, 0 or above");
  CHECK_THAT(refusal(header + "1,,100,,,,\n"), StartsWith("runs.csv:2: gamma is missing"));
  CHECK_THAT(refusal(header + "1,9999999,100,,,,\n"), StartsWith("runs.csv:2: gamma is 9999999, but must be at most"));
  CHECK_THAT(refusal(header + ",0,100,,,,\n"), StartsWith("runs.csv:2: concurrency is missing"));
  CHECK_THAT(refusal(header + "1,0,,,,,\n"), StartsWith("runs.csv:2: output_tokens_per_second is missing"));
  CHECK(refusal(header + "1,0,fast,,,,\n") ==
        "runs.csv:2: output_tokens_per_second is fast, but must be a number");
  CHECK(refusal(header + "1,0,100,,2,,\n") ==
        "runs.csv:2: tokens_per_step is 2, but must be 1 or empty where gamma is 0");
  CHECK_THAT(refusal(header + "1,3,100,,0.5,,\n"), StartsWith("runs.csv:2: tokens_per_step is 0.5"));
  CHECK(refusal(header + "1,3,100,,,50,\n") ==
        "runs.csv:2: tokens_per_step is missing, but must be given, since rounds are");
  CHECK(refusal("concurrency,gamma,ms_per_token,topk,verified_tokens\n1,5,4,8,5\n") ==
        "runs.csv:2: verified_tokens is 5, but must be at least 6, gamma and the root");
  CHECK(refusal("concurrency,gamma,ms_per_token,topk,verified_tokens\n1,5,4,1,32\n") ==
        "runs.csv:2: verified_tokens is 32, but must be 6 or empty where topk is 1");
  const std::string counts =
      "num_drafts,num_draft_tokens,num_accepted_tokens,acceptance_at_pos_0,acceptance_at_pos_1\n";
  CHECK(refusal(counts + "40.0,80.0,60.0,0.875,0.625\n").empty());
  CHECK_THAT(refusal(counts + "40,80,60,0.875,0.8812\n"),
             StartsWith("runs.csv:2: acceptance_at_pos_1 is 0.8812, but must be a whole number of 40 rounds"));
  CHECK_THAT(refusal(counts + "40,80,60,0.625,0.875\n"),
             StartsWith("runs.csv:2: acceptance_at_pos_1 is 0.875, but must be at most the rate before it"));
  CHECK_THAT(refusal(counts + "40,80,60,0.875,0.5\n"), StartsWith("runs.csv:2: rates by position is 55 drafts in sum"));
}

TEST_CASE("a pasted summary is the run that the program's JSON says") {
  const fs::path folder = tests::source_dir() + "/tests/fixtures/run_tables";
  const tests::AllCounts pasted({folder / "vllm_bench_serve.txt"});
  const tests::AllCounts written = tests::counts_of(
      {"{\"max_concurrency\": 64, \"duration\": 214.95, \"completed\": 1319, \"total_input_tokens\": 1130000, "
       "\"total_output_tokens\": 461803, \"output_throughput\": 2148.42, \"mean_tpot_ms\": 27.6, \"mean_itl_ms\": 121, "
       "\"spec_decode_acceptance_rate\": 42.53, \"spec_decode_acceptance_length\": 4.4, \"spec_decode_num_drafts\": "
       "104880, \"spec_decode_draft_tokens\": 839040, \"spec_decode_accepted_tokens\": 356839, "
       "\"spec_decode_per_position_acceptance_rates\": [0.7568, 0.6011, 0.4976, 0.4113, 0.3538, 0.298, 0.2608, "
       "0.2229]}"});
  REQUIRE(pasted.units.size() == 1);
  REQUIRE(written.units.size() == 1);
  ServingCounts same = pasted.units[0];
  same.file = written.units[0].file;
  same.format = written.units[0].format;
  same.line = written.units[0].line;
  CHECK(same == written.units[0]);
}

TEST_CASE("text in UTF-16 is named as such") {
  const tests::TemporaryFolder folder;
  std::string wide = "\xff\xfe";
  for (const char c : std::string("concurrency,gamma,tok/s\n1,0,57\n")) wide += {c, '\0'};
  const fs::path file = folder.write("wide.csv", wide);
  CHECK_THAT(tests::message_of<traces::FileError>([&] { tests::AllCounts counts({file}); }),
             Catch::Matchers::Contains("content is UTF-16, but must be UTF-8"));
}
