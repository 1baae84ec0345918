#include "analysis/planning/synthetic_acceptance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::planning {
namespace {

/// With six decimals: the law differs by less than any benchmark tells.
double as_written(double value) {
  constexpr double units = 1e6;
  return std::round(value * units) / units;
}

/// The engine accepts floor(accepted) drafts, and one more with the probability that is left.
std::vector<double> survival_of_mean(double accepted, std::size_t gamma) {
  std::vector<double> survival;
  for (std::size_t j = 0; j < gamma; ++j) {
    survival.push_back(std::clamp(accepted - static_cast<double>(j), 0.0, 1.0));
  }
  return survival;
}

void require_survival(std::span<const double> survival) {
  if (survival.empty()) throw std::invalid_argument("synthetic_settings: survival is empty, but must have a position");
  double before = 1;
  for (const double one : survival) {
    core::require_in("synthetic_settings", "survival", one, 0.0, before);
    before = one;
  }
}

std::string rates_text(std::span<const double> rates) {
  std::vector<std::string> texts;
  for (const double rate : rates) texts.push_back(fmt::format("{}", rate));
  return fmt::format("{}", fmt::join(texts, ","));
}

void take_vllm(std::size_t gamma, SyntheticSettings& settings) {
  settings.text = fmt::format(
      "\"num_speculative_tokens\": {},\n\"rejection_sample_method\": \"synthetic\",\n\"synthetic_acceptance_rates\": "
      "[{}]\n",
      gamma, rates_text(settings.survival));
  settings.notes.emplace_back(
      "the keys go into --speculative-config beside method and model; synthetic_acceptance_length instead would "
      "accept by the mean alone");
}

void take_llamacpp(std::size_t gamma, SyntheticSettings& settings) {
  settings.text =
      fmt::format("--spec-draft-n-max {}\n--spec-draft-n-min 0\n--spec-draft-p-min 0\n--spec-synth-rates {}\n", gamma,
                  rates_text(settings.survival));
  settings.notes.emplace_back(
      "one rate for each of --spec-draft-n-max drafts; a draft that ends the text is rejected, so that answers of "
      "random prompts should ignore it (--ignore-eos)");
}

void take_sglang(double accepted, SyntheticSettings& settings) {
  settings.text = fmt::format(
      "SGLANG_SIMULATE_ACC_LEN={}\nSGLANG_SIMULATE_ACC_METHOD=match-expected\n"
      "SGLANG_SIMULATE_ACC_TOKEN_MODE=real-draft-token\n",
      1 + accepted);
  settings.notes.emplace_back(
      "one number is drawn for all requests of a round, which accept alike: what finishes together, and the spread "
      "between requests, is not that of the law");
  settings.notes.emplace_back("the drafts' own tokens are kept with --speculative-eagle-topk 1 alone");
}

void take_trtllm(double accepted, SyntheticSettings& settings) {
  settings.notes.emplace_back(
      "n-gram drafts, and those of a draft model in an engine of its own, take whole numbers alone: any other means 0");
  if (accepted == 0) {
    settings.notes.emplace_back("0 switches it off: that nothing is accepted cannot be asked for");
    return;
  }
  settings.text = fmt::format("TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS={}\n", accepted);
}

}  // namespace

std::string_view name_of(SyntheticForm form) { return form == SyntheticForm::law ? "law" : "length"; }

double tokens_per_step(std::span<const double> survival) {
  double tokens = 1;
  for (const double one : survival) tokens += one;
  return tokens;
}

double accepted_deviation(std::span<const double> survival) {
  double mean = 0, square = 0;
  for (std::size_t j = 0; j < survival.size(); ++j) {
    mean += survival[j];
    square += (2 * static_cast<double>(j) + 1) * survival[j];
  }
  return std::sqrt(std::max(0.0, square - mean * mean));
}

double accepted_total_variation(std::span<const double> p, std::span<const double> q) {
  core::require_same_size("accepted_total_variation", "p", p.size(), "q", q.size());
  const auto share = [](std::span<const double> survival, std::size_t n) {
    const double alive = n == 0 ? 1 : survival[n - 1];
    return alive - (n < survival.size() ? survival[n] : 0);
  };
  double sum = 0;
  for (std::size_t n = 0; n <= p.size(); ++n) sum += std::abs(share(p, n) - share(q, n));
  return sum / 2;
}

SyntheticSettings synthetic_settings(Engine engine, std::span<const double> survival) {
  require_survival(survival);
  SyntheticSettings settings;
  settings.engine = engine;
  settings.form = engine == Engine::vllm || engine == Engine::llamacpp ? SyntheticForm::law : SyntheticForm::length;
  const double accepted = as_written(tokens_per_step(survival) - 1);
  if (settings.form == SyntheticForm::law) {
    for (const double one : survival) settings.survival.push_back(as_written(one));
  } else {
    settings.survival = survival_of_mean(accepted, survival.size());
  }
  settings.total_variation = accepted_total_variation(survival, settings.survival);
  switch (engine) {
    case Engine::vllm:
      take_vllm(survival.size(), settings);
      break;
    case Engine::sglang:
      take_sglang(accepted, settings);
      break;
    case Engine::trtllm:
      take_trtllm(accepted, settings);
      break;
    case Engine::llamacpp:
      take_llamacpp(survival.size(), settings);
      break;
  }
  return settings;
}

}  // namespace specdec::planning
