#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/kv_memory.hpp"
#include "cli/capacity_options.hpp"
#include "cli/report.hpp"
#include "sim/serving/capacity_range.hpp"

/// The answer of `specdec capacity` between its computation and its printing: capacity.cpp makes it, capacity_json.cpp
/// and capacity_text.cpp print it.
namespace specdec::cli {

/// The cache of one scenario.
struct ScenarioMemory {
  /// Tokens that it holds, and those left where every sequence has its look-ahead slots.
  std::int64_t tokens = 0, left_tokens = 0;
  /// Nothing where --kv-cache-tokens says the tokens.
  std::optional<planning::KvMemory> memory;
};

struct CapacityReport {
  const CapacityOptions& options;
  sim::CapacityQuestion question;
  sim::CapacityRange range;
  /// The acceptances at the ends of its interval; empty where it is taken as exact.
  std::vector<std::vector<sim::RequestAcceptance>> acceptance_ends;
  /// [scenario]
  std::vector<ScenarioMemory> memory;
  /// "alpha 0.8", "counters of m (vllm metrics)"; empty where nothing drafts.
  std::string acceptance;
  /// Requests or sequences with a law of their own, where there is more than one; 0 otherwise.
  std::size_t acceptance_laws = 0;
  /// The longest draft that acceptance was measured at, up to the largest gamma compared.
  std::int64_t measured_gamma = 0;
  /// Where the cost is a roofline: whether timed iterations narrowed its losses.
  std::optional<bool> calibrated;
  /// What a server is asked for by: the target's name, and the engine that counted where one did.
  std::string served_model, engine;
  /// The rate at which --concurrency is served.
  std::optional<sim::SimulatedValue> rate_of_concurrency;

  const sim::CapacityAnswer& answer() const { return range.answer; }
  const std::vector<sim::ScenarioCapacity>& scenarios() const { return range.answer.scenarios; }
  /// The best place without speculation: of the fewest GPUs, else of the largest sustainable load.
  std::size_t plain() const;
  bool asks_for_load() const { return question.workload.requests_per_second.has_value(); }
  bool is_extrapolated(std::size_t i) const { return scenarios()[i].scenario.extrapolated; }
  bool has_extrapolated() const;
  bool has_limits() const { return question.limits.ttft_seconds || question.limits.tpot_seconds; }
  /// The run that would tell most; nothing where nothing is uncertain, or --calibrate was given what it takes.
  std::optional<sim::CapacityDoubt> doubt() const;
  /// The scenario whose two engines are compared: the recommended one, else the plain one.
  std::size_t shown() const { return answer().recommended.value_or(plain()); }
};

/// The gamma of all batches; nothing where a schedule has several.
std::optional<std::int64_t> gamma_of(const sim::CapacityScenario& scenario);

/// What measures it.
std::string command_for(const CapacityReport& r, const sim::CapacityDoubt& doubt);

nlohmann::ordered_json json_of(const CapacityReport& r);
std::string text_of(const CapacityReport& r);

}  // namespace specdec::cli
