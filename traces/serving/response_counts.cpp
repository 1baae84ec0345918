#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/request_counts.hpp"
#include "traces/serving/sglang_arguments.hpp"

namespace specdec::traces {

// Engines' counts of one request, in their responses: JSON lines, an array, or documents of several lines; responses
// may stand inside other objects ("response", "body", ...) and lists. CountUnit::request. The model's name is `model`;
// a `category` or `task` beside it becomes the label "category". Responses without counts, or with none but zeros, are
// left out with the warning "requests_without_speculation"; a file of nothing else is refused. A request that is there
// again, with the same id (`id`, `request_id`, `meta_info.id`) and equal in all, counts once ("request_given_twice");
// one that has the id of another in its file and says something else counts, with the warning "request_ids_repeat".
//
// vLLM, --per-request-spec-decode-metrics summary or detailed (per_step_*):
//
//   {"model":"m","choices":[...],"metrics":{"speculative_decoding":{"mean_acceptance_length":2.25,
//    "draft_acceptance_rate":0.4166666666666667,"acceptance_histogram":[5,2,2,3],
//    "acceptance_histogram_by_draft_length":{"3":[5,2,2,3]},"num_spec_steps":12,"num_accepted_draft_tokens":15,
//    "num_draft_tokens":36,"num_spec_tokens":3,"per_step_accepted":[0,1],"per_step_drafted":[3,3]}}}
//
// and before that in choices[].speculative_decoding_stats, with {"0":5,"1":2,"2":2,"3":3} for a histogram. Either form
// of histogram is read in either place. The mean length includes the bonus token, the rate is a fraction; the
// histograms count rounds by their accepted drafts.
//
// TensorRT-LLM:
//
//   {"choices":[{"index":0,"speculative_decoding":{"acceptance_rate":0.4166666666666667,"total_accepted_draft_tokens":15,
//    "total_draft_tokens":36,"num_spec_steps":12,"acceptance_histogram":[5,2,2,3],"num_spec_tokens":3}}]}
//
// where num_spec_tokens is null under a schedule. More drafts than num_spec_tokens a round are a tree's.
//
// SGLang, by generation (choices[].meta_info and a list of them too, or the bare objects):
//
//   {"text":"..","meta_info":{"completion_tokens":28,"spec_verify_ct":12,"spec_accept_token_num":15,
//    "spec_draft_token_num":36,"spec_accept_histogram":[5,2,2,3]}}
//   {"text":"..","meta_info":{"completion_tokens":28,"spec_verify_ct":12,"spec_accepted_drafts":15,
//    "spec_proposed_drafts":36,"spec_accept_histogram":[5,2,2,3]}}
//   {"text":"..","meta_info":{"completion_tokens":28,"spec_verify_ct":12,"spec_num_correct_drafts":15,
//    "spec_num_proposed_drafts":36,"spec_correct_drafts_histogram":[5,2,2,3]}}
//
// The histogram may end before the longest draft. The first of completion_tokens comes from the prompt, so its rounds
// put out one less; without a count of accepted drafts these are what was put out beyond one token a round, too few by
// what the end of the text cut off the last round. spec_accept_rate and spec_accept_length are not read: what they
// divide by differs between releases.
//
// llama.cpp's server:
//
//   {"content":"..","timings":{"predicted_n":28,"predicted_ms":250.0,"draft_n":36,"draft_n_accepted":15}}
//
// Rounds are predicted_n - 1 - draft_n_accepted: the first token comes from the prompt's pass, and each later pass puts
// out its accepted drafts and one token more. Passes that drafted nothing are among them. Releases that count the
// tokens of predicted_n as they are put out count too few in a last pass that a stop ends; where that leaves no round
// at all the response is left out with the warning "stopped_in_a_draft". Rule: greedy drafting, since the draft
// proposes its most probable token, which is accepted where the target's sampled token is the same. Where times are
// wanted (CountsSink::plain_windows) every answer is a BenchRun of one request, also one without drafts, which has no
// rounds, and the label "slot" says which of the server's slots decoded it (`id_slot`).
//
// mlx-vlm's server (0.7) has the same timings and says the rounds and the kind of drafts:
//
//   {"timings":{"predicted_n":111,"predicted_ms":900.0,"draft_kind":"mtp","draft_rounds":30,"draft_n":90,
//    "draft_n_accepted":81}}
//
// They are those of all requests that it decoded together; it says nothing of the rule.
//
// AIPerf (https://github.com/ai-dynamo/aiperf, 0.13), profile_export.jsonl of --export-level records: JSON lines, one a
// request, of which these keys are read:
//
//   {"metadata": {"benchmark_phase": "profiling", "was_cancelled": false},
//    "metrics": {"output_sequence_length": {"value": 41, "unit": "tokens"}},
//    "spec_decode_acceptance": {"engine": "vllm", "mean_acceptance_length": 2.25,
//     "draft_acceptance_rate": 0.4166666666666667, "acceptance_histogram": {"0": 5, "1": 2, "2": 2, "3": 3},
//     "num_accepted_draft_tokens": 15, "num_draft_tokens": 36, "num_spec_steps": 12, "num_spec_tokens": 3,
//     "per_step_accepted": null, "per_step_drafted": null},
//    "error": null}
//
// CountUnit::request. The length includes the bonus token, the rate is a fraction, the histogram leaves out numbers of
// accepted drafts that no round had. Requests of another phase than "profiling" are left out with the warning
// "warmup_left_out", those without spec_decode_acceptance with "requests_without_speculation"; a file of nothing else
// is refused. Drafts of vLLM are chains; of others the shape is unknown.

namespace {

namespace dom = simdjson::dom;

/// Objects within objects in which responses are looked for.
constexpr int deepest_response = 6;
/// Labels of a request beside its model.
constexpr std::array<std::string_view, 4> request_labels = {"category", "language", "temperature", "prompt_tokens"};

/// Units of one file after the other; what all engines' readers share.
class ResponseUnits {
 public:
  ResponseUnits(std::string_view engine, std::string_view format, const CountsSink& sink)
      : sink_(sink), counts_(no_counts(engine, format, CountUnit::request)) {}

  /// A cleared unit of the document that is being read.
  ServingCounts& begin(const JsonLines& file) {
    clear_counts(counts_);
    counts_.line = file.line();
    return counts_;
  }

  /// The times of answers are wanted, and so are those without speculation.
  bool times_wanted() const { return sink_.plain_windows; }

  /// Hands the unit over, unless nothing was drafted and no times are wanted.
  void take() {
    if (!times_wanted() && (!counts_.rounds || *counts_.rounds == 0)) return;
    ++taken_;
    found_ = true;
    sink_.take(counts_);
  }

  /// Leaves out one that put out fewer tokens than its rounds yielded.
  void leave_out_stopped() {
    ++stopped_;
    found_ = true;
  }
  /// Leaves out one that was sent before the measurement began.
  void leave_out_warmup() {
    ++of_warmup_;
    found_ = true;
  }

  /// True for a request that was read before: its id and its whole text are there again.
  bool is_repeated(dom::object request, const std::string& id) {
    const std::size_t text = std::hash<std::string>()(simdjson::minify(request));
    const auto [known, is_new] = by_id_.emplace(id, Known{text, counts_.file});
    if (is_new) return false;
    if (known->second.text == text) {
      ++repeated_;
      found_ = true;
      return true;
    }
    // Runs of one set of prompts may count through their requests alike.
    if (known->second.file == counts_.file) ++of_one_id_;
    return false;
  }

  void begin_file(const std::filesystem::path& path) {
    counts_.file = path;
    documents_ = without_ = stopped_ = of_warmup_ = taken_ = repeated_ = of_one_id_ = 0;
  }
  void begin_document() {
    found_ = false;
    ++documents_;
    counts_.id.clear();
    set_label(counts_, "model_name", std::nullopt);
    for (const std::string_view name : request_labels) set_label(counts_, name, std::nullopt);
    if (times_wanted()) set_label(counts_, "slot", std::nullopt);
  }
  void end_document() { without_ += found_ ? 0 : 1; }
  void end_file(std::string_view wanted) {
    const std::filesystem::path& path = counts_.file;
    if (documents_ == 0) {
      throw FileError(path, "file", "empty", fmt::format("responses with {}", wanted));
    }
    const auto warn = [&](std::int64_t count, const char* code, const std::string& what) {
      if (count > 0) sink_.warn({code, fmt::format("{}: {} {}", path.string(), count, what)});
    };
    warn(repeated_, "request_given_twice",
         "requests were read before, with the same id and equal in all: each counts once");
    warn(of_one_id_, "request_ids_repeat",
         "requests have the id of one before them and say something else: all count, and intervals are too narrow "
         "where they are one request");
    if (taken_ + repeated_ == 0) {
      throw FileError(path, std::string(wanted),
                      fmt::format("missing or without rounds in all of {} documents", documents_),
                      "given where a request speculated");
    }
    warn(
        stopped_, "stopped_in_a_draft",
        fmt::format("of {} responses ended within accepted drafts, so that their tokens do not tell their rounds; they "
                    "are left out",
                    documents_));
    warn(of_warmup_, "warmup_left_out",
         fmt::format("of {} requests are not of the phase that was measured and are left out", documents_));
    warn(without_, "requests_without_speculation",
         fmt::format("of {} documents have no counts of speculation ({}) and are left out", documents_, wanted));
  }

  ServingCounts& counts() { return counts_; }

 private:
  const CountsSink& sink_;
  ServingCounts counts_;
  std::int64_t documents_ = 0, without_ = 0, stopped_ = 0, of_warmup_ = 0;
  std::int64_t taken_ = 0, repeated_ = 0, of_one_id_ = 0;
  bool found_ = false;
  struct Known {
    std::size_t text;  ///< a hash
    std::filesystem::path file;
  };
  std::unordered_map<std::string, Known> by_id_;
};

// Readers of one engine each: where its counts stand in its responses, and how they are read. `wanted` are the keys
// that must be there, for messages; `read` takes the units that stand in an object itself, not in those inside, and
// returns true if the others need no look.

class VllmRequests {
 public:
  static constexpr std::string_view engine = "vllm";
  static constexpr std::string_view format = "vllm requests";
  static constexpr std::string_view wanted = "metrics.speculative_decoding";

  bool read(const CountedFields& response, ResponseUnits& units) {
    const auto metrics = response.part_if_any("metrics");
    auto counted = metrics ? metrics->part("speculative_decoding") : std::nullopt;
    if (!counted) counted = response.part("speculative_decoding_stats");
    if (!counted) return false;
    const auto usage = response.part_if_any("usage");
    take(*counted, usage ? usage->count("completion_tokens") : std::nullopt, units);
    return true;
  }

 private:
  /// @param tokens  put out, the first one included
  void take(const CountedFields& fields, const std::optional<double>& tokens, ResponseUnits& units) {
    ServingCounts& counts = units.begin(fields.file());
    counts.shape = DraftShape::chain;
    request_.read(fields, counts);
    // The end of an answer may cut off accepted drafts.
    if (tokens && counts.rounds && counts.accepted)
      counts.steps = std::max(*counts.rounds, *tokens - 1 - *counts.accepted);
    units.take();
  }

  RequestCounts request_ = RequestCounts(vllm_request_keys());
};

class AiperfRecords {
 public:
  static constexpr std::string_view engine = aiperf_engine;
  static constexpr std::string_view format = "aiperf records";
  static constexpr std::string_view wanted = "spec_decode_acceptance";

  bool read(const CountedFields& record, ResponseUnits& units) {
    const auto metadata = record.part("metadata");
    if (!metadata) return false;
    const auto phase = metadata->text("benchmark_phase");
    if (phase && *phase != "profiling") {
      units.leave_out_warmup();
    } else if (const auto fields = record.part(wanted)) {
      ServingCounts& counts = units.begin(record.file());
      const auto named = fields->text("engine");
      counts.engine = named && !named->empty() ? *named : engine;
      counts.shape = counts.engine == "vllm" ? DraftShape::chain : DraftShape::unknown;
      request_.read(*fields, counts);
      units.take();
    }
    return true;
  }

 private:
  RequestCounts request_ = RequestCounts(vllm_request_keys());
};

class TensorrtRequests {
 public:
  static constexpr std::string_view engine = "tensorrt-llm";
  static constexpr std::string_view format = "tensorrt-llm requests";
  static constexpr std::string_view wanted = "choices[].speculative_decoding";

  bool read(const CountedFields& response, ResponseUnits& units) {
    const auto counted = response.part("speculative_decoding");
    if (!counted) return false;
    ServingCounts& counts = units.begin(response.file());
    request_.read(*counted, counts);
    units.take();
    return true;
  }

 private:
  RequestCounts request_ = RequestCounts({.rounds = {"num_spec_steps"},
                                          .accepted = {"total_accepted_draft_tokens"},
                                          .drafted = {"total_draft_tokens"},
                                          .histograms = {"acceptance_histogram"},
                                          .gamma = "num_spec_tokens",
                                          .rate = "acceptance_rate",
                                          .tree_by_drafts = true});
};

class SglangResponses {
 public:
  static constexpr std::string_view engine = "sglang";
  static constexpr std::string_view format = "sglang meta_info";
  static constexpr std::string_view wanted = "meta_info.spec_verify_ct";

  bool read(const CountedFields& response, ResponseUnits& units) {
    if (const auto meta = response.value("meta_info")) {
      if (meta->is_array()) {
        response.each("meta_info", [&](const CountedFields& fields) { take(response, fields, units); });
      } else {
        take(response, *response.part("meta_info"), units);
      }
      return true;
    }
    if (!response.value("spec_verify_ct")) return false;
    take(response, response, units);
    return true;
  }

 private:
  /// `response` holds `fields`, and the server's arguments where somebody kept them.
  void take(const CountedFields& response, const CountedFields& fields, ResponseUnits& units) {
    if (!fields.value("spec_verify_ct")) return;
    ServingCounts& counts = units.begin(fields.file());
    request_.read(fields, counts);
    read_sglang_arguments(response, counts);
    if (const auto tokens = fields.count("completion_tokens")) {
      counts.emitted = std::max(0.0, *tokens - 1);
      if (!counts.accepted) counts.accepted = std::max(0.0, *counts.emitted - *counts.rounds);
    }
    units.take();
  }

  RequestCounts request_ =
      RequestCounts({.rounds = {"spec_verify_ct"},
                     .accepted = {"spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num"},
                     .drafted = {"spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num"},
                     .histograms = {"spec_correct_drafts_histogram", "spec_accept_histogram"}});
};

class LlamaTimings {
  static constexpr double most_milliseconds = 1e12;
  static constexpr std::string_view mlx_engine = "mlx-vlm";

 public:
  static constexpr std::string_view engine = "llama.cpp";
  static constexpr std::string_view format = "llama.cpp timings";
  static constexpr std::string_view wanted = "timings.draft_n";

  bool read(const CountedFields& answer, ResponseUnits& units) {
    const auto timings = answer.part("timings");
    if (!timings && (!answer.value("draft_n") || !answer.value("predicted_n"))) return false;
    take(answer, timings ? *timings : answer, units);
    return true;
  }

 private:
  static void take(const CountedFields& answer, const CountedFields& timings, ResponseUnits& units) {
    const auto drafted = timings.count("draft_n");
    const bool drafts = drafted.value_or(0) > 0;
    if (!drafts && !units.times_wanted()) return;
    const auto accepted = drafts ? timings.count("draft_n_accepted") : 0.0;
    const auto predicted = timings.count("predicted_n");
    if (!accepted) timings.refuse("draft_n_accepted", "missing", "given beside draft_n");
    if (!predicted) timings.refuse("predicted_n", "missing", drafts ? "given beside draft_n" : "given");
    const auto rounds = drafts ? timings.count("draft_rounds") : std::nullopt;
    // The prompt's token, and for every pass its accepted drafts and one token more, unless a stop cut them off.
    if (!rounds && *predicted < *accepted + 2) return units.leave_out_stopped();
    ServingCounts& counts = units.begin(timings.file());
    counts.engine = rounds ? mlx_engine : engine;
    counts.emitted = std::max(*predicted - 1, 0.0);
    if (drafts) {
      counts.shape = DraftShape::chain;
      counts.drafted = drafted;
      counts.accepted = accepted;
      counts.rounds = counts.steps = rounds ? *rounds : *counts.emitted - *accepted;
      counts.draft_method = rounds ? timings.text("draft_kind").value_or("") : "";
      if (!rounds) counts.rule = AcceptanceRule::greedy_draft;
    }
    const auto milliseconds = timings.measure_or_nan("predicted_ms");
    if (milliseconds && !(*milliseconds <= most_milliseconds)) {
      timings.refuse("predicted_ms", fmt::format("{}", *milliseconds),
                     "the time of generation, above 0 and at most 1e12");
    }
    if (units.times_wanted()) {
      take_times(answer, timings, milliseconds, counts);
    } else if (milliseconds && *milliseconds > 0) {
      counts.window.emplace().generation_tokens_per_second = 1000 * *counts.emitted / *milliseconds;
    }
    units.take();
  }

  /// The answer as a run of one request.
  static void take_times(const CountedFields& answer, const CountedFields& timings,
                         const std::optional<double>& milliseconds, ServingCounts& counts) {
    if (!milliseconds) timings.refuse("predicted_ms", "missing", "the time of generation, above 0");
    if (*milliseconds == 0) timings.refuse("predicted_ms", "0", "the time of generation, above 0");
    BenchRun& run = counts.bench.emplace();
    run.completed = 1;
    run.duration_s = *milliseconds / 1000;
    run.total_output_tokens = *counts.emitted + 1;
    run.total_input_tokens = answer.count("tokens_evaluated");
    if (const auto read = timings.count("prompt_n"); read && !run.total_input_tokens) {
      run.total_input_tokens = *read + timings.count("cache_n").value_or(0);
    }
    if (const auto slot = answer.count("id_slot")) set_label(counts, "slot", shown(*slot));
  }
};

/// Whether a list under this key may hold responses.
bool holds_responses(std::string_view key) {
  constexpr std::array<std::string_view, 7> keys = {"choices", "responses", "results", "outputs",
                                                    "data",    "requests",  "records"};
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

template <class Reader>
class ResponseWalk {
 public:
  ResponseWalk(const JsonLines& file, Reader& reader, ResponseUnits& units)
      : file_(file), reader_(reader), units_(units) {}

  /// @param has_id  true if an object around it has one
  void visit(dom::element value, int depth, bool has_id = false) {
    if (depth > deepest_response) return;
    if (value.is_array()) {
      const dom::array list = value;
      for (const dom::element entry : list) {
        if (!entry.is_object() && !entry.is_array()) return;
        // The labels and the id of one entry are not those of the next.
        const std::vector<CountLabel> labels = units_.counts().labels;
        const std::string id = units_.counts().id;
        visit(entry, depth + 1, has_id);
        units_.counts().labels = labels;
        units_.counts().id = id;
      }
    } else if (value.is_object()) {
      const dom::object object = value;
      visit_object(object, depth, has_id);
    }
  }

 private:
  void visit_object(dom::object object, int depth, bool has_id) {
    if (!has_id) {
      const std::optional<std::string> id = id_of(object);
      if (id && units_.is_repeated(object, *id)) return;
      has_id = id.has_value();
      if (id) units_.counts().id = *id;
    }
    label(object, "model", "model_name");
    label(object, "category", "category");
    label(object, "task", "category");
    label(object, "language", "language");
    label(object, "temperature", "temperature");
    if (const auto usage = find_member(object, "usage"); usage && usage->is_object()) {
      label(dom::object(*usage), "prompt_tokens", "prompt_tokens");
    }
    label(object, "prompt_tokens", "prompt_tokens");
    if (reader_.read(CountedFields(file_, object), units_)) return;
    for (const auto [key, value] : object) {
      if (value.is_object() ? key != "logprobs" : value.is_array() && holds_responses(key)) {
        visit(value, depth + 1, has_id);
      }
    }
  }

  /// The id of a request, where its engine or whoever kept the answer wrote one.
  static std::optional<std::string> id_of(dom::object object) {
    for (const std::string_view key : {"id", "request_id"}) {
      const auto found = find_member(object, key);
      if (found && (found->is_string() || found->is_int64())) return simdjson::minify(*found);
    }
    const auto meta = find_member(object, "meta_info");
    return meta && meta->is_object() ? id_of(dom::object(*meta)) : std::nullopt;
  }

  void label(dom::object object, std::string_view key, std::string_view name) {
    std::string_view text;
    const auto found = find_member(object, key);
    if (!found) return;
    if (found->get(text) == simdjson::SUCCESS) return set_label(units_.counts(), name, text);
    if (found->is_number()) set_label(units_.counts(), name, simdjson::minify(*found));
  }

  const JsonLines& file_;
  Reader& reader_;
  ResponseUnits& units_;
};

template <class Reader>
void read_responses(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  Reader reader;
  ResponseUnits units(Reader::engine, Reader::format, sink);
  for (const std::filesystem::path& path : files) {
    JsonLines file(path);
    units.begin_file(path);
    ResponseWalk<Reader> walk(file, reader, units);
    while (file.next()) {
      if (!file.document().is_object() && !file.document().is_array()) {
        file.refuse("document", file.document(), "an object");
      }
      units.begin_document();
      walk.visit(file.document(), 0);
      units.end_document();
    }
    units.end_file(Reader::wanted);
  }
}

template <class Reader, bool (*is_its)(std::string_view text)>
CountsFormat format_read_by() {
  return {Reader::format, [](const FileHead& head) { return first_document_passes(head, is_its); },
          read_responses<Reader>};
}

bool is_vllm(std::string_view text) {
  if (mentions_key(text, "speculative_decoding_stats")) return true;
  return mentions_key(text, "speculative_decoding") &&
         (mentions_key(text, "num_accepted_draft_tokens") || mentions_key(text, "num_draft_tokens") ||
          mentions_key(text, "draft_acceptance_rate"));
}
bool is_aiperf(std::string_view text) {
  return mentions_key(text, "benchmark_phase") && mentions_key(text, "metadata") && mentions_key(text, "metrics");
}

bool is_tensorrt(std::string_view text) {
  return mentions_key(text, "speculative_decoding") &&
         (mentions_key(text, "total_accepted_draft_tokens") || mentions_key(text, "total_draft_tokens"));
}
bool is_sglang(std::string_view text) { return mentions_key(text, "spec_verify_ct"); }
bool is_llama(std::string_view text) {
  const bool answer = mentions_key(text, "timings");
  if (mentions_key(text, "draft_n")) return answer || mentions_key(text, "predicted_n");
  return answer && mentions_key(text, "predicted_ms");
}

}  // namespace

CountsFormat vllm_requests_format() { return format_read_by<VllmRequests, is_vllm>(); }
CountsFormat aiperf_records_format() { return format_read_by<AiperfRecords, is_aiperf>(); }
CountsFormat tensorrt_llm_requests_format() { return format_read_by<TensorrtRequests, is_tensorrt>(); }
CountsFormat sglang_responses_format() { return format_read_by<SglangResponses, is_sglang>(); }
CountsFormat llama_server_timings_format() { return format_read_by<LlamaTimings, is_llama>(); }

}  // namespace specdec::traces
