#include "cli/commands.hpp"

#include <fmt/format.h>
#include <filesystem>
#include <string_view>

#include "analysis/core/parsed_number.hpp"
#include "cli/files.hpp"
#include "cli/progress.hpp"
#include "cli/sampling_options.hpp"
#include "cli/shard_options.hpp"
#include "cli/shipped_models.hpp"
#include "cli/standard_streams.hpp"
#include "cli/trace_output.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/methods/checkpoint_pair.hpp"
#include "sim/recording.hpp"
#include "traces/file_error.hpp"
#include "traces/sharded_recording.hpp"
#include "traces/trace_columns.hpp"
#include "traces/trace_reader.hpp"
#include "traces/trace_writer.hpp"

namespace specdec::cli {
namespace {

using nlohmann::ordered_json;

struct RecordOptions {
  planner::CheckpointPair::Paths paths;
  std::optional<std::string> tasks;
  double temperature = 1;
  SamplingCuts cuts;
  std::optional<std::int64_t> sequences;
  std::int64_t max_new_tokens = sim::RecordingOptions{}.max_new_tokens;
  std::optional<std::int64_t> end_token;
  std::string tier = "full";
  std::int64_t k = sim::RecordingOptions{}.k;
  std::int64_t seed = 1;
  std::int64_t threads = default_threads();
  std::optional<traces::Shard> shard;
  TraceOutput output;
};

/// The sequences [first, end) that a share records: they stand together, so that the files of all shares, in the order
/// of their names, are the recording of one run.
struct RecordedRange {
  std::int64_t first = 0, end = 0;
};

/// Bytes that a run may lose when it is killed, unless the user says otherwise.
constexpr std::int64_t usual_shard_bytes = std::int64_t{64} << 20U;

sim::RecordingOptions recording_options(const RecordOptions& o, std::size_t prompts) {
  sim::RecordingOptions options;
  options.standardisation = o.cuts.at(o.temperature);
  options.tier = tier_named(o.tier);
  options.k = o.k;
  const auto all = static_cast<std::int64_t>(prompts);
  options.sequences = o.sequences.value_or(all);
  if (o.temperature == 0 && options.sequences > all)
    refuse("--sequences", fmt::format("{}", options.sequences),
           fmt::format("at most the number of prompts, {}: at temperature 0 a prompt has one text", all));
  options.max_new_tokens = o.max_new_tokens;
  if (o.end_token) options.end_token = static_cast<sim::Token>(*o.end_token);
  options.seed = static_cast<std::uint64_t>(o.seed);
  options.threads = o.threads;
  return options;
}

/// Everything that the texts and the numbers depend on, so that only the same recording is gone on with.
traces::TraceMetadata metadata_of(const planner::CheckpointPair& pair, const std::vector<sim::Prompt>& prompts,
                                  const RecordOptions& o, const sim::RecordingOptions& options) {
  traces::TraceMetadata metadata = sim::recording_metadata(prompts, pair.vocab_size(), options);
  const std::vector<Assumption> names = pair.assumptions();
  metadata.target_model = names[0].value.get<std::string>();
  metadata.draft_model = names[1].value.get<std::string>();
  metadata.engine = "specdec record";
  metadata.other["record.prompts"] = names[2].value.get<std::string>();
  metadata.other["record.prompts_sha256"] = file_facts("--prompts", names[2].value, true).at("sha256");
  metadata.other["record.tasks"] = o.tasks.value_or("all");
  std::string& sampling = metadata.other["record.sampling"];
  sampling = fmt::format("temperature {}, top-k {}, top-p {}", o.temperature, o.cuts.top_k, o.cuts.top_p);
  if (o.cuts.min_p > 0) sampling += fmt::format(", min-p {}", o.cuts.min_p);
  metadata.other["record.tier"] = o.tier == "topk" ? fmt::format("topk {}", o.k) : o.tier;
  return metadata;
}

struct RecordedTexts {
  std::int64_t sequences = 0, positions = 0;
};

/// What a trace holds, by task.
std::vector<RecordedTexts> texts_of(const std::filesystem::path& trace, std::size_t tasks) {
  std::vector<RecordedTexts> texts(tasks);
  const auto reader = traces::read_trace(trace);
  traces::PositionBatch batch;
  while (reader->read(batch)) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.size); ++i) {
      RecordedTexts& its = texts.at(static_cast<std::size_t>(batch.task[i]));
      its.sequences += batch.place[i] == 0 ? 1 : 0;
      its.positions += 1;
    }
  }
  return texts;
}

RecordedTexts sum_of(const std::vector<RecordedTexts>& texts) {
  RecordedTexts sum;
  for (const RecordedTexts& its : texts) {
    sum.sequences += its.sequences;
    sum.positions += its.positions;
  }
  return sum;
}

ordered_json tasks_json(const std::vector<std::string>& names, const std::vector<RecordedTexts>& texts) {
  ordered_json tasks = ordered_json::array();
  for (std::size_t t = 0; t < names.size(); ++t)
    tasks.push_back({{"task", names[t]}, {"sequences", texts[t].sequences}, {"positions", texts[t].positions}});
  return tasks;
}

/// @throws UsageError if there are more shares than sequences
RecordedRange range_of(const traces::Shard& shard, std::int64_t sequences) {
  if (shard.of > sequences)
    refuse("--shard", shard.name(), fmt::format("I/N with N at most the number of texts, {}", sequences));
  return {sequences * shard.index / shard.of, sequences * (shard.index + 1) / shard.of};
}

/// A share's trace is one file of the folder that holds them all.
TraceOutput output_of(const TraceOutput& all, const traces::Shard& shard) {
  TraceOutput output = all;
  output.shard_bytes = output.shard_bytes.value_or(usual_shard_bytes);
  if (shard.of == 1) return output;
  if (all.path->ends_with(traces::shard_extension))
    refuse("--output", *all.path, "a folder, which has a file of each share");
  for (const auto& [option, given] : {std::pair{"--shard-bytes", all.shard_bytes.has_value()},
                                      std::pair{"--shard-positions", all.shard_positions.has_value()}}) {
    if (given) throw UsageError(fmt::format("{} is given, but a share is one file", option));
  }
  output.shard_bytes = output.shard_positions = std::nullopt;
  std::filesystem::create_directories(*all.path);
  output.path = (std::filesystem::path(*all.path) / (shard.file_name() + traces::shard_extension)).string();
  return output;
}

/// The share that a file is named after; empty if it is none of `of`.
std::optional<traces::Shard> share_named(const std::string& stem, std::int64_t of) {
  const auto number = core::parsed_number(std::string_view(stem).substr(0, stem.find('-')));
  if (!number || *number < 1 || *number > static_cast<double>(of)) return std::nullopt;
  const traces::Shard share{static_cast<std::int64_t>(*number) - 1, of};
  return share.file_name() == stem ? std::optional(share) : std::nullopt;
}

/// Refuses a folder that holds anything but shares of this recording of so many texts, dealt as this one is.
/// @param tokens  of each text; at most where an end token may end it
void require_shares(const std::filesystem::path& folder, std::int64_t of, std::int64_t texts,
                    const traces::TraceMetadata& metadata, std::int64_t tokens, bool at_most) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != traces::shard_extension) continue;
    const auto refuse_file = [&](const std::string& field, const std::string& found, const std::string& expected) {
      throw traces::FileError(entry.path(), traces::FileError::whole_file(), field, found, expected);
    };
    const std::optional<traces::Shard> share = share_named(entry.path().stem().string(), of);
    if (!share)
      refuse_file("name", entry.path().filename().string(),
                  fmt::format("that of a share of {}, as all of the folder", of));
    const auto there = traces::read_trace(entry.path());
    traces::require_goes_on(entry.path(), there->metadata(), metadata);
    const RecordedRange range = range_of(*share, texts);
    const std::int64_t positions = (range.end - range.first) * tokens;
    if (there->positions() == positions || (at_most && there->positions() < positions)) continue;
    refuse_file("length", fmt::format("{} tokens", there->positions().value_or(0)),
                fmt::format("{}, as share {} of {} texts has", positions, share->name(), texts));
  }
}

/// Records these texts of all into a trace, and finishes it.
void write_texts(const sim::ModelPair& models, const std::vector<sim::Prompt>& prompts,
                 const sim::RecordingOptions& options, const RecordedRange& texts, traces::TraceWriter& writer,
                 bool quiet) {
  const Progress progress = progress_line("recording", quiet);
  std::int64_t written = 0;
  if (texts.first < texts.end) {
    sim::record_texts(models, prompts, options, texts.first, [&](const traces::PositionBatch& batch) {
      writer.write(batch);
      if (progress) progress(static_cast<double>(++written) / static_cast<double>(texts.end - texts.first));
    });
  }
  writer.finish();
}

Report run(const RecordOptions& o, const Options& given) {
  require_k_of_tier(given, o.tier);
  o.output.require_path();
  const planner::CheckpointPair pair(o.paths, shipped_models());
  const planner::CheckpointPair::Prompts prompts =
      pair.prompts(listed("--tasks", o.tasks), pair.longest_prompt(o.max_new_tokens));
  sim::RecordingOptions options = recording_options(o, prompts.kept.size());
  const traces::Shard shard = o.shard.value_or(traces::Shard{});
  const std::int64_t texts = options.sequences;
  const RecordedRange range = range_of(shard, texts);
  const std::int64_t sequences = range.end - range.first;
  options.sequences = range.end;
  const std::vector<std::string> tasks = sim::tasks_of(prompts.kept);
  if (o.tier == "topk" && o.k > pair.vocab_size())
    refuse("--k", fmt::format("{}", o.k), fmt::format("at most the vocabulary's size, {}", pair.vocab_size()));
  const TraceOutput output = output_of(o.output, shard);
  const traces::TraceMetadata metadata = metadata_of(pair, prompts.kept, o, options);
  if (shard.of > 1)
    require_shares(*o.output.path, shard.of, texts, metadata, options.max_new_tokens, o.end_token.has_value());
  // A share has its name when it is whole.
  const bool is_done = shard.of > 1 && std::filesystem::exists(*output.path);
  std::int64_t there = sequences;
  if (!is_done) {
    traces::TraceWriter writer = output.open(
        metadata, {.whole_sequences = true, .resume = true, .expected_positions = sequences * options.max_new_tokens});
    there = writer.resumed_positions() > 0 ? sum_of(texts_of(*output.path, tasks.size())).sequences : 0;
    if (there > sequences) {
      refuse("--sequences", fmt::format("{}", sequences),
             fmt::format("at least {}, the texts that {} holds already", there, *output.path));
    }
    write_texts(pair.models(), prompts.kept, options, {range.first + there, range.end}, writer, given.quiet());
  } else if (!given.quiet()) {
    say(fmt::format("specdec: share {} was done already, in {}\n", shard.name(), *output.path));
  }

  const std::vector<RecordedTexts> recorded = texts_of(*output.path, tasks.size());
  const std::int64_t positions = sum_of(recorded).positions;
  Report report;
  report.json = {{"positions", positions},
                 {"sequences", sequences},
                 {"resumed_sequences", there},
                 {"tier", traces::name_of(options.tier)},
                 {"size_bytes", output.size_bytes()},
                 {"tasks", tasks_json(tasks, recorded)}};
  report.spoken = render::said(
      fmt::format("{} tokens in {} texts of {}{}{}, tier {}: {}", positions, sequences,
                  options.end_token ? "at most " : "", options.max_new_tokens,
                  shard.of > 1 ? fmt::format(", share {} of {} texts", shard.name(), texts) : "", o.tier, *output.path),
      there > 0 ? fmt::format("{} of the texts were there already.", there) : "");
  report.spoken.decision.next = fmt::format("specdec analyze {} --c 0.05", *output.path);
  report.files = facts_of(pair.files());
  report.assumptions = pair.assumptions();
  prompts.warn_of_cut(report.warnings);
  return report;
}

void declare_record(Options& options, RecordOptions& o) {
  options.group("Models and prompts");
  options.text("--target", o.paths.target, "DIR", "folder of the target's checkpoint (default: the shipped pair)");
  options.text("--draft", o.paths.draft, "DIR",
               "folder of the draft's, of that vocabulary or with a d2t; or n-gram tables, as for validate");
  options.text("--prompts", o.paths.prompts, "FILE",
               "JSON lines: \"task\", and \"text\" or \"tokens\"; or a .txt, one text a line");
  options.group("What to record");
  options.text("--tasks,--task", o.tasks, "LIST", "tasks of the prompts, separated by commas (default: all)");
  options.number("--temperature", o.temperature, {.lo = 0, .hi = 1000}, "0 for greedy decoding");
  o.cuts.declare(options);
  options.integer("--sequences", o.sequences, {.lo = 1, .hi = 1'000'000'000},
                  "texts; text s continues prompt s modulo their number (default: one a prompt)");
  options.integer("--max-new-tokens", o.max_new_tokens, {.lo = 2, .hi = 1'000'000}, "tokens of each text");
  options.integer("--end-token", o.end_token, {.lo = 0, .hi = 1 << 30},
                  "a token that ends a text sooner (default: none)");
  options.choice("--tier", o.tier, {"full", "topk", "scalar"}, "how much of each position to keep");
  options.integer("--k", o.k, {.lo = 1, .hi = 1'000'000}, "tokens that --tier topk keeps");
  options.integer("--seed", o.seed, {.hi = unbounded}, "seed of all random numbers");
  options.integer("--threads", o.threads, {.lo = 1, .hi = 1024}, "texts at a time; the trace is the same");
  declare_shard(options, o.shard, "record share I of N of the texts alone, as one file\nof the folder --output");
  o.output.declare(options);
  options.footer(
      "specdec record --output trace\n"
      "specdec record --target big --draft small --prompts prompts.jsonl --tier scalar --output trace");
}

}  // namespace

Command record_command() {
  return {"record",
          "Let a transformer write texts, score them by a second one too, and write the trace",
          {{"tasks", "/tasks"}},
          setup_of<RecordOptions>(run, declare_record),
          true};
}

}  // namespace specdec::cli
