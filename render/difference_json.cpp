#include <string_view>

#include "render/difference.hpp"
#include "render/json_values.hpp"

namespace specdec::render {
namespace {

using estimate::Difference;
using estimate::GroupDifference;
using estimate::PositionDifference;
using estimate::RunDifference;
using nlohmann::ordered_json;
using planner::RunsDifference;

ordered_json difference_json(const Difference& difference) {
  return {
      {"value", difference.value}, {"ci95", pair_of(difference.ci95)}, {"p_value", number_or_null(difference.p_value)}};
}

ordered_json with_difference(ordered_json row, const Difference& difference) {
  row["difference"] = difference_json(difference);
  return row;
}

ordered_json compared_run_json(const planner::ComparedRun& run, std::int64_t units, std::int64_t clusters,
                               double tokens) {
  return {{"file", run.file},
          {"kind", run.kind},
          {"unit", run.unit},
          {"acceptance_rule", run.rule ? ordered_json(traces::name_of(*run.rule)) : ordered_json()},
          {"gamma", or_null(run.gamma)},
          {"units", units},
          {"clusters", clusters},
          {"tokens_per_step", tokens}};
}

ordered_json compared_position_json(const PositionDifference& position) {
  return with_difference(
      {{"position", position.position}, {"a", number_or_null(position.a)}, {"b", number_or_null(position.b)}},
      position.difference);
}

ordered_json compared_group_json(const GroupDifference& group) {
  return with_difference({{"group", group.group},
                          {"units_a", group.units_a},
                          {"units_b", group.units_b},
                          {"share_a", group.share_a},
                          {"share_b", group.share_b},
                          {"tokens_per_step_a", number_or_null(group.tokens_a)},
                          {"tokens_per_step_b", number_or_null(group.tokens_b)},
                          {"mix", group.mix}},
                         group.acceptance);
}

ordered_json difference_part_json(std::string_view part, const Difference& difference) {
  return with_difference({{"part", part}}, difference);
}

ordered_json difference_parts_json(const RunDifference& found) {
  ordered_json parts = ordered_json::array();
  if (found.mix) parts.push_back(difference_part_json("prompt_mix", *found.mix));
  if (found.within) parts.push_back(difference_part_json("within_groups", *found.within));
  if (found.rule) parts.push_back(difference_part_json("rule", *found.rule));
  if (found.time) {
    parts.push_back(difference_part_json("log_seconds_per_token", found.time->log_per_token));
    parts.push_back(difference_part_json("log_seconds_per_round", found.time->log_round));
    parts.push_back(difference_part_json("log_tokens_per_step", found.time->log_tokens));
  }
  return parts;
}

ordered_json time_difference_json(const RunDifference& found) {
  if (!found.time) return nullptr;
  return {{"seconds_per_token_a", found.time->seconds_per_token_a},
          {"seconds_per_token_b", found.time->seconds_per_token_b},
          {"seconds_per_round_a", found.time->seconds_per_round_a},
          {"seconds_per_round_b", found.time->seconds_per_round_b}};
}

std::string_view verdict_of(const RunsDifference& answer) {
  if (!answer.tells()) return "cannot tell";
  return answer.difference.tokens.value > 0 ? "b accepts more" : "b accepts less";
}

}  // namespace

ordered_json json_of(const RunsDifference& answer) {
  const RunDifference& found = answer.difference;
  ordered_json json = {{"a", compared_run_json(answer.a, found.units_a, found.clusters_a, found.tokens_a)},
                       {"b", compared_run_json(answer.b, found.units_b, found.clusters_b, found.tokens_b)},
                       {"paired", found.paired},
                       {"verdict", verdict_of(answer)},
                       {"undecided", answer.undecided.empty() ? ordered_json() : ordered_json(answer.undecided)},
                       {"tokens_per_step", difference_json(found.tokens)},
                       {"clusters_to_tell", number_or_null(found.clusters_to_tell)},
                       {"detectable_difference", number_or_null(found.detectable)},
                       {"parts", difference_parts_json(found)},
                       {"positions", ordered_json::array()},
                       {"groups", ordered_json::array()},
                       {"time", time_difference_json(found)}};
  for (const PositionDifference& position : found.positions)
    json["positions"].push_back(compared_position_json(position));
  for (const GroupDifference& group : found.groups) json["groups"].push_back(compared_group_json(group));
  return json;
}

std::map<std::string, ordered_json, std::less<>> rows_of_empty_difference() {
  return {{"parts", difference_part_json("", {})},
          {"positions", compared_position_json({})},
          {"groups", compared_group_json({})}};
}

}  // namespace specdec::render
