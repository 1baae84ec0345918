#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "traces/sharded_recording.hpp"

namespace specdec::cli {

/// --shard I/N or --shard env: the share of the work that this run does.
class ShardOption {
 public:
  /// @param does  for the help text: what is done with a share
  void declare(Options& options, const std::string& does);

  bool is_given() const { return text_.has_value(); }
  /// Empty if everything is to be done.
  /// @throws UsageError if it is neither I/N nor in the environment
  std::optional<traces::Shard> shard() const;

 private:
  std::optional<std::string> text_;
};

/// The share of the process that a launcher started: Open MPI, PMI (mpiexec of MPICH and Intel MPI, srun --mpi=pmi2),
/// an array of Slurm, or torchrun.
/// @param variable  the value of an environment variable, empty if it is not set
/// @throws UsageError if no launcher, or several that disagree, set their variables, or they make no sense
traces::Shard shard_of_environment(const std::function<std::optional<std::string>(const std::string&)>& variable);

}  // namespace specdec::cli
