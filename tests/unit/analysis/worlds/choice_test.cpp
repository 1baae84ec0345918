#include "analysis/worlds/choice.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

namespace {

using namespace specdec::worlds;

Table exact(std::vector<double> speedups) {
  Table table;
  for (const double one : speedups) table.options.push_back({one});
  table.alternative = {0};
  return table;
}

/// Speedups 1, then a normal about each mean, the same noise for all.
Table noisy(const std::vector<double>& means, double spread, std::size_t worlds = 1000) {
  std::mt19937_64 engine(7);
  std::normal_distribution<double> normal;
  std::vector<double> noise(worlds);
  for (double& one : noise) one = spread * normal(engine);
  Table table;
  table.alternative.assign(worlds, 0);
  table.options.emplace_back(worlds, 1.0);
  for (const double mean : means) {
    table.options.emplace_back();
    for (const double one : noise) table.options.back().push_back(mean + one);
  }
  return table;
}

TEST_CASE("where nothing is uncertain the fastest option is taken, however close the next one is") {
  CHECK(choose(exact({1, 1.5, 1.9, 1.901, 1.7}), {}).option == 3);
  CHECK(choose(exact({1, 1.5, 1.9, 1.901, 1.7}), {}).share == 1);
}

TEST_CASE("of options that grow without end the smallest one within a quarter of a percent is taken") {
  CHECK(choose(exact({1, 1.5, 1.98, 1.999, 2.0}), {}).option == 3);
}

TEST_CASE("plain decoding counts as faster by the gain that is asked for") {
  CHECK(choose(exact({1, 1.04, 1.03}), {}).option == 0);
  CHECK(choose(exact({1, 1.04, 1.03}), {.min_gain = 0}).option == 1);
  const Choice choice = choose(exact({1, 1.04, 1.03}), {});
  CHECK(choice.drafting == 1);
  CHECK(choice.certainty() == Certainty::no);
}

TEST_CASE("expected regrets are the means that a loop over the worlds gives") {
  const Table table = noisy({1.2, 1.3, 1.1}, 0.2, 500);
  const std::vector<double> regrets = regrets_of(table, 0.05);
  for (std::size_t option = 0; option < table.options.size(); ++option) {
    double sum = 0;
    for (std::size_t world = 0; world < table.worlds(); ++world) {
      double best = 1.05;
      for (std::size_t other = 1; other < table.options.size(); ++other)
        best = std::max(best, table.options[other][world]);
      sum += 1 - (option == 0 ? 1.05 : table.options[option][world]) / best;
    }
    CHECK(regrets[option] == Approx(sum / static_cast<double>(table.worlds())).epsilon(1e-12));
  }
}

TEST_CASE("among options alike that of least regret that was measured is taken, else the smallest") {
  const Table table = noisy({1.8, 1.802, 1.801, 1.4}, 0.1);
  CHECK(choose(table, {}).option == 1);
  CHECK(choose(table, {0.05, {true, false, true, true, true}}).option == 2);
  CHECK(choose(table, {0.05, {true, false, false, false, true}}).option == 1);
}

TEST_CASE("of alternatives the worst decides, as for an interval of acceptance rates") {
  // Eq. 1 at the ends of an interval of alpha, c = 0.05: the minimax gamma lies between the best of the two ends.
  Table table;
  table.alternative = {0, 1};
  for (int gamma = 0; gamma <= 40; ++gamma) {
    std::vector<double>& option = table.options.emplace_back();
    for (const double alpha : {0.5, 0.9}) option.push_back((1 - std::pow(alpha, gamma + 1)) / (1 - alpha) / (1 + 0.05 * gamma));
  }
  const auto best_of = [&](std::size_t world) {
    std::size_t best = 0;
    for (std::size_t option = 0; option < table.options.size(); ++option)
      if (table.options[option][world] > table.options[best][world]) best = option;
    return best;
  };
  const auto loss = [&](std::size_t option, std::size_t world) {
    return 1 - table.options[option][world] / table.options[best_of(world)][world];
  };
  const Choice choice = choose(table, {.min_gain = 0});
  CHECK(best_of(0) < choice.option);
  CHECK(choice.option < best_of(1));
  for (std::size_t other = 1; other < table.options.size(); ++other)
    CHECK(std::max(loss(choice.option, 0), loss(choice.option, 1)) <= std::max(loss(other, 0), loss(other, 1)) + 1e-12);
}

TEST_CASE("certainty is a word for the share of worlds, of the alternative where it is least") {
  CHECK(name_of(certainty_of(0.95)) == "sure");
  CHECK(name_of(certainty_of(0.949)) == "likely");
  CHECK(name_of(certainty_of(0.75)) == "likely");
  CHECK(name_of(certainty_of(0.5)) == "open");
  CHECK(name_of(certainty_of(0.2)) == "unlikely");
  CHECK(name_of(certainty_of(0.01)) == "no");
  const std::vector<double> values = {1.2, 1.2, 1.0, 1.2};
  CHECK(share_at_least(values, std::vector<int>{0, 0, 0, 0}, 1.05) == 0.75);
  CHECK(share_at_least(values, std::vector<int>{0, 0, 1, 1}, 1.05) == 0.5);
}

TEST_CASE("a choice that is taken for another reason has that option's share") {
  const Table table = noisy({1.5, 1.2}, 0.05);
  Choice choice = choose(table, {});
  CHECK(choice.option == 1);
  choice.take(2, table, 0.05);
  CHECK(choice.option == 2);
  CHECK(choice.drafting == 2);
  CHECK(choice.share == share_at_least(table.options[2], table.alternative, 1.05));
  CHECK(choice.regret() > 0.15);
}

}  // namespace
