#include "analysis/estimate/pooled_rates.hpp"

#include <cmath>
#include <vector>

#include "analysis/estimate/group_shrinkage.hpp"
#include "analysis/estimate/label_groups.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using estimate::Estimate;
using estimate::Interval;
using estimate::LabelGroups;
using estimate::PooledRates;

namespace {

double logit(double rate) { return std::log(rate / (1 - rate)); }

}  // namespace

TEST_CASE("rates are pooled as log-odds with the errors of their intervals") {
  const std::vector<std::optional<Estimate>> rates = {Estimate{0.8, Interval{0.75, 0.84}, ""},
                                                      Estimate{0.6, Interval{0.35, 0.8}, ""},
                                                      Estimate{0.78, Interval{0.7, 0.85}, ""}};
  const PooledRates pooled = estimate::pooled_rates(rates).value();
  std::vector<estimate::GroupValue> values;
  for (const auto& rate : rates) {
    const double error = (logit(rate->ci95->hi) - logit(rate->ci95->lo)) / (2 * 1.959963984540054);
    values.push_back({logit(rate->value), error * error});
  }
  const estimate::GroupShrinkage expected(values);
  for (std::size_t g = 0; g < rates.size(); ++g) {
    CHECK(logit(pooled.groups[g]->value) == Approx(expected.group(g).quantile(0.5)).epsilon(1e-6));
    CHECK(logit(pooled.groups[g]->ci95->hi) == Approx(expected.group(g).quantile(0.975)).epsilon(1e-6));
  }
  // The group of few rounds moves, those of many hardly do.
  CHECK(pooled.groups[1]->value > 0.65);
  CHECK(pooled.groups[0]->value == Approx(0.8).margin(0.01));
  CHECK(pooled.another.ci95->lo < pooled.groups[1]->ci95->lo);
}

TEST_CASE("groups that accepted all or nothing, or have no interval, are not pooled") {
  const Estimate known = {0.7, Interval{0.6, 0.8}, ""};
  const std::vector<std::optional<Estimate>> rates = {known, Estimate{1, Interval{0.9, 1}, ""}, std::nullopt,
                                                      Estimate{0.5, {}, ""}, Estimate{0.9, Interval{0.7, 1}, ""}};
  const auto pooled = estimate::pooled_rates(rates);
  REQUIRE(pooled);
  CHECK(pooled->groups[0]);
  CHECK_FALSE(pooled->groups[1]);
  CHECK_FALSE(pooled->groups[2]);
  CHECK_FALSE(pooled->groups[3]);
  CHECK(pooled->groups[4]);
  CHECK_FALSE(estimate::pooled_rates(std::vector<std::optional<Estimate>>{known, std::nullopt}));
}

TEST_CASE("values of a label are their own group, or fall into ranges from bounds on") {
  CHECK(LabelGroups{"category"}.group_of("code") == "code");
  const LabelGroups ranges = {"prompt_tokens", {1024, 4096}};
  CHECK(ranges.ranges() == std::vector<std::string>{"<1024", "1024-4096", ">=4096"});
  CHECK(ranges.group_of("1023") == "<1024");
  CHECK(ranges.group_of("1024") == "1024-4096");
  CHECK(ranges.group_of("4096") == ">=4096");
  CHECK(ranges.group_of("long").empty());
  CHECK(ranges.group_of("").empty());
}
