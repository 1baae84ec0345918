#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/position_source.hpp"

namespace specdec::fuzz {

/// Keeps the compiler from leaving out a read.
inline volatile std::uint64_t sink;

/// Looks at every value of a column, so that a view of anything else is found.
template <class Value>
void look_at(std::span<const Value> column) {
  std::uint64_t sum = 0;
  for (const std::byte byte : std::as_bytes(column)) sum += static_cast<std::uint64_t>(byte);
  sink = sink + sum;
}

inline void look_at(const traces::TopK& top_k) {
  look_at(top_k.ids);
  look_at(top_k.logprobs);
  look_at(top_k.tail_logprob);
  look_at(top_k.at_other);
}

/// Reads a recording to its end, as every command does.
inline void drain(traces::PositionSource& source) {
  traces::PositionBatch batch;
  while (source.read(batch)) {
    if (batch.size < 1) std::abort();
    look_at(batch.sequence);
    look_at(batch.place);
    look_at(batch.token);
    look_at(batch.task);
    look_at(batch.target_rows.bytes);
    look_at(batch.draft_rows.bytes);
    look_at(batch.draft_vocab_map);
    look_at(batch.target_top_k);
    look_at(batch.draft_top_k);
    look_at(batch.target_token_logprob);
    look_at(batch.draft_token_logprob);
    look_at(batch.overlap);
    look_at(batch.target_token_rank);
    look_at(batch.draft_token_rank);
    look_at(batch.step_drafted);
    look_at(batch.step_accepted);
    look_at(batch.step_time_ns);
    look_at(batch.accepted_length);
  }
  source.notes();
}

/// Opens the fuzzer's bytes as a recording and reads it to its end.
template <class Open>
int read_recording(const std::uint8_t* data, std::size_t size, const Open& open) {
  const FuzzedFile file(data, size);
  return expect_file_errors_only([&] { drain(*open(file.path())); });
}

}  // namespace specdec::fuzz
