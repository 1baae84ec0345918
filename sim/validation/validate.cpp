#include "sim/validation/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/ratio_of_sums.hpp"
#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/replay.hpp"
#include "analysis/theory/tokens.hpp"
#include "sim/validation/evidence.hpp"
#include "sim/validation/finished_sequences.hpp"
#include "sim/validation/uniformity.hpp"

namespace specdec::validation {
namespace {

using PromptList = std::vector<std::span<const sim::Token>>;

/// Models of one thread: a pair that decodes, and a separate pair that scores the result afresh.
struct Worker {
  explicit Worker(const sim::ModelPair& models)
      : target(models.target(1)),
        draft(models.draft(1)),
        judge_target(models.target(1)),
        judge_draft(models.draft(1)) {}

  sim::OwnedModel target;
  sim::OwnedModel draft;
  sim::OwnedModel judge_target;
  sim::OwnedModel judge_draft;
};

struct SequenceResult {
  sim::Counters counters;
  Evidence evidence;
  std::vector<double> tokens_of_steps;
  theory::ReplayedSteps replayed;
  /// Tokens equal to those of plain decoding, position by position; counted at temperature 0.
  std::int64_t equal_to_plain = 0;
};

core::Standardisation sampled_at(double temperature, const Options& options) {
  core::Standardisation sampling = options.sampling;
  sampling.temperature = temperature;
  return sampling;
}

void require_valid(const Options& options) {
  for (const double temperature : options.temperatures) core::require_valid(sampled_at(temperature, options));
  constexpr std::int64_t many = std::int64_t{1} << 31;
  for (const std::int64_t gamma : options.gammas) {
    core::require_in("validate", "gamma", gamma, std::int64_t{1}, std::int64_t{1024});
    core::require_in("validate", "max_new_tokens", options.max_new_tokens, gamma + 1, many);
  }
  core::require_in("validate", "tokens", options.tokens, std::int64_t{1}, many);
  core::require_in("validate", "timed_prompts", options.timed_prompts, std::int64_t{0}, many);
  core::require_in("validate", "threads", options.threads, std::int64_t{1}, std::int64_t{1024});
}

// Per order all tokens and every slot; steps, accepted drafts, emitted acceptance.
std::int64_t planned_tests(std::int64_t gamma) { return 2 * (gamma + 2) + 3; }

std::int64_t planned_tests(const Options& options, std::size_t tasks) {
  std::int64_t tests = 0;
  for (const double temperature : options.temperatures)
    for (const std::int64_t gamma : options.gammas) tests += temperature > 0 ? planned_tests(gamma) : 0;
  return tests * static_cast<std::int64_t>(tasks);
}

/// The run of one (task, temperature, gamma).
class Experiment {
 public:
  Experiment(const sim::ModelPair& models, const Options& options, const PromptList& prompts, double level,
             std::uint64_t number)
      : models_(models), options_(options), prompts_(prompts), level_(level), first_sequence_(number << 32) {}

  Configuration run(std::vector<Worker>& workers, const std::string& task, double temperature, std::int64_t gamma) {
    decoding_.gamma = gamma;
    decoding_.max_new_tokens = options_.max_new_tokens;
    decoding_.standardisation = sampled_at(temperature, options_);
    configuration_.task = task;
    configuration_.temperature = temperature;
    configuration_.gamma = gamma;
    decode(workers);
    summarise(workers.front());
    if (temperature > 0)
      test_distribution();
    else
      test_greedy();
    if (options_.timed_prompts > 0) measure_time();
    return std::move(configuration_);
  }

 private:
  std::span<const sim::Token> prompt_of(std::int64_t sequence) const {
    return prompts_[static_cast<std::size_t>(sequence) % prompts_.size()];
  }

  void decode(std::vector<Worker>& workers) {
    configuration_.sequences = (options_.tokens + options_.max_new_tokens - 1) / options_.max_new_tokens;
    // Greedy decoding of a prompt has one result.
    if (configuration_.temperature == 0)
      configuration_.sequences = std::min(configuration_.sequences, static_cast<std::int64_t>(prompts_.size()));
    results_.resize(static_cast<std::size_t>(configuration_.sequences));
    core::for_each_index(configuration_.sequences, static_cast<std::int64_t>(workers.size()),
                         [&](std::int64_t sequence, std::int64_t worker) {
                           results_[static_cast<std::size_t>(sequence)] =
                               decode_one(workers[static_cast<std::size_t>(worker)], sequence);
                         });
  }

  SequenceResult decode_one(Worker& worker, std::int64_t sequence) const {
    const sim::RandomStream stream(options_.seed, first_sequence_ + static_cast<std::uint64_t>(sequence));
    const std::span<const sim::Token> prompt = prompt_of(sequence);
    const sim::Generation text = options_.decoder(*worker.target, *worker.draft, prompt, decoding_, stream);
    SequenceResult result;
    result.counters = text.counters;
    for (const sim::Step& step : text.steps) result.tokens_of_steps.push_back(static_cast<double>(step.emitted));
    result.evidence =
        gather_evidence(*worker.judge_target, *worker.judge_draft, prompt, text, decoding_.standardisation, stream);
    result.replayed = theory::replay_steps(result.evidence.acceptances, decoding_.gamma);
    if (configuration_.temperature == 0) {
      const sim::Generation plain = sim::decode_autoregressively(*worker.judge_target, prompt, decoding_, stream);
      const std::size_t length = std::min(plain.tokens.size(), text.tokens.size());
      for (std::size_t t = 0; t < length; ++t) result.equal_to_plain += plain.tokens[t] == text.tokens[t] ? 1 : 0;
    }
    return result;
  }

  void summarise(Worker& worker) {
    for (const SequenceResult& result : results_) {
      configuration_.counters.merge(result.counters);
      replayed_.expected += result.replayed.expected;
      replayed_.variance += result.replayed.variance;
      accepted_.add(result.evidence.accepted);
      emitted_acceptance_.add(result.evidence.emitted_acceptance);
      impossible_tokens_ += result.evidence.impossible_tokens;
    }
    const auto steps = static_cast<double>(configuration_.counters.steps);
    const auto tokens = static_cast<double>(configuration_.counters.tokens);
    const auto gamma = configuration_.gamma;
    configuration_.alpha = ratio([](const SequenceResult& r) -> std::span<const double> { return r.evidence.betas; });
    clamp(configuration_.alpha, 0, 1);
    configuration_.tokens_per_step.measured =
        ratio([](const SequenceResult& r) -> std::span<const double> { return r.tokens_of_steps; });
    clamp(configuration_.tokens_per_step.measured, 1, static_cast<double>(gamma + 1));
    configuration_.tokens_per_step.iid = theory::expected_tokens(alpha_hat(), gamma);
    configuration_.tokens_per_step.iid_finite =
        static_cast<double>(options_.max_new_tokens) /
        theory::finite_generation(alpha_hat(), gamma, options_.max_new_tokens).expected_steps;
    configuration_.tokens_per_step.replay = tokens / replayed_.expected;

    const double target_operations = worker.target->operations_per_token();
    if (target_operations > 0) {
      const double c_hat = worker.draft->operations_per_token() / target_operations;
      configuration_.operations.theory = theory::operations_factor(alpha_hat(), gamma, c_hat);
      configuration_.operations.measured = configuration_.counters.operations / (tokens * target_operations);
    }
    check_exactly("tokens_of_probability_zero", 0, static_cast<double>(impossible_tokens_));
    if (configuration_.temperature > 0) {
      configuration_.steps_z = check_deviation("steps", {replayed_.expected, steps, replayed_.variance});
      check_deviation("accepted_drafts", accepted_);
      check_deviation("acceptance_of_emitted_tokens", emitted_acceptance_);
    }
  }

  core::AcceptanceRate alpha_hat() const { return core::AcceptanceRate(configuration_.alpha.value); }

  // Sum over count of the values of all sequences. Sequences that continue one prompt form one cluster; with a single
  // prompt every sequence is one; a single sequence is cut into batches.
  template <class Values>
  estimate::Estimate ratio(const Values& values) const {
    if (results_.size() == 1) return estimate::batch_means(values(results_.front()));
    RatioByCluster ratio;
    for (std::size_t s = 0; s < results_.size(); ++s)
      for (const double value : values(results_[s])) ratio.add(cluster_of(s, prompts_.size()), value, 1);
    estimate::Estimate estimate = *ratio.value();
    const bool by_prompt = prompts_.size() > 1;
    estimate.method = fmt::format("ratio of sums over {} {}, Student's t",
                                  by_prompt ? std::min(prompts_.size(), results_.size()) : results_.size(),
                                  by_prompt ? "prompts" : "sequences");
    return estimate;
  }

  static void clamp(estimate::Estimate& estimate, double lo, double hi) {
    estimate.value = std::clamp(estimate.value, lo, hi);
    if (estimate.ci95) estimate.ci95 = {std::max(lo, estimate.ci95->lo), std::min(hi, estimate.ci95->hi)};
  }

  void check_exactly(const std::string& name, double expected, double measured) {
    configuration_.checks.push_back({name, expected, measured, std::nullopt, std::nullopt, measured == expected});
    configuration_.passed = configuration_.passed && measured == expected;
  }

  std::optional<double> check_deviation(const std::string& name, const Comparison& sums) {
    Check check{name, sums.expected, sums.measured, std::nullopt, std::nullopt, true};
    if (sums.variance >= least_variance) {
      check.deviation_standard_errors = (sums.measured - sums.expected) / std::sqrt(sums.variance);
      check.p_value = two_sided_normal_p_value(*check.deviation_standard_errors);
      check.passed = judge(*check.p_value);
    }
    configuration_.checks.push_back(check);
    return check.deviation_standard_errors;
  }

  // Records one test; true if it passes.
  bool judge(double p_value) {
    ++configuration_.tests;
    configuration_.smallest_p_value = std::min(configuration_.smallest_p_value.value_or(1), p_value);
    configuration_.passed = configuration_.passed && p_value >= level_;
    return p_value >= level_;
  }

  void test_distribution() {
    for (const auto order : {UniformityTest::Order::by_ratio, UniformityTest::Order::by_probability})
      for (std::int64_t slot = 0; slot <= configuration_.gamma + 1; ++slot) test_uniformity(order, slot);
  }

  void test_uniformity(UniformityTest::Order order, std::int64_t slot) {
    std::vector<double> values;
    for (const SequenceResult& result : results_)
      for (const PlacedToken& token : result.evidence.tokens)
        if (slot == 0 || token.slot == slot)
          values.push_back(order == UniformityTest::Order::by_ratio ? token.by_ratio : token.by_probability);
    UniformityTest test{order, slot, static_cast<std::int64_t>(values.size()), std::nullopt, std::nullopt, true};
    if (test.tokens >= least_tokens) {
      test.distance = kolmogorov_distance(values);
      test.p_value = kolmogorov_p_value(*test.distance, test.tokens);
      test.passed = judge(*test.p_value);
    }
    configuration_.uniformity.push_back(test);
  }

  void test_greedy() {
    std::int64_t equal = 0;
    for (const SequenceResult& result : results_) equal += result.equal_to_plain;
    const std::int64_t wanted = configuration_.sequences * options_.max_new_tokens;
    check_exactly("tokens_equal_to_greedy", static_cast<double>(wanted), static_cast<double>(equal));
    check_exactly("steps_equal_to_replay", replayed_.expected, static_cast<double>(configuration_.counters.steps));
  }

  /// Decodes texts that were judged once more, in turn with plain decoding: their closed form is known.
  void measure_time() {
    MethodClock clock;
    const sim::OwnedModel target = models_.target(options_.threads);
    const sim::OwnedModel draft = models_.draft(options_.threads);
    const DraftBench bench =
        clock.timed({target, std::make_shared<sim::ModelDraft>(*draft, decoding_.standardisation), draft, {}});
    std::vector<RunTimes> times;
    double tokens = 0;
    double expected_steps = 0;
    for (std::int64_t i = 0; i < options_.timed_prompts; ++i) {
      const std::int64_t sequence = i % configuration_.sequences;
      const sim::RandomStream stream(options_.seed, first_sequence_ + static_cast<std::uint64_t>(sequence));
      const std::span<const sim::Token> prompt = prompt_of(sequence);
      times.push_back(time_in_turn(*target, prompt, decoding_, stream, clock, [&] {
        return sim::decode_with_draft(*bench.target, *bench.draft, prompt, decoding_, stream).counters;
      }));
      tokens += static_cast<double>(times.back().counters.tokens);
      expected_steps += results_[static_cast<std::size_t>(sequence)].replayed.expected;
    }
    configuration_.timing = timing_of(times, configuration_.gamma, configuration_.alpha.value, tokens / expected_steps);
  }

  const sim::ModelPair& models_;
  const Options& options_;
  const PromptList& prompts_;
  double level_;
  std::uint64_t first_sequence_;
  sim::DecodingOptions decoding_;
  Configuration configuration_;
  std::vector<SequenceResult> results_;
  theory::ReplayedSteps replayed_;
  Comparison accepted_;
  Comparison emitted_acceptance_;
  std::int64_t impossible_tokens_ = 0;
};

// Tasks in order of first occurrence.
std::vector<std::pair<std::string, PromptList>> by_task(std::span<const sim::Prompt> prompts) {
  std::vector<std::pair<std::string, PromptList>> tasks;
  for (const sim::Prompt& prompt : prompts) {
    auto task = std::find_if(tasks.begin(), tasks.end(), [&](const auto& known) { return known.first == prompt.task; });
    if (task == tasks.end()) task = tasks.insert(task, {prompt.task, {}});
    task->second.push_back(prompt.tokens);
  }
  return tasks;
}

void book(Configuration configuration, Report& report) {
  report.tests += configuration.tests;
  report.tokens += configuration.counters.tokens;
  if (configuration.smallest_p_value)
    report.smallest_p_value = std::min(report.smallest_p_value.value_or(1), *configuration.smallest_p_value);
  report.passed = report.passed && configuration.passed;
  report.configurations.push_back(std::move(configuration));
}

}  // namespace

Report validate(const sim::ModelPair& models, std::span<const sim::Prompt> prompts, const Options& options,
                const Progress& progress) {
  require_valid(options);
  if (prompts.empty()) throw std::invalid_argument("validate: prompts has 0 entries, but must have 1 or more");
  std::vector<Worker> workers;
  const std::int64_t most_sequences = (options.tokens + options.max_new_tokens - 1) / options.max_new_tokens;
  for (std::int64_t w = 0; w < std::min(options.threads, most_sequences); ++w) workers.emplace_back(models);
  const std::int64_t target_vocab = workers.front().target->vocab_size();
  const std::int64_t draft_vocab = workers.front().draft->vocab_size();
  if (target_vocab != draft_vocab)
    throw std::invalid_argument(
        fmt::format("validate: the target has {} tokens, but the draft has {}: speculative "
                    "sampling needs one vocabulary",
                    target_vocab, draft_vocab));

  const auto tasks = by_task(prompts);
  Report report;
  report.planned_tests = planned_tests(options, tasks.size());
  report.level = run_level / static_cast<double>(std::max<std::int64_t>(1, report.planned_tests));
  const std::size_t total = tasks.size() * options.temperatures.size() * options.gammas.size();
  for (const auto& [task, task_prompts] : tasks) {
    for (const double temperature : options.temperatures) {
      for (const std::int64_t gamma : options.gammas) {
        const std::size_t number = report.configurations.size();
        if (progress) progress(static_cast<double>(number) / static_cast<double>(total));
        Experiment experiment(models, options, task_prompts, report.level, number);
        book(experiment.run(workers, task, temperature, gamma), report);
      }
    }
  }
  if (progress) progress(1);
  return report;
}

}  // namespace specdec::validation
