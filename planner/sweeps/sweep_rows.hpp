#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "planner/load/capacity.hpp"
#include "planner/plan.hpp"

/// The rows of a sweep's table, of one point each.
namespace specdec::planner {

/// Keys of a row behind what varies. An unknown figure is null, and `why` says why nothing is recommended, or why
/// what is cannot be deployed.
///
///   batch, context                     of a plan
///   verdict                            "speculate", "do not speculate", "cannot tell"
///   recommended_draft                  name of one of several drafts
///   recommended_gamma                  0 for plain decoding
///   recommended_max_num_seqs           of a capacity
///   speedup, speedup_ci95              over plain decoding at the same batch and context
///   requests_per_second_per_replica, .._ci95, replicas, of a capacity: the largest load, and what the stated load needs
///   seconds_per_output_token           of one sequence with what is recommended; of a capacity the median request's
///   ttft_seconds_p99, tpot_seconds_p99 of a capacity
///   output_tokens_per_second_per_gpu
///   gpus                               that share the work
///   gpu_seconds_per_million_tokens     gpus * seconds / tokens, of output tokens
///   cost_per_million_tokens            the same in money, of a capacity whose price is stated
///   plain_...                          the same without speculation
std::vector<std::string> plan_columns();
std::vector<std::string> capacity_columns();

/// One row for each batch and context.
nlohmann::ordered_json plan_rows(const Plan& plan);
/// One row: the recommended scenario beside the best without speculation.
nlohmann::ordered_json capacity_rows(const Capacity& capacity);
/// The row of a point without an answer.
nlohmann::ordered_json unpriced_rows(const std::vector<std::string>& columns, std::string_view why);

/// Marks in "pareto" the rows that no other row of the same work beats in both seconds_per_output_token and cost: true
/// if none is at most as large in both and smaller in one, null if either is unknown or `why` is not null. The same work is what the
/// columns in `work` say, as far as they are there.
void mark_pareto(std::vector<nlohmann::ordered_json>& rows, const std::vector<std::string>& work);
/// The column that is the cost of these rows: cost_per_million_tokens if all rows with a time have it, else
/// gpu_seconds_per_million_tokens.
std::string pareto_cost_column(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace specdec::planner
