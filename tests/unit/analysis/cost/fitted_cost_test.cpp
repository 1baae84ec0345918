#include "analysis/cost/fitted_cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "analysis/cost/round_posterior.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using cost::CostTerms;
using cost::DraftKind;
using cost::FitOptions;
using cost::FittedCost;
using cost::ObservedRound;

namespace {

/// Seconds of a round with a draft model.
double seconds_of(const CostTerms& terms, double gamma, double batch, double context) {
  const double tokens = (gamma + 1) * batch;
  const double drafts = gamma > 0 ? 1 : 0;
  return terms[0] * std::cbrt(1 + std::pow(tokens / terms[10], 3)) + terms[1] * batch + terms[2] * batch * context +
         drafts * (terms[3] + terms[4] * batch) + gamma * (terms[5] + terms[6] * batch) + terms[7] * tokens +
         terms[8] * (1 - std::exp(-tokens / terms[11]));
}

std::vector<ObservedRound> runs_of(const CostTerms& terms, const std::vector<double>& gammas,
                                   const std::vector<double>& batches, const std::vector<double>& contexts) {
  std::vector<ObservedRound> runs;
  for (const double gamma : gammas)
    for (const double batch : batches)
      for (const double context : contexts)
        runs.push_back({.name = "run " + std::to_string(runs.size()),
                        .gamma = gamma,
                        .batch = batch,
                        .context = context,
                        .seconds = seconds_of(terms, gamma, batch, context)});
  return runs;
}

constexpr CostTerms truth = {0.010, 2e-5, 2e-8, 0.0018, 2e-5, 0.0009, 2e-5, 2e-5, 0, 0, 400, 1};

/// Seconds times a factor with mean 1 and about this relative standard deviation.
void add_noise(std::vector<ObservedRound>& runs, double relative, test_support::RandomCases& cases) {
  for (ObservedRound& run : runs) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += cases.uniform();
    run.seconds *= 1 + relative * (sum - 6);
  }
}

bool has_finding(const FittedCost& cost, const std::string& code) {
  const auto findings = cost.findings();
  return std::any_of(findings.begin(), findings.end(), [&](const auto& finding) { return finding.code == code; });
}

/// Half the width of the central 95% of ln(round at gamma 0 / round at gamma), over replicates of which all are times.
double log_half_width(const FittedCost& price, std::int64_t gamma, double batch, double context) {
  std::vector<double> plain(price.replicates()), rounds(price.replicates());
  price.totals_of_replicates({.gamma = 0, .batch = batch, .context = context}, plain);
  price.totals_of_replicates({.gamma = gamma, .batch = batch, .context = context}, rounds);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    REQUIRE(plain[i] > 0);
    REQUIRE(std::isfinite(rounds[i]));
    plain[i] = std::log(plain[i] / rounds[i]);
  }
  std::sort(plain.begin(), plain.end());
  const std::size_t tail = plain.size() / 40;
  return (plain[plain.size() - 1 - tail] - plain[tail]) / 2;
}

double log_error(double predicted, double expected) { return std::abs(std::log(predicted / expected)); }

}  // namespace

TEST_CASE("rounds between runs over gamma, batch and context are priced to three percent") {
  const FittedCost price(runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {500, 2000}), {});
  for (const double batch : {1.0, 3.0, 20.0, 50.0}) {
    for (const std::int64_t gamma : {0, 1, 2, 4}) {
      const cost::RoundPoint point{.gamma = gamma, .batch = batch, .context = 1000};
      INFO("gamma " << gamma << ", batch " << batch);
      CHECK(log_error(price.round(point).total(), seconds_of(truth, static_cast<double>(gamma), batch, 1000)) < 0.03);
      CHECK(price.round(point).total() ==
            Approx(price.seconds({.gamma = static_cast<double>(gamma), .batch = batch, .context = 1000})));
      CHECK_FALSE(price.extrapolates(point));
    }
  }
  CHECK(price.extrapolates({.gamma = 6, .batch = 20, .context = 1000}));
  CHECK(price.extrapolates({.gamma = 5, .batch = 70, .context = 1000}));
  CHECK(price.extrapolates({.gamma = 5, .batch = 64, .context = 400}));
  std::vector<ObservedRound> few = runs_of(truth, {0}, {8, 32}, {1000});
  few.push_back(runs_of(truth, {3}, {8}, {1000}).front());
  CHECK_FALSE(FittedCost(few, {}).extrapolates({.batch = 32, .context = 1000}));
  CHECK_FALSE(FittedCost(few, {}).extrapolates({.gamma = 3, .batch = 9, .context = 1000}));
  CHECK(FittedCost(few, {}).extrapolates({.gamma = 3, .batch = 32, .context = 1000}));
  CHECK(price.findings().empty());
  CHECK(price.usual_context() == 1250);
}

TEST_CASE("a fixed part of speculative rounds is told from draft passes, which a straight line cannot") {
  for (const double fixed : {0.0, 0.1, 0.3, 0.8}) {
    const auto seconds = [&](double gamma) { return 0.01 * (1 + (gamma > 0 ? fixed : 0) + 0.07 * gamma); };
    std::vector<ObservedRound> runs;
    for (const double gamma : {0.0, 1.0, 4.0}) runs.push_back({.gamma = gamma, .seconds = seconds(gamma)});
    const FittedCost price(runs, {});
    double worst = 0;
    for (const std::int64_t gamma : {2, 3, 6, 8}) {
      const double error = log_error(price.round({.gamma = gamma}).total(), seconds(static_cast<double>(gamma)));
      worst = std::max(worst, error);
    }
    INFO("fixed part " << fixed);
    CHECK(worst < 0.06);
    // The line of least squares of the relative errors through the same runs, at gamma 8.
    double ww = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (const ObservedRound& run : runs) {
      const double w = 1 / (run.seconds * run.seconds);
      ww += w;
      wx += w * run.gamma;
      wxx += w * run.gamma * run.gamma;
      wy += w * run.seconds;
      wxy += w * run.gamma * run.seconds;
    }
    const double slope = (ww * wxy - wx * wy) / (ww * wxx - wx * wx);
    const double line = (wy - slope * wx) / ww + 8 * slope;
    if (fixed >= 0.3) CHECK(log_error(line, seconds(8)) > 0.1);
  }
}

namespace {

const cost::DraftTree middle_tree = {5, 4, 16}, wide_tree = {6, 8, 48};

/// A server with trees: the usual terms of heads, each off by a random factor, and rounds of a tree beyond its terms by
/// another one, since masks and the choice of nodes cost what no term has.
class ServerWithTrees {
 public:
  ServerWithTrees(test_support::RandomCases& cases, double spread_of_trees) {
    constexpr CostTerms usual = {0.008, 1.3e-5, 2.2e-8, 1.1e-3, 8e-6, 5.8e-4, 1.1e-5, 9e-6, 2.4e-4, 0, 560, 20};
    constexpr CostTerms spreads = {0.5, 1, 0.8, 0.45, 1, 0.5, 0.8, 1, 1.4, 0, 0.6, 0.6};
    for (std::size_t j = 0; j < terms_.size(); ++j) terms_[j] = usual[j] * std::exp(spreads[j] * normal(cases));
    middle_ = std::exp(spread_of_trees * normal(cases));
    wide_ = std::exp(spread_of_trees * normal(cases));
  }

  static double normal(test_support::RandomCases& cases) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += cases.uniform();
    return sum - 6;
  }

  ObservedRound chain(double gamma, double batch) const {
    return {.gamma = gamma, .batch = batch, .context = 1000, .seconds = seconds_of(terms_, gamma, batch, 1000)};
  }
  ObservedRound tree(const cost::DraftTree& tree, double batch) const {
    const auto depth = static_cast<double>(tree.depth), verified = static_cast<double>(tree.verified);
    // The draft's passes of a chain as long, wider by what the tree adds, beside the target's pass over all it
    // verifies.
    const double wider = (depth - 1) * static_cast<double>(tree.top_k - 1) * batch * terms_[6];
    const double drafting = depth * (terms_[5] + terms_[6] * batch) + wider + terms_[3] + terms_[4] * batch;
    const double seconds = drafting + seconds_of(terms_, 0, batch, 1000) + target(verified * batch) - target(batch);
    return {.gamma = depth,
            .batch = batch,
            .context = 1000,
            .seconds = seconds * (tree == middle_tree ? middle_ : wide_),
            .tree = tree};
  }

 private:
  double target(double tokens) const {
    return terms_[0] * std::cbrt(1 + std::pow(tokens / terms_[10], 3)) + terms_[7] * tokens +
           terms_[8] * (1 - std::exp(-tokens / terms_[11]));
  }

  CostTerms terms_{};
  double middle_ = 1, wide_ = 1;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("a tree is priced better with what chains and other trees of the server took than by itself", "[long]") {
  test_support::RandomCases cases(15);
  std::vector<double> shared_errors, own_errors, as_chain_errors;
  int held = 0, asked = 0;
  for (int server = 0; server < 40; ++server) {
    const ServerWithTrees its(cases, 0.1);
    std::vector<ObservedRound> runs, own;
    for (const double batch : {1, 8, 32}) {
      own.push_back(its.chain(0, batch));
      runs.push_back(its.chain(3, batch));
      runs.push_back(its.tree(wide_tree, batch));
    }
    for (const double batch : {1, 32}) own.push_back(its.tree(middle_tree, batch));
    add_noise(runs, 0.02, cases);
    add_noise(own, 0.02, cases);
    runs.insert(runs.end(), own.begin(), own.end());
    std::vector<ObservedRound> as_chains = runs;
    for (ObservedRound& run : as_chains) run.tree.reset();

    FitOptions options;
    options.kind = DraftKind::eagle;
    options.replicates = 100;
    const FittedCost shared(runs, options);
    options.replicates = 0;
    const FittedCost alone(own, options), misread(as_chains, options);
    for (const double batch : {8, 64}) {
      const ObservedRound asked_for = its.tree(middle_tree, batch);
      ObservedRound misread_one = asked_for;
      misread_one.tree.reset();
      shared_errors.push_back(log_error(shared.seconds(asked_for), asked_for.seconds));
      own_errors.push_back(log_error(alone.seconds(asked_for), asked_for.seconds));
      as_chain_errors.push_back(log_error(misread.seconds(misread_one), asked_for.seconds));
    }

    const auto price = shared.of_tree(middle_tree);
    for (const double batch : {1, 8, 32}) {
      const double true_gain = std::log(its.chain(0, batch).seconds / its.tree(middle_tree, batch).seconds);
      const double value = std::log(price->round({.batch = batch, .context = 1000}).total() /
                                    price->round({.gamma = 5, .batch = batch, .context = 1000}).total());
      held += std::abs(true_gain - value) <= log_half_width(*price, 5, batch, 1000) ? 1 : 0;
      ++asked;
    }
  }
  CHECK(median(shared_errors) < 0.03);
  CHECK(median(shared_errors) < 0.9 * median(own_errors));
  CHECK(median(as_chain_errors) > 1.5 * median(shared_errors));
  // Of 120 intervals of 95%: as few as 104 with probability 4e-4 where they are independent.
  CHECK(held > 104);
}

TEST_CASE("the price of a tree is of its own depth, at the batches where it ran") {
  test_support::RandomCases cases(1);
  const ServerWithTrees its(cases, 0);
  std::vector<ObservedRound> runs;
  for (const double batch : {1, 8, 32}) runs.push_back(its.chain(0, batch));
  for (const double batch : {1, 8}) runs.push_back(its.tree(middle_tree, batch));
  const FittedCost all(runs, {});
  const auto price = all.of_tree(middle_tree);
  CHECK_NOTHROW(price->round({.gamma = 5}));
  CHECK_THROWS_WITH(price->round({.gamma = 4}), Contains("gamma is 4, but must be 0 or 5, the depth of the tree"));
  CHECK_FALSE(price->extrapolates({.gamma = 5, .batch = 8, .context = 1000}));
  CHECK(price->extrapolates({.gamma = 5, .batch = 32, .context = 1000}));
  CHECK_FALSE(price->extrapolates({.gamma = 0, .batch = 32, .context = 1000}));
  CHECK(all.of_tree(wide_tree)->extrapolates({.gamma = 6, .batch = 8, .context = 1000}));
  // Of chains none ran.
  CHECK(all.extrapolates({.gamma = 5, .batch = 8, .context = 1000}));
  // What takes as many passes of one sequence, and verifies as much, is the chain.
  const auto chain = all.of_tree({5, 1, 6});
  CHECK(chain->round({.gamma = 5, .batch = 8, .context = 1000}).total() ==
        all.round({.gamma = 5, .batch = 8, .context = 1000}).total());
  CHECK_THROWS_AS(all.of_tree({5, 1, 5}), std::domain_error);
  CHECK_THROWS_AS(all.of_tree({0, 1, 5}), std::domain_error);
}

TEST_CASE("a plain run and one gamma leave the split to what is usual, and the interval says so") {
  for (const double fixed : {0.0, 0.15, 0.4}) {
    const auto seconds = [&](double gamma) { return 0.01 * (1 + (gamma > 0 ? fixed : 0) + 0.06 * gamma); };
    const std::vector<ObservedRound> runs = {{.gamma = 0, .seconds = seconds(0)}, {.gamma = 3, .seconds = seconds(3)}};
    const FittedCost price(runs, {});
    for (const std::int64_t gamma : {1, 5, 8}) {
      const cost::Range range = cost::central_range(price, {.gamma = gamma});
      INFO("fixed part " << fixed << ", gamma " << gamma);
      CHECK(range.contains(seconds(static_cast<double>(gamma))));
    }
    CHECK(log_error(price.round({.gamma = 3}).total(), seconds(3)) < 0.03);
  }
}

TEST_CASE("a plain run and one gamma are divided as is usual of the draft's kind") {
  // 1.4 plain steps at gamma 2: of a head a fixed part, of a model its passes.
  const std::vector<ObservedRound> runs = {{.gamma = 0, .seconds = 0.01}, {.gamma = 2, .seconds = 0.014}};
  const auto ratio = [&](DraftKind kind, std::optional<bool> experts, std::int64_t gamma) {
    const FittedCost price(runs, {.kind = kind, .experts = experts});
    return price.round({.gamma = gamma}).total() / price.round({.gamma = 0}).total();
  };
  for (const DraftKind kind : {DraftKind::eagle, DraftKind::mtp, DraftKind::model, DraftKind::ngram})
    CHECK(ratio(kind, {}, 2) == Approx(1.4).epsilon(0.02));
  CHECK(ratio(DraftKind::model, {}, 8) > 1.15 * ratio(DraftKind::eagle, true, 8));
  CHECK(ratio(DraftKind::mtp, false, 8) > 1.05 * ratio(DraftKind::eagle, true, 8));
  CHECK(ratio(DraftKind::eagle, {}, 8) == Approx(ratio(DraftKind::eagle, true, 8)).epsilon(0.1));
}

TEST_CASE("llama.cpp's rounds of over 8 tokens may cost quite another price until one of them ran") {
  // As on an MI50, whose pass of 9 tokens takes 1.56 times that of 8.
  const auto seconds = [](double tokens) { return 0.05 + 0.003 * tokens + (tokens > 8 ? 0.04 : 0); };
  const auto run = [&](double gamma) { return ObservedRound{.gamma = gamma, .seconds = seconds(gamma + 1)}; };
  const auto holds = [&](const std::vector<ObservedRound>& runs, bool has_kernel_step, std::int64_t gamma) {
    const FittedCost price(runs, {.kind = DraftKind::ngram, .has_kernel_step = has_kernel_step});
    return cost::central_range(price, {.gamma = gamma}).contains(seconds(static_cast<double>(gamma) + 1));
  };
  const std::vector<ObservedRound> below = {run(0), run(2), run(4)};
  CHECK(holds(below, true, 8));
  CHECK_FALSE(holds(below, false, 8));
  const FittedCost steps(below, {.kind = DraftKind::ngram, .has_kernel_step = true});
  const FittedCost smooth(below, {.kind = DraftKind::ngram});
  CHECK(log_half_width(steps, 7, 1, 0) < 1.2 * log_half_width(smooth, 7, 1, 0));
  CHECK(log_half_width(steps, 8, 1, 0) > 0.6);
  // One round beyond tells the step of all others.
  const FittedCost told(std::vector<ObservedRound>{run(0), run(2), run(4), run(8)},
                        {.kind = DraftKind::ngram, .has_kernel_step = true});
  CHECK(log_half_width(told, 10, 1, 0) < 0.15);
  CHECK(log_error(told.round({.gamma = 10}).total(), seconds(11)) < 0.06);
  CHECK(log_error(told.round({.gamma = 7}).total(), seconds(8)) < 0.06);
}

TEST_CASE("a ratio of two runs at one batch is what was measured, but for the error of a run") {
  for (const DraftKind kind : {DraftKind::eagle, DraftKind::mtp, DraftKind::model, DraftKind::parallel}) {
    for (const double measured : {1.25, 1.5, 2.0}) {
      const FittedCost price(
          std::vector<ObservedRound>{{.gamma = 0, .seconds = 0.01}, {.gamma = 3, .seconds = 0.01 * measured}},
          {.kind = kind});
      INFO(measured);
      CHECK(log_error(price.round({.gamma = 3}).total() / price.round({.gamma = 0}).total(), measured) < 0.01);
      CHECK(log_half_width(price, 3, 1, 0) > 0.03);
      CHECK(log_half_width(price, 3, 1, 0) < 0.085);
    }
  }
}

TEST_CASE("factors that no run says are those under which the runs are probable, the same in cost and factor") {
  // Tokens per step that no run says: of worlds from one to the three that gamma 2 makes at most.
  std::vector<std::vector<double>> factors;
  for (int way = 0; way < 2000; ++way) factors.push_back({0, std::log(1 + 2 * (way + 0.5) / 2000)});
  FitOptions options;
  options.log_factors = factors;
  const FittedCost price(
      std::vector<ObservedRound>{{.gamma = 0, .seconds = 0.01}, {.gamma = 2, .seconds = 0.01 / 1.28}}, options);
  std::vector<double> plain(price.replicates()), rounds(price.replicates()), speedups;
  price.totals_of_replicates({.gamma = 0}, plain);
  price.totals_of_replicates({.gamma = 2}, rounds);
  double least = 3, most = 1;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const double tokens = std::exp(factors[price.factors_of_replicates()[i]][1]);
    speedups.push_back(tokens * plain[i] / rounds[i]);
    least = std::min(least, tokens);
    most = std::max(most, tokens);
  }
  std::sort(speedups.begin(), speedups.end());
  CHECK(speedups[500] == Approx(1.28).epsilon(0.01));
  CHECK(std::log(speedups[974] / speedups[25]) / 2 < 0.09);
  CHECK(most > 1.5 * least);
  // A round holds a plain step.
  CHECK(least > 1.2);
  CHECK(price.impossible().empty());
  CHECK(price.usual_factors()[1] > 1.4);
  CHECK(price.usual_factors()[0] == 1);
  options.log_factors.back().pop_back();
  CHECK_THROWS_AS(FittedCost(std::vector<ObservedRound>{{.seconds = 1}, {.gamma = 2, .seconds = 1}}, options),
                  std::invalid_argument);
}

TEST_CASE("names of mixtures of experts are known") {
  for (const char* name : {"Qwen3-30B-A3B-Instruct-2507", "mixtral-8x7b", "zai-org/GLM-4.7-FP8", "openai/gpt-oss-120b"})
    CHECK(cost::named_with_experts(name) == true);
  for (const char* name : {"meta-llama/Llama-3.1-8B-Instruct", "Qwen3-32B", "lmsys/vicuna-13b"})
    CHECK(cost::named_with_experts(name) == false);
  CHECK_FALSE(cost::named_with_experts("m"));
}

TEST_CASE("repeats of one gamma tell no more of other gammas than one run of it") {
  const std::vector<ObservedRound> once = {{.gamma = 0, .batch = 8, .seconds = 0.010},
                                           {.gamma = 4, .batch = 8, .seconds = 0.0145}};
  std::vector<ObservedRound> repeated;
  for (int i = 0; i < 10; ++i) {
    for (ObservedRound run : once) {
      run.seconds *= 1 + 0.002 * std::sin(3.0 * i + run.gamma);
      repeated.push_back(run);
    }
  }
  const FittedCost few(once, {}), many(repeated, {});
  const auto width = [](const FittedCost& price, std::int64_t gamma) {
    const cost::Range range = cost::central_range(price, {.gamma = gamma, .batch = 8});
    return std::log(range.hi / range.lo);
  };
  for (const std::int64_t gamma : {1, 8, 12}) {
    INFO("gamma " << gamma);
    CHECK(width(many, gamma) > 0.6 * width(few, gamma));
  }
  // Of what ran they tell more.
  CHECK(width(many, 4) < 0.6 * width(few, 4));
}

TEST_CASE("rounds of a mixture of experts stop growing where all experts are read, beyond the batches that ran, too") {
  for (const double expert_seconds : {0.01, 0.03}) {
    for (const double expert_tokens : {8.0, 16.0, 32.0}) {
      const CostTerms mixture = {0.010, 2e-5,           0, 0.0018, 2e-5,         0.0009, 2e-5,
                                 2e-5,  expert_seconds, 0, 800,    expert_tokens};
      const FittedCost price(runs_of(mixture, {0, 1, 4}, {1, 8}, {1000}), {.kind = DraftKind::eagle, .experts = true});
      for (const auto& [gamma, batch] :
           {std::pair(1, 16.0), std::pair(4, 16.0), std::pair(1, 32.0), std::pair(4, 32.0)}) {
        INFO(expert_seconds << " s of experts by " << expert_tokens << " tokens, gamma " << gamma << ", batch "
                            << batch);
        const cost::RoundPoint point{.gamma = gamma, .batch = batch, .context = 1000};
        const double expected = seconds_of(mixture, gamma, batch, 1000);
        CHECK(log_error(price.round(point).total(), expected) < 0.22);
        CHECK(cost::central_range(price, point).contains(expected));
      }
    }
  }
}

TEST_CASE("the error of another run is never less than what two runs of one configuration differ by") {
  const FittedCost price(runs_of(truth, {0, 1, 3, 5}, {1, 4, 16, 64}, {1000}), {});
  CHECK(price.run_error() < cost::FitOptions{}.usual_error);

  // Each run four times, off by -1, 1, -1 and 1 shares of their spread.
  for (const double spread : {0.002, 0.06}) {
    std::vector<ObservedRound> runs;
    for (const double sign : {-1.0, 1.0, -1.0, 1.0}) {
      for (ObservedRound run : runs_of(truth, {0, 3}, {1, 16}, {1000})) {
        run.seconds *= std::exp(sign * spread);
        runs.push_back(run);
      }
    }
    // 16 runs of four configurations and the four usual errors; sizes of errors are a factor of two apart.
    const double of_repeats = std::sqrt((4 * 0.02 * 0.02 + 16 * spread * spread) / (4 + 16 - 4));
    INFO("repeats differ by " << spread);
    CHECK(FittedCost(runs, {}).run_error() == Approx(of_repeats).epsilon(0.41));
  }
}

TEST_CASE("intervals grow with the distance from the runs and have no width of 0") {
  for (const std::vector<double>& batches : {std::vector<double>{8}, {1, 8}, {1, 4, 8}}) {
    const FittedCost price(runs_of(truth, {0, 2, 5}, batches, {1000}), {});
    double width = 0.01;
    for (const double batch : {8.0, 32.0, 128.0, 512.0}) {
      const cost::Range range = cost::central_range(price, {.gamma = 2, .batch = batch, .context = 1000});
      INFO(batches.size() << " batches, asked at " << batch);
      CHECK(std::log(range.hi / range.lo) > width);
      CHECK(range.contains(price.round({.gamma = 2, .batch = batch, .context = 1000}).total()));
      width = std::log(range.hi / range.lo);
    }
    CHECK(width > 0.3);
  }
}

TEST_CASE("what left-out runs missed widens the replicates, whatever the misses, and each of them is a time") {
  test_support::RandomCases cases(5);
  double width = 0;
  for (const double noise : {0.005, 0.08, 0.25}) {
    std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
    add_noise(runs, noise, cases);
    const FittedCost price(runs, {});
    const double found = log_half_width(price, 2, 8, 1000);
    INFO("noise " << noise << ": " << found << ", error of a run " << price.run_error());
    CHECK(found > 1.3 * width);
    width = found;
  }
  const std::vector<ObservedRound> absurd = {
      {.gamma = 0, .seconds = 1e12}, {.gamma = 1, .seconds = 1e-12}, {.gamma = 4, .seconds = 1}};
  const FittedCost price(absurd, {});
  for (std::size_t i = 0; i < price.replicates(); ++i) {
    CHECK(std::isfinite(price.price(1 + i, {.gamma = 4}).total()));
  }
}

TEST_CASE("intervals from replicates cover the true round and those a third as wide do not", "[long]") {
  test_support::RandomCases cases(23);
  constexpr int trials = 40;
  int covered = 0, covered_by_third = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
    add_noise(runs, 0.04, cases);
    FitOptions options;
    options.seed = static_cast<std::uint64_t>(trial);
    const FittedCost price(runs, options);
    const cost::RoundPoint point{.gamma = 4, .batch = 20, .context = 1000};
    const cost::Range range = cost::central_range(price, point);
    const double centre = price.round(point).total(), expected = seconds_of(truth, 4, 20, 1000);
    covered += range.contains(expected) ? 1 : 0;
    covered_by_third += std::abs(expected - centre) <= (range.hi - range.lo) / 6 ? 1 : 0;
  }
  // A coverage of 0.946 falls below 32 of 40 with probability 2.3e-4; one of half reaches it with 9e-5.
  CHECK(covered >= 32);
  CHECK(covered_by_third < 32);
}

TEST_CASE("where no run says a context every context costs the same, and else more costs more") {
  std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
  for (ObservedRound& run : runs) run.context.reset();
  const FittedCost unsaid(runs, {});
  const cost::RoundPoint near{.gamma = 2, .batch = 8, .context = 10}, far{.gamma = 2, .batch = 8, .context = 1e5};
  CHECK(unsaid.round(near).total() == unsaid.round(far).total());
  CHECK_FALSE(unsaid.extrapolates(far));
  const FittedCost said(runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000, 8000}), {});
  CHECK(said.round({.gamma = 2, .batch = 64, .context = 8000}).total() >
        1.1 * said.round({.gamma = 2, .batch = 64, .context = 1000}).total());
  CHECK(said.extrapolates(far));
}

TEST_CASE("one pass is charged for parallel drafts and none for n-grams") {
  FitOptions options;
  std::vector<ObservedRound> runs =
      runs_of({0.01, 0, 0, 0.002, 0, 0, 0, 1e-4, 0, 0, 1e6, 1}, {0, 2, 4, 8}, {1, 8}, {0});
  for (const DraftKind kind : {DraftKind::parallel, DraftKind::ngram}) {
    options.kind = kind;
    const FittedCost price(runs, options);
    CHECK(log_error(price.round({.gamma = 16, .batch = 8}).total(), 0.012 + 17 * 8e-4 * 1) < 0.35);
    const double draft = price.round({.gamma = 16, .batch = 8}).draft;
    CHECK((kind == DraftKind::ngram) == (draft == 0));
    CHECK(price.round({.gamma = 4, .batch = 8}).overhead > 0);
    CHECK(price.parts_known({.batch = 8}));
  }
  CHECK(FittedCost(runs, options).parts_known({.gamma = 16, .batch = 8}));
  options.kind = DraftKind::model;
  CHECK_FALSE(FittedCost(std::span(runs).first(3), options).parts_known({.gamma = 4}));
}

TEST_CASE("the same seed gives the same replicates and another one others") {
  test_support::RandomCases cases(3);
  std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
  add_noise(runs, 0.05, cases);
  FitOptions options;
  options.seed = 7;
  const FittedCost one(runs, options), same(runs, options);
  options.seed = 8;
  const FittedCost other(runs, options);
  const cost::RoundPoint point{.gamma = 4, .batch = 20, .context = 1000};
  CHECK(one.price(4, point).total() == same.price(4, point).total());
  CHECK(one.price(4, point).total() != other.price(4, point).total());
  std::vector<double> totals(one.replicates());
  one.totals_of_replicates(point, totals);
  for (std::size_t i = 0; i < totals.size(); ++i)
    CHECK(totals[i] == Approx(one.price(1 + i, point).total()).epsilon(1e-14));
}

TEST_CASE("what cannot be in observed rounds is reported") {
  std::vector<ObservedRound> runs = runs_of(truth, {0, 3}, {1, 8, 64}, {1000});
  runs[4].seconds = 0.97 * runs[1].seconds;
  CHECK(has_finding(FittedCost(runs, {}), "round_below_target_pass"));
  CHECK(FittedCost(runs, {}).impossible().empty());
  runs[4].seconds = 0.9 * runs[1].seconds;
  const FittedCost price(runs, {});
  REQUIRE(has_finding(price, "round_below_target_pass"));
  CHECK(price.impossible() == price.findings()[0].message);
  CHECK_THAT(price.findings()[0].message, Contains("run 4: a round with 3 drafts took"));
  CHECK(has_finding(FittedCost(runs_of(truth, {1, 3}, {1, 8}, {1000}), {}), "no_plain_runs"));
  runs.push_back(runs[0]);
  runs.back().seconds *= 1.5;
  CHECK(has_finding(FittedCost(runs, {}), "poor_fit"));
  // Seconds among milliseconds, of a round and of its plain step.
  runs = runs_of(truth, {0, 3}, {1, 8, 64}, {1000});
  for (const std::size_t of_another_unit : {4U, 1U}) {
    std::vector<ObservedRound> mixed = runs;
    mixed[of_another_unit].seconds *= of_another_unit == 4 ? 1000 : 0.001;
    const FittedCost of_two_units(mixed, {});
    REQUIRE(has_finding(of_two_units, "round_of_many_steps"));
    CHECK_THAT(of_two_units.impossible(), Contains("run 4: a round with 3 drafts took"));
  }
  runs[4].seconds = 50 * runs[1].seconds;
  CHECK(FittedCost(runs, {}).impossible().empty());
}

TEST_CASE("a round holds a plain step in every world, unless runs say that it does not") {
  const auto priced = [](double seconds_of_three) {
    return FittedCost(
        std::vector<ObservedRound>{{.gamma = 0, .seconds = 0.010}, {.gamma = 3, .seconds = seconds_of_three}}, {});
  };
  const auto least_ratio = [](const FittedCost& price, std::int64_t gamma) {
    std::vector<double> plain(price.replicates()), rounds(price.replicates());
    price.totals_of_replicates({.gamma = 0}, plain);
    price.totals_of_replicates({.gamma = gamma}, rounds);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < plain.size(); ++i) least = std::min(least, rounds[i] / plain[i]);
    return least;
  };
  // Within what runs differ by: the round takes a plain step.
  const FittedCost near = priced(0.0098);
  REQUIRE(near.impossible().empty());
  const double plain = near.round({.gamma = 0}).total();
  for (const std::int64_t gamma : {1, 3, 5}) CHECK(near.round({.gamma = gamma}).total() >= plain * (1 - 1e-12));
  CHECK(least_ratio(near, 3) == 1);
  // Tokens per step of other texts than the run's make rounds of half a plain step: prices are by what runs say.
  const FittedCost beyond = priced(0.005);
  REQUIRE_FALSE(beyond.impossible().empty());
  CHECK(beyond.round({.gamma = 3}).total() == Approx(0.005).epsilon(0.05));
  CHECK(beyond.round({.gamma = 5}).total() < 0.008);
  CHECK(beyond.round({.gamma = 5}).total() > 0.005);
}

TEST_CASE("rounds that get cheaper with more drafts are reported beyond noise, at one load and context") {
  cost::FitOptions options;
  options.kind = DraftKind::ngram;
  const auto rounds = [](double batch, double context, double seconds) {
    return std::vector<ObservedRound>{
        {"plain", 0, 8, 1000, 0.0095}, {"few", 2, 8, 1000, 0.010}, {"many", 5, batch, context, seconds}};
  };
  const FittedCost fallen(rounds(7.8, 1000, 0.0092), options);
  REQUIRE(has_finding(fallen, "rounds_fall_with_gamma"));
  const auto found = std::find_if(fallen.findings().begin(), fallen.findings().end(),
                                  [](const auto& finding) { return finding.code == "rounds_fall_with_gamma"; });
  CHECK_THAT(found->message, Contains("many: a round with 5 drafts took 0.0092 s, less than the 0.01 s of one with 2"));
  CHECK_FALSE(has_finding(FittedCost(rounds(7.8, 1000, 0.0096), options), "rounds_fall_with_gamma"));
  CHECK_FALSE(has_finding(FittedCost(rounds(4, 1000, 0.0092), options), "rounds_fall_with_gamma"));
  CHECK_FALSE(has_finding(FittedCost(rounds(7.8, 200, 0.0092), options), "rounds_fall_with_gamma"));
}

TEST_CASE("every run is predicted from the others, but for a plain run of runs that drafted") {
  const std::vector<ObservedRound> all = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
  const auto left_out = cost::leave_one_out(all, {});
  REQUIRE(left_out.size() == 12);
  CHECK(cost::leave_one_out(all, {}, 5).size() == 5);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(left_out[i]);
    CHECK(std::abs(*left_out[i] / all[i].seconds - 1) < 0.12);
  }
  const auto alone = cost::leave_one_out(runs_of(truth, {0, 3, 5}, {8}, {1000}), {});
  CHECK_FALSE(alone[0]);
  CHECK(alone[1]);
  const std::vector<ObservedRound> runs = runs_of(truth, {0}, {8}, {1000});
  CHECK_FALSE(cost::leave_one_out(runs, {}).front());
}

TEST_CASE("a fit refuses runs with values that cannot be") {
  CHECK_THROWS_AS(FittedCost({}, {}), std::invalid_argument);
  std::vector<ObservedRound> runs = runs_of(truth, {0, 3}, {8}, {1000});
  const auto with = [&](auto change) {
    std::vector<ObservedRound> changed = runs;
    change(changed[1]);
    return changed;
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.seconds = 0; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.gamma = -1; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.batch = nan; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.context = -1; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.weight = 0; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(runs, {}).round({.gamma = -1}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(runs, {.usual_error = 0}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(runs, {.usual_error_degrees = 0}), std::domain_error);
  // Squares of these would overflow or vanish.
  CHECK_THROWS_WITH(FittedCost(with([](ObservedRound& run) { run.seconds = 1e300; }), {}),
                    "FittedCost: seconds is 1e+300, but must be in [1e-12, 1000000000000]");
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.seconds = 1e-300; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.batch = 1e300; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.weight = 1e-300; }), {}), std::domain_error);
  for (const double extreme : {1e-12, 1e12}) {
    for (ObservedRound& run : runs) {
      run.seconds = extreme;
      run.batch = 1 / extreme;
    }
    CHECK(FittedCost(runs, {}).seconds(runs.front()) == Approx(extreme).epsilon(0.05));
  }
}

namespace {

/// The law of docs/theory.md of a head's rounds, by the logarithms of its terms as shares of the iteration.
double log_seconds_of(const std::vector<double>& logs, double gamma, double batch, double context) {
  CostTerms terms{};
  for (std::size_t j = 1; j < 10; ++j) terms[j] = std::exp(logs[0] + logs[j]);
  terms[0] = std::exp(logs[0]);
  for (std::size_t j = 10; j < 12; ++j) terms[j] = std::exp(-logs[j]);
  return std::log(seconds_of(terms, gamma, batch, context));
}

/// The covariance of two of several normal variables given others: Schur's complement by eliminating one after the
/// other.
double given(std::vector<std::vector<double>> covariance, std::size_t known) {
  for (std::size_t k = 0; k < known; ++k)
    for (std::size_t i = k + 1; i < covariance.size(); ++i)
      for (std::size_t j = k + 1; j < covariance.size(); ++j)
        covariance[i][j] -= covariance[i][k] * covariance[k][j] / covariance[k][k];
  return covariance[known][known + 1];
}

double covariance_of(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / count - mean_a * mean_b;
}

}  // namespace

TEST_CASE("the covariance of two rounds is that of the documented priors given the runs") {
  std::vector<ObservedRound> runs = runs_of(truth, {0, 2}, {1, 16}, {1000});
  // So many degrees of freedom leave errors and spreads no size but the usual one.
  const FitOptions options{.kind = DraftKind::eagle,
                           .priors = {{1, {0.135, 0.65}, {0.073, 0.7}}},
                           .replicates = 4000,
                           .usual_error_degrees = 1e6};
  const FittedCost price(runs, options);
  const cost::LogTerms terms = cost::RoundPosterior(runs, options, true).likeliest().log_terms;
  const std::vector<double> spreads = {10, 1.4, 1.2, 0.65, 1.5, 0.7, 1.2, 1.5, 2, 1, 0.9, 0.8};
  const std::vector<double> logs(terms.begin(), terms.end());
  const auto squared_over = [](double x, double length) { return x * x / (length * length); };
  const auto covariance = [&](const ObservedRound& a, const ObservedRound& b) {
    double sum = 0;
    for (std::size_t j = 0; j < logs.size(); ++j) {
      const auto slope = [&](const ObservedRound& at) {
        std::vector<double> up = logs, down = logs;
        up[j] += 1e-5;
        down[j] -= 1e-5;
        return (log_seconds_of(up, at.gamma, at.batch, *at.context) -
                log_seconds_of(down, at.gamma, at.batch, *at.context)) /
               2e-5;
      };
      sum += spreads[j] * spreads[j] * slope(a) * slope(b);
    }
    if ((a.gamma > 0) != (b.gamma > 0)) return sum;
    return sum + 0.07 * 0.07 *
                     std::exp(-(squared_over(std::log(a.batch / b.batch), 1.4) +
                                squared_over(std::log((a.gamma + 1) / (b.gamma + 1)), 0.9) +
                                squared_over(std::log((*a.context + 500) / (*b.context + 500)), 1)) /
                              2);
  };
  const auto expected = [&](const ObservedRound& a, const ObservedRound& b) {
    std::vector<ObservedRound> all = runs;
    all.push_back(a);
    all.push_back(b);
    std::vector<std::vector<double>> joint(all.size(), std::vector<double>(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < all.size(); ++j)
        joint[i][j] = covariance(all[i], all[j]) + (i == j && i < runs.size() ? 0.02 * 0.02 : 0);
    return given(joint, runs.size());
  };
  const auto round = [](double gamma, double batch, double context) {
    return ObservedRound{.gamma = gamma, .batch = batch, .context = context};
  };
  const auto point = [](const ObservedRound& at) {
    return cost::RoundPoint{static_cast<std::int64_t>(at.gamma), at.batch, *at.context, 0};
  };
  const auto logs_at = [&](const cost::RoundPoint& at) {
    std::vector<double> totals(price.replicates());
    price.totals_of_replicates(at, totals);
    for (double& total : totals) total = std::log(total);
    return totals;
  };
  CHECK(price.run_error() == Approx(0.02));
  const ObservedRound far = round(6, 64, 4000);
  for (const auto& [a, b] : {std::pair(round(2, 16, 1000), round(2, 16, 1000)), std::pair(round(0, 16, 1000), far),
                             std::pair(round(4, 16, 1000), round(3, 8, 1000)), std::pair(round(1, 1, 1000), far)}) {
    INFO(a.gamma << " " << b.gamma);
    const double error = 4 * std::sqrt(expected(a, a) * expected(b, b) / static_cast<double>(price.replicates()));
    CHECK(covariance_of(logs_at(point(a)), logs_at(point(b))) == Approx(expected(a, b)).margin(error));
  }
}
