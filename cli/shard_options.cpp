#include "cli/shard_options.hpp"

#include <fmt/format.h>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/usage_error.hpp"
#include "cli/values.hpp"

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

}  // namespace specdec::cli
