#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counted_fields.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/llamacpp_log.hpp"
#include "traces/serving/sglang_log.hpp"
#include "traces/serving/vllm_log.hpp"

namespace specdec::traces {

// Lines that engines log, among any others and behind any prefix (times, process names, containers, colours):
//
//   vLLM, an interval each; the line of the engine in front of it gives the window's load:
//     Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 238.7 tokens/s, Running: 10 reqs, ...
//     SpecDecoding metrics: Mean acceptance length: 3.07, ..., Accepted: 141 tokens, Drafted: 204 tokens,
//       Per-position acceptance rate: 0.897, 0.676, 0.500, Avg Draft acceptance rate: 69.1%
//     ... speculative_config=SpeculativeConfig(method='eagle3', ...       how all that follows drafts
//   SGLang, an interval each, as a mean without counts; the arguments of its start say how it drafts:
//     server_args=ServerArgs(..., speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4)
//     Decode batch, #running-req: 1, ..., accept len: 2.85, ..., gen throughput (token/s): 0.73, #queue-req: 0
//     Prefill batch, #new-seq: 1, ...        between two of them: the second window has read prompts
//   llama.cpp's server, a request each, in three generations:
//     eval time =     783.55 ms /    64 tokens (   12.44 ms per token,    80.40 tokens per second)
//     draft acceptance = 0.10563 (   15 accepted /   142 generated), mean len =  1.31
//          acc per pos = (0.250, 0.063)                            where its trace level is on
//     draft acceptance = 0.64479 (  167 accepted /   259 generated), mean acceptance length =  2.92, acceptance rate
//       per position = (0.805, 0.632, 0.483)
//     draft acceptance rate = 0.57576 (  171 accepted /   297 generated)
//   llama-speculative and llama-speculative-simple, a program run each, on lines of their own:
//     n_draft = 4, n_predict = 121, n_drafted = 378, n_accept = 25, accept = 6.614%
//
// vLLM's and llama.cpp's mean lengths and rates by position are counted back to the numbers of rounds that they are
// roundings of (from_rates, rounds_between); of llama.cpp at most the passes that its answer's tokens took. The last
// line of a file that is still written to may be cut off.

namespace {

namespace fs = std::filesystem;

enum class Mark {
  vllm_configuration,
  vllm_counts,
  vllm_engine,
  sglang_arguments,
  sglang,
  sglang_prompts,
  llamacpp_request,
  llamacpp_time,
  llamacpp_answer,
  llamacpp_print,
  llamacpp_library
};

constexpr std::array<std::pair<std::string_view, Mark>, 12> marks = {{
    {"speculative_config", Mark::vllm_configuration},
    {"server_args=", Mark::sglang_arguments},
    {"SpecDecoding metrics:", Mark::vllm_counts},
    {"Avg generation throughput:", Mark::vllm_engine},
    {"Decode batch", Mark::sglang},
    {"Prefill batch", Mark::sglang_prompts},
    {"draft acceptance =", Mark::llamacpp_request},
    {"draft acceptance rate =", Mark::llamacpp_request},
    {"eval time =", Mark::llamacpp_time},
    {" acc=", Mark::llamacpp_answer},
    {"n_draft ", Mark::llamacpp_print},
    {"common_speculative", Mark::llamacpp_library},
}};

/// Reads one file.
class LogReader {
 public:
  LogReader(const fs::path& path, const CountsSink& sink)
      : file_(path),
        text_(text_of(file_.bytes())),
        found_(path, sink),
        vllm_(found_),
        sglang_(found_),
        llamacpp_(found_) {
    file_.advise_sequential();
  }

  void read() {
    const std::string_view text = text_.text();
    std::array<std::size_t, marks.size()> next = {};
    for (std::size_t i = 0; i < marks.size(); ++i) next[i] = find_text(text, marks[i].first, 0);
    while (true) {
      const auto first = static_cast<std::size_t>(std::min_element(next.begin(), next.end()) - next.begin());
      if (next[first] == std::string_view::npos) break;
      text_.go_to(next[first]);
      read_line(marks[first].second);
      for (std::size_t i = 0; i < marks.size(); ++i) {
        if (next[i] < text_.end()) next[i] = find_text(text, marks[i].first, text_.end());
      }
    }
    vllm_.finish();
    llamacpp_.finish();
    if (found_.taken() || found_.any_window()) return;
    throw FileError(found_.path(), FileError::whole_file(), "content",
                    found_.speculates() ? "an engine's log in which nothing was drafted"
                                        : "an engine's log without speculative decoding",
                    "a log with lines of vLLM's SpecDecoding metrics, SGLang's accept len, or llama.cpp's draft "
                    "acceptance or n_drafted");
  }

 private:
  void read_line(Mark mark) {
    if (mark == Mark::llamacpp_library) return llamacpp_.see_library();
    const LogLine line(found_.path(), text_.line_number(), text_.line());
    try {
      switch (mark) {
        case Mark::vllm_configuration:
          return vllm_.read_configuration(line);
        case Mark::sglang_arguments:
          return sglang_.read_arguments(line);
        case Mark::vllm_counts:
          return vllm_.read_counts(line);
        case Mark::vllm_engine:
          return vllm_.read_engine(line);
        case Mark::sglang:
          return sglang_.read_decoding(line);
        case Mark::sglang_prompts:
          return sglang_.read_prompts(line);
        case Mark::llamacpp_request:
          return llamacpp_.read_request(line, text_);
        case Mark::llamacpp_time:
          return llamacpp_.read_time(line, text_);
        case Mark::llamacpp_answer:
          return llamacpp_.read_answer(line);
        case Mark::llamacpp_print:
          return llamacpp_.read_print(line, text_);
        case Mark::llamacpp_library:
          return;
      }
    } catch (const FileError& error) {
      if (!text_.is_last_line() || mark == Mark::llamacpp_print) throw;
      found_.warn({"truncated_line", fmt::format("{}; the last line of the file is left out", error.what())});
    }
  }

  MappedFile file_;
  LogText text_;
  LogCounts found_;
  VllmLog vllm_;
  SglangLog sglang_;
  LlamaCppLog llamacpp_;
};

/// Whether a file holds one of these marks.
bool holds_any(const FileHead& head, std::initializer_list<Mark> wanted) {
  if (head.folder || head.size == 0) return false;
  const MappedFile file(head.path);
  file.advise_sequential();
  const std::string_view text = text_of(file.bytes());
  return std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    return std::find(wanted.begin(), wanted.end(), mark.second) != wanted.end() &&
           find_text(text, mark.first, 0) != std::string_view::npos;
  });
}

bool is_engine_log(const FileHead& head) {
  return head.bytes.find('\0') == std::string::npos &&
         holds_any(head, {Mark::vllm_counts, Mark::vllm_engine, Mark::sglang, Mark::llamacpp_request,
                          Mark::llamacpp_time, Mark::llamacpp_answer, Mark::llamacpp_print});
}

}  // namespace

bool has_engine_windows(const FileHead& head) { return holds_any(head, {Mark::vllm_engine, Mark::sglang}); }

bool times_answers(const FileHead& head) {
  return holds_any(head, {Mark::llamacpp_request, Mark::llamacpp_time, Mark::llamacpp_print});
}

CountsFormat engine_log_format() { return {"engine log", is_engine_log, read_each<LogReader>}; }

}  // namespace specdec::traces
