#include "planner/synthetic.hpp"

#include <fmt/format.h>
#include <stdexcept>

#include "planner/plan.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using planning::Engine;

planning::SyntheticSettings settings_for(Engine engine, const Synthetic& answer) {
  const auto release = release_of(engine, answer.question.engine_version);
  try {
    return planning::synthetic_settings(engine, answer.survival, release);
  } catch (const std::domain_error& error) {
    throw QuestionError(fmt::format("--engine-version is {}, but {}", *answer.question.engine_version, error.what()));
  }
}

/// The law at the question's gamma.
void take_law(const Acceptance& acceptance, Synthetic& answer) {
  const std::int64_t gamma = answer.question.gamma;
  try {
    answer.tokens_per_step = acceptance.curve->tokens_per_step(gamma);
    answer.survival = acceptance.curve->survival(gamma);
  } catch (const std::domain_error& error) {
    throw QuestionError(fmt::format("--gamma is {}, but {}", gamma, error.what()));
  }
  if (answer.tokens_per_step.extrapolated) {
    answer.warnings.push_back(
        {"law_extrapolated",
         fmt::format("no draft of {} tokens was measured: behind the longest one its law is an assumption", gamma)});
  }
}

}  // namespace

Synthetic synthetic(const Acceptance& acceptance, const SyntheticQuestion& question) {
  require_in("--gamma", question.gamma, {.lo = 1, .hi = static_cast<double>(largest_synthetic_gamma)});
  if (question.engine_version && !question.emit) {
    throw QuestionError("--engine-version is given, but needs --emit beside it");
  }
  if (const std::string refused = acceptance.curve->refused(); !refused.empty()) {
    throw QuestionError(fmt::format("the acceptance decides nothing: {}", refused));
  }
  Synthetic answer;
  answer.question = question;
  answer.acceptance = acceptance.text;
  answer.method = acceptance.method;
  answer.is_range = acceptance.stated && acceptance.stated->is_range();
  answer.files = acceptance.files;
  answer.presets = acceptance.presets;
  answer.assumptions = acceptance.assumptions;
  answer.warnings = acceptance.warnings;
  take_law(acceptance, answer);
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::trtllm, Engine::llamacpp}) {
    if (!question.emit || question.emit == engine) answer.settings.push_back(settings_for(engine, answer));
  }
  return answer;
}

}  // namespace specdec::planner
