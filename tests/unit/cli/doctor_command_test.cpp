#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::content_of;
using specdec::tests::document_of_run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;
using specdec::tests::source_dir;

/// Faults put into files that real servers, and the shipped pair's recorder, wrote.
namespace {

const std::string engine_files = source_dir() + "/traces/samples/";
const std::string before_synthetic = engine_files + "serving/llamacpp_synthetic_before.prom";
const std::string after_synthetic = engine_files + "serving/llamacpp_synthetic_after.prom";
const std::string shipped_recording = source_dir() + "/sim/models/recording.safetensors";

/// The codes of what is found, notes included.
std::vector<std::string> found_in(const std::string& files) {
  const auto run = run_specdec("doctor " + files + " --format json");
  INFO(run.err);
  REQUIRE(run.exit_code <= 1);
  std::vector<std::string> codes;
  const ordered_json document = ordered_json::parse(run.out);
  for (const ordered_json& finding : document["findings"]) codes.push_back(finding["code"]);
  return codes;
}

bool is_found(const std::string& code, const std::string& files) {
  const std::vector<std::string> codes = found_in(files);
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::string put(const ScratchFolder& folder, const std::string& name, const std::string& content) {
  std::ofstream(folder / name, std::ios::binary) << content;
  return (folder / name).string();
}

/// llama-server's counters with other accepted drafts by position, whose sum is the total.
std::string with_accepted(const ScratchFolder& folder, const std::vector<long>& by_position) {
  std::string text = content_of(after_synthetic);
  long sum = 0;
  for (std::size_t position = 0; position < by_position.size(); ++position) {
    sum += by_position[position];
    const std::regex line("(per_pos_total\\{position=\"" + std::to_string(position) + "\"\\}) [0-9]+");
    text = std::regex_replace(text, line, "$1 " + std::to_string(by_position[position]));
  }
  text = std::regex_replace(text, std::regex("\n(llamacpp:spec_decode_num_accepted_tokens_total) [0-9]+"),
                            "\n$1 " + std::to_string(sum));
  return put(folder, "after.prom", text);
}

/// The shipped recording with its sum of min(p, q) changed.
std::string with_overlap(const ScratchFolder& folder, float (*changed)(float)) {
  std::string bytes = content_of(shipped_recording);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const ordered_json tensors = ordered_json::parse(bytes.substr(8, header));
  const auto ends = tensors["overlap"]["data_offsets"].get<std::vector<std::size_t>>();
  for (std::size_t at = 8 + header + ends[0]; at < 8 + header + ends[1]; at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    value = changed(value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  return put(folder, "overlap.safetensors", bytes);
}

}  // namespace

TEST_CASE("counters of real servers raise no alarm, alone or beside a recording by the same rule") {
  CHECK(found_in(before_synthetic + " " + after_synthetic).empty());
  CHECK(found_in(engine_files + "llamacpp/server-before.prom " + engine_files + "llamacpp/server-after.prom").empty());
  CHECK(found_in(engine_files + "serving/sglang_before.prom " + engine_files + "serving/sglang_after.prom").empty());
  CHECK(found_in(engine_files + "serving/vllm_k4_before.prom " + engine_files + "serving/vllm_k4_after.prom").empty());
  CHECK(found_in(shipped_recording).empty());
}

TEST_CASE("faults of acceptance by position are found in what a llama.cpp server counted") {
  const ScratchFolder folder;
  const auto found_with = [&](const std::vector<long>& accepted) {
    return found_in(before_synthetic + " " + with_accepted(folder, accepted));
  };
  CHECK(found_with({4663, 3382, 2538, 1935}).empty());
  using Codes = std::vector<std::string>;
  CHECK(found_with({0, 0, 0, 0}) == Codes{"draft_never_accepted"});
  CHECK(found_with({90, 20, 5, 1}) == Codes{"draft_hardly_accepted"});
  const auto rare_of = [&](const std::string& kind) {
    return found_in(before_synthetic + " " + with_accepted(folder, {1400, 600, 300, 150}) + kind);
  };
  CHECK(rare_of("").empty());
  CHECK(rare_of(" --draft-kind eagle") == Codes{"draft_hardly_accepted"});
  CHECK(found_with({3400, 3382, 2538, 1935}) == Codes{"first_position_below_second"});
  CHECK(found_with({4663, 3382, 300, 200}) == Codes{"drop_behind_position"});
}

TEST_CASE("greedy drafting beside a recording of rejection sampling is found in what a llama.cpp server counted") {
  const std::string counted =
      " " + engine_files + "llamacpp/server-before.prom " + engine_files + "llamacpp/server-after.prom";
  const ordered_json document = document_of_run("doctor " + shipped_recording + counted);
  REQUIRE(document["findings"].size() == 1);
  CHECK(document["findings"][0]["code"] == "rule_mistaken");
  CHECK(document["findings"][0]["remedy"] == "read the recording by the rule of the server: --acceptance greedy-draft");
}

TEST_CASE("a gauge without counts is told apart from counts") {
  const ScratchFolder folder;
  std::string gauges;
  std::istringstream lines(content_of(engine_files + "serving/sglang_after.prom"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("spec_accept") != std::string::npos) gauges += line + '\n';
  }
  const ordered_json document = document_of_run("doctor " + put(folder, "gauge.prom", gauges));
  REQUIRE(document["findings"].size() == 1);
  CHECK(document["findings"][0]["code"] == "mean_without_counts");
  CHECK(document["findings"][0]["severity"] == "note");
  CHECK(document["passed"] == true);
}

TEST_CASE("another temperature than the one written down, and a draft of other settings, are found in recordings") {
  const ScratchFolder folder;
  const std::string recording = (folder / "rows.safetensors").string();
  REQUIRE(run_specdec("record --sequences 16 --max-new-tokens 48 --tier full --output " + recording).exit_code == 0);
  CHECK(found_in(recording).empty());
  const std::string bytes = content_of(recording);
  const std::string hotter = std::regex_replace(bytes, std::regex("\"temperature\":\"1\""), "\"temperature\":\"2\"");
  REQUIRE(hotter != bytes);
  CHECK(is_found("text_not_from_target", put(folder, "hotter.safetensors", hotter)));
  // The draft's numbers at the emitted tokens, and over the vocabulary, as of different templates.
  CHECK(is_found("alphas_disagree", with_overlap(folder, [](float overlap) { return std::sqrt(overlap); })));
  CHECK_FALSE(is_found("alphas_disagree", with_overlap(folder, [](float overlap) { return overlap; })));
}

TEST_CASE("tables of timed passes are read as such, and no unknown format") {
  for (const char* const name : {"llama-bench.md", "batched-bench.md", "batched-bench.jsonl"}) {
    INFO(name);
    const ordered_json checked = document_of_run("doctor " + engine_files + "llamacpp/" + name);
    CHECK(checked["files"][0]["kind"] == "times");
    CHECK(checked["findings"].empty());
  }
}

TEST_CASE("drafts that make every run slower are found, and those that pay at some length are not") {
  const ScratchFolder folder;
  const auto runs = [&](double at_two) {
    return put(folder, "runs.csv",
               "concurrency,gamma,output_tokens_per_second,tokens_per_step\n1,0,100,\n1,4,80,2.1\n1,2," +
                   std::to_string(at_two) + ",1.8\n");
  };
  const ordered_json found = document_of_run("doctor " + runs(92))["findings"];
  REQUIRE(found.size() == 1);
  CHECK(found[0]["code"] == "drafting_loses");
  CHECK_THAT(found[0]["message"].get<std::string>(),
             Catch::Matchers::Contains("makes 1.8 tokens in the time of 1.96 plain steps"));
  CHECK(document_of_run("doctor " + runs(105))["findings"].empty());
}

TEST_CASE("logs with and without drafts at one load are held against each other") {
  const ScratchFolder folder;
  const auto log = [&](const std::string& name, double plain_tokens_per_second) {
    return put(folder, name,
               "INFO 04-09 11:17:53 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
               "throughput: " + std::to_string(plain_tokens_per_second) +
                   " tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.2%, Prefix cache hit rate: 0.0%\n");
  };
  const std::string speculative = put(
      folder, "drafts.log",
      content_of(log("drafts.part", 128)) +
          "INFO 04-09 11:17:53 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 1.97, Accepted throughput: "
          "63.00 tokens/s, Drafted throughput: 65.20 tokens/s, Accepted: 630 tokens, Drafted: 652 tokens, Per-position "
          "acceptance rate: 0.966, Avg Draft acceptance rate: 96.6%\n");
  const std::string idle = ' ' + log("idle.log", 0);
  CHECK(is_found("round_above_its_yield", speculative + ' ' + log("plain.log", 342) + idle));
  const ordered_json found = document_of_run("doctor " + speculative + ' ' + log("plain.log", 342));
  CHECK(found["findings"][0]["evidence"][0]["file"] == speculative);
  CHECK(found["findings"][0]["evidence"][0]["line"] == 2);
  CHECK_FALSE(is_found("round_above_its_yield", speculative + ' ' + log("plain.log", 90)));
}
