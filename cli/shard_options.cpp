#include "cli/shard_options.hpp"

#include <fmt/format.h>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "cli/files.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/version.hpp"

namespace specdec::cli {
namespace {

using Variable = std::function<std::optional<std::string>(const std::string&)>;

struct Launched {
  std::string_view launcher;
  traces::Shard shard;
};

std::int64_t integer_of(const std::string& name, const std::string& text, std::int64_t lo, std::int64_t hi) {
  return parse_integer("--shard env, where " + name, text, lo, hi);
}

void add_ranks(std::string_view launcher, const std::string& rank, const std::string& size, const Variable& variable,
               std::vector<Launched>& found) {
  const auto rank_text = variable(rank);
  const auto size_text = variable(size);
  if (!rank_text || !size_text) return;
  const std::int64_t of = integer_of(size, *size_text, 1, traces::most_shards);
  found.push_back({launcher, {integer_of(rank, *rank_text, 0, of - 1), of}});
}

/// The numbers of an array need not begin at 0, nor follow each other by 1.
void add_slurm_array(const Variable& variable, std::vector<Launched>& found) {
  const auto id_text = variable("SLURM_ARRAY_TASK_ID");
  const auto count_text = variable("SLURM_ARRAY_TASK_COUNT");
  const auto min_text = variable("SLURM_ARRAY_TASK_MIN");
  const auto max_text = variable("SLURM_ARRAY_TASK_MAX");
  if (!id_text || !count_text || !min_text || !max_text) return;
  constexpr std::int64_t largest = std::int64_t{1} << 32U;
  const std::int64_t count = integer_of("SLURM_ARRAY_TASK_COUNT", *count_text, 1, traces::most_shards);
  const std::int64_t min = integer_of("SLURM_ARRAY_TASK_MIN", *min_text, 0, largest);
  const std::int64_t max = integer_of("SLURM_ARRAY_TASK_MAX", *max_text, min, largest);
  const std::int64_t id = integer_of("SLURM_ARRAY_TASK_ID", *id_text, min, max);
  const std::int64_t step = count > 1 ? (max - min) / (count - 1) : 1;
  if (min + step * (count - 1) != max || (id - min) % step != 0) {
    throw UsageError(
        fmt::format("--shard is env, but the {} tasks of the array from {} to {} do not follow each other "
                    "at one distance; give each its --shard I/N",
                    count, min, max));
  }
  found.push_back({"an array of Slurm", {(id - min) / step, count}});
}

}  // namespace

traces::Shard shard_of_environment(const Variable& variable) {
  std::vector<Launched> found;
  add_ranks("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", variable, found);
  add_ranks("PMI", "PMI_RANK", "PMI_SIZE", variable, found);
  add_ranks("torchrun", "RANK", "WORLD_SIZE", variable, found);
  add_slurm_array(variable, found);
  if (found.empty()) {
    throw UsageError(
        "--shard is env, but the environment names no rank: neither OMPI_COMM_WORLD_RANK, PMI_RANK, RANK with "
        "WORLD_SIZE nor SLURM_ARRAY_TASK_ID is set with its count");
  }
  for (const Launched& other : found) {
    if (other.shard == found.front().shard) continue;
    throw UsageError(fmt::format("--shard is env, but {} says {} and {} says {}; give --shard I/N",
                                 found.front().launcher, found.front().shard.name(), other.launcher,
                                 other.shard.name()));
  }
  return found.front().shard;
}

void ShardOption::declare(Options& options, const std::string& does) {
  options.text("--shard", text_, "I/N", does + "; env: that of the rank\nin the environment");
}

std::optional<traces::Shard> ShardOption::shard() const {
  if (!text_) return std::nullopt;
  if (*text_ == "env") {
    return shard_of_environment([](const std::string& name) {
      const char* const value = std::getenv(name.c_str());
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
  }
  const auto numbers = split(*text_, '/');
  if (numbers.size() != 2) refuse("--shard", *text_, "I/N, for instance 3/8, or env");
  const std::int64_t of = parse_integer("N in --shard", numbers[1], 1, traces::most_shards);
  return traces::Shard{parse_integer("I in --shard", numbers[0], 1, of) - 1, of};
}

void ShareOptions::declare(Options& options, const std::string& does) {
  options.group("Shares of the work");
  shard_.declare(options, does);
  options.text("--part", part_, "FILE",
               "write what was found there, for specdec merge: a file,\nor a folder (DIR/ makes it), where "
               "the share names it");
}

ChosenShare ShareOptions::chosen(const std::vector<std::string>& inputs) const {
  if (shard_.is_given() && !part_)
    throw UsageError("--shard is given, but needs --part beside it, where specdec merge finds what was found");
  const std::optional<traces::Shard> shard = shard_.shard();
  ChosenShare chosen_share{shard.value_or(traces::Shard{}), shard.has_value(), {}};
  if (!part_) return chosen_share;
  if (part_->ends_with('/')) std::filesystem::create_directories(*part_);
  chosen_share.part = planner::part_path(*part_, chosen_share.own).string();
  require_writable("--part", chosen_share.part);
  if (std::filesystem::exists(chosen_share.part) && !std::filesystem::is_regular_file(chosen_share.part))
    refuse("--part", chosen_share.part, "a file or a folder: a part is not written to a device or a pipe");
  require_no_input("--part", chosen_share.part, inputs);
  planner::require_place_of_part(chosen_share.part, chosen_share.own, inputs);
  return chosen_share;
}

planner::PartOrigin part_origin(const std::string& command, const Options& options, const std::set<std::string>& other,
                                const traces::Shard& shard, std::vector<nlohmann::ordered_json> files) {
  planner::PartOrigin origin;
  origin.command = command;
  origin.shard = shard;
  origin.version = render::version();
  origin.files = std::move(files);
  const std::set<std::string> of_output = {"format", "table", "output", "quiet", "explain"};
  const nlohmann::ordered_json effective = options.effective();
  for (const auto& [key, value] : effective.items()) {
    if (of_output.count(key) > 0) continue;
    const bool decides = other.count(key) == 0 && key != "shard" && key != "part";
    (decides ? origin.options : origin.other_options)[key] = value;
  }
  // The answer to all parts is that of the whole.
  for (const char* const of_run : {"shard", "part"})
    if (effective.contains(of_run)) origin.other_options[of_run] = nullptr;
  return origin;
}

Report share_report(const std::string& command, const traces::Shard& shard, const std::string& part,
                    const nlohmann::ordered_json& counts, const std::string& counts_text) {
  nlohmann::ordered_json row = {{"shard", shard.name()}};
  row.update(counts);
  row["path"] = part;
  row["size_bytes"] = std::filesystem::file_size(part);
  Report report;
  report.schema = command + ".part";
  report.json["parts"] = nlohmann::ordered_json::array({row});
  report.tables = {{"parts", "/parts"}};
  report.spoken = render::said(fmt::format("{}: {}, in {}", shard.name(), counts_text, part));
  return report;
}

}  // namespace specdec::cli
