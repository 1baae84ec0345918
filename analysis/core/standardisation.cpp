#include "analysis/core/standardisation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::core {
namespace {

void keep_only_argmax(std::span<double> row) {
  const auto best = static_cast<std::size_t>(argmax(row));
  std::fill(row.begin(), row.end(), 0.0);
  row[best] = 1;
}

void apply_temperature(std::span<double> row, double temperature) {
  const double log_max = std::log(*std::max_element(row.begin(), row.end()));
  for (double& p : row) p = std::exp((std::log(p) - log_max) / temperature);
}

/// Orders tokens from the most to the least probable, ties by index.
struct MoreProbable {
  std::span<const double> row;
  bool operator()(std::size_t a, std::size_t b) const { return row[a] != row[b] ? row[a] > row[b] : a < b; }
};

std::vector<std::size_t> all_tokens(std::size_t vocab) {
  std::vector<std::size_t> tokens(vocab);
  std::iota(tokens.begin(), tokens.end(), std::size_t{0});
  return tokens;
}

void zero_from(std::span<double> row, const std::vector<std::size_t>& tokens, std::size_t first) {
  for (std::size_t i = first; i < tokens.size(); ++i) row[tokens[i]] = 0;
}

void keep_top_k(std::span<double> row, std::size_t k) {
  if (k >= row.size()) return;
  std::vector<std::size_t> tokens = all_tokens(row.size());
  std::nth_element(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(k), tokens.end(), MoreProbable{row});
  zero_from(row, tokens, k);
}

/// The binary exponent of a number >= 0, as stored.
std::size_t exponent_of(double p) { return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(std::abs(p)) >> 52U); }

// Few tokens of a large vocabulary are kept; only those with the binary exponents that hold enough mass are sorted.
void keep_top_p(std::span<double> row, double top_p) {
  std::array<double, 2048> mass_by_exponent{};
  for (const double p : row) mass_by_exponent[exponent_of(p)] += p;
  const double total = std::accumulate(mass_by_exponent.begin(), mass_by_exponent.end(), 0.0);
  std::size_t lowest = mass_by_exponent.size();
  constexpr double rounding = 1e-9;
  for (double above = 0; lowest > 0 && above <= top_p * total * (1 + rounding);) above += mass_by_exponent[--lowest];
  std::vector<std::size_t> tokens;
  for (std::size_t x = 0; x < row.size(); ++x) {
    if (row[x] == 0) continue;
    if (exponent_of(row[x]) < lowest)
      row[x] = 0;
    else
      tokens.push_back(x);
  }
  std::sort(tokens.begin(), tokens.end(), MoreProbable{row});
  double sum = 0;
  std::size_t kept = 0;
  while (kept < tokens.size() && (kept == 0 || sum < top_p * total)) sum += row[tokens[kept++]];
  zero_from(row, tokens, kept);
}

void keep_min_p(std::span<double> row, double min_p) {
  const double least = min_p * *std::max_element(row.begin(), row.end());
  for (double& p : row)
    if (p < least) p = 0;
}

}  // namespace

void require_valid(const Standardisation& standardisation) {
  require_in("standardise", "temperature", standardisation.temperature, 0, std::numeric_limits<double>::max());
  require_in("standardise", "top_k", standardisation.top_k, 0, std::numeric_limits<std::int64_t>::max());
  require_in("standardise", "top_p", standardisation.top_p, std::numeric_limits<double>::min(), 1);
  require_in("standardise", "min_p", standardisation.min_p, 0, 1);
}

void standardise(std::span<double> probabilities, const Standardisation& standardisation) {
  require_valid(standardisation);
  if (standardisation.changes_nothing() || probabilities.empty()) return;
  if (standardisation.temperature == 0) return keep_only_argmax(probabilities);
  const bool heats = standardisation.temperature != 1;
  if (heats && !standardisation.temperature_last) apply_temperature(probabilities, standardisation.temperature);
  if (standardisation.top_k > 0) keep_top_k(probabilities, static_cast<std::size_t>(standardisation.top_k));
  if (standardisation.top_p < 1) keep_top_p(probabilities, standardisation.top_p);
  if (standardisation.min_p > 0) keep_min_p(probabilities, standardisation.min_p);
  if (heats && standardisation.temperature_last) apply_temperature(probabilities, standardisation.temperature);
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& p : probabilities) p /= total;
}

// First the largest value, then its place: lanes without a branch let the compiler keep them in vectors.
std::int64_t argmax(std::span<const double> probabilities) {
  std::array<double, 8> largest{};
  std::size_t i = 0;
  for (; i + largest.size() <= probabilities.size(); i += largest.size())
    for (std::size_t lane = 0; lane < largest.size(); ++lane)
      largest[lane] = largest[lane] < probabilities[i + lane] ? probabilities[i + lane] : largest[lane];
  for (; i < probabilities.size(); ++i) largest[0] = std::max(largest[0], probabilities[i]);
  const auto found = std::ranges::find(probabilities, std::ranges::max(largest));
  return found == probabilities.end() ? 0 : found - probabilities.begin();
}

}  // namespace specdec::core
