#include "analysis/estimate/run_difference.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using specdec::estimate::Difference;
using specdec::estimate::run_difference;
using specdec::estimate::RunDifference;
using specdec::estimate::RunUnit;

namespace {

constexpr std::int64_t gamma_of_runs = 4;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Requests whose rates differ: log-odds of the prompt, and of the request itself, with unequal numbers of rounds.
class Requests {
 public:
  explicit Requests(std::uint64_t seed) : random_(seed) {}

  std::vector<double> prompts(int count, double spread = 0.6) {
    std::vector<double> odds;
    for (int i = 0; i < count; ++i) odds.push_back(1 + spread * normal());
    return odds;
  }
  /// @param shift  that of the log-odds, the draft's own
  std::vector<RunUnit> run(const std::vector<double>& prompts, double shift, double spread, bool named) {
    std::vector<RunUnit> units;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      RunUnit unit;
      if (named) unit.prompt = "p" + std::to_string(i);
      unit.survived.assign(gamma_of_runs, 0);
      const double rate = logistic(prompts[i] + shift + spread * normal());
      unit.rounds = 10 + std::floor(60 * std::uniform_real_distribution<double>()(random_));
      for (double round = 0; round < unit.rounds; ++round) {
        for (double& survived : unit.survived) {
          if (std::uniform_real_distribution<double>()(random_) >= rate) break;
          ++survived;
          ++unit.accepted;
        }
      }
      unit.seconds = unit.rounds * 0.01 * std::exp(0.1 * normal());
      units.push_back(unit);
    }
    return units;
  }
  double normal() { return std::normal_distribution<double>()(random_); }

 private:
  std::mt19937_64 random_;
};

/// Tokens per step of very many requests of these laws.
double true_tokens(double shift, double spread) {
  Requests many(99);
  const std::vector<RunUnit> run = many.run(many.prompts(40'000), shift, spread, false);
  double rounds = 0, accepted = 0;
  for (const RunUnit& unit : run) {
    rounds += unit.rounds;
    accepted += unit.accepted;
  }
  return 1 + accepted / rounds;
}

/// Shares of `repeats` in which p is below 5%, and in which the interval holds the truth.
struct Shares {
  double alarms = 0, held = 0, width = 0;
};

template <class Differences>
Shares shares_of(int repeats, double truth, const Differences& differences) {
  Shares shares;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Difference one = differences(static_cast<std::uint64_t>(repeat) + 1);
    shares.alarms += *one.p_value < 0.05 ? 1.0 / repeats : 0;
    shares.held += one.ci95->lo <= truth && truth <= one.ci95->hi ? 1.0 / repeats : 0;
    shares.width += (one.ci95->hi - one.ci95->lo) / repeats;
  }
  return shares;
}

/// The broken twin: every round as a request of its own.
std::vector<RunUnit> by_rounds(const std::vector<RunUnit>& run) {
  std::vector<RunUnit> rounds;
  for (const RunUnit& unit : run) {
    for (std::size_t accepted = 0; accepted <= unit.survived.size(); ++accepted) {
      const double alive = accepted == 0 ? unit.rounds : unit.survived[accepted - 1];
      const double longer = accepted < unit.survived.size() ? unit.survived[accepted] : 0;
      for (double round = 0; round < alive - longer; ++round) {
        RunUnit one;
        one.rounds = 1;
        one.accepted = static_cast<double>(accepted);
        rounds.push_back(one);
      }
    }
  }
  return rounds;
}

RunUnit unit_of(double rounds, double accepted, std::string group = {}, std::string prompt = {}) {
  RunUnit unit;
  unit.rounds = rounds;
  unit.accepted = accepted;
  unit.group = std::move(group);
  unit.prompt = std::move(prompt);
  return unit;
}

}  // namespace

// The share of alarms in 1,000 repeats has a standard error of 0.7 points; 5% +- 4 of these is a false alarm of the
// test in 1 of 16,000 runs. Seeds are fixed.
TEST_CASE("equal runs differ at p < 0.05 in a twentieth of repeats, and rounds taken as independent in many more",
          "[long]") {
  const auto equal = [](std::uint64_t seed) {
    Requests requests(seed);
    const auto a = requests.run(requests.prompts(30), 0, 0.3, false);
    const auto b = requests.run(requests.prompts(30), 0, 0.3, false);
    return run_difference(a, b).tokens;
  };
  const Shares clusters = shares_of(1000, 0, equal);
  CHECK(clusters.alarms > 0.022);
  CHECK(clusters.alarms < 0.078);
  const auto broken = [](std::uint64_t seed) {
    Requests requests(seed);
    const auto a = by_rounds(requests.run(requests.prompts(30), 0, 0.3, false));
    const auto b = by_rounds(requests.run(requests.prompts(30), 0, 0.3, false));
    return run_difference(a, b).tokens;
  };
  CHECK(shares_of(100, 0, broken).alarms > 0.2);
}

TEST_CASE("few requests of unequal lengths keep the rate of false alarms") {
  const auto few = [](std::uint64_t seed) {
    Requests requests(seed);
    const auto a = requests.run(requests.prompts(6), 0, 0.3, false);
    const auto b = requests.run(requests.prompts(9), 0, 0.3, false);
    return run_difference(a, b).tokens;
  };
  const double alarms = shares_of(1000, 0, few).alarms;
  CHECK(alarms > 0.015);
  CHECK(alarms < 0.078);
}

TEST_CASE("the interval holds the difference in 95 of 100 runs, paired and not, and pairing prompts narrows it",
          "[long]") {
  const double truth = true_tokens(0.3, 0.2) - true_tokens(0, 0.2);
  const auto runs = [](std::uint64_t seed, bool named) {
    Requests requests(seed);
    const std::vector<double> prompts = requests.prompts(40);
    const auto a = requests.run(prompts, 0, 0.2, named);
    const auto b = requests.run(prompts, 0.3, 0.2, named);
    const RunDifference difference = run_difference(a, b);
    REQUIRE(difference.paired == (named ? 40 : 0));
    return difference.tokens;
  };
  const Shares paired = shares_of(600, truth, [&](std::uint64_t seed) { return runs(seed, true); });
  const Shares apart = shares_of(600, truth, [&](std::uint64_t seed) { return runs(seed, false); });
  // A standard error of 0.9 points; 4 of them.
  CHECK(paired.held > 0.914);
  CHECK(paired.held < 0.986);
  // Prompts that are the same without being told so are as if independent: too wide, never too narrow.
  CHECK(apart.held > 0.97);
  CHECK(paired.width < 0.75 * apart.width);
  CHECK(paired.alarms > apart.alarms);
}

TEST_CASE("as many prompts as are said to tell do so in four runs of five") {
  Requests pilot(5);
  const std::vector<double> prompts = pilot.prompts(400);
  const RunDifference seen = run_difference(pilot.run(prompts, 0, 0.2, false), pilot.run(prompts, 0.25, 0.2, false));
  REQUIRE(seen.clusters_to_tell);
  const int enough = static_cast<int>(*seen.clusters_to_tell);
  const auto told = [&](std::uint64_t seed) {
    Requests requests(seed);
    const auto a = requests.run(requests.prompts(enough), 0, 0.2, false);
    const auto b = requests.run(requests.prompts(enough), 0.25, 0.2, false);
    return run_difference(a, b).tokens;
  };
  const double power = shares_of(300, 0, told).alarms;
  CHECK(power > 0.65);
  CHECK(power < 0.95);
  // The difference that as many clusters can tell is the observed one, scaled.
  CHECK(*seen.detectable / std::abs(seen.tokens.value) ==
        Approx(std::sqrt(*seen.clusters_to_tell / 400)).epsilon(0.02));
}

TEST_CASE("a position that a run never drafted has no share of rounds there, and adds what the other run gains") {
  Requests requests(4);
  auto a = requests.run(requests.prompts(20), 0, 0.3, false);
  const auto b = requests.run(requests.prompts(20), 0, 0.3, false);
  for (RunUnit& unit : a) {
    unit.accepted -= unit.survived[2] + unit.survived[3];
    unit.survived.resize(2);
  }
  const RunDifference difference = run_difference(a, b);
  REQUIRE(difference.positions.size() == 4);
  CHECK(difference.positions[1].a);
  CHECK_FALSE(difference.positions[2].a);
  CHECK(difference.positions[2].difference.value == Approx(*difference.positions[2].b));
}

TEST_CASE("parts by position, by group and in time add up to the whole") {
  Requests requests(3);
  auto a = requests.run(requests.prompts(20), 0, 0.3, false);
  auto b = requests.run(requests.prompts(30), 0.5, 0.3, false);
  for (std::size_t i = 0; i < a.size(); ++i) a[i].group = i < 15 ? "chat" : "code";
  for (std::size_t i = 0; i < b.size(); ++i) b[i].group = i < 5 ? "chat" : i < 27 ? "code" : "maths";
  const RunDifference difference = run_difference(a, b);
  double positions = 0, groups = 0;
  for (const auto& position : difference.positions) positions += position.difference.value;
  for (const auto& group : difference.groups) groups += group.mix + group.acceptance.value;
  REQUIRE(difference.positions.size() == 4);
  REQUIRE(difference.groups.size() == 3);
  CHECK(positions == Approx(difference.tokens.value));
  CHECK(groups == Approx(difference.tokens.value));
  CHECK(difference.mix->value + difference.within->value == Approx(difference.tokens.value));
  REQUIRE(difference.time);
  CHECK(difference.time->log_per_token.value ==
        Approx(std::log(difference.time->seconds_per_token_b / difference.time->seconds_per_token_a)));
  CHECK(difference.time->log_round.value - difference.time->log_tokens.value ==
        Approx(difference.time->log_per_token.value));
  // Maths are in the second run alone: all of their difference is one of the mix.
  CHECK(difference.groups[2].group == "maths");
  CHECK_FALSE(difference.groups[2].tokens_a);
  CHECK(difference.groups[2].acceptance.value == 0);

  // Without a group in common nothing is of the mix: an answer would call all of the difference so.
  for (auto& unit : b) unit.group = "maths";
  const RunDifference apart = run_difference(a, b);
  CHECK_FALSE(apart.mix);
  CHECK_FALSE(apart.within);
  CHECK(apart.groups.empty());
}

TEST_CASE("the intervals of the parts hold what they estimate") {
  // Shares of groups are those of the design; only acceptance differs, by the same shift in both groups.
  const auto part = [](std::uint64_t seed, bool mix) {
    Requests requests(seed);
    auto a = requests.run(requests.prompts(40), 0, 0.2, false);
    auto b = requests.run(requests.prompts(40), 0, 0.2, false);
    for (auto* run : {&a, &b}) {
      for (std::size_t i = 0; i < run->size(); ++i) (*run)[i].group = i % 2 == 0 ? "x" : "y";
    }
    const RunDifference difference = run_difference(a, b);
    return mix ? *difference.mix : *difference.within;
  };
  for (const bool mix : {false, true}) {
    const Shares shares = shares_of(400, 0, [&](std::uint64_t seed) { return part(seed, mix); });
    INFO(mix);
    CHECK(shares.held > 0.90);
  }
}

TEST_CASE("a small case by hand: paired differences are those of the prompts") {
  // Rounds are equal, so that each cluster left out in turn gives the paired t-test of accepted drafts per round.
  const std::vector<RunUnit> a = {unit_of(10, 20, "", "p"), unit_of(10, 22, "", "q"), unit_of(10, 30, "", "r")};
  const std::vector<RunUnit> b = {unit_of(10, 23, "", "r2"), unit_of(10, 24, "", "p"), unit_of(10, 25, "", "q")};
  const RunDifference partly = run_difference(a, b);
  CHECK(partly.paired == 2);
  const std::vector<RunUnit> same = {unit_of(10, 24, "", "p"), unit_of(10, 25, "", "q"), unit_of(10, 32, "", "r")};
  const RunDifference difference = run_difference(a, same);
  CHECK(difference.tokens.value == Approx(0.3));
  // Differences 0.4, 0.3, 0.2: mean 0.3, standard error 0.1 / sqrt 3, t(2) = 4.302653.
  const double half = 4.302653 * 0.1 / std::sqrt(3.0);
  CHECK(difference.tokens.ci95->lo == Approx(0.3 - half).epsilon(1e-6));
  CHECK(difference.tokens.ci95->hi == Approx(0.3 + half).epsilon(1e-6));
  // t = 5.196152 with 2 degrees of freedom: p = 1 - t / sqrt(2 + t^2).
  CHECK(*difference.tokens.p_value == Approx(1 - 5.196152 / std::sqrt(2 + 27.0)).epsilon(1e-5));
  CHECK(difference.positions.empty());
  CHECK_FALSE(difference.time);
  CHECK_FALSE(difference.mix);
}

TEST_CASE("the rule's part is half of what each run changes under the other's") {
  std::vector<RunUnit> a = {unit_of(10, 10), unit_of(10, 14)}, b = {unit_of(10, 20), unit_of(10, 24)};
  for (auto& unit : a) unit.other_rule = {unit.accepted + 4, 10};
  for (auto& unit : b) unit.other_rule = {unit.accepted - 2, 10};
  const RunDifference difference = run_difference(a, b);
  CHECK(difference.tokens.value == Approx(1.0));
  REQUIRE(difference.rule);
  CHECK(difference.rule->value == Approx((0.4 + 0.2) / 2));
  CHECK(difference.rule->ci95->lo == Approx(0.3));
}

TEST_CASE("one unit gives no interval, equal units no width, and what is no run is refused") {
  const std::vector<RunUnit> one = {unit_of(10, 20)}, two = {unit_of(10, 20), unit_of(10, 20)};
  CHECK_FALSE(run_difference(one, two).tokens.ci95);
  CHECK_FALSE(run_difference(one, two).clusters_to_tell);
  CHECK(run_difference(two, two).tokens.ci95->lo == 0);
  CHECK(*run_difference(two, two).tokens.p_value == 1);
  CHECK_THROWS_AS(run_difference({}, two), std::invalid_argument);
  CHECK_THROWS_AS(run_difference(two, std::vector<RunUnit>{unit_of(0, 0)}), std::invalid_argument);
}

TEST_CASE("windows are joined with those beside them, and their sums stay") {
  std::vector<RunUnit> windows;
  for (int i = 0; i < 101; ++i) windows.push_back(unit_of(1 + i, i));
  const auto joined = specdec::estimate::joined_windows(windows, 40);
  CHECK(joined.size() == 40);
  double rounds = 0, accepted = 0;
  for (const RunUnit& unit : joined) {
    rounds += unit.rounds;
    accepted += unit.accepted;
  }
  CHECK(rounds == 101 + 5050);
  CHECK(accepted == 5050);
}
