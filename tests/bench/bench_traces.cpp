// Speed of the full tier: every statistic of pairs of rows over 131072 tokens, against a plain loop that only reads
// them, in the same run. Everything that is compared takes turns; medians of the rounds.

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "analysis/core/row_statistics.hpp"
#include "tests/bench/timing.hpp"
#include "traces/formats/half_float.hpp"
#include "traces/formats/mapped_file.hpp"

using namespace specdec;
using traces::ElementType;
using traces::RowSpace;

namespace {

struct Options {
  std::int64_t vocab = 131072;
  std::int64_t positions = 512;
  int threads = 2;
  int rounds = 9;
  std::string folder = "/tmp";
};

/// Target and draft rows in memory or in a mapped file.
struct Pair {
  RowSpace space = RowSpace::probabilities;
  ElementType type = ElementType::f32;
  const std::byte* target = nullptr;
  const std::byte* draft = nullptr;
};

struct Case {
  std::string name;
  std::int64_t bytes_of_element = 4;
  std::function<double(std::int64_t position, core::RowScratch& scratch)> run;
  std::vector<double> seconds{};
};

/// Spreads the positions over threads that each keep to a core of their own.
double seconds_of(const Options& options, const Case& c) {
  std::vector<double> results(static_cast<std::size_t>(options.threads));
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < options.threads; ++k) {
      threads.emplace_back([&, k] {
        cpu_set_t core;
        CPU_ZERO(&core);
        CPU_SET(static_cast<unsigned>(k), &core);
        pthread_setaffinity_np(pthread_self(), sizeof core, &core);
        core::RowScratch scratch;
        const std::int64_t end = options.positions * (k + 1) / options.threads;
        for (std::int64_t t = options.positions * k / options.threads; t < end; ++t) {
          results[static_cast<std::size_t>(k)] += c.run(t, scratch);
        }
      });
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const double result : results) {
    if (!std::isfinite(result)) throw std::runtime_error(c.name + ": no finite result");
  }
  return seconds;
}

/// A loop that does nothing but read two streams.
double read_both(const float* p, const float* q, std::int64_t n) {
  std::array<float, 64> sum{};
  for (std::int64_t i = 0; i < n; i += 32) {
    for (std::size_t k = 0; k < 32; ++k) {
      sum[k] += p[static_cast<std::size_t>(i) + k];
      sum[k + 32] += q[static_cast<std::size_t>(i) + k];
    }
  }
  double total = 0;
  for (const float s : sum) total += double{s};
  return total;
}

/// Logits like a model's, with standard deviation 3, the draft's a noisy copy.
void make_rows(const Options& options, std::vector<float>& target, std::vector<float>& draft) {
  const auto vocab = static_cast<std::size_t>(options.vocab);
  target.resize(vocab * static_cast<std::size_t>(options.positions));
  draft.resize(target.size());
  std::mt19937_64 generator(1);
  std::normal_distribution<float> normal;
  constexpr std::size_t different = 4;
  for (std::size_t i = 0; i < std::min(different * vocab, target.size()); ++i) {
    target[i] = 3 * normal(generator);
    draft[i] = target[i] + 0.7F * normal(generator);
  }
  for (std::size_t i = different * vocab; i < target.size(); ++i) {
    target[i] = target[i - different * vocab];
    draft[i] = draft[i - different * vocab];
  }
}

std::vector<float> softmax(const std::vector<float>& logits, std::int64_t vocab) {
  std::vector<float> rows(logits.size());
  for (std::size_t begin = 0; begin < logits.size(); begin += static_cast<std::size_t>(vocab)) {
    double sum = 0;
    const std::size_t end = begin + static_cast<std::size_t>(vocab);
    for (std::size_t i = begin; i < end; ++i) sum += double{rows[i] = std::exp(logits[i])};
    for (std::size_t i = begin; i < end; ++i) rows[i] = static_cast<float>(double{rows[i]} / sum);
  }
  return rows;
}

/// Rounded to the nearest; for positive numbers below 2.
std::uint16_t half_of(float value, ElementType type) {
  if (type == ElementType::bf16)
    return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16U);
  if (value < 0x1p-14F) return static_cast<std::uint16_t>(std::lrint(value * 0x1p24F));
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x1000U - 0x38000000U) >> 13U);
}

std::vector<std::uint16_t> halves(const std::vector<float>& rows, ElementType type) {
  std::vector<std::uint16_t> out(rows.size());
  std::transform(rows.begin(), rows.end(), out.begin(), [type](float x) { return half_of(x, type); });
  return out;
}

template <class Vector>
const std::byte* bytes_of(const Vector& rows) {
  return reinterpret_cast<const std::byte*>(rows.data());
}

/// A mapped file of both rows, warm in the page cache.
traces::MappedFile write_and_map(const std::filesystem::path& path, const std::vector<float>& target,
                                 const std::vector<float>& draft) {
  {
    std::ofstream file(path, std::ios::binary);
    for (const auto* rows : {&target, &draft}) {
      file.write(reinterpret_cast<const char*>(rows->data()),
                 static_cast<std::streamsize>(rows->size() * sizeof(float)));
    }
    if (!file) throw std::runtime_error("cannot write " + path.string());
  }
  traces::MappedFile file(path);
  std::filesystem::remove(path);
  return file;
}

Case statistics_case(const Options& options, std::string name, const Pair& pair) {
  const std::int64_t size = traces::size_of(pair.type);
  return {std::move(name), size, [&options, pair, size](std::int64_t t, core::RowScratch& scratch) {
            traces::TargetRow p;
            traces::DraftRow q;
            p.space = q.space = pair.space;
            p.type = q.type = pair.type;
            p.vocab = q.vocab = options.vocab;
            p.data = pair.target + t * options.vocab * size;
            q.data = pair.draft + t * options.vocab * size;
            core::RowStatistics s;
            if (core::row_statistics(p, q, t % options.vocab, scratch, s)) throw std::runtime_error("a row is refused");
            return s.overlap;
          }};
}

void run(const Options& options) {
  std::vector<float> target_logits;
  std::vector<float> draft_logits;
  make_rows(options, target_logits, draft_logits);
  const std::vector<float> target = softmax(target_logits, options.vocab);
  const std::vector<float> draft = softmax(draft_logits, options.vocab);
  const auto target_f16 = halves(target, ElementType::f16);
  const auto draft_f16 = halves(draft, ElementType::f16);
  const auto target_bf16 = halves(target, ElementType::bf16);
  const auto draft_bf16 = halves(draft, ElementType::bf16);
  const auto mapped =
      write_and_map(std::filesystem::path(options.folder) / fmt::format("bench_traces.{}", ::getpid()), target, draft);

  const Pair f32{RowSpace::probabilities, ElementType::f32, bytes_of(target), bytes_of(draft)};
  const Pair f16{RowSpace::probabilities, ElementType::f16, bytes_of(target_f16), bytes_of(draft_f16)};
  const Pair bf16{RowSpace::probabilities, ElementType::bf16, bytes_of(target_bf16), bytes_of(draft_bf16)};
  const Pair logits{RowSpace::logits, ElementType::f32, bytes_of(target_logits), bytes_of(draft_logits)};
  const Pair file{RowSpace::probabilities, ElementType::f32, mapped.bytes().data(),
                  mapped.bytes().data() + mapped.bytes().size() / 2};
  std::vector<Case> cases;
  cases.push_back({"a loop that reads both", 4, [&](std::int64_t t, core::RowScratch&) {
                     const auto at = static_cast<std::size_t>(t * options.vocab);
                     return read_both(&target[at], &draft[at], options.vocab);
                   }});
  cases.push_back(statistics_case(options, "F32, everything", f32));
  cases.push_back(statistics_case(options, "F32, everything, mapped file", file));
  cases.push_back(statistics_case(options, "F16, everything", f16));
  cases.push_back(statistics_case(options, "BF16, everything", bf16));
  cases.push_back(statistics_case(options, "F32 logits, everything", logits));

  // The first round only warms up.
  for (int round = 0; round <= options.rounds; ++round) {
    for (Case& c : cases) {
      const double seconds = seconds_of(options, c);
      if (round > 0) c.seconds.push_back(seconds);
    }
  }
  const double read = bench::median(cases.front().seconds);
  fmt::print("{} positions over {} tokens, {} threads, medians of {} rounds\n", options.positions, options.vocab,
             options.threads, options.rounds);
  for (const Case& c : cases) {
    const double seconds = bench::median(c.seconds);
    const double bytes = static_cast<double>(2 * c.bytes_of_element * options.vocab * options.positions);
    fmt::print("{:32} {:8.0f} positions/s {:6.1f} GB/s  {:5.2f} of the loop's positions/s\n", c.name,
               static_cast<double>(options.positions) / seconds, bytes / seconds / 1e9, read / seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed of the full tier of recorded traces");
  Options options;
  app.add_option("--vocab", options.vocab, "Tokens, a multiple of 32")->capture_default_str();
  app.add_option("--positions", options.positions, "Pairs of rows")->capture_default_str();
  app.add_option("--threads", options.threads, "Each on a core of its own")->capture_default_str();
  app.add_option("--rounds", options.rounds)->capture_default_str();
  app.add_option("--folder", options.folder, "For the file that is mapped")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  run(options);
  return 0;
}
