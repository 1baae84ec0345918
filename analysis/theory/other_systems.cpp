#include "analysis/theory/other_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::theory {
namespace {

constexpr double law_tolerance = 1e-9;

}  // namespace

SpeculativeBeams speculative_beams(const core::AcceptanceRate& kept, std::int64_t width, std::int64_t drafted_width,
                                   std::int64_t gamma, double c) {
  core::require_in("speculative_beams", "width", width, 1, core::largest_integer);
  core::require_in("speculative_beams", "drafted_width", drafted_width, width, core::largest_integer);
  core::require_in("speculative_beams", "c", c, 0, core::largest_double);
  const double tokens = expected_tokens(kept, gamma);
  const double evaluations =
      static_cast<double>(width) + static_cast<double>(drafted_width) * static_cast<double>(gamma);
  return {tokens, evaluations, tokens / (1 + c * static_cast<double>(gamma)),
          evaluations / (static_cast<double>(width) * tokens)};
}

BlockwiseDecoding blockwise_decoding(std::span<const double> head_accuracy, std::int64_t tokens) {
  core::require_in("blockwise_decoding", "tokens", tokens, 1, core::largest_integer);
  core::CompensatedSum block;
  block.add(1);
  double right = 1;
  for (std::size_t head = 0; head < head_accuracy.size(); ++head) {
    core::require_in("blockwise_decoding", fmt::format("accuracy of head {}", head + 2), head_accuracy[head], 0, 1);
    block.add(right *= head_accuracy[head]);
  }
  const double blocks = static_cast<double>(tokens) / block.value();
  return {block.value(), 2 * blocks, blocks + 1, block.value() / 2, static_cast<double>(tokens) / (blocks + 1)};
}

EarlyExit early_exit(std::span<const double> exit_probability, double check) {
  core::require_in("early_exit", "check", check, 0, core::largest_double);
  core::CompensatedSum layers;
  core::CompensatedSum total;
  for (std::size_t i = 0; i < exit_probability.size(); ++i) {
    core::require_in("early_exit", fmt::format("exit probability of layer {}", i + 1), exit_probability[i], 0, 1);
    layers.add(static_cast<double>(i + 1) * exit_probability[i]);
    total.add(exit_probability[i]);
  }
  core::require_in("early_exit", "sum of exit probabilities", total.value(), 1 - law_tolerance, 1 + law_tolerance);
  const double expected = layers.value() / total.value();
  return {expected, static_cast<double>(exit_probability.size()) / (expected * (1 + check))};
}

double input_copy_speedup(std::int64_t tokens, std::int64_t edits, double runs_per_edit) {
  core::require_in("input_copy_speedup", "tokens", tokens, 1, core::largest_integer);
  core::require_in("input_copy_speedup", "edits", edits, 0, core::largest_integer);
  core::require_in("input_copy_speedup", "runs_per_edit", runs_per_edit, 0, core::largest_double);
  const double runs = 1 + static_cast<double>(edits) * (1 + runs_per_edit);
  core::require_in("input_copy_speedup", "runs", runs, 1, static_cast<double>(tokens));
  return static_cast<double>(tokens) / runs;
}

double chained_speedup(const core::AcceptanceRate& beta, const ChainedTimes& times) {
  core::require_in("chained_speedup", "time of f", times.f, 0, core::largest_double);
  core::require_in("chained_speedup", "time of f_star", times.f_star, 0, core::largest_double);
  core::require_in("chained_speedup", "time of g", times.g, 0, core::largest_double);
  const double serial = times.f + times.g;
  core::require_in("chained_speedup", "time of f and g", serial, core::least_positive, core::largest_double);
  const double accepted = std::min(std::max(times.f, times.f_star + times.g), serial);
  return serial / (beta.alpha() * accepted + beta.rejection() * serial);
}

}  // namespace specdec::theory
