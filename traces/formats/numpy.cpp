#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/column_names.hpp"
#include "traces/formats/labels.hpp"
#include "traces/formats/log_probability.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/narrowed_rows.hpp"
#include "traces/formats/npy_array.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/zip_archive.hpp"
#include "traces/prompt_id.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::string_view npy_suffix = ".npy";
/// An archive begins with its first entry's local header, an empty one with its end record.
constexpr std::string_view zip_magic = "PK\3\4";
constexpr std::string_view empty_zip_magic = "PK\5\6";

/// Bytes of one role's rows in one batch, unless a single row is longer.
constexpr std::int64_t batch_bytes = std::int64_t{8} << 20U;
constexpr std::int64_t most_batch_rows = 65536;

ElementType element_type(NpyType of_float) {
  if (of_float.bytes == 8) return ElementType::f64;
  return of_float.bytes == 4 ? ElementType::f32 : ElementType::f16;
}

/// The arrays of a recording; optional ones may be missing.
struct Arrays {
  NpyArray target;
  NpyArray draft;
  RowSpace target_space;
  RowSpace draft_space;
  std::map<PairColumn, NpyArray> index;
  /// Positions of each text where rows are [texts, positions, vocabulary].
  std::optional<std::int64_t> text_length;

  void join_texts() {
    if (target.shape().size() != 3 || draft.shape().size() != 3) return;
    const auto is_of_texts = [&](const NpyArray& array) {
      return array.shape().size() >= 2 &&
             std::equal(array.shape().begin(), array.shape().begin() + 2, target.shape().begin());
    };
    if (!is_of_texts(draft)) return;
    text_length = target.shape()[1];
    for (auto& [column, array] : index)
      if (is_of_texts(array)) array.join_first_axes();
    draft.join_first_axes();
    target.join_first_axes();
  }
};

/// One model's array: whole rows, or one number per position.
class ModelArray {
 public:
  ModelArray(NpyArray array, RowSpace space) : array_(std::move(array)), space_(space) {
    const auto shape = array_.shape();
    if (!array_.type().is_float()) array_.refuse("element type", array_.type().text(), "a float");
    if (shape.size() != 1 && shape.size() != 2) {
      array_.refuse("shape", shape_text(shape),
                    "[positions, vocabulary], [texts, positions, vocabulary] or [positions]");
    }
    if (whole_rows() && shape[1] > largest_decoded_vocab) {
      array_.refuse("vocabulary", fmt::format("{}", shape[1]), fmt::format("at most {}", largest_decoded_vocab));
    }
    if (!whole_rows() && space == RowSpace::logits) {
      array_.refuse("shape", shape_text(shape),
                    "[positions, vocabulary] for logits: of a single one the normaliser is lost");
    }
  }

  const NpyArray& array() const { return array_; }
  bool whole_rows() const { return array_.shape().size() == 2; }
  std::int64_t vocab() const { return array_.row_elements(); }

  /// Reads the next rows into a column of the batch.
  void read(std::int64_t count, Rows& rows) {
    show_rows(array_.read(count), element_type(array_.type()), space_, vocab(), values_, rows);
  }

  /// The next numbers, as log-probabilities; `first` is the first one's position.
  std::span<const float> read_numbers(std::int64_t first, std::int64_t count) {
    const auto bytes = array_.read(count);
    values_.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double value =
          number_at(element_type(array_.type()), bytes.data() + i * static_cast<std::size_t>(array_.type().bytes));
      const auto logprob = logprob_of(value, space_);
      if (!logprob) {
        array_.refuse(row_name(first + static_cast<std::int64_t>(i)), fmt::format("{}", value),
                      std::string(expected_in(space_)));
      }
      values_[i] = *logprob;
      sum_ += std::exp(static_cast<double>(*logprob));
    }
    return values_;
  }

  /// Whether the numbers read so far sum to 1, as those of a distribution do, and hardly those of different tokens.
  bool is_distribution() const { return std::abs(sum_ - 1) < 1e-5; }

  static std::string row_name(std::int64_t position) { return fmt::format("row {}", position); }

 private:
  NpyArray array_;
  RowSpace space_;
  std::vector<float> values_;
  double sum_ = 0;
};

class NumpySource : public PositionSource {
 public:
  /// @param open  keeps the mapped files alive
  NumpySource(std::string format, std::vector<std::filesystem::path> files, std::shared_ptr<const void> open,
              Arrays arrays, std::vector<Note> notes)
      : format_(std::move(format)),
        files_(std::move(files)),
        open_(std::move(open)),
        text_length_(arrays.text_length),
        target_(std::move(arrays.target), arrays.target_space),
        draft_(std::move(arrays.draft), arrays.draft_space),
        index_(std::move(arrays.index)),
        notes_(std::move(notes)) {
    check_shapes();
    if (target_.whole_rows()) metadata_.vocab_size = target_.vocab();
    const std::int64_t row_bytes = target_.vocab() * target_.array().type().bytes;
    batch_rows_ = std::clamp<std::int64_t>(batch_bytes / row_bytes, 1, most_batch_rows);
  }

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return files_; }
  std::string format() const override { return format_; }
  std::vector<Note> notes() const override { return notes_; }
  std::optional<std::int64_t> positions() const override { return rows(); }

  bool read(PositionBatch& batch) override {
    batch = {};
    batch.first = next_;
    batch.size = std::min(batch_rows_, rows() - next_);
    if (batch.size == 0) return false;
    read_labels(batch);
    read_tokens(batch);
    read_tasks(batch);
    read_prompts(batch);
    if (target_.whole_rows()) {
      batch.tier = Tier::full;
      target_.read(batch.size, batch.target_rows);
      draft_.read(batch.size, batch.draft_rows);
    } else {
      batch.target_token_logprob = target_.read_numbers(next_, batch.size);
      batch.draft_token_logprob = draft_.read_numbers(next_, batch.size);
    }
    next_ += batch.size;
    if (next_ == rows() && rows() > 1 && !target_.whole_rows() && target_.is_distribution() && draft_.is_distribution())
      target_.array().refuse("shape",
                             fmt::format("[{}], of a distribution that sums to 1, as the draft's does", rows()),
                             fmt::format("[1, {}], a row for each position: p[None, :]", rows()));

    return true;
  }

  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    const NpyArray& array = (role == Role::target ? target_ : draft_).array();
    return {array.path(), printable(array.name()) + ": " + ModelArray::row_name(position), std::move(found),
            std::move(expected)};
  }

 private:
  std::int64_t rows() const { return target_.array().rows(); }

  void check_shapes() const {
    const NpyArray& target = target_.array();
    const NpyArray& draft = draft_.array();
    if (!std::equal(target.shape().begin(), target.shape().end(), draft.shape().begin(), draft.shape().end())) {
      draft.refuse("shape", shape_text(draft.shape()),
                   fmt::format("{}, as {} has", shape_text(target.shape()), printable(target.name())));
    }
    for (const auto& [column, array] : index_) {
      if (array.shape().size() != 1 || array.rows() != rows()) {
        array.refuse("shape", shape_text(array.shape()),
                     fmt::format("[{}], one for each position of {}", rows(), printable(target.name())));
      }
      const bool named = column == PairColumn::task || column == PairColumn::sequence || column == PairColumn::prompt;
      const bool text = named && array.type().is_string();
      if (!text && !array.type().is_integer()) array.refuse("element type", array.type().text(), "an integer");
    }
  }

  /// Reads the next rows of an optional array and passes each to `take`; false if there is no such array.
  template <class Take>
  bool for_each(PairColumn column, std::int64_t count, const Take& take) {
    const auto found = index_.find(column);
    if (found == index_.end()) return false;
    NpyArray& array = found->second;
    const auto bytes = array.read(count);
    for (std::int64_t i = 0; i < count; ++i) take(array, i, bytes.data() + i * array.type().bytes);
    return true;
  }

  static std::string label_at(const NpyArray& array, const std::byte* from) {
    return array.type().is_string() ? string_at(array.type(), from) : fmt::format("{}", integer_at(array.type(), from));
  }

  void read_labels(PositionBatch& batch) {
    const auto size = static_cast<std::size_t>(batch.size);
    sequence_.resize(size);
    place_.resize(size);
    std::vector<std::string> labels;
    const bool has_labels = for_each(
        PairColumn::sequence, batch.size,
        [&](const NpyArray& array, std::int64_t, const std::byte* from) { labels.push_back(label_at(array, from)); });
    for (std::int64_t i = 0; !has_labels && text_length_ && i < batch.size; ++i)
      labels.push_back(fmt::format("{}", (next_ + i) / *text_length_));
    const bool has_places =
        for_each(PairColumn::place, batch.size, [&](const NpyArray& array, std::int64_t i, const std::byte* from) {
          place_[static_cast<std::size_t>(i)] = integer_at(array.type(), from);
        });
    for (std::size_t i = 0; i < size; ++i) {
      const auto error = numbers_.next(labels.empty() ? std::nullopt : std::optional<std::string_view>(labels[i]),
                                       has_places ? std::optional(place_[i]) : std::nullopt);
      if (error) refuse_label(*error, next_ + static_cast<std::int64_t>(i));
      sequence_[i] = numbers_.sequence();
      place_[i] = numbers_.place();
    }
    batch.sequence = sequence_;
    batch.place = place_;
  }

  [[noreturn]] void refuse_label(const LabelError& error, std::int64_t position) const {
    const auto column = error.field == "pos" ? PairColumn::place : PairColumn::sequence;
    index_.at(column).refuse(ModelArray::row_name(position), error.found, error.expected);
  }

  void read_tokens(PositionBatch& batch) {
    token_.resize(static_cast<std::size_t>(batch.size));
    const std::int64_t limit =
        target_.whole_rows() ? target_.vocab() : std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
    const auto take = [&](const NpyArray& array, std::int64_t i, const std::byte* from) {
      const std::int64_t token = integer_at(array.type(), from);
      if (token < -1 || token >= limit) {
        array.refuse(ModelArray::row_name(next_ + i), fmt::format("{}", token),
                     fmt::format("a token in [0, {}], or -1 where unknown", limit - 1));
      }
      token_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(token);
    };
    if (for_each(PairColumn::token, batch.size, take)) batch.token = token_;
  }

  void read_tasks(PositionBatch& batch) {
    task_.resize(static_cast<std::size_t>(batch.size));
    const auto take = [&](const NpyArray& array, std::int64_t i, const std::byte* from) {
      const bool none = array.type().is_integer() && integer_at(array.type(), from) < 0;
      const std::string name = none ? "" : label_at(array, from);
      const auto id = task_ids_.id_of(name, metadata_.task_names);
      if (!id) array.refuse(ModelArray::row_name(next_ + i), printable(name), TaskIds::expected());
      task_[static_cast<std::size_t>(i)] = *id;
    };
    if (for_each(PairColumn::task, batch.size, take)) batch.task = task_;
  }

  void read_prompts(PositionBatch& batch) {
    prompt_.resize(static_cast<std::size_t>(batch.size));
    const auto take = [&](const NpyArray& array, std::int64_t i, const std::byte* from) {
      const auto at = static_cast<std::size_t>(i);
      const std::string label = label_at(array, from);
      prompt_[at] = prompt_id(label);
      if (batch.place[at] > 0 && prompt_[at] != prompt_of_last_) {
        array.refuse(ModelArray::row_name(next_ + i), printable(label), "the same for all rows of a sequence");
      }
      prompt_of_last_ = prompt_[at];
    };
    if (for_each(PairColumn::prompt, batch.size, take)) batch.prompt = prompt_;
  }

  std::string format_;
  std::vector<std::filesystem::path> files_;
  std::shared_ptr<const void> open_;
  std::optional<std::int64_t> text_length_;
  ModelArray target_;
  ModelArray draft_;
  std::map<PairColumn, NpyArray> index_;
  std::vector<Note> notes_;
  TraceMetadata metadata_;
  std::int64_t batch_rows_ = 1;
  std::int64_t next_ = 0;
  SequenceNumbers numbers_;
  TaskIds task_ids_;
  std::vector<std::int64_t> sequence_;
  std::vector<std::int64_t> place_;
  std::vector<std::int32_t> token_;
  std::vector<std::int32_t> task_;
  std::vector<std::int64_t> prompt_;
  std::int64_t prompt_of_last_ = no_prompt;
};

/// The kind of an array's numbers, from its name or the options.
RowSpace space_of(const std::filesystem::path& path, const std::string& name, const ArrayNames& options) {
  const auto named = space_named_in(name);
  if (named && options.space && *named != *options.space) {
    throw FileError(path, printable(name), fmt::format("{} by name", name_of(*named)),
                    fmt::format("{}, as asked for", name_of(*options.space)));
  }
  if (named) return *named;
  if (options.space) return *options.space;
  if (name == "p" || name == "q") return RowSpace::probabilities;
  throw FileError(
      path, printable(name), "a name that does not say what the numbers are",
      "one that ends in _probs, _logprobs or _logits (or --numbers says probabilities, logprobs or logits)");
}

/// Assigns the arrays of one archive by their names.
class ArchiveReader {
 public:
  ArchiveReader(std::shared_ptr<const ZipArchive> archive, const ArrayNames& options)
      : archive_(std::move(archive)), options_(options) {
    for (const ArchivedBytes& entry : archive_->entries()) assign(entry);
  }

  std::unique_ptr<PositionSource> open() {
    const ArchivedBytes& target = entry_of(Role::target);
    const ArchivedBytes& draft = entry_of(Role::draft);
    Arrays arrays = {array(target), array(draft), space(target), space(draft), {}, {}};
    for (const auto& [column, entry] : index_) arrays.index.emplace(column, array(*entry));
    arrays.join_texts();
    return std::make_unique<NumpySource>("NPZ", std::vector{archive_->path()}, archive_, std::move(arrays), notes());
  }

 private:
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const {
    throw FileError(archive_->path(), std::move(field), std::move(found), std::move(expected));
  }

  static std::string array_name(const ArchivedBytes& entry) {
    return entry.name.substr(0, entry.name.size() - npy_suffix.size());
  }
  RowSpace space(const ArchivedBytes& entry) const { return space_of(archive_->path(), array_name(entry), options_); }
  NpyArray array(const ArchivedBytes& entry) const {
    return {archive_->path(), entry.name, entry.offset, ByteStream(entry)};
  }

  void assign(const ArchivedBytes& entry) {
    const std::string name = entry.name.ends_with(npy_suffix) ? array_name(entry) : "";
    const auto model = model_column(name);
    const auto column = index_column(name);
    if (!name.empty() && name == options_.target_array) {
      candidates_[Role::target] = {&entry};
    } else if (!name.empty() && name == options_.draft_array) {
      candidates_[Role::draft] = {&entry};
    } else if (model && !model->rank && named_array(model->role).empty()) {
      candidates_[model->role].push_back(&entry);
    } else if (column && *column != PairColumn::overlap && index_.emplace(*column, &entry).second) {
      return;
    } else {
      not_read_.push_back(printable(entry.name));
    }
  }

  const std::string& named_array(Role role) const {
    return role == Role::target ? options_.target_array : options_.draft_array;
  }

  const ArchivedBytes& entry_of(Role role) const {
    const auto found = candidates_.find(role);
    const std::string field = fmt::format("the {}'s array", name_of(role));
    if (found == candidates_.end()) {
      std::vector<std::string> names;
      for (const ArchivedBytes& entry : archive_->entries()) names.push_back(printable(entry.name));
      if (names.size() == 1 && named_array(role).empty()) {
        refuse(
            "file", fmt::format("an array of one model, {}", names.front()),
            "of both, such as p_logprobs and q_logprobs; arrays of one model each are NPY files, given as a pair, the "
            "target's and the draft's");
      }
      const std::string wanted = named_array(role).empty()
                                     ? fmt::format("named like {0}, {0}_logprobs or {0}_logits, or as {1}_array says",
                                                   role == Role::target ? 'p' : 'q', name_of(role))
                                     : named_array(role) + ", as asked for";
      refuse(field,
             fmt::format("not among {}",
                         names.empty() ? "no arrays" : printable(fmt::format("{}", fmt::join(names, ", ")), 200)),
             wanted);
    }
    if (found->second.size() > 1) {
      refuse(field, fmt::format("{} or {}", printable(found->second[0]->name), printable(found->second[1]->name)),
             fmt::format("one array ({}_array says which)", name_of(role)));
    }
    return *found->second.front();
  }

  std::vector<Note> notes() const {
    if (not_read_.empty()) return {};
    return {{"arrays_not_read", fmt::format("not read: {}", fmt::join(not_read_, ", "))}};
  }

  std::shared_ptr<const ZipArchive> archive_;
  const ArrayNames& options_;
  std::map<Role, std::vector<const ArchivedBytes*>> candidates_;
  std::map<PairColumn, const ArchivedBytes*> index_;
  std::vector<std::string> not_read_;
};

}  // namespace

bool is_npy(std::string_view head) { return head.starts_with(npy_magic); }

bool is_npz(std::string_view head) { return head.starts_with(zip_magic) || head.starts_with(empty_zip_magic); }

std::unique_ptr<PositionSource> open_npz(const std::filesystem::path& path, const ArrayNames& options) {
  return ArchiveReader(std::make_shared<const ZipArchive>(path), options).open();
}

std::unique_ptr<PositionSource> open_npy_pair(const std::filesystem::path& target, const std::filesystem::path& draft,
                                              const ArrayNames& options) {
  auto files = std::make_shared<const std::pair<MappedFile, MappedFile>>(MappedFile(target), MappedFile(draft));
  const auto array = [](const std::filesystem::path& path, const MappedFile& file) {
    return NpyArray(path, path.filename().string(), 0, ByteStream(file.bytes()));
  };
  Arrays arrays = {array(target, files->first),
                   array(draft, files->second),
                   space_of(target, target.stem().string(), options),
                   space_of(draft, draft.stem().string(), options),
                   {},
                   {}};
  arrays.join_texts();
  return std::make_unique<NumpySource>("NPY pair", std::vector{target, draft}, files, std::move(arrays),
                                       std::vector<Note>());
}

}  // namespace specdec::traces
