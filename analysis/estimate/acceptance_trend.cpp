#include "analysis/estimate/acceptance_trend.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "analysis/core/tails.hpp"
#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/neighbour_correlation.hpp"

namespace specdec::estimate {
namespace {

/// Both forms of a change are tried.
constexpr double forms = 2;

/// A fit of two numbers to the cells: their tokens per step, with what is left.
struct Fit {
  double before = 0, after = 0, squares = INFINITY;
  /// Variance of after - before / the cells' own.
  double leverage = 0;
  std::size_t first_after = 0;
  std::vector<double> residuals;
};

double tokens(const TrendCell& cell) { return 1 + cell.accepted / cell.rounds; }

struct Part {
  double rounds = 0, tokens = 0;
  explicit Part(std::span<const TrendCell> cells) {
    for (const TrendCell& cell : cells) {
      rounds += cell.rounds;
      tokens += cell.accepted + cell.rounds;
    }
  }
  double mean() const { return tokens / rounds; }
};

template <class Fitted>
void leave_residuals(std::span<const TrendCell> cells, const Fitted& fitted, Fit& fit) {
  fit.squares = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    fit.residuals.push_back(std::sqrt(cells[i].rounds) * (tokens(cells[i]) - fitted(i)));
    fit.squares += fit.residuals.back() * fit.residuals.back();
  }
}

Fit line_through(std::span<const TrendCell> cells, double mean) {
  double rounds = 0, places = 0, products = 0, squares = 0;
  for (const TrendCell& cell : cells) {
    rounds += cell.rounds;
    places += cell.rounds * cell.place;
  }
  const double middle = places / rounds;
  for (const TrendCell& cell : cells) {
    products += cell.rounds * (cell.place - middle) * (tokens(cell) - mean);
    squares += cell.rounds * (cell.place - middle) * (cell.place - middle);
  }
  const double slope = products / squares;
  const double length = cells.back().place - cells.front().place;
  Fit fit;
  fit.before = mean + slope * (cells.front().place - middle);
  fit.after = mean + slope * (cells.back().place - middle);
  fit.leverage = length * length / squares;
  leave_residuals(cells, [&](std::size_t i) { return mean + slope * (cells[i].place - middle); }, fit);
  return fit;
}

/// Each part has two cells or more.
Fit best_jump(std::span<const TrendCell> cells) {
  Fit best;
  for (std::size_t k = 2; k + 2 <= cells.size(); ++k) {
    const Part before(cells.first(k)), after(cells.subspan(k));
    Fit fit;
    fit.before = before.mean();
    fit.after = after.mean();
    fit.first_after = k;
    fit.leverage = 1 / before.rounds + 1 / after.rounds;
    leave_residuals(cells, [&](std::size_t i) { return i < k ? fit.before : fit.after; }, fit);
    if (fit.squares < best.squares) best = std::move(fit);
  }
  return best;
}

AcceptanceTrend judged(const Fit& fit, double places) {
  const auto cells = static_cast<double>(fit.residuals.size());
  const StandardError independent{std::sqrt(fit.squares / (cells - 2) * fit.leverage), cells - 2};
  const std::vector<std::vector<double>> series = {fit.residuals};
  NeighbourCorrelation neighbours = neighbour_correlation(series);
  // Few cells do not show that neighbours are independent: a request may last several of them.
  constexpr double few_cells = 20, of_few = 0.3;
  if (cells < few_cells) neighbours = {std::max(of_few, neighbours.value), cells};
  const StandardError error = of_neighbours(independent, static_cast<std::int64_t>(cells) - 1, neighbours);
  AcceptanceTrend trend;
  trend.before = std::max(1.0, fit.before);
  trend.after = std::max(1.0, fit.after);
  trend.error = error.value;
  trend.degrees_of_freedom = error.degrees_of_freedom;
  trend.change = fit.after - fit.before;
  trend.p_value = trend.change != 0 ? 0 : 1;
  if (error.value > 0) {
    const double p = 2 * core::t_tail(std::abs(trend.change) / error.value, error.degrees_of_freedom);
    trend.p_value = std::min(1.0, forms * places * p);
  }
  return trend;
}

}  // namespace

bool AcceptanceTrend::stands() const {
  constexpr double one_in_500 = 0.002;
  return p_value < one_in_500 && std::abs(change) >= least_trend * mean;
}

double AcceptanceTrend::least_change(double p) const {
  const boost::math::students_t law(degrees_of_freedom);
  const double found = quantile(complement(law, std::clamp(p / (2 * forms), 1e-12, 0.4)));
  return std::max(least_trend, found * error / mean);
}

std::optional<AcceptanceTrend> acceptance_trend(std::span<const TrendCell> all, bool jumps) {
  std::vector<TrendCell> cells;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cells), [](const auto& cell) { return cell.rounds > 0; });
  if (cells.size() < least_trend_cells || !(cells.back().place > cells.front().place)) return std::nullopt;
  const double mean = Part(cells).mean();
  const Fit line = line_through(cells, mean);
  AcceptanceTrend trend = judged(line, 1);
  if (jumps) {
    const Fit jump = best_jump(cells);
    const AcceptanceTrend parts = judged(jump, static_cast<double>(cells.size() - 3));
    if (parts.p_value < trend.p_value || (parts.p_value == trend.p_value && jump.squares < line.squares)) {
      trend = parts;
      trend.jump = true;
      trend.turn = cells[jump.first_after];
    }
  }
  trend.mean = mean;
  trend.first_place = cells.front().place;
  trend.last_place = cells.back().place;
  return trend;
}

}  // namespace specdec::estimate
