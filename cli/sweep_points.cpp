#include "cli/sweep_points.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include "cli/capacity_options.hpp"
#include "cli/capacity_question.hpp"
#include "cli/files.hpp"
#include "cli/option_file.hpp"
#include "cli/options.hpp"
#include "cli/plan_options.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "planner/sweeps/sweep_rows.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::cli {
namespace {

using nlohmann::ordered_json;
using planner::SweepInterrupt;
using planner::SweepPoint;

/// Options of every command's output, which --print-config writes too and which decide no answer.
const std::set<std::string, std::less<>> passed_over = {"format", "table", "output", "quiet", "threads"};

/// Options that state an acceptance, by key.
const std::set<std::string, std::less<>> acceptance_keys = {
    "alpha", "rejection", "acceptance_length", "acceptance_rate", "acceptance_per_position", "published", "counters",
    "trace", "mix",       "alpha_spread"};

/// Contents of files, each of which is read once.
class FileContents {
 public:
  /// Path and content of each file that the options name; a folder counts by the files in it.
  ordered_json of(const ordered_json& options) {
    ordered_json found = ordered_json::object();
    for (const auto& [key, value] : options.items()) {
      for (const ordered_json& one : value.is_array() ? value : ordered_json::array({value})) {
        if (one.is_string()) found.update(of_path(one.get<std::string>()));
      }
    }
    return found;
  }
  std::vector<std::string> files() const { return {files_.begin(), files_.end()}; }

 private:
  const ordered_json& of_path(const std::string& path) {
    const auto known = known_.find(path);
    if (known != known_.end()) return known->second;
    ordered_json& found = known_[path] = ordered_json::object();
    namespace fs = std::filesystem;
    std::error_code none;
    const auto add = [&](const std::string& file) {
      const ordered_json hash = file_facts("FILE", file).at("sha256");
      found[file] = hash.is_null() ? ordered_json(traces::content_fingerprint(file)) : hash;
      files_.insert(file);
    };
    if (fs::is_regular_file(path, none)) add(path);
    if (!fs::is_directory(path, none)) return found;
    std::set<std::string> within;
    for (const auto& entry : fs::directory_iterator(path, none)) {
      if (entry.is_regular_file()) within.insert(entry.path().string());
    }
    std::for_each(within.begin(), within.end(), add);
    return found;
  }

  std::map<std::string, ordered_json> known_;
  std::set<std::string> files_;
};

planner::PointAnswer answer_of_plan(const PlanOptions& o, const SweepInterrupt&) {
  require_consistent(o);
  return planner::point_answer(planned(o));
}

planner::PointAnswer answer_of_capacity(const CapacityOptions& o, const SweepInterrupt& interrupt) {
  const AskedCapacity asked = asked_capacity(o);
  core::RunHooks hooks;
  hooks.interrupt = interrupt;
  return planner::point_answer(planner::capacity(asked.acceptance, asked.cost, asked.question, hooks));
}

/// Options of a point where its section says nothing.
template <class Chosen>
Chosen usual_options(const std::shared_ptr<planner::SharedCosts>& costs) {
  Chosen o;
  if constexpr (std::is_same_v<Chosen, PlanOptions>) {
    o.roofline.shared_costs = costs;
    o.question.points_only = true;
  } else {
    o.shared.roofline.shared_costs = costs;
  }
  return o;
}

std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// Makes points of what options of one command say.
template <class Chosen>
class PointMaker {
 public:
  using Answer = planner::PointAnswer (*)(const Chosen&, const SweepInterrupt&);

  PointMaker(std::string file, std::string command, Answer answer)
      : file_(std::move(file)), command_(std::move(command)), answer_(answer) {
    declare(options_.get(), chosen_);
  }

  /// Before any of them is made, since lists multiply.
  double points(const FileSection& section) const {
    double points = 1;
    for (const FileOption* axis : axes_of(section)) points *= static_cast<double>(axis->values.size());
    return points;
  }

  void add(const FileSection& section, const std::vector<std::string>& varied, SweepPoints& made) {
    const Axes axes = axes_of(section);
    std::vector<std::size_t> places(axes.size(), 0);
    do {
      made.points.push_back(point(axes, places, varied));
    } while (advance(axes, places));
    made.files = contents_.files();
  }

  using Axes = std::vector<const FileOption*>;

  /// The keys, in the order of the file, whose options in all sections are so.
  std::vector<std::string> keys_where(const std::vector<FileSection>& sections,
                                      const std::function<bool(const std::string& key, const Axes&)>& are_so) const {
    std::vector<std::string> keys;
    std::map<std::string, Axes> by_key;
    for (const FileSection& section : sections) {
      for (const FileOption* axis : axes_of(section)) {
        const std::string key = key_of(*options_.name_of(axis->name));
        if (by_key[key].empty()) keys.push_back(key);
        by_key[key].push_back(axis);
      }
    }
    std::erase_if(keys, [&](const std::string& key) { return !are_so(key, by_key.at(key)); });
    return keys;
  }

  /// The keys of the options that are not everywhere the same.
  std::vector<std::string> varied(const std::vector<FileSection>& sections) const {
    return keys_where(sections, [&](const std::string&, const Axes& axes) {
      return axes.size() != sections.size() || std::any_of(axes.begin(), axes.end(), [&](const FileOption* axis) {
               return axis->values.size() > 1 || axis->values != axes.front()->values;
             });
    });
  }

  /// Those of the acceptance that one section gives several values: they are what may be, not what is chosen, as an
  /// acceptance that changes with the draft is.
  std::vector<std::string> uncertain(const std::vector<FileSection>& sections) const {
    return keys_where(sections, [](const std::string& key, const Axes& axes) {
      return acceptance_keys.count(key) > 0 &&
             std::any_of(axes.begin(), axes.end(), [](const FileOption* axis) { return axis->values.size() > 1; });
    });
  }

 private:
  Axes axes_of(const FileSection& section) const {
    Axes axes;
    for (const FileOption& axis : section.options) {
      if (is_read(axis)) axes.push_back(&axis);
    }
    return axes;
  }

  /// False for options of the output.
  bool is_read(const FileOption& axis) const {
    if (passed_over.count(axis.name) > 0) return false;
    const std::optional<std::string> name = options_.name_of(axis.name);
    if (!name)
      throw UsageError(fmt::format("{}:{}: {} is not an option of specdec {}", file_, axis.line, axis.name, command_));
    if (*name == "emit-file")
      throw UsageError(
          fmt::format("{}:{}: {} is given, but a sweep writes no configurations", file_, axis.line, *name));
    return true;
  }

  static bool advance(const Axes& axes, std::vector<std::size_t>& places) {
    for (std::size_t i = axes.size(); i-- > 0;) {
      if (++places[i] < axes[i]->values.size()) return true;
      places[i] = 0;
    }
    return false;
  }

  SweepPoint point(const Axes& axes, const std::vector<std::size_t>& places, const std::vector<std::string>& varied) {
    chosen_ = usual_options<Chosen>(costs_);
    options_.get().forget();
    for (std::size_t i = 0; i < axes.size(); ++i) {
      try {
        options_.give({{axes[i]->name, axes[i]->values[places[i]]}});
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("{}:{}: {}", file_, axes[i]->line, error.with_options()));
      }
    }
    ordered_json given = ordered_json::object();
    SweepPoint point;
    for (const std::string& key : varied) point.varied[key] = nullptr;
    const ordered_json effective = options_.get().effective();
    for (const auto& [key, value] : effective.items()) {
      if (key != "threads" && !value.is_null() && !(value.is_array() && value.empty())) given[key] = value;
      if (point.varied.contains(key)) point.varied[key] = value;
    }
    const ordered_json question = {{"command", command_}, {"options", given}, {"files", contents_.of(given)}};
    point.question = question.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    point.answer = [chosen = std::make_shared<const Chosen>(chosen_),
                    answer = answer_](const SweepInterrupt& interrupt) { return answer(*chosen, interrupt); };
    return point;
  }

  std::string file_;
  std::string command_;
  Answer answer_;
  DefaultOptions options_;
  std::shared_ptr<planner::SharedCosts> costs_ = std::make_shared<planner::SharedCosts>();
  Chosen chosen_ = usual_options<Chosen>(costs_);
  FileContents contents_;
};

template <class Chosen>
SweepPoints points_of(const std::string& file, const std::vector<FileSection>& sections, planner::SweepCommand command,
                      typename PointMaker<Chosen>::Answer answer) {
  PointMaker<Chosen> maker(file, planner::name_of(command), answer);
  SweepPoints made;
  made.command = command;
  double points = 0;
  for (const FileSection& section : sections) points += maker.points(section);
  if (points > static_cast<double>(most_sweep_points)) {
    throw UsageError(fmt::format("{}: has {:.0f} points, but must have {} at most: shorten its lists, or divide it into "
                                 "several files",
                                 file, points, most_sweep_points));
  }
  const std::vector<std::string> varied = maker.varied(sections);
  for (const FileSection& section : sections) maker.add(section, varied, made);
  made.uncertain = maker.uncertain(sections);
  return made;
}

void require_one_command(const std::string& file, const std::vector<FileSection>& sections) {
  const FileSection& first = sections.front();
  for (const FileSection& section : sections) {
    const bool is_same = section.name == first.name;
    if (&section == &first || (is_same && section.is_one_of_several)) continue;
    throw UsageError(fmt::format(
        "{}:{}: [{}] follows [{}] in line {}, but {}", file, section.line, section.name, first.name, first.line,
        is_same ? "sections of one command are written [[plan]]" : "a sweep is of one command"));
  }
}

/// As in a configuration, single values of one option, one below the other, are several of it.
void join_values(const std::string& file, std::vector<FileOption>& options) {
  std::vector<FileOption> joined;
  for (FileOption& option : options) {
    const auto known =
        std::find_if(joined.begin(), joined.end(), [&](const FileOption& other) { return other.name == option.name; });
    if (known == joined.end()) {
      joined.push_back(std::move(option));
    } else if (known == std::prev(joined.end()) && known->values.size() == 1 && option.values.size() == 1) {
      known->values[0].insert(known->values[0].end(), option.values[0].begin(), option.values[0].end());
    } else {
      throw UsageError(fmt::format("{}:{}: {} is given in line {} already: several values stand in a list", file,
                                   option.line, option.name, known->line));
    }
  }
  options = std::move(joined);
}

}  // namespace

SweepPoints sweep_points(const std::string& file, std::string_view text) {
  std::vector<FileSection> sections = option_sections(file, text);
  if (sections.empty()) throw UsageError(fmt::format("{}: has no section, but must have [plan] or [capacity]", file));
  const FileSection& first = sections.front();
  const auto command = planner::sweep_command_named(first.name);
  if (!command) {
    const std::string found =
        first.name.empty() ? "no section stands above this" : fmt::format("[{}] is a section", first.name);
    throw UsageError(fmt::format("{}:{}: {}, but must be [plan] or [capacity]", file, first.line, found));
  }
  require_one_command(file, sections);
  for (FileSection& section : sections) join_values(file, section.options);
  if (*command == planner::SweepCommand::plan) return points_of<PlanOptions>(file, sections, *command, answer_of_plan);
  return points_of<CapacityOptions>(file, sections, *command, answer_of_capacity);
}

}  // namespace specdec::cli
