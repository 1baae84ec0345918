#pragma once

#include <span>

#include "analysis/estimate/serving_summary.hpp"
#include "planner/checkup/finding.hpp"
#include "traces/serving/serving_counts.hpp"

/// Faults seen in counts of acceptance.
namespace specdec::planner {

/// Rounds resemble each other: rates of one position are tested against another's as if rounds were so many times
/// fewer. Requests that are better or worse at all positions do not enter.
inline constexpr double design_effect = 3;
/// A draft of which fewer first tokens are accepted is taken for broken.
inline constexpr double least_first_acceptance = 0.05;
/// Acceptance that falls to less than this share from one position to the next falls off a cliff; published drafts fall
/// by 30% a position at most (docs/theory.md#typed-acceptance).
inline constexpr double cliff = 0.5;
/// Requests that differ make the second conditional rate larger than the first; by more than this, and with no like
/// step behind it, something is wrong with the first.
inline constexpr double largest_rise = 0.15;

/// Checks that drafts are accepted at all, and in an order in which drafts are:
///
/// - "draft_never_accepted", "draft_hardly_accepted": as_rare_as_published; an error below least_first_acceptance. For
///   means without counts, a length of 1 to the digits that are written;
/// - "first_position_below_second": the normal law's P of so large a rise of the conditional rates above largest_rise;
/// - "drop_behind_position": the same of so deep a fall below `cliff` times the rate before.
///
/// Source:   docs/reference/formats.md#what-doctor-checks
void check_acceptance(const estimate::ServingSummary& summary, Suspicions& suspicions);

/// "acceptance_changes": estimate::AcceptanceTrend, over time a warning, over load and prompts a note.
void check_trends(const estimate::ServingSummary& summary, Suspicions& suspicions);

/// "draft_never_accepted", "draft_hardly_accepted" of the worst window or run of a file that has several, so that a log
/// never says less than one of its lines.
void check_worst_unit(std::span<const traces::ServingCounts> counts, Suspicions& suspicions);

/// "mean_over_requests": a length that some file states without counts is the mean of the requests' lengths in another
/// file, and not the ratio of their sums, which is what speedup is made of.
void check_means(std::span<const traces::ServingCounts> counts, Suspicions& suspicions);

/// "outputs_all_equal": every request of a file put out as many tokens as the others, at least eight of them, so that
/// ends of texts were ignored or all were cut.
void check_ends(std::span<const traces::ServingCounts> counts, Suspicions& suspicions);

/// "server_warming_up": the first window of a log, or the first answer, took longer a round than all behind it.
/// Student's t of the logarithm of its seconds against the others', at least five, and at least 15% more than their
/// median. Assumes:  logarithms of a steady server's rounds that are normal and independent.
void check_start(std::span<const traces::ServingCounts> counts, Suspicions& suspicions);

}  // namespace specdec::planner
