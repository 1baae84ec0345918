#include "analysis/planning/synthetic_acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/planning/mixed_curve.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::planning;
using specdec::core::AcceptanceProfile;
using specdec::core::AcceptanceRate;

namespace {

constexpr Engine engines[] = {Engine::vllm, Engine::sglang, Engine::trtllm, Engine::llamacpp};
const std::vector<double> law = {0.9, 0.6, 0.5, 0.1};
constexpr std::int64_t rounds = 200'000;

/// The value of "NAME=VALUE" or "--name VALUE" in the text.
std::string value_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name, 0) == 0) return line.substr(name.size() + 1);
  }
  FAIL("no " << name);
  return {};
}

std::vector<double> numbers_of(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) numbers.push_back(std::stod(part));
  return numbers;
}

/// The engines' use of the settings, transcribed. vLLM 0.33.0 (v1/sample/rejection_sampler.py,
/// unconditional_to_conditional_rates) and llama.cpp 0c1e57098 (common_speculative_synth_rates_resolve,
/// server_sample_and_accept_synth): draft i is accepted with rate[i] / rate[i - 1]. They refuse rates of another number
/// than drafts, outside [0, 1], or that rise.
std::int64_t accepted_by_rates(const std::vector<double>& rates, std::size_t gamma, std::mt19937_64& random) {
  REQUIRE(rates.size() == gamma);
  double before = 1;
  std::int64_t accepted = 0;
  for (const double rate : rates) {
    REQUIRE(0 <= rate);
    REQUIRE(rate <= before);
    const double conditional = before > 0 ? rate / before : 0;
    if (std::uniform_real_distribution<double>()(random) >= conditional) break;
    ++accepted;
    before = rate;
  }
  return accepted;
}

/// SGLang 0.5.23 (sample_simulated_acc_len with match-expected): tokens of a round.
std::int64_t accepted_by_length(double length, std::size_t gamma, std::mt19937_64& random) {
  const double most = static_cast<double>(gamma) + 1;
  length = std::max(1.0, std::min(most, length));
  const double lower = std::floor(length), upper = lower < most ? lower + 1 : lower;
  const bool above = upper > lower && std::uniform_real_distribution<double>()(random) < length - lower;
  return static_cast<std::int64_t>(above ? upper : lower) - 1;
}

/// TensorRT-LLM (get_force_num_accepted_tokens_float): the whole part always, one more by the fraction.
std::int64_t accepted_by_force(double forced, std::mt19937_64& random) {
  const double whole = std::floor(forced);
  return static_cast<std::int64_t>(whole) +
         static_cast<std::int64_t>(std::uniform_real_distribution<double>()(random) < forced - whole);
}

std::int64_t accepted_by(Engine engine, const std::string& text, std::size_t gamma, std::mt19937_64& random) {
  switch (engine) {
    case Engine::vllm: {
      const auto keys = nlohmann::json::parse("{" + text + "}");
      REQUIRE(keys["num_speculative_tokens"] == gamma);
      REQUIRE(keys["rejection_sample_method"] == "synthetic");
      return accepted_by_rates(keys["synthetic_acceptance_rates"], gamma, random);
    }
    case Engine::llamacpp:
      REQUIRE(value_of(text, "--spec-draft-n-max") == std::to_string(gamma));
      return accepted_by_rates(numbers_of(value_of(text, "--spec-synth-rates")), gamma, random);
    case Engine::sglang:
      REQUIRE(value_of(text, "SGLANG_SIMULATE_ACC_METHOD") == "match-expected");
      return accepted_by_length(std::stod(value_of(text, "SGLANG_SIMULATE_ACC_LEN")), gamma, random);
    case Engine::trtllm:
      break;
  }
  return accepted_by_force(std::stod(value_of(text, "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS")), random);
}

/// Rounds by accepted drafts.
std::vector<double> histogram(Engine engine, const std::string& text, std::size_t gamma, std::uint64_t seed,
                              std::int64_t of_rounds) {
  std::mt19937_64 random(seed);
  std::vector<double> counts(gamma + 1, 0.0);
  for (std::int64_t round = 0; round < of_rounds; ++round) {
    ++counts.at(static_cast<std::size_t>(accepted_by(engine, text, gamma, random)));
  }
  return counts;
}

/// The largest distance of a share from its probability, in standard errors.
double largest_deviation(const std::vector<double>& counts, const std::vector<double>& survival) {
  double sum = 0, largest = 0;
  for (const double count : counts) sum += count;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    const double p = (n == 0 ? 1 : survival[n - 1]) - (n < survival.size() ? survival[n] : 0);
    const double error = std::sqrt(std::max(p * (1 - p), 1 / sum) / sum);
    largest = std::max(largest, std::abs(counts[n] / sum - p) / error);
  }
  return largest;
}

}  // namespace

// 5 standard errors at 20 shares: a false alarm in 1 of 90,000 runs; seeds are fixed.
TEST_CASE("engines that take a law accept by it, the others by its mean, in transcriptions of their own code") {
  for (const Engine engine : engines) {
    const SyntheticSettings settings = synthetic_settings(engine, law);
    INFO(name_of(engine));
    const std::vector<double> counts = histogram(engine, settings.text, law.size(), 7, rounds / 10);
    CHECK(largest_deviation(counts, settings.survival) < 5);
    CHECK(tokens_per_step(settings.survival) == Approx(3.1));
    const bool takes_law = engine == Engine::vllm || engine == Engine::llamacpp;
    CHECK((settings.form == SyntheticForm::law) == takes_law);
    CHECK((settings.total_variation < 1e-9) == takes_law);
    // The broken twin: the length's own rates are not the law, and this number of rounds tells.
    CHECK((largest_deviation(counts, law) < 5) == takes_law);
  }
}

TEST_CASE("what a length loses against the law is its spread: the distance by hand") {
  // Mean 2.1: shares 0.9 of 2 and 0.1 of 3; the law has 0.1, 0.3, 0.1, 0.4, 0.1.
  const SyntheticSettings settings = synthetic_settings(Engine::sglang, law);
  CHECK(settings.survival[1] == 1);
  CHECK(settings.survival[2] == Approx(0.1));
  CHECK(settings.survival[3] == 0);
  CHECK(settings.total_variation == Approx((0.1 + 0.3 + 0.8 + 0.3 + 0.1) / 2));
  CHECK(accepted_deviation(settings.survival) == Approx(std::sqrt(0.1 * 0.9)));
  CHECK(accepted_deviation(law) == Approx(std::sqrt(0.3 * 1 + 0.1 * 4 + 0.4 * 9 + 0.1 * 16 - 2.1 * 2.1)));
  CHECK(synthetic_settings(Engine::vllm, law).text ==
        "\"num_speculative_tokens\": 4,\n\"rejection_sample_method\": \"synthetic\",\n"
        "\"synthetic_acceptance_rates\": [0.9,0.6,0.5,0.1]\n");
  CHECK(synthetic_settings(Engine::trtllm, law).text == "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=2.1\n");
}

TEST_CASE("nothing accepted, everything accepted and rates of many digits are written so that engines take them") {
  for (const Engine engine : engines) {
    INFO(name_of(engine));
    const std::vector<double> all = {1, 1}, none = {0, 0}, thirds = {2.0 / 3, 4.0 / 9, 8.0 / 27};
    CHECK(histogram(engine, synthetic_settings(engine, all).text, 2, 1, 50)[2] == 50);
    const SyntheticSettings nothing = synthetic_settings(engine, none);
    CHECK(nothing.text.empty() == (engine == Engine::trtllm));
    if (!nothing.text.empty()) CHECK(histogram(engine, nothing.text, 2, 1, 50)[0] == 50);
    const SyntheticSettings written = synthetic_settings(engine, thirds);
    CHECK(tokens_per_step(written.survival) == Approx(1 + 38.0 / 27).margin(2e-6));
    CHECK_NOTHROW(histogram(engine, written.text, 3, 1, 50));
  }
}

TEST_CASE("what is no survival function is refused") {
  CHECK_THROWS_AS(synthetic_settings(Engine::vllm, std::vector<double>{}), std::invalid_argument);
  CHECK_THROWS_AS(synthetic_settings(Engine::vllm, std::vector<double>{0.5, 0.6}), std::domain_error);
  CHECK_THROWS_AS(synthetic_settings(Engine::vllm, std::vector<double>{1.1}), std::domain_error);
}

TEST_CASE("a curve's law at a gamma adds up to its tokens per step, and is alpha's powers of one rate") {
  const ProfileCurve rate(AcceptanceProfile(AcceptanceRate(0.8)));
  const std::vector<double> survival = rate.survival(5);
  REQUIRE(survival.size() == 5);
  for (std::size_t j = 0; j < 5; ++j) CHECK(survival[j] == Approx(std::pow(0.8, static_cast<double>(j) + 1)));
  const auto a = std::make_shared<ProfileCurve>(AcceptanceProfile(AcceptanceRate(0.9)));
  const auto b = std::make_shared<ProfileCurve>(AcceptanceProfile(AcceptanceRate(0.3)));
  const MixedCurve mixed({{a, 0.5}, {b, 0.5}});
  // By hand at gamma 1: 1.9 and 1.3 tokens per step, so that 1.3 / 3.2 of the rounds are of the first group.
  CHECK(mixed.survival(1)[0] == Approx((0.9 * 1.3 + 0.3 * 1.9) / 3.2));
  CHECK(tokens_per_step(mixed.survival(4)) == Approx(mixed.tokens_per_step(4).value));
}

namespace {

/// Gains of 0.5, 0.7, 0.3: the second is above the first.
class Rising final : public specdec::estimate::AcceptanceCurve {
 public:
  specdec::estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override {
    const double values[] = {1, 1.5, 2.2, 2.5};
    specdec::estimate::TokensPerStep tokens;
    tokens.value = values[gamma];
    return tokens;
  }
};

}  // namespace

TEST_CASE("gains that rise are made level without a change of their sum") {
  const std::vector<double> survival = Rising().survival(3);
  CHECK(survival[0] == Approx(0.6));
  CHECK(survival[1] == Approx(0.6));
  CHECK(survival[2] == Approx(0.3));
}
