#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/engine_config.hpp"
#include "cli/options.hpp"
#include "cli/values.hpp"

/// Values of options that `specdec plan` shares with other commands.
namespace specdec::cli {

/// Declares --draft-kind.
void declare_draft_kind(Options& options, std::optional<cost::DraftKind>& kind,
                        const std::string& help = "how drafts are made [model]");
/// Declares --emit.
void declare_emit(Options& options, std::optional<planning::Engine>& engine, const std::string& help);

/// "1,8,64", rising.
std::vector<double> rising_list(std::string_view option, const std::string& text, const LegalRange& range);

/// "1-64:3,65-128:1,129-512:0", from batch 1 on without gaps.
std::vector<planning::ScheduleStretch> parse_schedule(const std::string& text);

/// Declares --batch and --context, rising lists, and --schedule.
void declare_batch(Options& options, std::vector<double>& batch, const std::string& help);
void declare_context(Options& options, std::vector<double>& context, const std::string& help,
                     const std::string& value_name = "N1,N2,...");
void declare_schedule(Options& options, std::vector<planning::ScheduleStretch>& schedule, const std::string& help);

}  // namespace specdec::cli
