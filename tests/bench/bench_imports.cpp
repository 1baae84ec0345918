// Speed of the importers of JSON lines on one core: megabytes of file a second of processor time, and the share of
// simdjson's own parse of the same bytes in the same run. The files are made of a formula, written to a temporary
// folder and read from the page cache; medians of several rounds in which everything that is compared takes turns.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/timing.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/recording_formats.hpp"

using namespace specdec;

namespace {

struct Options {
  std::int64_t megabytes = 300;
  int rounds = 7;
};

/// As engines print them: the shortest text of a double, 17 digits as a rule.
std::string logprob(bench::Spread& spread) { return fmt::format("{}", std::log(spread.next() * 0.3 + 1e-6)); }

constexpr int tokens_of_a_request = 512;

template <class F>
std::string list(const F& element) {
  std::string text = "[";
  for (int i = 0; i < tokens_of_a_request; ++i) text.append(i == 0 ? "" : ",").append(element(i));
  return text + "]";
}

std::string record_line(bench::Spread& spread) {
  const auto ids = list([&](int) { return fmt::format("{}", spread.below(150000)); });
  const auto model = [&] {
    const auto logprobs = list([&](int) { return logprob(spread); });
    const auto ranks = list([&](int) { return fmt::format("{}", 1 + spread.below(40)); });
    return fmt::format(R"({{"logprobs":{},"ranks":{}}})", logprobs, ranks);
  };
  return std::string(R"({"id":"q","task":"prose","prompt_tokens":31,"token_ids":)") + ids + R"(,"target":)" + model() +
         R"(,"draft":)" + model() + "}\n";
}

/// Entries of vLLM's prompt_logprobs: the given token, and where `top` > 0 more up to `top` + 1.
std::string prompt_line(bench::Spread& spread, int top) {
  std::int64_t token = 0;
  const auto entry = [&](std::int64_t id, int rank) {
    return fmt::format(R"("{}":{{"logprob":{},"rank":{},"decoded_token":" tok"}})", id,
                       std::log((spread.next() + 1e-3) / (2.0 * (top + 2))), rank);
  };
  const auto row = [&](int i) {
    if (i == 0) return std::string("null");
    token = (token + 7919) % 150000;
    std::string text = "{";
    text += entry(token, top + 9);
    for (int j = 1; j <= top; ++j) text.append(",").append(entry(token + j, j));
    return text + "}";
  };
  return std::string(
             R"({"id":"cmpl-1","model":"m","choices":[{"index":0,"text":" x","logprobs":null,"prompt_logprobs":)") +
         list(row) + R"(}],"usage":{"prompt_tokens":512}})" + "\n";
}

std::string completion_line(bench::Spread& spread) {
  std::int64_t token = 0;
  const auto tokens = list([&](int) { return fmt::format(R"("token_id:{}")", token = (token + 7919) % 150000); });
  return std::string(R"({"model":"m","choices":[{"index":0,"logprobs":{"text_offset":)") +
         list([](int i) { return fmt::format("{}", 4 * i); }) + R"(,"token_logprobs":)" +
         list([&](int) { return logprob(spread); }) + R"(,"tokens":)" + tokens + R"(,"top_logprobs":null}}]})" + "\n";
}

std::string sglang_line(bench::Spread& spread) {
  std::int64_t token = 0;
  const auto entry = [&](int i) {
    token = (token + 7919) % 150000;
    return i == 0 ? fmt::format("[null,{},null]", token) : fmt::format("[{},{},null]", logprob(spread), token);
  };
  return std::string(R"({"text":"x","meta_info":{"prompt_tokens":512,"input_token_logprobs":)") + list(entry) + "}}\n";
}

std::int64_t positions_of(traces::PositionSource& source) {
  std::int64_t positions = 0;
  for (traces::PositionBatch batch; source.read(batch);) positions += batch.size;
  return positions;
}

/// Seconds to parse every document and look at nothing.
double parse_seconds(const std::filesystem::path& path) {
  traces::JsonLines file(path);
  const auto parse = [&] {
    while (file.next()) {
    }
  };
  return bench::seconds_of(parse).processor;
}

struct Shape {
  std::string name;
  std::function<std::string(bench::Spread&)> line;
  bool pair = true;
};

void time_shape(const Shape& shape, const Options& options) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "recording.jsonl";
  const std::int64_t bytes_wanted = options.megabytes * 1000000 / (shape.pair ? 2 : 1);
  {
    std::ofstream file(path, std::ios::binary);
    if (!shape.pair)
      file << R"({"format":"specdec-record","version":1})"
           << "\n";
    bench::Spread spread;
    for (std::int64_t written = 0; written < bytes_wanted;) {
      const std::string line = shape.line(spread);
      file << line;
      written += static_cast<std::int64_t>(line.size());
    }
  }
  const double megabytes = 1e-6 * static_cast<double>(std::filesystem::file_size(path)) * (shape.pair ? 2 : 1);
  std::vector<double> import;
  std::vector<double> parse;
  std::int64_t positions = 0;
  const auto read = [&] {
    positions =
        positions_of(shape.pair ? *traces::open_paired_recordings(path, path) : *traces::open_request_record(path));
  };
  for (int round = 0; round < options.rounds; ++round) {
    import.push_back(bench::seconds_of(read).processor);
    parse.push_back(parse_seconds(path) * (shape.pair ? 2 : 1));
  }
  fmt::print("{:<44} {:4.0f} MB/s, {:5.2f} million positions/s; parse alone {:4.0f} MB/s, ratio {:.2f}\n", shape.name,
             megabytes / bench::median(import), 1e-6 * static_cast<double>(positions) / bench::median(import),
             megabytes / bench::median(parse), bench::median(parse) / bench::median(import));
}  // namespace

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of the importers of JSON lines, one core");
  app.add_option("--megabytes", options.megabytes, "size of each recording")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const std::vector<Shape> shapes = {
      {"record of requests", record_line, false},
      {"pair of vLLM prompt_logprobs, top 0", [](bench::Spread& s) { return prompt_line(s, 0); }},
      {"pair of vLLM prompt_logprobs, top 8", [](bench::Spread& s) { return prompt_line(s, 8); }},
      {"pair of completions, token_id:N", completion_line},
      {"pair of SGLang input_token_logprobs", sglang_line},
  };
  for (const Shape& shape : shapes) time_shape(shape, options);
  return 0;
}
