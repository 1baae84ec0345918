// Does the validation pass the right sampler and catch every wrong one? Whole runs on a synthetic bigram pair whose
// acceptance rate is that of trained pairs. A right sampler fails a run with probability below 5e-4; the seed is fixed.
// tests/bench/validation_false_alarms measures both rates over many seeds; docs/validation.md states them.

#include <string>
#include <vector>

#include "sim/table_models.hpp"
#include "sim/validation/validate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/wrong_samplers.hpp"

using namespace specdec;
using test_support::Defect;
using validation::Configuration;
using validation::Report;

namespace {

Report run(Defect defect, double temperature = 1) {
  const sim::TablePair pair = sim::synthetic_bigram_pair(200, 1.2, 1);
  const sim::ModelPair models{sim::factory_of(pair.target), sim::factory_of(pair.draft)};
  std::vector<sim::Prompt> prompts;
  for (sim::Token token = 0; token < 16; ++token) prompts.push_back({"synthetic", {token}});
  validation::Options options;
  options.temperatures = {temperature};
  options.timed_prompts = 0;
  options.decoder = [defect](sim::LanguageModel& target, sim::LanguageModel& draft, std::span<const sim::Token> prompt,
                             const sim::DecodingOptions& decoding, const sim::UniformSource& uniforms) {
    return test_support::decode_with_defect(defect, target, draft, prompt, decoding, uniforms);
  };
  return validate(models, prompts, options);
}

}  // namespace

TEST_CASE("the right sampler passes, with sensible deviations, also at other temperatures") {
  for (const double temperature : {0.0, 0.7, 1.0, 1.5}) {
    const Report report = run(Defect::none, temperature);
    CHECK(report.passed);
    // All but those of late slots, which few tokens reach.
    if (temperature > 0) CHECK(report.tests >= 40);
  }
}

TEST_CASE("at temperature 0 Eq. (1) may err, but replay gives the steps exactly") {
  for (const Configuration& configuration : run(Defect::none, 0).configurations) {
    CHECK(configuration.tokens_per_step.replay == configuration.tokens_per_step.measured.value);
  }
}

TEST_CASE("every wrong sampler fails") {
  for (const Defect defect : {Defect::residual_not_subtracted, Defect::acceptance_without_ratio,
                              Defect::bonus_from_draft, Defect::bonus_from_wrong_prefix, Defect::uniform_used_twice}) {
    INFO("defect " << static_cast<int>(defect));
    CHECK_FALSE(run(defect).passed);
  }
}

TEST_CASE("a bonus from the draft is seen in the bonus slot and nowhere before it") {
  const Report report = run(Defect::bonus_from_draft);
  for (const Configuration& configuration : report.configurations) {
    for (const validation::UniformityTest& test : configuration.uniformity) {
      if (test.slot >= 1 && test.slot <= configuration.gamma) CHECK(test.passed);
    }
  }
  CHECK_FALSE(report.configurations.front().uniformity.at(3).passed);
}
