#include <string_view>

#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/formats/gguf_header.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec::traces;
  const specdec::fuzz::FuzzedFile file(data, size);
  return specdec::fuzz::expect_file_errors_only([&] {
    const GgufHeader header(file.path());
    std::int64_t bytes = 0;
    for (const GgufTensor& tensor : header.tensors()) bytes += tensor.bytes;
    if (bytes < 0 || bytes > static_cast<std::int64_t>(size)) std::abort();
    for (const std::string_view key : {"general.alignment", "general.architecture", "a.block_count", "a.heads"}) {
      specdec::fuzz::expect_file_errors_only([&] { static_cast<void>(header.integers(key)); });
      specdec::fuzz::expect_file_errors_only([&] { static_cast<void>(header.text(key)); });
    }
  });
}
