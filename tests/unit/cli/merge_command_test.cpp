#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/usage_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::document_of_run;
using specdec::tests::full_trace;
using specdec::tests::recorded_pair;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;
using specdec::tests::warns;

namespace {

std::string recording_in(const ScratchFolder& folder) {
  return full_trace(folder / "t.safetensors", recorded_pair(20, 120, 12, 3)).string();
}

/// Does all shares, each in its own run, and leaves the parts in a folder.
std::string parts_of(const ScratchFolder& folder, const std::string& recording, int of, const std::string& options) {
  const std::string parts = (folder / ("of" + std::to_string(of))).string();
  for (int i = 1; i <= of; ++i) {
    const Run run = run_specdec("analyze " + recording + " --shard " + std::to_string(i) + "/" + std::to_string(of) +
                                " --part " + parts + "/ " + options);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
  }
  return parts;
}

}  // namespace

TEST_CASE("a merge of shares prints what one run prints, in every format, when the recording is gone") {
  const ScratchFolder folder;
  const std::string recording = recording_in(folder);
  const std::string options = "--c 0.05 --gamma 1:6 --lenience 0.5";
  const ordered_json whole = document_of_run("analyze " + recording + " " + options);
  const Run text = run_specdec("analyze " + recording + " " + options);
  const Run csv = run_specdec("analyze " + recording + " " + options + " --format csv --table calibration");
  const std::string parts = parts_of(folder, recording, 3, options);
  std::filesystem::remove(recording);

  ordered_json merged = document_of_run("merge " + parts);
  CHECK(run_specdec("merge " + parts).out == text.out);
  CHECK(run_specdec("merge " + parts + " --format csv --table calibration").out == csv.out);
  CHECK(merged["inputs"]["parts"] == ordered_json::array({parts}));
  CHECK(merged["inputs"]["files"] == whole["inputs"]["files"]);
  for (const auto& [key, value] : whole["inputs"].items()) {
    INFO(key);
    CHECK(merged["inputs"][key] == value);
  }
  merged["inputs"] = whole["inputs"];
  CHECK((merged.dump() == whole.dump()));
}

TEST_CASE("a share says which it is, how much it holds and where it left it") {
  const ScratchFolder folder;
  const std::string recording = recording_in(folder);
  const std::string part = (folder / "mine.part").string();
  const ordered_json json = document_of_run("analyze " + recording + " --shard 2/3 --part " + part);
  CHECK(json["schema"] == "specdec.analyze.part/2");
  REQUIRE(json["parts"].size() == 1);
  CHECK(json["parts"][0]["shard"] == "2/3");
  CHECK(json["parts"][0]["sequences"] == 3);
  CHECK(json["parts"][0]["positions"] == 36);
  CHECK(json["parts"][0]["path"] == part);
  CHECK(json["parts"][0]["size_bytes"] == std::filesystem::file_size(part));
  const Run text = run_specdec("analyze " + recording + " --shard 2/3 --part " + part);
  CHECK(text.out == "2/3: 3 sequences, 36 positions, in " + part + "\n");
  CHECK(run_specdec("analyze " + recording + " --shard 2/3 --format csv --part " + part).out.find("shard,sequences") ==
        0);
}

TEST_CASE("a run that leaves a part without a share answers as well, and merge answers the same again") {
  const ScratchFolder folder;
  const std::string recording = recording_in(folder);
  const std::string part = (folder / "all.part").string();
  const Run run = run_specdec("analyze " + recording + " --c 0.1 --part " + part);
  CHECK(run.out == run_specdec("analyze " + recording + " --c 0.1").out);
  CHECK(run_specdec("merge " + part).out == run.out);
}

TEST_CASE("shares that say how they are to be done wrongly are refused, and nothing is left behind") {
  const ScratchFolder folder;
  const std::string recording = recording_in(folder);
  const std::string part = " --part " + (folder / "a.part").string();
  check_run_refused("analyze " + recording + " --shard 1/2",
                    "--shard is given, but needs --part beside it, where specdec merge finds what was found");
  check_run_refused("analyze " + recording + " --shard 3" + part, "--shard is 3, but must be I/N, for instance 3/8");
  check_run_refused("analyze " + recording + " --shard 0/2" + part,
                    "I in --shard is 0, but must be an integer in [1, 2]");
  check_run_refused("analyze " + recording + " --shard 3/2" + part,
                    "I in --shard is 3, but must be an integer in [1, 2]");
  check_run_refused("analyze " + recording + " --part " + recording,
                    "--part is " + recording + ", but must not be an input: what it holds would be lost");
  const std::string samples = specdec::tests::source_dir() + "/traces/samples/llamacpp/";
  const std::string draft = (folder / "draft.kld").string();
  std::filesystem::copy_file(samples + "draft.kld", draft);
  check_run_refused("analyze --force-replay --target " + samples + "target.kld --draft " + draft + " --part " + draft,
                    "--part is " + draft + ", but must not be an input: what it holds would be lost");
  std::filesystem::remove(draft);
  const std::filesystem::path pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  check_run_refused(
      "analyze " + recording + " --part " + pipe.string(),
      "--part is " + pipe.string() + ", but must be a file or a folder: a part is not written to a device or a pipe");
  CHECK(std::filesystem::is_fifo(pipe));
  std::filesystem::remove(pipe);
  check_run_refused("merge " + recording, recording +
                                              ": part is another kind of file, but must be a part, as specdec "
                                              "analyze --part writes it");
  CHECK(folder.files() == 1);
}

TEST_CASE("a folder of parts is of one recording, one question and one number of shares") {
  const ScratchFolder folder;
  const std::string recording = recording_in(folder);
  const std::string parts = parts_of(folder, recording, 2, "");
  const std::string share = " --part " + parts;
  check_run_refused("analyze " + recording + " --shard 1/3" + share,
                    "--part is " + parts + "/1-of-3.part, but must be where all parts are of 3 shards: " + parts +
                        "/1-of-2.part is 1/2");
  const std::string first = parts + "/1-of-2.part";
  check_run_refused("analyze " + recording + " --shard 2/2 --c 0.1" + share,
                    parts + "/2-of-2.part: --c is 0.1, but must be null, as " + first + " says");
  const std::string other = full_trace(folder / "other.safetensors", recorded_pair(20, 120, 12, 4)).string();
  check_run_refused("analyze " + other + " --shard 2/2" + share, parts + "/2-of-2.part: file 1 of the recording is " +
                                                                     other + ", but must be of the same content as " +
                                                                     recording + ", as " + first + " says");
  // Under names of their own parts of several recordings stand beside each other.
  CHECK(run_specdec("analyze " + other + " --part " + parts + "/other.part").exit_code == 0);
}

TEST_CASE("a part does not lie in the recording's own folder, which would then no longer be read") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "trace");
  full_trace(folder / "trace/shard-000000.safetensors", recorded_pair(20, 120, 12, 3));
  const std::string trace = (folder / "trace").string();
  for (const std::string& part : {trace, trace + "/a.part"}) {
    const Run run = run_specdec("analyze " + trace + " --part " + part);
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK(run.err.find("but must be elsewhere: " + trace + " is the recording") != std::string::npos);
  }
  CHECK(run_specdec("analyze " + trace + "").exit_code == 0);
}

TEST_CASE("parts that are missing or twice there are refused, unless some are enough") {
  const ScratchFolder folder;
  const std::string recording = recording_in(folder);
  const std::string parts = parts_of(folder, recording, 2, "");
  const std::string first = parts + "/1-of-2.part", second = parts + "/2-of-2.part";
  check_run_refused("merge " + second, "PART lacks the shards 1/2; --partial answers from the others");
  check_run_refused("merge " + first + " " + parts,
                    first + ": shard is 1/2 again, but must be each shard once; " + first + " is that one, too");
  const ordered_json some = document_of_run("merge --partial " + second);
  CHECK(some["partial"] == true);
  CHECK(some["sequences"] == 5);
  CHECK(warns(some, "parts_missing"));
}

TEST_CASE("what merge reads from a folder is not written over") {
  const ScratchFolder folder;
  const std::string parts = parts_of(folder, recording_in(folder), 2, "--c 0.1");
  const std::string part = parts + "/1-of-2.part";
  check_run_refused("merge " + parts + " --output " + part,
                    "--output is " + part + ", but must not be an input: what it holds would be lost");
  CHECK(run_specdec("merge " + parts).exit_code == 0);
}
