#pragma once

#include <cstdint>
#include <vector>

#include "analysis/estimate/adaptive_drafting.hpp"
#include "analysis/estimate/observations.hpp"

/// Internal to analysis/planning.
namespace specdec::planning {

/// The draft's confidence in its accepted and in its rejected drafts, batch by batch, where the recording tells.
class ConfidenceColumns {
 public:
  /// @param bins  number of bins of the draft's probability, between which the thresholds lie
  explicit ConfidenceColumns(std::int64_t bins);

  /// In increasing order; none for fewer than two bins.
  std::vector<double> thresholds() const;

  /// Takes the next batch; nothing from the first on that does not tell.
  /// @param proposes_one_token  as estimate::Observer::proposes_one_token()
  void take(const estimate::Observations& seen, bool proposes_one_token);

  /// Adds what was taken last, as long as all batches told.
  void fill(estimate::DraftedColumns& columns) const;

  /// True if thresholds make a difference: all batches told, and not all rows have all mass on one token.
  bool tells() const { return known_ && varies_; }

  void merge(const ConfidenceColumns& other) {
    known_ = known_ && other.known_;
    varies_ = varies_ || other.varies_;
  }
  template <class Archive>
  void exchange(Archive& archive) {
    archive(known_, varies_);
  }

 private:
  double threshold_of(std::size_t place) const;
  bool take_proposals(const estimate::Observations& seen);
  bool take_samples(const estimate::Observations& seen);

  bool known_ = true;
  bool varies_ = false;
  std::vector<double> accepted_probability_;
  std::vector<std::vector<double>> rejected_below_;  // (thresholds, positions)
};

}  // namespace specdec::planning
