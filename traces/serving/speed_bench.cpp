#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"

namespace specdec::traces {

// Output of llama.cpp's tools/server/bench/speed-bench/speed_bench.py --output (llama.cpp pull request 23869): one
// object, with a result for each prompt or conversation that llama-server answered. CountUnit::request for each; its
// category is a label, model_name is that of config.
//
//   {"completed_samples": 1, "config": {"bench": "qualitative", "category": "all", "concurrency": 1, "extra_inputs":
//     {"temperature": 0}, "model": null, "osl": 1024, "url": "localhost:8080"}, "failed_samples": 0,
//    "results": [{"category": "coding", "completion_tokens": 40, "draft_n": 36, "draft_n_accepted": 15, "error": null,
//      "finish_reason": "stop", "id": "q1", "latency_s": 0.6, "ok": true, "predicted_ms": 480.0,
//      "predicted_per_second": 83.3, "prompt_ms": 20.0, "prompt_per_second": 5000.0, "prompt_tokens": 100,
//      "total_tokens": 140, "turns": 1}],
//    "selected_samples": 1, "summary": [{"accept_rate": 0.4166666666666667, "accepted": 15, "avg_latency": 0.6,
//      "avg_pred_t_s": 83.3, "avg_prompt_t_s": 5000.0, "category": "overall", "draft_n": 36, "failed": 0,
//      "requests": 1, "turns": 1}]}
//
// A result sums its turns, whose timings are those that response_counts.cpp reads: rounds = completion_tokens - turns -
// draft_n_accepted, with the same exceptions. Results that failed are left out with the warning "failed_left_out". The
// summary's row "overall" must have the drafts of all results. Every result has a BenchRun of its turns (completed) at
// config.concurrency; where times are wanted (CountsSink::plain_windows) predicted_ms must be there, and results
// without drafts are units, too.

namespace {

constexpr std::string_view speed_bench_name = "llama.cpp speed_bench";

class SpeedBenchRun {
 public:
  SpeedBenchRun(const std::filesystem::path& path, const CountsSink& sink)
      : file_(path), sink_(sink), counts_(no_counts("llama.cpp", speed_bench_name, CountUnit::request, path)) {}

  void read() {
    while (file_.next()) read_run(CountedFields(file_));
    warn_or_refuse();
  }

 private:
  void read_run(const CountedFields& run) {
    read_config(run.at("config"));
    drafted_ = accepted_ = 0;
    results_ += run.each("results", [&](const CountedFields& result) {
      if (is_ok(result)) {
        take(result);
      } else {
        ++failed_;
      }
    });
    run.each("summary", [&](const CountedFields& row) {
      if (row.text("category") != "overall") return;
      check_sum(row, "draft_n", drafted_);
      check_sum(row, "accepted", accepted_);
    });
  }

  void read_config(const CountedFields& config) {
    concurrency_ = config.above_zero("concurrency");
    set_label(counts_, "model_name", config.text("model"));
    const auto inputs = config.part("extra_inputs");
    const auto temperature = inputs ? inputs->measure("temperature") : std::nullopt;
    set_label(counts_, "temperature", temperature ? std::optional(shown(*temperature)) : std::nullopt);
  }

  static bool is_ok(const CountedFields& result) {
    const auto value = result.value("ok");
    bool ok = false;
    if (!value) result.refuse("ok", "missing", "true or false");
    if (value->get(ok) != simdjson::SUCCESS) result.file().refuse(result.name("ok"), *value, "true or false");
    return ok;
  }

  void take(const CountedFields& result) {
    constexpr std::string_view given = "given in every result";
    const double drafted = result.required("draft_n", given);
    const double accepted = result.required("draft_n_accepted", given);
    const double tokens = result.required("completion_tokens", given);
    const double turns = result.required("turns", given);
    drafted_ += drafted;
    accepted_ += accepted;
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

  static void check_sum(const CountedFields& row, std::string_view key, double sum) {
    const auto told = row.count(key);
    if (told && *told != sum) row.refuse(key, shown(*told), fmt::format("{}, the sum over results", shown(sum)));
  }

  void warn_or_refuse() const {
    const std::filesystem::path& path = file_.path();
    if (taken_ == 0) {
      throw FileError(path, "results[].draft_n", fmt::format("missing or 0 in all of {} results", results_),
                      "above 0 where a request speculated");
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
  std::int64_t results_ = 0, failed_ = 0, stopped_ = 0, taken_ = 0;
  /// Drafted and accepted tokens of one document.
  double drafted_ = 0, accepted_ = 0;
};

bool is_speed_bench(std::string_view text) {
  return mentions_key(text, "completed_samples") && mentions_key(text, "failed_samples") &&
         mentions_key(text, "config");
}

}  // namespace

CountsFormat speed_bench_format() {
  return {speed_bench_name, [](const FileHead& head) { return is_speed_bench(head.json()); }, read_each<SpeedBenchRun>};
}

}  // namespace specdec::traces
