#include "sim/validation/synthetic_checks.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "sim/table_models.hpp"
#include "sim/validation/uniformity.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using namespace specdec::validation;

TEST_CASE("laws of a rate overlap by that rate") {
  for (const std::int64_t vocab : {16, 256}) {
    for (const double alpha : {0.4, 0.5, 0.9, 1.0}) {
      const LawPair laws = laws_of_rate(alpha, vocab);
      double overlap = 0, target = 0, draft = 0;
      for (std::size_t x = 0; x < laws.target.size(); ++x) {
        overlap += std::min(laws.target[x], laws.draft[x]);
        target += laws.target[x];
        draft += laws.draft[x];
        CHECK(laws.draft[x] > 0);
      }
      CHECK(overlap == Approx(alpha).epsilon(1e-12));
      CHECK(target == Approx(1).epsilon(1e-12));
      CHECK(draft == Approx(1).epsilon(1e-12));
    }
  }
  CHECK_THROWS_AS(laws_of_rate(0, 16), std::domain_error);
  CHECK_THROWS_AS(laws_of_rate(0.5, 1), std::domain_error);
}

// 12 deviations of a standard normal: one beyond 4.5 in fewer than one run in 10^4. The seed is fixed.
TEST_CASE("simulated tokens per step stand about Eq. (1) by their standard errors, and not about a wrong rate's") {
  TokensCheckOptions options;
  options.alphas = {0.5, 0.9};
  options.gammas = {1, 2, 3, 5, 8, 10};
  options.rounds = 100'000;
  const std::vector<TokensCheck> checks = check_tokens_per_step(options);
  REQUIRE(checks.size() == 12);
  double squares = 0;
  for (const TokensCheck& check : checks) {
    double expected = 0;  // the sum that Eq. (1) is
    for (std::int64_t n = 0; n <= check.gamma; ++n) expected += std::pow(check.alpha, static_cast<double>(n));
    CHECK(check.expected == Approx(expected).epsilon(1e-13));
    CHECK(check.rounds >= options.rounds);
    CHECK(std::abs(check.deviation()) < 4.5);
    squares += check.deviation() * check.deviation();
    TokensCheck wrong = check;
    wrong.expected = expected + 0.02 * static_cast<double>(check.gamma);
    CHECK(std::abs(wrong.deviation()) > 4.5);
  }
  CHECK(squares > 1.5);  // chi-square of 12: below that in fewer than one run in 10^4
  options.threads = 2;
  CHECK(check_tokens_per_step(options).back().measured == checks.back().measured);
  options.gammas = {0};
  CHECK_THROWS_AS(check_tokens_per_step(options), std::domain_error);
}

TEST_CASE("the deviation from uniform reaches Kolmogorov's distance and is what a count gives") {
  std::vector<double> values{.9, .1, .5, .5, .31};
  const UniformDeviation found = deviation_from_uniform(values, 11);
  REQUIRE(found.u.size() == 13);
  CHECK(std::is_sorted(found.u.begin(), found.u.end()));
  double largest = 0;
  for (const double deviation : found.deviation) largest = std::max(largest, std::abs(deviation));
  CHECK(largest == Approx(kolmogorov_distance(values)));
  CHECK(found.deviation.front() == 0);
  CHECK(found.deviation.back() == 0);
  CHECK(found.deviation[3] == Approx(1 / 5.0 - 0.3));
  CHECK_THROWS_AS(deviation_from_uniform(values, 1), std::domain_error);
}

TEST_CASE("a Kolmogorov bound has the p-value that it is asked for") {
  for (const double p : {0.5, 1e-3, 1e-6}) CHECK(kolmogorov_p_value(kolmogorov_bound(p, 5000), 5000) == Approx(p));
  CHECK(kolmogorov_bound(1e-6, 1) == 1);
  CHECK_THROWS_AS(kolmogorov_bound(0, 10), std::domain_error);
}

// A right sampler fails one of the two tests in fewer than 2e-4 of the seeds; the seed is fixed.
TEST_CASE("transforms of a right sampler pass the distribution test and those of the wrong one do not") {
  const sim::TablePair pair = sim::synthetic_bigram_pair(32, 1, 7);
  const sim::ModelPair models{[&](std::int64_t) { return sim::OwnedModel(pair.target); },
                              [&](std::int64_t) { return sim::OwnedModel(pair.draft); }};
  sim::DecodingOptions decoding;
  decoding.gamma = 4;
  decoding.max_new_tokens = 50;
  const std::vector<sim::Prompt> prompts = {{"", {0}}, {"", {3}}};
  const auto p_values = [&](TransformSample sample) {
    const auto count = static_cast<std::int64_t>(sample.by_ratio.size());
    return std::pair(kolmogorov_p_value(kolmogorov_distance(sample.by_ratio), count),
                     kolmogorov_p_value(kolmogorov_distance(sample.by_probability), count));
  };
  const TransformSample right = sample_transforms(models, prompts, decoding, 4990, 1, 2);
  CHECK(right.by_ratio.size() == 5000);
  CHECK(right.by_ratio == sample_transforms(models, prompts, decoding, 4990, 1, 1).by_ratio);
  const auto [ratio, probability] = p_values(right);
  CHECK(ratio > 1e-4);
  CHECK(probability > 1e-4);
  decoding.verifier = verify_without_subtracting;
  CHECK(p_values(sample_transforms(models, prompts, decoding, 5000, 1, 2)).first < 1e-10);
  CHECK_THROWS_AS(sample_transforms(models, {}, decoding, 5000, 1, 2), std::invalid_argument);
}
