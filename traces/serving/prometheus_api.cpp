#include <fmt/format.h>

#include <cmath>
#include <string>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/scraped_series.hpp"

namespace specdec::traces {

// Answers of a Prometheus server to /api/v1/query (a vector) and /api/v1/query_range (a matrix):
//
//   {"status":"success","data":{"resultType":"matrix","result":[
//     {"metric":{"__name__":"vllm:spec_decode_num_drafts_total","instance":"a:8000"},
//      "values":[[1756736798,"22"],[1756736828,"40"]]}]}}
//
// One answer a document, several documents or files where each series was queried alone; scraped_series.hpp lists the
// series that are read. One sample of each gives totals, more give the windows between consecutive ones.

namespace {

namespace dom = simdjson::dom;

constexpr std::string_view api_format = "Prometheus API";

/// A sample's value, which Prometheus writes as a string: "22", "1e+06", "NaN", "+Inf".
double read_value(const JsonLines& file, dom::element value, const JsonField& field) {
  const std::string_view text = read_string(file, value, field);
  const auto number = double_in(text);
  if (!number) file.refuse(field.text(), quoted(text), "a number as a string");
  return *number;
}

/// Takes one series of an answer.
class SeriesReader {
 public:
  SeriesReader(const JsonLines& file, ScrapedSeries& series) : file_(file), series_(series) {}

  void read(dom::object entry, std::string_view samples_key, bool many) {
    ScrapedSample sample;
    sample.file = file_.path();
    sample.line = file_.line();
    std::string_view metric;
    const dom::object names =
        read_object(file_, member_of(file_, entry, "metric", {"data.result"}), {"data.result.metric"});
    for (const auto& [key, value] : names) {
      const std::string_view text = read_string(file_, value, {"data.result.metric", -1, fmt::format(".{}", key)});
      if (key == "__name__") {
        metric = text;
      } else {
        sample.labels.push_back({std::string(key), std::string(text)});
      }
    }
    if (metric.empty()) {
      file_.refuse("data.result.metric.__name__", "missing",
                   "the name of a series: query the counters themselves, not a sum() or rate() of them");
    }
    sample.metric = metric;
    if (!scraped_name(metric)) return series_.count_other();
    const dom::element samples = member_of(file_, entry, samples_key, {metric});
    const std::string list = fmt::format("{}.{}", metric, samples_key);
    if (!many) return add(sample, samples, {list});
    std::int64_t i = 0;
    for (const dom::element pair : read_array(file_, samples, {list})) add(sample, pair, {list, i++});
  }

 private:
  void add(ScrapedSample& sample, dom::element pair, const JsonField& field) {
    const dom::array values = read_array(file_, pair, field);
    if (values.size() != 2) {
      file_.refuse(field.text(), fmt::format("an array of {}", values.size()), "[time, \"value\"]");
    }
    const auto time = number_of(values.at(0).value_unsafe());
    if (!time || !std::isfinite(*time)) {
      file_.refuse(field.text() + "[0]", values.at(0).value_unsafe(), "a time in Unix seconds");
    }
    sample.time_s = *time;
    sample.value = read_value(file_, values.at(1).value_unsafe(), {field.text(), 1});
    series_.add(sample);
  }

  const JsonLines& file_;
  ScrapedSeries& series_;
};

void read_answer(const JsonLines& file, ScrapedSeries& series) {
  const dom::object answer = read_object(file, file.document(), {"document"});
  const std::string_view status = read_string(file, member_of(file, answer, "status", {}), {"status"});
  if (status != "success") {
    std::string found = quoted(status);
    for (const char* key : {"errorType", "error"}) {
      if (const auto text = find_member(answer, key))
        found += fmt::format(": {}", printable(read_string(file, *text, {key}), 200));
    }
    file.refuse("status", found, "\"success\"");
  }
  const dom::object data = read_object(file, member_of(file, answer, "data", {}), {"data"});
  const std::string_view type = read_string(file, member_of(file, data, "resultType", {"data"}), {"data.resultType"});
  if (type != "vector" && type != "matrix") {
    file.refuse("data.resultType", quoted(type), "\"vector\" or \"matrix\"");
  }
  SeriesReader reader(file, series);
  for (const dom::element entry : read_array(file, member_of(file, data, "result", {"data"}), {"data.result"})) {
    reader.read(read_object(file, entry, {"data.result"}), type == "vector" ? "value" : "values", type == "matrix");
  }
}

void read_answers(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  ScrapedSeries series(api_format);
  for (const std::filesystem::path& path : files) {
    JsonLines file(path);
    while (file.next()) read_answer(file, series);
  }
  series.hand_over(files.front(), sink);
}

bool is_prometheus_api(const FileHead& head) {
  const std::string_view json = head.json();
  return mentions_key(json, "status") && (mentions_key(json, "resultType") || mentions_key(json, "errorType"));
}

}  // namespace

CountsFormat prometheus_api_format() { return {api_format, is_prometheus_api, read_answers}; }

}  // namespace specdec::traces
