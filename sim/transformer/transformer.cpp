#include "sim/transformer/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "sim/transformer/kernels.hpp"

namespace specdec::sim {
namespace {

/// Turning a logit into a probability takes about the time of this many multiply-adds.
constexpr std::size_t work_per_probability = 16;

/// Moves the first known.size() entries of a row to the places of these tokens, which increase; the others get `none`.
template <class Value>
void spread(std::span<const Token> known, Value none, std::span<Value> row) {
  if (known.empty()) return;
  auto end = row.end();
  for (std::size_t i = known.size(); i-- > 0;) {
    const auto place = row.begin() + known[i];
    const Value value = row[i];
    std::fill(place, end, none);
    *place = value;
    end = place;
  }
  std::fill(row.begin(), end, none);
}

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

std::int64_t checked_layers(const TransformerConfig& config, const TransformerOptions& options) {
  core::require_in("Transformer", "options.layers", options.layers, 0, config.layers);
  return options.layers == 0 ? config.layers : options.layers;
}

}  // namespace

Transformer::Transformer(std::shared_ptr<const TransformerWeights> weights, const TransformerOptions& options)
    : layers_(checked_layers(weights->config, options)),
      exit_(exit_behind(layers_, weights->config, options.exits)),
      keeps_features_(options.keep_features),
      pass_(std::move(weights), options.threads, layers_) {}

double Transformer::operations_per_token() const {
  double sum = operations_of(pass_.weights().head) + (exit_ ? operations_of(exit_->projection) : 0);
  for (const TransformerBlock& block : std::span(pass_.weights().blocks).first(size(layers_)))
    sum += operations_of(block);
  return sum;
}

template <class Emit>
void Transformer::append(const Inputs& block, std::size_t rows, const Emit& emit) {
  require_tokens("Transformer::score", block.tokens, vocab_size());
  require_room("Transformer::score", length_, block.count, max_length());
  const std::int64_t before = length_;
  const std::size_t end = size(before) + block.count;
  pass_.reserve(end);
  if (keeps_features_) features_.resize(std::max(features_.size(), end * size(config().width)));
  const std::size_t silent = block.count - rows;
  for (std::size_t first = 0; first < block.count; first += TransformerPass::most_tokens) {
    const std::size_t tokens = std::min(TransformerPass::most_tokens, block.count - first);
    embed(block, first, tokens, size(before) + first);
    for (std::size_t layer = 0; layer < size(layers_); ++layer) pass_.run_block(layer, tokens, size(before) + first);
    if (exit_) pass_.take_exit(*exit_, tokens);
    const std::size_t skipped = std::min(tokens, silent - std::min(silent, first));
    const std::size_t unused = keeps_features_ ? 0 : skipped;
    pass_.normalise(pass_.weights().final_norm, unused, tokens - unused);
    if (keeps_features_) keep_features(tokens, size(before) + first);
    for (std::size_t t = skipped; t < tokens; t += TransformerPass::most_rows) {
      const std::size_t count = std::min(TransformerPass::most_rows, tokens - t);
      pass_.write_logits(t, count);
      const std::size_t row = first + t - silent;
      std::atomic<bool> finite{true};
      pass_.share(count, size(config().known_tokens) * work_per_probability * count, [&](std::int64_t i, int) {
        const std::span<float> logits = pass_.logits(size(i));
        if (!all_finite(logits)) {
          finite = false;
        } else {
          emit(row + size(i), logits);
        }
      });
      if (!finite) throw std::domain_error("Transformer::score: a logit overflows, but must be finite");
    }
  }
  length_ = before + static_cast<std::int64_t>(block.count);
}

void Transformer::embed(const Inputs& block, std::size_t first, std::size_t count, std::size_t position) {
  const std::size_t width = size(config().width);
  if (block.tokens.empty()) {
    pass_.embed_vectors(block.vectors.subspan(first * width, count * width), position);
  } else {
    pass_.embed(block.tokens.subspan(first, count), position);
  }
}

void Transformer::keep_features(std::size_t tokens, std::size_t position) {
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::span<const float> state = pass_.normed(t);
    std::copy(state.begin(), state.end(),
              features_.begin() + static_cast<std::ptrdiff_t>((position + t) * state.size()));
  }
}

void Transformer::append_and_write(std::string_view function, const Inputs& block, std::span<double> rows) {
  const std::size_t width = size(vocab_size());
  append(block, row_count(function, vocab_size(), block.count, rows.size()),
         [&](std::size_t i, std::span<float> logits) {
           softmax(logits, rows.subspan(i * width, logits.size()));
           spread(pass_.weights().known_tokens, 0.0, rows.subspan(i * width, width));
         });
}

void Transformer::score(std::span<const Token> block, std::span<double> rows) {
  append_and_write("Transformer::score", {block.size(), block, {}}, rows);
}

void Transformer::score_vectors(std::span<const float> vectors, std::span<double> rows) {
  const std::size_t entries = size(config().width);
  if (vectors.size() % entries != 0) {
    throw std::invalid_argument(
        fmt::format("Transformer::score_vectors: vectors has {} entries, but must be n vectors of {}, the width",
                    vectors.size(), entries));
  }
  append_and_write("Transformer::score_vectors", {vectors.size() / entries, {}, vectors}, rows);
}

void Transformer::score_logits(std::span<const Token> block, std::span<float> logits) {
  const std::size_t width = size(vocab_size());
  append({block.size(), block, {}}, row_count("Transformer::score", vocab_size(), block.size(), logits.size()),
         [&](std::size_t i, std::span<const float> row) {
           std::copy(row.begin(), row.end(), logits.begin() + static_cast<std::ptrdiff_t>(i * width));
           spread(pass_.weights().known_tokens, -std::numeric_limits<float>::infinity(),
                  logits.subspan(i * width, width));
         });
}

std::span<const float> Transformer::features(std::int64_t position) const {
  if (!keeps_features_)
    throw std::invalid_argument("Transformer::features: options.keep_features is false, but must be true");
  core::require_in("Transformer::features", "position", position, 0, length_ - 1);
  return std::span(features_).subspan(size(position * config().width), size(config().width));
}

void Transformer::roll_back(std::int64_t length) {
  core::require_in("Transformer::roll_back", "length", length, 0, length_);
  length_ = length;
}

}  // namespace specdec::sim
