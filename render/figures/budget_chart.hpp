#pragma once

#include <string>

#include "planner/methods/batch_budgets.hpp"
#include "render/figures/chart.hpp"

namespace specdec::render {

/// Two panels over the batch: the speedup over plain decoding of one gamma for all, of the best one and of budgets of
/// verified drafts; and the tokens per step and verified drafts behind them.
/// @param who  the subject: "llama-3.3-70b on 4 h100-sxm"
Chart verification_budget_chart(const planner::BatchBudgets& budgets, const std::string& who);

}  // namespace specdec::render
