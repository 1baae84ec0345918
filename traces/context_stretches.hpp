#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traces/forwarding_source.hpp"

namespace specdec::traces {

/// A recording whose sequences are cut where they pass given places: each stretch within a range of places is a
/// sequence, and its task is the range. Places count from the first token that was recorded of a text. Stretches of a
/// sequence without a prompt share its number as their prompt, so that they count as one observation.
class ContextStretches : public ForwardingSource {
 public:
  /// @param bounds  where ranges begin, rising, each above 0; at least one
  /// @param names   names of the ranges, one more than bounds
  /// @throws std::invalid_argument if there is another number of names
  ContextStretches(std::unique_ptr<PositionSource> source, std::vector<double> bounds, std::vector<std::string> names);

  const TraceMetadata& metadata() const override { return metadata_; }
  bool read(PositionBatch& batch) override;

 private:
  std::vector<double> bounds_;
  TraceMetadata metadata_;
  std::int64_t sequences_ = 0;  // stretches begun so far
  std::int64_t sequence_of_last_ = -1;
  std::int32_t range_of_last_ = -1;
  std::vector<std::int64_t> sequence_, prompt_;
  std::vector<std::int32_t> task_;
};

}  // namespace specdec::traces
