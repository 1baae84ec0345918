#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::content_of;
using specdec::tests::document_of_run;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;

namespace {

const std::string fixtures = specdec::tests::source_dir() + "/tests/fixtures/transformer/";
const std::string pair = "record --target " + fixtures + "llama_gqa --draft " + fixtures + "llama_gqa --prompts " +
                         fixtures + "prompts.jsonl --max-new-tokens 8 --shard-positions 16 --output ";

/// Name and content of every file of a folder.
std::string content_of_all(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string content;
  for (const auto& file : files) content += file.filename().string() + content_of(file);
  return content;
}

}  // namespace

TEST_CASE("a recording that was killed goes on after its whole shards, to the same bytes") {
  const ScratchFolder scratch;
  for (const std::string tier : {"full", "scalar"}) {
    const std::string whole = (scratch / ("whole-" + tier)).string();
    const std::string killed = (scratch / ("killed-" + tier)).string();
    const std::string what = " --sequences 9 --threads 2 --tier " + tier;
    CHECK(document_of_run(pair + whole + what)["resumed_sequences"] == 0);
    std::filesystem::copy(whole, killed);
    std::filesystem::remove(killed + "/shard-000004.safetensors");
    std::filesystem::remove(killed + "/shard-000003.safetensors");
    const ordered_json found = document_of_run(pair + killed + what);
    CHECK(found["resumed_sequences"] == 6);
    CHECK(found["positions"] == 72);
    CHECK((content_of_all(killed) == content_of_all(whole)));
    CHECK(document_of_run(pair + killed + what)["resumed_sequences"] == 9);
    CHECK((content_of_all(killed) == content_of_all(whole)));
  }
}

TEST_CASE("a recording whose texts end at a token goes on after its whole shards, to the same bytes") {
  const ScratchFolder scratch;
  const std::string whole = (scratch / "whole").string();
  const std::string killed = (scratch / "killed").string();
  const std::string what = " --sequences 12 --tier scalar --max-new-tokens 40 --end-token 7";
  const std::string ending = pair.substr(0, pair.find(" --max-new-tokens")) + what + " --shard-positions 16 --output ";
  const ordered_json found = document_of_run(ending + whole);
  CHECK(found["positions"] < 12 * 40);
  CHECK(found["sequences"] == 12);
  std::filesystem::create_directory(killed);
  std::filesystem::copy(whole + "/shard-000000.safetensors", killed);
  const ordered_json resumed = document_of_run(ending + killed);
  CHECK(resumed["resumed_sequences"] > 0);
  CHECK(resumed["resumed_sequences"] < 12);
  CHECK(resumed["positions"] == found["positions"]);
  CHECK((content_of_all(killed) == content_of_all(whole)));
}

TEST_CASE("the files of all shares are the recording of one run, to the bytes of every number") {
  const ScratchFolder scratch;
  const std::string options = pair.substr(0, pair.find(" --max-new-tokens")) +
                              " --tier scalar --sequences 7 --max-new-tokens 12 --seed 3 --output ";
  const std::string whole = (scratch / "whole").string(), shares = (scratch / "shares").string();
  REQUIRE(run_specdec(options + whole).exit_code == 0);
  for (const char* share : {"3/3", "1/3", "2/3"}) {
    const Run run = run_specdec(options + shares + " --shard " + share);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
  }
  CHECK(std::filesystem::exists(scratch / "shares/1-of-3.safetensors"));
  const std::string same = "trace convert --output ";
  REQUIRE(run_specdec(same + (scratch / "a.safetensors").string() + " " + whole).exit_code == 0);
  REQUIRE(run_specdec(same + (scratch / "b.safetensors").string() + " " + shares).exit_code == 0);
  CHECK((content_of(scratch / "a.safetensors") == content_of(scratch / "b.safetensors")));

  const std::string share = content_of(scratch / "shares/1-of-3.safetensors");
  const Run again = run_specdec(options + shares + " --shard 1/3");
  CHECK(again.exit_code == 0);
  CHECK(again.err == "specdec: share 1/3 was done already, in " + shares + "/1-of-3.safetensors\n");
  CHECK((content_of(scratch / "shares/1-of-3.safetensors") == share));
  // A folder holds the shares of one recording, dealt in one way.
  const Run dealt = run_specdec(options + shares + " --shard 1/2");
  CHECK(dealt.exit_code == 2);
  CHECK(dealt.err.find("of-3.safetensors, but must be that of a share of 2, as all of the folder") !=
        std::string::npos);
  std::filesystem::remove(scratch / "shares/2-of-3.safetensors");
  const auto with = [&](std::string_view option, const std::string& value) {
    std::string other = options;
    other.replace(other.find(option), option.size() + 2, std::string(option) + " " + value);
    return run_specdec(other + shares + " --shard 2/3");
  };
  const Run seeded = with("--seed", "4");
  CHECK(seeded.exit_code == 2);
  CHECK(seeded.err.find("metadata record.seed is 3, but must be 4 to be gone on with") != std::string::npos);
  const Run longer = with("--sequences", "9");
  CHECK(longer.exit_code == 2);
  CHECK(longer.err.find("of 9 texts has") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(scratch / "shares/2-of-3.safetensors"));
  REQUIRE(run_specdec(options + shares + " --shard 2/3").exit_code == 0);
  check_run_refused(options + shares + " --shard 1/8",
                    "--shard is 1/8, but must be I/N with N at most the number of texts, 7");
  check_run_refused(
      options + (scratch / "c.safetensors").string() + " --shard 1/3",
      "--output is " + (scratch / "c.safetensors").string() + ", but must be a folder, which has a file of each share");
}

TEST_CASE("only the same recording is gone on with") {
  const ScratchFolder scratch;
  const std::string folder = (scratch / "trace").string();
  REQUIRE(run_specdec(pair + folder + " --sequences 2").exit_code == 0);
  const std::string before = content_of_all(folder);
  for (const std::string other : {"--seed 2", "--temperature 0.5", "--tier scalar", "--top-k 5", "--tasks odd"}) {
    const Run run = run_specdec(pair + folder + " --sequences 4 " + other);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("to be gone on with") != std::string::npos);
    CHECK((content_of_all(folder) == before));
  }
  check_run_refused(pair + folder + " --sequences 4 --tier scalar",
                    folder + ": metadata record.tier is full, but must be scalar to be gone on with");
}

TEST_CASE("a recording at temperature 0 tells what is accepted at other temperatures") {
  const ScratchFolder scratch;
  const std::string folder = (scratch / "trace").string();
  REQUIRE(run_specdec("record --tier full --sequences 3 --max-new-tokens 16 --temperature 0 --output " + folder)
              .exit_code == 0);
  const std::string question = "analyze " + folder + " --standardise 'temperature=0;temperature=0.5;temperature=1'";
  const ordered_json rows = document_of_run(question)["standardisation"];
  const ordered_json of_rejection = document_of_run(question + " --acceptance rejection")["standardisation"];
  REQUIRE(rows.size() == 3);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i]["alpha"] == of_rejection[i]["alpha"]);
  CHECK(rows[0]["alpha"] != rows[2]["alpha"]);
}

TEST_CASE("record refuses what it cannot do before it loads a model") {
  check_run_refused("record", "--output is missing: where the trace is written");
  const ScratchFolder scratch;
  const std::string output = "record --output " + (scratch / "trace").string();
  check_run_refused(output + " --tier whole", "--tier is whole, but must be one of full, topk, scalar");
  check_run_refused(output + " --max-new-tokens 1", "--max-new-tokens is 1, but must be an integer in [2, 1000000]");
}

TEST_CASE("a generated trace is read back with its truth") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "trace.safetensors").string();
  const ordered_json made =
      document_of_run("trace generate --tasks easy:0.9,hard:0.5 --sequences 4 --tokens 10 --output " + file);
  CHECK(made["alpha"] == Approx(0.7));
  CHECK(made["tasks"][1]["task"] == "hard");
  CHECK(made["tasks"][1]["alpha"] == 0.5);
  const ordered_json info = document_of_run("trace info " + file);
  CHECK(info["positions"] == 40);
  CHECK(info["metadata"]["path"] == "target");
  CHECK(std::stod(info["metadata"]["other"]["truth.alpha"].get<std::string>()) == Approx(0.7));
}

TEST_CASE("trace generate refuses options that do not go with the law") {
  const ScratchFolder scratch;
  const std::string start = "trace generate --output " + (scratch / "trace").string() + ' ';
  check_run_refused("trace generate", "--output is missing: where the trace is written");
  check_run_refused(start + "--betas 0.5,0.1", "--betas is given, but goes with --law markov only");
  check_run_refused(start + "--law markov --alpha 0.5",
                    "--alpha is given, but goes with --law beta or logit-noise or dirichlet only");
  check_run_refused(start + "--alpha 0.5 --tasks a:0.5",
                    "--alpha and --tasks are both given, but --tasks names the alphas");
  check_run_refused(start + "--tasks a", "--tasks is a, but must be NAME:ALPHA");
  check_run_refused(start + "--law markov --betas 0.5",
                    "--betas has 1 and --stay 2 entries, but both must have one for each state, 2 or more");
  check_run_refused(start + "--tier full", "--tier is full, but must be scalar, which is all that --law beta gives");
  check_run_refused(start + "--law dirichlet --alpha 0 --vocab 4",
                    "--alpha is 0, but must be in [0.6619, 1]");
}
