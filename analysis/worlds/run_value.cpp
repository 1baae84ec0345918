#include "analysis/worlds/run_value.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::worlds {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct RunValues::Losses {
  /// Of each table (worlds, options).
  std::vector<MatrixXd> by_table;

  Index worlds() const { return by_table.front().rows(); }
};

namespace {

MatrixXd losses_of(const Table& speedups, double min_gain) {
  const auto worlds = static_cast<Index>(speedups.worlds()), options = static_cast<Index>(speedups.options.size());
  MatrixXd speeds(worlds, options);
  for (Index option = 0; option < options; ++option)
    speeds.col(option) = Eigen::Map<const VectorXd>(speedups.options[static_cast<std::size_t>(option)].data(), worlds);
  speeds.col(0).array() = 1 + min_gain;
  const VectorXd best = speeds.rowwise().maxCoeff();
  return 1 - speeds.array().colwise() / best.array();
}

/// 1, y, and all squares and products, of figures with mean 0 and variance 1.
MatrixXd features_of(const std::vector<std::vector<double>>& outcomes, Index worlds) {
  const auto figures = static_cast<Index>(outcomes.size());
  MatrixXd scaled(worlds, figures);
  for (Index i = 0; i < figures; ++i) {
    const VectorXd values = Eigen::Map<const VectorXd>(outcomes[static_cast<std::size_t>(i)].data(), worlds);
    const VectorXd centred = values.array() - values.mean();
    const double spread = std::sqrt(centred.squaredNorm() / static_cast<double>(worlds));
    scaled.col(i) = spread > 0 ? VectorXd(centred / spread) : VectorXd::Zero(worlds);
  }
  MatrixXd features(worlds, 1 + figures + figures * (figures + 1) / 2);
  features.col(0).setOnes();
  features.middleCols(1, figures) = scaled;
  Index at = 1 + figures;
  for (Index i = 0; i < figures; ++i)
    for (Index j = i; j < figures; ++j) features.col(at++) = scaled.col(i).cwiseProduct(scaled.col(j));
  return features;
}

}  // namespace

RunValues::RunValues(std::span<const Table> speedups, double min_gain) {
  if (speedups.empty()) throw std::invalid_argument("RunValues: there are no tables");
  auto losses = std::make_unique<Losses>();
  for (const Table& table : speedups) {
    core::require_same_size("RunValues", "the worlds", table.worlds(), "those of the first table",
                            speedups.front().worlds());
    losses->by_table.push_back(losses_of(table, min_gain));
  }
  losses_ = std::move(losses);
}

RunValues::~RunValues() = default;
RunValues::RunValues(RunValues&&) noexcept = default;

double RunValues::regret() const {
  double sum = 0;
  for (const MatrixXd& losses : losses_->by_table) sum += losses.colwise().mean().minCoeff();
  return sum / static_cast<double>(losses_->by_table.size());
}

double RunValues::saved_by(const std::vector<std::vector<double>>& outcomes) const {
  const MatrixXd features = features_of(outcomes, losses_->worlds());
  const double ridge = 1e-9 * static_cast<double>(losses_->worlds());
  const MatrixXd squares =
      features.transpose() * features + ridge * MatrixXd::Identity(features.cols(), features.cols());
  const Eigen::LDLT<MatrixXd> solver(squares);
  double saved = 0;
  for (const MatrixXd& losses : losses_->by_table) {
    const MatrixXd expected = features * solver.solve(features.transpose() * losses);
    double after = 0;
    for (Index world = 0; world < losses.rows(); ++world) {
      Index option = 0;
      expected.row(world).minCoeff(&option);
      after += losses(world, option);
    }
    saved += losses.colwise().mean().minCoeff() - after / static_cast<double>(losses.rows());
  }
  return std::max(0.0, saved / static_cast<double>(losses_->by_table.size()));
}

}  // namespace specdec::worlds
