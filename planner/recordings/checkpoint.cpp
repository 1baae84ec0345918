#include "planner/recordings/checkpoint.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "analysis/core/parsed_number.hpp"
#include "planner/parts/part_header.hpp"
#include "planner/question_error.hpp"
#include "planner/recordings/recording_parts.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* extension = ".checkpoint";
constexpr auto most_of_time = 20;

/// Each run of numbers by its first and its last: [[0, 3], [7, 7]].
ordered_json runs_of(const std::set<std::int64_t>& units) {
  ordered_json runs = ordered_json::array();
  for (const std::int64_t unit : units) {
    if (runs.empty() || runs.back()[1] != unit - 1) runs.push_back({unit, unit});
    runs.back()[1] = unit;
  }
  return runs;
}

std::set<std::int64_t> units_of(const PartHeader& header) {
  constexpr std::int64_t many = std::int64_t{1} << 24U;
  const ordered_json runs = header.json.value("units", ordered_json());
  const auto refuse_runs = [&] {
    refuse_part(header.path, "header /units", shown_member(runs), "what docs/scale.md describes");
  };
  if (!runs.is_array()) refuse_runs();
  std::set<std::int64_t> units;
  for (const ordered_json& run : runs) {
    const bool is_pair = run.is_array() && run.size() == 2 && run[0].is_number_integer() && run[1].is_number_integer();
    if (!is_pair || run[0] < 0 || run[1] < run[0] || run[1] > many) refuse_runs();
    for (auto unit = run[0].get<std::int64_t>(); unit <= run[1].get<std::int64_t>(); ++unit) units.insert(unit);
  }
  return units;
}

/// The files of a folder, by rank.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::map<double, fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != extension) continue;
    const auto rank = core::parsed_number(entry.path().stem().string());
    if (!rank) refuse_part(entry.path(), "name", entry.path().filename().string(), "RANK.checkpoint");
    files.emplace(*rank, entry.path());
  }
  std::vector<fs::path> in_order;
  for (const auto& [rank, file] : files) in_order.push_back(file);
  return in_order;
}

}  // namespace

Checkpoint::Checkpoint(fs::path folder, std::int64_t rank, const Run& run) : folder_(std::move(folder)), rank_(rank) {
  if (rank_ == 0) {
    std::error_code error;
    fs::create_directory(folder_, error);
    if (error)
      refuse_part(folder_, "folder", fmt::format("not made ({})", error.message()), "in a folder that is there");
    lock_.emplace(folder_);
  }
  std::vector<ordered_json> files;
  for (const fs::path& file : run.files) files.push_back({{"path", file.string()}});
  header_ = header_members(run.version, run.options, ordered_json::object(), to_strings(run.metadata), files);
  header_["shard"] = run.shard.name();
  header_["unit_positions"] = run.unit_positions;
}

std::optional<RecordingSummary> Checkpoint::take_up() {
  const PartHeader own = PartHeader::of(file_of(0), header_);
  std::optional<RecordingSummary> all;
  const std::vector<fs::path> files = files_in(folder_);
  for (const fs::path& file : files) {
    const PartHeader kept = PartHeader::read(file);
    for (const char* const key : {"version", "made_with", "shard"}) require_member(own, kept, key);
    require_same_recording(own, kept, ", as in this run");
    require_member(own, kept, "unit_positions");
    const std::set<std::int64_t> units = units_of(kept);
    // A run that was killed while it took up others left these beside the file that holds them all.
    if (std::includes(units_.begin(), units_.end(), units.begin(), units.end())) continue;
    const auto twice = std::find_if(units.begin(), units.end(), [&](std::int64_t u) { return units_.count(u) > 0; });
    if (twice != units.end()) refuse_part(file, "units", fmt::format("unit {} again", *twice), "each unit once");
    RecordingSummary summary = summary_of_part(file);
    try {
      if (all) all->merge(summary);
    } catch (const std::invalid_argument&) {
      refuse_part(file, "state", "of another question or recording", "of that of this run");
    }
    if (!all) all = std::move(summary);
    units_.insert(units.begin(), units.end());
  }
  const bool is_own_alone = files.size() == 1 && files.front() == file_of(0);
  if (all && !is_own_alone) write(*all);
  for (const fs::path& file : files) {
    if (file != file_of(0)) fs::remove(file);
  }
  return all;
}

void Checkpoint::add(std::int64_t unit, RecordingSummary& so_far) {
  units_.insert(unit);
  is_written_ = false;
  if (most_of_time * writing_ <= Clock::now() - begin_) write(so_far);
}

void Checkpoint::flush(RecordingSummary& so_far) {
  if (!is_written_) write(so_far);
}

fs::path Checkpoint::file_of(std::int64_t rank) const { return folder_ / fmt::format("{}{}", rank, extension); }

void Checkpoint::write(RecordingSummary& so_far) {
  const Clock::time_point begin = Clock::now();
  header_["sequences"] = so_far.sequences();
  header_["positions"] = so_far.positions();
  header_["units"] = runs_of(units_);
  write_part(file_of(rank_), header_, so_far.state());
  is_written_ = true;
  writing_ += Clock::now() - begin;
}

void require_place_of_checkpoint(const fs::path& folder, const std::vector<std::string>& recording) {
  for (const std::string& file : recording) {
    if (!fs::is_directory(file) || fs::weakly_canonical(file) != fs::weakly_canonical(fs::absolute(folder))) continue;
    refuse("--checkpoint", folder.string(),
           fmt::format("elsewhere: {} is the recording, which is not read with other files in it", file));
  }
}

}  // namespace specdec::planner
