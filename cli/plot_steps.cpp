#include "cli/plot_steps.hpp"

#include <fmt/format.h>
#include <memory>

#include "cli/given_options.hpp"
#include "cli/shown_text.hpp"
#include "cli/terminal.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

void declare(Options& options, ShownTextOptions& o) {
  options.group("Figure");
  options.text("--target", o.paths.target, "DIR", "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft", o.paths.draft, "DIR", "folder of the draft's, or n-gram tables: unigram or bigram");
  options.text("--prompts", o.paths.prompts, "FILE", "JSON lines or a .txt, as validate takes them");
  options.text("--tasks,--task", o.tasks, "LIST", "tasks of the prompts, whose first one is continued");
  options.text("--prompt", o.prompt, "TEXT", "text to continue");
  options.integer("-k,--gamma,--num-speculative-tokens", o.gamma, {.lo = 1, .hi = 1024}, "drafted tokens per step");
  options.number("--temperature", o.temperature, {.lo = 0, .hi = 1000}, "0 for greedy decoding");
  options.integer("--tokens", o.tokens, {.lo = 2, .hi = 1'000'000}, "tokens to decode");
  options.integer("--seed", o.seed, {}, "seed of all random numbers");
}

std::string summary_of(const ShownTextOptions& o, const ShownText& shown) {
  return fmt::format("{} tokens by {} runs of the target, gamma = {}, temperature {}", shown.text.counters.tokens,
                     shown.text.counters.steps, o.gamma, brief(o.temperature));
}

Report plot_steps(const ShownTextOptions& o, const Options& options) {
  const nlohmann::ordered_json given = options.effective();
  // Models of the user's own need prompts beside them.
  const bool prompts = options.is_given("--prompts") && !o.paths.target;
  if (o.prompt)
    refuse_given({{"--prompts", prompts}, {"--tasks", options.is_given("--tasks")}},
                 "--prompt is the text to continue");
  if (o.gamma >= o.tokens)
    throw UsageError(fmt::format("--gamma is {}, but must be below --tokens {}", o.gamma, o.tokens));
  const bool draws = !given.at("output").is_null() && given.at("output").get<std::string>().ends_with(".html");
  if (!given.at("output").is_null() && !draws && given.at("format") == "table")
    refuse("--output", given.at("output").get<std::string>(),
           "a file that ends in .html, or with --format json or csv any other");
  ShownText shown = decode_shown_text(o);
  Report report;
  report.json = {
      {"prompt", visible(shown.prompt)}, {"tokens", shown.text.counters.tokens}, {"steps", steps_json(shown)}};
  const std::string summary = summary_of(o, shown);
  if (draws) report.file = steps_page(shown.prompt, shown.steps, summary, options.command_line());
  const bool colour = is_colour_terminal();
  report.spoken.note =
      draws ? fmt::format("{}: {}.\n", without_control_characters(given.at("output").get<std::string>()), summary)
            : fmt::format("{}\n\n{}\n{}.\n{}\n\nAs a page: specdec plot steps --output steps.html\n",
                          visible(shown.prompt), figure_of_steps(shown.steps, colour), summary, figure_legend(colour));
  report.files = std::move(shown.files);
  report.assumptions = std::move(shown.assumptions);
  return report;
}

}  // namespace

std::string default_steps_page(const std::string& made_by) {
  const ShownTextOptions defaults;
  const ShownText shown = decode_shown_text(defaults);
  return steps_page(shown.prompt, shown.steps, summary_of(defaults, shown), made_by);
}

Command plot_steps_command() {
  return {.name = std::string("plot ") + steps_figure_name,
          .summary = steps_figure_summary,
          .tables = {{"steps", "/steps"}},
          .setup = [](Options& options) {
            const auto o = std::make_shared<ShownTextOptions>();
            declare(options, *o);
            return std::function<Report()>([o, &options] { return plot_steps(*o, options); });
          }};
}

}  // namespace specdec::cli
