#include "cli/trace_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <system_error>

#include "analysis/estimate/observe.hpp"
#include "cli/given_options.hpp"
#include "cli/trace_input.hpp"
#include "planner/sources/recording_files.hpp"
#include "render/text.hpp"
#include "traces/check_trace.hpp"

namespace specdec::cli {

using namespace render;

void TraceOutput::declare(Options& options) {
  options.group("Trace that is written");
  options.text("--output", path, "TRACE", "a file if it ends in .safetensors, else a new folder of shards");
  options.integer("--shard-bytes", shard_bytes, {.lo = 1, .hi = unbounded}, "a shard ends after so many bytes");
  options.integer("--shard-positions", shard_positions, {.lo = 1, .hi = unbounded}, "or after so many positions");
}

void TraceOutput::require_path() const {
  if (!path) throw UsageError("--output is missing: where the trace is written");
  if (*path == "-") refuse("--output", *path, "a file or folder: a trace is not written to standard output");
  if (path->ends_with(".safetensors"))
    refuse_given({{"--shard-bytes", shard_bytes.has_value()}, {"--shard-positions", shard_positions.has_value()}},
                 fmt::format("--output {} is one file; a folder has shards", *path));
}

traces::TraceWriter TraceOutput::open(const traces::TraceMetadata& metadata, traces::WriterOptions how) const {
  std::error_code ignored;
  if (path->ends_with(".safetensors") && std::filesystem::exists(*path, ignored)) {
    throw UsageError(fmt::format(
        "--output is {}, which is there already, but must be a new file: what it holds would be lost", *path));
  }
  how.shard_bytes = shard_bytes.value_or(how.shard_bytes);
  how.shard_positions = shard_positions.value_or(how.shard_positions);
  return {*path, metadata, how};
}

std::int64_t TraceOutput::size_bytes() const {
  if (!std::filesystem::is_directory(*path)) return static_cast<std::int64_t>(std::filesystem::file_size(*path));
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*path)) {
    bytes += static_cast<std::int64_t>(entry.file_size());
  }
  return bytes;
}

void require_k_of_tier(const Options& options, std::string_view tier) {
  if (tier != "topk") refuse_given({{"--k", options.is_given("--k")}}, "goes with --tier topk only");
}

traces::Tier tier_named(std::string_view name) {
  for (const traces::Tier tier : {traces::Tier::full, traces::Tier::top_k}) {
    if (traces::name_of(tier) == name) return tier;
  }
  return traces::Tier::scalar;
}

std::optional<estimate::ConversionOptions> TierChoice::conversion() const {
  if (tier == "same") return std::nullopt;
  return estimate::ConversionOptions{tier_named(tier), k, threads};
}

namespace {

/// Fewer numbers than whole rows cannot be reshaped any more to what the text was sampled with.
void require_convertible(const traces::TraceMetadata& metadata, traces::Tier tier) {
  const core::Standardisation sampled = estimate::sampling_of(metadata);
  if (tier != traces::Tier::full || sampled.temperature == 0 || sampled.changes_nothing()) return;
  if (metadata.logprob_space == traces::LogprobSpace::processed) return;
  throw UsageError(
      "--tier takes rows that were reshaped as the text was sampled (logprob_space processed), but these are not "
      "marked so and "
      "the text was sampled at another temperature, top-k, top-p or min-p; keep --tier full");
}

/// Converts a batch; content that cannot be converted is an error of the file that holds it.
traces::OwnedBatch converted(const traces::PositionSource& source, const traces::PositionBatch& batch,
                             const estimate::ConversionOptions& conversion) {
  try {
    return estimate::convert(batch, conversion);
  } catch (const estimate::NotConvertible& error) {
    throw source.refusal(error.position(), error.role(), error.found(), error.expected());
  }
}

}  // namespace

WrittenTrace copy_trace(traces::PositionSource& source, traces::TraceWriter& writer,
                        const std::optional<estimate::ConversionOptions>& conversion, const Progress& progress) {
  WrittenTrace written;
  traces::PositionBatch batch;
  while (source.read(batch)) {
    traces::require_sound_rows(source, batch);
    written.sequences = batch.sequence.back() + 1;
    if (conversion && conversion->tier != batch.tier) {
      require_convertible(source.metadata(), batch.tier);
      const traces::OwnedBatch less = converted(source, batch, *conversion);
      writer.write(less.view());
      written.tiers.emplace(traces::name_of(less.tier));
    } else {
      writer.write(batch);
      written.tiers.emplace(traces::name_of(batch.tier));
    }
    planner::tell_of_reading(progress, source, batch);
  }
  if (writer.positions() == 0) throw NothingToWrite("no position is left to write");
  writer.finish();
  written.positions = writer.positions();
  return written;
}

Report report_of(const WrittenTrace& written, const TraceOutput& output) {
  Report report;
  const std::int64_t bytes = output.size_bytes();
  report.json = {{"positions", written.positions},
                 {"sequences", written.sequences},
                 {"tiers", written.tiers},
                 {"size_bytes", bytes}};
  report.json["rows"] = nlohmann::ordered_json::array({report.json});
  report.spoken = render::said(fmt::format("{} positions in {} sequences written, tier {}, {} bytes: {}",
                                           written.positions, written.sequences, fmt::join(written.tiers, " and "),
                                           bytes, *output.path));
  return report;
}

}  // namespace specdec::cli
