#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/tails.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::cost {
namespace {

using traces::TimedPass;
using traces::TimingAxis;

/// Relative spread of passes with one number of total tokens above which that number does not tell their time.
constexpr double noticeable_spread = 0.1;

/// One (batch, tokens, context), timed once or more.
struct Cell {
  double batch = 1, tokens = 1, context = 0;
  double seconds = 0;
  /// Number of timings behind the mean, at least 1.
  double weight = 1;
  std::vector<double> samples = {};
  /// Standard error of the mean; 0 where it is unknown.
  double standard_error = 0;

  double total_tokens() const { return batch * tokens; }
  double total_context() const { return batch * context; }
};

void require_legal(const TimedPass& pass) {
  constexpr std::string_view function = "PassCurve";
  core::require_in(function, "batch", pass.batch, core::least_positive, core::largest_double);
  core::require_in(function, "tokens", pass.tokens, core::least_positive, core::largest_double);
  core::require_in(function, "context", pass.context, 0, core::largest_double);
  core::require_in(function, "seconds", pass.seconds, core::least_positive, core::largest_double);
  core::require_in(function, "stddev_seconds", pass.stddev_seconds.value_or(0), 0, core::largest_double);
  core::require_in(function, "repetitions", pass.repetitions, 0, std::numeric_limits<std::int64_t>::max());
  for (const double seconds : pass.samples_seconds)
    core::require_in(function, "samples_seconds", seconds, core::least_positive, core::largest_double);
}

double weight_of(const TimedPass& pass) { return static_cast<double>(std::max<std::int64_t>(1, pass.repetitions)); }

Cell cell_of(std::span<const TimedPass* const> passes) {
  Cell cell{passes.front()->batch, passes.front()->tokens, passes.front()->context};
  cell.weight = 0;
  double variance_of_sum = 0;
  bool all_listed = true, none_listed = true;
  for (const TimedPass* pass : passes) {
    const double weight = weight_of(*pass);
    cell.weight += weight;
    cell.seconds += weight * pass->seconds;
    const double deviation = pass->stddev_seconds.value_or(0);
    variance_of_sum += weight * deviation * deviation;
    all_listed = all_listed && pass->samples_seconds.size() > 1;
    none_listed = none_listed && !pass->stddev_seconds && pass->samples_seconds.size() < 2;
    cell.samples.insert(cell.samples.end(), pass->samples_seconds.begin(), pass->samples_seconds.end());
  }
  cell.seconds /= cell.weight;
  cell.standard_error = std::sqrt(variance_of_sum) / cell.weight;
  if (all_listed) return cell;
  cell.samples.clear();
  // Rows that are there several times are repetitions of each other.
  if (none_listed && passes.size() > 1)
    for (const TimedPass* pass : passes) cell.samples.push_back(pass->seconds);
  return cell;
}

std::vector<Cell> cells_of(std::span<const TimedPass> passes, TimingAxis axis) {
  std::map<std::tuple<double, double, double>, std::vector<const TimedPass*>> groups;
  for (const TimedPass& pass : passes)
    if (pass.axis == axis) groups[{pass.batch, pass.tokens, pass.context}].push_back(&pass);
  std::vector<Cell> cells;
  for (const auto& group : groups) cells.push_back(cell_of(group.second));
  return cells;
}

using CellsByAxis = std::map<TimingAxis, std::vector<Cell>>;

CellsByAxis cells_by_axis(std::span<const TimedPass> passes) {
  CellsByAxis cells;
  for (const TimingAxis axis : {TimingAxis::batch, TimingAxis::verification, TimingAxis::generation, TimingAxis::grid})
    if (std::vector<Cell> found = cells_of(passes, axis); !found.empty()) cells[axis] = std::move(found);
  if (cells.count(TimingAxis::generation) == 0) return cells;
  // Generating is what plain decoding does; a prompt of one token is not, so that it gives way.
  std::vector<Cell>& verification = cells[TimingAxis::verification];
  verification.erase(std::remove_if(verification.begin(), verification.end(),
                                    [](const Cell& cell) { return cell.total_tokens() == 1; }),
                     verification.end());
  const std::vector<Cell>& generation = cells[TimingAxis::generation];
  verification.insert(verification.begin(), generation.begin(), generation.end());
  cells.erase(TimingAxis::generation);
  return cells;
}

/// The mean of a cell's timings, drawn anew.
double redrawn_seconds(const Cell& cell, std::size_t index, const ReplicateDraws& draws) {
  const std::size_t count = cell.samples.size();
  const std::uint64_t first = std::uint64_t{index} << 32U;
  if (count > 1) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += cell.samples[draws.below(first + i, count)];
    // A resample's mean varies by (n - 1)/n of the variance of a mean.
    const double n = static_cast<double>(count);
    const double widened = cell.seconds + std::sqrt(n / (n - 1)) * (sum / n - cell.seconds);
    return std::max(widened, 0.01 * cell.seconds);
  }
  const double relative = cell.standard_error / cell.seconds;
  if (relative == 0) return cell.seconds;
  const double variance = std::log1p(relative * relative);
  return cell.seconds * std::exp(std::sqrt(variance) * draws.standard_normal(first) - variance / 2);
}

std::vector<Cell> redrawn(const std::vector<Cell>& cells, const ReplicateDraws& draws) {
  std::vector<Cell> drawn = cells;
  for (std::size_t i = 0; i < cells.size(); ++i) drawn[i].seconds = redrawn_seconds(cells[i], i, draws);
  return drawn;
}

/// The passes of one number of total tokens.
struct Knot {
  double total_tokens = 0;
  std::vector<std::size_t> cells = {};
};

std::vector<Knot> knots_of(std::span<const Cell> cells) {
  std::map<double, Knot> by_tokens;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Knot& knot = by_tokens[cells[i].total_tokens()];
    knot.total_tokens = cells[i].total_tokens();
    knot.cells.push_back(i);
  }
  std::vector<Knot> knots;
  for (auto& [tokens, knot] : by_tokens) knots.push_back(std::move(knot));
  return knots;
}

/// Least-squares slope of seconds over the total context, with a level of its own for each group of cells.
struct ContextSlope {
  double value = 0;
  /// Infinite where no cell is left to tell it.
  double standard_error = std::numeric_limits<double>::infinity();
  double degrees_of_freedom = 0;
};

using Groups = std::vector<std::vector<std::size_t>>;

/// Empty if no group has several total contexts.
std::optional<ContextSlope> slope_within(std::span<const Cell> cells, const Groups& groups) {
  struct Deviation {
    double weight, context, seconds;
  };
  std::vector<Deviation> deviations;
  double products = 0, squares = 0, magnitude = 0;
  std::size_t levels = 0;
  for (const std::vector<std::size_t>& group : groups) {
    if (group.size() < 2) continue;
    double weight = 0, context = 0, seconds = 0;
    for (const std::size_t i : group) {
      weight += cells[i].weight;
      context += cells[i].weight * cells[i].total_context();
      seconds += cells[i].weight * cells[i].seconds;
    }
    for (const std::size_t i : group) {
      const Deviation& one = deviations.emplace_back(
          Deviation{cells[i].weight, cells[i].total_context() - context / weight, cells[i].seconds - seconds / weight});
      products += one.weight * one.context * one.seconds;
      squares += one.weight * one.context * one.context;
      magnitude += one.weight * cells[i].total_context() * cells[i].total_context();
    }
    ++levels;
  }
  // The rounding of a mean is no difference.
  if (squares <= 1e-24 * magnitude) return std::nullopt;
  ContextSlope slope;
  slope.value = products / squares;
  slope.degrees_of_freedom = static_cast<double>(deviations.size()) - static_cast<double>(levels) - 1;
  if (slope.degrees_of_freedom <= 0) return slope;
  double residuals = 0;
  for (const Deviation& one : deviations)
    residuals += one.weight * std::pow(one.seconds - slope.value * one.context, 2);
  slope.standard_error = std::sqrt(residuals / slope.degrees_of_freedom / squares);
  return slope;
}

/// Cells that differ in nothing but the context.
Groups same_passes(std::span<const Cell> cells) {
  std::map<std::pair<double, double>, std::vector<std::size_t>> by_pass;
  for (std::size_t i = 0; i < cells.size(); ++i) by_pass[{cells[i].batch, cells[i].tokens}].push_back(i);
  Groups groups;
  for (auto& [pass, group] : by_pass) groups.push_back(std::move(group));
  return groups;
}

Groups same_totals(std::span<const Knot> knots) {
  Groups groups;
  for (const Knot& knot : knots) groups.push_back(knot.cells);
  return groups;
}

/// Whether cells of one knot differ by more than noticeable_spread, each less k of its total context.
bool spreads(std::span<const Cell> cells, const Knot& knot, double per_context_token) {
  double low = core::largest_double, high = -core::largest_double, longest = 0;
  for (const std::size_t i : knot.cells) {
    const double seconds = cells[i].seconds - per_context_token * cells[i].total_context();
    low = std::min(low, seconds);
    high = std::max(high, seconds);
    longest = std::max(longest, cells[i].seconds);
  }
  return high - low > noticeable_spread * longest;
}

/// Whether cells of one number of total tokens, divided among different numbers of sequences, tell what the context
/// costs: they spread, the more context takes longer, and by more than their scatter gives in 2.5% of tables where the
/// context is free. Scatter is unknown where two cells are all there is, and these are believed.
bool batches_tell(std::span<const Cell> cells, std::span<const Knot> knots) {
  if (std::none_of(knots.begin(), knots.end(), [&](const Knot& knot) { return spreads(cells, knot, 0); })) return false;
  const std::optional<ContextSlope> slope = slope_within(cells, same_totals(knots));
  if (!slope || slope->value <= 0) return false;
  if (slope->degrees_of_freedom <= 0) return true;
  return slope->value > core::t_half_width_95(slope->degrees_of_freedom) * slope->standard_error;
}

/// The cells among which the context alone tells times apart; none where the context's cost is not told.
Groups groups_of_context(std::span<const Cell> cells, std::span<const Knot> knots) {
  if (Groups groups = same_passes(cells); slope_within(cells, groups)) return groups;
  return batches_tell(cells, knots) ? same_totals(knots) : Groups{};
}

/// f and k of cells, before anything is done about passes that are too slow.
struct RawCurve {
  std::vector<double> seconds = {};
  std::vector<double> weights = {};
  double per_context_token = 0;
};

RawCurve raw_curve(std::span<const Cell> cells, std::span<const Knot> knots, const Groups& of_context) {
  RawCurve curve;
  curve.per_context_token = std::max(0.0, slope_within(cells, of_context).value_or(ContextSlope{}).value);
  // f is a time, so the context's share is at most all of it.
  for (const Cell& cell : cells)
    if (cell.total_context() > 0)
      curve.per_context_token = std::min(curve.per_context_token, cell.seconds / cell.total_context());
  for (const Knot& knot : knots) {
    double weight = 0, seconds = 0;
    for (const std::size_t i : knot.cells) {
      weight += cells[i].weight;
      seconds += cells[i].weight * (cells[i].seconds - curve.per_context_token * cells[i].total_context());
    }
    curve.seconds.push_back(std::max(0.0, seconds / weight));
    curve.weights.push_back(weight);
  }
  return curve;
}

/// Pool adjacent violators: the weighted least-squares fit that does not fall.
std::vector<double> isotonic(std::span<const double> values, std::span<const double> weights) {
  struct Block {
    double value, weight;
    std::size_t length;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < values.size(); ++i) {
    blocks.push_back({values[i], weights[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].value > blocks.back().value) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& block = blocks.back();
      block.value = (block.value * block.weight + last.value * last.weight) / (block.weight + last.weight);
      block.weight += last.weight;
      block.length += last.length;
    }
  }
  std::vector<double> fitted;
  for (const Block& block : blocks) fitted.insert(fitted.end(), block.length, block.value);
  return fitted;
}

void require_one_model(std::string_view role, std::span<const TimedPass> passes) {
  if (passes.empty()) throw std::invalid_argument(fmt::format("PassCurve: no passes of the {}", role));
  for (const TimedPass& pass : passes) {
    require_legal(pass);
    if (pass.model == passes.front().model) continue;
    throw std::invalid_argument(fmt::format("PassCurve: passes of the {} are of {} and of {}, but must be of one model",
                                            role, passes.front().model, pass.model));
  }
}

using ReportPasses = std::function<void(std::string_view code, const std::string& message)>;

void report_context(const std::optional<ContextSlope>& slope, const Range& contexts, const ReportPasses& report) {
  if (!slope && contexts.lo < contexts.hi) {
    report("context_term_unknown",
           "contexts differ only where tokens do, so what the context costs is not told; it is part of the passes");
  }
}

/// @param seconds  f of each knot
void report_spread(std::span<const Cell> cells, std::span<const Knot> knots, std::span<const double> seconds,
                   double per_context_token, bool several_contexts, const ReportPasses& report) {
  std::size_t contradicted = 0;
  const Cell* worst = nullptr;
  double its_price = 0, its_error = -1;
  for (std::size_t k = 0; k < knots.size(); ++k) {
    if (!spreads(cells, knots[k], per_context_token)) continue;
    ++contradicted;
    for (const std::size_t i : knots[k].cells) {
      const double price = seconds[k] + per_context_token * cells[i].total_context();
      const double error = std::abs(price / cells[i].seconds - 1);
      if (error <= its_error) continue;
      worst = &cells[i];
      its_price = price;
      its_error = error;
    }
  }
  if (worst == nullptr) return;
  report("total_tokens_do_not_tell",
         fmt::format("passes over as many tokens in all took different times, and their mean is used: {} {} of each of "
                     "{} {}, timed at {:.4g} s, {} priced at {:.4g} s, {:.2g}% {}{}; {}",
                     worst->tokens, worst->tokens == 1 ? "token" : "tokens", worst->batch,
                     worst->batch == 1 ? "sequence" : "sequences", worst->seconds, worst->tokens == 1 ? "is" : "are",
                     its_price, 100 * its_error, its_price < worst->seconds ? "too little" : "too much",
                     contradicted == 1 ? "" : fmt::format(", the most of {} such totals", contradicted),
                     several_contexts ? "their contexts do not explain it"
                                      : "the same passes at a second context would tell what the context costs"));
}

/// Knots with a faster one at more tokens, by more than the rounding of their contexts' correction.
void report_slower(std::span<const Knot> knots, std::span<const double> seconds, bool without_context,
                   const ReportPasses& report) {
  constexpr double rounding = 1e-9;
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    const std::span<const double> of_more = seconds.subspan(i + 1);
    if (seconds[i] <= *std::min_element(of_more.begin(), of_more.end()) * (1 + rounding)) continue;
    report(
        "slower_smaller_pass",
        fmt::format("a pass over {} tokens took {:.4g} s{}, longer than one over more; it is averaged with the larger "
                    "ones until nothing falls",
                    knots[i].total_tokens, seconds[i], without_context ? " without its context's share" : ""));
  }
}

/// Times of which some can hardly be in the unit of the others, or none in seconds.
void report_units(std::span<const Knot> knots, std::span<const double> seconds, const ReportPasses& report) {
  // Twice the tokens take at most twice the time, and a little more where they fit no longer into a wave of products.
  constexpr double longest_jump = 8, slowest_pass = 5;
  for (std::size_t i = 1; i < knots.size(); ++i) {
    const double more = knots[i].total_tokens / knots[i - 1].total_tokens, longer = seconds[i] / seconds[i - 1];
    if (longer <= longest_jump * more) continue;
    report("times_far_apart",
           fmt::format("a pass over {} tokens took {:.4g} s and one over {} {:.4g} s, {:.3g} times as long for {:.3g} "
                       "times the tokens, which one unit of time would hardly give",
                       knots[i - 1].total_tokens, seconds[i - 1], knots[i].total_tokens, seconds[i], longer, more));
  }
  const auto fastest = std::min_element(seconds.begin(), seconds.end());
  if (*fastest < slowest_pass) return;
  report(
      "passes_slow",
      fmt::format("the fastest pass took {:.4g} s, as long as if milliseconds had been written for seconds", *fastest));
}

/// Where several sequences were timed, but none of them with several tokens each.
void report_verification_of_batches(std::span<const TimedPass> passes, const ReportPasses& report) {
  const auto timed = [&](auto condition) { return std::any_of(passes.begin(), passes.end(), condition); };
  if (!timed([](const TimedPass& pass) { return pass.batch > 1; })) return;
  if (timed([](const TimedPass& pass) { return pass.batch > 1 && pass.tokens > 1; })) return;
  const bool of_one = timed([](const TimedPass& pass) { return pass.tokens > 1; });
  report("batch_axis_prices_verification",
         fmt::format("several tokens of {} were not timed, and are priced as passes over as many tokens in all; time "
                     "such passes to know them",
                     of_one ? "several sequences" : "a sequence"));
}

}  // namespace

PassCurve::PassCurve(std::string_view role, std::span<const TimedPass> passes, const CurveOptions& options)
    : role_(role), options_(options) {
  require_one_model(role_, passes);
  const ReportPasses report = [this](std::string_view code, const std::string& message) {
    findings_.push_back({std::string(code), fmt::format("{}: {}", role_, message)});
  };
  const CellsByAxis cells = cells_by_axis(passes);
  double context_sum = 0, context_weight = 0;
  for (const auto& [axis, of_axis] : cells) {
    Axis& curve = axes_.emplace_back();
    curve.axis = axis;
    curve.batches = {of_axis.front().batch, of_axis.front().batch};
    curve.contexts = {of_axis.front().context, of_axis.front().context};
    for (const Cell& cell : of_axis) {
      curve.most_tokens = std::max(curve.most_tokens, cell.tokens);
      curve.batches.lo = std::min(curve.batches.lo, cell.batch);
      curve.batches.hi = std::max(curve.batches.hi, cell.batch);
      curve.contexts.lo = std::min(curve.contexts.lo, cell.context);
      curve.contexts.hi = std::max(curve.contexts.hi, cell.context);
      context_sum += cell.weight * cell.context;
      context_weight += cell.weight;
    }
    const std::vector<Knot> knots = knots_of(of_axis);
    const Groups of_context = groups_of_context(of_axis, knots);
    const RawCurve raw = raw_curve(of_axis, knots, of_context);
    const std::optional<ContextSlope> slope = slope_within(of_axis, of_context);
    curve.tells_context = slope.has_value();
    report_context(slope, curve.contexts, report);
    report_slower(knots, raw.seconds, raw.per_context_token > 0, report);
    report_units(knots, raw.seconds, report);
    for (const Knot& knot : knots) curve.total_tokens.push_back(knot.total_tokens);

    const auto version_of = [&](std::span<const Cell> drawn) {
      const RawCurve version = raw_curve(drawn, knots, of_context);
      return Version{isotonic(version.seconds, version.weights), version.per_context_token, {}};
    };
    std::vector<Version>& versions = versions_.emplace_back();
    versions.push_back(version_of(of_axis));
    report_spread(of_axis, knots, versions.front().seconds, raw.per_context_token,
                  curve.contexts.lo < curve.contexts.hi, report);
    const auto stream =
        static_cast<std::uint32_t>(role_ == "target" ? 0 : 16) + static_cast<std::uint32_t>(axes_.size());
    for (std::size_t r = 0; r < options_.replicates; ++r) {
      const auto index = static_cast<std::uint32_t>(r);
      versions.push_back(version_of(redrawn(of_axis, {options_.seed, stream, index})));
      // What limits passes is the same for all tables of a model.
      const ReplicateDraws ends(options_.seed, role_ == "target" ? 32 : 48, index);
      versions.back().ends = {ends.uniform(0), ends.uniform(1)};
    }
  }
  usual_context_ = context_sum / context_weight;
  report_verification_of_batches(passes, report);
}

}  // namespace specdec::cost
