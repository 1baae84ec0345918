#include "cli/answering.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "analysis/core/parallel.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "cli/files.hpp"
#include "cli/standard_streams.hpp"
#include "cli/terminal.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

/// Texts of options, which may be paths of files to read.
std::vector<std::string> texts_in(const nlohmann::ordered_json& inputs) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : inputs.items()) {
    if (key == "output" || key == "emit_file") continue;
    if (key == "config" && value.is_object()) texts.push_back(value.at("path").get<std::string>());
    if (value.is_string()) texts.push_back(value.get<std::string>());
    if (!value.is_array()) continue;
    for (const nlohmann::ordered_json& one : value) {
      if (one.is_string()) texts.push_back(one.get<std::string>());
    }
  }
  return texts;
}

/// @param files  words of options before anything is read; behind that what was read, which has the files of folders
void require_no_input_written(const nlohmann::ordered_json& inputs, const std::vector<std::string>& files) {
  for (const auto& [key, option] : {std::pair("output", "--output"), std::pair("emit_file", "--emit-file")}) {
    if (inputs.contains(key) && inputs.at(key).is_string())
      require_no_input(option, inputs.at(key).get<std::string>(), files);
  }
}

/// Refuses two outputs that are one file, of which the second would replace the first.
void require_outputs_apart(const nlohmann::ordered_json& inputs) {
  std::vector<std::pair<std::string, std::filesystem::path>> outputs;
  for (const auto& [key, option] :
       {std::pair("output", "--output"), std::pair("emit_file", "--emit-file"), std::pair("part", "--part")}) {
    if (!inputs.contains(key) || !inputs.at(key).is_string()) continue;
    const std::string path = inputs.at(key).get<std::string>();
    std::error_code ignored;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path), ignored);
    for (const auto& [other, before] : outputs) {
      const bool alike = whole == before || std::filesystem::equivalent(whole, before, ignored);
      if (alike && (!std::filesystem::exists(whole, ignored) || std::filesystem::is_regular_file(whole, ignored)))
        refuse(option, path, fmt::format("another file than {}'s", other));
    }
    outputs.emplace_back(option, whole);
  }
}

std::string in_terms_of_options(const std::string& message, const Options& options) {
  const std::size_t colon = message.find(": ");
  const auto is_of_names = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == ':'; };
  if (colon == std::string::npos || !std::all_of(message.data(), message.data() + colon, is_of_names)) return message;
  const std::string about = message.substr(colon + 2);
  std::string name = about.substr(0, about.find(' '));
  if (!options.effective().contains(name)) return about;
  const std::size_t end = name.size();
  std::replace(name.begin(), name.end(), '_', '-');
  const std::string option = "--" + name;
  return options.is_given(option) ? option + about.substr(end) : about;
}

/// A complaint of the library begins with a function, which nobody called here; one about a parameter that has the
/// name of an option names the option.
Report run_command(const ParsedCommand& parsed) {
  try {
    return parsed.run();
  } catch (const UsageError&) {
    throw;
  } catch (const std::domain_error& error) {
    throw UsageError(in_terms_of_options(error.what(), parsed.options));
  } catch (const std::invalid_argument& error) {
    throw UsageError(in_terms_of_options(error.what(), parsed.options));
  } catch (const core::TooManyThreads& error) {
    // The work at hand may have had use for fewer than were asked for.
    const nlohmann::ordered_json inputs = parsed.options.effective();
    if (!inputs.contains("threads") || !parsed.options.is_given("--threads")) throw UsageError(error.what());
    throw UsageError(fmt::format("--threads is {}, but the system starts only {} ({})",
                                 inputs.at("threads").get<std::int64_t>(), error.started(), error.why().message()));
  }
}

void require_table(const Command& command, const std::string& name) {
  std::vector<std::string> names;
  for (const CsvTable& table : command.tables) {
    if (table.name == name) return;
    names.push_back(table.name);
  }
  refuse("--table", name, fmt::format("one of {}", fmt::join(names, ", ")));
}

std::string csv_of(const ParsedCommand& parsed, const Report& report, nlohmann::ordered_json document) {
  const std::vector<CsvTable>& tables = report.tables.empty() ? parsed.command->tables : report.tables;
  const auto named = std::find_if(tables.begin(), tables.end(),
                                  [&](const CsvTable& table) { return table.name == parsed.output.table; });
  const CsvTable& table = named == tables.end() ? tables.front() : *named;
  const auto empty = report.rows_of_empty.find(table.name);
  return to_csv(rows_of(std::move(document), table, tables), empty == report.rows_of_empty.end()
                                                                 ? nlohmann::ordered_json::array()
                                                                 : nlohmann::ordered_json::array({empty->second}));
}

std::string rendered(const ParsedCommand& parsed, Report& report, const nlohmann::ordered_json& inputs) {
  if (parsed.output.format == "table") {
    render::Spoken spoken = report.spoken;
    if (parsed.output.table) spoken = render::said({}, {}, report.text_of_table.at(*parsed.output.table));
    const std::string text = text_of(spoken, report.assumptions, report.warnings, parsed.output.explain);
    constexpr std::string_view kept = "\n\t";
    return report.is_drawn ? text : visible(text, kept);
  }
  const Command& command = *parsed.command;
  const std::string& of_command = command.schema.empty() ? command.name : command.schema;
  nlohmann::ordered_json document = with_envelope(report.schema.empty() ? of_command : report.schema, inputs, report);
  if (parsed.output.format == "json") return json_text(document) + '\n';
  return csv_of(parsed, report, std::move(document));
}

}  // namespace

void OutputOptions::declare(Options& options, const Command& command) {
  std::vector<std::string> names;
  for (const CsvTable& t : command.tables) names.push_back(t.name);
  options.group("Output");
  options.choice("--format", format, {"table", "json", "csv"}, "form of the output");
  const std::string_view shows =
      command.tables_in_text ? "the only table to show as text or as CSV" : "table that --format csv prints";
  options.text("--table", table, "NAME", fmt::format("{}: {}", shows, fmt::join(names, ", ")));
  if (!command.owns_output) options.text("--output", output, "FILE", "write there instead of to standard output");
  options.flag("--quiet", quiet, "nothing on standard error but errors");
  options.flag("--explain", explain, "also every row, assumptions, and warnings in full");
}

int answer(const ParsedCommand& parsed, const std::string& config) {
  const OutputOptions& output = parsed.output;
  if (output.output) require_writable("--output", *output.output);
  if (output.table) require_table(*parsed.command, *output.table);
  if (output.table && output.format != "csv" && !(output.format == "table" && parsed.command->tables_in_text))
    throw UsageError(fmt::format("--table is given, but goes with --format csv only, not with {}", output.format));
  nlohmann::ordered_json inputs = parsed.options.effective();
  inputs["config"] = config.empty() ? nlohmann::ordered_json() : file_facts("--config", config);

  require_no_input_written(inputs, texts_in(inputs));
  require_outputs_apart(inputs);
  const bool on_screen = !output.output && output.format == "table";
  if (const auto terminal = on_screen ? terminal_size() : std::nullopt) {
    render::set_text_width(std::min<std::size_t>(render::text_width(), static_cast<std::size_t>(terminal->columns)));
  }
  Report report = run_command(parsed);
  std::vector<std::string> read;
  for (const nlohmann::ordered_json& file : report.files) read.push_back(file.at("path").get<std::string>());
  require_no_input_written(inputs, read);
  nlohmann::ordered_json all_inputs = report.earlier_inputs;
  all_inputs.update(inputs);
  inputs = std::move(all_inputs);
  if (!report.files.empty()) inputs["files"] = report.files;
  if (!report.presets.empty()) inputs["presets"] = report.presets;
  const std::string content = rendered(parsed, report, inputs);
  if (output.output) write_whole("--output", *output.output, report.file ? *report.file : content);
  if (!output.output || report.file) print(on_screen && is_colour_terminal() ? coloured(content) : content);
  if (output.format == "csv" && !output.quiet) {
    for (const Note& w : report.warnings) {
      if (!w.explains_null) say(fmt::format("specdec: warning: {}\n", visible(w.message)));
    }
  }
  return report.exit_code;
}

void print(const std::string& content) {
  if (std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0) return;
  throw UsageError(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

}  // namespace specdec::cli
