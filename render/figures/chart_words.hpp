#pragma once

#include <string>

#include "analysis/estimate/estimate.hpp"

namespace specdec::render {

/// As with_interval, with a drawing's sign: "1.97 ±0.04".
std::string estimate_label(const estimate::Estimate& estimate, int decimals);

}  // namespace specdec::render
