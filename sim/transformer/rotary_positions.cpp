#include "sim/transformer/rotary_positions.hpp"

#include <cmath>
#include <numbers>

namespace specdec::sim {
namespace {

/// Long wavelengths are stretched by the factor, short ones kept, those in between interpolated.
float scaled(float frequency, const Llama3RopeScaling& scaling) {
  const auto factor = static_cast<float>(scaling.factor);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto high = static_cast<float>(scaling.high_freq_factor);
  const auto trained_length = static_cast<float>(scaling.original_max_position_embeddings);
  const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
  if (wavelength > trained_length / low) return frequency / factor;
  if (wavelength < trained_length / high) return frequency;
  const float kept = (trained_length / wavelength - low) / (high - low);
  return (1 - kept) * frequency / factor + kept * frequency;
}

}  // namespace

RotaryPositions::RotaryPositions(const TransformerConfig& config) {
  for (std::int64_t i = 0; i < config.head_size; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(config.head_size);
    const float frequency = 1 / std::pow(static_cast<float>(config.rope_theta), exponent);
    frequencies_.push_back(config.rope_scaling ? scaled(frequency, *config.rope_scaling) : frequency);
  }
}

void RotaryPositions::reserve(std::size_t positions) {
  for (std::size_t p = cosines_.size() / frequencies_.size(); p < positions; ++p) {
    for (const float frequency : frequencies_) {
      const float angle = static_cast<float>(p) * frequency;
      cosines_.push_back(std::cos(angle));
      sines_.push_back(std::sin(angle));
    }
  }
}

void RotaryPositions::rotate(std::size_t position, std::size_t heads, float* x) const {
  const std::size_t half = frequencies_.size();
  const float* cosine = cosines_.data() + position * half;
  const float* sine = sines_.data() + position * half;
  for (std::size_t h = 0; h < heads; ++h, x += 2 * half) {
    for (std::size_t i = 0; i < half; ++i) {
      const float a = x[i];
      const float b = x[i + half];
      x[i] = a * cosine[i] - b * sine[i];
      x[i + half] = b * cosine[i] + a * sine[i];
    }
  }
}

}  // namespace specdec::sim
