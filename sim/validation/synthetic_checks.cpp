#include "sim/validation/synthetic_checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/theory/tokens.hpp"
#include "sim/sampling.hpp"
#include "sim/synthetic_rounds.hpp"
#include "sim/validation/evidence.hpp"

namespace specdec::validation {

LawPair laws_of_rate(double alpha, std::int64_t vocab) {
  constexpr std::string_view function = "laws_of_rate";
  core::require_in(function, "vocab", vocab, std::int64_t{2}, std::int64_t{65536});
  LawPair laws;
  double sum = 0;
  for (std::int64_t x = 0; x < vocab; ++x) laws.target.push_back(1 / (1 + static_cast<double>(x)));
  for (const double weight : laws.target) sum += weight;
  for (double& weight : laws.target) weight /= sum;
  const std::vector<double> reverse(laws.target.rbegin(), laws.target.rend());
  double distance = 0;
  for (std::size_t x = 0; x < reverse.size(); ++x) distance += std::abs(laws.target[x] - reverse[x]) / 2;
  core::require_in(function, "alpha", alpha, 1 - distance, 1.0);
  const double share = (1 - alpha) / distance;
  for (std::size_t x = 0; x < reverse.size(); ++x)
    laws.draft.push_back((1 - share) * laws.target[x] + share * reverse[x]);
  return laws;
}

std::vector<TokensCheck> check_tokens_per_step(const TokensCheckOptions& options) {
  core::require_in("check_tokens_per_step", "rounds", options.rounds, std::int64_t{1}, std::int64_t{1'000'000'000});
  sim::SyntheticRoundsOptions simulated;
  simulated.rounds_per_sequence = 1024;
  simulated.sequences = (options.rounds + simulated.rounds_per_sequence - 1) / simulated.rounds_per_sequence;
  simulated.threads = options.threads;
  simulated.seed = options.seed << 16;
  std::vector<TokensCheck> checks;
  for (const double alpha : options.alphas) {
    const LawPair laws = laws_of_rate(alpha, options.vocab);
    const sim::AliasPair pair(core::TargetDistribution(laws.target), core::DraftDistribution(laws.draft));
    for (const std::int64_t gamma : options.gammas) {
      core::require_in("check_tokens_per_step", "gamma", gamma, std::int64_t{1}, std::int64_t{32});
      const sim::SyntheticRounds rounds = sim::simulate_rounds(pair, gamma, simulated);
      ++simulated.seed;
      const auto error = rounds.standard_error();
      checks.push_back({alpha, gamma, rounds.rounds(), theory::expected_tokens(core::AcceptanceRate(alpha), gamma),
                        rounds.tokens_per_step().value(), error.value_or(0)});
    }
  }
  return checks;
}

sim::Verdict verify_without_subtracting(const sim::DraftedBlock& block, const sim::UniformSource& uniforms,
                                        std::int64_t round) {
  block.require_valid("verify_without_subtracting");
  for (std::size_t i = 0; i < block.gamma(); ++i) {
    const auto slot = static_cast<std::int64_t>(i);
    const std::size_t x = block.token(i);
    const double u = uniforms.uniform(round, slot, sim::Purpose::acceptance);
    if (sim::accepts(block.p(i)[x], block.q(i)[x], u)) continue;
    return {slot, sim::sample(block.p(i), uniforms.uniform(round, slot, sim::Purpose::residual))};
  }
  return sim::accept_all(block, uniforms, round);
}

TransformSample sample_transforms(const sim::ModelPair& models, const std::vector<sim::Prompt>& prompts,
                                  const sim::DecodingOptions& decoding, std::int64_t tokens, std::uint64_t seed,
                                  std::int64_t threads) {
  constexpr std::string_view function = "sample_transforms";
  core::require_in(function, "tokens", tokens, std::int64_t{1}, std::int64_t{1} << 31);
  core::require_in(function, "threads", threads, std::int64_t{1}, std::int64_t{1024});
  core::require_in(function, "max_new_tokens", decoding.max_new_tokens, std::int64_t{1}, std::int64_t{1} << 31);
  if (prompts.empty()) throw std::invalid_argument("sample_transforms: prompts has 0 entries, but must have 1 or more");
  const std::int64_t sequences = (tokens + decoding.max_new_tokens - 1) / decoding.max_new_tokens;
  struct SampledModels {
    sim::OwnedModel target, draft, judge_target, judge_draft;
  };
  std::vector<SampledModels> workers;
  for (std::int64_t w = 0; w < std::min(threads, sequences); ++w)
    workers.push_back({models.target(1), models.draft(1), models.target(1), models.draft(1)});
  std::vector<Evidence> found(static_cast<std::size_t>(sequences));
  core::for_each_index(sequences, static_cast<std::int64_t>(workers.size()), [&](std::int64_t s, std::int64_t w) {
    SampledModels& worker = workers[static_cast<std::size_t>(w)];
    const sim::RandomStream stream(seed, static_cast<std::uint64_t>(s));
    const std::vector<sim::Token>& prompt = prompts[static_cast<std::size_t>(s) % prompts.size()].tokens;
    const sim::Generation text =
        sim::decode_speculatively(worker.target.ref(), worker.draft.ref(), prompt, decoding, stream);
    found[static_cast<std::size_t>(s)] = gather_evidence(worker.judge_target.ref(), worker.judge_draft.ref(), prompt,
                                                         text, decoding.standardisation, stream);
  });
  TransformSample sample;
  for (const Evidence& evidence : found) {
    for (const PlacedToken& token : evidence.tokens) {
      sample.by_ratio.push_back(token.by_ratio);
      sample.by_probability.push_back(token.by_probability);
    }
  }
  return sample;
}

UniformDeviation deviation_from_uniform(std::vector<double>& values, std::int64_t points) {
  constexpr std::string_view function = "deviation_from_uniform";
  core::require_in(function, "points", points, std::int64_t{2}, std::int64_t{1} << 24);
  core::require_in(function, "number of values", static_cast<std::int64_t>(values.size()), std::int64_t{1},
                   std::numeric_limits<std::int64_t>::max());
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  std::size_t place = 0;
  double largest = -1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double here =
        std::max(static_cast<double>(i + 1) / count - values[i], values[i] - static_cast<double>(i) / count);
    if (here > largest) {
      largest = here;
      place = i;
    }
  }
  UniformDeviation found;
  const auto add = [&](double u, double share) {
    found.u.push_back(u);
    found.deviation.push_back(share - u);
  };
  bool is_step_added = false;
  for (std::int64_t i = 0; i < points; ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(points - 1);
    if (!is_step_added && values[place] <= u) {
      add(values[place], static_cast<double>(place) / count);
      add(values[place], static_cast<double>(place + 1) / count);
      is_step_added = true;
    }
    const auto below = std::upper_bound(values.begin(), values.end(), u) - values.begin();
    add(u, static_cast<double>(below) / count);
  }
  return found;
}

}  // namespace specdec::validation
