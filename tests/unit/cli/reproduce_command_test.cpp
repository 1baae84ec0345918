#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/planning/published_acceptance.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec;
using nlohmann::ordered_json;
using tests::document_of_run;
using tests::run_specdec;

TEST_CASE("reproduce counts what agrees and what cannot follow") {
  const auto run = run_specdec("reproduce --format json");
  CHECK(run.exit_code == 0);
  const ordered_json found = ordered_json::parse(run.out);
  CHECK(found["summary"]["agrees_at_printed_inputs"] == 27);
  CHECK(found["summary"]["agrees_within_input_rounding"] == 3);
  CHECK(found["summary"]["cannot_follow"] == 3);
  CHECK(found["table1"]["rows"].size() == 12);
  CHECK(found["lenience"]["stochastic"]["rows"][0]["agreement"] == "cannot follow");
  CHECK(found["decision"]["text"][0] == "30 of 33 printed figures follow from the paper's formulas; 3 cannot.");
}

TEST_CASE("reproduce puts measured speeds beside what follows from the formula") {
  const ordered_json found = ordered_json::parse(run_specdec("reproduce --format json").out);
  REQUIRE(found["table2"]["rows"].size() == 12);
  const ordered_json& first = found["table2"]["rows"][0];
  CHECK(first["name"] == "ende-t5-small-t0");
  CHECK(first["measured"] == 3.4);
  CHECK(first["expected_printed"] == 3.2);
  CHECK(first["overhead_needed"].get<double>() == Approx(first["verify_factor_needed"].get<double>() - 1));
  CHECK_FALSE(first["verification_explains"]);
}

TEST_CASE("every table of reproduce prints as CSV, with as many fields on each line as in the header") {
  for (const char* table :
       {"table1", "table4", "bigram", "lenience_stochastic", "lenience_argmax", "table2"}) {
    std::istringstream lines(run_specdec(std::string("reproduce --quiet --format csv --table ") + table).out);
    std::string header;
    REQUIRE(std::getline(lines, header));
    int rows = 0;
    for (std::string line; std::getline(lines, line); ++rows) {
      INFO(table << ": " << line);
      CHECK(std::count(line.begin(), line.end(), ',') == std::count(header.begin(), header.end(), ','));
    }
    CHECK(rows > 0);
  }
}

TEST_CASE("reproduce shows one table alone with --table") {
  const std::string text = run_specdec("reproduce --explain").out;
  for (const auto& [table, begins] : std::vector<std::array<std::string, 2>>{
           {"table2", "Table 2: "}, {"lenience_argmax", "Appendix A.5: speedup with argmax lenience"}}) {
    INFO(table);
    const std::string one = run_specdec("reproduce --table " + table).out;
    CHECK(one.starts_with(begins));
    CHECK(text.find(one.substr(0, one.find("\n\n"))) != std::string::npos);
    CHECK(one.find("Section 3.6: ") == std::string::npos);
  }
}

TEST_CASE("reproduce fits into 100 columns") {
  std::istringstream lines(run_specdec("reproduce --explain").out);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
  }
}

TEST_CASE("the shipped pair's own rate at temperature 1 is that of the recording that comes with it") {
  const ordered_json analysis = document_of_run("analyze " + tests::source_dir() + "/sim/models/recording.safetensors");
  const planning::PublishedAcceptance* const own = planning::published_acceptance("pair-draft-t1");
  REQUIRE(own != nullptr);
  CHECK(own->alpha == Approx(analysis["alpha"]["value"].get<double>()).margin(5e-5));
  CHECK(own->tokens == analysis["positions"]);
}
