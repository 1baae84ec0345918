#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace specdec::estimate {

/// The parts of a long series in order and in bounded memory: at most `most` cells of equally many parts each (the last
/// one may be short). When they are full, neighbours are merged in pairs, so that at least most / 2 cells remain.
/// @tparam Cell  sums of parts: starts empty and has add(const Cell&)
template <class Cell, std::size_t most>
class MergingCells {
 public:
  void add(const Cell& part) {
    if (in_last_ == cell_length_ && cells_.size() == most) merge_pairs();
    if (cells_.empty() || in_last_ == cell_length_) {
      cells_.emplace_back();
      in_last_ = 0;
    }
    cells_.back().add(part);
    ++in_last_;
    ++parts_;
  }

  const std::vector<Cell>& cells() const { return cells_; }
  std::int64_t parts() const { return parts_; }

  template <class Archive>
  void exchange(Archive& archive) {
    archive(cells_, cell_length_, in_last_, parts_);
    archive.require(cells_.size() <= most && 0 < cell_length_ && 0 <= in_last_ && in_last_ <= cell_length_ &&
                    parts_ >= std::ssize(cells_));
  }

 private:
  static_assert(most % 2 == 0);

  void merge_pairs() {
    for (std::size_t i = 0; i < most / 2; ++i) {
      Cell pair = cells_[2 * i];
      pair.add(cells_[2 * i + 1]);
      cells_[i] = std::move(pair);
    }
    cells_.resize(most / 2);
    cell_length_ *= 2;
    in_last_ = cell_length_;
  }

  std::vector<Cell> cells_;
  std::int64_t cell_length_ = 1;
  std::int64_t in_last_ = 0;  // parts in the last cell
  std::int64_t parts_ = 0;
};

}  // namespace specdec::estimate
