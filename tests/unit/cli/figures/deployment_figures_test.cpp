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
  const PlottedLine best = line_of(figure, "over plain decoding", "best γ", "batch", "speedup");
  const PlottedLine band = line_of(figure, "over plain decoding", "best γ, 95% interval", "batch", "speedup");
  const PlottedLine three = line_of(figure, "over plain decoding", "γ = 3", "batch", "speedup");
  const PlottedLine tokens = line_of(figure, "of all sequences", "γ = 3", "batch", "output_tokens_per_second");
  REQUIRE(best.x.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const ordered_json& point = plan["points"][i];
    const ordered_json& row = point["rows"][3];
    CHECK(best.x[i] == point["batch"]);
    CHECK(best.y[i] == point["optimal"]["speedup"]);
    CHECK(band.low[i] == point["optimal"]["speedup_estimate"]["ci95"][0]);
    CHECK(band.high[i] == point["optimal"]["speedup_estimate"]["ci95"][1]);
    CHECK(three.y[i] == row["speedup"]);
    CHECK(tokens.y[i] == Approx(best.x[i] * row["tokens_per_step"].get<double>() / row["round_seconds"].get<double>()));
  }
  const PlottedLine crossover = line_of(figure, "over plain decoding", "gain below 5%", "batch", "speedup");
  const auto last = std::find_if(best.y.rbegin(), best.y.rend(), [](double speedup) { return speedup >= 1.05; });
  const auto place = static_cast<std::size_t>(best.y.rend() - last) - 1;
  REQUIRE(place < 4);
  CHECK(crossover.x[0] >= best.x[place]);
  CHECK(crossover.x[0] <= best.x[place + 1]);
  CHECK(warns(figure, "roofline_uncalibrated"));
}

TEST_CASE("what holds no sampling error of the acceptance is drawn as a range") {
  const std::string typed =
      "plot speedup-over-batch --hardware h100-sxm --model llama-3.1-8b --draft-model "
      "llama-3.2-1b --context 500 --batch 1,64 --at 5 --acceptance-length 3.2";
  const ordered_json figure = document_of_run(typed);
  CHECK(line_of(figure, "over plain decoding", "best γ, range", "batch", "speedup").low.size() == 2);
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
  const PlottedLine measured = line_of(figure, "over plain decoding", "γ = 3, measured", "batch", "speedup");
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

TEST_CASE("GPUs over load are those that capacity needs, and its range is the band") {
  const ordered_json figure = document_of_run("plot gpus-over-load --arrival-rate 300" + small_service);
  const ordered_json capacity = document_of_run("capacity --arrival-rate 300" + small_service);
  std::size_t shown = 0;
  for (const ordered_json& scenario : capacity["scenarios"]) {
    const std::string name = scenario["gamma"] == 0 ? "plain decoding" : "γ = " + scenario["gamma"].dump();
    const bool drawn = figure["data"].dump().find('"' + name + '"') != std::string::npos;
    if (!drawn) continue;
    ++shown;
    const PlottedLine steps = line_of(figure, "", name, "requests_per_second", "gpus");
    double gpus = 0;
    for (std::size_t i = 0; i < steps.x.size(); ++i) gpus = steps.x[i] < 300 ? steps.y[i] : gpus;
    CHECK(gpus == scenario["gpus"]);
    const PlottedLine band = line_of(figure, "", name + ", 95%", "requests_per_second", "gpus");
    for (std::size_t i = 0; i < band.x.size(); ++i) CHECK(band.low[i] <= band.high[i]);
  }
  CHECK(shown == 2);
  CHECK(line_of(figure, "", "load asked for", "requests_per_second", "gpus").x[0] == 300);
  check_run_refused("plot gpus-over-load --replicas 2",
                    "--replicas is given, but figures go over loads of one replica and of as many as a load needs");
  CHECK(run_specdec("plot gpus-over-load --arrival-rate 1e12")
            .err.starts_with("specdec: error: --arrival-rate is 1000000000000, but must be at most "));
  check_run_refused("plot gpus-over-load --tpot-ms 0.1",
                    "no load is served within --ttft-ms and --tpot-ms, with or without speculation");
}

TEST_CASE(
    "the percentile of the time per token passes its limit at the load that capacity says, and cheaper is slower") {
  const ordered_json capacity = document_of_run("capacity" + small_service);
  const double sustained = capacity["scenarios"][0]["requests_per_second_per_replica"]["value"];
  const ordered_json figure = document_of_run("plot latency-over-load" + small_service);
  const PlottedLine line =
      line_of(figure, "time per output token", "plain decoding, p99", "requests_per_second", "tpot_ms");
  CHECK(line_of(figure, "time per output token", "limit", "requests_per_second", "tpot_ms").y[0] == 12);
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    INFO(line.x[i] << " of " << sustained);
    if (line.x[i] < 0.97 * sustained) CHECK(line.y[i] < 12);
    if (line.x[i] > 1.03 * sustained) CHECK(line.y[i] > 12);
  }
  const ordered_json pareto = document_of_run("plot cost-and-time-per-token" + small_service);
  const PlottedLine plain = line_of(pareto, "", "plain decoding", "cost_per_million_tokens", "tpot_ms");
  CHECK(std::is_sorted(plain.x.begin(), plain.x.end()));
  CHECK(std::is_sorted(plain.y.rbegin(), plain.y.rend()));
  // 3.6 an hour for one GPU; the loads are those of the latencies, in the other order.
  const double tokens = 1e3 / plain.x.back() / line.x.front();
  CHECK(tokens == Approx(100).epsilon(0.2));
}

TEST_CASE("verification costs what the roofline says, with published points at their own times and a user's on top") {
  const ordered_json figure = document_of_run("plot verification-cost");
  const PlottedLine published = line_of(figure, "", "published, one sequence", "tokens", "time_ms");
  REQUIRE(published.x.size() == 5);
  CHECK(published.x[3] == 8);
  CHECK(published.y[3] == Approx(8e3 / 485.16));
  const ordered_json plan = document_of_run(
      "plan --hardware rtx-4090 --model llama-3.1-8b --draft-kind ngram --alpha 0.5 --context 256 --max-gamma 8 "
      "--batch 1");
  const PlottedLine passes = line_of(figure, "", "γ + 1 tokens of one sequence", "tokens", "time_ms");
  for (const std::size_t place : {0, 1, 2, 3}) {  // 1, 2, 3 and 4 tokens
    CHECK(passes.y[place] ==
          Approx(1e3 * plan["points"][0]["rows"][place]["round_seconds"].get<double>()).epsilon(1e-12));
  }
  const double knee = line_of(figure, "", "knee", "tokens", "time_ms").x[0];
  const PlottedLine reading = line_of(figure, "", "reading weights alone", "tokens", "time_ms");
  const PlottedLine multiplying = line_of(figure, "", "multiplying alone", "tokens", "time_ms");
  CHECK(multiplying.y[0] * knee == Approx(reading.y[0]).epsilon(0.01));

  const ordered_json own = document_of_run("plot verification-cost --cost " + specdec::tests::source_dir() +
                                           "/traces/samples/llamacpp/batched-bench.jsonl");
  CHECK(own["figure"]["panels"][0]["series"].size() <= 2);
}

TEST_CASE("a budget of verified drafts is never slower than the best gamma for all, and alike requests gain nothing") {
  const std::string asked = "plot verification-budget --gamma 4 --batch 1,16,128 --context 500" + small_deployment;
  const auto speedups = [](const ordered_json& figure, const std::string& series) {
    return line_of(figure, "over plain decoding", series, "batch", "speedup").y;
  };
  const ordered_json figure = document_of_run(asked + " --alpha-spread 0.2");
  const std::vector<double> budget = speedups(figure, "budget, best number drafted");
  const std::vector<double> fixed = speedups(figure, "best γ for all");
  REQUIRE(budget.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(budget[i] >= fixed[i] * (1 - 1e-12));
  // The gain is over a gamma that is too large for the batch, not over the best one.
  const std::vector<double> known = speedups(figure, "budget, 4 drafted");
  CHECK(budget[2] > fixed[2]);
  CHECK(known[2] > 1.03 * speedups(figure, "γ = 4 for all")[2]);
  // Counting what each request accepts comes close to knowing it.
  const std::vector<double> counted = speedups(figure, "the same by counts, simulated");
  for (std::size_t i = 0; i < 3; ++i) CHECK(counted[i] == Approx(known[i]).epsilon(0.08));
  check_run_refused("plot verification-budget --batch 1.5",
                    "--batch is 1.5, but must be whole numbers that rise, of 1 "
                    "to 4096");
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
    CHECK(first.y[i] == plan["drafts"][0]["points"][i]["speedup_estimate"]["value"].get<double>());
    CHECK(second.y[i] == plan["drafts"][1]["points"][i]["speedup_estimate"]["value"].get<double>());
  }
  const PlottedLine tokens = line_of(figure, "of the recommended γ", "whole", "context", "tokens_per_step");
  CHECK(std::is_sorted(tokens.y.rbegin(), tokens.y.rend()));
  const std::string caption = figure["figure"]["caption"];
  CHECK(caption.find("at batch 1 the fastest is whole (") != std::string::npos);
  CHECK(caption.find("×) from context 2000 on, windowed (") != std::string::npos);
  CHECK(caption.find("×) from context 10000 on.") != std::string::npos);

  const ordered_json own = document_of_run("plot speedup-over-context --batch 1,16 --context 1000,8000");
  CHECK(line_of(own, "over plain decoding", "batch 16", "context", "speedup").x == std::vector<double>{1000, 8000});
}

TEST_CASE("every figure of deployments and of the validation is drawn with its title") {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) return;
  const ScratchFolder scratch;
  for (const std::string& figure :
       {"speedup-over-batch" + small_deployment, "speedup-over-context" + small_deployment,
        std::string("verification-cost"), std::string("verification-budget"), "cost-and-time-per-token" + small_service,
        "gpus-over-load" + small_service, "latency-over-load" + small_service,
        std::string("theory-against-simulation --rounds 2000 --tokens 64"),
        std::string("distribution-test --tokens 500"), std::string("methods --tokens 64")}) {
    INFO(figure);
    const std::string file = (scratch / "figure.svg").string();
    REQUIRE(run_specdec("plot " + figure + " --output " + file).exit_code == 0);
    const std::string drawing = content_of(file);
    CHECK(drawing.find("<svg") != std::string::npos);
    CHECK(drawing.size() > 5000);
  }
}

TEST_CASE("deviations of simulations are their distance from Eq. (1) in standard errors") {
  const ordered_json figure = document_of_run("plot theory-against-simulation --tokens 0 --rounds 20000");
  CHECK(figure["figure"]["panels"].size() == 2);
  for (const std::string alpha : {"0.5", "0.9"}) {
    const PlottedLine theory = line_of(figure, "fixed laws", "Eq. (1), α = " + alpha, "gamma", "tokens_per_step");
    const PlottedLine simulated = line_of(figure, "fixed laws", "simulated, α = " + alpha, "gamma", "tokens_per_step");
    const PlottedLine deviations =
        line_of(figure, "simulation - theory", "simulated, α = " + alpha, "gamma", "deviation_standard_errors");
    REQUIRE(deviations.y.size() == 10);
    for (std::size_t i = 0; i < 10; ++i) {
      double tokens = 0;
      for (std::size_t n = 0; n <= i + 1; ++n) tokens += std::pow(std::stod(alpha), static_cast<double>(n));
      CHECK(theory.y[i] == Approx(tokens));
      const double error = (simulated.high[i] - simulated.low[i]) / (2 * 1.959963984540054);
      CHECK(deviations.y[i] == Approx((simulated.y[i] - tokens) / error).margin(1e-6));
    }
  }
}

TEST_CASE("the bars of methods are what compare says of them") {
  const std::string asked = " algorithm1 lenient plain --source synthetic --tokens 512 --c 0.1";
  const ordered_json figure = document_of_run("plot methods" + asked);
  const ordered_json compared = document_of_run("compare" + asked);
  std::map<std::string, ordered_json> bars;
  for (const ordered_json& row : rows_named(figure, "measured, 95%", "tokens per step")) bars[row["method"]] = row;
  CHECK(bars.size() == 3);
  for (const ordered_json& result : compared["results"]) {
    const ordered_json& bar = bars.at(result["method"]);
    CHECK(bar["tokens_per_step"] == result["tokens_per_step"]["value"]);
  }
  CHECK(rows_named(figure, "measured, 95%", "speedup").size() == 3);
  CHECK(figure["figure"]["caption"].get<std::string>().ends_with(" Not lossless: lenient."));
}

TEST_CASE("many methods are shown six to a panel") {
  const ordered_json figure = document_of_run(
      "plot methods algorithm1 block matching rejection lenient typical copy"
      " --source synthetic --tokens 64");
  const ordered_json& panels = figure["figure"]["panels"];
  REQUIRE(panels.size() == 2);
  CHECK(panels[0]["title"] == "tokens per step, 1 of 2");
  CHECK(panels[1]["x"]["categories"].size() == 1);
}

TEST_CASE("of one method there is a bar for each task and a share for each position") {
  const std::string asked = " block --tasks prose,code --tokens 768 --max-new-tokens 16";
  const ordered_json figure = document_of_run("plot methods" + asked);
  const ordered_json compared = document_of_run("compare" + asked);
  const std::vector<ordered_json> bars = rows_named(figure, "measured, 95%", "tokens per step");
  REQUIRE(bars.size() == 3);
  CHECK(bars[0]["task"] == "all");
  CHECK(bars[1]["tokens_per_step"] == compared["tasks"][0]["tokens_per_step"]["value"]);
  CHECK(bars[2]["task"] == compared["tasks"][1]["task"]);
  const std::vector<ordered_json> stays = rows_named(figure, "stays", "accepted by position");
  const ordered_json& shares = compared["results"][0]["acceptance_by_position"];
  REQUIRE(stays.size() == shares.size());
  for (std::size_t i = 0; i < stays.size(); ++i) CHECK(stays[i]["share"] == shares[i]);
}

TEST_CASE("the distribution test refuses the wrong sampler and not the right one") {
  const ordered_json figure = document_of_run("plot distribution-test --tokens 4000");
  const auto largest = [&](const std::string& series) {
    double found = 0;
    for (const double y : line_of(figure, "tokens ordered by q/p", series, "u", "share_minus_u").y)
      found = std::max(found, std::abs(y));
    return found;
  };
  const double bound = largest("refused beyond, level 0.0005");
  CHECK(bound == Approx(std::sqrt(std::log(2 / 5e-4) / (2.0 * 4032))));
  CHECK(largest("Algorithm 1") < bound);
  CHECK(largest("wrong: corrected from p") > bound);
}
