#include "tests/bench/llama2c_files.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

namespace specdec::bench {
namespace {

template <class T>
void write(std::ofstream& file, const T* data, std::size_t count) {
  file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(count * sizeof(T)));
}

/// Seven int32 of shape, the tensors, and two tables of rotary angles that llama2.c skips.
void write_model(const std::filesystem::path& path, const tests::Shape& s,
                 const std::vector<tests::NamedTensor>& tensors) {
  std::ofstream file(path, std::ios::binary);
  for (const std::int64_t n : {s.width, s.feed_forward, s.layers, s.heads, s.heads, s.vocab_size, s.max_length}) {
    const auto value = static_cast<std::int32_t>(n);
    write(file, &value, 1);
  }
  for (const tests::NamedTensor& tensor : tensors) write(file, tensor.values.data(), tensor.values.size());
  const std::vector<float> angles(static_cast<std::size_t>(s.max_length * (s.width / s.heads)));
  write(file, angles.data(), angles.size());
}

/// The longest word's length, then score, length and bytes of every word.
void write_tokenizer(const std::filesystem::path& path, std::int64_t vocab_size) {
  std::ofstream file(path, std::ios::binary);
  const std::int32_t longest = 16;
  write(file, &longest, 1);
  for (std::int64_t i = 0; i < vocab_size; ++i) {
    const std::string word = fmt::format(" {:x}", i);
    const float score = 0;
    const auto length = static_cast<std::int32_t>(word.size());
    write(file, &score, 1);
    write(file, &length, 1);
    write(file, word.data(), word.size());
  }
}

}  // namespace

void write_llama2c_files(const std::filesystem::path& folder, const tests::Shape& shape,
                         const std::vector<tests::NamedTensor>& tensors) {
  write_model(folder / "model.bin", shape, tensors);
  write_tokenizer(folder / "tokenizer.bin", shape.vocab_size);
}

}  // namespace specdec::bench
