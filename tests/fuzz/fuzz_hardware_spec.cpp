#include "analysis/cost/hardware_spec.hpp"
#include "tests/fuzz/fuzzed_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const specdec::fuzz::FuzzedFile file(data, size);
  return specdec::fuzz::expect_file_errors_only([&] { specdec::cost::read_hardware_spec(file.path()); });
}
