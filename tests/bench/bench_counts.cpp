// Speed at which counts of speculation are read from JSON lines on one core: megabytes of file a second of processor
// time, and the share of simdjson's own parse of the same bytes in the same run. The files are made of a formula,
// written to a temporary folder and read from the page cache; medians of several rounds in which both take turns.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/timing.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/serving/read_serving_counts.hpp"

using namespace specdec;

namespace {

struct Options {
  std::int64_t megabytes = 300;
  int rounds = 7;
};

constexpr int gamma_of_rounds = 4;

struct Rounds {
  std::vector<std::int64_t> accepted;
  std::array<std::int64_t, gamma_of_rounds + 1> histogram{};
  std::int64_t sum = 0;

  Rounds(bench::Spread& spread, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      accepted.push_back(std::min<std::int64_t>(gamma_of_rounds, spread.below(8)));
      ++histogram[static_cast<std::size_t>(accepted.back())];
      sum += accepted.back();
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(accepted.size()); }
};

/// An answer of about as many tokens as the rounds put out.
std::string answer(bench::Spread& spread, const Rounds& rounds) {
  constexpr std::array<const char*, 12> words = {" the",  " answer", " is", " that", " a",  " speculative",
                                                 " step", " drafts", ",",   "\\n",   " of", " \\\"tokens\\\""};
  std::string text;
  for (std::int64_t i = 0; i < rounds.count() + rounds.sum; ++i) {
    text += words[static_cast<std::size_t>(spread.below(static_cast<std::int64_t>(words.size())))];
  }
  return text;
}

/// A chat completion with vLLM's counts of it, with or without an entry a round, and without its text.
std::string vllm_line(bench::Spread& spread, bool detailed, bool text = true) {
  const Rounds rounds(spread, 40 + spread.below(200));
  const auto histogram = fmt::format("[{}]", fmt::join(rounds.histogram, ","));
  const std::string drafted = fmt::format("{}", gamma_of_rounds);
  std::string by_round;
  if (detailed) {
    by_round = fmt::format(R"(,"per_step_accepted":[{}],"per_step_drafted":[)", fmt::join(rounds.accepted, ","));
    for (std::int64_t i = 0; i < rounds.count(); ++i) by_round.append(i == 0 ? "" : ",").append(drafted);
    by_round += "]";
  }
  const auto steps = static_cast<double>(rounds.count());
  const auto sum = static_cast<double>(rounds.sum);
  return fmt::format(
      R"({{"id":"chatcmpl-{0:032x}","object":"chat.completion","created":1767225600,"model":"meta-llama/Llama-3.1-8B",)"
      R"("choices":[{{"index":0,"message":{{"role":"assistant","content":"{1}","refusal":null,"tool_calls":[]}},)"
      R"("logprobs":null,"finish_reason":"stop","stop_reason":null}}],"usage":{{"prompt_tokens":31,)"
      R"("total_tokens":{2},"completion_tokens":{2},"prompt_tokens_details":null}},"prompt_logprobs":null,)"
      R"("metrics":{{"speculative_decoding":{{"mean_acceptance_length":{3},"draft_acceptance_rate":{4},)"
      R"("acceptance_histogram":{5},"acceptance_histogram_by_draft_length":{{"{6}":{5}}},"num_spec_steps":{7},)"
      R"("num_accepted_draft_tokens":{8},"num_draft_tokens":{9},"num_spec_tokens":{6}{10}}}}}}})"
      "\n",
      spread.below(1 << 30), text ? answer(spread, rounds) : "", rounds.count() + rounds.sum, 1 + sum / steps,
      sum / (steps * gamma_of_rounds), histogram, drafted, rounds.count(), rounds.sum, rounds.count() * gamma_of_rounds,
      by_round);
}

std::string sglang_line(bench::Spread& spread) {
  const Rounds rounds(spread, 40 + spread.below(200));
  return fmt::format(
      R"({{"text":"{}","meta_info":{{"id":"{:032x}","finish_reason":{{"type":"stop","matched":2}},"prompt_tokens":31,)"
      R"("completion_tokens":{},"cached_tokens":1,"e2e_latency":2.5,"spec_verify_ct":{},"spec_accept_rate":0.5,)"
      R"("spec_accept_length":2.5,"spec_num_correct_drafts":{},"spec_num_proposed_drafts":{},)"
      R"("spec_correct_drafts_histogram":[{}]}}}})"
      "\n",
      answer(spread, rounds), spread.below(1 << 30), rounds.count() + rounds.sum + 1, rounds.count(), rounds.sum,
      rounds.count() * gamma_of_rounds, fmt::join(rounds.histogram, ","));
}

/// Seconds to parse every document and look at nothing.
double parse_seconds(const std::filesystem::path& path) {
  const auto parse = [&] {
    traces::JsonLines file(path);
    while (file.next()) {
    }
  };
  return bench::seconds_of(parse).processor;
}

struct Shape {
  std::string name;
  std::function<std::string(bench::Spread&)> line;
};

void time_shape(const Shape& shape, const Options& options) {
  const tests::TemporaryFolder folder;
  const std::vector<std::filesystem::path> files = {folder.path() / "responses.jsonl"};
  {
    std::ofstream file(files.front(), std::ios::binary);
    bench::Spread spread;
    for (std::int64_t written = 0; written < options.megabytes * 1000000;) {
      const std::string line = shape.line(spread);
      file << line;
      written += static_cast<std::int64_t>(line.size());
    }
  }
  const double megabytes = 1e-6 * static_cast<double>(std::filesystem::file_size(files.front()));
  std::vector<double> import;
  std::vector<double> parse;
  std::int64_t requests = 0;
  double rounds = 0;
  traces::CountsSink sink;
  sink.take = [&](const traces::ServingCounts& counts) {
    ++requests;
    rounds += counts.rounds.value_or(0);
  };
  sink.warn = [](const Note&) {};
  const auto read = [&] {
    requests = 0;
    rounds = 0;
    traces::read_serving_counts(files, sink);
  };
  for (int round = 0; round < options.rounds; ++round) {
    import.push_back(bench::seconds_of(read).processor);
    parse.push_back(parse_seconds(files.front()));
  }
  fmt::print(
      "{:<36} {:4.0f} MB/s, {:6.0f} bytes a request, {:.0f} rounds in all; parse alone {:4.0f} MB/s, ratio {:.2f}\n",
      shape.name, megabytes / bench::median(import), 1e6 * megabytes / static_cast<double>(requests), rounds,
      megabytes / bench::median(parse), bench::median(parse) / bench::median(import));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of reading counts from JSON lines, one core");
  app.add_option("--megabytes", options.megabytes, "size of each file")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const std::vector<Shape> shapes = {
      {"vLLM chat completions, summary", [](bench::Spread& s) { return vllm_line(s, false); }},
      {"vLLM chat completions, detailed", [](bench::Spread& s) { return vllm_line(s, true); }},
      {"vLLM chat completions without text", [](bench::Spread& s) { return vllm_line(s, false, false); }},
      {"SGLang responses with meta_info", sglang_line},
  };
  for (const Shape& shape : shapes) time_shape(shape, options);
  return 0;
}
