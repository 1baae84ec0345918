#include "planner/methods/method_settings.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/methods/checkpoint_pair.hpp"
#include "planner/methods/method_parameters.hpp"
#include "planner/planning_steps.hpp"
#include "planner/question_error.hpp"
#include "sim/validation/compare.hpp"
#include "traces/open_trace.hpp"

namespace specdec::planner {
namespace {

using validation::MethodSettings;

constexpr double largest_tree = 1024;

AskedSource pair_source(const MethodQuestion& question, const std::filesystem::path& shipped_models) {
  // Where no method asks for the draft, the target stands in its place.
  const std::optional<std::string>& draft = question.draft_model ? question.draft_model : question.target;
  CheckpointPair pair({question.target, draft, question.prompts, "--draft-model"}, shipped_models);
  const std::int64_t new_tokens = question.max_new_tokens.value_or(MethodSettings{}.max_new_tokens);
  const CheckpointPair::Prompts prompts = pair.prompts(question.tasks, pair.longest_prompt(new_tokens));
  AskedSource asked;
  validation::MethodSource& source = asked.source;
  pair.read_heads(question, source);
  asked.assumptions = pair.assumptions();
  asked.files = pair.files();
  prompts.warn_of_cut(asked.warnings);
  source.models = pair.models();
  source.target_weights = pair.target_weights();
  source.draft_weights = pair.draft_weights();
  source.prompts = prompts.kept;
  if (question.ngram_text) {
    source.texts = pair.texts(*question.ngram_text);
    asked.files.push_back(*question.ngram_text);
  } else {
    for (const sim::Prompt& prompt : source.prompts) source.texts.push_back(prompt.tokens);
  }
  if (!question.target) {
    source.unigram = pair.table_model("unigram");
    source.bigram = pair.table_model("bigram");
  }
  return asked;
}

AskedSource recorded_source(const std::string& trace) {
  AskedSource asked;
  asked.assumptions = {
      {"trace", trace, "user"},
      {"steps at the ends of texts", "drafting and charged for only what the text has left", "default"}};
  asked.files = {trace};
  asked.source.recording = [files = std::vector<std::filesystem::path>{trace}] { return traces::open_trace(files); };
  return asked;
}

AskedSource synthetic_source_of(const MethodQuestion& question) {
  AskedSource asked;
  const std::string laws = laws_of(question);
  asked.assumptions = {{"laws", laws, question.laws ? "user" : "default"}};
  if (laws == "iid") {
    asked.assumptions.push_back({"alpha", *question.alpha, "user"});
    asked.source.alpha = core::AcceptanceRate(*question.alpha);
    return asked;
  }
  const std::int64_t vocab = question.vocab.value_or(default_vocab);
  const double noise = question.noise.value_or(default_noise);
  asked.assumptions.push_back({"vocab", vocab, question.vocab ? "user" : "default"});
  asked.assumptions.push_back({"noise", noise, question.noise ? "user" : "default"});
  const auto seed = static_cast<std::uint64_t>(question.seed);
  asked.source =
      laws == "fixed" ? validation::fixed_source(vocab, noise, seed) : validation::synthetic_source(vocab, noise, seed);
  return asked;
}

void set_tree(const TreeShape& tree, MethodSettings& settings) {
  const std::string text = fmt::format("{}x{}", tree.children, tree.depth);
  const auto is_legal = [](std::int64_t side) { return 1 <= side && side <= largest_tree_side; };
  if (!is_legal(tree.children) || !is_legal(tree.depth))
    refuse("--tree", text, fmt::format("of 1 to {} children and levels", largest_tree_side));
  double nodes = 1;
  for (std::int64_t level = 0; level < tree.depth; ++level) nodes = nodes * static_cast<double>(tree.children) + 1;
  if (nodes > largest_tree) refuse("--tree", text, fmt::format("of {:.0f} nodes at most", largest_tree));
  settings.tree_children = tree.children;
  settings.tree_depth = tree.depth;
}

void set_tree_acceptance(const std::vector<double>& rates, MethodSettings& settings) {
  double rest = 1;
  double least = 1;
  for (const double rate : rates) {
    rest -= rate;
    if (!(0 <= rate && rate <= least) || rest < -1e-9)
      refuse("--tree-acceptance", fmt::format("{}", fmt::join(rates, ",")),
             "probabilities that do not rise, of sum 1 at most");
    least = rate;
  }
  if (rates.empty()) refuse("--tree-acceptance", "", "at least one probability");
  settings.tree_acceptance = rates;
}

void set_schedule(const MethodQuestion& question, MethodSettings& settings) {
  settings.batch = question.batch.value_or(1);
  if (!question.schedule) return;
  if (question.schedule->empty()) refuse("--schedule", "", "stretches from batch 1 on without gaps");
  require_schedule(*question.schedule);
  for (const planning::ScheduleStretch& stretch : *question.schedule)
    settings.schedule.push_back({stretch.batch_low, stretch.gamma});
  if (const std::int64_t end = question.schedule->back().batch_high; settings.batch > end)
    refuse("--batch", fmt::format("{}", settings.batch), fmt::format("at most {}, where --schedule ends", end));
}

}  // namespace

AskedSource read_source(const MethodQuestion& question, const std::filesystem::path& shipped_models) {
  const std::string source = source_of_question(question);
  if (source == "trace") return recorded_source(*question.trace);
  return source == "pair" ? pair_source(question, shipped_models) : synthetic_source_of(question);
}

MethodSettings settings_of(const MethodQuestion& question) {
  MethodSettings settings;
  const auto take = [](const auto& given, auto& setting) { setting = given.value_or(setting); };
  take(question.gamma, settings.gamma);
  take(question.temperature, settings.temperature);
  take(question.lenience, settings.lenience);
  take(question.epsilon, settings.epsilon);
  take(question.delta, settings.delta);
  take(question.threshold, settings.threshold);
  take(question.drafts, settings.drafts);
  take(question.tree_nodes, settings.tree_nodes);
  take(question.exit_layer, settings.exit_layer);
  take(question.max_new_tokens, settings.max_new_tokens);
  if (question.end_token) settings.end_token = static_cast<sim::Token>(*question.end_token);
  settings.timed = question.timed;
  settings.until_relative_error = question.until_error;
  if (question.tokens || question.until_error) settings.tokens = question.tokens.value_or(most_tokens);
  settings.seed = static_cast<std::uint64_t>(question.seed);
  settings.threads = question.threads;
  if (question.tree) set_tree(*question.tree, settings);
  if (question.tree_acceptance) set_tree_acceptance(*question.tree_acceptance, settings);
  set_schedule(question, settings);
  return settings;
}

}  // namespace specdec::planner
