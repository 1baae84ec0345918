#include "traces/serving/omlx_log.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace specdec::traces {
namespace {

struct AcceptedOfDrafted {
  double accepted = 0, drafted = 0;
  std::string_view rest;
};

/// "352/454" at the beginning of a text.
AcceptedOfDrafted accepted_of_drafted(const LogLine& line, std::string_view field, std::string_view text) {
  const auto accepted = leading_number(text);
  const bool divided = accepted && accepted->rest.starts_with('/');
  const auto drafted = divided ? leading_number(accepted->rest.substr(1)) : std::nullopt;
  if (!drafted) line.refuse(field, "no fraction", "accepted/drafted tokens");
  line.require_count(field, accepted->value);
  line.require_count(field, drafted->value);
  return {accepted->value, drafted->value, drafted->rest};
}

/// Sets the counts at each position by "d1=155/200,d2=115/150]".
void read_depths(const LogLine& line, std::string_view list, ServingCounts& counts) {
  for (std::size_t depth = 1; depth <= most_logged_positions; ++depth) {
    const std::string key = fmt::format("d{}=", depth);
    if (!list.starts_with(key)) break;
    const AcceptedOfDrafted at = accepted_of_drafted(line, "depth", list.substr(key.size()));
    counts.accepted_at.push_back(at.accepted);
    counts.drafted_at.push_back(at.drafted);
    if (at.rest.starts_with(']')) return;
    list = at.rest.substr(at.rest.starts_with(',') ? 1 : 0);
  }
  line.refuse("depth", "another list", "[d1=accepted/drafted,d2=...] with at most 1024 depths");
}

}  // namespace

void OmlxLog::read_heads(const LogLine& line) {
  const auto accept = line.after(" accept=");
  if (!accept || !line.after(" cycles=")) return;
  found_.see_speculation();
  const AcceptedOfDrafted all = accepted_of_drafted(line, "accept", *accept);
  const auto percent = all.rest.starts_with(" (") ? leading_number(all.rest.substr(2)) : std::nullopt;
  // Programs made of oMLX write other figures in these places.
  if (all.drafted == 0 || !percent) return;
  require_ratio(line, "accept", percent->value, 100 * all.accepted / all.drafted, 0.1);
  ServingCounts counts = found_.counts_of(line.number(), "omlx", "oMLX log", CountUnit::request);
  counts.draft_method = "mtp";
  counts.shape = DraftShape::chain;
  counts.accepted = all.accepted;
  counts.drafted = all.drafted;
  counts.steps = line.count(" cycles=");
  counts.rounds = *counts.steps - line.number(" d0=").value_or(0);
  if (*counts.rounds < 1) line.refuse("d0", "every cycle", "fewer than the cycles, since some drafted");
  if (const auto depths = line.after(" depth[")) {
    read_depths(line, *depths, counts);
    counts.gamma = static_cast<std::int64_t>(counts.drafted_at.size());
  }
  // What stands behind the drafts tells a whole line from one that was cut within a number.
  if (!line.after(" emits[")) line.refuse("emits", "missing", "given behind the drafts");
  found_.take(counts);
}

void OmlxLog::read_draft_model(const LogLine& line) {
  ServingCounts counts = found_.counts_of(line.number(), "omlx", "oMLX log", CountUnit::request);
  counts.draft_method = "mtp";
  counts.shape = DraftShape::chain;
  counts.rounds = counts.steps = line.count(" rounds=");
  const AcceptedOfDrafted all = accepted_of_drafted(line, "accepted", line.after(" accepted=").value_or(""));
  found_.see_speculation();
  if (*counts.rounds == 0 || all.drafted == 0) return;
  counts.accepted = all.accepted;
  counts.drafted = all.drafted;
  require_ratio(line, "tokens_per_round", line.needed("tokens_per_round="), 1 + all.accepted / *counts.rounds, 0.01);
  const double block = line.count("block_size=");
  if (block < 2 || block > static_cast<double>(most_logged_positions))
    line.refuse("block_size", fmt::format("{}", block), fmt::format("in [2, {}]", most_logged_positions));
  counts.gamma = static_cast<std::int64_t>(block) - 1;
  found_.take(counts);
}

}  // namespace specdec::traces
