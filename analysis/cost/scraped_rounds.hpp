#pragma once

#include <functional>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::cost {

/// A server's rounds according to its counters.
struct ScrapedRound {
  /// At the middle of `seconds`, on the scale of logarithms, with the weight that its width leaves.
  ObservedRound round = {};
  /// A round without prompts, as far as the buckets tell.
  Range seconds = {};
};

/// The mean round of a window between two scrapes, from n times between outputs of a request, S seconds in sum, in I
/// iterations of the engine, of which at most P read a prompt (P requests put out their first token):
///
///   batch = max(1, n / I);   gamma = drafted / max(n, rounds)
///   high  = S / n;   m = min(n - 1, P max(1, n / I))
///   low   = max(sum of the lower edges of the n - m shortest, S - sum of the upper edges of the m longest) / (n - m)
///
/// An iteration that reads a prompt makes the outputs of all requests late, m of them, and is taken to be no shorter in
/// the mean than others, so that rounds without prompts take S / n at most; whichever m outputs they were, the others
/// take `low` at least. Prompts that are read in several pieces count as one. A time's logarithm is uniform between the
/// two, which gives the weight
///
///   usual_error^2 / (usual_error^2 + ln(high / low)^2 / 12)
///
/// Source:  docs/theory.md#rounds-between-two-scrapes
/// @param window  with round_times, of at least one time
/// @param usual_error  that of a run, as in FitOptions
/// @throws traces::FileError that names the series where one is missing or contradicts another
ScrapedRound scraped_round(const traces::ServingCounts& window, double usual_error = FitOptions{}.usual_error);

/// What buckets leave open of rounds fitted to windows, as factors of their estimate: a server's windows hide alike
/// what prompts take, so that many of them tell no more of it than one. Of the windows with drafts or of those without,
///
///   ln hi = -ln lo = sum w ln(high / low) / 2 / sum w,   w = weight exp(-ln(batch / its batch)^2 / 2)
///
/// @param rounds  at least one; a point of a kind without a window has the factor 1
std::function<Range(const RoundPoint&)> open_factors(std::vector<ScrapedRound> rounds);

}  // namespace specdec::cost
