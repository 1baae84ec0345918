#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// ln(simulated) over ln(expected): a parabola by least squares, of few points or parallel ones a line.
class LoadCorrection {
 public:
  LoadCorrection(const std::vector<double>& expected, const std::vector<double>& simulated) {
    std::vector<double> x, y;
    double nothing = 0, something = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (simulated[i] > 0 && expected[i] > 0) {
        x.push_back(std::log(expected[i]));
        y.push_back(std::log(simulated[i]));
        something = std::min(something, expected[i]);
      } else {
        nothing = std::max(nothing, expected[i]);
      }
    }
    if (x.empty()) return;
    least_ = nothing > 0 ? std::sqrt(std::min(nothing, something) * something) : 0;
    fit(x, y);
  }

  /// 0 where it is below what carries any load.
  double at(double expected) const {
    return !terms_.empty() && expected > 0 && expected >= least_ ? std::exp(value_at(std::log(expected))) : 0;
  }
  /// Standard deviation of what it does not tell.
  double scatter() const { return scatter_; }

 private:
  /// By polynomials that are orthogonal over the points.
  void fit(const std::vector<double>& x, std::vector<double> y) {
    const auto count = static_cast<double>(x.size());
    const std::size_t most = x.size() < 5 ? 2 : 3;
    middle_ = std::accumulate(x.begin(), x.end(), 0.0) / count;
    double squares = 0, cubes = 0;
    for (const double one : x) {
      squares += std::pow(one - middle_, 2);
      cubes += std::pow(one - middle_, 3);
    }
    width_ = squares / count;
    lean_ = squares > 0 ? cubes / squares : 0;
    while (terms_.size() < most) {
      const std::size_t term = terms_.size();
      double size = 0, product = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        size += std::pow(polynomial(term, x[i]), 2);
        product += polynomial(term, x[i]) * y[i];
      }
      // The line of points that do not tell it is ln(expected) itself.
      const double slope = size > 1e-12 ? product / size : term == 1 ? 1 : 0;
      terms_.push_back(slope);
      for (std::size_t i = 0; i < x.size(); ++i) y[i] -= slope * polynomial(term, x[i]);
    }
    double left = 0;
    for (const double one : y) left += one * one;
    if (x.size() > most) scatter_ = std::sqrt(left / (count - static_cast<double>(most)));
  }
  double polynomial(std::size_t term, double x) const {
    const double off = x - middle_;
    return term == 0 ? 1 : term == 1 ? off : off * off - lean_ * off - width_;
  }
  double value_at(double x) const {
    double value = 0;
    for (std::size_t term = 0; term < terms_.size(); ++term) value += terms_[term] * polynomial(term, x);
    return value;
  }

  std::vector<double> terms_;
  double middle_ = 0, width_ = 0, lean_ = 0, scatter_ = 0, least_ = 0;
};

}  // namespace specdec::sim
