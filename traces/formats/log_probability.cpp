#include "traces/formats/log_probability.hpp"

#include <cmath>
#include <limits>

namespace specdec::traces {
namespace {

constexpr double floor = -9999;
constexpr double rounding = 1e-4;

}  // namespace

std::optional<float> log_probability_of(double value) {
  if (value <= floor) return -std::numeric_limits<float>::infinity();
  if (value <= 0) return static_cast<float>(value);
  if (value <= rounding) return 0.0F;
  return std::nullopt;
}

std::optional<float> log_of_probability(double value) {
  if (!(0 <= value && value <= 1 + rounding)) return std::nullopt;
  return static_cast<float>(std::log(value < 1 ? value : 1));
}

std::optional<float> logprob_of(double value, RowSpace space) {
  return space == RowSpace::probabilities ? log_of_probability(value) : log_probability_of(value);
}

std::string_view expected_in(RowSpace space) {
  return space == RowSpace::probabilities ? "a probability" : "a log-probability, at most 0";
}

}  // namespace specdec::traces
