#include "traces/sequence_counter.hpp"

#include <fmt/format.h>

#include <limits>

namespace specdec::traces {
namespace {

bool follows(std::int64_t before, std::int64_t pos) {
  return before < std::numeric_limits<std::int64_t>::max() && pos == before + 1;
}

}  // namespace

void SequenceCounter::number(std::span<const std::int64_t> seq, std::span<const std::int64_t> pos,
                             std::span<std::int64_t> sequence, std::span<std::int64_t> place) {
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    const bool other_sequence = !seq.empty() && seq[i] != seq_;
    const bool jumps = !pos.empty() && !follows(pos_, pos[i]);
    if (broken_ || other_sequence || jumps) {
      returns_ += !broken_ && other_sequence && seq[i] < seq_ ? 1 : 0;
      jumps_ += !broken_ && !other_sequence && jumps ? 1 : 0;
      ++sequence_;
      place_ = -1;
      broken_ = false;
    }
    if (!seq.empty()) seq_ = seq[i];
    if (!pos.empty()) pos_ = pos[i];
    sequence[i] = sequence_;
    place[i] = ++place_;
  }
}

void SequenceCounter::add_notes(std::vector<Note>& notes) const {
  if (jumps_ > 0) {
    notes.push_back({"positions_jump", fmt::format("pos does not rise by one within a value of seq, {} times: a new "
                                                   "sequence begins at each",
                                                   jumps_)});
  }
  if (returns_ > 0) {
    notes.push_back({"sequences_unordered", fmt::format("seq falls {} times: positions of one sequence that do not "
                                                        "stand together count as several sequences",
                                                        returns_)});
  }
}

}  // namespace specdec::traces
