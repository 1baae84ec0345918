#include <cmath>
#include <string>
#include <string_view>

#include "analysis/planning/best_gamma.hpp"
#include "analysis/planning/speedup_map.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cli/figures/figure_rows.hpp"

using namespace specdec;
using nlohmann::ordered_json;
using tests::check_run_refused;
using tests::document_of_run;
using tests::rows_named;

TEST_CASE("speedup against gamma shows the rows that plan prints, and what is in use") {
  const std::string question = " --alpha 0.6:0.8 --c 0.1 --verify-factor 2:1.02,5:1.2 --gamma 5 --batch 1";
  const ordered_json figure = document_of_run("plot speedup-over-gamma" + question);
  const ordered_json point = document_of_run("plan" + question)["points"][0];
  const auto line = rows_named(figure, "speedup");
  const auto band = rows_named(figure, "range");
  REQUIRE(line.size() >= 8);
  REQUIRE(band.size() == line.size());
  for (std::size_t gamma = 0; gamma < line.size(); ++gamma) {
    const ordered_json& row = point["rows"][gamma];
    CHECK(line[gamma]["gamma"] == row["gamma"]);
    const ordered_json& speedup = row["speedup"];
    const double middle = gamma == 0 ? 1 : (speedup["bounds"][0].get<double>() + speedup["bounds"][1].get<double>()) / 2;
    CHECK(line[gamma]["speedup"].get<double>() == Approx(middle));
    if (gamma == 0) continue;
    CHECK(band[gamma]["speedup_low"] == row["speedup"]["ci95"][0]);
    CHECK(band[gamma]["speedup_high"] == row["speedup"]["ci95"][1]);
  }
  CHECK(rows_named(figure, "γ in use")[0]["gamma"] == 5);
  double near = 0;
  for (const auto& box : rows_named(figure, "near-optimal γ")) {
    near += box["gamma_high"].get<double>() - box["gamma_low"].get<double>();
  }
  CHECK(near == static_cast<double>(point["near_optimal_gammas"].size()));
  CHECK(document_of_run("plot speedup-over-gamma --alpha 0.8")["figure"]["caption"].get<std::string>().find("95%") ==
        std::string::npos);
  CHECK(document_of_run("plot speedup-over-gamma --alpha 0.8 --context 0,1,2")["figure"]["panels"].size() == 3);
}

TEST_CASE("the map's cells, boundaries and box are those of the library and of the user") {
  const ordered_json figure = document_of_run("plot speedup-map --alpha 0.5:0.7 --c-interval 0.02:0.1 --overhead 0.05");
  core::StepCost cost{0, 0.05, {}};
  const auto cells = rows_named(figure, "best speedup");
  for (std::size_t i = 0; i < cells.size(); i += 577) {
    cost.c = cells[i]["c"].get<double>();
    const auto best = planning::best_gamma(core::AcceptanceRate(cells[i]["alpha"].get<double>()), {cost, 256});
    CHECK(cells[i]["speedup"].get<double>() == Approx(best.speedup).epsilon(1e-12));
  }
  for (const auto& number : rows_named(figure, "least γ below the boundary")) {
    const std::string label = number["label"].get<std::string>();
    const std::int64_t gamma = std::stoll(label.substr(label.find_first_of("0123456789")));
    const auto line = planning::gamma_boundaries({number["alpha"].get<double>()}, {gamma}, cost, 256);
    CHECK(number["c"].get<double>() == Approx(line[0].c[0]).epsilon(1e-12));
  }
  const auto box = rows_named(figure, "α and c in question")[0];
  CHECK(box["alpha_low"] == 0.5);
  CHECK(box["alpha_high"].get<double>() == Approx(0.7));
  CHECK(box["c_low"] == 0.02);
  CHECK(box["c_high"] == 0.1);
  CHECK(tests::warns(document_of_run("plot speedup-map --alpha 0.99 --c 0.1"), "outside_map"));

  // An area that is too small for a box is a point, and a box too small to be seen has points at its corners.
  const ordered_json point = document_of_run("plot speedup-map --alpha 0.6 --c 0.1");
  REQUIRE(rows_named(point, "α and c in question").size() == 1);
  CHECK(rows_named(point, "α and c in question")[0]["alpha"] == 0.6);
  CHECK(rows_named(point, "α and c in question")[0]["c"] == 0.1);
  CHECK(point["figure"]["caption"].get<std::string>().starts_with("The point, α 0.6 at c 0.1: "));
  CHECK(rows_named(document_of_run("plot speedup-map --alpha 0.5:0.7 --c 0.1"), "α and c in question").size() == 2);
  const ordered_json speck = document_of_run("plot speedup-map --alpha 0.6:0.601 --c-interval 0.1:0.101");
  CHECK(rows_named(speck, "").size() == 4);
  const ordered_json typed = document_of_run("plot speedup-map --acceptance-length 2.92 --at 3 --c 0.04");
  CHECK(typed["figure"]["caption"].get<std::string>().find(
            "if every draft is accepted at that one rate; it was measured up to γ = 3") != std::string::npos);
}

TEST_CASE("figures of a head that nobody measured are those of its prior, not of an example") {
  const std::string head = " --hardware h100 --model llama-3.1-8b --draft-model eagle3-llama-3.1-8b";
  const ordered_json figure = document_of_run("plot speedup-over-gamma" + head);
  const ordered_json rows = document_of_run("plan" + head)["points"][0]["rows"];
  const auto line = rows_named(figure, "speedup");
  for (std::size_t gamma = 0; gamma < line.size(); ++gamma) CHECK(line[gamma]["speedup"] == rows[gamma]["speedup"]["value"]);
  CHECK(tests::warns(figure, "acceptance_from_prior"));
  // The ends are the rates that give the 95% interval of its length at the longest gamma published.
  const ordered_json map = document_of_run("plot speedup-map --published eagle3-llama-3.1-8b");
  const auto ends = rows_named(map, "α and c in question");
  REQUIRE(ends.size() == 2);
  CHECK(ends[0]["alpha"].get<double>() < 0.5);
  CHECK(ends[1]["alpha"].get<double>() > 0.9);
  CHECK(tests::warns(map, "one_rate"));
}

TEST_CASE("planning figures refuse in a line what they cannot draw") {
  check_run_refused("plot speedup-map --c 0.1 --c-interval 0.1:0.2", "--c-interval is given, but --c is too");
  check_run_refused("plot speedup-map --c-interval 0.2:0.1",
                    "--c-interval is 0.2:0.1, but must be LOW:HIGH with LOW <= HIGH");
  check_run_refused("plot speedup-over-gamma --tokens 100", "--tokens is given, but the figure does not show that");
}
