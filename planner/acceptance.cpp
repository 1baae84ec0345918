#include "planner/acceptance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "analysis/planning/published_acceptance.hpp"
#include "analysis/planning/published_lengths.hpp"
#include "planner/cost.hpp"
#include "planner/near_names.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

StatedAcceptance between(const core::AcceptanceRate& low, const core::AcceptanceRate& high) {
  if (low == high) return {low};
  const planning::RateInterval interval = {low, high};
  return {planning::middle(interval), interval};
}

StatedAcceptance of_typed(estimate::TypedAcceptance typed) { return {.rate = typed.rate, .typed = std::move(typed)}; }

std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const StatedAcceptance& a) {
  if (a.typed) return std::make_shared<estimate::PopulationCurve>(a.typed->evidence);
  if (!a.interval) return std::make_shared<planning::ProfileCurve>(a.rate);
  return std::make_shared<planning::ProfileCurve>(a.rate, a.interval->low, a.interval->high);
}

/// A draft is reached only if all before it were accepted, so that no position is accepted more often than an
/// earlier one, except by rounding: which is monotone, so that rates with as many digits do not rise at all.
void require_falling(std::span<const estimate::TypedRate> rates) {
  std::size_t least = 0;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    // Intervals of equal widths meet at their ends, where the rounding of sums is no gap; those of unequal ones do not.
    constexpr double rounding = 1e-12;
    const double most = rates[least].rate + rates[least].half_unit - rounding;
    if (rates[i].rate > rates[least].rate && rates[i].rate - rates[i].half_unit >= most) {
      throw QuestionError(
          fmt::format("--acceptance-per-position: position {} is {}, but must be at most {}, that of position {}: a "
                      "draft is looked at only where all before it were accepted (--conditional says that the rates "
                      "are of those alone)",
                      i + 1, brief(rates[i].rate, 7), brief(rates[least].rate, 7), least + 1));
    }
    if (rates[i].rate + rates[i].half_unit < rates[least].rate + rates[least].half_unit) least = i;
  }
}

Acceptance with_words(Acceptance acceptance, AcceptanceWords words) {
  words.rule = acceptance.rule_source == "user" ? acceptance.rule : std::nullopt;
  acceptance.words = std::move(words);
  return acceptance;
}

/// The options of the acceptances that are stated.
std::vector<std::string_view> stated_by(const AcceptanceWords& words) {
  std::vector<std::string_view> given;
  const auto add = [&](bool is_given, std::string_view option) {
    if (is_given) given.push_back(option);
  };
  add(words.alpha.has_value(), "--alpha");
  add(words.rejection.has_value(), "--rejection");
  add(!words.acceptance_length.empty(), "--acceptance-length");
  add(!words.acceptance_per_position.empty(), "--acceptance-per-position");
  add(words.published.has_value(), "--published");
  add(words.known.has_value(), "--known");
  return given;
}

void require_one(const AcceptanceWords& words) {
  const std::vector<std::string_view> given = stated_by(words);
  if (given.empty()) {
    throw QuestionError(
        "one of --alpha, --rejection, --acceptance-length, --acceptance-per-position, --published and --known is "
        "needed");
  }
  if (given.size() > 1) throw QuestionError(fmt::format("{} are given, but must be one", fmt::join(given, " and ")));
  if (words.rounds && words.acceptance_length.empty() && words.acceptance_per_position.empty()) {
    throw QuestionError("--rounds is given, but goes with --acceptance-length or --acceptance-per-position only");
  }
  if (words.conditional && words.acceptance_per_position.empty()) {
    throw QuestionError("--conditional is given, but goes with --acceptance-per-position only");
  }
}

StatedAcceptance of_prior(const planning::PublishedPrior& prior) {
  std::vector<estimate::TypedLength> lengths;
  for (const planning::PriorLength& length : prior.lengths) lengths.push_back({length.gamma, length.tokens_per_step});
  StatedAcceptance stated = of_typed(estimate::typed_lengths(lengths));
  stated.prior = &prior;
  stated.typed->is_sampled = true;
  // Its own law says where acceptance lies, and the kind's only how it changes with depth.
  const planning::PriorLength& first = prior.lengths.front();
  const double error = std::log(first.ci95.hi / first.ci95.lo) / (2 * core::normal_half_width_95);
  estimate::PopulationCurve::Evidence& evidence = stated.typed->evidence;
  evidence.prior = estimate::without_location(estimate::population_prior(planning::kind_of(prior)));
  evidence.lengths = {{first.gamma, first.tokens_per_step, error}};
  for (const planning::PriorLength& length : prior.lengths) {
    evidence.measured[length.gamma].value = length.tokens_per_step;
    evidence.measured[length.gamma].ci95 = length.ci95;
  }
  return stated;
}

/// "EAGLE-3 heads of llama-3.3-70b".
std::string drafts_of(const planning::PublishedPrior& prior) {
  const char* const heads = prior.kind == "eagle3" ? "EAGLE-3 heads"
                            : prior.kind == "mtp"  ? "next-token modules"
                                                   : "drafts made in one pass";
  return prior.target_model ? fmt::format("{} of {}", heads, *prior.target_model) : heads;
}

/// "2.7 (1.7 to 3.6) at gamma 3", in tokens per step.
std::string text_of(const planning::PriorLength& length) {
  return fmt::format("{} ({} to {}) at gamma {}", brief(length.tokens_per_step, 3), brief(length.ci95.lo, 3),
                     brief(length.ci95.hi, 3), length.gamma);
}

/// Rounds of a run that would narrow a prior.
constexpr double rounds_to_narrow = 10'000;

Note warning_of(const planning::PublishedPrior& prior) {
  const planning::PriorLength& length = prior.lengths.front();
  const std::vector<estimate::TypedLength> typed = {{length.gamma, length.tokens_per_step}};
  const StatedAcceptance run = of_typed(estimate::typed_lengths(typed, rounds_to_narrow));
  const estimate::Interval by_run = curve_of(run)->tokens_per_step(length.gamma).ci95;
  const std::string whose =
      prior.target_model ? fmt::format("{} figures of {} on tasks of others", prior.figures.size(), drafts_of(prior))
                         : fmt::format("{} figures of {} on other targets, none of them this one", prior.figures.size(),
                                       drafts_of(prior));
  return {
      "acceptance_from_prior",
      fmt::format("the acceptance is nothing that was measured here: it is a prior, {}, from {}; serve the draft at "
                  "gamma {} to prompts of your own, and --counters with what the server counted in {} rounds in its "
                  "place narrows {} to {} tokens per step to about {} either way",
                  text_of(length), whose, length.gamma, rounds_to_narrow, brief(length.ci95.lo, 3),
                  brief(length.ci95.hi, 3), brief((by_run.hi - by_run.lo) / 2, 1))};
}

std::vector<Assumption> assumptions_of(const planning::PublishedPrior& prior) {
  std::vector<Assumption> assumptions;
  for (const planning::PriorLength& length : prior.lengths) {
    assumptions.push_back({fmt::format("tokens per step at gamma {}", length.gamma),
                           fmt::format("{} to {}, {} by the estimate: published lengths of {} ({} figures of {} "
                                       "deployments; {} of {} of the kind)",
                                       brief(length.ci95.lo, 3), brief(length.ci95.hi, 3),
                                       brief(length.tokens_per_step, 3), drafts_of(prior), prior.figures.size(),
                                       prior.deployments, prior.figures_of_kind, prior.deployments_of_kind),
                           "preset"});
  }
  assumptions.push_back({"spread of log-odds of acceptance between tasks, deployments, targets",
                         {prior.task_spread, prior.deployment_spread, prior.target_spread},
                         "preset"});
  return assumptions;
}

void require_lengths(const std::vector<estimate::TypedLength>& lengths) {
  std::int64_t last = 0;
  for (const estimate::TypedLength& length : lengths) {
    if (length.gamma <= last) {
      throw QuestionError(
          fmt::format("--acceptance-length: gamma {} follows {}, but gammas must rise", length.gamma, last));
    }
    last = length.gamma;
    if (1 <= length.tokens_per_step && length.tokens_per_step <= static_cast<double>(last) + 1) continue;
    refuse("--acceptance-length", fmt::format("{}", length.tokens_per_step),
           fmt::format(
               "in [1, {0}] at gamma {1}: tokens per step, the bonus token included (accepted drafts alone are one "
               "less, in [0, {1}])",
               last + 1, last));
  }
}

}  // namespace

bool AcceptanceWords::states_any() const { return !stated_by(*this).empty(); }

Acceptance Acceptance::of_rate(double alpha, Rule rule) { return of_interval(alpha, alpha, rule); }

Acceptance Acceptance::of_interval(double low, double high, Rule rule) {
  core::require_in("Acceptance", "low", low, 0, high);
  return with_words(of(between(core::AcceptanceRate(low), core::AcceptanceRate(high)), rule),
                    {.alpha = RateRange{low, high}});
}

Acceptance Acceptance::of_rejection(double low, double high, Rule rule) {
  core::require_in("Acceptance", "low", low, 0, high);
  return with_words(of(between(core::AcceptanceRate::from_rejection(high), core::AcceptanceRate::from_rejection(low)),
                       rule),
                    {.rejection = RateRange{low, high}});
}

Acceptance Acceptance::of_lengths(std::span<const estimate::TypedLength> lengths, std::optional<double> rounds,
                                  Rule rule) {
  return with_words(of(of_typed(estimate::typed_lengths(lengths, rounds)), rule),
                    {.acceptance_length = {lengths.begin(), lengths.end()}, .rounds = rounds});
}

Acceptance Acceptance::of_positions(std::span<const estimate::TypedRate> rates, bool conditional,
                                    std::optional<double> rounds, Rule rule) {
  if (!conditional) require_falling(rates);
  StatedAcceptance stated = of_typed(estimate::typed_positions(rates, conditional, rounds));
  stated.equal_positions =
      !conditional && std::adjacent_find(rates.begin(), rates.end(), [](const auto& before, const auto& after) {
                        return before.rate == after.rate;
                      }) != rates.end();
  return with_words(
      of(std::move(stated), rule),
      {.acceptance_per_position = {rates.begin(), rates.end()}, .conditional = conditional, .rounds = rounds});
}

Acceptance Acceptance::published(std::string_view name, Rule rule) {
  if (const planning::PublishedAcceptance* const found = planning::published_acceptance(name)) {
    StatedAcceptance stated{core::AcceptanceRate(found->alpha), found->interval};
    stated.published = found;
    return with_words(of(std::move(stated), rule), {.published = found->name});
  }
  if (const planning::PublishedPrior* const prior = planning::published_prior(name)) {
    Acceptance acceptance = with_words(of(of_prior(*prior), rule), {.published = prior->name});
    acceptance.presets.push_back({"acceptance", prior->name, prior->sources});
    return acceptance;
  }
  std::vector<std::string> known;
  for (const planning::PublishedAcceptance& one : planning::published_acceptances()) known.push_back(one.name);
  for (const planning::PublishedPrior& one : planning::published_priors()) known.push_back(one.name);
  refuse("--published", name, "a name of `specdec list published`" + near_names(name, known));
}

Acceptance Acceptance::prior_for(const Cost& cost, Rule rule) {
  const auto preset_of = [](const std::optional<std::string>& name) {
    return name ? cost::model_preset(*name) : nullptr;
  };
  const cost::ModelSpec* const head = preset_of(cost.draft.model);
  const cost::ModelSpec* const target = preset_of(cost.target_model);
  std::optional<std::string> of;
  if (target != nullptr) of = target->name;
  if (head != nullptr && !head->target.empty()) of = head->target;
  if (const planning::PublishedPrior* const prior = planning::prior_of(cost.kind, of)) {
    return published(prior->name, rule);
  }
  throw QuestionError(fmt::format(
      "{} is {}, but must be eagle, mtp or parallel where no acceptance is given: of other drafts no acceptance length "
      "was published that would stand for it; --alpha, --acceptance-length, --counters, --trace, ... state one",
      draft_option_of(cost.draft, "kind"), name_of(cost.kind)));
}

Acceptance Acceptance::of(StatedAcceptance stated, Rule rule) {
  Acceptance acceptance;
  acceptance.curve = curve_of(stated);
  acceptance.rule = rule;
  if (rule) acceptance.rule_source = "user";
  const planning::PublishedAcceptance* const published = stated.published;
  if (!rule && published != nullptr && published->temperature == 0 && published->lenience == 1) {
    acceptance.rule = traces::AcceptanceRule::greedy;
    acceptance.rule_source = "preset";
  }
  acceptance.alpha = complement(stated.rate.rejection(), stated.rate.alpha());
  acceptance.text = fmt::format("alpha {}", brief(*acceptance.alpha));
  if (published != nullptr) {
    acceptance.text += fmt::format(" ({})", published->name);
    acceptance.model = published->target_model;
  }
  if (stated.prior != nullptr) {
    // Its rates fall with depth: no one alpha gives its lengths.
    const planning::PriorLength& length = stated.prior->lengths.front();
    acceptance.text = fmt::format("prior {}, {} tokens per step at gamma {}", stated.prior->name,
                                  brief(length.tokens_per_step, 3), length.gamma);
    acceptance.model = stated.prior->target_model;
  }
  acceptance.method = stated.interval || stated.typed ? "stated" : "exact";
  acceptance.assumptions = assumptions_of(stated);
  acceptance.warnings = warnings_of(stated);
  acceptance.stated = std::move(stated);
  return acceptance;
}

Acceptance Acceptance::of(const AcceptanceWords& words) {
  require_one(words);
  if (words.alpha) return of_interval(words.alpha->low, words.alpha->high, words.rule);
  if (words.rejection) return of_rejection(words.rejection->low, words.rejection->high, words.rule);
  if (!words.acceptance_length.empty()) {
    require_lengths(words.acceptance_length);
    return of_lengths(words.acceptance_length, words.rounds, words.rule);
  }
  if (!words.acceptance_per_position.empty()) {
    return of_positions(words.acceptance_per_position, words.conditional, words.rounds, words.rule);
  }
  if (words.published) return published(*words.published, words.rule);
  Acceptance acceptance = *words.known->acceptance;
  acceptance.words = words;
  return acceptance;
}

Acceptance Acceptance::of(const AcceptanceWords& words, const Cost& cost) {
  const bool leaves_it_to_draft = cost.draft.model || cost.draft.kind;
  if (!words.states_any() && !words.rounds && !words.conditional && leaves_it_to_draft)
    return prior_for(cost, words.rule);
  return of(words);
}

void Acceptance::take_draft_of(const Cost& cost) {
  const bool is_typed = stated && stated->typed && stated->prior == nullptr;
  if (!is_typed || !(cost.draft.model || cost.draft.kind)) return;
  stated->typed->evidence.prior = estimate::population_prior(cost.kind);
  curve = curve_of(*stated);
}

Assumption assumption_of(const planning::PublishedAcceptance& published) {
  const std::string lenience =
      published.lenience < 1
          ? fmt::format(" at lenience {}, at which the text is not the target's own", brief(published.lenience))
          : "";
  return {"alpha", fmt::format("{}{} ({}, {})", brief(published.alpha), lenience, published.where, published.source),
          "preset"};
}

std::vector<Note> warnings_of(const StatedAcceptance& a) {
  std::vector<Note> warnings;
  if (a.typed && !a.typed->monotone) {
    warnings.push_back({std::string(lengths_contradict),
                        "the figures typed contradict each other: a later draft would be accepted more often than one "
                        "before it, by more "
                        "than their rounding; type figures of one draft and the same texts"});
  }
  if (a.equal_positions) {
    warnings.push_back({"equal_positions",
                        "two positions have one rate, which means that a draft is always accepted where the one before "
                        "it was: --conditional if each rate is given that the one before was accepted"});
  }
  if (a.published != nullptr && a.published->lenience < 1) {
    warnings.push_back(
        {"text_not_from_target",
         fmt::format(
             "{} was measured at lenience {}, which accepts more than the target would: the text that this plan "
             "speeds up is not the target's own",
             a.published->name, brief(a.published->lenience))});
  }
  if (a.prior != nullptr) warnings.push_back(warning_of(*a.prior));
  if (!a.typed && !a.interval) {
    warnings.push_back({"rate_taken_as_exact",
                        "the acceptance rate is taken as exact and as the same however deep a draft is: an interval "
                        "LOW:HIGH of it, lengths or rates by position with --rounds, or counters give a range"});
  }
  if (a.lacks_sampling_error()) {
    warnings.push_back({"no_sampling_error",
                        "ranges hold how the figures typed were rounded and how rates may change with depth, and no "
                        "sampling error of the figures: --rounds, the rounds behind each of them, adds it"});
  }
  return warnings;
}

std::vector<Assumption> assumptions_of(const StatedAcceptance& a) {
  if (!a.typed) return {};
  if (a.prior != nullptr) return assumptions_of(*a.prior);
  const bool by_rounds = !a.lacks_sampling_error();
  return {{"sampling error of the acceptance",
           by_rounds ? "that of --rounds, 64 of which are taken to be one request's" : "none, without --rounds",
           by_rounds ? "user" : "default"}};
}

}  // namespace specdec::planner
