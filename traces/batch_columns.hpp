#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/column_reader.hpp"
#include "traces/owned_batch.hpp"
#include "traces/sequence_counter.hpp"
#include "traces/trace_shard.hpp"

/// Internal to traces.
namespace specdec::traces {

/// The columns of batches, read from shards and checked, and the memory for those that the file itself cannot serve.
class BatchColumns {
 public:
  /// @param tasks  number of named tasks; 0 if tasks have no names
  BatchColumns(const ErrorSink& sink, std::optional<std::int64_t> vocab_size, std::size_t tasks)
      : reader_(sink), vocab_size_(vocab_size), tasks_(tasks) {}

  /// Goes on with a shard, which must live as long as it is read.
  void open(const TraceShard& shard);
  /// The next position begins a sequence whatever its numbers are.
  void break_sequence() { sequences_.break_here(); }

  /// Sets everything but `first`, from so many rows of the shard.
  void read(std::int64_t row, std::int64_t count, PositionBatch& batch);

  void add_notes(std::vector<Note>& notes) const { sequences_.add_notes(notes); }

 private:
  void read_vocab_map();
  void read_columns(PositionBatch& batch);
  void number_sequences(PositionBatch& batch);
  void check_labels(const PositionBatch& batch);
  void check_prompts(const PositionBatch& batch);
  std::int32_t last_id() const;
  void read_rows(const ShardRows& stored, std::int64_t count, std::vector<float>& buffer, Rows& rows);
  void check_top_k(const column::Model& names, const TopK& top);
  void check_scalars(const PositionBatch& batch);
  void check_draft_token_logprob(const PositionBatch& batch);
  void check_rounds(const PositionBatch& batch);

  ColumnReader reader_;
  std::optional<std::int64_t> vocab_size_;
  std::size_t tasks_;
  const TraceShard* shard_ = nullptr;
  std::int64_t first_ = 0;
  SequenceCounter sequences_;
  RepeatFinder repeats_;
  /// That of the previous position, if its shard has prompts.
  std::optional<std::int64_t> prompt_of_last_;
  /// Accepted tokens of the current round that are still to come.
  std::int32_t inside_round_ = 0;

  OwnedBatch columns_;
  std::vector<std::int32_t> vocab_map_;
  std::vector<float> target_rows_, draft_rows_;
};

}  // namespace specdec::traces
