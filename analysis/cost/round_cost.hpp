#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/note.hpp"

/// The cost of a round of speculative decoding: seconds from measurements, or multiples of a plain target step.
namespace specdec::cost {

/// The way the drafts of a round are made, which decides what they cost.
enum class DraftKind {
  model,     ///< gamma passes of a draft model
  mirrored,  ///< the same, and one more over the gamma + 1 tokens that the target verifies (llama.cpp)
  eagle,     ///< gamma passes of one decoder layer of the target's width, with its own keys and values
  mtp,       ///< gamma passes of the next-token module and the target's head
  parallel,  ///< one pass whatever gamma (PARD, DFlash, Medusa)
  ngram,     ///< no model: looked up in the text so far; overhead only
  suffix,    ///< the same, looked up in other texts, too
};

/// "model", "mirrored", "eagle", "mtp", "parallel", "ngram" or "suffix".
std::string_view name_of(DraftKind kind);
/// The kind of that name, or of an engine's: "EAGLE-3", "NEXTN", "prompt_lookup"; empty for another.
std::optional<DraftKind> draft_kind_named(std::string_view name);
/// The same of any word in a text: "draft-eagle3", "mtp_eagle", "ngram k=3".
std::optional<DraftKind> kind_of_method(std::string_view method);

/// Whether drafts are looked up instead of computed.
constexpr bool looks_up(DraftKind kind) { return kind == DraftKind::ngram || kind == DraftKind::suffix; }

/// Passes of the drafting model in a round: gamma; gamma + 1 for `mirrored`, 1 for `parallel` and 0 where drafts are
/// looked up; none at gamma = 0.
constexpr double draft_passes(DraftKind kind, double gamma) {
  if (gamma <= 0 || looks_up(kind)) return 0;
  if (kind == DraftKind::parallel) return 1;
  return kind == DraftKind::mirrored ? gamma + 1 : gamma;
}

/// Tokens per sequence that the longest of these passes runs over: gamma + 1 for `mirrored`, whose draft decodes what
/// the target verifies once more, so that its cache lacks nothing after a full accept; else 1.
constexpr double longest_draft_pass(DraftKind kind, double gamma) {
  return kind == DraftKind::mirrored && gamma > 0 ? gamma + 1 : 1;
}

/// Whether a round after a full accept begins with one more draft token: not where the draft's cache holds it already.
constexpr bool catches_up(DraftKind kind) { return kind != DraftKind::mirrored && !looks_up(kind); }

/// The shape of drafts that branch: a draft of its own, since no gamma says what it verifies.
struct DraftTree {
  /// The largest depth and top_k, so that all can be counted.
  static constexpr std::int64_t largest = 1'000'000;

  /// Drafts on its longest path, [1, largest]: passes of the draft.
  std::int64_t depth = 1;
  /// Sequences that each pass but the first goes on with, [1, largest].
  std::int64_t top_k = 1;
  /// Positions that the target verifies a round, the root included, > depth, and at most candidates() + 1.
  std::int64_t verified = 2;

  /// Tokens that the draft proposes, of which the most probable ones are verified: the first pass proposes top_k, each
  /// other one top_k for each of top_k sequences; top_k + (depth - 1) top_k^2.
  constexpr std::int64_t candidates() const { return top_k + (depth - 1) * top_k * top_k; }

  auto operator<=>(const DraftTree&) const = default;
};

/// Where the cost of a round is asked for.
struct RoundPoint {
  /// Drafted tokens per sequence, >= 0; 0 is plain decoding: one target position, no draft.
  std::int64_t gamma = 0;
  /// Sequences decoded together, > 0; the mean of a server need not be whole.
  double batch = 1;
  /// Tokens already in the cache per sequence, >= 0.
  double context = 0;
  /// Share of the rounds that follow a fully accepted one and so begin with one more draft token (catches_up), [0, 1].
  double full_accepts = 0;

  /// The same without drafts.
  RoundPoint plain() const { return {0, batch, context, 0}; }
};

/// Parts of a round, each >= 0; in seconds, or in target steps where the provider knows no seconds.
struct RoundTime {
  double target = 0;
  double draft = 0;
  double overhead = 0;

  double total() const { return target + draft + overhead; }
  RoundTime times(double factor) const { return {factor * target, factor * draft, factor * overhead}; }
};

/// A closed range of values, lo <= hi; hi may be infinite.
struct Range {
  double lo = 0;
  double hi = 0;

  bool contains(double value) const { return lo <= value && value <= hi; }
};

/// The basis of prices within their range.
enum class CostOrigin {
  measured,  ///< times of passes or rounds
  stated,    ///< ratios that somebody states
  modelled,  ///< bytes, operations and the peaks of hardware, calibrated or not
};

/// Anything that prices rounds:
///
///   round(gamma, batch, context) = target(gamma + 1 positions per sequence) + draft(gamma) + overhead
///
/// A provider is immutable; all functions may be called from several threads.
/// Source:   docs/theory.md#cost-of-a-round
class RoundCost {
 public:
  virtual ~RoundCost() = default;

  /// "constant", "measured", "fitted", ...
  virtual std::string_view name() const = 0;
  /// False where times are multiples of a plain target step at the same batch and context.
  virtual bool in_seconds() const = 0;
  /// The way the drafts that it prices are made.
  virtual DraftKind kind() const = 0;
  virtual CostOrigin origin() const { return CostOrigin::measured; }

  /// @throws std::domain_error if a value of the point is outside its range
  RoundTime round(const RoundPoint& point) const { return price(0, point); }
  /// True where the point lies outside what was measured.
  virtual bool extrapolates(const RoundPoint& point) const = 0;
  /// The basis of the price of a batch or context that was not measured, a sentence without its full stop; empty where
  /// it was.
  virtual std::string about(double /*batch*/, double /*context*/) const { return {}; }
  /// False where only the sum of the round's parts is known at this point, and their split is one of many that fit.
  virtual bool parts_known(const RoundPoint& /*point*/) const { return true; }
  /// The context to ask for where nobody says one: that of the measurements; 0 where it does not matter.
  virtual double usual_context() const { return 0; }

  /// The error of the cost as equally likely versions of it (resampled measurements, splits that fit equally well);
  /// 0 where it is taken as exact.
  virtual std::size_t replicates() const { return 0; }
  /// The same as round() by the number of a version of the cost, unchecked: 0 is the cost itself, 1 + i its replicate
  /// i.
  virtual RoundTime price(std::size_t version, const RoundPoint& point) const = 0;
  /// The totals of all replicates at once, which may be much faster.
  /// Shape: totals (replicates())
  /// @throws std::invalid_argument if the size is another one
  virtual void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const;

  virtual std::span<const Note> findings() const { return {}; }
  /// The reason why what was measured cannot be true, a sentence without its full stop, so that no verdict rests on it;
  /// empty where nothing says so.
  virtual std::string impossible() const { return {}; }
};

/// The central 95% of a round's total over the replicates, quantiles linear between neighbours; the total alone where
/// there are none.
/// @throws as RoundCost::round
Range central_range(const RoundCost& cost, const RoundPoint& point);

/// A pass over more tokens than any that was measured goes on at the last slope until operations limit it:
///
///   max(held, longest n / m),   ln m at `share` of the way from ln N to ln max(512, 4 N)
///
/// @param held     of the last slope  @param longest  of N tokens, the most that were measured
/// Source:   docs/theory.md#cost-of-a-round
double pass_beyond(double held, double longest, double measured, double tokens, double share);

/// Rounds within this factor differ by no more than two errors of the usual 2%.
inline constexpr double rounds_agree = 1.06;

/// Throws std::domain_error unless gamma >= 0, batch > 0, context >= 0 and full_accepts is in [0, 1], all finite.
void require_legal(const RoundPoint& point);

}  // namespace specdec::cost
