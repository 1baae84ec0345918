#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "planner/parts/part_files.hpp"
#include "traces/sharded_recording.hpp"

namespace specdec::cli {

/// Declares --shard I/N: the share of the work that this run does; everything is done where it is not given.
/// @param does  for the help text: what is done with a share
void declare_shard(Options& options, std::optional<traces::Shard>& shard, const std::string& does);

/// A share of the work, and the file of what is found there.
struct ChosenShare {
  traces::Shard own;
  /// False if the run does everything.
  bool is_share = false;
  /// Empty if no part is to be written.
  std::string part;
};

/// --shard and --part, for commands whose parts `specdec merge` reads.
class ShareOptions {
 public:
  /// @param does  for the help text: what is done with a share
  void declare(Options& options, const std::string& does);

  bool is_given() const { return shard_ || part_; }
  /// Makes the folder of a part that is named with a slash at its end.
  /// @param inputs  files that a part must neither replace nor stand among
  /// @throws UsageError, traces::FileError
  ChosenShare chosen(const std::vector<std::string>& inputs) const;

 private:
  std::optional<traces::Shard> shard_;
  std::optional<std::string> part_;
};

/// Options and files of a run, by what they decide. Those of the output belong to each run alone.
/// @param other  keys of options that do not decide the answer, beside --shard and --part
planner::PartOrigin part_origin(const std::string& command, const Options& options, const std::set<std::string>& other,
                                const traces::Shard& shard, std::vector<nlohmann::ordered_json> files);

/// Report of a run with a share of the work on the part that it wrote.
/// @param counts  numbers of its content, for the JSON output, and as text
Report share_report(const std::string& command, const traces::Shard& shard, const std::string& part,
                    const nlohmann::ordered_json& counts, const std::string& counts_text);

}  // namespace specdec::cli
