#include "analysis/theory/tokens.hpp"

#include "analysis/core/checks.hpp"
#include "analysis/theory/extended.hpp"

namespace specdec::theory {

double expected_tokens(const core::AcceptanceProfile& acceptance, std::int64_t gamma) {
  core::require_in("expected_tokens", "gamma", gamma, 0, core::largest_integer);
  return static_cast<double>(extended::expected_tokens(acceptance, gamma));
}

double expected_tokens_limit(const core::AcceptanceProfile& acceptance) {
  return static_cast<double>(extended::expected_tokens_limit(acceptance));
}

double tokens_probability(const core::AcceptanceProfile& acceptance, std::int64_t gamma, std::int64_t tokens) {
  core::require_in("tokens_probability", "gamma", gamma, 0, core::largest_integer);
  const std::int64_t most = gamma < core::largest_integer ? gamma + 1 : core::largest_integer;
  core::require_in("tokens_probability", "tokens", tokens, 1, most);
  return tokens - 1 == gamma ? acceptance.survival(gamma) : acceptance.first_rejection(tokens);
}

double tokens_variance(const core::AcceptanceRate& rate, std::int64_t gamma) {
  core::require_in("tokens_variance", "gamma", gamma, 0, core::largest_integer);
  return static_cast<double>(extended::variance(rate, static_cast<long double>(gamma)));
}

double expected_tokens_derivative(const core::AcceptanceRate& rate, std::int64_t gamma) {
  core::require_in("expected_tokens_derivative", "gamma", gamma, 0, core::largest_integer);
  return static_cast<double>(extended::power_sum_derivative(rate, static_cast<long double>(gamma)));
}

}  // namespace specdec::theory
