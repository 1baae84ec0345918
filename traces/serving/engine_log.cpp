#include "traces/serving/engine_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counts_from_rates.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_positions = 1024;
/// Between the first and the last line of a print, other programs' lines included.
constexpr int longest_print = 200;

enum class Mark {
  vllm_counts,
  vllm_engine,
  sglang,
  sglang_prompts,
  llamacpp_request,
  llamacpp_time,
  llamacpp_print,
  llamacpp_library
};

constexpr std::array<std::pair<std::string_view, Mark>, 8> marks = {{
    {"SpecDecoding metrics:", Mark::vllm_counts},
    {"Avg generation throughput:", Mark::vllm_engine},
    {"Decode batch", Mark::sglang},
    {"Prefill batch", Mark::sglang_prompts},
    {"draft acceptance", Mark::llamacpp_request},
    {"eval time =", Mark::llamacpp_time},
    {"n_draft ", Mark::llamacpp_print},
    {"common_speculative", Mark::llamacpp_library},
}};

std::size_t find_text(std::string_view text, std::string_view what, std::size_t from) {
  if (from >= text.size()) return std::string_view::npos;
  const void* found = ::memmem(text.data() + from, text.size() - from, what.data(), what.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::string_view without_blanks_before(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

/// Without the escape sequences ESC [ ... LETTER that colour a line.
std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !('@' <= line[i] && line[i] <= '~')) ++i;
    } else {
      text += line[i];
    }
  }
  return text;
}

/// A number at the beginning of a text, and what follows it.
struct LeadingNumber {
  double value = 0;
  std::string_view rest;
};

std::optional<LeadingNumber> leading_number(std::string_view text) {
  text = without_blanks_before(text);
  LeadingNumber result;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) result.value = HUGE_VAL;
  result.rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return result;
}

/// One line and the values on it.
class LogLine {
 public:
  LogLine(const fs::path& file, std::int64_t number, std::string_view text)
      : file_(file), number_(number), text_(text) {
    if (text_.find('\x1b') == std::string_view::npos) return;
    plain_ = without_colours(text_);
    text_ = plain_;
  }
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  std::string_view text() const { return text_; }
  std::int64_t number() const { return number_; }

  [[noreturn]] void refuse(std::string_view field, std::string found, std::string expected) const {
    throw FileError(file_, FileError::line(number_), std::string(field), std::move(found), std::move(expected));
  }

  /// What follows a key; nothing where the key is missing.
  std::optional<std::string_view> after(std::string_view key) const {
    const std::size_t at = text_.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    return text_.substr(at + key.size());
  }

  /// The number behind a key with `unit` behind it; nothing where the key is missing.
  std::optional<double> number(std::string_view key, std::string_view unit = {}) const {
    const auto rest = after(key);
    if (!rest) return std::nullopt;
    const auto found = leading_number(*rest);
    if (!found) refuse(name_of(key), printable_value(*rest), "a number");
    if (!found->rest.starts_with(unit)) {
      refuse(name_of(key), printable_value(*rest), fmt::format("a number followed by \"{}\"", unit));
    }
    return found->value;
  }

  double needed(std::string_view key, std::string_view unit = {}) const {
    const auto value = number(key, unit);
    if (!value) refuse(name_of(key), "missing", "given on the line");
    return *value;
  }

  double count(std::string_view key, std::string_view unit = {}) const {
    const double value = needed(key, unit);
    require_count(name_of(key), value);
    return value;
  }

  void require_count(std::string_view field, double value) const {
    if (0 <= value && value <= largest_count && std::floor(value) == value) return;
    refuse(field, fmt::format("{}", value), "a number of tokens, an integer in [0, 2^53]");
  }

  /// Fractions separated by commas, none above the one before it; empty where there are none.
  std::vector<double> rates(std::string_view field, std::string_view text) const {
    std::vector<double> result;
    while (const auto next = leading_number(text)) {
      if (!(0 <= next->value && next->value <= 1)) {
        refuse(field, fmt::format("{} at position {}", next->value, result.size()), "a fraction in [0, 1]");
      }
      if (!result.empty() && next->value > result.back()) {
        refuse(field, fmt::format("{} at position {}", next->value, result.size()),
               fmt::format("at most that at position {}, {}", result.size() - 1, result.back()));
      }
      if (result.size() == most_positions)
        refuse(field, "longer", fmt::format("of {} positions at most", most_positions));
      result.push_back(next->value);
      text = without_blanks_before(next->rest);
      if (!text.starts_with(',')) break;
      text.remove_prefix(1);
    }
    return result;
  }

 private:
  static std::string_view name_of(std::string_view key) { return key.substr(0, key.find_last_not_of(" :=(#,") + 1); }
  static std::string printable_value(std::string_view text) {
    const std::string_view word = without_blanks_before(text);
    return word.empty() ? "cut off" : quoted(word.substr(0, word.find_first_of(",\r")));
  }

  const fs::path& file_;
  std::int64_t number_;
  std::string_view text_;
  std::string plain_;
};

/// `KEY = NUMBER` with nothing else on the line but a prefix, as llama.cpp's programs print it. `percent` stands
/// behind.
std::optional<double> printed_value(std::string_view line, std::string_view key, bool percent = false) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos || (at > 0 && !is_blank(line[at - 1]))) return std::nullopt;
  std::string_view rest = without_blanks_before(line.substr(at + key.size()));
  if (!rest.starts_with('=')) return std::nullopt;
  const auto number = leading_number(rest.substr(1));
  if (!number) return std::nullopt;
  rest = number->rest;
  if (percent) {
    if (!rest.starts_with('%')) return std::nullopt;
    rest.remove_prefix(1);
  }
  rest = without_blanks_before(rest);
  if (!rest.empty() && rest.front() != '\r' && rest.front() != '\\') return std::nullopt;
  return number->value;
}

/// Reads one file.
class LogReader {
 public:
  LogReader(const fs::path& path, const CountsSink& sink) : path_(path), sink_(sink), file_(path) {
    file_.advise_sequential();
    text_ = text_of(file_.bytes());
  }

  void read() {
    std::array<std::size_t, marks.size()> next = {};
    for (std::size_t i = 0; i < marks.size(); ++i) next[i] = find_text(text_, marks[i].first, 0);
    while (true) {
      const auto first = static_cast<std::size_t>(std::min_element(next.begin(), next.end()) - next.begin());
      if (next[first] == std::string_view::npos) break;
      const std::size_t before = text_.rfind('\n', next[first]);
      begin_ = before == std::string_view::npos ? 0 : before + 1;
      end_ = end_of_line(begin_);
      read_line(marks[first].second);
      for (std::size_t i = 0; i < marks.size(); ++i) {
        if (next[i] < end_) next[i] = find_text(text_, marks[i].first, end_);
      }
    }
    take_pending_window();
    if (taken_ && idle_intervals_ > 0 && !sink_.plain_windows) {
      sink_.warn({"idle_intervals_left_out",
                  fmt::format("{}:{}: {} of vLLM's lines say that nothing was drafted and are left out", path_.string(),
                              first_idle_line_, idle_intervals_)});
    }
    if (taken_ || any_window_) return;
    throw FileError(
        path_, FileError::whole_file(), "content",
        idle_ ? "an engine's log in which nothing was drafted" : "an engine's log without speculative decoding",
        "a log with lines of vLLM's SpecDecoding metrics, SGLang's accept len, or llama.cpp's draft "
        "acceptance or n_drafted");
  }

 private:
  std::size_t end_of_line(std::size_t begin) const { return std::min(find_text(text_, "\n", begin), text_.size()); }

  std::int64_t line_number() {
    const auto* data = text_.data();
    lines_ += std::count(data + counted_, data + begin_, '\n');
    counted_ = begin_;
    return lines_ + 1;
  }

  void read_line(Mark mark) {
    if (mark == Mark::llamacpp_library) {
      chain_ = true;
      return;
    }
    const LogLine line(path_, line_number(), text_.substr(begin_, end_ - begin_));
    try {
      switch (mark) {
        case Mark::vllm_counts:
          return read_vllm_counts(line);
        case Mark::vllm_engine:
          return read_vllm_engine(line);
        case Mark::sglang:
          return read_sglang(line);
        case Mark::sglang_prompts:
          sglang_prompts_[sglang_rank(line)] = true;
          return;
        case Mark::llamacpp_request:
          return read_llamacpp_request(line);
        case Mark::llamacpp_time:
          return read_llamacpp_time(line);
        case Mark::llamacpp_print:
          return read_llamacpp_print(line);
        case Mark::llamacpp_library:
          return;
      }
    } catch (const FileError& error) {
      if (end_ < text_.size() || mark == Mark::llamacpp_print) throw;
      sink_.warn({"truncated_line", fmt::format("{}; the last line of the file is left out", error.what())});
    }
  }

  ServingCounts counts_of(std::int64_t line, const char* engine, std::string_view format, CountUnit unit) const {
    ServingCounts counts;
    counts.file = path_;
    counts.line = line;
    counts.engine = engine;
    counts.format = format;
    counts.unit = unit;
    return counts;
  }

  void take(const ServingCounts& counts) {
    taken_ = true;
    sink_.take(counts);
  }

  /// A window in which nothing was drafted, for whoever wants its times.
  void take_window(const ServingCounts& counts) {
    if (!sink_.plain_windows) return;
    any_window_ = true;
    sink_.take(counts);
  }

  /// That of the last line of vLLM's engine, if no counts followed it.
  void take_pending_window() {
    if (!window_) return;
    ServingCounts counts = counts_of(window_line_, "vllm", "vLLM log", CountUnit::window);
    attach_window(counts);
    take_window(counts);
  }

  void attach_window(ServingCounts& counts) {
    counts.window = std::exchange(window_, std::nullopt);
    if (!engine_.empty()) counts.labels.push_back({"engine", std::exchange(engine_, "")});
  }

  void require_at_most(const LogLine& line, std::string_view what, double accepted, double drafted) const {
    if (accepted <= drafted) return;
    line.refuse(what, fmt::format("{} accepted", accepted), fmt::format("at most the {} drafted", drafted));
  }

  /// A printed ratio must be that of the counts beside it. `unit` of its last digit.
  void require_ratio(const LogLine& line, std::string_view field, double printed, double exact, double unit) const {
    if (std::abs(printed - exact) <= 0.51 * unit) return;  // of a ratio in single precision
    line.refuse(field, fmt::format("{}", printed), fmt::format("{:.6g}, as the counts on the line say", exact));
  }

  void count_back(const LogLine& line, ServingCounts& counts, double length, const std::vector<double>& rates,
                  bool full_drafts, std::optional<double> passes = std::nullopt) {
    PrintedRates printed = {*counts.accepted, *counts.drafted, length, rates, full_drafts};
    if (passes) printed.passes = *passes;
    const auto back = counts_from_rates(printed);
    if (!back.consistent) {
      double sum = 0;
      for (const double rate : rates) sum += rate;
      line.refuse("mean acceptance length", fmt::format("{}", length),
                  rates.empty()
                      ? fmt::format("possible with {} accepted of {} drafted", *counts.accepted, *counts.drafted)
                      : fmt::format("1 + the rates by position, {:.3f}, with {} accepted of {} drafted", 1 + sum,
                                    *counts.accepted, *counts.drafted));
    }
    counts.rounds = back.rounds;
    counts.rounds_between = back.between;
    counts.accepted_at = back.accepted_at;
    counts.from_rates = true;
    counts.shape = DraftShape::chain;
    const auto positions = static_cast<double>(rates.size());
    if (positions > 0 && *counts.drafted <= back.rounds.value_or(*counts.drafted) * positions) {
      counts.gamma = static_cast<std::int64_t>(rates.size());
    }
  }

  void read_vllm_engine(const LogLine& line) {
    take_pending_window();
    EngineWindow window;
    window.prompt_tokens_per_second = line.number("Avg prompt throughput:", " tokens/s");
    window.generation_tokens_per_second = line.number("Avg generation throughput:", " tokens/s");
    // A sum over engines says of none how many requests it ran together.
    if (!line.after("Engines Aggregated:")) window.running = line.number("Running:", " req");
    window.waiting = line.number("Waiting:", " req");
    window_ = window;
    window_line_ = line.number();
    engine_.clear();
    if (const auto rest = line.after("Engine ")) {
      const std::string_view digits = rest->substr(0, rest->find_first_not_of("0123456789"));
      if (digits.empty() || digits.size() > 9 || !rest->substr(digits.size()).starts_with(':')) return;
      engine_ = fmt::format("{}", std::stol(std::string(digits)));
    }
  }

  void read_vllm_counts(const LogLine& line) {
    ServingCounts counts = counts_of(line.number(), "vllm", "vLLM log", CountUnit::window);
    attach_window(counts);
    counts.accepted = line.count("Accepted:", " tokens");
    counts.drafted = line.count("Drafted:", " tokens");
    const double length = line.needed("Mean acceptance length:");
    const double percent = line.needed("raft acceptance rate:", "%");
    require_at_most(line, "Accepted", *counts.accepted, *counts.drafted);
    idle_ = true;
    if (*counts.drafted == 0) {  // its ratios are 0/0
      if (idle_intervals_++ == 0) first_idle_line_ = line.number();
      counts.accepted.reset();
      counts.drafted.reset();
      if (counts.window) take_window(counts);
      return;
    }
    const auto by_position = line.after("Per-position acceptance rate:");
    const auto rates = line.rates("Per-position acceptance rate", by_position.value_or(""));
    require_ratio(line, "Draft acceptance rate in percent", percent, 100 * *counts.accepted / *counts.drafted, 0.1);
    count_back(line, counts, length, rates, true);
    take(counts);
  }

  /// The data-parallel rank in front of SGLang's lines; empty where there is one alone.
  static std::string sglang_rank(const LogLine& line) {
    const std::string_view prefix = line.text().substr(0, line.text().find(" batch"));
    const std::size_t rank = prefix.rfind(" DP");
    if (rank == std::string_view::npos) return "";
    const std::string_view rest = prefix.substr(rank + 3);
    return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
  }

  void read_sglang(const LogLine& line) {
    ServingCounts counts = counts_of(line.number(), "sglang", "SGLang log", CountUnit::window);
    EngineWindow window;
    window.running = line.number("#running-req:");
    window.waiting = line.number("#queue-req:");
    window.generation_tokens_per_second = line.number("gen throughput (token/s):");
    const std::string rank = sglang_rank(line);
    const auto [before, first] = sglang_prompts_.try_emplace(rank, false);
    if (!first && !before->second) window.prompt_tokens_per_second = 0;
    before->second = false;
    counts.window = window;
    if (!rank.empty()) counts.labels.push_back({"dp_rank", rank});

    const auto length = line.number("accept len:");
    if (length) idle_ = true;
    if (!length || *length == 0) return take_window(counts);
    if (!(1 <= *length && *length <= static_cast<double>(most_positions))) {
      line.refuse("accept len", fmt::format("{}", *length),
                  "a mean of tokens per round with the target's own, from 1 on");
    }
    counts.tokens_per_round = *length;
    counts.from_rates = true;
    if (!taken_) {
      sink_.warn({"mean_without_counts", fmt::format("{}:{}: accept len is a mean over the interval, of unknown weight",
                                                     path_.string(), line.number())});
    }
    take(counts);
  }

  /// "id  0 | task 52" of a slot's line; empty in older logs.
  static std::string_view slot_and_task(std::string_view line) {
    const std::size_t begin = line.find("id ");
    const std::size_t task = line.find("| task ", std::min(begin, line.size()));
    if (begin == std::string_view::npos || task == std::string_view::npos) return {};
    const std::size_t end = line.find(" |", task + 1);
    return line.substr(begin, std::min(end, line.size()) - begin);
  }

  /// `eval time = 783.55 ms / 64 tokens (...)`, of the answer whose acceptance follows.
  void read_llamacpp_time(const LogLine& line) {
    const std::string_view text = line.text();
    if (text.find("prompt eval time =") != std::string_view::npos) return;
    const std::string_view rest = line.after("eval time =").value_or("");
    const std::size_t slash = rest.find(" /");
    const auto tokens = slash == std::string_view::npos ? std::nullopt : leading_number(rest.substr(slash + 2));
    answer_tokens_.reset();
    if (!tokens || !tokens->rest.starts_with(" tokens") || std::floor(tokens->value) != tokens->value) return;
    answer_tokens_ = tokens->value;
    answer_of_ = slot_and_task(text);
  }

  /// Passes of the target behind the one that reads the prompt, each of which puts out one token beside its accepted
  /// drafts.
  std::optional<double> passes_of_answer(const LogLine& line, double accepted) {
    const std::optional<double> tokens = std::exchange(answer_tokens_, std::nullopt);
    if (!tokens || answer_of_ != slot_and_task(line.text()) || *tokens < accepted + 2) return std::nullopt;
    return *tokens - 1 - accepted;
  }

  /// What stands behind "acceptance rate per position =" on the line, or behind "acc per pos =" on one of the next.
  std::string_view llamacpp_positions(const LogLine& line) const {
    if (const auto rates = line.after("acceptance rate per position =")) return *rates;
    constexpr int lines_between = 4;
    std::size_t end = end_;
    for (int i = 0; i < lines_between && end < text_.size(); ++i) {
      const std::size_t begin = end + 1;
      end = end_of_line(begin);
      const std::string_view next = text_.substr(begin, end - begin);
      if (next.find("draft acceptance") != std::string_view::npos) break;
      const std::size_t rates = next.find("acc per pos =");
      if (rates == std::string_view::npos || slot_and_task(next) != slot_and_task(line.text())) continue;
      if (end == text_.size() && next.find(')') == std::string_view::npos) break;  // still written to
      return next.substr(rates + std::string_view("acc per pos =").size());
    }
    return {};
  }

  void read_llamacpp_request(const LogLine& line) {
    const auto rest = line.after("draft acceptance");
    if (!rest || !(rest->starts_with(" =") || rest->starts_with(" rate ="))) return;
    ServingCounts counts = counts_of(line.number(), "llama.cpp", "llama.cpp server log", CountUnit::request);
    const double rate = line.needed(rest->starts_with(" =") ? "draft acceptance =" : "draft acceptance rate =");
    const std::size_t open = rest->find('(');
    const auto accepted = leading_number(rest->substr(std::min(open, rest->size() - 1) + 1));
    if (!accepted || !accepted->rest.starts_with(" accepted /")) {
      line.refuse("draft acceptance", quoted(*rest), "followed by (N accepted / M generated)");
    }
    const auto drafted = leading_number(accepted->rest.substr(std::string_view(" accepted /").size()));
    if (!drafted || !drafted->rest.starts_with(" generated)")) {
      line.refuse("draft acceptance", quoted(*rest), "followed by (N accepted / M generated)");
    }
    line.require_count("accepted", accepted->value);
    line.require_count("generated", drafted->value);
    counts.accepted = accepted->value;
    counts.drafted = drafted->value;
    counts.rule = AcceptanceRule::greedy_draft;
    counts.shape = DraftShape::chain;
    require_at_most(line, "accepted", *counts.accepted, *counts.drafted);
    idle_ = true;
    if (*counts.drafted == 0) return;
    const double exact = *counts.accepted / *counts.drafted;
    if (rate > 1 && std::abs(rate - 100 * exact) <= 0.051) {
      line.refuse("draft acceptance", fmt::format("{}, a percentage", rate),
                  fmt::format("the fraction {:.6g}, as the counts on the line say", exact));
    }
    require_ratio(line, "draft acceptance", rate, exact, 1e-5);
    counts.steps = passes_of_answer(line, *counts.accepted);
    auto length = line.number("mean acceptance length =");
    if (!length) length = line.number("mean len =");
    if (length) {
      const std::string_view by_position = without_blanks_before(llamacpp_positions(line));
      if (!by_position.empty() && (!by_position.starts_with('(') || by_position.find(')') == std::string_view::npos)) {
        line.refuse("acceptance rate per position", quoted(by_position), "fractions in parentheses");
      }
      const std::string_view list =
          by_position.empty() ? by_position : by_position.substr(1, by_position.find(')') - 1);
      const std::vector<double> rates = line.rates("acceptance rate per position", list);
      if (!list.empty() && std::ssize(rates) != 1 + std::count(list.begin(), list.end(), ',')) {
        line.refuse("acceptance rate per position", quoted(by_position), "fractions in parentheses");
      }
      count_back(line, counts, *length, rates, false, counts.steps);
    }
    take(counts);
  }

  /// The lines behind n_draft, up to `accept`. Every pass of the target puts out what it accepted and one token of its
  /// own, so the passes are the tokens less the accepted drafts.
  void read_llamacpp_print(const LogLine& first) {
    const auto longest = printed_value(first.text(), "n_draft");
    if (!longest) return;
    constexpr std::array<std::string_view, 3> keys = {"n_predict", "n_drafted", "n_accept"};
    std::array<std::optional<double>, keys.size()> values;
    std::array<std::int64_t, keys.size()> lines = {};
    std::optional<double> percent;
    std::int64_t number = first.number();
    for (int i = 0; i < longest_print && !percent && end_ < text_.size(); ++i) {
      begin_ = end_ + 1;
      end_ = end_of_line(begin_);
      const LogLine line(path_, ++number, text_.substr(begin_, end_ - begin_));
      if (printed_value(line.text(), "n_draft")) {
        line.refuse("n_draft", "printed again", "followed by n_predict, n_drafted, n_accept and accept");
      }
      for (std::size_t k = 0; k < keys.size(); ++k) {
        if (const auto value = printed_value(line.text(), keys[k])) {
          line.require_count(keys[k], *value);
          values[k] = value;
          lines[k] = number;
        }
      }
      percent = printed_value(line.text(), "accept", true);
    }
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (!values[k]) first.refuse(keys[k], "missing behind n_draft", "printed before accept");
    }
    if (!percent) first.refuse("accept", "missing behind n_draft", "printed in percent behind n_accept");
    const auto refuse = [&](std::size_t key, std::string expected) {
      throw FileError(path_, FileError::line(lines[key]), std::string(keys[key]), fmt::format("{}", *values[key]),
                      std::move(expected));
    };
    const double predicted = *values[0], drafted = *values[1], accepted = *values[2];
    if (accepted > drafted) refuse(2, fmt::format("at most n_drafted, {}", drafted));
    if (accepted > predicted) refuse(2, fmt::format("at most n_predict, {}", predicted));
    if (drafted > 0 && std::abs(*percent - 100 * accepted / drafted) > 0.00051) {
      refuse(2, fmt::format("{:.3f}% of n_drafted, {}", *percent, drafted));
    }
    first.require_count("n_draft", *longest);
    if (*longest > static_cast<double>(most_positions)) {
      first.refuse("n_draft", fmt::format("{}", *longest), fmt::format("at most {}", most_positions));
    }
    ServingCounts counts = counts_of(first.number(), "llama.cpp", "llama-speculative", CountUnit::total);
    counts.rule = AcceptanceRule::greedy_draft;
    counts.shape = std::exchange(chain_, false) ? DraftShape::chain : DraftShape::unknown;
    if (*longest > 0) counts.gamma = static_cast<std::int64_t>(*longest);
    counts.rounds = predicted - accepted;
    counts.drafted = drafted;
    counts.accepted = accepted;
    counts.emitted = predicted;
    idle_ = true;
    if (*counts.rounds == 0) return;
    take(counts);
  }

  const fs::path& path_;
  const CountsSink& sink_;
  MappedFile file_;
  std::string_view text_;
  std::size_t begin_ = 0, end_ = 0;  ///< of the line
  std::size_t counted_ = 0;          ///< bytes whose newlines are in lines_
  std::int64_t lines_ = 0;
  std::optional<EngineWindow> window_;  ///< of the last vLLM engine line, until counts take it
  std::int64_t window_line_ = 0;
  std::string engine_;
  std::map<std::string, bool> sglang_prompts_;  ///< by rank: prompts were read since its last decode line
  std::optional<double> answer_tokens_;         ///< of llama.cpp's last answer, until its acceptance takes them
  std::string answer_of_;                       ///< slot_and_task of it
  /// The library that only chains use has logged something: llama-speculative-simple, not llama-speculative.
  bool chain_ = false;
  bool taken_ = false;
  bool any_window_ = false;
  bool idle_ = false;
  std::int64_t idle_intervals_ = 0, first_idle_line_ = 0;  ///< of vLLM, in which nothing was drafted
};

bool is_engine_log(const FileHead& head) {
  if (head.folder || head.bytes.find('\0') != std::string::npos) return false;
  const MappedFile file(head.path);
  file.advise_sequential();
  const std::string_view text = text_of(file.bytes());
  return std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    return mark.second != Mark::llamacpp_library && mark.second != Mark::sglang_prompts &&
           find_text(text, mark.first, 0) != std::string_view::npos;
  });
}

void read_logs(std::span<const fs::path> files, const CountsSink& sink) {
  for (const fs::path& file : files) LogReader(file, sink).read();
}

}  // namespace

bool has_engine_windows(const FileHead& head) {
  if (head.folder || head.size == 0) return false;
  const MappedFile file(head.path);
  const std::string_view text = text_of(file.bytes());
  return std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    return (mark.second == Mark::vllm_engine || mark.second == Mark::sglang) &&
           find_text(text, mark.first, 0) < text.size();
  });
}

bool times_answers(const FileHead& head) {
  if (head.folder || head.size == 0) return false;
  const MappedFile file(head.path);
  const std::string_view text = text_of(file.bytes());
  return std::any_of(marks.begin(), marks.end(), [&](const auto& mark) {
    return (mark.second == Mark::llamacpp_request || mark.second == Mark::llamacpp_time ||
            mark.second == Mark::llamacpp_print) &&
           find_text(text, mark.first, 0) < text.size();
  });
}

CountsFormat engine_log_format() { return {"engine log", is_engine_log, read_logs}; }

}  // namespace specdec::traces
