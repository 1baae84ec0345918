#include "cli/help.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <string_view>

namespace specdec::cli {
namespace {

/// The text of a table's cell.
std::string cell(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, 1, '\\');
  return text;
}

std::string row(const CLI::Option& option) {
  const std::string name = option.get_name(option.get_positional(), true);
  const std::string type = option.get_type_name();
  const std::string initial = option.get_default_str();
  return fmt::format("| `{}{}{}` | {}{} |\n", cell(name), type.empty() ? "" : " ", cell(type),
                     cell(option.get_description()), initial.empty() ? "" : fmt::format(" [{}]", cell(initial)));
}

void add_table(const std::string& heading, const std::vector<const CLI::Option*>& options, std::string& text) {
  if (options.empty()) return;
  text += fmt::format("\n**{}**\n\n| option | meaning |\n|---|---|\n", heading);
  for (const CLI::Option* const option : options) text += row(*option);
}

/// Options of every command stand with the program's own alone.
bool is_shared(const CLI::App& app, const CLI::Option& option) {
  constexpr std::array<std::string_view, 3> shared = {"--format", "--output", "--quiet"};
  return app.get_parent() != nullptr && option.get_group() == "Output" &&
         std::find(shared.begin(), shared.end(), option.get_name()) != shared.end();
}

void add_options(const CLI::App& app, std::string& text) {
  add_table("Arguments", app.get_options([](const CLI::Option* o) { return o->get_positional(); }), text);
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) continue;
    const auto shown = app.get_options([&](const CLI::Option* o) {
      return o->get_group() == group && o->nonpositional() && o != app.get_help_ptr() && o != app.get_help_all_ptr() &&
             !is_shared(app, *o);
    });
    add_table(group, shown, text);
  }
}

void add_commands(const CLI::App& group, const std::string& words, std::string& text) {
  for (const CLI::App* const app : group.get_subcommands({})) {
    const std::string name = fmt::format("{} {}", words, app->get_name());
    text += fmt::format("\n## {}\n\n{}.\n", name, app->get_description());
    add_options(*app, text);
    if (!app->get_footer().empty()) text += fmt::format("\n```text not run: with files of yours\n{}\n```\n", app->get_footer());
    add_commands(*app, name, text);
  }
}

}  // namespace

std::string BriefHelp::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  if (mode != CLI::AppFormatMode::Normal) return Formatter::make_help(app, name, CLI::AppFormatMode::Normal);
  std::string text = make_description(app) + make_usage(app, name) + app->get_footer() + "\n" + make_positionals(app) +
                     "\nOptions:\n";
  for (const std::string& option : names_) text += make_option(app->get_option(option), false);
  return fmt::format("{}\nAll options, by group: {} --help-all\n", text, name);
}

std::string first_questions() {
  return "How many tokens to draft?   specdec plan --acceptance-length 2.92 --at 3 --c 0.04 --gamma 3\n"
         "What do my runs say?        specdec plan --bench traces/samples/bench/*.json --emit vllm\n"
         "What did my server accept?  specdec counters traces/samples/serving/vllm_k4.log\n"
         "How many GPUs do I need?    specdec capacity --config docs/examples/chat_70b.toml --tp 4 --prompt-tokens 1000 --output-tokens 250\n"
         "What does my text say?      specdec analyze sim/models/recording.safetensors --c 0.05\n";
}

std::string reference(const CLI::App& program) {
  std::string text =
      "# Commands and options\n\n"
      "Written by `specdec help --markdown`; `specdec COMMAND --help` says the same. In brackets: the value without the "
      "option.\n";
  add_options(program, text);
  add_commands(program, program.get_name(), text);
  return text;
}

}  // namespace specdec::cli
