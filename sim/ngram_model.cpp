#include "sim/ngram_model.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

using Gram = std::span<const Token>;

bool precedes(Gram a, Gram b) { return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()); }

/// The tokens that followed each context of `length` tokens. Contexts and the tokens of a row are ascending.
struct FollowerCounts {
  std::size_t length = 0;
  std::vector<Token> contexts;          // (contexts, length)
  std::vector<std::size_t> row_starts;  // (contexts + 1)
  std::vector<Token> tokens;
  std::vector<double> counts;

  FollowerCounts(std::span<const std::vector<Token>> texts, std::size_t context_length) : length(context_length) {
    std::vector<Gram> grams;
    for (const std::vector<Token>& text : texts)
      for (std::size_t i = 0; i + length < text.size(); ++i) grams.push_back(Gram(text).subspan(i, length + 1));
    std::ranges::sort(grams, precedes);
    for (std::size_t i = 0; i < grams.size(); ++i) add(grams[i], i > 0 ? grams[i - 1] : Gram());
    row_starts.push_back(tokens.size());
  }

  /// The contexts of one token that anything followed.
  explicit FollowerCounts(const BigramCounts& bigram) : length(1), tokens(bigram.tokens), counts(bigram.counts) {
    for (std::size_t context = 0; context + 1 < bigram.row_starts.size(); ++context) {
      if (bigram.row_starts[context] == bigram.row_starts[context + 1]) continue;
      contexts.push_back(static_cast<Token>(context));
      row_starts.push_back(static_cast<std::size_t>(bigram.row_starts[context]));
    }
    row_starts.push_back(tokens.size());
  }

  void add(Gram gram, Gram before) {
    const bool same_context = !before.empty() && std::ranges::equal(gram.first(length), before.first(length));
    if (!same_context) {
      row_starts.push_back(tokens.size());
      contexts.insert(contexts.end(), gram.begin(), gram.end() - 1);
    }
    if (!same_context || gram.back() != before.back()) {
      tokens.push_back(gram.back());
      counts.push_back(0);
    }
    counts.back() += 1;
  }

  std::size_t rows() const { return row_starts.size() - 1; }
  Gram context(std::size_t row) const { return Gram(contexts).subspan(row * length, length); }

  /// The row of a context, or rows().
  std::size_t find(Gram wanted) const {
    std::size_t lo = 0;
    std::size_t hi = rows();
    while (lo < hi) {
      const std::size_t middle = lo + (hi - lo) / 2;
      precedes(context(middle), wanted) ? lo = middle + 1 : hi = middle;
    }
    return lo < rows() && std::ranges::equal(context(lo), wanted) ? lo : rows();
  }
};

}  // namespace

struct NgramModel::Levels {
  double discount;
  /// What the lowest level backs off to.
  std::vector<double> base;
  std::vector<FollowerCounts> by_length;

  void write(Gram prefix, std::span<double> row) const {
    std::ranges::copy(base, row.begin());
    for (const FollowerCounts& level : by_length) {
      if (level.length > prefix.size()) return;
      const std::size_t found = level.find(prefix.last(level.length));
      if (found == level.rows()) return;
      interpolate(level, found, row);
    }
  }

  void interpolate(const FollowerCounts& level, std::size_t found, std::span<double> row) const {
    const std::size_t first = level.row_starts[found];
    const std::size_t count = level.row_starts[found + 1] - first;
    const std::span<const double> counts = std::span(level.counts).subspan(first, count);
    const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
    // Counts are at least 1, the discount at most.
    const double shorter_share = discount * static_cast<double>(count) / total;
    for (double& p : row) p *= shorter_share;
    for (std::size_t i = 0; i < count; ++i)
      row[static_cast<std::size_t>(level.tokens[first + i])] += (counts[i] - discount) / total;
  }
};

NgramModel::NgramModel(std::int64_t vocab_size, std::span<const std::vector<Token>> texts, std::int64_t order,
                       double discount, std::int64_t max_length)
    : TokenPrefix(vocab_size, max_length) {
  core::require_in("NgramModel", "order", order, 1, 64);
  core::require_in("NgramModel", "discount", discount, 0, 1);
  for (const std::vector<Token>& text : texts)
    for (const Token token : text) core::require_in("NgramModel", "token", std::int64_t{token}, 0, vocab_size - 1);
  Levels levels{
      discount, std::vector<double>(static_cast<std::size_t>(vocab_size), 1.0 / static_cast<double>(vocab_size)), {}};
  for (std::size_t length = 0; length < static_cast<std::size_t>(order); ++length)
    levels.by_length.emplace_back(texts, length);
  levels_ = std::make_shared<const Levels>(std::move(levels));
}

NgramModel::NgramModel(const NgramTables& tables, std::int64_t max_length)
    : TokenPrefix(std::ssize(tables.unigram), max_length),
      levels_(
          std::make_shared<const Levels>(Levels{tables.discount, tables.unigram, {FollowerCounts(tables.bigram)}})) {}

void NgramModel::score(std::span<const Token> block, std::span<double> rows) {
  score_by(block, rows, [this](Gram prefix, std::span<double> row) { levels_->write(prefix, row); });
}

}  // namespace specdec::sim
