#include "sim/validation/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/validation/uniformity.hpp"

namespace specdec::validation {
namespace {

using sim::LanguageModelRef;
using sim::Token;

constexpr std::size_t block_size = 12;

void require_consistent(const sim::Generation& generation) {
  std::int64_t emitted = 0;
  for (const sim::Step& step : generation.steps) {
    if (step.accepted < 0 || step.accepted > step.drafted || step.emitted != step.accepted + 1)
      throw std::logic_error(fmt::format("gather_evidence: a step drafted {}, accepted {} and emitted {} tokens",
                                         step.drafted, step.accepted, step.emitted));
    emitted += step.emitted;
  }
  if (emitted != static_cast<std::int64_t>(generation.tokens.size()))
    throw std::logic_error(fmt::format("gather_evidence: the steps emitted {} tokens, but the text has {}", emitted,
                                       generation.tokens.size()));
}

// Calls visit(t, target row, draft row) with the standardised distributions before every token t of the text.
template <class Visit>
void for_each_prefix(LanguageModelRef target, LanguageModelRef draft, std::span<const Token> prompt,
                     std::span<const Token> text, const sim::Standardisation& standardisation, const Visit& visit) {
  const auto vocab = static_cast<std::size_t>(target.vocab_size());
  std::vector<Token> inputs{prompt.back()};
  inputs.insert(inputs.end(), text.begin(), text.end() - 1);
  std::vector<double> target_rows(block_size * vocab);
  std::vector<double> draft_rows(block_size * vocab);

  target.roll_back(0);
  draft.roll_back(0);
  for (std::size_t begin = 0; begin + 1 < prompt.size(); begin += block_size) {
    const auto block = prompt.subspan(begin, std::min(block_size, prompt.size() - 1 - begin));
    target.score(block, {});
    draft.score(block, {});
  }
  for (std::size_t begin = 0; begin < inputs.size(); begin += block_size) {
    const auto block = std::span<const Token>(inputs).subspan(begin, std::min(block_size, inputs.size() - begin));
    target.score(block, std::span(target_rows).first(block.size() * vocab));
    draft.score(block, std::span(draft_rows).first(block.size() * vocab));
    for (std::size_t i = 0; i < block.size(); ++i) {
      const auto p = std::span(target_rows).subspan(i * vocab, vocab);
      const auto q = std::span(draft_rows).subspan(i * vocab, vocab);
      sim::standardise(p, standardisation);
      sim::standardise(q, standardisation);
      visit(begin + i, std::span<const double>(p), std::span<const double>(q));
    }
  }
}

// beta = E[a] and the variance of a = min(1, q(x)/p(x)) under x ~ p.
struct AcceptanceMoments {
  double beta = 0;
  double variance = 0;
};

AcceptanceMoments acceptance_moments(std::span<const double> p, std::span<const double> q) {
  double beta = 0;
  double second_moment = 0;
  for (std::size_t x = 0; x < p.size(); ++x) {
    const double overlap = std::min(p[x], q[x]);
    beta += overlap;
    if (overlap > 0) second_moment += overlap * std::min(1.0, q[x] / p[x]);
  }
  return {std::min(1.0, beta), std::max(0.0, second_moment - beta * beta)};
}

}  // namespace

void Comparison::add(const Comparison& other) {
  expected += other.expected;
  measured += other.measured;
  variance += other.variance;
}

Evidence gather_evidence(LanguageModelRef target, LanguageModelRef draft, std::span<const Token> prompt,
                         const sim::Generation& generation, const sim::Standardisation& standardisation,
                         const sim::UniformSource& uniforms) {
  require_consistent(generation);
  Evidence evidence;
  if (generation.tokens.empty()) return evidence;

  auto step = generation.steps.begin();
  std::int64_t place = 0;
  for_each_prefix(
      target, draft, prompt, generation.tokens, standardisation,
      [&](std::size_t t, std::span<const double> p, std::span<const double> q) {
        if (place == step->emitted) {
          ++step;
          place = 0;
        }
        const Token token = generation.tokens[t];
        const double own = p[static_cast<std::size_t>(token)];
        const AcceptanceMoments moments = acceptance_moments(p, q);
        const double acceptance = own > 0 ? std::min(1.0, q[static_cast<std::size_t>(token)] / own) : 1.0;
        evidence.impossible_tokens += own > 0 ? 0 : 1;
        evidence.betas.push_back(moments.beta);
        evidence.acceptances.push_back(acceptance);
        evidence.emitted_acceptance.add({moments.beta, acceptance, moments.variance});
        if (place < step->drafted)
          evidence.accepted.add({moments.beta, place < step->accepted ? 1.0 : 0.0, moments.beta * (1 - moments.beta)});
        const double u = uniforms.uniform(static_cast<std::int64_t>(t), 0, sim::Purpose::test);
        ++place;
        evidence.tokens.push_back({place, transform_by_ratio(p, q, token, u), transform_by_probability(p, token, u)});
      });
  return evidence;
}

}  // namespace specdec::validation
