#include "cli/shard_options.hpp"

#include <fmt/format.h>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "cli/files.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/version.hpp"

namespace specdec::cli {

void declare_shard(Options& options, std::optional<traces::Shard>& shard, const std::string& does) {
  options.value("--shard", "I/N", does, [&shard](std::string_view option, const std::string& text) {
    const auto numbers = split(text, '/');
    if (numbers.size() != 2) refuse(option, text, "I/N, for instance 3/8");
    const std::int64_t of = parse_integer("N in --shard", numbers[1], 1, traces::most_shards);
    shard = traces::Shard{parse_integer("I in --shard", numbers[0], 1, of) - 1, of};
  });
}

void ShareOptions::declare(Options& options, const std::string& does) {
  options.group("Shares of the work");
  declare_shard(options, shard_, does);
  options.text("--part", part_, "FILE",
               "write the result there, for specdec merge: a file,\nor a folder (DIR/ makes it), where "
               "the share names it");
}

ChosenShare ShareOptions::chosen(const std::vector<std::string>& inputs) const {
  if (shard_ && !part_)
    throw UsageError("--shard is given, but needs --part beside it, where specdec merge finds what was found");
  ChosenShare chosen_share{shard_.value_or(traces::Shard{}), shard_.has_value(), {}};
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
