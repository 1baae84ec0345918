#include "sim/validation/known_beta.hpp"

#include <algorithm>
#include <utility>

#include "analysis/theory/known_acceptance.hpp"
#include "sim/decoding.hpp"
#include "sim/text_scoring.hpp"

namespace specdec::validation {
namespace {

class KnownBetaDecoder final : public MethodDecoder {
 public:
  KnownBetaDecoder(const MethodContext& context, const DraftBenchFactory& benches)
      : context_(context), bench_(benches(context.standardisation(), sim::Proposing::sampled)) {}

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) override {
    const std::vector<sim::Token> text =
        sim::decode_autoregressively(*bench_.target, prompt, context_.decoding(), uniforms).tokens;
    const std::vector<double> acceptance = acceptance_of(prompt, text);
    const std::vector<std::int64_t> gammas =
        theory::known_acceptance_program(acceptance, context_.settings().most_drafts, *context_.settings().cost).gammas;
    RoundSums sums;
    sim::Generation rounds = play(text, acceptance, gammas, uniforms, sums);
    return context_.run_of(std::move(rounds), sums, &bench_);
  }

 private:
  /// a_t = min(1, q_t(x_t) / p_t(x_t)).
  std::vector<double> acceptance_of(std::span<const sim::Token> prompt, std::span<const sim::Token> text) {
    std::vector<double> acceptance;
    const core::Standardisation standardisation = context_.standardisation();
    sim::for_each_prefix(*bench_.target, *bench_.model, prompt, text,
                         [&](std::size_t t, std::span<double> p, std::span<double> q) {
                           core::standardise(p, standardisation);
                           core::standardise(q, standardisation);
                           const auto x = static_cast<std::size_t>(text[t]);
                           acceptance.push_back(std::min(1.0, q[x] / p[x]));
                         });
    return acceptance;
  }

  sim::Generation play(std::span<const sim::Token> text, std::span<const double> acceptance,
                       std::span<const std::int64_t> gammas, const sim::UniformSource& uniforms, RoundSums& sums) {
    sim::Generation rounds;
    sim::Counters& counters = rounds.counters;
    // The number of tokens read by the draft, of the prompt's last token and the text.
    std::int64_t read = 0;
    for (std::size_t t = 0, round = 0; t < text.size(); ++round) {
      const std::int64_t gamma = gammas[t];
      std::int64_t accepted = 0;
      for (bool stays = true; stays && accepted < gamma;) {
        const double a = acceptance[t + static_cast<std::size_t>(accepted)];
        stays = uniforms.uniform(static_cast<std::int64_t>(round), accepted, sim::Purpose::acceptance) < a;
        sums.book(a, stays);
        accepted += stays;
      }
      rounds.begin_step({gamma, accepted, 0, -1}, gamma);
      for (std::int64_t i = 0; i <= accepted; ++i) rounds.emit(text[t + static_cast<std::size_t>(i)], std::nullopt);
      counters.target_calls += 1;
      counters.target_positions += gamma + 1;
      counters.draft_calls += gamma;
      if (gamma > 0) {
        const auto length = static_cast<std::int64_t>(t) + 1;
        counters.draft_positions += length - read + gamma - 1;
        read = std::min(length + gamma - 1, length + accepted);
      }
      t += static_cast<std::size_t>(accepted) + 1;
    }
    counters.operations = context_.target_operations() * static_cast<double>(counters.target_positions) +
                          bench_.model->operations_per_token() * static_cast<double>(counters.draft_positions);
    return rounds;
  }

  const MethodContext& context_;
  DraftBench bench_;
};

}  // namespace

std::string lacks_known_beta(const MethodContext& context, const VerifierKind& verifier) {
  if (verifier.name != verifier_kinds().front().name) return "what stays is known ahead for algorithm1 alone";
  return context.settings().cost ? "" : "drafts are weighed against a cost, and there is none";
}

MethodDecoderFactory prepare_known_beta(const MethodContext& context, const VerifierKind&,
                                        const DraftBenchFactory& benches) {
  return [&context, benches] { return std::make_unique<KnownBetaDecoder>(context, benches); };
}

}  // namespace specdec::validation
