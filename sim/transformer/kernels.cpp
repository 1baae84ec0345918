#include "sim/transformer/kernels.hpp"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/transformer/kernels.cpp"
// Vectors whose length is only known at run time cannot be elements of arrays.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h must be included before highway.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace specdec::sim::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, line_floats>;
using FloatVector = hn::Vec<FloatTag>;
constexpr FloatTag float_tag;
constexpr std::size_t lanes = hn::MaxLanes(float_tag);

/// Tokens whose sums fit into the registers beside one panel's weights, 32 registers of 16 floats, 16 of 8 or 4, and
/// whose activations have an address register each: 11 or 12 take half as long again as two groups.
constexpr std::size_t most_tokens = lanes == 16 ? 9 : lanes == 8 ? 3 : 1;
/// Prefetches weights that are needed soon. A single token is done with them so fast that they should go to the first
/// cache; for more tokens there is time, but the first cache allows too few pending requests: the second one fetches.
template <std::size_t kTokens, class Weight>
HWY_INLINE void prefetch(const Weight* weights) {
  if constexpr (kTokens == 1) {
    __builtin_prefetch(weights + 4096 / sizeof(Weight), 0, 3);
  } else {
    __builtin_prefetch(weights + 16384 / sizeof(Weight), 0, 2);
  }
}

HWY_INLINE FloatVector load(const float* weights) { return hn::LoadU(float_tag, weights); }
template <class Half>
HWY_INLINE FloatVector load(const Half* weights) {
  return hn::PromoteTo(float_tag, hn::LoadU(hn::Rebind<Half, FloatTag>(), weights));
}

/// kPanels panels of kRows rows for kTokens tokens.
template <std::size_t kRows, std::size_t kPanels, std::size_t kTokens, class Weight>
void multiply_tile(const Weight* HWY_RESTRICT w, std::size_t step, std::size_t stride, std::size_t depth,
                   const float* HWY_RESTRICT x, std::size_t x_stride, float* HWY_RESTRICT y, std::size_t y_stride,
                   bool accumulate) {
  constexpr std::size_t vectors = kRows / lanes;
  FloatVector sum[kPanels][kTokens][vectors];
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t v = 0; v < vectors; ++v) {
        sum[p][t][v] =
            accumulate ? hn::LoadU(float_tag, y + t * y_stride + p * kRows + v * lanes) : hn::Zero(float_tag);
      }
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t p = 0; p < kPanels; ++p) {
      const Weight* weights = w + p * step + k * stride;
      for (std::size_t r = 0; r < kRows; r += line_bytes / sizeof(Weight)) prefetch<kTokens>(weights + r);
      for (std::size_t v = 0; v < vectors; ++v) {
        const FloatVector weight = load(weights + v * lanes);
        for (std::size_t t = 0; t < kTokens; ++t) {
          sum[p][t][v] = hn::MulAdd(weight, hn::Set(float_tag, x[t * x_stride + k]), sum[p][t][v]);
        }
      }
    }
  }
  for (std::size_t p = 0; p < kPanels; ++p) {
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t v = 0; v < vectors; ++v) {
        hn::StoreU(sum[p][t][v], float_tag, y + t * y_stride + p * kRows + v * lanes);
      }
    }
  }
}

/// The same for a number of tokens known at run time, at most most_tokens.
template <std::size_t kRows, std::size_t kPanels, std::size_t kTokens = most_tokens, class Weight>
void multiply_tokens(std::size_t tokens, const Weight* w, std::size_t step, std::size_t stride, std::size_t depth,
                     TokenRows<const float> x, TokenRows<float> y, bool accumulate) {
  if (tokens == kTokens) {
    multiply_tile<kRows, kPanels, kTokens>(w, step, stride, depth, x.data, x.stride, y.data, y.stride, accumulate);
  } else if constexpr (kTokens > 1) {
    multiply_tokens<kRows, kPanels, kTokens - 1>(tokens, w, step, stride, depth, x, y, accumulate);
  }
}

template <class Weight>
void multiply_panels_of(const Panels& m, std::size_t first, std::size_t last, std::size_t tokens,
                        TokenRows<const float> x, TokenRows<float> y, bool accumulate) {
  const std::size_t whole = std::min(last, m.rows / panel_rows);
  // As few groups as the registers allow, of nearly equal size.
  const std::size_t groups = (tokens + most_tokens - 1) / most_tokens;
  for (std::size_t p = first; p < last;) {
    // A single token's sums are too few to hide the latency of an addition: process several panels at once.
    constexpr std::size_t together = 2;
    const std::size_t panels = tokens == 1 && p + together <= whole ? together : 1;
    const Weight* w = static_cast<const Weight*>(m.data) + p * m.step;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t begin = tokens * g / groups;
      const std::size_t n = tokens * (g + 1) / groups - begin;
      const TokenRows<const float> from{x.row(begin), x.stride};
      const TokenRows<float> to{y.row(begin) + p * panel_rows, y.stride};
      if (panels == together) {
        multiply_tokens<panel_rows, together, 1>(n, w, m.step, m.stride, m.depth, from, to, accumulate);
      } else if (p < whole) {
        multiply_tokens<panel_rows, 1>(n, w, m.step, m.stride, m.depth, from, to, accumulate);
      } else {
        multiply_tokens<line_floats, 1>(n, w, m.step, m.last_stride, m.depth, from, to, accumulate);
      }
    }
    p += panels;
  }
}

void multiply_panels(const Panels& m, std::size_t first, std::size_t last, std::size_t tokens, TokenRows<const float> x,
                     TokenRows<float> y, bool accumulate) {
  switch (m.type) {
    case traces::ElementType::f16:
      return multiply_panels_of<hwy::float16_t>(m, first, last, tokens, x, y, accumulate);
    case traces::ElementType::bf16:
      return multiply_panels_of<hwy::bfloat16_t>(m, first, last, tokens, x, y, accumulate);
    default:
      return multiply_panels_of<float>(m, first, last, tokens, x, y, accumulate);
  }
}

/// Adds 16 partial sums in a fixed order.
float sum_of_line(const float* line) {
  std::array<float, line_floats> s;
  std::memcpy(s.data(), line, sizeof s);
  for (std::size_t half = line_floats / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) s[i] += s[i + half];
  }
  return s[0];
}

/// Replaces scores[0, n) by exp((score - max) * scale) and scores[n, padded) by 0; returns their sum.
float exponentials(float* scores, std::size_t n, std::size_t padded, float scale) {
  constexpr std::size_t vectors = line_floats / lanes;
  std::fill(scores + n, scores + round_up(n, line_floats), -FLT_MAX);
  std::fill(scores + round_up(n, line_floats), scores + padded, 0.0F);
  FloatVector most = hn::Set(float_tag, -FLT_MAX);
  for (std::size_t i = 0; i < n; i += lanes) most = hn::Max(most, hn::Load(float_tag, scores + i));
  most = hn::MaxOfLanes(float_tag, most);

  FloatVector sum[vectors];
  for (auto& s : sum) s = hn::Zero(float_tag);
  const FloatVector factor = hn::Set(float_tag, scale);
  const FloatVector least = hn::Set(float_tag, -104.0F);
  for (std::size_t i = 0; i < n; i += line_floats) {
    for (std::size_t v = 0; v < vectors; ++v) {
      float* at = scores + i + v * lanes;
      const FloatVector exponent = hn::Mul(hn::Sub(hn::Load(float_tag, at), most), factor);
      const FloatVector e = hn::Exp(float_tag, hn::Max(exponent, least));
      hn::Store(e, float_tag, at);
      sum[v] = hn::Add(sum[v], e);
    }
  }
  // The padding of the last line holds exp(-104), far below the rounding of the sum, but must have weight zero.
  std::fill(scores + n, scores + round_up(n, line_floats), 0.0F);
  HWY_ALIGN float line[line_floats];
  for (std::size_t v = 0; v < vectors; ++v) hn::Store(sum[v], float_tag, line + v * lanes);
  return sum_of_line(line);
}

/// out[t][r] = sum over s of weights[t][s] * values[s][r], for kVectors vectors of rows and kTokens tokens. Four sums,
/// of s = 0, 1, 2, 3 modulo 4, run side by side to hide the latency of an addition.
template <std::size_t kVectors, std::size_t kTokens>
void mix_tile(const float* HWY_RESTRICT values, std::size_t stride, std::size_t positions,
              TokenRows<const float> weights, TokenRows<float> out) {
  FloatVector sum[kTokens][4][kVectors];
  for (auto& token : sum) {
    for (auto& part : token) {
      for (auto& s : part) s = hn::Zero(float_tag);
    }
  }
  for (std::size_t s = 0; s < positions; s += 4) {
    for (std::size_t j = 0; j < 4; ++j) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const FloatVector value = hn::LoadU(float_tag, values + (s + j) * stride + v * lanes);
        for (std::size_t t = 0; t < kTokens; ++t) {
          sum[t][j][v] = hn::MulAdd(value, hn::Set(float_tag, weights.row(t)[s + j]), sum[t][j][v]);
        }
      }
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto& part = sum[t];
      const FloatVector total = hn::Add(hn::Add(part[0][v], part[2][v]), hn::Add(part[1][v], part[3][v]));
      hn::StoreU(total, float_tag, out.row(t) + v * lanes);
    }
  }
}

/// The same for all rows, a multiple of 16, and all tokens.
void mix_values(const float* values, std::size_t stride, std::size_t positions, std::size_t tokens,
                TokenRows<const float> weights, TokenRows<float> out) {
  constexpr std::size_t vectors = lanes == 16 ? 2 : 1;
  constexpr std::size_t together = lanes == 16 ? 3 : 1;
  for (std::size_t t = 0; t < tokens;) {
    const std::size_t n = t + together <= tokens ? together : 1;
    const TokenRows<const float> from{weights.row(t), weights.stride};
    for (std::size_t r = 0; r < stride;) {
      const std::size_t width = r + vectors * lanes <= stride ? vectors : 1;
      const TokenRows<float> to{out.row(t) + r, out.stride};
      if (n == together && width == vectors) {
        mix_tile<vectors, together>(values + r, stride, positions, from, to);
      } else if (n == together) {
        mix_tile<1, together>(values + r, stride, positions, from, to);
      } else if (width == vectors) {
        mix_tile<vectors, 1>(values + r, stride, positions, from, to);
      } else {
        mix_tile<1, 1>(values + r, stride, positions, from, to);
      }
      r += width * lanes;
    }
    t += n;
  }
}

void attend_head(const HeadAttention& head, float* scratch) {
  const std::size_t positions = head.context + head.tokens - 1;
  const std::size_t padded = round_up(positions, panel_rows);
  const TokenRows<float> scores{scratch, padded};
  const Panels keys{
      head.keys, traces::ElementType::f32, panel_rows * head.head_size, panel_rows, panel_rows, padded, head.head_size};
  multiply_panels(keys, 0, keys.count(), head.tokens, head.query, scores, false);

  std::array<float, most_attention_tokens> sums;
  for (std::size_t t = 0; t < head.tokens; ++t) {
    sums[t] = exponentials(scores.row(t), head.context + t, padded, head.scale);
  }

  const TokenRows<float> mixed{scratch + head.tokens * padded, head.value_stride};
  // Positions up to the next multiple of 4 have weight 0.
  mix_values(head.values, head.value_stride, round_up(positions, 4), head.tokens, {scores.data, padded}, mixed);
  for (std::size_t t = 0; t < head.tokens; ++t) {
    for (std::size_t i = 0; i < head.head_size; ++i) head.out.row(t)[i] = mixed.row(t)[i] / sums[t];
  }
}

void rms_norm_lanes(const float* x, const float* weight, float epsilon, float* out, std::size_t n) {
  constexpr std::size_t vectors = line_floats / lanes;
  FloatVector sum[vectors];
  for (auto& s : sum) s = hn::Zero(float_tag);
  for (std::size_t i = 0; i < n; i += line_floats) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const FloatVector part = hn::Load(float_tag, x + i + v * lanes);
      sum[v] = hn::MulAdd(part, part, sum[v]);
    }
  }
  HWY_ALIGN float line[line_floats];
  for (std::size_t v = 0; v < vectors; ++v) hn::Store(sum[v], float_tag, line + v * lanes);
  const auto scale = hn::Set(float_tag, 1 / std::sqrt(sum_of_line(line) / static_cast<float>(n) + epsilon));
  for (std::size_t i = 0; i < n; i += lanes) {
    const FloatVector scaled = hn::Mul(hn::Load(float_tag, x + i), scale);
    hn::Store(hn::Mul(scaled, hn::Load(float_tag, weight + i)), float_tag, out + i);
  }
}

/// x * sigmoid(z). The exponential is kept finite; the sigmoid is then below 1e-38 instead of 0.
FloatVector times_sigmoid(FloatVector x, FloatVector z) {
  const FloatVector e = hn::Exp(float_tag, hn::Min(hn::Neg(z), hn::Set(float_tag, 88.0F)));
  return hn::Div(x, hn::Add(hn::Set(float_tag, 1.0F), e));
}

void swish_gate_lanes(const float* gate, const float* up, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; i += lanes) {
    const FloatVector x = hn::LoadU(float_tag, gate + i);
    hn::StoreU(hn::Mul(times_sigmoid(x, x), hn::LoadU(float_tag, up + i)), float_tag, out + i);
  }
}

void gelu_tanh_lanes(const float* in, float* out, std::size_t n) {
  const FloatVector linear = hn::Set(float_tag, 1.5957691216057308F);  // 2 sqrt(2/pi)
  const FloatVector cubic = hn::Set(float_tag, 0.044715F);
  const FloatVector one = hn::Set(float_tag, 1.0F);
  for (std::size_t i = 0; i < n; i += lanes) {
    const FloatVector x = hn::LoadU(float_tag, in + i);
    const FloatVector z = hn::Mul(hn::Mul(linear, x), hn::MulAdd(cubic, hn::Mul(x, x), one));
    hn::StoreU(times_sigmoid(x, z), float_tag, out + i);
  }
}

using DoubleTag = hn::CappedTag<double, line_floats / 2>;
constexpr DoubleTag double_tag;
constexpr std::size_t double_lanes = hn::MaxLanes(double_tag);
constexpr hn::Rebind<float, DoubleTag> half_tag;

float largest(const float* values, std::size_t n) {
  FloatVector most = hn::Set(float_tag, values[0]);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) most = hn::Max(most, hn::LoadU(float_tag, values + i));
  float result = hn::GetLane(hn::MaxOfLanes(float_tag, most));
  for (; i < n; ++i) result = std::max(result, values[i]);
  return result;
}

/// values[i] = exp(values[i] - most); returns their sum. `n` is a multiple of 8.
double shifted_exponentials(float* values, std::size_t n, float most) {
  constexpr std::size_t stride = line_floats / 2;
  constexpr std::size_t vectors = stride / double_lanes;
  const auto shift = hn::Set(half_tag, most);
  const auto least = hn::Set(half_tag, -104.0F);
  hn::Vec<DoubleTag> sum[vectors];
  for (auto& s : sum) s = hn::Zero(double_tag);
  for (std::size_t i = 0; i < n; i += stride) {
    for (std::size_t v = 0; v < vectors; ++v) {
      float* at = values + i + v * double_lanes;
      const auto e = hn::Exp(half_tag, hn::Max(hn::Sub(hn::LoadU(half_tag, at), shift), least));
      hn::StoreU(e, half_tag, at);
      sum[v] = hn::Add(sum[v], hn::PromoteTo(double_tag, e));
    }
  }
  HWY_ALIGN double line[stride];
  for (std::size_t v = 0; v < vectors; ++v) hn::Store(sum[v], double_tag, line + v * double_lanes);
  return ((line[0] + line[4]) + (line[2] + line[6])) + ((line[1] + line[5]) + (line[3] + line[7]));
}

void softmax_row(float* logits, double* out, std::size_t n) {
  constexpr std::size_t stride = line_floats / 2;
  const std::size_t whole = n / stride * stride;
  const float most = largest(logits, n);
  double sum = shifted_exponentials(logits, whole, most);
  float rest[stride];
  std::fill(std::copy(logits + whole, logits + n, rest), std::end(rest), -FLT_MAX);
  shifted_exponentials(rest, stride, most);
  for (std::size_t i = whole; i < n; ++i) sum += double{rest[i - whole]};

  const double factor = 1 / sum;
  const auto factors = hn::Set(double_tag, factor);
  for (std::size_t i = 0; i < whole; i += double_lanes) {
    hn::StoreU(hn::Mul(hn::PromoteTo(double_tag, hn::LoadU(half_tag, logits + i)), factors), double_tag, out + i);
  }
  for (std::size_t i = whole; i < n; ++i) out[i] = double{rest[i - whole]} * factor;
}

bool all_finite_lanes(const float* values, std::size_t n) {
  // x - x is 0 exactly if x is finite, else NaN, which a sum preserves.
  FloatVector differences = hn::Zero(float_tag);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const FloatVector x = hn::LoadU(float_tag, values + i);
    differences = hn::Add(differences, hn::Sub(x, x));
  }
  float rest = hn::GetLane(hn::SumOfLanes(float_tag, differences));
  for (; i < n; ++i) rest += values[i] - values[i];
  return rest == 0;
}

}  // namespace
}  // namespace specdec::sim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::sim {
namespace {

HWY_EXPORT(multiply_panels);
HWY_EXPORT(attend_head);
HWY_EXPORT(rms_norm_lanes);
HWY_EXPORT(swish_gate_lanes);
HWY_EXPORT(gelu_tanh_lanes);
HWY_EXPORT(softmax_row);
HWY_EXPORT(all_finite_lanes);

}  // namespace

void multiply(const Panels& matrix, std::size_t first, std::size_t last, std::size_t tokens, TokenRows<const float> x,
              TokenRows<float> y, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(multiply_panels)(matrix, first, last, tokens, x, y, accumulate);
}

std::size_t attention_scratch(std::size_t tokens, std::size_t positions, std::size_t value_stride) {
  return tokens * (round_up(positions, panel_rows) + value_stride);
}

void attend(const HeadAttention& head, std::span<float> scratch) {
  HWY_DYNAMIC_DISPATCH(attend_head)(head, scratch.data());
}

void rms_norm(const float* x, const float* weight, float epsilon, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(rms_norm_lanes)(x, weight, epsilon, out, n);
}

void swish_gate(const float* gate, const float* up, float* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(swish_gate_lanes)(gate, up, out, n);
}

void gelu_tanh(const float* x, float* out, std::size_t n) { HWY_DYNAMIC_DISPATCH(gelu_tanh_lanes)(x, out, n); }

bool all_finite(std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(all_finite_lanes)(values.data(), values.size());
}

void softmax(std::span<float> logits, std::span<double> out) {
  HWY_DYNAMIC_DISPATCH(softmax_row)(logits.data(), out.data(), logits.size());
}

}  // namespace specdec::sim
#endif
