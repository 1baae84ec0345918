#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "cli/commands.hpp"
#include "cli/trace_input.hpp"
#include "render/table.hpp"
#include "traces/check_trace.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using traces::TraceDescription;
using traces::TraceMetadata;

ordered_json text_or_null(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

ordered_json metadata_json(const TraceMetadata& m) {
  ordered_json acceptance;
  if (m.acceptance) acceptance = traces::name_of(*m.acceptance);
  return {{"target_model", text_or_null(m.target_model)},
          {"draft_model", text_or_null(m.draft_model)},
          {"engine", text_or_null(m.engine)},
          {"draft_kind", text_or_null(m.draft_kind)},
          {"vocab_size", or_null(m.vocab_size)},
          {"temperature", or_null(m.temperature)},
          {"top_k", or_null(m.top_k)},
          {"top_p", or_null(m.top_p)},
          {"min_p", or_null(m.min_p)},
          {"temperature_last", or_null(m.temperature_last)},
          {"acceptance", acceptance},
          {"logprob_space", traces::name_of(m.logprob_space)},
          {"path", traces::name_of(m.path)},
          {"other", m.other}};
}

ordered_json task_json(const std::string& name, std::int64_t positions) {
  return {{"task", text_or_null(name)}, {"positions", positions}};
}

std::int64_t bytes_of(const TraceDescription& d) {
  std::int64_t bytes = 0;
  for (const TraceDescription::File& file : d.files) bytes += file.bytes;
  return bytes;
}

ordered_json json_of(const TraceDescription& d) {
  ordered_json json = {{"format", d.format},
                       {"size_bytes", bytes_of(d)},
                       {"positions", d.positions},
                       {"sequences", d.sequences},
                       {"shortest_sequence", d.shortest_sequence},
                       {"longest_sequence", d.longest_sequence},
                       {"prompts", or_null(d.prompts)},
                       {"metadata", metadata_json(d.metadata)}};
  ordered_json& tiers = json["tiers"] = ordered_json::array();
  for (const TraceDescription::TierCount& tier : d.tiers) {
    tiers.push_back(
        {{"tier", traces::name_of(tier.tier)}, {"positions", tier.positions}, {"sequences", tier.sequences}});
  }
  ordered_json& tasks = json["tasks"] = ordered_json::array();
  for (const auto& [id, positions] : d.tasks) {
    tasks.push_back(task_json(traces::task_name(d.metadata.task_names, id), positions));
  }
  ordered_json& columns = json["columns"] = ordered_json::array();
  for (const auto& [name, type] : d.columns) columns.push_back({{"column", name}, {"type", type}});
  return json;
}

/// "3 sequences", "1 sequence".
std::string size_text(std::int64_t bytes) {
  if (bytes < 10'000) return counted(bytes, "byte");
  return bytes < 10'000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3)
                            : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

/// All that the recording says of itself.
Table metadata_table(const TraceMetadata& m) {
  ordered_json said = metadata_json(m);
  said.update(ordered_json(said["other"]));
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [key, value] : said.items()) {
    if (key != "other" && !value.is_null())
      rows.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return make_table(rows, {{"metadata", {Align::left}, [](const auto& row) { return row.first; }},
                           {"", {Align::left}, [](const auto& row) { return row.second; }}});
}

/// What decides how it is read: models, rule and text.
std::string source_text(const TraceMetadata& m) {
  const std::string models = m.target_model.empty() ? "" : fmt::format("target {}, draft {}; ", m.target_model, m.draft_model);
  const std::string rule = m.acceptance ? fmt::format("rule {}; ", traces::name_of(*m.acceptance)) : "";
  return fmt::format("It says: {}{}text from {}.", models, rule, traces::name_of(m.path));
}

render::Spoken described(const TraceDescription& d) {
  std::string lengths = d.shortest_sequence == d.longest_sequence
                            ? fmt::format("{}", d.longest_sequence)
                            : fmt::format("{} to {}", d.shortest_sequence, d.longest_sequence);
  if (d.prompts) lengths += fmt::format(" ({})", counted(*d.prompts, "prompt"));
  render::Spoken answer =
      render::said(fmt::format("{}: {} in {} of {}, in {} of {} in all.", d.format, counted(d.positions, "position"),
                               counted(d.sequences, "sequence"), lengths, counted(std::ssize(d.files), "file"),
                               size_text(bytes_of(d))),
                   source_text(d.metadata));
  answer.table = make_table(
      d.tiers, {{"tier", {Align::left}, [](const auto& row) { return std::string(traces::name_of(row.tier)); }},
                {"positions", [](const auto& row) { return fmt::format("{}", row.positions); }},
                {"sequences", [](const auto& row) { return fmt::format("{}", row.sequences); }}});
  answer.more = text_of(metadata_table(d.metadata));
  const auto task = [&d](const auto& row) {
    return row.first < 0 ? "(none)" : traces::task_name(d.metadata.task_names, row.first);
  };
  if (!d.tasks.empty())
    answer.more += '\n' + text_of(make_table(d.tasks, {{"task", {Align::left}, task}, {"positions", [](const auto& row) {
                                                                                  return fmt::format("{}", row.second);
                                                                                }}}));
  answer.more +=
      '\n' + text_of(make_table(d.columns, {{"column", {Align::left}, [](const auto& row) { return row.first; }},
                                            {"type", {Align::left}, [](const auto& row) { return row.second; }}}));
  return answer;
}

Report run(const TraceInput& input, const Options&) {
  const auto source = input.open();
  const TraceDescription description = traces::describe_trace(*source);
  Report report;
  report.json = json_of(description);
  report.rows_of_empty["tasks"] = task_json("", 0);
  report.spoken = described(description);
  input.describe(*source, report);
  return report;
}

}  // namespace

Command trace_info_command() {
  return {"trace info",
          "The contents of a recording",
          {{"tiers", "/tiers"}, {"tasks", "/tasks"}, {"columns", "/columns"}},
          setup_of<TraceInput>(run)};
}

}  // namespace specdec::cli
