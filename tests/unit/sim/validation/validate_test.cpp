#include "sim/validation/validate.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using sim::ModelPair;
using sim::Prompt;
using validation::Check;
using validation::Configuration;
using validation::Options;
using validation::Report;

namespace {

ModelPair factories(const sim::TablePair& pair) { return {sim::factory_of(pair.target), sim::factory_of(pair.draft)}; }

const std::vector<Prompt> prompts{{"odd", {1}}, {"even", {2, 4}}, {"odd", {3, 5, 7}}};
const std::vector<Prompt> binary_prompts{{"all", {0}}, {"all", {1, 0}}};

Options small_run() {
  Options options;
  options.gammas = {2, 3};
  options.tokens = 600;
  options.max_new_tokens = 50;
  options.timed_prompts = 0;
  return options;
}

Report run(const Options& options) {
  return validate(factories(sim::synthetic_bigram_pair(30, 0.5, 7)), prompts, options);
}

const Check& check_named(const Configuration& configuration, const std::string& name) {
  const auto found = std::find_if(configuration.checks.begin(), configuration.checks.end(),
                                  [&](const Check& check) { return check.name == name; });
  REQUIRE(found != configuration.checks.end());
  return *found;
}

}  // namespace

TEST_CASE("a run covers every task, temperature and gamma, tasks in the order of the prompts") {
  const Report report = run(small_run());
  REQUIRE(report.configurations.size() == 8);
  CHECK(report.configurations[0].task == "odd");
  CHECK(report.configurations[4].task == "even");
  CHECK(report.configurations[1].temperature == 0);
  CHECK(report.configurations[1].gamma == 3);
  CHECK(report.configurations[2].temperature == 1);
  CHECK(report.passed);
}

TEST_CASE("the level is divided among the tests that were planned, whether or not there is data for all of them") {
  const Report report = run(small_run());
  // By hand: 2 tasks, temperature 1 alone, gamma 2 and 3: 2 * ((2 * 4 + 3) + (2 * 5 + 3)).
  CHECK(report.planned_tests == 48);
  CHECK(report.level == Approx(5e-4 / 48));
  for (const Configuration& configuration : report.configurations) CHECK(configuration.tests <= 13);
}

TEST_CASE("at temperature 0 each prompt is decoded once and compared token by token with plain decoding") {
  const Configuration greedy = run(small_run()).configurations.at(0);
  CHECK(greedy.sequences == 2);
  CHECK(check_named(greedy, "tokens_equal_to_greedy").expected == 100);
  CHECK(check_named(greedy, "tokens_equal_to_greedy").measured == 100);
  CHECK(check_named(greedy, "steps_equal_to_replay").measured == static_cast<double>(greedy.counters.steps));
  CHECK(greedy.tests == 0);
  CHECK_FALSE(greedy.steps_z);
}

TEST_CASE("a decoder that changes a greedy token fails") {
  Options options = small_run();
  options.temperatures = {0};
  options.decoder = [](sim::LanguageModel& target, sim::LanguageModel& draft, std::span<const sim::Token> prompt,
                       const sim::DecodingOptions& decoding, const sim::UniformSource& uniforms) {
    sim::Generation text = sim::decode_speculatively(target, draft, prompt, decoding, uniforms);
    text.tokens.back() = (text.tokens.back() + 1) % 30;
    return text;
  };
  const Report report = run(options);
  CHECK_FALSE(report.passed);
  CHECK_FALSE(check_named(report.configurations[0], "tokens_equal_to_greedy").passed);
}

TEST_CASE("a decoder that takes more steps than replay fails at temperature 0") {
  Options options = small_run();
  options.temperatures = {0};
  options.decoder = [](sim::LanguageModel& target, sim::LanguageModel& draft, std::span<const sim::Token> prompt,
                       sim::DecodingOptions decoding, const sim::UniformSource& uniforms) {
    decoding.gamma = 1;
    return sim::decode_speculatively(target, draft, prompt, decoding, uniforms);
  };
  CHECK_FALSE(check_named(run(options).configurations[0], "steps_equal_to_replay").passed);
}

TEST_CASE("the report is the same for any number of threads") {
  Options options = small_run();
  const Report one = run(options);
  options.threads = 3;
  const Report three = run(options);
  for (std::size_t i = 0; i < one.configurations.size(); ++i) {
    const Configuration& a = one.configurations[i];
    const Configuration& b = three.configurations[i];
    CHECK(a.counters == b.counters);
    CHECK(a.alpha.value == b.alpha.value);
    CHECK(a.steps_z == b.steps_z);
    CHECK(a.smallest_p_value == b.smallest_p_value);
  }
}

TEST_CASE("estimates lie in their range, also for a pair of equals and for a pair with nothing in common") {
  Options options = small_run();
  options.temperatures = {1};
  const Report equal = validate(factories(sim::fixed_pair({.5, .5}, {.5, .5})), binary_prompts, options);
  CHECK(equal.passed);
  CHECK(equal.configurations[0].alpha.value == 1);
  CHECK(equal.configurations[0].tokens_per_step.iid == 3);
  CHECK(equal.configurations[0].alpha.ci95->hi <= 1);
  const Report disjoint = validate(factories(sim::fixed_pair({1, 0}, {0, 1})), binary_prompts, options);
  CHECK(disjoint.passed);
  CHECK(disjoint.configurations[0].alpha.value == 0);
  CHECK(disjoint.configurations[0].tokens_per_step.replay == 1);
}

TEST_CASE("a single sequence still gets an interval, from batches of its tokens") {
  Options options = small_run();
  options.temperatures = {1};
  options.max_new_tokens = 600;
  const Configuration configuration = run(options).configurations.at(0);
  CHECK(configuration.sequences == 1);
  CHECK(configuration.alpha.ci95);
  CHECK(configuration.alpha.method == "means of 10 batches, Student's t");
}

TEST_CASE("progress rises from 0 to 1") {
  std::vector<double> shares;
  validate(factories(sim::fixed_pair({.5, .5}, {.4, .6})), binary_prompts, small_run(),
           [&](double share) { shares.push_back(share); });
  CHECK(shares.front() == 0);
  CHECK(shares.back() == 1);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
}

TEST_CASE("models of different vocabularies, no prompts and options out of range are refused") {
  const sim::TablePair pair = sim::fixed_pair({.5, .5}, {.4, .6});
  const ModelPair mixed{factories(pair).target, sim::factory_of(sim::uniform_model(3))};
  CHECK_THROWS_AS(validate(mixed, binary_prompts, small_run()), std::invalid_argument);
  CHECK_THROWS_AS(validate(factories(pair), {}, small_run()), std::invalid_argument);
  for (const auto& spoil :
       std::vector<void (*)(Options&)>{[](Options& o) { o.gammas = {0}; }, [](Options& o) { o.gammas = {50}; },
                                       [](Options& o) { o.temperatures = {-1}; }, [](Options& o) { o.tokens = 0; },
                                       [](Options& o) { o.threads = 0; }, [](Options& o) { o.sampling.top_p = 0; }}) {
    Options options = small_run();
    spoil(options);
    CHECK_THROWS_AS(validate(factories(pair), binary_prompts, options), std::domain_error);
  }
}

TEST_CASE("whatever a model throws on a thread reaches the caller") {
  Options options = small_run();
  options.threads = 2;
  const std::vector<Prompt> outside{{"all", {99}}};
  CHECK_THROWS_AS(validate(factories(sim::fixed_pair({.5, .5}, {.4, .6})), outside, options), std::domain_error);
}
