#include "analysis/estimate/group_description.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "analysis/estimate/acceptance_estimates.hpp"

namespace specdec::estimate {
namespace {

using traces::CountUnit;
using traces::DraftShape;

/// A false alarm in at most one of 100 series of independent windows: sqrt(n) times the correlation without the
/// correction of its bias is nearly standard normal.
void warn_of_alike_windows(const NeighbourCorrelation& neighbours, ServingSummary& summary) {
  constexpr double one_in_100 = 2.33;
  const auto windows = static_cast<double>(summary.clusters);
  if (neighbours.value * (1 - 3 / windows) * std::sqrt(windows) < one_in_100) return;
  const StandardError error = of_neighbours({1, windows - 1}, summary.clusters, neighbours);
  add_warning(
      summary, "windows_alike",
      fmt::format("neighbouring windows resemble each other (correlation {:.2f} over {}): standard errors are {:.1f} "
                  "times those of independent windows, of which {:.2g} would tell as much, and intervals may still "
                  "cover less than 95%; a longer record tells more",
                  neighbours.value, summary.clusters, error.value, windows / neighbours.variance_inflation()));
}

}  // namespace

bool infer_gamma(const CountedGroup& group, ServingSummary& summary) {
  const CountedGroup::WithoutGamma& drafts = group.without_gamma;
  if (summary.shape != DraftShape::chain || drafts.units == 0 || drafts.units < group.counted) return false;
  const auto gamma = static_cast<double>(drafts.least_gamma);
  constexpr double just_below = 0.25;
  const bool of_ends = drafts.least_gamma <= drafts.most_gamma;
  if (!of_ends || gamma * drafts.rounds - drafts.drafted > just_below * drafts.rounds) return false;
  summary.gamma = summary.longest_draft = drafts.least_gamma;
  summary.warnings.push_back(
      {"gamma_inferred",
       fmt::format("gamma is taken as {}: {:.4g} tokens were drafted a round, which falls short of it by no more than "
                   "what the ends of answers cut off; --at says another one",
                   drafts.least_gamma, drafts.drafted / drafts.rounds)});
  return true;
}

void add_warning(ServingSummary& summary, std::string code, std::string message) {
  summary.warnings.push_back({std::move(code), std::move(message)});
}

void describe(const CountedGroup& group, ServingSummary& summary) {
  summary.rounds = group.rounds.known();
  summary.drafted = group.drafted.known();
  summary.accepted = group.accepted.known();
  summary.emitted = group.emitted.known();
  if (group.steps.units == summary.units) summary.steps = group.steps.known();
  if (group.with_lengths == group.counted) summary.rounds_by_drafted = group.rounds_by_drafted;
  if (group.with_both == group.counted) summary.rounds_by_accepted_and_drafted = group.by_length;
  if (group.counted == 0) return;
  if (!group.unit.differ()) summary.unit = group.unit.value_or(CountUnit::total);
  summary.draft_method = group.draft_method.value_or("");
  summary.rule = group.rule.value_or(std::nullopt);
  summary.shape = group.shape.value_or(DraftShape::unknown);
  if (const auto verified = group.verified.value_or(std::nullopt)) {
    summary.verified_per_round = static_cast<double>(*verified);
  }
  if (summary.shape != DraftShape::chain || group.fixed_gamma.differ()) return;
  summary.gamma = group.fixed_gamma.value_or(std::nullopt);
}

void warn_of_units(const CountedGroup& group, ServingSummary& summary) {
  const auto warn = [&](std::string code, std::string message) {
    add_warning(summary, std::move(code), std::move(message));
  };
  if (group.counted == 0) return warn("nothing_drafted", "no rounds were counted: acceptance is unknown");
  if (group.unit.differ()) {
    warn("mixed_units", "requests, windows, runs or totals were summed: the same rounds may have been counted twice");
  }
  if (group.rule.differ()) warn("mixed_rules", "units have different acceptance rules, or some have none: unknown");
  if (group.shape.differ()) {
    warn("mixed_shapes", "units have different shapes of drafts, or some have none: no alpha is given");
  } else if (summary.shape == DraftShape::unknown) {
    warn("shape_unknown", "whether drafts are chains or trees is unknown: no alpha is given; say --at or --tree");
  } else if (summary.shape == DraftShape::tree) {
    warn("tree", "drafts are trees: acceptance is given by depth, and there is no alpha of a chain");
  }
  for (const auto& [name, total] : {std::pair("rounds", group.rounds), std::pair("drafted", group.drafted),
                                    std::pair("accepted", group.accepted)}) {
    if (total.units > 0 && total.units < group.counted) {
      warn("counts_missing",
           fmt::format("{} is the sum of {} of {} units: the others do not give it", name, total.units, group.counted));
    }
  }
  if (group.with_positions > 0 && group.with_positions < group.counted) {
    warn("positions_missing", fmt::format("acceptance by position is that of {} of {} units: the others do not give it",
                                          group.with_positions, group.counted));
  }
}

void warn_of_acceptance(const CountedGroup& group, ServingSummary& summary) {
  if (summary.accepted == 0.0 && summary.drafted.value_or(0) > 0) {
    add_warning(summary, std::string(draft_never_accepted),
                fmt::format("0 of {:.6g} drafted tokens were accepted: {}", *summary.drafted, causes_of_rejection));
  }
  summary.trends = group.trends();
  for (const AcceptanceTrend& trend : summary.trends) {
    if (!trend.stands()) continue;
    add_warning(
        summary, std::string(acceptance_changes),
        fmt::format("{}; figures and plans are of all of it, {:.3g}: give the part alone that you want to plan for",
                    text_of(trend), trend.mean));
  }
}

void warn_of_lengths(const CountedGroup& group, ServingSummary& summary) {
  constexpr double ends_of_answers = 0.95;
  if (!summary.longest_draft || !summary.alpha_hat || !(group.rounds_of_lengths > 0)) return;
  const double drafted = group.drafted_of_lengths / group.rounds_of_lengths;
  if (drafted >= ends_of_answers * static_cast<double>(*summary.longest_draft)) return;
  add_warning(
      summary, std::string(drafts_end_early),
      fmt::format("rounds drafted {:.3g} tokens of up to {} on average and put out {:.4g}; the figures by gamma "
                  "are of rounds that all draft gamma tokens, which put out more",
                  drafted, *summary.longest_draft, summary.tokens_per_step->value));
}

void warn_of_basis(const CountedGroup& group, const NeighbourCorrelation& neighbours, ServingSummary& summary) {
  if (summary.basis == IntervalBasis::iid_rounds) {
    add_warning(
        summary, "iid_rounds",
        summary.unit == CountUnit::request
            ? "the intervals are those of the rounds of one request, which say nothing of how requests differ: a "
              "plan takes them to differ as those of published drafts do"
            : "the intervals take rounds as independent and are a lower bound on the width: rounds of one request "
              "resemble each other. Counts by request, or several scrapes, give better ones");
  } else if (summary.basis != IntervalBasis::none && summary.clusters < few_sequences) {
    add_warning(summary, "few_clusters",
                fmt::format("the intervals rest on {} clusters: below {} they may cover less than 95%",
                            summary.clusters, few_sequences));
  }
  if (summary.basis == IntervalBasis::batch_means) warn_of_alike_windows(neighbours, summary);
  if (summary.from_rates) {
    const bool several = group.least_rounds < group.most_rounds;
    add_warning(summary, "from_rates",
                "some counts were computed back from rounded rates" +
                    (several ? fmt::format(": {:.6g} to {:.6g} rounds, by which the intervals are wider",
                                           group.least_rounds, group.most_rounds)
                             : std::string()));
  }
}

}  // namespace specdec::estimate
