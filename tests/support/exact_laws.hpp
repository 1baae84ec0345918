#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/theory/tokens.hpp"

namespace specdec::test_support {

/// [k - 1] = P(a step emits k tokens), k = 1..gamma + 1.
inline std::vector<double> tokens_law(const core::AcceptanceProfile& acceptance, std::int64_t gamma) {
  std::vector<double> law;
  for (std::int64_t k = 1; k <= gamma + 1; ++k) law.push_back(theory::tokens_probability(acceptance, gamma, k));
  return law;
}

/// [n] = P(n steps cover a text of T tokens), n = 0..T, token t accepted as a draft with acceptance[t].
inline std::vector<double> steps_law(std::span<const double> acceptance, std::int64_t gamma) {
  const std::size_t length = acceptance.size();
  // at[t][n] = P(n steps cover the text from t)
  std::vector<std::vector<double>> at(length + 1);
  at[length] = {1.0};
  for (std::size_t t = length; t-- > 0;) {
    at[t].assign(length - t + 1, 0.0);
    const auto emit = [&](std::size_t k, double probability) {
      for (std::size_t n = 0; n < at[t + k].size(); ++n) at[t][n + 1] += probability * at[t + k][n];
    };
    const std::size_t drafted = std::min(static_cast<std::size_t>(gamma), length - t - 1);
    double reach = 1;
    for (std::size_t k = 1; k <= drafted; ++k) {
      emit(k, reach * (1 - acceptance[t + k - 1]));
      reach *= acceptance[t + k - 1];
    }
    emit(drafted + 1, reach);
  }
  return at[0];
}

}  // namespace specdec::test_support
