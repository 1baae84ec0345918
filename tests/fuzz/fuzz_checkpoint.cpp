#include "sim/ngram_tables.hpp"
#include "sim/transformer/config.hpp"
#include "tests/fuzz/fuzzed_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace specdec;
  const fuzz::FuzzedFile file(data, size);
  fuzz::expect_file_errors_only([&] { sim::read_config(file.path()); });
  return fuzz::expect_file_errors_only([&] { sim::read_ngram_tables(file.path()); });
}
