#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::tests;
using nlohmann::ordered_json;

namespace {

ordered_json json_of(const std::string& arguments, int exit_code = 0) {
  return document_of_run("trace " + arguments, exit_code);
}

void check_refused(const std::string& arguments, const std::string& message) {
  check_run_refused("trace " + arguments, message);
}

std::string two_tasks(const ScratchFolder& folder, const std::string& name = "trace.safetensors") {
  return scalar_trace(folder / name, {0.9, 0.8, 0.7, 0.6, 0.5}, {0, 0, 1, 1, 2},
                      {{"tasks", R"(["easy","hard"])"}, {"temperature", "1"}}, {}, {0, 0, 1, 1, 0})
      .string();
}

}  // namespace

TEST_CASE("trace info says what a recording holds and what it says of itself") {
  const ScratchFolder folder;
  const ordered_json info = json_of("info " + two_tasks(folder));
  CHECK(info["schema"] == "specdec.trace.info/2");
  CHECK(info["format"] == "specdec-trace");
  CHECK(info["positions"] == 5);
  CHECK(info["sequences"] == 3);
  CHECK(info["shortest_sequence"] == 1);
  CHECK(info["longest_sequence"] == 2);
  CHECK(info["metadata"]["temperature"] == 1.0);
  CHECK(info["metadata"]["top_k"].is_null());
  CHECK(info["tiers"][0]["tier"] == "scalar");
  CHECK(info["tasks"] == ordered_json::parse(R"([{"task":"easy","positions":3},{"task":"hard","positions":2}])"));
  CHECK(info["columns"].size() >= 4);
  const std::string text = run_specdec("trace info --explain " + two_tasks(folder)).out;
  CHECK(text.starts_with("specdec-trace: 5 positions in 3 sequences of 1 to 2, in 1 file of "));
  CHECK(text.find("\ntemperature ") != std::string::npos);
  const std::string without_tasks = (folder / "plain.safetensors").string();
  REQUIRE(run_specdec("trace generate --sequences 1 --tokens 3 --quiet --output " + without_tasks).exit_code == 0);
  CHECK(run_specdec("trace info --format csv --table tasks " + without_tasks).out == "task,positions\n");
}

TEST_CASE("trace check passes a good recording and lists what is wrong with a bad one") {
  const ScratchFolder folder;
  const ordered_json good = json_of("check " + two_tasks(folder));
  CHECK(good["passed"] == true);
  CHECK(good["count"] == 0);

  const std::string bad = write_tensors(folder / "bad.safetensors", {floats("p.token_logprob", {3}, {-1, 0.5, -1}),
                                                                     floats("q.token_logprob", {3}, {-1, -1, 2})})
                              .string();
  const ordered_json findings = json_of("check " + bad, 1);
  CHECK(findings["passed"] == false);
  CHECK(findings["count"] == 2);
  REQUIRE(findings["findings"].size() == 2);
  CHECK(findings["findings"][0]["file"] == bad);
  CHECK(findings["findings"][0]["byte"].is_number_integer());
  CHECK(findings["findings"][0]["field"].get<std::string>().find("p.token_logprob") != std::string::npos);
  CHECK(run_specdec("trace check " + bad).out.starts_with("2 things are wrong.\n" + bad));
}

TEST_CASE("a converted recording holds less and says the same of acceptance") {
  const ScratchFolder folder;
  const RecordedPair pair = recorded_pair(40, 200, 50, 11);
  const std::string full = full_trace(folder / "full.safetensors", pair).string();
  const auto alpha = [](const std::string& trace) {
    const Run run = run_specdec("analyze --format json " + trace);
    REQUIRE(run.exit_code == 0);
    return ordered_json::parse(run.out)["alpha"]["value"].get<double>();
  };
  const double expected = alpha(full);
  for (const std::string tier : {"same", "full", "topk", "scalar"}) {
    const std::string converted = (folder / ("as_" + tier + ".safetensors")).string();
    const ordered_json report = json_of("convert --tier " + tier + " --output " + converted + ' ' + full);
    CHECK(report["positions"] == 200);
    CHECK(report["sequences"] == 4);
    CHECK(report["tiers"][0] == (tier == "same" ? "full" : tier));
    CHECK(report["size_bytes"].get<std::uintmax_t>() == std::filesystem::file_size(converted));
    CHECK(alpha(converted) == Approx(expected).epsilon(1e-6));
    CHECK(json_of("check " + converted)["passed"] == true);
  }
}

TEST_CASE("a conversion into a folder cuts shards of the size asked for") {
  const ScratchFolder folder;
  const std::string full = full_trace(folder / "full.safetensors", recorded_pair(40, 200, 50, 11)).string();
  json_of("convert --shard-positions 60 --output " + (folder / "shards").string() + ' ' + full);
  const auto shards = std::filesystem::directory_iterator(folder / "shards");
  CHECK(std::distance(begin(shards), end(shards)) == 4);
  CHECK(json_of("info " + (folder / "shards").string())["positions"] == 200);
}

TEST_CASE("a conversion cannot add what was not recorded") {
  const ScratchFolder folder;
  const Run run = run_specdec("trace convert --tier full --output " + (folder / "out.safetensors").string() + ' ' +
                              two_tasks(folder));
  CHECK(run.exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(folder / "out.safetensors"));
}

TEST_CASE("a slice keeps the tasks, sequences and positions that are asked for") {
  const ScratchFolder folder;
  const std::string trace = two_tasks(folder);
  const auto sliced = [&](const std::string& options) {
    const std::string out = (folder / "slice.safetensors").string();
    std::filesystem::remove(out);
    json_of("slice " + options + " --output " + out + ' ' + trace);
    return json_of("info " + out);
  };
  CHECK(sliced("--tasks easy")["positions"] == 3);
  CHECK(sliced("--tasks easy")["sequences"] == 2);
  CHECK(sliced("--sequences 1:2")["positions"] == 2);
  CHECK(sliced("--positions 1:4")["positions"] == 3);
  CHECK(sliced("--positions :4 --tasks hard")["positions"] == 2);
  CHECK(sliced("--sequences 2:")["tasks"][0]["task"] == "easy");
}

TEST_CASE("merged recordings are one behind the other, their sequences numbered on") {
  const ScratchFolder folder;
  const std::string first = two_tasks(folder, "first.safetensors");
  const std::string second = two_tasks(folder, "second.safetensors");
  const std::string out = (folder / "merged.safetensors").string();
  const ordered_json report = json_of("merge --output " + out + ' ' + first + ' ' + second);
  CHECK(report["positions"] == 10);
  CHECK(report["sequences"] == 6);
  CHECK(report["inputs"]["files"].size() == 2);
  const ordered_json info = json_of("info " + out);
  CHECK(info["sequences"] == 6);
  CHECK(info["tasks"] == ordered_json::parse(R"([{"task":"easy","positions":6},{"task":"hard","positions":4}])"));
}

TEST_CASE("recordings that contradict each other are not merged") {
  const ScratchFolder folder;
  const std::string first = two_tasks(folder);
  const std::string second = scalar_trace(folder / "other.safetensors", {0.5}, {0}, {{"temperature", "0.5"}}).string();
  check_refused("merge --output " + (folder / "out.safetensors").string() + ' ' + first + ' ' + second,
                second + ": the metadata's temperature is 0.5, but must be 1 as in the recordings before it");
  CHECK_FALSE(std::filesystem::exists(folder / "out.safetensors"));
}

TEST_CASE("wrong arguments of the trace commands are refused, and nothing is written") {
  const ScratchFolder folder;
  const std::string trace = two_tasks(folder);
  const std::string out = (folder / "out.safetensors").string();
  check_refused("info", "TRACE is missing: a recording, or --target and --draft");
  check_refused("convert " + trace, "--output is missing: where the trace is written");
  check_refused("merge --output " + out, "TRACE is missing; see specdec trace merge --help");
  check_refused("slice --sequences 3 --output " + out + ' ' + trace,
                "--sequences is 3, but must be FIRST:END, the END not included; either may be left out");
  check_refused("slice --positions 5:5 --output " + out + ' ' + trace,
                "--positions is 5:5, but must be FIRST:END with FIRST below END, which is not included");
  check_refused("slice --positions 5: --output " + out + ' ' + trace,
                "no position is left to write: none of positions 0:5, in sequences 0:3, is in the part that is asked "
                "for");
  check_refused("slice --tasks poems --output " + out + ' ' + trace, "--tasks is poems, but must be one of easy, hard");
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(folder.files() == 1);
  const std::string missing = (folder / "none").string();
  const std::string unreadable =
      missing + ": no such file";
  check_refused("info " + missing, unreadable);
  check_refused("check " + missing, unreadable);
  check_refused("merge --output " + out + ' ' + trace + ' ' + missing, unreadable);
}

TEST_CASE("broken rows are not written on, in whatever tier") {
  const ScratchFolder folder;
  const std::string sound = full_trace(folder / "sound.safetensors", recorded_pair(4, 8, 2, 11)).string();
  const std::string out = (folder / "out.safetensors").string();
  for (const float value : {std::nanf(""), -0.1F, HUGE_VALF, 1.5F}) {
    RecordedPair pair = recorded_pair(4, 8, 2, 11);
    pair.target[3 * 4 + 2] = value;
    const std::string broken = full_trace(folder / "broken.safetensors", pair).string();
    for (const std::string& command : std::vector<std::string>{"convert ", "convert --tier scalar ",
                                                               "slice --positions 2:5 ", "merge " + sound + " "}) {
      const Run run = run_specdec("trace " + command + broken + " --output " + out);
      INFO(command << run.err);
      CHECK(run.exit_code == 2);
      CHECK(run.err.find(broken) != std::string::npos);
      CHECK(run.err.find("p.probs row 3") != std::string::npos);
      CHECK(folder.files() == 2);
    }
  }
}

TEST_CASE("a slice that can hold nothing is refused by its option") {
  const ScratchFolder folder;
  const std::string trace = scalar_trace(folder / "trace.safetensors", {0.9, 0.8}, {0, 1}, {}, {}, {0, 3}).string();
  const std::string slice = "slice --output " + (folder / "out.safetensors").string() + ' ' + trace;
  for (const std::string range : {"2:1", "2:2", ":0"}) {
    check_refused(slice + " --sequences " + range,
                  "--sequences is " + range + ", but must be FIRST:END with FIRST below END, which is not included");
  }
  check_refused(slice + " --positions 1:x", "--positions is x, but must be an integer in [0, 2^63)");
  check_refused(slice + " --tasks poems",
                "--tasks is poems, but must be the number of a task in the recording, whose tasks have no names");
  CHECK(json_of(slice + " --tasks 3")["positions"] == 1);
}

TEST_CASE("lists that lack the emitted token are named with their file where scalars are asked for") {
  const ScratchFolder folder;
  const std::vector<std::int32_t> ids = {0, 1, 0, 2};
  const std::vector<float> logprobs = {-0.5F, -2, -0.5F, -2}, tail = {std::nanf(""), std::nanf("")};
  const std::string trace =
      write_tensors(folder / "top.safetensors",
                    {ints("p.topk_ids", {2, 2}, ids), floats("p.topk_logprobs", {2, 2}, logprobs),
                     floats("p.tail_logprob", {2}, tail), ints("q.topk_ids", {2, 2}, ids),
                     floats("q.topk_logprobs", {2, 2}, logprobs), floats("q.tail_logprob", {2}, tail),
                     ints("token", {2}, {0, 7}), longs("seq", {2}, {0, 0})})
          .string();
  const Run run =
      run_specdec("trace convert --tier scalar --output " + (folder / "out.safetensors").string() + ' ' + trace);
  CHECK(run.exit_code == 2);
  CHECK(run.err.starts_with("specdec: error: " + trace + ": byte "));
  CHECK(run.err.find(": p.topk_logprobs row 1 is without the emitted token 7, but must be ") != std::string::npos);
  CHECK(folder.files() == 1);
}

TEST_CASE("raw rows of text that was sampled otherwise are not cut down") {
  const ScratchFolder folder;
  const std::string raw =
      full_trace(folder / "raw.safetensors", recorded_pair(4, 8, 2, 11), {{"temperature", "0.7"}}).string();
  const std::string out = (folder / "out.safetensors").string();
  CHECK(run_specdec("trace convert --tier scalar --output " + out + ' ' + raw).exit_code == 2);
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(json_of("convert --output " + out + ' ' + raw)["positions"] == 8);
}

TEST_CASE("a trace is neither read twice nor written over itself") {
  const ScratchFolder folder;
  const std::string trace = two_tasks(folder);
  const std::string out = (folder / "out.safetensors").string();
  for (const std::string command : {"convert", "slice --positions 0:1", "merge"}) {
    check_refused(command + " --output " + trace + ' ' + trace,
                  "--output is " + trace + ", but must not be an input: what it holds would be lost");
    check_refused(command + " --output " + out + ' ' + trace + ' ' + trace,
                  "TRACE is " + trace + " twice, but must be given once");
  }
  CHECK(folder.files() == 1);
  for (const std::string command : {"info ", "check "}) {
    check_refused(command + trace + ' ' + trace, "TRACE is " + trace + " twice, but must be given once");
  }
  check_run_refused("analyze " + trace + ' ' + trace, "TRACE is " + trace + " twice, but must be given once");
}

TEST_CASE("a copy of a recording under another name is named, since its texts count twice") {
  const ScratchFolder folder;
  const std::string trace = two_tasks(folder);
  const std::string copy = (folder / "copy.safetensors").string();
  std::filesystem::copy_file(trace, copy);
  const std::string merge = "trace merge --output " + (folder / "m.safetensors").string() + ' ';
  for (const std::string& command : {std::string("trace info "), std::string("analyze "), merge}) {
    CAPTURE(command);
    const ordered_json json = document_of_run(command + trace + ' ' + copy);
    REQUIRE(warns(json, "same_content"));
    for (const ordered_json& warning : json["warnings"]) {
      if (warning["code"] != "same_content") continue;
      CHECK(warning["message"].get<std::string>().starts_with(copy + " holds the same bytes as " + trace));
    }
  }
  const std::string other = scalar_trace(folder / "other.safetensors", {0.9, 0.8, 0.7, 0.6, 0.4}, {0, 0, 1, 1, 2},
                                         {{"tasks", R"(["easy","hard"])"}, {"temperature", "1"}}, {}, {0, 0, 1, 1, 0})
                                .string();
  CHECK_FALSE(warns(json_of("info " + trace + ' ' + other), "same_content"));
}

TEST_CASE("a recording that is cut off is checked as that alone, and nothing is said to be left out") {
  const ScratchFolder folder;
  const std::string trace = two_tasks(folder);
  std::filesystem::resize_file(trace, std::filesystem::file_size(trace) - 20);
  const ordered_json json = json_of("check " + trace, 1);
  REQUIRE(json["findings"].size() == 1);
  CHECK(json["findings"][0]["field"] == "file size");
  CHECK(json["findings"][0]["expected"].get<std::string>().ends_with("the file is cut off"));
  CHECK(json["warnings"].empty());
}

// Rows and text are drawn once with a fixed seed.
TEST_CASE("trace check warns of rows that belong to the token beside theirs, in the words of analyze") {
  const ScratchFolder folder;
  const auto warning = [](const ordered_json& document) {
    for (const ordered_json& one : document["warnings"]) {
      if (one["code"] == "text_not_from_target") return one["message"].get<std::string>();
    }
    return std::string();
  };
  const RecordedPair own = recorded_pair(40, 2000, 2000, 7);
  RecordedPair shifted = own;
  std::rotate(shifted.token.begin(), shifted.token.end() - 1, shifted.token.end());
  const std::string sound = full_trace(folder / "sound.safetensors", own).string();
  const std::string wrong = full_trace(folder / "wrong.safetensors", shifted).string();
  CHECK(warning(json_of("check " + sound)).empty());
  const ordered_json check = json_of("check " + wrong);
  CHECK(check["passed"] == true);
  CHECK(warning(check).find("logits[:-1] belong to token[1:]") != std::string::npos);
  CHECK(warning(check) == warning(document_of_run("analyze " + wrong)));
  // Text from elsewhere is held to nothing.
  CHECK(warning(json_of("check " + full_trace(folder / "other.safetensors", shifted, {{"path", "other"}}).string()))
            .empty());
}

TEST_CASE("trace check finds what analyze refuses of a text, whatever the recording holds of each position") {
  const std::string record = specdec::tests::source_dir() + "/traces/samples/json/record.jsonl";
  const ordered_json check = json_of("check " + record, 1);
  CHECK(check["passed"] == false);
  REQUIRE(check["findings"].size() == 1);
  CHECK(check["findings"][0]["line"] == 2);
  CHECK(check["findings"][0]["found"] == "giving the emitted token 5 probability 0");
  const Run analyze = run_specdec("analyze " + record);
  CHECK(analyze.exit_code == 2);
  CHECK(analyze.err.find("giving the emitted token 5 probability 0") != std::string::npos);
}

TEST_CASE("a file of one model is told how the other one is given") {
  const std::string target = specdec::tests::source_dir() + "/traces/samples/llamacpp/target.kld";
  const std::string message = target +
                              ": file is llama.cpp logits of one model, but must be given as a pair, --target "
                              "FILE and --draft FILE, which analyze and trace convert take";
  check_refused("check " + target, message);
  check_run_refused("analyze " + target, message);
  check_run_refused("plan --c 0.1 --trace " + target, message);
}

TEST_CASE("a slice without a part is refused") {
  const ScratchFolder folder;
  check_refused("slice " + two_tasks(folder) + " --output " + (folder / "part").string(),
                "one of --tasks, --sequences, --positions is needed; trace convert writes a whole recording");
}
