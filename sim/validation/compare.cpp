#include "sim/validation/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/kernels.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/ratio_of_sums.hpp"
#include "analysis/theory/block_verification.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/rejection_sampling.hpp"
#include "analysis/theory/typical_acceptance.hpp"
#include "sim/decoding.hpp"
#include "sim/ngram_model.hpp"
#include "sim/policies.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/evidence.hpp"
#include "sim/validation/validate.hpp"
#include "sim/verifiers/baselines.hpp"
#include "sim/verifiers/block_verification.hpp"
#include "sim/verifiers/lossy.hpp"

namespace specdec::validation {
namespace {

/// Discounts the n-grams of the prompts, of which most occur once.
constexpr double ngram_discount = 0.75;

/// What the closed forms say of the rounds of one sequence, beside what happened.
struct RoundSums {
  Comparison accepted;
  /// Drafts that were judged, and their expected acceptance.
  double judged = 0;
  double distance = 0;
};

/// Of one sequence.
struct MethodRun {
  sim::Counters counters;
  RoundSums rounds;
  /// In units of plain steps of the target.
  double cost = 0;
};

/// The closed form of one drafted position.
struct PositionForm {
  double acceptance = 0;
  /// Total variation between the law of its token and the target's.
  double distance = 0;
};

/// The rule and its closed forms.
class Judge {
 public:
  Judge(VerifierKind kind, const MethodSettings& settings) : kind_(kind), settings_(settings), rule_(rule()) {}

  /// The decoder's verifier, which books every round in `sums`.
  sim::Verifier booking(RoundSums& sums) const {
    return [this, &sums](const sim::DraftedBlock& block, const sim::UniformSource& uniforms, std::int64_t round) {
      const sim::Verdict verdict = rule_(block, uniforms, round);
      if (block.gamma() == 0) return verdict;
      if (kind_ == VerifierKind::block)
        book_block(block, verdict, sums);
      else
        book_positions(block, verdict, sums);
      return verdict;
    };
  }

 private:
  sim::Verifier rule() const {
    switch (kind_) {
      case VerifierKind::block:
        return sim::verify_block;
      case VerifierKind::matching:
        return sim::verify_by_matching;
      case VerifierKind::rejection:
        return sim::verify_by_rejection_sampling;
      case VerifierKind::lenient:
        return sim::lenient_verifier(settings_.lenience, sim::LenientResidual::strict);
      case VerifierKind::lenient_residual:
        return sim::lenient_verifier(settings_.lenience, sim::LenientResidual::lenient);
      case VerifierKind::argmax_lenient:
        return sim::lenient_argmax_verifier(settings_.lenience);
      case VerifierKind::typical:
        return sim::typical_verifier(settings_.epsilon, settings_.delta);
      case VerifierKind::algorithm1:
      case VerifierKind::greedy_draft:
        break;
    }
    return sim::verify_tokens;
  }

  // How many stay has a law given the drafts.
  static void book_block(const sim::DraftedBlock& block, const sim::Verdict& verdict, RoundSums& sums) {
    const std::vector<std::int64_t> drafts(block.drafted.begin(), block.drafted.end());
    const std::vector<double> law = theory::accepted_drafts_law(theory::block_acceptance(
        block.target_rows.first(block.draft_rows.size()), block.draft_rows, block.vocab(), drafts));
    double mean = 0;
    for (std::size_t n = 0; n < law.size(); ++n) mean += static_cast<double>(n) * law[n];
    double variance = 0;
    for (std::size_t n = 0; n < law.size(); ++n)
      variance += law[n] * (static_cast<double>(n) - mean) * (static_cast<double>(n) - mean);
    sums.accepted.add({mean, static_cast<double>(verdict.accepted), variance});
  }

  // A position is judged when all before it have passed.
  void book_positions(const sim::DraftedBlock& block, const sim::Verdict& verdict, RoundSums& sums) const {
    const auto accepted = static_cast<std::size_t>(verdict.accepted);
    for (std::size_t i = 0; i < std::min(accepted + 1, block.gamma()); ++i) {
      const PositionForm form =
          closed_form(core::TargetDistribution(block.p(i)), core::DraftDistribution(block.q(i)), block.token(i));
      const double a = form.acceptance;
      sums.accepted.add({a, i < accepted ? 1.0 : 0.0, a * (1 - a)});
      sums.judged += 1;
      sums.distance += form.distance;
    }
  }

  PositionForm closed_form(const core::TargetDistribution& p, const core::DraftDistribution& q,
                           std::size_t token) const {
    const theory::TypicalRule typical{settings_.epsilon, settings_.delta};
    switch (kind_) {
      case VerifierKind::matching:
        return {theory::matching_acceptance(p, q)};
      case VerifierKind::rejection:
        return {theory::rejection_sampling_acceptance(p, q)};
      case VerifierKind::lenient:
        return lenient_form(p, q, theory::LenientResidual::strict);
      case VerifierKind::lenient_residual:
        return lenient_form(p, q, theory::LenientResidual::lenient);
      case VerifierKind::argmax_lenient: {
        const bool accepted = theory::argmax_lenient_accepts(p, token, settings_.lenience);
        const bool greedy = static_cast<std::int64_t>(token) == core::argmax(p.probabilities());
        return {accepted ? 1.0 : 0.0, accepted && !greedy ? 1.0 : 0.0};
      }
      case VerifierKind::typical:
        return {theory::typical_acceptance(p, q, typical).alpha(), theory::typical_distance(p, q, typical)};
      case VerifierKind::algorithm1:
      case VerifierKind::greedy_draft:
      case VerifierKind::block:
        break;
    }
    return {std::min(1.0, core::overlap(p, q))};
  }

  PositionForm lenient_form(const core::TargetDistribution& p, const core::DraftDistribution& q,
                            theory::LenientResidual residual) const {
    return {theory::lenient_acceptance(p, q, settings_.lenience).alpha(),
            theory::lenient_distance(p, q, settings_.lenience, residual)};
  }

  VerifierKind kind_;
  const MethodSettings& settings_;
  sim::Verifier rule_;
};

sim::DraftingPolicy policy_of(PolicyKind kind, double threshold) {
  switch (kind) {
    case PolicyKind::threshold:
      return sim::threshold_policy(threshold);
    case PolicyKind::product:
      return sim::threshold_policy(0, threshold);
    case PolicyKind::confidence:
      return sim::confidence_policy(threshold);
    case PolicyKind::heuristic:
      return sim::feedback_policy();
    case PolicyKind::fixed:
      break;
  }
  return {};
}

bool calls_draft_model(DraftKind kind) { return kind == DraftKind::model || kind == DraftKind::combination; }

/// A draft of one thread with what it stands on.
class DraftBench {
 public:
  DraftBench(DraftKind kind, const sim::ModelFactory& model, std::int64_t vocab, std::int64_t longest_suffix,
             const core::Standardisation& standardisation, sim::Proposing proposing) {
    const bool looks_up = kind == DraftKind::copy || kind == DraftKind::combination;
    if (looks_up) lookup_ = std::make_unique<sim::LookupDraft>(vocab, 1, longest_suffix);
    if (kind != DraftKind::copy) {
      model_.emplace(model(1));
      drafted_ = std::make_unique<sim::ModelDraft>(model_->ref(), standardisation, proposing);
    }
    if (kind == DraftKind::combination) both_ = std::make_unique<sim::FallbackDraft>(*lookup_, *drafted_);
  }

  sim::Draft& draft() {
    if (both_) return *both_;
    if (lookup_) return *lookup_;
    return *drafted_;
  }

 private:
  std::optional<sim::OwnedModel> model_;
  std::unique_ptr<sim::LookupDraft> lookup_;
  std::unique_ptr<sim::ModelDraft> drafted_;
  std::unique_ptr<sim::FallbackDraft> both_;
};

void require_valid(const MethodSource& source, std::span<const Method> methods, const MethodSettings& settings) {
  constexpr std::int64_t many = std::int64_t{1} << 31;
  core::require_in("compare", "gamma", settings.gamma, std::int64_t{1}, std::int64_t{1024});
  core::require_in("compare", "tokens", settings.tokens, std::int64_t{1}, many);
  core::require_in("compare", "max_new_tokens", settings.max_new_tokens, std::int64_t{2}, many);
  core::require_in("compare", "ngram_order", settings.ngram_order, std::int64_t{1}, std::int64_t{64});
  core::require_in("compare", "threads", settings.threads, std::int64_t{1}, std::int64_t{1024});
  core::require_valid(core::Standardisation{.temperature = settings.temperature});
  if (source.prompts.empty()) throw std::invalid_argument("compare: prompts has 0 entries, but must have 1 or more");
  for (const Method& method : methods)
    if (!exists(method, source))
      throw std::invalid_argument(
          fmt::format("compare: the source has nothing that {} could draft with", name_of(method)));
}

/// Runs one method over all sequences and sums them up.
class MethodExperiment {
 public:
  MethodExperiment(const MethodSource& source, const MethodSettings& settings, std::vector<sim::OwnedModel>& targets,
                   const sim::ModelFactory& ngrams)
      : source_(source), settings_(settings), targets_(targets), ngrams_(ngrams) {}

  void run(const Method& method, std::vector<MethodResult>& results) {
    method_ = method;
    decode();
    std::vector<std::string> tasks;
    for (const sim::Prompt& prompt : source_.prompts)
      if (std::find(tasks.begin(), tasks.end(), prompt.task) == tasks.end()) tasks.push_back(prompt.task);
    results.push_back(summary(""));
    if (tasks.size() < 2) return;
    for (const std::string& task : tasks)
      if (has_sequences(task)) results.push_back(summary(task));
  }

 private:
  std::size_t prompt_of(std::size_t sequence) const { return sequence % source_.prompts.size(); }

  bool belongs(std::size_t sequence, const std::string& task) const {
    return task.empty() || source_.prompts[prompt_of(sequence)].task == task;
  }

  bool has_sequences(const std::string& task) const {
    for (std::size_t s = 0; s < runs_.size(); ++s)
      if (belongs(s, task)) return true;
    return false;
  }

  void decode() {
    const bool greedy_text = method_.verifier == VerifierKind::argmax_lenient;
    sim::DecodingOptions decoding;
    decoding.gamma = settings_.gamma;
    decoding.max_new_tokens = settings_.max_new_tokens;
    // Argmax lenience compares the rows as the model gives them.
    decoding.standardisation = {.temperature = greedy_text ? 1.0 : settings_.temperature};
    decoding.policy = policy_of(method_.policy, settings_.threshold);
    const auto proposing = greedy_text || method_.verifier == VerifierKind::greedy_draft ? sim::Proposing::greedy
                                                                                         : sim::Proposing::sampled;
    std::vector<DraftBench> benches;
    for (sim::OwnedModel& target : targets_)
      benches.emplace_back(method_.draft, draft_model(target.ref().vocab_size()), target.ref().vocab_size(),
                           settings_.ngram_order, decoding.standardisation, proposing);
    const Judge judge(method_.verifier, settings_);
    const std::int64_t sequences = (settings_.tokens + settings_.max_new_tokens - 1) / settings_.max_new_tokens;
    runs_.assign(static_cast<std::size_t>(sequences), {});
    core::for_each_index(
        sequences, static_cast<std::int64_t>(targets_.size()), [&](std::int64_t sequence, std::int64_t worker) {
          const auto w = static_cast<std::size_t>(worker);
          const auto s = static_cast<std::size_t>(sequence);
          sim::DecodingOptions options = decoding;
          options.verifier = judge.booking(runs_[s].rounds);
          const sim::RandomStream stream(settings_.seed, static_cast<std::uint64_t>(sequence));
          const sim::Generation text = sim::decode_with_draft(targets_[w].ref(), benches[w].draft(),
                                                              source_.prompts[prompt_of(s)].tokens, options, stream);
          runs_[s].counters = text.counters;
          if (settings_.cost) runs_[s].cost = cost_of(text, *settings_.cost);
        });
  }

  sim::ModelFactory draft_model(std::int64_t vocab) const {
    switch (method_.draft) {
      case DraftKind::unigram:
        return source_.unigram;
      case DraftKind::bigram:
        return source_.bigram;
      case DraftKind::ngram:
        return ngrams_;
      case DraftKind::random: {
        const sim::ContextTableModel uniform =
            sim::unigram_model(std::vector<double>(static_cast<std::size_t>(vocab), 1 / static_cast<double>(vocab)));
        return [uniform](std::int64_t) { return sim::OwnedModel(uniform); };
      }
      case DraftKind::copy:
      case DraftKind::model:
      case DraftKind::combination:
        break;
    }
    return source_.models.draft;
  }

  double cost_of(const sim::Generation& text, const core::StepCost& cost) const {
    const core::StepCost without_drafts{0, cost.overhead, cost.verification};
    double sum = calls_draft_model(method_.draft) ? cost.c * static_cast<double>(text.counters.draft_calls) : 0;
    for (const sim::Step& step : text.steps) sum += without_drafts(step.drafted);
    return sum;
  }

  MethodResult summary(const std::string& task) const {
    MethodResult result;
    result.method = method_;
    result.task = task;
    RoundSums rounds;
    for (std::size_t s = 0; s < runs_.size(); ++s) {
      if (!belongs(s, task)) continue;
      result.sequences += 1;
      result.counters.merge(runs_[s].counters);
      rounds.accepted.add(runs_[s].rounds.accepted);
      rounds.judged += runs_[s].rounds.judged;
      rounds.distance += runs_[s].rounds.distance;
    }
    const auto steps = static_cast<double>(result.counters.steps);
    const auto tokens = static_cast<double>(result.counters.tokens);
    const auto tokens_of = [](const MethodRun& run) { return static_cast<double>(run.counters.tokens); };
    const auto steps_of = [](const MethodRun& run) { return static_cast<double>(run.counters.steps); };
    result.tokens_per_step = ratio(task, tokens_of, steps_of);
    if (result.counters.drafted > 0) {
      result.closed_form_tokens_per_step = 1 + rounds.accepted.expected / steps;
      if (rounds.accepted.variance >= least_variance)
        result.deviation_standard_errors =
            (rounds.accepted.measured - rounds.accepted.expected) / std::sqrt(rounds.accepted.variance);
    }
    if (rounds.judged > 0)
      result.acceptance = ratio(
          task, [](const MethodRun& run) { return run.rounds.accepted.expected; },
          [](const MethodRun& run) { return run.rounds.judged; });
    for (std::size_t j = 0; j < result.counters.drafted_at.size(); ++j)
      result.acceptance_by_position.push_back(static_cast<double>(result.counters.accepted_at[j]) /
                                              static_cast<double>(result.counters.drafted_at[j]));
    result.total_variation_per_token = rounds.distance / tokens;
    result.target_calls_per_token = static_cast<double>(result.counters.target_calls) / tokens;
    result.draft_calls_per_token = static_cast<double>(result.counters.draft_calls) / tokens;
    const double operations = targets_.front().ref().operations_per_token();
    if (operations > 0) result.operations_factor = result.counters.operations / (tokens * operations);
    if (settings_.cost) result.speedup = ratio(task, tokens_of, [](const MethodRun& run) { return run.cost; });
    return result;
  }

  // Sum over sum; the sequences of one prompt form a cluster, with a single prompt every sequence is one.
  template <class Numerator, class Denominator>
  estimate::Estimate ratio(const std::string& task, const Numerator& numerator, const Denominator& denominator) const {
    const std::size_t clusters = source_.prompts.size() > 1 ? source_.prompts.size() : runs_.size();
    std::vector<double> sums;
    std::vector<double> counts;
    for (std::size_t first = 0; first < std::min(clusters, runs_.size()); ++first) {
      if (!belongs(first, task)) continue;
      sums.push_back(0);
      counts.push_back(0);
      for (std::size_t s = first; s < runs_.size(); s += clusters) {
        sums.back() += numerator(runs_[s]);
        counts.back() += denominator(runs_[s]);
      }
    }
    return estimate::ratio_of_sums(sums, counts);
  }

  const MethodSource& source_;
  const MethodSettings& settings_;
  std::vector<sim::OwnedModel>& targets_;
  const sim::ModelFactory& ngrams_;
  Method method_;
  std::vector<MethodRun> runs_;
};

sim::ModelFactory ngrams_of_prompts(const MethodSource& source, std::int64_t vocab, std::int64_t order) {
  std::vector<std::vector<sim::Token>> texts;
  for (const sim::Prompt& prompt : source.prompts) texts.push_back(prompt.tokens);
  const sim::NgramModel model(vocab, texts, order, ngram_discount);
  return [model](std::int64_t) { return sim::OwnedModel(model); };
}

}  // namespace

bool exists(const Method& method, const MethodSource& source) {
  switch (method.draft) {
    case DraftKind::unigram:
      return static_cast<bool>(source.unigram);
    case DraftKind::bigram:
      return static_cast<bool>(source.bigram);
    case DraftKind::ngram:
      return source.has_texts;
    case DraftKind::model:
    case DraftKind::copy:
    case DraftKind::combination:
    case DraftKind::random:
      break;
  }
  return true;
}

std::vector<Method> known_methods(const MethodSource& source) {
  std::vector<Method> methods;
  for (std::size_t v = 0; v < verifier_names().size(); ++v)
    methods.push_back({.verifier = static_cast<VerifierKind>(v)});
  for (std::size_t d = 1; d < draft_names().size(); ++d) methods.push_back({.draft = static_cast<DraftKind>(d)});
  for (std::size_t p = 1; p < policy_names().size(); ++p) methods.push_back({.policy = static_cast<PolicyKind>(p)});
  methods.erase(std::remove_if(methods.begin(), methods.end(), [&](const Method& m) { return !exists(m, source); }),
                methods.end());
  return methods;
}

std::optional<double> operations_ratio(const MethodSource& source) {
  const double target = source.models.target(1).ref().operations_per_token();
  if (target <= 0) return std::nullopt;
  return source.models.draft(1).ref().operations_per_token() / target;
}

MethodSource synthetic_source(std::int64_t vocab_size, double noise, std::uint64_t seed) {
  core::require_in("synthetic_source", "vocab_size", vocab_size, std::int64_t{2}, std::int64_t{4096});
  const sim::TablePair pair = sim::synthetic_bigram_pair(vocab_size, noise, seed);
  MethodSource source;
  source.models.target = [model = pair.target](std::int64_t) { return sim::OwnedModel(model); };
  source.models.draft = [model = pair.draft](std::int64_t) { return sim::OwnedModel(model); };
  for (sim::Token token = 0; token < std::min<std::int64_t>(vocab_size, 16); ++token)
    source.prompts.push_back({"synthetic", {token}});
  source.has_texts = false;
  return source;
}

std::vector<MethodResult> compare(const MethodSource& source, std::span<const Method> methods,
                                  const MethodSettings& settings, const std::function<void(double share)>& progress) {
  require_valid(source, methods, settings);
  std::vector<sim::OwnedModel> targets;
  const std::int64_t sequences = (settings.tokens + settings.max_new_tokens - 1) / settings.max_new_tokens;
  for (std::int64_t w = 0; w < std::min(settings.threads, sequences); ++w) targets.push_back(source.models.target(1));
  const std::int64_t vocab = targets.front().ref().vocab_size();
  sim::ModelFactory ngrams;
  if (std::any_of(methods.begin(), methods.end(), [](const Method& m) { return m.draft == DraftKind::ngram; }))
    ngrams = ngrams_of_prompts(source, vocab, settings.ngram_order);

  std::vector<MethodResult> results;
  MethodExperiment experiment(source, settings, targets, ngrams);
  for (std::size_t m = 0; m < methods.size(); ++m) {
    if (progress) progress(static_cast<double>(m) / static_cast<double>(methods.size()));
    experiment.run(methods[m], results);
  }
  if (progress) progress(1);
  return results;
}

}  // namespace specdec::validation
