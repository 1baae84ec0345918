#include "cli/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/answering.hpp"
#include "cli/completion/completion.hpp"
#include "cli/help.hpp"
#include "cli/option_file.hpp"
#include "cli/refused_words.hpp"
#include "cli/standard_streams.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/text.hpp"
#include "render/version.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::cli {

using namespace render;
namespace {

constexpr char standard_input[] = "/dev/stdin";

/// Reads and writes one value a line, so that commas within a value need no quotes; an option that takes several has
/// as many lines, one below the other.
class OneValueConfig : public CLI::ConfigTOML {
 public:
  explicit OneValueConfig(const CLI::App& app) : app_(app) { arrayDelimiter(separator); }

  /// The file as the user names it; empty if there is none.
  std::string name() const {
    const auto path = app_.get_config_ptr()->as<std::string>();
    return path == standard_input ? standard_input_name_ : path;
  }
  void call_standard_input(std::string name) { standard_input_name_ = std::move(name); }

  /// Reads the file by its name instead of `input`, so that a stream can also be read for its facts.
  std::vector<CLI::ConfigItem> from_config(std::istream&) const override {
    lines_.clear();
    return config_items(app_, name(), option_sections(name(), traces::small_file(name())), lines_);
  }

  /// "FILE:LINE" of the option, where the file that was read gives it and the command line does not; else empty.
  std::string place_of(const std::string& option) const {
    const CLI::App* const command = chosen_app(app_).app;
    const CLI::Option* const own = command->get_option_no_throw(option);
    const auto place = [&](const auto& line) { return fmt::format("{}:{}", name(), line->second); };
    if (own != nullptr && !own->empty()) {
      const auto& on_line = command->parse_order();
      const auto line = lines_.find(own);
      const bool is_overridden = std::find(on_line.begin(), on_line.end(), own) != on_line.end();
      return line == lines_.end() || is_overridden ? "" : place(line);
    }
    // Values of other commands' sections are read, too.
    const auto line =
        std::find_if(lines_.begin(), lines_.end(), [&](const auto& of) { return of.first->check_name(option); });
    return line == lines_.end() ? "" : place(line);
  }

  std::string to_config(const CLI::App* app, bool defaults, bool descriptions, std::string prefix) const override {
    const std::string config = CLI::ConfigTOML::to_config(app, defaults, descriptions, std::move(prefix));
    std::string text;
    for (const std::string_view line : split(config, '\n')) {
      if (line.empty()) continue;
      const std::size_t equals = line.find('=');
      std::string_view values = line.substr(equals + 1);
      if (values.find(separator) != std::string_view::npos) values = values.substr(1, values.size() - 2);
      for (std::string_view value : split(values, separator)) {
        value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
        std::string shown(value);
        if (value.starts_with('"')) shown = CLI::detail::find_and_replace(shown, "\\", "\\\\");
        text += fmt::format("{}={}\n", line.substr(0, equals), shown);
      }
    }
    return text;
  }

 private:
  static constexpr char separator = '\x1f';
  const CLI::App& app_;
  std::string standard_input_name_ = standard_input;
  mutable LinesOfOptions lines_;
};

class CommandLine {
 public:
  CommandLine(const std::vector<CommandGroup>& groups, const std::vector<Command>& commands)
      : app_("Plans speculative decoding.", "specdec") {
    app_.set_version_flag("-V,--version", fmt::format("specdec {}", version()), "print the version and exit");
    app_.set_config("--config", "", "read options from FILE, in sections named by command")->type_name("FILE");
    app_.add_flag("--print-config", print_config_, "print the effective options in the form --config reads, and exit")
        ->configurable(false);
    app_.config_formatter(config_);
    app_.allow_config_extras(CLI::config_extras_mode::error);
    app_.get_formatter()->column_width(help_column);
    app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app_.get_formatter()->label("SUBCOMMANDS", "COMMANDS");
    app_.require_subcommand(1);
    app_.fallthrough();
    declare_shared();
    for (const Command& command : commands) add(command, groups);
    tune_ = app_.add_subcommand(
        "tune", "The gamma to set, by the runs of your server that are worth their time (of specdec-planner on PyPI)");
    tune_->allow_extras()->fallthrough(false);
    help_ = app_.add_subcommand("help", "The options of a command, or what commands there are");
    help_->add_option("COMMAND", help_words_, "a command of one word or two; none: the program")->type_name("");
    completion_ = app_.add_subcommand("completion", "The script by which your shell completes commands");
    completion_->add_option("SHELL", shell_, "bash, zsh or fish")->type_name("")->required();
  }

  /// A complaint about an option of the configuration file says where it stands there.
  int run(int argc, const char* const* argv) {
    try {
      return run_words(argc, argv);
    } catch (const UsageError& error) {
      std::string option = "--" + error.parameter();
      std::replace(option.begin(), option.end(), '_', '-');
      const std::string place = config_->place_of(option);
      if (place.empty()) throw;
      throw UsageError(fmt::format("{}: {}", place, error.with_options()));
    }
  }

 private:
  int run_words(int argc, const char* const* argv) {
    if (argc == 1) {
      print(first_questions());
      return success;
    }
    try {
      // CLI11 opens the file that --config names before it is read, and knows no other name for standard input.
      std::vector<const char*> words(argv, argv + argc);
      // The scripts of shells give words that are no legal command line yet.
      if (argc > 3 && words[1] == completion_->get_name() && *words[2] != '-') {
        print(candidates_for({words.begin() + 3, words.end()}));
        return success;
      }
      for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        const bool is_next = word == "-" && std::string_view(words[i - 1]) == "--config";
        if (!is_next && word != "--config=-") continue;
        words[i] = is_next ? standard_input : "--config=/dev/stdin";
        config_->call_standard_input("-");
      }
      std::vector<std::string> given(argv, argv + argc);
      given.front() = app_.get_name();
      for (const auto& parsed : parsed_) parsed->options.remember_words(given);
      app_.parse(argc, words.data());
      pass_on_shared();
    } catch (const CLI::Success& requested) {
      if (const auto unknown = app_.remaining(true); chosen_app(app_).app == &app_ && !unknown.empty())
        throw UsageError(not_a_command({&app_, ""}, unknown.front()));
      std::ostringstream text;
      const int code = app_.exit(requested, text, text);
      print(text.str());
      return code;
    } catch (const CLI::ParseError& error) {
      throw UsageError(rephrased(app_, error));
    }
    if (help_->parsed()) {
      print(help_text());
      return success;
    }
    if (tune_->parsed())
      throw UsageError("tune is part of the Python package, whose program has it: pip install specdec-planner");
    if (completion_->parsed()) {
      print(completion_script(shell_));
      return success;
    }
    ParsedCommand& chosen = **std::find_if(parsed_.begin(), parsed_.end(),
                                           [app = chosen_app(app_).app](const auto& p) { return p->app == app; });
    if (print_config_) {
      print(fmt::format("[{}]\n{}", fmt::join(split(chosen.command->name, ' '), "."),
                        app_.get_config_formatter()->to_config(chosen.app, true, false, "")));
      return success;
    }
    refuse_options_of_group(*chosen.app);
    return answer(chosen, config_->name());
  }

  /// Options that every command has may stand before it, too; there they take any value, which the command judges.
  void declare_shared() {
    const auto declare = [&](const char* name, const char* value_name, const std::string& help) {
      shared_.push_back(app_.add_option(name, CLI::callback_t(), help)->type_name(value_name)->configurable(false));
    };
    declare("--format", "table|json|csv", "of any command: form of the output");
    declare("--table", "NAME", "of any command: table that --format csv prints");
    declare("--output", "FILE", "of any command: write there instead of to standard output");
    for (const auto& [name, help] : {std::pair("--quiet", "of any command: nothing on standard error but errors"),
                                     std::pair("--explain", "of any command: also every row, assumption and warning")})
      shared_.push_back(app_.add_flag(name, help)->configurable(false));
  }

  /// Those that stood before the command.
  void pass_on_shared() {
    CLI::App* command = &app_;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    for (const CLI::Option* const given : shared_) {
      if (given->empty()) continue;
      const std::string name = given->get_name();
      CLI::Option* const own = command->get_option_no_throw(name);
      if (own == nullptr) throw UsageError(not_an_option(app_, chosen_app(app_), name));
      // Values from a configuration file give way, those given behind the command do not.
      const std::vector<CLI::Option*>& on_line = command->parse_order();
      if (std::find(on_line.begin(), on_line.end(), own) == on_line.end()) own->clear();
      for (const std::string& value : given->results()) own->add_result(value);
      own->run_callback();
    }
  }

  std::string candidates_for(const std::vector<std::string>& words) const {
    CommandTables tables;
    for (const auto& parsed : parsed_) {
      for (const CsvTable& table : parsed->command->tables) tables[parsed->command->name].push_back(table.name);
    }
    return candidates(app_, tables, words);
  }

  std::string help_text() const {
    ChosenApp of{&app_, ""};
    for (const std::string& word : help_words_) {
      const CLI::App* const command = command_within(*of.app, word);
      if (command == nullptr) throw UsageError(not_a_command(of, word));
      of = {command, fmt::format("{} {}", of.words, word)};
    }
    return of.app->get_formatter()->make_help(of.app, app_.get_name() + of.words, CLI::AppFormatMode::Normal);
  }

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

  CLI::App app_;
  std::shared_ptr<OneValueConfig> config_ = std::make_shared<OneValueConfig>(app_);
  bool print_config_ = false;
  std::vector<const CLI::Option*> shared_;
  CLI::App* help_ = nullptr;
  std::vector<std::string> help_words_;
  CLI::App* completion_ = nullptr;
  CLI::App* tune_ = nullptr;
  std::string shell_;
  std::vector<std::unique_ptr<ParsedCommand>> parsed_;
};

/// Names the options in place of the library's terms target_array, draft_array and a pair.
std::string in_terms_of_options(const traces::FileError& error) {
  std::string expected = error.expected();
  for (const auto& [name, option] :
       {std::pair("target_array", "--target-array"), std::pair("draft_array", "--draft-array"),
        std::pair("as a pair, the target's and the draft's",
                  "as a pair, --target FILE and --draft FILE, which analyze and trace convert take")}) {
    if (const std::size_t at = expected.find(name); at != std::string::npos)
      expected.replace(at, std::string_view(name).size(), option);
  }
  return traces::FileError(error.path(), error.location(), error.field(), error.found(), expected).what();
}

int fail(ExitCode code, std::string_view message) {
  say(fmt::format("specdec: error: {}\n", visible(message)));
  return code;
}

}  // namespace

int run_command_line(const std::vector<CommandGroup>& groups, const std::vector<Command>& commands, int argc,
                     const char* const* argv) {
  const traces::KeptStreams streams([&](const std::filesystem::path& pipe) {
    const bool quiet = std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--quiet"; });
    if (!quiet) say(fmt::format("specdec: waiting for what is written to the pipe {}\n", pipe.string()));
  });
  try {
    return CommandLine(groups, commands).run(argc, argv);
  } catch (const UsageError& error) {
    return fail(usage_error, error.with_options());
  } catch (const traces::FileError& error) {
    return fail(usage_error, in_terms_of_options(error));
  } catch (const std::domain_error& error) {
    return fail(usage_error, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(usage_error, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(usage_error, fmt::format("{} cannot be used: {}", error.path1().string(), error.code().message()));
  } catch (const std::ios_base::failure& error) {
    return fail(usage_error, fmt::format("a file cannot be read: {}", error.code().message()));
  } catch (const std::bad_alloc&) {
    return fail(usage_error, "the run needs more memory than there is (ulimit -v says the limit, if there is one)");
  } catch (const std::exception& error) {
    return fail(internal_error, fmt::format("internal: {}", error.what()));
  }
}

}  // namespace specdec::cli
