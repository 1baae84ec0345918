#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "analysis/cost/measured_cost.hpp"
#include "cli/files.hpp"
#include "cli/near_names.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "cli/version.hpp"
#include "traces/file_error.hpp"

namespace specdec::cli {
namespace {

/// Reads and writes one value a line, so that commas within a value need no quotes; an option that takes several has
/// as many lines, one below the other.
class OneValueConfig : public CLI::ConfigTOML {
 public:
  OneValueConfig() { arrayDelimiter(separator); }

  std::string to_config(const CLI::App* app, bool defaults, bool descriptions, std::string prefix) const override {
    const std::string config = CLI::ConfigTOML::to_config(app, defaults, descriptions, std::move(prefix));
    std::string text;
    for (std::string_view line : split(config, '\n')) {
      const std::size_t list = line.find("=[");
      if (line.find(separator) == std::string_view::npos || list == std::string_view::npos) {
        text += fmt::format("{}\n", line);
        continue;
      }
      const std::string_view values = line.substr(list + 2, line.size() - list - 3);
      for (std::string_view value : split(values, separator)) {
        value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
        text += fmt::format("{}={}\n", line.substr(0, list), value);
      }
    }
    text.pop_back();
    return text;
  }

 private:
  static constexpr char separator = '\x1f';
};

/// The options that every command has.
struct OutputOptions {
  std::string format = "table";
  std::optional<std::string> table;
  std::optional<std::string> output;
  bool quiet = false;

  void declare(Options& options, const Command& command) {
    std::vector<std::string> names;
    for (const CsvTable& t : command.tables) names.push_back(t.name);
    options.group("Output");
    options.choice("--format", format, {"table", "json", "csv"}, "form of the output");
    options.text("--table", table, "NAME", fmt::format("table that --format csv prints: {}", fmt::join(names, ", ")));
    if (!command.owns_output) options.text("--output", output, "FILE", "write there instead of to standard output");
    options.flag("--quiet", quiet, "nothing on standard error but errors");
  }
};

struct ParsedCommand {
  const Command* command;
  CLI::App* app;
  Options options;
  OutputOptions output;
  std::function<Report()> run;
};

class CommandLine {
 public:
  CommandLine(const std::vector<CommandGroup>& groups, const std::vector<Command>& commands)
      : app_("Plans speculative decoding.", "specdec") {
    app_.set_version_flag("--version", fmt::format("specdec {}", version), "print the version and exit");
    app_.set_config("--config", "", "read options from FILE, in sections named by command")->type_name("FILE");
    app_.add_flag("--print-config", print_config_, "print the effective options in the form --config reads, and exit")
        ->configurable(false);
    app_.config_formatter(std::make_shared<OneValueConfig>());
    app_.allow_config_extras(CLI::config_extras_mode::error);
    app_.get_formatter()->column_width(38);
    app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app_.get_formatter()->label("SUBCOMMANDS", "COMMANDS");
    app_.require_subcommand(1);
    app_.fallthrough();
    for (const Command& command : commands) add(command, groups);
  }

  int run(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& requested) {
      return app_.exit(requested);
    } catch (const CLI::ParseError& error) {
      throw UsageError(rephrased(error));
    }
    ParsedCommand& chosen = **std::find_if(parsed_.begin(), parsed_.end(),
                                           [app = chosen_app().app](const auto& p) { return p->app == app; });
    if (print_config_) {
      print(fmt::format("[{}]\n{}", fmt::join(split(chosen.command->name, ' '), "."),
                        app_.get_config_formatter()->to_config(chosen.app, true, false, "")));
      return success;
    }
    refuse_options_of_group(*chosen.app);
    std::vector<std::string> words(argv, argv + argc);
    words.front() = app_.get_name();
    chosen.options.remember_command_line(shell_words(words));
    return answer(chosen);
  }

 private:
  void add(const Command& command, const std::vector<CommandGroup>& groups) {
    const std::size_t blank = command.name.find(' ');
    CLI::App* app = nullptr;
    if (blank != std::string::npos) {
      app = group_app(command.name.substr(0, blank), groups)
                ->add_subcommand(command.name.substr(blank + 1), command.summary);
    } else if (std::any_of(groups.begin(), groups.end(), [&](const auto& g) { return g.name == command.name; })) {
      app = group_app(command.name, groups)->require_subcommand(0, 1);
    } else {
      app = app_.add_subcommand(command.name, command.summary);
    }
    auto parsed = std::make_unique<ParsedCommand>(ParsedCommand{&command, app, Options(*app), {}, {}});
    parsed->run = command.setup(parsed->options);
    parsed->output.declare(parsed->options, command);
    parsed_.push_back(std::move(parsed));
  }

  /// The group's own place among the commands is that of its first one.
  CLI::App* group_app(const std::string& name, const std::vector<CommandGroup>& groups) {
    for (CLI::App* const known : app_.get_subcommands([&](const CLI::App* app) { return app->get_name() == name; }))
      return known;
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == name; });
    return app_.add_subcommand(name, group->summary)->require_subcommand(1);
  }

  /// A group's own options stand before none of its commands; what a command does not know falls through to them.
  static void refuse_options_of_group(const CLI::App& chosen) {
    const CLI::App* const group = chosen.get_parent();
    if (group->get_parent() == nullptr || group->parse_order().empty()) return;
    const std::string words = fmt::format("{} {}", group->get_name(), chosen.get_name());
    throw UsageError(fmt::format("{} is not an option of {}; see specdec {} --help",
                                 group->parse_order().front()->get_name(), words, words));
  }

  int answer(const ParsedCommand& parsed) {
    const OutputOptions& output = parsed.output;
    if (output.output) require_writable("--output", *output.output);
    if (output.table) require_table(*parsed.command, *output.table);
    if (output.table && output.format != "csv")
      throw UsageError(fmt::format("--table is given, but goes with --format csv only, not with {}", output.format));
    nlohmann::ordered_json inputs = parsed.options.effective();
    const std::string config = app_.get_config_ptr()->as<std::string>();
    inputs["config"] = config.empty() ? nlohmann::ordered_json() : file_facts("--config", config);

    const Report report = report_of(parsed);
    if (!report.files.empty()) inputs["files"] = report.files;
    if (!report.presets.empty()) inputs["presets"] = report.presets;
    const std::string content = rendered(parsed, report, inputs);
    if (output.output) write_whole("--output", *output.output, report.file ? *report.file : content);
    if (!output.output || report.file) print(content);
    if (output.format == "csv" && !output.quiet) {
      for (const Warning& w : report.warnings) {
        if (!w.json_only) fmt::print(stderr, "specdec: warning: {}\n", w.message);
      }
    }
    return report.exit_code;
  }

  /// A complaint of the library about a parameter that has the name of an option names the option.
  static Report report_of(const ParsedCommand& parsed) {
    try {
      return parsed.run();
    } catch (const cost::OutsideTimedPasses& error) {
      throw UsageError(
          fmt::format("{}; --extrapolate prices what lies outside the times of --cost, too", error.what()));
    } catch (const std::domain_error& error) {
      throw UsageError(in_terms_of_options(error.what(), parsed.options));
    } catch (const std::invalid_argument& error) {
      throw UsageError(in_terms_of_options(error.what(), parsed.options));
    }
  }

  static std::string in_terms_of_options(const std::string& message, const Options& options) {
    const std::size_t name_at = message.find(": ");
    const std::size_t end = message.find(" is ");
    if (end == std::string::npos || name_at > end) return message;
    std::string name = message.substr(name_at + 2, end - name_at - 2);
    if (!options.effective().contains(name)) return message;
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string option = "--" + name;
    return options.is_given(option) ? option + message.substr(end) : message;
  }

  static void require_table(const Command& command, const std::string& name) {
    std::vector<std::string> names;
    for (const CsvTable& table : command.tables) {
      if (table.name == name) return;
      names.push_back(table.name);
    }
    refuse("--table", name, fmt::format("one of {}", fmt::join(names, ", ")));
  }

  static std::string csv_of(const ParsedCommand& parsed, const Report& report, const nlohmann::ordered_json& document) {
    const std::vector<CsvTable>& tables = report.tables.empty() ? parsed.command->tables : report.tables;
    const auto named = std::find_if(tables.begin(), tables.end(),
                                    [&](const CsvTable& table) { return table.name == parsed.output.table; });
    const CsvTable& table = named == tables.end() ? tables.front() : *named;
    const auto empty = report.rows_of_empty.find(table.name);
    return to_csv(rows_of(document, table, tables), empty == report.rows_of_empty.end()
                                                        ? nlohmann::ordered_json::array()
                                                        : nlohmann::ordered_json::array({empty->second}));
  }

  static std::string rendered(const ParsedCommand& parsed, const Report& report, const nlohmann::ordered_json& inputs) {
    if (parsed.output.format == "table") {
      const std::string more = assumptions_and_warnings(report);
      return report.text + (more.empty() ? "" : '\n' + more);
    }
    const Command& command = *parsed.command;
    const nlohmann::ordered_json document =
        with_envelope(command.schema.empty() ? command.name : command.schema, inputs, report);
    // Paths need not be UTF-8; a byte that is not becomes U+FFFD.
    constexpr auto replace = nlohmann::ordered_json::error_handler_t::replace;
    if (parsed.output.format == "json") return document.dump(2, ' ', false, replace) + '\n';
    return csv_of(parsed, report, document);
  }

  static std::string assumptions_and_warnings(const Report& report) {
    std::vector<std::string> assumptions;
    for (const Assumption& a : report.assumptions) {
      const std::string value = a.value.is_string() ? a.value.get<std::string>() : a.value.dump();
      assumptions.push_back(fmt::format("{} {} ({})", a.name, value, a.source));
    }
    std::string text;
    if (!assumptions.empty()) text = wrapped(fmt::format("Assumptions: {}.", fmt::join(assumptions, ", ")), 2) + '\n';
    for (const Warning& w : report.warnings) {
      if (!w.json_only) text += wrapped(fmt::format("Warning ({}): {}.", w.code, w.message), 2) + '\n';
    }
    return text;
  }

  static void print(const std::string& content) {
    if (std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0) return;
    throw UsageError(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
  }

  /// CLI11's complaints in the form of all others.
  std::string rephrased(const CLI::ParseError& error) const {
    const std::string message = error.what();
    const std::size_t option_at = std::min(message.find("--"), message.size());
    const std::string option = message.substr(option_at, message.find_first_of(": ", option_at) - option_at);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return option + " must be given exactly one value, once";
    if (dynamic_cast<const CLI::ConversionError*>(&error)) return option + " takes no value";
    const std::string config = fmt::format("--config {}", app_.get_config_ptr()->as<std::string>());
    if (dynamic_cast<const CLI::FileError*>(&error)) return config + " cannot be read";
    if (dynamic_cast<const CLI::ConfigError*>(&error)) {
      const std::size_t reason = message.find(": This option");
      const std::string key =
          reason == std::string::npos ? message.substr(message.rfind(' ') + 1) : message.substr(0, reason);
      const bool is_section = key.ends_with(".++");
      return is_section ? fmt::format("{}: {} is not a command", config, key.substr(0, key.size() - 3))
                        : fmt::format("{}: {} is not an option of a command", config, key);
    }
    const std::vector<std::string> unknown = app_.remaining(true);
    const Chosen chosen = chosen_app();
    const std::string help = fmt::format("see specdec{} --help", chosen.words);
    if (!chosen.app->get_subcommands({}).empty()) {
      const std::string of_group = chosen.words.empty() ? "" : " of" + chosen.words;
      if (!chosen.words.empty() && !unknown.empty() && unknown.front().starts_with('-'))
        return fmt::format("{} is not an option of{}; {}", unknown.front(), chosen.words, help);
      const std::string given = unknown.empty() ? fmt::format("no command{} given", of_group)
                                                : fmt::format("{} is not a command{}", unknown.front(), of_group);
      const std::string near = unknown.empty() ? "" : near_names(unknown.front(), names_within(*chosen.app));
      return fmt::format("{}{}, but one of {} is needed; {}", given, near, fmt::join(names_within(*chosen.app), ", "),
                         help);
    }
    if (!unknown.empty()) return fmt::format("{} is not an option of{}; {}", unknown.front(), chosen.words, help);
    if (dynamic_cast<const CLI::RequiredError*>(&error))
      return fmt::format("{} is missing; {}", message.substr(0, message.find(' ')), help);
    return message;
  }

  /// The innermost command or group that was named, and its words, each after a blank.
  struct Chosen {
    const CLI::App* app;
    std::string words;
  };

  Chosen chosen_app() const {
    Chosen chosen{&app_, ""};
    while (!chosen.app->get_subcommands().empty()) {
      chosen.app = chosen.app->get_subcommands().front();
      chosen.words += ' ' + chosen.app->get_name();
    }
    return chosen;
  }

  static std::vector<std::string> names_within(const CLI::App& group) {
    std::vector<std::string> names;
    for (const CLI::App* const app : group.get_subcommands({})) names.push_back(app->get_name());
    return names;
  }

  CLI::App app_;
  bool print_config_ = false;
  std::vector<std::unique_ptr<ParsedCommand>> parsed_;
};

int fail(ExitCode code, std::string_view message) {
  fmt::print(stderr, "specdec: error: {}\n", without_control_characters(message));
  return code;
}

}  // namespace

int run_command_line(const std::vector<CommandGroup>& groups, const std::vector<Command>& commands, int argc,
                     const char* const* argv) {
  try {
    return CommandLine(groups, commands).run(argc, argv);
  } catch (const UsageError& error) {
    return fail(usage_error, error.what());
  } catch (const traces::FileError& error) {
    return fail(usage_error, error.what());
  } catch (const std::domain_error& error) {
    return fail(usage_error, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(usage_error, error.what());
  } catch (const std::exception& error) {
    return fail(internal_error, fmt::format("internal: {}", error.what()));
  }
}

}  // namespace specdec::cli
