#include "cli/method_options.hpp"

#include <utility>

#include "cli/files.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/progress.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/comparison.hpp"

namespace specdec::cli {

using planner::range_of_parameter;
namespace {

planner::TreeShape tree_of(const std::string& text) {
  const auto sides = split(text, 'x');
  if (sides.size() != 2) refuse("--tree", text, "CxD, C children of every node and D levels");
  return {parse_integer("C in --tree", sides[0], 1, planner::largest_tree_side),
          parse_integer("D in --tree", sides[1], 1, planner::largest_tree_side)};
}

}  // namespace

MethodOptions::MethodOptions() { question.threads = default_threads(); }

void MethodOptions::declare_source(Options& options) {
  options.group("Source");
  options.choice("--source", source, planner::method_sources(),
                 "a pair of models and prompts, a random table pair, or a recording");
  options.text("--target", question.target, "DIR", "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft-model", question.draft_model, "DIR",
               "folder of the draft model's, of that vocabulary or with a d2t, or n-gram tables");
  options.text("--prompts", question.prompts, "FILE", "JSON lines or a .txt, as for specdec validate");
  options.value("--tasks,--task", "LIST", "tasks of the prompts, separated by commas (default: all)",
                [this](std::string_view, const std::string& text) { question.tasks = listed("--tasks", text); });
  options.text("--ngram-text", question.ngram_text, "FILE",
               "texts that n-grams are counted in, as --prompts (default: the prompts themselves)");
  options.text("--eagle-head", question.eagle_head, "FILE",
               "head trained on the target, of the draft eagle (default: the shipped target's)");
  options.text("--parallel-heads", question.parallel_heads, "FILE", "heads trained on it, of the draft parallel");
  options.text("--exits", question.exits, "FILE", "exits trained on it, of the draft early-exit");
  options.choice("--laws", question.laws, planner::synthetic_laws(),
                 "of a synthetic source: by the token before, the same everywhere, or acceptances alone\n"
                 "[iid with --alpha, fixed above 4096 tokens, else bigram]");
  options.integer("--vocab", question.vocab, range_of_parameter("--vocab"), "tokens of the synthetic vocabulary [64]");
  options.number("--noise", question.noise, range_of_parameter("--noise"),
                 "of the synthetic draft, in logits; 0 is the target [1]");
  options.text("--trace", question.trace, "FILE",
               "the recording that methods are replayed over, in any format of specdec analyze");
  options.number("--alpha", question.alpha, range_of_parameter("--alpha"), "acceptance of every draft, for --laws iid");
}

void MethodOptions::declare_settings(Options& options) {
  options.group("Parameters");
  options.integer("-k,--gamma,--num-speculative-tokens", settings.gamma, range_of_parameter("--gamma"),
                  "drafted tokens per step, the first one's under the policy heuristic");
  options.number("--temperature", settings.temperature, range_of_parameter("--temperature"),
                 "of both models, 0 for greedy decoding");
  options.number("--lenience", settings.lenience, range_of_parameter("--lenience"), "l of the lenient verifiers");
  options.number("--epsilon", settings.epsilon, range_of_parameter("--epsilon"), "of typical acceptance");
  options.number("--delta", settings.delta, range_of_parameter("--delta"), "of typical acceptance");
  options.number("--threshold", settings.threshold, range_of_parameter("--threshold"),
                 "of threshold, product and confidence");
  options.value("--schedule", "LOW-HIGH:GAMMA,...", "gammas by batch, of the policy batch",
                [this](std::string_view, const std::string& text) { question.schedule = parse_schedule(text); });
  options.integer("--batch,--concurrency", question.batch, range_of_parameter("--batch"),
                  "the batch that it looks up, and that moving-average and budget-... decode together [1]");
  options.integer("--drafts", settings.drafts, range_of_parameter("--drafts"), "chains of recursive and k-sequential");
  options.text("--tree", tree, "CxD", "C children of every node, D levels: of tree and static-tree");
  options.integer("--tree-nodes", settings.tree_nodes, range_of_parameter("--tree-nodes"),
                  "of optimal-tree, and at most of best-tree; the root is one");
  options.value("--tree-acceptance", "A,B,...",
                "how often the child of each rank is the accepted one: what trees are planned\nfor, and these two "
                "made for [the shipped pair's]",
                [this](std::string_view option, const std::string& text) {
                  question.tree_acceptance = parse_numbers(option, text, {.lo = 0, .hi = 1});
                });
  options.integer("--exit-layer", settings.exit_layer, range_of_parameter("--exit-layer"),
                  "blocks of the draft early-exit");
  options.group("What to run");
  options.integer("--tokens", question.tokens, range_of_parameter("--tokens"),
                  "tokens per method, rounded up to whole sequences; with --laws fixed or iid\nas many rounds as yield "
                  "them on average; 1e9 is understood\n[4608; with --until-error what it takes]");
  options.number("--until-error", question.until_error, range_of_parameter("--until-error"),
                 "end a method where tokens per step are known to this share of them (half of the 95% interval)");
  options.integer("--max-new-tokens", settings.max_new_tokens, range_of_parameter("--max-new-tokens"),
                  "tokens per sequence");
  options.integer("--end-token", question.end_token, range_of_parameter("--end-token"),
                  "the token that ends a text (default: none)");
  options.flag("--timed", question.timed, "decode one sequence at a time, in turn with plain decoding, and time both");
  options.integer("--seed", question.seed, range_of_parameter("--seed"), "seed of all random numbers");
  options.integer("--threads", question.threads, range_of_parameter("--threads"),
                  "sequences at a time; with --timed threads of each model");
  cost.declare(options, "[ratio of operations]");
}

planner::MethodQuestion MethodOptions::asked(const Options& given) const {
  planner::MethodQuestion asked = question;
  const auto take = [&](const char* option, const auto& value, auto& member) {
    if (given.is_given(option)) member = value;
  };
  take("--source", source, asked.source);
  take("--gamma", settings.gamma, asked.gamma);
  take("--temperature", settings.temperature, asked.temperature);
  take("--lenience", settings.lenience, asked.lenience);
  take("--epsilon", settings.epsilon, asked.epsilon);
  take("--delta", settings.delta, asked.delta);
  take("--threshold", settings.threshold, asked.threshold);
  take("--drafts", settings.drafts, asked.drafts);
  if (given.is_given("--tree")) asked.tree = tree_of(tree);
  take("--tree-nodes", settings.tree_nodes, asked.tree_nodes);
  take("--exit-layer", settings.exit_layer, asked.exit_layer);
  take("--max-new-tokens", settings.max_new_tokens, asked.max_new_tokens);
  asked.cost = cost.times();
  return asked;
}

Report report_of(const planner::MethodRuns& runs, render::Spoken spoken) {
  Report report = report_on(runs, render::json_of(runs), std::move(spoken));
  report.rows_of_empty = render::rows_of_empty_tables(runs);
  report.files = facts_of(runs.files);
  return report;
}

}  // namespace specdec::cli
