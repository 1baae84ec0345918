#include "analysis/core/standardisation.hpp"

#include <algorithm>
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

void keep_top_p(std::span<double> row, double top_p) {
  std::vector<std::size_t> tokens = all_tokens(row.size());
  std::erase_if(tokens, [row](std::size_t x) { return row[x] == 0; });
  std::sort(tokens.begin(), tokens.end(), MoreProbable{row});
  double total = 0;
  for (const std::size_t x : tokens) total += row[x];
  double sum = 0;
  std::size_t kept = 0;
  while (kept < tokens.size() && (kept == 0 || sum < top_p * total)) sum += row[tokens[kept++]];
  zero_from(row, tokens, kept);
}

}  // namespace

void require_valid(const Standardisation& standardisation) {
  require_in("standardise", "temperature", standardisation.temperature, 0, std::numeric_limits<double>::max());
  require_in("standardise", "top_k", standardisation.top_k, 0, std::numeric_limits<std::int64_t>::max());
  require_in("standardise", "top_p", standardisation.top_p, std::numeric_limits<double>::min(), 1);
}

void standardise(std::span<double> probabilities, const Standardisation& standardisation) {
  require_valid(standardisation);
  if (standardisation == Standardisation{} || probabilities.empty()) return;
  if (standardisation.temperature == 0) return keep_only_argmax(probabilities);
  if (standardisation.temperature != 1) apply_temperature(probabilities, standardisation.temperature);
  if (standardisation.top_k > 0) keep_top_k(probabilities, static_cast<std::size_t>(standardisation.top_k));
  if (standardisation.top_p < 1) keep_top_p(probabilities, standardisation.top_p);
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& p : probabilities) p /= total;
}

std::int64_t argmax(std::span<const double> probabilities) {
  return std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
}

}  // namespace specdec::core
