#include "analysis/estimate/unit_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/estimate/compared_figures.hpp"
#include "analysis/estimate/round_moments.hpp"

namespace specdec::estimate {
namespace {

using traces::CountUnit;
using traces::DraftShape;
using traces::ServingCounts;

// Counts as doubles agree to this; a server's separate counters may be read between two increments, and
// counts inferred from printed rates are rounded.
constexpr double exact_share = 1e-6;
constexpr double loose_share = 0.01;
/// Beyond this doubles do not represent every integer.
constexpr double most_counts = 1e15;

class Checks {
 public:
  Checks(const ServingCounts& counts, const WarnOfUnit& warn) : counts_(counts), warn_(warn) {}

  [[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected) const {
    throw counts_.refusal(field, found, expected);
  }

  void number(const std::string& field, double value) const {
    if (0 <= value && value <= most_counts) return;
    refuse(field, fmt::format("{}", value), fmt::format("in [0, {:g}]", most_counts));
  }
  void number(const char* field, const std::optional<double>& value) const {
    if (value) number(std::string(field), *value);
  }
  void numbers(const char* field, const std::vector<double>& values) const {
    if (static_cast<std::int64_t>(values.size()) > RoundMoments::most_positions + 1) {
      refuse(field, fmt::format("{} entries long", values.size()),
             fmt::format("at most {}", RoundMoments::most_positions + 1));
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (0 <= values[i] && values[i] <= most_counts) continue;
      number(fmt::format("{}[{}]", field, i), values[i]);
    }
  }

  /// The difference of two counts above which they contradict each other.
  double slack(double scale) const {
    if (counts_.from_rates) return 1 + loose_share * scale;
    const bool scraped = counts_.unit == CountUnit::total || counts_.unit == CountUnit::window;
    return (scraped ? loose_share : exact_share) * scale;
  }
  /// Requires `value` and `other` to count the same.
  void equal(const char* field, double value, const std::string& others_name, double other) const {
    const double scale = std::max(value, other);
    const double off = std::abs(value - other);
    if (off <= exact_share * scale) return;
    if (off > slack(scale)) {
      refuse(field, fmt::format("{:g}", value), fmt::format("{:g}, {}", other, others_name));
    }
    if (counts_.from_rates) return;
    warn_("counts_disagree", fmt::format("{} is {:g}, but {} is {:g}", field, value, others_name, other));
  }
  void at_most(const std::string& field, double value, const std::string& others_name, double other) const {
    if (value <= other * (1 + exact_share) || value - other <= slack(value)) return;
    refuse(field, fmt::format("{:g}", value), fmt::format("at most {:g}, {}", other, others_name));
  }

 private:
  const ServingCounts& counts_;
  const WarnOfUnit& warn_;
};

void drop_empty_end(std::vector<double>& values) {
  while (!values.empty() && values.back() == 0) values.pop_back();
}

bool nearly_equal(double a, double b) { return std::abs(a - b) <= exact_share * std::max(a, b); }

/// Examined: drafted, and all before it accepted.
void evaluate_by_position(const WarnOfUnit& warn, UnitCounts& unit) {
  const std::size_t longest = unit.rounds_by_drafted.size() - 1;
  unit.accepted_at.resize(std::max(unit.accepted_at.size(), longest));
  unit.evaluated_at.assign(unit.accepted_at.size(), 0);
  if (unit.by_length != nullptr) {
    for (const auto& [length, of_length] : *unit.by_length) {
      double alive = traces::sum_of(of_length);
      if (alive == 0) continue;
      for (std::size_t j = 0; j < static_cast<std::size_t>(length); ++j) {
        unit.evaluated_at[j] += alive;
        alive -= j < of_length.size() ? of_length[j] : 0;
      }
    }
  } else {
    // Lengths are chosen before the drafts are accepted or not: of the rounds alive, the share that continues is that
    // of all rounds of this length.
    double drafting = traces::sum_of(unit.rounds_by_drafted);
    double alive = traces::sum_of(unit.rounds_by_accepted);
    for (std::size_t j = 0; j < longest && drafting > 0; ++j) {
      const double go_on = std::max(0.0, drafting - unit.rounds_by_drafted[j]);
      unit.evaluated_at[j] = alive * go_on / drafting;
      drafting = go_on;
      alive = unit.accepted_at[j];
    }
    if (!unit.fixed_gamma) {
      warn("lengths_taken_as_independent",
           "draft lengths vary and are counted apart from the accepted drafts: they are taken to be independent");
    }
  }
  double rejections = 0;
  for (std::size_t j = 0; j < unit.evaluated_at.size(); ++j) {
    unit.evaluated_at[j] = std::max(unit.evaluated_at[j], unit.accepted_at[j]);
    rejections += unit.evaluated_at[j] - unit.accepted_at[j];
  }
  unit.has_evaluated = true;
  unit.evaluation = Evaluation::exact;
  unit.least_rejections = unit.most_rejections = rejections;
}

/// A round without a rejection drafted exactly what it accepted; the excess drafts lie in the others, as few of them
/// as gamma allows or as many as there are.
void bound_rejections(UnitCounts& unit) {
  double excess = std::max(0.0, *unit.drafted - *unit.accepted);
  unit.most_rejections = std::min(*unit.rounds, excess);
  unit.evaluation = Evaluation::bounds;
  if (!unit.longest_draft) {
    unit.least_rejections = excess > 0 ? std::min(1.0, unit.most_rejections) : 0;
    return;
  }
  const auto gamma = static_cast<double>(*unit.longest_draft);
  if (!unit.has_positions) {
    unit.least_rejections = gamma > 0 ? std::min(unit.most_rejections, excess / gamma) : 0;
    return;
  }
  const std::vector<double>& histogram = unit.rounds_by_accepted;
  double with_room = 0;
  for (std::size_t j = 0; j < histogram.size() && static_cast<double>(j) < gamma; ++j) with_room += histogram[j];
  unit.most_rejections = std::min(unit.most_rejections, with_room);
  for (std::size_t j = 0; j < histogram.size() && excess > 0; ++j) {
    const double room = gamma - static_cast<double>(j);
    if (!(room > 0)) break;
    const double rejecting = std::min(histogram[j], excess / room);
    unit.least_rejections += rejecting;
    excess -= rejecting * room;
  }
  unit.least_rejections = std::min(unit.least_rejections, unit.most_rejections);
}

/// Sets what the rounds of chains tell of examined and rejected drafts.
void evaluate_chain(const WarnOfUnit& warn, UnitCounts& unit) {
  if (unit.mean_tokens && unit.fixed_gamma.value_or(0) > 0) unit.evaluation = Evaluation::moments;
  if (!unit.rounds || !unit.accepted || !(*unit.rounds > 0)) return;
  if (unit.has_positions && !unit.rounds_by_drafted.empty()) {
    evaluate_by_position(warn, unit);
  } else if (unit.fixed_gamma) {
    unit.evaluation = Evaluation::moments;
    const auto gamma = static_cast<double>(*unit.fixed_gamma);
    if (gamma == 0) {
      unit.evaluation = Evaluation::nothing;
      return;
    }
    unit.least_rejections = std::max(0.0, *unit.rounds - *unit.accepted / gamma);
    unit.most_rejections = std::clamp(gamma * *unit.rounds - *unit.accepted, unit.least_rejections, *unit.rounds);
  } else if (unit.drafted) {
    bound_rejections(unit);
  }
}

/// By depth, if every round's tree has the same one.
void evaluate_tree(std::optional<std::int64_t> gamma, UnitCounts& unit) {
  if (!unit.has_positions || !gamma) return;
  unit.accepted_at.resize(std::max(unit.accepted_at.size(), static_cast<std::size_t>(*gamma)));
  unit.evaluated_at.clear();
  double alive = traces::sum_of(unit.rounds_by_accepted);
  for (const double accepted : unit.accepted_at) {
    unit.evaluated_at.push_back(alive);
    alive = accepted;
  }
  unit.has_evaluated = true;
}

/// The normalisation of one unit.
class Normalisation {
 public:
  Normalisation(const ServingCounts& counts, const UnitCountsOptions& options, const WarnOfUnit& warn, UnitCounts& unit)
      : counts_(counts), options_(options), warn_(warn), check_(counts, warn), unit_(unit) {}

  void run() {
    check_numbers();
    reset();
    take_shape_and_gamma();
    raise_rounds_to_drafts();
    take_lengths();
    take_histogram();
    take_totals();
    compare_figures(counts_, unit_, gamma_, warn_);
    if (unit_.shape == DraftShape::chain) {
      check_chain();
      find_fixed_gamma();
      evaluate_chain(warn_, unit_);
    } else if (unit_.shape == DraftShape::tree) {
      evaluate_tree(gamma_, unit_);
    }
  }

 private:
  void check_numbers() {
    check_.number("rounds", counts_.rounds);
    check_.number("drafted", counts_.drafted);
    check_.number("accepted", counts_.accepted);
    check_.number("emitted", counts_.emitted);
    check_.number("tokens_per_round", counts_.tokens_per_round);
    check_.numbers("rounds_by_accepted", counts_.rounds_by_accepted);
    check_.numbers("accepted_at", counts_.accepted_at);
    check_.numbers("drafted_at", counts_.drafted_at);
    for (const auto& [length, histogram] : counts_.rounds_by_accepted_and_drafted) {
      if (length < 0 || length > RoundMoments::most_positions) {
        check_.refuse("draft length", fmt::format("{}", length),
                      fmt::format("in [0, {}]", RoundMoments::most_positions));
      }
      check_.numbers("rounds_by_accepted_and_drafted", histogram);
    }
    if (counts_.gamma && !(0 <= *counts_.gamma && *counts_.gamma <= RoundMoments::most_positions)) {
      check_.refuse("gamma", fmt::format("{}", *counts_.gamma),
                    fmt::format("in [0, {}]", RoundMoments::most_positions));
    }
  }

  void reset() {
    unit_ = UnitCounts();
    unit_.rounds = counts_.rounds;
    unit_.drafted = counts_.drafted;
    unit_.accepted = counts_.accepted;
    unit_.emitted = counts_.emitted;
    unit_.rounds_between = counts_.rounds_between;
  }

  void take_shape_and_gamma() {
    unit_.shape = counts_.shape;
    if (unit_.shape == DraftShape::unknown && options_.tree) unit_.shape = DraftShape::tree;
    if (unit_.shape == DraftShape::unknown && options_.gamma) unit_.shape = DraftShape::chain;
    gamma_ = counts_.gamma;
    if (gamma_ && options_.gamma && *gamma_ != *options_.gamma) {
      warn_("gamma_differs",
            fmt::format("gamma is {} there, and {} as given: the former is used", *gamma_, *options_.gamma));
    }
    if (!gamma_) gamma_ = options_.gamma;
    unit_.longest_draft = gamma_;
  }

  /// Among the rounds that round to one printed mean, those that draft this many tokens with at most gamma tokens each.
  void raise_rounds_to_drafts() {
    if (!unit_.rounds_between || !unit_.drafted || unit_.shape != DraftShape::chain || gamma_.value_or(0) < 1) return;
    auto& [fewest, most] = *unit_.rounds_between;
    fewest = std::clamp(std::ceil(*unit_.drafted / static_cast<double>(*gamma_)), fewest, most);
    unit_.rounds = std::max(*unit_.rounds, fewest);
  }

  /// [j] = rounds that went just so far, by how many went on from each position.
  std::vector<double> rounds_up_to(std::string_view name, const std::vector<double>& going_on) const {
    std::vector<double> rounds;
    double left = *unit_.rounds;
    for (std::size_t j = 0; j < going_on.size(); ++j) {
      check_.at_most(fmt::format("{}[{}]", name, j), going_on[j], j == 0 ? "the rounds" : "the one before", left);
      rounds.push_back(std::max(0.0, left - going_on[j]));
      left = std::min(left, going_on[j]);
    }
    rounds.push_back(left);
    return rounds;
  }

  /// The law of lengths, if it was counted.
  void take_lengths() {
    std::vector<double>& lengths = unit_.rounds_by_drafted;
    if (!counts_.rounds_by_accepted_and_drafted.empty()) {
      unit_.by_length = &counts_.rounds_by_accepted_and_drafted;
      for (const auto& [length, histogram] : *unit_.by_length) {
        const auto size = static_cast<std::size_t>(length) + 1;
        if (lengths.size() < size) lengths.resize(size);
        lengths[size - 1] = traces::sum_of(histogram);
      }
    } else if (!counts_.drafted_at.empty() && unit_.rounds) {
      lengths = rounds_up_to("drafted_at", counts_.drafted_at);
      for (std::size_t j = 0; j < counts_.accepted_at.size(); ++j) {
        check_.at_most(fmt::format("accepted_at[{}]", j), counts_.accepted_at[j], "the drafts there",
                       j < counts_.drafted_at.size() ? counts_.drafted_at[j] : 0);
      }
    }
    drop_empty_end(lengths);
    if (lengths.empty()) return;
    const auto longest = static_cast<std::int64_t>(lengths.size()) - 1;
    if (gamma_ && longest > *gamma_ && unit_.shape == DraftShape::chain) {
      check_.refuse("draft length", fmt::format("{}", longest), fmt::format("at most {}, the gamma", *gamma_));
    }
    if (!unit_.longest_draft) unit_.longest_draft = longest;
  }

  void take_histogram() {
    std::vector<double>& histogram = unit_.rounds_by_accepted;
    if (unit_.by_length != nullptr) {
      for (const auto& [length, of_length] : *unit_.by_length) {
        for (auto j = static_cast<std::size_t>(length) + 1; j < of_length.size(); ++j) {
          if (!(of_length[j] > 0)) continue;
          check_.refuse("rounds_by_accepted_and_drafted", fmt::format("{} accepted of {} drafts", j, length),
                        "no more accepted than drafted");
        }
        traces::add_counts(histogram, of_length);
      }
      if (!counts_.rounds_by_accepted.empty()) {
        for (std::size_t j = 0; j < std::max(histogram.size(), counts_.rounds_by_accepted.size()); ++j) {
          check_.equal("rounds_by_accepted", j < counts_.rounds_by_accepted.size() ? counts_.rounds_by_accepted[j] : 0,
                       fmt::format("the sum over draft lengths at {} accepted", j),
                       j < histogram.size() ? histogram[j] : 0);
        }
      }
      unit_.has_positions = true;
    } else if (!counts_.rounds_by_accepted.empty()) {
      histogram = counts_.rounds_by_accepted;
      unit_.has_positions = true;
    } else if (!counts_.accepted_at.empty() && unit_.rounds) {
      histogram = rounds_up_to("accepted_at", counts_.accepted_at);
      unit_.has_positions = true;
    }
    drop_empty_end(histogram);
    if (!unit_.has_positions) return;
    if (histogram.size() > 1) unit_.accepted_at.resize(histogram.size() - 1);
    double alive = 0;
    for (std::size_t j = histogram.size(); j-- > 1;) {
      alive += histogram[j];
      unit_.accepted_at[j - 1] = alive;
    }
  }

  void take_totals() {
    if (unit_.has_positions) {
      const double rounds = traces::sum_of(unit_.rounds_by_accepted);
      const double accepted = traces::weighted_sum(unit_.rounds_by_accepted);
      if (unit_.rounds) check_.equal("rounds", *unit_.rounds, "the sum of the histogram", rounds);
      if (unit_.accepted) {
        check_.equal("accepted", *unit_.accepted, "the histogram's accepted drafts", accepted);
      } else {
        unit_.accepted = accepted;
      }
      if (!unit_.rounds) unit_.rounds = rounds;
    }
    if (!unit_.rounds_by_drafted.empty()) {
      const double drafted = traces::weighted_sum(unit_.rounds_by_drafted);
      if (unit_.drafted && unit_.shape == DraftShape::tree) {
        // Its paths have this length, and several drafts share one depth.
        check_.at_most("the drafts by length", drafted, "the drafted tokens", *unit_.drafted);
      } else if (unit_.drafted) {
        check_.equal("drafted", *unit_.drafted, "the drafts by length", drafted);
      } else {
        unit_.drafted = drafted;
      }
    }
    if (!unit_.accepted && unit_.rounds && unit_.emitted) {
      unit_.accepted = std::max(0.0, *unit_.emitted - *unit_.rounds);  // compare_figures refuses less
      warn_("accepted_from_emitted", "accepted drafts are taken as the tokens put out less one for each round");
    }
    if (!unit_.accepted) take_mean();
    if (unit_.accepted && unit_.drafted) {
      check_.at_most("accepted", *unit_.accepted, "the drafted tokens", *unit_.drafted);
    }
    if (unit_.rounds == 0.0 && unit_.accepted.value_or(0) > 0) {
      check_.refuse("accepted", fmt::format("{:g}", *unit_.accepted), "0 where there are no rounds");
    }
  }

  /// A gauge is 0 while nothing was decoded.
  void take_mean() {
    if (!counts_.tokens_per_round || *counts_.tokens_per_round == 0) return;
    const double mean = *counts_.tokens_per_round;
    if (mean < 1) check_.refuse("tokens_per_round", fmt::format("{:g}", mean), "at least 1, the target's own token");
    if (gamma_ && mean > (static_cast<double>(*gamma_) + 1) * (1 + loose_share)) {
      check_.refuse("tokens_per_round", fmt::format("{:g}", mean), fmt::format("at most gamma + 1 = {}", *gamma_ + 1));
    }
    unit_.mean_tokens = gamma_ ? std::min(mean, static_cast<double>(*gamma_) + 1) : mean;
  }

  void check_chain() {
    if (!gamma_) return;
    const auto gamma = static_cast<double>(*gamma_);
    if (unit_.rounds && unit_.drafted) {
      check_.at_most("drafted", *unit_.drafted, fmt::format("gamma = {} times the rounds", *gamma_),
                     gamma * *unit_.rounds);
    }
    const auto reached = static_cast<std::int64_t>(unit_.accepted_at.size());
    if (reached <= *gamma_) return;
    // Counts of rounds accepted beyond gamma contradict it, however few.
    check_.refuse("accepted drafts of a round", fmt::format("{}", reached),
                  fmt::format("at most {}, the gamma", *gamma_));
  }

  void find_fixed_gamma() {
    if (unit_.mean_tokens) unit_.fixed_gamma = gamma_;
    if (!unit_.rounds || !(*unit_.rounds > 0)) return;
    const double rounds = *unit_.rounds;
    if (!unit_.rounds_by_drafted.empty()) {
      if (nearly_equal(unit_.rounds_by_drafted.back(), traces::sum_of(unit_.rounds_by_drafted))) {
        unit_.fixed_gamma = static_cast<std::int64_t>(unit_.rounds_by_drafted.size()) - 1;
      }
    } else if (gamma_) {
      const double all = static_cast<double>(*gamma_) * rounds;
      double off = counts_.from_rates ? check_.slack(all) : exact_share * all;
      if (counts_.engine == "llama.cpp") off = std::max(off, drafts_short_of(counts_, *gamma_, rounds));
      if (!unit_.drafted || std::abs(*unit_.drafted - all) <= off) unit_.fixed_gamma = gamma_;
    } else if (unit_.drafted && counts_.engine != "llama.cpp") {
      // llama.cpp ends drafts that look poor and counts rounds without a draft: an integer mean is a coincidence there.
      const double mean = *unit_.drafted / rounds;
      const double whole = std::round(mean);
      const double off = counts_.from_rates ? check_.slack(*unit_.drafted) / rounds : exact_share * mean;
      if (whole >= 1 && whole <= static_cast<double>(RoundMoments::most_positions) && std::abs(mean - whole) <= off &&
          static_cast<double>(unit_.accepted_at.size()) <= whole) {
        unit_.fixed_gamma = std::llround(whole);
        unit_.longest_draft = unit_.fixed_gamma;
        warn_("gamma_inferred", fmt::format("gamma is taken as {}: drafted tokens / rounds", *unit_.fixed_gamma));
      }
    }
    if (unit_.fixed_gamma && unit_.rounds_by_drafted.empty()) {
      unit_.rounds_by_drafted.resize(static_cast<std::size_t>(*unit_.fixed_gamma) + 1);
      unit_.rounds_by_drafted.back() = unit_.has_positions ? traces::sum_of(unit_.rounds_by_accepted) : rounds;
    }
  }

  const ServingCounts& counts_;
  const UnitCountsOptions& options_;
  const WarnOfUnit& warn_;
  Checks check_;
  UnitCounts& unit_;
  std::optional<std::int64_t> gamma_;
};

}  // namespace

double drafts_short_of(const traces::ServingCounts& counts, std::int64_t gamma, double rounds) {
  const auto drafts = static_cast<double>(gamma);
  // Near the end a round drafts no more than may still be emitted: at worst gamma - 1, ..., 1, 0.
  if (counts.unit == CountUnit::request || counts.format == "llama-speculative") {
    const double answers = counts.bench ? counts.bench->completed.value_or(1) : 1;
    return answers * drafts * (drafts + 1) / 2;
  }
  constexpr double share_in_ends = 0.05;  // share in a total or a window, which count no answers
  return share_in_ends * drafts * rounds;
}

void normalise(const traces::ServingCounts& counts, const UnitCountsOptions& options, const WarnOfUnit& warn,
               UnitCounts& unit) {
  Normalisation(counts, options, warn, unit).run();
}

}  // namespace specdec::estimate
