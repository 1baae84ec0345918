#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::content_of;
using specdec::tests::document_of_run;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;
using specdec::tests::warns;

namespace {

const std::string samples = SPECDEC_SOURCE_DIR "/traces/samples/bench/";

/// The runs of the sample server, but that held out.
std::string bench_files() {
  std::string files;
  for (const char* concurrency : {"c1", "c8", "c32", "c64"}) {
    for (const char* kind : {"-plain", "-k3", "-k5"}) files += " " + samples + concurrency + kind + ".json";
  }
  return files;
}

ordered_json json_of(const std::string& options, int exit_code = 0) {
  return document_of_run("plan " + options, exit_code);
}

void check_refused(const std::string& options, const std::string& message) {
  check_run_refused("plan " + options, message);
}

/// A server's counters: 1000 rounds of 4 drafts, of which 700, 480, 350 and 270 were accepted by position.
std::string counters_in(const ScratchFolder& scratch) {
  const std::string file = (scratch / "metrics.txt").string();
  std::ofstream out(file);
  const std::string labels = R"({engine="0",model_name="m"})";
  out << "# TYPE vllm:spec_decode_num_drafts_total counter\n"
      << "vllm:spec_decode_num_drafts_total" << labels << " 1000.0\n"
      << "vllm:spec_decode_num_draft_tokens_total" << labels << " 4000.0\n"
      << "vllm:spec_decode_num_accepted_tokens_total" << labels << " 1800.0\n";
  const int accepted[] = {700, 480, 350, 270};
  for (int position = 0; position < 4; ++position) {
    out << R"(vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position=")" << position
        << "\"} " << accepted[position] << ".0\n";
  }
  return file;
}

/// Passes of a target: a fixed part and one that grows with the tokens of the whole batch.
std::string timings_in(const ScratchFolder& scratch, double fixed, double per_token) {
  const std::string file = (scratch / "timings.csv").string();
  std::ofstream out(file);
  out << "batch,tokens,context,seconds\n";
  for (const int batch : {1, 8, 64}) {
    for (const int tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33}) {
      out << batch << ',' << tokens << ",1024," << fixed + per_token * batch * tokens << '\n';
    }
  }
  return file;
}

/// A device with ideal links, its file and those of the 70B and 8B Llama 3.
struct IdealHardware {
  ScratchFolder scratch;

  IdealHardware() {
    std::ofstream(scratch / "device.json")
        << R"({"name": "device", "memory_bytes": 141e9, "memory_bandwidth_bytes_per_second": 4.8e12,
               "peak_flops": {"bf16": 989.4e12, "fp8": 1978.9e12}, "link_bytes_per_second": 1e300})";
    write_model("70b.json", 8192, 80, 64, 28672);
    write_model("8b.json", 4096, 32, 32, 14336);
  }
  std::string path(const std::string& name) const { return (scratch / name).string(); }
  /// Weights of 8 bits and no losses.
  std::string options() const {
    return " --hardware " + path("device.json") + " --model " + path("70b.json") +
           " --weight-dtype fp8 --draft-weight-dtype fp8 --bandwidth-efficiency 1 --compute-efficiency 1 "
           "--launch-seconds 0 --layer-seconds 0 --scheduling-seconds 0 ";
  }

 private:
  void write_model(const std::string& name, int width, int layers, int heads, int feed_forward) const {
    std::ofstream(scratch / name) << R"({"model_type": "llama", "hidden_size": )" << width
                                  << R"(, "num_hidden_layers": )" << layers << R"(, "num_attention_heads": )" << heads
                                  << R"(, "num_key_value_heads": 8, "intermediate_size": )" << feed_forward
                                  << R"(, "vocab_size": 128256, "tie_word_embeddings": false})";
  }
};

std::vector<std::string> verdicts_of(const ordered_json& plan) {
  std::vector<std::string> verdicts;
  for (const ordered_json& point : plan["points"]) verdicts.push_back(point["verdict"]);
  return verdicts;
}

}  // namespace

TEST_CASE("without axes a plan has one point, and the keys of the closed forms stay at the top") {
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05");
  REQUIRE(plan["points"].size() == 1);
  const ordered_json& point = plan["points"][0];
  CHECK(point["batch"] == 1.0);
  CHECK(point["verdict"] == "speculate");
  for (const auto& [key, value] : plan["optimal"].items()) CHECK(point["optimal"][key] == value);
  CHECK(point["near_optimal_gammas"] == plan["near_optimal_gammas"]);
  CHECK(plan["drafts"].size() == 1);
  CHECK(plan["recommended_draft"] == plan["drafts"][0]["name"]);
  CHECK(plan["config"].is_null());
}

TEST_CASE("the point of the closed forms has their speedup at every gamma") {
  const ordered_json plan = json_of("--alpha 0.75 --c 0.07 --verify-factor 2:1.02,9:1.4 --overhead 0.03");
  for (const ordered_json& row : plan["rows"]) {
    const ordered_json& same = plan["points"][0]["rows"][row["gamma"].get<std::size_t>()];
    CHECK(same["speedup"].get<double>() == Approx(row["speedup"].get<double>()).epsilon(1e-12));
    CHECK(same["tokens_per_step"].get<double>() == Approx(row["expected_tokens"].get<double>()).epsilon(1e-12));
  }
}

TEST_CASE("with axes the keys of one point are null and every batch and context has a point") {
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05 --batch 1,8 --context 0,1000,2000");
  CHECK(plan["points"].size() == 6);
  CHECK(plan["points"][1]["batch"] == 8.0);
  CHECK(plan["points"][1]["context"] == 0.0);
  CHECK(plan["points"][5]["context"] == 2000.0);
  for (const char* key : {"optimal", "rows", "alpha", "c", "worth_it", "near_optimal_gammas"})
    CHECK(plan[key].is_null());
  CHECK(json_of("--alpha 0.8 --c 0.05 --concurrency 1,8")["inputs"]["batch"] == "1,8");
}

// With verification free and no overhead, c stays: Theorem 3.8, here by the closed forms' own rows.
TEST_CASE("measured times whose verification is free give the speedups of the closed forms") {
  const ScratchFolder scratch;
  const ordered_json measured =
      json_of("--alpha 0.8 --c 0.05 --cost " + timings_in(scratch, 0.01, 0) + " --batch 1,8,64 --max-gamma 8");
  const ordered_json closed = json_of("--alpha 0.8 --c 0.05 --max-gamma 8");
  for (const ordered_json& point : measured["points"]) {
    for (std::size_t gamma = 0; gamma <= 8; ++gamma) {
      CHECK(point["rows"][gamma]["speedup"].get<double>() ==
            Approx(closed["rows"][gamma]["speedup"].get<double>()).epsilon(1e-12));
    }
    CHECK(point["seconds_per_output_token"]["baseline"].get<double>() == Approx(0.01));
    CHECK(point["output_tokens_per_second"]["baseline"].get<double>() == Approx(point["batch"].get<double>() / 0.01));
  }
}

// T = fixed + per_token B (gamma + 1) and c gamma T(B, 1): the optimum by hand at each batch.
TEST_CASE("the best gamma falls with the batch where verification costs, as the formula says") {
  const ScratchFolder scratch;
  const double fixed = 0.01, per_token = 0.0002, alpha = 0.7, c = 0.05;
  const ordered_json plan = json_of("--alpha 0.7 --c 0.05 --batch 1,8,64 --max-gamma 8 --min-gain 0.1 --cost " +
                                    timings_in(scratch, fixed, per_token));
  for (const ordered_json& point : plan["points"]) {
    const double batch = point["batch"];
    const double plain = fixed + per_token * batch;
    std::int64_t best = 0;
    double best_speedup = 1;
    for (int gamma = 0; gamma <= 8; ++gamma) {
      const double tokens = (1 - std::pow(alpha, gamma + 1)) / (1 - alpha);
      const double speedup = tokens * plain / (fixed + per_token * batch * (gamma + 1) + c * gamma * plain);
      CHECK(point["rows"][static_cast<std::size_t>(gamma)]["speedup"].get<double>() == Approx(speedup).epsilon(1e-9));
      if (speedup > best_speedup) {
        best_speedup = speedup;
        best = gamma;
      }
    }
    CHECK(point["optimal"]["gamma"] == best);
    CHECK(point["verdict"] == (best_speedup >= 1.1 ? "speculate" : "do not speculate"));
  }
  CHECK(verdicts_of(plan) == std::vector<std::string>{"speculate", "speculate", "do not speculate"});
}

TEST_CASE("an interval around what is asked for cannot tell, and names the run that would") {
  const ordered_json plan = json_of("--alpha 0.5:0.7 --c 0.5 --min-gain 0.05 --batch 16 --model org/m");
  const ordered_json& point = plan["points"][0];
  CHECK(point["verdict"] == "cannot tell");
  CHECK(point["dominant_source"] == "acceptance");
  const std::string command = point["next_measurement"]["command"];
  CHECK(command.rfind("vllm bench serve --model org/m --num-prompts ", 0) == 0);
  CHECK(command.find("--max-concurrency 16") != std::string::npos);
  CHECK(point["interval_share"]["acceptance"] == 1.0);
  const std::string text = run_specdec("plan --alpha 0.5:0.7 --c 0.5 --batch 16 --model org/m").out;
  CHECK(text.rfind("Cannot tell at batch 16", 0) == 0);
  CHECK(text.find("\n  " + command.substr(0, 30)) != std::string::npos);
}

// Of traces/samples/serving/make_samples.py: 6 + 0.8 gamma + 0.15 (gamma + 1) B milliseconds, with an error of 0.5% in
// each of 4 or 5 windows, and alpha 0.72.
TEST_CASE("the windows of engines' logs price rounds, with acceptance from wherever the user says") {
  const std::string logs = SPECDEC_SOURCE_DIR "/traces/samples/serving/";
  const std::string both = "--cost " + logs + "vllm_k4.log " + logs + "vllm_plain.log ";
  const ordered_json plan = json_of(both + "--counters " + logs + "vllm_k4.log");
  CHECK(warns(plan, "rounds_of_logs"));
  REQUIRE(plan["points"].size() == 6);
  CHECK(plan["points"][5]["batch"] == 48.0);
  CHECK(plan["drafts"][0]["cost"] == "fitted");
  for (const ordered_json& point : plan["points"]) {
    const double batch = point["batch"];
    for (const std::size_t gamma : {0U, 2U, 4U}) {
      const double draft = static_cast<double>(gamma);
      const ordered_json& row = point["rows"][gamma];
      CHECK(row["round_seconds"].get<double>() ==
            Approx(1e-3 * (6 + 0.8 * draft + 0.15 * (draft + 1) * batch)).epsilon(0.01));
      CHECK(row["tokens_per_step"].get<double>() == Approx((1 - std::pow(0.72, draft + 1)) / 0.28).epsilon(0.01));
      CHECK(row["extrapolated"] == false);
    }
  }
  const ordered_json one = json_of(both + "--alpha 0.72 --batch 8 --max-num-seqs 48");
  REQUIRE(one["points"].size() == 1);
  CHECK(one["schedule"].back()["batch_high"] == 48);
  CHECK(one["points"][0]["optimal"]["gamma"] == plan["points"][2]["optimal"]["gamma"]);

  CHECK(warns(json_of(both + "--alpha 0.72 --context 100,9000"), "context_not_told"));
  const Run unidentified = run_specdec("plan --alpha 0.7 --cost " + logs + "vllm_k4.log");
  CHECK(unidentified.exit_code == 2);
  CHECK(unidentified.err.rfind("specdec: error: seconds of a round at gamma 0, batch 2, context 0 is", 0) == 0);
  CHECK(json_of("--alpha 0.7 --extrapolate --cost " + logs + "vllm_k4.log")["points"][0]["verdict"] == "cannot tell");
  check_refused(
      "--alpha 0.7 --cost " + logs + "vllm_plain.log",
      "--cost: no steady window of " + logs + "vllm_plain.log drafted, so that they do not say what drafting costs");
  check_refused(both + "--alpha 0.7 --c 0.1", "--c is given, but the log of --cost holds that time");
  check_refused(both + "--alpha 0.7 --overhead-seconds 1",
                "--overhead-seconds is given, but the log of --cost holds that time");
  check_refused(both + "--draft a:alpha=0.7", "--draft is given, but the log of --cost is of one draft");
  check_refused("--bench " + logs + "vllm_k4.log",
                "--bench: " + logs +
                    "vllm_k4.log has no benchmark run; to plan from logs alone, give them to --cost, "
                    "and to --counters those with speculation");
  check_refused("--alpha 0.7 --cost " + logs + "vllm_k4.log " + logs + "vllm_before.prom",
                "--cost is " + logs + "vllm_k4.log, an engine's log, and " + logs +
                    "vllm_before.prom, which is none, but must be logs alone or tables of times alone");
}

TEST_CASE("logs of SGLang price rounds where --at says what was drafted, between its prompts") {
  const ScratchFolder scratch;
  const std::string plain = (scratch / "plain.log").string(), drafts = (scratch / "drafts.log").string();
  std::ofstream plain_log(plain), drafts_log(drafts);
  for (const int batch : {2, 8, 24}) {
    plain_log << "[x TP0] Prefill batch, #new-seq: 1, #new-token: 1024\n";
    for (int window = 0; window < 4; ++window) {
      const auto line = [&](const char* accepted, double tokens_per_second) {
        return "[x TP0] Decode batch, #running-req: " + std::to_string(batch) + ", #token: 9, " + accepted +
               "gen throughput (token/s): " + std::to_string(tokens_per_second) + ", #queue-req: 0\n";
      };
      // 6 + 0.15 B milliseconds, and 6 + 0.8 4 + 0.15 5 B with 2.5 tokens a round.
      plain_log << line("", 1e3 * batch / (6 + 0.15 * batch));
      drafts_log << line("accept len: 2.50, ", 2.5e3 * batch / (9.2 + 0.75 * batch));
    }
  }
  plain_log.close();
  drafts_log.close();
  const std::string both = "--cost " + plain + " " + drafts + " --alpha 0.7 ";
  const ordered_json plan = json_of(both + "--at 4");
  REQUIRE(plan["points"].size() == 5);
  const auto seconds = [&](std::size_t gamma) {
    return plan["points"][2]["rows"][gamma]["round_seconds"].get<double>();
  };
  CHECK(seconds(0) == Approx(1e-3 * (6 + 0.15 * 8)).epsilon(1e-6));
  CHECK(seconds(4) == Approx(1e-3 * (9.2 + 0.75 * 8)).epsilon(1e-6));
  check_refused(both, "--at is missing: " + drafts + " does not say how many tokens a round drafted; --at G says it");
  const ordered_json twice = json_of(both.substr(0, both.find("--alpha")) + "--at 4 --counters " + drafts);
  const auto unweighted = [](const ordered_json& warning) { return warning["code"] == "mean_without_counts"; };
  CHECK(std::count_if(twice["warnings"].begin(), twice["warnings"].end(), unweighted) == 1);
}

TEST_CASE("the next run is that of the server which counted, was timed or is configured") {
  const ScratchFolder scratch;
  const auto command = [&](const std::string& options) {
    return json_of("--batch 3 --model org/m " + options)["points"][0]["next_measurement"]["command"].get<std::string>();
  };
  const std::string rate = "--alpha 0.5:0.9 --c 0.3 --min-gain 0.3 ";
  CHECK(command(rate).rfind("vllm bench serve --model org/m --num-prompts 24 --max-concurrency 3 --save-result", 0) ==
        0);
  CHECK(command(rate + "--emit sglang").rfind("python -m sglang.bench_serving --model org/m --num-prompts ", 0) == 0);
  CHECK(command(rate + "--emit trtllm") ==
        "python -m tensorrt_llm.serve.scripts.benchmark_serving --model org/m --dataset-name trtllm_custom "
        "--dataset-path PROMPTS --num-prompts 24 --max-concurrency 3 --save-result");
  const std::string k6 = "SERVER_BENCH_N_PROMPTS=24 k6 run script.js --duration 24h --iterations 24 --vus 3";
  CHECK(command(rate + "--emit llamacpp") == k6);
  CHECK(command("--alpha 0.5:0.9 --c 0.01 --min-gain 0.2 --extrapolate --cost " SPECDEC_SOURCE_DIR
                "/traces/samples/llamacpp/batched-bench.jsonl") == k6);
  const std::string log = (scratch / "server.log").string();
  std::ofstream(log)
      << "slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 generated), "
         "mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n";
  CHECK(command("--c 0.35 --min-gain 0.4 --counters " + log).find(" k6 run script.js ") != std::string::npos);
}

TEST_CASE("several drafts are compared and the faster one is taken") {
  const ordered_json plan = json_of(
      "--draft slow:alpha=0.8,c=0.5 --draft quick:acceptance-length=2.5,at=3,c=0.05,kind=eagle,model=org/head,tp=2 "
      "--batch 1,4 --emit vllm");
  CHECK(plan["recommended_draft"] == "quick");
  CHECK(plan["drafts"][0]["name"] == "slow");
  CHECK(plan["drafts"][0]["points"][0]["best"] == false);
  CHECK(plan["drafts"][1]["points"][1]["best"] == true);
  const ordered_json config = ordered_json::parse(plan["config"]["variants"][0]["text"].get<std::string>());
  CHECK(config["model"] == "org/head");
  CHECK(config["method"] == "eagle3");
  CHECK(config["draft_tensor_parallel_size"] == 2);
}

TEST_CASE("counters give the observed tokens at the gamma that was measured, and a verdict for correlated rounds") {
  const ScratchFolder scratch;
  const ordered_json plan = json_of("--counters " + counters_in(scratch) + " --c 0.05");
  REQUIRE(plan["points"].size() == 1);
  const ordered_json& point = plan["points"][0];
  CHECK(point["rows"][4]["tokens_per_step"].get<double>() == Approx(1 + 1.8));
  CHECK(point["rows"][4]["extrapolated"] == false);
  CHECK(point["rows"][9]["extrapolated"] == true);
  CHECK(point["verdict_at_design_effect_3"].is_string());
  CHECK(plan["rows"][4]["expected_tokens"].get<double>() == Approx(2.8));
  CHECK(plan["inputs"]["files"][0]["size_bytes"].is_number());
  CHECK(json_of("--counters " + counters_in(scratch) +
                " --c 0.05 --beyond zero")["points"][0]["rows"][9]["tokens_per_step"] <
        point["rows"][9]["tokens_per_step"]);
}

TEST_CASE("a recording gives the tokens per step that its analysis prints") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "trace.safetensors").string();
  REQUIRE(run_specdec("trace generate --sequences 6 --tokens 60 --output " + file).exit_code == 0);
  const ordered_json plan = json_of("--trace " + file + " --c 0.1 --batch 1,4");
  const Run run = run_specdec("analyze --samples 0 --gamma 1:4 --c 0.1 --format json " + file);
  const ordered_json analysis = ordered_json::parse(run.out);
  REQUIRE(analysis["gammas"].size() == 4);
  for (const ordered_json& row : analysis["gammas"]) {
    const std::size_t gamma = row["gamma"];
    CHECK(plan["points"][0]["rows"][gamma]["tokens_per_step"].get<double>() ==
          Approx(row["tokens_per_step"]["replay"].get<double>()).epsilon(1e-12));
    // The plan charges the steps at the ends of texts in full; the share is docs/theory.md's, whose 1/E is approximate.
    const auto g = static_cast<double>(gamma);
    const double in_full = plan["points"][0]["rows"][gamma]["speedup"];
    CHECK(1 - in_full / row["speedup"]["replay"].get<double>() ==
          Approx(0.1 * g * (g + 1) / (2 * 60 * (1 + 0.1 * g))).epsilon(0.2));
  }
  const auto says = [](const ordered_json& document, const std::string& value) {
    const ordered_json expected = {{"name", "steps at the ends of texts"}, {"value", value}, {"source", "default"}};
    const ordered_json& all = document["assumptions"];
    return std::count(all.begin(), all.end(), expected) == 1;
  };
  CHECK(says(plan, "charged in full, as if the texts went on"));
  CHECK(says(analysis, "charged for what they draft there"));
}

TEST_CASE("benchmark runs give measured speedups, a schedule, and predictions of runs that were left out") {
  const ordered_json plan =
      json_of("--bench" + bench_files() + " --holdout " + samples + "held_out/c16-k3.json --emit vllm");
  CHECK(plan["runs"].size() == 12);
  for (const ordered_json& run : plan["runs"]) {
    CHECK(run["measured_speedup"].is_null() == (run["gamma"] == 0));
    const double batch = run["batch"];
    CHECK(batch <= run["max_concurrency"].get<double>() * 1.01);
  }
  // c64-k5.json: its own mean_tpot_ms against that of c64-plain.json.
  const ordered_json& slow = plan["runs"].back();
  CHECK(slow["gamma"] == 5);
  const auto tpot = [](const std::string& name) {
    return ordered_json::parse(content_of(samples + name))["mean_tpot_ms"].get<double>();
  };
  CHECK(slow["measured_speedup"]["value"].get<double>() ==
        Approx(tpot("c64-plain.json") / tpot("c64-k5.json")).epsilon(1e-9));
  CHECK(plan["bench"]["leave_one_out_error"].get<double>() < 0.1);
  REQUIRE(plan["backtest"].size() == 1);
  CHECK(std::abs(plan["backtest"][0]["relative_error"].get<double>()) < 0.1);
  CHECK(plan["points"].front()["verdict"] == "speculate");
  CHECK(plan["points"].front()["optimal"]["gamma"].get<int>() > plan["points"].back()["optimal"]["gamma"].get<int>());
  CHECK(plan["schedule"].front()["batch_low"] == 1);
  CHECK_FALSE(plan["config"].is_null());
}

TEST_CASE("benchmark runs are planned with another acceptance, at other points and for other kinds of drafts") {
  const ScratchFolder scratch;
  const std::string bench = "--bench" + bench_files();
  const ordered_json own = json_of(bench);
  const ordered_json other = json_of(bench + " --counters " + counters_in(scratch));
  CHECK(other["runs"] == own["runs"]);
  for (std::size_t i = 0; i < own["points"].size(); ++i) {
    const ordered_json& point = other["points"][i];
    CHECK(point["batch"] == own["points"][i]["batch"]);
    CHECK(point["rows"][4]["tokens_per_step"].get<double>() == Approx(2.8));
    CHECK(point["rows"][4]["round_seconds"] == own["points"][i]["rows"][4]["round_seconds"]);
    CHECK(point["verdict_at_design_effect_3"].is_string());
  }
  CHECK(other["drafts"][0]["acceptance"]["method"] == "iid_rounds");
  CHECK(own["drafts"][0]["acceptance"].is_null());
  CHECK(run_specdec("plan " + bench + " --alpha 0.7").out.find("The plan takes its acceptance\nfrom alpha 0.7.") !=
        std::string::npos);

  const ordered_json points = json_of(bench + " --alpha 0.7 --batch 2,16,100 --gamma 3");
  REQUIRE(points["points"].size() == 3);
  CHECK(points["points"][1]["batch"] == 16.0);
  CHECK(points["points"][1]["rows"][1]["tokens_per_step"].get<double>() == Approx(1.7));
  CHECK(points["points"][0]["rows"][1]["extrapolated"] == false);
  CHECK(points["points"][2]["rows"][1]["extrapolated"] == true);
  CHECK(points["schedule"].back()["batch_high"] == 100);
  CHECK(json_of(bench + " --max-num-seqs 256")["schedule"].back()["batch_high"] == 256);
  check_refused(bench + " --batch 100 --schedule 1-64:3",
                "--schedule is 1-64:3, but must be a schedule up to batch 100");
  const Run context = run_specdec("plan --context 9000 " + bench);
  CHECK(context.exit_code == 2);
  CHECK(context.err.rfind("specdec: error: seconds of a round at gamma 0, batch 1.00263, context 9000 is", 0) == 0);

  const ordered_json parallel = json_of(bench + " --draft-kind parallel --emit vllm");
  CHECK(parallel["points"][0]["rows"][5]["round_seconds"] != own["points"][0]["rows"][5]["round_seconds"]);
}

TEST_CASE("benchmark runs are configured with the acceptance rule that is stated") {
  const ordered_json plan = json_of("--bench" + bench_files() + " --acceptance rejection --emit vllm");
  CHECK(ordered_json::parse(plan["config"]["variants"][0]["text"].get<std::string>())["draft_sample_method"] ==
        "probabilistic");
}

TEST_CASE("the configuration covers every batch up to --max-num-seqs and is written to its file") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "spec.json").string();
  const ordered_json plan =
      json_of("--alpha 0.7 --c 0.05 --batch 1,8,64 --max-num-seqs 64 --acceptance rejection --emit vllm --emit-file " +
              file + " --cost " + timings_in(scratch, 0.01, 0.0002));
  CHECK(content_of(file) == plan["config"]["variants"][0]["text"].get<std::string>());
  const ordered_json config = ordered_json::parse(content_of(file));
  std::int64_t next = 1;
  for (const ordered_json& step : config["num_speculative_tokens_per_batch_size"]) {
    CHECK(step[0] == next);
    CHECK(step[2] <= config["num_speculative_tokens"]);
    next = step[1].get<std::int64_t>() + 1;
  }
  CHECK(next == 65);
  CHECK(config["draft_sample_method"] == "probabilistic");
}

TEST_CASE("a regret above --max-regret at any point exits with 1, for a gamma and for a schedule") {
  const ScratchFolder scratch;
  const std::string cost =
      "--alpha 0.7 --c 0.05 --batch 1,8,64 --cost " + timings_in(scratch, 0.01, 0.0002) + " --max-regret 0.1 ";
  const ordered_json alarm = json_of(cost + "--gamma 6", 1);
  CHECK(warns(alarm, "max_regret_exceeded"));
  CHECK(alarm["points"][2]["deployed"]["regret"] > 0.1);
  const ordered_json schedule =
      json_of("--alpha 0.7 --c 0.05 --batch 1,8,64 --cost " + timings_in(scratch, 0.01, 0.0002))["schedule"];
  std::string text;
  for (const ordered_json& step : schedule) {
    for (const char* key : {"batch_low", "batch_high", "gamma"}) {
      text += step[key].dump();
      text += key == std::string("batch_low") ? '-' : key == std::string("batch_high") ? ':' : ',';
    }
  }
  text.pop_back();
  CHECK(json_of(cost + "--schedule " + text)["points"][2]["deployed"]["regret"] == 0.0);
}

TEST_CASE("CSV of a plan over points prints points first and has their rows, drafts, runs and backtests") {
  const std::string axes = "plan --alpha 0.7 --c 0.1 --batch 1,2 --max-gamma 2 --format csv --quiet";
  CHECK(run_specdec(axes).out.rfind("batch,context,verdict,", 0) == 0);
  const std::string rows = run_specdec(axes + " --table rows").out;
  CHECK(rows.rfind("batch,context,gamma,tokens_per_step,", 0) == 0);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 7);
  CHECK(run_specdec(axes + " --table schedule").out == "batch_low,batch_high,gamma,held\n1,2,2,false\n");
  CHECK(run_specdec(axes + " --table drafts").out.rfind("name,batch,context,verdict,gamma,", 0) == 0);
  const std::string bench = "plan --format csv --quiet --bench" + bench_files();
  const std::string runs = run_specdec(bench + " --table runs").out;
  CHECK(std::count(runs.begin(), runs.end(), '\n') == 13);
  const std::string backtest =
      run_specdec(bench + " --table backtest --holdout " + samples + "held_out/c16-k3.json").out;
  CHECK(backtest.rfind("file,line,predicted,measured,relative_error,reason\n", 0) == 0);
}

TEST_CASE("no line of a plan over points is wider than 100 columns") {
  const ScratchFolder scratch;
  for (const std::string& options : std::vector<std::string>{
           "--bench" + bench_files() + " --gamma 5 --emit trtllm",
           "--alpha 0.5:0.7 --c 0.4 --context 0,4096 --batch 1,8,64,100 --emit sglang --model "
           "some-organisation/a-model-with-a-rather-long-name-70b-instruct",
           "--counters " + counters_in(scratch) + " --c 0.4 --batch 1,2 --emit llamacpp",
           "--alpha 0.7 --c 0.05 --batch 1,8,64 --emit vllm --cost " + timings_in(scratch, 0.01, 0.0002),
           "--draft a:alpha=0.8,c=0.1 --draft b:alpha=0.7,c=0.05 --batch 1,1000"}) {
    const Run run = run_specdec("plan " + options);
    CHECK(run.exit_code == 0);
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      INFO(options << ": " << line);
      CHECK(line.size() <= 100);
    }
  }
}

TEST_CASE("lists of files and drafts survive --print-config") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "specdec.toml").string();
  for (const std::string& options :
       std::vector<std::string>{std::string("plan --draft a:alpha=0.8,c=0.1 --draft b:alpha=0.6,c=0.01 --batch 1,4"),
                                "plan --bench" + bench_files()}) {
    std::ofstream(file) << run_specdec(options + " --print-config").out;
    const Run again = run_specdec("plan --config " + file);
    INFO(content_of(file) << again.err);
    CHECK(again.out == run_specdec(options).out);
  }
}

TEST_CASE("the break-even cost is that of the draft steps which the kind of draft makes") {
  const ordered_json parallel = json_of("--alpha 0.8 --draft-kind parallel --c 2");
  const ordered_json point = parallel["points"][0];
  CHECK(point["c"] == 2);
  CHECK(point["break_even_c"]["gamma"] == 32);
  // One draft pass a round: 1 + c = E[K] at gamma 32.
  CHECK(point["break_even_c"]["c"].get<double>() == Approx((1 - std::pow(0.8, 33)) / 0.2 - 1).epsilon(1e-12));
  const ordered_json free = json_of("--alpha 0.8 --draft-kind ngram --c 0");
  CHECK(free["points"] == json_of("--alpha 0.8 --draft-kind ngram")["points"]);
  CHECK(free["points"][0]["break_even_c"].is_null());
  CHECK(run_specdec("plan --alpha 0.8 --draft-kind ngram").out.find("costs less") == std::string::npos);
  const ScratchFolder scratch;
  const std::string times = " --draft-kind ngram --cost " + timings_in(scratch, 10, 0.1) + " --c ";
  CHECK(json_of("--alpha 0.8" + times + "0")["points"][0]["break_even_c"].is_null());
  check_refused("--alpha 0.8" + times + "0.3",
                "--c is 0.3, but must be 0: a draft of this kind (ngram) makes no draft step");
}

TEST_CASE("sources that contradict each other are refused in one line") {
  check_refused("--alpha 0.8 --counters x --c 0.1", "--alpha and --counters are given, but must be one");
  check_refused("--bench x --alpha 0.8 --counters y", "--alpha and --counters are given, but must be one");
  check_refused("--bench x --c 0.1", "--c is given, but --bench brings its own costs");
  check_refused("--holdout x --alpha 0.8 --c 0.1", "--holdout is given, but needs --bench beside it");
  const std::string no_step = "c is 0.3, but must be 0: a draft of this kind (ngram) makes no draft step";
  check_refused("--alpha 0.8 --draft-kind ngram --c 0.3", "--" + no_step);
  check_refused("--draft a:alpha=0.8,c=0.3,kind=ngram", "--draft a: " + no_step);
  check_refused("--alpha 0.8 --c 0.1 --draft-cost x", "--draft-cost is given, but needs --cost beside it");
  check_refused("--alpha 0.8 --cost x --verify-factor 2", "--verify-factor is given, but --cost measures that");
  check_refused("--alpha 0.8 --draft a:alpha=0.8,c=0.1",
                "--alpha is given, but each --draft brings its own acceptance");
  check_refused("--alpha 0.8 --c 0.1 --gamma 3 --schedule 1-4:3",
                "--schedule is given, but must not be beside --gamma");
  check_refused("--alpha 0.8 --c 0.1 --emit-file x", "--emit-file is given, but needs --emit beside it");
  check_refused("--alpha 0.8 --c 0.1 --tokens 10 --batch 2",
                "--tokens is given, but goes with one acceptance and --c alone, without batches, files and drafts");
}

TEST_CASE("counters that do not show chains need --at, and trees are refused") {
  const ScratchFolder scratch;
  const std::string log = (scratch / "server.log").string(), tree = (scratch / "tree.json").string();
  std::ofstream(log) << "[2026-09-08 00:21:09] Decode batch, #running-req: 1, #token: 768, token usage: 0.83, "
                        "accept len: 2.85, accept rate: 0.62, cuda graph: True, gen throughput (token/s): 0.73, "
                        "#queue-req: 0\n";
  check_refused(
      "--c 0.1 --counters " + log,
      "--at is missing: " + log +
          " does not show whether drafts are chains; --at G says that every round drafted a chain of G tokens");
  CHECK(json_of("--c 0.1 --at 3 --counters " + log)["points"][0]["rows"][3]["tokens_per_step"].get<double>() ==
        Approx(2.85));
  std::ofstream(tree) << R"({"text":"x","meta_info":{"completion_tokens":100,"prompt_tokens":10,"spec_verify_ct":40,)"
                      << R"("spec_accept_length":2.5,"spec_accept_token_num":60,"spec_draft_token_num":640}})" << '\n';
  CHECK(run_specdec("plan --c 0.1 --counters " + tree).exit_code == 2);
}

TEST_CASE("a file that would count twice is refused") {
  const std::string file = samples + "c8-k3.json", same = samples + "../bench/c8-k3.json";
  check_refused("--bench " + file + " " + same, "--bench is " + same + " twice, but must be once");
  check_refused("--counters " + file + " " + same + " --c 0.1", "--counters is " + same + " twice, but must be once");
  check_refused("--bench " + file + " --holdout " + same, "--holdout is " + same + ", which --bench has too");
}

TEST_CASE("what is in use is called the best where it is") {
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --batch 1 --gamma 8").out.find("In use: gamma 8, the best.") !=
        std::string::npos);
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --batch 1,2 --gamma 8").out.find("is the best at every point.") !=
        std::string::npos);
  CHECK(run_specdec("plan --alpha 0.8 --c 0.05 --batch 1,2 --gamma 3").out.find("with gamma 3 at batch 1, 2.57x and") !=
        std::string::npos);
}

TEST_CASE("wrong entries of lists, schedules and drafts are refused with what was expected") {
  check_refused("--alpha 0.8 --c 0.1 --batch 4,2", "--batch is 4,2, but must be a rising list");
  check_refused("--alpha 0.8 --c 0.1 --batch 0", "--batch is 0, but must be a number in (0, 65536]");
  check_refused("--alpha 0.8 --c 0.1 --batch 1e300", "--batch is 1e300, but must be a number in (0, 65536]");
  check_refused("--alpha 0.8 --c 0.1 --context -1", "--context is -1, but must be a number in [0, 1000000000]");
  check_refused("--alpha 0.8 --c 0.1 --schedule 1-4:3,6-8:1",
                "--schedule is 6-8:1, but must be a range that goes on at batch 5");
  check_refused("--alpha 0.8 --c 0.1 --schedule 1-4:3 --batch 8",
                "--schedule is 1-4:3, but must be a schedule up to batch 8");
  check_refused("--alpha 0.8 --c 0.1 --schedule 4",
                "--schedule is 4, but must be LOW-HIGH:GAMMA,... from batch 1 on without gaps");
  check_refused("--draft a", "--draft is a, but must be NAME:KEY=VALUE,...");
  check_refused("--draft a:alpha=0.8,d=3",
                "--draft a is d=3, but must be KEY=VALUE with a key of alpha, acceptance-length, at, counters, trace, "
                "c, cost, kind, model, tp, rule");
  check_refused("--draft a:alpha=0.8,trace=x,c=0.1",
                "--draft a: 2 of alpha, acceptance-length, counters and trace are given, but must be one");
  check_refused("--draft a:alpha=1.8,c=0.1", "--draft a: --alpha is 1.8, but must be a number in [0, 1]");
  check_refused("--draft a:alpha=0.8,c=0.1 --draft a:alpha=0.7,c=0.1", "--draft a is given twice");
  check_refused("--draft a:alpha=0.8",
                "--draft a: c is missing: the time of one draft step / one target step, a number in [0, 1000000000]");
  check_refused("--alpha 0.8 --c 0.1 --emit llamacpp --draft-kind parallel",
                "engine_config: llamacpp has no options for this kind of draft, but for model, eagle, mtp and ngram");
}

TEST_CASE("what lies outside the measured times is refused, and priced with --extrapolate") {
  const ScratchFolder scratch;
  const std::string options = "--alpha 0.7 --c 0.05 --cost " + timings_in(scratch, 0.01, 0.0002) + " --batch ";
  const Run run = run_specdec("plan " + options + "10000");
  CHECK(run.exit_code == 2);
  CHECK(run.err.find("10000") != std::string::npos);
  CHECK(json_of(options + "10000 --extrapolate")["points"][0]["rows"][0]["extrapolated"] == true);
}

TEST_CASE("a plan by hardware prints the worked example and says what bounds each pass") {
  const IdealHardware ideal;
  const std::string models = ideal.options() + "--draft-model " + ideal.path("8b.json");
  const ordered_json plan = json_of("--alpha 0.8 --context 2048 --batch 1,64,200" + models);
  // Not in the example: the token that the draft catches up on after a full accept, up to 2e-5 of the speedup here.
  CHECK(plan["points"][0]["rows"][4]["speedup"].get<double>() == Approx(2.329418).epsilon(5e-5));
  CHECK(plan["points"][0]["optimal"]["gamma"] == 5);
  CHECK(plan["points"][0]["optimal"]["speedup"].get<double>() == Approx(2.374232).epsilon(5e-5));
  CHECK(plan["points"][1]["rows"][4]["speedup"].get<double>() == Approx(1.514050).epsilon(5e-5));
  CHECK(plan["points"][1]["optimal"]["gamma"] == 2);
  CHECK(plan["points"][1]["seconds_per_output_token"]["baseline"].get<double>() == Approx(0.023431741).epsilon(5e-7));
  CHECK(plan["points"][0]["rows"][4]["bound"] == "weights");
  CHECK(plan["points"][2]["rows"][0]["bound"] == "cache");
  CHECK(plan["points"][2]["rows"][8]["bound"] == "weight_products");
  CHECK(plan["drafts"][0]["cost"] == "roofline");
  CHECK_FALSE(warns(plan, "roofline_uncalibrated"));
  CHECK(warns(plan, "cache_does_not_fit"));
  CHECK(plan["inputs"]["files"].size() == 3);
  CHECK(json_of("--alpha 0.8 --c 0.1 --batch 1")["points"][0]["rows"][0]["bound"].is_null());
  const Run text = run_specdec("plan --alpha 0.8 --context 2048 --batch 200" + models);
  CHECK(text.out.find("verdict    bound\n") != std::string::npos);
  CHECK(text.out.find("would hold that") != std::string::npos);
  // 60000 sequences of a million tokens, of whose caches no accelerator holds less than an eighth.
  CHECK(run_specdec("plan --alpha 0.8 --context 1000000 --batch 60000" + models).out.find("would not help") !=
        std::string::npos);
}

TEST_CASE("presets price a plan with sources, ranges and what calibration narrows") {
  const std::string presets = "--alpha 0.8 --hardware H200 --model llama-3.1-8b --draft-model Llama_3.1-8B --tp 2 ";
  const ordered_json plan = json_of(presets + "--kv-cache-dtype fp8");
  CHECK(warns(plan, "roofline_uncalibrated"));
  CHECK(plan["inputs"]["presets"].size() == 9);
  for (const ordered_json& preset : plan["inputs"]["presets"])
    CHECK_THAT(preset["sources"][0].get<std::string>(), Catch::Matchers::StartsWith("https://"));
  const auto width = [](const ordered_json& document) {
    const ordered_json& ci95 = document["points"][0]["rows"][4]["speedup_ci95"];
    return ci95[1].get<double>() - ci95[0].get<double>();
  };
  CHECK(width(plan) > 0.01);
  const auto assumed = [](const ordered_json& document, const std::string& name) {
    for (const ordered_json& assumption : document["assumptions"])
      if (assumption["name"] == name) return assumption["value"].dump() + " " + assumption["source"].get<std::string>();
    return std::string("none");
  };
  CHECK(assumed(plan, "weights") == "\"bf16\" preset");
  CHECK(assumed(plan, "kv cache") == "\"fp8\" user");
  CHECK(assumed(plan, "tensor_parallel") == "2 user");
  const ordered_json calibrated =
      json_of(presets + "--calibrate batch=1,tpot_ms=2.5 --calibrate batch=64,tpot_ms=3.6,gamma=3,tokens_per_step=2.9");
  CHECK_FALSE(warns(calibrated, "roofline_uncalibrated"));
  CHECK(assumed(calibrated, "context of batch=1,tpot_ms=2.5") == "0 default");
  CHECK(calibrated["points"][0]["seconds_per_output_token"]["baseline"].get<double>() == Approx(2.5e-3).epsilon(0.03));
  CHECK(warns(json_of("--alpha 0.8 --hardware l4 --model llama-3.1-8b --weight-dtype fp32 --draft-kind ngram"),
              "weights_do_not_fit"));
}

TEST_CASE("several drafts on one hardware are compared, and its options are refused where they say nothing") {
  const IdealHardware ideal;
  const ordered_json plan =
      json_of("--draft small:alpha=0.8,model=" + ideal.path("8b.json") + ",tp=1 --draft lookup:alpha=0.3,kind=ngram" +
              ideal.options().replace(ideal.options().find("--draft-weight-dtype fp8"), 24, ""));
  CHECK(plan["recommended_draft"] == "small");
  CHECK(plan["drafts"].size() == 2);

  const std::string base = "--alpha 0.8 --hardware h200 --model llama-3.1-8b --draft-model llama-3.1-8b ";
  check_refused("--alpha 0.8 --c 0.1 --tp 2", "--tensor-parallel-size is given, but needs --hardware beside it");
  check_refused(base + "--c 0.1", "--c is given, but --hardware prices rounds");
  check_refused(base + "--extrapolate", "--extrapolate is given, but --hardware prices rounds");
  check_refused("--alpha 0.8 --hardware h200", "--model is missing: --hardware prices it");
  check_refused("--alpha 0.8 --hardware h200 --model llama-3.1-8b",
                "--draft-model is missing: --hardware prices the draft by its architecture");
  check_refused("--alpha 0.8 --hardware nothing --model llama-3.1-8b",
                "--hardware is nothing, but must be a file or one of `specdec list hardware`");
  check_refused(
      "--alpha 0.8 --hardware h200 --model nothing",
      "--model is nothing, but must be a config.json, its folder, a GGUF file or one of `specdec list models`");
  check_refused(base + "--draft-kind ngram", "--draft-model is given, but no model drafts");
  check_refused(base + "--weight-dtype q4",
                "--weight-dtype is q4, but must be one of fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4");
  check_refused(base + "--compute-efficiency 0.9:0.2",
                "--compute-efficiency is 0.9:0.2, but must be a number or LOW:HIGH with LOW <= HIGH");
  check_refused(base + "--bandwidth-efficiency 0", "--bandwidth-efficiency is 0, but must be a number in [1e-06, 1]");
  check_refused(base + "--calibrate batch=8", "--calibrate is batch=8, but must be a list that has batch=B,tpot_ms=T");
  check_refused(base + "--calibrate batch=8,tpot_ms=9,gamma=2",
                "--calibrate is batch=8,tpot_ms=9,gamma=2, but must be a list that has tokens_per_step beside gamma");
  check_refused(
      base + "--calibrate batch=8,tpot_ms=9,tokens_per_step=2",
      "--calibrate is batch=8,tpot_ms=9,tokens_per_step=2, but must be a list whose tokens_per_step is at most "
      "gamma + 1, 1");
  check_refused(
      base + "--calibrate batch=8,speed=9",
      "--calibrate is speed=9, but must be KEY=VALUE with a key of batch, tpot_ms, gamma, tokens_per_step, context");
  check_refused("--draft x:alpha=0.8,c=0.1 --hardware h200 --model llama-3.1-8b",
                "--draft x: c is given, but --hardware prices rounds");
}
