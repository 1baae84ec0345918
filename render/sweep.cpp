#include "render/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "planner/sweeps/sweep_rows.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;
using planner::Sweep;
using planner::SweepCommand;

/// Text lists at most so many reasons; data hold all.
constexpr std::size_t most_reasons = 5;

std::string cell(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float()) return brief(value.get<double>(), 4);
  if (value.is_array()) {
    std::string text;
    for (const ordered_json& one : value) text += (text.empty() ? "" : " ") + cell(one);
    return text;
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string seconds_cell(const ordered_json& value) {
  return value.is_number() ? fixed(milliseconds_per_second * value.get<double>(), 2) : "-";
}

/// "1 to 4", or "1 to none" where no number will do at the high end.
std::string interval_cell(const ordered_json& value) {
  if (!value.is_array()) return "-";
  return fmt::format("{} to {}", cell(value[0]), value[1].is_null() ? "none" : cell(value[1]));
}

/// The rows on a front, or, where no row has both time and cost, those with the largest speedups.
std::vector<const ordered_json*> best_rows(const std::vector<ordered_json>& rows, bool has_front) {
  std::vector<const ordered_json*> best;
  for (const ordered_json& row : rows) {
    const bool is_best =
        has_front ? row.at("pareto") == true : row.contains("speedup") && row.at("speedup").is_number();
    if (is_best) best.push_back(&row);
  }
  const std::string by = has_front ? "seconds_per_output_token" : "speedup";
  std::stable_sort(best.begin(), best.end(), [&](const ordered_json* a, const ordered_json* b) {
    return has_front ? a->at(by) < b->at(by) : a->at(by) > b->at(by);
  });
  return best;
}

struct AnswerColumn {
  std::string key;
  std::string heading;
  std::string (*format)(const ordered_json&) = cell;
  bool shown = true;
};

/// Columns of an answer behind those that vary.
std::vector<AnswerColumn> answer_columns(const Sweep& sweep, const std::string& cost) {
  const bool is_plan = sweep.command == SweepCommand::plan;
  return {{"recommended_gamma", "gamma"},
          {"speedup", "speedup", cell, is_plan},
          {"requests_per_second_per_replica", "requests/s", cell, !is_plan},
          {"seconds_per_output_token", "ms/token", seconds_cell},
          {"gpus", "GPUs"},
          {"gpus_bounds", "95%", interval_cell, !is_plan},
          {cost, cost == "cost_per_million_tokens" ? "cost/Mtok" : "GPU s/Mtok"},
          {"verdict", "verdict"}};
}

using RowColumn = Column<const ordered_json*>;

RowColumn column_of(const AnswerColumn& column, Align align = Align::right) {
  return {column.heading,
          {.align = align, .shown = column.shown},
          [key = column.key, format = column.format](const ordered_json* row) { return format(row->at(key)); }};
}

Table table_of(const Sweep& sweep, const std::vector<const ordered_json*>& rows, const std::string& cost) {
  std::vector<RowColumn> columns = {column_of({"point", "point"})};
  const std::vector<AnswerColumn> answers = answer_columns(sweep, cost);
  for (const std::string& option : sweep.varied) {
    // The recommended value has a column of its own name; batch and context are those of the row.
    if (std::any_of(answers.begin(), answers.end(), [&](const AnswerColumn& column) { return column.key == option; }))
      continue;
    columns.push_back(column_of({option, option}, Align::left));
  }
  // Points of several batches or contexts have a row for each.
  for (const char* const key : {"batch", "context"}) {
    const bool is_varied = std::find(sweep.varied.begin(), sweep.varied.end(), key) != sweep.varied.end();
    const auto differs = [&](const ordered_json* row) { return row->at(key) != rows.front()->at(key); };
    if (sweep.command == SweepCommand::plan && !is_varied && std::any_of(rows.begin(), rows.end(), differs))
      columns.push_back(column_of({key, key}));
  }
  for (const AnswerColumn& answer : answers) columns.push_back(column_of(answer));
  return make_table(rows, columns);
}

std::string reasons(const std::vector<ordered_json>& rows) {
  std::map<std::string, std::int64_t> counts;
  for (const ordered_json& row : rows) {
    if (row.at("verdict").is_null() && row.at("why").is_string()) ++counts[row.at("why").get<std::string>()];
  }
  std::vector<std::pair<std::int64_t, std::string>> by_count;
  for (const auto& [why, count] : counts) by_count.emplace_back(-count, why);
  std::sort(by_count.begin(), by_count.end());
  std::string text;
  for (std::size_t i = 0; i < std::min(by_count.size(), most_reasons); ++i) {
    text +=
        wrapped(fmt::format("  {}: {}", counted(-by_count[i].first, "point"), visible(by_count[i].second)), 4) + '\n';
  }
  if (by_count.size() > most_reasons) text += fmt::format("  and {} other reasons\n", by_count.size() - most_reasons);
  return text;
}

/// "hardware h100, gpus 8": what tells a point from the others.
std::string varied_text(const Sweep& sweep, const ordered_json& row) {
  std::vector<std::string> parts;
  for (const std::string& option : sweep.varied) parts.push_back(fmt::format("{} {}", option, cell(row.at(option))));
  return parts.empty() ? fmt::format("point {}", row.at("point").dump()) : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

ordered_json json_of(const Sweep& sweep, std::vector<ordered_json> rows) {
  ordered_json json = {{"command", planner::name_of(sweep.command)},
                       {"varied", sweep.varied},
                       {"points", sweep.points},
                       {"repeated", sweep.repeated},
                       {"unpriced", sweep.unpriced()},
                       {"from_cache", sweep.from_cache},
                       {"partial", sweep.partial},
                       {"pareto_cost", planner::pareto_cost_column(rows)}};
  json["rows"] = std::move(rows);
  return json;
}

Spoken spoken(const Sweep& sweep, const std::vector<ordered_json>& rows) {
  const bool has_front =
      std::any_of(rows.begin(), rows.end(), [](const ordered_json& row) { return row.at("pareto").is_boolean(); });
  const std::vector<const ordered_json*> best = best_rows(rows, has_front);
  const std::string cost = planner::pareto_cost_column(rows);
  Spoken answer;
  std::string& action = answer.decision.action;
  if (best.empty()) {
    action = "No point has an answer.";
  } else if (!has_front) {
    action = fmt::format("{} gains most: {}x.", capitalised(varied_text(sweep, *best.front())),
                         cell(best.front()->at("speedup")));
  } else {
    const auto of = [&](const ordered_json& row) {
      return fmt::format("{}, {} ms per token", varied_text(sweep, row),
                         seconds_cell(row.at("seconds_per_output_token")));
    };
    action = best.size() == 1 ? fmt::format("Fastest and cheapest: {}.", of(*best.front()))
                              : fmt::format("Fastest: {}. Cheapest: {}.", of(*best.front()), of(*best.back()));
  }
  std::string& text = answer.decision.certainty;
  text = fmt::format("{} of {}", counted(std::ssize(sweep.answers), "point"), sweep.points);
  if (sweep.repeated > 0) text += fmt::format(", {} more that repeat one", sweep.repeated);
  std::map<std::string, std::int64_t> verdicts;
  for (const ordered_json* row : best)
    if (row->at("verdict").is_string()) ++verdicts[row->at("verdict").get<std::string>()];
  std::vector<std::string> words;
  for (const auto& [verdict, count] : verdicts) words.push_back(fmt::format("{} {}", count, verdict));
  text += words.empty() ? "." : fmt::format("; of the best rows: {}.", fmt::join(words, ", "));
  if (!best.empty()) answer.table = table_of(sweep, best, cost);
  if (const std::int64_t unpriced = sweep.unpriced(); unpriced > 0)
    answer.note = fmt::format("\n{} without an answer:\n{}", counted(unpriced, "point"), reasons(rows));
  return answer;
}

ordered_json row_of_every_column(const Sweep& sweep) {
  ordered_json row = {{"point", 1}};
  for (const std::string& option : sweep.varied) row[option] = nullptr;
  for (const std::string& column :
       sweep.command == SweepCommand::plan ? planner::plan_columns() : planner::capacity_columns()) {
    row[column] =
        (column.ends_with("ci95") || column.ends_with("bounds")) ? ordered_json::array({0, 0}) : ordered_json();
  }
  row["warnings"] = nullptr;
  row["pareto"] = nullptr;
  return row;
}

}  // namespace specdec::render
