#include "sim/table_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string_view>

#include "analysis/core/checks.hpp"
#include "sim/random.hpp"

namespace specdec::sim {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

void require_distribution(std::string_view function, std::span<const double> row) {
  double sum = 0;
  for (const double p : row) {
    core::require_in(function, "probability", p, 0, infinity);
    sum += p;
  }
  constexpr double tolerance = 1e-9;
  core::require_in(function, "sum of a row", sum, 1 - tolerance, 1 + tolerance);
}

}  // namespace

TokenPrefix::TokenPrefix(std::int64_t vocab_size, std::int64_t max_length)
    : vocab_size_(vocab_size), max_length_(max_length) {
  core::require_in("TokenPrefix", "vocab_size", vocab_size, 1, std::numeric_limits<Token>::max());
  core::require_in("TokenPrefix", "max_length", max_length, 1, unlimited_length);
}

std::size_t TokenPrefix::append(std::span<const Token> block, std::size_t entries) {
  const std::size_t count = entries / index(vocab_size_);
  core::require_same_size("score", "rows", entries, "a whole number of rows", count * index(vocab_size_));
  if (count > block.size())
    throw std::invalid_argument(fmt::format("score: rows is {} rows, but must be in [0, {}]", count, block.size()));
  core::require_in("score", "block length", static_cast<std::int64_t>(block.size()), 0, max_length_ - length());
  for (const Token token : block) core::require_in("score", "token", std::int64_t{token}, 0, vocab_size_ - 1);
  tokens_.insert(tokens_.end(), block.begin(), block.end());
  return count;
}

void TokenPrefix::roll_back(std::int64_t length) {
  core::require_in("roll_back", "length", length, 0, this->length());
  tokens_.resize(index(length));
}

std::int64_t ContextTableModel::context_count(std::int64_t vocab_size, std::int64_t order) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  core::require_in("ContextTableModel", "vocab_size", vocab_size, 1, most);
  core::require_in("ContextTableModel", "order", order, 0, most);
  if (order == 0) return 1;
  std::int64_t count = 0;
  std::int64_t of_length = 1;
  for (std::int64_t length = 1; length <= order; ++length) {
    of_length *= vocab_size;
    count += of_length;
    core::require_in("ContextTableModel", "number of contexts", count, 1, most);
  }
  return count;
}

std::int64_t ContextTableModel::context_index(std::int64_t vocab_size, std::span<const Token> context) {
  std::int64_t shorter = 0;
  std::int64_t of_length = 1;
  std::int64_t lexical = 0;
  for (std::size_t i = 0; i < context.size(); ++i) {
    if (i > 0) shorter += of_length;
    of_length *= vocab_size;
    lexical = lexical * vocab_size + context[i];
  }
  return shorter + lexical;
}

ContextTableModel::ContextTableModel(std::int64_t vocab_size, std::int64_t order, std::vector<double> rows,
                                     std::int64_t max_length)
    : TokenPrefix(vocab_size, max_length),
      order_(order),
      rows_(std::make_shared<const std::vector<double>>(std::move(rows))) {
  const std::size_t vocab = index(vocab_size);
  const std::size_t contexts = index(context_count(vocab_size, order));
  core::require_same_size("ContextTableModel", "rows", rows_->size(), "one row per context", contexts * vocab);
  for (std::size_t i = 0; i < contexts; ++i)
    require_distribution("ContextTableModel", std::span(*rows_).subspan(i * vocab, vocab));
}

std::span<const double> ContextTableModel::row(std::span<const Token> prefix) const {
  const std::span<const Token> context = prefix.last(std::min(prefix.size(), index(order_)));
  const std::size_t vocab = index(vocab_size());
  return std::span(*rows_).subspan(index(context_index(vocab_size(), context)) * vocab, vocab);
}

void ContextTableModel::score(std::span<const Token> block, std::span<double> rows) {
  score_by(block, rows, [this](std::span<const Token> prefix, std::span<double> out) {
    const std::span<const double> stored = row(prefix);
    std::copy_n(stored.data(), stored.size(), out.data());
  });
}

ContextTableModel uniform_model(std::int64_t vocab_size) {
  core::require_in("uniform_model", "vocab_size", vocab_size, 1, std::numeric_limits<Token>::max());
  return unigram_model(std::vector<double>(index(vocab_size), 1.0 / static_cast<double>(vocab_size)));
}

ContextTableModel unigram_model(std::vector<double> probabilities) {
  const auto vocab_size = static_cast<std::int64_t>(probabilities.size());
  return ContextTableModel(vocab_size, 0, std::move(probabilities));
}

TablePair fixed_pair(std::vector<double> target, std::vector<double> draft) {
  core::require_same_size("fixed_pair", "target", target.size(), "draft", draft.size());
  return {unigram_model(std::move(target)), unigram_model(std::move(draft))};
}

namespace {

double standard_normal(const RandomStream& stream, std::int64_t row, std::int64_t column) {
  const double radius = std::sqrt(-2 * std::log(1 - stream.uniform(row, 2 * column, Purpose::synthetic)));
  return radius * std::cos(2 * std::numbers::pi * stream.uniform(row, 2 * column + 1, Purpose::synthetic));
}

void softmax(std::span<double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  for (double& x : logits) x = std::exp(x - largest);
  const double sum = std::accumulate(logits.begin(), logits.end(), 0.0);
  for (double& x : logits) x /= sum;
}

/// Row c of a random pair.
void write_random_rows(std::uint64_t seed, std::int64_t c, double noise, std::span<double> p, std::span<double> q) {
  const RandomStream target_stream(seed, 0);
  const RandomStream draft_stream(seed, 1);
  for (std::size_t x = 0; x < p.size(); ++x) {
    const auto token = static_cast<std::int64_t>(x);
    p[x] = standard_normal(target_stream, c, token) - std::log1p(static_cast<double>(x));
    q[x] = p[x] + noise * standard_normal(draft_stream, c, token);
  }
  softmax(p);
  softmax(q);
}

}  // namespace

std::pair<std::vector<double>, std::vector<double>> synthetic_row_pair(std::int64_t vocab_size, double noise,
                                                                       std::uint64_t seed) {
  core::require_in("synthetic_row_pair", "vocab_size", vocab_size, 1, std::int64_t{1} << 24);
  core::require_in("synthetic_row_pair", "noise", noise, 0, 100);
  std::pair<std::vector<double>, std::vector<double>> rows(index(vocab_size), index(vocab_size));
  write_random_rows(seed, 0, noise, rows.first, rows.second);
  return rows;
}

TablePair synthetic_bigram_pair(std::int64_t vocab_size, double noise, std::uint64_t seed) {
  core::require_in("synthetic_bigram_pair", "vocab_size", vocab_size, 1, 4096);
  core::require_in("synthetic_bigram_pair", "noise", noise, 0, 100);
  const std::size_t vocab = index(vocab_size);
  std::vector<double> target(vocab * vocab);
  std::vector<double> draft(vocab * vocab);
  for (std::int64_t c = 0; c < vocab_size; ++c)
    write_random_rows(seed, c, noise, std::span(target).subspan(index(c) * vocab, vocab),
                      std::span(draft).subspan(index(c) * vocab, vocab));
  return {ContextTableModel(vocab_size, 1, std::move(target)), ContextTableModel(vocab_size, 1, std::move(draft))};
}

}  // namespace specdec::sim
