#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plan_deployment.hpp"

/// What of a plan over batches and contexts needs no file: from the options and from drafts with their acceptance and
/// cost to the answer. plan_deployment.cpp reads the files first; a page that recomputes has none.
namespace specdec::cli {

/// What the options ask, before a draft is known.
/// @throws UsageError
Deployment asked_deployment(const PlanOptions& o);

/// --batch and --context; empty where they are not given.
/// @throws UsageError
std::vector<double> asked_batches(const PlanOptions& o);
std::vector<double> asked_contexts(const PlanOptions& o);
std::int64_t scheduled_up_to(const PlanOptions& o, const std::vector<double>& batches);
/// @throws UsageError unless --schedule covers the batches
void require_scheduled(const PlanOptions& o, const Deployment& d, const std::vector<double>& batches);

/// The only draft, without a cost.
/// @throws UsageError
PlannedDraft named_draft(const PlanOptions& o);

/// Its limits, warnings and files become the plan's.
void take_acceptance(const PlannedAcceptance& acceptance, Deployment& d);

/// --hardware prices the draft; presets, assumptions and warnings of that become the plan's.
/// @param model  of the draft; nothing for n-grams and for the target's own module
/// @param who    how messages name its options: "--", "--draft NAME: "
/// @throws UsageError, traces::FileError
void price_by_hardware(const PlanOptions& o, const std::optional<std::string>& model, std::string_view who,
                       PlannedDraft& draft, Deployment& d);

/// The c that this kind of draft can have: 0 is none where it makes no draft pass.
/// @throws UsageError for another number there
std::optional<double> c_of_kind(cost::DraftKind kind, const std::optional<double>& c, std::string_view who);

/// --verify-factor, --overhead and this c price the draft.
/// @throws UsageError
std::shared_ptr<const cost::RoundCost> constant_cost(const PlanOptions& o, cost::DraftKind kind,
                                                     const std::optional<double>& c, std::string_view who);

/// Plans d.drafts.
/// @param usual_batches  where --batch is not given
/// @throws UsageError, std::domain_error
void plan_drafts(const PlanOptions& o, const std::vector<double>& usual_batches, Deployment& d);

/// Adds what is said of the plan once it is there: notes, memory, the engine and its configuration.
void conclude(const PlanOptions& o, Deployment& d);

}  // namespace specdec::cli
