#include "analysis/estimate/beta_law.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/unit_bins.hpp"

namespace specdec::estimate {
namespace {

/// Values of a sequence that are correlated together.
constexpr std::size_t correlated_block = 1024;
constexpr auto cell_count = static_cast<double>(UnitIntervalSketch::cells);

void add_to(std::vector<std::int64_t>& counts, const std::vector<std::int64_t>& more) {
  counts.resize(std::max(counts.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) counts[i] += more[i];
}

}  // namespace

void UnitIntervalSketch::add(double value) {
  ++counts_[static_cast<std::size_t>(std::clamp(value, 0.0, 1.0) * cell_count)];
  ++count_;
}

std::optional<double> UnitIntervalSketch::quantile(double probability) const {
  core::require_in("quantile", "probability", probability, 0, 1);
  if (count_ == 0) return std::nullopt;
  const double wanted = std::max(1.0, std::ceil(probability * static_cast<double>(count_)));
  std::int64_t below = 0;
  std::size_t cell = 0;
  while (static_cast<double>(below + counts_[cell]) < wanted) below += counts_[cell++];
  // A law with mass at an end gives the end itself.
  if (cell + 1 == counts_.size()) return 1;
  return cell == 0 ? 0 : (static_cast<double>(cell) + 0.5) / cell_count;
}

std::optional<double> UnitIntervalSketch::share_below(double x) const {
  core::require_in("share_below", "x", x, 0, 1);
  if (count_ == 0) return std::nullopt;
  const auto end = static_cast<std::ptrdiff_t>(std::llround(x * cell_count));
  std::int64_t below = 0;
  for (auto cell = counts_.begin(); cell != counts_.begin() + end; ++cell) below += *cell;
  return static_cast<double>(below) / static_cast<double>(count_);
}

std::vector<std::int64_t> UnitIntervalSketch::histogram(std::int64_t bins) const {
  core::require_in("histogram", "bins", bins, std::int64_t{1}, cells);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins));
  for (std::size_t cell = 0; cell < counts_.size(); ++cell) {
    const std::size_t bin = cell * counts.size() / static_cast<std::size_t>(cells);
    counts[std::min(bin, counts.size() - 1)] += counts_[cell];
  }
  return counts;
}

void UnitIntervalSketch::merge(const UnitIntervalSketch& other) {
  add_to(counts_, other.counts_);
  count_ += other.count_;
}

Autocorrelation::Autocorrelation(std::int64_t lags) : pairs_(static_cast<std::size_t>(lags)) {}

void Autocorrelation::add(std::int64_t sequence, double value) {
  if (sequence != sequence_) {
    end_sequence();
    sequence_ = sequence;
  }
  block_.push_back(value - 0.5);
  if (block_.size() == before_ + correlated_block) end_block();
}

void Autocorrelation::merge(Autocorrelation other) {
  core::require_same_size("Autocorrelation::merge", "the lags of the other", other.pairs_.size(), "lags",
                          pairs_.size());
  end_sequence();
  other.end_sequence();
  for (std::size_t lag = 0; lag < pairs_.size(); ++lag) {
    pairs_[lag].count += other.pairs_[lag].count;
    pairs_[lag].sums.add(other.pairs_[lag].sums);
    pairs_[lag].products.add(other.pairs_[lag].products);
  }
  count_ += other.count_;
  sum_.add(other.sum_);
  squares_.add(other.squares_);
}

void Autocorrelation::end_sequence() {
  end_block();
  block_.clear();
  before_ = 0;
  sequence_ = -1;
}

void Autocorrelation::end_block() {
  const bool gaps = std::any_of(block_.begin(), block_.end(), [](double x) { return std::isnan(x); });
  gaps ? add_with_gaps() : add_known();
  before_ = std::min(pairs_.size(), block_.size());
  block_.erase(block_.begin(), block_.end() - static_cast<std::ptrdiff_t>(before_));
}

void Autocorrelation::add_known() {
  const std::size_t end = block_.size();
  std::vector<double> before(end + 1);  // sums of all values before each
  for (std::size_t t = 0; t < end; ++t) before[t + 1] = before[t] + block_[t];
  const double* const x = block_.data();
  count_ += static_cast<std::int64_t>(end - before_);
  sum_.add(before[end] - before[before_]);
  squares_.add(core::sum_of_terms(end - before_, [&](std::size_t t) { return x[before_ + t] * x[before_ + t]; }));
  for (std::size_t lag = 1; lag <= pairs_.size(); ++lag) {
    const std::size_t first = std::max(before_, lag);  // the first value that has another so far before it
    if (first >= end) break;
    const double* const later = x + first;
    const double* const earlier = later - lag;
    Pairs& pairs = pairs_[lag - 1];
    pairs.count += static_cast<std::int64_t>(end - first);
    pairs.sums.add((before[end] - before[first]) + (before[end - lag] - before[first - lag]));
    pairs.products.add(core::sum_of_terms(end - first, [&](std::size_t t) { return earlier[t] * later[t]; }));
  }
}

void Autocorrelation::add_with_gaps() {
  for (std::size_t t = before_; t < block_.size(); ++t) {
    const double x = block_[t];
    if (std::isnan(x)) continue;
    ++count_;
    sum_.add(x);
    squares_.add(x * x);
    for (std::size_t lag = 1; lag <= std::min(pairs_.size(), t); ++lag) {
      const double earlier = block_[t - lag];
      if (std::isnan(earlier)) continue;
      Pairs& pairs = pairs_[lag - 1];
      ++pairs.count;
      pairs.sums.add(earlier + x);
      pairs.products.add(earlier * x);
    }
  }
}

Autocorrelation Autocorrelation::ended() const {
  Autocorrelation ended = *this;
  ended.end_sequence();
  return ended;
}

std::vector<std::optional<double>> Autocorrelation::values() const {
  const Autocorrelation all = ended();
  std::vector<std::optional<double>> values;
  const auto count = static_cast<double>(all.count_);
  const double mean = all.sum_.value() / count;
  const double variance = all.squares_.value() / count - mean * mean;
  // For a constant column only rounding is left.
  const bool constant = !(variance > 1e-14);
  for (const Pairs& pairs : all.pairs_) {
    values.emplace_back();
    if (pairs.count < 2 || constant) continue;
    const double off = pairs.products.value() - mean * pairs.sums.value();
    const double covariance = off / static_cast<double>(pairs.count) + mean * mean;
    values.back() = covariance / variance;
  }
  return values;
}

std::vector<std::int64_t> Autocorrelation::pairs() const {
  std::vector<std::int64_t> counts;
  for (const Pairs& pairs : ended().pairs_) counts.push_back(pairs.count);
  return counts;
}

BetaLawAccumulator::BetaLawAccumulator(BetaLawOptions options)
    : options_(std::move(options)), autocorrelation_(options_.lags) {
  core::require_in("BetaLawAccumulator", "bins", options_.bins, std::int64_t{1}, UnitIntervalSketch::cells);
}

void BetaLawAccumulator::Column::add(std::span<const double> values) {
  for (const double value : values) {
    if (std::isnan(value)) continue;
    if (std::isinf(value)) {
      ++infinite;
    } else {
      ++finite;
      sum.add(value);
    }
  }
}

void BetaLawAccumulator::Column::add(const Column& other) {
  sum.add(other.sum);
  finite += other.finite;
  infinite += other.infinite;
}

ColumnMean BetaLawAccumulator::Column::mean() const {
  ColumnMean result;
  result.positions = finite + infinite;
  if (result.positions == 0) return result;
  if (finite > 0) result.value = sum.value() / static_cast<double>(finite);
  result.infinite_share = static_cast<double>(infinite) / static_cast<double>(result.positions);
  return result;
}

void BetaLawAccumulator::add_acceptance(const Observations& observations) {
  const Bracketed& beta = observations.mean_acceptance;
  if (!beta.exact()) bracketed_ = true;
  const std::vector<double>& highest = beta.highest();
  const auto count = [&](std::vector<std::int64_t>& counts, double value) {
    counts.resize(static_cast<std::size_t>(options_.bins));
    ++counts[core::unit_bin(value, counts.size())];
  };
  for (std::size_t i = 0; i < beta.lower.size(); ++i) {
    autocorrelation_.add(observations.sequence[i], beta.lower[i]);
    if (std::isnan(beta.lower[i])) continue;
    lower_.add(beta.lower[i]);
    upper_.add(highest[i]);
    if (observations.task.empty()) continue;
    BetaSummary::Histogram& of_task = by_task_[observations.task[i]];
    count(of_task.lower, beta.lower[i]);
    count(of_task.upper, highest[i]);
  }
}

void BetaLawAccumulator::add(const Observations& observations) {
  if (!observations.mean_acceptance.empty()) add_acceptance(observations);
  Column lower, upper;
  lower.add(observations.d_lk.lower);
  if (!observations.d_lk.exact()) upper.add(observations.d_lk.upper);
  d_lk_lower_.add(lower);
  d_lk_upper_.add(observations.d_lk.exact() ? lower : upper);
  kl_target_draft_.add(observations.kl_target_draft);
  kl_draft_target_.add(observations.kl_draft_target);
  target_entropy_.add(observations.target_entropy);
  draft_entropy_.add(observations.draft_entropy);
  top1_agreement_.add(observations.top1_agreement);
}

void BetaLawAccumulator::merge(const BetaLawAccumulator& other) {
  lower_.merge(other.lower_);
  upper_.merge(other.upper_);
  for (const auto& [task, histogram] : other.by_task_) {
    add_to(by_task_[task].lower, histogram.lower);
    add_to(by_task_[task].upper, histogram.upper);
  }
  autocorrelation_.merge(other.autocorrelation_);
  bracketed_ = bracketed_ || other.bracketed_;
  d_lk_lower_.add(other.d_lk_lower_);
  d_lk_upper_.add(other.d_lk_upper_);
  kl_target_draft_.add(other.kl_target_draft_);
  kl_draft_target_.add(other.kl_draft_target_);
  target_entropy_.add(other.target_entropy_);
  draft_entropy_.add(other.draft_entropy_);
  top1_agreement_.add(other.top1_agreement_);
}

BetaSummary BetaLawAccumulator::summary() const {
  BetaSummary result;
  result.positions = lower_.count();
  if (result.positions > 0) {
    for (const double probability : options_.probabilities) {
      result.quantiles.push_back({probability, {*lower_.quantile(probability), *upper_.quantile(probability)}});
    }
    for (const double threshold : options_.thresholds) {
      // The upper ends are below a threshold less often.
      result.below.push_back({threshold, {*upper_.share_below(threshold), *lower_.share_below(threshold)}});
    }
    result.histogram_lower = lower_.histogram(options_.bins);
    result.histogram_upper = upper_.histogram(options_.bins);
    result.histogram_by_task = by_task_;
    if (!bracketed_) {
      result.autocorrelation = autocorrelation_.values();
      result.autocorrelation_pairs = autocorrelation_.pairs();
    }
  }
  if (d_lk_lower_.finite > 0) result.d_lk = Interval{*d_lk_lower_.mean().value, *d_lk_upper_.mean().value};
  result.kl_target_draft = kl_target_draft_.mean();
  result.kl_draft_target = kl_draft_target_.mean();
  result.target_entropy = target_entropy_.mean();
  result.draft_entropy = draft_entropy_.mean();
  result.top1_agreement = top1_agreement_.mean();
  return result;
}

}  // namespace specdec::estimate
