// The output of a command never replaces its input, nor a recording that is there.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::tests;

namespace fs = std::filesystem;

TEST_CASE("no command writes its output over what it reads, under whatever name") {
  const ScratchFolder folder;
  const std::string trace =
      scalar_trace(folder / "t.safetensors", {0.9, 0.3, 0.5, 0.8, 0.2, 0.7}, {0, 0, 0, 1, 1, 1}).string();
  const std::string link = (folder / "link").string(), hard = (folder / "hard").string();
  fs::create_symlink(trace, link);
  fs::create_hard_link(trace, hard);
  const std::string config = (folder / "c.toml").string();
  std::ofstream(config) << "[plan]\nalpha = \"0.8\"\nc = 0.05\n";
  const std::string before = content_of(trace), config_before = content_of(config);
  const std::string loses = ", but must not be an input: what it holds would be lost";

  for (const std::string& output : {trace, link, hard}) {
    for (const std::string& command :
         {"analyze " + trace, "trace info " + trace, "trace check " + trace, "doctor " + trace,
          "plan --c 0.05 --trace " + trace, "report --c 0.05 --trace " + trace,
          "simulate --source trace --trace " + trace, "compare --source trace --trace " + trace,
          "plot tokens-over-gamma --trace " + trace, "plan --draft a:trace=" + trace + ",c=0.1", "counters " + trace}) {
      CAPTURE(command);
      const Run run = run_specdec(command + " --output " + output);
      CHECK(run.exit_code == 2);
      if (!command.starts_with("counters")) CHECK(run.err == "specdec: error: --output is " + output + loses + '\n');
      CHECK(content_of(trace) == before);
    }
  }
  check_run_refused("plan --config " + config + " --output " + config, "--output is " + config + loses);
  CHECK(content_of(config) == config_before);
  check_run_refused("plan --c 0.05 --emit vllm --draft-model a/b --trace " + trace + " --emit-file " + trace,
                    "--emit-file is " + trace + loses);
  CHECK(content_of(trace) == before);

  // The files of a folder are known when it has been read.
  fs::create_directory(folder / "shards");
  const std::string shard = (folder / "shards/a.safetensors").string();
  fs::copy_file(trace, shard);
  check_run_refused("analyze " + (folder / "shards").string() + " --output " + shard, "--output is " + shard + loses);
  CHECK(content_of(shard) == before);
}

TEST_CASE("a recording that is there is not written over, nor called longer or shorter than it is") {
  const ScratchFolder folder;
  const std::string trace = scalar_trace(folder / "t.safetensors", {0.9, 0.3, 0.5}, {0, 0, 1}).string();
  const std::string there = (folder / "there.safetensors").string();
  std::ofstream(there) << "a recording";
  for (const std::string& command :
       {std::string("record --tier scalar --max-new-tokens 2 --sequences 1"), std::string("trace generate --tokens 5"),
        "trace slice --sequences 0:1 " + trace, "trace convert " + trace, "trace merge " + trace}) {
    CAPTURE(command);
    check_run_refused(command + " --output " + there, "--output is " + there +
                                                          ", which is there already, but must be a new file: what it "
                                                          "holds would be lost");
    CHECK(content_of(there) == "a recording");
  }

  const std::string record = "record --tier scalar --max-new-tokens 4 --output " + (folder / "run").string();
  CHECK(run_specdec(record + " --sequences 5").exit_code == 0);
  check_run_refused(record + " --sequences 3", "--sequences is 3, but must be at least 5, the texts that " +
                                                   (folder / "run").string() + " holds already");
  std::ofstream(folder / "t.csv") << "a,b\n";
  const Run file = run_specdec("record --output " + (folder / "t.csv").string());
  CHECK(file.exit_code == 2);
  CHECK(file.err.find("entry is a file, but must be a folder of shards, or have a name that ends in .safetensors") !=
        std::string::npos);
}

TEST_CASE("two outputs of a run are two files") {
  const ScratchFolder folder;
  const std::string one = (folder / "x").string(), again = (folder / "." / "x").string();
  const std::string trace = scalar_trace(folder / "t.safetensors", {0.9, 0.3, 0.5}, {0, 0, 1}).string();
  check_run_refused("plan --alpha 0.8 --c 0.1 --emit vllm --draft-model d --emit-file " + again + " --output " + one,
                    "--emit-file is " + again + ", but must be another file than --output's");
  check_run_refused("analyze " + trace + " --part " + one + " --output " + again,
                    "--part is " + one + ", but must be another file than --output's");
  CHECK_FALSE(fs::exists(one));
}

TEST_CASE("no control character of a file reaches a terminal") {
  const ScratchFolder folder;
  const std::string table = (folder / "runs.csv").string();
  const std::string model = "m\x1b]0;x\x07\xc2\x9b";
  std::ofstream(table) << "concurrency,gamma,tok/s,model,\x1b[31mred\n1,0,57," << model << ",1\n1,3,81," << model
                       << ",1\n";
  for (const char* command : {"plan --acceptance-length 3:2.5 --bench ", "doctor "}) {
    const Run run = run_specdec(command + table);
    const std::string shown = run.out + run.err;
    CHECK(shown.find_first_of("\x1b\x07") == std::string::npos);
    CHECK(shown.find("\xc2\x9b") == std::string::npos);
  }
}
