#pragma once

#include <cstddef>
#include <span>

#include "sim/transformer/aligned.hpp"
#include "traces/formats/safetensors.hpp"

namespace specdec::sim {

// The inner loops, compiled for each vector unit and chosen at run time (Highway). Every sum has one order,
// whatever the number of tokens in the call and the width of the vectors; only fused multiply-add, if the machine
// has it, rounds differently.

/// Rows that are multiplied together.
inline constexpr std::size_t panel_rows = 32;
/// Largest number of tokens in an attention call.
inline constexpr std::size_t most_attention_tokens = 12;

/// A matrix [rows, depth] cut into panels of 32 rows: element (r, k) of panel p is data[p * step + k * stride + r].
/// If rows is 16 more than a multiple of 32, the last panel has 16 rows and the stride last_stride.
struct Panels {
  const void* data;
  /// f32, f16 or bf16; products are the same as of the elements in f32.
  traces::ElementType type;
  std::size_t step;
  std::size_t stride;
  std::size_t last_stride;
  /// A multiple of 16.
  std::size_t rows;
  std::size_t depth;

  std::size_t count() const { return (rows + panel_rows - 1) / panel_rows; }
};

/// Rows of activations, one per token.
template <class Float>
struct TokenRows {
  Float* data;
  std::size_t stride;

  Float* row(std::size_t t) const { return data + t * stride; }
};

/// y[t][r] = start + sum over k of matrix[r, k] * x[t][k], k ascending, for tokens [0, tokens) and the rows of panels
/// [first, last); start is y[t][r] itself if `accumulate`, else 0.
void multiply(const Panels& matrix, std::size_t first, std::size_t last, std::size_t tokens, TokenRows<const float> x,
              TokenRows<float> y, bool accumulate);

/// Attention of one head for consecutive tokens, the first of which sees `context` positions and each further one
/// one more:  out[t] = sum over s of softmax(query[t] . key[s] * scale) value[s].
struct HeadAttention {
  /// Panels of 32 positions, [positions, head_size].
  const float* keys;
  /// [positions, value_stride]; head_size floats of each are used, value_stride is a multiple of 16. Positions up to
  /// the next multiple of 4 are read with weight zero, so they must hold finite numbers.
  const float* values;
  std::size_t value_stride;
  std::size_t head_size;
  float scale;
  std::size_t context;
  /// At most most_attention_tokens.
  std::size_t tokens;
  TokenRows<const float> query;
  TokenRows<float> out;
};
/// Floats of scratch memory that attend() needs for this many tokens, the last of which sees `positions` positions.
std::size_t attention_scratch(std::size_t tokens, std::size_t positions, std::size_t value_stride);
/// `scratch` must be aligned to cache lines.
void attend(const HeadAttention& head, std::span<float> scratch);

/// out[i] = x[i] / sqrt(mean of x^2 + epsilon) * weight[i]. x, weight and out start on cache lines and may be read and
/// written up to a multiple of 16, where x and weight hold 0.
void rms_norm(const float* x, const float* weight, float epsilon, float* out, std::size_t n);

/// out[i] = gate[i] * sigmoid(gate[i]) * up[i]. Reads and writes up to a multiple of 16.
void swish_gate(const float* gate, const float* up, float* out, std::size_t n);

/// out[i] = x[i] * sigmoid(2 sqrt(2/pi) (x[i] + 0.044715 x[i]^3)), the tanh form of GELU. Up to a multiple of 16.
void gelu_tanh(const float* x, float* out, std::size_t n);

bool all_finite(std::span<const float> values);

/// out[i] = exp(logits[i] - max) / sum; difference and exponential in f32 (each within 1 ulp), sum and quotient in
/// double. All logits are finite; they are overwritten.
void softmax(std::span<float> logits, std::span<double> out);

}  // namespace specdec::sim
