#include "traces/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "traces/batch_columns.hpp"
#include "traces/shard_list.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_it(const FileError& error) { throw error; }

class TraceReader : public PositionSource {
 public:
  TraceReader(std::span<const fs::path> paths, ReaderOptions options)
      : options_(std::move(options)),
        sink_(options_.on_error ? ErrorSink(options_.on_error) : ErrorSink(throw_it)),
        list_(paths, options_, sink_),
        columns_(sink_, list_.metadata().vocab_size, list_.metadata().task_names.size()) {}

  const TraceMetadata& metadata() const override { return list_.metadata(); }
  std::string format() const override { return "specdec-trace"; }
  std::optional<std::int64_t> positions() const override { return list_.positions(); }
  std::int64_t depths() const override { return list_.depths(); }

  std::vector<fs::path> files() const override {
    std::vector<fs::path> paths;
    for (const ListedShard& entry : list_.shards()) paths.push_back(entry.path);
    return paths;
  }

  std::vector<Note> notes() const override {
    std::vector<Note> notes = list_.notes();
    columns_.add_notes(notes);
    return notes;
  }

  bool read(PositionBatch& batch) override {
    while (!shard_ || row_ == shard_->positions()) {
      if (!open_next()) return false;
    }
    const std::int64_t count = std::min(batch_rows_, shard_->positions() - row_);
    batch = {};
    batch.first = first_of_shard_ + row_;
    columns_.read(row_, count, batch);
    row_ += count;
    return true;
  }

  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    const column::Model& names = role == Role::target ? column::target : column::draft;
    const Tensor* tensor = (role == Role::target ? shard_->target_rows() : shard_->draft_rows()).tensor;
    for (const char* name : {names.topk_logprobs, names.token_logprob, column::accepted_length})
      if (tensor == nullptr) tensor = shard_->find(name);
    const std::int64_t row = position - first_of_shard_;
    const std::int64_t row_bytes = ColumnReader::width_of(*tensor) * size_of(tensor->type);
    return {shard_->file().path(), FileError::byte(tensor->offset + row * row_bytes),
            fmt::format("{} row {}", tensor->name, row), std::move(found), std::move(expected)};
  }

 private:
  /// Opens the next shard; false at the end.
  bool open_next() {
    if (shard_) first_of_shard_ += shard_->positions();
    row_ = 0;
    shard_.reset();
    if (next_ == list_.shards().size()) return false;
    const ListedShard& entry = list_.shards()[next_++];
    shard_.emplace(entry.path, throw_it);
    if (shard_->positions() != entry.positions) {
      throw FileError(entry.path, "file", "another than when it was opened", "left alone");
    }
    if (entry.positions == 0) return true;
    shard_->file().advise_sequential();
    const bool numbered = shard_->find(column::seq) != nullptr && shard_->find(column::pos) != nullptr;
    if (entry.after_gap || (entry.in_new_argument && !numbered)) columns_.break_sequence();
    batch_rows_ = std::clamp<std::int64_t>(options_.batch_bytes / std::max<std::int64_t>(wide_row_bytes(), 1), 1,
                                           std::max<std::int64_t>(options_.batch_positions, 1));
    columns_.open(*shard_);
    return true;
  }

  /// For the columns with many numbers per position.
  std::int64_t wide_row_bytes() const {
    std::int64_t bytes = 0;
    const auto add = [&](const Tensor* tensor) {
      if (tensor != nullptr)
        bytes += ColumnReader::width_of(*tensor) * std::min(size_of(tensor->type), std::int64_t{4});
    };
    add(shard_->target_rows().tensor);
    add(shard_->draft_rows().tensor);
    for (const column::Model& names : {column::target, column::draft}) {
      for (const char* name : {names.topk_ids, names.topk_logprobs, names.at_other_topk, names.token_logprob})
        add(shard_->find(name));
    }
    return bytes;
  }

  ReaderOptions options_;
  ErrorSink sink_;
  ShardList list_;
  BatchColumns columns_;
  std::size_t next_ = 0;
  std::optional<TraceShard> shard_;
  std::int64_t first_of_shard_ = 0;
  std::int64_t row_ = 0;
  std::int64_t batch_rows_ = 1;
};

}  // namespace

std::unique_ptr<PositionSource> read_trace(std::span<const fs::path> paths, ReaderOptions options) {
  if (paths.empty()) throw std::invalid_argument("read_trace: paths is empty, but must name a file or folder");
  return std::make_unique<TraceReader>(paths, std::move(options));
}
std::unique_ptr<PositionSource> read_trace(const fs::path& path, ReaderOptions options) {
  return read_trace(std::span(&path, 1), std::move(options));
}

bool is_safetensors(std::string_view head) { return head.size() > 8 && head[8] == '{' && head[7] == 0; }

}  // namespace specdec::traces
