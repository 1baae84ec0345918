#include "tests/fuzz/serving_counts_reading.hpp"
#include "traces/serving/counts_formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  specdec::fuzz::read_counts(data, size, specdec::traces::engine_log_format(), true);
  return specdec::fuzz::read_counts(data, size, specdec::traces::engine_log_format());
}
