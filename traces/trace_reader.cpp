#include "traces/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include "traces/column_reader.hpp"
#include "traces/formats/durable_file.hpp"
#include "traces/metadata_merger.hpp"
#include "traces/sequence_counter.hpp"
#include "traces/trace_columns.hpp"
#include "traces/trace_shard.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_it(const FileError& error) { throw error; }

/// The part of a shard that is kept between the check of all headers and its reading.
struct ShardEntry {
  fs::path path;
  std::int64_t positions = 0;
  /// True if a shard before it was left out.
  bool after_gap = false;
  /// True if it is the first of those that one argument named.
  bool in_new_argument = false;
};

/// 8 bytes of the header's length, then the header.
bool is_safetensors(const FileHead& head) {
  return head.bytes.size() > 8 && head.bytes[8] == '{' && head.bytes[7] == 0;
}

}  // namespace

class TraceReader::State {
 public:
  State(std::span<const fs::path> paths, ReaderOptions options)
      : options_(std::move(options)),
        sink_(options_.on_error ? ErrorSink(options_.on_error) : ErrorSink(throw_it)),
        columns_(sink_) {
    for (const fs::path& path : paths) list(path);
    check_headers();
    if (positions_ > 0) return;
    if (!left_out_) {
      sink_(FileError(paths.front(), FileError::whole_file(), "trace", "without positions",
                      "at least one position long"));
    } else if (!options_.on_error) {
      throw *left_out_;
    }
  }

  const TraceMetadata& metadata() const { return metadata_; }
  std::int64_t positions() const { return positions_; }
  std::int64_t depths() const { return depths_; }

  std::vector<fs::path> files() const {
    std::vector<fs::path> paths;
    for (const ShardEntry& entry : entries_) paths.push_back(entry.path);
    return paths;
  }

  std::vector<Note> notes() const {
    std::vector<Note> notes = notes_;
    sequences_.add_notes(notes);
    return notes;
  }

  bool read(PositionBatch& batch) {
    while (!shard_ || row_ == shard_->positions()) {
      if (!open_next()) return false;
    }
    const std::int64_t count = std::min(batch_rows_, shard_->positions() - row_);
    columns_.set_rows(row_, count);
    batch = {};
    batch.first = first_of_shard_ + row_;
    batch.size = count;
    batch.tier = shard_->tier();
    read_index(batch);
    read_rows(batch);
    read_top_k(batch);
    read_scalars(batch);
    read_rounds(batch);
    row_ += count;
    return true;
  }

  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const {
    const ShardTensors& t = shard_->tensors();
    const ModelTensors& model = role == Role::target ? t.target : t.draft;
    const Tensor* tensor = model.rows;
    if (tensor == nullptr) tensor = model.topk_logprobs;
    if (tensor == nullptr) tensor = model.token_logprob;
    if (tensor == nullptr) tensor = t.accepted_length;
    const std::int64_t row = position - first_of_shard_;
    const std::int64_t row_bytes = ColumnReader::width_of(*tensor) * size_of(tensor->type);
    return {shard_->file().path(), FileError::byte(tensor->offset + row * row_bytes),
            fmt::format("{} row {}", tensor->name, row), std::move(found), std::move(expected)};
  }

 private:
  void list(const fs::path& path) {
    std::vector<fs::path> shards;
    std::error_code error;
    if (fs::is_directory(path, error)) {
      shards = list_folder(path);
    } else {
      shards.push_back(path);
    }
    for (std::size_t i = 0; i < shards.size(); ++i) entries_.push_back({std::move(shards[i]), 0, false, i == 0});
  }

  std::vector<fs::path> list_folder(const fs::path& folder) {
    std::vector<fs::path> shards;
    std::vector<fs::path> strays;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const fs::path& file = entry.path();
      const std::string name = file.filename().string();
      if (name.starts_with('.')) {
        notes_.push_back({"hidden_file", file.string() + " is not read"});
      } else if (file.extension() == DurableFile::suffix) {
        notes_.push_back({"unfinished_shard", file.string() + " was never completed and is not read"});
      } else if (file.extension() == shard_extension && entry.is_regular_file()) {
        shards.push_back(file);
      } else {
        strays.push_back(file);
      }
    }
    if (error)
      throw FileError(folder, FileError::whole_file(), "folder", "unreadable (" + error.message() + ")", "readable");
    std::sort(shards.begin(), shards.end());
    std::sort(strays.begin(), strays.end());
    for (const fs::path& stray : strays) {
      sink_(FileError(folder, FileError::whole_file(), "entry", stray.filename().string(),
                      "a shard, named *.safetensors: a trace's folder holds nothing else"));
    }
    if (shards.empty()) {
      sink_(FileError(folder, FileError::whole_file(), "folder", "without shards", "one with *.safetensors files"));
    }
    return shards;
  }

  void check_headers() {
    MetadataMerger merger(sink_);
    std::vector<ShardEntry> good;
    bool gap = false;
    for (ShardEntry& entry : entries_) {
      entry.after_gap = std::exchange(gap, false);
      if (const std::optional<TraceShard> shard = checked_alone(entry.path)) {
        check_with_others(entry, *shard, merger);
        good.push_back(std::move(entry));
      } else {
        gap = true;
      }
    }
    entries_ = std::move(good);
    if (!entries_.empty()) metadata_ = merger.merged();
    merger.add_notes(notes_);
  }

  /// Empty if the shard is left out.
  std::optional<TraceShard> checked_alone(const fs::path& path) {
    try {
      TraceShard shard(path, sink_);
      if (shard.good()) return shard;
    } catch (const FileError& error) {
      if (!options_.salvage && !options_.on_error) throw with_hint(error);
      if (options_.on_error) options_.on_error(error);
      if (entries_.size() > 1) notes_.push_back({"shard_left_out", fmt::format("left out: {}", error.what())});
      if (!left_out_) left_out_ = error;
    }
    return std::nullopt;
  }

  void check_with_others(ShardEntry& entry, const TraceShard& shard, MetadataMerger& merger) {
    merger.add(entry.path, shard.metadata());
    if (shard.vocab()) merger.add_vocab(entry.path, *shard.vocab());
    require_same_index(entry.path, shard.tensors());
    entry.positions = shard.positions();
    positions_ += entry.positions;
    if (shard.tier() == Tier::accepted_length) depths_ = every_depth;
    if (shard.tier() == Tier::scalar)
      depths_ = std::max(depths_, ColumnReader::width_of(*shard.tensors().draft.token_logprob));
    for (const auto& [name, reason] : shard.unread()) {
      if (!unread_.insert(name).second) continue;
      notes_.push_back({"tensor_not_read", fmt::format("{}: {} is not read: {}", entry.path.string(), name, reason)});
    }
  }

  /// Sequences cannot be determined if only some shards have seq or pos.
  void require_same_index(const fs::path& path, const ShardTensors& tensors) {
    const bool has_seq = tensors.seq != nullptr;
    const bool has_pos = tensors.pos != nullptr;
    if (index_from_.empty()) {
      index_from_ = path;
      has_seq_ = has_seq;
      has_pos_ = has_pos;
    }
    for (const auto& [name, has, had] :
         {std::tuple(column::seq, has_seq, has_seq_), {column::pos, has_pos, has_pos_}}) {
      if (has == had) continue;
      sink_(FileError(path, FileError::whole_file(), name, has ? "present" : "absent",
                      fmt::format("{}, as in {}", had ? "present" : "absent", index_from_.string())));
    }
  }

  FileError with_hint(const FileError& error) const {
    if (entries_.size() < 2) return error;
    return {error.path(), error.location(), error.field(), error.found(),
            error.expected() + "; --salvage reads the shards that are good"};
  }

  /// Opens the next shard; false at the end.
  bool open_next() {
    if (shard_) first_of_shard_ += shard_->positions();
    row_ = 0;
    shard_.reset();
    columns_.set_shard(nullptr);
    if (next_ == entries_.size()) return false;
    const ShardEntry& entry = entries_[next_++];
    shard_.emplace(entry.path, throw_it);
    if (shard_->positions() != entry.positions) {
      throw FileError(entry.path, FileError::whole_file(), "file", "another than when it was opened", "left alone");
    }
    if (entry.positions == 0) return true;
    shard_->file().advise_sequential();
    columns_.set_shard(&*shard_);
    const bool numbered = shard_->tensors().seq != nullptr && shard_->tensors().pos != nullptr;
    if (entry.after_gap || (entry.in_new_argument && !numbered)) sequences_.break_here();
    batch_rows_ = std::clamp<std::int64_t>(options_.batch_bytes / std::max<std::int64_t>(wide_row_bytes(), 1), 1,
                                           std::max<std::int64_t>(options_.batch_positions, 1));
    read_vocab_map();
    return true;
  }

  /// For the columns with many numbers per position.
  std::int64_t wide_row_bytes() const {
    const ShardTensors& t = shard_->tensors();
    std::int64_t bytes = 0;
    for (const ModelTensors* model : {&t.target, &t.draft}) {
      for (const Tensor* tensor :
           {model->rows, model->topk_ids, model->topk_logprobs, model->at_other_topk, model->token_logprob}) {
        if (tensor != nullptr)
          bytes += ColumnReader::width_of(*tensor) * std::min(size_of(tensor->type), std::int64_t{4});
      }
    }
    return bytes;
  }

  void read_vocab_map() {
    vocab_map_.clear();
    const Tensor* tensor = shard_->tensors().vocab_map;
    if (tensor == nullptr) return;
    columns_.set_rows(0, tensor->shape[0]);
    const auto map = columns_.values(tensor, vocab_map_);
    vocab_map_.assign(map.begin(), map.end());
    const std::int64_t vocab = *shard_->vocab();
    std::vector<bool> seen(static_cast<std::size_t>(vocab));
    for (std::size_t i = 0; i < vocab_map_.size(); ++i) {
      const std::int32_t id = vocab_map_[i];
      const bool inside = 0 <= id && id < vocab;
      if (inside && !seen[static_cast<std::size_t>(id)]) {
        seen[static_cast<std::size_t>(id)] = true;
      } else {
        columns_.report(*tensor, static_cast<std::int64_t>(i), fmt::format("{}{}", id, inside ? " again" : ""),
                        fmt::format("in [0, {}), each once", vocab));
      }
    }
  }

  void read_index(PositionBatch& batch) {
    const ShardTensors& t = shard_->tensors();
    const auto seq = columns_.values(t.seq, seq_);
    const auto pos = columns_.values(t.pos, pos_);
    if (t.pos != nullptr) columns_.require_in<std::int64_t>(t.pos, pos, 0, std::numeric_limits<std::int64_t>::max());
    sequence_.resize(static_cast<std::size_t>(batch.size));
    place_.resize(sequence_.size());
    sequences_.number(seq, pos, sequence_, place_);
    batch.sequence = sequence_;
    batch.place = place_;
    batch.token = columns_.values(t.token, token_);
    columns_.require_in(t.token, batch.token, -1, last_id());
    batch.task = columns_.values(t.task, task_);
    const auto tasks = static_cast<std::int32_t>(metadata_.task_names.size());
    columns_.require_in(t.task, batch.task, -1, tasks == 0 ? std::numeric_limits<std::int32_t>::max() : tasks - 1);
    read_prompts(batch);
  }

  void read_prompts(PositionBatch& batch) {
    const Tensor* const tensor = shard_->tensors().prompt;
    batch.prompt = columns_.values(tensor, prompt_);
    for (std::size_t i = 0; i < batch.prompt.size(); ++i) {
      const std::int64_t prompt = batch.prompt[i];
      const bool goes_on = batch.place[i] > 0 && prompt_of_last_;
      if (goes_on && prompt != *prompt_of_last_) {
        columns_.report(*tensor, static_cast<std::int64_t>(i), fmt::format("{}", prompt),
                        fmt::format("{}, as before it in the sequence", *prompt_of_last_));
      }
      prompt_of_last_ = prompt;
    }
    if (batch.prompt.empty()) prompt_of_last_.reset();
  }

  std::int32_t last_id() const {
    constexpr std::int32_t largest = std::numeric_limits<std::int32_t>::max();
    return metadata_.vocab_size ? static_cast<std::int32_t>(*metadata_.vocab_size - 1) : largest;
  }

  void read_rows(PositionBatch& batch) {
    const ShardTensors& t = shard_->tensors();
    if (t.target.rows == nullptr) return;
    read_rows(t.target, batch.size, target_rows_, batch.target_rows);
    read_rows(t.draft, batch.size, draft_rows_, batch.draft_rows);
    batch.draft_vocab_map = vocab_map_;
  }

  void read_rows(const ModelTensors& model, std::int64_t count, std::vector<float>& buffer, Rows& rows) {
    const Tensor& tensor = *model.rows;
    rows.space = model.space;
    rows.type = tensor.type;
    rows.vocab = tensor.shape[1];
    rows.sum_tolerance = model.sum_tolerance;
    if (tensor.type == ElementType::f64) {
      rows.type = ElementType::f32;
      rows.bytes = std::as_bytes(columns_.values(&tensor, buffer));
      return;
    }
    const std::int64_t row_bytes = rows.vocab * size_of(tensor.type);
    rows.bytes =
        tensor.bytes.subspan(static_cast<std::size_t>(row_ * row_bytes), static_cast<std::size_t>(count * row_bytes));
  }

  void read_top_k(PositionBatch& batch) {
    const ShardTensors& t = shard_->tensors();
    read_top_k(t.target, target_top_k_, batch.target_top_k);
    read_top_k(t.draft, draft_top_k_, batch.draft_top_k);
  }

  struct TopKBuffers {
    std::vector<std::int32_t> ids;
    std::vector<float> logprobs;
    std::vector<float> tail;
    std::vector<float> at_other;
  };

  void read_top_k(const ModelTensors& model, TopKBuffers& buffers, TopK& top) {
    if (model.topk_ids == nullptr) return;
    top.k = model.topk_ids->shape[1];
    top.ids = columns_.values(model.topk_ids, buffers.ids);
    top.logprobs = columns_.values(model.topk_logprobs, buffers.logprobs);
    top.tail_logprob = columns_.values(model.tail_logprob, buffers.tail);
    top.at_other = columns_.values(model.at_other_topk, buffers.at_other);
    columns_.require_in(model.topk_ids, top.ids, -1, last_id());
    columns_.require_logprobs(model.topk_logprobs, top.logprobs);
    columns_.require_logprobs_or_nan(model.tail_logprob, top.tail_logprob);
    columns_.require_logprobs_or_nan(model.at_other_topk, top.at_other);
    require_padding_without_mass(model, top);
    require_ids_once(model, top);
  }

  void require_padding_without_mass(const ModelTensors& model, const TopK& top) {
    constexpr float floor = -9999;
    for (std::size_t i = 0; i < top.ids.size(); ++i) {
      if (top.ids[i] >= 0 || !(top.logprobs[i] > floor)) continue;
      columns_.report(*model.topk_logprobs, static_cast<std::int64_t>(i), fmt::format("{}", top.logprobs[i]),
                      "-inf where the id is -1");
    }
  }

  void require_ids_once(const ModelTensors& model, const TopK& top) {
    const auto k = static_cast<std::size_t>(top.k);
    for (std::size_t begin = 0; begin < top.ids.size(); begin += k) {
      const std::int64_t repeat = repeats_.first_repeat(top.ids.subspan(begin, k));
      if (repeat < 0) continue;
      const std::size_t at = begin + static_cast<std::size_t>(repeat);
      columns_.report(*model.topk_ids, static_cast<std::int64_t>(at), fmt::format("{} again", top.ids[at]),
                      "each id once in a row");
    }
  }

  void read_scalars(PositionBatch& batch) {
    const ShardTensors& t = shard_->tensors();
    batch.target_token_logprob = columns_.values(t.target.token_logprob, target_token_logprob_);
    columns_.require_logprobs(t.target.token_logprob, batch.target_token_logprob);
    read_draft_token_logprob(batch);
    batch.overlap = columns_.values(t.overlap, overlap_);
    const auto most = t.overlap == nullptr ? 1.0F : static_cast<float>(1 + row_sum_tolerance(t.overlap->type));
    columns_.require(
        t.overlap, batch.overlap, [=](float value) { return std::isnan(value) || (0 <= value && value <= most); },
        "in [0, 1], or NaN where unknown");
    batch.target_token_rank = columns_.values(t.target.token_rank, target_token_rank_);
    batch.draft_token_rank = columns_.values(t.draft.token_rank, draft_token_rank_);
    const std::int32_t last_rank = metadata_.vocab_size ? last_id() + 1 : last_id();
    columns_.require_in(t.target.token_rank, batch.target_token_rank, 0, last_rank);
    columns_.require_in(t.draft.token_rank, batch.draft_token_rank, 0, last_rank);
    batch.accepted_length = columns_.values(t.accepted_length, accepted_length_);
    columns_.require_in(t.accepted_length, batch.accepted_length, 1, std::numeric_limits<std::int32_t>::max());
  }

  void read_draft_token_logprob(PositionBatch& batch) {
    const Tensor* tensor = shard_->tensors().draft.token_logprob;
    batch.draft_token_logprob = columns_.values(tensor, draft_token_logprob_);
    if (tensor == nullptr) return;
    batch.depths = ColumnReader::width_of(*tensor);
    if (batch.depths == 1) return columns_.require_logprobs(tensor, batch.draft_token_logprob);
    columns_.require_logprobs_or_nan(tensor, batch.draft_token_logprob);
    for (std::int64_t i = 0; i < batch.size; ++i) {
      const std::int64_t depths_before = std::min(place_[static_cast<std::size_t>(i)] + 1, batch.depths);
      for (std::int64_t j = 0; j < depths_before; ++j) {
        const std::int64_t at = i * batch.depths + j;
        if (!std::isnan(batch.draft_token_logprob[static_cast<std::size_t>(at)])) continue;
        columns_.report(*tensor, at, "nan", "a log-probability: only depths beyond the sequence's begin are NaN");
      }
    }
  }

  void read_rounds(PositionBatch& batch) {
    const ShardTensors& t = shard_->tensors();
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    batch.step_drafted = columns_.values(t.step_drafted, step_drafted_);
    batch.step_accepted = columns_.values(t.step_accepted, step_accepted_);
    batch.step_time_ns = columns_.values(t.step_time_ns, step_time_ns_);
    columns_.require_in(t.step_drafted, batch.step_drafted, -1, most);
    columns_.require_in<std::int64_t>(t.step_time_ns, batch.step_time_ns, -1, std::numeric_limits<std::int64_t>::max());
    for (std::size_t i = 0; i < batch.step_drafted.size(); ++i) {
      const std::int32_t drafted = batch.step_drafted[i];
      const std::int32_t accepted = batch.step_accepted[i];
      const auto at = static_cast<std::int64_t>(i);
      const bool begins = drafted >= 0;
      if (begins ? accepted < 0 || accepted > drafted : accepted != -1) {
        columns_.report(*t.step_accepted, at, fmt::format("{}", accepted),
                        begins ? fmt::format("in [0, {}] as step.drafted is", drafted) : "-1 as step.drafted is");
      }
      if (place_[i] == 0) inside_round_ = 0;
      if (begins && inside_round_ > 0) {
        columns_.report(*t.step_drafted, at, fmt::format("{}", drafted),
                        fmt::format("-1: the round before emits {} more", inside_round_));
      }
      inside_round_ = begins ? accepted : std::max(inside_round_ - 1, 0);
    }
  }

  ReaderOptions options_;
  ErrorSink sink_;
  std::vector<ShardEntry> entries_;
  TraceMetadata metadata_;
  std::vector<Note> notes_;
  std::int64_t positions_ = 0;
  std::int64_t depths_ = 1;
  /// The reason why the first of the omitted shards is left out.
  std::optional<FileError> left_out_;
  std::set<std::string> unread_;
  fs::path index_from_;
  bool has_seq_ = false;
  bool has_pos_ = false;

  ColumnReader columns_;
  SequenceCounter sequences_;
  RepeatFinder repeats_;
  std::size_t next_ = 0;
  std::optional<TraceShard> shard_;
  std::int64_t first_of_shard_ = 0;
  std::int64_t row_ = 0;
  std::int64_t batch_rows_ = 1;
  /// That of the previous position, if its shard has prompts.
  std::optional<std::int64_t> prompt_of_last_;
  /// Accepted tokens of the current round that are still to come.
  std::int32_t inside_round_ = 0;

  // Data that batches refer to if the file itself cannot serve.
  std::vector<std::int64_t> seq_, pos_, sequence_, place_, prompt_, step_time_ns_;
  std::vector<std::int32_t> token_, task_, vocab_map_, target_token_rank_, draft_token_rank_, step_drafted_,
      step_accepted_, accepted_length_;
  std::vector<float> target_rows_, draft_rows_, target_token_logprob_, draft_token_logprob_, overlap_;
  TopKBuffers target_top_k_, draft_top_k_;
};

TraceReader::TraceReader(std::span<const fs::path> paths, ReaderOptions options) {
  if (paths.empty()) throw std::invalid_argument("TraceReader: paths is empty, but must name a file or folder");
  state_ = std::make_unique<State>(paths, std::move(options));
}
TraceReader::TraceReader(const fs::path& path, ReaderOptions options)
    : TraceReader(std::span(&path, 1), std::move(options)) {}
TraceReader::~TraceReader() = default;

const TraceMetadata& TraceReader::metadata() const { return state_->metadata(); }
std::vector<fs::path> TraceReader::files() const { return state_->files(); }
std::vector<Note> TraceReader::notes() const { return state_->notes(); }
std::optional<std::int64_t> TraceReader::positions() const { return state_->positions(); }
std::int64_t TraceReader::depths() const { return state_->depths(); }
bool TraceReader::read(PositionBatch& batch) { return state_->read(batch); }
FileError TraceReader::refusal(std::int64_t position, Role role, std::string found, std::string expected) const {
  return state_->refusal(position, role, std::move(found), std::move(expected));
}

TraceFormat trace_format() {
  return {"specdec-trace (safetensors)", [](const FileHead& head) { return head.folder || is_safetensors(head); },
          [](std::span<const fs::path> files, const OpenOptions& options) -> std::unique_ptr<PositionSource> {
            if (options.pair()) {
              throw FileError(options.target, FileError::whole_file(), "file", "a specdec-trace",
                              "given alone: a trace holds both models");
            }
            ReaderOptions reader_options;
            reader_options.salvage = options.salvage;
            reader_options.on_error = options.on_error;
            return std::make_unique<TraceReader>(files, std::move(reader_options));
          }};
}

}  // namespace specdec::traces
