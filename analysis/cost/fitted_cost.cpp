#include "analysis/cost/fitted_cost.hpp"

#include <fmt/format.h>
#include <Eigen/Dense>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::cost {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

enum Term : std::size_t { fixed, draft_pass, drafted_token, verified_token, context_token };

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest = std::numeric_limits<double>::denorm_min();
/// Within these bounds no product of a run's figures comes near the ends of doubles.
constexpr double least_of_a_run = 1e-12, most_of_a_run = 1e12;
constexpr std::uint32_t weight_stream = 32, vertex_stream = 33;
/// Shares by which batches and contexts may differ and still be compared, and a fit may miss a run.
constexpr double same_point = 0.05;
constexpr double poor_fit = 0.1;
/// What a bound at zero may add to the relative error before it is reported.
constexpr double noticeable_error = 0.01;
/// What rounding leaves of a zero, beside numbers of size 1.
constexpr double rounding = 1e-9;

/// Residuals by which 95% of the replicates are as wide as Student's interval: r_i / (1 - h_i), the error of predicting
/// a run from the others, with h_i the run's leverage among the terms above 0 (HC3 of MacKinnon and White 1985), times
/// the ratio of Student's quantile with n - rank degrees of freedom to the normal one.
/// @param design  (runs, terms)
VectorXd widened_residuals(const MatrixXd& design, const VectorXd& theta, const VectorXd& residuals, Index rank) {
  MatrixXd active(design.rows(), 0);
  for (Index j = 0; j < design.cols(); ++j) {
    if (theta[j] <= 0) continue;
    active.conservativeResize(Eigen::NoChange, active.cols() + 1);
    active.rightCols(1) = design.col(j);
  }
  const Eigen::ColPivHouseholderQR<MatrixXd> qr(active);
  const MatrixXd basis = qr.householderQ() * MatrixXd::Identity(design.rows(), qr.rank());
  const double student =
      boost::math::quantile(boost::math::students_t(static_cast<double>(design.rows() - rank)), 0.975);
  VectorXd widened(residuals.size());
  for (Index i = 0; i < residuals.size(); ++i) {
    // A run that alone tells a term has no residual.
    const double others = 1 - basis.row(i).squaredNorm();
    widened[i] = others > rounding ? residuals[i] / others * student / core::normal_half_width_95 : 0.0;
  }
  return widened;
}

void require_legal(const ObservedRound& run) {
  constexpr std::string_view function = "FittedCost";
  core::require_in(function, "gamma", run.gamma, 0, most_of_a_run);
  core::require_in(function, "batch", run.batch, least_of_a_run, most_of_a_run);
  core::require_in(function, "context", run.context.value_or(0), 0, most_of_a_run);
  core::require_in(function, "seconds", run.seconds, least_of_a_run, most_of_a_run);
  core::require_in(function, "weight", run.weight, least_of_a_run, most_of_a_run);
}

double dot(const CostTerms& a, const CostTerms& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// Calls visit(columns) for every choice of `count` of the columns 0 .. all - 1.
template <class Visit>
void each_choice(Index all, Index count, const Visit& visit) {
  std::vector<Index> columns;
  const auto extend = [&](const auto& self, Index first) -> void {
    if (static_cast<Index>(columns.size()) == count) return visit(columns);
    for (Index column = first; column < all; ++column) {
      columns.push_back(column);
      self(self, column + 1);
      columns.pop_back();
    }
  };
  extend(extend, 0);
}

/// The x >= 0 that minimises |A x - b|, by the least-squares solution on every set of at most `rows` columns: the best
/// of those that are not negative anywhere. A has full row rank, so no optimum needs more columns.
VectorXd non_negative_least_squares(const MatrixXd& a, const VectorXd& b) {
  VectorXd best = VectorXd::Zero(a.cols());
  double least = b.squaredNorm();
  for (Index count = 1; count <= a.rows(); ++count) {
    each_choice(a.cols(), count, [&](const std::vector<Index>& columns) {
      MatrixXd chosen(a.rows(), count);
      for (Index i = 0; i < count; ++i) chosen.col(i) = a.col(columns[static_cast<std::size_t>(i)]);
      const Eigen::ColPivHouseholderQR<MatrixXd> solver(chosen);
      if (solver.rank() < count) return;
      const VectorXd solution = solver.solve(b);
      if (solution.minCoeff() < 0) return;
      const double squares = (chosen * solution - b).squaredNorm();
      if (squares >= least) return;
      least = squares;
      best.setZero();
      for (Index i = 0; i < count; ++i) best[columns[static_cast<std::size_t>(i)]] = solution[i];
    });
  }
  return best;
}

/// The vertices of {x >= 0 : A x = A inside}: the basic solutions that are not negative.
std::vector<VectorXd> polytope_vertices(const MatrixXd& a, const VectorXd& inside) {
  if (a.rows() == a.cols()) return {inside};
  const VectorXd b = a * inside;
  const double scale = std::max(inside.maxCoeff(), smallest);
  std::vector<VectorXd> vertices;
  each_choice(a.cols(), a.rows(), [&](const std::vector<Index>& columns) {
    MatrixXd chosen(a.rows(), a.rows());
    for (Index i = 0; i < a.rows(); ++i) chosen.col(i) = a.col(columns[static_cast<std::size_t>(i)]);
    const Eigen::ColPivHouseholderQR<MatrixXd> solver(chosen);
    if (solver.rank() < a.rows()) return;
    const VectorXd solution = solver.solve(b);
    if (solution.minCoeff() < -rounding * scale) return;
    VectorXd vertex = VectorXd::Zero(a.cols());
    for (Index i = 0; i < a.rows(); ++i) vertex[columns[static_cast<std::size_t>(i)]] = std::max(0.0, solution[i]);
    for (const VectorXd& known : vertices)
      if ((known - vertex).lpNorm<Eigen::Infinity>() <= rounding * scale) return;
    vertices.push_back(std::move(vertex));
  });
  if (vertices.empty()) vertices.push_back(inside);
  return vertices;
}

/// Rows that span the same space, each with a 1 where the others have 0, as far left as possible.
MatrixXd reduced_rows(MatrixXd rows) {
  constexpr double least_pivot = 0.05;
  Index done = 0;
  for (Index column = 0; column < rows.cols() && done < rows.rows(); ++column) {
    Index pivot = 0;
    const double size = rows.col(column).tail(rows.rows() - done).cwiseAbs().maxCoeff(&pivot);
    if (size < least_pivot) continue;
    rows.row(done).swap(rows.row(done + pivot));
    rows.row(done) /= rows(done, column);
    for (Index row = 0; row < rows.rows(); ++row)
      if (row != done) rows.row(row) -= rows(row, column) * rows.row(done);
    ++done;
  }
  return rows;
}

/// Weighted least squares of the runs' relative errors: |columns theta - wanted|, theta in units of 1 / norms.
struct FitDesign {
  FitDesign(std::span<const ObservedRound> runs, std::span<const CostTerms> regressors);

  CostTerms terms_of(const VectorXd& theta) const;

  std::vector<std::size_t> terms;  ///< those that some run has, (columns)
  MatrixXd columns;                ///< of length 1, (runs, columns)
  VectorXd norms;                  ///< what they were divided by, (columns)
  VectorXd wanted;                 ///< roots of the runs' weights, (runs)
};

FitDesign::FitDesign(std::span<const ObservedRound> runs, std::span<const CostTerms> regressors)
    : wanted(static_cast<Index>(runs.size())) {
  MatrixXd all(wanted.size(), static_cast<Index>(cost_terms));
  for (Index i = 0; i < wanted.size(); ++i) {
    const auto run = static_cast<std::size_t>(i);
    wanted[i] = std::sqrt(runs[run].weight);
    for (std::size_t j = 0; j < cost_terms; ++j)
      all(i, static_cast<Index>(j)) = wanted[i] * regressors[run][j] / runs[run].seconds;
  }
  for (std::size_t j = 0; j < cost_terms; ++j)
    if (all.col(static_cast<Index>(j)).norm() > 0) terms.push_back(j);
  columns.resize(wanted.size(), static_cast<Index>(terms.size()));
  norms.resize(columns.cols());
  for (Index j = 0; j < columns.cols(); ++j) {
    const auto column = all.col(static_cast<Index>(terms[static_cast<std::size_t>(j)]));
    norms[j] = column.norm();
    columns.col(j) = column / norms[j];
  }
}

CostTerms FitDesign::terms_of(const VectorXd& theta) const {
  CostTerms values{};
  for (Index j = 0; j < theta.size(); ++j) values[terms[static_cast<std::size_t>(j)]] = theta[j] / norms[j];
  return values;
}

/// The directions of theta that the runs see; theta enters their seconds through of_terms theta alone.
struct SeenDirections {
  SeenDirections(const MatrixXd& columns, double rank_tolerance);

  Index rank() const { return of_terms.rows(); }
  /// The theta >= 0 that fits the target best under these weights of the runs.
  VectorXd solve(const VectorXd& root_weights, const VectorXd& target) const;

  MatrixXd of_runs;   ///< (runs, rank)
  MatrixXd of_terms;  ///< (rank, columns)
};

SeenDirections::SeenDirections(const MatrixXd& columns, double rank_tolerance) {
  const Eigen::JacobiSVD<MatrixXd> svd(columns, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const VectorXd& sizes = svd.singularValues();
  Index rank = 0;
  while (rank < sizes.size() && sizes[rank] > rank_tolerance * sizes[0]) ++rank;
  of_runs = svd.matrixU().leftCols(rank) * sizes.head(rank).asDiagonal();
  of_terms = svd.matrixV().leftCols(rank).transpose();
}

VectorXd SeenDirections::solve(const VectorXd& root_weights, const VectorXd& target) const {
  const MatrixXd weighted = root_weights.asDiagonal() * of_runs;
  const Eigen::HouseholderQR<MatrixXd> qr(weighted);
  const MatrixXd triangle = qr.matrixQR().topRows(rank()).triangularView<Eigen::Upper>();
  const VectorXd rotated = qr.householderQ().transpose() * (root_weights.asDiagonal() * target);
  return non_negative_least_squares(triangle * of_terms, rotated.head(rank()));
}

/// Sums of terms that the runs tell, the first term of each with the coefficient 1.
std::vector<CostTerms> identified_combinations(const FitDesign& design, const SeenDirections& seen) {
  std::vector<CostTerms> combinations;
  const MatrixXd rows = reduced_rows(seen.of_terms);
  for (Index i = 0; i < rows.rows(); ++i) {
    CostTerms combination{};
    double first = 0;
    for (Index j = 0; j < rows.cols(); ++j) {
      const double coefficient = std::abs(rows(i, j)) > 1e-6 ? rows(i, j) * design.norms[j] : 0.0;
      if (first == 0) first = coefficient;
      combination[design.terms[static_cast<std::size_t>(j)]] = first == 0 ? 0.0 : coefficient / first;
    }
    combinations.push_back(combination);
  }
  return combinations;
}

/// Central 95%; from 0 to the 95% quantile for a value that cannot go lower.
Range interval(std::vector<double> values, bool at_zero) {
  std::sort(values.begin(), values.end());
  if (at_zero) return {0, core::sorted_quantile(values, 0.95)};
  return {core::sorted_quantile(values, 0.025), core::sorted_quantile(values, 0.975)};
}

bool agrees(const Range& range, double tolerance) {
  return range.hi < infinity && range.hi - range.lo <= tolerance * range.hi;
}

bool same(double a, double b) { return std::abs(a - b) <= same_point * std::max(a, b); }

Range range_of(std::span<const ObservedRound> runs, double (*value)(const ObservedRound&)) {
  Range range{value(runs.front()), value(runs.front())};
  for (const ObservedRound& run : runs) {
    range.lo = std::min(range.lo, value(run));
    range.hi = std::max(range.hi, value(run));
  }
  return range;
}

}  // namespace

std::string_view cost_term_name(std::size_t term) {
  constexpr std::array<std::string_view, cost_terms> names = {"fixed_seconds", "seconds_per_draft_pass",
                                                              "seconds_per_drafted_token", "seconds_per_verified_token",
                                                              "seconds_per_context_token"};
  return names.at(term);
}

std::string IdentifiedCombination::text() const {
  std::string text;
  for (std::size_t i = 0; i < cost_terms; ++i) {
    const double size = std::abs(coefficients[i]);
    if (size == 0) continue;
    const bool negative = coefficients[i] < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    if (std::abs(size - 1) > rounding) text += fmt::format("{:.4g} ", size);
    text += cost_term_name(i);
  }
  return text;
}

FittedCost::FittedCost(std::span<const ObservedRound> runs, const FitOptions& options) : options_(options) {
  if (runs.empty()) throw std::invalid_argument("FittedCost: no runs");
  core::require_in("FittedCost", "rank_tolerance", options_.rank_tolerance, smallest, 1);
  core::require_in("FittedCost", "split_tolerance", options_.split_tolerance, smallest, 1);
  double context_sum = 0, contexts = 0;
  for (const ObservedRound& run : runs) {
    require_legal(run);
    if (!run.context) continue;
    context_sum += *run.context;
    contexts += 1;
  }
  knows_contexts_ = contexts > 0;
  if (knows_contexts_) usual_context_ = context_sum / contexts;
  std::vector<ObservedRound> complete(runs.begin(), runs.end());
  for (ObservedRound& run : complete)
    if (!run.context) run.context = usual_context_;
  gammas_ = range_of(complete, [](const ObservedRound& run) { return run.gamma; });
  batches_ = range_of(complete, [](const ObservedRound& run) { return run.batch; });
  contexts_ = range_of(complete, [](const ObservedRound& run) { return *run.context; });
  fit(complete);
  check_physics(complete);
}

CostTerms FittedCost::regressors(double gamma, double batch, double context) const {
  const double passes = draft_passes(options_.kind, gamma);
  return {1, passes, passes * batch, (gamma + 1) * batch, knows_contexts_ ? batch * context : 0.0};
}

void FittedCost::fit(std::span<const ObservedRound> runs) {
  std::vector<CostTerms> regressors_of_runs;
  for (const ObservedRound& run : runs) regressors_of_runs.push_back(regressors(run.gamma, run.batch, *run.context));
  const FitDesign design(runs, regressors_of_runs);
  for (const std::size_t term : design.terms) seen_[term] = true;
  const SeenDirections seen(design.columns, options_.rank_tolerance);
  rank_ = static_cast<std::size_t>(seen.rank());

  const auto count = static_cast<Index>(runs.size());
  const VectorXd theta = seen.solve(VectorXd::Ones(count), design.wanted);
  for (const VectorXd& vertex : polytope_vertices(seen.of_terms, theta)) vertices_.push_back(design.terms_of(vertex));
  const VectorXd fitted = seen.of_runs * (seen.of_terms * theta);
  for (Index i = 0; i < count; ++i)
    fitted_.push_back(fitted[i] / design.wanted[i] * runs[static_cast<std::size_t>(i)].seconds);

  const bool has_residuals = count > seen.rank();
  VectorXd widened = fitted;
  if (has_residuals)
    widened += widened_residuals(seen.of_runs * seen.of_terms, theta, design.wanted - fitted, seen.rank());
  for (std::size_t r = 0; r < options_.replicates; ++r) {
    const ReplicateDraws weights(options_.seed, weight_stream, static_cast<std::uint32_t>(r));
    VectorXd roots(count);
    for (Index i = 0; i < count; ++i) roots[i] = std::sqrt(weights.exponential(static_cast<std::uint64_t>(i)));
    const std::vector<VectorXd> splits = polytope_vertices(seen.of_terms, seen.solve(roots, widened));
    const ReplicateDraws choice(options_.seed, vertex_stream, static_cast<std::uint32_t>(r));
    replicates_.push_back(design.terms_of(splits[choice.below(0, splits.size())]));
  }
  describe_terms(identified_combinations(design, seen), has_residuals);

  if (!has_residuals) {
    findings_.push_back(
        {"fit_without_residuals",
         fmt::format("{} runs for {} terms that they tell: the fit's own error is not known", count, seen.rank())});
  }
  const VectorXd free = seen.of_runs * seen.of_runs.householderQr().solve(design.wanted);
  const auto error_of = [&](const VectorXd& values) { return (values - design.wanted).norm() / design.wanted.norm(); };
  const double free_error = error_of(free), error = error_of(fitted);
  if (error > free_error + noticeable_error) {
    findings_.push_back({"clipped_at_zero",
                         fmt::format("the runs are fitted best by negative costs, which cannot be: with none below 0 "
                                     "the root mean square relative error is {:.2g} instead of {:.2g}",
                                     error, free_error)});
  }
}

bool FittedCost::identified(const Range& range) const { return agrees(range, options_.split_tolerance); }

void FittedCost::describe_terms(std::span<const CostTerms> combinations, bool has_residuals) {
  const auto over_replicates = [&](const CostTerms& coefficients, bool at_zero) -> std::optional<Range> {
    if (!has_residuals || replicates_.empty()) return std::nullopt;
    std::vector<double> values;
    for (const CostTerms& theta : replicates_) values.push_back(dot(coefficients, theta));
    return interval(std::move(values), at_zero);
  };
  for (std::size_t j = 0; j < cost_terms; ++j) {
    FittedTerm term;
    CostTerms unit{};
    unit[j] = 1;
    term.splits = over_splits(unit);
    if (seen_[j] && identified(term.splits)) {
      term.value = (term.splits.lo + term.splits.hi) / 2;
      term.ci95 = over_replicates(unit, *term.value == 0);
    }
    terms_.push_back(term);
  }
  for (const CostTerms& coefficients : combinations) {
    const double value = dot(coefficients, vertices_.front());
    const bool one_signed = std::all_of(coefficients.begin(), coefficients.end(), [](double c) { return c >= 0; });
    combinations_.push_back({coefficients, value, over_replicates(coefficients, one_signed && value == 0)});
  }
}

void FittedCost::check_physics(std::span<const ObservedRound> runs) {
  const auto plain = [](const ObservedRound& run) { return run.gamma == 0; };
  const bool has_plain = std::any_of(runs.begin(), runs.end(), plain);
  for (const ObservedRound& run : runs) {
    if (plain(run)) continue;
    const auto slower = std::find_if(runs.begin(), runs.end(), [&](const ObservedRound& other) {
      return plain(other) && same(run.batch, other.batch) && same(*run.context, *other.context) &&
             run.seconds < other.seconds;
    });
    if (slower == runs.end()) continue;
    findings_.push_back({"round_below_target_pass",
                         fmt::format("{}: a round with {:.3g} drafts took {:.4g} s, less than the {:.4g} s of a plain "
                                     "step of {}; a round holds a pass of the target",
                                     run.name, run.gamma, run.seconds, slower->seconds, slower->name)});
  }
  if (!has_plain)
    findings_.push_back({"no_plain_runs", "no run without speculation: what a plain step takes is not measured"});
  std::size_t worst = 0;
  const auto error = [&](std::size_t i) { return fitted_[i] / runs[i].seconds - 1; };
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::abs(error(i)) > std::abs(error(worst))) worst = i;
  if (std::abs(error(worst)) > poor_fit) {
    findings_.push_back(
        {"poor_fit", fmt::format("{}: the fit says {:.4g} s a round where {:.4g} s were observed ({:+.0f}%)",
                                 runs[worst].name, fitted_[worst], runs[worst].seconds, 100 * error(worst))});
  }
}

Range FittedCost::over_splits(const CostTerms& regressors) const {
  Range range{infinity, 0};
  for (const CostTerms& vertex : vertices_) {
    const double seconds = dot(regressors, vertex);
    range.lo = std::min(range.lo, seconds);
    range.hi = std::max(range.hi, seconds);
  }
  for (std::size_t j = 0; j < cost_terms; ++j)
    if (!seen_[j] && regressors[j] > 0) range.hi = infinity;
  return range;
}

RoundTime FittedCost::parts(const CostTerms& theta, const CostTerms& x) const {
  return {.target = theta[fixed] * x[fixed] + theta[verified_token] * x[verified_token] +
                    theta[context_token] * x[context_token],
          .draft = theta[draft_pass] * x[draft_pass] + theta[drafted_token] * x[drafted_token]};
}

Range FittedCost::seconds_over_splits(double gamma, double batch, double context) const {
  return over_splits(regressors(gamma, batch, context));
}

Range FittedCost::seconds_over_splits(const RoundPoint& point) const {
  cost::require_legal(point);
  return seconds_over_splits(static_cast<double>(point.gamma), point.batch, point.context);
}

bool FittedCost::answers(const RoundPoint& point) const {
  const Range range = seconds_over_splits(point);
  return options_.unidentified == Unidentified::span ? range.hi < infinity : identified(range);
}

RoundTime FittedCost::round(const RoundPoint& point) const {
  const Range range = seconds_over_splits(point);
  if (!answers(point)) {
    throw std::domain_error(fmt::format(
        "seconds of a round at gamma {}, batch {:.6g}, context {:.6g} is anything in [{:.3g}, {:.3g}] by the "
        "runs given, but must follow from them; runs nearer to this point tell it",
        point.gamma, point.batch, point.context, range.lo, range.hi));
  }
  const CostTerms x = regressors(static_cast<double>(point.gamma), point.batch, point.context);
  RoundTime mean;
  for (const CostTerms& vertex : vertices_) {
    const RoundTime time = parts(vertex, x);
    mean.target += time.target;
    mean.draft += time.draft;
  }
  const double scale = mean.total() > 0 ? (range.lo + range.hi) / 2 / mean.total() : 0.0;
  return {.target = mean.target * scale, .draft = mean.draft * scale};
}

bool FittedCost::extrapolates(const RoundPoint& point) const {
  cost::require_legal(point);
  const auto outside = [](const Range& range, double value) {
    return value < range.lo * (1 - same_point) || value > range.hi * (1 + same_point);
  };
  return outside(gammas_, static_cast<double>(point.gamma)) || outside(batches_, point.batch) ||
         (knows_contexts_ && outside(contexts_, point.context));
}

bool FittedCost::parts_known(const RoundPoint& point) const {
  const Range total = seconds_over_splits(point);
  if (point.gamma == 0 || draft_passes(options_.kind, 1) == 0) return identified(total);
  const CostTerms x = regressors(static_cast<double>(point.gamma), point.batch, point.context);
  CostTerms drafting{};
  drafting[draft_pass] = x[draft_pass];
  drafting[drafted_token] = x[drafted_token];
  const Range draft = over_splits(drafting);
  return identified(total) && draft.hi - draft.lo <= options_.split_tolerance * total.hi;
}

RoundTime FittedCost::round_of_replicate(std::size_t index, const RoundPoint& point) const {
  cost::require_legal(point);
  if (index >= replicates_.size()) {
    throw std::out_of_range(
        fmt::format("FittedCost::round_of_replicate: index is {}, but must be below {}", index, replicates_.size()));
  }
  return parts(replicates_[index], regressors(static_cast<double>(point.gamma), point.batch, point.context));
}

void FittedCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  cost::require_legal(point);
  core::require_same_size("totals_of_replicates", "totals", totals.size(), "the replicates", replicates_.size());
  const CostTerms x = regressors(static_cast<double>(point.gamma), point.batch, point.context);
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = parts(replicates_[i], x).total();
}

std::optional<double> LeftOut::relative_error() const {
  if (!predicted_seconds) return std::nullopt;
  return *predicted_seconds / measured_seconds - 1;
}

std::vector<LeftOut> leave_one_out(std::span<const ObservedRound> runs, const FitOptions& options,
                                   std::optional<std::size_t> predicted) {
  if (runs.size() < 2)
    throw std::invalid_argument(
        fmt::format("leave_one_out: runs has {} entries, but must have 2 or more", runs.size()));
  FitOptions alone = options;
  alone.replicates = 0;
  std::vector<LeftOut> predictions;
  for (std::size_t i = 0; i < std::min(runs.size(), predicted.value_or(runs.size())); ++i) {
    std::vector<ObservedRound> others(runs.begin(), runs.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const FittedCost cost(others, alone);
    LeftOut prediction{.name = runs[i].name, .measured_seconds = runs[i].seconds};
    prediction.splits =
        cost.seconds_over_splits(runs[i].gamma, runs[i].batch, runs[i].context.value_or(cost.usual_context()));
    if (agrees(prediction.splits, options.split_tolerance))
      prediction.predicted_seconds = (prediction.splits.lo + prediction.splits.hi) / 2;
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

}  // namespace specdec::cost
