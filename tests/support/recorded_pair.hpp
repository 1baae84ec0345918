#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "traces/position_source.hpp"

namespace specdec::tests {

/// A recording in memory: the batches that were put into it, one after the other.
class MemorySource : public traces::PositionSource {
 public:
  explicit MemorySource(traces::TraceMetadata metadata = {}, std::vector<traces::PositionBatch> batches = {})
      : metadata_(std::move(metadata)), batches_(std::move(batches)) {}

  const traces::TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {"memory"}; }
  std::string format() const override { return "memory"; }
  std::int64_t depths() const override {
    std::int64_t depths = 1;
    for (const traces::PositionBatch& batch : batches_) {
      if (batch.tier == traces::Tier::accepted_length) depths = traces::every_depth;
      if (batch.tier == traces::Tier::scalar) depths = std::max(depths, batch.depths);
    }
    return depths;
  }
  bool read(traces::PositionBatch& batch) override {
    if (next_ == batches_.size()) return false;
    batch = batches_[next_++];
    return true;
  }

 private:
  traces::TraceMetadata metadata_;
  std::vector<traces::PositionBatch> batches_;
  std::size_t next_ = 0;
};

/// Random pairs of rows, a fifth of whose draft tokens have probability 0, and a text drawn from the target's. Rows are
/// floats; everything else is meant to be computed from them in double.
struct RecordedPair {
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  std::vector<float> target, draft;  // (positions, vocab)
  std::vector<std::int32_t> token;
  std::vector<std::int64_t> sequence, place;

  std::span<const float> target_row(std::int64_t i) const { return row(target, i); }
  std::span<const float> draft_row(std::int64_t i) const { return row(draft, i); }

  /// The full tier, with rows of the given space over `target` and `draft`.
  traces::PositionBatch full(traces::RowSpace space = traces::RowSpace::probabilities) const {
    traces::PositionBatch batch;
    batch.size = positions;
    batch.tier = traces::Tier::full;
    batch.sequence = sequence;
    batch.place = place;
    batch.token = token;
    set(batch.target_rows, space, target);
    set(batch.draft_rows, space, draft);
    return batch;
  }

 private:
  std::span<const float> row(const std::vector<float>& rows, std::int64_t i) const {
    return std::span(rows).subspan(static_cast<std::size_t>(i * vocab), static_cast<std::size_t>(vocab));
  }
  void set(traces::Rows& rows, traces::RowSpace space, const std::vector<float>& values) const {
    rows.space = space;
    rows.vocab = vocab;
    rows.bytes = std::as_bytes(std::span(values));
  }
};

/// @param reshape  the reshaping of each target row before the text is drawn from it
inline RecordedPair recorded_pair(std::int64_t vocab, std::int64_t positions, std::int64_t sequence_length,
                                  std::uint64_t seed, const core::Standardisation& reshape = {}) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<> normal;
  std::uniform_real_distribution<> uniform;
  RecordedPair pair;
  pair.vocab = vocab;
  pair.positions = positions;
  const auto append = [&](std::vector<float>& rows, std::vector<double> weights) {
    double sum = 0;
    for (const double w : weights) sum += w;
    for (const double w : weights) rows.push_back(static_cast<float>(w / sum));
  };
  for (std::int64_t i = 0; i < positions; ++i) {
    std::vector<double> p, q;
    for (std::int64_t x = 0; x < vocab; ++x) {
      const double logit = 2 * normal(generator);
      p.push_back(std::exp(logit));
      q.push_back(uniform(generator) < 0.2 ? 0 : std::exp(logit + normal(generator)));
    }
    q[0] = std::max(q[0], 1e-3);
    append(pair.target, p);
    append(pair.draft, q);
    const auto row = pair.target_row(i);
    std::vector<double> sampled(row.begin(), row.end());
    core::standardise(sampled, reshape);
    std::discrete_distribution<std::int32_t> law(sampled.begin(), sampled.end());
    pair.token.push_back(law(generator));
    pair.sequence.push_back(i / sequence_length);
    pair.place.push_back(i % sequence_length);
  }
  return pair;
}

}  // namespace specdec::tests
