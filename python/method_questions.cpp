#include "python/bindings.hpp"

#include "python/arguments.hpp"

namespace specdec::python {
namespace {

void take_all(const Arguments& arguments, planner::MethodQuestion& question) {
  SPECDEC_TAKE_MEMBERS(question, source, target, draft_model, prompts, tasks, ngram_text, eagle_head, parallel_heads,
                       exits, laws, vocab, noise, alpha, trace)
  SPECDEC_TAKE_MEMBERS(question, gamma, temperature, lenience, epsilon, delta, threshold, schedule, batch, drafts, tree,
                       tree_nodes, tree_acceptance, exit_layer)
  SPECDEC_TAKE_MEMBERS(question, tokens, until_error, max_new_tokens, end_token, timed, seed, threads)
  arguments.take("c", question.cost.c);
  arguments.take("verify_factor", question.cost.verify_factor);
  arguments.take("overhead", question.cost.overhead);
}

}  // namespace

planner::ComparisonQuestion comparison_question(const nanobind::dict& given) {
  const Arguments arguments(given);
  planner::ComparisonQuestion question;
  take_all(arguments, question);
  question.methods = planner::methods_named("--methods", arguments.get<std::vector<std::string>>("methods"));
  return question;
}

planner::SimulationQuestion simulation_question(const nanobind::dict& given) {
  const Arguments arguments(given);
  planner::SimulationQuestion question;
  take_all(arguments, question);
  arguments.take("draft", question.draft);
  arguments.take("verifier", question.verifier);
  arguments.take("policy", question.policy);
  return question;
}

}  // namespace specdec::python
