#include "traces/serving/run_columns.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "traces/formats/text_parts.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

using Names = std::map<std::string_view, RunColumn, std::less<>>;

/// All names of one meaning.
struct KnownNames {
  using enum RunColumn;
  RunColumn what;
  std::vector<std::string_view> names;
  static const std::vector<KnownNames> all;
};

const std::vector<KnownNames> KnownNames::all = {
    {concurrency,
     {"concurrency", "max_concurrency", "maximum_request_concurrency", "max_request_concurrency", "request_concurrency",
      "conc", "concurrent", "concurrent_requests", "number_of_concurrent_requests", "num_concurrent_requests", "users",
      "num_users", "concurrent_users", "clients", "parallel", "bs", "batch_size", "batchsize"}},
    {batch, {"batch"}},
    {gamma,
     {"gamma",
      "\u03b3",
      "k",
      "n_max",
      "draft_n_max",
      "spec_draft_n_max",
      "draft_max",
      "num_speculative_tokens",
      "spec_tokens",
      "num_spec_tokens",
      "speculative_tokens",
      "num_spec",
      "spec_k",
      "draft_len",
      "draft_length",
      "max_draft_len",
      "num_steps",
      "speculative_num_steps",
      "mtp",
      "draft_k",
      "spec_len"}},
    {steps, {"steps", "spec_steps"}},
    {throughput,
     {"output_tokens_per_second", "output_throughput", "tok/s", "output_token_throughput", "toks", "tokens_per_second",
      "tokens_per_sec", "tok_per_s", "generation_throughput", "gen_throughput", "decode_throughput",
      "total_output_throughput"}},
    {unclear,
     {"total_tok/s", "total_throughput", "throughput", "speed", "latency", "time", "ms", "accepted_per_step",
      "accepted_tokens_per_step", "accepted/step", "prompt_tokens", "generated_tokens", "completion_tokens", "tokens"}},
    {each_throughput, {"output_token_throughput_per_user"}},
    {ms_per_token,
     {"tpot", "ms_per_token", "ms/token", "ms/tok", "time_per_output_token", "time_per_token", "per_token_latency",
      "time_per_output_token_tpot"}},
    {ms_between, {"itl", "inter_token_latency", "inter_token_latency_itl"}},
    {tokens_per_step,
     {"tokens_per_step", "tok/step", "tokens/step", "acceptance_length", "accept_length", "accept_len", "acc_length",
      "acc_len", "accepted_length", "acceptance_len", "al", "tau", "\u03c4", "tokens_per_round"}},
    {drafts_per_step, {"accepted_drafts_per_step"}},
    {acceptance_rate,
     {"acceptance_rate", "accept_rate", "acc_rate", "acceptance", "accept", "draft_acceptance_rate", "draft_acceptance",
      "accept_%"}},
    {rounds, {"rounds", "num_drafts", "drafts", "verify_steps", "spec_verify_ct", "num_spec_steps"}},
    {draft_tokens, {"num_draft_tokens", "draft_tokens", "num_draft", "n_draft", "draft_n"}},
    {drafted, {"drafted", "drafted_tokens", "n_drafted"}},
    {accepted, {"num_accepted_tokens", "accepted_tokens", "accepted", "n_accept"}},
    {topk, {"topk", "top_k", "eagle_topk"}},
    {verified, {"verified_tokens"}},
    {requests, {"requests", "successful_requests", "completed", "num_prompts", "number_of_requests", "num_requests"}},
    {seconds, {"benchmark_duration", "duration"}},
    {request_rate, {"request_rate", "target_rate", "traffic_request_rate"}},
    {mean_input, {"input_tokens", "isl", "input_len", "input_length"}},
    {mean_output, {"output_tokens", "osl", "output_len", "output_length"}},
    {total_input, {"total_input_tokens"}},
    {total_output, {"total_generated_tokens", "total_output_tokens", "total_num_output_tokens"}},
    {model, {"model", "model_id"}},
    {draft, {"draft", "draft_model"}},
    {engine, {"engine", "backend"}},
    {server, {"server"}},
    {category, {"subset", "category"}},
    {strategy, {"strategy"}},
    {setting,
     {"", "setting", "settings", "method", "config", "configuration", "setup", "mode", "run", "name", "variant", "spec",
      "speculation", "speculative", "speculative_method", "speculative_algorithm", "spec_method", "spec_type"}},
    {unused,
     {"speedup",
      "speed_up",
      "gain",
      "ttft",
      "time_to_first_token",
      "e2el",
      "e2e_latency",
      "notes",
      "note",
      "comment",
      "req/s",
      "rps",
      "request_throughput",
      "total_token_throughput",
      "input_token_throughput",
      "failed_requests",
      "input_throughput",
      "gpu",
      "dataset",
      "date"}}};

const Names& column_names() {
  static const Names names = [] {
    Names all;
    for (const KnownNames& known : KnownNames::all)
      for (const std::string_view name : known.names) all.emplace(name, known.what);
    return all;
  }();
  return names;
}

/// Whether a word of a name is one of these.
bool has_word(std::string_view name, std::initializer_list<std::string_view> words) {
  for (std::size_t at = 0; at <= name.size(); at = std::min(name.find('_', at), name.size()) + 1) {
    const std::string_view word = name.substr(at, name.find('_', at) - at);
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
  }
  return false;
}

std::string_view advice_on(std::string_view name) {
  constexpr std::string_view of_tokens =
      "mean_input_tokens and mean_output_tokens, or total_input_tokens and "
      "total_output_tokens";
  if (name.find("accepted") != std::string_view::npos)
    return "tokens_per_step if the target's own token is among them, or else accepted_drafts_per_step";
  if (name == "latency" || name == "time" || name == "ms") return "ms_per_token for the time of an output token";
  if (name.find("tokens") != std::string_view::npos) return of_tokens;
  return "output_tokens_per_second for output tokens of all requests together";
}

/// Lower case, words joined by '_', without marks.
std::string joined_words(std::string_view text) {
  std::string name;
  for (const char c : lower_case(text)) {
    if (c == '*' || c == '`' || c == '#') continue;
    const bool blank = is_blank(c) || c == '_' || c == '-' || c == ':';
    if (!blank) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

/// Takes what stands in brackets, or behind a comma, out of a heading.
std::string take_unit(std::string& heading) {
  std::string unit;
  for (const auto& [open, close] : {std::pair('(', ')'), std::pair('[', ']')}) {
    const std::size_t begin = heading.find(open), end = heading.find(close, begin);
    if (begin == std::string::npos || end == std::string::npos) continue;
    if (unit.empty()) unit = heading.substr(begin + 1, end - begin - 1);
    heading.erase(begin, end - begin + 1);
  }
  if (const std::size_t comma = heading.rfind(','); comma != std::string::npos) {
    if (unit.empty()) unit = heading.substr(comma + 1);
    heading.erase(comma);
  }
  return lower_case(trimmed(unit));
}

bool take_ending(std::string& name, std::string_view ending) {
  if (!name.ends_with(ending) || name.size() <= ending.size()) return false;
  name.resize(name.size() - ending.size());
  return true;
}

/// What a heading of a name that is not known says by its words: "decode_tok/s", "tps per user", "inference speed".
RunColumn column_by_words(std::string name, std::string_view unit) {
  if (has_word(name, {"prefill", "prompt", "pp", "input", "total"})) return RunColumn::unknown;
  bool of_each = false;
  for (const std::string_view ending : {"/user", "/request", "_per_user", "_per_request"})
    of_each = of_each || take_ending(name, ending);
  const bool rate = has_word(name, {"tok/s", "toks/s", "token/s", "tokens/s", "t/s", "tps", "tok/sec", "tokens/sec",
                                    "tokens/second"}) ||
                    (!unit.empty() && scale_of_unit(RunColumn::throughput, unit));
  if (rate) return of_each ? RunColumn::each_throughput : RunColumn::throughput;
  return has_word(name, {"speed"}) ? RunColumn::unclear : RunColumn::unknown;
}

/// Takes words of a statistic out of a name; false for those that stand for no run: percentiles, extremes.
bool take_statistic(std::string& name, Statistic& statistic) {
  constexpr std::array<std::pair<std::string_view, Statistic>, 5> words = {{{"mean", Statistic::mean},
                                                                            {"avg", Statistic::mean},
                                                                            {"average", Statistic::mean},
                                                                            {"median", Statistic::median},
                                                                            {"p50", Statistic::median}}};
  for (const auto& [word, meaning] : words) {
    const std::string at_begin = std::string(word) + "_", at_end = "_" + std::string(word);
    if (const std::size_t inside = name.find(at_end + "_"); inside != std::string::npos) {
      name.erase(inside, at_end.size());
    } else if (name.starts_with(at_begin)) {
      name.erase(0, at_begin.size());
    } else if (!take_ending(name, at_end)) {
      continue;
    }
    statistic = meaning;
    return true;
  }
  const auto is_other = [&](std::string_view word) { return name.starts_with(word) || name.ends_with(word); };
  constexpr std::array<std::string_view, 8> others = {"p99", "p95", "p90", "p75", "std_", "_std", "minimum_", "stddev"};
  return std::none_of(others.begin(), others.end(), is_other);
}

/// acceptance_at_pos_3, position_3, pos3: 3.
std::optional<std::size_t> position_in(std::string_view name) {
  constexpr std::array<std::string_view, 7> beginnings = {
      "acceptance_at_pos_",          "acceptance_at_position_", "acceptance_at_token_", "position_", "pos_", "pos",
      "acceptance_rate_at_position_"};
  for (const std::string_view beginning : beginnings) {
    if (name.starts_with(beginning)) return index_of_key(name.substr(beginning.size()));
  }
  return std::nullopt;
}

bool is_number_part(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ','; }

/// Digits and marks at the beginning of a number, without what groups thousands.
std::string_view number_part(std::string_view text) {
  std::size_t end = text.starts_with('-') ? 1 : 0;
  while (end < text.size()) {
    const char c = text[end];
    const bool grouped = (c == ' ' || c == '\'' || c == '_') && end > 0 && end + 3 < text.size() &&
                         std::isdigit(static_cast<unsigned char>(text[end - 1])) != 0 &&
                         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(end) + 1,
                                     text.begin() + static_cast<std::ptrdiff_t>(end) + 4,
                                     [](unsigned char d) { return std::isdigit(d) != 0; });
    const bool exponent = (c == 'e' || c == 'E') && end + 1 < text.size() &&
                          (std::isdigit(static_cast<unsigned char>(text[end + 1])) != 0 ||
                           ((text[end + 1] == '-' || text[end + 1] == '+') && end + 2 < text.size() &&
                            std::isdigit(static_cast<unsigned char>(text[end + 2])) != 0));
    if (exponent) {
      end += 2;
      continue;
    }
    if (!is_number_part(c) && !grouped) break;
    ++end;
  }
  return text.substr(0, end);
}

/// Whether all groups behind the first are of three digits, as thousands are: 1,234,567.
bool is_grouped(std::string_view digits, char mark) {
  std::size_t at = digits.find(mark);
  if (at == 0 || at == std::string_view::npos || at > 3 || digits.starts_with('0')) return false;
  while (at != std::string_view::npos) {
    const std::size_t next = digits.find(mark, at + 1);
    if (std::min(next, digits.size()) - at != 4) return false;
    at = next;
  }
  return true;
}

}  // namespace

NamedColumn column_of(std::string_view heading) {
  using enum RunColumn;
  NamedColumn column;
  if (heading.size() > 200) return column;
  std::string text(heading);
  const std::string whole = joined_words(text);
  column.unit = take_unit(text);
  std::string name = joined_words(text);
  if (const Names::const_iterator found = column_names().find(whole); found != column_names().end()) {
    column.unit.clear();
    name = whole;
  } else if (trimmed(text).empty() && !column.unit.empty()) {
    // "[AL]" alone.
    name = joined_words(column.unit);
    column.unit.clear();
  }
  if (column.unit == "al" || column.unit == "itl" || column.unit == "tpot") {
    // TensorRT-LLM's "[AL] AVERAGE".
    name = name.empty() || whole.starts_with('[') ? column.unit + "_" + name : name;
    column.unit = heading.find("(ms)") != std::string_view::npos ? "ms" : "";
  }
  if (!take_statistic(name, column.statistic)) {
    column.what = unused;
    return column;
  }
  // guidellm's is the time of each token.
  const bool of_tokens = name == "itl_ms" && column.statistic == Statistic::median;
  auto found = column_names().find(name);
  for (const std::string_view unit : {"_ms", "_s", "_us", "_%", "_pct", "_percent"}) {
    if (found != column_names().end() || !take_ending(name, unit)) continue;
    if (column.unit.empty()) column.unit = unit == "_pct" || unit == "_percent" ? "%" : std::string(unit.substr(1));
    found = column_names().find(name);
  }
  column.name = name;
  if (name == "ktok/s" || name == "ktokens/s") {
    column.what = throughput;
    column.unit = name;
  } else if (found != column_names().end()) {
    column.what = of_tokens ? ms_per_token : found->second;
  } else if (const auto position = position_in(name)) {
    column.what = accepted_at;
    column.position = *position;
  } else {
    column.what = column_by_words(name, column.unit);
    column.by_words = column.what != unknown;
  }
  const bool rate_of_tokens = column.what == unclear && scale_of_unit(throughput, column.unit).value_or(0) > 0 &&
                              !column.unit.empty() && !name.starts_with("total");
  if (rate_of_tokens) column.what = throughput;
  if (column.what == unclear && column.unit.starts_with("ms/tok")) column.what = ms_per_token;
  if (column.what == unclear && (column.unit.starts_with("req") || column.unit == "rps")) column.what = unused;
  const bool of_each = column.unit.ends_with("/user") || column.unit.ends_with("/request");
  if (of_each && (column.what == throughput || column.what == unclear)) column.what = each_throughput;
  if (column.what == unclear) column.advice = advice_on(name);
  if (column.statistic != Statistic::none && (column.what == total_input || column.what == total_output))
    column.what = unused;
  return column;
}

std::string_view bare_cell(std::string_view cell) {
  const auto marked = [](char c) { return c == '*' || c == '`' || c == '~' || is_blank(c); };
  while (!cell.empty() && marked(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && marked(cell.back())) cell.remove_suffix(1);
  if (cell.size() > 1 && cell.starts_with("__") && cell.ends_with("__")) {
    cell = cell.size() < 4 ? "" : cell.substr(2, cell.size() - 4);
  }
  constexpr std::array<std::string_view, 11> empty = {"-",   "--",   "\u2013", "\u2014", "n/a",    "na",
                                                      "nan", "null", "?",      "/",      "not set"};
  const std::string lower = lower_case(cell);
  return std::find(empty.begin(), empty.end(), lower) == empty.end() ? cell : std::string_view();
}

std::optional<CellNumber> number_of_cell(std::string_view cell, bool decimal_comma) {
  std::string_view text = bare_cell(cell);
  for (const std::string_view mark : {"\u2248", "+"}) {
    if (text.starts_with(mark)) text = trimmed(text.substr(mark.size()));
  }
  for (const std::string_view mark : {"\u00b1", "+/-", "+-", "(", "["}) {
    if (const std::size_t at = text.find(mark); at != std::string_view::npos) text = trimmed(text.substr(0, at));
  }
  while (text.ends_with('*')) text.remove_suffix(1);
  const std::string_view written = number_part(text);
  const char point = decimal_comma ? ',' : '.', group = decimal_comma ? '.' : ',';
  const std::string_view mantissa = written.substr(0, written.find_first_of("eE"));
  const std::size_t at_point = mantissa.find(point);
  if (mantissa.substr(0, at_point).find(group) != std::string_view::npos &&
      !is_grouped(mantissa.substr(mantissa.starts_with('-') ? 1 : 0, at_point), group))
    return std::nullopt;
  std::string digits;
  for (const char c : written) {
    if (c == group && digits.find('.') != std::string::npos) return std::nullopt;
    if (c != group && c != ' ' && c != '\'' && c != '_') digits += c == point ? '.' : c;
  }
  const auto value = double_in(digits);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  CellNumber number{*value, 0.5, lower_case(trimmed(text.substr(written.size())))};
  if (at_point != std::string_view::npos)
    number.rounding = 0.5 * std::pow(10.0, -static_cast<double>(mantissa.size() - at_point - 1));
  if (written.size() != mantissa.size()) number.rounding = 1e-6 * std::abs(number.value);
  // "23-26 tok/s" is the middle.
  const std::size_t dash = number.unit.starts_with('-') ? 1 : number.unit.starts_with("\u2013") ? 3 : 0;
  const auto end = dash > 0 ? number_of_cell(std::string_view(number.unit).substr(dash), decimal_comma) : std::nullopt;
  if (end && end->value > number.value) {
    number = {(number.value + end->value) / 2, (end->value - number.value) / 2, end->unit};
  }
  if (number.unit == "k") {
    number.value *= 1000;
    number.rounding *= 1000;
    number.unit.clear();
  }
  return number;
}

bool has_decimal_comma(std::string_view cell) {
  const std::string_view written = number_part(bare_cell(cell));
  const std::size_t comma = written.rfind(',');
  if (comma == std::string_view::npos || written.find('.', comma) != std::string_view::npos) return false;
  return written.find(',') == comma && !is_grouped(written.substr(written.rfind('.', comma) + 1), ',');
}

bool says_plain(std::string_view cell) {
  constexpr std::array<std::string_view, 7> words = {"base", "off", "none", "no", "false", "disabled", "without"};
  std::string lower = lower_case(bare_cell(cell));
  if (const std::size_t bracket = lower.find('('); bracket != std::string::npos) lower.resize(bracket);
  const std::string_view said = trimmed(lower, " -");
  if (std::find(words.begin(), words.end(), said) != words.end()) return true;
  constexpr std::array<std::string_view, 13> beginnings = {
      "baseline", "plain",         "vanilla",      "autoregressive", "nospec",   "no-spec",    "no spec",
      "no draft", "without draft", "without spec", "w/o draft",      "w/o spec", "draft: none"};
  const auto begins = [&](std::string_view word) { return said.starts_with(word); };
  return !gamma_in_setting(said) && std::any_of(beginnings.begin(), beginnings.end(), begins);
}

std::string method_in_setting(std::string_view cell) {
  const std::string lower = lower_case(cell);
  for (const std::string_view method : {"eagle", "mtp", "nextn", "ngram", "suffix", "medusa", "dflash"}) {
    const std::size_t begin = lower.find(method);
    if (begin == std::string::npos) continue;
    // "eagle3" is no "eagle".
    const std::size_t end = lower.find_first_not_of("0123456789", begin + method.size());
    return lower.substr(begin, end - begin);
  }
  return lower.find("n-gram") == std::string::npos ? "" : "ngram";
}

std::optional<double> gamma_in_setting(std::string_view cell) {
  std::string lower = lower_case(bare_cell(cell));
  for (std::size_t at = 0; (at = lower.find("--", at)) != std::string::npos;) lower.replace(at, 2, "  ");
  constexpr std::string_view names[] = {"num_speculative_tokens",
                                        "spec-draft-n-max",
                                        "draft-n-max",
                                        "draft-max",
                                        "draft_max",
                                        "draft",
                                        "n-max",
                                        "n_max",
                                        "n=",
                                        "gamma",
                                        "\u03b3",
                                        "mtp",
                                        "k",
                                        "steps"};
  std::optional<double> found;
  for (const std::string_view name : names) {
    for (std::size_t at = lower.find(name); at != std::string::npos; at = lower.find(name, at + 1)) {
      // "top_k=4" says no gamma.
      if (at > 0 && std::string_view(" ,;:(+/[").find(lower[at - 1]) == std::string_view::npos) continue;
      const std::size_t begin = std::min(lower.find_first_not_of("=: -(", at + name.size()), lower.size());
      const std::size_t end = std::min(lower.find_first_not_of("0123456789", begin), lower.size());
      // "mtp (2)", and not "draft (4 bit)".
      const bool in_brackets = begin > 0 && lower[begin - 1] == '(';
      const bool ends =
          in_brackets ? lower.substr(end, 1) == ")"
                      : end == lower.size() || std::string_view(" ,;)+/]").find(lower[end]) != std::string_view::npos;
      const auto gamma = number_in<double>(std::string_view(lower).substr(begin, end - begin));
      if (!gamma || !ends) continue;
      if (found && *found != *gamma) return std::nullopt;
      found = gamma;
    }
  }
  return found;
}

std::optional<double> scale_of_unit(RunColumn what, std::string_view unit) {
  using enum RunColumn;
  using Units = std::vector<std::pair<std::string_view, double>>;
  static const Units times = {{"", 1},           {"ms", 1},       {"msec", 1},       {"milliseconds", 1},
                              {"s", 1000},       {"sec", 1000},   {"seconds", 1000}, {"us", 1e-3},
                              {"\u00b5s", 1e-3}, {"ms/token", 1}, {"ms/tok", 1}};
  static const Units rates = {
      {"", 1},          {"tok/s", 1},        {"toks/s", 1},      {"token/s", 1},    {"tokens/s", 1},
      {"t/s", 1},       {"tps", 1},          {"tok/sec", 1},     {"tokens/sec", 1}, {"tokens/second", 1},
      {"ktok/s", 1000}, {"output tok/s", 1}, {"ktokens/s", 1000}};
  static const Units shares = {{"", 1}, {"%", 0.01}, {"percent", 0.01}};
  static const Units spans = {{"", 1}, {"s", 1}, {"sec", 1}, {"seconds", 1}, {"ms", 1e-3}, {"min", 60}};
  static const Units counted = {{"", 1},    {"tokens", 1},      {"requests", 1}, {"req/s", 1}, {"tok", 1},
                                {"rps", 1}, {"tokens/step", 1}, {"rps)", 1},     {"bs", 1}};
  std::string asked(unit);
  if (what == each_throughput) {
    for (const std::string_view of_each : {"/user", "/request", "/req"}) take_ending(asked, of_each);
  }
  const Units& units = what == ms_per_token || what == ms_between       ? times
                       : what == throughput || what == each_throughput  ? rates
                       : what == acceptance_rate || what == accepted_at ? shares
                       : what == seconds                                ? spans
                                                                        : counted;
  const auto found = std::find_if(units.begin(), units.end(), [&](const auto& one) { return one.first == asked; });
  return found == units.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace specdec::traces
