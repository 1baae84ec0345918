#include "tests/support/wrong_samplers.hpp"

#include <vector>

#include "sim/sampling.hpp"

namespace specdec::test_support {
namespace {

using sim::Purpose;
using sim::Token;

struct Slot {
  std::span<const double> p;
  std::span<const double> q;
  Token drafted;

  double target_probability() const { return p[static_cast<std::size_t>(drafted)]; }
  double draft_probability() const { return q[static_cast<std::size_t>(drafted)]; }
};

/// The wrong decoder's view of one step.
struct Round {
  Defect defect;
  sim::LanguageModel& draft;
  core::Standardisation draft_standardisation;
  const sim::DraftedBlock& block;
  const sim::UniformSource& uniforms;
  std::int64_t round;

  std::size_t gamma() const { return block.drafted.size(); }
  std::size_t vocab() const { return block.target_rows.size() / (gamma() + 1); }
  Slot slot(std::size_t i) const {
    return {block.target_rows.subspan(i * vocab(), vocab()), block.draft_rows.subspan(i * vocab(), vocab()),
            block.drafted[i]};
  }
  double uniform(std::size_t i, Purpose purpose) const {
    return uniforms.uniform(round, static_cast<std::int64_t>(i), purpose);
  }

  bool accepted(std::size_t i) const {
    const Slot s = slot(i);
    if (defect == Defect::acceptance_without_ratio) return uniform(i, Purpose::acceptance) < s.target_probability();
    const Purpose source = defect == Defect::uniform_used_twice ? Purpose::draft : Purpose::acceptance;
    return sim::accepts(s.target_probability(), s.draft_probability(), uniform(i, source));
  }

  Token correction(std::size_t i) const {
    const Slot s = slot(i);
    const double u = uniform(i, defect == Defect::one_uniform_per_position ? Purpose::draft : Purpose::residual);
    if (defect == Defect::residual_not_subtracted) return sim::sample(s.p, u);
    return sim::sample_residual(core::TargetDistribution(s.p), core::DraftDistribution(s.q), u);
  }

  Token bonus() {
    const double u = uniform(gamma(), Purpose::bonus);
    if (defect == Defect::bonus_from_draft && gamma() > 0) return bonus_from_draft(u);
    if (defect == Defect::bonus_from_wrong_prefix && gamma() > 0) return sim::sample(slot(gamma() - 1).p, u);
    return sim::sample(block.target_rows.last(vocab()), u);
  }

  /// The draft has not read its own last token yet; afterwards it holds what it held.
  Token bonus_from_draft(double u) {
    std::vector<double> row(vocab());
    const std::int64_t held = draft.length();
    draft.score(block.drafted.last(1), row);
    draft.roll_back(held);
    core::standardise(row, draft_standardisation);
    return sim::sample(row, u);
  }

  sim::Verdict verify() {
    for (std::size_t i = 0; i < gamma(); ++i)
      if (!accepted(i)) return {static_cast<std::int64_t>(i), correction(i)};
    return {static_cast<std::int64_t>(gamma()), bonus()};
  }
};

}  // namespace

sim::Generation decode_with_defect(Defect defect, sim::LanguageModel& target, sim::LanguageModel& draft,
                                   std::span<const Token> prompt, sim::DecodingOptions options,
                                   const sim::UniformSource& uniforms) {
  const core::Standardisation standardisation = options.standardisation;
  options.verifier = [&, standardisation](const sim::DraftedBlock& block, const sim::UniformSource& source,
                                          std::int64_t round) {
    return Round{defect, draft, standardisation, block, source, round}.verify();
  };
  return sim::decode_speculatively(target, draft, prompt, options, uniforms);
}

}  // namespace specdec::test_support
