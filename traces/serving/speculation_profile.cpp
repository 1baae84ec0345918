#include "traces/serving/speculation_profile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/printable.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view profile_name = "speculation profile";
constexpr std::string_view histogram_key = "acceptance_length_histogram";
constexpr std::string_view conditional_key = "conditional_accept_rates";
constexpr std::string_view marginal_key = "marginal_accept_rates";
constexpr std::string_view mean_key = "mean_accept_length";
constexpr std::string_view by_drafts_key = "accept_length_by_k";
constexpr std::string_view drafts_key = "num_speculative_tokens";
/// Half a unit of the sixth digit behind the point, to which rates and means are written, and what doubles lose.
constexpr double six_decimals = 5.1e-7;

bool agree(double a, double b, double written_times) { return std::abs(a - b) <= six_decimals * written_times; }

class SpeculationProfile {
 public:
  SpeculationProfile(const JsonLines& file, dom::object profile, const CountsSink& sink)
      : fields_(file, profile), sink_(sink) {
    counts_.file = file.path();
    counts_.line = file.line();
    counts_.engine = profile_engine;
    counts_.format = profile_name;
    counts_.unit = CountUnit::total;
    counts_.shape = DraftShape::chain;
  }

  void read() {
    refuse_what_is_no_measurement();
    take_name("target_model", "model_name");
    take_name("draft_checkpoint", "draft");
    read_histogram();
    read_rates(conditional_key, conditional_);
    read_rates(marginal_key, marginal_);
    find_gamma();
    check_marginal();
    check_conditional();
    take_mean();
    sink_.take(counts_);
    take_other_lengths();
  }

 private:
  static constexpr std::string_view profile_engine = "model-optimizer";

  void refuse_what_is_no_measurement() const {
    bool measured = true;
    const auto said = fields_.value("measured");
    if (said && said->get(measured) != simdjson::SUCCESS)
      fields_.file().refuse("measured", *said, "true, or false for a stub");
    if (!measured) fields_.refuse("measured", "false", "true: a stub holds no acceptance");
    const auto method = fields_.text("verification_method");
    if (method && *method != "longest_prefix") {
      fields_.refuse("verification_method", std::string(printable(*method)),
                     "longest_prefix, the only one whose rates by position multiply");
    }
  }

  /// A string, or an object with a name, id or path.
  void take_name(std::string_view key, std::string_view label) {
    const auto found = fields_.value(key);
    if (!found) return;
    std::string_view name;
    if (found->get(name) == simdjson::SUCCESS) return set_label(counts_, label, name);
    if (!found->is_object()) return;
    for (const std::string_view part : {"name", "id", "path"}) {
      const auto value = find_member(dom::object(*found), part);
      if (value && value->get(name) == simdjson::SUCCESS) return set_label(counts_, label, name);
    }
  }

  void read_histogram() {
    std::vector<double> by_tokens;
    if (!fields_.histogram(histogram_key, by_tokens) || by_tokens.empty()) return;
    if (by_tokens[0] > 0) {
      fields_.refuse(fmt::format("{}[0]", histogram_key), shown(by_tokens[0]),
                     "0: a round puts out the target's own token at least");
    }
    while (!by_tokens.empty() && by_tokens.back() == 0) by_tokens.pop_back();
    if (by_tokens.empty()) fields_.refuse(histogram_key, "without rounds", "the rounds of a measurement");
    counts_.rounds_by_accepted.assign(by_tokens.begin() + 1, by_tokens.end());
    counts_.rounds = sum_of(counts_.rounds_by_accepted);
    double accepted = 0;
    for (std::size_t j = 0; j < counts_.rounds_by_accepted.size(); ++j)
      accepted += static_cast<double>(j) * counts_.rounds_by_accepted[j];
    counts_.accepted = accepted;
    counts_.emitted = accepted + *counts_.rounds;
  }

  void read_rates(std::string_view key, std::vector<double>& rates) const {
    const auto found = fields_.value(key);
    if (!found) return;
    JsonField field{key};
    for (const dom::element entry : read_array(fields_.file(), *found, field)) {
      ++field.index;
      const auto rate = number_of(entry);
      if (!rate || !(0 <= *rate && *rate <= 1)) fields_.file().refuse(field.text(), entry, "a rate in [0, 1]");
      if (rates.size() >= CountedFields::longest_draft)
        fields_.refuse(key, "longer than a draft can be", fmt::format("at most {} long", CountedFields::longest_draft));
      rates.push_back(*rate);
    }
  }

  void find_gamma() {
    const auto told = fields_.count(drafts_key);
    const auto most = fields_.count("max_supported_k");
    if (told && (*told < 1 || *told > CountedFields::longest_draft))
      fields_.refuse(drafts_key, shown(*told), fmt::format("in [1, {}]", CountedFields::longest_draft));
    if (told && most && *most < *told)
      fields_.refuse("max_supported_k", shown(*most), fmt::format("at least {}, as {} is", shown(*told), drafts_key));
    std::optional<std::size_t> gamma;
    if (told) gamma = static_cast<std::size_t>(*told);
    for (const auto& [key, rates] : {std::pair(conditional_key, &conditional_), std::pair(marginal_key, &marginal_)}) {
      if (rates->empty()) continue;
      if (!gamma) gamma = rates->size();
      if (rates->size() != *gamma) {
        fields_.refuse(key, fmt::format("{} long", rates->size()),
                       fmt::format("{} long, one for each drafted token", *gamma));
      }
    }
    if (!gamma) return;
    if (counts_.rounds_by_accepted.size() > *gamma + 1) {
      fields_.refuse(fmt::format("{}[{}]", histogram_key, counts_.rounds_by_accepted.size()),
                     shown(counts_.rounds_by_accepted.back()),
                     fmt::format("0 where {} tokens are drafted, and {} put out at most", *gamma, *gamma + 1));
    }
    counts_.gamma = static_cast<std::int64_t>(*gamma);
  }

  /// The share of rounds that accepted more than j drafts.
  std::optional<double> counted_marginal(std::size_t j) const {
    if (!counts_.rounds) return std::nullopt;
    const std::vector<double>& rounds = counts_.rounds_by_accepted;
    const auto begin = rounds.begin() + static_cast<std::ptrdiff_t>(std::min(j + 1, rounds.size()));
    return std::accumulate(begin, rounds.end(), 0.0) / *counts_.rounds;
  }

  void check_marginal() const {
    double before = 1;
    for (std::size_t j = 0; j < marginal_.size(); ++j) {
      const std::string place = fmt::format("{}[{}]", marginal_key, j);
      if (marginal_[j] > before + six_decimals)
        fields_.refuse(place, shown(marginal_[j]), fmt::format("at most {}, the rate before it", shown(before)));
      before = marginal_[j];
      const auto counted = counted_marginal(j);
      if (counted && !agree(marginal_[j], *counted, 2))
        fields_.refuse(place, shown(marginal_[j]), fmt::format("{}, as {} counts", shown(*counted), histogram_key));
    }
  }

  /// Each conditional rate times the marginal one before it is the next marginal rate.
  void check_conditional() {
    double product = 1;
    std::vector<double> marginal;
    for (std::size_t j = 0; j < conditional_.size(); ++j) {
      const bool has_marginal = !marginal_.empty();
      const auto counted = counted_marginal(j);
      const double before = j == 0 ? 1 : counted ? *counted_marginal(j - 1) : has_marginal ? marginal_[j - 1] : product;
      const double next = before * conditional_[j];
      const auto expected = counted ? counted : has_marginal ? std::optional(marginal_[j]) : std::nullopt;
      if (expected && !agree(next, *expected, 4)) {
        fields_.refuse(fmt::format("{}[{}]", conditional_key, j), shown(conditional_[j]),
                       fmt::format("{}, by {}", shown(before > 0 ? *expected / before : 0),
                                   counted ? histogram_key : marginal_key));
      }
      product = next;
      marginal.push_back(next);
    }
    if (marginal_.empty()) marginal_ = std::move(marginal);
  }

  void take_mean() {
    const auto told = fields_.measure(mean_key);
    if (told && *told < 1) fields_.refuse(mean_key, shown(*told), "at least 1: it includes the target's own token");
    std::optional<double> known;
    if (counts_.rounds) {
      known = *counts_.emitted / *counts_.rounds;
    } else if (!marginal_.empty()) {
      known = 1 + sum_of(marginal_);
      counts_.tokens_per_round = known;
      sink_.warn(
          {"rates_without_rounds",
           fmt::format("{}: rates by position of an unknown number of rounds give a mean alone; as they are they "
                       "go to --acceptance-per-position {:.6g}",
                       fields_.file().path().string(), fmt::join(marginal_, ","))});
    }
    if (!known) {
      if (!told) fields_.refuse(histogram_key, "missing", fmt::format("given, or rates, or {}", mean_key));
      counts_.tokens_per_round = told;
      return;
    }
    const bool of_requests = !fields_.value("mean_accept_length_per_request");
    const auto written_times = static_cast<double>(2 + marginal_.size());
    if (told && !of_requests && !agree(*told, *known, written_times)) {
      fields_.refuse(mean_key, shown(*told),
                     fmt::format("{}, by {}", shown(*known), counts_.rounds ? histogram_key : marginal_key));
    }
  }

  void take_other_lengths() {
    const auto lengths = fields_.value(by_drafts_key);
    if (!lengths) return;
    for (const auto [key, value] : read_object(fields_.file(), *lengths, {by_drafts_key})) {
      const std::string place = fmt::format("{}[{}]", by_drafts_key, printable(key));
      const auto drafts = index_of_key(key);
      if (!drafts || *drafts == 0)
        fields_.refuse(place, "there",
                       fmt::format("named by drafted tokens, in [1, {}]", CountedFields::longest_draft));
      const auto length = number_of(value);
      const auto most = static_cast<double>(*drafts + 1);
      if (!length || !(1 <= *length && *length <= most))
        fields_.file().refuse(place, value, fmt::format("a mean in [1, {}]", *drafts + 1));
      if (static_cast<std::int64_t>(*drafts) == counts_.gamma) {
        check_length_at_gamma(place, *length);
      } else {
        take_length(static_cast<std::int64_t>(*drafts), *length);
      }
    }
  }

  void check_length_at_gamma(const std::string& place, double length) const {
    const auto mean = fields_.measure(mean_key);
    if (!mean || agree(length, *mean, 2)) return;
    fields_.refuse(place, shown(length), fmt::format("{}, as {} is", shown(*mean), mean_key));
  }

  void take_length(std::int64_t drafts, double length) {
    ServingCounts other = counts_;
    clear_counts(other);
    other.line = fields_.file().line();
    other.shape = DraftShape::chain;
    other.gamma = drafts;
    other.tokens_per_round = length;
    sink_.take(other);
  }

  CountedFields fields_;
  const CountsSink& sink_;
  ServingCounts counts_;
  std::vector<double> conditional_, marginal_;
};

void read_profiles(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  for (const std::filesystem::path& path : files) {
    JsonLines file(path);
    std::size_t profiles = 0;
    for (; file.next(); ++profiles)
      SpeculationProfile(file, read_object(file, file.document(), {"document"}), sink).read();
    if (profiles == 0) throw FileError(path, FileError::whole_file(), "file", "empty", "a speculation profile");
  }
}

bool is_profile(std::string_view text) {
  return mentions_key(text, conditional_key) || mentions_key(text, marginal_key) || mentions_key(text, histogram_key) ||
         mentions_key(text, by_drafts_key);
}

}  // namespace

CountsFormat speculation_profile_format() {
  return {profile_name, [](const FileHead& head) { return is_profile(head.json()); }, read_profiles};
}

}  // namespace specdec::traces
