#include "traces/serving/speed_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view speed_bench_name = "llama.cpp speed_bench";

class SpeedBenchRun {
 public:
  SpeedBenchRun(const std::filesystem::path& path, const CountsSink& sink) : file_(path), sink_(sink) {
    counts_.file = path;
    counts_.engine = "llama.cpp";
    counts_.format = speed_bench_name;
    counts_.unit = CountUnit::request;
  }

  void read() {
    while (file_.next()) read_run(read_object(file_, file_.document(), {"document"}));
    warn_or_refuse();
  }

 private:
  void read_run(dom::object run) {
    const CountedFields fields(file_, run);
    read_config(read_object(file_, member_of(file_, run, "config", {"config"}), {"config"}));
    drafted_ = accepted_ = 0;
    std::size_t index = 0;
    for (const dom::element entry : read_array(file_, member_of(file_, run, "results", {"results"}), {"results"})) {
      const std::string place = fmt::format("results[{}]", index++);
      const std::string prefix = place + ".";
      const CountedFields result(file_, read_object(file_, entry, {place}), prefix);
      ++results_;
      if (is_ok(result)) {
        take(result);
      } else {
        ++failed_;
      }
    }
    if (const auto summary = fields.value("summary")) check_summary(*summary);
  }

  void read_config(dom::object config) {
    const CountedFields fields(file_, config, "config.");
    concurrency_ = fields.above_zero("concurrency");
    set_label(counts_, "model_name", fields.text("model"));
    const auto inputs = fields.value("extra_inputs");
    const auto temperature =
        inputs ? CountedFields(file_, read_object(file_, *inputs, {"config.extra_inputs"}), "config.extra_inputs.")
                     .measure("temperature")
               : std::nullopt;
    set_label(counts_, "temperature", temperature ? std::optional(shown(*temperature)) : std::nullopt);
  }

  static bool is_ok(const CountedFields& result) {
    const auto value = result.value("ok");
    bool ok = false;
    if (!value) result.refuse("ok", "missing", "true or false");
    if (value->get(ok) != simdjson::SUCCESS) result.file().refuse(result.name("ok"), *value, "true or false");
    return ok;
  }

  static double given(const CountedFields& result, std::string_view key) {
    const auto value = result.count(key);
    if (!value) result.refuse(key, "missing", "given in every result");
    return *value;
  }

  void take(const CountedFields& result) {
    const double drafted = given(result, "draft_n");
    const double accepted = given(result, "draft_n_accepted");
    const double tokens = given(result, "completion_tokens");
    const double turns = given(result, "turns");
    drafted_ += drafted;
    accepted_ += accepted;
    if (accepted > drafted)
      result.refuse("draft_n_accepted", shown(accepted), fmt::format("at most {}, as draft_n is", shown(drafted)));
    if (turns == 0) result.refuse("turns", "0", "at least 1");
    if (drafted == 0 && !sink_.plain_windows) return;
    // Each turn's prompt gives its first token, and every pass its accepted drafts and one token more, unless a stop
    // cut them off.
    const double rounds = tokens - turns - accepted;
    if (rounds < 1) {
      ++stopped_;
      return;
    }
    clear_counts(counts_);
    counts_.line = file_.line();
    counts_.id = std::string(result.text("id").value_or(""));
    set_label(counts_, "category", result.text("category"));
    counts_.emitted = rounds + accepted;
    if (drafted > 0) {
      counts_.rule = AcceptanceRule::greedy_draft;
      counts_.shape = DraftShape::chain;
      counts_.rounds = rounds;
      counts_.drafted = drafted;
      counts_.accepted = accepted;
    }
    take_times(result, turns, tokens);
    ++taken_;
    sink_.take(counts_);
  }

  void take_times(const CountedFields& result, double turns, double tokens) {
    const auto milliseconds = result.measure("predicted_ms");
    if (sink_.plain_windows && milliseconds.value_or(0) == 0) {
      result.refuse("predicted_ms", milliseconds ? "0" : "missing or null",
                    "the time of generation, above 0: llama-server gives it");
    }
    BenchRun& run = counts_.bench.emplace();
    run.max_concurrency = concurrency_;
    run.completed = turns;
    if (milliseconds) run.duration_s = *milliseconds / 1000;
    run.total_output_tokens = tokens;
    run.total_input_tokens = result.count("prompt_tokens");
  }

  void check_summary(dom::element summary) const {
    std::size_t index = 0;
    for (const dom::element entry : read_array(file_, summary, {"summary"})) {
      const std::string place = fmt::format("summary[{}]", index++);
      const std::string prefix = place + ".";
      const CountedFields row(file_, read_object(file_, entry, {place}), prefix);
      if (row.text("category") != "overall") continue;
      check_sum(row, "draft_n", drafted_);
      check_sum(row, "accepted", accepted_);
    }
  }

  static void check_sum(const CountedFields& row, std::string_view key, double sum) {
    const auto told = row.count(key);
    if (told && *told != sum) row.refuse(key, shown(*told), fmt::format("{}, the sum over results", shown(sum)));
  }

  void warn_or_refuse() const {
    const std::filesystem::path& path = file_.path();
    if (taken_ == 0) {
      throw FileError(path, FileError::whole_file(), "results[].draft_n",
                      fmt::format("missing or 0 in all of {} results", results_), "above 0 where a request speculated");
    }
    if (failed_ > 0) {
      sink_.warn({"failed_left_out",
                  fmt::format("{}: {} of {} results failed and are left out", path.string(), failed_, results_)});
    }
    if (stopped_ > 0) {
      sink_.warn({"stopped_in_a_draft",
                  fmt::format("{}: {} of {} results ended within accepted drafts, so that their tokens do not tell "
                              "their rounds; they are left out",
                              path.string(), stopped_, results_)});
    }
  }

  JsonLines file_;
  const CountsSink& sink_;
  ServingCounts counts_;
  double concurrency_ = 0;
  std::size_t results_ = 0, failed_ = 0, stopped_ = 0, taken_ = 0;
  /// Drafted and accepted tokens of one document.
  double drafted_ = 0, accepted_ = 0;
};

bool is_speed_bench(std::string_view text) {
  return mentions_key(text, "completed_samples") && mentions_key(text, "failed_samples") &&
         mentions_key(text, "config");
}

}  // namespace

CountsFormat speed_bench_format() {
  return {speed_bench_name, [](const FileHead& head) { return is_speed_bench(head.json()); },
          [](std::span<const std::filesystem::path> files, const CountsSink& sink) {
            for (const std::filesystem::path& path : files) SpeedBenchRun(path, sink).read();
          }};
}

}  // namespace specdec::traces
