#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/labels.hpp"
#include "traces/formats/position_columns.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view format_name = "specdec-record";

/// A batch ends with the request that fills it.
constexpr std::int64_t positions_of_a_batch = 1 << 16;

/// The first line as the strings of a trace's metadata, which are checked in one place for both formats.
TraceMetadata read_metadata(const JsonLines& file) {
  const dom::object header = read_object(file, file.document(), {"line"});
  const dom::element format = member_of(file, header, "format", {});
  if (read_string(file, format, {"format"}) != format_name) file.refuse("format", format, "specdec-record");
  const dom::element version = member_of(file, header, "version", {});
  if (integer_of(version) != 1) file.refuse("version", version, "1");
  std::map<std::string, std::string> strings;
  for (const auto& [key, value] : header) {
    if (key == "format" || key == "version" || key == "tasks" || value.is_null()) continue;
    const std::string name = key == "target_model" ? "p.model" : key == "draft_model" ? "q.model" : std::string(key);
    strings[name] = value.is_string() ? std::string(read_string(file, value, {key})) : simdjson::minify(value);
  }
  return metadata_from_strings(strings, file.path());
}

class RequestRecord : public PositionSource {
 public:
  explicit RequestRecord(const std::filesystem::path& path) : file_(path) {
    if (!file_.next()) {
      throw FileError(path, "file", "empty", "a first line with format and version");
    }
    metadata_ = read_metadata(file_);
  }

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {file_.path()}; }
  std::string format() const override { return std::string(format_name); }

  bool read(PositionBatch& batch) override {
    columns_.clear();
    while (columns_.size() < positions_of_a_batch && file_.next()) read_request();
    batch = columns_.shown(Tier::scalar);
    return batch.size > 0;
  }

  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    return {file_.path(), FileError::line(columns_.lines_of(position).target),
            role == Role::target ? "target.logprobs" : "draft.logprobs", std::move(found), std::move(expected)};
  }

 private:
  void read_request() {
    const dom::object request = read_object(file_, file_.document(), {"line"});
    const dom::array tokens = read_array(file_, member_of(file_, request, "token_ids", {}), {"token_ids"});
    JsonField field{"token_ids"};
    for (const dom::element token : tokens) {
      ++field.index;
      columns_.batch.token.push_back(read_token_id(file_, token, field));
    }
    read_model(request, "target", columns_.batch.target_token_logprob, columns_.batch.target_token_rank);
    read_model(request, "draft", columns_.batch.draft_token_logprob, columns_.batch.draft_token_rank);
    columns_.end_sequence({task_of(request), prompt_of(request)}, file_.line(), file_.line());
  }

  std::int32_t task_of(dom::object request) {
    const auto value = find_member(request, "task");
    if (!value) return -1;
    const auto id = tasks_.id_of(read_string(file_, *value, {"task"}), metadata_.task_names);
    if (!id) file_.refuse("task", *value, TaskIds::expected());
    return *id;
  }

  std::int64_t prompt_of(dom::object request) const {
    const auto value = find_member(request, "prompt");
    if (!value) return no_prompt;
    if (const auto number = integer_of(*value)) return *number;
    return prompt_id(read_string(file_, *value, {"prompt"}));
  }

  /// Appends a model's columns, which must be as long as the tokens.
  void read_model(dom::object request, std::string_view key, std::vector<float>& logprobs,
                  std::vector<std::int32_t>& ranks) {
    const dom::object model = read_object(file_, member_of(file_, request, key, {}), {key});
    const std::string logprobs_name = fmt::format("{}.logprobs", key);
    JsonField field{logprobs_name};
    for (const dom::element value : read_array(file_, member_of(file_, model, "logprobs", {key}), field)) {
      ++field.index;
      logprobs.push_back(read_log_probability(file_, value, field));
    }
    check_length(logprobs.size(), field);
    const std::string ranks_name = fmt::format("{}.ranks", key);
    field = {ranks_name};
    if (const auto given = find_member(model, "ranks")) {
      for (const dom::element value : read_array(file_, *given, field)) {
        ++field.index;
        ranks.push_back(read_rank(file_, value, field));
      }
      check_length(ranks.size(), field);
    } else {
      ranks.resize(columns_.batch.token.size(), 0);
    }
  }

  void check_length(std::size_t columns_length, const JsonField& field) const {
    if (columns_length == columns_.batch.token.size()) return;
    const std::int64_t length = field.index + 1;
    const auto excess = static_cast<std::int64_t>(columns_length) - columns_.size();
    file_.refuse(std::string(field.list), fmt::format("{} long", length),
                 fmt::format("{} long, as token_ids is", length - excess));
  }

  JsonLines file_;
  TraceMetadata metadata_;
  TaskIds tasks_;
  PositionColumns columns_;
};

}  // namespace

bool is_request_record(std::string_view head) {
  const std::size_t format = head.find("\"specdec-record\"");
  return format != std::string_view::npos && mentions_key(head, "format") && format < head.find('\n');
}

std::unique_ptr<PositionSource> open_request_record(const std::filesystem::path& path) {
  return std::make_unique<RequestRecord>(path);
}

}  // namespace specdec::traces
