#include "traces/serving/specforge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/printable.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view specforge_name = "specforge bench";
/// Figures that are written in full give whole counts to within this share.
constexpr double to_the_last_digit = 1e-6;

class SpecforgeResults {
 public:
  SpecforgeResults(const std::filesystem::path& path, const CountsSink& sink) : file_(path), sink_(sink) {
    counts_.file = path;
    counts_.engine = "sglang";
    counts_.format = specforge_name;
    counts_.unit = CountUnit::run;
  }

  void read() {
    while (file_.next()) read_results(read_object(file_, file_.document(), {"document"}));
    if (runs_ > 0) return;
    throw FileError(file_.path(), FileError::whole_file(), "metrics", "missing or empty", "given for each benchmark");
  }

 private:
  void read_results(dom::object results) {
    set_label(counts_, "draft", CountedFields(file_, results).text("model"));
    for (const auto [key, value] : results) {
      if (!value.is_array()) continue;
      set_label(counts_, "category", key);
      const dom::array configurations = value;
      std::size_t index = 0;
      for (const dom::element configuration : configurations) {
        const std::string place = fmt::format("{}[{}]", printable(key), index++);
        read_configuration(read_object(file_, configuration, {place}), place + ".");
      }
    }
  }

  void read_configuration(dom::object configuration, const std::string& place) {
    const CountedFields fields(file_, configuration, place);
    const auto metrics = fields.value("metrics");
    if (!metrics) fields.refuse("metrics", "missing", "given for each configuration");
    std::size_t index = 0;
    for (const dom::element entry : read_array(file_, *metrics, {place, -1, "metrics"})) {
      const std::string prefix = fmt::format("{}metrics[{}]", place, index++);
      const std::string prefix_of_keys = prefix + ".";
      clear_counts(counts_);
      counts_.line = file_.line();
      read_drafts(fields);
      read_metrics(fields, CountedFields(file_, read_object(file_, entry, {prefix}), prefix_of_keys));
      ++runs_;
      sink_.take(counts_);
    }
  }

  /// steps, topk and num_draft_tokens are all null where the script did not start the server.
  void read_drafts(const CountedFields& fields) {
    const auto steps = fields.count("steps");
    const auto top_k = fields.count("topk");
    const auto tokens = fields.count("num_draft_tokens");
    plain_ = steps == 0.0;
    if (!steps || plain_) return;
    if (*steps > CountedFields::longest_draft)
      fields.refuse("steps", shown(*steps), fmt::format("at most {}", CountedFields::longest_draft));
    counts_.gamma = static_cast<std::int64_t>(*steps);
    const bool tree = top_k.value_or(1) > 1 || tokens.value_or(0) > *steps + 1;
    counts_.shape = tree ? DraftShape::tree : DraftShape::chain;
    if (tree && tokens.value_or(0) > 0) counts_.verified_per_round = static_cast<std::int64_t>(*tokens);
    if (tree && top_k) counts_.top_k = static_cast<std::int64_t>(*top_k);
  }

  void read_metrics(const CountedFields& configuration, const CountedFields& metrics) {
    BenchRun& run = counts_.bench.emplace();
    run.max_concurrency = configuration.above_zero("batch_size");
    run.output_throughput = metrics.above_zero("output_throughput");
    run.duration_s = metrics.above_zero("latency");
    run.completed = metrics.above_zero("num_questions");
    run.total_output_tokens = *run.output_throughput * *run.duration_s;
    if (!(*run.total_output_tokens <= largest_count))
      metrics.refuse("output_throughput", shown(*run.output_throughput),
                     fmt::format("at most 2^53 tokens in {} s", shown(*run.duration_s)));
    run.mean_tpot_ms = 1000 * *run.max_concurrency / *run.output_throughput;
    read_acceptance(metrics);
  }

  void read_acceptance(const CountedFields& metrics) {
    const auto length = metrics.measure("accept_length");
    if (!length) metrics.refuse("accept_length", "missing", "a number >= 1, 1 without speculation");
    if (*length < 1) metrics.refuse("accept_length", shown(*length), "at least 1: it includes the bonus token");
    if (plain_ && *length != 1) metrics.refuse("accept_length", shown(*length), "1 where steps are 0");
    // Without a draft SGLang tells no rounds, and the script writes 1.
    if (plain_ || (!counts_.gamma && *length == 1)) return;
    const double tokens = *counts_.bench->total_output_tokens;
    const double rounds = std::max(1.0, std::round(tokens / *length));
    if (counts_.gamma && *length > static_cast<double>(*counts_.gamma + 1) * (1 + to_the_last_digit) +
                                       *counts_.bench->completed / rounds) {
      metrics.refuse(
          "accept_length", shown(*length),
          fmt::format("at most {}, one more than the steps, beside the first tokens of answers", *counts_.gamma + 1));
    }
    counts_.rounds = rounds;
    counts_.accepted = std::max(0.0, std::round(tokens) - *counts_.bench->completed - rounds);
    if (counts_.gamma) counts_.accepted = std::min(*counts_.accepted, static_cast<double>(*counts_.gamma) * rounds);
    counts_.emitted = rounds + *counts_.accepted;
    counts_.from_rates = std::abs(tokens / *length - rounds) > to_the_last_digit * rounds;
  }

  JsonLines file_;
  const CountsSink& sink_;
  ServingCounts counts_;
  std::size_t runs_ = 0;
  bool plain_ = false;
};

bool is_specforge(std::string_view text) {
  return mentions_key(text, "batch_size") && mentions_key(text, "steps") && mentions_key(text, "topk") &&
         mentions_key(text, "num_draft_tokens") && mentions_key(text, "metrics");
}

}  // namespace

CountsFormat specforge_format() {
  return {specforge_name, [](const FileHead& head) { return is_specforge(head.json()); },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            for (const std::filesystem::path& path : files) SpecforgeResults(path, sink).read();
          }};
}

}  // namespace specdec::traces
