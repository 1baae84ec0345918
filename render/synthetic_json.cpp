#include "render/json_values.hpp"
#include "render/synthetic.hpp"

namespace specdec::render {
namespace {

using nlohmann::ordered_json;
using planning::SyntheticSettings;

ordered_json settings_json(const SyntheticSettings& settings) {
  return {{"engine", planning::name_of(settings.engine)},
          {"release", planning::newest_release(settings.engine)},
          {"form", planning::name_of(settings.form)},
          {"text", settings.text.empty() ? ordered_json() : ordered_json(settings.text)},
          {"tokens_per_step", planning::tokens_per_step(settings.survival)},
          {"accepted_deviation", planning::accepted_deviation(settings.survival)},
          {"total_variation", settings.total_variation},
          {"survival", settings.survival},
          {"notes", settings.notes}};
}

}  // namespace

ordered_json json_of(const planner::Synthetic& synthetic) {
  const estimate::TokensPerStep& tokens = synthetic.tokens_per_step;
  ordered_json json = {
      {"gamma", synthetic.question.gamma},
      {"acceptance", synthetic.acceptance},
      {"tokens_per_step", {{"value", tokens.value}, {"ci95", pair_of(tokens.ci95)}, {"method", synthetic.method}}},
      {"accepted_deviation", planning::accepted_deviation(synthetic.survival)},
      {"law", ordered_json::array()},
      {"settings", ordered_json::array()}};
  double before = 1;
  std::int64_t position = 0;
  for (const double alive : synthetic.survival) {
    json["law"].push_back({{"position", ++position},
                           {"unconditional", alive},
                           {"conditional", before > 0 ? ordered_json(alive / before) : ordered_json()}});
    before = alive;
  }
  for (const SyntheticSettings& settings : synthetic.settings) json["settings"].push_back(settings_json(settings));
  return json;
}

}  // namespace specdec::render
