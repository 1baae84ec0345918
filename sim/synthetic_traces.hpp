#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "traces/position_source.hpp"

/// Recordings whose law is known. The text is sampled from the target, so that exact replay is defined, and the
/// metadata hold the true values under "truth.": the law of every task and the mean acceptance rate alpha.
namespace specdec::sim {

/// Scalar tier: independent betas of a Beta law of shapes alpha m and (1 - alpha) m; m = concentration. m = 0 is its
/// limit, betas of 1 with probability alpha, else 0, as at temperature 0. The target is certain of its token,
/// p_t(x_t) = 1, and q_t(x_t) = beta_t.
struct BetaLaw {
  double alpha = 0.8;         ///< [0, 1]
  double concentration = 10;  ///< >= 0
};

/// Scalar tier: a Markov chain independent of the text, started in its stationary law; beta_t is that of its
/// state. State i stays with probability stay[i] and otherwise moves to one of the others with equal probability.
struct MarkovLaw {
  std::vector<double> betas{0.9, 0.3};  ///< two or more states, each in [0, 1]
  std::vector<double> stay{0.9, 0.8};   ///< one per state, each in [0, 1)
};

/// Full tier: a world of `contexts` pairs of rows; each position takes one at random, independently. So alpha is
/// exactly the mean of the pairs' betas, and the betas are independent.
struct PairWorld {
  double alpha = 0.8;
  std::int64_t vocab = 1024;    ///< [2, 2^24]
  std::int64_t contexts = 256;  ///< [1, 2^20]
};

/// Logits in f32. Target: -exponent log(rank) + a standard normal number. Draft: the target's logits + s_c times
/// standard normal numbers, s_c = s exp(z / 2) with one normal z per context; s is chosen to give alpha.
struct LogitNoiseLaw : PairWorld {
  double exponent = 1.2;  ///< >= 0
};

/// Probabilities in f32. Target: Dirichlet with every parameter `concentration` / vocab. Draft: (1 - w) target + w
/// times another such row; w in [0, 1] is chosen to give alpha.
struct DirichletLaw : PairWorld {
  double concentration = 8;  ///< > 0
};

using SyntheticLaw = std::variant<BetaLaw, MarkovLaw, LogitNoiseLaw, DirichletLaw>;

struct SyntheticTask {
  std::string name;
  SyntheticLaw law;
};

struct SyntheticOptions {
  /// [1, 2^40]
  std::int64_t sequences = 100;
  /// Tokens of each sequence, [1, 2^32].
  std::int64_t tokens = 1000;
  std::uint64_t seed = 1;
  /// [1, 1024]; the recording does not depend on it.
  std::int64_t threads = 1;
};

/// A recording that is generated while it is read. Sequence s belongs to task s mod (number of tasks), and its numbers
/// are a function of (seed, s, place, law) alone. One task without a name makes a recording without tasks.
///
/// Metadata of one task: "truth.alpha" and "truth.law"; for several: these over all positions, and with the suffix
/// ".NAME" for each. Full laws of different shapes cannot be mixed, nor full laws with scalar ones.
///
/// @throws std::domain_error if an option is out of range, or if alpha is not attainable, naming the least that is
/// @throws std::invalid_argument if the tasks are empty, or their laws cannot be mixed
std::unique_ptr<traces::PositionSource> synthetic_trace(std::vector<SyntheticTask> tasks,
                                                        const SyntheticOptions& options);

}  // namespace specdec::sim
