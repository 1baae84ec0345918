#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/language_model.hpp"
#include "sim/transformer/key_value_cache.hpp"
#include "sim/transformer/rotary_positions.hpp"
#include "sim/transformer/thread_pool.hpp"
#include "sim/transformer/weights.hpp"

namespace specdec::sim {

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

/// The parts of a forward pass: the states of a few consecutive tokens, which blocks change in place, and the keys
/// and values of all tokens before them. The caller decides which blocks are run and where a pass ends.
class TransformerPass {
 public:
  /// Largest number of tokens whose activations are in memory at once.
  static constexpr std::size_t most_tokens = 48;
  /// Largest number of rows of logits in memory at once.
  static constexpr std::size_t most_rows = 12;

  /// @param layers  number of blocks that will be run, starting with the first
  /// @throws std::domain_error if threads < 1
  TransformerPass(std::shared_ptr<const TransformerWeights> weights, int threads, std::int64_t layers);

  const TransformerConfig& config() const { return config_; }
  const TransformerWeights& weights() const { return *weights_; }

  /// Makes room for positions [0, positions).
  void reserve(std::size_t positions);

  /// Starts a pass: the states are the embeddings of tokens at positions from `position` on.
  void embed(std::span<const Token> tokens, std::size_t position);
  /// Starts a pass with vectors instead of embeddings. Shape: (tokens, width).
  void embed_vectors(std::span<const float> vectors, std::size_t position);
  /// Applies a block to the states of the first `tokens` tokens, and stores their keys and values.
  void run_block(std::size_t layer, std::size_t tokens, std::size_t position);
  /// Adds to each state the exit's projection of it.
  void take_exit(const ExitHead& exit, std::size_t tokens);
  /// Normalises the states of tokens [first, first + count); see normed().
  void normalise(const Norm& norm, std::size_t first, std::size_t count);
  /// Logits of tokens [first, first + count), at most most_rows, from their normed states; see logits().
  void write_logits(std::size_t first, std::size_t count);

  std::span<const float> normed(std::size_t t) { return {normed_.row(t), size(config_.width)}; }
  /// The logits of token first + i of the last call of write_logits.
  std::span<float> logits(std::size_t i) { return {logits_.row(i), size(config_.known_tokens)}; }

  /// Runs f(chunk, thread) for all chunks, by all threads if the multiply-adds are worth it.
  template <class F>
  void share(std::size_t chunks, std::size_t work, const F& f) {
    if (pool_ && work >= least_shared_work && chunks > 1) {
      pool_->run(static_cast<std::int64_t>(chunks), f);
    } else {
      for (std::size_t i = 0; i < chunks; ++i) f(static_cast<std::int64_t>(i), 0);
    }
  }

 private:
  /// Multiply-adds below which handing work to another thread costs more than it saves.
  static constexpr std::size_t least_shared_work = 1U << 16U;

  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  std::size_t head_size() const { return size(config_.head_size); }

  /// y = linear(x), or y += linear(x).
  void apply(const Linear& linear, std::size_t tokens, TokenRows<const float> x, TokenRows<float> y, bool accumulate);
  /// Sets a token's input at a position.
  void begin_state(std::size_t t, const float* input, std::size_t position);
  /// Rotates the computed keys to their positions and stores keys and values.
  void remember(std::size_t layer, std::size_t tokens, std::size_t position);
  void attend_heads(std::size_t layer, std::size_t tokens, std::size_t position);
  void activate(std::size_t tokens);

  std::shared_ptr<const TransformerWeights> weights_;
  const TransformerConfig& config_;
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
};

/// 2 * (parameters of the matrix).
double operations_of(const Linear& linear);
double operations_of(const TransformerBlock& block);

/// @throws std::domain_error if a token is outside the vocabulary
void require_tokens(std::string_view function, std::span<const Token> tokens, std::int64_t vocab_size);
/// @throws std::domain_error if a prefix of `length` tokens and `count` more would exceed max_length
void require_room(std::string_view function, std::int64_t length, std::size_t count, std::int64_t max_length);

/// The number of rows that `values` entries form.
/// @throws std::invalid_argument if it is not a whole number of rows, or more than the block has tokens
std::size_t row_count(std::string_view function, std::int64_t vocab_size, std::size_t block, std::size_t values);

}  // namespace specdec::sim
