#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "planner/assumption.hpp"
#include "planner/load/capacity.hpp"
#include "planner/plan.hpp"
#include "traces/note.hpp"

/// The parts of the answer to one point that a sweep keeps.
namespace specdec::planner {

struct PointAnswer {
  /// Rows of the sweep's table, at least one: plan_rows or capacity_rows.
  nlohmann::ordered_json rows;
  /// Those of the answer, without those that explain a null.
  std::vector<Note> warnings;
  std::vector<Assumption> assumptions;
};

/// {"rows", "warnings", "assumptions"}
nlohmann::ordered_json to_json(const PointAnswer& answer);
/// @throws nlohmann::json::exception for anything but what to_json gives
PointAnswer point_answer_from(const nlohmann::ordered_json& json);

PointAnswer point_answer(const Plan& plan);
PointAnswer point_answer(const Capacity& capacity);
/// The answer of a point that has none.
PointAnswer unpriced_answer(const std::vector<std::string>& columns, std::string_view why);

/// Keys of a row behind what varies. An unknown figure is null, and `why` says why nothing is recommended, or why
/// what is cannot be deployed.
///
///   batch, context                     of a plan
///   verdict                            "sure", "likely", "open", "unlikely", "no"
///   share                              of a plan: of worlds in which drafts gain what is asked for
///   recommended_draft                  name of one of several drafts
///   recommended_gamma                  0 for plain decoding
///   recommended_max_num_seqs           of a capacity
///   speedup, speedup_ci95              over plain decoding at the same batch and context
///   requests_per_second_per_replica    of a capacity, with its ci95: the largest load
///   seconds_per_output_token           of one sequence with what is recommended; of a capacity the median request's
///   ttft_seconds_p99, tpot_seconds_p99 of a capacity
///   output_tokens_per_second_per_gpu
///   replicas                           of a capacity: what the stated load needs
///   gpus                               that share the work; of a capacity with the central 95% of worlds,
///                                      whose high end is null where no number meets the load there
///   gpu_seconds_per_million_tokens     gpus * seconds / tokens, of output tokens
///   cost_per_million_tokens            the same in money, of a capacity whose price is stated
///   plain_...                          the same without speculation
std::vector<std::string> plan_columns();
std::vector<std::string> capacity_columns();

/// One row for each batch and context.
nlohmann::ordered_json plan_rows(const Plan& plan);
/// One row: the recommended scenario beside the best without speculation.
nlohmann::ordered_json capacity_rows(const Capacity& capacity);
/// Marks in "pareto" the rows that no other row of the same work beats in both seconds_per_output_token and cost: true
/// if none is at most as large in both and smaller in one, null if either is unknown or `why` is not null. The same
/// work is what the columns in `work` say, as far as they are there.
void mark_pareto(std::vector<nlohmann::ordered_json>& rows, const std::vector<std::string>& work);
/// The column that is the cost of these rows: cost_per_million_tokens if all rows with a time have it, else
/// gpu_seconds_per_million_tokens.
std::string pareto_cost_column(const std::vector<nlohmann::ordered_json>& rows);

}  // namespace specdec::planner
