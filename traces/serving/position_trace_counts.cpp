#include <fmt/format.h>

#include <string>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::traces {

// Position traces (traces/formats/recording_formats.hpp) as counts: from acc_len[t], the tokens that a round starting
// at t puts out, the rounds of each sequence are walked from its beginning, t += acc_len[t]. The last one may go beyond
// the places that were measured. One unit (CountUnit::request) a sequence and draft; the label "model_name" is the
// draft's name without "acc_", "category" the sequence's task.

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view position_traces_format = "position traces";

/// The drafts that the first line has lengths of.
std::vector<std::string> drafts_of(const std::filesystem::path& path) {
  JsonLines file(path);
  if (!file.next()) throw FileError(path, "file", "empty", "an object for each sequence");
  std::vector<std::string> drafts;
  for (const auto [key, value] : read_object(file, file.document(), {"line"})) {
    if (!key.starts_with(position_trace_draft_prefix) || !value.is_object()) continue;
    const dom::object draft = value;
    if (find_member(draft, "acc_len")) drafts.emplace_back(key);
  }
  if (drafts.empty()) file.refuse("acc_NAME", "missing", "an object that holds acc_len");
  return drafts;
}

/// Walks the rounds of one sequence after the other.
class RoundWalk {
 public:
  RoundWalk(ServingCounts& counts, const CountsSink& sink) : counts_(counts), sink_(sink) {}

  void read(PositionSource& source) {
    PositionBatch batch;
    while (source.read(batch)) {
      for (std::int64_t i = 0; i < batch.size; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (batch.sequence[at] != sequence_) begin(batch.sequence[at]);
        if (!batch.task.empty()) task_ = task_name(source.metadata().task_names, batch.task[at]);
        if (batch.place[at] == next_round_) take_round(source, batch.first + i, batch.accepted_length[at]);
      }
    }
    end();
  }

 private:
  void begin(std::int64_t sequence) {
    end();
    clear_counts(counts_);
    sequence_ = sequence;
    next_round_ = 0;
    task_.clear();
  }

  void take_round(const PositionSource& source, std::int64_t position, std::int64_t tokens) {
    if (tokens > static_cast<std::int64_t>(CountedFields::longest_draft)) {
      throw source.refusal(position, Role::draft, fmt::format("acc_len {}", tokens),
                           fmt::format("at most {}", CountedFields::longest_draft));
    }
    add_round(counts_.rounds_by_accepted, static_cast<std::size_t>(tokens - 1));
    next_round_ += tokens;
  }

  void end() {
    if (sequence_ < 0) return;
    add_totals(counts_);
    counts_.emitted = *counts_.rounds + *counts_.accepted;
    set_label(counts_, "category", task_.empty() ? std::nullopt : std::optional<std::string_view>(task_));
    sink_.take(counts_);
  }

  ServingCounts& counts_;
  const CountsSink& sink_;
  std::int64_t sequence_ = -1;
  std::int64_t next_round_ = 0;
  std::string task_;
};

void read_traces(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  ServingCounts counts = no_counts("position-trace", position_traces_format, CountUnit::request);
  for (const std::filesystem::path& path : files) {
    counts.file = path;
    for (const std::string& draft : drafts_of(path)) {
      set_label(counts, "model_name", std::string_view(draft).substr(position_trace_draft_prefix.size()));
      const auto source = open_position_traces(path, {{}, {}, draft});
      RoundWalk(counts, sink).read(*source);
      for (const Note& note : source->notes())
        sink.warn({note.code, fmt::format("{}: {}", path.string(), note.message)});
    }
  }
}

}  // namespace

CountsFormat position_trace_counts_format() {
  return {position_traces_format, [](const FileHead& head) { return is_position_traces(head.json()); }, read_traces};
}

}  // namespace specdec::traces
