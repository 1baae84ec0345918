#include <string_view>

#include "analysis/cost/model_config.hpp"
#include "tests/fuzz/fuzzed_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::expect_file_errors_only([&] { cost::model_spec_from_document(text, "model.json"); });
  const fuzz::FuzzedFile file(data, size);
  return fuzz::expect_file_errors_only([&] { cost::model_spec_from_gguf(file.path()); });
}
