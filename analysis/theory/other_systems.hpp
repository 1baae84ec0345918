#pragma once

#include <cstdint>
#include <span>

#include "analysis/core/acceptance_rate.hpp"

/// Relatives of speculative decoding: what each costs and gains under its own assumptions. A function throws
/// std::domain_error if a parameter is NaN or out of its range.
namespace specdec::theory {

/// Beam search of the target with width w, drafted by a beam search of width u >= w.
struct SpeculativeBeams {
  double tokens;              ///< beam steps per round, E[K], in [1, gamma + 1]
  double target_evaluations;  ///< prefixes that the target scores in a round, w + u gamma
  double speedup;             ///< E[K] / (1 + c gamma)
  double operations;          ///< target evaluations / those of plain beam search, (w + u gamma) / (w E[K])
};

/// A step's guesses are kept if the target's w best prefixes are among the draft's u; the step at which they are not
/// is still obtained from the target. The beams are those of plain search.
/// Source:   Leviathan et al. 2023, Appendix A.4; its analysis: docs/theory.md#other-systems
/// Assumes:  steps are kept independently of each other; scoring w + u gamma prefixes takes as long as w.
/// @param kept    P(top_w of the target is within top_u of the draft) at a step
/// @param width   w, >= 1
/// @param drafted_width  u, >= w
/// @param gamma   beam steps drafted, >= 0
/// @param c       time of a draft step of width u / of a target step of width w, >= 0
/// Accuracy: relative error <= 1e-13
SpeculativeBeams speculative_beams(const core::AcceptanceRate& kept, std::int64_t width, std::int64_t drafted_width,
                                   std::int64_t gamma, double c);

/// Greedy blockwise parallel decoding of a text.
struct BlockwiseDecoding {
  double block_tokens;   ///< tokens per block, 1 + sum_j prod_{i<=j} accuracy_i
  double two_call_runs;  ///< target runs, one to propose and one to verify each block: 2 m / block_tokens
  double merged_runs;    ///< verification also proposes the next block: m / block_tokens + 1
  double two_call_speedup;
  double merged_speedup;  ///< m / runs
};

/// Source:   Stern et al. 2018; docs/theory.md#other-systems
/// Assumes:  heads fail independently; the head for the next token itself is the model and always right.
/// @param head_accuracy  accuracy of the heads for the second, third, ... token ahead, each in [0, 1]
/// @param tokens         m, generated, >= 1
/// Accuracy: relative error <= 1e-14
BlockwiseDecoding blockwise_decoding(std::span<const double> head_accuracy, std::int64_t tokens);

/// A model that stops at the first layer at which it is confident. Lossy, and nothing is rejected.
struct EarlyExit {
  double layers;   ///< per token, sum_i P(not stopped before layer i)
  double speedup;  ///< all layers / (layers (1 + check))
};

/// Source:   Schuster et al. 2022 (CALM); docs/theory.md#other-systems
/// @param exit_probability  [i] = P(stops after layer i + 1); one per layer, sum 1 within 1e-9
/// @param check             time to test confidence / time of a layer, >= 0
/// @throws std::domain_error if it is not a law
/// Accuracy: relative error <= 1e-14
EarlyExit early_exit(std::span<const double> exit_probability, double check);

/// Speedup of drafting the rest of an input that the output copies except for some edits (shallow aggressive decoding):
///
///   tokens / (1 + edits (1 + runs_per_edit))
///
/// Source:   Sun et al. 2021; docs/theory.md#other-systems
/// Assumes:  greedy decoding, drafts of any length, edits far apart from each other.
/// @param tokens         generated, >= 1
/// @param edits          >= 0, in all at most `tokens` runs
/// @param runs_per_edit  plain target runs until the input matches again, >= 0
double input_copy_speedup(std::int64_t tokens, std::int64_t edits, double runs_per_edit);

/// Times of f, of its approximation f_star, and of g, which takes a sample of f's result. In any one unit.
struct ChainedTimes {
  double f;
  double f_star;
  double g;
};

/// Speedup of g(sample of f) if g starts on a sample of f_star while f still runs, and starts again if f rejects it:
///
///   (T_f + T_g) / (beta min(max(T_f, T_f_star + T_g), T_f + T_g) + (1 - beta) (T_f + T_g))
///
/// The decision needs all of f's distribution, so it falls at T_f; a g that would end later than a fresh one is not
/// waited for. At most 2 if T_f = T_g.
/// Source:   Leviathan et al. 2023, Section 6; docs/theory.md#other-systems
/// Assumes:  f and g can run concurrently; the effects of a rejected g can be undone.
/// @param times  >= 0 and finite, f + g > 0
/// Accuracy: relative error <= 1e-14
double chained_speedup(const core::AcceptanceRate& beta, const ChainedTimes& times);

}  // namespace specdec::theory
