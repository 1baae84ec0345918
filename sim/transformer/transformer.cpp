#include "sim/transformer/transformer.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "sim/transformer/kernels.hpp"
#include "sim/transformer/key_value_cache.hpp"
#include "sim/transformer/rotary_positions.hpp"
#include "sim/transformer/thread_pool.hpp"
#include "sim/transformer/weights.hpp"

namespace specdec::sim {
namespace {

/// Tokens whose activations are in memory at once; longer blocks are cut.
constexpr std::size_t chunk_tokens = 48;
/// Rows of logits that are in memory at once.
constexpr std::size_t head_tokens = 12;
/// Multiply-adds below which handing work to another thread costs more than it saves.
constexpr std::size_t least_shared_work = 1U << 16U;
/// Multiply-adds that are long enough for a chunk of their own.
constexpr std::size_t long_chunk = 1U << 18U;
/// Logits turned into probabilities in about the time of as many multiply-adds as that.
constexpr std::size_t work_per_probability = 16;

/// Rows of activations, each starting on a cache line.
class Activations {
 public:
  Activations(std::size_t rows, std::size_t width)
      : stride_(round_up(width, line_floats)), data_(rows * stride_ + line_floats) {}

  float* row(std::size_t t) { return data_.data() + t * stride_; }
  TokenRows<float> rows(std::size_t first = 0) { return {row(first), stride_}; }
  TokenRows<const float> inputs(std::size_t first = 0) { return {row(first), stride_}; }

 private:
  std::size_t stride_;
  AlignedFloats data_;
};

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

class Transformer::Forward {
 public:
  Forward(std::shared_ptr<const TransformerWeights> weights, TransformerOptions options)
      : weights_(std::move(weights)),
        config_(weights_->config),
        layers_(checked_layers(config_, options)),
        keeps_features_(options.keep_features),
        cache_(size(layers_), size(config_.key_value_heads), head_size()),
        stream_(chunk_tokens, size(config_.width)),
        normed_(chunk_tokens, size(config_.width)),
        query_key_value_(chunk_tokens, size((config_.heads + 2 * config_.key_value_heads) * config_.head_size)),
        attended_(chunk_tokens, size(config_.heads * config_.head_size)),
        feed_forward_(chunk_tokens, weights_->blocks.front().feed_forward_input.matrix.padded_rows()),
        activated_(chunk_tokens, size(config_.feed_forward)),
        logits_(head_tokens, size(config_.vocab_size)) {
    core::require_in("Transformer", "options.threads", std::int64_t{options.threads}, 1, 1024);
    core::require_in("Transformer", "options.max_length", options.max_length, 0, config_.max_length);
    max_length_ = options.max_length == 0 ? config_.max_length : options.max_length;
    if (config_.family == TransformerConfig::Family::llama) rotary_.emplace(config_);
    if (options.threads > 1) pool_ = std::make_unique<ThreadPool>(options.threads);
    scratch_.resize(static_cast<std::size_t>(options.threads));
  }

  const TransformerConfig& config() const { return config_; }
  const TransformerWeights& weights() const { return *weights_; }
  std::int64_t length() const { return length_; }
  std::int64_t max_length() const { return max_length_; }
  std::int64_t layers() const { return layers_; }

  std::span<const float> features(std::int64_t position) const {
    if (!keeps_features_)
      throw std::invalid_argument("Transformer::features: options.keep_features is false, but must be true");
    core::require_in("Transformer::features", "position", position, 0, length_ - 1);
    return std::span(features_).subspan(size(position * config_.width), size(config_.width));
  }

  /// What a block appends: tokens, or vectors in the place of their embeddings. Shape: vectors (count, width).
  struct Inputs {
    std::size_t count;
    std::span<const Token> tokens;
    std::span<const float> vectors;
  };

  /// Appends the block; calls emit(row, logits) for each of its last `rows` positions, perhaps in several threads.
  template <class Emit>
  void append(const Inputs& block, std::size_t rows, const Emit& emit) {
    require_valid(block);
    const std::int64_t before = length_;
    reserve(size(before) + block.count);
    const std::size_t silent = block.count - rows;
    for (std::size_t first = 0; first < block.count; first += chunk_tokens) {
      const std::size_t tokens = std::min(chunk_tokens, block.count - first);
      embed(block, first, tokens, size(before) + first);
      advance(tokens, size(before) + first);
      const std::size_t skipped = std::min(tokens, silent - std::min(silent, first));
      const std::size_t unused = keeps_features_ ? 0 : skipped;
      normalise_rows(weights_->final_norm, unused, tokens - unused);
      if (keeps_features_) keep_features(tokens, size(before) + first);
      for (std::size_t t = skipped; t < tokens; t += head_tokens) {
        const std::size_t count = std::min(head_tokens, tokens - t);
        write_logits(t, count);
        const std::size_t row = first + t - silent;
        std::atomic<bool> finite{true};
        share(count, size(vocab_size()) * work_per_probability * count, [&](std::int64_t i, int) {
          if (!all_finite(logits(size(i)))) {
            finite = false;
          } else {
            emit(row + size(i), logits(size(i)));
          }
        });
        if (!finite) throw std::domain_error("Transformer::score: a logit overflows, but must be finite");
      }
    }
    length_ = before + static_cast<std::int64_t>(block.count);
  }

  void roll_back(std::int64_t length) {
    core::require_in("Transformer::roll_back", "length", length, 0, length_);
    length_ = length;
  }

  std::int64_t vocab_size() const { return config_.vocab_size; }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  std::size_t head_size() const { return size(config_.head_size); }

  static std::int64_t checked_layers(const TransformerConfig& config, const TransformerOptions& options) {
    core::require_in("Transformer", "options.layers", options.layers, 0, config.layers);
    return options.layers == 0 ? config.layers : options.layers;
  }

  void require_valid(const Inputs& block) const {
    for (const Token token : block.tokens)
      core::require_in("Transformer::score", "token", std::int64_t{token}, 0, vocab_size() - 1);
    core::require_in("Transformer::score", "length after the block", length_ + static_cast<std::int64_t>(block.count),
                     0, max_length_);
  }

  void reserve(std::size_t positions) {
    cache_.reserve(positions);
    if (rotary_) rotary_->reserve(positions);
    if (keeps_features_) features_.resize(std::max(features_.size(), positions * size(config_.width)));
    const std::size_t needed = attention_scratch(most_attention_tokens, positions, cache_.value_stride());
    for (AlignedFloats& scratch : scratch_) {
      if (scratch.size() < needed) scratch.resize(2 * needed);
    }
  }

  /// Runs f(chunk, thread) for all chunks, by all threads if the multiply-adds are worth it.
  template <class F>
  void share(std::size_t chunks, std::size_t work, const F& f) {
    if (pool_ && work >= least_shared_work && chunks > 1) {
      pool_->run(static_cast<std::int64_t>(chunks), f);
    } else {
      for (std::size_t i = 0; i < chunks; ++i) f(static_cast<std::int64_t>(i), 0);
    }
  }

  /// y = linear(x), or y += linear(x).
  void apply(const Linear& linear, std::size_t tokens, TokenRows<const float> x, TokenRows<float> y, bool accumulate) {
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
    const std::size_t work = panels.rows * panels.depth * tokens;
    if (!pool_ || work < least_shared_work) return multiply(panels, 0, panels.count(), tokens, x, y, accumulate);
    // One chunk per thread if they are short; several otherwise, so that a thread that is late has less to finish.
    const std::size_t threads = size(pool_->threads());
    const std::size_t chunks =
        std::min(panels.count(), threads * std::clamp<std::size_t>(work / threads / long_chunk, 1, 4));
    pool_->run(static_cast<std::int64_t>(chunks), [&](std::int64_t chunk, int) {
      const std::size_t first = panels.count() * size(chunk) / chunks;
      const std::size_t last = panels.count() * (size(chunk) + 1) / chunks;
      multiply(panels, first, last, tokens, x, y, accumulate);
    });
  }

  /// Takes stream_ at positions from `position` on through the layers.
  void advance(std::size_t tokens, std::size_t position) {
    for (std::size_t layer = 0; layer < size(layers_); ++layer) {
      const TransformerBlock& block = weights_->blocks[layer];
      normalise_rows(block.attention_norm, 0, tokens);
      apply(block.query_key_value, tokens, normed_.inputs(), query_key_value_.rows(), false);
      remember(layer, tokens, position);
      attend_heads(layer, tokens, position);
      apply(block.attention_output, tokens, attended_.inputs(), stream_.rows(), true);
      normalise_rows(block.feed_forward_norm, 0, tokens);
      apply(block.feed_forward_input, tokens, normed_.inputs(), feed_forward_.rows(), false);
      activate(tokens);
      apply(block.feed_forward_output, tokens, activated_.inputs(), stream_.rows(), true);
    }
  }

  /// Puts tokens [first, first + count) of the block, which start at `position`, into stream_.
  void embed(const Inputs& block, std::size_t first, std::size_t count, std::size_t position) {
    const auto n = static_cast<Eigen::Index>(config_.width);
    const std::size_t width = size(config_.width);
    using Embedding = Eigen::Map<const Eigen::ArrayXf>;
    for (std::size_t t = 0; t < count; ++t) {
      Row row(stream_.row(t), n);
      row = Embedding(block.tokens.empty() ? block.vectors.data() + (first + t) * width
                                           : weights_->token_embedding.data() + size(block.tokens[first + t]) * width,
                      n);
      if (!weights_->position_embedding.empty()) {
        row += Embedding(weights_->position_embedding.data() + (position + t) * width, n);
      }
    }
  }

  void normalise_rows(const Norm& norm, std::size_t first, std::size_t count) {
    const auto epsilon = static_cast<float>(config_.norm_epsilon);
    for (std::size_t t = first; t < first + count; ++t) {
      if (norm.bias.empty()) {
        rms_norm(stream_.row(t), norm.weight.data(), epsilon, normed_.row(t), size(config_.width));
      } else {
        layer_norm(norm, epsilon, stream_.row(t), normed_.row(t));
      }
    }
  }

  /// Turns queries and keys to their positions and stores keys and values.
  void remember(std::size_t layer, std::size_t tokens, std::size_t position) {
    const std::size_t heads = size(config_.heads);
    const std::size_t key_value_heads = size(config_.key_value_heads);
    for (std::size_t t = 0; t < tokens; ++t) {
      float* query = query_key_value_.row(t);
      const float* key = query + heads * head_size();
      const float* value = key + key_value_heads * head_size();
      if (rotary_) rotary_->rotate(position + t, heads + key_value_heads, query);
      for (std::size_t h = 0; h < key_value_heads; ++h) {
        cache_.store(layer, h, position + t, key + h * head_size(), value + h * head_size());
      }
    }
  }

  void attend_heads(std::size_t layer, std::size_t tokens, std::size_t position) {
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

  void activate(std::size_t tokens) {
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

  /// Copies the normed states of the current chunk, whose first token is at `position`.
  void keep_features(std::size_t tokens, std::size_t position) {
    const std::size_t width = size(config_.width);
    for (std::size_t t = 0; t < tokens; ++t)
      std::copy_n(normed_.row(t), width, features_.begin() + static_cast<std::ptrdiff_t>((position + t) * width));
  }

  /// Logits of the tokens [first, first + count) of the current chunk, from their normed states.
  void write_logits(std::size_t first, std::size_t count) {
    apply(weights_->head, count, normed_.inputs(first), logits_.rows(), false);
  }

  std::span<float> logits(std::size_t i) { return {logits_.row(i), size(vocab_size())}; }

  std::shared_ptr<const TransformerWeights> weights_;
  const TransformerConfig& config_;
  std::int64_t layers_;
  bool keeps_features_;
  std::int64_t max_length_ = 0;
  std::int64_t length_ = 0;
  KeyValueCache cache_;
  std::optional<RotaryPositions> rotary_;
  std::unique_ptr<ThreadPool> pool_;
  /// One per thread.
  std::vector<AlignedFloats> scratch_;
  Activations stream_;
  Activations normed_;
  Activations query_key_value_;
  Activations attended_;
  Activations feed_forward_;
  Activations activated_;
  Activations logits_;
  /// Shape: (positions, width); empty unless they are kept.
  std::vector<float> features_;
};

Transformer::Transformer(std::shared_ptr<const TransformerWeights> weights, TransformerOptions options)
    : forward_(std::make_unique<Forward>(std::move(weights), options)) {}
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&&) noexcept = default;
Transformer::~Transformer() = default;

const TransformerConfig& Transformer::config() const { return forward_->config(); }
std::int64_t Transformer::vocab_size() const { return forward_->vocab_size(); }
std::int64_t Transformer::max_length() const { return forward_->max_length(); }
std::int64_t Transformer::length() const { return forward_->length(); }
std::int64_t Transformer::layers() const { return forward_->layers(); }

double Transformer::operations_per_token() const {
  const auto operations = [](const Linear& linear) {
    return 2 * static_cast<double>(linear.matrix.rows()) * static_cast<double>(linear.matrix.depth());
  };
  double sum = operations(forward_->weights().head);
  const std::span<const TransformerBlock> blocks = forward_->weights().blocks;
  for (const TransformerBlock& block : blocks.first(static_cast<std::size_t>(layers()))) {
    sum += operations(block.query_key_value) + operations(block.attention_output) +
           operations(block.feed_forward_input) + operations(block.feed_forward_output);
  }
  return sum;
}

double Transformer::attention_operations(std::int64_t context) const {
  core::require_in("Transformer::attention_operations", "context", context, 0, max_length());
  const TransformerConfig& c = config();
  return 4 * static_cast<double>(layers() * c.heads * c.head_size) * static_cast<double>(context);
}

namespace {

std::size_t row_count(std::int64_t vocab_size, std::size_t block, std::size_t values) {
  const auto width = static_cast<std::size_t>(vocab_size);
  if (values % width != 0 || values / width > block) {
    throw std::invalid_argument(
        fmt::format("Transformer::score: rows has {} entries, but must be n rows of {} with n <= {}, the block's size",
                    values, width, block));
  }
  return values / width;
}

}  // namespace

void Transformer::score(std::span<const Token> block, std::span<double> rows) {
  const auto width = static_cast<std::size_t>(vocab_size());
  forward_->append({block.size(), block, {}}, row_count(vocab_size(), block.size(), rows.size()),
                   [&](std::size_t i, std::span<float> logits) { softmax(logits, rows.subspan(i * width, width)); });
}

void Transformer::score_vectors(std::span<const float> vectors, std::span<double> rows) {
  const auto width = static_cast<std::size_t>(vocab_size());
  const auto entries = static_cast<std::size_t>(config().width);
  if (vectors.size() % entries != 0) {
    throw std::invalid_argument(
        fmt::format("Transformer::score_vectors: vectors has {} entries, but must be n vectors of {}, the width",
                    vectors.size(), entries));
  }
  const std::size_t count = vectors.size() / entries;
  forward_->append({count, {}, vectors}, row_count(vocab_size(), count, rows.size()),
                   [&](std::size_t i, std::span<float> logits) { softmax(logits, rows.subspan(i * width, width)); });
}

void Transformer::score_logits(std::span<const Token> block, std::span<float> logits) {
  const auto width = static_cast<std::size_t>(vocab_size());
  forward_->append({block.size(), block, {}}, row_count(vocab_size(), block.size(), logits.size()),
                   [&](std::size_t i, std::span<const float> row) {
                     std::copy(row.begin(), row.end(), logits.begin() + static_cast<std::ptrdiff_t>(i * width));
                   });
}

std::span<const float> Transformer::features(std::int64_t position) const { return forward_->features(position); }

void Transformer::roll_back(std::int64_t length) { forward_->roll_back(length); }

}  // namespace specdec::sim
