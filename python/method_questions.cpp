#include "python/method_questions.hpp"

#include "python/arguments.hpp"

namespace specdec::python {
namespace {

void take_source(const Arguments& arguments, planner::MethodQuestion& question) {
  arguments.take("source", question.source);
  arguments.take("target", question.target);
  arguments.take("draft_model", question.draft_model);
  arguments.take("prompts", question.prompts);
  arguments.take("tasks", question.tasks);
  arguments.take("ngram_text", question.ngram_text);
  arguments.take("eagle_head", question.eagle_head);
  arguments.take("parallel_heads", question.parallel_heads);
  arguments.take("exits", question.exits);
  arguments.take("laws", question.laws);
  arguments.take("vocab", question.vocab);
  arguments.take("noise", question.noise);
  arguments.take("alpha", question.alpha);
  arguments.take("trace", question.trace);
}

void take_parameters(const Arguments& arguments, planner::MethodQuestion& question) {
  arguments.take("gamma", question.gamma);
  arguments.take("temperature", question.temperature);
  arguments.take("lenience", question.lenience);
  arguments.take("epsilon", question.epsilon);
  arguments.take("delta", question.delta);
  arguments.take("threshold", question.threshold);
  arguments.take("schedule", question.schedule);
  arguments.take("batch", question.batch);
  arguments.take("drafts", question.drafts);
  arguments.take("tree", question.tree);
  arguments.take("tree_nodes", question.tree_nodes);
  arguments.take("tree_acceptance", question.tree_acceptance);
  arguments.take("exit_layer", question.exit_layer);
}

void take_all(const Arguments& arguments, planner::MethodQuestion& question) {
  take_source(arguments, question);
  take_parameters(arguments, question);
  arguments.take("tokens", question.tokens);
  arguments.take("until_error", question.until_error);
  arguments.take("max_new_tokens", question.max_new_tokens);
  arguments.take("end_token", question.end_token);
  arguments.take("timed", question.timed);
  arguments.take("seed", question.seed);
  arguments.take("threads", question.threads);
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
