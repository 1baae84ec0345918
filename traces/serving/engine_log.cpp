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
#include "traces/serving/omlx_log.hpp"
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
//   oMLX, a finished request each, of heads (older releases without depth[...] and d0) or of a draft model:
//     MTP[102] finish=stop tokens=561 cycles=207 tok/cycle=2.71 accept=352/454 (77.5%)
//       depth[d1=155/200,d2=115/150,d3=82/104] d0=7 emits[...] timing[...]
//     vlm_mtp stats: request=e2af finish=stop rounds=1079 accepted=1414/2158 (65.5%) tokens_per_round=2.31 emitted=2493
//       block_size=3
//
// vLLM's and llama.cpp's mean lengths and rates by position are counted back to the numbers of rounds that they are
// roundings of (from_rates, rounds_between); of llama.cpp at most the passes that its answer's tokens took. The last
// line of a file that is still written to may be cut off.

namespace {

namespace fs = std::filesystem;

/// The readers of one file.
struct LogReaders {
  LogReaders(const fs::path& path, const CountsSink& sink, std::string_view log)
      : text(log), found(path, sink), vllm(found), sglang(found), llamacpp(found), omlx(found) {}
  LogText text;
  LogCounts found;
  VllmLog vllm;
  SglangLog sglang;
  LlamaCppLog llamacpp;
  OmlxLog omlx;
};

/// What lines with a mark tell of.
enum class Tells { settings, rounds, windows, answers };

struct Mark {
  std::string_view text;
  Tells tells;
  void (*read)(LogReaders& of, const LogLine& line);
};

constexpr std::array<Mark, 14> marks = {{
    {"speculative_config", Tells::settings, [](auto& of, const auto& line) { of.vllm.read_configuration(line); }},
    {"server_args=", Tells::settings, [](auto& of, const auto& line) { of.sglang.read_arguments(line); }},
    {"SpecDecoding metrics:", Tells::rounds, [](auto& of, const auto& line) { of.vllm.read_counts(line); }},
    {"Avg generation throughput:", Tells::windows, [](auto& of, const auto& line) { of.vllm.read_engine(line); }},
    {"Decode batch", Tells::windows, [](auto& of, const auto& line) { of.sglang.read_decoding(line); }},
    {"Prefill batch", Tells::settings, [](auto& of, const auto& line) { of.sglang.read_prompts(line); }},
    {"draft acceptance =", Tells::answers, [](auto& of, const auto& line) { of.llamacpp.read_request(line, of.text); }},
    {"draft acceptance rate =", Tells::answers,
     [](auto& of, const auto& line) { of.llamacpp.read_request(line, of.text); }},
    {"eval time =", Tells::answers, [](auto& of, const auto& line) { of.llamacpp.read_time(line, of.text); }},
    {" acc=", Tells::rounds, [](auto& of, const auto& line) { of.llamacpp.read_answer(line); }},
    {"MTP[", Tells::rounds, [](auto& of, const auto& line) { of.omlx.read_heads(line); }},
    {"vlm_mtp stats:", Tells::rounds, [](auto& of, const auto& line) { of.omlx.read_draft_model(line); }},
    {"n_draft ", Tells::answers, [](auto& of, const auto& line) { of.llamacpp.read_print(line, of.text); }},
    {"common_speculative", Tells::settings, [](auto& of, const auto& /*line*/) { of.llamacpp.see_library(); }},
}};

/// Reads one file.
class LogReader {
 public:
  LogReader(const fs::path& path, const CountsSink& sink) : file_(path), of_(path, sink, text_of(file_.bytes())) {
    file_.advise_sequential();
  }

  void read() {
    const std::string_view text = of_.text.text();
    std::array<std::size_t, marks.size()> next = {};
    for (std::size_t i = 0; i < marks.size(); ++i) next[i] = find_text(text, marks[i].text, 0);
    while (true) {
      const auto first = static_cast<std::size_t>(std::min_element(next.begin(), next.end()) - next.begin());
      if (next[first] == std::string_view::npos) break;
      of_.text.go_to(next[first]);
      read_line(marks[first]);
      for (std::size_t i = 0; i < marks.size(); ++i) {
        if (next[i] < of_.text.end()) next[i] = find_text(text, marks[i].text, of_.text.end());
      }
    }
    of_.vllm.finish();
    of_.llamacpp.finish();
    if (of_.found.taken() || of_.found.any_window()) return;
    throw FileError(
        of_.found.path(), "content",
        of_.found.speculates() ? "an engine's log in which nothing was drafted"
                               : "an engine's log without speculative decoding",
        "a log with lines of vLLM's SpecDecoding metrics, SGLang's accept len, llama.cpp's draft acceptance or "
        "n_drafted, or oMLX's MTP");
  }

 private:
  void read_line(const Mark& mark) {
    const LogLine line(of_.found.path(), of_.text.line_number(), of_.text.line());
    const bool is_last = of_.text.is_last_line();
    try {
      mark.read(of_, line);
    } catch (const FileError& error) {
      if (!is_last) throw;
      of_.found.warn({"truncated_line", fmt::format("{}; the last line of the file is left out", error.what())});
    }
  }

  MappedFile file_;
  LogReaders of_;
};

bool holds_any(const FileHead& head, std::initializer_list<Tells> wanted) {
  if (head.folder || head.size == 0) return false;
  const MappedFile file(head.path);
  file.advise_sequential();
  const std::string_view text = text_of(file.bytes());
  return std::any_of(marks.begin(), marks.end(), [&](const Mark& mark) {
    return std::find(wanted.begin(), wanted.end(), mark.tells) != wanted.end() &&
           find_text(text, mark.text, 0) != std::string_view::npos;
  });
}

bool is_engine_log(const FileHead& head) {
  return head.bytes.find('\0') == std::string::npos && holds_any(head, {Tells::rounds, Tells::windows, Tells::answers});
}

/// When a log begins, as its first lines say: "07-02 10:05:00", behind its year where that is there; empty where none
/// does.
std::string begin_of(const fs::path& path) {
  constexpr std::string_view date = "dd-dd dd:dd:dd", year = "dddd-";
  const FileHead head = FileHead::of(path);
  const std::string_view text = head.bytes;
  const auto is_at = [&](std::size_t place, std::string_view form) {
    return text.size() >= place + form.size() &&
           std::equal(form.begin(), form.end(), text.begin() + static_cast<std::ptrdiff_t>(place),
                      [](char wanted, char c) {
                        return wanted == 'd' ? '0' <= c && c <= '9' : c == wanted || (wanted == ' ' && c == 'T');
                      });
  };
  for (std::size_t place = 0; place + date.size() <= text.size(); ++place) {
    if (!is_at(place, date)) continue;
    const bool dated = place >= year.size() && is_at(place - year.size(), year);
    const std::size_t begin = dated ? place - year.size() : place;
    std::string time(text.substr(begin, place + date.size() - begin));
    std::replace(time.begin(), time.end(), 'T', ' ');
    return time;
  }
  return "";
}

/// Reads logs in the order of their times, since the names of rotated ones go the other way; as given unless all say
/// the year, or none does and they do not go over New Year.
void read_logs(std::span<const fs::path> files, const CountsSink& sink) {
  std::vector<std::pair<std::string, fs::path>> in_order;
  for (const fs::path& file : files) in_order.emplace_back(begin_of(file), file);
  const auto any_begins = [&](std::string_view month) {
    return std::any_of(in_order.begin(), in_order.end(), [&](const auto& log) { return log.first.starts_with(month); });
  };
  const auto is_alike = [&](const auto& log) { return log.first.size() == in_order.front().first.size(); };
  const bool over_new_year = any_begins("12-") && any_begins("01-");
  if (std::all_of(in_order.begin(), in_order.end(), is_alike) && !over_new_year)
    std::stable_sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<fs::path> sorted;
  for (auto& [time, file] : in_order) sorted.push_back(std::move(file));
  read_each<LogReader>(sorted, sink);
}

}  // namespace

bool has_engine_windows(const FileHead& head) { return holds_any(head, {Tells::windows}); }

bool times_answers(const FileHead& head) { return holds_any(head, {Tells::answers}); }

CountsFormat engine_log_format() { return {"engine log", is_engine_log, read_logs}; }

}  // namespace specdec::traces
