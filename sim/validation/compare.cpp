#include "sim/validation/compare.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/ratio_of_sums.hpp"
#include "sim/recording.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/finished_sequences.hpp"
#include "sim/validation/independent_rounds.hpp"
#include "sim/validation/method_share.hpp"
#include "sim/validation/recorded_methods.hpp"
#include "sim/validation/validate.hpp"

namespace specdec::validation {
namespace {

void require_valid(const MethodSource& source, const MethodSettings& settings) {
  constexpr std::int64_t many = std::int64_t{1} << 31;
  core::require_in("compare", "gamma", settings.gamma, std::int64_t{1}, std::int64_t{1024});
  core::require_in("compare", "tokens", settings.tokens, std::int64_t{1}, std::int64_t{1} << 40);
  core::require_in("compare", "max_new_tokens", settings.max_new_tokens, std::int64_t{2}, many);
  core::require_in("compare", "ngram_order", settings.ngram_order, std::int64_t{1}, std::int64_t{64});
  core::require_in("compare", "exit_layer", settings.exit_layer, std::int64_t{1}, many);
  core::require_in("compare", "inner_gamma", settings.inner_gamma, std::int64_t{0}, std::int64_t{1024});
  core::require_in("compare", "edit_share", settings.edit_share, 0, 1);
  core::require_in("compare", "threads", settings.threads, std::int64_t{1}, std::int64_t{1024});
  core::require_valid(core::Standardisation{.temperature = settings.temperature});
  if (settings.until_relative_error)
    core::require_in("compare", "until_relative_error", *settings.until_relative_error, 0, 1);
  if (source.prompts.empty() && !source.alpha && !source.recording)
    throw std::invalid_argument("compare: prompts has 0 entries, but must have 1 or more");
}

/// Runs one method over all sequences and sums up the results.
class MethodExperiment {
 public:
  MethodExperiment(const MethodContext& context, const core::RunHooks& hooks)
      : context_(context), source_(context.source()), settings_(context.settings()), hooks_(hooks) {}

  void run(const Method& method, const std::function<void(double share)>& progress, ComparedMethods& compared) {
    method_ = method;
    const bool precise = decode(progress);
    if (finished("").empty()) return;
    if (settings_.until_relative_error && !precise) compared.imprecise.push_back(method);
    summarise(compared.results);
  }

  /// Decodes the sequences of a share; nothing is known of the others.
  MethodShare run_share(const Method& method, const traces::Shard& shard) {
    method_ = method;
    shard_ = shard;
    decode(hooks_.progress);
    MethodShare share;
    for (std::size_t s = 0; s < runs_.size(); ++s) {
      if (runs_[s].counters.tokens > 0) share.runs.emplace(static_cast<std::int64_t>(s), std::move(runs_[s]));
    }
    return share;
  }

  /// The results of sequences that were decoded elsewhere.
  void take(const Method& method, const MethodShare& share, ComparedMethods& compared) {
    method_ = method;
    runs_.assign(static_cast<std::size_t>(sequences()), {});
    for (const auto& [sequence, run] : share.runs) {
      if (sequence >= sequences())
        throw std::invalid_argument("results_of: share has sequences that the method has not");
      runs_[static_cast<std::size_t>(sequence)] = run;
    }
    if (!finished("").empty()) summarise(compared.results);
  }

 private:
  std::int64_t sequences() const {
    return (settings_.tokens + settings_.max_new_tokens - 1) / settings_.max_new_tokens;
  }

  /// Over all tasks, then each of them if there are several.
  void summarise(std::vector<MethodResult>& results) const {
    const std::vector<std::string> tasks = sim::tasks_of(source_.prompts);
    results.push_back(summary(""));
    if (tasks.size() < 2) return;
    for (const std::string& task : tasks)
      if (!finished(task).empty()) results.push_back(summary(task));
  }

  const sim::Prompt& prompt_of(std::size_t sequence) const {
    return source_.prompts[sequence % source_.prompts.size()];
  }

  /// The sequences of a task that were decoded; an empty name: of any.
  std::vector<FinishedSequence> finished(const std::string& task) const {
    std::vector<FinishedSequence> sequences;
    for (std::size_t s = 0; s < runs_.size(); ++s)
      if (runs_[s].counters.tokens > 0 && (task.empty() || prompt_of(s).task == task))
        sequences.push_back({cluster_of(s, source_.prompts.size()), &runs_[s]});
    return sequences;
  }

  /// @return true if the requested precision was reached
  bool decode(const std::function<void(double share)>& progress) {
    const std::int64_t all = sequences();
    const MethodDecoderFactory factory = prepare(method_, context_);
    std::vector<std::unique_ptr<MethodDecoder>> decoders;
    const std::int64_t together = settings_.timed ? 1 : settings_.threads;
    for (std::int64_t w = 0; w < std::min(together, all); ++w) decoders.push_back(factory());
    runs_.clear();
    while (static_cast<std::int64_t>(runs_.size()) < all) {
      decode_portion(decoders, portion_after(static_cast<std::int64_t>(runs_.size()), all));
      if (hooks_.interrupted()) return false;
      if (progress) progress(static_cast<double>(runs_.size()) / static_cast<double>(all));
      if (is_precise()) return true;
    }
    return false;
  }

  /// Whole passes over the prompts, an eighth of what is done if that is more; all at once if no precision is set.
  std::int64_t portion_after(std::int64_t done, std::int64_t sequences) const {
    constexpr std::int64_t most = 4'096;
    const auto pass = static_cast<std::int64_t>(std::max<std::size_t>(source_.prompts.size(), 16));
    const std::int64_t portion =
        settings_.until_relative_error ? std::max<std::int64_t>(1, done / 8 / pass) * pass : most;
    return std::min(std::min(portion, std::max(most, pass)), sequences - done);
  }

  void decode_portion(const std::vector<std::unique_ptr<MethodDecoder>>& decoders, std::int64_t count) {
    const std::size_t first = runs_.size();
    runs_.resize(first + static_cast<std::size_t>(count));
    core::for_each_index(
        count, static_cast<std::int64_t>(decoders.size()), [&](std::int64_t index, std::int64_t worker) {
          const std::size_t s = first + static_cast<std::size_t>(index);
          if (!shard_.holds(static_cast<std::int64_t>(s)) || hooks_.interrupted()) return;
          const sim::RandomStream stream(settings_.seed, static_cast<std::uint64_t>(s));
          MethodDecoder& decoder = *decoders[static_cast<std::size_t>(worker)];
          const std::vector<sim::Token>& prompt = prompt_of(s).tokens;
          runs_[s] = settings_.timed ? decode_timed(decoder, prompt, stream) : decoder.decode(prompt, stream);
          runs_[s].text.clear();
        });
  }

  MethodRun decode_timed(MethodDecoder& decoder, std::span<const sim::Token> prompt,
                         const sim::UniformSource& uniforms) const {
    const sim::OwnedModel target = source_.models.target(settings_.threads);
    MethodRun run;
    RunTimes times = time_in_turn(*target, prompt, context_.decoding(), uniforms, *context_.clock(), [&] {
      run = decoder.decode(prompt, uniforms);
      return run.counters;
    });
    run.times = std::make_shared<RunTimes>(std::move(times));
    return run;
  }

  /// By sequences, each of which is a sample given the prompts; the reported interval also covers other prompts
  /// and does not shrink with more sequences of the same ones.
  bool is_precise() const {
    if (!settings_.until_relative_error) return false;
    std::vector<double> tokens;
    std::vector<double> steps;
    for (const MethodRun& run : runs_) {
      tokens.push_back(static_cast<double>(run.counters.tokens));
      steps.push_back(static_cast<double>(run.counters.steps));
    }
    const estimate::Estimate e = estimate::ratio_of_sums(tokens, steps);
    return e.ci95 && e.ci95->hi - e.value <= *settings_.until_relative_error * e.value;
  }

  MethodResult summary(const std::string& task) const {
    const std::vector<FinishedSequence> sequences = finished(task);
    MethodResult result = summary_of(method_, task, sequences, settings_.cost);
    RoundSums rounds;
    double weight_reads = 0;
    for (const FinishedSequence& sequence : sequences) {
      rounds.add(sequence.run->rounds);
      weight_reads += sequence.run->weight_reads;
    }
    const auto steps = static_cast<double>(result.counters.steps);
    const auto tokens = static_cast<double>(result.counters.tokens);
    if (result.counters.drafted > 0) {
      result.closed_form_tokens_per_step = 1 + rounds.accepted.expected / steps;
      if (rounds.accepted.variance >= least_variance)
        result.deviation_standard_errors =
            (rounds.accepted.measured - rounds.accepted.expected) / std::sqrt(rounds.accepted.variance);
    }
    result.total_variation_per_token = rounds.distance / tokens;
    if (const double operations = context_.target_operations(); operations > 0) {
      result.operations_factor = result.counters.operations / (tokens * operations);
      result.memory_factor = weight_reads / tokens;
    }
    // A tree's nodes are scored one after the other, which no engine does.
    if (settings_.timed && !method_.is_plain() && method_.verifier->tree == nullptr)
      result.timing = timing(sequences, result);
    return result;
  }

  MethodTiming timing(std::span<const FinishedSequence> sequences, const MethodResult& result) const {
    std::vector<RunTimes> times;
    for (const FinishedSequence& sequence : sequences)
      if (sequence.run->times) times.push_back(*sequence.run->times);
    const std::optional<double> alpha =
        result.acceptance ? std::optional(std::clamp(result.acceptance->value, 0.0, 1.0)) : std::nullopt;
    return timing_of(times, settings_.gamma, alpha,
                     result.closed_form_tokens_per_step.value_or(result.tokens_per_step.value));
  }

  const MethodContext& context_;
  const MethodSource& source_;
  const MethodSettings& settings_;
  const core::RunHooks& hooks_;
  Method method_;
  traces::Shard shard_;
  std::vector<MethodRun> runs_;
};

void count_tokens(ComparedMethods& compared) {
  for (const MethodResult& result : compared.results)
    if (result.task.empty()) compared.tokens += result.counters.tokens;
}

}  // namespace

std::vector<double> MethodResult::acceptance_by_position() const {
  std::vector<double> shares;
  for (std::size_t j = 0; j < counters.drafted_at.size(); ++j)
    shares.push_back(static_cast<double>(counters.accepted_at[j]) / static_cast<double>(counters.drafted_at[j]));
  return shares;
}

MethodSource synthetic_source(std::int64_t vocab_size, double noise, std::uint64_t seed) {
  core::require_in("synthetic_source", "vocab_size", vocab_size, std::int64_t{2}, std::int64_t{4096});
  const sim::TablePair pair = sim::synthetic_bigram_pair(vocab_size, noise, seed);
  MethodSource source;
  source.models = {sim::factory_of(pair.target), sim::factory_of(pair.draft)};
  for (sim::Token token = 0; token < std::min<std::int64_t>(vocab_size, 16); ++token)
    source.prompts.push_back({"synthetic", {token}});
  return source;
}

MethodSource fixed_source(std::int64_t vocab_size, double noise, std::uint64_t seed) {
  core::require_in("fixed_source", "vocab_size", vocab_size, std::int64_t{2}, std::int64_t{1} << 20);
  auto [target, draft] = sim::synthetic_row_pair(vocab_size, noise, seed);
  FixedLaws laws{std::move(target), std::move(draft)};
  const sim::TablePair pair = sim::fixed_pair(laws.target, laws.draft);
  MethodSource source;
  source.models = {sim::factory_of(pair.target), sim::factory_of(pair.draft)};
  source.prompts.push_back({"synthetic", {0}});
  source.fixed = std::move(laws);
  return source;
}

ComparedMethods compare(const MethodContext& context, std::span<const Method> methods, const core::RunHooks& hooks) {
  require_valid(context.source(), context.settings());
  const auto begin = std::chrono::steady_clock::now();
  ComparedMethods compared;
  MethodExperiment experiment(context, hooks);
  for (std::size_t m = 0; m < methods.size() && !compared.interrupted; ++m) {
    std::function<void(double)> progress;
    if (hooks.progress)
      progress = [&](double share) {
        hooks.progress((static_cast<double>(m) + std::min(share, 0.999)) / static_cast<double>(methods.size()));
      };
    if (progress) progress(0);
    if (runs_in_rounds(methods[m], context))
      run_in_rounds(methods[m], context, {progress, hooks.interrupt}, compared);
    else if (context.source().recording)
      replay_method(methods[m], context, {progress, hooks.interrupt}, compared);
    else
      experiment.run(methods[m], progress, compared);
    compared.interrupted = hooks.interrupted();
  }
  hooks.tell(1);
  count_tokens(compared);
  compared.seconds = seconds_since(begin);
  return compared;
}

void MethodShare::merge(const MethodShare& other) {
  if (accepted_counts.size() != other.accepted_counts.size() && !(runs.empty() && accepted_counts.empty()))
    throw std::invalid_argument("MethodShare::merge: other has rounds of another method");
  for (const auto& [sequence, run] : other.runs) {
    if (!runs.emplace(sequence, run).second)
      throw std::invalid_argument("MethodShare::merge: other has a sequence that is there already");
  }
  accepted_counts.resize(other.accepted_counts.size());
  for (std::size_t n = 0; n < accepted_counts.size(); ++n) accepted_counts[n] += other.accepted_counts[n];
  seconds += other.seconds;
}

MethodShare run_share(const Method& method, const MethodContext& context, const traces::Shard& shard,
                      const core::RunHooks& hooks) {
  require_valid(context.source(), context.settings());
  if (context.source().recording) throw std::invalid_argument("run_share: source is a recording, but must be models");
  if (context.settings().until_relative_error)
    throw std::invalid_argument("run_share: until_relative_error is given, but no share knows the error of all");
  const auto begin = std::chrono::steady_clock::now();
  MethodShare share;
  if (runs_in_rounds(method, context)) {
    share.accepted_counts = count_rounds(method, context, shard, hooks);
  } else {
    share = MethodExperiment(context, hooks).run_share(method, shard);
  }
  share.seconds = seconds_since(begin);
  return share;
}

ComparedMethods results_of(const Method& method, const MethodContext& context, const MethodShare& share) {
  require_valid(context.source(), context.settings());
  ComparedMethods compared;
  const core::RunHooks none;
  const bool in_rounds = runs_in_rounds(method, context);
  const auto depths = static_cast<std::size_t>(context.settings().gamma) + 1;
  if (in_rounds ? share.accepted_counts.size() != depths || !share.runs.empty() : !share.accepted_counts.empty())
    throw std::invalid_argument("results_of: share is of another method");
  if (in_rounds) {
    add_rounds(method, context, share.accepted_counts, compared);
  } else {
    MethodExperiment(context, none).take(method, share, compared);
  }
  count_tokens(compared);
  compared.seconds = share.seconds;
  return compared;
}

}  // namespace specdec::validation
