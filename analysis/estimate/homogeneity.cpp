#include "analysis/estimate/homogeneity.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <vector>

namespace specdec::estimate {
namespace {

/// With fewer expected outcomes of a kind the statistic does not follow the chi-square law.
constexpr double least_expected_count = 5;

/// Examined drafts.
struct Trials {
  double looked_at = 0, accepted = 0;
  /// First and last of their positions.
  std::int64_t first = 1, last = 1;
};

/// The positions, with neighbours merged until one rate expects enough of both outcomes; the remainder at the end
/// joins the last cell.
std::vector<Trials> cells_of(const RoundMoments& moments, double alpha) {
  std::vector<Trials> cells;
  Trials open;
  for (std::int64_t j = 1; j <= moments.positions(); ++j) {
    open.looked_at += moments.evaluated(j);
    open.accepted += moments.accepted(j);
    open.last = j;
    if (open.looked_at * std::min(alpha, 1 - alpha) < least_expected_count) continue;
    cells.push_back(open);
    open = {0, 0, j + 1, j + 1};
  }
  if (!cells.empty()) {
    cells.back().looked_at += open.looked_at;
    cells.back().accepted += open.accepted;
    cells.back().last = moments.positions();
  }
  return cells;
}

/// Adds the change of the rate of a cell's trials to a gradient over the positions' rates.
void add_cell(const RoundMoments& moments, const Trials& cell, double factor, std::vector<double>& gradient) {
  for (std::int64_t j = cell.first; j <= cell.last; ++j) {
    gradient[static_cast<std::size_t>(j - 1)] += factor * moments.evaluated(j) / cell.looked_at;
  }
}

/// The covariances over clusters of the cells' deviations from the common rate, in standard errors of independent
/// rounds; empty for fewer than two clusters.
/// Shape: (cells, cells)
std::vector<double> deviations_over_clusters(const RoundMoments& moments, const std::vector<Trials>& cells,
                                             double alpha) {
  double trials = 0;
  for (const Trials& cell : cells) trials += cell.looked_at;
  std::vector<std::vector<double>> gradients;
  for (const Trials& cell : cells) {
    std::vector<double>& gradient = gradients.emplace_back(static_cast<std::size_t>(moments.positions()));
    const double scale = std::sqrt(cell.looked_at / (alpha * (1 - alpha)));
    add_cell(moments, cell, scale, gradient);
    for (const Trials& other : cells) add_cell(moments, other, -scale * other.looked_at / trials, gradient);
  }
  const auto variance_of = [&](const std::vector<double>& gradient) {
    const auto error = moments.standard_error(gradient);
    return error ? error->value * error->value : 0;
  };
  if (!moments.standard_error(gradients.front())) return {};
  std::vector<double> covariances(cells.size() * cells.size());
  for (std::size_t a = 0; a < cells.size(); ++a) {
    for (std::size_t b = 0; b < cells.size(); ++b) {
      std::vector<double> sum = gradients[a], difference = gradients[a];
      for (std::size_t j = 0; j < sum.size(); ++j) {
        sum[j] += gradients[b][j];
        difference[j] -= gradients[b][j];
      }
      covariances[a * cells.size() + b] = (variance_of(sum) - variance_of(difference)) / 4;
    }
  }
  return covariances;
}

void find_p_value(const RoundMoments& moments, const std::vector<Trials>& cells, double alpha, HomogeneityTest& test) {
  const auto degrees = static_cast<double>(test.degrees_of_freedom);
  const boost::math::chi_squared law(degrees);
  test.p_value = boost::math::cdf(boost::math::complement(law, test.chi_square));
  double sum = 0, squares = 0;
  const std::vector<double> covariances = deviations_over_clusters(moments, cells, alpha);
  for (const double covariance : covariances) squares += covariance * covariance;
  for (std::size_t i = 0; i < covariances.size(); i += cells.size() + 1) sum += covariances[i];
  if (!(squares > 0)) return;
  test.design_effect = sum / degrees;
  if (*test.design_effect <= 1) return;
  const double freedom = sum * sum / squares;
  const boost::math::fisher_f over_clusters(freedom, freedom * static_cast<double>(moments.clusters() - 1));
  test.p_value = boost::math::cdf(boost::math::complement(over_clusters, test.chi_square / sum));
}

}  // namespace

std::optional<HomogeneityTest> homogeneity_test(const RoundMoments& moments, double alpha) {
  if (!(0 < alpha && alpha < 1)) return std::nullopt;
  const std::vector<Trials> cells = cells_of(moments, alpha);
  if (cells.size() < 2) return std::nullopt;
  HomogeneityTest test;
  test.degrees_of_freedom = std::ssize(cells) - 1;
  for (const Trials& cell : cells) {
    test.chi_square += std::pow(cell.accepted - alpha * cell.looked_at, 2) / (cell.looked_at * alpha * (1 - alpha));
  }
  find_p_value(moments, cells, alpha, test);
  return test;
}

}  // namespace specdec::estimate
