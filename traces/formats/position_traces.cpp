#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/labels.hpp"
#include "traces/formats/printable.hpp"
#include "traces/owned_batch.hpp"
#include "traces/prompt_id.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view lengths_key = "acc_len";
constexpr std::string_view tokens_key = "generated_token_ids";
constexpr std::int64_t batch_rows = 65536;

/// An array of integers that is read front to back.
class IntegerArray {
 public:
  IntegerArray() = default;
  IntegerArray(const JsonLines& file, std::string name, dom::element value, std::int64_t smallest)
      : name_(std::move(name)), smallest_(smallest) {
    if (!value.is_array()) file.refuse(name_, value, "an array of integers");
    const dom::array array = value.get_array();
    next_ = array.begin();
    for ([[maybe_unused]] const dom::element entry : array) ++size_;
  }

  std::int64_t size() const { return size_; }
  void cut_to(std::int64_t size) { size_ = size; }

  std::int32_t take(const JsonLines& file) {
    constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    const dom::element value = *next_;
    const auto number = integer_of(value);
    if (!number || *number < smallest_ || *number > largest) {
      file.refuse(fmt::format("{}[{}]", name_, taken_), value,
                  fmt::format("an integer in [{}, {}]", smallest_, largest));
    }
    ++next_;
    ++taken_;
    return static_cast<std::int32_t>(*number);
  }

 private:
  std::string name_;
  std::int64_t smallest_ = 0;
  std::int64_t size_ = 0;
  std::int64_t taken_ = 0;
  dom::array::iterator next_;
};

class PositionTraces : public PositionSource {
 public:
  PositionTraces(const std::filesystem::path& path, const ArrayNames& options) : file_(path) {
    if (!file_.next()) {
      throw FileError(path, "file", "empty", "an object for each sequence");
    }
    key_ = choose_draft(options.draft_array);
    metadata_.draft_kind = key_.substr(position_trace_draft_prefix.size());
    file_.rewind();
  }

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {file_.path()}; }
  std::string format() const override { return "position traces"; }
  std::int64_t depths() const override { return every_depth; }

  std::vector<Note> notes() const override {
    if (cut_lines_ == 0) return {};
    return {{"lengths_behind_the_end",
             fmt::format("{}.{} goes on behind the end of {} in {} of the sequences; the {} lengths there are left out",
                         printable(key_), lengths_key, tokens_key, cut_lines_, cut_lengths_)}};
  }

  bool read(PositionBatch& batch) override {
    columns_.clear();
    while (columns_.size < batch_rows && next_place()) append_place();
    batch = columns_.view();
    batch.tier = Tier::accepted_length;
    if (!has_tokens_) batch.token = {};
    if (!has_tasks_) batch.task = {};
    if (!has_prompts_) batch.prompt = {};
    return batch.size > 0;
  }

 private:
  dom::object object() const { return read_object(file_, file_.document(), {"line"}); }

  static std::optional<dom::element> lengths_in(dom::element draft) {
    if (!draft.is_object()) return std::nullopt;
    const dom::object fields = draft.get_object();
    return find_member(fields, lengths_key);
  }

  /// The key of the requested draft, or of the only one of the first line.
  std::string choose_draft(const std::string& asked) const {
    const dom::object line = object();
    std::vector<std::string> drafts;
    for (const auto [key, value] : line) {
      std::string name(key);
      if (!name.starts_with(position_trace_draft_prefix) || !lengths_in(value)) continue;
      if (name == asked || name == std::string(position_trace_draft_prefix) + asked) return name;
      drafts.push_back(name);
    }
    if (drafts.size() == 1 && asked.empty()) return drafts.front();
    const std::string found = drafts.empty() ? "missing" : printable(fmt::format("{}", fmt::join(drafts, ", ")), 200);
    if (drafts.size() > 1 && asked.empty()) file_.refuse("acc_NAME", found, "one of them (draft_array says which)");
    file_.refuse("acc_NAME", found,
                 asked.empty() ? "an object that holds acc_len" : fmt::format("{}, as asked for", printable(asked)));
  }

  /// Advances to the next place, in this line or the next one that has any.
  bool next_place() {
    while (in_sequence_ == lengths_.size()) {
      if (!file_.next()) return false;
      begin_sequence();
    }
    return true;
  }

  void begin_sequence() {
    const dom::object line = object();
    const auto draft = find_member(line, key_);
    const auto lengths = draft ? lengths_in(*draft) : std::nullopt;
    if (!lengths) file_.refuse(fmt::format("{}.{}", printable(key_), lengths_key), "missing", "an array of integers");
    lengths_ = IntegerArray(file_, fmt::format("{}.{}", printable(key_), lengths_key), *lengths, 1);
    tokens_ = {};
    if (const auto tokens = find_member(line, tokens_key)) {
      tokens_ = IntegerArray(file_, std::string(tokens_key), *tokens, 0);
      has_tokens_ = true;
      if (tokens_.size() < lengths_.size()) {
        ++cut_lines_;
        cut_lengths_ += lengths_.size() - tokens_.size();
        lengths_.cut_to(tokens_.size());
      }
    }
    task_id_ = read_task(line);
    prompt_id_ = read_prompt(line);
    in_sequence_ = 0;
    if (lengths_.size() > 0) ++sequences_;
  }

  std::int32_t read_task(const dom::object& line) {
    for (const char* key : {"task", "category"}) {
      const auto value = find_member(line, key);
      if (!value) continue;
      if (!value->is_string()) file_.refuse(key, *value, "a string");
      const auto id = task_ids_.id_of(std::string_view(value->get_string()), metadata_.task_names);
      if (!id) file_.refuse(key, *value, TaskIds::expected());
      has_tasks_ = true;
      return *id;
    }
    return -1;
  }

  /// A name, a number, the prompt itself, its tokens or its messages.
  std::int64_t read_prompt(const dom::object& line) {
    for (const char* key : {"prompt", "prompt_token_ids"}) {
      const auto value = find_member(line, key);
      if (!value) continue;
      has_prompts_ = true;
      if (is_empty(*value)) file_.refuse(key, std::string(simdjson::minify(*value)), "a prompt that is not empty");
      return value->is_string() ? prompt_id(value->get_string()) : prompt_id(std::string(simdjson::minify(*value)));
    }
    return no_prompt;
  }

  void append_place() {
    ++columns_.size;
    columns_.sequence.push_back(sequences_ - 1);
    columns_.place.push_back(in_sequence_);
    columns_.accepted_length.push_back(lengths_.take(file_));
    columns_.token.push_back(tokens_.size() > 0 ? tokens_.take(file_) : -1);
    columns_.task.push_back(task_id_);
    columns_.prompt.push_back(prompt_id_);
    ++in_sequence_;
  }

  JsonLines file_;
  std::string key_;
  TraceMetadata metadata_;
  TaskIds task_ids_;
  IntegerArray lengths_;
  IntegerArray tokens_;
  std::int32_t task_id_ = -1;
  std::int64_t prompt_id_ = no_prompt;
  std::int64_t in_sequence_ = 0;
  std::int64_t sequences_ = 0;
  std::int64_t cut_lines_ = 0;
  std::int64_t cut_lengths_ = 0;
  bool has_tokens_ = false;
  bool has_tasks_ = false;
  bool has_prompts_ = false;
  OwnedBatch columns_;
};

}  // namespace

bool is_position_traces(std::string_view head) {
  if (!head.starts_with('{')) return false;
  const std::size_t draft = head.find("\"acc_");
  const std::size_t lengths = head.find("\"acc_len\"");
  if (draft != std::string_view::npos && lengths != std::string_view::npos) return draft < lengths;
  // The ids of a long prompt may fill everything that is seen.
  constexpr std::size_t cut_off = 60000;
  return head.starts_with("{\"prompt_token_ids\"") && head.size() >= cut_off &&
         head.find('\n') == std::string_view::npos;
}

std::unique_ptr<PositionSource> open_position_traces(const std::filesystem::path& path, const ArrayNames& options) {
  return std::make_unique<PositionTraces>(path, options);
}

}  // namespace specdec::traces
