#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "planner/acceptance.hpp"
#include "planner/cost.hpp"

namespace specdec::planner {

struct CapacityQuestion;

/// The layout of a target on the accelerators of one replica: cost::PlacedModel.
struct Layout {
  std::int64_t tensor_parallel = 1, data_parallel = 1, expert_parallel = 1;

  std::int64_t accelerators() const { return tensor_parallel * data_parallel; }
  friend bool operator==(const Layout&, const Layout&) = default;
};
Layout layout_of(const cost::PlacedModel& placed);
/// "tp 4", "tp 2, dp 4, ep 8"
std::string text_of(const Layout& layout);

/// A scenario in a layout at a load, by planning::balanced_load.
struct LayoutPoint {
  /// Index into LayoutSearch::layouts.
  std::size_t layout = 0;
  /// "gamma 3"
  std::string scenario;
  std::int64_t max_num_seqs = 0;
  std::int64_t replicas = 1;
  double requests_per_second_per_replica = 0;
  double mean_batch = 0;
  /// Mean seconds per output token.
  double tpot_seconds = 0;
  /// Accelerators' time / output tokens.
  double gpu_seconds_per_token = 0;
  /// Empty without a price.
  std::optional<double> cost_per_million_tokens;
};

struct TriedLayout {
  Layout layout;
  /// Why it serves nothing, by how much memory it falls short for instance; empty if it serves.
  std::string refusal;
  /// With the fewest GPU-seconds per token, and the least time per token; empty if it is refused or cannot take the
  /// load.
  std::optional<LayoutPoint> cheapest, fastest;
  /// Its scenarios that were simulated.
  std::size_t simulated = 0;
};

/// Layouts within a number of accelerators.
struct LayoutSearch {
  /// Those given, or where they are too few for the load, as many as take it, with drafts and without.
  std::int64_t gpus = 1;
  std::vector<TriedLayout> layouts;
  /// Points that none beats in both GPU-seconds per token and time per token, by rising GPU-seconds.
  std::vector<LayoutPoint> frontier;
  /// Index into `layouts` of the one with the simulated scenario of the fewest GPU-seconds per request, at equal ones
  /// of the shortest median time per token, within the limits and the accelerators. If none is within the limits: the
  /// cheapest by formulas within the limit on the time per token, else the fastest by formulas.
  std::size_t chosen = 0;
  /// True if its scenario is within the limits and the accelerators given.
  bool is_within_limits = false;
  /// The same among scenarios without speculation; empty if none is within the limits and the accelerators.
  std::optional<std::size_t> plain;
  /// Where `plain` is empty beside drafts that take a load on the accelerators given: the same on as many as it needs;
  /// empty if no number of them does.
  std::optional<Layout> plain_beyond;

  /// That of `plain`, or `plain_beyond`.
  std::optional<Layout> layout_of_plain() const { return plain ? layouts[*plain].layout : plain_beyond; }
  /// Layouts of which a scenario was simulated.
  std::size_t simulated() const;
};

/// Powers of two of accelerators that divide the model's heads and experts evenly, within `gpus` and what a link joins.
/// Members that the options state are kept.
std::vector<Layout> layouts_within(std::int64_t gpus, const cost::RooflineCost& cost, const HardwareOptions& options);

/// Prices every layout by planning::balanced_load, at several numbers of replicas where a load is asked for, else at
/// batches from 1 on of as many replicas as there are accelerators for, with every scenario of the question, and
/// chooses by simulation: scenarios of all layouts in the order of the least that they may cost by the
/// formulas and their error, those left out that by this cannot be cheaper than the best one simulated. A load that is
/// too large for the accelerators given is searched for again without a bound on them, also if it is so without
/// speculation alone; one for which none are given, at once, and the search is empty where no layout serves.
/// Source:   docs/theory.md#search-for-a-layout
/// @param cost  that of hardware; the layout that its words state is kept
/// @throws QuestionError without hardware, for a value outside its range, if no layout serves except for such a load,
///   or if it was interrupted
LayoutSearch search_layouts(const std::optional<Acceptance>& acceptance, const Cost& cost,
                            const CapacityQuestion& question, const core::RunHooks& hooks = {});

/// The question of plain decoding alone.
CapacityQuestion without_drafts(CapacityQuestion question);

/// The cost in another layout.
/// @throws QuestionError as Cost::of
Cost in_layout(const Cost& cost, const Layout& layout);

}  // namespace specdec::planner
