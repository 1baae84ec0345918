#include "traces/trace_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/durable_file.hpp"
#include "traces/formats/safetensors_writer.hpp"
#include "traces/trace_columns.hpp"
#include "traces/trace_reader.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

/// The columns of the shard being written.
class OpenShard {
 public:
  OpenShard(const fs::path& folder, const PositionBatch& batch, std::vector<BatchColumn> columns)
      : vocab_map_(batch.draft_vocab_map.begin(), batch.draft_vocab_map.end()),
        target_sum_tolerance_(batch.target_rows.sum_tolerance),
        draft_sum_tolerance_(batch.draft_rows.sum_tolerance),
        columns_(std::move(columns)) {
    for (std::size_t i = 0; i < columns_.size(); ++i) buffers_.emplace_back(folder);
  }

  std::int64_t positions() const { return positions_; }
  std::int64_t bytes() const { return bytes_; }

  bool takes(const PositionBatch& batch, std::span<const BatchColumn> columns) const {
    return std::equal(columns.begin(), columns.end(), columns_.begin(), columns_.end(),
                      [](const BatchColumn& a, const BatchColumn& b) { return same_layout(a, b); }) &&
           std::equal(vocab_map_.begin(), vocab_map_.end(), batch.draft_vocab_map.begin(),
                      batch.draft_vocab_map.end()) &&
           target_sum_tolerance_ == batch.target_rows.sum_tolerance &&
           draft_sum_tolerance_ == batch.draft_rows.sum_tolerance;
  }

  /// Appends rows [begin, end) of a batch of `size` positions.
  void append(std::span<const BatchColumn> columns, std::int64_t size, std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto row_bytes = static_cast<std::int64_t>(columns[i].bytes.size()) / size;
      const auto part = columns[i].bytes.subspan(begin * row_bytes, (end - begin) * row_bytes);
      buffers_[i].append(part);
      bytes_ += static_cast<std::int64_t>(part.size());
    }
    positions_ += end - begin;
  }

  void write_to(DurableFile& file, std::map<std::string, std::string> metadata) const {
    if (target_sum_tolerance_ > 0) metadata[column::target.sum_tolerance] = fmt::format("{}", target_sum_tolerance_);
    if (draft_sum_tolerance_ > 0) metadata[column::draft.sum_tolerance] = fmt::format("{}", draft_sum_tolerance_);
    const std::size_t map_at = place_of_vocab_map();
    const std::string header = safetensors_header(headers(map_at), metadata);
    file.write(std::as_bytes(std::span(header)));
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (i == map_at) file.write(std::as_bytes(std::span(vocab_map_)));
      buffers_[i].copy_to(file);
    }
    if (map_at == buffers_.size()) file.write(std::as_bytes(std::span(vocab_map_)));
    file.commit();
  }

 private:
  /// Placed before the columns with smaller elements, so that all are aligned.
  std::size_t place_of_vocab_map() const {
    const auto smaller = std::find_if(columns_.begin(), columns_.end(), [](const BatchColumn& column) {
      return size_of(column.type) < size_of(ElementType::i32);
    });
    return static_cast<std::size_t>(smaller - columns_.begin());
  }

  std::vector<TensorHeader> headers(std::size_t map_at) const {
    std::vector<TensorHeader> headers;
    for (const BatchColumn& column : columns_) {
      std::vector<std::int64_t> shape = {positions_};
      shape.insert(shape.end(), column.inner_shape.begin(), column.inner_shape.end());
      headers.push_back({std::string(column.name), column.type, std::move(shape)});
    }
    if (!vocab_map_.empty()) {
      headers.insert(headers.begin() + static_cast<std::ptrdiff_t>(map_at),
                     {column::vocab_map, ElementType::i32, {static_cast<std::int64_t>(vocab_map_.size())}});
    }
    return headers;
  }

  std::vector<std::int32_t> vocab_map_;
  double target_sum_tolerance_;
  double draft_sum_tolerance_;
  /// Kept for their layout; the bytes they refer to are gone.
  std::vector<BatchColumn> columns_;
  std::vector<SpillingBuffer> buffers_;
  std::int64_t positions_ = 0;
  std::int64_t bytes_ = 0;
};

void require_whole_columns(const PositionBatch& batch, std::span<const BatchColumn> columns) {
  for (const BatchColumn& column : columns) {
    std::int64_t row_bytes = size_of(column.type);
    for (const std::int64_t size : column.inner_shape) row_bytes *= size;
    const auto bytes = static_cast<std::int64_t>(column.bytes.size());
    if (row_bytes > 0 && bytes / row_bytes == batch.size && bytes % row_bytes == 0) continue;
    throw std::invalid_argument(fmt::format("TraceWriter::write: {} is {} bytes long, but must be {} rows of {} bytes",
                                            column.name, bytes, batch.size, row_bytes));
  }
}

}  // namespace

class TraceWriter::State {
 public:
  State(fs::path path, TraceMetadata metadata, WriterOptions options)
      : path_(std::move(path)), metadata_(std::move(metadata)), options_(options) {
    single_file_ = path_.extension() == shard_extension;
    folder_ = !single_file_ ? path_ : path_.has_parent_path() ? path_.parent_path() : fs::path(".");
    if (single_file_) {
      file_.emplace(path_);
    } else {
      prepare_folder();
    }
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// A folder created in vain is removed; one with any contents stays.
  /// The half-written shard is removed first: a folder can be removed only when it is empty.
  ~State() {
    file_.reset();
    std::error_code ignored;
    if (made_folder_) fs::remove(folder_, ignored);
  }

  void write(const PositionBatch& batch) {
    const std::vector<BatchColumn> columns = columns_of(batch);
    require_whole_columns(batch, columns);
    if (batch.size == 0) return;
    if (positions_ == 0) require_room(batch, columns);
    if (shard_ && !shard_->takes(batch, columns)) {
      if (single_file_) {
        throw FileError(path_, "trace", fmt::format("of columns that change at position {}", positions_),
                        "a folder of shards, then");
      }
      close_shard();
    }
    for (std::int64_t begin = 0; begin < batch.size;) {
      if (shard_ && is_full(*shard_) && may_end_before(batch, begin)) close_shard();
      if (!shard_) shard_.emplace(folder_, batch, columns);
      const std::int64_t end = end_of_part(batch, columns, begin);
      shard_->append(columns, batch.size, begin, end);
      positions_ += end - begin;
      last_sequence_ = batch.sequence.empty() ? 0 : batch.sequence[static_cast<std::size_t>(end - 1)];
      begin = end;
    }
  }

  void set_task_names(std::vector<std::string> names) {
    const auto& old = metadata_.task_names;
    if (names.size() < old.size() || !std::equal(old.begin(), old.end(), names.begin())) {
      throw std::invalid_argument(
          "TraceWriter::set_task_names: names is another list, but must continue the one before");
    }
    metadata_.task_names = std::move(names);
  }

  void finish() {
    if (resumed_positions_ + positions_ == 0) {
      throw FileError(path_, "trace", "without positions", "at least one position long");
    }
    close_shard();
  }

  std::int64_t resumed_positions() const { return resumed_positions_; }
  std::int64_t positions() const { return positions_; }

 private:
  void close_shard() {
    if (!shard_) return;
    if (!single_file_) file_.emplace(folder_ / fmt::format("shard-{:06}.safetensors", next_number_));
    shard_->write_to(*file_, to_strings(metadata_));
    file_.reset();
    shard_.reset();
    ++next_number_;
  }

  void prepare_folder() {
    std::error_code error;
    if (fs::is_regular_file(folder_, error)) {
      throw FileError(folder_, "entry", "a file",
                      "a folder of shards, or have a name that ends in .safetensors and is not there yet");
    }
    made_folder_ = fs::create_directories(folder_, error);
    if (error) {
      throw FileError(folder_, "folder", fmt::format("not made ({})", error.message()),
                      "a folder, or a place where one can be made");
    }
    lock_.emplace(folder_);
    bool holds_shards = false;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const fs::path& file = entry.path();
      if (file.filename().string().starts_with('.')) continue;
      if (is_partial_shard(file)) {
        fs::remove(file);
      } else if (file.extension() == shard_extension && options_.resume) {
        holds_shards = true;
        next_number_ = std::max(next_number_, number_of(file) + 1);
      } else {
        throw FileError(folder_, "entry", file.filename().string(),
                        options_.resume ? "a shard of the trace to go on with" : "absent: the folder is not empty");
      }
    }
    if (holds_shards) resume();
  }

  static bool is_partial_shard(const fs::path& file) {
    return file.extension() == DurableFile::suffix && file.stem().extension() == shard_extension;
  }

  std::int64_t number_of(const fs::path& file) const {
    const std::string stem = file.stem().string();
    const bool ours =
        stem.starts_with("shard-") && stem.size() == 12 && stem.find_first_not_of("0123456789", 6) == std::string::npos;
    if (!ours) {
      throw FileError(file, "name", file.filename().string(), "as of shard-000000.safetensors");
    }
    return std::stoll(stem.substr(6));
  }

  void resume() {
    const auto existing = read_trace(folder_);
    resumed_positions_ = existing->positions().value_or(0);
    const TraceMetadata& there = existing->metadata();
    require_goes_on(folder_, there, metadata_);
    if (there.task_names.size() > metadata_.task_names.size()) metadata_.task_names = there.task_names;
  }

  /// Columns are collected beside the shard, so the current one temporarily takes its space twice.
  void require_room(const PositionBatch& batch, std::span<const BatchColumn> columns) const {
    std::error_code error;
    const fs::space_info space = fs::space(folder_, error);
    if (error || !options_.expected_positions) return;
    std::int64_t bytes = 0;
    for (const BatchColumn& column : columns) bytes += static_cast<std::int64_t>(column.bytes.size());
    const std::int64_t missing = *options_.expected_positions - resumed_positions_;
    const double trace = static_cast<double>(missing) * static_cast<double>(bytes) / static_cast<double>(batch.size);
    const double shard = single_file_ ? trace : std::min(trace, static_cast<double>(options_.shard_bytes));
    if (trace + shard <= static_cast<double>(space.available)) return;
    throw FileError(path_, "free space", fmt::format("{} bytes", space.available),
                    fmt::format("{:.3g} bytes for {} positions", trace + shard, missing));
  }

  bool is_full(const OpenShard& shard) const {
    return !single_file_ && (shard.positions() >= options_.shard_positions || shard.bytes() >= options_.shard_bytes);
  }

  bool may_end_before(const PositionBatch& batch, std::int64_t i) const {
    return !options_.whole_sequences || batch.sequence.empty() ||
           batch.sequence[static_cast<std::size_t>(i)] != last_sequence_;
  }

  /// The end of the part of the batch, from `begin`, that fits the current shard; at least one position.
  std::int64_t end_of_part(const PositionBatch& batch, std::span<const BatchColumn> columns, std::int64_t begin) const {
    if (single_file_) return batch.size;
    std::int64_t row_bytes = 0;
    for (const BatchColumn& column : columns) row_bytes += static_cast<std::int64_t>(column.bytes.size()) / batch.size;
    const std::int64_t room =
        std::min(options_.shard_positions - shard_->positions(),
                 (options_.shard_bytes - shard_->bytes() + row_bytes - 1) / std::max<std::int64_t>(row_bytes, 1));
    std::int64_t end = begin + std::clamp<std::int64_t>(room, 1, batch.size - begin);
    if (!options_.whole_sequences || batch.sequence.empty()) return end;
    while (end < batch.size &&
           batch.sequence[static_cast<std::size_t>(end)] == batch.sequence[static_cast<std::size_t>(end - 1)])
      ++end;
    return end;
  }

  fs::path path_;
  TraceMetadata metadata_;
  WriterOptions options_;
  bool single_file_ = false;
  fs::path folder_;
  bool made_folder_ = false;
  std::optional<FolderLock> lock_;
  /// A single file from the start, otherwise the shard that is being completed.
  std::optional<DurableFile> file_;
  std::int64_t next_number_ = 0;
  std::int64_t resumed_positions_ = 0;
  std::int64_t positions_ = 0;
  std::int64_t last_sequence_ = 0;
  std::optional<OpenShard> shard_;
};

void require_goes_on(const fs::path& path, const TraceMetadata& there, const TraceMetadata& metadata) {
  const auto refuse = [&](const std::string& key, const std::string& found, const std::string& now) {
    throw FileError(path, "metadata " + key, found, now + " to be gone on with");
  };
  const auto strings = to_strings(there);
  const auto require_same = [&](const std::string& key, const std::string& value) {
    const auto found = strings.find(key);
    if (key == "tasks" || found == strings.end() || found->second == value) return;
    refuse(key, found->second, value);
  };
  // The recorder's own entries are compared first: the rest follows from them.
  for (const auto& [key, value] : metadata.other) require_same(key, value);
  for (const auto& [key, value] : to_strings(metadata)) require_same(key, value);
  const std::size_t shared = std::min(there.task_names.size(), metadata.task_names.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (there.task_names[i] != metadata.task_names[i])
      refuse(fmt::format("tasks, name {}", i), there.task_names[i], metadata.task_names[i]);
  }
}

TraceWriter::TraceWriter(fs::path path, TraceMetadata metadata, WriterOptions options)
    : state_(std::make_unique<State>(std::move(path), std::move(metadata), options)) {}
TraceWriter::~TraceWriter() = default;

std::int64_t TraceWriter::resumed_positions() const { return state_->resumed_positions(); }
std::int64_t TraceWriter::positions() const { return state_->positions(); }
void TraceWriter::write(const PositionBatch& batch) { state_->write(batch); }
void TraceWriter::set_task_names(std::vector<std::string> names) { state_->set_task_names(std::move(names)); }
void TraceWriter::finish() { state_->finish(); }

}  // namespace specdec::traces
