#pragma once

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

// The sampling of an answer by llama-server, according to its `generation_settings`:
//
//   {"generation_settings": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, ...,
//     "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]}}
//
// Only the samplers of the list are active, in its order (without a list all of the above, in that order): a top_k of
// 40 has no effect if the list has no "top_k".

/// The sampling of a llama-server answer without settings: unknown, and raw numbers may not be those of the text.
SampledWith settings_not_stated(bool raw);

/// Reads the settings of a response; settings_not_stated() if it has none.
/// @param raw  the numbers are those before sampling, so that the settings must be applied to them: an active sampler
///   other than temperature, top-k, top-p and min-p, one that is unknown or named twice, or an order that
///   Standardisation cannot express (the cuts in this order, the temperature before or after them), is an error
/// @throws FileError
SampledWith read_generation_settings(simdjson::dom::object response, const ResponseReader& reader, bool raw);

}  // namespace specdec::traces
