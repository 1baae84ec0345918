#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/figures/figure_rows.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::content_of;
using specdec::tests::document_of_run;
using specdec::tests::rows_named;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;
using specdec::tests::warns;

namespace {

const std::string small_deployment = " --hardware h100-sxm --model llama-3.1-8b --draft-model llama-3.2-1b --alpha 0.7";
const std::string small_service = small_deployment +
                                  " --prompt-tokens 500:0.5 --output-tokens 100:0.5 --gamma 1,2 --tpot-ms 12 "
                                  "--num-requests 200 --replications 2 --threads 1 --price 3.6";

struct PlottedLine {
  std::vector<double> x, y, low, high;
};

/// A series of the data of a figure.
PlottedLine line_of(const ordered_json& figure, const std::string& panel, const std::string& series,
                    const std::string& x, const std::string& y) {
  PlottedLine line;
  const auto take = [](const ordered_json& row, const std::string& key, std::vector<double>& values) {
    if (row.contains(key) && row.at(key).is_number()) values.push_back(row.at(key));
  };
  for (const ordered_json& row : figure.at("data")) {
    if (row.at("series") != series || (!panel.empty() && row.at("panel") != panel)) continue;
    take(row, x, line.x);
    take(row, y, line.y);
    take(row, y + "_low", line.low);
    take(row, y + "_high", line.high);
  }
  INFO(series);
  REQUIRE(line.x.size() + line.y.size() > 0);
  return line;
}

}  // namespace

TEST_CASE(
    "speedup over batch is what the plan says at each batch, and its crossover lies where the plan stops gaining") {
  const std::string batches = " --context 500 --batch 1,16,128,256,512 ";
  const ordered_json figure = document_of_run("plot speedup-over-batch --gamma 1,3" + small_deployment + batches);
  const ordered_json plan = document_of_run("plan --max-gamma 8" + small_deployment + batches);
  const PlottedLine best = line_of(figure, "over plain decoding", "recommended γ", "batch", "speedup");
  const PlottedLine band = line_of(figure, "over plain decoding", "recommended γ, 95% interval", "batch", "speedup");
  const PlottedLine three = line_of(figure, "over plain decoding", "γ = 3", "batch", "speedup");
  const PlottedLine tokens = line_of(figure, "of all sequences", "γ = 3", "batch", "output_tokens_per_second");
  REQUIRE(best.x.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const ordered_json& point = plan["points"][i];
    const ordered_json& row = point["rows"][3];
    CHECK(best.x[i] == point["batch"]);
    CHECK(best.y[i] == point["speedup"]["value"]);
    CHECK(band.low[i] == point["speedup"]["ci95"][0]);
    CHECK(band.high[i] == point["speedup"]["ci95"][1]);
    CHECK(three.y[i] == row["speedup"]["value"]);
    CHECK(tokens.y[i] == Approx(best.x[i] * row["tokens_per_step"]["value"].get<double>() / row["round_seconds"].get<double>()));
  }
  const PlottedLine crossover = line_of(figure, "over plain decoding", "gain below 5%", "batch", "speedup");
  const auto last = std::find_if(best.y.rbegin(), best.y.rend(), [](double speedup) { return speedup >= 1.05; });
  const auto place = static_cast<std::size_t>(best.y.rend() - last) - 1;
  REQUIRE(place < 4);
  CHECK(crossover.x[0] >= best.x[place]);
  CHECK(crossover.x[0] <= best.x[place + 1]);
  CHECK(warns(figure, "roofline_uncalibrated"));
}

TEST_CASE("what several readings of the acceptance give is drawn as a range") {
  const std::string interval =
      "plot speedup-over-batch --hardware h100-sxm --model llama-3.1-8b --draft-model "
      "llama-3.2-1b --context 500 --batch 1,64 --alpha 0.6:0.8";
  const ordered_json figure = document_of_run(interval);
  CHECK(line_of(figure, "over plain decoding", "recommended γ, range", "batch", "speedup").low.size() == 2);
  CHECK(figure["figure"]["caption"].get<std::string>().find("95%") == std::string::npos);
}

TEST_CASE("a figure over batches ends speculation where the plan does, however few batches it shows") {
  const std::string deployment =
      " --alpha 0.5 --hardware h100-sxm --model llama-3.3-70b --tp 4 --draft-model "
      "eagle3-llama-3.3-70b --batch 1,32,512 --context 1000";
  const ordered_json figure = document_of_run("plot speedup-over-batch" + deployment);
  const ordered_json plan = document_of_run("plan --max-gamma 8" + deployment);
  const PlottedLine crossover = line_of(figure, "over plain decoding", "gain below 5%", "batch", "speedup");
  CHECK(crossover.x[0] == plan["crossover_batch"]);
}

TEST_CASE("a gain up to the largest batch is claimed with the batches whose intervals do not bear it out") {
  const std::string deployment =
      "plot speedup-over-batch --hardware h100-sxm --tp 2 --model mixtral-8x7b --draft-kind ngram --hit-rate 1 "
      "--batch 1,4,16,64 --context 1000 --alpha ";
  const auto caption = [&](const std::string& alpha) {
    return document_of_run(deployment + alpha)["figure"]["caption"].get<std::string>();
  };
  CHECK_THAT(caption("0.6"), Catch::Matchers::EndsWith(
                                 "gains 5% or more up to the largest batch shown, but its 95% interval at batch 1 "
                                 "does not bear that out."));
  CHECK_THAT(caption("0.8"), Catch::Matchers::EndsWith("gains 5% or more up to the largest batch shown."));
}

TEST_CASE("benchmark runs are drawn with the speedups that were measured") {
  const std::string runs = " --bench " + specdec::tests::source_dir() + "/traces/samples/bench/c*.json";
  const ordered_json figure = document_of_run("plot speedup-over-batch --gamma 3,5" + runs);
  const PlottedLine measured = line_of(figure, "over plain decoding", "γ = 3, measured, 95%", "batch", "speedup");
  const ordered_json plan = document_of_run("plan" + runs);
  std::vector<double> known;
  for (const ordered_json& run : plan["runs"]) {
    if (run["gamma"] == 3) known.push_back(run["measured_speedup"]["value"]);
  }
  CHECK(measured.y == known);
}

TEST_CASE("a deployment that is shown by default does not lend its head's acceptance to another") {
  const ordered_json own = document_of_run("plot speedup-over-batch");
  CHECK_FALSE(warns(own, "acceptance_from_prior"));
  CHECK(warns(document_of_run("plot speedup-over-batch --draft-model eagle3-llama-3.3-70b"), "acceptance_from_prior"));
}

TEST_CASE("cheaper tokens are slower ones, at what a GPU and its tokens cost") {
  const ordered_json figure = document_of_run("plot cost-and-time-per-token" + small_service);
  const PlottedLine plain = line_of(figure, "", "plain decoding", "cost_per_million_tokens", "tpot_ms");
  CHECK(std::is_sorted(plain.x.begin(), plain.x.end()));
  CHECK(std::is_sorted(plain.y.rbegin(), plain.y.rend()));
  check_run_refused("plot cost-and-time-per-token --replicas 2",
                    "--replicas is given, but figures go over loads of one replica and of as many as a load needs");
}

TEST_CASE("speedup over context shows a draft that falls behind a windowed one, and says from where on") {
  const ScratchFolder scratch;
  // The first is accepted less and less, the second, which looks at a window, as often everywhere; texts differ a
  // little.
  const auto recorded = [&](const std::string& name, const std::vector<double>& by_stretch) {
    std::vector<double> acceptance;
    std::vector<std::int64_t> sequence;
    for (std::int64_t text = 0; text < 4; ++text) {
      for (std::int64_t place = 0; place < 15'000; ++place) {
        acceptance.push_back(by_stretch[static_cast<std::size_t>(place / 3000)] + (text % 2 == 0 ? 0.01 : -0.01));
        sequence.push_back(text);
      }
    }
    return specdec::tests::scalar_trace(scratch / name, acceptance, sequence).string();
  };
  const std::string whole = recorded("whole.safetensors", {0.75, 0.7, 0.6, 0.4, 0.15});
  const std::string windowed = recorded("windowed.safetensors", {0.5, 0.5, 0.5, 0.5, 0.5});
  const std::string drafts =
      " --hardware h100 --model llama-3.1-8b --by context:3000,6000,9000,12000 --draft whole:trace=" + whole +
      ",model=eagle3-llama-3.1-8b --draft windowed:trace=" + windowed +
      ",model=eagle3-llama-3.1-8b --context 2000,4000,8000,10000,16000";
  const ordered_json figure = document_of_run("plot speedup-over-context" + drafts);
  const PlottedLine first = line_of(figure, "over plain decoding", "whole", "context", "speedup");
  const PlottedLine second = line_of(figure, "over plain decoding", "windowed", "context", "speedup");
  const ordered_json plan = document_of_run("plan" + drafts);
  REQUIRE(first.x.size() == 5);
  for (std::size_t i = 0; i < first.x.size(); ++i) {
    INFO(first.x[i]);
    CHECK((first.y[i] > second.y[i]) == (first.x[i] < 10000));
    CHECK(first.y[i] == plan["drafts"][0]["points"][i]["speedup"]["value"].get<double>());
    CHECK(second.y[i] == plan["drafts"][1]["points"][i]["speedup"]["value"].get<double>());
  }
  const PlottedLine tokens = line_of(figure, "of the recommended γ", "whole", "context", "tokens_per_step");
  CHECK(std::is_sorted(tokens.y.rbegin(), tokens.y.rend()));
  const std::string caption = figure["figure"]["caption"];
  CHECK(caption.find("at batch 1 the fastest is whole (") != std::string::npos);
  CHECK(caption.find("×) from context 2000 on, windowed (") != std::string::npos);
  CHECK(caption.find("×) from context 10000 on.") != std::string::npos);

  const ordered_json own = document_of_run("plot speedup-over-context --batch 1,16 --context 1000,8000");
  CHECK(line_of(own, "over plain decoding", "batch 16", "context", "speedup").x == std::vector<double>{1000, 8000});
  // One acceptance at every context: its panel would be flat.
  CHECK(figure["figure"]["panels"].size() == 2);
  CHECK(own["figure"]["panels"].size() == 1);
}

TEST_CASE("every figure of deployments is drawn with its title") {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) return;
  const ScratchFolder scratch;
  for (const std::string& figure :
       {"speedup-over-batch" + small_deployment, "speedup-over-context" + small_deployment,
        "cost-and-time-per-token" + small_service}) {
    INFO(figure);
    const std::string file = (scratch / "figure.svg").string();
    REQUIRE(run_specdec("plot " + figure + " --output " + file).exit_code == 0);
    const std::string drawing = content_of(file);
    CHECK(drawing.find("<svg") != std::string::npos);
    CHECK(drawing.size() > 5000);
  }
}
