#include "sim/validation/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/text_scoring.hpp"
#include "sim/validation/uniformity.hpp"

namespace specdec::validation {
namespace {

using sim::LanguageModel;
using sim::Token;

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

Evidence gather_evidence(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                         const sim::Generation& generation, const core::Standardisation& standardisation,
                         const sim::UniformSource& uniforms) {
  require_consistent(generation);
  Evidence evidence;
  if (generation.tokens.empty()) return evidence;

  auto step = generation.steps.begin();
  std::int64_t place = 0;
  sim::for_each_prefix(
      target, draft, prompt, generation.tokens, [&](std::size_t t, std::span<double> p, std::span<double> q) {
        core::standardise(p, standardisation);
        core::standardise(q, standardisation);
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
