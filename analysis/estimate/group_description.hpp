#pragma once

#include <string>

#include "analysis/estimate/counted_group.hpp"
#include "analysis/estimate/neighbour_correlation.hpp"
#include "analysis/estimate/serving_summary.hpp"

namespace specdec::estimate {

// A header of the library's own sources; it is not installed. What a group of counts says before its estimates, and
// what is to be warned of.

/// Sets what the units have in common, and their totals.
void describe(const CountedGroup& group, ServingSummary& summary);

/// llama.cpp's drafts are as long as its options state, except at the ends of answers: their mean lies just below an
/// integer.
/// @return true if the gamma was taken from that
bool infer_gamma(const CountedGroup& group, ServingSummary& summary);

void add_warning(ServingSummary& summary, std::string code, std::string message);
/// Warns of what differs between units, and of what some of them do not say.
void warn_of_units(const CountedGroup& group, ServingSummary& summary);
/// Warns where no draft was accepted, and of changes over the record.
void warn_of_acceptance(const CountedGroup& group, ServingSummary& summary);
/// Warns of drafts that mostly end before the longest one: other figures than the counted ones are of rounds that draft
/// gamma tokens each.
void warn_of_lengths(const CountedGroup& group, ServingSummary& summary);
/// Warns of what the intervals rest on, where that is little.
void warn_of_basis(const CountedGroup& group, const NeighbourCorrelation& neighbours, ServingSummary& summary);

}  // namespace specdec::estimate
