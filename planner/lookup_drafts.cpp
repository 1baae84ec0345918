#include "planner/lookup_drafts.hpp"

#include <fmt/format.h>
#include <memory>

#include "analysis/cost/lookup_cost.hpp"
#include "analysis/estimate/lookup_curve.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

core::LookupLaw lookup_law(const DraftWords& draft, cost::DraftKind kind) {
  const std::string hit_rate = option_of(draft, "hit-rate"), length = option_of(draft, "mean-draft-length");
  if (!cost::looks_up(kind)) {
    throw QuestionError((draft.hit_rate ? hit_rate : length) + " is given, but needs " +
                        draft_option_of(draft, "kind") +
                        " ngram or suffix beside it: other drafts propose in every round");
  }
  if (!draft.hit_rate) throw QuestionError(length + " is given, but needs " + hit_rate + " beside it");
  require_in(hit_rate, draft.hit_rate, {.hi = 1});
  require_in(length, draft.mean_draft_length, {.lo = 1, .hi = 1e6});
  return {*draft.hit_rate, draft.mean_draft_length};
}

template <class Wrap>
void wrap_curves(Acceptance& acceptance, const Wrap& wrapped) {
  const auto wrap = [&](std::shared_ptr<const estimate::AcceptanceCurve>& curve) {
    if (curve) curve = wrapped(curve);
  };
  wrap(acceptance.curve);
  wrap(acceptance.curve_at_design_effect_3);
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
  cost.warnings.push_back(
      {"hit_rate_unknown", std::string(why) +
                               ": every round is taken to draft gamma tokens, the most that there can be, and "
                               "speedups may be as little as 1; --hit-rate and --mean-draft-length say it"});
  cost.assumptions.push_back({"hit_rate", 1.0, "default"});
  wrap_curves(acceptance, [](const auto& curve) { return std::make_shared<estimate::UnknownLookups>(curve); });
}

/// Counts of an engine whose steps mostly had no draft, taken for drafts of every round.
void doubt_every_round(Acceptance& acceptance, Cost& cost) {
  constexpr double every_round = 0.9;
  const bool taken = std::dynamic_pointer_cast<const estimate::UnknownLookups>(acceptance.curve) != nullptr;
  if (taken || cost.draft.kind || !acceptance.lookups || acceptance.lookups->hit_rate >= every_round) return;
  cost.warnings.push_back(
      {"steps_without_drafts",
       fmt::format(
           "the counts tell that {} of the steps drafted, as where drafts are looked up: every step is taken to "
           "draft, and speedups may be as little as 1; {} ngram or suffix takes the steps without drafts into "
           "account, and model says that others are priced",
           percent(acceptance.lookups->hit_rate), draft_option_of(cost.draft, "kind"))});
  wrap_curves(acceptance, [](const auto& curve) { return std::make_shared<estimate::UnknownLookups>(curve); });
}

}  // namespace

void take_lookups(Acceptance* acceptance, Cost& cost) {
  DraftWords& draft = cost.draft;
  const bool stated = draft.states_lookups();
  const bool taken = std::dynamic_pointer_cast<const cost::LookupCost>(cost.rounds) != nullptr;
  if (!stated && acceptance != nullptr && !cost::looks_up(cost.kind)) doubt_every_round(*acceptance, cost);
  if (!stated && (taken || !cost::looks_up(cost.kind) || acceptance == nullptr)) return;
  const std::optional<core::LookupLaw> law = stated ? std::optional(lookup_law(draft, cost.kind)) : acceptance->lookups;
  if (!law) return take_unknown(*acceptance, cost);
  const char* const source = stated ? "user" : "file";
  cost.rounds = std::make_shared<cost::LookupCost>(cost.rounds, *law);
  if (cost.roofline) cost.iterations = std::make_shared<cost::LookupIterations>(cost.roofline, *law);
  cost.assumptions.push_back({"hit_rate", law->hit_rate, source});
  if (law->mean_length) {
    cost.assumptions.push_back(
        {"draft lengths", "geometric of mean " + brief(*law->mean_length) + ", up to gamma", source});
  } else {
    cost.assumptions.push_back({"draft lengths", "gamma in every hit", stated ? "default" : "file"});
  }
  // The law has been taken, so the settings are cleared.
  draft.hit_rate.reset();
  draft.mean_draft_length.reset();
  if (acceptance == nullptr) return;
  acceptance->lookups.reset();
  wrap_curves(*acceptance, [&](const auto& curve) { return std::make_shared<estimate::LookupCurve>(curve, *law); });
}

}  // namespace specdec::planner
