// Speed of the transformer: greedy decoding of a 15M-parameter shape, alternating with llama2.c's `run` when its path
// is given; the cost of a block of tokens against one token; the shapes of the shipped pair. Medians of several rounds
// in which everything that is compared takes turns.

#include <fmt/format.h>
#include <stdio.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/transformer/transformer.hpp"
#include "tests/bench/llama2c_files.hpp"
#include "tests/bench/timing.hpp"
#include "tests/support/random_checkpoint.hpp"

using namespace specdec;
using sim::Token;
using sim::Transformer;

namespace {

const tests::Shape shape_15m{288, 6, 6, 768, 32000, 512};
const tests::Shape shape_target{192, 6, 6, 512, 2048, 1024};
const tests::Shape shape_draft{48, 2, 2, 112, 2048, 1024};

struct Options {
  int threads = 2;
  int rounds = 7;
  std::string llama2c;
  std::string target;
  std::string draft;
};

/// Decodes greedily from the beginning-of-sequence token; returns tokens per second.
double greedy_tokens_per_second(Transformer& model, int tokens) {
  std::vector<float> logits(static_cast<std::size_t>(model.vocab_size()));
  Token token = 1;
  const auto step = [&] {
    model.score_logits(std::span(&token, 1), logits);
    token = static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  model.roll_back(0);
  step();
  const auto decode = [&] {
    for (int i = 1; i < tokens; ++i) step();
  };
  return (tokens - 1) / bench::seconds_of(decode).wall;
}

/// Tokens per second that llama2.c's run prints: from the second token on.
double llama2c_tokens_per_second(const Options& options, const std::filesystem::path& folder, int tokens) {
  const std::string command =
      fmt::format("OMP_NUM_THREADS={} '{}' '{}' -z '{}' -t 0 -n {} 2>&1 >/dev/null", options.threads, options.llama2c,
                  (folder / "model.bin").string(), (folder / "tokenizer.bin").string(), tokens);
  FILE* pipe = ::popen(command.c_str(), "r");
  double speed = 0;
  if (pipe == nullptr || std::fscanf(pipe, "achieved tok/s: %lf", &speed) != 1) {
    throw std::runtime_error("no speed from: " + command);
  }
  ::pclose(pipe);
  return speed;
}

void decode_against_llama2c(const Options& options, const std::filesystem::path& folder) {
  Transformer model(sim::load_checkpoint(folder), {.threads = options.threads});
  constexpr int tokens = 256;
  std::vector<double> ours;
  std::vector<double> theirs;
  greedy_tokens_per_second(model, tokens);
  for (int round = 0; round < options.rounds; ++round) {
    ours.push_back(greedy_tokens_per_second(model, tokens));
    if (!options.llama2c.empty()) theirs.push_back(llama2c_tokens_per_second(options, folder, tokens));
  }
  fmt::print("greedy decoding, 15M shape, {} threads, {} tokens: {:.0f} tokens/s", options.threads, tokens,
             bench::median(ours));
  if (!theirs.empty()) {
    fmt::print("; llama2.c {:.0f} tokens/s; ratio {:.2f}", bench::median(theirs),
               bench::median(ours) / bench::median(theirs));
  }
  fmt::print("\n");
}

enum class Output { logits, probabilities };

/// Median seconds to score a block of n tokens, for n = 1..longest, after a prefix of `context` tokens.
std::vector<double> block_seconds(Transformer& model, Output output, int rounds, std::size_t longest,
                                  std::size_t context) {
  const auto width = static_cast<std::size_t>(model.vocab_size());
  const std::vector<Token> prefix(context, 5);
  std::vector<float> logits(longest * width);
  std::vector<double> rows(longest * width);
  model.roll_back(0);
  model.score(prefix, {});
  const auto score = [&](std::size_t n) {
    if (output == Output::logits) {
      model.score_logits(std::span(prefix).first(n), std::span(logits).first(n * width));
    } else {
      model.score(std::span(prefix).first(n), std::span(rows).first(n * width));
    }
    model.roll_back(static_cast<std::int64_t>(context));
  };
  const int repeats = std::max(3, static_cast<int>(0.01 / bench::seconds_of([&] { score(1); }).wall));
  std::vector<std::vector<double>> seconds(longest);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t n = 1; n <= longest; ++n) {
      const auto score_often = [&] {
        for (int i = 0; i < repeats; ++i) score(n);
      };
      seconds[n - 1].push_back(bench::seconds_of(score_often).wall / repeats);
    }
  }
  std::vector<double> medians;
  for (auto& s : seconds) medians.push_back(bench::median(s));
  return medians;
}

void print_blocks(const std::string& name, const std::vector<double>& seconds) {
  fmt::print("{}: one token {:.1f} us; v(n) =", name, 1e6 * seconds.front());
  for (std::size_t n = 1; n <= seconds.size(); ++n) fmt::print(" {}:{:.2f}", n, seconds[n - 1] / seconds.front());
  fmt::print("\n");
}

void time_pair(const Options& options, const std::filesystem::path& target, const std::filesystem::path& draft) {
  const auto target_weights = sim::load_checkpoint(target);
  const auto draft_weights = sim::load_checkpoint(draft);
  for (int threads = 1; threads <= options.threads; ++threads) {
    Transformer target_model(target_weights, {.threads = threads});
    Transformer draft_model(draft_weights, {.threads = 1});
    const auto target_seconds = block_seconds(target_model, Output::probabilities, options.rounds, 9, 256);
    const auto draft_seconds = block_seconds(draft_model, Output::probabilities, options.rounds, 2, 256);
    print_blocks(fmt::format("target, {} threads", threads), target_seconds);
    print_blocks("draft, 1 thread", draft_seconds);
    fmt::print("c = {:.4f}\n", draft_seconds.front() / target_seconds.front());
  }
}

void run(const Options& options) {
  {
    const tests::RandomCheckpoint checkpoint(shape_15m);
    bench::write_llama2c_files(checkpoint.folder(), shape_15m, checkpoint.tensors());
    decode_against_llama2c(options, checkpoint.folder());
    Transformer model(sim::load_checkpoint(checkpoint.folder()), {.threads = options.threads});
    print_blocks(fmt::format("15M shape, {} threads, logits", options.threads),
                 block_seconds(model, Output::logits, options.rounds, 9, 128));
    print_blocks(fmt::format("15M shape, {} threads, probabilities", options.threads),
                 block_seconds(model, Output::probabilities, options.rounds, 9, 128));
  }
  if (!options.target.empty()) return time_pair(options, options.target, options.draft);
  const tests::RandomCheckpoint target(shape_target);
  const tests::RandomCheckpoint draft(shape_draft);
  time_pair(options, target.folder(), draft.folder());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of the transformer");
  app.add_option("--threads", options.threads, "Threads of the target, and of llama2.c")->check(CLI::Range(1, 64));
  app.add_option("--rounds", options.rounds, "Rounds whose median is printed")->check(CLI::Range(1, 1000));
  app.add_option("--llama2c", options.llama2c, "llama2.c's run, built by gcc -Ofast -march=native -fopenmp run.c -lm")
      ->check(CLI::ExistingFile);
  auto* target = app.add_option("--target", options.target, "Checkpoint to time instead of the shipped target's shape");
  target->needs(app.add_option("--draft", options.draft, "Checkpoint to time instead of the shipped draft's shape"));
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_transformer: error: {}\n", error.what());
    return EXIT_FAILURE;
  }
}
