#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::content_of;
using specdec::tests::document_of_run;
using specdec::tests::Metadata;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::scalar_trace;
using specdec::tests::ScratchFolder;
using specdec::tests::warns;

namespace {

const std::string samples = specdec::tests::source_dir() + "/traces/samples/bench/";

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
               "peak_flops": {"bf16": 989.4e12, "fp8": 1978.9e12}, "link_bytes_per_second": 1e20})";
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

/// The text with single spaces for all its breaks.
std::string without_breaks(const std::string& text) {
  std::string joined;
  std::istringstream words(text);
  for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

std::string text_of(const std::string& options) { return without_breaks(run_specdec("plan " + options).out); }

std::vector<std::string> verdicts_of(const ordered_json& plan) {
  std::vector<std::string> verdicts;
  for (const ordered_json& point : plan["points"]) verdicts.push_back(point["verdict"]);
  return verdicts;
}

}  // namespace

TEST_CASE("without axes a plan has one point, at which the closed forms are") {
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05");
  REQUIRE(plan["points"].size() == 1);
  const ordered_json& point = plan["points"][0];
  CHECK(point["batch"] == 1.0);
  CHECK(point["verdict"] == "sure");
  CHECK(point["gamma"] == plan["closed_form"]["best_gamma"]);
  CHECK(point["speedup"]["value"].get<double>() ==
        Approx(plan["closed_form"]["best_speedup"].get<double>()).epsilon(1e-12));
  CHECK(point["near_optimal_gammas"] == ordered_json{8});
  CHECK(plan["drafts"].size() == 1);
  CHECK(plan["recommended_draft"] == plan["drafts"][0]["name"]);
  CHECK(plan["config"].is_null());
}

TEST_CASE("the point of the closed forms has their speedup at every gamma") {
  const ordered_json plan = json_of("--alpha 0.75 --c 0.07 --verify-factor 2:1.02,9:1.4 --overhead 0.03 --max-gamma 8");
  REQUIRE(plan["points"][0]["rows"].size() == 9);
  for (const ordered_json& row : plan["points"][0]["rows"]) {
    const int gamma = row["gamma"];
    const double tokens = (1 - std::pow(0.75, gamma + 1)) / 0.25;
    const double verifying = gamma == 0 ? 1 : 1.02 + 0.38 * (gamma - 1) / 7;
    const double round = gamma == 0 ? 1 : verifying + 0.07 * gamma + 0.03;
    CHECK(row["tokens_per_step"]["value"].get<double>() == Approx(tokens).epsilon(1e-12));
    CHECK(row["speedup"]["value"].get<double>() == Approx(tokens / round).epsilon(1e-12));
  }
}

TEST_CASE("with axes every batch and context has a point, and there are no closed forms") {
  const ScratchFolder scratch;
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05 --batch 1,8 --context 0,1000,2000 --cost " +
                                    timings_in(scratch, 0.01, 0.0002));
  CHECK(plan["points"].size() == 6);
  CHECK(plan["points"][1]["batch"] == 8.0);
  CHECK(plan["points"][1]["context"] == 0.0);
  CHECK(plan["points"][5]["context"] == 2000.0);
  CHECK(plan["closed_form"].is_null());
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
      CHECK(point["rows"][gamma]["speedup"]["value"].get<double>() ==
            Approx(closed["points"][0]["rows"][gamma]["speedup"]["value"].get<double>()).epsilon(1e-12));
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
      CHECK(point["rows"][static_cast<std::size_t>(gamma)]["speedup"]["value"].get<double>() == Approx(speedup).epsilon(1e-9));
      if (speedup > best_speedup) {
        best_speedup = speedup;
        best = gamma;
      }
    }
    CHECK(point["gamma"] == (best_speedup >= 1.1 ? best : 0));
    CHECK(point["verdict"] == (best_speedup >= 1.1 ? "sure" : "no"));
  }
  CHECK(verdicts_of(plan) == std::vector<std::string>{"sure", "sure", "no"});
}

TEST_CASE("an interval around what is asked for cannot tell, and names the run that would") {
  const ordered_json plan = json_of("--alpha 0.5:0.7 --c 0.5 --min-gain 0.05 --batch 16 --model org/m");
  const ordered_json& point = plan["points"][0];
  CHECK(point["verdict"] == "open");
  const std::string command = point["next_measurement"]["command"];
  CHECK(command.rfind("vllm bench serve --model org/m --dataset-name custom --dataset-path PROMPTS --num-prompts ",
                      0) == 0);
  CHECK(command.find("--max-concurrency 16") != std::string::npos);
  const std::string text = run_specdec("plan --alpha 0.5:0.7 --c 0.5 --batch 16 --model org/m").out;
  CHECK(text.find("\n  " + command.substr(0, 30)) != std::string::npos);
}

// Made by traces/samples/serving/make_samples.py: 6 + 0.8 gamma + 0.15 (gamma + 1) B milliseconds, with an error of
// 0.5% in each of 4 or 5 windows, and alpha 0.72.
TEST_CASE("the windows of engines' logs price rounds, with acceptance from wherever the user says") {
  const std::string logs = specdec::tests::source_dir() + "/traces/samples/serving/";
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
      // No window drafted 2: what a draft costs beside the fixed part of a round is a usual share.
      CHECK(row["round_seconds"].get<double>() ==
            Approx(1e-3 * (6 + 0.8 * draft + 0.15 * (draft + 1) * batch)).epsilon(gamma == 2 ? 0.08 : 0.02));
      CHECK(row["tokens_per_step"]["value"].get<double>() == Approx((1 - std::pow(0.72, draft + 1)) / 0.28).epsilon(0.02));
      CHECK(row["extrapolated"] == false);
    }
  }
  const ordered_json one = json_of(both + "--alpha 0.72 --batch 8 --max-num-seqs 48");
  REQUIRE(one["points"].size() == 1);
  CHECK(one["schedule"].back()["to"] == 48);

  CHECK(warns(json_of(both + "--alpha 0.72 --context 100,9000"), "context_not_told"));
  const ordered_json speculative_alone = json_of("--alpha 0.7 --cost " + logs + "vllm_k4.log");
  CHECK(warns(speculative_alone, "no_plain_runs"));
  for (const ordered_json& point : speculative_alone["points"]) {
    CHECK(point["verdict"] != "sure");
    CHECK(point["basis"] == "extrapolated");
    CHECK(point["next_measurement"]["with_baseline"] == true);
  }
  check_refused(
      "--alpha 0.7 --cost " + logs + "vllm_plain.log",
      "--cost: no steady window of " + logs + "vllm_plain.log drafted, so that they do not say what drafting costs");
  check_refused(both + "--alpha 0.7 --c 0.1", "--c is given, but the log of --cost holds that time");
  check_refused(both + "--draft a:alpha=0.7", "--draft is given, but the log of --cost is of one draft");
  check_refused("--bench " + logs + "vllm_k4.log",
                "--bench: " + logs +
                    "vllm_k4.log has no benchmark run; to plan from logs alone, give them to --cost, "
                    "and to --counters those with speculation");
  check_refused("--alpha 0.7 --cost " + logs + "vllm_k4.log " + logs + "vllm_before.prom",
                logs +
                    "vllm_before.prom:3: vllm:inter_token_latency_seconds is missing, or without one of its series, "
                    "but must be given beside vllm:iteration_tokens_total and vllm:time_to_first_token_seconds: they "
                    "say how long rounds take");
  check_refused(
      "--alpha 0.7 --cost " + logs + "vllm_k4.log " + logs + "vllm_requests.jsonl",
      "--cost is " + logs + "vllm_k4.log, an engine's log or scrape, and " + logs +
          "vllm_requests.jsonl, which is neither, but must be logs and scrapes alone or tables of times alone");
}

TEST_CASE("two scrapes of one vLLM server are a plan, and two of it without drafts besides make it narrow") {
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/serving/";
  const std::string drafts = folder + "vllm_k4_before.prom " + folder + "vllm_k4_after.prom ";
  const std::string plain = folder + "vllm_plain_before.prom " + folder + "vllm_plain_after.prom ";
  const ordered_json alone = json_of("--cost " + drafts + "--counters " + drafts);
  const ordered_json both = json_of("--cost " + drafts + plain + "--counters " + drafts);
  // 6 + 0.15 B ms without drafts, 6 + 0.8 4 + 0.15 5 B with four: what the servers of the files take.
  const double batch = both["points"][0]["batch"];
  CHECK(batch == Approx(8).epsilon(0.05));
  const auto of_gamma = [](const ordered_json& plan, int gamma) {
    for (const ordered_json& row : plan["points"][0]["rows"]) {
      if (row["gamma"] == gamma) return row;
    }
    return ordered_json();
  };
  const double tokens = of_gamma(both, 4)["tokens_per_step"]["value"].get<double>();
  const double truth = tokens * (6 + 0.15 * batch) / (6 + 0.8 * 4 + 0.15 * 5 * batch);
  for (const ordered_json& plan : {alone, both}) {
    const ordered_json interval = of_gamma(plan, 4)["speedup"]["ci95"];
    CHECK(interval[0].get<double>() < truth);
    CHECK(truth < interval[1].get<double>());
  }
  const auto width = [&](const ordered_json& plan) {
    const ordered_json interval = of_gamma(plan, 4)["speedup"]["ci95"];
    return interval[1].get<double>() - interval[0].get<double>();
  };
  CHECK(width(both) < 0.6 * width(alone));
  CHECK(of_gamma(both, 4)["speedup"]["value"].get<double>() == Approx(truth).epsilon(0.1));
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
  CHECK(seconds(0) == Approx(1e-3 * (6 + 0.15 * 8)).epsilon(0.01));
  CHECK(seconds(4) == Approx(1e-3 * (9.2 + 0.75 * 8)).epsilon(0.01));
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
  CHECK(command(rate).rfind("vllm bench serve --model org/m --dataset-name custom --dataset-path PROMPTS --num-prompts "
                            "24 --max-concurrency 3 "
                            "--save-result",
                            0) == 0);
  CHECK(command(rate + "--emit sglang")
            .rfind("python -m sglang.bench_serving --model org/m --dataset-name custom --dataset-path PROMPTS "
                   "--num-prompts ",
                   0) == 0);
  CHECK(command(rate + "--emit trtllm") ==
        "python -m tensorrt_llm.serve.scripts.benchmark_serving --model org/m --dataset-name trtllm_custom "
        "--dataset-path PROMPTS --num-prompts 24 --max-concurrency 3 --save-result");
  const std::string bench =
      "python tools/server/bench/speed-bench/speed_bench.py --bench qualitative --concurrency 3 --output run.json";
  CHECK(command(rate + "--emit llamacpp") == bench);
  CHECK(command("--alpha 0.5:0.9 --c 0.01 --min-gain 0.2 --cost " + specdec::tests::source_dir() +
                "/traces/samples/llamacpp/batched-bench.jsonl") == bench);
  const std::string log = (scratch / "server.log").string();
  std::ofstream(log)
      << "slot print_timing: id  1 | task 0 | draft acceptance = 0.64479 (  167 accepted /   259 generated), "
         "mean acceptance length =  2.92, acceptance rate per position = (0.805, 0.632, 0.483)\n";
  CHECK(command("--c 0.35 --min-gain 0.4 --counters " + log).find("speed_bench.py ") != std::string::npos);
}

TEST_CASE("counters of one model are not planned for another without a word") {
  const ScratchFolder scratch;
  std::ofstream(scratch / "other.txt")
      << "vllm:spec_decode_num_drafts_total{model_name=\"example/target-8b\"} 1000\n"
         "vllm:spec_decode_num_draft_tokens_total{model_name=\"example/target-8b\"} 3000\n"
         "vllm:spec_decode_num_accepted_tokens_total{model_name=\"example/target-8b\"} "
         "1500\n";
  const std::string counters =
      "--counters " + (scratch / "other.txt").string() + " --at 3 --hardware h100 --draft-kind ngram ";
  const ordered_json other = json_of(counters + "--tp 4 --model llama-3.3-70b");
  REQUIRE(warns(other, "acceptance_of_another_model"));
  for (const ordered_json& warning : other["warnings"]) {
    if (warning["code"] != "acceptance_of_another_model") continue;
    CHECK(warning["message"].get<std::string>().find("example/target-8b") != std::string::npos);
    CHECK(warning["message"].get<std::string>().find("llama-3.3-70b") != std::string::npos);
  }
  std::string same = content_of((scratch / "other.txt").string());
  for (std::size_t at = 0; (at = same.find("example/target-8b", at)) != std::string::npos; ++at) {
    same.replace(at, 17, "meta-llama/Llama-3.1-8B-Instruct");
  }
  std::ofstream(scratch / "other.txt") << same;
  CHECK_FALSE(warns(json_of(counters + "--model llama-3.1-8b"), "acceptance_of_another_model"));
}

TEST_CASE("a calibration that is faster than the peaks of the hardware is refused") {
  const std::string options = "--alpha 0.8 --hardware h100 --model llama-3.1-8b --draft-kind ngram --calibrate ";
  const Run run = run_specdec("plan " + options + "batch=8,tpot_ms=0.0001");
  CHECK(run.exit_code == 2);
  CHECK(
      run.err.find("--calibrate: an iteration at gamma 0, batch 8 and context 0 takes 0.0001 ms by what was measured, "
                   "but at least ") != std::string::npos);
  CHECK(run_specdec("plan " + options + "batch=8,tpot_ms=7").exit_code == 0);
}

TEST_CASE("llama-bench's two models of one type are told apart by size, and a wrong name is answered with both") {
  const std::string table = specdec::tests::source_dir() + "/traces/samples/llamacpp/llama-bench.md";
  const std::string target = "'llama ?B all F32 (11.63 MiB / 3.05 M)'",
                    draft = "'llama ?B all F32 (0.57 MiB / 0.15 M)'";
  const std::string both = "llama ?B all F32 (11.63 MiB / 3.05 M), llama ?B all F32 (0.57 MiB / 0.15 M)";
  const std::string question = "--alpha 0.4 --cost " + table;
  check_refused(question, "--model is missing: --cost holds the models " + both);
  check_refused(question + " --model 'llama ?B all F32' --c 0.1",
                "--model is llama ?B all F32, but must be one of " + both);
  check_refused(question + " --model " + target + " --draft-model draft",
                "--draft-model is draft, but must be one of " + both);
  const ordered_json plan = json_of(question + " --max-gamma 4 --model " + target + " --draft-model " + draft);
  CHECK(plan["points"][0]["seconds_per_output_token"]["baseline"].get<double>() == Approx(1 / 187.61).epsilon(0.02));
}

TEST_CASE(
    "a llama.cpp draft pays for decoding the verified tokens again, which brings plans nearer to what was measured") {
  // Tokens per step and speedups that llama.cpp 0.5.0 reached with the pair of the table, one thread, temperature 0.
  const std::string table = specdec::tests::source_dir() + "/traces/samples/llamacpp/llama-bench.md";
  const std::string question =
      "--acceptance-length 1:1.429,2:1.644,3:1.738,4:1.787,6:1.828,8:1.844 --max-gamma 8 "
      "--model 'llama ?B all F32 (11.63 MiB / 3.05 M)' --draft-model 'llama ?B all F32 (0.57 MiB / 0.15 M)' --cost " +
      table;
  const std::vector<std::pair<std::size_t, double>> measured = {{1, 0.584}, {2, 0.546}, {3, 0.478},
                                                                {4, 0.418}, {6, 0.336}, {8, 0.270}};
  const ordered_json mirrored = json_of(question), model = json_of(question + " --draft-kind model");
  double error_mirrored = 0, error_model = 0;
  for (const auto& [gamma, speedup] : measured) {
    const auto of = [&, g = gamma](const ordered_json& plan) {
      return plan["points"][0]["rows"][g]["speedup"]["value"].get<double>();
    };
    CHECK(of(mirrored) < of(model));
    error_mirrored += std::abs(std::log(of(mirrored) / speedup));
    error_model += std::abs(std::log(of(model) / speedup));
  }
  CHECK(error_mirrored < error_model);
}

TEST_CASE("a log of answers given for times of passes is refused with what times passes") {
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/llamacpp/";
  check_refused("--alpha 0.5 --c 0.1 --cost " + folder + "server.log",
                "--cost is " + folder +
                    "server.log, a log of llama.cpp, which times whole answers and no passes: time passes with "
                    "llama-bench (-p 2,3,5,9 -n 32), or give it to --bench beside one of plain decoding");
}

TEST_CASE("answers of llama-server with and without speculation are runs") {
  const std::string answers = specdec::tests::source_dir() + "/traces/samples/llamacpp/server-answers.jsonl";
  const ScratchFolder scratch;
  const std::string plain = (scratch / "plain.jsonl").string();
  std::ofstream out(plain);
  for (int i = 0; i < 8; ++i) {
    out << R"({"id_slot":0,"model":"target.nosp.gguf","tokens_evaluated":112,"timings":{"predicted_n":64,)"
        << R"("predicted_ms":)" << 300 + i << "}}\n";
  }
  out.close();
  const ordered_json plan = json_of("--bench " + plain + " " + answers);
  REQUIRE(plan["runs"].size() == 2);
  CHECK(plan["runs"][0]["gamma"] == 0);
  CHECK(plan["runs"][0]["seconds_per_output_token"].get<double>() == Approx(0.3035 / 63));
  CHECK(plan["runs"][1]["gamma"] == 3);
  CHECK(plan["runs"][1]["tokens_per_step"].get<double>() == Approx(1 + 310.0 / 1265));
  CHECK(plan["runs"][1]["batch"].get<double>() == Approx(1));
}

/// A log of llama-server whose first answer has 64 tokens in half a second.
std::string server_log(const ScratchFolder& scratch, const std::string& name, const std::string& more) {
  std::ofstream(scratch / name) << "eval time = 500.0 ms / 64 tokens (..)\n" << more;
  return (scratch / name).string();
}

TEST_CASE("answers of llama-server's log that a stop cut within a draft are left out, and are said to be") {
  const ScratchFolder scratch;
  const std::string drafts = "draft acceptance = 0.50000 (20 accepted / 40 generated)\n";
  const std::string cut =
      "eval time = 50.0 ms / 2 tokens (..)\ndraft acceptance = 1.00000 (1 accepted / 1 generated)\n";
  const std::string plain = server_log(scratch, "plain.log", "");
  const ordered_json whole = json_of("--bench " + plain + " " + server_log(scratch, "whole.log", drafts) + " --at 2");
  const ordered_json left = json_of("--bench " + plain + " " + server_log(scratch, "cut.log", drafts + cut) + " --at 2");
  CHECK(left["runs"][1]["tokens_per_step"] == whole["runs"][1]["tokens_per_step"]);
  CHECK(left["runs"][1]["seconds_per_output_token"] == whole["runs"][1]["seconds_per_output_token"]);
  CHECK(warns(left, "stopped_in_a_draft"));
  CHECK_FALSE(warns(whole, "stopped_in_a_draft"));
}

TEST_CASE("a log of lookups tells how long drafts are, and another length is refused") {
  const ScratchFolder scratch;
  // 5 drafts of 4 tokens in 48 steps.
  const std::string lookups = server_log(
      scratch, "lookups.log", "draft acceptance = 0.75000 (15 accepted / 20 generated), mean len = 4.00\n");
  const std::string question =
      "--bench " + server_log(scratch, "plain.log", "") + " " + lookups + " --draft-kind ngram";
  const ordered_json run = json_of(question)["runs"][1];
  CHECK(run["gamma"] == 4);
  CHECK(run["tokens_per_step"].get<double>() == Approx(1 + 15.0 / 48));
  check_refused(question + " --at 2",
                lookups + ": drafted tokens of a round is 4, but must be at most 2, the longest draft");
}

TEST_CASE("rounds of lookups all of which drafted are not taken for all steps") {
  // As a server counts them: 104 drafts of four tokens in some 480 steps, which the table does not tell.
  const ScratchFolder scratch;
  const std::string table = (scratch / "runs.csv").string();
  std::ofstream(table) << "concurrency,gamma,tok/s,num_drafts,num_draft_tokens,num_accepted_tokens\n"
                       << "1,0,111.8,,,\n1,4,125.9,104,412,294\n";
  const ordered_json row = json_of("--bench " + table + " --draft-kind ngram --gamma 4")["points"][0]["rows"][4];
  CHECK(row["tokens_per_step"]["value"].get<double>() < 2);
  CHECK(row["speedup"]["value"].get<double>() == Approx(125.9 / 111.8).epsilon(0.02));
}

TEST_CASE("a typed length that a mean length of drafts cannot give is refused") {
  check_refused(
      "--acceptance-length 3.83 --at 4 --draft-kind ngram --hit-rate 0.3 --mean-draft-length 2 --c 0",
      "--mean-draft-length is 2, but rounds with a draft then make at most 2.88 tokens with 4 drafts, and 3.83 are "
      "stated");
}

TEST_CASE("llama-server's log is the run that its answers are") {
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/llamacpp/server";
  const ScratchFolder scratch;
  const std::string plain = (scratch / "plain.log").string();
  for (const char* milliseconds : {"303.5", "304.5"}) {
    std::ofstream(plain, std::ios::app) << "slot print_timing: id  0 | task 1 | prompt eval time = 99 ms / 118 tokens\n"
                                        << "slot print_timing: id  0 | task 1 | eval time = " << milliseconds
                                        << " ms / 64 tokens (4.75 ms per token)\n";
  }
  const ordered_json of_log = json_of("--bench " + plain + " " + folder + ".log")["runs"];
  const ordered_json of_answers = json_of("--bench " + plain + " " + folder + "-answers.jsonl")["runs"];
  REQUIRE(of_log.size() == 2);
  CHECK(of_log[0]["seconds_per_output_token"].get<double>() == Approx(0.304 / 63));
  for (const char* figure : {"gamma", "tokens_per_step"}) CHECK(of_log[1][figure] == of_answers[1][figure]);
  // The log rounds to hundredths of a millisecond.
  CHECK(of_log[1]["seconds_per_output_token"].get<double>() ==
        Approx(of_answers[1]["seconds_per_output_token"].get<double>()).epsilon(1e-5));
}

TEST_CASE("a length of drafts that answers do not show is asked for by the option's name") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "answers.jsonl").string();
  std::ofstream(file) << R"({"timings":{"predicted_n":64,"predicted_ms":300,"draft_n":130,"draft_n_accepted":14}})"
                      << '\n';
  check_refused("--c 0.1 --counters " + file,
                "--at is missing: " + file +
                    " does not say how many tokens a round drafts at most, and 2.653 a round on average is not just "
                    "below a whole number; --at G says it");
  CHECK(json_of("--c 0.1 --at 4 --counters " + file)["points"].size() == 1);
}

TEST_CASE("several drafts are compared and the faster one is taken") {
  const ordered_json plan = json_of(
      "--draft slow:alpha=0.8,c=0.5 --draft quick:acceptance-length=2.5,at=3,c=0.05,kind=eagle,model=org/head,tp=2 "
      "--batch 1,4 --emit vllm");
  CHECK(plan["recommended_draft"] == "quick");
  CHECK(plan["drafts"][0]["name"] == "slow");
  CHECK(plan["drafts"][0]["points"][0]["best"] == false);
  CHECK(plan["drafts"][1]["points"][0]["best"] == true);
  const ordered_json config = ordered_json::parse(plan["config"]["text"].get<std::string>());
  CHECK(config["model"] == "org/head");
  CHECK(config["method"] == "eagle3");
  CHECK(config["draft_tensor_parallel_size"] == 2);
}

TEST_CASE("counters give the observed tokens at the gamma that was measured") {
  const ScratchFolder scratch;
  const ordered_json plan = json_of("--counters " + counters_in(scratch) + " --c 0.05");
  REQUIRE(plan["points"].size() == 1);
  const ordered_json& point = plan["points"][0];
  const ordered_json& tokens = point["rows"][4]["tokens_per_step"];
  CHECK(tokens["value"].get<double>() == Approx(1 + 1.8).epsilon(0.02));
  CHECK(tokens["ci95"][0].get<double>() < 2.8);
  CHECK(tokens["ci95"][1].get<double>() > 2.8);
  CHECK(point["rows"][4]["extrapolated"] == false);
  CHECK(point["rows"][9]["extrapolated"] == true);
  CHECK(plan["inputs"]["files"][0]["size_bytes"].is_number());
}

TEST_CASE("a recording gives the tokens per step and the speedups that its analysis prints") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "trace.safetensors").string();
  REQUIRE(run_specdec("trace generate --sequences 6 --tokens 60 --output " + file).exit_code == 0);
  const ordered_json plan = json_of("--trace " + file + " --c 0.1");
  const Run run = run_specdec("analyze --gamma 1:4 --c 0.1 --format json " + file);
  const ordered_json analysis = ordered_json::parse(run.out);
  REQUIRE(analysis["gammas"].size() == 4);
  for (const ordered_json& row : analysis["gammas"]) {
    const std::size_t gamma = row["gamma"];
    CHECK(plan["points"][0]["rows"][gamma]["tokens_per_step"]["value"].get<double>() ==
          Approx(row["tokens_per_step"]["replay"]["value"].get<double>()).epsilon(1e-3));
    // The median of resampled prompts, and the estimate itself. The drafts behind the ends of texts of 60 tokens are a
    // twentieth of the cost.
    CHECK(plan["points"][0]["rows"][gamma]["speedup"]["value"].get<double>() ==
          Approx(row["speedup"]["replay"]["value"].get<double>()).epsilon(1e-3));
  }
  const std::size_t fastest =
      ordered_json::parse(run_specdec("analyze --c 0.1 --format json " + file).out)["optimal"]["gamma"];
  CHECK(plan["points"][0]["speedup"]["value"].get<double>() ==
        Approx(plan["points"][0]["rows"][fastest]["speedup"]["value"].get<double>()).epsilon(1e-3));
  const auto says = [](const ordered_json& document, const std::string& value) {
    const ordered_json expected = {{"name", "steps at the ends of texts"}, {"value", value}, {"source", "default"}};
    const ordered_json& all = document["assumptions"];
    return std::count(all.begin(), all.end(), expected) == 1;
  };
  CHECK(says(plan, "charged for all their drafts, but yielding only the tokens left"));
  CHECK(says(analysis, "charged for all their drafts, but yielding only the tokens left"));
}

TEST_CASE("a plan says whether the acceptance rule of a recording is the user's, the file's or the default") {
  const ScratchFolder scratch;
  const auto file = [&](const char* name, const Metadata& metadata) {
    return scalar_trace(scratch / name, std::vector<double>(40, 0.8), std::vector<std::int64_t>(40, 0), metadata)
        .string();
  };
  const auto source_of_rule = [](const std::string& options) {
    const ordered_json plan = json_of("--c 0.1 --trace " + options);
    for (const ordered_json& assumption : plan["assumptions"]) {
      if (assumption["name"] == "acceptance") return assumption["source"].get<std::string>();
    }
    return std::string();
  };
  const std::string silent = file("silent.safetensors", {});
  CHECK(source_of_rule(silent) == "default");
  CHECK(source_of_rule(silent + " --acceptance rejection") == "user");
  CHECK(source_of_rule(file("says.safetensors", {{"acceptance", "rejection"}})) == "file");
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
  CHECK(plan["backtest"][0]["drifted"].is_null());
  const ordered_json& next = plan["bench"]["next_run"];
  REQUIRE(next.is_object());
  CHECK(next["regret_after"].get<double>() < plan["bench"]["expected_regret"].get<double>());
  CHECK(next["command"].get<std::string>().rfind("vllm bench serve --model ", 0) == 0);
  CHECK(plan["points"].front()["verdict"] == "sure");
  // vLLM's schedules cost more than one of these would gain.
  CHECK(plan["schedule"].size() == 1);
  CHECK(plan["schedule"].front()["from"] == 1);
  CHECK_FALSE(plan["config"].is_null());
}

TEST_CASE("a table of runs is planned from, with acceptance of its own or of another source") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "runs.csv").string(), bare = (scratch / "bare.csv").string();
  std::ofstream(file) << "concurrency,gamma,ms_per_token,tokens_per_step,rounds\n1,0,6.1,,\n1,3,3.3,2.67,1000\n"
                         "32,0,10.8,,\n32,3,9.4,2.59,1000\n";
  std::ofstream(bare) << "concurrency,gamma,ms_per_token\n1,0,6.1\n1,3,3.3\n32,0,10.8\n32,3,9.4\n";
  const ordered_json plan = json_of("--bench " + file);
  REQUIRE(plan["runs"].size() == 4);
  CHECK(plan["runs"][1]["line"] == 3);
  CHECK(plan["runs"][1]["round_seconds"].get<double>() == Approx(2.67 * 0.0033));
  CHECK(plan["runs"][1]["measured_speedup"]["value"].get<double>() == Approx(6.1 / 3.3));
  CHECK(plan["points"][0]["verdict"] == "sure");
  const ordered_json timed = json_of("--bench " + bare);
  CHECK(warns(timed, "acceptance_of_other_source"));
  CHECK_FALSE(warns(timed, "acceptance_from_prior"));
  std::ofstream(scratch / "plain.csv") << "concurrency,gamma,ms_per_token\n1,0,6.1\n";
  const std::string plain = "--bench " + (scratch / "plain.csv").string();
  CHECK(warns(json_of(plain), "acceptance_from_prior"));
  const ordered_json beside = json_of(plain + " --acceptance-length 2.67 --at 3");
  CHECK_FALSE(warns(beside, "acceptance_from_prior"));
  CHECK(beside["points"][0]["rows"][3]["tokens_per_step"]["value"].get<double>() == Approx(2.67).epsilon(0.01));
  CHECK(timed["runs"][1]["measured_speedup"]["value"].get<double>() == Approx(6.1 / 3.3));
  const ordered_json typed = json_of("--bench " + bare + " --acceptance-length 2.67 --at 3");
  CHECK(typed["runs"][3]["tokens_per_step"].get<double>() == Approx(2.67).epsilon(0.02));
}

TEST_CASE("runs that cannot be as they say decide nothing, and that is said first") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "runs.csv").string();
  std::ofstream(file) << "batch,gamma,ms_per_token,tokens_per_step,rounds\n1,0,20,,\n1,3,3.8,2.7,1000\n"
                         "8,0,22.9,,\n8,3,5.3,2.7,1000\n";
  const std::string text = run_specdec("plan " + std::string("--bench " + file)).out;
  CHECK(text.starts_with("Nothing is decided: " + file));
  CHECK(text.find("Sure") == std::string::npos);
  const ordered_json plan = json_of("--bench " + file);
  for (const ordered_json& point : plan["points"]) {
    CHECK(point["verdict"] == "open");
    CHECK(point["next_measurement"]["with_baseline"] == true);
  }
}

TEST_CASE("the next run of llama.cpp is asked for in its own words") {
  const std::string log = specdec::tests::source_dir() + "/traces/samples/llamacpp/server.log";
  const std::string text = run_specdec("plan " + std::string("--counters " + log + " --c 0.02 --min-gain 0.17")).out;
  CHECK(text.find("num_speculative_tokens") == std::string::npos);
  CHECK(text.find("--spec-draft-n-max ") != std::string::npos);
}

TEST_CASE("runs that all drafted leave the gain open and ask for a plain run") {
  std::string files;
  for (const char* run : {"c1-k3", "c1-k5", "c32-k3", "c32-k5"}) files += " " + samples + run + ".json";
  const ordered_json plan = json_of("--bench" + files);
  CHECK(warns(plan, "no_plain_runs"));
  for (const ordered_json& point : plan["points"]) {
    CHECK(point["share"].get<double>() < 0.99);
    CHECK(point["basis"] == "extrapolated");
    CHECK(point["rows"][3]["speedup"]["ci95"][0].get<double>() < 1);
    CHECK(point["next_measurement"]["with_baseline"] == true);
  }
  CHECK(plan["bench"]["next_run"]["gamma"] == 0);
  CHECK(plan["decision"]["next"] == plan["bench"]["next_run"]["command"]);
  CHECK(run_specdec("plan --bench" + files).out.find(" and\n  vllm bench serve") !=
        std::string::npos);
}

TEST_CASE("an overhead beside runs and logs is added to their rounds and assumed by the user") {
  const ordered_json without = json_of("--bench" + bench_files());
  const ordered_json with = json_of("--bench" + bench_files() + " --overhead-seconds 0.002");
  const auto speedup = [](const ordered_json& plan) { return plan["points"][0]["speedup"]["value"].get<double>(); };
  CHECK(speedup(with) < 0.9 * speedup(without));
  CHECK(with["runs"] == without["runs"]);
  CHECK(with["bench"]["leave_one_out_error"] == without["bench"]["leave_one_out_error"]);
  CHECK(speedup(json_of("--bench" + bench_files() + " --overhead 0.5")) < speedup(with));
}

TEST_CASE("hardware beside runs prices what lies beyond them, scaled to the nearest, and leaves the runs' own points") {
  const std::string bench = "--bench" + bench_files() + " --batch 8,256 --max-gamma 6 ";
  const ordered_json fitted = json_of(bench);
  const ordered_json anchored = json_of(bench + "--hardware h100-sxm --model llama-3.1-8b --draft-model llama-3.2-1b");
  CHECK(anchored["drafts"][0]["cost"] == "anchored");
  CHECK(warns(anchored, "anchored_to_runs"));
  for (std::size_t gamma = 3; gamma <= 5; ++gamma)
    CHECK(anchored["points"][0]["rows"][gamma]["speedup"]["value"].get<double>() ==
          Approx(fitted["points"][0]["rows"][gamma]["speedup"]["value"].get<double>()).epsilon(0.002));
  CHECK(anchored["points"][1]["rows"][4]["speedup"]["value"] != fitted["points"][1]["rows"][4]["speedup"]["value"]);
  CHECK(anchored["points"][1]["rows"][4]["extrapolated"] == true);
  CHECK(anchored["points"][1]["basis"] == "extrapolated");
  for (std::size_t i = 0; i < fitted["runs"].size(); ++i) {
    for (const char* key : {"round_seconds", "tokens_per_step"})
      CHECK(anchored["runs"][i][key] == fitted["runs"][i][key]);
    if (fitted["runs"][i]["gamma"] > 0)
      CHECK(anchored["runs"][i]["measured_speedup"]["value"] == fitted["runs"][i]["measured_speedup"]["value"]);
  }
  check_refused("--bench x --tp 2", "--tensor-parallel-size is given, but needs --hardware beside it");
}

TEST_CASE("benchmark runs are planned with another acceptance, at other points and for other kinds of drafts") {
  const ScratchFolder scratch;
  const std::string bench = "--bench" + bench_files();
  const ordered_json own = json_of(bench);
  const ordered_json other = json_of(bench + " --counters " + counters_in(scratch));
  for (std::size_t i = 0; i < own["runs"].size(); ++i) {
    for (const char* key : {"file", "round_seconds", "prediction_error"})
      CHECK(other["runs"][i][key] == own["runs"][i][key]);
  }
  for (std::size_t i = 0; i < own["points"].size(); ++i) {
    const ordered_json& point = other["points"][i];
    CHECK(point["batch"] == own["points"][i]["batch"]);
    CHECK(point["rows"][4]["tokens_per_step"]["value"].get<double>() == Approx(2.8).epsilon(0.02));
    // The run of gamma 3 at this load.
    CHECK(point["rows"][3]["round_seconds"].get<double>() ==
          Approx(other["runs"][3 * i + 1]["round_seconds"].get<double>()).epsilon(0.03));
  }
  CHECK(other["drafts"][0]["acceptance"]["method"] == "iid_rounds");
  CHECK(own["drafts"][0]["acceptance"].is_null());
  CHECK(text_of(bench + " --alpha 0.7 --explain").find("The plan takes its acceptance from alpha 0.7.") !=
        std::string::npos);

  const ordered_json points = json_of(bench + " --alpha 0.7 --batch 2,16,100 --gamma 3");
  REQUIRE(points["points"].size() == 3);
  CHECK(points["points"][1]["batch"] == 16.0);
  CHECK(points["points"][1]["rows"][1]["tokens_per_step"]["value"].get<double>() == Approx(1.7));
  CHECK(points["points"][0]["rows"][1]["extrapolated"] == false);
  CHECK(points["points"][2]["rows"][1]["extrapolated"] == true);
  CHECK(points["schedule"].back()["to"] == 100);
  CHECK(json_of(bench + " --max-num-seqs 256")["schedule"].back()["to"] == 256);
  check_refused(bench + " --batch 100 --schedule 1-64:3",
                "--schedule is 1-64:3, but must be a schedule up to batch 100");
  const ordered_json far_context = json_of("--context 9000 " + bench);
  for (const ordered_json& point : far_context["points"]) CHECK(point["basis"] == "extrapolated");

  const ordered_json parallel = json_of(bench + " --draft-kind parallel --emit vllm");
  CHECK(parallel["points"][0]["rows"][5]["round_seconds"] != own["points"][0]["rows"][5]["round_seconds"]);
}

TEST_CASE("an acceptance beside runs that is not theirs is said, and --at where every run says its gamma is refused") {
  const std::string bench = "--bench" + bench_files();
  const ordered_json plan = json_of(bench + " --alpha 0.4");
  CHECK(warns(plan, "acceptance_contradicts_runs"));
  CHECK(plan.dump().find("the acceptance that is given makes 1.66 tokens a step, and the runs counted 3.05 [") !=
        std::string::npos);
  CHECK_FALSE(warns(json_of(bench + " --alpha 0.71"), "acceptance_contradicts_runs"));
  CHECK_FALSE(warns(json_of(bench), "acceptance_contradicts_runs"));
  const std::string unread =
      "--at is given, but no run leaves open how many tokens a round drafted: one without counts of drafts is taken as "
      "plain";
  check_refused(bench + " --at 3", unread);
  check_refused(bench + " --alpha 0.7 --at 3", unread);
  CHECK(json_of(bench + " --acceptance-length 2.6 --at 3")["runs"].size() == 12);
}

TEST_CASE("a batch at which no run drafted is marked and not sure, and the run that would tell is named") {
  const std::string three =
      "--bench " + samples + "c8-plain.json " + samples + "c8-k3.json " + samples + "c32-plain.json ";
  const ordered_json plan = json_of(three + "--batch 8,32");
  CHECK(plan["points"][0]["verdict"] == "sure");
  CHECK(plan["points"][0]["rows"][3]["extrapolated"] == false);
  const ordered_json& point = plan["points"][1];
  CHECK(point["verdict"] == "likely");
  CHECK(point["rows"][3]["speedup"]["ci95"][0].get<double>() < 1);
  CHECK(point["basis"] == "extrapolated");
  CHECK(point["rows"][0]["extrapolated"] == false);
  CHECK(point["rows"][3]["extrapolated"] == true);
  CHECK(point["next_measurement"]["batch"] == 32.0);
}

TEST_CASE("a batch that no table timed is priced by its total tokens and marked, and the timed ones are named") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "grid.csv").string();
  std::ofstream out(file);
  out << "batch,tokens,context,seconds\n";
  for (const int batch : {1, 8, 64}) {
    for (const int tokens : {1, 2, 4, 8, 16})
      out << batch << "," << tokens << ",1000," << 0.01 + 0.00001 * batch * tokens << '\n';
  }
  out.close();
  const std::string asked = "--alpha 0.8 --c 0.05 --max-gamma 6 --cost " + file;
  const ordered_json timed = json_of(asked + " --batch 1,32,64");
  CHECK(timed["points"][2]["basis"] == "measured");
  CHECK_FALSE(warns(timed, "not_timed"));
  const ordered_json plan = json_of(asked + " --batch 64,128");
  CHECK(plan["points"][0]["verdict"] == "sure");
  CHECK(plan["points"][1]["basis"] == "extrapolated");
  CHECK(plan["schedule"].back()["basis"] == "extrapolated");
  const std::string text = text_of(asked + " --batch 64,128 --explain");
  CHECK(text.find("Warning (not_timed): at 1 of 2 points, the first at batch 128 and context 1000, passes") !=
        std::string::npos);
  CHECK(text.find("were timed at batch 1 to 64") != std::string::npos);
  CHECK(warns(plan, "not_timed"));
}

TEST_CASE("the basis of a point says whether its price was measured, stated or modelled") {
  CHECK(json_of("--alpha 0.8 --c 0.05 --batch 8")["points"][0]["basis"] == "stated");
  CHECK(json_of("--alpha 0.8 --hardware h100 --model llama-3.1-8b --draft-kind ngram")["points"][0]["basis"] ==
        "modelled");
  CHECK(json_of("--bench" + bench_files())["points"][0]["basis"] == "measured");
}

TEST_CASE("points, schedule and configuration beyond the runs are marked as extrapolated") {
  const std::string bench = "--bench" + bench_files();
  const ordered_json beyond = json_of(bench + " --batch 128")["points"][0];
  CHECK(beyond["basis"] == "extrapolated");
  for (const ordered_json& row : beyond["rows"]) CHECK(row["extrapolated"] == true);
  const ordered_json plan =
      json_of(bench + " --max-num-seqs 256 --emit sglang --draft-kind eagle --draft-model org/draft");
  CHECK(plan["schedule"].front()["basis"] == "measured");
  CHECK(plan["schedule"].back()["basis"] == "extrapolated");
  CHECK(plan["schedule"].back()["to"] == 256);
  const ordered_json text = ordered_json::parse(plan["config"]["text"].get<std::string>());
  for (const ordered_json& stretch : plan["decision"]["schedule"])
    CHECK(text[stretch["from"].dump()]["candidate_steps"] == ordered_json{stretch["gamma"]});
  CHECK(plan["config"]["command"].get<std::string>().find("--max-running-requests 256") != std::string::npos);
}

TEST_CASE("what is emitted runs: repositories, sizes and types, and a gap where nothing is known") {
  const std::string placed = "--alpha 0.8 --hardware h100 --tp 4 --model llama-3.3-70b --draft-model ";
  const ordered_json plan = json_of(placed + "llama-3.2-1b --kv-cache-dtype fp8 --max-num-seqs 32 --emit vllm");
  const ordered_json& variant = plan["config"];
  CHECK(variant["command"] ==
        "vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --max-num-seqs 32 --kv-cache-dtype fp8 "
        "--speculative-config \"$(cat FILE)\"");
  CHECK(ordered_json::parse(variant["text"].get<std::string>())["model"] == "meta-llama/Llama-3.2-1B-Instruct");
  const std::string head = "--alpha 0.8 --hardware h100 --tp 4 --model qwen3-32b --draft-model eagle3-qwen3-32b ";
  const ordered_json unknown = json_of(head + "--emit sglang");
  CHECK(unknown["config"]["text"].get<std::string>().find("'<DRAFT>'") != std::string::npos);
  const ScratchFolder scratch;
  const std::string file = (scratch / "options").string();
  const Run refused = run_specdec("plan " + head + "--emit sglang --emit-file " + file);
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--emit-file is " + file +
                         ", but there is nothing to write that the engine would take: <DRAFT>") != std::string::npos);
  CHECK_FALSE(std::ifstream(file).good());
  const Run nothing = run_specdec("plan --alpha 0.05 --c 0.3 --batch 1,8 --emit vllm --emit-file " + file);
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.err.find("takes no gamma at any batch") != std::string::npos);
}

TEST_CASE("no server is configured that would not start, with what would be missing") {
  const std::string placed = "--alpha 0.8 --hardware h100 --model llama-3.3-70b --emit ";
  check_refused(
      placed + "vllm --draft-model llama-3.2-1b",
      "--emit is vllm, but the weights take 143.6 GB of each h100-sxm, of whose 84.94 GB the engine takes 0.9; "
      "2 of them would hold that");
  check_refused(placed + "sglang --tp 4 --draft-model llama-3.2-1b --batch 1000 --context 100000",
                "--emit is sglang, but at batch 1000 and context 100000 weights and caches take 9048 GB of each "
                "h100-sxm, which has 84.94 GB; dividing the models over more would not help");
  check_refused(placed + "trtllm --tp 3 --draft-model llama-3.2-1b",
                "--emit is trtllm, but 3 accelerators cannot evenly divide 64 heads of llama-3.3-70b");
  check_refused(placed + "vllm --tp 8 --draft-model qwen2.5-7b",
                "--emit is vllm, but 8 accelerators cannot evenly divide 28 heads of qwen2.5-7b");
  CHECK(json_of(placed + "llamacpp --tp 3 --draft-model llama-3.2-1b")["config"]["engine"] == "llamacpp");
  check_refused(placed + "llamacpp --tp 4 --draft-model llama-3.2-1b --kv-cache-dtype fp8",
                "--emit is llamacpp, but llama.cpp keeps keys and values in fp32, fp16, bf16, int8 and int4 alone, and "
                "the plan in fp8");
  for (const char* engine : {"vllm", "sglang", "trtllm", "llamacpp"}) {
    check_refused(
        "--alpha 0.8 --hardware h100 --model t5-xxl --draft-model t5-small --emit " + std::string(engine),
        "--emit is " + std::string(engine) + ", but t5-xxl has an encoder, and the engine serves decoders alone");
  }
  const ScratchFolder scratch;
  const std::string file = (scratch / "options").string();
  CHECK(run_specdec("plan " + placed + "vllm --draft-model llama-3.2-1b --emit-file " + file).exit_code == 2);
  CHECK_FALSE(std::ifstream(file).good());
}

TEST_CASE("llama.cpp is given a draft's GGUF file, and a refusal asks for one") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "options").string();
  const std::string options = "--alpha 0.8 --c 0.05 --batch 1 --emit llamacpp --emit-file " + file + " --draft-model ";
  check_refused(options + "org/draft",
                "--emit-file is " + file +
                    ", but there is nothing to write that the engine would take: <DRAFT> stands for the GGUF file of "
                    "the draft, which is not known; --draft-model is org/draft, but must be a path of a GGUF file");
  CHECK(run_specdec("plan " + options + "draft.gguf").exit_code == 0);
  CHECK(content_of(file).find("--model-draft draft.gguf") != std::string::npos);
}

TEST_CASE("runs that say how much is accepted but not how much is drafted are refused with the option that tells") {
  const ScratchFolder scratch;
  const std::string folder = specdec::tests::source_dir() + "/traces/samples/bench/";
  std::ifstream run(folder + "c8-k3.json");
  ordered_json counted = ordered_json::parse(run);
  ordered_json length = ordered_json::object();
  for (const auto& [key, value] : counted.items()) {
    if (key.rfind("spec_decode", 0) != 0) length[key] = value;
  }
  length["accept_length"] = 2.5;
  const std::string file = (scratch / "length.json").string();
  std::ofstream(file) << length.dump();
  const std::string both = "--bench " + folder + "c8-plain.json " + file;
  check_refused(both, "--at is missing: " + file + " does not say how many tokens a round drafted; --at G says it");
  CHECK(json_of(both + " --at 3")["points"].size() == 1);
}

TEST_CASE("caches that do not fit at the end of a schedule are said before its table, and not configured") {
  const std::string small =
      "--alpha 0.8 --hardware h100-sxm --model llama-3.1-8b --draft-model llama-3.2-1b "
      "--context 2000 --batch 1,64";
  const std::string misfit = "at batch 256 and context 2000 weights, caches and activations take 103";
  for (const char* asked : {" --max-num-seqs 256", ",256"}) {
    const std::string text = text_of(small + asked);
    CHECK(text.find("This does not fit: " + misfit) < text.find("draft tokens speedup"));
  }
  for (const std::string& asked : {small + " --max-num-seqs 256", small + ",256"}) {
    const Run refused = run_specdec("plan " + asked + " --emit vllm");
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("--emit is vllm, but " + misfit) != std::string::npos);
  }
  CHECK(text_of(small).find("does not fit") == std::string::npos);
  CHECK(run_specdec("plan " + small + " --emit vllm").exit_code == 0);
}

TEST_CASE("a head on a target's states drafts as one without being told, and for that target alone") {
  const std::string placed = "--alpha 0.8 --hardware h100 --tp 4 --model llama-3.3-70b --max-gamma 3 ";
  const std::string own = placed + "--draft-model eagle3-llama-3.3-70b ";
  const ordered_json plan = json_of(own + "--emit vllm");
  CHECK(plan["points"] == json_of(own + "--draft-kind eagle --emit vllm")["points"]);
  CHECK(plan["config"]["text"].get<std::string>().find("\"eagle3\"") != std::string::npos);
  CHECK_FALSE(warns(plan, "head_of_another_target"));
  check_refused(own + "--draft-kind model",
                "--draft-kind is model, but must be eagle: eagle3-llama-3.3-70b is a head that drafts one token after "
                "the other, from its target's states");
  check_refused(own + "--draft-kind parallel --emit trtllm",
                "--draft-kind is parallel, but must be eagle: eagle3-llama-3.3-70b is a head that drafts one token "
                "after the other, from its target's states");
  check_refused(
      "--hardware h100 --tp 4 --model llama-3.3-70b --draft x:alpha=0.8,kind=parallel,model=eagle3-llama-3.3-70b",
      "--draft x: kind is parallel, but must be eagle: eagle3-llama-3.3-70b is a head that drafts one token "
      "after the other, from its target's states");
  CHECK(json_of("--hardware h100 --tp 4 --model llama-3.3-70b --max-gamma 3 "
                "--draft x:alpha=0.8,model=eagle3-llama-3.3-70b")["points"] == plan["points"]);
  const std::string block = "--alpha 0.8 --hardware h100 --model qwen3-8b --max-gamma 8 --draft-model dflash-qwen3-8b ";
  CHECK(json_of(block)["points"] == json_of(block + "--draft-kind parallel")["points"]);
  check_refused(block + "--draft-kind eagle",
                "--draft-kind is eagle, but must be parallel: dflash-qwen3-8b is a head that drafts all tokens in one "
                "pass, from its target's states");
  CHECK(warns(json_of(placed + "--draft-model eagle3-qwen3-8b"), "head_of_another_target"));
  // The two have the same width and vocabulary.
  CHECK(warns(json_of("--alpha 0.8 --c 0.05 --batch 1 --model qwen3-235b-a22b --draft-model eagle3-qwen3-8b"),
              "head_of_another_target"));
  const std::string module = "--alpha 0.8 --hardware h200 --tp 8 --max-gamma 3 --model deepseek-v3 ";
  CHECK(json_of(module + "--draft-model deepseek-v3")["points"] == json_of(module + "--draft-kind mtp")["points"]);
}

TEST_CASE("no engine is given a head that cannot read the target's states, and the verdict says so beside itself") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "config").string();
  const std::string placed = "--alpha 0.7 --hardware h100 --tp 4 --model llama-3.3-70b --batch 1,32 ";
  const std::string head = placed + "--draft-model eagle3-llama-3.1-8b ";
  const std::string why =
      "eagle3-llama-3.1-8b reads states of width 4096, and those of llama-3.3-70b have 8192; made for it is "
      "eagle3-llama-3.3-70b";
  for (const std::string engine : {"vllm", "sglang", "trtllm", "llamacpp"}) {
    check_refused(head + "--emit " + engine + " --emit-file " + file, "--emit is " + engine + ", but " + why);
  }
  CHECK_FALSE(std::ifstream(file).good());
  const std::string text = text_of(head);
  const std::size_t said = text.find("No server starts with this draft: " + why);
  CHECK(said < text.find("draft tokens speedup"));
  CHECK(warns(json_of(head), "head_of_another_target"));
  CHECK(text_of(placed + "--draft-model eagle3-llama-3.3-70b").find("No server starts") == std::string::npos);
  // With the same width and vocabulary nothing keeps the server from starting.
  CHECK(json_of("--alpha 0.8 --c 0.05 --batch 1 --model llama-3.1-70b --draft-model eagle3-llama-3.3-70b --emit vllm")
            ["config"]["engine"] == "vllm");
  // Without --hardware the presets tell as well.
  check_refused("--alpha 0.7 --c 0.05 --batch 1 --model llama-3.3-70b --draft-model eagle3-llama-3.1-8b --emit vllm",
                "--emit is vllm, but " + why);
}

TEST_CASE("a context that the target or the draft does not read is warned of, and an empty cache is said") {
  const std::string pair = "--alpha 0.8 --hardware h100 --model llama-2-7b --draft-model llama-68m ";
  const auto beyond = [](const ordered_json& plan) {
    std::vector<std::string> messages;
    for (const ordered_json& warning : plan["warnings"]) {
      if (warning["code"] == "context_beyond_model") messages.push_back(warning["message"]);
    }
    return messages;
  };
  CHECK(beyond(json_of(pair + "--context 8000 --emit vllm")) ==
        std::vector<std::string>{"the longest context has 8000 tokens, but llama-2-7b reads 4096 at most",
                                 "the longest context has 8000 tokens, but llama-68m reads 2048 at most"});
  CHECK(beyond(json_of(pair + "--context 100,4096")) ==
        std::vector<std::string>{"the longest context has 4096 tokens, but llama-68m reads 2048 at most"});
  CHECK(beyond(json_of(pair + "--context 2048")).empty());
  CHECK(beyond(json_of("--alpha 0.8 --hardware h200 --tp 8 --model deepseek-v3 --draft-kind mtp --context 200000"))
            .size() == 1);

  CHECK(warns(json_of(pair), "empty_cache"));
  CHECK(json_of(pair)["assumptions"].dump().find("\"0, an empty cache\"") != std::string::npos);
  CHECK_FALSE(warns(json_of(pair + "--context 1000"), "empty_cache"));
  CHECK(run_specdec("plan " + pair + "--context 1000 --explain").out.find("empty cache") == std::string::npos);
}

TEST_CASE("a draft model of another vocabulary is warned of, and configured for no engine that would misread it") {
  const std::string pair = "--alpha 0.8 --hardware h100 --tp 4 --model llama-3.3-70b --draft-model qwen3-0.6b ";
  CHECK(warns(json_of(pair), "vocabularies_differ"));
  CHECK(warns(json_of(pair + "--emit llamacpp"), "vocabularies_differ"));
  const std::string differ =
      ", but the vocabulary of qwen3-0.6b has 151936 tokens, that of llama-3.3-70b 128256: a draft model needs its "
      "target's, and ";
  check_refused(pair + "--emit vllm", "--emit is vllm" + differ + "vLLM takes no other");
  check_refused(pair + "--emit sglang", "--emit is sglang" + differ + "SGLang takes no other");
  check_refused(pair + "--emit trtllm", "--emit is trtllm" + differ + "TensorRT-LLM compares tokens by number");
  // One tokenizer, but padded to other sizes: vLLM and SGLang compare sizes, TensorRT-LLM does not.
  const std::string padded = "--alpha 0.8 --hardware h100 --model qwen2.5-7b --draft-model qwen2.5-0.5b --emit ";
  CHECK(warns(json_of(padded + "trtllm"), "vocabularies_differ"));
  check_refused(padded + "sglang",
                "--emit is sglang, but the vocabulary of qwen2.5-0.5b has 151936 tokens, that of qwen2.5-7b 152064: a "
                "draft model needs its target's, and SGLang takes no other");
  CHECK_FALSE(warns(json_of("--alpha 0.8 --c 0.1 --batch 1 --model llama-3.3-70b --draft-model llama-3.2-1b"),
                    "vocabularies_differ"));
}

TEST_CASE("an engine of one length is given the measured gamma that the plan recommends") {
  const std::string files = specdec::tests::source_dir() + "/traces/samples/";
  for (const std::string& asked :
       {"--counters " + files + "serving/vllm_requests.jsonl --c 0.05 --emit llamacpp --draft-model d.gguf",
        "--counters " + files +
            "llamacpp/server-answers.jsonl --c 0.03 --max-gamma 4 --emit llamacpp --draft-model d.gguf",
        "--counters " + files + "serving/sglang_before.prom " + files +
            "serving/sglang_after.prom --c 0.05 --emit sglang --draft-model org/d",
        "--bench " + files + "bench/c1-plain.json " + files +
            "bench/c1-k3.json --emit llamacpp --draft-model d.gguf"}) {
    INFO(asked);
    const ordered_json plan = json_of(asked);
    REQUIRE(plan["decision"]["gamma"].get<std::int64_t>() > 0);
    for (const ordered_json& one : plan["decision"]["schedule"]) CHECK(one["gamma"] == plan["decision"]["gamma"]);
  }
}

TEST_CASE("a schedule drafts where the least gain is reached, as the points do") {
  const std::string asked =
      "--alpha 0.6 --hardware h100 --model llama-3.1-8b --draft-model llama-3.2-1b --kernel-times none "
      "--batch 1,128,200 --max-num-seqs 256 ";
  const ordered_json little = json_of(asked + "--min-gain 0"), much = json_of(asked + "--min-gain 0.25");
  const auto gamma_at = [](const ordered_json& plan, std::int64_t batch) {
    for (const ordered_json& stretch : plan["schedule"]) {
      if (batch <= stretch["to"].get<std::int64_t>()) return stretch["gamma"].get<std::int64_t>();
    }
    return std::int64_t{-1};
  };
  CHECK(gamma_at(little, 128) == 1);
  CHECK(gamma_at(much, 1) == 2);
  CHECK(gamma_at(much, 128) == 0);
  for (const ordered_json& plan : {little, much}) {
    for (const ordered_json& point : plan["points"]) CHECK(gamma_at(plan, point["batch"]) == point["gamma"]);
    CHECK(plan["schedule"].back()["from"] == plan["crossover_batch"]);
  }
  CHECK(much["crossover_batch"].get<std::int64_t>() < little["crossover_batch"].get<std::int64_t>());
  const ordered_json too_much = json_of(asked + "--min-gain 1.2");
  for (const ordered_json& point : too_much["points"]) CHECK(point["verdict"] == "no");
  CHECK(too_much["schedule"].size() == 1);
  CHECK(text_of(asked + "--min-gain 1.2 --emit vllm").find("nothing is to be configured") != std::string::npos);
}

TEST_CASE("the --output of a plan as text with --emit holds what the engine reads, and data keep their format") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "spec.json").string();
  const std::string options =
      "--alpha 0.7 --c 0.05 --batch 1,8 --emit vllm --draft-model org/draft --output " + file + " ";
  const Run run = run_specdec("plan " + options);
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("Draft 6 tokens: about 2.35x plain decoding.") == 0);
  CHECK(run.out.find("\"$(cat " + file + ")\"") != std::string::npos);
  CHECK(run.out.find("\n" + file + ":\n") != std::string::npos);
  CHECK(ordered_json::parse(content_of(file))["method"] == "draft_model");
  CHECK(run_specdec("plan " + options + "--format json").out.empty());
  CHECK(ordered_json::parse(content_of(file))["schema"] == "specdec.plan/2");
  const std::string other = (scratch / "other.json").string();
  CHECK(run_specdec("plan " + options + "--emit-file " + other).exit_code == 0);
  CHECK(content_of(file).find("Draft 6 tokens: about 2.35x plain decoding.") == 0);
  CHECK(ordered_json::parse(content_of(other))["model"] == "org/draft");
  CHECK(content_of(file).find("\"$(cat " + other + ")\"") != std::string::npos);
}

TEST_CASE("benchmark runs are configured with the acceptance rule that is stated") {
  const ordered_json plan = json_of("--bench" + bench_files() + " --acceptance rejection --emit vllm");
  CHECK(ordered_json::parse(plan["config"]["text"].get<std::string>())["draft_sample_method"] ==
        "probabilistic");
}

TEST_CASE("the configuration covers every batch up to --max-num-seqs and is written to its file") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "spec.json").string();
  const ordered_json plan = json_of(
      "--alpha 0.7 --c 0.05 --batch 1,8,64 --max-num-seqs 64 --acceptance rejection --draft-model org/draft --emit "
      "vllm "
      "--emit-file " +
      file + " --cost " + timings_in(scratch, 0.01, 0.0002));
  CHECK(content_of(file) == plan["config"]["text"].get<std::string>());
  const ordered_json config = ordered_json::parse(content_of(file));
  REQUIRE(plan["decision"]["schedule"].size() == 1);
  CHECK(plan["decision"]["schedule"][0]["to"] == 64);
  CHECK(config["num_speculative_tokens"] == plan["decision"]["schedule"][0]["gamma"]);
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
    text += step["from"].dump() + '-' + step["to"].dump() + ':' + step["gamma"].dump() + ',';
  }
  text.pop_back();
  CHECK(json_of(cost + "--schedule " + text)["points"][2]["deployed"]["regret"] == 0.0);
}

TEST_CASE("CSV of a plan over points prints points first and has their rows, drafts, runs and backtests") {
  const ScratchFolder scratch;
  const std::string axes = "plan --alpha 0.7 --c 0.1 --batch 1,2 --max-gamma 2 --format csv --quiet --cost " +
                           timings_in(scratch, 0.01, 1e-9);
  CHECK(run_specdec(axes).out.rfind("batch,context,verdict,", 0) == 0);
  const std::string rows = run_specdec(axes + " --table rows").out;
  CHECK(rows.rfind("batch,context,gamma,tokens_per_step_value,tokens_per_step_ci95_low,", 0) == 0);
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 7);
  CHECK(run_specdec(axes + " --table schedule").out ==
        "from,to,gamma,speedup,share,basis\n1,2,2,1.825,1.0,measured\n");
  CHECK(run_specdec(axes + " --table drafts").out.rfind("name,batch,context,verdict,gamma,", 0) == 0);
  const std::string bench = "plan --format csv --quiet --bench" + bench_files();
  const std::string runs = run_specdec(bench + " --table runs").out;
  CHECK(std::count(runs.begin(), runs.end(), '\n') == 13);
  const std::string backtest =
      run_specdec(bench + " --table backtest --holdout " + samples + "held_out/c16-k3.json").out;
  CHECK(backtest.rfind(
            "file,line,predicted_value,predicted_ci95_low,predicted_ci95_high,measured,relative_error,reason,drifted",
            0) == 0);
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

TEST_CASE("the cost of drafting is that of the draft steps which the kind of draft makes") {
  const ordered_json parallel = json_of("--alpha 0.8 --draft-kind parallel --c 2");
  const ordered_json point = parallel["points"][0];
  CHECK(point["c"] == 2);
  // One draft pass a round, whatever gamma is.
  CHECK(point["rows"][32]["speedup"]["value"].get<double>() ==
        Approx((1 - std::pow(0.8, 33)) / 0.2 / 3).epsilon(1e-12));
  const ordered_json free = json_of("--alpha 0.8 --draft-kind ngram --c 0");
  CHECK(free["points"] == json_of("--alpha 0.8 --draft-kind ngram")["points"]);
  const ScratchFolder scratch;
  const std::string times = " --draft-kind ngram --cost " + timings_in(scratch, 10, 0.1) + " --c ";
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

TEST_CASE("counts without rounds are refused as that, whatever else they leave open") {
  const std::string plain = samples + "c8-plain.json";
  for (const char* at : {"", " --at 3"}) {
    check_refused("--c 0.1 --counters " + plain + at,
                  "--counters: " + plain + " counted no rounds, but acceptance is counted by a server that speculates");
  }
}

TEST_CASE("throughput of one request in the column of all is warned of, with what to do") {
  const ScratchFolder scratch;
  const std::string table = (scratch / "runs.csv").string();
  std::ofstream(table) << "concurrency,gamma,output_tokens_per_second,tokens_per_step\n"
                          "1,0,50,1\n8,0,45.5,1\n32,0,33.3,1\n1,3,100,2.5\n8,3,77,2.5\n32,3,40,2.5\n";
  const ordered_json plan = json_of("--bench " + table);
  REQUIRE(warns(plan, "throughput_falls_with_load"));
  for (const auto& warning : plan["warnings"]) {
    if (warning["code"] == "throughput_falls_with_load")
      CHECK(warning["message"].get<std::string>().find("multiply it by the concurrency") != std::string::npos);
  }
  CHECK_FALSE(warns(json_of("--bench" + bench_files()), "throughput_falls_with_load"));
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
  CHECK(json_of("--c 0.1 --at 3 --counters " + log)["points"][0]["rows"][3]["tokens_per_step"]["value"].get<double>() ==
        Approx(2.85).epsilon(0.01));
  std::ofstream(tree) << R"({"text":"x","meta_info":{"completion_tokens":100,"prompt_tokens":10,"spec_verify_ct":40,)"
                      << R"("spec_accept_length":2.5,"spec_accept_token_num":60,"spec_draft_token_num":640}})" << '\n';
  CHECK(run_specdec("plan --c 0.1 --counters " + tree).exit_code == 2);
}

TEST_CASE("a file that would count twice is refused") {
  const std::string file = samples + "c8-k3.json", same = samples + "../bench/c8-k3.json";
  check_refused("--bench " + file + " " + same, "--bench is " + same + " twice, but must be given once");
  check_refused("--counters " + file + " " + same + " --c 0.1",
                "--counters is " + same + " twice, but must be given once");
  check_refused("--bench " + file + " --holdout " + same, "--holdout is " + same + ", which --bench has too");
}

TEST_CASE("what is in use is marked, with what it loses") {
  const std::string asked = "--alpha 0.8 --c 0.05 --batch 1 --gamma ";
  CHECK(text_of(asked + "8").find("in use, recommended") != std::string::npos);
  const ordered_json best = json_of(asked + "8")["points"][0]["deployed"], short_one = json_of(asked + "3");
  CHECK(best["regret"] == 0.0);
  const double speedup = 2.952 / 1.15;
  const ordered_json& in_use = short_one["points"][0]["deployed"];
  CHECK(in_use["gamma"] == 3);
  CHECK(in_use["speedup"].get<double>() == Approx(speedup).epsilon(1e-12));
  CHECK(in_use["regret"].get<double>() == Approx(1 - speedup / 3.09207954286).epsilon(1e-9));
  CHECK(short_one["decision"]["over"]["gamma"] == 3);
  CHECK(short_one["decision"]["over"]["share"] == 1.0);
}

TEST_CASE("wrong entries of lists, schedules and drafts are refused with what was expected") {
  check_refused("--alpha 0.8 --c 0.1 --batch 4,2", "--batch is 4,2, but must be a rising list");
  check_refused("--alpha 0.8 --c 0.1 --batch 0", "--batch is 0, but must be a number in (0, 65536]");
  check_refused("--alpha 0.8 --c 0.1 --batch 1e300", "--batch is 1e300, but must be a number in (0, 65536]");
  check_refused("--alpha 0.8 --c 0.1 --context -1", "--context is -1, but must be a number in [0, 1000000000]");
  check_refused("--alpha 0.8 --c 0.1 --schedule 1-4:3,6-8:1",
                "--schedule is 6-8:1, but must be a range that goes on at batch 5");
  check_refused(
      "--alpha 0.8 --c 0.1 --schedule 3-8:2",
      "--schedule is 3-8:2, but must be a range from batch 1 on, as what is in use at batch 1 to 2 belongs to "
      "a schedule: 1-2:0,3-8:2 where that is no draft");
  check_refused("--alpha 0.8 --c 0.1 --batch 1,128 --max-num-seqs 64",
                "--batch is 128, but must be at most --max-num-seqs, 64: the server decodes no more together");
  check_refused("--alpha 0.8 --c 0.1 --schedule 1-4:3 --batch 8",
                "--schedule is 1-4:3, but must be a schedule up to batch 8");
  check_refused("--alpha 0.8 --c 0.1 --schedule 4",
                "--schedule is 4, but must be LOW-HIGH:GAMMA,... from batch 1 on without gaps");
  check_refused("--draft a", "--draft is a, but must be NAME:KEY=VALUE,...");
  check_refused("--draft a:alpha=0.8,d=3",
                "--draft a is d=3, but must be KEY=VALUE with a key of alpha, acceptance-length, at, rounds, "
                "published, counters, trace, array, c, cost, kind, model, tp, rule");
  check_refused("--draft a:alpha=0.8,trace=x,c=0.1",
                "--draft a: 2 of alpha, acceptance-length, published, counters and trace are given, but must be one");
  check_refused("--draft a:alpha=1.8,c=0.1", "--draft a: --alpha is 1.8, but must be a number in [0, 1]");
  check_refused("--draft a:alpha=0.8,c=0.1 --draft a:alpha=0.7,c=0.1", "--draft a is given twice");
  check_refused("--draft a:alpha=0.8",
                "--draft a: c is missing: draft step time / target step time, typically 0.02 to 0.1; or --hardware, --cost or --bench");
  const std::string parallel = "--alpha 0.8 --c 0.1 --model org/t --draft-kind parallel --draft-model org/";
  check_refused(parallel + "t-DSpark --emit trtllm",
                "--emit is trtllm, but TensorRT-LLM takes no drafts of DSpark; vLLM, SGLang and llama.cpp do");
}

TEST_CASE("a table that ends is no reason to draft less: what lies beyond is uncertain") {
  const ScratchFolder scratch;
  const std::string table = (scratch / "short.csv").string();
  std::ofstream(table) << "batch,tokens,context,seconds\n8,1,1000,0.010\n8,2,1000,0.0102\n8,4,1000,0.0106\n8,8,1000,0.0116\n";
  const ordered_json plan = json_of("--alpha 0.8 --c 0.05 --batch 8,64 --cost " + table);
  CHECK(plan["points"][0]["verdict"] == "sure");
  const ordered_json& beyond = plan["points"][1];
  CHECK(beyond["verdict"] != "no");
  CHECK(beyond["rows"][3]["extrapolated"] == true);
  const ordered_json& range = beyond["rows"][3]["speedup"]["ci95"];
  CHECK(range[1].get<double>() > 1.3 * range[0].get<double>());
  for (const ordered_json& stretch : plan["decision"]["schedule"]) CHECK(stretch["gamma"].is_number());
}

TEST_CASE("a plan by hardware prints the worked example and says what bounds each pass") {
  const IdealHardware ideal;
  const std::string models = ideal.options() + "--draft-model " + ideal.path("8b.json");
  const ordered_json plan = json_of("--alpha 0.8 --context 2048 --batch 1,64,200" + models);
  // Not in the example: the token that the draft catches up on after a full accept, up to 2e-5 of the speedup here.
  CHECK(plan["points"][0]["rows"][4]["speedup"]["value"].get<double>() == Approx(2.329418).epsilon(5e-5));
  CHECK(plan["points"][0]["gamma"] == 5);
  CHECK(plan["points"][0]["speedup"]["value"].get<double>() == Approx(2.374232).epsilon(5e-5));
  CHECK(plan["points"][1]["rows"][4]["speedup"]["value"].get<double>() == Approx(1.514050).epsilon(5e-5));
  CHECK(plan["points"][1]["gamma"] == 2);
  CHECK(plan["points"][1]["seconds_per_output_token"]["baseline"].get<double>() == Approx(0.023431741).epsilon(5e-7));
  CHECK(plan["points"][0]["rows"][4]["bound"] == "weights");
  CHECK(plan["points"][2]["rows"][0]["bound"] == "cache");
  CHECK(plan["points"][2]["rows"][8]["bound"] == "weight_products");
  CHECK(plan["drafts"][0]["cost"] == "roofline");
  CHECK_FALSE(warns(plan, "roofline_uncalibrated"));
  CHECK(warns(plan, "cache_does_not_fit"));
  CHECK(plan["inputs"]["files"].size() == 3);
  CHECK(json_of("--alpha 0.8 --c 0.1 --batch 1")["points"][0]["rows"][0]["bound"].is_null());
  const std::string text = run_specdec("plan --alpha 0.8 --context 2048 --batch 200 --explain" + models).out;
  CHECK(text.find("  bound\n") != std::string::npos);
  CHECK(without_breaks(text).find("would hold that") != std::string::npos);
  // 60000 sequences of a million tokens, of whose caches no accelerator holds less than an eighth.
  CHECK(run_specdec("plan --alpha 0.8 --context 1000000 --batch 60000" + models).out.find("would not help") !=
        std::string::npos);
}

TEST_CASE("presets price a plan with sources, ranges and what calibration narrows") {
  const std::string presets =
      "--alpha 0.8 --hardware H200 --model llama-3.1-8b --draft-model Llama_3.1-8B --tp 2 --kernel-times none ";
  const ordered_json plan = json_of(presets + "--kv-cache-dtype fp8");
  CHECK(warns(plan, "roofline_uncalibrated"));
  CHECK(plan["inputs"]["presets"].size() == 9);
  for (const ordered_json& preset : plan["inputs"]["presets"])
    CHECK_THAT(preset["sources"][0].get<std::string>(), Catch::Matchers::StartsWith("https://"));
  const auto width = [](const ordered_json& document) {
    const ordered_json& ci95 = document["points"][0]["rows"][4]["speedup"]["ci95"];
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

TEST_CASE("a range of alpha beside hardware holds what its ends give, and nothing is sure in it that they deny") {
  const std::string asked =
      "--hardware h100 --tp 4 --model llama-3.3-70b --draft-model llama-3.2-1b --context 2000 --batch 128 --alpha ";
  const ordered_json range = json_of(asked + "0.5:0.9");
  for (const char* end : {"0.5", "0.9"}) {
    const ordered_json at_end = json_of(asked + end);
    for (std::size_t gamma = 1; gamma <= 3; ++gamma) {
      const ordered_json& wide = range["points"][0]["rows"][gamma]["speedup"]["ci95"];
      const ordered_json& its = at_end["points"][0]["rows"][gamma]["speedup"]["ci95"];
      // Each end has half of the replicates.
      CHECK(wide[0].get<double>() <= its[0].get<double>() * 1.03);
      CHECK(its[1].get<double>() <= wide[1].get<double>() * 1.05);
    }
  }
  CHECK(range["points"][0]["verdict"] == "open");
}

TEST_CASE("the run that would tell is made at the context that is asked for, and its times go to the calibration") {
  const std::string asked =
      "plan --hardware h100 --tp 8 --model llama-3.3-70b --draft-model llama-3.2-1b --alpha 0.42 --batch 32 --context ";
  const std::string text = run_specdec(asked + "16000 --explain").out;
  CHECK(text.find("PROMPTS_OF_15872_TOKENS") != std::string::npos);
  CHECK(text.find("--custom-output-len 256") != std::string::npos);
  CHECK(text.find("batch=32,tpot_ms=P,context=16000") != std::string::npos);
  CHECK(run_specdec(asked + "0").out.find("PROMPTS_OF") == std::string::npos);
}

TEST_CASE(
    "no server is configured whose weights leave an engine's share of the memory no room, and no draft is wider") {
  const std::string asked =
      "--hardware l40s --model mistral-small-24b --draft-kind ngram --alpha 0.5 --batch 1 --context 500";
  // Without an engine, too; the configurations of others say nothing of memory.
  CHECK(json_of(asked)["warnings"].dump().find("of whose 47.7 GB servers take 0.9 unless told otherwise") !=
        std::string::npos);
  CHECK_FALSE(warns(json_of(asked + " --emit sglang"), "weights_do_not_fit"));
  check_refused(
      asked + " --emit vllm",
      "--emit is vllm, but the weights take 47.14 GB of each l40s, of whose 47.7 GB the engine takes 0.9; 2 of "
      "them would hold that");
  check_refused(
      "--hardware h100 --model llama-3.1-8b --draft-model llama-3.2-1b --alpha 0.7 --draft-tensor-parallel-size 2",
      "--draft-tensor-parallel-size is 2, but must be at most --tensor-parallel-size, 1: the draft runs on the "
      "target's accelerators");
}

TEST_CASE("acceptance by context is planned at a context") {
  check_refused(
      "--trace " + specdec::tests::source_dir() + "/sim/models/recording.safetensors --c 0.05 --by context:100",
      "--by is given, but needs --context beside it: each context has the acceptance of its range");
}

TEST_CASE("a measured speedup that no losses of a roofline explain is followed all the same") {
  const std::string asked =
      "--hardware mi300x --model llama-3.3-70b --draft-model eagle3-llama-3.3-70b --context 1000 --alpha 0.7 --batch 8 "
      "--calibrate batch=8,tpot_ms=38,context=1000 --calibrate "
      "batch=8,context=1000,gamma=3,tokens_per_step=2.533,tpot_ms=";
  for (const double milliseconds : {40.0, 36.0, 24.0}) {
    const ordered_json plan = json_of(asked + std::to_string(milliseconds));
    const ordered_json& row = plan["points"][0]["rows"][3];
    const double measured = 38 / milliseconds;
    INFO(measured);
    CHECK(row["speedup"]["ci95"][0].get<double>() < measured);
    CHECK(measured < row["speedup"]["ci95"][1].get<double>());
    CHECK(row["speedup"]["value"].get<double>() == Approx(measured).epsilon(0.1));
  }
}

TEST_CASE("a calibration without its context, or of other drafts than those planned, is said") {
  const std::string base =
      "--alpha 0.75 --hardware h100 --tp 4 --model llama-3.3-70b --draft-model eagle3-llama-3.3-70b ";
  const std::string timed = base + "--draft-kind eagle --context 2000 --calibrate batch=4,tpot_ms=14";
  const ordered_json without = json_of(timed);
  CHECK(warns(without, "calibration_without_context"));
  CHECK_FALSE(warns(json_of(timed + ",context=2000"), "calibration_without_context"));
  CHECK_FALSE(warns(json_of(timed + ",context=0"), "calibration_without_context"));

  const std::string drafted =
      timed + ",context=2000 --calibrate batch=4,tpot_ms=9,gamma=3,context=2000,tokens_per_step=";
  // 0.75 gives 2.73 tokens a step at gamma 3.
  CHECK_FALSE(warns(json_of(drafted + "2.65"), "calibration_acceptance_differs"));
  CHECK(warns(json_of(drafted + "2"), "calibration_acceptance_differs"));
  const std::string range = "--alpha 0.4:0.8" + drafted.substr(std::string("--alpha 0.75").size());
  CHECK_FALSE(warns(json_of(range + "2"), "calibration_acceptance_differs"));
  const ordered_json load = document_of_run(
      "capacity --prompt-tokens 1000 --output-tokens 200 --replications 2 --gamma 3 " +
      drafted.substr(0, drafted.find("--context 2000")) +
      "--calibrate batch=4,tpot_ms=14 --calibrate batch=4,tpot_ms=9,gamma=3,context=1100,tokens_per_step=2");
  CHECK(warns(load, "calibration_without_context"));
  CHECK(warns(load, "calibration_acceptance_differs"));
}

TEST_CASE("runs are compared where their own lengths are alike, whatever a third one has") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "runs.csv").string();
  std::ofstream(file) << "concurrency,gamma,ms_per_token,tokens_per_step,rounds,input_tokens,output_tokens\n"
                         "32,3,11.0,2.43,20000,1024,165\n64,0,14.5,,,1024,180\n64,3,17.1,2.40,40000,1024,187\n";
  const ordered_json plan = json_of("--bench " + file);
  CHECK_FALSE(warns(plan, "plain_runs_left_out"));
  REQUIRE(plan["runs"].size() == 3);
  CHECK(plan["runs"][2]["measured_speedup"]["value"].get<double>() == Approx(14.5 / 17.1).epsilon(1e-12));
  const std::string text = run_specdec("plan --explain --bench " + file).out;
  CHECK(text.find("0.85x") != std::string::npos);
}

TEST_CASE("tokens per step that were measured beside a prior, and kernels that do not fit, are said") {
  const std::string placed = "--hardware h100 --model llama-3.3-70b --context 2000 ";
  const std::string head = placed +
                           "--tp 4 --draft-model eagle3-llama-3.3-70b --calibrate "
                           "batch=4,tpot_ms=9,gamma=3,context=2000,tokens_per_step=2.2";
  CHECK(text_of(head + " --explain").find("--acceptance-length 3:2.2 plans by what was measured") !=
        std::string::npos);
  CHECK_FALSE(warns(json_of(head + " --acceptance-length 3:2.2"), "prior_beside_measured"));
  CHECK(warns(json_of(placed + "--alpha 0.7 --tp 16 --draft-kind ngram"), "kernels_left_out"));
  CHECK_FALSE(warns(json_of(placed + "--alpha 0.7 --tp 8 --draft-kind ngram"), "kernels_left_out"));
  CHECK_FALSE(
      warns(json_of(placed + "--alpha 0.7 --tp 16 --draft-kind ngram --kernel-times none"), "kernels_left_out"));
  check_refused(placed + "--alpha 0.7 --tp 4 --draft-kind eagle --draft-model llama-3.2-1b",
                "--draft-kind is eagle, but must be model: llama-3.2-1b is a whole model, and no head that reads its "
                "target's states");
  const ordered_json measured = json_of(placed + "--alpha 0.7 --tp 8 --draft-kind ngram");
  for (const ordered_json& assumption : measured["assumptions"])
    if (assumption["name"] == "layer_seconds") CHECK(assumption["source"] == "preset");
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
  check_refused("--alpha 0.8 --hardware h200", "--model is missing: --hardware prices it");
  check_refused("--alpha 0.8 --hardware h200 --model llama-3.1-8b",
                "--draft-model is missing: --hardware prices the draft by its architecture; its EAGLE-3 head is "
                "eagle3-llama-3.1-8b");
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
  check_refused(base + "--calibrate batch=8,tpot_ms=9,tokens_per_step=2",
                "--calibrate is batch=8,tpot_ms=9,tokens_per_step=2, but must be a list that has gamma beside "
                "tokens_per_step");
  check_refused(
      base + "--calibrate batch=8,tpot_ms=9,gamma=1,tokens_per_step=3",
      "--calibrate is batch=8,tpot_ms=9,gamma=1,tokens_per_step=3, but must be a list whose tokens_per_step is "
      "at most gamma + 1, 2");
  check_refused(
      base + "--calibrate batch=8,speed=9",
      "--calibrate is speed=9, but must be KEY=VALUE with a key of batch, tpot_ms, gamma, tokens_per_step, context, prompt, ttft_ms");
  check_refused("--draft x:alpha=0.8,c=0.1 --hardware h200 --model llama-3.1-8b",
                "--draft x: c is given, but --hardware prices rounds");
}

TEST_CASE("c is said to price one batch where more are asked for, and no free verification at a large one") {
  const auto certainty = [](const std::string& batch) {
    return json_of("--alpha 0.8 --c 0.05 " + batch)["decision"]["text"].dump();
  };
  CHECK(certainty("--batch 1,8").find("c prices 1 request alone: --hardware, --cost or --bench price 8 requests.") !=
        std::string::npos);
  CHECK(certainty("--batch 1 --max-num-seqs 64").find("price 64 requests.") != std::string::npos);
  CHECK(certainty("--batch 1").find("c prices") == std::string::npos);
  CHECK(certainty("--batch 32").find("taken as free, which it is not for 32 requests; at 1.2") != std::string::npos);
}

TEST_CASE("runs of one request at a time, with pauses between, are measured at batch 1") {
  const ScratchFolder scratch;
  const std::string runs = (scratch / "runs.csv").string();
  std::ofstream(runs) << "concurrency,gamma,requests,output_tokens_per_second,ms_per_token,accept length\n"
                         "1,0,8,79.2,10.1,\n1,4,8,87.5,8.93,1.18\n1,8,8,86.0,8.94,1.2\n";
  const ordered_json point = json_of("--bench " + runs + " --draft-kind ngram --batch 1")["points"][0];
  CHECK(point["basis"] == "measured");
  CHECK(point["rows"][4]["extrapolated"] == false);
}

TEST_CASE("a plain run and one gamma ask for the kind of draft, which tells most, until it is told") {
  const ScratchFolder scratch;
  const std::string runs = (scratch / "runs.csv").string();
  std::ofstream(runs) << "concurrency,gamma,tok/s,accept length\n1,0,26.4,\n1,1,36.4,1.89\n";
  const auto certainty = [&](const std::string& options) {
    return json_of("--bench " + runs + options)["decision"]["text"][1].get<std::string>();
  };
  const std::string asked = "Say how you draft: --draft-kind eagle, mtp, model or parallel tells most.";
  CHECK(certainty("").ends_with(asked));
  CHECK(certainty(" --draft-kind mtp").find("--draft-kind") == std::string::npos);
  std::ofstream(runs, std::ios::app) << "1,4,30,2.9\n";
  CHECK(certainty("").find("--draft-kind") == std::string::npos);
}

TEST_CASE("a setting's method is the draft of its runs and tells the kind, in the configuration, too") {
  const ScratchFolder scratch;
  const std::string runs = (scratch / "runs.csv").string();
  std::ofstream(runs) << "concurrency,setting,tok/s,accept length\n1,baseline,26.4,\n1,MTP k=1,36.4,1.89\n"
                      << "16,baseline,300,\n16,MTP k=1,330,1.89\n";
  const std::string text = run_specdec("plan --bench " + runs + " --emit vllm").out;
  CHECK(text.find("\"method\": \"mtp\"") != std::string::npos);
  CHECK(text.find("Say how you draft") == std::string::npos);
  std::ofstream(runs, std::ios::app) << "1,EAGLE3 k=1,33,1.7\n";
  check_refused("--bench " + runs, runs + ":6: draft is eagle3, but must be mtp as in " + runs +
                                       ", or one of them chosen by --draft-model");
  CHECK(json_of("--bench " + runs + " --draft-model eagle3")["points"].size() == 2);
}

TEST_CASE("a configuration of runs whose kind nothing tells has what its engine takes") {
  const ScratchFolder scratch;
  const std::string runs = (scratch / "runs.csv").string();
  std::ofstream(runs) << "concurrency,gamma,tok/s,accept length\n1,0,30,\n1,4,75,3.2\n16,0,300,\n16,4,500,3.2\n"
                      << "64,0,900,\n64,1,1000,1.8\n64,4,800,3.2\n";
  // vLLM gives draft models, which is what it would write, one length.
  CHECK(json_of("--bench " + runs + " --emit vllm")["decision"]["schedule"].size() == 1);
  CHECK(json_of("--bench " + runs)["decision"]["schedule"].size() > 1);
}

TEST_CASE("rows that ran say what they measured, and come before neighbours that did not") {
  const ScratchFolder scratch;
  const std::string runs = (scratch / "runs.csv").string();
  std::ofstream(runs) << "concurrency,gamma,tok/s,accept length\n1,0,26.4,\n1,1,36.4,1.89\n";
  const std::string text = run_specdec("plan --bench " + runs).out;
  CHECK(text.find("measured 1.38\n") != std::string::npos);
  const ordered_json decision = json_of("--bench " + runs)["decision"];
  CHECK(text.find("\n           " + decision["gamma"].dump() + " ") != std::string::npos);
  CHECK(decision["server"].get<std::string>().starts_with("with num_speculative_tokens "));
}

TEST_CASE("what llama.cpp's rounds of over 8 tokens take is open until one ran, beside hardware, too") {
  const ScratchFolder scratch;
  const std::string runs = (scratch / "runs.csv").string();
  std::ofstream(runs) << "concurrency,gamma,tok/s,accept length\n1,0,30,\n1,2,45,2.2\n1,4,50,2.8\n";
  const auto width = [&](const std::string& options, std::size_t gamma) {
    const ordered_json plan = json_of("--bench " + runs + " --draft-kind mtp --max-gamma 8" + options);
    const ordered_json ci95 = plan["points"][0]["rows"][gamma]["speedup"]["ci95"];
    return ci95[1].get<double>() / ci95[0].get<double>();
  };
  CHECK(width(" --emit llamacpp", 8) > 2 * width("", 8));
  CHECK(width(" --emit llamacpp", 7) < 1.2 * width("", 7));
  const std::string hardware = " --hardware rtx-3090 --model llama-3.1-8b --draft-model llama-3.2-1b";
  CHECK(width(" --emit llamacpp" + hardware, 8) > 1.5 * width(hardware, 8));
}

TEST_CASE("a schedule says where drafts may not gain") {
  const ordered_json plan = json_of(
      "--alpha .7 --hardware h100-sxm --model llama-3.3-70b --tp 4 --draft-model eagle3-llama-3.3-70b "
      "--kernel-times none --batch 1,32,256 --emit sglang");
  CHECK(plan["points"][2]["verdict"] == "open");
  const ordered_json& schedule = plan["schedule"];
  CHECK(schedule.front()["share"].get<double>() > 0.95);
  CHECK(schedule.back()["gamma"] == 0);
  CHECK(schedule.back()["from"] == plan["crossover_batch"]);
  // Exact costs leave nothing open.
  const ordered_json exact = json_of("--alpha 0.8 --c 0.05 --batch 1,16 --emit vllm --draft-model org/d --model org/t");
  for (const ordered_json& stretch : exact["schedule"]) CHECK(stretch["share"] == 1.0);
  CHECK(exact["crossover_batch"].is_null());
}

TEST_CASE("options that nothing would read are refused with what reads them") {
  check_refused("--alpha 0.8 --c 0.1 --acceptance greedy",
                "--acceptance is given, but goes with --trace, --published or --emit only");
  CHECK(json_of("--alpha 0.8 --c 0.1 --acceptance greedy --model m --draft-model d --emit vllm")["config"].is_object());
  check_refused("--alpha 0.8 --c 0.1 --draft-model llama-3.2-1b",
                "--draft-model is given, but goes with a deployment: --batch, files, --hardware or --emit");
  check_refused("--alpha 0.8 --c 0.1 --batch 1 --draft-model llama-3.2-1c",
                "--draft-model is llama-3.2-1c, but must be one of `specdec list models`: only --hardware, --cost, "
                "--draft-cost, --bench and --emit read others (near it: llama-3.2-1b, llama-3.2-3b, llama-3.1-8b)");
}

TEST_CASE("a price by hardware without a context says that its cache is empty, and one that does not fit says so") {
  const std::string placed = "--alpha 0.8 --hardware h100 --model llama-3.3-70b --draft-kind ngram --max-gamma 4";
  CHECK(warns(json_of(placed + " --tp 4"), "empty_cache"));
  CHECK_FALSE(warns(json_of(placed + " --tp 4 --context 1000"), "empty_cache"));
  const std::string text = text_of(placed + " --context 1000");
  CHECK(text.starts_with("This does not fit: the weights take 141"));
  const ordered_json plan = json_of(placed + " --context 1000");
  CHECK(warns(plan, "weights_do_not_fit"));
  CHECK(plan["decision"]["verdict"] == "open");
  CHECK(plan["decision"]["next"].is_null());
  CHECK(text_of(placed + " --tp 4 --context 1000").find("This does not fit") == std::string::npos);
}

TEST_CASE("an interval of rates has one recommendation, whatever is asked beside it") {
  for (const std::string rates : {"0.5:0.95", "0.6:0.9", "0.3:0.9", "0.95:0.99"}) {
    const std::string question = "--alpha " + rates + " --c 0.02";
    const ordered_json alone = json_of(question), at_batch = json_of(question + " --batch 1");
    const ordered_json emitted = json_of(question + " --emit vllm --model org/t --draft-model org/d");
    INFO(question);
    for (const ordered_json& answer : {alone, at_batch, emitted}) {
      CHECK(answer["decision"]["gamma"] == alone["decision"]["gamma"]);
      CHECK(answer["decision"]["speedup"] == alone["decision"]["speedup"]);
      CHECK(answer["points"][0]["gamma"] == alone["decision"]["gamma"]);
      CHECK(answer["decision"]["schedule"][0]["gamma"] == alone["decision"]["gamma"]);
    }
    // The regrets at both ends by the closed form.
    const double low = std::stod(rates), high = std::stod(rates.substr(rates.find(':') + 1));
    const auto speedup = [](double alpha, std::int64_t gamma) {
      return (1 - std::pow(alpha, gamma + 1)) / (1 - alpha) / (1 + 0.02 * static_cast<double>(gamma));
    };
    const auto worst_regret = [&](std::int64_t gamma) {
      double worst = 0;
      for (const double alpha : {low, high}) {
        double best = 1.05;
        for (std::int64_t other = 1; other <= 400; ++other) best = std::max(best, speedup(alpha, other));
        worst = std::max(worst, 1 - speedup(alpha, gamma) / best);
      }
      return worst;
    };
    const std::int64_t chosen = alone["decision"]["gamma"];
    CHECK(at_batch["points"][0]["uncertainty"]["regret"].get<double>() == Approx(worst_regret(chosen)).epsilon(1e-9));
    for (std::int64_t other = 1; other <= 100; ++other) CHECK(worst_regret(chosen) < worst_regret(other) + 0.0025);
  }
}

TEST_CASE("a table of runs by batch is planned batch by batch") {
  const ScratchFolder scratch;
  const std::string by_batch = (scratch / "batch.csv").string(), by_load = (scratch / "load.csv").string();
  const std::string rows =
      ",gamma,ms_per_token,tokens_per_step,rounds\n1,0,10,,\n1,3,5,2.6,2000\n8,0,11,,\n8,3,7,2.6,2000\n"
      "32,0,14,,\n32,3,13,2.6,2000\n";
  std::ofstream(by_batch) << "batch" << rows;
  std::ofstream(by_load) << "concurrency" << rows;
  const ordered_json batch = json_of("--bench " + by_batch), load = json_of("--bench " + by_load);
  CHECK_FALSE(warns(batch, "runs_disagree"));
  REQUIRE(batch["points"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const ordered_json &by_batches = batch["points"][i], &by_loads = load["points"][i];
    CHECK(by_batches["verdict"] == by_loads["verdict"]);
    CHECK(by_batches["gamma"] == by_loads["gamma"]);
    CHECK(by_batches["speedup"]["value"].get<double>() ==
          Approx(by_loads["speedup"]["value"].get<double>()).epsilon(0.01));
  }
}

TEST_CASE("times in different units are warned of, and passes that no batch was timed at are marked") {
  const ScratchFolder scratch;
  const auto planned = [&](const std::string& name, const std::string& rows) {
    const std::string file = (scratch / name).string();
    std::ofstream(file) << "batch,tokens,context,seconds\n" << rows;
    return json_of("--alpha 0.7 --c 0.05 --cost " + file);
  };
  CHECK(
      warns(planned("mixed.csv", "1,1,1000,0.010\n1,4,1000,0.011\n8,1,1000,0.011\n8,4,1000,15\n"), "times_far_apart"));
  CHECK(warns(planned("milliseconds.csv", "1,1,0,10\n1,4,0,11\n"), "passes_slow"));
  const ordered_json plan = planned("grid.csv", "1,1,1000,0.010\n1,4,1000,0.016\n8,1,1000,0.0162\n8,4,1000,0.017\n");
  CHECK(plan["points"][0]["rows"][3]["extrapolated"] == false);
  CHECK(plan["points"][0]["rows"][4]["extrapolated"] == true);
  CHECK_FALSE(warns(plan, "times_far_apart"));
}

TEST_CASE("llama.cpp's draft models decode what is verified, too, wherever it is known to be the engine") {
  const std::string rates = "--alpha 0.55 --c 0.3 --batch 1 ", stated = rates + "--draft-model d.gguf --model t.gguf ";
  const ordered_json emitted = json_of(stated + "--emit llamacpp");
  const ordered_json mirrored = json_of(rates + "--draft-kind mirrored");
  for (const std::size_t gamma : {1, 2, 8})
    CHECK(emitted["points"][0]["rows"][gamma]["speedup"] == mirrored["points"][0]["rows"][gamma]["speedup"]);
  CHECK(emitted["points"][0]["verdict"] == "no");
  CHECK(json_of(rates)["points"][0]["verdict"] == "sure");
  // 1.55 / (1 + 2 * 0.3)
  CHECK(emitted["points"][0]["rows"][1]["speedup"]["value"].get<double>() == Approx(1.55 / 1.6).epsilon(1e-12));
  CHECK(emitted.dump().find("draft_kind") != std::string::npos);
  const Run told = run_specdec("plan " + stated + "--emit llamacpp --draft-kind model --format json");
  CHECK(told.out.find("draft_not_mirrored") != std::string::npos);
  CHECK(run_specdec("plan " + stated + "--emit vllm --format json").out.find("mirrored") == std::string::npos);
  const std::string named = "--draft d:alpha=0.55,c=0.3,model=d.gguf --model t.gguf --emit llamacpp";
  CHECK(json_of(named)["points"][0]["verdict"] == "no");
}

TEST_CASE("counts of steps that mostly had no draft decide nothing until somebody says how drafts are made") {
  const std::string counted = "--counters " + specdec::tests::source_dir() +
                              "/traces/samples/serving/vllm_ngram_before.prom " + specdec::tests::source_dir() +
                              "/traces/samples/serving/vllm_ngram_after.prom --c 0 --batch 1 ";
  const ordered_json untold = json_of(counted);
  CHECK(untold.dump().find("steps_without_drafts") != std::string::npos);
  CHECK(untold["points"][0]["verdict"] == "open");
  for (const char* kind : {"--draft-kind ngram", "--draft-kind suffix"})
    CHECK(json_of(counted + kind).dump().find("steps_without_drafts") == std::string::npos);
}

namespace {

/// A run of vllm bench serve in which 100 requests put out 300 tokens each, with 5 n-grams looked up per step or none.
std::string run_of_lookups(const ScratchFolder& scratch, const char* name, double ms_per_token, double steps) {
  // Of the steps 35% draft 2.8 tokens on average, and 53% of them accept at least one.
  const double drafts = std::round(0.35 * steps);
  double accepted = 0;
  std::string rates;
  for (const double rate : {0.72, 0.39, 0.21, 0.11, 0.06}) {
    accepted += std::round(rate * drafts);
    rates += (rates.empty() ? "" : ", ") + std::to_string(rate);
  }
  std::ostringstream text;
  text << R"({"backend": "vllm", "model_id": "m", "max_concurrency": 8, "duration": 100, "completed": 100, )"
       << R"("total_input_tokens": 50000, "total_output_tokens": )"
       << (steps > 0 ? static_cast<std::int64_t>(100 + steps + accepted) : 30000) << R"(, "output_throughput": )"
       << 7900 / ms_per_token << R"(, "mean_tpot_ms": )" << ms_per_token;
  if (steps > 0)
    text << R"(, "spec_decode_num_drafts": )" << static_cast<std::int64_t>(drafts)
         << R"(, "spec_decode_draft_tokens": )" << static_cast<std::int64_t>(std::round(2.8 * drafts))
         << R"(, "spec_decode_accepted_tokens": )" << static_cast<std::int64_t>(accepted)
         << R"(, "spec_decode_per_position_acceptance_rates": [)" << rates << "]";
  const std::string path = (scratch / name).string();
  std::ofstream(path) << text.str() << "}";
  return path;
}

}  // namespace

TEST_CASE("runs whose steps mostly found nothing to draft are of steps, and the gamma that ran is measured") {
  const ScratchFolder scratch;
  const std::string plain = run_of_lookups(scratch, "plain.json", 9.36, 0),
                    drafting = run_of_lookups(scratch, "k5.json", 7.0, 20000);
  const std::string files = "--bench " + plain + " " + drafting + " ";
  // 7,000 drafts accepted (0.72 + ... + 0.06) each: 1 + 10430 / 20000 tokens a step.
  const double tokens = 1 + 7000 * 1.49 / 20000;
  const ordered_json plan = json_of(files + "--draft-kind ngram");
  const ordered_json run = plan["runs"][1];
  CHECK(run["gamma"] == 5);
  CHECK(run["tokens_per_step"].get<double>() == Approx(tokens).epsilon(1e-9));
  CHECK(run["round_seconds"].get<double>() == Approx(0.007 * tokens).epsilon(1e-9));
  const ordered_json& measured = plan["points"][0]["rows"][5];
  CHECK(measured["extrapolated"] == false);
  // A hundred requests whose drafts differ as much as lookups do leave some 5% open.
  CHECK(measured["speedup"]["value"].get<double>() == Approx(9.36 / 7).epsilon(0.05));
  CHECK(measured["speedup"]["ci95"][0].get<double>() < 9.36 / 7);
  CHECK(measured["speedup"]["ci95"][1].get<double>() > 9.36 / 7);
  CHECK(plan["points"][0]["basis"] == "measured");
  CHECK_FALSE(warns(plan, "steps_without_drafts"));

  // A table of the same figures is of steps by its columns' names.
  const std::string table = (scratch / "runs.csv").string();
  std::ofstream(table) << "model,concurrency,gamma,input_tokens,output_tokens,output_tokens_per_second,ms_per_token,"
                          "tokens_per_step,rounds\nm,8,0,500,300,"
                       << 7900 / 9.36 << ",9.36,,\nm,8,5,500," << (20100 + 10430) / 100.0 << "," << 7900 / 7.0
                       << ",7.0," << tokens << ",20000\n";
  const ordered_json of_table = json_of("--bench " + table + " --draft-kind ngram");
  CHECK(of_table["points"][0]["rows"][5]["speedup"]["value"].get<double>() ==
        Approx(9.36 / 7).epsilon(0.01));

  const ordered_json untold = json_of(files);
  CHECK(untold["runs"][1]["tokens_per_step"] == run["tokens_per_step"]);
  CHECK(warns(untold, "steps_without_drafts"));
  CHECK(json_of(files + "--draft-kind eagle")["runs"][1]["round_seconds"] == run["round_seconds"]);
  check_refused(files + "--draft-kind ngram --hit-rate 0.3",
                "--hit-rate is given, but the rounds of --bench hold misses and lengths");
}

TEST_CASE("runs that mostly did not draft are left out beside others of their gamma that always did") {
  const ScratchFolder scratch;
  const auto run = [&](const char* name, int concurrency, double ms_per_token, double drafts, double steps) {
    std::ostringstream text;
    const double accepted = 1.5 * drafts;
    text << R"({"backend": "vllm", "model_id": "m", "duration": 100, "completed": 100, "total_input_tokens": 50000)"
         << R"(, "max_concurrency": )" << concurrency << R"(, "total_output_tokens": )" << 100 + steps + accepted
         << R"(, "output_throughput": )" << 990 * concurrency / ms_per_token << R"(, "mean_tpot_ms": )" << ms_per_token;
    if (drafts > 0)
      text << R"(, "spec_decode_num_drafts": )" << drafts << R"(, "spec_decode_draft_tokens": )" << 4 * drafts
           << R"(, "spec_decode_accepted_tokens": )" << accepted
           << R"(, "spec_decode_per_position_acceptance_rates": [0.7, 0.4, 0.25, 0.15])";
    const std::string path = (scratch / name).string();
    std::ofstream(path) << text.str() << "}";
    return path + " ";
  };
  const std::string always = "--bench " + run("c4.json", 4, 4.0, 12000, 12100) + run("p4.json", 4, 8.0, 0, 30000) +
                             run("p32.json", 32, 14.0, 0, 30000);
  const std::string partly = run("c32.json", 32, 14.1, 300, 29000);
  const ordered_json plan = json_of(always + partly);
  CHECK(warns(plan, "partly_drafting_left_out"));
  CHECK(plan["runs"].size() == 3);
  CHECK(plan["points"][0]["verdict"] == "sure");
  CHECK(plan["points"] == json_of(always)["points"]);
}

TEST_CASE("drafts that end early are priced and accepted as they ran") {
  const ScratchFolder scratch;
  const auto answers = [&](const char* name, int drafted, int accepted, double ms) {
    std::ofstream file(scratch / name);
    for (int i = 0; i < 40; ++i)
      file << R"({"model":"m","timings":{"prompt_n":100,"predicted_n":201,"predicted_ms":)" << ms
           << R"(,"cache_n":0,"prompt_ms":1,"draft_n":)" << drafted << R"(,"draft_n_accepted":)" << accepted + i % 3
           << "}}\n";
    return (scratch / name).string() + " ";
  };
  // 2.2 of 8 tokens drafted in each of 80 passes, which put out 2.5; in 27 for 52 ms.
  const ordered_json plan =
      json_of("--bench " + answers("plain.jsonl", 0, 0, 4200) + answers("k8.jsonl", 176, 119, 2200) + "--at 8");
  CHECK(warns(plan, "drafts_end_early"));
  CHECK(plan["points"][0]["rows"][8]["extrapolated"] == false);
  CHECK(plan["points"][0]["rows"][8]["speedup"]["value"].get<double>() == Approx(42.0 / 22).epsilon(0.02));
}

TEST_CASE("scrapes of lookups measure the gamma that ran, by steps") {
  const std::string samples_of_servers = specdec::tests::source_dir() + "/traces/samples/serving/";
  std::string lookups;
  for (const char* when : {"before", "after"}) lookups += " " + samples_of_servers + "vllm_ngram_" + when + ".prom";
  std::string plain = lookups;
  for (const char* when : {"before", "after"}) plain += " " + samples_of_servers + "vllm_plain_" + when + ".prom";
  const ordered_json plan = json_of("--draft-kind ngram --counters" + lookups + " --cost" + plain);
  // The same text is copied in fewer rounds by longer drafts, which cost little here.
  CHECK(plan["points"][0]["gamma"] > 4);
  CHECK(plan["points"][0]["rows"][4]["extrapolated"] == false);
  const ordered_json counted = json_of("--draft-kind ngram --hardware h100 --model llama-3.1-8b --counters" + lookups);
  CHECK(plan["points"][0]["rows"][4]["tokens_per_step"]["value"] == counted["points"][0]["rows"][4]["tokens_per_step"]["value"]);

  const std::string question = "--draft-kind ngram --hardware h100 --model llama-3.1-8b --batch 8 --counters" + lookups;
  const auto tokens_of = [&](const std::string& more) {
    return json_of(question + more)["points"][0]["rows"][4]["tokens_per_step"]["value"].get<double>();
  };
  // The hit rate that is stated takes the place of the counted one alone.
  CHECK(tokens_of(" --hit-rate 0.349175") == Approx(tokens_of("")).epsilon(1e-5));
  CHECK(tokens_of(" --mean-draft-length 2") < tokens_of(""));
  CHECK(warns(json_of(question + " --hit-rate 0.9"), "lookups_contradict_counts"));
  CHECK_FALSE(warns(json_of(question + " --hit-rate 0.35"), "lookups_contradict_counts"));
}

TEST_CASE("a server is told the length of requests where the model's own has no room, and slots share their cache") {
  const auto emitted = [](const std::string& more) {
    return run_specdec("plan --alpha 0.75 --model llama-3.1-8b --draft-kind ngram --hit-rate 0.5 --context 2000 " +
                       more)
        .out;
  };
  const std::string small = emitted("--hardware rtx-4090 --batch 1,4 --max-num-seqs 4 --emit vllm");
  const auto at = small.find("--max-model-len ");
  REQUIRE(at != std::string::npos);
  const int tokens = std::stoi(small.substr(at + 16));
  CHECK(2000 < tokens);
  // 25.25 GB less the weights at 131 kB a token.
  CHECK(tokens < (0.9 * 25.25e9 - 16.06e9) / 131072);
  CHECK(emitted("--hardware h100 --batch 1,4 --max-num-seqs 4 --emit vllm").find("--max-model-len") ==
        std::string::npos);
  CHECK(emitted("--hardware h100 --batch 1,8 --max-num-seqs 8 --emit llamacpp")
            .find("--parallel 8 --kv-unified --ctx-size 16") != std::string::npos);
  CHECK(emitted("--hardware h100 --batch 1 --emit llamacpp").find("--kv-unified") == std::string::npos);
}

TEST_CASE("typed lengths of lookups hold drafts as short as they were, and SGLang verifies all places of a round") {
  const std::string question = "--c 0 --draft-kind ngram --batch 8 --hit-rate 0.4 --mean-draft-length 3 ";
  const auto row = [&](const std::string& more) { return json_of(question + more)["points"][0]["rows"][5]; };
  // alpha .6 over lengths of mean 3 is what a server counts as .6, .24, .096, ...
  const double tokens = row("--alpha 0.6 --max-gamma 5")["tokens_per_step"]["value"];
  const auto tokens_of = [&](const std::string& more) {
    return row("--max-gamma 5 " + more)["tokens_per_step"]["value"].get<double>();
  };
  // Digits say how exact a typed figure is.
  CHECK(tokens_of("--acceptance-per-position 0.6000,0.2400,0.0960,0.0384,0.01536") == Approx(tokens).epsilon(1e-4));
  CHECK(tokens_of("--acceptance-length 1.99000 --at 5") == Approx(1 + 0.4 * 0.99).epsilon(1e-6));

  const std::string priced =
      "--hardware h100 --model llama-3.1-8b --draft-kind ngram --alpha 0.6 --hit-rate 0.4 --mean-draft-length 3 "
      "--batch 128 --context 1000 ";
  const ordered_json any = json_of(priced), sglang = json_of(priced + "--emit sglang");
  const ordered_json all = json_of(
      "--hardware h100 --model llama-3.1-8b --draft-kind ngram --alpha 0.6 --hit-rate 1 --batch 128 --context 1000");
  const auto time = [](const ordered_json& plan) {
    const auto& of = plan["points"][0]["rows"][4];
    return of["round_steps"].get<double>();
  };
  CHECK(time(sglang) == Approx(time(all)).epsilon(1e-6));
  CHECK(time(any) < 0.9 * time(sglang));
}

TEST_CASE("a lookup whose hits nobody knows decides nothing, and says so") {
  const std::string stated = "--alpha 0.5 --c 0 --draft-kind ngram --batch 1 ";
  const ordered_json unknown = json_of(stated);
  CHECK(unknown["points"][0]["verdict"] == "open");
  CHECK(unknown.dump().find("hit_rate_unknown") != std::string::npos);
  const auto interval = unknown["points"][0]["speedup"]["ci95"];
  for (const char* hit_rate : {"0.05", "0.3", "1"}) {
    const ordered_json known = json_of(stated + "--hit-rate " + hit_rate);
    const std::size_t gamma = unknown["points"][0]["gamma"];
    const double speedup = known["points"][0]["rows"][gamma]["speedup"]["value"];
    CHECK(interval[0].get<double>() <= speedup * (1 + 1e-12));
    CHECK(speedup <= interval[1].get<double>() * (1 + 1e-12));
    CHECK(known.dump().find("hit_rate_unknown") == std::string::npos);
  }
  CHECK(json_of(stated + "--hit-rate 1")["points"][0]["verdict"] == "sure");
}

TEST_CASE("a draft with which no server starts is not the one to take") {
  const std::string models = "--hardware h100 --model llama-3.3-70b --tp 4 --batch 1,8 --context 1000 ";
  const std::string small = "--draft small:alpha=0.7,model=llama-3.2-1b ";
  const std::string of_another = "--draft head:alpha=0.85,model=eagle3-llama-3.1-8b ";
  const ordered_json plan = json_of(models + of_another + small);
  CHECK(plan["recommended_draft"] == "small");
  CHECK(plan["drafts"][0]["misfit"].get<std::string>().find("reads states of width 4096") != std::string::npos);
  CHECK(plan["drafts"][1]["misfit"].is_null());
  CHECK(plan["drafts"][0]["points"][0]["best"] == false);
  // It would be the faster one.
  CHECK(plan["drafts"][0]["points"][0]["speedup"]["value"] >
        plan["drafts"][1]["points"][0]["speedup"]["value"]);
  const std::string text = text_of(models + of_another + small + "--explain");
  CHECK(text.find("No server starts with head: ") != std::string::npos);
  CHECK(text.find("not served") != std::string::npos);
  CHECK(json_of(models + of_another + small + "--emit vllm")["config"]["engine"] == "vllm");

  // vLLM takes no draft model of another vocabulary, and llama.cpp does.
  const std::string of_other_tokens = "--draft other:alpha=0.9,model=qwen2.5-0.5b ";
  const std::string one = "--hardware h100 --model llama-3.1-8b --batch 1 --context 1000 ";
  CHECK(json_of(one + of_other_tokens + small)["recommended_draft"] == "other");
  CHECK(json_of(one + of_other_tokens + small + "--emit llamacpp")["recommended_draft"] == "other");
  CHECK(json_of(one + of_other_tokens + small + "--emit vllm")["recommended_draft"] == "small");
  CHECK(text_of(one + of_other_tokens + small + "--emit vllm").find("vLLM does not start with other") !=
        std::string::npos);
}

TEST_CASE("SGLang is asked for a run with all options that it takes together") {
  const std::string text = text_of("--alpha 0.3:0.7 --c 0.5 --emit sglang --model org/t --draft-model org/d");
  CHECK(text.find("--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2") !=
        std::string::npos);
}

TEST_CASE("a tree that ran is planned, told by its shape and written for SGLang alone") {
  const std::string runs = "--bench " + samples + "../bench/trees.csv ";
  const ordered_json plan = json_of(runs);
  const ordered_json tree = {{"depth", 5}, {"topk", 4}, {"verified_tokens", 16}};
  REQUIRE(plan["drafts"].size() == 1);
  CHECK(plan["drafts"][0]["name"] == "tree 5-4-16");
  CHECK(plan["drafts"][0]["tree"] == tree);
  CHECK(plan["runs"][0]["tree"].is_null());
  CHECK(plan["runs"][1]["tree"] == tree);
  CHECK(plan["points"][0]["verdict"] == "sure");
  CHECK(plan["points"][2]["verdict"] == "open");
  CHECK(plan["points"][2]["next_measurement"]["tree"] == tree);
  const std::string text = text_of(runs);
  CHECK(text.find("--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16") !=
        std::string::npos);
  const std::string emitted = run_specdec("plan " + runs + "--draft-kind eagle --emit sglang --model m").out;
  CHECK(emitted.find("--speculative-num-steps 5\n--speculative-eagle-topk 4\n--speculative-num-draft-tokens 16\n") !=
        std::string::npos);
  // Only SGLang's servers have such trees.
  CHECK(text.find("python -m sglang.bench_serving") != std::string::npos);
  CHECK(text.find("vllm") == std::string::npos);
  check_refused(runs + "--emit vllm",
                "--emit is vllm, but depth, topk and verified tokens, which are all that runs tell of a tree, are "
                "options of SGLang alone");
  const Run capacity =
      run_specdec("capacity " + runs +
                  "--prompt-tokens 1000 --output-tokens 200 --arrival-rate 1 --kv-cache-tokens 100000 --decode-only");
  CHECK(capacity.exit_code == 2);
  CHECK(capacity.err.find("but capacity is of chains") != std::string::npos);
}

/// Eight texts of 17,000 tokens, with these acceptances from these places on.
std::string long_texts(const ScratchFolder& scratch, const std::string& name,
                       const std::vector<std::pair<std::int64_t, double>>& from) {
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  for (std::int64_t text = 0; text < 8; ++text) {
    for (std::int64_t place = 0; place < 17'000; ++place) {
      double here = 0;
      for (const auto& [begin, rate] : from) here = begin <= place ? rate : here;
      // Texts differ, so that there is an interval.
      acceptance.push_back(here + 0.01 * (text % 2 == 0 ? 1 : -1));
      sequence.push_back(text);
    }
  }
  return scalar_trace(scratch / name, acceptance, sequence).string();
}

TEST_CASE("a windowed draft loses at short contexts and wins at long ones, where acceptance is by context") {
  const ScratchFolder scratch;
  const std::vector<std::int64_t> contexts = {2000, 4000, 8000, 10000, 16000};
  // The draft that attends to all it was not trained for falls; the one with a window stays where it is.
  const std::string whole =
      long_texts(scratch, "whole.safetensors", {{0, 0.75}, {3000, 0.7}, {6000, 0.6}, {9000, 0.4}, {12'000, 0.15}});
  const std::string windowed = long_texts(scratch, "windowed.safetensors", {{0, 0.5}});
  const std::string drafts =
      "--hardware h100 --model llama-3.1-8b --context 2000,4000,8000,10000,16000 --draft whole:trace=" + whole +
      ",model=eagle3-llama-3.1-8b --draft windowed:trace=" + windowed + ",model=eagle3-llama-3.1-8b";
  const auto speedups = [&](const std::string& options, std::size_t draft) {
    std::vector<double> found;
    const ordered_json plan = json_of(drafts + options);
    for (const ordered_json& point : plan["drafts"][draft]["points"]) {
      found.push_back(point["speedup"]["value"].get<double>());
    }
    return found;
  };
  const std::string by_context = " --by context:3000,6000,9000,12000";
  const std::vector<double> first = speedups(by_context, 0), second = speedups(by_context, 1);
  REQUIRE(first.size() == contexts.size());
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    INFO(contexts[i]);
    CHECK((first[i] > second[i]) == (contexts[i] < 10000));
  }
  // All contexts together hide it.
  const std::vector<double> first_of_all = speedups("", 0), second_of_all = speedups("", 1);
  for (std::size_t i = 0; i < contexts.size(); ++i) CHECK(first_of_all[i] < second_of_all[i]);
}

TEST_CASE(
    "a mix is planned for by shares of groups, of counters and of a recording, and is refused where there are none") {
  const ScratchFolder scratch;
  const std::string requests = specdec::tests::source_dir() + "/traces/samples/serving/vllm_requests.jsonl";
  const std::string counted = "--counters " + requests + " --c 0.05 --batch 1";
  const auto speedup = [&](const std::string& options) {
    return json_of(options)["points"][0]["speedup"]["value"].get<double>();
  };
  const double code = speedup(counted + " --mix code=1"), chat = speedup(counted + " --mix chat=1");
  const double both = speedup(counted + " --mix code=0.5,chat=0.5");
  CHECK(chat < both);
  CHECK(both < code);
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  std::vector<std::int32_t> task;
  for (int t = 0; t < 4000; ++t) {
    task.push_back(t / 100 % 2);
    acceptance.push_back(task.back() == 0 ? 0.9 : 0.3);
    sequence.push_back(t / 100);
  }
  const auto trace =
      scalar_trace(scratch / "tasks.safetensors", acceptance, sequence, {{"tasks", R"(["easy", "hard"])"}}, {}, task);
  const std::string recorded = "--trace " + trace.string() + " --c 0.05 --batch 1";
  CHECK(speedup(recorded + " --mix easy=0.8,hard=0.2") > speedup(recorded + " --mix easy=0.2,hard=0.8"));
  check_refused(recorded + " --mix easy=0.8,tough=0.2",
                "--mix names tough, but must name groups of the recording: easy, hard");
  check_refused("--alpha 0.7 --c 0.05 --batch 1 --mix code=1",
                "--mix is given, but goes with --counters or --trace only");
  check_refused(counted + " --by category", "--by is given, but needs --mix beside it");
  check_refused(recorded + " --by task",
                "--by is task, but must be context:N1,N2,... with places above 0, or beside --mix");
  check_refused(
      "--draft a:alpha=0.7,c=0.05 --draft b:counters=" + requests + ",c=0.01 --mix code=1 --batch 1",
      "--mix is given, but draft a states one acceptance for all requests: counters or trace tell that of groups");
  const std::string runs = specdec::tests::source_dir() + "/traces/samples/bench/";
  check_refused("--bench " + runs + "c8-plain.json " + runs + "c8-k3.json --trace " + trace.string() +
                    " --by context:10 --context 1,20",
                "--by is given, but must not be beside --bench: its runs have one acceptance for all contexts");
  check_refused(counted + " --mix code=0.7", "--mix is code=0.7, but must be shares that sum to 1, not to 0.7");
}

TEST_CASE("losses that are one number each leave no interval, and calibration leaves losses as they are") {
  const std::string options =
      "--alpha 0.8 --hardware h100 --model llama-3.1-8b --draft-model llama-3.2-1b --kernel-times none ";
  const std::string one =
      "--bandwidth-efficiency 0.8 --compute-efficiency 0.6 --launch-seconds 0 --layer-seconds 0 "
      "--scheduling-seconds 0 ";
  CHECK(warns(json_of(options + one), "losses_taken_as_exact"));
  CHECK_FALSE(warns(json_of(options), "losses_taken_as_exact"));
  const ordered_json fitted = json_of(options + "--bandwidth-efficiency 0.8 --calibrate batch=1,tpot_ms=8,context=9");
  for (const ordered_json& assumption : fitted["assumptions"]) {
    if (assumption["name"] == "bandwidth_efficiency") CHECK(assumption["source"] == "user");
    if (assumption["name"] == "compute_efficiency") CHECK(assumption["source"] == "default");
    if (assumption["name"] == "deployment factor") CHECK(assumption["source"] == "fitted");
  }
}

TEST_CASE("published acceptance of another target is said to be") {
  const std::string of_70b = "--hardware h100 --draft-model llama-3.2-1b --published eagle3-llama-3.3-70b ";
  CHECK(warns(json_of(of_70b + "--model llama-3.1-8b"), "acceptance_of_another_model"));
  CHECK_FALSE(warns(json_of(of_70b + "--model llama-3.3-70b --tp 4"), "acceptance_of_another_model"));
  CHECK(warns(json_of("--hardware h100 --model llama-3.1-8b --draft-model llama-3.2-1b --published ende-t5-small-t0"),
              "acceptance_of_another_model"));
}

TEST_CASE("a plan of a head without an acceptance is one from published lengths, and says so") {
  const std::string head = "--hardware h100 --tp 4 --model llama-3.3-70b --draft-model eagle3-llama-3.3-70b";
  const ordered_json plan = json_of(head);
  CHECK(warns(plan, "acceptance_from_prior"));
  CHECK(plan["points"][0]["verdict"] == "sure");
  const ordered_json& interval = plan["points"][0]["speedup"]["ci95"];
  CHECK(interval[1].get<double>() > 2 * interval[0].get<double>());
  bool is_sourced = false;
  for (const ordered_json& preset : plan["inputs"]["presets"]) {
    is_sourced = is_sourced || (preset["kind"] == "acceptance" && preset["name"] == "eagle3-llama-3.3-70b" &&
                                preset["sources"].size() >= 2);
  }
  CHECK(is_sourced);
  CHECK(json_of(head + " --published eagle3-llama-3.3-70b")["points"] == plan["points"]);
  CHECK(warns(json_of("--hardware h100 --model qwen3-32b --draft a:model=eagle3-qwen3-32b --draft "
                      "b:alpha=0.7,model=eagle3-qwen3-32b"),
              "acceptance_from_prior"));
}

TEST_CASE("what logs and scrapes of one gamma leave open is said once") {
  const std::string serving = specdec::tests::source_dir() + "/traces/samples/serving/";
  const auto counted = [](const ordered_json& plan, const std::string& code) {
    const auto is_it = [&](const ordered_json& warning) { return warning["code"] == code; };
    return std::count_if(plan["warnings"].begin(), plan["warnings"].end(), is_it);
  };
  const std::string pairs = serving + "vllm_k4_before.prom " + serving + "vllm_k4_after.prom ";
  const ordered_json plan = json_of("--counters " + pairs + "--cost " + pairs + serving + "vllm_plain_before.prom " +
                                    serving + "vllm_plain_after.prom");
  CHECK(counted(plan, "round_of_scrapes") == 1);
  CHECK(counted(plan, "rounds_of_one_gamma") == 1);
  CHECK(counted(json_of("--bench" + bench_files()), "rounds_of_one_gamma") == 0);
}

TEST_CASE("the release is named, and n-grams are given no key that they have no use for") {
  CHECK_THAT(run_specdec("plan --alpha 0.5 --c 0 --draft-kind ngram --emit vllm --model org/t").out,
             Catch::Contains("vLLM 0.33.0:") && !Catch::Contains("draft_sample_method"));
}
