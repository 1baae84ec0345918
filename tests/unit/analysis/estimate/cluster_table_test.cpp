#include "analysis/estimate/cluster_table.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "analysis/estimate/position_labels.hpp"
#include "tests/support/catch.hpp"
#include "traces/prompt_id.hpp"

namespace specdec::estimate {
namespace {

struct Text {
  std::uint64_t key;
  std::int32_t task;
  double a, b;
};

/// Two texts of each cluster.
std::vector<Text> random_texts(std::size_t clusters) {
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<> uniform;
  std::vector<Text> texts;
  for (std::size_t i = 0; i < 2 * clusters; ++i) {
    texts.push_back({traces::scrambled(i / 2), static_cast<std::int32_t>(i / 2 % 3), uniform(generator), uniform(generator)});
  }
  return texts;
}

void put(ClusterTable& table, const Text& text) { table.add(text.key, text.task, std::array{text.a, text.b}); }

bool same(const std::vector<Cluster>& x, const std::vector<Cluster>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Cluster& a, const Cluster& b) {
    return a.key == b.key && a.task == b.task && a.texts == b.texts && a.sums == b.sums;
  });
}

}  // namespace

TEST_CASE("a cluster's texts add up, and tasks are kept apart where they are asked for") {
  ClusterTable table(2);
  table.add(9, -1, std::array{1.0, 2.0});
  table.add(5, -1, std::array{10.0, 20.0});
  CHECK(table.by_task().size() == 1);
  table.add(9, 4, std::array{100.0, 200.0});
  const auto clusters = table.clusters();
  REQUIRE(clusters.size() == 2);
  CHECK(clusters[0].key == 5);
  CHECK(clusters[1].sums == std::vector<double>{101, 202});
  CHECK(clusters[1].texts == 2);
  const auto tasks = table.by_task();
  REQUIRE(tasks.size() == 2);
  CHECK(tasks[0].size() == 2);
  CHECK(tasks[1].front().sums == std::vector<double>{100, 200});
  CHECK_THROWS_AS(table.add(1, -1, std::array{1.0}), std::invalid_argument);
}

TEST_CASE("a table is a function of the set of texts, also where clusters had to be put together") {
  for (const std::size_t clusters : {50U, 5000U}) {
    std::vector<Text> texts = random_texts(clusters);
    ClusterTable whole(2);
    for (const Text& text : texts) put(whole, text);
    std::shuffle(texts.begin(), texts.end(), std::mt19937(8));
    std::vector<ClusterTable> parts(4, ClusterTable(2));
    for (std::size_t i = 0; i < texts.size(); ++i) put(parts[i * i % 11 % 4], texts[i]);
    ClusterTable merged(2);
    for (const int part : {2, 0, 3, 1}) merged.merge(parts[static_cast<std::size_t>(part)]);
    CHECK(merged.texts() == whole.texts());
    CHECK(merged.bucketed() == (clusters > ClusterTable::most_rows));
    CHECK(same(merged.clusters(), whole.clusters()));
    const auto by_task = merged.by_task();
    REQUIRE(by_task.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(same(by_task[i], whole.by_task()[i]));
    CHECK(whole.clusters().size() <= ClusterTable::most_rows);
    if (merged.bucketed()) CHECK(whole.clusters().size() > ClusterTable::most_rows / 2);
  }
}

TEST_CASE("positions belong to their prompt, or to their text where the prompt is unknown") {
  const std::vector<std::int64_t> sequence = {0, 1, 2, 3};
  const std::vector<std::int64_t> prompt = {7, 7, traces::no_prompt, 2};
  const PositionLabels labels{sequence, {}, prompt};
  CHECK(labels.cluster(0) == labels.cluster(1));
  CHECK(labels.cluster(2) == PositionLabels{sequence}.cluster(2));
  CHECK(labels.cluster(3) != PositionLabels{sequence}.cluster(2));
  CHECK(labels.cluster(0) != PositionLabels{std::vector<std::int64_t>{7}}.cluster(0));
}

TEST_CASE("each half of the keys has half of the clusters") {
  // 10,000 throws of a coin, five standard deviations: a false alarm of 6e-7, were the keys random.
  std::int64_t ones = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) ones += static_cast<std::int64_t>(half_of(traces::scrambled(i)));
  CHECK(std::abs(ones - 5000) < 250);
}

}  // namespace specdec::estimate
