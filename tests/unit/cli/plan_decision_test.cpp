#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::document_of_run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;

namespace {

const std::string samples = specdec::tests::source_dir() + "/traces/samples/bench/";

ordered_json json_of(const std::string& options) { return document_of_run("plan " + options, 0); }

std::string table_in(const ScratchFolder& scratch, const std::string& rows) {
  const std::string file = (scratch / "runs.csv").string();
  std::ofstream(file) << rows;
  return file;
}

ordered_json row_of(const ordered_json& plan, int gamma) {
  for (const ordered_json& row : plan["points"][0]["rows"])
    if (row["gamma"] == gamma) return row;
  return {};
}

/// The first two lines of the text, wrapped ones joined.
std::string opening_of(const std::string& options) {
  const std::string text = run_specdec("plan " + options).out;
  std::string opening = text.substr(0, text.find("\n\n"));
  std::replace(opening.begin(), opening.end(), '\n', ' ');
  return opening;
}

std::string without_breaks(std::string text) {
  std::string joined;
  std::istringstream words(text);
  for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

}  // namespace

TEST_CASE("the JSON output of a plan begins with its decision, and every part of the answer agrees with it") {
  for (const std::string& options :
       {std::string("--alpha 0.8 --c 0.05"), std::string("--acceptance-length 2.92 --at 3 --c 0.04 --gamma 3"),
        std::string("--alpha 0.7:0.8 --hardware h200 --model llama-3.1-70b --draft-model llama-3.2-1b --batch 1,8,64"),
        "--bench " + samples + "runs.csv"}) {
    INFO(options);
    const ordered_json plan = json_of(options);
    const ordered_json& decision = plan["decision"];
    for (const ordered_json& point : plan["points"]) {
      const double batch = std::max(1.0, std::round(point["batch"].get<double>()));
      for (const ordered_json& one : decision["schedule"])
        if (one["from"] <= batch && batch <= one["to"]) CHECK(one["gamma"] == point["gamma"]);
    }
    if (!decision["gamma"].is_null())
      for (const ordered_json& point : plan["points"]) CHECK(point["gamma"] == decision["gamma"]);
    const std::string opening = without_breaks(opening_of(options));
    for (const ordered_json& line : decision["text"])
      CHECK(opening.find(without_breaks(line.get<std::string>())) != std::string::npos);
  }
}

TEST_CASE("stated rates and costs are one world: the paper's optimum, surely") {
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05");
  CHECK(plan["decision"]["gamma"] == 8);
  CHECK(plan["decision"]["verdict"] == "sure");
  CHECK(plan["decision"]["speedup"]["value"].get<double>() == Approx(3.09207954286).epsilon(1e-11));
  CHECK(plan["decision"]["speedup"]["ci95"].is_null());
  CHECK(plan["closed_form"]["best_gamma"] == 8);
  // Where verifying costs 1.2 and 1.4 plain steps, the gamma that would be best, and its speedup.
  REQUIRE(plan["assumed_verification"].size() == 2);
  const ordered_json& assumed = plan["assumed_verification"][1];
  const ordered_json same = json_of("--alpha 0.8 --c 0.05 --verify-factor 1.4");
  CHECK(assumed["gamma"] == same["decision"]["gamma"]);
  CHECK(assumed["speedup"].get<double>() ==
        Approx(same["decision"]["speedup"]["value"].get<double>()).epsilon(1e-12));
}

TEST_CASE("a typed length recommends longer drafts than it was measured at where drafts of its kind gain") {
  const ordered_json plan = json_of("--acceptance-length 2.92 --at 3 --c 0.04");
  CHECK(plan["decision"]["gamma"].get<int>() >= 5);
  CHECK(plan["decision"]["gamma"].get<int>() <= 6);
  CHECK(row_of(plan, 3)["tokens_per_step"]["value"].get<double>() == Approx(2.92).epsilon(0.002));
}

TEST_CASE("a timed plain run and a timed run with drafts are an answer, with a length and without") {
  const std::string reports = specdec::tests::source_dir() + "/tests/unit/cli/reports/";
  const ordered_json without = json_of("--bench " + reports + "c_nolen.csv");
  const ordered_json row = row_of(without, 2);
  CHECK(row["speedup"]["value"].get<double>() == Approx(29.39 / 22.92).epsilon(0.01));
  CHECK(row["speedup"]["ci95"][0].get<double>() > 1.15);
  CHECK(row["share"].get<double>() >= 0.95);
  CHECK_FALSE(without["decision"]["gamma"].is_null());
  const ordered_json with = json_of("--bench " + reports + "c_len.csv");
  CHECK(row_of(with, 2)["speedup"]["value"].get<double>() == Approx(29.39 / 22.92).epsilon(0.01));
  CHECK(row_of(with, 2)["share"].get<double>() >= 0.95);
  // Typed beside the runs or standing in their table, a length is the same fact.
  const ordered_json typed = json_of("--bench " + reports + "c_nolen.csv --acceptance-length 2.63 --at 2");
  CHECK(typed["points"] == with["points"]);
  CHECK(typed["decision"]["gamma"] == with["decision"]["gamma"]);
}

TEST_CASE("a sweep of gammas without lengths recommends the best of them") {
  const ScratchFolder scratch;
  const std::string table = table_in(scratch,
                                     "concurrency,gamma,output_tokens_per_second\n1,0,50\n1,1,71\n1,2,83\n1,3,90\n"
                                     "1,4,88\n1,5,83\n1,6,77\n");
  const ordered_json plan = json_of("--bench " + table);
  CHECK(plan["decision"]["gamma"] == 3);
  CHECK(plan["decision"]["verdict"] == "sure");
}

TEST_CASE("drafts that lose are not recommended, and how sure that is, is said") {
  const std::string reports = specdec::tests::source_dir() + "/tests/unit/cli/reports/";
  const ordered_json plan = json_of("--bench " + reports + "f_runs.csv");
  CHECK(plan["decision"]["gamma"] == 0);
  CHECK(plan["decision"]["verdict"] == "no");
}

TEST_CASE("there is always a recommendation and a word for how sure it is") {
  for (const std::string& options :
       {std::string("--alpha 0.05:0.6 --c 0.2"), std::string("--acceptance-length 1.3 --at 3 --c 0.1"),
        "--bench " + samples + "runs.csv --batch 1,4,512"}) {
    INFO(options);
    const ordered_json plan = json_of(options);
    for (const ordered_json& point : plan["points"]) {
      CHECK_FALSE(point["gamma"].is_null());
      const std::string verdict = point["verdict"];
      CHECK((verdict == "sure" || verdict == "likely" || verdict == "open" || verdict == "unlikely" || verdict == "no"));
    }
  }
}

TEST_CASE("the gamma in use has a share of its own") {
  const ordered_json plan = json_of("--acceptance-length 2.92 --at 3 --c 0.02 --gamma 1");
  CHECK(plan["decision"]["over"]["gamma"] == 1);
  CHECK(plan["decision"]["over"]["share"].get<double>() > 0.95);
  CHECK(json_of("--alpha 0.8 --c 0.05")["decision"]["over"].is_null());
}

TEST_CASE("what is emitted is the schedule that is shown") {
  const ordered_json plan = json_of("--bench " + samples + "runs.csv --emit vllm --max-num-seqs 64");
  const auto text = ordered_json::parse(plan["config"]["text"].get<std::string>());
  CHECK(plan["decision"]["schedule"].size() == 1);
  CHECK(text["num_speculative_tokens"] == plan["decision"]["schedule"][0]["gamma"]);
  CHECK_FALSE(text.contains("num_speculative_tokens_per_batch_size"));
}

TEST_CASE("the answer fits on a screen, and --explain has the rest") {
  const std::string options = "--bench " + samples + "runs.csv";
  const std::string brief = run_specdec("plan " + options).out, full = run_specdec("plan " + options + " --explain").out;
  CHECK(std::count(brief.begin(), brief.end(), '\n') <= 22);
  CHECK(full.size() > 2 * brief.size());
  CHECK(full.substr(0, full.find("\n\n")) == brief.substr(0, brief.find("\n\n")));
  CHECK(full.find("Assumptions:") != std::string::npos);
}
