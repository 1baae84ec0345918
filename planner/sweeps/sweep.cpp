#include "planner/sweeps/sweep.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "analysis/core/parallel.hpp"
#include "planner/question_error.hpp"
#include "planner/sweeps/sweep_cache.hpp"
#include "traces/file_error.hpp"

namespace specdec::planner {
namespace {

using nlohmann::ordered_json;

std::vector<std::string> columns_of(SweepCommand command) {
  return command == SweepCommand::plan ? plan_columns() : capacity_columns();
}

/// The first point of each question, in their order.
std::vector<SweepPoint*> distinct(std::vector<SweepPoint>& points) {
  std::unordered_set<std::string_view> known;
  std::vector<SweepPoint*> first;
  for (SweepPoint& point : points) {
    if (known.insert(point.question).second) first.push_back(&point);
  }
  return first;
}

/// The answer to a question that was asked, or why there is none.
struct Asked {
  PointAnswer answer;
  bool is_priced = true;
};

Asked ask(const SweepPoint& point, SweepCommand command, const SweepInterrupt& interrupt) {
  const auto unpriced = [&](std::string_view why) { return Asked{unpriced_answer(columns_of(command), why), false}; };
  try {
    return {point.answer(interrupt)};
  } catch (const QuestionError& error) {
    return unpriced(error.with_options());
  } catch (const traces::FileError& error) {
    return unpriced(error.what());
  } catch (const std::domain_error& error) {
    return unpriced(error.what());
  } catch (const std::invalid_argument& error) {
    return unpriced(error.what());
  }
}

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return '0' <= c && c <= '9'; });
  return text;
}

/// The codes of warnings, each once; null without any.
ordered_json codes_of(const std::vector<Note>& warnings) {
  std::vector<std::string> codes;
  for (const Note& note : warnings) append_new(codes, {note.code});
  return codes.empty() ? ordered_json() : ordered_json(fmt::format("{}", fmt::join(codes, " ")));
}

/// The column of a varied option: of `gpus` and `replicas`, which are answers of capacity as well, "given_gpus" and
/// "given_replicas".
std::string column_of(SweepCommand command, const std::string& option) {
  const std::vector<std::string> answers = capacity_columns();
  const bool is_answer =
      command == SweepCommand::capacity && std::find(answers.begin(), answers.end(), option) != answers.end();
  return is_answer ? "given_" + option : option;
}

/// Puts the varied options in front of the rows; a column of a plan with the same name, batch or context, takes its
/// place.
ordered_json with_varied(ordered_json rows, const ordered_json& varied, SweepCommand command) {
  for (ordered_json& row : rows) {
    ordered_json whole = ordered_json::object();
    for (const auto& [option, value] : varied.items()) whole[column_of(command, option)] = value;
    whole.update(row);
    row = std::move(whole);
  }
  return rows;
}

Note interrupted_note(const Sweep& sweep, std::int64_t asked) {
  return {"partial", fmt::format("interrupted: {} of {} points were answered", sweep.answers.size(), asked)};
}

}  // namespace

SweepAnswer::SweepAnswer(std::int64_t number, PointAnswer its) : point(number), answer(std::move(its)) {
  const ordered_json& rows = answer.rows;
  is_priced = rows.size() != 1 || !rows[0].at("verdict").is_null() || rows[0].at("why").is_null();
}

std::string name_of(SweepCommand command) { return command == SweepCommand::plan ? "plan" : "capacity"; }

std::optional<SweepCommand> sweep_command_named(std::string_view name) {
  if (name == "plan") return SweepCommand::plan;
  if (name == "capacity") return SweepCommand::capacity;
  return std::nullopt;
}

std::vector<ordered_json> Sweep::take_rows() {
  std::vector<ordered_json> table;
  for (SweepAnswer& answer : answers) {
    for (ordered_json& row : answer.answer.rows) {
      ordered_json whole = {{"point", answer.point + 1}};
      whole.update(row);
      whole["warnings"] = codes_of(answer.answer.warnings);
      table.push_back(std::move(whole));
    }
    answer.answer.rows = nullptr;
  }
  mark_pareto(table, work());
  for (ordered_json& row : table) {
    const ordered_json why = row.at("why");
    row.erase("why");
    row["why"] = why;
  }
  return table;
}

std::vector<Note> Sweep::all_warnings() const {
  struct Found {
    std::string code, kind, message;
    std::int64_t first = 0, last = 0, count = 0;
  };
  std::vector<Found> found;
  for (const SweepAnswer& one : answers) {
    for (const Note& note : one.answer.warnings) {
      const std::string kind = note.code + without_digits(note.message);
      auto known = std::find_if(found.begin(), found.end(), [&](const Found& other) { return other.kind == kind; });
      if (known == found.end()) known = found.insert(found.end(), {note.code, kind, note.message, one.point, -1, 0});
      if (known->last == one.point) continue;
      known->last = one.point;
      ++known->count;
    }
  }
  std::vector<Note> notes = warnings;
  for (const Found& one : found) {
    notes.push_back({one.code, fmt::format("in {} of {} points, of point {}: {}", one.count, answers.size(),
                                           one.first + 1, one.message)});
  }
  return notes;
}

std::vector<Assumption> Sweep::shared_assumptions() const {
  std::optional<std::vector<Assumption>> shared;
  for (const SweepAnswer& one : answers) {
    if (!one.is_priced) continue;
    const std::vector<Assumption>& own = one.answer.assumptions;
    if (!shared) shared = own;
    std::erase_if(*shared, [&](const Assumption& assumption) {
      return std::find(own.begin(), own.end(), assumption) == own.end();
    });
  }
  return shared.value_or(std::vector<Assumption>{});
}

std::vector<std::string> Sweep::work() const {
  std::vector<std::string> options = {"model",        "context",  "prompt_tokens", "output_tokens",
                                      "arrival_rate", "requests", "concurrency"};
  options.insert(options.end(), given.begin(), given.end());
  return options;
}

std::int64_t Sweep::unpriced() const {
  return std::count_if(answers.begin(), answers.end(), [](const SweepAnswer& answer) { return !answer.is_priced; });
}

Sweep sweep(SweepCommand command, std::vector<SweepPoint> points, const SweepSettings& settings,
            const core::RunHooks& hooks) {
  if (points.empty()) throw QuestionError("a sweep needs at least one point");
  std::optional<SweepCache> cache;
  if (settings.cache) cache.emplace(*settings.cache, settings.version);
  const std::vector<SweepPoint*> first = distinct(points);
  std::vector<std::int64_t> own;
  for (std::int64_t i = 0; i < std::ssize(first); ++i) {
    if (settings.shard.holds(i)) own.push_back(i);
  }
  std::vector<std::optional<PointAnswer>> answers(own.size());
  std::atomic<std::int64_t> from_cache = 0, done = 0;
  std::mutex telling;
  core::for_each_index(std::ssize(own), settings.threads, [&](std::int64_t index, std::int64_t) {
    if (hooks.interrupted()) return;
    SweepPoint& point = *first[static_cast<std::size_t>(own[static_cast<std::size_t>(index)])];
    std::optional<PointAnswer> kept = cache ? cache->answer(point.question) : std::nullopt;
    if (kept) {
      ++from_cache;
    } else {
      Asked asked = ask(point, command, hooks.interrupt);
      if (hooks.interrupted()) return;
      if (cache && asked.is_priced) cache->keep(point.question, asked.answer);
      kept = std::move(asked.answer);
    }
    kept->rows = with_varied(std::move(kept->rows), point.varied, command);
    point.question = {};
    point.answer = {};
    answers[static_cast<std::size_t>(index)] = std::move(kept);
    const double share = static_cast<double>(++done) / static_cast<double>(own.size());
    const std::lock_guard lock(telling);
    hooks.tell(share);
  });

  Sweep answered;
  answered.command = command;
  for (const auto& [option, value] : points.front().varied.items())
    answered.varied.push_back(column_of(command, option));
  answered.given = settings.given;
  answered.points = std::ssize(first);
  answered.repeated = std::ssize(points) - answered.points;
  answered.from_cache = from_cache;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (answers[i]) answered.answers.push_back({own[i], std::move(*answers[i])});
  }
  answered.partial = answered.answers.size() < own.size();
  if (answered.partial && answered.answers.empty()) throw QuestionError("interrupted before a point was answered");
  if (answered.partial) answered.warnings.push_back(interrupted_note(answered, std::ssize(own)));
  return answered;
}

void save_part(const std::filesystem::path& path, const Sweep& sweep, const PartOrigin& origin) {
  ordered_json answers = ordered_json::array();
  for (const SweepAnswer& answer : sweep.answers)
    answers.push_back({{"point", answer.point}, {"answer", to_json(answer.answer)}});
  const ordered_json state = {{"command", name_of(sweep.command)},
                              {"varied", sweep.varied},
                              {"given", sweep.given},
                              {"points", sweep.points},
                              {"repeated", sweep.repeated},
                              {"answers", std::move(answers)}};
  save_part(path, origin,
            PartContent{{{"points", sweep.answers.size()}},
                        ordered_json::object(),
                        state.dump(-1, ' ', false, ordered_json::error_handler_t::replace)});
}

namespace {

/// The answers of a part, each of which belongs to its shard.
Sweep sweep_of_part(const PartSet::Part& part) {
  const auto refuse_state = [&](const std::string& why) {
    refuse_part(part.path, "state", fmt::format("unreadable ({})", why), "as it was written");
  };
  Sweep read;
  try {
    const ordered_json state = ordered_json::parse(state_of_part(part.path));
    const std::optional<SweepCommand> command = sweep_command_named(state.at("command").get<std::string>());
    if (!command) refuse_state("no such command");
    read.command = *command;
    read.varied = state.at("varied").get<std::vector<std::string>>();
    read.given = state.at("given").get<std::vector<std::string>>();
    read.points = state.at("points");
    read.repeated = state.at("repeated");
    const std::vector<std::string> columns = columns_of(read.command);
    for (const ordered_json& one : state.at("answers")) {
      SweepAnswer answer{one.at("point").get<std::int64_t>(), point_answer_from(one.at("answer"))};
      const ordered_json& rows = answer.answer.rows;
      const bool rises = read.answers.empty() || read.answers.back().point < answer.point;
      const bool is_legal = 0 <= answer.point && answer.point < read.points && rises &&
                            part.shard.holds(answer.point) && rows.is_array() && !rows.empty();
      if (!is_legal) refuse_state("answers of other points");
      for (const ordered_json& row : rows) {
        for (const std::string& column : columns) row.at(column);
      }
      read.answers.push_back(std::move(answer));
    }
  } catch (const nlohmann::json::exception& error) {
    refuse_state(error.what());
  }
  const std::int64_t of_shard = (read.points - part.shard.index + part.shard.of - 1) / part.shard.of;
  if (std::ssize(read.answers) != std::max<std::int64_t>(0, of_shard)) refuse_state("points are missing");
  return read;
}

}  // namespace

Sweep merge_sweep(const PartSet& set) {
  Sweep merged;
  for (const PartSet::Part& part : set.parts) {
    Sweep of_part = sweep_of_part(part);
    const bool is_first = &part == &set.parts.front();
    if (is_first) {
      merged = std::move(of_part);
      continue;
    }
    if (of_part.command != merged.command || of_part.varied != merged.varied || of_part.given != merged.given ||
        of_part.points != merged.points)
      refuse_part(part.path, "state", "of another sweep", "of that of " + set.parts.front().path.string());
    std::move(of_part.answers.begin(), of_part.answers.end(), std::back_inserter(merged.answers));
  }
  std::sort(merged.answers.begin(), merged.answers.end(),
            [](const SweepAnswer& a, const SweepAnswer& b) { return a.point < b.point; });
  merged.partial = set.partial;
  merged.warnings = set.notes;
  return merged;
}

}  // namespace specdec::planner
