#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using nlohmann::ordered_json;
using specdec::tests::check_run_refused;
using specdec::tests::Run;
using specdec::tests::run_specdec;
using specdec::tests::source_dir;

namespace {

ordered_json synthetic_of(const std::string& arguments) {
  const Run run = run_specdec("synthetic " + arguments + " --format json");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return ordered_json::parse(run.out);
}

}  // namespace

TEST_CASE("synthetic writes every engine's settings for a rate, and one engine's alone") {
  const ordered_json answer = synthetic_of("--alpha 0.5 --gamma 2");
  REQUIRE(answer["settings"].size() == 4);
  CHECK(answer["settings"][0]["text"] ==
        "\"num_speculative_tokens\": 2,\n\"rejection_sample_method\": \"synthetic\",\n"
        "\"synthetic_acceptance_rates\": [0.5,0.25]\n");
  CHECK(answer["settings"][1]["text"] ==
        "SGLANG_SIMULATE_ACC_LEN=1.75\nSGLANG_SIMULATE_ACC_METHOD=match-expected\n"
        "SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token\n");
  CHECK(answer["settings"][2]["text"] == "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=0.75\n");
  CHECK(answer["settings"][3]["text"] ==
        "--spec-draft-n-max 2\n--spec-draft-n-min 0\n--spec-draft-p-min 0\n--spec-synth-rates 0.5,0.25\n");
  for (const ordered_json& settings : answer["settings"]) CHECK(settings["tokens_per_step"] == 1.75);
  CHECK(synthetic_of("--alpha 0.5 --gamma 2 --emit trtllm")["settings"].size() == 1);
}

TEST_CASE("at the gamma that was counted the law is the counted shares, and elsewhere its mean is the plan's") {
  const std::string file = " --counters " + source_dir() + "/traces/samples/serving/vllm_requests.jsonl";
  const Run counted = run_specdec("counters " + file.substr(12) + " --format json");
  REQUIRE(counted.exit_code == 0);
  const ordered_json group = ordered_json::parse(counted.out)["groups"][0];
  const ordered_json answer = synthetic_of("--gamma 4" + file);
  REQUIRE(answer["law"].size() == 4);
  for (std::size_t j = 0; j < 4; ++j) {
    CHECK(answer["law"][j]["unconditional"].get<double>() ==
          Approx(group["positions"][j]["unconditional"]["value"].get<double>()).epsilon(1e-12));
  }
  const ordered_json shorter = synthetic_of("--gamma 2" + file);
  double sum = 1;
  for (const ordered_json& row : shorter["law"]) sum += row["unconditional"].get<double>();
  CHECK(sum == Approx(shorter["tokens_per_step"]["value"].get<double>()));
}

TEST_CASE(
    "a llama.cpp server that was given the settings accepted by the law, within the intervals of what it counted") {
  const std::string serving = source_dir() + "/traces/samples/serving/";
  const ordered_json law = synthetic_of("--emit llamacpp --gamma 4 --counters " + serving + "vllm_requests.jsonl");
  const auto group_of = [](const std::string& files) {
    const Run run = run_specdec("counters " + files + " --format json");
    REQUIRE(run.exit_code == 0);
    return ordered_json::parse(run.out)["groups"][0];
  };
  const ordered_json group =
      group_of(serving + "llamacpp_synthetic_before.prom " + serving + "llamacpp_synthetic_after.prom");
  const auto holds = [](const ordered_json& estimate, double value) {
    return estimate["ci95"][0].get<double>() <= value && value <= estimate["ci95"][1].get<double>();
  };
  CHECK(group["rounds"] == 6630);
  CHECK(holds(group["tokens_per_step"], law["tokens_per_step"]["value"].get<double>()));
  // A law of one rate with the same mean is another one, and the intervals tell.
  const ordered_json level = synthetic_of("--emit llamacpp --gamma 4 --acceptance-length 2.897 --at 4");
  std::size_t held = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    INFO(j);
    CHECK(holds(group["positions"][j]["unconditional"], law["law"][j]["unconditional"].get<double>()));
    held += holds(group["positions"][j]["unconditional"], level["law"][j]["unconditional"].get<double>()) ? 1 : 0;
  }
  CHECK(held < 4);
}

TEST_CASE("synthetic needs the drafted tokens of the benchmark") {
  check_run_refused("synthetic --alpha 0.8", "--gamma is missing: the drafted tokens per step of the benchmark");
}
