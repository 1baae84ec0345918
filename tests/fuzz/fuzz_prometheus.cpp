#include "tests/fuzz/serving_counts_reading.hpp"
#include "traces/serving/counts_formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec;
  fuzz::read_counts(data, size, traces::prometheus_api_format());
  fuzz::read_counts(data, size, traces::prometheus_text_format(), true);
  return fuzz::read_counts(data, size, traces::prometheus_text_format());
}
