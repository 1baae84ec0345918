#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/figures/figure_rows.hpp"
#include "tests/unit/cli/recordings.hpp"

using namespace specdec;
using nlohmann::ordered_json;
using tests::check_run_refused;
using tests::document_of_run;
using tests::rows_named;
using tests::warns;

namespace {

/// Five sequences of whole rows, of two tasks.
std::string rows_file(const tests::ScratchFolder& scratch) {
  return tests::full_trace(scratch / "rows.safetensors", tests::recorded_pair(12, 100, 20, 4)).string();
}

const std::string shipped = tests::source_dir() + "/sim/models/recording.safetensors";

}  // namespace

TEST_CASE("figures of the shipped recording show what analyze says of it") {
  const ordered_json analysis = document_of_run("analyze " + shipped + " --gamma 1:8");
  const ordered_json tokens = document_of_run("plot tokens-over-gamma --max-gamma 8");
  const ordered_json positions_figure = document_of_run("plot position-acceptance --max-gamma 8");
  const auto observed = rows_named(positions_figure, "observed, with 95% interval");
  for (std::size_t gamma = 1; gamma <= 8; ++gamma) {
    const ordered_json& row = analysis["gammas"][gamma - 1]["tokens_per_step"];
    CHECK(rows_named(tokens, "replay")[gamma]["tokens_per_step"] == row["replay"]["value"]);
    CHECK(rows_named(tokens, "i.i.d. at α")[gamma]["tokens_per_step"] == row["iid"]);
    CHECK(rows_named(tokens, "95% interval")[gamma]["tokens_per_step_low"] == row["replay"]["ci95"][0]);
    CHECK(observed[gamma - 1]["acceptance"] == analysis["position_acceptance"][gamma - 1]["conditional"]["value"]);
    CHECK(observed[gamma - 1]["acceptance_low"] < observed[gamma - 1]["acceptance"]);
  }
  CHECK(rows_named(positions_figure, "i.i.d. at α")[3]["acceptance"] == analysis["alpha"]["value"]);
  const std::string caption = positions_figure["figure"]["caption"];
  CHECK(caption.find("ratio of sums over 72 sequences, Student's t") != std::string::npos);
}

TEST_CASE("acceptance by position is explained only where the interval at position 1 lies below that of one rate") {
  const tests::ScratchFolder scratch;
  const auto caption_of = [&](const char* name, const std::vector<double>& cycle) {
    std::vector<double> acceptance;
    std::vector<std::int64_t> sequence;
    for (std::int64_t text = 0; text < 40; ++text) {
      for (std::size_t i = 0; i < 120; ++i) {
        acceptance.push_back(cycle[(i + static_cast<std::size_t>(text)) % cycle.size()]);
        sequence.push_back(text);
      }
    }
    const std::string file = tests::scalar_trace(scratch / name, acceptance, sequence).string();
    return document_of_run("plot position-acceptance --max-gamma 3 --trace " + file)["figure"]["caption"]
        .get<std::string>();
  };
  const std::string why = "rounds start after rejections, in harder text";
  std::vector<double> stretches(40, 0.95);
  std::fill(stretches.begin() + 20, stretches.end(), 0.1);
  CHECK(caption_of("stretches.safetensors", stretches).find(why) != std::string::npos);
  // Hard positions one at a time: rounds start behind them, in easier text.
  const std::string by_turns = caption_of("turns.safetensors", {0.9, 0.2});
  CHECK(by_turns.find(why) == std::string::npos);
  CHECK(by_turns.find("over 40 sequences") != std::string::npos);
}

TEST_CASE("figures of whole rows show what analyze says of them") {
  const tests::ScratchFolder scratch;
  const std::string file = rows_file(scratch);
  const ordered_json analysis = document_of_run("analyze " + file + " --lenience 0.5,1 --standardise none");
  const ordered_json lenience = document_of_run("plot lenience --trace " + file);
  REQUIRE(rows_named(lenience, "α").size() == 20);
  for (const std::size_t i : {9, 19}) {
    const ordered_json& row = analysis["lenience"][i / 19];
    CHECK(rows_named(lenience, "α")[i]["alpha"] == row["alpha"]["value"]);
    CHECK(rows_named(lenience, "α, 95% interval")[i]["alpha_high"] == row["alpha"]["ci95"][1]);
    CHECK(rows_named(lenience, "residual kept")[i]["total_variation"] == row["tv_keep_residual"]["value"]);
    CHECK(rows_named(lenience, "residual scaled")[i]["total_variation"] == row["tv_scaled_residual"]["value"]);
  }
  // The bins hold every drafted token: their mean acceptance is alpha.
  const ordered_json calibration = document_of_run("plot calibration --trace " + file);
  const auto points = rows_named(calibration, "accepted, with 95% interval");
  const auto drafts = rows_named(calibration, "drafted tokens");
  REQUIRE(points.size() == drafts.size());
  double shares = 0, accepted = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double share = drafts[i]["share_of_drafts"];
    shares += share;
    accepted += share * points[i]["acceptance"].get<double>();
  }
  CHECK(shares == Approx(1).epsilon(1e-9));
  CHECK(accepted == Approx(analysis["alpha"]["value"].get<double>()).epsilon(1e-6));
}

TEST_CASE("without a recording of rows a short one is made, the same for any number of threads") {
  const ordered_json made = document_of_run("plot calibration --threads 1");
  CHECK(made["data"] == document_of_run("plot calibration --threads 3")["data"]);
  double share = 0;
  for (const auto& row : rows_named(made, "drafted tokens")) share += row["share_of_drafts"].get<double>();
  CHECK(share == Approx(1));
  CHECK(made["figure"]["caption"].get<std::string>().find("288 positions") != std::string::npos);
}

TEST_CASE("what a recording lacks is a gap with a warning, or one line") {
  const tests::ScratchFolder scratch;
  const std::vector<double> acceptance = {0.9, 0.4, 0.8, 0.7, 0.9, 0.4, 0.5, 0.6};
  const std::string one =
      tests::scalar_trace(scratch / "one.safetensors", acceptance, std::vector<std::int64_t>(8, 0)).string();
  check_run_refused("plot lenience --trace " + one,
                    "the recording has no whole rows, which lenience needs: record it with --tier full");
  check_run_refused("plot calibration --trace " + one,
                    "the recording has no whole rows, which calibration needs: record it with --tier full");
  const ordered_json positions = document_of_run("plot position-acceptance --max-gamma 3 --trace " + one);
  CHECK(warns(positions, "no_interval"));
  CHECK(rows_named(positions, "observed").size() == 3);
  const ordered_json tokens = document_of_run("plot tokens-over-gamma --max-gamma 3 --trace " + one);
  CHECK(warns(tokens, "no_interval"));
  CHECK(rows_named(tokens, "95% interval").empty());
  const std::string elsewhere = tests::scalar_trace(scratch / "other.safetensors", acceptance,
                                                    std::vector<std::int64_t>(8, 0), {{"path", "other"}})
                                    .string();
  check_run_refused("plot tokens-over-gamma --trace " + elsewhere,
                    "the recording cannot be replayed, so nothing is known by gamma");
}

TEST_CASE("every planning and trace figure is drawn") {
  const tests::ScratchFolder scratch;
  for (const char* figure : {"speedup-map", "speedup-over-gamma", "position-acceptance", "tokens-over-gamma", "lenience",
                             "calibration"}) {
    const std::string file = (scratch / (std::string(figure) + ".svg")).string();
    const tests::Run run = tests::run_specdec(std::string("plot ") + figure + " --quiet --output " + file);
    INFO(figure << '\n' << run.err);
    CHECK(run.exit_code == 0);
    CHECK(tests::content_of(file).find("</svg>") != std::string::npos);
  }
}
