#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::run_specdec;

TEST_CASE("reproduce counts what agrees and what cannot follow") {
  const auto run = run_specdec("reproduce --format json");
  CHECK(run.exit_code == 0);
  const ordered_json found = ordered_json::parse(run.out);
  CHECK(found["summary"]["agrees_at_printed_inputs"] == 27);
  CHECK(found["summary"]["agrees_within_input_rounding"] == 3);
  CHECK(found["summary"]["cannot_follow"] == 3);
  CHECK(found["table1"]["rows"].size() == 12);
  CHECK(found["lenience"]["stochastic"]["rows"][0]["agreement"] == "cannot follow");
  CHECK(found["warnings"][0]["code"] == "cannot_follow");
}

TEST_CASE("every table of reproduce prints as CSV, with as many fields on each line as in the header") {
  for (const char* table :
       {"table1", "table4", "bigram", "lenience_stochastic", "lenience_argmax", "figure2", "figure3", "figure4"}) {
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

TEST_CASE("reproduce fits into 100 columns") {
  std::istringstream lines(run_specdec("reproduce").out);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
  }
}
