#include "cli/manual.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "render/version.hpp"

namespace specdec::cli {
namespace {

/// Text as it is: dashes that can be copied, no requests at the beginning of lines, and places within long lists of
/// values where a line may end.
std::string plain(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const bool begins_line = shown.empty() || shown.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) shown += "\\&";
    if (c == '\\') {
      shown += "\\e";
    } else if (c == '-') {
      shown += "\\-";
    } else {
      shown += c;
    }
    if (c == '|' || c == ',') shown += "\\:";
  }
  return shown;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", plain(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", plain(text)); }

/// "-k, --gamma N" and what it means.
std::string entry(const CLI::Option& option) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + bold(name); };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (option.get_positional()) names = bold(option.get_name());
  const std::string value = option.get_type_name();
  if (!value.empty() && option.get_items_expected_max() > 0) names += ' ' + italic(value);
  const std::string standard = option.get_default_str();
  const std::string is_else = standard.empty() || option.get_positional() ? "" : fmt::format(" (else {})", standard);
  return fmt::format(".TP\n{}\n{}\n", names, plain(option.get_description() + is_else));
}

/// Options of every command stand in the page once.
bool is_shared(const CLI::App& program, const CLI::App& command, const CLI::Option& option) {
  if (&command == &program) return false;
  const CLI::Option* const same = program.get_option_no_throw(option.get_name());
  return same != nullptr && same->get_description().ends_with(option.get_description());
}

std::string options_text(const CLI::App& program, const CLI::App& command) {
  std::string text;
  std::string group = "Options";
  for (const CLI::Option* const option : command.get_options({})) {
    if (is_shared(program, command, *option)) continue;
    if (!option->get_positional() && option->get_group() != group) {
      group = option->get_group();
      text += fmt::format(".PP\n{}\n", italic(group + ":"));
    }
    text += entry(*option);
  }
  return text;
}

void add_commands(const CLI::App& program, const CLI::App& group, const std::string& words, std::string& text) {
  for (const CLI::App* const app : group.get_subcommands({})) {
    const std::string its_words = fmt::format("{} {}", words, app->get_name());
    text +=
        fmt::format(".SS {}\n{}.\n{}", plain(its_words), plain(app->get_description()), options_text(program, *app));
    if (const std::string footer = app->get_footer(); !footer.empty())
      text += fmt::format(".PP\n.nf\n{}\n.fi\n", plain(footer));
    add_commands(program, *app, its_words, text);
  }
}

}  // namespace

std::string manual_page(const CLI::App& program) {
  const std::string& name = program.get_name();
  std::string commands;
  add_commands(program, program, name, commands);
  return fmt::format(
      ".TH SPECDEC 1 \"\" \"specdec {}\" \"User Commands\"\n.ad l\n"
      ".SH NAME\n{} \\- plan speculative decoding\n"
      ".SH SYNOPSIS\n{} {} [{}]\n"
      ".SH DESCRIPTION\n"
      "How many tokens to draft, with which draft, whether it is worth it at a batch size and on a hardware, and how "
      "sure "
      "that is: from formulas, recorded traces, counters of servers, or small models that come with the program.\n"
      ".SH OPTIONS\nEvery command has these; those of a command stand behind its name.\n{}"
      ".SH COMMANDS\n{}"
      ".SH EXIT STATUS\n"
      ".TP\n{}\nSuccess.\n.TP\n{}\nA requested check failed.\n"
      ".TP\n{}\nWrong usage or input, or what the machine refuses.\n.TP\n{}\nA defect of the program.\n",
      render::version(), name, bold(name), italic("command"), italic("options"), options_text(program, program),
      commands, bold("0"), bold("1"), bold("2"), bold("3"));
}

}  // namespace specdec::cli
