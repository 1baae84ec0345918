#include "analysis/planning/published_lengths.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "analysis/cost/model_spec.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using planning::PublishedLength;
using planning::PublishedPrior;

namespace {

const planning::PriorLength& at(const std::string& name, std::int64_t gamma) {
  const PublishedPrior* const prior = planning::published_prior(name);
  REQUIRE(prior != nullptr);
  for (const planning::PriorLength& length : prior->lengths)
    if (length.gamma == gamma) return length;
  throw std::out_of_range(name);
}

}  // namespace

TEST_CASE("every published length lies in its range and names its page, model, head and task") {
  CHECK(planning::published_lengths().size() > 150);
  for (const PublishedLength& figure : planning::published_lengths()) {
    INFO(figure.target_model << ' ' << figure.draft_model << ' ' << figure.task);
    CHECK(figure.source.rfind("https://", 0) == 0);
    CHECK_FALSE(figure.where.empty());
    CHECK_FALSE(figure.task.empty());
    REQUIRE_FALSE(figure.tokens_per_step.empty());
    for (const auto& [gamma, tokens] : figure.tokens_per_step) {
      CHECK(1 < tokens);
      CHECK(tokens < static_cast<double>(gamma) + 1);
    }
  }
}

TEST_CASE("priors are those that tests/reference/prior_of_lengths.py sums over a grid") {
  const auto check = [](const std::string& name, std::int64_t gamma, double value, double lo, double hi) {
    INFO(name << " at " << gamma);
    const planning::PriorLength& length = at(name, gamma);
    CHECK(length.tokens_per_step == Approx(value).epsilon(1e-3));
    CHECK(length.ci95.lo == Approx(lo).epsilon(1e-3));
    CHECK(length.ci95.hi == Approx(hi).epsilon(1e-3));
  };
  check("eagle3", 3, 2.7697, 1.7055, 3.5893);
  check("eagle3-llama-3.3-70b", 7, 3.4162, 1.7330, 5.8751);
  check("mtp-deepseek-v3", 3, 3.0636, 2.2205, 3.6138);
  check("parallel", 7, 4.2265, 1.7771, 6.8538);
}

TEST_CASE("there is a prior for each kind and each of its targets, and a target without figures has that of its kind") {
  std::set<std::string> names;
  for (const PublishedPrior& prior : planning::published_priors()) {
    INFO(prior.name);
    CHECK(names.insert(prior.name).second);
    CHECK(prior.lengths.size() == std::size(planning::prior_gammas));
    CHECK(prior.figures.size() <= prior.figures_of_kind);
    CHECK(prior.deployments <= prior.deployments_of_kind);
    for (const PublishedLength* figure : prior.figures) {
      if (prior.target_model) CHECK(figure->target_model == *prior.target_model);
    }
  }
  CHECK(planning::prior_of(cost::DraftKind::eagle, "llama-3.1-8b")->name == "eagle3-llama-3.1-8b");
  CHECK(planning::prior_of(cost::DraftKind::eagle, "qwen3-32b")->name == "eagle3");
  CHECK(planning::prior_of(cost::DraftKind::mtp, std::nullopt)->name == "mtp");
  CHECK(planning::prior_of(cost::DraftKind::model, "llama-3.1-8b") == nullptr);
  CHECK(planning::published_prior("EAGLE3 Llama 3.1 8B")->name == "eagle3-llama-3.1-8b");
}

TEST_CASE("a prior holds most figures of its kind, and an interval without the spread of tasks does not") {
  // Figures are its own sample, so that no share below 90% is chance; tasks carry most of the spread.
  const PublishedPrior& prior = *planning::published_prior("eagle3");
  const auto share_within = [&](double lo, double hi) {
    double held = 0, all = 0;
    for (const PublishedLength* figure : prior.figures) {
      const auto found = figure->tokens_per_step.find(3);
      if (found == figure->tokens_per_step.end()) continue;
      ++all;
      held += lo <= found->second && found->second <= hi ? 1 : 0;
    }
    return held / all;
  };
  const planning::PriorLength& length = at("eagle3", 3);
  CHECK(share_within(length.ci95.lo, length.ci95.hi) > 0.9);
  CHECK(share_within(length.tokens_per_step - 0.3, length.tokens_per_step + 0.3) < 0.7);
  CHECK(prior.task_spread > prior.deployment_spread);
}
