#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/core/quantile.hpp"
#include "analysis/planning/kv_memory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

// Caches that servers printed (tests/published/kv_caches.csv) against what the memory of a replica is said to hold:
// docs/validation.md.
using namespace specdec;

namespace {

struct PrintedCache {
  bool is_fitted = false;
  std::string place = {};
  planning::ReplicaHolds holds = {};
  double tokens = 0;

  double error() const { return static_cast<double>(planning::kv_memory(holds).tokens) / tokens - 1; }
};

cost::NumberType type_named(const std::string& name) {
  return name == "fp8" ? cost::NumberType::fp8 : cost::NumberType::bf16;
}

std::vector<PrintedCache> printed_caches() {
  std::ifstream file(tests::source_dir() + "/tests/published/kv_caches.csv");
  REQUIRE(file);
  std::vector<PrintedCache> caches;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#' || line.starts_with("fitted")) continue;
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    PrintedCache& cache = caches.emplace_back();
    cache.is_fitted = cells.at(0) == "1";
    cache.place = line;
    cache.holds.memory_bytes_per_gpu = cost::hardware_preset(cells.at(2))->memory_bytes.value;
    cache.holds.target.model = *cost::model_preset(cells.at(3));
    if (!cells.at(4).empty()) cache.holds.target.weight_type = type_named(cells.at(4));
    cache.holds.target.tensor_parallel = std::stoll(cells.at(5));
    cache.holds.utilization = std::stod(cells.at(6));
    cache.holds.max_num_batched_tokens = std::stoll(cells.at(7));
    cache.holds.max_num_seqs = std::stoll(cells.at(8));
    cache.holds.target.cache_type = type_named(cells.at(9));
    cache.tokens = std::stod(cells.at(10));
  }
  return caches;
}

}  // namespace

TEST_CASE("caches that servers printed are foretold within 5%, those that nothing was fitted to within 9%") {
  for (const auto& [is_fitted, median, ninth] : {std::tuple(true, 0.02, 0.05), std::tuple(false, 0.05, 0.09)}) {
    std::vector<double> errors;
    for (const PrintedCache& cache : printed_caches()) {
      if (cache.is_fitted != is_fitted) continue;
      CAPTURE(cache.place, cache.error());
      CHECK(std::abs(cache.error()) < 0.12);
      errors.push_back(std::abs(cache.error()));
    }
    std::sort(errors.begin(), errors.end());
    CAPTURE(errors);
    CHECK(core::sorted_quantile(errors, 0.5) < median);
    CHECK(core::sorted_quantile(errors, 0.9) < ninth);
  }
}
