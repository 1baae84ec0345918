#include "traces/serving/llamacpp_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

/// Between the first and the last line of a print, other programs' lines included.
constexpr int longest_print = 200;

/// "id  0 | task 52" of a slot's line; empty in older logs.
std::string_view slot_and_task(std::string_view line) {
  const std::size_t begin = line.find("id ");
  const std::size_t task = line.find("| task ", std::min(begin, line.size()));
  if (begin == std::string_view::npos || task == std::string_view::npos) return {};
  const std::size_t end = line.find(" |", task + 1);
  return line.substr(begin, std::min(end, line.size()) - begin);
}

/// The text behind "acceptance rate per position =" on the line, or behind "acc per pos =" on one of the next.
std::string_view rates_by_position(const LogLine& line, LogText text) {
  if (const auto rates = line.after("acceptance rate per position =")) return *rates;
  constexpr int lines_between = 4;
  for (int i = 0; i < lines_between && text.go_on(); ++i) {
    const std::string_view next = text.line();
    if (next.find("draft acceptance") != std::string_view::npos) break;
    const std::size_t rates = next.find("acc per pos =");
    if (rates == std::string_view::npos || slot_and_task(next) != slot_and_task(line.text())) continue;
    if (text.is_last_line() && next.find(')') == std::string_view::npos) break;  // still written to
    return next.substr(rates + std::string_view("acc per pos =").size());
  }
  return {};
}

/// "stop processing: n_tokens = 243" behind the times of an answer: its tokens and its prompt's, but for the last one.
std::optional<double> tokens_at_release(const LogLine& line, LogText text) {
  constexpr std::string_view key = "stop processing: n_tokens =";
  for (int i = 0; i < longest_print && text.go_on(); ++i) {
    const std::string_view next = text.line();
    const std::size_t at = next.find(key);
    if (at == std::string_view::npos || slot_and_task(next) != slot_and_task(line.text())) continue;
    const auto number = leading_number(next.substr(at + key.size()));
    return number ? std::optional(number->value) : std::nullopt;
  }
  return std::nullopt;
}

/// The drafts of all kinds and their tokens by the statistics behind a line, which count from the server's start.
LlamaCppLog::Drafted drafted_since_start(LogText text) {
  LlamaCppLog::Drafted sum;
  for (int i = 0; i < longest_print && text.go_on(); ++i) {
    const std::string_view line = text.line();
    if (line.find("draft acceptance") != std::string_view::npos || line.find("eval time =") != std::string_view::npos)
      break;
    const auto counted = [&](std::string_view key) {
      const std::size_t at = line.find(key);
      const auto number = at == std::string_view::npos ? std::nullopt : leading_number(line.substr(at + key.size()));
      return number ? number->value : 0;
    };
    if (line.find("statistics ") == std::string_view::npos) continue;
    sum.drafts += counted("#gen drafts =");
    sum.tokens += counted("#gen tokens =");
  }
  return sum;
}

}  // namespace

void LlamaCppLog::read_time(const LogLine& line, const LogText& text) {
  take_plain_answer();
  const std::string_view rest = line.after("eval time =").value_or("");
  const auto milliseconds = leading_number(rest);
  const std::size_t slash = rest.find(" /");
  const auto tokens = slash == std::string_view::npos ? std::nullopt : leading_number(rest.substr(slash + 2));
  if (!tokens || !tokens->rest.starts_with(" tokens") || std::floor(tokens->value) != tokens->value) return;
  const std::string of(slot_and_task(line.text()));
  if (line.text().find("prompt eval time =") != std::string_view::npos) {
    prompt_ = {of, tokens->value};
    return;
  }
  answer_ = {line.number(), tokens->value, milliseconds ? milliseconds->value : 0, of, {}};
  const auto read = std::exchange(prompt_, std::nullopt);
  if (!found_.wants_plain_windows()) return;
  // What was read of the prompt leaves out what a cache had.
  if (const auto all = tokens_at_release(line, text); all && *all >= tokens->value)
    answer_->prompt_tokens = *all - tokens->value + 1;
  else if (read && read->first == of)
    answer_->prompt_tokens = read->second;
}

std::optional<LlamaCppLog::Answer> LlamaCppLog::answer_of(const LogLine& line, double accepted) {
  if (!answer_ || answer_->slot_and_task != slot_and_task(line.text())) return std::nullopt;
  const std::optional<Answer> answer = std::exchange(answer_, std::nullopt);
  return answer->tokens < accepted + 2 ? std::nullopt : answer;
}

void LlamaCppLog::take_plain_answer() {
  const std::optional<Answer> answer = std::exchange(answer_, std::nullopt);
  if (!answer || answer->tokens < 2) return;
  ServingCounts counts = found_.counts_of(answer->line, "llama.cpp", "llama.cpp server log", CountUnit::request);
  counts.emitted = counts.steps = answer->tokens - 1;
  add_times(*answer, counts);
  if (counts.bench) found_.take_window(counts);
}

void LlamaCppLog::add_times(const Answer& answer, ServingCounts& counts) const {
  if (!found_.wants_plain_windows() || !(answer.milliseconds > 0)) return;
  counts.bench = BenchRun{};
  counts.bench->completed = 1;
  counts.bench->duration_s = answer.milliseconds / 1000;
  counts.bench->total_output_tokens = answer.tokens;
  counts.bench->total_input_tokens = answer.prompt_tokens;
  const std::size_t digits = answer.slot_and_task.find_first_of("0123456789");
  if (digits < answer.slot_and_task.find(" |"))
    counts.labels = {{"slot", answer.slot_and_task.substr(digits, answer.slot_and_task.find(' ', digits) - digits)}};
}

/// Rounds of an answer of which no line says the length: its drafts by the statistics, else its passes, some of which
/// may have had no draft.
std::optional<double> LlamaCppLog::rounds_of_answer(const ServingCounts& counts, const LogText& text) {
  const Drafted before = std::exchange(since_start_, drafted_since_start(text));
  const double drafts = since_start_.drafts - before.drafts;
  if (drafts > 0 && since_start_.tokens - before.tokens == *counts.drafted) return drafts;
  return counts.steps;
}

void LlamaCppLog::read_request(const LogLine& line, const LogText& text) {
  const auto rest = line.after("draft acceptance");
  if (!rest || !(rest->starts_with(" =") || rest->starts_with(" rate ="))) return;
  ServingCounts counts = found_.counts_of(line.number(), "llama.cpp", "llama.cpp server log", CountUnit::request);
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
  found_.see_speculation();
  if (*counts.drafted == 0) return;
  const double exact = *counts.accepted / *counts.drafted;
  if (rate > 1 && std::abs(rate - 100 * exact) <= 0.051) {
    line.refuse("draft acceptance", fmt::format("{}, a percentage", rate),
                fmt::format("the fraction {:.6g}, as the counts on the line say", exact));
  }
  require_ratio(line, "draft acceptance", rate, exact, 1e-5);
  // Each pass behind the one that reads the prompt puts out one token beside its accepted drafts.
  const std::optional<Answer> answer = answer_of(line, *counts.accepted);
  if (answer) counts.steps = answer->tokens - 1 - *counts.accepted;
  auto length = line.number("mean acceptance length =");
  if (!length) length = line.number("mean len =");
  if (length) {
    const std::string_view by_position = without_blanks_before(rates_by_position(line, text));
    if (!by_position.empty() && (!by_position.starts_with('(') || by_position.find(')') == std::string_view::npos)) {
      line.refuse("acceptance rate per position", quoted(by_position), "fractions in parentheses");
    }
    const std::string_view list = by_position.empty() ? by_position : by_position.substr(1, by_position.find(')') - 1);
    const std::vector<double> rates = line.rates("acceptance rate per position", list);
    if (!list.empty() && std::ssize(rates) != 1 + std::count(list.begin(), list.end(), ',')) {
      line.refuse("acceptance rate per position", quoted(by_position), "fractions in parentheses");
    }
    count_back(line, counts, *length, rates, false, counts.steps);
  } else {
    counts.rounds = rounds_of_answer(counts, text);
  }
  if (answer) add_times(*answer, counts);
  if (counts.bench) counts.emitted = answer->tokens - 1;
  found_.take(counts);
}

void LlamaCppLog::read_answer(const LogLine& line) {
  for (const std::string_view key : {"pred=", "draft=", "tok/s="})
    if (!line.after(key)) return;
  const auto predicted = line.number("pred="), drafted = line.number("draft="), accepted = line.number("acc="),
             speed = line.number("tok/s=");
  if (*predicted < *accepted + 2 || !(*speed > 0)) return;
  ServingCounts counts = found_.counts_of(line.number(), "llama.cpp", "llama.cpp mtp-bench", CountUnit::request);
  counts.emitted = *predicted - 1;
  if (found_.wants_plain_windows()) {
    BenchRun& run = counts.bench.emplace();
    run.completed = 1;
    run.duration_s = *predicted / *speed;
    run.total_output_tokens = *predicted;
  }
  if (*drafted == 0) return found_.take_window(counts);
  found_.see_speculation();
  counts.rule = AcceptanceRule::greedy_draft;
  counts.shape = DraftShape::chain;
  counts.drafted = drafted;
  counts.accepted = accepted;
  counts.rounds = *counts.emitted - *accepted;
  found_.take(counts);
}

void LlamaCppLog::read_print(const LogLine& first, LogText& text) {
  const auto longest = printed_value(first.text(), "n_draft");
  if (!longest) return;
  constexpr std::array<std::string_view, 3> keys = {"n_predict", "n_drafted", "n_accept"};
  std::array<std::optional<double>, keys.size()> values;
  std::array<std::int64_t, keys.size()> lines = {};
  std::optional<double> percent;
  for (int i = 0; i < longest_print && !percent && text.go_on(); ++i) {
    const LogLine line(found_.path(), text.line_number(), text.line());
    if (printed_value(line.text(), "n_draft")) {
      line.refuse("n_draft", "printed again", "followed by n_predict, n_drafted, n_accept and accept");
    }
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (const auto value = printed_value(line.text(), keys[k])) {
        line.require_count(keys[k], *value);
        values[k] = value;
        lines[k] = line.number();
      }
    }
    percent = printed_value(line.text(), "accept", true);
  }
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (!values[k]) first.refuse(keys[k], "missing behind n_draft", "printed before accept");
  }
  if (!percent) first.refuse("accept", "missing behind n_draft", "printed in percent behind n_accept");
  const auto refuse = [&](std::size_t key, std::string expected) {
    throw FileError(found_.path(), FileError::line(lines[key]), std::string(keys[key]), fmt::format("{}", *values[key]),
                    std::move(expected));
  };
  const double predicted = *values[0], drafted = *values[1], accepted = *values[2];
  if (accepted > predicted) refuse(2, fmt::format("at most n_predict, {}", predicted));
  if (drafted > 0 && std::abs(*percent - 100 * accepted / drafted) > 0.00051) {
    refuse(2, fmt::format("{:.3f}% of n_drafted, {}", *percent, drafted));
  }
  first.require_count("n_draft", *longest);
  if (*longest > static_cast<double>(most_logged_positions)) {
    first.refuse("n_draft", fmt::format("{}", *longest), fmt::format("at most {}", most_logged_positions));
  }
  ServingCounts counts = found_.counts_of(first.number(), "llama.cpp", "llama-speculative", CountUnit::total);
  counts.rule = AcceptanceRule::greedy_draft;
  counts.shape = std::exchange(chain_, false) ? DraftShape::chain : DraftShape::unknown;
  if (*longest > 0) counts.gamma = static_cast<std::int64_t>(*longest);
  counts.rounds = predicted - accepted;
  counts.drafted = drafted;
  counts.accepted = accepted;
  counts.emitted = predicted;
  found_.see_speculation();
  if (*counts.rounds == 0) return;
  found_.take(counts);
}

}  // namespace specdec::traces
