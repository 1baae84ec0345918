#include "analysis/cost/lookup_cost.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::cost;
using specdec::core::LookupLaw;

namespace {

/// Seconds of a pass by the drafts of each sequence, and one of overhead where something is drafted.
class PassTimes final : public RoundCost {
 public:
  explicit PassTimes(std::function<double(double drafts)> pass, DraftKind kind = DraftKind::suffix)
      : pass_(std::move(pass)), kind_(kind) {}
  std::string_view name() const override { return "passes"; }
  bool in_seconds() const override { return true; }
  DraftKind kind() const override { return kind_; }
  RoundTime price(std::size_t, const RoundPoint& point) const override {
    return {pass_(static_cast<double>(point.gamma)), 0, point.gamma > 0 ? 1.0 : 0.0};
  }
  bool extrapolates(const RoundPoint&) const override { return false; }

 private:
  std::function<double(double)> pass_;
  DraftKind kind_;
};

double stepwise(double drafts) { return drafts < 2 ? 10 : 13; }
double quadratic(double drafts) { return 10 + drafts + 0.5 * drafts * drafts; }

/// E[T(sum of lengths / batch)] over the lengths of all sequences, by enumeration.
double enumerated(const LookupLaw& law, std::int64_t gamma, int batch, const std::function<double(double)>& pass) {
  std::vector<double> by_sum = {1};
  for (int sequence = 0; sequence < batch; ++sequence) {
    std::vector<double> next(by_sum.size() + static_cast<std::size_t>(gamma), 0);
    for (std::size_t sum = 0; sum < by_sum.size(); ++sum)
      for (std::int64_t l = 0; l <= gamma; ++l)
        next[sum + static_cast<std::size_t>(l)] += by_sum[sum] * law.drafts_exactly(l, gamma);
    by_sum = next;
  }
  double mean = 0;
  for (std::size_t sum = 0; sum < by_sum.size(); ++sum) mean += by_sum[sum] * pass(static_cast<double>(sum) / batch);
  return mean;
}

RoundTime priced(const LookupLaw& law, const RoundPoint& point, const std::function<double(double)>& pass) {
  return LookupCost(std::make_shared<PassTimes>(pass), law).round(point);
}

}  // namespace

TEST_CASE("one sequence's lookups cost the mean over the lengths of its drafts, whatever the pass costs", "[lookup]") {
  for (const LookupLaw& law : {LookupLaw{0.3, 2.5}, LookupLaw{0.8, {}}, LookupLaw{0, 3.0}}) {
    for (const std::int64_t gamma : {1, 3, 6}) {
      const RoundTime time = priced(law, {.gamma = gamma, .batch = 1}, stepwise);
      CHECK(time.target == Approx(enumerated(law, gamma, 1, stepwise)).epsilon(1e-13));
      CHECK(time.overhead == 1);
    }
  }
  CHECK(priced({0.5}, {.gamma = 0, .batch = 1}, stepwise).total() == 10);
}

TEST_CASE("a batch's lookups cost the mean over all its lengths where the pass is linear, and nearly where it bends",
          "[lookup]") {
  const LookupLaw law{0.4, 3.0};
  const auto linear = [](double drafts) { return 10 + 2 * drafts; };
  for (const int batch : {1, 2, 5, 9}) {
    const RoundPoint point{.gamma = 4, .batch = static_cast<double>(batch)};
    CHECK(priced(law, point, linear).target == Approx(enumerated(law, 4, batch, linear)).epsilon(1e-13));
    // The pass is taken as linear between whole numbers of drafts, 1/16 of a unit above the parabola at most.
    CHECK(priced(law, point, quadratic).target == Approx(enumerated(law, 4, batch, quadratic)).margin(0.125));
  }
  // A price that forgets that lengths differ is found out at one sequence.
  CHECK(quadratic(law.mean_drafted(4)) < enumerated(law, 4, 1, quadratic) - 0.5);
}

TEST_CASE("iterations of looked-up drafts cost what their rounds do", "[lookup]") {
  const LookupLaw law{0.4, 3.0};
  const auto rounds = std::make_shared<PassTimes>(quadratic);
  const std::shared_ptr<const IterationCost> iterations = iterations_of(rounds, {});
  const LookupIterations found(iterations, law);
  const double overhead_in_hits = law.hit_rate * 1;
  const Iteration one{.sequences = 1, .gamma = 4};
  CHECK(found.seconds(one) == Approx(enumerated(law, 4, 1, quadratic) + overhead_in_hits).epsilon(1e-13));
  CHECK(found.seconds({.sequences = 3}) == 10);
  CHECK(found.replicates() == 0);
}

TEST_CASE("lookups price no drafts that are computed", "[lookup]") {
  CHECK_THROWS_AS(LookupCost(std::make_shared<PassTimes>(stepwise, DraftKind::eagle), {}), std::invalid_argument);
  CHECK_THROWS_AS(LookupCost(nullptr, {}), std::invalid_argument);
  CHECK_THROWS_AS(LookupCost(std::make_shared<PassTimes>(stepwise), {-0.1}), std::domain_error);
}
