#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "analysis/core/lookup_law.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/planning/mixed_curve.hpp"
#include "planner/acceptance.hpp"
#include "planner/sources/mix_parts.hpp"
#include "planner/sources/seen_labels.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

using estimate::ServingSummary;

/// The summaries of the requested model, or of the only one: one, or one for each group.
std::vector<const ServingSummary*> summaries_of(const std::vector<ServingSummary>& summaries,
                                                const std::vector<std::string>& files,
                                                const std::optional<std::string>& model) {
  if (summaries.empty()) throw QuestionError(fmt::format("--counters: {} holds no counts", files.front()));
  std::vector<std::string> names;
  for (const ServingSummary& summary : summaries) {
    const std::string name = summary.model_name.empty() ? "none" : summary.model_name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  const bool is_one = names.size() == 1;
  if (!is_one && !model) {
    throw QuestionError(
        fmt::format("--model is missing: the counters are of several models, {}", fmt::join(names, ", ")));
  }
  std::vector<const ServingSummary*> found;
  for (const ServingSummary& summary : summaries) {
    if (is_one || summary.model_name == *model) found.push_back(&summary);
  }
  if (found.empty()) refuse("--model", *model, fmt::format("one of {}", fmt::join(names, ", ")));
  return found;
}

/// Refuses counts that say too little about drafts to be carried to other gammas, or two things.
void require_chains(const ServingSummary& summary, const std::string& file, bool gamma_stated) {
  for (const Note& warning : summary.warnings) {
    if (warning.code != estimate::figures_contradict) continue;
    throw QuestionError(
        fmt::format("--counters: {}; give --acceptance-length GAMMA:LENGTH instead of --counters", warning.message));
  }
  if (!summary.tokens_per_step) {
    throw QuestionError(
        fmt::format("--counters: {} counted no rounds, but acceptance is counted by a server that speculates", file));
  }
  if (summary.shape == traces::DraftShape::unknown && !gamma_stated) {
    throw QuestionError(
        fmt::format("--at is missing: {} does not show whether drafts are chains; --at G says that every "
                    "round drafted a chain of G tokens",
                    file));
  }
  if (summary.shape == traces::DraftShape::tree) {
    throw QuestionError(fmt::format("--counters: {} is of trees of drafts, but must be of chains to plan gamma", file));
  }
  const bool lengths_unknown = summary.alpha_hat && !summary.alpha_hat->value && !summary.longest_draft;
  if (lengths_unknown && summary.drafted && summary.rounds) {
    throw QuestionError(
        fmt::format("--at is missing: {} does not say how many tokens a round drafts at most, and {:.4g} a "
                    "round on average is not just below a whole number; --at G says it",
                    file, *summary.drafted / *summary.rounds));
  }
}

std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const ServingSummary& summary, const CountersOptions& options,
                                                          const std::string& file) {
  require_chains(summary, file, options.at.has_value());
  return std::make_shared<estimate::MeasuredAcceptance>(summary, estimate::MeasuredAcceptance::Options{options.kind});
}

/// The member of all groups if it is the same for them; empty otherwise.
template <class Member>
Member same_of(const std::vector<const ServingSummary*>& groups, Member ServingSummary::*member) {
  const bool same =
      std::all_of(groups.begin(), groups.end(), [&](const auto* one) { return one->*member == groups[0]->*member; });
  return same ? groups[0]->*member : Member();
}

/// Rounds taken as independent where one group's are.
estimate::IntervalBasis weakest_basis(const std::vector<const ServingSummary*>& groups) {
  estimate::IntervalBasis weakest = groups[0]->basis;
  for (const ServingSummary* group : groups) {
    if (group->basis == estimate::IntervalBasis::iid_rounds) weakest = group->basis;
  }
  return weakest;
}

/// Tokens of a request of the group.
double tokens_per_request(const ServingSummary& summary) {
  const double tokens = summary.emitted.value_or(summary.rounds.value_or(0) + summary.accepted.value_or(0));
  if (summary.unit != traces::CountUnit::request || !(tokens > 0)) {
    throw QuestionError(fmt::format(
        "--mix-by is requests, but must be tokens: the counts of {} do not tell how many tokens a request has",
        summary.group.value_or("")));
  }
  return tokens / static_cast<double>(summary.units);
}

/// Of the output tokens.
double share_of(const TrafficMix& mix, std::size_t part, const ServingSummary& group) {
  return mix.parts[part].share * (mix.by_requests ? tokens_per_request(group) : 1);
}

/// The groups that the mix names, in its order.
std::vector<const ServingSummary*> groups_of(const TrafficMix& mix, const std::vector<const ServingSummary*>& groups) {
  std::vector<std::string> known;
  for (const ServingSummary* group : groups) {
    if (!group->group.value_or("").empty()) known.push_back(*group->group);
  }
  std::vector<const ServingSummary*> named;
  for (const TrafficMix::Part& part : mix.parts) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto* group) { return group->group == part.group; });
    if (found == groups.end()) refuse_group(part.group, known, "the counters");
    named.push_back(*found);
  }
  return named;
}

/// That of one group, or of a mix of several.
/// @param groups  those of the mix, in its order
std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const std::vector<const ServingSummary*>& groups,
                                                          const CountersOptions& options, const std::string& file,
                                                          std::vector<Note>& warnings) {
  if (!options.mix) {
    append(warnings, groups.front()->warnings);
    return curve_of(*groups.front(), options, file);
  }
  std::vector<planning::TrafficPart> parts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    append_new(warnings, groups[i]->warnings);
    parts.push_back({curve_of(*groups[i], options, file), share_of(*options.mix, i, *groups[i])});
  }
  return std::make_shared<planning::MixedCurve>(parts);
}

/// The summaries of the units that tell their steps: of rounds, and by step.
struct CountedSteps {
  std::vector<ServingSummary> rounds, by_step;
};

/// That of the same model and group; null if there is none.
const ServingSummary* same_group(const std::vector<ServingSummary>& summaries, const ServingSummary& group) {
  const auto found = std::find_if(summaries.begin(), summaries.end(), [&](const ServingSummary& other) {
    return other.model_name == group.model_name && other.group == group.group;
  });
  return found == summaries.end() ? nullptr : &*found;
}

/// How many of the steps drafted, and how much.
struct DraftedSteps {
  double steps = 0, rounds = 0, drafted = 0;

  /// @param share  of all steps, of those of the summary
  void add(double share, double its_steps, const ServingSummary& its) {
    steps += share;
    rounds += share * *its.rounds / its_steps;
    drafted += share * *its.drafted / its_steps;
  }
};

/// What counts tell of lookups where they tell steps.
/// @param groups  of all units, those of a mix in its order
std::optional<CountedLookups> lookups_of_steps(const std::vector<const ServingSummary*>& groups,
                                               const CountedSteps& counted, const CountersOptions& options,
                                               const std::string& file) {
  constexpr double ends_of_window = 1.02, few = 0.1;
  DraftedSteps all;
  std::int64_t gamma = 0;
  std::vector<const ServingSummary*> by_step;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ServingSummary* const rounds = same_group(counted.rounds, *groups[i]);
    const ServingSummary* const steps = same_group(counted.by_step, *groups[i]);
    if (rounds == nullptr || steps == nullptr || rounds->shape != traces::DraftShape::chain ||
        !(rounds->rounds.value_or(0) > few * groups[i]->rounds.value_or(0)) || !rounds->drafted || !rounds->steps ||
        *rounds->rounds > ends_of_window * *rounds->steps || !steps->gamma || !steps->tokens_per_step)
      return std::nullopt;
    // A group's share of all steps, which put out its share of the tokens.
    const double share = options.mix ? share_of(*options.mix, i, *groups[i]) / steps->tokens_per_step->value : 1;
    all.add(share, std::max(*rounds->steps, *rounds->rounds), *rounds);
    gamma = std::max(gamma, *steps->gamma);
    by_step.push_back(steps);
  }
  // Where every step is counted as a round, with a draft or without, drafts are taken to fill gamma.
  const bool counts_passes = options.kind && cost::looks_up(*options.kind) && all.rounds >= all.steps;
  const double rounds = counts_passes ? all.drafted / static_cast<double>(gamma) : all.rounds;
  const core::LookupLaw law = core::LookupLaw::counted(rounds / all.steps, all.drafted / rounds, gamma);
  std::vector<Note> same_warnings;
  return CountedLookups{law.hit_rate, law.mean_length, gamma, curve_of(by_step, options, file, same_warnings)};
}

/// What counts tell of lookups; empty if they do not tell how long drafts were.
/// @param groups  of all units, those of a mix in its order
std::optional<CountedLookups> lookups_of(const std::vector<const ServingSummary*>& groups, const CountedSteps& counted,
                                         const CountersOptions& options, const std::string& file) {
  if (auto lookups = lookups_of_steps(groups, counted, options, file)) return lookups;
  DraftedSteps all;
  std::int64_t gamma = 0;
  for (const ServingSummary* group : groups) {
    const auto longest = group->gamma ? group->gamma : group->longest_draft;
    if (group->shape != traces::DraftShape::chain || !(group->rounds.value_or(0) > 0) || !group->drafted || !longest)
      return std::nullopt;
    all.add(1, *group->rounds, *group);
    gamma = std::max(gamma, *longest);
  }
  const core::LookupLaw law = core::LookupLaw::counted(1, all.drafted / all.rounds, gamma);
  return CountedLookups{std::nullopt, law.mean_length, gamma, nullptr};
}

/// Rates of requests with their group.
struct GroupedRate {
  std::string group;
  planning::RequestRate rate;
};

/// The requests of the groups of a mix, weighted so that each group has its share of the rounds.
/// @param groups  those of the mix, in its order
std::vector<planning::RequestRate> mixed_rates(const std::vector<GroupedRate>& rates,
                                               const std::vector<const ServingSummary*>& groups,
                                               const TrafficMix& mix) {
  std::vector<planning::RequestRate> mixed;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const TrafficMix::Part& part = mix.parts[i];
    double weight = 0;
    for (const GroupedRate& one : rates) weight += one.group == part.group ? one.rate.weight : 0;
    const double rounds = share_of(mix, i, *groups[i]) / groups[i]->tokens_per_step->value;
    for (const GroupedRate& one : rates) {
      if (one.group != part.group) continue;
      mixed.push_back(one.rate);
      mixed.back().weight *= rounds / weight;
    }
  }
  return mixed;
}

}  // namespace

Acceptance Acceptance::from_counters(const std::vector<std::string>& files, const CountersOptions& options) {
  Acceptance acceptance;
  estimate::ServingSummaryOptions reading;
  reading.gamma = options.at;
  estimate::LabelGroups by;
  if (options.mix) by = options.mix->groups;
  if (options.mix && by.label.empty()) by.label = "category";
  reading.by = by;
  estimate::ServingSummaries collected(reading), with_steps(reading), by_step(reading);
  // Those that do not say how long drafts are wait for the gamma that all together show.
  std::vector<traces::ServingCounts> without_gamma;
  std::map<std::string, std::vector<GroupedRate>, std::less<>> rates_by_model;
  traces::CountsSink sink;
  SeenLabels labels(by);
  sink.take = [&](const traces::ServingCounts& counts) {
    collected.add(counts);
    if (traces::steps_of(counts)) {
      with_steps.add(counts);
      if (traces::longest_draft_of(counts, options.at)) {
        by_step.add(traces::counted_by_step(counts, options.at));
      } else {
        without_gamma.push_back(counts);
      }
    }
    labels.add(counts);
    if (!options.by_request) return;
    const auto rate = planning::rate_of_request(counts, options.at);
    if (!rate) return;
    rates_by_model[std::string(counts.label("model_name"))].push_back(
        {by.group_of(estimate::label_value(counts, by)), *rate});
  };
  sink.warn = [&](const Note& warning) { acceptance.warnings.push_back(warning); };
  traces::read_serving_counts(std::vector<std::filesystem::path>(files.begin(), files.end()), sink);
  labels.require("--by");
  const std::vector<ServingSummary> summaries = collected.summaries();
  std::vector<const ServingSummary*> found = summaries_of(summaries, files, options.model);
  if (options.mix) found = groups_of(*options.mix, found);
  const ServingSummary& summary = *found.front();
  if (options.mix) acceptance.assumptions.push_back(assumption_of(*options.mix, by.label));
  acceptance.curve = curve_of(found, options, files.front(), acceptance.warnings);
  for (traces::ServingCounts& counts : without_gamma)
    by_step.add(traces::counted_by_step(std::move(counts), summary.gamma));
  acceptance.lookups = lookups_of(found, {with_steps.summaries(), by_step.summaries()}, options, files.front());
  std::int64_t clusters = 0;
  for (const ServingSummary* group : found) clusters += group->clusters;
  if (weakest_basis(found) != estimate::IntervalBasis::iid_rounds && clusters > 0) acceptance.clusters = clusters;
  const auto counted_rule = same_of(found, &ServingSummary::rule);
  acceptance.rule = options.acceptance ? options.acceptance : counted_rule;
  acceptance.rule_source = options.acceptance ? "user" : counted_rule ? "file" : "";
  const std::vector<GroupedRate>& rates = rates_by_model[summary.model_name];
  if (options.mix) {
    acceptance.request_rates = mixed_rates(rates, found, *options.mix);
  } else {
    for (const GroupedRate& one : rates) acceptance.request_rates.push_back(one.rate);
  }
  acceptance.method = std::string(name_of(weakest_basis(found)));
  if (summary.alpha_hat && !options.mix) {
    acceptance.alpha = summary.alpha_hat->value;
    acceptance.alpha_ci95 = summary.alpha_hat->ci95;
  }
  acceptance.text = fmt::format("counters{}{}", summary.model_name.empty() ? "" : " of " + summary.model_name,
                                summary.formats.empty() ? "" : fmt::format(" ({})", fmt::join(summary.formats, ", ")));
  if (options.mix) acceptance.text += fmt::format(" in a mix of {}", options.mix->text());
  const std::vector<std::string> engines = same_of(found, &ServingSummary::engines);
  if (engines.size() == 1) acceptance.engine = engines.front();
  if (!summary.model_name.empty()) acceptance.model = summary.model_name;
  acceptance.files = files;
  return acceptance;
}

}  // namespace specdec::planner
