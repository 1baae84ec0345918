#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "traces/owned_batch.hpp"
#include "traces/position_source.hpp"

namespace specdec::estimate {

struct ConversionOptions {
  /// scalar or top_k; never a tier that holds more than the recording.
  traces::Tier tier = traces::Tier::scalar;
  /// Tokens kept of each distribution in the top-k tier, >= 1; all if the vocabulary is smaller.
  std::int64_t k = 64;
  std::int64_t threads = 1;
};

/// Thrown for a position whose numbers another tier cannot represent.
class NotConvertible : public std::invalid_argument {
 public:
  NotConvertible(std::int64_t position, traces::Role role, const std::string& found, const std::string& expected);

  std::int64_t position() const noexcept { return position_; }
  traces::Role role() const noexcept { return role_; }
  const std::string& found() const noexcept { return found_; }
  const std::string& expected() const noexcept { return expected_; }

 private:
  std::int64_t position_;
  traces::Role role_;
  std::string found_;
  std::string expected_;
};

/// The same positions in a tier that holds less.
///
///   full -> top-k    the k most probable tokens of each, the tails, each at the other's top tokens, and the overlap
///   full -> scalar   the token's log-probabilities, its ranks and the overlap
///   top-k -> scalar  the token's log-probabilities, its ranks (the smallest that the list allows), and the overlap,
///                    NaN if the lists leave a bracket
///
/// The same tier gives a copy. Columns that the recording has already are kept.
///
/// The numbers are those of the rows as stored, at the temperature of the stored rows: nothing is reshaped.
///
/// @throws std::domain_error if options.tier holds more than the batch's, or k < 1
/// @throws NotConvertible if a row or list is not a distribution, or lists lack the emitted token's probabilities
traces::OwnedBatch convert(const traces::PositionBatch& batch, const ConversionOptions& options);

}  // namespace specdec::estimate
