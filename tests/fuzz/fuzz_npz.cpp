#include "tests/fuzz/drained_source.hpp"
#include "traces/formats/recording_formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec::traces;
  return specdec::fuzz::read_recording(data, size, [](const std::filesystem::path& path) {
    return open_npz(path);
  });
}
