#pragma once

#include <Eigen/Dense>
#include <cmath>

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// What simulated worlds give, by what formulas expect of them and by the seconds of a prompt, which the formulas
/// spread over all tokens alike: least squares, that leave to the formulas what too few worlds tell.
///
///   ln(given) = a + b ln(expected) + c ln(prompt),   all over the answer's own world
class LoadCorrection {
 public:
  /// A simulated world; ratios to the answer's own, > 0.
  void add(double expected, double prompt, double given) {
    const Eigen::Vector3d x = terms(expected, prompt);
    // Beyond the formulas' own, a = 0, b = 1, c = 0.
    const double y = std::log(given / expected);
    products_ += x * x.transpose();
    moments_ += x * y;
    squares_ += y * y;
    count_ += 1;
  }

  /// What such a world gives, over the answer's own.
  double at(double expected, double prompt) const {
    return expected * std::exp(terms(expected, prompt).dot(solution()));
  }

  /// Standard deviation of ln(given) about it.
  double scatter() const {
    if (count_ < 4) return 0;
    const Eigen::Vector3d b = solution();
    const double left = squares_ - 2 * b.dot(moments_) + b.dot(products_ * b);
    return std::sqrt(std::max(0.0, left) / (count_ - 3));
  }

 private:
  static Eigen::Vector3d terms(double expected, double prompt) { return {1, std::log(expected), std::log(prompt)}; }
  Eigen::Vector3d solution() const {
    constexpr double ridge = 1e-3;
    return (products_ + ridge * Eigen::Matrix3d::Identity()).ldlt().solve(moments_);
  }

  Eigen::Matrix3d products_ = Eigen::Matrix3d::Zero();
  Eigen::Vector3d moments_ = Eigen::Vector3d::Zero();
  double squares_ = 0, count_ = 0;
};

}  // namespace specdec::sim
