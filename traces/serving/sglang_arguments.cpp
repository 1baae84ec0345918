#include "traces/serving/sglang_arguments.hpp"

#include <array>
#include <string_view>

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

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
  constexpr std::array<std::string_view, 2> members = {"server_info", "server_args"};
  constexpr std::array<std::string_view, 2> prefixes = {"server_info.", "server_args."};
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto found = fields.value(members[i]);
    if (!found || !found->is_object()) continue;
    const dom::object object = *found;
    read_from(CountedFields(fields.file(), object, prefixes[i]), counts);
  }
}

}  // namespace specdec::traces
