#include "planner/sweeps/sweep_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>


namespace specdec::planner {
namespace {

using nlohmann::ordered_json;

constexpr double tokens_per_million = 1e6;

ordered_json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? ordered_json(*value) : ordered_json();
}

std::optional<double> at(const ordered_json& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

/// A row in which nothing is known.
ordered_json empty_row(const std::vector<std::string>& columns) {
  ordered_json row = ordered_json::object();
  for (const std::string& column : columns) row[column] = nullptr;
  return row;
}

/// Accelerators of a replica; empty if nothing says it, as runs do not.
std::optional<double> gpus_of(const Plan& plan) {
  if (plan.drafts.empty()) return std::nullopt;
  const auto& roofline = plan.drafts[plan.shown()].cost.roofline;
  if (!roofline) return std::nullopt;
  return static_cast<double>(roofline->options().target.tensor_parallel);
}

void put_throughput(const std::string& prefix, const std::optional<double>& tokens_per_second,
                    const std::optional<double>& gpus, ordered_json& row) {
  if (!tokens_per_second || !gpus) return;
  row[prefix + "output_tokens_per_second_per_gpu"] = number(*tokens_per_second / *gpus);
  row[prefix + "gpu_seconds_per_million_tokens"] = number(tokens_per_million * *gpus / *tokens_per_second);
}

/// Times and throughput of what is recommended, and of plain decoding.
void put_times(const planning::PointPlan& point, bool plain, const std::optional<double>& gpus, ordered_json& row) {
  if (const auto& seconds = point.seconds_per_output_token) {
    row["seconds_per_output_token"] = number(plain ? seconds->baseline : seconds->speculative);
    row["plain_seconds_per_output_token"] = number(seconds->baseline);
  }
  if (const auto& tokens = point.output_tokens_per_second) {
    put_throughput("", plain ? tokens->baseline : tokens->speculative, gpus, row);
    put_throughput("plain_", tokens->baseline, gpus, row);
  }
}

/// The message of a warning; empty if it is not there.
std::string message_of(const std::vector<Note>& warnings, std::string_view code) {
  const auto found =
      std::find_if(warnings.begin(), warnings.end(), [&](const Note& note) { return note.code == code; });
  return found == warnings.end() ? "" : found->message;
}

/// The reason why engines refuse the layout; empty if they do not.
std::string why_uneven(const std::vector<Note>& warnings) { return message_of(warnings, "tensor_parallel_uneven"); }

/// Null without a range; its high end is null where no number meets the load there.
ordered_json bounds_of(const std::optional<sim::GpuRange>& gpus) {
  if (!gpus) return nullptr;
  return ordered_json::array({gpus->lo, gpus->some_never ? ordered_json() : ordered_json(gpus->hi)});
}

void put_load(const Capacity& capacity, std::size_t index, const std::string& prefix, ordered_json& row) {
  const sim::ScenarioCapacity& scenario = capacity.scenarios()[index];
  if (scenario.tpot_seconds) row[prefix + "seconds_per_output_token"] = number(scenario.tpot_seconds->p50.value);
  const double tokens = scenario.output_tokens_per_second.value;
  const auto per_replica = static_cast<double>(capacity.simulation.gpus_per_replica);
  if (tokens > 0) row[prefix + "output_tokens_per_second_per_gpu"] = number(tokens / per_replica);
  if (scenario.gpu_seconds_per_token > 0)
    row[prefix + "gpu_seconds_per_million_tokens"] = number(tokens_per_million * scenario.gpu_seconds_per_token);
  row[prefix + "cost_per_million_tokens"] = number(scenario.cost_per_million_tokens);
  if (scenario.gpus) row[prefix + "gpus"] = *scenario.gpus;
  row[prefix + "gpus_bounds"] = bounds_of(capacity.in_worlds.scenarios[index].gpu_range);
}

std::vector<Note> shown(const std::vector<Note>& warnings) {
  std::vector<Note> kept;
  std::copy_if(warnings.begin(), warnings.end(), std::back_inserter(kept),
               [](const Note& note) { return !note.explains_null; });
  return kept;
}

}  // namespace

std::vector<std::string> plan_columns() {
  return {"batch",
          "context",
          "verdict",
          "share",
          "recommended_draft",
          "recommended_gamma",
          "speedup",
          "speedup_ci95",
          "seconds_per_output_token",
          "output_tokens_per_second_per_gpu",
          "gpus",
          "gpu_seconds_per_million_tokens",
          "plain_seconds_per_output_token",
          "plain_output_tokens_per_second_per_gpu",
          "plain_gpu_seconds_per_million_tokens",
          "why"};
}

std::vector<std::string> capacity_columns() {
  return {"verdict",
          "recommended_gamma",
          "recommended_max_num_seqs",
          "requests_per_second_per_replica",
          "requests_per_second_per_replica_ci95",
          "seconds_per_output_token",
          "ttft_seconds_p99",
          "tpot_seconds_p99",
          "output_tokens_per_second_per_gpu",
          "replicas",
          "gpus",
          "gpus_bounds",
          "gpu_seconds_per_million_tokens",
          "cost_per_million_tokens",
          "plain_seconds_per_output_token",
          "plain_output_tokens_per_second_per_gpu",
          "plain_gpus",
          "plain_gpus_bounds",
          "plain_gpu_seconds_per_million_tokens",
          "plain_cost_per_million_tokens",
          "why"};
}

ordered_json plan_rows(const Plan& plan) {
  ordered_json rows = ordered_json::array();
  const std::vector<Recommendation> recommended = plan.recommendations();
  for (std::size_t i = 0; i < recommended.size(); ++i) {
    const Recommendation& one = recommended[i];
    ordered_json& row = rows.emplace_back(empty_row(plan_columns()));
    row["batch"] = one.batch;
    row["context"] = one.context;
    row["verdict"] = worlds::name_of(one.certainty);
    row["share"] = number(one.share);
    if (plan.drafts.size() > 1) row["recommended_draft"] = plan.shown_plan().name;
    row["recommended_gamma"] = one.gamma;
    row["speedup"] = number(one.speedup.value);
    if (one.speedup.ci95) row["speedup_ci95"] = {number(one.speedup.ci95->lo), number(one.speedup.ci95->hi)};
    const std::optional<double> gpus = gpus_of(plan);
    row["gpus"] = number(gpus);
    const planning::PointPlan& point = plan.points()[i];
    put_times(point, one.gamma == 0, gpus, row);
    if (!plan.misfit().empty() && one.gamma > 0) row["why"] = plan.misfit();
    if (const std::string uneven = why_uneven(plan.warnings); !uneven.empty()) row["why"] = uneven;
    if (i < plan.shortfalls.size() && !plan.shortfalls[i].empty()) row["why"] = plan.shortfalls[i];
  }
  return rows;
}

ordered_json capacity_rows(const Capacity& capacity) {
  ordered_json row = empty_row(capacity_columns());
  const sim::CapacityAnswer& answer = capacity.answer();
  put_load(capacity.of_plain(), capacity.of_plain().plain(), "plain_", row);
  if (!answer.recommended) {
    row["why"] = "no scenario carries the load within the limits";
    return ordered_json::array({row});
  }
  const sim::ScenarioCapacity& scenario = answer.scenarios[*answer.recommended];
  row["verdict"] = worlds::name_of(*capacity.certainty());
  if (const auto gamma = gamma_of(scenario.scenario)) row["recommended_gamma"] = *gamma;
  row["recommended_max_num_seqs"] = scenario.scenario.engine.max_num_seqs;
  const sim::SimulatedValue& rate = scenario.requests_per_second_per_replica;
  row["requests_per_second_per_replica"] = number(rate.value);
  row["requests_per_second_per_replica_ci95"] = {number(rate.lo), number(rate.hi)};
  if (scenario.ttft_seconds) row["ttft_seconds_p99"] = number(scenario.ttft_seconds->p99.value);
  if (scenario.tpot_seconds) row["tpot_seconds_p99"] = number(scenario.tpot_seconds->p99.value);
  if (scenario.replicas) row["replicas"] = *scenario.replicas;
  put_load(capacity, *answer.recommended, "", row);
  if (capacity.exceeds_gpus) row["why"] = message_of(capacity.warnings, "more_gpus_than_given");
  if (const std::string uneven = why_uneven(capacity.warnings); !uneven.empty()) row["why"] = uneven;
  return ordered_json::array({row});
}

ordered_json to_json(const PointAnswer& answer) {
  ordered_json warnings = ordered_json::array();
  for (const Note& note : answer.warnings) warnings.push_back({{"code", note.code}, {"message", note.message}});
  return {{"rows", answer.rows}, {"warnings", std::move(warnings)}, {"assumptions", answer.assumptions}};
}

PointAnswer point_answer_from(const ordered_json& json) {
  PointAnswer answer{json.at("rows"), {}, {}};
  for (const ordered_json& note : json.at("warnings"))
    answer.warnings.push_back({note.at("code").get<std::string>(), note.at("message").get<std::string>()});
  for (const ordered_json& one : json.at("assumptions")) {
    answer.assumptions.push_back(
        {one.at("name").get<std::string>(), one.at("value"), one.at("source").get<std::string>()});
  }
  return answer;
}

PointAnswer point_answer(const Plan& plan) { return {plan_rows(plan), shown(plan.warnings), plan.assumptions}; }

PointAnswer point_answer(const Capacity& capacity) {
  return {capacity_rows(capacity), shown(capacity.warnings), capacity.assumptions};
}

PointAnswer unpriced_answer(const std::vector<std::string>& columns, std::string_view why) {
  ordered_json row = empty_row(columns);
  row["why"] = why;
  return {ordered_json::array({row}), {}, {}};
}

std::string pareto_cost_column(const std::vector<ordered_json>& rows) {
  const bool all_priced = std::all_of(rows.begin(), rows.end(), [](const ordered_json& row) {
    return !at(row, "seconds_per_output_token") || at(row, "cost_per_million_tokens");
  });
  const bool some = std::any_of(rows.begin(), rows.end(),
                                [](const ordered_json& row) { return at(row, "cost_per_million_tokens").has_value(); });
  return all_priced && some ? "cost_per_million_tokens" : "gpu_seconds_per_million_tokens";
}

void mark_pareto(std::vector<ordered_json>& rows, const std::vector<std::string>& work) {
  const std::string cost_column = pareto_cost_column(rows);
  struct Place {
    double seconds, cost;
    std::size_t row;
  };
  std::map<std::string, std::vector<Place>> places;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i]["pareto"] = nullptr;
    const auto seconds = at(rows[i], "seconds_per_output_token"), cost = at(rows[i], cost_column);
    if (!seconds || !cost || !rows[i].at("why").is_null()) continue;
    ordered_json key = ordered_json::array();
    for (const std::string& column : work) key.push_back(rows[i].value(column, ordered_json()));
    places[key.dump()].push_back({*seconds, *cost, i});
  }
  for (auto& [key, of_work] : places) {
    std::sort(of_work.begin(), of_work.end(), [](const Place& a, const Place& b) {
      return std::pair(a.seconds, a.cost) < std::pair(b.seconds, b.cost);
    });
    // Rows that are equal in both beat each other in neither.
    double cheapest = std::numeric_limits<double>::infinity(), its_seconds = 0;
    for (const Place& place : of_work) {
      const bool is_equal = place.cost == cheapest && place.seconds == its_seconds;
      const bool is_best = place.cost < cheapest || is_equal;
      rows[place.row]["pareto"] = is_best;
      if (is_best) std::tie(cheapest, its_seconds) = std::pair(place.cost, place.seconds);
    }
  }
}

}  // namespace specdec::planner
