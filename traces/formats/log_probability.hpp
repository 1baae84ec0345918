#pragma once

#include <optional>
#include <string_view>

#include "traces/position_batch.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// A log-probability as engines print it: values up to -9999, including -infinity, are probability 0 and become
/// -infinity; a value above 0 by at most 1e-4, which is rounding, becomes 0. Empty for NaN and larger values.
std::optional<float> log_probability_of(double value);

/// The logarithm of a probability; a value above 1 by at most 1e-4, which is rounding, counts as 1. Empty for
/// NaN, negative and larger values.
std::optional<float> log_of_probability(double value);

/// The one or the other, of a number that is stored in a space other than logits.
std::optional<float> logprob_of(double value, RowSpace space);
/// What such a number must be, for messages.
std::string_view expected_in(RowSpace space);

}  // namespace specdec::traces
