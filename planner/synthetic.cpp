#include "planner/synthetic.hpp"

#include <fmt/format.h>
#include <iterator>
#include <stdexcept>

#include "planner/plan.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using planning::Engine;

/// The total variation from the replay's law up to which the shares of steps pass for it.
constexpr double most_apart = 0.03;

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

/// Shares of steps that say another thing than what was replayed.
void compare_with_replay(const Acceptance& acceptance, Synthetic& answer) {
  if (std::ssize(acceptance.replayed_survival) != answer.question.gamma) return;
  const double apart = planning::accepted_total_variation(answer.survival, acceptance.replayed_survival);
  if (apart <= most_apart) return;
  answer.warnings.push_back(
      {"law_of_replay",
       fmt::format("the law takes what each draft adds to the tokens per step for its share of the steps; of the steps "
                   "of gamma {} that the recording's replay makes {:.0f}% accept another number of drafts (total "
                   "variation)",
                   answer.question.gamma, 100 * apart)});
}

}  // namespace

Synthetic synthetic(const Acceptance& acceptance, const SyntheticQuestion& question) {
  require_in("--gamma", question.gamma, {.lo = 1, .hi = static_cast<double>(largest_synthetic_gamma)});
  if (const std::string refused = acceptance.curve->refused(); !refused.empty()) {
    throw QuestionError(fmt::format("the acceptance decides nothing: {}", refused));
  }
  Synthetic answer;
  answer.question = question;
  answer.acceptance = acceptance.text;
  answer.method = acceptance.method;
  answer.is_range = acceptance.stated && acceptance.stated->is_range();
  static_cast<Provenance&>(answer) = acceptance;
  take_law(acceptance, answer);
  compare_with_replay(acceptance, answer);
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::trtllm, Engine::llamacpp}) {
    if (!question.emit || question.emit == engine) 
      answer.settings.push_back(planning::synthetic_settings(engine, answer.survival));
  }
  return answer;
}

}  // namespace specdec::planner
