#include "cli/completion/completion.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/planning/published_acceptance.hpp"
#include "analysis/planning/published_lengths.hpp"
#include "cli/completion/completion_files.hpp"
#include "cli/refused_words.hpp"
#include "cli/values.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::cli {
namespace {

constexpr std::array<std::string_view, 3> shells = {"bash", "zsh", "fish"};

struct Candidates {
  /// Each with what it means.
  std::vector<std::pair<std::string, std::string>> words;
  bool files = false;
};

/// A command line up to the word that is typed.
struct Typed {
  const CLI::App* command;
  /// The command's own, with a blank between them.
  std::string words;
  /// Words of the command that are neither options nor their values.
  std::vector<std::string> arguments = {};
  /// The option whose value may come next; null where none may.
  const CLI::Option* open = nullptr;
};

const CLI::Option* option_named(const CLI::App& command, const std::string& name) {
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* const option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

Typed typed(const CLI::App& program, std::span<const std::string> words) {
  Typed line{&program, ""};
  for (const std::string& word : words) {
    if (word.size() > 1 && word.starts_with('-')) {
      const std::size_t equals = word.find('=');
      const CLI::Option* const option = option_named(*line.command, word.substr(0, equals));
      line.open = option != nullptr && takes_value(*option) && equals == std::string::npos ? option : nullptr;
    } else if (line.open != nullptr) {
      if (!takes_several(*line.open)) line.open = nullptr;
    } else if (const CLI::App* const command = command_within(*line.command, word);
               command != nullptr && line.arguments.empty()) {
      line.command = command;
      line.words += (line.words.empty() ? "" : " ") + word;
    } else {
      line.arguments.push_back(word);
    }
  }
  return line;
}

template <class Presets>
void add_names(const Presets& presets, std::string_view meaning, Candidates& found) {
  for (const auto& preset : presets) found.words.emplace_back(preset.name, meaning);
}

/// The names that stand in the lists of the program.
void add_listed(std::string_view list, Candidates& found) {
  if (list == "hardware") add_names(cost::hardware_presets(), "a device", found);
  if (list == "models") add_names(cost::model_presets(), "a model", found);
  if (list == "published") {
    add_names(planning::published_acceptances(), "a published rate", found);
    add_names(planning::published_priors(), "a prior from published lengths", found);
  }
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

void add_commands(const CLI::App& group, Candidates& found) {
  for (const CLI::App* const app : group.get_subcommands({}))
    found.words.emplace_back(app->get_name(), app->get_description());
}

/// The help text names the values: "table|json|csv", "NAME|FILE", "FILE ...".
Candidates values_of(const CLI::Option& option, const std::vector<std::string>& tables) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> lists = {
      {{"--hardware", "hardware"}, {"--model", "models"}, {"--draft-model", "models"}, {"--published", "published"}}};
  Candidates found;
  const std::string type = option.get_type_name();
  for (const std::string_view part : split(type, '|')) {
    const std::string_view kind = part.substr(0, part.find(' '));
    if (is_word(kind)) found.words.emplace_back(kind, option.get_description());
    if (kind == "FILE" || kind == "DIR" || kind == "TRACE") found.files = true;
    if (kind != "NAME") continue;
    for (const auto& [name, list] : lists) {
      if (option.check_name(std::string(name))) add_listed(list, found);
    }
    if (!option.check_name("--table")) continue;
    for (const std::string& table : tables) found.words.emplace_back(table, "a table");
  }
  return found;
}

void add_options(const CLI::App& command, Candidates& found) {
  std::vector<std::string> known;
  const auto add = [&](const std::string& name, const CLI::Option& option) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    known.push_back(name);
    found.words.emplace_back(name, option.get_description());
  };
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* const option : app->get_options({})) {
      for (const std::string& name : option->get_lnames()) add("--" + name, *option);
      for (const std::string& name : option->get_snames()) add("-" + name, *option);
    }
  }
}

/// Words of a method: what joins on to those before the last "+".
void add_methods(const std::string& last, Candidates& found) {
  const std::size_t joined = last.rfind('+');
  const std::string before = joined == std::string::npos ? "" : last.substr(0, joined + 1);
  const auto add = [&](const std::vector<std::string>& names, const char* meaning) {
    for (const std::string& name : names) found.words.emplace_back(before + name, meaning);
  };
  add(validation::draft_names(), "a draft");
  add(validation::verifier_names(), "a verifier");
  add(validation::policy_names(), "a policy");
  if (before.empty()) add({"plain"}, "no draft");
}

void add_arguments(const CLI::App& program, const Typed& line, const std::string& last, Candidates& found) {
  if (line.arguments.empty()) add_commands(*line.command, found);
  if (line.words == "help") {
    const CLI::App* group = &program;
    for (const std::string& word : line.arguments) group = group == nullptr ? nullptr : command_within(*group, word);
    if (group != nullptr) add_commands(*group, found);
  } else if (line.words == "completion") {
    for (const std::string_view shell : shells) found.words.emplace_back(shell, "a shell");
  } else if (line.words == "compare") {
    add_methods(last, found);
  } else if (line.words.starts_with("list ")) {
    add_listed(line.command->get_name(), found);
  } else {
    const auto options = line.command->get_options({});
    found.files = found.files || std::any_of(options.begin(), options.end(),
                                             [](const CLI::Option* option) { return option->get_positional(); });
  }
}

Candidates candidates_of(const CLI::App& program, const Typed& line, const std::string& last,
                         const std::vector<std::string>& tables) {
  Candidates found;
  if (const std::size_t equals = last.find('='); last.starts_with("--") && equals != std::string::npos) {
    if (const CLI::Option* const option = option_named(*line.command, last.substr(0, equals)))
      found = values_of(*option, tables);
    for (auto& [word, meaning] : found.words) word.insert(0, last, 0, equals + 1);
    return found;
  }
  if (last.starts_with('-')) {
    add_options(*line.command, found);
    return found;
  }
  if (line.open != nullptr) found = values_of(*line.open, tables);
  if (line.open == nullptr || takes_several(*line.open)) add_arguments(program, line, last, found);
  if (line.open == nullptr && found.words.empty() && !found.files) add_options(*line.command, found);
  return found;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  const auto found = std::find(shells.begin(), shells.end(), shell);
  if (found == shells.end()) refuse("SHELL", shell, "one of bash, zsh, fish");
  return std::string(completion_files()[static_cast<std::size_t>(found - shells.begin())].content);
}

std::string candidates(const CLI::App& program, const CommandTables& tables, std::span<const std::string> words) {
  const Typed line = typed(program, words.first(words.size() - 1));
  const auto own = tables.find(line.words);
  const Candidates found =
      candidates_of(program, line, words.back(), own == tables.end() ? std::vector<std::string>() : own->second);
  std::string text = found.files ? "files\n" : "words\n";
  for (const auto& [word, meaning] : found.words) {
    std::string one_line = meaning;
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    text += fmt::format("{}\t{}\n", word, one_line);
  }
  return text;
}

}  // namespace specdec::cli
