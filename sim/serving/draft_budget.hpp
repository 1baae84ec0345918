#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace specdec::sim {

/// Which drafts of the sequences that decode are verified, by what became of drafts before. With a accepted of n drafts
/// that were reached at position j of a sequence, and A of N of all sequences so far, draft j is taken to be accepted,
/// given that those before it were, with probability
///
///   (a + 2 p) / (n + 2),   p = (A + 1) / (N + 1)
///
/// so that a new sequence is taken for one of those served before, and what nobody reached for certain.
class DraftBudget {
 public:
  /// @param gamma      most drafts of a sequence, >= 0
  /// @param sequences  places of sequences
  DraftBudget(std::int64_t gamma, std::size_t sequences);

  /// Verified drafts of each of these places: as many of all together as make most tokens for their time, by the
  /// product of these probabilities up to each draft; the fewest in a tie.
  /// Source:   docs/theory.md#verification-within-a-budget
  /// @param gamma    [1, that of the constructor]
  /// @param seconds  those of a round that verifies so many drafts of each, > 0; between whole numbers it is linear.
  ///                 Shape: (gamma + 1)
  std::vector<std::int64_t> verified(std::span<const std::size_t> places, std::int64_t gamma,
                                     std::span<const double> seconds) const;

  /// Counts the outcome of a sequence's round.
  void count(std::size_t place, std::int64_t verified, std::int64_t accepted);
  /// A new sequence takes the place.
  void forget(std::size_t place);
  void move(std::size_t from, std::size_t to);

 private:
  struct Counts {
    std::int64_t accepted = 0, reached = 0;

    void add(bool accepts) {
      ++reached;
      accepted += accepts ? 1 : 0;
    }
  };

  std::span<Counts> of(std::size_t place) { return std::span(counts_).subspan(place * gamma_, gamma_); }

  std::size_t gamma_;
  /// Shape: (places, gamma)
  std::vector<Counts> counts_;
  /// Counts of all sequences so far. Shape: (gamma)
  std::vector<Counts> of_all_;
};

}  // namespace specdec::sim
