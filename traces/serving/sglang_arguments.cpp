#include "traces/serving/sglang_arguments.hpp"

#include <string_view>

namespace specdec::traces {
namespace {

void read_from(const CountedFields& fields, ServingCounts& counts) {
  set_sglang_drafts(fields.count("speculative_num_steps"), fields.count("speculative_eagle_topk"),
                    fields.count("speculative_num_draft_tokens"), counts);
}

}  // namespace

void set_sglang_drafts(std::optional<double> steps, std::optional<double> top_k, std::optional<double> verified,
                       ServingCounts& counts) {
  if (steps) counts.gamma = static_cast<std::int64_t>(*steps);
  if ((top_k && *top_k > 1) || (verified && steps && *verified > *steps + 1)) {
    counts.shape = DraftShape::tree;
    if (verified) counts.verified_per_round = static_cast<std::int64_t>(*verified);
    if (top_k) counts.top_k = static_cast<std::int64_t>(*top_k);
  } else if (steps && (top_k || verified)) {
    counts.shape = DraftShape::chain;
  }
}

void read_sglang_arguments(const CountedFields& fields, ServingCounts& counts) {
  read_from(fields, counts);
  for (const std::string_view member : {"server_info", "server_args"}) {
    if (const auto arguments = fields.part_if_any(member)) read_from(*arguments, counts);
  }
}

}  // namespace specdec::traces
