#include "sim/recording.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/tier_conversion.hpp"
#include "sim/decoding.hpp"
#include "sim/full_batch.hpp"
#include "sim/text_scoring.hpp"
#include "traces/prompt_id.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view recording_function = "record_texts";

/// A model whose rows are rounded to the stored precision of a recording.
class StoredModel final : public LanguageModel {
 public:
  explicit StoredModel(OwnedModel model) : model_(std::move(model)) {}

  std::int64_t vocab_size() const override { return model_->vocab_size(); }
  std::int64_t max_length() const override { return model_->max_length(); }
  std::int64_t length() const override { return model_->length(); }
  double operations_per_token() const override { return model_->operations_per_token(); }
  void score(std::span<const Token> block, std::span<double> rows) override {
    model_->score(block, rows);
    for (double& x : rows) x = static_cast<float>(x);
  }
  void roll_back(std::int64_t length) override { model_->roll_back(length); }

 private:
  OwnedModel model_;
};

/// Both models of one thread.
struct Worker {
  explicit Worker(const ModelPair& models) : target(models.target(1)), draft(models.draft(1)) {}

  StoredModel target;
  StoredModel draft;
};

class Recorder {
 public:
  Recorder(std::span<const Prompt> prompts, const RecordingOptions& options)
      : prompts_(prompts), options_(options), tasks_(tasks_of(prompts)) {
    // By its tokens: the same number in every recording.
    for (const Prompt& prompt : prompts)
      prompt_ids_.push_back(traces::prompt_id(fmt::format("{}", fmt::join(prompt.tokens, " "))));
  }

  FullBatch record(Worker& worker, std::int64_t sequence) const {
    const std::size_t number = static_cast<std::size_t>(sequence) % prompts_.size();
    const Prompt& prompt = prompts_[number];
    DecodingOptions decoding;
    decoding.max_new_tokens = options_.max_new_tokens;
    decoding.end_token = options_.end_token;
    decoding.standardisation = options_.standardisation;
    const RandomStream stream(options_.seed, static_cast<std::uint64_t>(sequence));
    const Generation text = decode_autoregressively(worker.target, prompt.tokens, decoding, stream);
    const std::size_t size = text.tokens.size();
    FullBatch recorded;
    recorded.first = sequence * options_.max_new_tokens;
    recorded.size = std::ssize(text.tokens);
    recorded.tier = traces::Tier::full;
    recorded.token = text.tokens;
    recorded.sequence.assign(size, sequence);
    recorded.place.resize(size);
    std::iota(recorded.place.begin(), recorded.place.end(), 0);
    recorded.task.assign(size, static_cast<std::int32_t>(std::ranges::find(tasks_, prompt.task) - tasks_.begin()));
    recorded.prompt.assign(size, prompt_ids_[number]);
    recorded.vocab = worker.target.vocab_size();
    const bool processed = options_.tier != traces::Tier::full;
    for_each_prefix(worker.target, worker.draft, prompt.tokens, text.tokens,
                    [&](std::size_t, std::span<double> p, std::span<double> q) {
                      if (processed) {
                        core::standardise(p, options_.standardisation);
                        core::standardise(q, options_.standardisation);
                      }
                      append(recorded.target_rows, p);
                      append(recorded.draft_rows, q);
                    });
    return recorded;
  }

 private:
  static void append(std::vector<float>& rows, std::span<const double> row) {
    std::transform(row.begin(), row.end(), std::back_inserter(rows), [](double x) { return static_cast<float>(x); });
  }

  std::span<const Prompt> prompts_;
  const RecordingOptions& options_;
  std::vector<std::string> tasks_;
  std::vector<std::int64_t> prompt_ids_;
};

void require_valid(std::span<const Prompt> prompts, const RecordingOptions& options, std::int64_t first) {
  if (prompts.empty()) throw std::invalid_argument("record_texts: prompts has 0 entries, but must have 1 or more");
  core::require_valid(options.standardisation);
  constexpr std::int64_t many = std::int64_t{1} << 40U;
  core::require_in(recording_function, "sequences", options.sequences, 1, many);
  core::require_in(recording_function, "max_new_tokens", options.max_new_tokens, 1, many);
  core::require_in(recording_function, "k", options.k, 1, many);
  core::require_in(recording_function, "first", first, 0, options.sequences);
  core::require_in(recording_function, "threads", options.threads, 1, 1024);
}

}  // namespace

std::vector<std::string> tasks_of(std::span<const Prompt> prompts) {
  std::vector<std::string> tasks;
  for (const Prompt& prompt : prompts)
    if (std::find(tasks.begin(), tasks.end(), prompt.task) == tasks.end()) tasks.push_back(prompt.task);
  return tasks;
}

traces::TraceMetadata recording_metadata(std::span<const Prompt> prompts, std::int64_t vocab,
                                         const RecordingOptions& options) {
  traces::TraceMetadata metadata;
  metadata.vocab_size = vocab;
  metadata.temperature = options.standardisation.temperature;
  if (options.standardisation.top_k > 0) metadata.top_k = options.standardisation.top_k;
  if (options.standardisation.top_p < 1) metadata.top_p = options.standardisation.top_p;
  if (options.standardisation.min_p > 0) metadata.min_p = options.standardisation.min_p;
  if (options.standardisation.temperature_last) metadata.temperature_last = true;
  metadata.acceptance =
      options.standardisation.temperature == 0 ? traces::AcceptanceRule::greedy : traces::AcceptanceRule::rejection;
  metadata.logprob_space =
      options.tier == traces::Tier::full ? traces::LogprobSpace::raw : traces::LogprobSpace::processed;
  metadata.path = traces::TextSource::target;
  metadata.task_names = tasks_of(prompts);
  metadata.other["record.seed"] = fmt::format("{}", options.seed);
  metadata.other["record.max_new_tokens"] = fmt::format("{}", options.max_new_tokens);
  if (options.end_token) metadata.other["record.end_token"] = fmt::format("{}", *options.end_token);
  return metadata;
}

void record_texts(const ModelPair& models, std::span<const Prompt> prompts, const RecordingOptions& options,
                  std::int64_t first, const std::function<void(const traces::PositionBatch& batch)>& consume) {
  require_valid(prompts, options, first);
  const std::int64_t portion = std::min(options.threads, std::max<std::int64_t>(1, options.sequences - first));
  std::vector<Worker> workers;
  for (std::int64_t w = 0; w < portion; ++w) workers.emplace_back(models);
  const Recorder recorder(prompts, options);
  std::vector<FullBatch> texts(static_cast<std::size_t>(portion));
  const estimate::ConversionOptions conversion{.tier = options.tier, .k = options.k, .threads = options.threads};
  for (std::int64_t sequence = first; sequence < options.sequences; sequence += portion) {
    const std::int64_t count = std::min(portion, options.sequences - sequence);
    core::for_each_index(count, portion, [&](std::int64_t i, std::int64_t worker) {
      texts[static_cast<std::size_t>(i)] = recorder.record(workers[static_cast<std::size_t>(worker)], sequence + i);
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const traces::PositionBatch batch = texts[static_cast<std::size_t>(i)].view();
      if (options.tier == traces::Tier::full) {
        consume(batch);
      } else {
        const traces::OwnedBatch converted = estimate::convert(batch, conversion);
        consume(converted.view());
      }
    }
  }
}

}  // namespace specdec::sim
