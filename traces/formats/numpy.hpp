#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "traces/position_source.hpp"

namespace specdec::traces {

// Arrays written by numpy. An NPY file is one array:
//
//   "\x93NUMPY" | u8 major 1, 2 or 3 | u8 minor | header length: u16 (version 1) or u32 | header | data
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      padded with spaces, ended by a newline
//
// An NPZ file is a zip archive of NPY files, one per array, either stored (numpy.savez) or deflated
// (numpy.savez_compressed):
//
//   np.savez("trace.npz", p=p, q=q, token=token, seq=seq)
//
// Arrays of an NPZ; all have N entries along their first axis; others in the file are named in a note and not read:
//
//   p, q             probabilities, [N, V] for whole rows, or [N] for the emitted token. Float16, 32 or 64
//   p_logprobs, ...  the same, with names that state what they are: _probs, _logprobs or _logits ('.' for '_' and
//                    the singular too); `target` and `draft` for p and q. Logits cannot be [N]: their normaliser is
//                    lost
//   token            the emitted tokens (any integer type)
//   seq              the sequence of each position, not decreasing; without it all is one sequence, or a new one begins
//                    where pos decreases
//   pos              the place in its sequence, rising by one; without it 0, 1, 2, ...
//   task             integers, or strings (numpy's <U or S types)
//   prompt           the same
//
// Float64 is rounded to float32, logits after subtracting their row's largest, so that a probability loses at most
// 1e-6 of itself. Big-endian and Fortran-ordered arrays are rejected, and so are Python objects (|O).

/// True if a file that begins like this is an NPY file.
bool is_npy(std::string_view head);
/// True if a file that begins like this is a zip archive.
bool is_npz(std::string_view head);

/// One archive with both models' arrays.
/// @throws FileError naming the archive's entry or byte
std::unique_ptr<PositionSource> open_npz(const std::filesystem::path& path, const ArrayNames& options = {});

/// Two NPY files, the same positions by the target and by the draft. The file names state what the numbers are
/// (for instance p_logits.npy), else the options must.
/// @throws FileError
std::unique_ptr<PositionSource> open_npy_pair(const std::filesystem::path& target, const std::filesystem::path& draft,
                                              const ArrayNames& options = {});

}  // namespace specdec::traces
