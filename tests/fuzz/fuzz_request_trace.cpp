#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/formats/request_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const specdec::fuzz::FuzzedFile file(data, size);
  return specdec::fuzz::expect_file_errors_only([&] { specdec::traces::read_request_trace(file.path()); });
}
