#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specdec::planner {

/// The severity of a finding.
enum class Severity {
  note,     ///< worth knowing; the figures hold
  warning,  ///< suspicious: the figures may mean something else than they seem to
  error,    ///< broken: what was written contradicts itself, or drafts that cannot be meant to be so
};

/// "note", "warning", "error".
std::string_view name_of(Severity severity);

/// A figure that a finding rests on.
struct Evidence {
  std::string file = {};
  /// Line of the figure in the file, from 1; 0 where it has no line or is of the whole file.
  std::int64_t line = 0;
  /// snake_case, with its unit: "tokens_per_step", "round_seconds".
  std::string name = {};
  /// Empty if it is a text.
  std::optional<double> value = {};
  std::string text = {};
};

/// One thing that is wrong or suspicious.
struct Finding {
  /// snake_case and stable, for scripts.
  std::string code = {};
  Severity severity = Severity::warning;
  /// The finding in one sentence.
  std::string message = {};
  std::vector<Evidence> evidence = {};
  /// The action to take.
  std::string remedy = {};
  /// A statistical test's p times the number of tests that were made: the probability of at least one such finding in
  /// files without faults is at most as large. Empty if the finding is no matter of chance.
  std::optional<double> adjusted_p_value = {};
};

/// A defect that a test of a file would have shown.
struct LookedFor {
  std::string file = {};
  /// "first_draft_acceptance", below which it would have shown; "change_of_tokens_per_step", as a share, above which.
  std::string figure = {};
  /// Empty if the file holds too little to show any.
  std::optional<double> bound = {};
};

/// Findings of one run, with those of statistical tests held back until the number of tests is known.
///
/// A test is reported where p times the number of tests is below the level (Bonferroni), so that files without faults
/// raise one false finding or more in at most `level` of all runs, however many files there are and however the tests
/// depend on each other.
/// Source:   Dunn 1961
class Suspicions {
 public:
  /// @param level  false alarms a run, (0, 1)
  /// @throws std::domain_error if it is out of range
  explicit Suspicions(double level);

  /// Adds a finding that is no matter of chance.
  void add(Finding finding) { findings_.push_back(std::move(finding)); }

  /// The result of one test, significant or not.
  /// @param p_value  probability of so large a deviation where nothing is wrong, [0, 1]
  /// @throws std::domain_error if it is out of range
  void test(double p_value, Finding finding);
  /// The same, of a file and a figure of which `bound` says what shows at a probability.
  using Bound = std::function<std::optional<double>(double p_value)>;
  void test(double p_value, Finding finding, std::string file, std::string figure, Bound bound);

  std::int64_t tests() const { return static_cast<std::int64_t>(p_values_.size()); }

  /// What the tests would have shown, at the probability that all of them leave each.
  std::vector<LookedFor> looked_for() const;

  /// Those that stand, errors first, else in the order in which they were made.
  std::vector<Finding> findings() const;

 private:
  double level_;
  std::vector<Finding> findings_;
  std::vector<Finding> tested_;
  std::vector<double> p_values_;
  std::vector<std::pair<LookedFor, Bound>> bounds_;
};

}  // namespace specdec::planner
