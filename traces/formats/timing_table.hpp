#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {

/// The quantity that was varied; the axes differ in the reads of the key-value cache and never share a curve.
enum class TimingAxis {
  batch,         ///< one token each of several sequences (llama-batched-bench)
  verification,  ///< several tokens of one sequence (llama-bench -p)
  generation,    ///< one token of one sequence after another, as a mean over them (llama-bench -n)
  grid,          ///< as stated in a table of specdec's own format
};

/// The time of one pass of a model that appended `tokens` positions to each of `batch` sequences.
struct TimedPass {
  /// File name of the model, or its type with size and parameters ("llama 1B Q8_0 (1.22 GiB / 1.24 B)") as the source
  /// prints them; empty if it states none.
  std::string model = {};
  TimingAxis axis = TimingAxis::grid;
  /// Sequences, > 0.
  double batch = 1;
  /// Positions per sequence, > 0.
  double tokens = 1;
  /// Positions per sequence that were in the cache before, >= 0; the mean if a source times a stretch of passes.
  double context = 0;
  /// Mean over the repetitions, > 0.
  double seconds = 0;
  /// Standard deviation of one repetition, >= 0; empty if the source states none.
  std::optional<double> stddev_seconds = {};
  /// 0 if the source does not state how often the pass was timed.
  std::int64_t repetitions = 0;
  /// Each repetition, if the source lists them.
  std::vector<double> samples_seconds = {};
  /// Line of the record in the file, from 1.
  std::int64_t line = 0;
};

/// The timings of one file.
struct TimingTable {
  std::filesystem::path path;
  /// "timing table", "llama-bench", "llama-batched-bench", "llama.cpp statistics".
  std::string_view format;
  /// In the order of the file, at least one.
  std::vector<TimedPass> passes = {};
  std::vector<Note> warnings = {};

  /// The models' names, each once, in the order of the file.
  std::vector<std::string> models() const;
  /// The passes of one of them.
  std::vector<TimedPass> passes_of(std::string_view model) const;
};

/// Reads measured timings; the format is determined from the content.
///
///   batch,tokens,context,seconds               specdec's CSV, with a header; also ; and tab between the fields
///   1,1,1024,0.0112                            columns in any order; besides these four, which are required:
///   1,5,1024,0.0119                            model, stddev_seconds, repetitions
///
///   {"batch":1,"tokens":5,"context":1024,"seconds":0.0119}     the same as JSON lines or an array of objects, with
///                                                              samples_seconds for a list of the repetitions
///
///   llama-bench -o md|csv|json|jsonl           ppN is N tokens of one sequence at the depth d; tgN is one token of
///                                              one sequence, seconds/N, at the depth d + (N - 1)/2
///   llama-batched-bench, markdown or --output-format jsonl     one token of B sequences, T_TG/TG seconds, at the
///                                              context PP + (TG - 1)/2
///
///   statistics draft-mtp: ..., #gen tokens = 3927, ..., dur(b,g,a) = 0.002, 28395.226, 1.373 ms
///                                              in a log of llama.cpp: the mean time of a drafted token, at a
///                                              context that it does not say, given as 0 (`context_unknown`)
///
/// Left out with a warning: llama-bench's combined ppN+tgM (`combined_test_excluded`), tests whose tokens did not fit
/// into one pass (`split_pass_excluded`: more than n_ubatch, by default 512 if the file does not state it), and rows of
/// llama-batched-bench that generate nothing (`no_generation_excluded`). In the markdown of either program seconds are
/// tokens over the printed tokens per second, which have more digits.
/// @throws FileError for a file in none of these formats, without a usable timing, broken, or with rows of one model
///   under different settings (threads, layers on the GPU, ...), with line and field
TimingTable read_timing_table(const std::filesystem::path& path);

}  // namespace specdec::traces
