#include "render/comparison.hpp"

#include <optional>

#include "render/json_values.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;
using validation::MethodResult;

ordered_json estimate_or_null(const std::optional<estimate::Estimate>& e) { return e ? estimate_json(e) : nullptr; }

template <class Kind>
ordered_json name_or_null(const Kind* kind) {
  return kind == nullptr ? ordered_json() : ordered_json(kind->name);
}

ordered_json row_of(const MethodResult& r) {
  return {{"method", name_of(r.method)},
          {"draft", name_or_null(r.method.draft)},
          {"verifier", name_or_null(r.method.verifier)},
          {"policy", name_or_null(r.method.policy)},
          {"task", r.task.empty() ? ordered_json() : ordered_json(r.task)},
          {"lossless", r.method.lossless()},
          {"total_variation_per_token", r.total_variation_per_token},
          {"sequences", r.sequences},
          {"steps", r.counters.steps},
          {"tokens", r.counters.tokens},
          {"drafted", r.draft_calls_per_token ? ordered_json(r.counters.drafted) : ordered_json()},
          {"accepted", r.counters.accepted},
          {"tokens_per_step", estimate_or_null(r.tokens_per_step)},
          {"closed_form",
           {{"tokens_per_step", number_or_null(r.closed_form_tokens_per_step)},
            {"deviation_standard_errors", number_or_null(r.deviation_standard_errors)}}},
          {"acceptance", estimate_or_null(r.acceptance)},
          {"acceptance_by_position", r.acceptance_by_position()},
          {"target_calls_per_token", r.target_calls_per_token},
          {"draft_calls_per_token", number_or_null(r.draft_calls_per_token)},
          {"operations_factor", number_or_null(r.operations_factor)},
          {"memory_factor", number_or_null(r.memory_factor)},
          {"speedup", estimate_or_null(r.speedup)},
          {"timing", timing_json(r.timing)}};
}

ordered_json row_of(const validation::PlannedTree& tree) {
  return {{"method", tree.method},
          {"nodes", tree.parents.size()},
          {"depth", tree.depth},
          {"tokens_per_step", number_or_null(tree.expected_tokens)},
          {"parents", tree.parents}};
}

}  // namespace

ordered_json timing_json(const std::optional<validation::MethodTiming>& timing) {
  if (!timing) return nullptr;
  ordered_json factors = ordered_json::array();
  for (const auto& [tokens, factor] : timing->verification) factors.push_back({{"tokens", tokens}, {"factor", factor}});
  return {{"plain_step_seconds", timing->plain_step_seconds},
          {"c", timing->c},
          {"verify_factors", factors},
          {"overhead", timing->overhead},
          {"speedup",
           {{"theorem_3_8", number_or_null(timing->theorem)},
            {"expected", timing->expected},
            {"measured", timing->measured}}}};
}

ordered_json json_of(const planner::MethodRuns& runs) {
  ordered_json json = {
      {"results", ordered_json::array()}, {"tasks", ordered_json::array()}, {"trees", ordered_json::array()}};
  for (const MethodResult& r : runs.results) json[r.task.empty() ? "results" : "tasks"].push_back(row_of(r));
  for (const validation::PlannedTree& tree : runs.trees) json["trees"].push_back(row_of(tree));
  json["partial"] = runs.partial;
  json["simulated"] = {{"tokens", runs.tokens},
                       {"seconds", runs.seconds},
                       {"tokens_per_second",
                        runs.seconds > 0 ? ordered_json(static_cast<double>(runs.tokens) / runs.seconds) : nullptr}};
  return json;
}

std::map<std::string, ordered_json, std::less<>> rows_of_empty_tables(const planner::MethodRuns& runs) {
  MethodResult with_all = runs.results.front();
  with_all.acceptance = with_all.speedup = with_all.tokens_per_step;
  with_all.timing.emplace();
  return {{"results", row_of(with_all)}, {"tasks", row_of(with_all)}, {"trees", row_of(validation::PlannedTree())}};
}

}  // namespace specdec::render
