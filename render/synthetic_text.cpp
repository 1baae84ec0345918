#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "render/synthetic.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planning::SyntheticSettings;

std::string loss_text(const SyntheticSettings& settings, double deviation) {
  if (settings.form == planning::SyntheticForm::law) return "Accepts by the law.";
  return fmt::format(
      "Accepts by the mean alone: the standard deviation of accepted drafts per step is {} where the law has {}, and "
      "{} of the steps accept another number (total variation).",
      fixed(planning::accepted_deviation(settings.survival)), fixed(deviation), percent(settings.total_variation));
}

std::string explained(const SyntheticSettings& settings, double deviation) {
  std::string text = fmt::format("{}:\n", planning::newest_release(settings.engine));
  if (!settings.text.empty()) text += wrapped(loss_text(settings, deviation)) + '\n';
  for (const std::string& note : settings.notes) text += wrapped(fmt::format("Note: {}.", note), 2) + '\n';
  return text;
}

std::string range_text(const planner::Synthetic& synthetic) {
  const estimate::TokensPerStep& tokens = synthetic.tokens_per_step;
  if (!(tokens.ci95.lo < tokens.ci95.hi)) return "";
  return fmt::format(" ({}: {} to {})", synthetic.is_range ? "range" : "95%", fixed(tokens.ci95.lo),
                     fixed(tokens.ci95.hi));
}

}  // namespace

Spoken spoken(const planner::Synthetic& synthetic) {
  std::vector<std::string> rates;
  for (const double alive : synthetic.survival) rates.push_back(brief(alive, 3));
  const double deviation = planning::accepted_deviation(synthetic.survival);
  Spoken answer =
      said(fmt::format("Set these: your engine then accepts {} tokens per step at gamma {}{}.",
                       brief(synthetic.tokens_per_step.value, 3), synthetic.question.gamma, range_text(synthetic)),
           fmt::format("From {}. Drafts 1, 2, ... are accepted in {} of the steps.", visible(synthetic.acceptance),
                       fmt::join(rates, ", ")));
  for (const SyntheticSettings& settings : synthetic.settings) {
    answer.note += fmt::format("\n{}:\n{}", planning::newest_release(settings.engine),
                               settings.text.empty() ? "nothing\n" : settings.text);
    answer.more += (answer.more.empty() ? "" : "\n") + explained(settings, deviation);
  }
  return answer;
}

}  // namespace specdec::render
