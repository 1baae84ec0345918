#pragma once

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

// How llama-server sampled an answer, as its `generation_settings` say:
//
//   {"generation_settings": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, ...,
//     "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]}}
//
// Only the samplers of the list act, in its order (without a list all of the above, in that order): a top_k of 40 cuts
// nothing where the list has no "top_k".

/// Reads the settings of a response; nothing is said where it has none.
/// @param raw  the numbers are those before sampling, so that the settings must be applied to them: a sampler other
///   than temperature, top-k, top-p and min-p that acts, or an order in which these do not stand in Standardisation
///   (the cuts in this order, the temperature before or after them), is refused
/// @throws FileError
SampledWith read_generation_settings(simdjson::dom::object response, const ResponseReader& reader, bool raw);

}  // namespace specdec::traces
