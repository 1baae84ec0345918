#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "analysis/core/checks.hpp"

namespace specdec::core {

/// out[i] = function(parameters[i]...): any scalar function of this library over arrays of its parameters.
///
///   core::evaluate("speedups", std::span(out), theory::oracle_speedup, std::span(rates), std::span(ratios));
///
/// @param name        the name of the evaluation in error messages
/// @param out         one entry per result
/// @param parameters  arrays as long as out
/// @throws std::invalid_argument if a length differs from out's; also anything that the function throws
template <class Result, class Function, class... Parameters>
void evaluate(std::string_view name, std::span<Result> out, Function function, std::span<Parameters>... parameters) {
  (require_same_size(name, "parameter array", parameters.size(), "output", out.size()), ...);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(parameters[i]...);
}

}  // namespace specdec::core
