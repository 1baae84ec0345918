#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/transformer/weights.hpp"
#include "traces/formats/safetensors.hpp"

namespace specdec::sim {

using TensorShape = std::vector<std::int64_t>;

/// The tensors of one or several safetensors files; the reader first states which must be present.
class TensorStore {
 public:
  /// model.safetensors of a checkpoint's folder, or the shards listed in model.safetensors.index.json.
  /// @throws FileError if a file is not readable, or a shard lacks what the index lists for it
  static TensorStore of_checkpoint(const std::filesystem::path& folder);
  /// One file whose metadata have this `format` and version 1, and the target's `hidden_size`, `vocab_size` and
  /// `num_hidden_layers`.
  /// @throws FileError if the file is not readable or its metadata differ
  static TensorStore of_heads(const std::filesystem::path& path, std::string_view format,
                              const TransformerConfig& target);

  bool has(const std::string& name) const { return tensors_.contains(name); }
  /// Checks a tensor's presence, shape and type. @throws FileError naming the tensor
  void require(const std::string& name, const TensorShape& shape);
  /// The tokens that a draft of a smaller vocabulary knows, in the manner of EAGLE-3: token i + d2t[i] of the target's
  /// is row i of the draft's head. Empty if it knows all.
  /// @param count  of them, vocab_size for all; empty for as many as there are, all without a tensor d2t
  /// @throws FileError naming the tensor or entry if the tokens do not increase or are outside [0, vocab_size)
  std::vector<Token> known_tokens(std::optional<std::int64_t> count, std::int64_t vocab_size);
  /// That of a required tensor.
  traces::ElementType type_of(const std::string& name) const { return tensors_.at(name).tensor->type; }
  /// Passes every row of a required tensor (its last dimension) to `take(row, values)`.
  /// @throws FileError naming the element that is not finite
  void for_each_row(const std::string& name,
                    const std::function<void(std::size_t row, std::span<const float> values)>& take) const;
  /// The same as elements of a type, f32 or the tensor's own.
  void for_each_row(const std::string& name, traces::ElementType type,
                    const std::function<void(std::size_t row, const std::byte* elements)>& take) const;
  /// Rejects tensors that were not required: they belong to another architecture.
  void require_nothing_else(const std::function<bool(const std::string&)>& harmless) const;

 private:
  struct Entry {
    const traces::Tensor* tensor;
    const traces::SafetensorsFile* file;
  };
  /// Maps tensor names to file names.
  using WeightMap = std::map<std::string, std::string>;

  TensorStore(std::filesystem::path path, std::string demanding)
      : path_(std::move(path)), demanding_(std::move(demanding)) {}

  const traces::SafetensorsFile& open_whole(const std::filesystem::path& path);
  void open_shards(const std::filesystem::path& folder, const WeightMap& map);
  static WeightMap read_weight_map(const std::filesystem::path& path);

  std::filesystem::path path_;
  /// The source of the required shapes, for messages.
  std::string demanding_;
  std::vector<std::unique_ptr<traces::SafetensorsFile>> files_;
  std::map<std::string, Entry> tensors_;
  std::set<std::string> required_;
};

/// Reads weights in two passes over the same walk: the first checks every tensor, the second allocates and reads.
class WeightReader {
 public:
  explicit WeightReader(TensorStore& store) : store_(store) {}

  /// True in the first pass, in which nothing is written.
  bool checking() const { return checking_; }
  /// Ends the first pass: all matrices will be contiguous in `memory`.
  void begin_reading(AlignedBytes& memory);

  /// A tensor [count, width], copied unchanged.
  void table(const std::string& name, std::int64_t count, std::int64_t width, std::vector<float>& out);
  /// A tensor [size], appended to `out`.
  void vector(const std::string& name, std::int64_t size, AlignedFloats& out);
  /// A norm's weight [width].
  void norm_weight(const std::string& name, std::int64_t width, AlignedFloats& out);
  /// A matrix stored [rows, depth].
  void matrix(const std::string& name, std::int64_t rows, std::int64_t depth, PackedMatrix& out);
  struct Part {
    std::string name;
    std::int64_t rows;
  };
  /// The rows of another matrix with these numbers.
  void rows_of(const PackedMatrix& other, std::span<const Token> numbers, PackedMatrix& out);
  /// Matrices NAME.weight stored [out, in], one under the other, with NAME.bias.
  void rows(const std::vector<Part>& parts, std::int64_t depth, bool has_bias, Linear& out);
  /// A matrix NAME.weight stored [in, out], with NAME.bias.
  void columns(const std::string& name, std::int64_t depth, std::int64_t count, Linear& out);
  /// A block of the Llama family; `prefix` ends with a dot.
  void llama_block(const TransformerConfig& config, const std::string& prefix, TransformerBlock& out);

 private:
  /// Reserves memory for a matrix, or assigns it.
  void allocate(std::int64_t rows, std::int64_t depth, traces::ElementType type, PackedMatrix& out);
  /// Copies a matrix to the rows of `out` from `first`.
  void copy_rows(const std::string& name, std::size_t first, PackedMatrix& out);

  TensorStore& store_;
  bool checking_ = true;
  std::size_t matrix_bytes_ = 0;
  std::byte* next_matrix_ = nullptr;
};

}  // namespace specdec::sim
