#pragma once

#include <utility>

namespace specdec::core {

/// Both sides of the place where a condition ceases to hold, by halving what lies between: it holds at `low` and not at
/// `high`, whichever is larger. After 100 halvings they have every digit.
template <class Holds>
std::pair<double, double> bisected(double low, double high, const Holds& holds, int halvings = 100) {
  for (int i = 0; i < halvings; ++i) {
    const double middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return {low, high};
}

}  // namespace specdec::core
