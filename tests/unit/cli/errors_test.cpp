#include <fstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using specdec::tests::check_run_refused;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;

TEST_CASE("a missing, unknown or second command is refused") {
  check_run_refused(
      "--quiet",
      "no command given, but one of plan, report, capacity, sweep, analyze, merge, counters, doctor, diff, "
      "synthetic, record, trace, list, simulate, compare, reproduce, validate, plot, tune, help, completion is "
      "needed; see "
      "specdec --help");
  check_run_refused("plam",
                    "plam is not a command (near it: plan), but one of plan, report, capacity, sweep, analyze, merge, "
                    "counters, doctor, "
                    "diff, synthetic, record, trace, list, "
                    "simulate, compare, reproduce, validate, plot, tune, help, completion "
                    "is needed; see "
                    "specdec --help");
  check_run_refused("--plan", "--plan is not an option of specdec (near it: plan); see specdec --help");
  check_run_refused("plan reproduce", "reproduce is not an option of plan; see specdec plan --help");
}

TEST_CASE("unknown, repeated and valueless options are refused") {
  const std::string log = specdec::tests::source_dir() + "/traces/samples/serving/vllm_k4.log";
  check_run_refused("plan " + log, log + " is not an option of plan; timed runs are --bench " + log +
                                       ", counts without times --counters " + log + "; see specdec plan --help");
  check_run_refused("plan --alhpa 0.8", "--alhpa is not an option of plan (near it: --alpha); see specdec plan --help");
  check_run_refused("plan --alpha 0.8 --c 0.1 more", "more is not an option of plan; see specdec plan --help");
  check_run_refused("plan --alpha", "--alpha must be given exactly one value, once");
  check_run_refused("plan --alpha 0.8 --alpha 0.7 --c 0.1", "--alpha must be given exactly one value, once");
  check_run_refused("plan --alpha 0.8 --c 0.1 --quiet=loud", "--quiet takes no value");
}

TEST_CASE("plan refuses values outside their range and says the range") {
  check_run_refused("plan --alpha 1.2 --c 0.1", "--alpha is 1.2, but must be a number in [0, 1]");
  check_run_refused("plan --alpha 80 --c 0.1", "--alpha is 80, but must be a number in [0, 1]: 0.8");
  check_run_refused("plan --alpha 80% --c 0.1", "--alpha is 80%, but must be a number in [0, 1]: 0.8");
  check_run_refused("plan --alpha -0.1 --c 0.1", "--alpha is -0.1, but must be a number in [0, 1]");
  check_run_refused("plan --alpha nan --c 0.1", "--alpha is nan, but must be a number in [0, 1]");
  check_run_refused("plan --alpha 0.8x --c 0.1", "--alpha is 0.8x, but must be a number in [0, 1]");
  check_run_refused("plan --alpha '' --c 0.1", "--alpha is empty, but must be a number in [0, 1]");
  check_run_refused("plan --alpha 0.8:0.7 --c 0.1",
                    "--alpha is 0.8:0.7, but must be a number in [0, 1] or LOW:HIGH with LOW <= HIGH");
  check_run_refused("plan --alpha 0.1:0.2:0.3 --c 0.1",
                    "--alpha is 0.1:0.2:0.3, but must be a number in [0, 1] or LOW:HIGH with LOW <= HIGH");
  check_run_refused("plan --rejection 2 --c 0.1", "--rejection is 2, but must be a number in [0, 1]");
  check_run_refused("plan --alpha 0.8 --c -1", "--c is -1, but must be a number in [0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c inf", "--c is inf, but must be a number in [0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c 1e999", "--c is 1e999, but must be a number in [0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --c-hat -2", "--c-hat is -2, but must be a number in [0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --overhead -2",
                    "--overhead is -2, but must be a number in [0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --gamma 1.5",
                    "--gamma is 1.5, but must be an integer in [0, 9007199254740992]");
  check_run_refused("plan --alpha 0.8 --c 0.1 -k -1", "--gamma is -1, but must be an integer in [0, 9007199254740992]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --num-speculative-tokens x",
                    "--num-speculative-tokens is x, but must be an integer in [0, 9007199254740992]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --max-gamma 0",
                    "--max-gamma is 0, but must be an integer in [1, 100000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --gamma 9 --max-gamma 8",
                    "--gamma is 9, but must be at most --max-gamma, 8");
  check_run_refused("plan --alpha 0.8 --c 0.1 --tokens 0", "--tokens is 0, but must be an integer in [1, 1000000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --gamma 3 --max-regret 2",
                    "--max-regret is 2, but must be a number in [0, 1]");
}

TEST_CASE("plan refuses options that do not go together") {
  check_run_refused("plan --c 0.1",
                    "the acceptance is missing: --acceptance-length L --at G of a server's log; or --acceptance-rate, "
                    "--counters, --bench, --trace, --alpha, --acceptance-per-position, --published, --draft, or "
                    "--draft-model with --hardware");
  check_run_refused("plan --published ende-t5-small --c 0.02",
                    "--published is ende-t5-small, but must be a name of `specdec list published` (near it: "
                    "ende-t5-small-t0, ende-t5-small-t1, ende-t5-small-t1-l0.5)");
  check_run_refused("plan --published ende-t5-small-t0 --alpha 0.8 --c 0.02",
                    "--alpha and --published are given, but must be one");
  check_run_refused("plan --alpha 0.8 --rejection 0.2 --c 0.1", "--alpha and --rejection are given, but must be one");
  check_run_refused("plan --alpha 0.8",
                    "--c is missing: draft step time / target step time, typically 0.02 to 0.1; or --hardware, --cost or --bench");
  check_run_refused("plan --alpha 0.8 --c 0.1 --at 3",
                    "--at is given, but goes with --acceptance-length, --acceptance-rate, --counters, --bench or a log of "
                    "--cost only");
  check_run_refused("plan --alpha 0.8 --c 0.1 --conditional",
                    "--conditional is given, but goes with --acceptance-per-position only");
  check_run_refused("plan --alpha 0.8 --c 0.1 --max-regret 0.1",
                    "--max-regret is given, but needs --gamma, the gamma in use");
}

TEST_CASE("plan refuses acceptance lengths that no step can have and names both conventions") {
  const std::string conventions =
      " tokens per step, the bonus token included (accepted drafts alone are one less, in [0, 3])";
  check_run_refused("plan --acceptance-length 4.2 --at 3 --c 0.1",
                    "--acceptance-length is 4.2, but must be in [1, 4] at gamma 3:" + conventions);
  check_run_refused("plan --acceptance-length 0.92 --at 3 --c 0.1",
                    "--acceptance-length is 0.92, but must be in [1, 4] at gamma 3:" + conventions);
  check_run_refused("plan --acceptance-length 1:1.5,3:4.5 --c 0.1",
                    "--acceptance-length is 4.5, but must be in [1, 4] at gamma 3:" + conventions);
  check_run_refused("plan --acceptance-length x --at 3 --c 0.1",
                    "--acceptance-length is x, but must be a number in [0, 1000000000]");
  check_run_refused("plan --acceptance-length 2.92 --c 0.1",
                    "--acceptance-length is 2.92, but needs --at, the gamma it was measured at");
  check_run_refused("plan --acceptance-length 2.92 --at 3 --c 0.1 --rounds 0",
                    "--rounds is 0, but must be a number in [1, 1000000000000000]");
  check_run_refused("plan --acceptance-length 1:1.5 --at 3 --c 0.1",
                    "--at is 3, but --acceptance-length already names its gammas");
  check_run_refused("plan --acceptance-length 1:1.5,2 --c 0.1",
                    "--acceptance-length is 1:1.5,2, but must be LENGTH or GAMMA:LENGTH,GAMMA:LENGTH,...");
  check_run_refused("plan --acceptance-length 2:1.5,2:1.6 --c 0.1",
                    "--acceptance-length: gamma 2 follows 2, but gammas must rise");
  check_run_refused("plan --acceptance-length 2:1.5,1:1.4 --c 0.1",
                    "--acceptance-length: gamma 1 follows 2, but gammas must rise");
}

TEST_CASE("plan refuses lists with a wrong entry and names it") {
  check_run_refused("plan --acceptance-per-position 0.5,1.1 --c 0.1",
                    "--acceptance-per-position is 1.1, but must be a number in [0, 1]");
  check_run_refused("plan --acceptance-per-position 0.5,,0.1 --c 0.1",
                    "--acceptance-per-position is empty, but must be a number in [0, 1]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --verify-factor 0",
                    "--verify-factor is 0, but must be a number in (0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --verify-factor 2:1.1,x",
                    "--verify-factor is x, but must be TOKENS:FACTOR");
  check_run_refused("plan --alpha 0.8 --c 0.1 --verify-factor 2:-1",
                    "--verify-factor is -1, but must be a number in (0, 1000000000]");
  check_run_refused("plan --alpha 0.8 --c 0.1 --verify-factor 5:1.1,3:1",
                    "--verify-factor is 5:1.1,3:1, but must be a list with rising numbers of tokens: 3 follows 5");
  check_run_refused("plan --alpha 0.8 --c 0.1 --verify-factor 2:5,3:1",
                    "--verify-factor is 2:5,3:1, but must be a list in which no factor is less than half of the one "
                    "before it");
  CHECK(run_specdec("plan --alpha 0.8 --hardware /proc/self/mem --model llama-3.1-8b").exit_code == 2);
  check_run_refused("plan --alpha 0.8 --c 0.1 --" + std::string(300, 'x'),
                    "--" + std::string(78, 'x') + "... is not an option of plan; see specdec plan --help");
  check_run_refused("plan --alpha 0.8 --c 0.1 --verify-factor 1:1,1:1",
                    "--verify-factor is 1:1,1:1, but must be a list with rising numbers of tokens: 1 follows 1");
  check_run_refused("plan --acceptance-length '' --at 3 --c 0.1",
                    "--acceptance-length is empty, but must be LENGTH, a number >= 1, or GAMMA:LENGTH,...");
  check_run_refused("plan --acceptance-length 1:1.8, --c 0.1",
                    "--acceptance-length is 1:1.8,, but must be LENGTH or GAMMA:LENGTH,GAMMA:LENGTH,...");
}

TEST_CASE("output options are checked before anything is computed") {
  check_run_refused("reproduce --format xml", "--format is xml, but must be one of table, json, csv");
  check_run_refused(
      "reproduce --table figure1",
      "--table is figure1, but must be one of table1, table4, bigram, lenience_stochastic, lenience_argmax, table2");
  check_run_refused("reproduce --output /nonexistent/file",
                    "--output is /nonexistent/file, but must be a file in an existing directory");
  check_run_refused("reproduce --output /tmp", "--output is /tmp, but must be a file, not a directory");
  check_run_refused("reproduce --output ''", "--output is empty, but must be a file, not a directory");
}

TEST_CASE("a number too large or too small to compute with names its option, and the range") {
  check_run_refused("plan --alpha 0.8 --c 1e308", "--c is 1e308, but must be a number in [0, 1000000000]");
  check_run_refused("plan --alpha 1e-320 --c 0.1",
                    "--alpha is 1e-320, but must be a number in [0, 1] of 2.3e-308 or more, or 0");
  check_run_refused("simulate --source synthetic --verifier lenient --lenience 1e-320",
                    "--lenience is 1e-320, but must be a number in (0, 1] of 2.3e-308 or more");
  const std::string priced = "plan --alpha 0.8 --hardware h100-sxm --model llama-3.1-8b --draft-model llama-3.2-1b ";
  check_run_refused(priced + "--launch-seconds 1e308",
                    "--launch-seconds is 1e308, but must be a number in [0, 1000000000]");
  check_run_refused(priced + "--bandwidth-efficiency 1e-310:0.5",
                    "--bandwidth-efficiency is 1e-310, but must be a number in [1e-06, 1]");
  // Limits that only the law of a whole recording knows.
  const ScratchFolder scratch;
  const std::string output = " --output " + (scratch / "t.safetensors").string();
  check_run_refused("trace generate --law dirichlet --concentration 0" + output,
                    "--concentration is 0, but must be a number in [1e-06, 1000000000] for --law dirichlet");
  const Run least = run_specdec("trace generate --law dirichlet --alpha 0" + output);
  CHECK(least.exit_code == 2);
  CHECK(least.err.starts_with("specdec: error: --alpha is 0, but must be in [0."));
}

TEST_CASE("a value given by another name of its option is refused by that name") {
  check_run_refused("counters t --at 0", "--at is 0, but must be an integer in [1, 1000]");
  check_run_refused("counters t --num-speculative-tokens=0",
                    "--num-speculative-tokens is 0, but must be an integer in [1, 1000]");
  check_run_refused("counters t --gamma 0", "--gamma is 0, but must be an integer in [1, 1000]");
  check_run_refused("counters t -k 0", "--gamma is 0, but must be an integer in [1, 1000]");
}

TEST_CASE("what is named twice in a list is refused") {
  const std::string recording = specdec::tests::source_dir() + "/sim/models/recording.safetensors";
  check_run_refused("analyze " + recording + " --lenience 0.5,0.5",
                    "--lenience is 0.5,0.5, but must be a list of different entries separated by commas");
  check_run_refused(
      "analyze " + recording + " --standardise temperature=0.7,temperature=0.8",
      "--standardise is temperature=0.7,temperature=0.8, but must be each key once; temperature is there twice");
  check_run_refused("trace generate --output t.safetensors --tasks a:0.5,a:0.6",
                    "--tasks is a:0.5,a:0.6, but must be each task once; a is there twice");
}

TEST_CASE("a trace is not written to standard output, and holds no more tokens of a list than there are") {
  for (const char* command : {"record", "trace generate"}) {
    check_run_refused(std::string(command) + " --output -",
                      "--output is -, but must be a file or folder: a trace is not written to standard output");
  }
  const ScratchFolder scratch;
  check_run_refused("record --tier topk --k 99999 --output " + (scratch / "t").string(),
                    "--k is 99999, but must be at most the vocabulary's size, 2048");
}

TEST_CASE("an option that has no effect beside the others is refused, with what it goes with") {
  const std::string recording = specdec::tests::source_dir() + "/sim/models/recording.safetensors";
  check_run_refused("plan --alpha 0.8 --c 0.1 --table rows",
                    "--table is given, but goes with --format csv only, not with table");
  check_run_refused("plan --alpha 0.8 --c 0.1 --model llama",
                    "--model is given, but goes with a deployment: --batch, files, --hardware or --emit");
  const std::string placed = " --alpha 0.8 --hardware h100-sxm --model llama-3.1-8b --draft-model llama-3.2-1b ";
  const ScratchFolder folder;
  const std::string sweep = (folder / "sweep.toml").string();
  std::ofstream(sweep) << "[plan]\nalpha = [0.6, 0.8]\nc = 0.1\n";
  check_run_refused("sweep --config " + sweep,
                    "FILE is missing (without --config: specdec sweep " + sweep + "); see specdec sweep --help");
  // One of a sweep over --tensor-parallel-size.
  CHECK(run_specdec("plan" + placed + "--tp 1 --link-efficiency 0.5").exit_code == 0);
  check_run_refused("capacity" + placed + "--prompt-tokens 9 --output-tokens 9 --percentile 95",
                    "--percentile is given, but needs a limit beside it, --ttft-ms or --tpot-ms");
  check_run_refused("capacity" + placed + "--prompt-tokens 9 --output-tokens 9 --acceptance greedy-draft",
                    "--acceptance is given, but goes with --trace only");
  check_run_refused(
      "analyze --numbers logits " + recording,
      "--numbers is given, but goes with NPY pair, NPZ, JSONL of token pairs, CSV of token pairs only, and "
      "the recording is specdec-trace");
  const ScratchFolder scratch;
  const std::string file = (scratch / "t.safetensors").string();
  check_run_refused("trace generate --k 3 --output " + file, "--k is given, but goes with --tier topk only");
  check_run_refused("trace convert --shard-positions 3 --output " + file + " " + recording,
                    "--shard-positions is given, but --output " + file + " is one file; a folder has shards");
  CHECK(scratch.files() == 0);
}

TEST_CASE("a refused run leaves no output file and does not touch the one that is there") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "plan.json").string();
  check_run_refused("plan --alpha 2 --c 0.1 --output " + file, "--alpha is 2, but must be a number in [0, 1]");
  CHECK(scratch.files() == 0);
  std::ofstream(file) << "earlier";
  check_run_refused("plan --alpha 2 --c 0.1 --output " + file, "--alpha is 2, but must be a number in [0, 1]");
  CHECK(specdec::tests::content_of(file) == "earlier");
  CHECK(scratch.files() == 1);
}

TEST_CASE("a complaint stays one short line whatever the value holds") {
  check_run_refused("plan --alpha 'a\nb\033' --c 0.1", "--alpha is a\\nb\\x1b, but must be a number in [0, 1]");
  check_run_refused("plan --c 0.1 --alpha " + std::string(100, '7'),
                    "--alpha is " + std::string(60, '7') + "..., but must be a number in [0, 1]");
}

TEST_CASE("a full disk is an error, not a silent loss") {
  const Run run = run_specdec("plan --alpha 0.8 --c 0.1 --output /dev/full");
  CHECK(run.exit_code == 2);
  CHECK(run.err == "specdec: error: --output: /dev/full cannot be written: No space left on device\n");
}

TEST_CASE("complaints about a configuration file name the file, the line and the key") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "specdec.toml").string();
  const auto check_config = [&](const std::string& content, const std::string& message,
                                const std::string& options = "") {
    std::ofstream(file) << content;
    check_run_refused("plan --config " + file + options, file + message);
  };
  check_config("[plan]\nalhpa = 0.8\n", ":2: plan.alhpa is not an option of a command (near it: alpha)");
  check_config("[plam]\nalpha = 0.8\n", ":1: plam is not a command");
  check_config("alpha = 0.8\n", ":1: alpha is not an option of a command");
  check_config("# plan\n[plan]\nc = 0.1\nalpha = 1.8\n", ":4: --alpha is 1.8, but must be a number in [0, 1]");
  check_config("[plan]\nalpha = 0.8\nc = 0.1\nmax-gamma = x\n",
               ":4: --max-gamma is x, but must be an integer in [1, 100000]");
  check_config("[plan]\nalpha = 0.8\nc = 0.1\ndraft-cost = x.csv\n",
               ":4: --draft-cost is given, but needs --cost beside it");
  check_config("[plan]\nalpha = 0.8\nalpha = 0.7\nc = 0.1\n", ":2: --alpha must be given exactly one value, once");
  // Mistakes that CLI11 passes over in silence.
  check_config("[plan]\nalpha = 0.8\nc = 0.1\n[plan]\nalpha = 0.7\n",
               ":4: plan has a section in line 1 already: its options stand in one");
  check_config("[plan]\nalpha = 0.8\nc = 0.1\nalpha = 0.7\n",
               ":4: plan.alpha is given in line 2 already: several values stand one below the other, or in a list");
  check_config("[plan]\nalpha = 0.8\nc = 0.1\nk = 3\ngamma = 4\n",
               ":5: plan.gamma is given in line 4 already: several values stand one below the other, or in a list");
  check_config("[report]\nmax-gamma = 0\n", ":2: --max-gamma is 0, but must be an integer in [1, 100000]",
               " --alpha 0.8 --c 0.1");
  std::ofstream(file) << "[plan]\nalpha = 0.8\nc = 0.1\n";
  check_run_refused("plan --alpha 1.8 --config " + file, "--alpha is 1.8, but must be a number in [0, 1]");
  std::ofstream(file) << "\xff\xfe";
  check_run_refused("plan --alpha 0.8 --c 0.1 --config " + file,
                    file + ":1: begins with \"\\xff\\xfe\", but must be UTF-8");
  check_run_refused("plan --config /nonexistent.toml",
                    "--config /nonexistent.toml cannot be read: No such file or directory");
  check_run_refused("plan --config /etc", "--config /etc cannot be read: it is no file");
}
