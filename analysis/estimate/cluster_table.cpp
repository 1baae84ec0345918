#include "analysis/estimate/cluster_table.hpp"

#include <algorithm>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {
namespace {

void add_to(std::vector<core::ExactSum>& sums, const std::vector<core::ExactSum>& terms) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(terms[i]);
}

std::vector<double> values_of(const std::vector<core::ExactSum>& sums) {
  std::vector<double> values;
  values.reserve(sums.size());
  for (const core::ExactSum& sum : sums) values.push_back(sum.value());
  return values;
}

std::uint64_t leading(std::uint64_t key, unsigned bits) { return key >> (64U - bits) << (64U - bits); }

}  // namespace

ClusterTable::Row& ClusterTable::Rows::at(Key key, std::size_t columns) {
  key.first = leading(key.first, bits);
  Row& row = of[key];
  row.sums.resize(columns);
  return row;
}

void ClusterTable::Rows::add(const Rows& other, std::size_t columns) {
  std::map<Key, Row> mine;
  if (other.bits < bits) mine.swap(of);
  bits = std::min(bits, other.bits);
  for (const auto* rows : {static_cast<const std::map<Key, Row>*>(&mine), &other.of}) {
    for (const auto& [key, from] : *rows) {
      Row& to = at(key, columns);
      add_to(to.sums, from.sums);
      to.texts += from.texts;
    }
  }
  keep_few(columns);
}

void ClusterTable::Rows::keep_few(std::size_t columns) {
  if (of.size() <= most_rows || bits == 1) return;
  std::vector<Key> keys;
  for (const auto& [key, row] : of) keys.push_back(key);
  Rows fewer{bits, {}};
  while (keys.size() > most_rows && fewer.bits > 1) {
    --fewer.bits;
    for (Key& key : keys) key.first = leading(key.first, fewer.bits);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  for (const auto& [key, from] : of) {
    Row& to = fewer.at(key, columns);
    add_to(to.sums, from.sums);
    to.texts += from.texts;
  }
  *this = std::move(fewer);
}

bool ClusterTable::Rows::has_columns(std::size_t columns) const {
  return 1 <= bits && bits <= 64 && std::all_of(of.begin(), of.end(), [columns](const auto& entry) {
           return entry.second.sums.size() == columns && entry.second.texts >= 0;
         });
}

void ClusterTable::begin_tasks() {
  if (!has_tasks_) tasks_ = all_;
  has_tasks_ = true;
}

void ClusterTable::add(std::uint64_t key, std::int32_t task, std::span<const double> values) {
  core::require_same_size("ClusterTable::add", "values", values.size(), "columns", columns_);
  if (task >= 0) begin_tasks();
  const auto add = [&](Rows& rows, std::int32_t of_task) {
    Row& row = rows.at({key, of_task}, columns_);
    for (std::size_t i = 0; i < columns_; ++i) row.sums[i].add(values[i]);
    ++row.texts;
    rows.keep_few(columns_);
  };
  add(all_, -1);
  if (has_tasks_) add(tasks_, task);
  ++texts_;
}

void ClusterTable::merge(const ClusterTable& other) {
  core::require_same_size("ClusterTable::merge", "the columns of the other", other.columns_, "columns", columns_);
  if (has_tasks_ || other.has_tasks_) {
    begin_tasks();
    tasks_.add(other.has_tasks_ ? other.tasks_ : other.all_, columns_);
  }
  all_.add(other.all_, columns_);
  texts_ += other.texts_;
}

std::vector<Cluster> ClusterTable::clusters() const {
  std::vector<Cluster> clusters;
  for (const auto& [key, row] : all_.of) clusters.push_back({key.first, key.second, row.texts, values_of(row.sums)});
  return clusters;
}

RatioSums ratio_sums(std::span<const Cluster> clusters, std::size_t numerator, std::size_t denominator) {
  RatioSums result;
  core::ExactSum a;
  core::ExactSum b;
  for (const Cluster& cluster : clusters) {
    result.clusters.push_back({cluster.sums[numerator], cluster.sums[denominator]});
    a.add(result.clusters.back().numerator);
    b.add(result.clusters.back().denominator);
  }
  result.numerator = a.value();
  result.denominator = b.value();
  return result;
}

RatioSums ratio_sums(const ClusterTable& table, std::size_t numerator, std::size_t denominator) {
  return ratio_sums(table.clusters(), numerator, denominator);
}

std::vector<std::vector<Cluster>> ClusterTable::by_task() const {
  std::map<std::int32_t, std::vector<Cluster>> tasks;
  for (const auto& [key, row] : has_tasks_ ? tasks_.of : all_.of)
    tasks[key.second].push_back({key.first, key.second, row.texts, values_of(row.sums)});
  std::vector<std::vector<Cluster>> result;
  for (auto& [task, clusters] : tasks) result.push_back(std::move(clusters));
  return result;
}

}  // namespace specdec::estimate
