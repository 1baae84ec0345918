// Prints what is wrong with a trace and what it holds, for run_trace_examples.py.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "traces/check_trace.hpp"

int main(int, char** arguments) {
  using namespace specdec::traces;
  const std::array<std::filesystem::path, 1> files = {arguments[1]};
  fmt::print("{} findings\n", check_trace(files).count);
  const TraceDescription is = describe_trace(*open_trace(files));
  fmt::print("{} positions, {} sequences, vocabulary {}\n", is.positions, is.sequences,
             is.metadata.vocab_size.value_or(0));
  for (const auto& tier : is.tiers) fmt::print("{}\n", name_of(tier.tier));
  for (const auto& [task, positions] : is.tasks) fmt::print("task {}: {}\n", task, positions);
}
