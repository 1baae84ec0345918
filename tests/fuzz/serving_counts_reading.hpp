#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::fuzz {

/// Reads the fuzzer's bytes as a file of a format of counts. Counts below 0 are a defect.
inline int read_counts(const std::uint8_t* data, std::size_t size, const traces::CountsFormat& format,
                       bool plain_windows = false) {
  const FuzzedFile file(data, size);
  const std::array<std::filesystem::path, 1> files = {file.path()};
  const auto check = [](const traces::ServingCounts& counts) {
    for (const auto& value : {counts.rounds, counts.drafted, counts.accepted, counts.emitted}) {
      if (value && !(*value >= 0)) std::abort();
    }
  };
  return expect_file_errors_only([&] {
    format.recognises(traces::FileHead::of(files.front()));
    format.read(files, {check, [](const specdec::Note&) {}, plain_windows});
  });
}

}  // namespace specdec::fuzz
