// Limits of a recording: whether its text is the target's own, what longer drafts would have gained, and what
// another rule of acceptance accepts.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::tests;
using nlohmann::ordered_json;

namespace {

std::string one_line(const std::string& text) { return std::regex_replace(text, std::regex(R"(\n *)"), " "); }

bool holds(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

/// Whole rows of a random pair in texts of 50 tokens.
RecordedPair own_text() { return recorded_pair(40, 2000, 50, 7); }

/// The same with each row beside the token before its own.
RecordedPair shifted_text() {
  RecordedPair pair = own_text();
  std::rotate(pair.token.begin(), pair.token.end() - 1, pair.token.end());
  return pair;
}

/// Accepted lengths of rounds of `gamma` drafts, each accepted with the same probability: as position traces have them.
std::filesystem::path lengths_of(const std::filesystem::path& path, std::int32_t gamma, double alpha) {
  std::mt19937 generator(5);
  std::bernoulli_distribution accepts(alpha);
  std::ofstream file(path);
  for (int text = 0; text < 40; ++text) {
    ordered_json tokens = ordered_json::array(), lengths = ordered_json::array();
    for (int t = 0; t < 60; ++t) {
      std::int32_t length = 1;
      while (length <= gamma && accepts(generator)) ++length;
      tokens.push_back(t);
      lengths.push_back(length);
    }
    file << ordered_json(
                {{"prompt_token_ids", {text}}, {"generated_token_ids", tokens}, {"acc_d", {{"acc_len", lengths}}}})
                .dump()
         << '\n';
  }
  return path;
}

}  // namespace

// Rows and text are drawn once with a fixed seed; of the target's own texts one in 7,900 would be taken for another's.
TEST_CASE("a text that does not look like the target's own decides nothing, and every command that reads it says so") {
  const ScratchFolder folder;
  const std::string own = full_trace(folder / "own.safetensors", own_text()).string();
  const std::string shifted = full_trace(folder / "shifted.safetensors", shifted_text()).string();
  const std::string code = "text_not_from_target";

  CHECK(document_of_run("plan --c 0.05 --trace " + own)["points"][0]["verdict"] == "sure");
  const ordered_json plan = document_of_run("plan --c 0.05 --trace " + shifted);
  CHECK(plan["points"][0]["verdict"] == "open");
  CHECK(warns(plan, code));
  CHECK(
      holds(one_line(run_specdec("plan --c 0.05 --trace " + shifted).out),
            "Nothing is decided: the text of the recording does not look like the target's own"));
  check_run_refused("plan --c 0.05 --emit vllm --trace " + shifted,
                    "--emit is vllm, but there is no gamma to configure: the text of the recording does not look like "
                    "the target's own, and nothing is decided by it");

  const std::string analysed = one_line(run_specdec("analyze --c 0.05 " + shifted).out);
  CHECK(holds(analysed, "This recording decides nothing: its text does not look like the target's own."));
  CHECK_FALSE(holds(analysed, "x plain decoding"));
  CHECK(holds(one_line(run_specdec("analyze --c 0.05 --force-replay " + shifted).out), "x plain decoding"));

  for (const std::string command : {"analyze ", "simulate --source trace --trace ",
                                    "compare algorithm1 --source trace --trace ", "plot tokens-over-gamma --trace ",
                                    "trace check "}) {
    CAPTURE(command);
    CHECK(warns(document_of_run(command + shifted), code));
    CHECK_FALSE(warns(document_of_run(command + own), code));
  }
  const std::string another = full_trace(folder / "another.safetensors", recorded_pair(40, 2000, 50, 11)).string();
  const ordered_json difference = document_of_run("diff --gamma 3 " + another + " " + shifted);
  CHECK(warns(difference, code));
  CHECK(difference["verdict"] == "cannot tell");
  CHECK(difference["undecided"].get<std::string>().starts_with("the text of B does not look like the target's own"));
  CHECK_FALSE(warns(document_of_run("diff --gamma 3 " + another + " " + own), code));
  const ordered_json report =
      document_of_run("report --static --c 0.05 --output " + (folder / "page.html").string() + " --trace " + shifted);
  CHECK(warns(report, code));
  CHECK(holds(report["decision"]["text"].dump(), "Nothing is decided"));
}

TEST_CASE("two numbers a token beside the overlap, and lists of top tokens, tell another's text as whole rows do") {
  const ScratchFolder folder;
  const std::string own = full_trace(folder / "own.safetensors", own_text()).string();
  RecordedPair of_draft = own_text();
  for (std::int64_t i = 0; i < of_draft.positions; ++i) {
    const auto q = of_draft.draft_row(i);
    of_draft.token[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(std::max_element(q.begin(), q.end()) - q.begin());
  }
  const std::string drafted = full_trace(folder / "drafted.safetensors", of_draft).string();
  for (const std::string tier : {"scalar", "topk"}) {
    CAPTURE(tier);
    const auto converted = [&](const std::string& recording, const std::string& name) {
      const std::string to = (folder / (name + tier)).string();
      REQUIRE(run_specdec("trace convert " + recording + " --tier " + tier + " --output " + to).exit_code == 0);
      return to;
    };
    const ordered_json plan = document_of_run("plan --c 0.05 --trace " + converted(drafted, "drafted"));
    CHECK(plan["points"][0]["verdict"] == "open");
    CHECK(warns(plan, "text_not_from_target"));
    const ordered_json of_own = document_of_run("plan --c 0.05 --trace " + converted(own, "own"));
    CHECK(of_own["points"][0]["verdict"] == "sure");
    CHECK_FALSE(warns(of_own, "text_not_from_target"));
  }
}

TEST_CASE("what is said of alpha's interval reaches the plan, and a text from elsewhere is refused in one sentence") {
  const ScratchFolder folder;
  std::vector<double> acceptance;
  for (int i = 0; i < 60; ++i) acceptance.push_back(0.3 + 0.01 * (i % 50));
  const std::string one_text =
      scalar_trace(folder / "one.safetensors", acceptance, std::vector<std::int64_t>(acceptance.size(), 0)).string();
  CHECK(warns(document_of_run("analyze --c 0.05 " + one_text), "alpha_interval"));
  CHECK(warns(document_of_run("plan --c 0.05 --trace " + one_text), "alpha_interval"));

  const std::string other = full_trace(folder / "other.safetensors", own_text(), {{"path", "other"}}).string();
  check_run_refused("plan --c 0.05 --trace " + other,
                    "--trace: " + other +
                        " cannot be planned with: its text is not the target's own (path is other), and only such a "
                        "text tells what drafts gain; specdec analyze --force-replay replays it all the same");
}

// The oracle is Eq. 1 at the rate that the lengths were drawn with; 40 texts of 60 tokens have an error of some 3%.
TEST_CASE("accepted lengths of drafts of two say nothing of longer ones, and nothing is called the fastest of those") {
  const ScratchFolder folder;
  const std::string two = lengths_of(folder / "two.jsonl", 2, 0.8).string();
  const std::string why =
      "no accepted length exceeds 3, so that the recording does not tell whether drafts of more than 2 tokens were "
      "made, "
      "nor what they would have gained";

  const ordered_json analysis = document_of_run("analyze --gamma 1:10 --c 0.05 " + two);
  REQUIRE(analysis["gammas"].size() == 2);
  CHECK(analysis["gammas"][1]["tokens_per_step"]["replay"]["value"].get<double>() ==
        Approx(1 + 0.8 + 0.64).epsilon(0.1));
  CHECK(analysis["position_acceptance"].size() == 2);
  CHECK(warns(analysis, "gamma_not_drafted"));
  CHECK(warns(analysis, "optimum_at_limit"));
  const std::string text = one_line(run_specdec("analyze --c 0.05 " + two).out);
  CHECK(holds(text, "tokens: "));
  CHECK(holds(text, " of a round's first drafts are accepted"));
  CHECK(holds(text, "Longer drafts were not measured, and may be faster."));
  check_run_refused("analyze --gamma 5,6 --c 0.05 " + two, "--gamma is 5, but must be at most 2: " + why);

  const ordered_json plan = document_of_run("plan --c 0.05 --trace " + two);
  CHECK(plan["points"][0]["rows"].size() == 3);
  CHECK(warns(plan, "gamma_not_drafted"));
  CHECK(warns(document_of_run("simulate --source trace --gamma 5 --trace " + two), "gamma_not_drafted"));

  // Drafts of six tell of all that are asked for here.
  const std::string six = lengths_of(folder / "six.jsonl", 6, 0.8).string();
  CHECK_FALSE(warns(document_of_run("analyze --gamma 1:6 --c 0.05 " + six), "gamma_not_drafted"));
}

TEST_CASE("gammas beyond the recorded depth are said to hold the last one, by every command that replays them") {
  const ScratchFolder folder;
  const auto of_two_depths = [&](const char* name, float second) {
    std::vector<float> target(60, std::log(0.5F)), draft;
    std::vector<std::int64_t> sequence;
    for (std::int64_t i = 0; i < 60; ++i) {
      draft.insert(draft.end(), {std::log(0.45F), std::log(second)});
      sequence.push_back(i / 20);
    }
    return write_tensors(folder / name, {floats("p.token_logprob", {60}, target),
                                         floats("q.token_logprob", {60, 2}, draft), longs("seq", {60}, sequence)})
        .string();
  };
  const std::string a = of_two_depths("a.safetensors", 0.4F), b = of_two_depths("b.safetensors", 0.3F);
  for (const std::string& command : std::vector<std::string>{"analyze ", "diff " + b + " "}) {
    CAPTURE(command);
    CHECK(warns(document_of_run(command + a + " --gamma 4"), "depth_held"));
    CHECK_FALSE(warns(document_of_run(command + a + " --gamma 2"), "depth_held"));
  }
  const ordered_json plan = document_of_run("plan --c 0.001 --max-gamma 4 --trace " + a);
  CHECK(warns(plan, "depth_held"));
  for (const ordered_json& row : plan["points"][0]["rows"]) {
    const std::int64_t gamma = row["gamma"];
    CHECK(row["extrapolated"] == (gamma > 2));
  }
  // Rates may go on falling: 1 + 0.9 + 0.72 + 0.40 + 0.16 of 1 + 0.9 + 0.72 + 0.58 + 0.46, were it not for the texts'
  // ends.
  const ordered_json& last = plan["points"][0]["rows"][4];
  CHECK(last["speedup"]["ci95"][0].get<double>() < 0.93 * last["speedup"]["value"].get<double>());
}

TEST_CASE("diff compares no drafts longer than accepted lengths tell of") {
  const ScratchFolder folder;
  const auto recording = [&](const char* name, std::int32_t longest) {
    std::vector<std::int32_t> lengths;
    std::vector<std::int64_t> sequence;
    for (std::int32_t i = 0; i < 60; ++i) {
      lengths.push_back(1 + i % longest);
      sequence.push_back(i / 20);
    }
    return write_tensors(folder / name, {ints("acc_len", {60}, lengths), longs("seq", {60}, sequence)}).string();
  };
  const std::string two = recording("two.safetensors", 3), four = recording("four.safetensors", 5);
  check_run_refused("diff --gamma 4 " + four + " " + two,
                    "--gamma is 4, but must be at most 2 for " + two +
                        ": no accepted length exceeds 3, so that the recording does not tell whether drafts of more "
                        "than 2 tokens were made, nor what they would have gained");
  CHECK(document_of_run("diff --gamma 2 " + four + " " + two)["a"]["gamma"] == 2);
}

TEST_CASE("a configuration for llama.cpp is planned by its own rule, where the recording tells it") {
  const ScratchFolder folder;
  const std::string whole = full_trace(folder / "whole.safetensors", own_text()).string();
  const ordered_json own_rule = document_of_run("plan --c 0.05 --emit llamacpp --trace " + whole);
  const ordered_json stated =
      document_of_run("plan --c 0.05 --emit llamacpp --acceptance greedy-draft --trace " + whole);
  CHECK(own_rule["points"] == stated["points"]);
  CHECK(warns(own_rule, "rule_of_engine"));
  CHECK_FALSE(warns(stated, "rule_of_engine"));
  const ordered_json by_vllm = document_of_run("plan --c 0.05 --emit vllm --trace " + whole);
  CHECK(by_vllm["points"] == document_of_run("plan --c 0.05 --trace " + whole)["points"]);
  CHECK(by_vllm["points"] != own_rule["points"]);
  CHECK(
      holds(one_line(run_specdec("plan --c 0.05 --emit llamacpp --acceptance rejection --trace " + whole).out),
            "llama.cpp drafts greedily and compares tokens"));

  const std::string scalar = scalar_trace(folder / "scalar.safetensors", {0.9, 0.3, 0.5, 0.8}, {0, 0, 1, 1}).string();
  const Run refused = run_specdec("plan --c 0.05 --emit llamacpp --trace " + scalar);
  CHECK(refused.exit_code == 2);
  CHECK(holds(refused.err, "--emit is llamacpp, which drafts greedily and compares tokens, but " + scalar +
                               " does not tell what that accepts: "));
}

TEST_CASE("tasks that continue the same prompts err together: a mix of them adds their widths") {
  const ScratchFolder folder;
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence, shared, apart;
  std::vector<std::int32_t> task;
  for (std::int64_t text = 0; text < 40; ++text) {
    for (std::int64_t t = 0; t < 30; ++t) {
      // Easy and hard prompts; each has a text of both tasks.
      acceptance.push_back(0.4 + 0.02 * static_cast<double>(text / 2) + 0.01 * static_cast<double>(t % 7));
      sequence.push_back(text);
      task.push_back(static_cast<std::int32_t>(text % 2));
      shared.push_back(text / 2);
      apart.push_back(text);
    }
  }
  const Metadata names = {{"tasks", R"(["a","b"])"}};
  const auto recorded = [&](const std::string& name, const std::vector<std::int64_t>& prompt) {
    return scalar_trace(folder / name, acceptance, sequence, names, {}, task, prompt).string();
  };
  const std::string together = recorded("together.safetensors", shared), alone = recorded("alone.safetensors", apart);
  const auto width = [](const std::string& recording) {
    const ordered_json plan = document_of_run("plan --c 0.05 --max-gamma 4 --mix a=0.5,b=0.5 --trace " + recording);
    const ordered_json interval = plan["points"][0]["rows"][3]["speedup"]["ci95"];
    return interval[1].get<double>() - interval[0].get<double>();
  };
  CHECK(width(together) == Approx(std::sqrt(2) * width(alone)).epsilon(0.1));
}

TEST_CASE("a mix is tested by the text of its groups: a foreign one decides nothing, and one left out does not count") {
  const ScratchFolder folder;
  RecordedPair pair = own_text();
  const std::vector<std::int32_t> shifted = shifted_text().token;
  std::vector<std::int32_t> task;
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const bool of_b = i >= 1200;
    task.push_back(of_b ? 1 : 0);
    if (of_b) pair.token[static_cast<std::size_t>(i)] = shifted[static_cast<std::size_t>(i)];
  }
  const auto& n = pair.positions;
  const std::string recording =
      write_tensors(folder / "two.safetensors",
                    {floats("p.probs", {n, pair.vocab}, pair.target), floats("q.probs", {n, pair.vocab}, pair.draft),
                     ints("token", {n}, pair.token), longs("seq", {n}, pair.sequence), ints("task", {n}, task)},
                    {{"tasks", R"(["a","b"])"}})
          .string();
  const auto plan_of = [&](const std::string& mix) {
    return document_of_run("plan --c 0.05 --max-gamma 4 --mix " + mix + " --trace " + recording);
  };
  CHECK(plan_of("a=1")["points"][0]["verdict"] == "sure");
  CHECK_FALSE(warns(plan_of("a=1"), "text_not_from_target"));
  for (const std::string mix : {"b=1", "a=0.9,b=0.1"}) {
    CAPTURE(mix);
    CHECK(plan_of(mix)["points"][0]["verdict"] == "open");
    CHECK(warns(plan_of(mix), "text_not_from_target"));
  }
}

TEST_CASE("one recording in two tiers has no difference that rounding to single precision makes") {
  const ScratchFolder folder;
  const std::string full = full_trace(folder / "full.safetensors", own_text()).string();
  const std::string scalar = (folder / "scalar").string();
  REQUIRE(run_specdec("trace convert " + full + " --tier scalar --output " + scalar).exit_code == 0);
  const ordered_json difference = document_of_run("diff --gamma 3 " + full + " " + scalar);
  CHECK(difference["verdict"] == "cannot tell");
  CHECK(difference["tokens_per_step"]["p_value"] == 1);
}

TEST_CASE("synthetic says where replayed steps accept in other shares than its law") {
  const ScratchFolder folder;
  std::vector<double> bursts, even;
  std::vector<std::int64_t> sequence;
  for (std::int64_t i = 0; i < 3000; ++i) {
    bursts.push_back(i / 10 % 2 == 0 ? 0.95 : 0.15);
    even.push_back(0.6);
    sequence.push_back(i / 100);
  }
  const auto warned = [&](const std::string& name, const std::vector<double>& acceptance) {
    const std::string recording = scalar_trace(folder / name, acceptance, sequence).string();
    return warns(document_of_run("synthetic --gamma 6 --trace " + recording), "law_of_replay");
  };
  CHECK(warned("bursts.safetensors", bursts));
  CHECK_FALSE(warned("even.safetensors", even));
}
