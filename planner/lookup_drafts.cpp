#include "planner/lookup_drafts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "analysis/cost/lookup_cost.hpp"
#include "analysis/estimate/lookup_curve.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

/// What is stated, and what of it counts tell where it is not.
core::LookupLaw lookup_law(const DraftWords& draft, cost::DraftKind kind,
                           const std::optional<CountedLookups>& counted) {
  const std::string hit_rate = option_of(draft, "hit-rate"), length = option_of(draft, "mean-draft-length");
  if (!cost::looks_up(kind)) {
    throw QuestionError((draft.hit_rate ? hit_rate : length) + " is given, but needs " +
                        draft_option_of(draft, "kind") +
                        " ngram or suffix beside it: other drafts propose in every round");
  }
  if (!draft.hit_rate && !(counted && counted->hit_rate))
    throw QuestionError(length + " is given, but needs " + hit_rate + " beside it");
  require_in(hit_rate, draft.hit_rate, {.hi = 1});
  require_in(length, draft.mean_draft_length, {.lo = 1, .hi = 1e6});
  core::LookupLaw law;
  if (counted) law = {counted->hit_rate.value_or(1), counted->mean_length};
  if (draft.hit_rate) law.hit_rate = *draft.hit_rate;
  if (draft.mean_draft_length) law.mean_length = draft.mean_draft_length;
  return law;
}

/// The law of the counts alone; empty if they do not tell it.
std::optional<core::LookupLaw> counted_law(const std::optional<CountedLookups>& counted) {
  if (!counted || !counted->hit_rate) return std::nullopt;
  return core::LookupLaw{*counted->hit_rate, counted->mean_length};
}

/// Where the hit rate of a law holds; empty where it is stated beside a rate or a recording, of every gamma.
std::optional<core::LookupLaw::Counted> place_of(const core::LookupLaw& law, const Acceptance& acceptance,
                                                 const std::optional<CountedLookups>& counted) {
  const bool is_typed = acceptance.stated && acceptance.stated->typed;
  if (!is_typed && !counted) return std::nullopt;
  const std::int64_t gamma = is_typed ? acceptance.stated->typed->measured_at : counted->gamma;
  const bool by_step = counted && counted->curve;
  const double hits = by_step ? std::max(*counted->hit_rate, 1e-12) : 1;
  const double tokens = (by_step ? counted->curve : acceptance.curve)->tokens_per_step(gamma).value;
  return core::LookupLaw::Counted{
      gamma, std::clamp(1 + law.hit_rate / hits * (tokens - 1), 1.0, static_cast<double>(gamma) + 1)};
}

/// Typed lengths of rounds with a draft, which accept no more than is drafted.
void require_drafted(const StatedAcceptance& typed, const core::LookupLaw& law, const DraftWords& draft) {
  for (const auto& [gamma, measured] : typed.typed->evidence.measured) {
    constexpr double rounding = 0.01;
    const double most = 1 + core::LookupLaw{1, law.mean_length}.mean_drafted(static_cast<double>(gamma));
    if (measured.value <= most * (1 + rounding)) continue;
    throw QuestionError(
        fmt::format("{} is {}, but rounds with a draft then make at most {} tokens with {} drafts, and {} "
                    "are stated",
                    option_of(draft, "mean-draft-length"), brief(*law.mean_length), brief(most, 3), gamma,
                    brief(measured.value, 3)));
  }
}

/// Stated figures that are not those counted.
void compare_with_counts(const DraftWords& draft, const core::LookupLaw& counted, Cost& cost) {
  constexpr double alike = 1.05;
  const auto differ = [](double a, double b) { return a > alike * b || b > alike * a; };
  std::string found;
  if (draft.hit_rate && differ(*draft.hit_rate, counted.hit_rate))
    found = fmt::format("{} is {}, and in the counts a share of {} of the steps drafted", option_of(draft, "hit-rate"),
                        brief(*draft.hit_rate), brief(counted.hit_rate));
  if (draft.mean_draft_length && counted.mean_length && differ(*draft.mean_draft_length, *counted.mean_length))
    found += fmt::format("{}{} is {}, and that of the counts {}", found.empty() ? "" : "; ",
                         option_of(draft, "mean-draft-length"), brief(*draft.mean_draft_length),
                         brief(*counted.mean_length));
  if (found.empty()) return;
  cost.warnings.push_back(
      {"lookups_contradict_counts",
       found + ": the plan takes what is stated, which is right where its traffic is not that of the counts"});
}

template <class Wrap>
void wrap_curves(Acceptance& acceptance, const Wrap& wrapped) {
  const auto wrap = [&](std::shared_ptr<const estimate::AcceptanceCurve>& curve) {
    if (curve) curve = wrapped(curve);
  };
  wrap(acceptance.curve);
  for (planning::ContextAcceptance& part : acceptance.by_context) wrap(part.acceptance);
}

/// Counts, and what somebody states, are of proposed drafts; recordings hold the rounds without any, too.
void take_unknown(Acceptance& acceptance, Cost& cost) {
  const bool taken = std::dynamic_pointer_cast<const estimate::UnknownLookups>(acceptance.curve) != nullptr;
  if (taken || !(acceptance.engine || acceptance.stated)) return;
  const std::string_view why =
      acceptance.engine ? "the counts do not tell in how many steps a lookup found nothing, which are not counted or "
                          "fewer than the rounds"
                        : "nothing says in how many steps a lookup finds something";
  cost.warnings.push_back({std::string(hit_rate_unknown),
                           std::string(why) +
                               ": every round is taken to draft gamma tokens, the most that there can be, and "
                               "speedups may be as little as 1; --hit-rate and --mean-draft-length say it"});
  cost.assumptions.push_back({"hit_rate", 1.0, "default"});
  wrap_curves(acceptance, [](const auto& curve) { return std::make_shared<estimate::UnknownLookups>(curve); });
}

/// Puts the acceptance of all steps in place of that of what was proposed.
void take_steps(const CountedLookups& counted, Acceptance& acceptance) {
  // By step, drafts of all lengths are gamma tokens, some of them rejected.
  std::erase_if(acceptance.warnings, [](const Note& note) {
    return note.code == estimate::drafts_end_early || note.code == estimate::alpha_is_bounded;
  });
  acceptance.curve = counted.curve;
}

/// Counts of an engine whose steps mostly had no draft, taken for drafts of every round.
void doubt_every_round(Acceptance& acceptance, Cost& cost) {
  const bool taken = std::dynamic_pointer_cast<const estimate::UnknownLookups>(acceptance.curve) != nullptr;
  if (taken || cost.draft.kind || !acceptance.lookups) return;
  if (acceptance.lookups->hit_rate.value_or(1) >= drafts_in_every_step) return;
  cost.warnings.push_back(
      {std::string(steps_without_drafts),
       fmt::format(
           "the counts tell that {} of the steps drafted, as where drafts are looked up: every step is taken to "
           "draft, and speedups may be as little as 1; {} ngram or suffix takes the steps without drafts into "
           "account, and model says that others are priced",
           percent(*acceptance.lookups->hit_rate), draft_option_of(cost.draft, "kind"))});
  wrap_curves(acceptance, [](const auto& curve) { return std::make_shared<estimate::UnknownLookups>(curve); });
}

}  // namespace

void take_draft(Acceptance* acceptance, Cost& cost) {
  if (acceptance != nullptr) acceptance->take_draft_of(cost);
  DraftWords& draft = cost.draft;
  const bool stated = draft.states_lookups();
  const bool taken = std::dynamic_pointer_cast<const cost::LookupCost>(cost.rounds) != nullptr;
  if (!stated && acceptance != nullptr && !cost::looks_up(cost.kind)) {
    // Steps that were timed with their misses are accepted with them.
    const bool is_known = cost.of_steps && acceptance->lookups && acceptance->lookups->curve;
    if (is_known)
      take_steps(*std::exchange(acceptance->lookups, std::nullopt), *acceptance);
    else
      doubt_every_round(*acceptance, cost);
  }
  if (!stated && (taken || !cost::looks_up(cost.kind) || acceptance == nullptr)) return;
  const std::optional<CountedLookups> counted =
      acceptance == nullptr ? std::nullopt : std::exchange(acceptance->lookups, std::nullopt);
  const std::optional<core::LookupLaw> of_counts = counted_law(counted);
  std::optional<core::LookupLaw> law = stated ? std::optional(lookup_law(draft, cost.kind, counted)) : of_counts;
  if (!law) return take_unknown(*acceptance, cost);
  if (of_counts) compare_with_counts(draft, *of_counts, cost);
  if (acceptance != nullptr) law->counted_at = place_of(*law, *acceptance, counted);
  const bool states_length = draft.mean_draft_length || (draft.hit_rate && !counted);
  const bool pads = draft.of_sglang || (acceptance != nullptr && acceptance->engine == "sglang");
  if (pads)
    cost.assumptions.push_back({"verified tokens of a step", "gamma + 1, whatever is found (SGLang)", "default"});
  if (!cost.of_steps && !pads) {
    cost.rounds = std::make_shared<cost::LookupCost>(cost.rounds, *law);
    if (cost.roofline) cost.iterations = std::make_shared<cost::LookupIterations>(cost.roofline, *law);
  }
  cost.assumptions.push_back({"hit_rate", law->hit_rate, draft.hit_rate ? "user" : "file"});
  if (law->mean_length) {
    cost.assumptions.push_back({"draft lengths", "geometric of mean " + brief(*law->mean_length) + ", up to gamma",
                                states_length ? "user" : "file"});
  } else {
    cost.assumptions.push_back({"draft lengths", "gamma in every hit", states_length ? "default" : "file"});
  }
  // The law has been taken, so the settings are cleared.
  draft.hit_rate.reset();
  draft.mean_draft_length.reset();
  if (acceptance == nullptr) return;
  const auto with_law = [&](const core::LookupLaw& included) {
    wrap_curves(*acceptance,
                [&](const auto& curve) { return std::make_shared<estimate::LookupCurve>(curve, *law, included); });
  };
  if (!of_counts) {
    // A length, or rates by position, that somebody read off a server are of drafts as short as they were.
    const bool of_rounds = acceptance->stated && acceptance->stated->typed;
    if (of_rounds && law->mean_length) require_drafted(*acceptance->stated, *law, draft);
    return with_law({1, of_rounds ? law->mean_length : std::nullopt});
  }
  take_steps(*counted, *acceptance);
  if (stated && of_counts->hit_rate > 0) with_law(*of_counts);
}

}  // namespace specdec::planner
