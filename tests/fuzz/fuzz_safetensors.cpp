#include <vector>

#include "tests/fuzz/fuzzed_file.hpp"
#include "traces/formats/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec::traces;
  const specdec::fuzz::FuzzedFile file(data, size);
  return specdec::fuzz::expect_file_errors_only([&] {
    const SafetensorsFile container(file.path());
    for (const Tensor& tensor : container.tensors()) {
      if (tensor.type != ElementType::f32 && tensor.type != ElementType::f16 && tensor.type != ElementType::bf16)
        continue;
      std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
      read_floats(tensor, 0, values);
    }
  });
}
