#include "cli/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/option_file.hpp"
#include "cli/usage_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::cli;
using nlohmann::ordered_json;
using specdec::tests::content_of;
using specdec::tests::Run;
using specdec::tests::ScratchFolder;
using Values = std::vector<std::vector<std::string>>;

namespace {

/// Sends what is written to one of the process's streams to a file while it lives.
class Redirection {
 public:
  Redirection(std::FILE* stream, const std::string& file) : stream_(stream), kept_(dup(fileno(stream))) {
    std::fflush(stream_);
    const int target = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(target, fileno(stream_));
    close(target);
  }
  ~Redirection() {
    std::fflush(stream_);
    dup2(kept_, fileno(stream_));
    close(kept_);
  }
  Redirection(const Redirection&) = delete;
  Redirection& operator=(const Redirection&) = delete;

 private:
  std::FILE* stream_;
  int kept_;
};

struct BoxOptions {
  std::string lid;
  std::vector<std::string> items;
  std::int64_t depth = 3;
  std::string output = "box";
};

std::function<Report()> set_up_packing(Options& options) {
  const auto values = std::make_shared<BoxOptions>();
  options.argument("LID", values->lid, "what lies on top");
  options.arguments("ITEM", values->items, "what lies below");
  options.integer("--depth", values->depth, {.lo = 1}, "layers");
  options.text("--output", values->output, "BOX", "the box");
  return [values] {
    Report report;
    report.spoken.note = "packed";
    return report;
  };
}

std::function<Report()> set_up_emptying(Options& options) {
  const auto values = std::make_shared<std::vector<std::string>>();
  options.arguments("ITEM", *values, "what lies below", Options::Least::none);
  return [values] { return Report{}; };
}

Run run_boxes(std::vector<const char*> words) {
  const ScratchFolder scratch;
  words.insert(words.begin(), "specdec");
  const std::vector<Command> commands = {{"sweep", "Sweeps.", {{"rows", "/rows"}}, set_up_emptying},
                                         {"box pack", "Packs.", {{"rows", "/rows"}}, set_up_packing, true},
                                         {"box empty", "Empties.", {{"rows", "/rows"}}, set_up_emptying}};
  Run run{};
  {
    const Redirection out(stdout, (scratch / "out").string());
    const Redirection err(stderr, (scratch / "err").string());
    run.exit_code =
        run_command_line({{"box", "Works on boxes."}}, commands, static_cast<int>(words.size()), words.data());
  }
  run.out = content_of(scratch / "out");
  run.err = content_of(scratch / "err");
  return run;
}

void check_refused(const std::vector<const char*>& words, const std::string& message) {
  const Run run = run_boxes(words);
  CHECK(run.exit_code == 2);
  CHECK(run.err == "specdec: error: " + message + "\n");
  CHECK(run.out.empty());
}

ordered_json json_of(std::vector<const char*> words) {
  words.insert(words.end(), {"--format", "json"});
  const Run run = run_boxes(words);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return ordered_json::parse(run.out);
}

}  // namespace

TEST_CASE("a command of a group is named by two words, and its schema by both") {
  const ordered_json found = json_of({"box", "pack", "lid", "a"});
  CHECK(found["schema"] == "specdec.box.pack/2");
}

TEST_CASE("arguments without a name stand in the inputs, before or after the options") {
  const ordered_json found = json_of({"box", "pack", "--depth", "2", "lid", "a", "--quiet", "b", "pack", "box"});
  CHECK(found["inputs"]["lid"] == "lid");
  CHECK(found["inputs"]["items"] == ordered_json({"a", "b", "pack", "box"}));
  CHECK(found["inputs"]["depth"] == 2);
  CHECK(found["inputs"]["quiet"] == true);
}

TEST_CASE("a command may use --output for itself, and its report then goes to standard output") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "box").string();
  CHECK(json_of({"box", "pack", "lid", "a", "--output", file.c_str()})["inputs"]["output"] == file);
  CHECK(scratch.files() == 0);
}

TEST_CASE("arguments that may be missing are an empty list") {
  CHECK(json_of({"box", "empty"})["inputs"]["items"] == ordered_json::array());
}

TEST_CASE("a missing argument is named") {
  check_refused({"box", "pack"}, "LID is missing; see specdec box pack --help");
  check_refused({"box", "pack", "lid"}, "ITEM is missing; see specdec box pack --help");
  check_refused({"box", "pack", "--depht", "2"},
                "--depht is not an option of box pack (near it: --depth); see specdec box pack --help");
}

TEST_CASE("complaints about the command of a group name the group") {
  check_refused({"box"}, "no command of box given, but one of pack, empty is needed; see specdec box --help");
  check_refused(
      {"box", "pakc"},
      "pakc is not a command of box (near it: pack), but one of pack, empty is needed; see specdec box --help");
  check_refused(
      {"bxo", "pack"},
      "bxo is not a command (near it: box), but one of sweep, box, tune, help, completion is needed; see specdec --help");
  check_refused({"box", "pack", "lid", "a", "--bogus"},
                "--bogus is not an option of box pack; see specdec box pack --help");
}

TEST_CASE("the options of a command in a group and its arguments go to a configuration file and back") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "boxes.toml").string();
  const Run printed = run_boxes({"box", "pack", "lid", "a", "--depth", "7", "--print-config"});
  CHECK(printed.exit_code == 0);
  CHECK(printed.out.starts_with("[box.pack]\n"));
  std::ofstream(file) << printed.out;
  const ordered_json inputs = json_of({"box", "pack", "--config", file.c_str()})["inputs"];
  CHECK(inputs["depth"] == 7);
  CHECK(inputs["lid"] == "lid");
  CHECK(inputs["items"] == ordered_json({"a"}));
  CHECK(json_of({"box", "pack", "top", "b", "c", "--config", file.c_str()})["inputs"]["items"] ==
        ordered_json({"b", "c"}));
  std::ofstream(file) << "[box.pakc]\ndepth = 7\n";
  check_refused({"box", "pack", "lid", "a", "--config", file.c_str()}, file + ":1: box.pakc is not a command");
  std::ofstream(file) << "quiet = true\n[box.pack]\nLID = 7\n";
  check_refused({"box", "pack", "lid", "a", "--config", file.c_str()},
                file + ":1: quiet stands above all sections, but must stand in that of a command, such as [plan]");
}

TEST_CASE("a file's options have the lines in which they begin, behind lists over several lines too") {
  const std::vector<FileSection> sections = option_sections(
      "f", "; c\nseed=1\n[plan]\ndraft = [\n  'a',\n  'b']\nbatch = [1,\n  8]\n\"c\" = 0.1\n[default]\nquiet # q");
  REQUIRE(sections.size() == 3);
  CHECK(sections[0].options.at(0).line == 2);
  CHECK(sections[1].name == "plan");
  CHECK(sections[1].line == 3);
  const std::vector<std::pair<std::string, int>> expected = {{"draft", 4}, {"batch", 7}, {"c", 9}};
  REQUIRE(sections[1].options.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(sections[1].options[i].name == expected[i].first);
    CHECK(sections[1].options[i].line == expected[i].second);
  }
  CHECK(sections[2].name.empty());
  CHECK(sections[2].options.at(0).line == 11);
  CHECK(sections[2].options.at(0).values == Values{{"true"}});
}

TEST_CASE("values in a file of options stand in quotes, or not, and in lists") {
  const auto values = [](const std::string& text) {
    return option_sections("f", "[plan]\n" + text).at(0).options.at(0).values;
  };
  CHECK(values("trace = [\"a, b\", 'c'] # two") == Values{{"a, b"}, {"c"}});
  CHECK(values("draft = [\n  \"a#\",  # first\n  \"b\",\n]\nc = 0.1\n") == Values{{"a#"}, {"b"}});
  CHECK(values("counters = [[a, 'b'], [c]]") == Values{{"a", "b"}, {"c"}});
  CHECK(values("model = a b # c") == Values{{"a b"}});
  CHECK(values("model = \"\\\"a\\b\\\\\"") == Values{{"\"a\\b\\"}});
  CHECK(values("model = '\\\\'") == Values{{"\\\\"}});
  for (const char* other :
       {"draft = [\"a\", \n", "draft = [\"a\" 3]\n", "draft = \"a\nb\"\n", "c =\n", "= 3\n", "[a\n"})
    CHECK_THROWS_AS(values(other), UsageError);
}

TEST_CASE(
    "a list in a configuration file is several values of an option that takes several, and else one with commas") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "plan.toml").string();
  std::ofstream(file) << "[plan]\ndraft = [\"a:alpha=0.8,c=0.1\", \"b:alpha=0.7,c=0.05\"]\nbatch = [1, 8]\n";
  const ordered_json plan = specdec::tests::document_of_run("plan --config " + file);
  CHECK(plan["inputs"]["draft"].size() == 2);
  CHECK(plan["drafts"].size() == 2);
}
