#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace specdec::tests {

/// A Llama shape with tied head and as many key heads as query heads.
struct Shape {
  std::int64_t width;
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t feed_forward;
  std::int64_t vocab_size;
  std::int64_t max_length;
};

struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// A Hugging Face checkpoint (config.json, model.safetensors in f32) with random weights, in a folder that is removed
/// with the object.
class RandomCheckpoint {
 public:
  /// @param known  the only tokens that the model can write, in increasing order; all if empty
  explicit RandomCheckpoint(const Shape& shape, const std::vector<std::int64_t>& known = {});

  const std::filesystem::path& folder() const { return folder_.path(); }
  /// By kind, and of each kind those of all layers, in the order of llama2.c's files.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

 private:
  TemporaryFolder folder_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace specdec::tests
