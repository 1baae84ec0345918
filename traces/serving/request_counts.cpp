#include "traces/serving/request_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/printable.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

}  // namespace

RequestKeys vllm_request_keys() {
  return {.rounds = {"num_spec_steps"},
          .accepted = {"num_accepted_draft_tokens", "num_accepted_tokens"},
          .drafted = {"num_draft_tokens"},
          .histograms = {"acceptance_histogram"},
          .histogram_by_length = "acceptance_histogram_by_draft_length",
          .gamma = "num_spec_tokens",
          .rate = "draft_acceptance_rate",
          .length = "mean_acceptance_length",
          .accepted_by_round = "per_step_accepted",
          .drafted_by_round = "per_step_drafted"};
}

void RequestCounts::read(const CountedFields& fields, ServingCounts& counts) {
  counts.rounds = fields.count(keys_.rounds);
  counts.accepted = fields.count(keys_.accepted);
  counts.drafted = fields.count(keys_.drafted);
  read_histogram(fields, counts);
  if (!keys_.gamma.empty()) {
    if (const auto gamma = fields.count(keys_.gamma)) counts.gamma = static_cast<std::int64_t>(*gamma);
  }
  read_histogram_by_length(fields, counts);
  read_rounds(fields, counts);
  check_means(fields, counts);
  find_shape(counts);
  if (!counts.rounds) fields.refuse("num_spec_steps", "missing", "given, or acceptance_histogram");
}

void RequestCounts::read_histogram(const CountedFields& fields, ServingCounts& counts) {
  for (const std::string_view key : keys_.histograms) {
    if (!key.empty() && fields.histogram(key, counts.rounds_by_accepted)) return add_totals(counts);
  }
}

void RequestCounts::read_histogram_by_length(const CountedFields& fields, ServingCounts& counts) {
  const auto found = keys_.histogram_by_length.empty() ? std::nullopt : fields.value(keys_.histogram_by_length);
  if (!found) return;
  if (!found->is_object()) {
    fields.file().refuse(fields.name(keys_.histogram_by_length), *found, "an object of histograms by length of draft");
  }
  const dom::object lengths = *found;
  for (const auto [text, histogram] : lengths) {
    const auto length = index_of_key(text);
    if (!length) {
      fields.refuse(keys_.histogram_by_length, fmt::format("an object with {}", printable(text)),
                    fmt::format("an object whose keys are integers in [0, {}]", CountedFields::longest_draft));
    }
    std::vector<double> of_length;
    fields.histogram(histogram, keys_.histogram_by_length, text, of_length);
    if (of_length.empty()) continue;
    counts.rounds_by_accepted_and_drafted[static_cast<std::int64_t>(*length)] = std::move(of_length);
  }
}

void RequestCounts::read_rounds(const CountedFields& fields, ServingCounts& counts) {
  const bool accepted_given = fields.list(keys_.accepted_by_round, accepted_by_round_);
  const bool drafted_given = fields.list(keys_.drafted_by_round, drafted_by_round_);
  if (!accepted_given || !drafted_given) return;
  if (accepted_by_round_.size() != drafted_by_round_.size()) {
    fields.refuse(keys_.accepted_by_round, fmt::format("{} long", accepted_by_round_.size()),
                  fmt::format("{} long, as {} is", drafted_by_round_.size(), keys_.drafted_by_round));
  }
  const auto listed = static_cast<double>(accepted_by_round_.size());
  if (listed < counts.rounds.value_or(listed)) return;
  if (!counts.rounds) counts.rounds = listed;
  if (!counts.accepted) counts.accepted = sum_of(accepted_by_round_);
  if (!counts.drafted) counts.drafted = sum_of(drafted_by_round_);
  if (!counts.rounds_by_accepted_and_drafted.empty()) return;
  for (std::size_t i = 0; i < accepted_by_round_.size(); ++i) {
    const double longest = std::max(drafted_by_round_[i], accepted_by_round_[i]);
    if (longest > static_cast<double>(CountedFields::longest_draft)) {
      fields.refuse(fmt::format("{}[{}]", keys_.drafted_by_round, i), shown(longest),
                    fmt::format("at most {}", CountedFields::longest_draft));
    }
    add_round(counts.rounds_by_accepted_and_drafted[static_cast<std::int64_t>(drafted_by_round_[i])],
              static_cast<std::size_t>(accepted_by_round_[i]));
  }
}

void RequestCounts::check_means(const CountedFields& fields, const ServingCounts& counts) const {
  // Whoever sums the counts refuses them.
  if (counts.accepted && counts.drafted && *counts.accepted > *counts.drafted) return;
  if (!keys_.rate.empty()) {
    const auto rate = fields.measure(keys_.rate);
    const bool known = rate && counts.accepted && counts.drafted && *counts.drafted > 0;
    const double expected = known ? *counts.accepted / *counts.drafted : 0;
    if ((rate && *rate > 1 + three_decimals) || (known && std::abs(*rate - expected) > three_decimals)) {
      const bool percentage = known && std::abs(*rate - 100 * expected) <= std::max(0.051, 1e-6 * *rate);
      fields.refuse(keys_.rate, percentage ? fmt::format("{}, a percentage", shown(*rate)) : shown(*rate),
                    known ? fmt::format("the fraction {} = {} / {}", shown(expected), shown(*counts.accepted),
                                        shown(*counts.drafted))
                          : "a fraction, in [0, 1]");
    }
  }
  if (!keys_.length.empty()) require_counted_length(fields, keys_.length, fields.measure(keys_.length), counts);
}

void RequestCounts::find_shape(ServingCounts& counts) const {
  if (!keys_.tree_by_drafts || !counts.gamma || !counts.rounds || !counts.drafted) return;
  const bool more = *counts.drafted > static_cast<double>(*counts.gamma) * *counts.rounds;
  counts.shape = more ? DraftShape::tree : DraftShape::chain;
}

}  // namespace specdec::traces
