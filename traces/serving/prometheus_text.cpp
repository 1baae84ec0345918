
#include <cmath>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/scraped_series.hpp"

namespace specdec::traces {

// Counters in the Prometheus text exposition format, as an engine's /metrics shows them:
//
//   # TYPE vllm:spec_decode_num_drafts_total counter
//   vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 22.0
//   vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 18.0 1756736798733
//
// scraped_series.hpp lists the series that are read; other lines are passed over. One scrape gives totals, several of
// them (files in order, or one file with timestamps) give the windows between them.

namespace {

namespace fs = std::filesystem;

constexpr std::string_view text_format = "Prometheus text";

bool is_name_start(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_' || c == ':'; }
bool is_name(char c) { return is_name_start(c) || ('0' <= c && c <= '9'); }
std::size_t length_of_name(std::string_view line) {
  std::size_t length = 0;
  while (length < line.size() && is_name(line[length])) ++length;
  return line.empty() || !is_name_start(line.front()) ? 0 : length;
}

/// Takes a sample line apart from front to end.
class SampleLine {
 public:
  SampleLine(const fs::path& file, std::int64_t number, std::string_view line, std::string_view metric)
      : file_(file), number_(number), metric_(metric), rest_(line.substr(metric.size())) {}

  /// `open_metrics`: times are seconds, not milliseconds.
  ScrapedSample read(bool open_metrics) {
    ScrapedSample sample;
    sample.file = file_;
    sample.line = number_;
    sample.metric = metric_;
    skip_blanks();
    if (rest_.starts_with('{')) read_labels(sample.labels);
    const std::string_view value = word();
    const auto number = double_in(value);
    if (!number)
      refuse(value.empty() ? "cut off before its value" : "of value " + printable(value), "of a number as value");
    sample.value = *number;
    const std::string_view time = word();
    if (time.empty() || time.starts_with('#')) return sample;  // OpenMetrics: an exemplar follows
    const auto stamp = double_in(time);
    if (!stamp || !std::isfinite(*stamp)) refuse("of time " + printable(time), "of a time in milliseconds");
    const bool seconds = open_metrics || time.find('.') != std::string_view::npos;
    sample.time_s = seconds ? *stamp : *stamp / 1000;
    const std::string_view more = word();
    if (!more.empty() && !more.starts_with('#'))
      refuse("followed by " + printable(more), "followed by a value and a time");
    return sample;
  }

 private:
  [[noreturn]] void refuse(std::string found, std::string expected) const {
    throw FileError(file_, FileError::line(number_), std::string(metric_), std::move(found), std::move(expected));
  }

  void skip_blanks() { rest_ = without_blanks_before(rest_); }

  std::string_view word() {
    skip_blanks();
    const std::string_view result = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_.remove_prefix(result.size());
    return result;
  }

  void read_labels(std::vector<CountLabel>& labels) {
    rest_.remove_prefix(1);
    while (true) {
      skip_blanks();
      if (rest_.starts_with('}')) break;
      const std::size_t length = length_of_name(rest_);
      if (length == 0) refuse_labels();
      CountLabel label{std::string(rest_.substr(0, length)), ""};
      rest_.remove_prefix(length);
      skip_blanks();
      if (!rest_.starts_with('=')) refuse_labels();
      rest_.remove_prefix(1);
      skip_blanks();
      if (!rest_.starts_with('"')) refuse_labels();
      rest_.remove_prefix(1);
      read_value(label.value);
      for (const CountLabel& other : labels) {
        if (other.name == label.name) refuse("of two labels " + label.name, "of one label of each name");
      }
      labels.push_back(std::move(label));
      skip_blanks();
      if (rest_.starts_with(',')) {
        rest_.remove_prefix(1);
      } else if (!rest_.starts_with('}')) {
        refuse_labels();
      }
    }
    rest_.remove_prefix(1);
  }

  void read_value(std::string& value) {
    while (!rest_.starts_with('"')) {
      if (rest_.empty()) refuse("cut off in a label", "complete");
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\\' && !rest_.empty()) {
        c = rest_.front() == 'n' ? '\n' : rest_.front();
        rest_.remove_prefix(1);
      }
      value += c;
    }
    rest_.remove_prefix(1);
    if (!is_utf8(value)) refuse("of a label \"" + printable(value) + "\"", "of labels in UTF-8");
  }

  [[noreturn]] void refuse_labels() const {
    refuse(rest_.empty() ? "cut off in its labels" : "going on with " + printable(rest_),
           "followed by labels NAME=\"VALUE\", ...");
  }

  const fs::path& file_;
  std::int64_t number_;
  std::string_view metric_;
  std::string_view rest_;
};

void read_scrape(const fs::path& path, ScrapedSeries& series) {
  const MappedFile file(path);
  file.advise_sequential();
  std::string_view text = text_of(file.bytes());
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  const bool open_metrics = end != std::string_view::npos && text.substr(0, end + 1).ends_with("# EOF");
  text = without_byte_order_mark(text);
  bool has_samples = false;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t left = text.size();
    std::string_view line = take_part(text);
    const bool is_cut = line.size() == left;
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_blanks_before(line);
    if (line.empty() || line.front() == '#') continue;
    has_samples = true;
    const std::string_view metric = line.substr(0, length_of_name(line));
    if (scraped_name(metric)) {
      ScrapedSample sample = SampleLine(path, number, line, metric).read(open_metrics);
      // Of its number digits may be missing.
      if (is_cut) {
        throw FileError(path, FileError::line(number), std::string(metric), "on a last line that no newline ends",
                        "on a whole line: the file is cut off");
      }
      series.add(std::move(sample));
    } else if (!metric.empty()) {
      series.count_other();
    } else {
      throw FileError(path, FileError::line(number), "line", printable(line),
                      "a sample `NAME{LABELS} VALUE` or a comment");
    }
  }
  if (!has_samples) throw FileError(path, "number of samples", "0", "1 or more");
}

void read_scrapes(std::span<const fs::path> files, const CountsSink& sink) {
  ScrapedSeries series(text_format);
  for (const fs::path& file : files) {
    series.begin_scrape();
    read_scrape(file, series);
  }
  series.hand_over(files.front(), sink);
}

bool is_prometheus_text(const FileHead& head) {
  std::string_view text = head.bytes;
  text = without_byte_order_mark(text);
  while (!text.empty()) {
    const std::string_view line = trimmed(take_part(text));
    if (line.empty()) continue;
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ") || line.starts_with("# EOF")) return true;
    if (scraped_name(line.substr(0, length_of_name(line)))) return true;
  }
  return false;
}

}  // namespace

CountsFormat prometheus_text_format() { return {text_format, is_prometheus_text, read_scrapes}; }

}  // namespace specdec::traces
