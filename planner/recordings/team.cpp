#include "planner/recordings/team.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "planner/recordings/analysis_answer.hpp"
#include "planner/recordings/checkpoint.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::planner {

void Team::begin(const std::set<std::int64_t>& done) { done_ = done; }

std::int64_t Team::deal() {
  const std::lock_guard hold(lock_);
  do {
    ++last_;
  } while (done_.count(last_) > 0);
  return last_;
}

std::int64_t usual_unit_positions(const traces::PositionSource& source) {
  constexpr std::uintmax_t unit_bytes = std::uintmax_t{16} << 20U, most_units = std::uintmax_t{1} << 20U;
  constexpr std::int64_t where_unknown = 65536;
  std::uintmax_t bytes = 0;
  for (const std::filesystem::path& file : source.files())
    bytes += std::filesystem::file_size(traces::readable_path(file));
  if (!source.positions() || bytes == 0) return where_unknown;
  const std::uintmax_t units = std::clamp<std::uintmax_t>(bytes / unit_bytes, 1, most_units);
  return std::max<std::int64_t>(1, *source.positions() / static_cast<std::int64_t>(units));
}

RecordingSummary summary_by(Team& team, const RecordingFiles& recording, const traces::Shard& shard,
                            const AnalysisQuestion& question, const Division& division, const core::RunHooks& hooks) {
  empty_answer(question);  // before anything is opened
  auto source = share_of(recording, shard, question.by);
  RecordingUnits units{division.unit_positions.value_or(usual_unit_positions(*source)), [&] { return team.next(); },
                       [](std::int64_t, RecordingSummary&) {}};
  std::optional<Checkpoint> checkpoint;
  std::optional<RecordingSummary> begun;
  if (division.checkpoint) {
    checkpoint.emplace(*division.checkpoint, team.rank(),
                       Checkpoint::Run{division.version, division.options, shard, units.positions, source->metadata(),
                                       source->files()});
    units.done = [&](std::int64_t unit, RecordingSummary& so_far) { checkpoint->add(unit, so_far); };
  }
  if (team.rank() == 0) {
    if (checkpoint) begun = checkpoint->take_up();
    if (begun && division.taken_up) division.taken_up(checkpoint->units().size());
    team.begin(checkpoint ? checkpoint->units() : std::set<std::int64_t>());
  }
  RecordingSummary summary = RecordingSummary::of(std::move(source), units, std::move(begun), question, hooks);
  if (checkpoint) checkpoint->flush(summary);
  return summary;
}

}  // namespace specdec::planner
