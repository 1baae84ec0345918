#include "cli/help.hpp"

#include <fmt/format.h>

namespace specdec::cli {

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

}  // namespace specdec::cli
