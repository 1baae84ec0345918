#pragma once

#include <string_view>

#include "traces/formats/timing_table.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// Whether a log of llama.cpp has lines on what its drafts took.
bool has_draft_statistics(std::string_view text);

/// Times of drafting by the lines that llama.cpp's server logs behind each answer, summed since it started, one for
/// each way to draft:
///
///   statistics        draft-mtp: #calls(b,g,a) =    1   1309   1309, #gen drafts =   1309, #acc drafts =  1120,
///     #gen tokens =   3927, #acc tokens =  2703, dur(b,g,a) = 0.002, 28395.226, 1.373 ms
///
/// The last one of each gives a pass: the second duration by the drafted tokens, or by the drafts where one pass makes
/// all of a draft (dflash, dspark). Newer releases print further figures between these. Lookups (ngram-...) run no
/// model and are left out; where several models draft each is a model of the table. Passes count as of an empty cache:
/// the log does not say at which contexts they ran (warning "context_unknown"). With a least probability a draft's last
/// token may have been drafted and dropped, and its time is among that of the others.
/// @throws FileError for a line that lacks a figure or has none that is legal, and for a log in which no model drafted
TimingTable draft_statistics(const std::filesystem::path& path, std::string_view text);

}  // namespace specdec::traces
