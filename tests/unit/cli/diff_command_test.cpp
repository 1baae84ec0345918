#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::scalar_trace;
using specdec::tests::ScratchFolder;

namespace {

ordered_json difference_of(const std::string& arguments) {
  const Run run = run_specdec("diff " + arguments + " --format json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return ordered_json::parse(run.out);
}

/// A request of vLLM with gamma 2: rounds by accepted drafts.
std::string request(const std::string& id, const std::string& category, const std::vector<int>& histogram) {
  const int rounds = histogram[0] + histogram[1] + histogram[2];
  const ordered_json counts = {{"acceptance_histogram", histogram},
                               {"num_spec_steps", rounds},
                               {"num_accepted_draft_tokens", histogram[1] + 2 * histogram[2]},
                               {"num_draft_tokens", 2 * rounds},
                               {"num_spec_tokens", 2}};
  return ordered_json(
             {{"id", id}, {"model", "m"}, {"category", category}, {"metrics", {{"speculative_decoding", counts}}}})
             .dump() +
         '\n';
}

std::string written(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

}  // namespace

TEST_CASE("diff pairs requests of one id, and its parts add up to the difference of tokens per step") {
  const ScratchFolder folder;
  const std::string a = written(folder / "a.jsonl", request("1", "code", {2, 3, 5}) + request("2", "chat", {5, 3, 2}) +
                                                        request("3", "chat", {4, 4, 2}));
  const std::string b = written(folder / "b.jsonl", request("1", "code", {1, 3, 6}) + request("2", "code", {4, 3, 3}) +
                                                        request("3", "chat", {4, 3, 3}));
  const ordered_json answer = difference_of(a + " " + b);
  CHECK(answer["paired"] == 3);
  CHECK(answer["a"]["unit"] == "request");
  CHECK(answer["a"]["gamma"] == 2);
  // 13 + 7 + 8 and 15 + 9 + 9 accepted drafts of 30 rounds.
  CHECK(answer["a"]["tokens_per_step"].get<double>() == Approx(1 + 28.0 / 30));
  CHECK(answer["tokens_per_step"]["value"].get<double>() == Approx(5.0 / 30));
  // Differences 0.2, 0.2, 0.1: standard error 1/30, t(2) = 4.302653.
  CHECK(answer["tokens_per_step"]["ci95"][0].get<double>() == Approx(5.0 / 30 - 4.302653 / 30).epsilon(1e-5));
  double positions = 0, parts = 0;
  for (const ordered_json& row : answer["positions"]) positions += row["difference"]["value"].get<double>();
  for (const ordered_json& row : answer["parts"]) parts += row["difference"]["value"].get<double>();
  CHECK(positions == Approx(5.0 / 30));
  CHECK(parts == Approx(5.0 / 30));
  CHECK(answer["groups"].size() == 2);
  CHECK(difference_of(a + " " + b + " --unpaired")["paired"] == 0);
  const std::string text = run_specdec("diff --explain " + a + " " + b).out;
  CHECK(text.find(", 3 pairs") != std::string::npos);
  CHECK(text.find("By prompt mix") != std::string::npos);
}

TEST_CASE("diff replays recordings as analyze does, and compares a recording with counts") {
  const ScratchFolder folder;
  const std::vector<std::int64_t> texts = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  const std::string a =
      scalar_trace(folder / "a.safetensors", {0.9, 0.3, 0.5, 0.8, 0.9, 0.7, 0.6, 0.9, 0.2, 0.4}, texts).string();
  const std::string b =
      scalar_trace(folder / "b.safetensors", {0.9, 0.9, 0.9, 0.8, 0.9, 0.9, 0.6, 0.9, 0.9, 0.9}, texts).string();
  const ordered_json answer = difference_of(a + " " + b + " --gamma 3");
  for (const auto& [name, file] : {std::pair("a", a), std::pair("b", b)}) {
    const Run analysed = run_specdec("analyze " + file + " --format json");
    REQUIRE(analysed.exit_code == 0);
    const ordered_json gammas = ordered_json::parse(analysed.out)["gammas"];
    CHECK(answer[name]["tokens_per_step"].get<double>() ==
          Approx(gammas[2]["tokens_per_step"]["replay"]["value"].get<double>()).epsilon(1e-12));
    CHECK(answer[name]["kind"] == "recording");
  }
  const std::string counts = written(folder / "c.jsonl", request("1", "x", {2, 3, 5}) + request("2", "x", {5, 3, 2}));
  const ordered_json mixed = difference_of(a + " " + counts + " --gamma 2");
  CHECK(mixed["b"]["kind"] == "counts");
  CHECK(mixed["a"]["clusters"] == 2);
}

TEST_CASE("diff compares counts by step where both tell the steps without drafts, and else decides nothing") {
  const ScratchFolder folder;
  // Rounds of 3 drafts of which 1 or 2 are accepted, and of 3 of which all are; out of steps as the completions say.
  const auto requests_of = [&](const std::string& name, std::int64_t rounds, std::int64_t accepted,
                               std::int64_t tokens) {
    std::string lines;
    for (int i = 0; i < 8; ++i) {
      const std::int64_t more = accepted + i % 2;
      const std::string usage =
          tokens == 0 ? "" : fmt::format(R"("usage":{{"completion_tokens":{},"prompt_tokens":100}},)", tokens + more);
      lines += fmt::format(
          R"({{"id":"v{}","model":"m",{}"metrics":{{)"
          R"("speculative_decoding":{{"num_spec_steps":{},"num_accepted_draft_tokens":{},"num_draft_tokens":{},)"
          R"("num_spec_tokens":3}}}}}})"
          "\n",
          i, usage, rounds, more, 3 * rounds);
    }
    return written(folder / name, lines);
  };
  const std::string always = requests_of("always.jsonl", 40, 50, 41), seldom = requests_of("seldom.jsonl", 10, 20, 61);
  const ordered_json answer = difference_of(always + " " + seldom);
  // 40 steps accept 50.5 of 3 drafts each; 10 of 60 steps draft, and accept 20.5.
  CHECK(answer["tokens_per_step"]["value"].get<double>() == Approx(20.5 / 60 - 50.5 / 40).epsilon(1e-9));
  CHECK(answer["undecided"].is_null());
  CHECK(answer.dump().find("A drafted in 100% of its steps, B in 17%") != std::string::npos);
  CHECK(difference_of(always + " " + requests_of("more.jsonl", 40, 70, 41))["undecided"].is_null());
  const std::string untold = requests_of("untold.jsonl", 10, 20, 0);
  const ordered_json unknown = difference_of(seldom + " " + untold);
  CHECK(unknown["undecided"].get<std::string>().find("A drafted in 17% of its steps, B in an unknown share") !=
        std::string::npos);
  CHECK(run_specdec("diff " + seldom + " " + untold).out.find("This decides nothing: ") != std::string::npos);

  // Totals of a server that tells no steps, with drafts shorter than gamma.
  const auto scrape = [&](const char* name, int drafted) {
    return written(folder / name,
                   fmt::format("vllm:spec_decode_num_drafts_total 1000\n"
                               "vllm:spec_decode_num_draft_tokens_total {}\n"
                               "vllm:spec_decode_num_accepted_tokens_total 900\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{{position=\"0\"}} 500\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{{position=\"1\"}} 250\n"
                               "vllm:spec_decode_num_accepted_tokens_per_pos_total{{position=\"2\"}} 150\n",
                               drafted));
  };
  const std::string full = scrape("full.prom", 3000), shorter = scrape("shorter.prom", 2100);
  CHECK(run_specdec("diff " + full + " " + shorter).out.find("This decides nothing: drafts are shorter than gamma") !=
        std::string::npos);
}

TEST_CASE("diff refuses what it cannot compare, by name") {
  const ScratchFolder folder;
  const std::string a = scalar_trace(folder / "a.safetensors", {0.9, 0.3, 0.5}, {0, 0, 1}).string();
  const std::string counts = written(folder / "c.jsonl", request("1", "x", {2, 3, 5}));
  check_run_refused("diff " + a, "RUN is given 1 times, but must be two files");
  check_run_refused("diff " + a + " " + counts,
                    "--gamma is missing: " + a + " is a recording, which is replayed at a gamma");
  check_run_refused("diff " + counts + " " + counts, counts + " is given twice, with the same draft: nothing differs");
  const ordered_json one = difference_of(counts + " " + a + " --gamma 2");
  CHECK(one["tokens_per_step"]["ci95"].is_null());
  CHECK(one["warnings"].dump().find("one_cluster") != std::string::npos);
}

TEST_CASE("diff decides nothing that the lengths of texts may be all of, and warns as analyze does") {
  const ScratchFolder folder;
  // Acceptance 0.8 throughout: only the lengths differ.
  const auto texts_of = [&](const char* name, std::int64_t texts, std::int64_t tokens, bool with_prompts) {
    std::vector<double> acceptance;
    std::vector<std::int64_t> sequence, prompt;
    for (std::int64_t i = 0; i < texts * tokens; ++i) {
      acceptance.push_back(i % 5 == 0 ? 0.7 : 0.825);
      sequence.push_back(i / tokens);
      prompt.push_back(i / tokens);
    }
    if (!with_prompts) prompt.clear();
    return scalar_trace(folder / name, acceptance, sequence, {}, {}, {}, prompt).string();
  };
  const std::string brief = texts_of("brief.safetensors", 40, 11, false);
  const std::string usual = texts_of("usual.safetensors", 20, 201, true);
  const ordered_json answer = difference_of(brief + " " + usual + " --gamma 5");
  CHECK(answer["tokens_per_step"]["p_value"].get<double>() < 1e-6);
  CHECK(answer["verdict"] == "cannot tell");
  CHECK(answer["undecided"].get<std::string>().find("11 tokens on average in A and 201 in B") != std::string::npos);
  CHECK(answer["clusters_to_tell"].is_null());
  std::map<std::string, std::string> warnings;
  for (const ordered_json& warning : answer["warnings"]) warnings[warning["code"]] = warning["message"];
  for (const char* code : {"short_texts", "text_ends_matter", "prompts_unknown", "prompts_not_paired"}) {
    INFO(code);
    CHECK(warnings.count(code) == 1);
  }
  CHECK(warnings["short_texts"].starts_with("A: texts are short, 11 tokens"));
  CHECK(warnings["prompts_not_paired"].starts_with("A does not say"));
  // Texts of one length: nothing but the drafts differs.
  const std::string alike = texts_of("alike.safetensors", 30, 201, true);
  CHECK(difference_of(usual + " " + alike + " --gamma 5")["undecided"].is_null());
}

TEST_CASE("diff replays position traces at its gamma, under the guards of recordings") {
  const ScratchFolder folder;
  // Rounds of two drafts: of one draft both are accepted at every second place, of the other at every fourth.
  const auto traces_of = [&](const char* name, std::int64_t texts, std::int64_t tokens) {
    std::string lines;
    for (std::int64_t text = 0; text < texts; ++text) {
      std::vector<std::int64_t> good, poor;
      for (std::int64_t place = 0; place < tokens; ++place) {
        const std::int64_t left = tokens - place, turn = (place * 7 + text * 5) % 16;
        good.push_back(std::min<std::int64_t>(left, turn < 8 ? 3 : turn < 12 ? 2 : 1));
        poor.push_back(std::min<std::int64_t>(left, turn < 4 ? 3 : turn < 8 ? 2 : 1));
      }
      lines += ordered_json({{"acc_good", {{"acc_len", good}}}, {"acc_poor", {{"acc_len", poor}}}}).dump() + '\n';
    }
    return written(folder / name, lines);
  };
  const auto warnings_of = [](const ordered_json& answer) { return answer["warnings"].dump(); };
  const std::string usual = traces_of("usual.jsonl", 20, 200), brief = traces_of("brief.jsonl", 40, 9);
  const ordered_json drafts = difference_of(usual + " " + usual + " --draft-array poor,good --gamma 1");
  CHECK(drafts["a"]["kind"] == "recording");
  CHECK(drafts["verdict"] == "b accepts more");
  CHECK(drafts["paired"] == 20);
  CHECK(drafts["a"]["acceptance_rule"].is_null());
  CHECK(warnings_of(drafts).find("rule_unknown") != std::string::npos);
  const Run analysed = run_specdec("analyze " + usual + " --draft-array good --format json");
  REQUIRE(analysed.exit_code == 0);
  CHECK(drafts["b"]["tokens_per_step"].get<double>() ==
        Approx(ordered_json::parse(analysed.out)["gammas"][0]["tokens_per_step"]["replay"]["value"].get<double>()));

  const ordered_json lengths = difference_of(usual + " " + brief + " --draft-array good --gamma 2");
  CHECK(lengths["verdict"] == "cannot tell");
  CHECK(lengths["undecided"].get<std::string>().find("200 tokens on average in A and 9 in B") != std::string::npos);
  for (const char* code : {"text_ends_matter", "short_texts", "prompts_unknown"})
    CHECK(warnings_of(lengths).find(code) != std::string::npos);
  check_run_refused("diff " + usual + " " + brief + " --draft-array good",
                    "--gamma is missing: " + usual + " is a recording, which is replayed at a gamma");
  CHECK(run_specdec("diff " + usual + " " + brief + " --draft-array good --gamma 3").exit_code == 2);
}

TEST_CASE("diff warns of one run that is given twice under two names") {
  const ScratchFolder folder;
  const std::string text = request("1", "code", {2, 3, 5}) + request("2", "chat", {5, 3, 2});
  const std::string a = written(folder / "a.jsonl", text), copy = written(folder / "copy.jsonl", text);
  const auto warns = [](const ordered_json& answer) {
    for (const ordered_json& warning : answer["warnings"]) {
      if (warning["code"] == "same_content") return true;
    }
    return false;
  };
  CHECK(warns(difference_of(a + " " + copy)));
  CHECK_FALSE(warns(difference_of(a + " " + written(folder / "other.jsonl", text + '\n'))));
}

TEST_CASE("diff says where labels of two runs have nothing in common") {
  const ScratchFolder folder;
  const std::string a = written(folder / "a.jsonl", request("1", "code", {2, 3, 5}) + request("2", "chat", {1, 2, 2}));
  const std::string b = written(folder / "b.jsonl", request("1", "prose", {2, 1, 5}) + request("2", "talk", {1, 1, 2}));
  const ordered_json apart = difference_of(a + " " + b);
  CHECK(apart["warnings"].dump().find("(code, chat in " + a + ", prose, talk in " + b + ")") != std::string::npos);
  CHECK(difference_of(
            a + " " +
            written(folder / "c.jsonl", request("3", "code", {2, 1, 5}) + request("4", "talk", {1, 1, 2})))["warnings"]
            .dump()
            .find("groups_not_shared") == std::string::npos);
}

TEST_CASE("runs of a benchmark differ in time by the cost of a step and by tokens per step") {
  const std::string samples = specdec::tests::source_dir() + "/traces/samples/bench/";
  const ordered_json answer = difference_of(samples + "c8-k3.json " + samples + "c8-k5.json");
  REQUIRE(answer["time"].is_object());
  CHECK(answer["decision"]["text"].dump().find("A took less time: a token of B takes 1.15 times as long.") !=
        std::string::npos);
  std::map<std::string, double> parts;
  for (const ordered_json& row : answer["parts"]) parts[row["part"]] = row["difference"]["value"];
  CHECK(parts.at("log_seconds_per_round") - parts.at("log_tokens_per_step") ==
        Approx(parts.at("log_seconds_per_token")).margin(1e-12));
  CHECK(parts.at("log_seconds_per_token") == Approx(std::log(answer["time"]["seconds_per_token_b"].get<double>() /
                                                             answer["time"]["seconds_per_token_a"].get<double>())));
}

TEST_CASE("times of benchmarks with other numbers of clients are not compared") {
  const std::string samples = specdec::tests::source_dir() + "/traces/samples/bench/";
  const ordered_json answer = difference_of(samples + "c1-k3.json " + samples + "c32-k3.json");
  CHECK(answer["time"].is_null());
  CHECK(answer["warnings"].dump().find("c1-k3.json ran with 1 clients") != std::string::npos);
  const ScratchFolder folder;
  const auto table = [&](const char* name, const std::string& loads) {
    std::string text = "gamma,max_concurrency,tpot_ms,acceptance_length\n";
    for (const char load : loads) text += fmt::format("3,{},{},2.5\n", load, 5 + (load - '0'));
    return written(folder / name, text);
  };
  // One load of three in common, and repeats of one.
  CHECK(difference_of(table("a.csv", "123") + " " + table("b.csv", "345"))["time"].is_null());
  const ordered_json repeats = difference_of(table("c.csv", "4444") + " " + table("d.csv", "444"));
  CHECK(repeats["time"].is_object());
  CHECK(repeats["a"]["clusters"] == 4);
}
