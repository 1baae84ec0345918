#include "cli/trace_input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <set>
#include <system_error>

#include "cli/files.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {

void TraceInput::declare(Options& options) {
  options.group("Recording");
  options.text("--target", target_, "FILE", "the target's file of a pair that was recorded separately");
  options.text("--draft", draft_, "FILE", "the draft's");
  options.choice("--numbers", numbers_, {"auto", "probabilities", "logprobs", "logits"},
                 "what the numbers of NPY and NPZ files and token pairs are");
  options.text("--target-array", target_array_, "NAME",
               "the target's array in an NPZ file, or column of token pairs [p]");
  options.text("--draft-array", draft_array_, "NAME", "the draft's [q]");
  options.flag("--salvage", salvage_, "leave out shards that cannot be read");
  options.flag("--hash", hash_, "SHA-256 also of files above 64 MB");
  options.arguments("TRACE", files_, "files or a folder, in any format that docs/trace_format.md lists",
                    Options::Least::none);
}

traces::OpenOptions TraceInput::options() const {
  if (target_.has_value() != draft_.has_value()) {
    throw UsageError(target_ ? "--target is given, but needs --draft beside it"
                             : "--draft is given, but needs --target beside it");
  }
  if (target_ && !files_.empty()) {
    throw UsageError("TRACE is " + files_.front() + ", but must not be given beside --target and --draft");
  }
  if (!target_ && files_.empty()) throw UsageError("TRACE is missing: a recording, or --target and --draft");
  traces::OpenOptions open;
  open.salvage = salvage_;
  open.target = target_.value_or("");
  open.draft = draft_.value_or("");
  if (numbers_ == "probabilities") open.space = traces::RowSpace::probabilities;
  if (numbers_ == "logprobs") open.space = traces::RowSpace::log_probabilities;
  if (numbers_ == "logits") open.space = traces::RowSpace::logits;
  open.target_array = target_array_.value_or("");
  open.draft_array = draft_array_.value_or("");
  return open;
}

std::unique_ptr<traces::PositionSource> TraceInput::open() const {
  const traces::OpenOptions how = options();
  auto source = traces::open_trace(files(), how);
  require_read(source->format());
  if (!target_) require_distinct(source->files());
  return source;
}

void TraceInput::require_read(std::string_view format) const {
  const struct {
    std::string_view option;
    bool given;
    std::vector<std::string_view> formats;
  } uses[] = {{"--numbers", numbers_ != "auto", {"NPY", "NPZ", "JSONL of token pairs", "CSV of token pairs"}},
              {"--target-array", target_array_.has_value(), {"NPZ", "JSONL of token pairs", "CSV of token pairs"}},
              {"--draft-array",
               draft_array_.has_value(),
               {"NPZ", "position traces", "JSONL of token pairs", "CSV of token pairs"}}};
  for (const auto& [option, given, formats] : uses)
    if (given && std::find(formats.begin(), formats.end(), format) == formats.end())
      throw UsageError(fmt::format("{} is given, but goes with {} only, and the recording is {}", option,
                                   fmt::join(formats, ", "), format));
}

void TraceInput::describe(const traces::PositionSource& source, Report& report) const {
  add_files(source.files(), hash_, report);
  add_notes(source.notes(), report);
}

void require_distinct(const std::vector<std::filesystem::path>& files) {
  std::set<std::filesystem::path> seen;
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    if (!seen.insert(std::filesystem::weakly_canonical(file, error)).second)
      throw UsageError("TRACE is " + file.string() + " twice, but must be given once");
  }
}

void add_files(const std::vector<std::filesystem::path>& files, bool always_hash, Report& report) {
  for (const auto& file : files) report.files.push_back(file_facts("TRACE", file.string(), always_hash));
}

void add_notes(const std::vector<traces::Note>& notes, Report& report) {
  for (const traces::Note& note : notes) report.warnings.push_back({note.code, note.message});
}

}  // namespace specdec::cli
