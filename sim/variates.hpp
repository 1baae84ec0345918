#pragma once

#include <cstdint>

#include "sim/random.hpp"

namespace specdec::sim {

/// Random variates of one place of a synthetic recording, drawn one after the other; each has its own uniforms, the
/// next free slots of (seed, sequence, round).
class Variates {
 public:
  /// @param round       [0, RandomStream::max_round]
  /// @param first_slot  slot of the next uniform, [0, RandomStream::max_slot]
  Variates(const RandomStream& stream, std::int64_t round, std::int64_t first_slot = 0)
      : stream_(&stream), round_(round), slot_(first_slot) {}

  /// In [0, 1).
  double uniform() { return stream_->uniform(round_, slot_++, Purpose::synthetic); }
  /// A standard normal variate, by Box and Muller; the cosine alone.
  double normal();
  /// log of a gamma variate of scale 1, which keeps its digits if the shape is small and the variate underflows.
  ///
  /// Source:   Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; below shape 1 with
  ///           G(a) = G(a + 1) U^(1/a)
  /// @param shape  > 0
  double log_gamma(double shape);
  /// A Beta variate with these shapes, > 0: G(a) / (G(a) + G(b)).
  double beta(double a, double b);

 private:
  const RandomStream* stream_;
  std::int64_t round_;
  std::int64_t slot_;
};

}  // namespace specdec::sim
