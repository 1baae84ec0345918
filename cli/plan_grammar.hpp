#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "cli/values.hpp"

/// Values of options that `specdec plan` shares with other commands.
namespace specdec::cli {

/// "model", "mirrored", "eagle", "mtp", "parallel", "ngram" or "suffix".
/// @throws UsageError for another name
cost::DraftKind kind_named(std::string_view option, std::string_view name);

/// "1,8,64", rising.
std::vector<double> rising_list(std::string_view option, const std::string& text, const LegalRange& range);

/// "1-64:3,65-128:1,129-512:0", from batch 1 on without gaps.
std::vector<planning::ScheduleStretch> parse_schedule(const std::string& text);

}  // namespace specdec::cli
