#include <algorithm>
#include <array>
#include <utility>

#include "analysis/core/kernels.hpp"
#include "analysis/theory/block_verification.hpp"
#include "analysis/theory/lenience.hpp"
#include "analysis/theory/rejection_sampling.hpp"
#include "analysis/theory/typical_acceptance.hpp"
#include "sim/decoding.hpp"
#include "sim/validation/methods.hpp"
#include "sim/verifiers/baselines.hpp"
#include "sim/verifiers/block_verification.hpp"
#include "sim/verifiers/lossy.hpp"

namespace specdec::validation {
namespace {

using TargetRow = core::TargetDistribution;
using DraftRow = core::DraftDistribution;

/// The closed form of one drafted position.
struct PositionForm {
  double acceptance = 0;
  /// Total variation between the law of its token and the target's.
  double distance = 0;
};

/// A verifier of one chain, and its closed form at a position that was drafted as `token`.
struct ChainRule {
  sim::Verifier verify;
  /// Empty for block verification, which judges no draft individually.
  std::function<PositionForm(const TargetRow& p, const DraftRow& q, std::size_t token)> form;
  sim::Proposing proposing = sim::Proposing::sampled;
  /// Decodes greedily and compares the models' unmodified rows.
  bool greedy_text = false;
};

// The number of accepted drafts has a law given the drafts.
void book_block(const sim::DraftedBlock& block, const sim::Verdict& verdict, RoundSums& sums) {
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

// A position is judged if all before it have passed.
void book_positions(const ChainRule& rule, const sim::DraftedBlock& block, const sim::Verdict& verdict,
                    RoundSums& sums) {
  const auto accepted = static_cast<std::size_t>(verdict.accepted);
  for (std::size_t i = 0; i < std::min(accepted + 1, block.gamma()); ++i) {
    const PositionForm form = rule.form(TargetRow(block.p(i)), DraftRow(block.q(i)), block.token(i));
    sums.book(form.acceptance, i < accepted, form.distance);
  }
}

/// A draft, one of these rules, and a policy.
class ChainDecoder final : public MethodDecoder {
 public:
  ChainDecoder(const MethodContext& context, ChainRule rule, const DraftBenchFactory& benches,
               const DraftedLength& length)
      : context_(context), rule_(std::move(rule)), in_hindsight_(length.in_hindsight) {
    options_ = context.decoding();
    options_.gamma = length.gamma;
    options_.policy = length.policy;
    if (rule_.greedy_text) options_.standardisation = {};
    bench_.emplace(benches(options_.standardisation, rule_.proposing));
    options_.verifier = [this](const sim::DraftedBlock& block, const sim::UniformSource& uniforms, std::int64_t round) {
      return verify(block, uniforms, round);
    };
  }

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) override {
    sums_ = {};
    sim::Generation text = sim::decode_with_draft(*bench_->target, *bench_->draft, prompt, options_, uniforms);
    if (in_hindsight_) count_in_hindsight(text);
    return context_.run_of(std::move(text), sums_, &*bench_);
  }

 private:
  sim::Verdict verify(const sim::DraftedBlock& block, const sim::UniformSource& uniforms, std::int64_t round) {
    const sim::Verdict verdict = rule_.verify(block, uniforms, round);
    if (block.gamma() == 0) return verdict;
    context_.outside_the_clock([&] {
      if (rule_.form)
        book_positions(rule_, block, verdict, sums_);
      else
        book_block(block, verdict, sums_);
    });
    return verdict;
  }

  /// Counts as though rejected drafts had not been made; a draft that is called once per token reads the text once.
  void count_in_hindsight(sim::Generation& text) const {
    sim::Counters& counters = text.counters;
    const double target = context_.target_operations();
    const double drafting = counters.operations - target * static_cast<double>(counters.target_positions);
    const double per_position =
        counters.draft_positions > 0 ? drafting / static_cast<double>(counters.draft_positions) : 0;
    counters.drafted = counters.draft_calls = counters.accepted;
    while (!counters.accepted_at.empty() && counters.accepted_at.back() == 0) counters.accepted_at.pop_back();
    counters.drafted_at = counters.accepted_at;
    counters.target_positions = counters.accepted + counters.steps;
    counters.draft_positions = 0;
    std::int64_t length = 0;
    for (sim::Step& step : text.steps) {
      step.drafted = step.accepted;
      if (step.accepted > 0) counters.draft_positions = length + step.accepted;
      length += step.emitted;
    }
    counters.operations = target * static_cast<double>(counters.target_positions) +
                          per_position * static_cast<double>(counters.draft_positions);
  }

  const MethodContext& context_;
  ChainRule rule_;
  bool in_hindsight_;
  sim::DecodingOptions options_;
  std::optional<DraftBench> bench_;
  RoundSums sums_;
};

template <ChainRule (*rule)(const MethodSettings&)>
MethodDecoderFactory prepare_chain(const MethodContext& context, const DraftBenchFactory& benches,
                                   const DraftedLength& length) {
  return [&context, benches, length] {
    return std::make_unique<ChainDecoder>(context, rule(context.settings()), benches, length);
  };
}

template <ChainRule (*rule)(const MethodSettings&)>
constexpr VerifierKind chain(std::string_view name, bool lossless, ParametersUsed uses = {.temperature = true}) {
  uses.cost = true;
  return {name, lossless, prepare_chain<rule>, nullptr, nullptr, uses, !uses.temperature};
}

PositionForm overlap_form(const TargetRow& p, const DraftRow& q, std::size_t) {
  return {std::min(1.0, core::overlap(p, q))};
}

ChainRule algorithm1(const MethodSettings&) { return {sim::verify_tokens, overlap_form}; }

ChainRule greedy_draft(const MethodSettings&) { return {sim::verify_tokens, overlap_form, sim::Proposing::greedy}; }

ChainRule block(const MethodSettings&) { return {sim::verify_block, {}}; }

ChainRule matching(const MethodSettings&) {
  return {sim::verify_by_matching, [](const TargetRow& p, const DraftRow& q, std::size_t) {
            return PositionForm{theory::matching_acceptance(p, q)};
          }};
}

ChainRule rejection(const MethodSettings&) {
  return {sim::verify_by_rejection_sampling, [](const TargetRow& p, const DraftRow& q, std::size_t) {
            return PositionForm{theory::rejection_sampling_acceptance(p, q)};
          }};
}

auto lenient_form(double lenience, theory::LenientResidual residual) {
  return [lenience, residual](const TargetRow& p, const DraftRow& q, std::size_t) {
    return PositionForm{theory::lenient_acceptance(p, q, lenience).alpha(),
                        theory::lenient_distance(p, q, lenience, residual)};
  };
}

ChainRule lenient(const MethodSettings& settings) {
  return {sim::lenient_verifier(settings.lenience, sim::LenientResidual::strict),
          lenient_form(settings.lenience, theory::LenientResidual::strict)};
}

ChainRule lenient_residual(const MethodSettings& settings) {
  return {sim::lenient_verifier(settings.lenience, sim::LenientResidual::lenient),
          lenient_form(settings.lenience, theory::LenientResidual::lenient)};
}

ChainRule argmax_lenient(const MethodSettings& settings) {
  const double lenience = settings.lenience;
  return {sim::lenient_argmax_verifier(lenience),
          [lenience](const TargetRow& p, const DraftRow&, std::size_t token) {
            const bool accepted = theory::argmax_lenient_accepts(p, token, lenience);
            const bool greedy = static_cast<std::int64_t>(token) == core::argmax(p.probabilities());
            return PositionForm{accepted ? 1.0 : 0.0, accepted && !greedy ? 1.0 : 0.0};
          },
          sim::Proposing::greedy, true};
}

ChainRule typical(const MethodSettings& settings) {
  const theory::TypicalRule rule{settings.epsilon, settings.delta};
  return {sim::typical_verifier(settings.epsilon, settings.delta),
          [rule](const TargetRow& p, const DraftRow& q, std::size_t) {
            return PositionForm{theory::typical_acceptance(p, q, rule).alpha(), theory::typical_distance(p, q, rule)};
          }};
}

}  // namespace

std::span<const VerifierKind> chain_verifier_kinds() {
  static constexpr std::array kinds{
      chain<algorithm1>("algorithm1", true),
      chain<greedy_draft>("greedy-draft", true),
      chain<block>("block", true),
      chain<matching>("matching", true),
      chain<rejection>("rejection", true),
      chain<lenient>("lenient", false, {.temperature = true, .lenience = true}),
      chain<lenient_residual>("lenient-residual", false, {.temperature = true, .lenience = true}),
      chain<argmax_lenient>("argmax-lenient", false, {.lenience = true}),
      chain<typical>("typical", false, {.temperature = true, .epsilon = true, .delta = true}),
  };
  return kinds;
}

}  // namespace specdec::validation
