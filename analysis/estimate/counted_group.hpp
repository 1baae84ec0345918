#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/estimate/acceptance_trend.hpp"
#include "analysis/estimate/serving_clusters.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/estimate/unit_counts.hpp"
#include "traces/serving/serving_counts.hpp"

/// Sums of a server's counts. Internal to analysis/estimate.
namespace specdec::estimate {

/// A total, and the number of units that gave it.
struct Total {
  double value = 0;
  std::int64_t units = 0;

  void add(const std::optional<double>& part) {
    if (!part) return;
    value += *part;
    ++units;
  }
  std::optional<double> known() const { return units > 0 ? std::optional(value) : std::nullopt; }
};

/// One value for all units, or the information that they differ.
template <class Value>
class Common {
 public:
  void add(const Value& value) {
    if (!seen_) value_ = value;
    differ_ = differ_ || (seen_ && !(value_ == value));
    seen_ = true;
  }
  bool differ() const { return differ_; }
  Value value_or(Value otherwise) const { return seen_ && !differ_ ? value_ : otherwise; }

 private:
  Value value_{};
  bool seen_ = false, differ_ = false;
};

/// Merges warnings of one code, keeping the first unit's place and their number.
class Warnings {
 public:
  void add(std::string_view code, const traces::ServingCounts& counts, const std::string& message) {
    auto& [first, times] = by_code_[std::string(code)];
    if (times++ > 0) return;
    first = fmt::format("{}: {}", counts.place(), message);
  }
  std::vector<Note> list() const {
    std::vector<Note> warnings;
    for (const auto& [code, first_and_times] : by_code_) {
      const auto& [first, times] = first_and_times;
      warnings.push_back({code, times > 1 ? fmt::format("{} (and {} more)", first, times - 1) : first});
    }
    return warnings;
  }

 private:
  std::map<std::string, std::pair<std::string, std::int64_t>> by_code_;
};

/// Whose windows follow one another: those of one source, which labels tell apart, in one log or between scrapes.
struct SeriesKey {
  std::string source, log;

  auto operator<=>(const SeriesKey&) const = default;
};

/// Everything that was added to one group.
struct CountedGroup {
  Warnings warnings;
  /// Engines, formats, files and units, whether from rates, the longest draft and rounds by accepted drafts.
  ServingSummary told;
  std::int64_t exact = 0, bounded = 0, by_moments = 0, with_positions = 0, with_lengths = 0, with_both = 0, counted = 0;
  Common<traces::CountUnit> unit;
  Common<std::optional<traces::AcceptanceRule>> rule;
  Common<traces::DraftShape> shape;
  Common<std::string> draft_method;
  Common<std::optional<std::int64_t>> fixed_gamma;
  Common<std::optional<std::int64_t>> verified;
  Total rounds, drafted, accepted, emitted, steps;
  /// The fewest and the most possible rounds, over the units that count rounds.
  double least_rounds = 0, most_rounds = 0;
  /// For llama.cpp's units that do not state their gamma: their number, the gammas of which each of them falls short by
  /// no more than the end of an answer explains, and their totals.
  struct WithoutGamma {
    std::int64_t units = 0, least_gamma = 1, most_gamma = RoundMoments::most_positions;
    double rounds = 0, drafted = 0;

    void add(const traces::ServingCounts& counts, double its_rounds, double its_drafted);
  } without_gamma;
  /// The rounds of units whose drafts are of several lengths, and what they drafted.
  double rounds_of_lengths = 0, drafted_of_lengths = 0;
  std::vector<double> rounds_by_drafted;
  std::map<std::int64_t, std::vector<double>> by_length;
  ClusterTally clusters, means;
  std::map<SeriesKey, WindowCells> series, series_of_means;
  /// Windows in order, and tokens per step of the first and of the last.
  struct WindowsInOrder {
    MergingCells<TrendCell, 40> cells;
    double first = 0, last = 0;
  };
  /// Those of all logs of a source one after the other, by gamma.
  std::map<std::pair<std::string, std::optional<std::int64_t>>, WindowsInOrder> in_order;
  /// Rounds by the load of their windows and by the prompt of their request, in powers of two.
  std::map<std::pair<std::string_view, int>, MergingCells<TrendCell, 8>> by_place;

  void add(const traces::ServingCounts& counts, const UnitCounts& normal, ClusterSums& scratch);
  /// What changes over time, over load and over prompts: the series that changes most, of all of them, and the others.
  std::vector<AcceptanceTrend> trends() const;

 private:
  void place(const traces::ServingCounts& counts, const ClusterSums& sums);
};

}  // namespace specdec::estimate
