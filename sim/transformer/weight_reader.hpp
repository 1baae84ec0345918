#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/transformer/weights.hpp"
#include "traces/formats/safetensors.hpp"

namespace specdec::sim {

using TensorShape = std::vector<std::int64_t>;

/// The tensors of one safetensors file or of several; whoever reads them says first what must be there.
class TensorStore {
 public:
  /// model.safetensors of a checkpoint's folder, or the shards that model.safetensors.index.json names.
  /// @throws FileError if a file is not readable, or a shard lacks what the index says it has
  static TensorStore of_checkpoint(const std::filesystem::path& folder);
  /// One file whose metadata has this `format` and version 1, and as `hidden_size`, `vocab_size` and
  /// `num_hidden_layers` those of the target.
  /// @throws FileError if the file is not readable or its metadata is another
  static TensorStore of_heads(const std::filesystem::path& path, std::string_view format,
                              const TransformerConfig& target);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Checks a tensor's presence, shape and type. @throws FileError naming the tensor
  void require(const std::string& name, const TensorShape& shape);
  /// Hands every row of a required tensor (its last dimension) to `take(row, values)`.
  /// @throws FileError naming the element that is not finite
  void for_each_row(const std::string& name,
                    const std::function<void(std::size_t row, std::span<const float> values)>& take) const;
  /// Refuses tensors that nobody required: they belong to another architecture.
  void require_nothing_else(const std::function<bool(const std::string&)>& harmless) const;

 private:
  struct Entry {
    const traces::Tensor* tensor;
    const traces::SafetensorsFile* file;
  };
  /// From tensor to file name.
  using WeightMap = std::map<std::string, std::string>;

  TensorStore(std::filesystem::path path, std::string demanding)
      : path_(std::move(path)), demanding_(std::move(demanding)) {}

  const traces::SafetensorsFile& open_whole(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& folder, const WeightMap& map);
  static WeightMap read_weight_map(const std::filesystem::path& path);

  std::filesystem::path path_;
  /// What the shapes come from, in messages.
  std::string demanding_;
  std::vector<std::unique_ptr<traces::SafetensorsFile>> files_;
  std::map<std::string, Entry> tensors_;
  std::set<std::string> required_;
};

/// Reads weights in two passes over the same walk: the first checks every tensor, the second allocates and reads.
class WeightReader {
 public:
  explicit WeightReader(TensorStore& store) : store_(store) {}

  /// In the first pass nothing is written.
  bool checking() const { return checking_; }
  /// Ends the first pass: all matrices will lie end to end in `memory`.
  void begin_reading(AlignedFloats& memory);

  /// A tensor [count, width] as it is.
  void table(const std::string& name, std::int64_t count, std::int64_t width, std::vector<float>& out);
  /// A tensor [size], appended to what `out` has.
  void vector(const std::string& name, std::int64_t size, AlignedFloats& out);
  /// A norm's weight [width].
  void norm_weight(const std::string& name, std::int64_t width, AlignedFloats& out);
  /// A matrix stored [rows, depth].
  void matrix(const std::string& name, std::int64_t rows, std::int64_t depth, PackedMatrix& out);
  struct Part {
    std::string name;
    std::int64_t rows;
  };
  /// Matrices NAME.weight stored [out, in], one under the other, with NAME.bias.
  void rows(const std::vector<Part>& parts, std::int64_t depth, bool has_bias, Linear& out);
  /// A matrix NAME.weight stored [in, out], with NAME.bias.
  void columns(const std::string& name, std::int64_t depth, std::int64_t count, Linear& out);
  /// A block of the Llama family; `prefix` ends with a dot.
  void llama_block(const TransformerConfig& config, const std::string& prefix, TransformerBlock& out);

 private:
  /// Reserves memory for a matrix, or hands it out.
  void allocate(std::int64_t rows, std::int64_t depth, PackedMatrix& out);

  TensorStore& store_;
  bool checking_ = true;
  std::size_t matrix_floats_ = 0;
  float* next_matrix_ = nullptr;
};

}  // namespace specdec::sim
