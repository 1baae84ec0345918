#include "tests/fuzz/drained_source.hpp"
#include "traces/trace_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec::traces;
  return specdec::fuzz::read_recording(data, size, [](const std::filesystem::path& path) { return read_trace(path); });
}
