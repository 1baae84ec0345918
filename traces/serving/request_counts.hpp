#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "traces/serving/counted_fields.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources.

/// The keys under which an engine counts a request; several are names of one thing by release, the first that is given
/// is read. Empty: not given by this engine.
struct RequestKeys {
  using Names = std::array<std::string_view, 3>;
  Names rounds = {}, accepted = {}, drafted = {}, histograms = {};
  std::string_view histogram_by_length = {}, gamma = {};
  /// Accepted / drafted, a fraction, and 1 + accepted / rounds.
  std::string_view rate = {}, length = {};
  /// Lists with an entry a round.
  std::string_view accepted_by_round = {}, drafted_by_round = {};
  /// More drafts than gamma a round are a tree's.
  bool tree_by_drafts = false;
};

/// The keys that vLLM writes in a request's metrics.speculative_decoding; AIPerf writes some of them.
RequestKeys vllm_request_keys();

/// Reads a request's counts, and holds rates and lengths against them; whoever sums counts holds these against each
/// other. Rounds and accepted drafts that are not given are summed from the histogram, the histogram by length is made
/// from the lists by round. Refuses a request that tells its rounds in neither way.
class RequestCounts {
 public:
  explicit RequestCounts(const RequestKeys& keys) : keys_(keys) {}

  /// @throws FileError naming the key that contradicts the others
  void read(const CountedFields& fields, ServingCounts& counts);

 private:
  void read_histogram(const CountedFields& fields, ServingCounts& counts);
  void read_histogram_by_length(const CountedFields& fields, ServingCounts& counts);
  void read_rounds(const CountedFields& fields, ServingCounts& counts);
  void check_means(const CountedFields& fields, const ServingCounts& counts) const;
  void find_shape(ServingCounts& counts) const;

  RequestKeys keys_;
  std::vector<double> accepted_by_round_, drafted_by_round_;
};

}  // namespace specdec::traces
