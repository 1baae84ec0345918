#include "cli/trace_input.hpp"

#include "cli/files.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {

void TraceInput::declare(Options& options) {
  options.group("Recording");
  options.text("--target", target_, "FILE", "the target's file of a pair that was recorded separately");
  options.text("--draft", draft_, "FILE", "the draft's");
  options.choice("--numbers", numbers_, {"auto", "probabilities", "logprobs", "logits"},
                 "kind of the numbers of NPY and NPZ files and token pairs");
  options.text("--target-array", target_array_, "NAME",
               "the target's array in an NPZ file, or column of token pairs [p]");
  options.text("--draft-array", draft_array_, "NAME", "the draft's [q]");
  options.flag("--salvage", salvage_, "leave out shards that cannot be read");
  options.arguments("TRACE", files_, "files or a folder, in any format that docs/reference/formats.md lists",
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

std::unique_ptr<traces::PositionSource> TraceInput::open() const { return planner::open_recording(recording()); }

void TraceInput::add_files(const std::vector<std::filesystem::path>& files, Report& report) const {
  cli::add_files(files, report);
  // A pair whose files are alike compares a model with itself, and counts nothing twice.
  if (!target_) append(report.warnings, same_content(report.files));
}

std::vector<nlohmann::ordered_json> TraceInput::shared_facts(const std::vector<std::string>& files,
                                                             const traces::Shard& shard) const {
  std::vector<nlohmann::ordered_json> facts;
  for (const std::string& file : files) {
    const bool is_own = shard.holds(std::ssize(facts));
    facts.push_back(is_own ? file_facts("TRACE", file) : unhashed_facts("TRACE", file));
  }
  return facts;
}

void TraceInput::describe(const traces::PositionSource& source, Report& report) const {
  add_files(source.files(), report);
  append(report.warnings, source.notes());
}

void add_files(const std::vector<std::filesystem::path>& files, Report& report) {
  for (const auto& file : files) report.files.push_back(file_facts("TRACE", file.string()));
}

}  // namespace specdec::cli
