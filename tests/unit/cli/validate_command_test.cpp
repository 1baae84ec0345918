#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/ngram_file.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::RandomCheckpoint;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;

namespace {

constexpr std::int64_t vocabulary = 340;

/// A pair of tiny random checkpoints with prompts in token ids.
class Pair {
 public:
  explicit Pair(std::int64_t draft_vocabulary = vocabulary)
      : target_({16, 2, 2, 32, vocabulary, 64}), draft_({8, 1, 1, 16, draft_vocabulary, 64}) {
    std::ofstream(scratch_ / "prompts.jsonl") << R"({"task": "even", "tokens": [2, 4, 6]})" << '\n'
                                              << R"({"task": "odd", "tokens": [1, 3]})" << '\n'
                                              << R"({"task": "even", "tokens": [8]})" << '\n';
  }

  std::string options() const { return options_with_draft(draft_.folder().string()); }
  std::string options_with_target_as_draft() const { return options_with_draft(target_.folder().string()); }
  std::string options_with_draft(const std::string& draft) const {
    return " --target " + target_.folder().string() + " --draft " + draft + " --prompts " +
           (scratch_ / "prompts.jsonl").string() + " ";
  }
  /// An n-gram file in which each of some tokens was seen once.
  std::filesystem::path write_ngrams(std::size_t tokens) const {
    specdec::tests::NgramFile file;
    file.unigram.assign(tokens, 1);
    file.offsets.assign(tokens + 1, 0);
    file.tokens.clear();
    file.counts.clear();
    std::ofstream(scratch_ / "ngrams.safetensors", std::ios::binary) << file.bytes();
    return scratch_ / "ngrams.safetensors";
  }
  void write_prompts(const std::string& lines) const { std::ofstream(scratch_ / "prompts.jsonl") << lines; }

 private:
  ScratchFolder scratch_;
  RandomCheckpoint target_;
  RandomCheckpoint draft_;
};

constexpr char small_run[] = "--gamma 2 --tokens 64 --max-new-tokens 16 --timed-prompts 1 --threads 1 ";

Run validate(const std::string& options) { return run_specdec("validate " + options); }

ordered_json json_of(const std::string& options) {
  const Run run = validate(options + "--format json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return ordered_json::parse(run.out);
}

bool is_one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }

}  // namespace

TEST_CASE("validate passes on a pair of transformers and prints one row per task, temperature and gamma") {
  const Pair pair;
  const Run run = validate(pair.options() + small_run);
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.find("The algorithm is right: ") != std::string::npos);
  const ordered_json json = json_of(pair.options() + small_run);
  CHECK(json["passed"] == true);
  REQUIRE(json["configurations"].size() == 4);
  CHECK(json["configurations"][0]["task"] == "even");
  CHECK(json["configurations"][3]["temperature"] == 1.0);
  CHECK(json["configurations"][3]["tokens"] == 64);
  CHECK(json["inputs"]["files"].size() == 5);
}

TEST_CASE("a draft equal to the target has no error of independence, whatever the texts' length") {
  const Pair pair;
  const ordered_json json =
      json_of(pair.options_with_target_as_draft() + "--gamma 2 --tokens 120 --max-new-tokens 20 ");
  for (const ordered_json& configuration : json["configurations"]) {
    CHECK(configuration["tokens_per_step"]["iid"].get<double>() == Approx(3).epsilon(1e-12));
    CHECK(configuration["tokens_per_step"]["iid_finite"].get<double>() == Approx(20.0 / 7).epsilon(1e-12));
    CHECK(configuration["tokens_per_step"]["iid_relative_error"].get<double>() == Approx(0).margin(1e-12));
  }
}

TEST_CASE("validate times its texts as compare does, and nothing without timed prompts") {
  const Pair pair;
  const ordered_json json = json_of(pair.options() +
                                    "--gamma 2 --temperature 0 --tokens 16 --max-new-tokens 16 "
                                    "--timed-prompts 0 ");
  CHECK(json["configurations"][0]["timing"].is_null());
  const ordered_json timed = json_of(pair.options() + "--gamma 2 --tokens 16 --max-new-tokens 16 ");
  for (const ordered_json& configuration : timed["configurations"]) {
    const ordered_json& timing = configuration["timing"];
    CHECK(timing["plain_step_seconds"] > 0);
    CHECK(timing["c"] > 0);
    CHECK(timing["verify_factors"].back()["tokens"] == 3);
    CHECK(timing["speedup"]["expected"] > 0);
    CHECK(timing["speedup"]["measured"] > 0);
  }
}

TEST_CASE("a run too short for any statistical test says so instead of claiming a false-alarm rate") {
  const Pair pair;
  const Run run = validate(pair.options() + "--gamma 2 --temperature 1 --tasks odd --tokens 16 --max-new-tokens 16 ");
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("the distribution was NOT tested") != std::string::npos);
  CHECK(run.out.find("fewer than one run in 1000") == std::string::npos);
}

TEST_CASE("the files of a sharded checkpoint are its index and every shard") {
  const std::string checkpoint = specdec::tests::source_dir() + "/tests/fixtures/transformer/llama_sharded_bf16";
  const ScratchFolder scratch;
  std::ofstream(scratch / "prompts.jsonl") << R"({"tokens": [2, 4]})" << '\n';
  const ordered_json json = json_of("--target " + checkpoint + " --draft " + checkpoint + " --prompts " +
                                    (scratch / "prompts.jsonl").string() +
                                    " --gamma 1 --temperature 0 --tokens 4 --max-new-tokens 4 --timed-prompts 0 ");
  std::vector<std::string> names;
  for (const ordered_json& file : json["inputs"]["files"])
    names.push_back(std::filesystem::path(file["path"].get<std::string>()).filename().string());
  const std::vector<std::string> one{"config.json", "model.safetensors.index.json", "model-00001-of-00004.safetensors",
                                     "model-00004-of-00004.safetensors"};
  for (const std::string& name : one) CHECK(std::count(names.begin(), names.end(), name) == 2);
}

TEST_CASE("n-gram tables can be the draft, at no cost in operations") {
  const Pair pair;
  const std::string file = pair.write_ngrams(vocabulary).string();
  for (const std::string kind : {"unigram:", "bigram:"}) {
    const ordered_json json = json_of(pair.options_with_draft(kind + file) + small_run);
    CHECK(json["passed"] == true);
    CHECK(json["assumptions"][1]["value"] == kind + file);
    CHECK(json["inputs"]["files"].size() == 4);
  }
  const std::string small = pair.write_ngrams(7).string();
  const Run run = validate(pair.options_with_draft("bigram:" + small) + small_run);
  CHECK(run.exit_code == 2);
  CHECK(run.err.starts_with("specdec: error: --draft bigram:" + small + ": vocab_size is 7, but must be 340 as in "));
}

TEST_CASE("everything but the clock is the same for any number of threads") {
  const Pair pair;
  const std::string untimed = pair.options() + "--gamma 2 --tokens 64 --max-new-tokens 16 --timed-prompts 0 --threads ";
  ordered_json one = json_of(untimed + "1 ");
  const ordered_json three = json_of(untimed + "3 ");
  one["inputs"]["threads"] = 3;
  CHECK(one == three);
  CHECK(one["configurations"][0]["c"].is_null());
}

TEST_CASE("tasks, temperatures and gammas can be chosen") {
  const Pair pair;
  const ordered_json json = json_of(
      pair.options() + "--tasks odd --temperature 0.5 -k 1,3 --tokens 16 --max-new-tokens 16 --timed-prompts 0 ");
  REQUIRE(json["configurations"].size() == 2);
  CHECK(json["configurations"][1]["task"] == "odd");
  CHECK(json["configurations"][1]["gamma"] == 3);
  CHECK(json["configurations"][1]["temperature"] == 0.5);
}

TEST_CASE("every table can be printed as CSV") {
  const Pair pair;
  const std::string options = pair.options() + small_run + "--format csv --quiet --table ";
  CHECK(validate(options + "configurations").out.starts_with("task,temperature,gamma,"));
  CHECK(validate(options + "checks").out.starts_with("task,temperature,gamma,name,"));
  CHECK(validate(options + "distribution-tests").out.starts_with("task,temperature,gamma,order,slot,"));
}

TEST_CASE("a prompt that leaves no room keeps its last tokens, with a warning") {
  const Pair pair;
  std::string line = R"({"tokens": [1)";
  for (int i = 0; i < 60; ++i) line += ", 2";
  pair.write_prompts(line + "]}\n");
  const ordered_json json = json_of(pair.options() + small_run);
  CHECK(json["warnings"].back()["code"] == "prompts_cut");
}

TEST_CASE("bad input to validate is refused in one line that names it, with exit code 2") {
  const Pair pair;
  const Pair other(vocabulary + 1);
  const std::string good = pair.options() + small_run;
  for (const auto& [options, named] : std::vector<std::pair<std::string, std::string>>{
           {good + "--gamma 16", "--gamma"},
           {good + "--gamma 2,2", "--gamma"},
           {good + "--gamma x", "--gamma"},
           {good + "--temperature -1", "--temperature"},
           {good + "--top-p 0", "--top-p"},
           {good + "--max-new-tokens 64", "--max-new-tokens"},
           {pair.options() + "--max-new-tokens 4",
            "--max-new-tokens is 4, but must be at least 9, for the drafts of --gamma 2,4,8 and the token behind them"},
           {good + "--tasks none", "--tasks"},
           {"--target /nowhere", "needs --draft beside it"},
           {"--target /nowhere --draft /nowhere", "--prompts"},
           {"--target /nowhere --draft /nowhere --prompts /nowhere/p", "/nowhere"},
           {other.options() + small_run, "vocab_size"}}) {
    const Run run = validate(options);
    INFO(options << "\n" << run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(is_one_line(run.err));
    CHECK(run.err.find(named) != std::string::npos);
  }
}

TEST_CASE("a token outside the vocabulary and a text without tokenizer are refused") {
  const Pair pair;
  pair.write_prompts(R"({"tokens": [340]})");
  CHECK(validate(pair.options() + small_run).err.find("340") != std::string::npos);
  pair.write_prompts(R"({"text": "a"})");
  CHECK(validate(pair.options() + small_run).err.find("tokenizer.model") != std::string::npos);
}
