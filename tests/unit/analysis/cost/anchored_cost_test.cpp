#include "analysis/cost/anchored_cost.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;
using cost::AnchoredCost;
using cost::FittedCost;
using cost::ObservedRound;

namespace {

/// Weights are read once; from 200 tokens on computing takes longer.
double seconds(double gamma, double batch, double context) {
  return 0.01 * std::max(1.0, (gamma + 1) * batch / 200) + 2e-8 * batch * context + 0.0006 * gamma;
}

std::vector<ObservedRound> runs() {
  std::vector<ObservedRound> observed;
  for (const double gamma : {0.0, 2.0, 4.0})
    for (const double batch : {1.0, 8.0, 32.0})
      observed.push_back({.gamma = gamma, .batch = batch, .context = 1000.0, .seconds = seconds(gamma, batch, 1000)});
  return observed;
}

/// The same law at half of the time.
std::shared_ptr<fakes::Cost> shape() {
  return std::make_shared<fakes::Cost>([](const cost::RoundPoint& at) {
    return cost::RoundTime{0.5 * seconds(static_cast<double>(at.gamma), at.batch, at.context), 0, 0};
  });
}

}  // namespace

TEST_CASE(
    "an anchored cost is the fit where runs were, and beyond them goes on by the shape from the nearest of them") {
  const auto fit = std::make_shared<FittedCost>(runs(), cost::FitOptions{});
  const AnchoredCost anchored(fit, shape());
  const cost::RoundPoint inside{3, 16, 1000, 0}, edge{4, 32, 1000, 0};
  CHECK(anchored.round(inside).total() == fit->round(inside).total());
  CHECK(anchored.price(6, inside).total() == fit->price(6, inside).total());
  // Four times the batch lies behind the corner, which no run saw.
  for (const std::int64_t gamma : {std::int64_t{0}, std::int64_t{2}, std::int64_t{4}}) {
    const cost::RoundPoint far{gamma, 128, 1000, 0}, near{gamma, 32, 1000, 0};
    CHECK(anchored.round(far).total() ==
          Approx(fit->round(near).total() * seconds(static_cast<double>(gamma), 128, 1000) /
                 seconds(static_cast<double>(gamma), 32, 1000)));
    CHECK(anchored.round(far).total() == Approx(seconds(static_cast<double>(gamma), 128, 1000)).epsilon(0.03));
    CHECK(anchored.extrapolates(far));
  }
  CHECK(anchored.nearest({7, 500, 9000, 0}).gamma == 4);
  CHECK(anchored.nearest({7, 500, 9000, 0}).batch == 32);
  CHECK(anchored.nearest({7, 500, 9000, 0}).context == 1000);
  // Between plain decoding and the shortest draft that ran.
  CHECK(anchored.nearest({1, 0.5, 100, 0}).gamma == 1);
  CHECK(anchored.nearest({1, 0.5, 100, 0}).batch == 1);
  CHECK(anchored.nearest(edge).gamma == 4);
  CHECK(anchored.parts_known(edge) == fit->parts_known(edge));
}

TEST_CASE("what the shape is unsure of widens an anchored cost beyond the runs, and only there") {
  const auto fit = std::make_shared<FittedCost>(runs(), cost::FitOptions{});
  const auto unsure = shape();
  unsure->factors = {0.5, 2, 1};  // of all speculative rounds alike, so that it cancels
  const AnchoredCost exact(fit, shape()), anchored(fit, unsure);
  const cost::RoundPoint far{4, 256, 1000, 0}, near{4, 32, 1000, 0};
  std::vector<double> totals(anchored.replicates()), same(anchored.replicates());
  anchored.totals_of_replicates(far, totals);
  exact.totals_of_replicates(far, same);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    CHECK(totals[i] == Approx(same[i]));
    CHECK(totals[i] == Approx(anchored.price(1 + i, far).total()));
  }
  const auto width = [](const cost::RoundCost& of, const cost::RoundPoint& at) {
    const cost::Range range = cost::central_range(of, at);
    return std::log(range.hi / range.lo) / 2;
  };
  // Far from the runs the shape errs by 10% beside what the fit errs at the edge.
  CHECK(width(anchored, far) == Approx(std::hypot(width(*fit, near), 1.96 * cost::usual_shape_error)).epsilon(0.2));
  CHECK(width(anchored, far) > width(anchored, {4, 40, 1000, 0}));
  CHECK(width(anchored, near) == width(*fit, near));
  CHECK(FittedCost::correlation(far, near) == Approx(std::exp(-0.5 * std::pow(std::log(8) / 1.4, 2))));
}

TEST_CASE("runs that all drafted are anchored for plain decoding at their shortest draft") {
  std::vector<ObservedRound> drafted;
  for (const ObservedRound& run : runs())
    if (run.gamma > 0) drafted.push_back(run);
  const auto fit = std::make_shared<FittedCost>(drafted, cost::FitOptions{});
  const AnchoredCost anchored(fit, shape());
  CHECK(anchored.nearest({0, 8, 1000, 0}).gamma == 2);
  CHECK(anchored.round({0, 8, 1000, 0}).total() == Approx(seconds(0, 8, 1000)).epsilon(0.03));
}

TEST_CASE("an anchored cost needs a fit and a shape in seconds") {
  const auto fit = std::make_shared<FittedCost>(runs(), cost::FitOptions{});
  CHECK_THROWS_AS(AnchoredCost(fit, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(AnchoredCost(nullptr, shape()), std::invalid_argument);
  const auto steps = std::make_shared<fakes::Cost>(
      [](const cost::RoundPoint&) {
        return cost::RoundTime{1, 0, 0};
      },
      false);
  CHECK_THROWS_AS(AnchoredCost(fit, steps), std::invalid_argument);
}
