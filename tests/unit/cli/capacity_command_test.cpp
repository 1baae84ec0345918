#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/recordings.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::document_of_run;
using specdec::tests::run_specdec;
using specdec::tests::ScratchFolder;
using specdec::tests::warns;

namespace {

const std::string fast = " --num-requests 200 --replications 2 --threads 1";
const std::string small_model = "--hardware h100-sxm --model llama-3.1-8b" + fast;
const std::string more_runs =
    "--hardware h100-sxm --model llama-3.1-8b --num-requests 200 --replications 8 --threads 1";
const std::string lengths = " --prompt-tokens 500:0.5 --output-tokens 100:0.5";
const std::string clients = "--hardware h100-sxm --model llama-3.1-8b --replications 2 --threads 1" + lengths;
const std::string sample_counters = specdec::tests::source_dir() + "/traces/samples/serving/vllm_requests.jsonl";

ordered_json json_of(const std::string& options, int exit_code = 0) {
  return document_of_run("capacity " + options, exit_code);
}

void check_refused(const std::string& options, const std::string& message) {
  check_run_refused("capacity " + options, message);
}

double value(const ordered_json& estimate) { return estimate["value"]; }

/// Null if nothing of that name was assumed.
ordered_json assumed_in(const ordered_json& answer, const std::string& name) {
  for (const ordered_json& one : answer["assumptions"]) {
    if (one["name"] == name) return one["value"];
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a load that nobody has laid out is laid out on as many GPUs as it needs") {
  const std::string asked =
      " --hardware h100-sxm --model llama-3.3-70b --prompt-tokens 1000 --output-tokens 200 --arrival-rate 20 "
      "--replications 2";
  const ordered_json found = json_of(asked);
  CHECK(assumed_in(found, "tensor_parallel") == 4);
  CHECK(found["recommended"]["gpus"] < json_of(asked + " --tp 2")["recommended"]["gpus"]);
}

TEST_CASE("capacity compares gammas with plain decoding at the load asked for, and says how many GPUs that takes") {
  const ordered_json answer = json_of(small_model + lengths +
                                      " --alpha 0.7 --draft-kind ngram --gamma 1-3 --arrival-rate 120 --tpot-ms 15 "
                                      "--price 3.6");
  CHECK(answer["comparison"] == "equal arrival rate");
  CHECK(answer["requests_per_second"] == 120);
  CHECK(answer["calibrated"] == false);
  CHECK(answer["worlds"] == 400);
  REQUIRE(answer["scenarios"].size() == 4);
  for (const ordered_json& scenario : answer["scenarios"]) {
    INFO(scenario["name"]);
    const double gpus = scenario["gpus"]["value"];
    const double rate = value(scenario["requests_per_second_per_replica"]);
    CHECK(gpus == std::ceil(120 / rate));
    CHECK(gpus * scenario["at_requests_per_second_per_replica"].get<double>() == Approx(120));
    // The price is spread over the tokens.
    const double tokens_per_gpu = value(scenario["output_tokens_per_second_per_gpu"]);
    CHECK(scenario["cost_per_million_tokens"].get<double>() == Approx(1e3 / tokens_per_gpu));
    CHECK(value(scenario["tpot_seconds"]["p99"]) <= 0.015 * 1.01);
    const auto& rates = scenario["requests_per_second_per_replica"]["ci95"];
    CHECK(rates[0].get<double>() < 0.9 * rate);
    CHECK(rates[1].get<double>() > rate);
  }
  CHECK(answer["scenarios"][0]["gamma"] == 0);
  CHECK(answer["recommended"]["gpus"] <= answer["without_speculation"]["gpus"]);
}

TEST_CASE("a capacity's cache is what the weights of target and draft leave") {
  const ordered_json answer = json_of(small_model + lengths + " --alpha 0.7 --draft-model llama-3.2-1b --gamma 2");
  const ordered_json& plain = answer["scenarios"][0];
  const ordered_json& drafting = answer["scenarios"][1];
  CHECK(plain["memory_per_gpu"]["draft_weight_bytes"] == 0);
  CHECK(drafting["memory_per_gpu"]["draft_weight_bytes"] == 2 * 1235814400.0);
  CHECK(drafting["kv_capacity_tokens"].get<int>() < plain["kv_capacity_tokens"].get<int>());
  CHECK(drafting["kv_left_tokens"].get<int>() == drafting["kv_capacity_tokens"].get<int>() - 256 * 3);
}

TEST_CASE("counters of requests give each request its own acceptance, and a Beta law spreads a rate") {
  CHECK(json_of(small_model + lengths + " --counters " + sample_counters +
                " --draft-kind ngram --gamma 4")["acceptance_laws"] == 60);
  CHECK(json_of(small_model + lengths +
                " --alpha 0.7 --alpha-spread 0.1 --draft-kind ngram --gamma 4")["acceptance_laws"] == 64);
  CHECK(json_of(small_model + lengths + " --alpha 0.7 --draft-kind ngram --gamma 4")["acceptance_laws"] == 1);
}

TEST_CASE("a recording gives requests the acceptance of their contexts, which a mean over all contexts hides") {
  const ScratchFolder scratch;
  // Texts of 3000 tokens whose drafts are hardly accepted beyond 1500; texts differ, so that there is an interval.
  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  for (std::int64_t text = 0; text < 6; ++text) {
    for (std::int64_t place = 0; place < 3000; ++place) {
      acceptance.push_back((place < 1500 ? 0.8 : 0.1) + (text % 2 == 0 ? 0.02 : -0.02));
      sequence.push_back(text);
    }
  }
  const std::string recording =
      specdec::tests::scalar_trace(scratch / "long.safetensors", acceptance, sequence).string();
  const auto rate_with = [&](std::int64_t prompt, const std::string& acceptance_options) {
    const ordered_json answer =
        json_of(small_model + " --output-tokens 200 --draft-kind ngram --gamma 3 --prompt-tokens " +
                std::to_string(prompt) + acceptance_options);
    return value(answer["scenarios"][1]["requests_per_second_per_replica"]);
  };
  const std::string by_context = " --trace " + recording + " --by context:1500";
  // Requests that stay below the bound, that stay above it, and that cross it.
  CHECK(rate_with(1000, by_context) == Approx(rate_with(1000, " --alpha 0.8")).epsilon(0.03));
  CHECK(rate_with(1500, by_context) == Approx(rate_with(1500, " --alpha 0.1")).epsilon(0.03));
  CHECK(rate_with(1400, by_context) < 0.97 * rate_with(1400, " --alpha 0.8"));
  CHECK(rate_with(1400, by_context) > 1.03 * rate_with(1400, " --alpha 0.1"));
  CHECK(rate_with(1000, " --trace " + recording) < 0.9 * rate_with(1000, by_context));

  const ordered_json answer = json_of(small_model + lengths + " --draft-kind ngram --gamma 1" + by_context);
  CHECK(assumed_in(answer, "requests' acceptance") ==
        "replay of 18000 positions, one for all, changing as their contexts grow");
  CHECK(assumed_in(answer, "acceptance by context") == "<1500, >=1500");
  CHECK(answer["acceptance_laws"] == 1);
  check_refused(small_model + lengths + " --draft-kind ngram --trace " + recording + " --by task",
                "--by is task, but must be context:N1,N2,... with places above 0, or beside --mix");
  check_refused(small_model + lengths + " --draft-kind ngram --alpha 0.5 --by context:1500",
                "--by is given, but needs --mix beside it");
}

TEST_CASE("a capacity names the run that would narrow it, once, as a command") {
  const std::string unknown = small_model + lengths + " --draft-kind ngram --gamma 2 --arrival-rate 5";
  const std::string question = unknown + " --hit-rate 1";
  const std::string options = question + " --alpha 0.7";
  const ordered_json next = json_of(options)["next_measurement"];
  CHECK(next["source"] == "cost");
  CHECK(next["gamma"] == 2);
  CHECK(next["with_baseline"] == true);
  const std::string command = next["command"];
  CHECK(command.rfind("vllm bench serve --model meta-llama/Llama-3.1-8B", 0) == 0);
  CHECK(command.find("--dataset-name custom --dataset-path PROMPTS_OF_") != std::string::npos);
  const std::string out = run_specdec("capacity --explain " + options).out;
  CHECK(out.find("Next: run the server with num_speculative_tokens 2, and once without") != std::string::npos);
  CHECK(out.find("median of its pauses between outputs (ITL)") != std::string::npos);
  CHECK(out.find(",tpot_ms=P,context=") != std::string::npos);
  // Ranges stand among the assumptions, and there alone.
  CHECK(out.find("uncalibrated:") == std::string::npos);
  CHECK(out.find("0.69 to 0.92") == std::string::npos);
  CHECK(json_of(options + " --calibrate batch=4,tpot_ms=8")["next_measurement"].is_null());
  CHECK(
      json_of(question +
              " --kernel-times none --calibrate batch=4,tpot_ms=8 --alpha 0.02:0.98 --max-num-seqs 4")["next_measurement"]
                                                                                                    ["source"] ==
      "acceptance");
  // Nobody knows how often a lookup finds something.
  const ordered_json of_hits = json_of(unknown + " --alpha 0.95 --calibrate batch=4,tpot_ms=8")["next_measurement"];
  CHECK(of_hits["source"] == "acceptance");
  CHECK(of_hits["gamma"] == 2);
  CHECK(of_hits["with_baseline"] == false);
  CHECK(std::regex_search(run_specdec("capacity " + unknown + " --alpha 0.7").out, std::regex("Open: drafting is 5% faster in [0-9]+% of\\s+worlds")));
}

TEST_CASE("a range of alpha gives ranges, and an interval of 95% is called one") {
  const std::string question = "capacity " + small_model + lengths + " --draft-kind ngram --gamma 2 ";
  const std::string typed = run_specdec(question + "--explain --hit-rate 1 --alpha 0.7:0.9").out;
  CHECK(typed.starts_with("Draft 2 tokens: up to "));
  CHECK(std::regex_search(typed, std::regex(R"([0-9.]+ to\s+[0-9.]+\s+requests/s,\s+or\s+[0-9.]+\s+to\s+[0-9.]+\s+without\s)")));
  CHECK(typed.find("plain decoding has a 95% interval") != std::string::npos);
  CHECK(run_specdec(question + "--counters " + sample_counters).out.find(" 95% ") != std::string::npos);
}

TEST_CASE("a request that finds no room in the cache is refused by the option that would make room") {
  const ScratchFolder scratch;
  const std::string cost = (scratch / "passes.csv").string();
  std::ofstream(cost) << "batch,tokens,context,seconds\n1,1,0,0.01\n64,1,0,0.02\n";
  check_refused("--cost " + cost + fast + " --prompt-tokens 500 --output-tokens 100 --kv-cache-tokens 160 --gamma 0",
                "--kv-cache-tokens is 160, but must be at least 608: request 0 (500 tokens of prompt, 100 of output, 0 "
                "slots for drafts) needs 608 tokens of cache");
}

TEST_CASE("a capacity of lengths that grow faster than they can says so, and names the device as it is listed") {
  const ordered_json grows =
      json_of("--hardware H100 --model llama-3.1-8b --draft-kind ngram --gamma 2 --acceptance-length 1:1.80,2:2.70" +
              fast + lengths);
  CHECK(warns(grows, "non_monotone_survival"));
  CHECK(grows["assumptions"][0]["name"] == "hardware");
  CHECK(grows["assumptions"][0]["value"] == "h100-sxm");
}

TEST_CASE("capacity warns of requests longer than the model reads and of a schedule that ends before the batch does") {
  CHECK(warns(json_of(small_model + " --prompt-tokens 131000 --output-tokens 100"), "context_beyond_model"));
  const ordered_json answer =
      json_of(small_model + lengths + " --alpha 0.7 --draft-kind ngram --gamma 1 --schedule 1-64:3");
  CHECK(warns(answer, "schedule_goes_on"));
  CHECK_FALSE(warns(answer, "context_beyond_model"));
}

TEST_CASE("capacity refuses a head that cannot read the target's states") {
  check_refused(
      "--alpha 0.7 --hardware h100-sxm --tp 4 --model llama-3.3-70b --draft-model eagle3-llama-3.1-8b --gamma 3" +
          lengths + " --arrival-rate 1",
      "--draft-model is eagle3-llama-3.1-8b, but eagle3-llama-3.1-8b reads states of width 4096, and those of "
      "llama-3.3-70b have 8192; made for it is eagle3-llama-3.3-70b");
  const ScratchFolder scratch;
  const std::string file = (scratch / "passes.csv").string();
  std::ofstream(file) << "batch,tokens,context,seconds\n1,1,0,0.02\n1,1000,0,0.04\n256,1,0,0.03\n256,1000,0,2\n";
  const std::string timed = "--alpha 0.7 --cost " + file +
                            " --c 0.05 --kv-cache-tokens 100000 --gamma 3 "
                            "--model llama-3.3-70b" +
                            fast + lengths;
  check_refused(
      timed + " --draft-model eagle3-llama-3.1-8b",
      "--draft-model is eagle3-llama-3.1-8b, but eagle3-llama-3.1-8b reads states of width 4096, and those of "
      "llama-3.3-70b have 8192; made for it is eagle3-llama-3.3-70b");
  CHECK(warns(json_of(timed + " --draft-model qwen3-0.6b"), "vocabularies_differ"));
  std::string runs;
  for (const char* name : {"c1-plain", "c1-k3", "c8-plain", "c8-k3"}) {
    ordered_json run;
    std::ifstream(specdec::tests::source_dir() + "/traces/samples/bench/" + name + ".json") >> run;
    run["model_id"] = "meta-llama/Llama-3.3-70B-Instruct";
    runs += " --bench " + (scratch / name).string();
    std::ofstream(scratch / name) << run;
  }
  check_refused(
      runs + " --kv-cache-tokens 100000 --prefill-tokens-per-second 50000 --draft-model eagle3-llama-3.1-8b" + fast +
          lengths,
      "--draft-model is eagle3-llama-3.1-8b, but eagle3-llama-3.1-8b reads states of width 4096, and those of "
      "llama-3.3-70b have 8192; made for it is eagle3-llama-3.3-70b");
}

TEST_CASE("capacity says where more sequences run together than a table timed") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "one.csv").string();
  std::ofstream(file) << "batch,tokens,context,seconds\n1,1,0,0.02\n1,1000,0,0.04\n";
  const ordered_json answer = json_of("--cost " + file + " --kv-cache-tokens 100000" + fast + lengths);
  REQUIRE(warns(answer, "not_timed"));
  CHECK(answer["scenarios"][0]["mean_batch"]["value"] > 2);
}

TEST_CASE("a model named as its own draft drafts with its module for the next token") {
  const std::string deepseek = "--hardware h200-sxm --tp 8 --model deepseek-v3 --draft-kind mtp --alpha 0.8 --gamma 1";
  const ordered_json own = json_of(deepseek + lengths + fast);
  const ordered_json named = json_of(deepseek + " --draft-model deepseek-v3" + lengths + fast);
  CHECK(own["scenarios"][1]["memory_per_gpu"] == named["scenarios"][1]["memory_per_gpu"]);
}

TEST_CASE("clients each keep one request in flight, evenly over the replicas, and wait where they find no place") {
  const ordered_json one = json_of(clients + " --concurrency 8");
  CHECK(one["comparison"] == "equal concurrency");
  CHECK(one["requests_per_second"].is_null());
  CHECK(one["inputs"]["num_requests"].is_null());
  const ordered_json& plain = one["scenarios"][0];
  CHECK(plain["at_clients_per_replica"] == 8);
  CHECK(plain["replicas"] == 1);
  const double rate = plain["at_requests_per_second_per_replica"], tpot = plain["tpot_seconds"]["mean"]["value"];
  CHECK(plain["gap_seconds"]["mean"]["value"].get<double>() == Approx(tpot).epsilon(0.01));
  // Little's law for eight requests of 99 further tokens each, which no variation of lengths blurs.
  const ordered_json alike = json_of(
      "--hardware h100-sxm --model llama-3.1-8b --replications 2 --threads 1 --prompt-tokens 500 --output-tokens 100 "
      "--concurrency 8")["scenarios"][0];
  const double all = alike["at_requests_per_second_per_replica"], first = alike["ttft_seconds"]["mean"]["value"];
  CHECK(all * (first + 99 * alike["tpot_seconds"]["mean"]["value"].get<double>()) == Approx(8).epsilon(1e-6));

  const ordered_json two = json_of(clients + " --concurrency 16 --replicas 2");
  for (const std::string part : {"p50", "p90", "p99", "mean"})
    CHECK(two["scenarios"][0]["tpot_seconds"][part]["value"] == plain["tpot_seconds"][part]["value"]);
  const ordered_json bound = json_of(clients + " --concurrency 32 --max-num-seqs 8");
  const ordered_json& waiting = bound["scenarios"][0];
  CHECK(waiting["tpot_seconds"]["p50"]["value"].get<double>() == Approx(tpot).epsilon(0.05));
  CHECK(waiting["ttft_seconds"]["p50"]["value"].get<double>() > 2 * 99 * tpot);

  const ordered_json far = json_of(clients + " --concurrency 8 --outside-ms 50");
  CHECK(far["scenarios"][0]["ttft_seconds"]["p50"]["value"].get<double>() > 0.05);
  CHECK(far["scenarios"][0]["at_requests_per_second_per_replica"].get<double>() < rate);
}

TEST_CASE("prefixes that requests share leave room for more of them, as far as the cache is the limit") {
  const std::string asked =
      "--hardware h100-sxm --tp 2 --model qwen3-32b --prompt-tokens 7200 --output-tokens 1000 --max-num-seqs 1024 "
      "--replications 2 --prefix-cache-hit-rate 0.8333";
  const auto most = [&](const std::string& prefixes) {
    return value(json_of(asked + prefixes)["scenarios"][0]["saturated_requests_per_second_per_replica"]);
  };
  CHECK(most(" --shared-prefixes 1000000") == most(""));
  CHECK(most(" --shared-prefixes 19") > 1.3 * most(""));
  CHECK(most(" --shared-prefixes 1") > most(" --shared-prefixes 19"));
  CHECK_THAT(run_specdec("capacity --hardware h100-sxm --model llama-3.1-8b --shared-prefixes 4" + lengths).err,
             Catch::Matchers::Contains("--shared-prefixes is given, but needs --prefix-cache-hit-rate"));
}

TEST_CASE("a limit says how many clients share a replica, and the text names them") {
  const std::string asked = clients + " --concurrency 64 --tpot-ms 9 --percentile 90";
  const ordered_json limited = json_of(asked);
  const ordered_json& plain = limited["scenarios"][0];
  REQUIRE(plain["meets_load"] == true);
  const std::int64_t replicas = plain["replicas"], each = plain["at_clients_per_replica"];
  CHECK(replicas > 1);
  CHECK(each == (64 + replicas - 1) / replicas);
  CHECK(plain["tpot_seconds"]["p90"]["value"].get<double>() <= 0.009);
  CHECK(limited["scenarios"][0]["gpus"]["ci95"][0] <= replicas);
  const std::string text = run_specdec("capacity --explain " + asked).out;
  CHECK(text.find("64 requests in flight within 9 ms TPOT at p90") != std::string::npos);
  CHECK(text.find("Pauses between outputs without speculation: ") != std::string::npos);
}

TEST_CASE("times whose queue grows in some world have no upper end, and text and JSON say so") {
  const std::string question = small_model + lengths + " --alpha 0.7 --draft-kind ngram --gamma 2 --replicas 1";
  const double most = value(json_of(question)["scenarios"][0]["saturated_requests_per_second_per_replica"]);
  const std::string asked = question + " --arrival-rate " + std::to_string(0.9 * most);
  const ordered_json answer = json_of(asked);
  const ordered_json& plain = answer["scenarios"][0];
  REQUIRE(plain["meets_load"] == true);
  REQUIRE(plain["gpus"]["ci95"][1].is_null());
  CHECK(plain["tpot_seconds"]["p50"]["ci95"][0].get<double>() < value(plain["tpot_seconds"]["p50"]));
  for (const std::string times : {"tpot_seconds", "ttft_seconds", "gap_seconds"})
    CHECK(plain[times]["p50"]["ci95"][1].is_null());
  CHECK(plain["mean_batch"]["ci95"][1].is_null());
  CHECK_FALSE(plain["requests_per_second_per_replica"]["ci95"][1].is_null());
  const std::string note = plain["ci95_note"];
  CHECK(std::regex_match(note, std::regex("in [1-9] of ([3-9]|10) simulated worlds the load is not carried: .*")));
  CHECK(json_of(question)["scenarios"][0]["ci95_note"].is_null());
}

TEST_CASE("recorded requests bring their lengths and their rate, which --arrival-rate scales") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "requests.csv").string();
  std::ofstream(file) << "seconds,prompt_tokens,output_tokens\n0,100,20\n1,200,40\n4,50,10\n";
  const ordered_json recorded = json_of(small_model + " --requests " + file);
  CHECK(recorded["requests_per_second"] == 0.5);
  CHECK(recorded["recorded_requests"] == 3);
  CHECK(json_of(small_model + " --requests " + file + " --arrival-rate 3")["requests_per_second"] == 3);
  check_refused(small_model + " --requests " + file + " --prompt-tokens 5",
                "--prompt-tokens is given, but --requests brings its own lengths");

  std::ofstream(file) << "seconds,prompt_tokens,output_tokens\n0,100,20\n5,200,40\n4,50,10\n";
  check_refused(small_model + " --requests " + file,
                file + ":4: seconds is 4, but must be no earlier than that of the request before it, on line 3");
  std::ofstream(file) << "seconds,prompt_tokens,output_tokens\n0,100,0\n";
  check_refused(small_model + " --requests " + file,
                file + ":2: output_tokens is 0, but must be a whole number, 1 to 1073741824");
}

TEST_CASE("limits that no load meets make a check fail, and the document stays complete") {
  const ordered_json answer = json_of(small_model + lengths + " --arrival-rate 5 --tpot-ms 1", 1);
  CHECK(answer["recommended"].is_null());
  CHECK(warns(answer, "no_scenario_meets_the_limits"));
  const ordered_json& plain = answer["scenarios"][0];
  CHECK(value(plain["requests_per_second_per_replica"]) == 0);
  CHECK(plain["limited_by"] == "tpot");
  CHECK(plain["gpus"]["value"].is_null());
  CHECK(plain["at_requests_per_second_per_replica"] == 0);
  const std::string alone = answer["decision"]["text"][0];
  CHECK_THAT(alone, Catch::Matchers::Contains("A request alone takes ") &&
                        Catch::Matchers::Contains(" ms TPOT at best on 8 GPUs."));
  CHECK(json_of(small_model + lengths + " --arrival-rate 1e4 --replicas 2", 1)["recommended"].is_null());
  CHECK(run_specdec("capacity " + small_model + lengths +
                    " --arrival-rate 5 --tpot-ms 1 --format csv --quiet --table frontier")
            .out.starts_with("scenario,name,gamma,"));
}

TEST_CASE("names that no preset has are refused with those that were perhaps meant") {
  check_refused("--hardware H100_SX --model llama-3.1-8b" + lengths,
                "--hardware is H100_SX, but must be a file or one of `specdec list hardware` (near it: h100-sxm, "
                "h100)");
  check_refused("--hardware h100-sxm --model llama-3.3-70" + lengths,
                "--model is llama-3.3-70, but must be a config.json, its folder, a GGUF file or one of `specdec list "
                "models` (near it: llama-3.3-70b, llama-3.1-70b, llama-3.1-8b)");
}

TEST_CASE("a load that only some of the runs take within a limit carries a warning") {
  const std::string edge =
      "--hardware h100-sxm --model llama-3.1-8b --kernel-times none --prompt-tokens 500:1 --output-tokens 100:1 "
      "--ttft-ms 200 "
      "--num-requests 200 --replications 8 --max-num-seqs 4 --replicas 1 --seed 6 --arrival-rate ";
  const ordered_json largest = json_of(edge + "0.5");
  CHECK_FALSE(warns(largest, "load_within_error_of_limit"));
  const double most = value(largest["scenarios"][0]["requests_per_second_per_replica"]);
  const ordered_json at_most = json_of(edge + std::to_string(0.999 * most));
  CHECK(value(at_most["scenarios"][0]["ttft_seconds"]["p99"]) > 0.2);
  CHECK(warns(at_most, "load_within_error_of_limit"));
}

TEST_CASE("without a load each scenario is shown at the largest one it takes") {
  const ordered_json answer = json_of(small_model + lengths);
  CHECK(answer["comparison"] == "largest load of each");
  CHECK(answer["requests_per_second"].is_null());
  CHECK(answer["scenarios"][0]["gpus"]["ci95"].is_null());
}

TEST_CASE("capacity finds a layout on the GPUs that there are, and sizes prompts' pool beside the other") {
  const std::string large = "--hardware h200-sxm --model llama-3.3-70b" + fast + lengths;
  const ordered_json found = json_of(large + " --gpus 4 --price 2");
  REQUIRE(found["layouts"]["tried"].size() == 3);
  CHECK(found["layouts"]["tried"][0]["refused"].is_string());
  CHECK(found["gpus_per_replica"] ==
        found["layouts"]["tried"][found["layouts"]["chosen"].get<std::size_t>()]["gpus_per_replica"]);
  CHECK(found["layouts"]["frontier"].size() > 2);
  const auto source_of = [](const ordered_json& answer, std::string_view name) {
    for (const ordered_json& one : answer["assumptions"]) {
      if (one["name"] == name) return one["source"].get<std::string>();
    }
    return std::string();
  };
  CHECK(source_of(found, "tensor_parallel") == "found");
  CHECK(source_of(json_of(large + " --gpus 4 --tp 4"), "tensor_parallel") == "user");
  // More than one GPU takes, and what no number of them does.
  const std::string heavy = small_model + lengths + " --gpus 1 --arrival-rate 400";
  const ordered_json beyond = json_of(heavy, 1);
  CHECK(warns(beyond, "more_gpus_than_given"));
  CHECK(beyond["recommended"]["gpus"].get<int>() > 1);
  CHECK(beyond["layouts"]["gpus"] == beyond["recommended"]["gpus"]);
  CHECK(beyond["layouts"]["within_limits"] == false);
  const std::string beyond_text = run_specdec("capacity --explain " + heavy).out;
  CHECK(std::regex_search(beyond_text, std::regex("^More is needed than your GPU: [0-9]+ GPUs\\s")));
  CHECK(beyond_text.find("is taken: the cheapest within the\nlimits, on more GPUs than given") != std::string::npos);
  const std::string never = small_model + lengths + " --gpus 1 --arrival-rate 400 --tpot-ms 1";
  CHECK(json_of(never, 1)["recommended"].is_null());
  CHECK(run_specdec("capacity " + never).out.find("on any number of GPUs") != std::string::npos);
  check_refused(small_model + lengths + " --dp 2",
                "--data-parallel-size is 2, but llama-3.1-8b has no experts to share: groups that share nothing are "
                "--replicas");
}

TEST_CASE("weights that do not fit are refused with the number of GPUs that hold them") {
  check_refused("--hardware h100-sxm --model llama-3.3-70b" + lengths,
                "--tensor-parallel-size is 1, but 141.1 GB of target weights per GPU leave no room for a cache in the "
                "75.1 GB that h100-sxm has to give to plain: 66.0 GB are missing; divided over 2 GPUs they leave "
                "room; --gpus finds the best layout of those that you have");
}

TEST_CASE("capacity refuses options that contradict each other or miss one another") {
  const std::string base = small_model + lengths;
  check_refused(small_model + " --output-tokens 5",
                "missing: --prompt-tokens MEAN; --requests FILE has the lengths of recorded requests");
  check_refused("", "missing: --prompt-tokens MEAN, --output-tokens MEAN, --hardware DEVICE with --model NAME (or --cost or --bench); --requests FILE has the lengths of recorded requests");
  check_refused(fast + lengths, "missing: --hardware DEVICE with --model NAME (or --cost or --bench)");
  check_refused(base + " --cost x.csv", "--hardware and --cost are given, but must be one");
  check_refused(base + " --alpha 0.5 --counters x", "--alpha and --counters are given, but must be one");
  check_refused(
      base + " --gamma 3",
      "--gamma is 3, but must be 0 without an acceptance: one of --alpha, --counters, --trace, ... is needed");
  check_refused(base + " --alpha 0.5 --draft-kind ngram --gamma '1, 2'",
                "--gamma is  2, but must be an integer in [0, 64]");
  check_refused(base + " --alpha 0.5 --draft-kind ngram --gamma 3,2", "--gamma is 3,2, but must be a rising list");
  check_refused(base + " --arrival-rate 1e300",
                "--arrival-rate is 1e300, but must be a number in [1e-06, 1000000000000]");
  check_refused(base + " --percentile 100", "--percentile is 100, but must be a number in [1, 99.99]");
  check_refused(base + " --arrival-rate 1 --concurrency 2",
                "--concurrency is given, but must not be beside --arrival-rate");
  check_refused(base + " --alpha-spread 0.1", "--alpha-spread is given, but needs an acceptance beside it");
  check_refused(base + " --alpha 0.7 --alpha-spread 0.49 --draft-kind ngram",
                "--alpha-spread is 0.49, but must be below 0.4583, the largest that a rate of 0.7 can have");
  check_refused(base + " --draft-model llama-3.2-1b",
                "--draft-kind is model, but must be eagle, mtp or parallel where no acceptance is given: of other "
                "drafts no acceptance length was published that would stand for it; --alpha, --acceptance-length, "
                "--counters, --trace, ... state one");
  check_refused(base + " --alpha 0.7 --draft-kind mtp",
                "--draft-kind is mtp, but llama-3.1-8b has no module for the next token; --draft-model can name one");
  check_refused(
      "--hardware apple-m3-max --tp 2 --model llama-3.1-8b" + fast + lengths,
      "--tensor-parallel-size is 2, but apple-m3-max has no link_bytes_per_second, which accelerators that share a "
      "model need; a hardware file can name it");
  check_refused(base + " --activation-reserve-gb 100",
                "--activation-reserve-gb is 100, but must be below 76.4, the share of h100-sxm that "
                "--gpu-memory-utilization takes");
  check_refused(small_model + " --output-tokens 5 --prompt-tokens 5:-1",
                "CV of --prompt-tokens is -1, but must be a number in [0, 10]");
  check_refused("--cost x.csv --tp 2" + fast + lengths,
                "missing: --kv-cache-tokens N, the room for contexts that a server prints");
  check_refused("--cost x.csv --weight-dtype fp8 --kv-cache-tokens 5" + fast + lengths,
                "--weight-dtype is given, but needs --hardware beside it");
  check_refused("--bench x.json" + fast + lengths,
                "missing: --kv-cache-tokens N, the room for contexts that a server prints, "
                "--prefill-tokens-per-second X (or --decode-only), since --bench prices rounds alone");
}

TEST_CASE("clients that send too few requests are refused, and what is fastest by the estimate alone is called so") {
  check_refused(clients.substr(0, clients.find(" --replications")) + lengths + " --concurrency 256 --num-requests 500",
                "--num-requests is 500, but must be at least 1024, 4 for each client of a replica");
  CHECK(run_specdec("capacity " + clients + " --concurrency 64 --replicas 8 --num-requests 100").exit_code == 0);
  std::string near = run_specdec("capacity " + clients +
                                 " --draft-model llama-3.2-1b --gamma 1-3 --alpha 0.45 --arrival-rate 20 --ttft-ms 500 "
                                 "--tpot-ms 30")
                         .out;
  std::replace(near.begin(), near.end(), '\n', ' ');
  CHECK(near.find("; as many without speculation, but slower.") != std::string::npos);
}

TEST_CASE(
    "a load is carried by whichever layout does on the GPUs given, and drafts are held against plain decoding's own") {
  const std::string large =
      "--hardware h200-sxm --model llama-3.3-70b --draft-model eagle3-llama-3.3-70b --prompt-tokens 2000:0.5 "
      "--output-tokens 500:0.5 --num-requests 400 --replications 2 --price 3 --gpus 8 --gamma ";
  // Two GPUs a replica are the cheapest by formulas, and take ten.
  const ordered_json carried = json_of(large + "3,5 --tpot-ms 20 --arrival-rate 6.5");
  CHECK(carried["recommended"]["gpus"] == 8);
  CHECK(carried["layouts"]["within_limits"] == true);
  CHECK(carried["layouts"]["without_speculation"].is_null());
  CHECK(run_specdec("capacity " + large + "3,5 --tpot-ms 20 --arrival-rate 6.5").out.find("no number of GPUs") ==
        std::string::npos);
  const ordered_json against = json_of(large + "3,5 --tpot-ms 30 --arrival-rate 5");
  CHECK(against["recommended"]["gpus"] == 6);
  const ordered_json& plain = against["without_speculation"];
  CHECK(plain["gpus"] == 8);
  CHECK(plain["scenario"] == 3);
  REQUIRE(against["scenarios"].size() == 4);
  CHECK(against["scenarios"][3]["name"] == "plain, tp 8");
  CHECK(against["scenarios"][3]["gpus_per_replica"] == 8);
  CHECK(against["scenarios"][3]["cost_per_million_tokens"] == plain["cost_per_million_tokens"]);
  // What plain decoding alone needs.
  const ordered_json alone = json_of(large + "0 --tpot-ms 30 --arrival-rate 5");
  CHECK(alone["recommended"]["gpus"] == plain["gpus"]);
  CHECK(alone["recommended"]["cost_per_million_tokens"] == plain["cost_per_million_tokens"]);
  const std::string text = run_specdec("capacity " + large + "3,5 --tpot-ms 25").out;
  CHECK(text.find(" by 8 GPUs (2 replicas of 4); without") != std::string::npos);
}

TEST_CASE("tables of a layout search that was not asked for have a heading and no row") {
  for (const std::string table : {"layouts", "layout-frontier"}) {
    const auto run = run_specdec("capacity " + clients + " --tp 1 --arrival-rate 1 --format csv --table " + table);
    CHECK(run.exit_code == 0);
    CHECK(std::count(run.out.begin(), run.out.end(), '\n') == 1);
  }
}

TEST_CASE("the first lines of capacity say in how many worlds drafting saves GPUs") {
  const auto first_lines = [](const std::string& alpha_and_rate) {
    std::string out = run_specdec("capacity " + more_runs +
                                  " --prompt-tokens 200 --output-tokens 100 --draft-kind ngram --hit-rate 1 --gamma 3 "
                                  "--tpot-ms 10 --alpha " +
                                  alpha_and_rate)
                          .out;
    out.resize(out.find("\n\n"));
    std::replace(out.begin(), out.end(), '\n', ' ');
    return out;
  };
  const std::string some = first_lines("0.6 --arrival-rate 100 --kernel-times none");
  INFO(some);
  CHECK(some.starts_with("1 GPU with 3 draft tokens; without speculation 2 GPUs. Open: "));
  CHECK(std::regex_search(some,
                          std::regex("drafting saves\\s+GPUs in [34][0-9]% of worlds and needs more in [0-9]+%\\. ")));
  const std::string all = first_lines(
      "0.9 --arrival-rate 600 --calibrate batch=64,tpot_ms=7 "
      "--calibrate batch=64,gamma=3,tpot_ms=3,tokens_per_step=3.4");
  INFO(all);
  CHECK(all.starts_with("4 GPUs with 3 draft tokens; without speculation 11 GPUs. Sure: "));
  CHECK(std::regex_search(all, std::regex("in (100|9[5-9])% of worlds and needs more in (none|1%)\\. [34] to ([5-9]|1[0-2]) GPUs, or ")));
}

TEST_CASE("the table of capacity begins with the decision and says what it compares") {
  const std::string out =
      run_specdec("capacity " + more_runs + lengths +
                  " --alpha 0.8 --draft-kind ngram --hit-rate 1 --gamma 3 --arrival-rate 100 --tpot-ms 10 "
                  "--kernel-times none --explain")
          .out;
  CHECK(out.starts_with("2 GPUs with "));
  CHECK(out.find("scenarios compared at equal arrival rate") != std::string::npos);
  CHECK(out.find("uncalibrated") != std::string::npos);
  const std::string csv = run_specdec("capacity " + small_model + lengths + " --format csv --quiet").out;
  CHECK(csv.rfind(
            "name,gamma,price_extrapolated,max_num_seqs,meets_load,requests_per_second_per_replica_value,",
            0) == 0);
}

TEST_CASE("runs that cannot be as they say are named before what they would give") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "runs.csv").string();
  std::ofstream(file) << "batch,gamma,ms_per_token,tokens_per_step,rounds\n1,0,20,,\n1,3,3.8,2.7,1000\n"
                         "8,0,22.9,,\n8,3,5.3,2.7,1000\n";
  const std::string text =
      run_specdec("capacity --bench " + file + " --decode-only --kv-cache-tokens 100000" + fast + lengths).out;
  CHECK(text.rfind("The runs cannot be as they say: " + file, 0) == 0);
}

TEST_CASE("capacity says where it runs at batches or contexts beyond what was measured") {
  // The runs end at batch 62.4; twenty requests/s of them need more sequences than that on two replicas.
  const std::string runs = "--bench " + specdec::tests::source_dir() +
                           "/traces/samples/bench/*.json --kv-cache-tokens 400000 "
                           "--prefill-tokens-per-second 20000 --gamma 1 --output-tokens 250" +
                           fast;
  const std::string beyond = runs + " --prompt-tokens 1000 --arrival-rate 20";
  const ordered_json answer = json_of(beyond);
  CHECK(warns(answer, "price_extrapolated"));
  REQUIRE(value(answer["scenarios"][0]["mean_batch"]) > 65);
  CHECK(answer["scenarios"][0]["price_extrapolated"] == true);
  // So does the largest load, wherever the figures beside it are for.
  const std::string largest = runs + " --prompt-tokens 1000 --concurrency 16 --replicas 1 --max-num-seqs ";
  const ordered_json full = json_of(largest + "256");
  REQUIRE(value(full["scenarios"][0]["mean_batch"]) < 62);
  CHECK(full["scenarios"][0]["price_extrapolated"] == true);
  CHECK(json_of(largest + "16")["scenarios"][0]["price_extrapolated"] == false);

  const ordered_json within = json_of(runs + " --prompt-tokens 1000 --arrival-rate 5");
  REQUIRE(value(within["scenarios"][0]["mean_batch"]) < 62);
  CHECK_FALSE(warns(within, "price_extrapolated"));
  CHECK(within["scenarios"][0]["price_extrapolated"] == false);
  CHECK(warns(json_of(runs + " --prompt-tokens 300 --arrival-rate 5"), "price_extrapolated"));
}

TEST_CASE("capacity warns where a run ends before its load is stationary") {
  const std::string long_texts =
      "--hardware h100-sxm --model llama-3.1-8b --prompt-tokens 1000 --output-tokens 2000 "
      "--arrival-rate 60 --replications 2 --threads 1 --num-requests ";
  const ordered_json few = json_of(long_texts + "100");
  REQUIRE(warns(few, "load_not_stationary"));
  CHECK(run_specdec("capacity --explain " + long_texts + "100").out.find("more --num-requests") != std::string::npos);
  const ordered_json many = json_of(long_texts + "1000");
  CHECK_FALSE(warns(many, "load_not_stationary"));
}

TEST_CASE("what a number of replicas takes is told by all worlds, not by the estimate alone") {
  const std::string question =
      "--hardware h100-sxm --model llama-3.1-8b --draft-model llama-3.2-1b --alpha 0.75 "
      "--gamma 2 --prompt-tokens 1000:0.5 --output-tokens 200:0.5 --kernel-times none --tpot-ms ";
  // A replica takes 15 requests/s by the estimate and with some versions of the cost, and not with others.
  const auto text_of = [&](const std::string& load) {
    return std::regex_replace(run_specdec("capacity " + question + load + fast).out, std::regex("\\s+"), " ");
  };
  const std::string unsure = text_of("12 --arrival-rate 60 --replicas 4");
  CHECK(std::regex_search(
      unsure, std::regex("4 replicas take 60 requests/s: [3-8][0-9]% sure; without speculation [0-9]{1,2}% sure\\.")));
  const std::string sure = text_of("30 --arrival-rate 4 --replicas 4");
  CHECK(sure.find("4 replicas take 4 requests/s: 100% sure; without speculation 100% sure.") != std::string::npos);
  const std::string never = text_of("12 --arrival-rate 1e4 --replicas 1");
  CHECK(never.rfind("10000 requests/s are not served within 12 ms", 0) == 0);
  CHECK(never.find("by 1 replica,") != std::string::npos);
}

TEST_CASE("Ctrl-C ends a capacity with the scenarios that were simulated, of which it decides nothing") {
  const std::string run =
      "capacity --hardware h100 --model llama-3.1-8b --draft-model llama-3.2-1b --alpha 0.7 "
      "--prompt-tokens 100 --output-tokens 20 --num-requests 400 --replications 200 --threads 1 "
      "--gamma 1-64 --max-num-seqs 1";
  const specdec::tests::Run json_run = specdec::tests::interrupted_run(run + " --format json", 1);
  CHECK(json_run.exit_code == 0);
  const auto json = ordered_json::parse(json_run.out);
  CHECK(json["partial"] == true);
  CHECK(warns(json, "partial"));
  CHECK(0 < json["scenarios"].size());
  CHECK(json["scenarios"].size() < 65);
  // These hardware times come in versions, none of which was run.
  for (const ordered_json& scenario : json["scenarios"]) {
    CHECK(scenario["requests_per_second_per_replica"]["ci95"] == ordered_json({0.0, nullptr}));
    CHECK(scenario["ci95_note"].get<std::string>().find("interrupted") == 0);
    CHECK(scenario["gpus"]["ci95"].is_null());
  }
  CHECK(json["next_measurement"].is_null());
  const std::string text = specdec::tests::interrupted_run(run, 1).out;
  CHECK(text.starts_with("Interrupted; by what was simulated until then: "));
}

TEST_CASE("clients in a loop are priced by a table of passes from one sequence on") {
  const ScratchFolder scratch;
  const std::string table = (scratch / "cost.csv").string();
  {
    std::ofstream file(table);
    file << "batch,tokens,context,seconds\n";
    for (const int batch : {1, 16, 256}) {
      for (const int tokens : {1, 2, 64}) {
        for (const int context : {0, 4000})
          file << batch << ',' << tokens << ',' << context << ',' << 8e-3 + 5e-5 * batch * tokens << '\n';
      }
    }
  }
  for (const std::string number : {"2", "10", "64"}) {
    const ordered_json answer = json_of("--cost " + table + " --concurrency " + number +
                                        " --prompt-tokens 100 --output-tokens 101 --kv-cache-tokens 1000000");
    CHECK(answer["without_speculation"]["gpus"] == 1);
  }
}
