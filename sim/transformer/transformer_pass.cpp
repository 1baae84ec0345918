#include "sim/transformer/transformer_pass.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "sim/transformer/kernels.hpp"

namespace specdec::sim {
namespace {

/// Number of multiply-adds that justifies a chunk of its own.
constexpr std::size_t long_chunk = 1U << 18U;

using Row = Eigen::Map<Eigen::ArrayXf, Eigen::Aligned64>;
using ConstRow = Eigen::Map<const Eigen::ArrayXf, Eigen::Aligned64>;

void layer_norm(const Norm& norm, float epsilon, const float* from, float* to) {
  const auto n = static_cast<Eigen::Index>(norm.bias.size());
  const ConstRow x(from, n);
  const float mean = x.mean();
  const float variance = (x - mean).square().mean();
  Row(to, n) = (x - mean) * (1 / std::sqrt(variance + epsilon)) * ConstRow(norm.weight.data(), n) +
               ConstRow(norm.bias.data(), n);
}

}  // namespace

TransformerPass::TransformerPass(std::shared_ptr<const TransformerWeights> weights, int threads, std::int64_t layers)
    : weights_(std::move(weights)),
      config_(weights_->config),
      cache_(size(layers), size(config_.key_value_heads), head_size()),
      stream_(most_tokens, size(config_.width)),
      normed_(most_tokens, size(config_.width)),
      query_key_value_(most_tokens, size((config_.heads + 2 * config_.key_value_heads) * config_.head_size)),
      attended_(most_tokens, size(config_.heads * config_.head_size)),
      feed_forward_(most_tokens, weights_->blocks.front().feed_forward_input.matrix.padded_rows()),
      activated_(most_tokens, size(config_.feed_forward)),
      logits_(most_rows, size(config_.known_tokens)) {
  core::require_in("Transformer", "options.threads", std::int64_t{threads}, 1, 1024);
  if (config_.family == TransformerConfig::Family::llama) rotary_.emplace(config_);
  if (threads > 1) pool_ = std::make_unique<ThreadPool>(threads);
  scratch_.resize(static_cast<std::size_t>(threads));
}

void TransformerPass::reserve(std::size_t positions) {
  cache_.reserve(positions);
  if (rotary_) rotary_->reserve(positions);
  const std::size_t needed = attention_scratch(most_attention_tokens, positions, cache_.value_stride());
  for (AlignedFloats& scratch : scratch_) {
    if (scratch.size() < needed) scratch.resize(2 * needed);
  }
}

void TransformerPass::begin_state(std::size_t t, const float* input, std::size_t position) {
  const auto n = static_cast<Eigen::Index>(config_.width);
  using Input = Eigen::Map<const Eigen::ArrayXf>;
  Row row(stream_.row(t), n);
  row = Input(input, n);
  if (!weights_->position_embedding.empty())
    row += Input(weights_->position_embedding.data() + position * size(config_.width), n);
}

void TransformerPass::embed(std::span<const Token> tokens, std::size_t position) {
  for (std::size_t t = 0; t < tokens.size(); ++t)
    begin_state(t, weights_->token_embedding.data() + tokens[t] * config_.width, position + t);
}

void TransformerPass::embed_vectors(std::span<const float> vectors, std::size_t position) {
  const std::size_t width = size(config_.width);
  for (std::size_t t = 0; t * width < vectors.size(); ++t) begin_state(t, vectors.data() + t * width, position + t);
}

void TransformerPass::run_block(std::size_t layer, std::size_t tokens, std::size_t position) {
  const TransformerBlock& block = weights_->blocks[layer];
  normalise(block.attention_norm, 0, tokens);
  apply(block.query_key_value, tokens, normed_.inputs(), query_key_value_.rows(), false);
  if (rotary_) {
    for (std::size_t t = 0; t < tokens; ++t)
      rotary_->rotate(position + t, size(config_.heads), query_key_value_.row(t));
  }
  remember(layer, tokens, position);
  attend_heads(layer, tokens, position);
  apply(block.attention_output, tokens, attended_.inputs(), stream_.rows(), true);
  normalise(block.feed_forward_norm, 0, tokens);
  apply(block.feed_forward_input, tokens, normed_.inputs(), feed_forward_.rows(), false);
  activate(tokens);
  apply(block.feed_forward_output, tokens, activated_.inputs(), stream_.rows(), true);
}

void TransformerPass::take_exit(const ExitHead& exit, std::size_t tokens) {
  normalise(exit.norm, 0, tokens);
  apply(exit.projection, tokens, normed_.inputs(), stream_.rows(), true);
}

void TransformerPass::normalise(const Norm& norm, std::size_t first, std::size_t count) {
  const auto epsilon = static_cast<float>(config_.norm_epsilon);
  for (std::size_t t = first; t < first + count; ++t) {
    if (norm.bias.empty()) {
      rms_norm(stream_.row(t), norm.weight.data(), epsilon, normed_.row(t), size(config_.width));
    } else {
      layer_norm(norm, epsilon, stream_.row(t), normed_.row(t));
    }
  }
}

void TransformerPass::write_logits(std::size_t first, std::size_t count) {
  apply(weights_->head, count, normed_.inputs(first), logits_.rows(), false);
}

void TransformerPass::apply(const Linear& linear, std::size_t tokens, TokenRows<const float> x, TokenRows<float> y,
                            bool accumulate) {
  if (!linear.bias.empty()) {
    const auto n = static_cast<Eigen::Index>(linear.bias.size());
    for (std::size_t t = 0; t < tokens; ++t) {
      Row row(y.row(t), n);
      if (!accumulate) row.setZero();
      row += ConstRow(linear.bias.data(), n);
    }
    accumulate = true;
  }
  const Panels panels = linear.matrix.panels();
  const std::size_t count = panels.count();
  const std::size_t work = panels.rows * panels.depth * tokens;
  if (!pool_ || work < least_shared_work) return multiply(panels, 0, count, tokens, x, y, accumulate);
  // One chunk per thread if they are short; several otherwise, so that a late thread has less to finish.
  const std::size_t threads = size(pool_->threads());
  const std::size_t chunks = std::min(count, threads * std::clamp<std::size_t>(work / threads / long_chunk, 1, 4));
  pool_->run(static_cast<std::int64_t>(chunks), [&](std::int64_t chunk, int) {
    const std::size_t first = count * size(chunk) / chunks;
    const std::size_t last = count * (size(chunk) + 1) / chunks;
    multiply(panels, first, last, tokens, x, y, accumulate);
  });
}

void TransformerPass::remember(std::size_t layer, std::size_t tokens, std::size_t position) {
  const std::size_t heads = size(config_.heads);
  const std::size_t key_value_heads = size(config_.key_value_heads);
  for (std::size_t t = 0; t < tokens; ++t) {
    float* key = query_key_value_.row(t) + heads * head_size();
    const float* value = key + key_value_heads * head_size();
    if (rotary_) rotary_->rotate(position + t, key_value_heads, key);
    for (std::size_t h = 0; h < key_value_heads; ++h) {
      cache_.store(layer, h, position + t, key + h * head_size(), value + h * head_size());
    }
  }
}

void TransformerPass::attend_heads(std::size_t layer, std::size_t tokens, std::size_t position) {
  const std::size_t heads = size(config_.heads);
  const std::size_t heads_per_key = heads / size(config_.key_value_heads);
  const float scale = 1 / std::sqrt(static_cast<float>(config_.head_size));
  for (std::size_t first = 0; first < tokens; first += most_attention_tokens) {
    const std::size_t count = std::min(most_attention_tokens, tokens - first);
    const std::size_t context = position + first + 1;
    share(heads, 2 * heads * head_size() * context * count, [&](std::int64_t chunk, int thread) {
      const std::size_t h = size(chunk);
      const auto query = query_key_value_.inputs(first);
      const auto out = attended_.rows(first);
      attend({.keys = cache_.keys(layer, h / heads_per_key),
              .values = cache_.values(layer, h / heads_per_key),
              .value_stride = cache_.value_stride(),
              .head_size = head_size(),
              .scale = scale,
              .context = context,
              .tokens = count,
              .query = {query.data + h * head_size(), query.stride},
              .out = {out.data + h * head_size(), out.stride}},
             scratch_[static_cast<std::size_t>(thread)]);
    });
  }
}

void TransformerPass::activate(std::size_t tokens) {
  const std::size_t n = size(config_.feed_forward);
  for (std::size_t t = 0; t < tokens; ++t) {
    const float* in = feed_forward_.row(t);
    if (config_.family == TransformerConfig::Family::llama) {
      swish_gate(in, in + n, activated_.row(t), n);
    } else {
      gelu_tanh(in, activated_.row(t), n);
    }
  }
}

double operations_of(const Linear& linear) {
  return 2 * static_cast<double>(linear.matrix.rows()) * static_cast<double>(linear.matrix.depth());
}

double operations_of(const TransformerBlock& block) {
  return operations_of(block.query_key_value) + operations_of(block.attention_output) +
         operations_of(block.feed_forward_input) + operations_of(block.feed_forward_output);
}

void require_tokens(std::string_view function, std::span<const Token> tokens, std::int64_t vocab_size) {
  for (const Token token : tokens) core::require_in(function, "token", std::int64_t{token}, 0, vocab_size - 1);
}

void require_room(std::string_view function, std::int64_t length, std::size_t count, std::int64_t max_length) {
  core::require_in(function, "length after the block", length + static_cast<std::int64_t>(count), 0, max_length);
}

std::size_t row_count(std::string_view function, std::int64_t vocab_size, std::size_t block, std::size_t values) {
  const auto width = static_cast<std::size_t>(vocab_size);
  if (values % width != 0 || values / width > block) {
    throw std::invalid_argument(
        fmt::format("{}: rows has {} entries, but must be n rows of {} with n <= {}, the block's size", function,
                    values, width, block));
  }
  return values / width;
}

}  // namespace specdec::sim
