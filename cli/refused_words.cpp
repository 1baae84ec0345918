#include "cli/refused_words.hpp"
#include "cli/usage_error.hpp"
#include "planner/near_names.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/read_serving_counts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace specdec::cli {
namespace {

/// Why a file that could not be read was not.
std::string reason_against_reading(const std::string& path) {
  errno = 0;
  const std::ifstream file(path);
  return file ? "it is no file" : std::generic_category().message(errno);
}

std::vector<std::string> commands_within(const CLI::App& group) {
  std::vector<std::string> names;
  for (const CLI::App* const app : group.get_subcommands({})) names.push_back(app->get_name());
  return names;
}

/// Its own options and those that fall through to what it belongs to. Names of one letter are like many others.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* const option : app->get_options({})) {
      for (const std::string& name : option->get_lnames()) {
        const bool is_known = std::find(names.begin(), names.end(), "--" + name) != names.end();
        if (name.size() > 1 && !is_known) names.push_back("--" + name);
      }
    }
  }
  return names;
}

bool has_option(const CLI::App& command, const std::string& name) {
  return name.starts_with('-') && command.get_option_no_throw(name) != nullptr;
}

/// The words of all commands below the group that have the option.
void find_commands_with(const CLI::App& group, const std::string& words, const std::string& option,
                        std::vector<std::string>& found) {
  for (const CLI::App* const app : group.get_subcommands({})) {
    const std::string its_words = words.empty() ? app->get_name() : fmt::format("{} {}", words, app->get_name());
    if (has_option(*app, option)) found.push_back(its_words);
    find_commands_with(*app, its_words, option, found);
  }
}

/// "analyze", "plan and report", "plan, report and 7 more commands".
std::string listed(std::vector<std::string> commands) {
  constexpr std::size_t most = 4;
  if (commands.size() == 1) return commands.front();
  std::string last = commands.back();
  if (commands.size() > most) {
    last = fmt::format("{} more commands", commands.size() - most + 1);
    commands.resize(most);
  }
  commands.pop_back();
  return fmt::format("{} and {}", fmt::join(commands, ", "), last);
}

/// The command of these words; null where there is none.
const CLI::App* command_of(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  for (const std::string& word : words)
    if (app != nullptr) app = command_within(*app, word);
  return app;
}

std::string near_options(const CLI::App* command, const std::string& key) {
  if (command == nullptr) return "";
  std::vector<std::string> known = options_of(*command);
  for (std::string& name : known) name.erase(0, 2);
  return planner::near_names(key, known);
}

[[noreturn]] void refuse_key(const std::string& file, std::int64_t line, const std::string& key,
                             const std::string& why) {
  if (!traces::is_utf8(key))
    throw UsageError(fmt::format("{}:{}: begins with {}, but must be UTF-8", file, line, traces::quoted(key)));
  throw UsageError(fmt::format("{}:{}: {} {}", file, line, key, why));
}

const CLI::Option& option_of_item(const CLI::App& program, const std::string& file, std::int64_t line,
                                  const CLI::ConfigItem& item) {
  const CLI::App* const command = command_of(program, item.parents);
  const CLI::Option* option = nullptr;
  for (const std::string& name : {"--" + item.name, "-" + item.name, item.name})
    if (command != nullptr && option == nullptr) option = command->get_option_no_throw(name);
  if (option != nullptr && option->get_configurable()) return *option;
  if (item.parents.empty() && has_option(program, "--" + item.name)) {
    refuse_key(file, line, item.name, "stands above all sections, but must stand in that of a command, such as [plan]");
  }
  refuse_key(file, line, item.fullname(), "is not an option of a command" + near_options(command, item.name));
}

}  // namespace

ChosenApp chosen_app(const CLI::App& program) {
  ChosenApp chosen{&program, ""};
  while (!chosen.app->get_subcommands().empty()) {
    chosen.app = chosen.app->get_subcommands().front();
    chosen.words += ' ' + chosen.app->get_name();
  }
  return chosen;
}

const CLI::App* command_within(const CLI::App& group, std::string_view name) {
  for (const CLI::App* const app : group.get_subcommands({})) {
    if (app->get_name() == name) return app;
  }
  return nullptr;
}

std::string not_an_option(const CLI::App& program, const ChosenApp& chosen, std::string_view word) {
  const std::string help = fmt::format("see specdec{} --help", chosen.words);
  const std::string name(word.starts_with('-') ? word.substr(0, word.find('=')) : word);
  if (has_option(*chosen.app, name)) return fmt::format("{} must stand behind{}; {}", name, chosen.words, help);
  std::error_code ignored;
  if (!name.starts_with('-') && has_option(*chosen.app, "--trace") && std::filesystem::exists(name, ignored)) {
    const bool counts = has_option(*chosen.app, "--bench") && traces::recognised_counts(traces::FileHead::of(name));
    return fmt::format("{0} is not an option of{1}; {2} {0}; {3}", name, chosen.words,
                       counts ? fmt::format("timed runs are --bench {}, counts without times --counters", name)
                              : "a recording is --trace",
                       help);
  }
  // A command that was taken for an option is near, too.
  std::vector<std::string> known = options_of(*chosen.app);
  for (const std::string& command : commands_within(*chosen.app)) known.push_back(command);
  std::vector<std::string> others;
  if (name.starts_with('-')) find_commands_with(program, "", name, others);
  constexpr std::size_t shortest = 3;
  const std::string meant = !others.empty()           ? ", but of " + listed(std::move(others))
                            : name.size() >= shortest ? planner::near_names(name, known)
                                                      : "";
  constexpr std::size_t longest = 80;
  const std::string shown = name.size() > longest ? name.substr(0, longest) + "..." : name;
  return fmt::format("{} is not an option of{}{}; {}", shown, chosen.words.empty() ? " specdec" : chosen.words, meant,
                     help);
}

std::string not_a_command(const ChosenApp& group, std::string_view word) {
  const std::vector<std::string> known = commands_within(*group.app);
  const std::string of_group = group.words.empty() ? "" : " of" + group.words;
  const std::string given =
      word.empty() ? fmt::format("no command{} given", of_group)
                   : fmt::format("{} is not a command{}{}", word, of_group, planner::near_names(word, known));
  return fmt::format("{}, but one of {} is needed; see specdec{} --help", given, fmt::join(known, ", "), group.words);
}

std::vector<CLI::ConfigItem> config_items(const CLI::App& program, const std::string& file,
                                          const std::vector<FileSection>& sections, LinesOfOptions& lines) {
  std::vector<CLI::ConfigItem> items;
  std::map<std::string_view, std::int64_t> known;
  for (const FileSection& section : sections) {
    if (!section.name.empty()) {
      if (command_of(program, CLI::detail::split(section.name, '.')) == nullptr)
        refuse_key(file, section.line, section.name, "is not a command");
      const auto [first, is_new] = known.emplace(section.name, section.line);
      if (!is_new) {
        refuse_key(file, section.line, section.name,
                   fmt::format("has a section in line {} already: its options stand in one", first->second));
      }
    }
    for (const FileOption& given : section.options) {
      const std::string key = section.name.empty() ? given.name : fmt::format("{}.{}", section.name, given.name);
      CLI::ConfigItem item{CLI::detail::split(key, '.'), "", {}};
      item.name = item.parents.back();
      item.parents.pop_back();
      const CLI::Option& option = option_of_item(program, file, given.line, item);
      const auto [first, is_new] = lines.emplace(&option, given.line);
      if (is_new) {
        items.push_back(std::move(item));
      } else if (items.back().fullname() != key) {
        refuse_key(file, given.line, key,
                   fmt::format("is given in line {} already: several values stand one below the other, or in a list",
                               first->second));
      }
      std::vector<std::string> values;
      for (const std::vector<std::string>& entry : given.values)
        values.insert(values.end(), entry.begin(), entry.end());
      if (option.get_items_expected_max() == 1) values = {fmt::format("{}", fmt::join(values, ","))};
      items.back().inputs.insert(items.back().inputs.end(), values.begin(), values.end());
    }
  }
  return items;
}

std::string rephrased(const CLI::App& program, const CLI::ParseError& error) {
  std::string message = error.what();
  const std::size_t option_at = std::min(message.find("--"), message.size());
  const std::string option = message.substr(option_at, message.find_first_of(": ", option_at) - option_at);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    const CLI::Option* const given = chosen_app(program).app->get_option_no_throw(option);
    const bool takes_several = given != nullptr && given->get_items_expected_max() > 1;
    return option + (takes_several ? " needs at least one " + given->get_type_name()
                                   : " must be given exactly one value, once");
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error)) return option + " takes no value";
  if (dynamic_cast<const CLI::FileError*>(&error)) {
    const auto config = program.get_config_ptr()->as<std::string>();
    return fmt::format("--config {} cannot be read: {}", config, reason_against_reading(config));
  }
  const std::vector<std::string> unknown = program.remaining(true);
  const ChosenApp chosen = chosen_app(program);
  const bool is_group = !chosen.app->get_subcommands({}).empty();
  if (!unknown.empty() && (!is_group || unknown.front().starts_with('-')))
    return not_an_option(program, chosen, unknown.front());
  if (is_group) return not_a_command(chosen, unknown.empty() ? "" : unknown.front());
  if (dynamic_cast<const CLI::RequiredError*>(&error)) {
    const std::string missing = message.substr(0, message.find(' '));
    const CLI::Option* const config = program.get_config_ptr();
    const std::string hint =
        missing == "FILE" && config->count() > 0
            ? fmt::format(" (without --config: specdec{} {})", chosen.words, config->as<std::string>())
            : "";
    return fmt::format("{} is missing{}; see specdec{} --help", missing, hint, chosen.words);
  }
  return message;
}

}  // namespace specdec::cli
