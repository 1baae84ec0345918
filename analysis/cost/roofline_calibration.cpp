#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "analysis/core/checks.hpp"
#include "analysis/cost/replicate_draws.hpp"
#include "analysis/cost/roofline_parts.hpp"

namespace specdec::cost {
namespace {

constexpr std::uint32_t calibration_error_stream = 49, prompt_error_stream = 52;

/// Covariances of as many measured times, each with an error of its own; `covariance` is that of two places.
template <class Covariance>
Eigen::MatrixXd covariances_of(std::size_t places, double relative_error, Covariance covariance) {
  const auto count = static_cast<Eigen::Index>(places);
  Eigen::MatrixXd all = relative_error * relative_error * Eigen::MatrixXd::Identity(count, count);
  for (Eigen::Index a = 0; a < count; ++a) {
    for (Eigen::Index b = 0; b < count; ++b)
      all(a, b) += covariance(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
  }
  return all;
}

std::span<const double> span_of(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

}  // namespace

void RooflineCost::require_below_peaks(const CalibrationPoint& point, double relative_error) const {
  const Iteration iteration = iteration_of({.gamma = point.gamma, .batch = point.batch, .context = point.context});
  const double seconds_at_peaks = at_peaks().seconds(iteration);
  if (point.round_seconds >= seconds_at_peaks * std::exp(-3 * relative_error)) return;
  throw std::domain_error(fmt::format(
      "an iteration at gamma {}, batch {:g} and context {:g} takes {:.4g} ms by what was measured, but at least "
      "{:.4g} ms at the peaks of the hardware; are model, types of its weights and number of accelerators those that "
      "were timed?",
      point.gamma, point.batch, point.context, 1e3 * point.round_seconds, 1e3 * seconds_at_peaks));
}

RooflineCost RooflineCost::calibrated(std::span<const CalibrationPoint> points, double relative_error) const {
  if (points.empty()) throw std::invalid_argument("RooflineCost::calibrated: points has 0 entries, but must have some");
  core::require_in("RooflineCost::calibrated", "relative_error", relative_error, least_normal, 1);
  for (const CalibrationPoint& point : points) {
    core::require_in("RooflineCost::calibrated", "round_seconds", point.round_seconds, least_normal,
                     core::largest_double);
    require_below_peaks(point, relative_error);
  }
  RooflineCost result = *this;
  const double shown_error = result.checked_error(points, relative_error);
  return result.conditioned(points, shown_error);
}

double RooflineCost::checked_error(std::span<const CalibrationPoint> points, double relative_error) {
  constexpr double same_place = 0.05, noticed = 3 * std::numbers::sqrt2;
  const auto same = [](double a, double b) { return std::abs(a - b) <= same_place * std::max(a, b); };
  double error = relative_error;
  for (const CalibrationPoint& a : points) {
    for (const CalibrationPoint& b : points) {
      if (!same(a.context, b.context) || a.round_seconds <= b.round_seconds) continue;
      if (a.gamma == b.gamma && a.batch < b.batch && !same(a.batch, b.batch) &&
          a.round_seconds > rounds_agree * b.round_seconds) {
        const std::string text = fmt::format(
            "at context {:g} {} sequences took {:.4g} ms, less than the {:.4g} ms of {}; more sequences take no less",
            a.context, b.batch, 1e3 * b.round_seconds, 1e3 * a.round_seconds, a.batch);
        findings_.push_back({"calibration_contradicts_itself", text});
        if (impossible_.empty()) impossible_ = text;
      }
      if (!same(a.batch, b.batch)) continue;
      const auto report = [&](std::string_view code, std::string text) {
        findings_.push_back(
            {std::string(code), fmt::format("at batch {:g} and context {:g} {}", a.batch, a.context, text)});
      };
      const double apart = std::log(a.round_seconds / b.round_seconds);
      if (a.gamma == b.gamma && apart > noticed * relative_error) {
        error = std::max(error, apart / 2);
        report("calibration_contradicts_itself",
               fmt::format("two iterations of gamma {} took {:.4g} and {:.4g} ms; each is taken to be off by half of "
                           "that, and which of them is right is to be measured",
                           a.gamma, 1e3 * a.round_seconds, 1e3 * b.round_seconds));
      }
      if (a.gamma > 0 || b.gamma == 0) continue;
      const std::string text = fmt::format(
          "a round with {} drafts took {:.4g} ms, less than the {:.4g} ms of a plain "
          "step; a round holds a pass of the target",
          b.gamma, 1e3 * b.round_seconds, 1e3 * a.round_seconds);
      report("round_below_target_pass", text);
      if (a.round_seconds > rounds_agree * b.round_seconds && impossible_.empty()) impossible_ = text;
    }
  }
  return error;
}

std::vector<RooflineCost::TimedPlace> RooflineCost::timed_places(std::span<const CalibrationPoint> points) {
  std::vector<TimedPlace> places;
  for (const CalibrationPoint& point : points)
    places.push_back({point_place(positions_of({.sequences = point.batch, .gamma = point.gamma})), point.gamma > 0});
  return places;
}

RooflineCost RooflineCost::conditioned(std::span<const CalibrationPoint> points, double relative_error) const {
  RooflineCost result = *this;
  result.calibrated_ = true;
  result.expected_errors_.reset();
  result.timed_contexts_.clear();
  ErrorDeviations deviations{options_.deployment_error, options_.point_error, 0};
  result.draw_deployments();
  const auto count = static_cast<Eigen::Index>(points.size());
  std::vector<IterationWork> works;
  const std::vector<TimedPlace> places = timed_places(points);
  Eigen::VectorXd misses(count);
  for (const CalibrationPoint& point : points) {
    const RoundPoint where{.gamma = point.gamma, .batch = point.batch, .context = point.context};
    works.push_back(work_of(iteration_of(where)));
    const auto j = static_cast<Eigen::Index>(works.size()) - 1;
    std::vector<double>& contexts = result.timed_contexts_;
    if (std::find(contexts.begin(), contexts.end(), point.context) == contexts.end()) contexts.push_back(point.context);
    misses[j] = std::log(point.round_seconds / seconds_of(works.back(), losses_.front()).total());
    if (point.gamma > 0) deviations.drafting = std::max(deviations.drafting, result.deviation_by_losses(works.back()));
  }
  const auto of_two = [&](std::size_t a, std::size_t b) { return covariance(places[a], places[b], deviations); };
  Eigen::LLT<Eigen::MatrixXd> solver(covariances_of(places.size(), relative_error, of_two));
  const double scale = std::sqrt(misses.dot(solver.solve(misses)) / static_cast<double>(count));
  const boost::math::chi_squared law(static_cast<double>(count));
  constexpr double strange = 1e-3;
  const bool unlike_others = scale * scale * static_cast<double>(count) > quantile(complement(law, strange));
  if (unlike_others) {
    deviations = {scale * deviations.deployments, scale * deviations.points, scale * deviations.drafting};
    solver.compute(covariances_of(places.size(), relative_error, of_two));
  }

  result.expected_errors_.emplace();
  const Eigen::VectorXd expected = solver.solve(misses);
  add_expected(places, span_of(expected), deviations, *result.expected_errors_);
  const std::optional<Rise> rise = rise_of(points, span_of(misses));
  const double log_rise = rise ? rise->log_ratio / std::log(rise->last_batch / rise->first_batch) : 0;
  carry_on(places, DeploymentErrors().points, log_rise, result.expected_errors_->points);
  for (std::size_t r = 0; r < result.deployment_errors_.size(); ++r) {
    DeploymentErrors& errors = result.deployment_errors_[r];
    if (unlike_others) {
      errors.all *= scale;
      for (double& error : errors.points) error *= scale;
      for (double& error : errors.elsewhere) error *= scale;
    }
    const std::vector<double> before = errors.points;
    const ReplicateDraws draws(options_.seed, calibration_error_stream, static_cast<std::uint32_t>(r));
    Eigen::VectorXd left(count);
    for (Eigen::Index j = 0; j < count; ++j) {
      const auto place = static_cast<std::size_t>(j);
      const double drawn = std::log(seconds_of(works[place], result.losses_[1 + r]).total()) +
                           errors.at(places[place].positions, places[place].drafts);
      left[j] = std::log(points[place].round_seconds) + relative_error * draws.standard_normal(place) - drawn;
    }
    const Eigen::VectorXd weights = solver.solve(left);
    add_expected(places, span_of(weights), deviations, errors);
    carry_on(places, before, 2 * draws.uniform(points.size()) * log_rise, errors.points);
  }
  result.report_misfit(points, places, span_of(misses), unlike_others, relative_error);
  if (rise) result.report_rise(*rise);
  result.remember(points);
  return result;
}

RooflineCost RooflineCost::with_prompts(std::span<const TimedPrompt> prompts, double relative_error) const {
  RooflineCost result = *this;
  if (prompts.empty()) return result;
  const auto missed = [&](std::size_t version) {
    const ReplicateDraws draws(options_.seed, prompt_error_stream, static_cast<std::uint32_t>(version));
    double sum = 0;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto& [n, seconds] = prompts[i];
      core::require_in("RooflineCost::with_prompts", "seconds", seconds, least_normal, core::largest_double);
      const Iteration alone{.prompt_tokens = n, .prompts = 1, .prompt_pairs = n * (n + 1) / 2};
      sum += std::log(seconds / price(version, alone)) + (version > 0 ? relative_error * draws.standard_normal(i) : 0);
    }
    return sum / static_cast<double>(prompts.size());
  };
  if (!result.expected_errors_) result.expected_errors_.emplace();
  result.expected_errors_->prompts += missed(0);
  for (std::size_t r = 0; r < result.deployment_errors_.size(); ++r)
    result.deployment_errors_[r].prompts += missed(1 + r);
  return result;
}

void RooflineCost::report_misfit(std::span<const CalibrationPoint> points, std::span<const TimedPlace> places,
                                 std::span<const double> misses, bool unlike_others, double relative_error) {
  std::erase_if(findings_, [](const Note& finding) {
    return finding.code == "roofline_uncalibrated" || finding.code == "losses_taken_as_exact";
  });
  double largest_miss = 0, sum = 0, furthest = 0;
  std::size_t worst = 0;
  for (std::size_t j = 0; j < points.size(); ++j) {
    const double expected = expected_errors_->at(places[j].positions, places[j].drafts);
    const double missed = misses[j];
    sum += expected;
    if (std::abs(missed) > furthest) furthest = std::abs(missed), worst = j;
    const double miss = std::abs(missed - expected);
    if (miss <= 3 * relative_error) continue;
    largest_miss = std::max(largest_miss, miss);
    findings_.push_back({"roofline_misfit",
                         fmt::format("at gamma {}, batch {:g} and context {:g} an iteration took {:.4g} ms, but with "
                                     "what the times together say of this deployment it takes {:.4g} ms; intervals "
                                     "allow for rounds that are missed by as much",
                                     points[j].gamma, points[j].batch, points[j].context, 1e3 * points[j].round_seconds,
                                     1e3 * points[j].round_seconds * std::exp(expected - missed))});
  }
  factor_ = std::exp(sum / static_cast<double>(points.size()));
  if (unlike_others) {
    findings_.push_back(
        {"roofline_misfit",
         fmt::format("the times given differ from those of {} by more than those of 999 in 1000 deployments, "
                     "most at gamma {}, batch {:g} and context {:g}: {:.3g} times as long; the plan follows them with "
                     "intervals that are as much wider, and model, types of its weights, layout and tokens per step "
                     "are to be checked",
                     options_.kernels ? "the kernels" : "the roofline", points[worst].gamma, points[worst].batch,
                     points[worst].context, std::exp(misses[worst]))});
  }
  if (largest_miss > 0) widen_by(largest_miss);
}

std::optional<RooflineCost::Rise> RooflineCost::rise_of(std::span<const CalibrationPoint> points,
                                                        std::span<const double> misses) {
  const auto drafts = [](const CalibrationPoint& point) { return point.gamma > 0; };
  if (std::any_of(points.begin(), points.end(), drafts)) return std::nullopt;
  const auto fewer = [](const CalibrationPoint& a, const CalibrationPoint& b) { return a.batch < b.batch; };
  const auto [first, last] = std::minmax_element(points.begin(), points.end(), fewer);
  const double rise = misses[static_cast<std::size_t>(last - points.begin())] -
                      misses[static_cast<std::size_t>(first - points.begin())];
  constexpr double as_priced = 1.1;
  if (first->batch == last->batch || rise <= std::log(as_priced)) return std::nullopt;
  return Rise{first->batch, last->batch, rise};
}

void RooflineCost::report_rise(const Rise& rise) {
  findings_.push_back(
      {"calibration_rises",
       fmt::format(
           "from batch {:g} to {:g} the times given rise {:.2g} times as much as {}: beyond what was timed they "
           "are taken to rise on, between not at all and twice as fast, so that rounds at large batches "
           "are little known; a time with drafts tells",
           rise.first_batch, rise.last_batch, std::exp(rise.log_ratio),
           options_.kernels ? "those of the kernels" : "those of the roofline")});
}

double RooflineCost::deviation_by_losses(const IterationWork& work) const {
  double sum = 0, squares = 0;
  for (std::size_t r = 0; r < replicates(); ++r) {
    const double ratio = std::log(seconds_of(work, losses_[1 + r]).total() / seconds_of(work, losses_.front()).total());
    sum += ratio;
    squares += ratio * ratio;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, replicates()));
  return std::sqrt(std::max(0.0, squares / count - sum / count * sum / count));
}

double RooflineCost::covariance(const TimedPlace& a, const TimedPlace& b, const ErrorDeviations& deviations) {
  const auto squared = [](double value) { return value * value; };
  double alike = 0;
  for (const auto& [at_a, of_a] : a.positions.nodes()) {
    for (const auto& [at_b, of_b] : b.positions.nodes()) alike += of_a * of_b * node_correlation(at_a, at_b);
  }
  return squared(deviations.deployments) + squared(deviations.points) * alike +
         (a.drafts && b.drafts ? squared(deviations.drafting) : 0);
}

double RooflineCost::node_correlation(std::size_t a, std::size_t b) {
  const double apart = static_cast<double>(a > b ? a - b : b - a);
  return std::exp(-apart * point_step / point_error_reach);
}

void RooflineCost::add_expected(std::span<const TimedPlace> places, std::span<const double> weights,
                                const ErrorDeviations& deviations, DeploymentErrors& errors) {
  for (std::size_t j = 0; j < places.size(); ++j) {
    const double weight = weights[j];
    errors.all += deviations.deployments * deviations.deployments * weight;
    if (places[j].drafts) errors.drafting += deviations.drafting * deviations.drafting * weight;
    for (std::size_t node = 0; node < errors.points.size(); ++node) {
      for (const auto& [at, of] : places[j].positions.nodes()) {
        errors.points[node] += deviations.points * deviations.points * weight * of * node_correlation(node, at);
      }
    }
  }
}

void RooflineCost::carry_on(std::span<const TimedPlace> places, std::span<const double> before, double log_rise,
                            std::vector<double>& after) {
  std::size_t last = 0;
  for (const TimedPlace& place : places) last = std::max(last, place.positions.left + 1);
  for (std::size_t node = last + 1; node < after.size(); ++node) {
    after[node] = after[last] + before[node] - node_correlation(node, last) * before[last] +
                  log_rise * point_step * static_cast<double>(node - last);
  }
}

}  // namespace specdec::cost
