#include "sim/transformer/kernels.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "sim/transformer/packed_matrix.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using sim::AlignedBytes;
using sim::AlignedFloats;
using sim::PackedMatrix;
using sim::round_up;
using traces::ElementType;

namespace {

std::vector<float> normals(std::size_t n, unsigned seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(n);
  for (float& v : values) v = normal(generator);
  return values;
}

/// A random matrix, packed and plain.
struct Matrix {
  std::size_t rows;
  std::size_t depth;
  std::vector<float> plain = normals(rows * depth, 1);
  AlignedBytes memory = AlignedBytes(PackedMatrix::bytes(rows, depth, ElementType::f32));
  PackedMatrix packed{rows, depth, ElementType::f32, memory.data()};

  Matrix(std::size_t r, std::size_t d) : rows(r), depth(d) { pack(std::as_bytes(std::span(plain))); }
  /// The elements of 16 bits, each of them finite.
  Matrix(std::size_t r, std::size_t d, ElementType type, const std::vector<std::uint16_t>& halves) : rows(r), depth(d) {
    const auto bytes = std::as_bytes(std::span(halves));
    const auto size = static_cast<std::int64_t>(plain.size());
    traces::read_floats({"halves", type, {size}, 0, bytes}, 0, plain);
    packed = PackedMatrix(rows, depth, type, memory.data());
    pack(bytes);
  }

  void pack(std::span<const std::byte> elements) {
    for (std::size_t i = 0; i < rows; ++i) packed.set_row(i, elements.data() + elements.size() / rows * i);
  }
};

/// Runs f once for every vector unit that this machine and compiler have.
void on_every_target(const std::function<void(std::int64_t target)>& f) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    CAPTURE(hwy::TargetName(target));
    f(target);
  }
  hwy::SetSupportedTargetsForTest(0);
}

std::vector<float> product(const Matrix& matrix, const AlignedFloats& x, std::size_t tokens, bool accumulate) {
  const auto panels = matrix.packed.panels();
  std::vector<float> y(tokens * panels.rows, accumulate ? 0.5F : -7.0F);
  sim::multiply(panels, 0, panels.count(), tokens, {x.data(), matrix.depth}, {y.data(), panels.rows}, accumulate);
  return y;
}

/// out = sum over s < context of softmax(q . k_s * scale) v_s, in double.
std::vector<double> plain_attention(const float* query, const std::vector<float>& keys,
                                    const std::vector<float>& values, std::size_t size, std::size_t context,
                                    double scale) {
  std::vector<double> weights(context);
  double sum = 0;
  for (std::size_t s = 0; s < context; ++s) {
    double dot = 0;
    for (std::size_t i = 0; i < size; ++i) dot += double{query[i]} * double{keys[s * size + i]};
    weights[s] = std::exp(dot * scale);
    sum += weights[s];
  }
  std::vector<double> out(size);
  for (std::size_t s = 0; s < context; ++s) {
    for (std::size_t i = 0; i < size; ++i) out[i] += weights[s] / sum * double{values[s * size + i]};
  }
  return out;
}

}  // namespace

TEST_CASE("a packed product agrees with the definition, for whole, half and partial panels, on every vector unit") {
  on_every_target([](std::int64_t) {
    for (const std::size_t rows : {1, 16, 17, 32, 33, 48, 67, 144}) {
      for (const std::size_t tokens : {1, 2, 5, 13, 30}) {
        const Matrix matrix(rows, 29);
        const auto plain_x = normals(tokens * matrix.depth, 2);
        const auto y = product(matrix, {plain_x.begin(), plain_x.end()}, tokens, false);
        const auto added = product(matrix, {plain_x.begin(), plain_x.end()}, tokens, true);
        double worst = 0;
        for (std::size_t t = 0; t < tokens; ++t) {
          for (std::size_t r = 0; r < rows; ++r) {
            double expected = 0;
            for (std::size_t k = 0; k < matrix.depth; ++k) {
              expected += double{matrix.plain[r * matrix.depth + k]} * double{plain_x[t * matrix.depth + k]};
            }
            const std::size_t at = t * matrix.packed.padded_rows() + r;
            worst = std::max({worst, std::abs(double{y[at]} - expected), std::abs(double{added[at]} - 0.5 - expected)});
          }
        }
        CAPTURE(rows, tokens);
        CHECK(worst < 1e-5);  // 29 terms of about 1: 29 * 2^-24 of their absolute sum, about 20
      }
    }
  });
}

TEST_CASE("a token's product has the same bits in any block, in any split of the panels, from rows or from columns") {
  on_every_target([](std::int64_t) {
    const Matrix matrix(176, 75);
    const std::size_t most = 30;
    const auto plain_x = normals(most * matrix.depth, 3);
    const AlignedFloats x(plain_x.begin(), plain_x.end());
    const auto all = product(matrix, x, most, false);
    for (std::size_t tokens = 1; tokens < most; ++tokens) {
      const auto some = product(matrix, x, tokens, false);
      CHECK(std::equal(some.begin(), some.end(), all.begin()));
    }
    const auto panels = matrix.packed.panels();
    std::vector<float> split(all.size());
    for (std::size_t p = 0; p < panels.count(); ++p) {
      sim::multiply(panels, p, p + 1, most, {x.data(), matrix.depth}, {split.data(), panels.rows}, false);
    }
    CHECK(split == all);

    Matrix from_columns(176, 75);
    std::fill(from_columns.memory.begin(), from_columns.memory.end(), std::byte{0});
    for (std::size_t k = 0; k < matrix.depth; ++k) {
      std::vector<float> column(matrix.rows);
      for (std::size_t r = 0; r < matrix.rows; ++r) column[r] = matrix.plain[r * matrix.depth + k];
      from_columns.packed.set_column(k, std::as_bytes(std::span(column)).data());
    }
    CHECK(product(from_columns, x, most, false) == all);
  });
}

TEST_CASE("products of weights of 16 bits have the bits of the same weights in 32") {
  on_every_target([](std::int64_t) {
    for (const ElementType type : {ElementType::f16, ElementType::bf16}) {
      for (const std::size_t rows : {16, 33, 176}) {
        std::mt19937 generator(7);
        std::vector<std::uint16_t> halves(rows * 75);
        // Exponents of f16 and bf16 around 1, subnormal numbers of f16, and 0.
        for (std::uint16_t& half : halves) half = static_cast<std::uint16_t>(generator() & 0xBFFFU);
        halves[0] = 0;
        halves[1] = 1;
        const Matrix matrix(rows, 75, type, halves);
        Matrix whole(rows, 75);
        whole.pack(std::as_bytes(std::span(matrix.plain)));
        for (const std::size_t tokens : {1, 2, 13}) {
          const auto plain_x = normals(tokens * 75, 3);
          const AlignedFloats x(plain_x.begin(), plain_x.end());
          CHECK(product(matrix, x, tokens, false) == product(whole, x, tokens, false));
        }
      }
    }
  });
}

TEST_CASE("attention agrees with the definition, and a token's has the same bits in any block") {
  on_every_target([](std::int64_t) {
    for (const std::size_t size : {8, 12, 24, 32, 48, 80}) {
      for (const std::size_t context : {1, 2, 31, 32, 33, 100}) {
        CAPTURE(size, context);
        const std::size_t most = sim::most_attention_tokens;
        const std::size_t positions = context + most - 1;
        const auto plain_keys = normals(positions * size, 4);
        const auto plain_values = normals(positions * size, 5);
        const std::size_t stride = round_up(size, sim::line_floats);
        AlignedFloats keys(round_up(positions, sim::panel_rows) * size, 9.0F);
        AlignedFloats values(round_up(positions, 4) * stride);
        for (std::size_t s = 0; s < positions; ++s) {
          for (std::size_t i = 0; i < size; ++i) {
            keys[s / 32 * 32 * size + i * 32 + s % 32] = plain_keys[s * size + i];
            values[s * stride + i] = plain_values[s * size + i];
          }
        }
        const auto query = normals(most * size, 6);
        const float scale = 0.3F;
        const auto run = [&](std::size_t first, std::size_t tokens) {
          std::vector<float> out(tokens * size);
          AlignedFloats scratch(sim::attention_scratch(tokens, context + first + tokens - 1, stride), -1.0F);
          sim::attend({.keys = keys.data(),
                       .values = values.data(),
                       .value_stride = stride,
                       .head_size = size,
                       .scale = scale,
                       .context = context + first,
                       .tokens = tokens,
                       .query = {query.data() + first * size, size},
                       .out = {out.data(), size}},
                      scratch);
          return out;
        };
        const auto together = run(0, most);
        double worst = 0;
        for (std::size_t t = 0; t < most; ++t) {
          const auto expected =
              plain_attention(query.data() + t * size, plain_keys, plain_values, size, context + t, double{scale});
          const auto alone = run(t, 1);
          CHECK(std::equal(alone.begin(), alone.end(), together.begin() + static_cast<std::ptrdiff_t>(t * size)));
          for (std::size_t i = 0; i < size; ++i) worst = std::max(worst, std::abs(double{alone[i]} - expected[i]));
        }
        CHECK(worst < 2e-5);
      }
    }
  });
}

TEST_CASE("attention survives scores far beyond the range of exp") {
  on_every_target([](std::int64_t) {
    const std::size_t size = 16;
    AlignedFloats keys(32 * size);
    AlignedFloats values(4 * size);
    for (std::size_t s = 0; s < 3; ++s) {
      keys[s] = 1e4F * static_cast<float>(s);  // first component of each key
      values[s * size] = static_cast<float>(s + 1);
    }
    const std::vector<float> query(size, 1.0F);
    std::vector<float> out(size);
    AlignedFloats scratch(sim::attention_scratch(1, 3, size));
    sim::attend({keys.data(), values.data(), size, size, 1.0F, 3, 1, {query.data(), size}, {out.data(), size}},
                scratch);
    CHECK(out[0] == 3);
  });
}

TEST_CASE("the norm agrees with its formula") {
  on_every_target([](std::int64_t) {
    for (const std::size_t n : {1, 15, 16, 40, 288}) {
      const auto plain = normals(n, 10, 3);
      AlignedFloats x(round_up(n, 16));
      AlignedFloats weight(x.size());
      std::copy(plain.begin(), plain.end(), x.begin());
      for (std::size_t i = 0; i < n; ++i) weight[i] = 1 + 0.01F * static_cast<float>(i);
      AlignedFloats out(x.size());
      sim::rms_norm(x.data(), weight.data(), 1e-5F, out.data(), n);
      double squares = 0;
      for (const float v : plain) squares += double{v} * double{v};
      for (std::size_t i = 0; i < n; ++i) {
        const double expected =
            double{plain[i]} / std::sqrt(squares / static_cast<double>(n) + 1e-5) * double{weight[i]};
        CHECK(out[i] == Approx(expected).epsilon(1e-6));
      }
    }
  });
}

TEST_CASE("activations agree with their formulas, in the tails too") {
  on_every_target([](std::int64_t) {
    const std::size_t n = 4001;
    AlignedFloats x(round_up(n, 16));
    AlignedFloats up(round_up(n, 16), -1.25F);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) / 20.0F - 100;
    AlignedFloats swish(x.size());
    AlignedFloats gelu(x.size());
    sim::swish_gate(x.data(), up.data(), swish.data(), n);
    sim::gelu_tanh(x.data(), gelu.data(), n);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double v = x[i];
      const double expected_swish = -1.25 * v / (1 + std::exp(-v));
      const double expected_gelu = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      worst = std::max(worst, std::abs(double{swish[i]} - expected_swish) / std::max(1.0, std::abs(v)));
      worst = std::max(worst, std::abs(double{gelu[i]} - expected_gelu) / std::max(1.0, std::abs(v)));
    }
    CHECK(worst < 5e-7);
  });
}

TEST_CASE("probabilities have relative error below 3e-7 + 6e-8 (max - logit) and sum to 1 within 1e-12") {
  on_every_target([](std::int64_t) {
    for (const std::size_t n : {1, 2, 7, 8, 9, 61, 2048, 50257}) {
      for (const float scale : {0.01F, 3.0F, 20.0F}) {
        CAPTURE(n, scale);
        const auto logits = normals(n, 7, scale);
        std::vector<double> found(n, -1);
        auto copy = logits;
        sim::softmax(copy, found);
        const double most = *std::max_element(logits.begin(), logits.end());
        long double sum = 0;
        for (const float l : logits) sum += std::exp(static_cast<long double>(double{l} - most));
        double worst = 0;
        long double total = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const auto expected = static_cast<double>(std::exp(static_cast<long double>(double{logits[i]} - most)) / sum);
          const double below = most - double{logits[i]};
          if (below < 87) worst = std::max(worst, std::abs(found[i] / expected - 1) / (3e-7 + 6e-8 * below));
          total += found[i];
        }
        CHECK(worst < 1);
        CHECK(std::abs(static_cast<double>(total - 1)) < 1e-12);
      }
    }
  });
}

TEST_CASE("probabilities far below the largest are 0 or positive, never NaN") {
  on_every_target([](std::int64_t) {
    std::vector<float> logits = {3e38F, -3e38F, 0, 3e38F - 1e32F};
    std::vector<double> row(logits.size());
    sim::softmax(logits, row);
    CHECK(row == std::vector<double>{1, 0, 0, 0});
  });
}

TEST_CASE("one value that is not finite is found wherever it stands") {
  on_every_target([](std::int64_t) {
    for (std::size_t i = 0; i < 37; ++i) {
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        std::vector<float> values(37, 3e38F);
        CHECK(sim::all_finite(values));
        values[i] = bad;
        CHECK_FALSE(sim::all_finite(values));
      }
    }
  });
}

TEST_CASE("all vector units with fused multiply-add give the same bits") {
  const Matrix matrix(176, 75);
  const auto plain_x = normals(7 * matrix.depth, 8);
  const AlignedFloats x(plain_x.begin(), plain_x.end());
  const auto logits = normals(1001, 9, 5);
  std::vector<std::vector<float>> products;
  std::vector<std::vector<double>> rows;
  std::vector<AlignedFloats> activations;
  on_every_target([&](std::int64_t target) {
    if ((target & (HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL)) == 0) return;
    products.push_back(product(matrix, x, 7, false));
    rows.emplace_back(logits.size());
    auto copy = logits;
    sim::softmax(copy, rows.back());
    activations.emplace_back(x.size() / 16 * 16);
    sim::gelu_tanh(x.data(), activations.back().data(), activations.back().size());
  });
  for (std::size_t i = 1; i < products.size(); ++i) {
    CHECK(products[i] == products[0]);
    CHECK(rows[i] == rows[0]);
    CHECK(activations[i] == activations[0]);
  }
}
