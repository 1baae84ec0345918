#include "sim/transformer/weight_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::sim {
namespace {

using nlohmann::json;
using traces::FileError;
using traces::SafetensorsFile;
using traces::Tensor;

[[noreturn]] void refuse(const SafetensorsFile& file, const Tensor& tensor, const char* what, std::string found,
                         std::string expected) {
  throw FileError(file.path(), FileError::byte(tensor.offset), tensor.name + "." + what, std::move(found),
                  std::move(expected));
}

void require_metadata(const SafetensorsFile& file, const std::string& key, const std::string& expected,
                      const std::string& reason = "") {
  const auto entry = file.metadata().find(key);
  const std::string found = entry == file.metadata().end() ? "missing" : entry->second;
  if (found != expected) throw FileError(file.path(), "metadata " + key, found, expected + reason);
}

}  // namespace

TensorStore TensorStore::of_checkpoint(const std::filesystem::path& folder) {
  const auto single = folder / "model.safetensors";
  const auto index = folder / "model.safetensors.index.json";
  const bool whole = std::filesystem::exists(single) || !std::filesystem::exists(index);
  TensorStore store(whole ? single : index, "config.json");
  if (whole) {
    store.open_whole(single);
  } else {
    store.open_shards(folder, read_weight_map(index));
  }
  return store;
}

TensorStore TensorStore::of_heads(const std::filesystem::path& path, std::string_view format,
                                  const TransformerConfig& target) {
  TensorStore store(path, "the target");
  const SafetensorsFile& file = store.open_whole(path);
  require_metadata(file, "format", std::string(format));
  require_metadata(file, "version", "1");
  const auto require_size = [&](const char* key, std::int64_t size) {
    require_metadata(file, key, fmt::format("{}", size), ", as the target has");
  };
  require_size("hidden_size", target.width);
  require_size("vocab_size", target.vocab_size);
  require_size("num_hidden_layers", target.layers);
  return store;
}

const SafetensorsFile& TensorStore::open_whole(const std::filesystem::path& path) {
  const auto& file = files_.emplace_back(std::make_unique<SafetensorsFile>(path));
  for (const Tensor& tensor : file->tensors()) tensors_.emplace(tensor.name, Entry{&tensor, file.get()});
  return *file;
}

void TensorStore::open_shards(const std::filesystem::path& folder, const WeightMap& map) {
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, shard] : map) {
    if (opened.contains(shard)) continue;
    const auto& file = files_.emplace_back(std::make_unique<SafetensorsFile>(folder / shard));
    opened.emplace(shard, file.get());
    for (const Tensor& tensor : file->tensors()) {
      const auto mapped = map.find(tensor.name);
      if (mapped != map.end() && mapped->second == shard) tensors_.emplace(tensor.name, Entry{&tensor, file.get()});
    }
  }
  for (const auto& [name, shard] : map) {
    if (!has(name)) {
      throw FileError(folder / shard, name, "missing", "in this file, as model.safetensors.index.json says");
    }
  }
}

TensorStore::WeightMap TensorStore::read_weight_map(const std::filesystem::path& path) {
  const traces::MappedFile file(path);
  const auto refuse_twice = [&](const std::string& key) {
    throw FileError(path, traces::printable(key), "there twice", "there once in its object");
  };
  const json document = json::parse(traces::text_of(file.bytes()), traces::unique_keys(refuse_twice), false);
  if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object()) {
    throw FileError(path, "weight_map", "missing", "an object from tensor to file name");
  }
  WeightMap map;
  for (const auto& [name, shard] : document["weight_map"].items()) {
    const std::string value = shard.is_string() ? shard.get<std::string>() : "";
    if (value.empty() || std::filesystem::path(value).filename() != value) {
      throw FileError(path, "weight_map." + name, shard.dump(-1, ' ', true, json::error_handler_t::replace),
                      "the name of a file in the same folder");
    }
    map.emplace(name, value);
  }
  return map;
}

void TensorStore::require(const std::string& name, const TensorShape& shape) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw FileError(path_, name, "missing", "a tensor of shape " + traces::shape_text(shape));
  }
  const Entry& entry = found->second;
  if (entry.tensor->shape != shape) {
    refuse(*entry.file, *entry.tensor, "shape", traces::shape_text(entry.tensor->shape),
           fmt::format("{}, as {} demands", traces::shape_text(shape), demanding_));
  }
  using traces::ElementType;
  const ElementType type = entry.tensor->type;
  if (type != ElementType::f32 && type != ElementType::f16 && type != ElementType::bf16) {
    refuse(*entry.file, *entry.tensor, "dtype", std::string(name_of(type)), "F32, F16 or BF16");
  }
  required_.insert(name);
}

std::vector<Token> TensorStore::known_tokens(std::optional<std::int64_t> count, std::int64_t vocab_size) {
  std::vector<Token> tokens;
  if (count == vocab_size || (!count && !has("d2t"))) return tokens;
  const auto found = tensors_.find("d2t");
  if (found == tensors_.end()) throw FileError(path_, "d2t", "missing", "the tokens that the draft knows");
  const auto& [tensor, file] = found->second;
  if (tensor->type != traces::ElementType::i64)
    refuse(*file, *tensor, "dtype", std::string(name_of(tensor->type)), "I64");
  const std::vector<std::int64_t> shape{count.value_or(tensor->elements())};
  if (tensor->shape != shape)
    refuse(*file, *tensor, "shape", traces::shape_text(tensor->shape), traces::shape_text(shape));
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < tensor->elements(); ++i) {
    std::int64_t offset = 0;
    std::memcpy(&offset, tensor->bytes.data() + i * static_cast<std::int64_t>(sizeof offset), sizeof offset);
    if (offset < 0 || offset >= vocab_size - i || i + offset <= last)
      throw FileError(file->path(), FileError::byte(tensor->offset + i * static_cast<std::int64_t>(sizeof offset)),
                      fmt::format("d2t[{}]", i), fmt::format("{}", offset),
                      fmt::format("one that gives a token above {} and below {}", last, vocab_size));
    last = i + offset;
    tokens.push_back(static_cast<Token>(last));
  }
  required_.insert("d2t");
  return tokens;
}

void TensorStore::for_each_row(const std::string& name,
                               const std::function<void(std::size_t row, std::span<const float> values)>& take) const {
  const Entry& entry = tensors_.at(name);
  const std::int64_t width = entry.tensor->shape.back();
  std::vector<float> values(static_cast<std::size_t>(width));
  for (std::int64_t r = 0; r * width < entry.tensor->elements(); ++r) {
    traces::read_floats(*entry.tensor, r * width, values);
    const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (bad != values.end()) {
      const std::int64_t at = r * width + (bad - values.begin());
      throw FileError(entry.file->path(), FileError::byte(entry.tensor->offset + at * size_of(entry.tensor->type)),
                      fmt::format("{}, element {}", name, at), fmt::format("{}", *bad), "finite");
    }
    take(static_cast<std::size_t>(r), values);
  }
}

void TensorStore::for_each_row(const std::string& name, traces::ElementType type,
                               const std::function<void(std::size_t row, const std::byte* elements)>& take) const {
  const traces::Tensor& tensor = *tensors_.at(name).tensor;
  for_each_row(name, [&](std::size_t row, std::span<const float> values) {
    const std::size_t stored = row * values.size() * static_cast<std::size_t>(size_of(tensor.type));
    take(row, type == tensor.type ? tensor.bytes.data() + stored : std::as_bytes(values).data());
  });
}

void TensorStore::require_nothing_else(const std::function<bool(const std::string&)>& harmless) const {
  for (const auto& [name, entry] : tensors_) {
    if (!required_.contains(name) && !harmless(name)) {
      throw FileError(entry.file->path(), FileError::byte(entry.tensor->offset), name, "present",
                      "absent: the model has no such tensor");
    }
  }
}

void WeightReader::begin_reading(AlignedBytes& memory) {
  checking_ = false;
  memory.resize(matrix_bytes_);
  next_matrix_ = memory.data();
}

void WeightReader::table(const std::string& name, std::int64_t count, std::int64_t width, std::vector<float>& out) {
  if (checking_) return store_.require(name, {count, width});
  out.reserve(static_cast<std::size_t>(count * width));
  store_.for_each_row(name, [&](std::size_t, auto values) { out.insert(out.end(), values.begin(), values.end()); });
}

void WeightReader::vector(const std::string& name, std::int64_t size, AlignedFloats& out) {
  if (checking_) return store_.require(name, {size});
  store_.for_each_row(name, [&](std::size_t, auto values) { out.insert(out.end(), values.begin(), values.end()); });
}

void WeightReader::norm_weight(const std::string& name, std::int64_t width, AlignedFloats& out) {
  vector(name, width, out);
  out.resize(round_up(out.size(), line_floats));
}

void WeightReader::allocate(std::int64_t rows, std::int64_t depth, traces::ElementType type, PackedMatrix& out) {
  const auto row_count = static_cast<std::size_t>(rows);
  const auto column_count = static_cast<std::size_t>(depth);
  const std::size_t bytes = PackedMatrix::bytes(row_count, column_count, type);
  if (checking_) {
    matrix_bytes_ += bytes;
  } else {
    out = PackedMatrix(row_count, column_count, type, std::exchange(next_matrix_, next_matrix_ + bytes));
  }
}

void WeightReader::matrix(const std::string& name, std::int64_t rows, std::int64_t depth, PackedMatrix& out) {
  if (checking_) store_.require(name, {rows, depth});
  allocate(rows, depth, store_.type_of(name), out);
  if (!checking_) copy_rows(name, 0, out);
}

void WeightReader::copy_rows(const std::string& name, std::size_t first, PackedMatrix& out) {
  store_.for_each_row(name, out.type(), [&](std::size_t r, auto elements) { out.set_row(first + r, elements); });
}

void WeightReader::rows_of(const PackedMatrix& other, std::span<const Token> numbers, PackedMatrix& out) {
  allocate(length_of(numbers), static_cast<std::int64_t>(other.depth()), other.type(), out);
  if (checking_) return;
  for (std::size_t r = 0; r < numbers.size(); ++r) out.copy_row(r, other, static_cast<std::size_t>(numbers[r]));
}

void WeightReader::rows(const std::vector<Part>& parts, std::int64_t depth, bool has_bias, Linear& out) {
  std::int64_t total = 0;
  std::set<traces::ElementType> types;
  for (const auto& [name, count] : parts) {
    if (checking_) store_.require(name + ".weight", {count, depth});
    types.insert(store_.type_of(name + ".weight"));
    total += count;
  }
  allocate(total, depth, types.size() == 1 ? *types.begin() : traces::ElementType::f32, out.matrix);
  std::size_t first = 0;
  for (const auto& [name, count] : parts) {
    if (!checking_) copy_rows(name + ".weight", first, out.matrix);
    if (has_bias) vector(name + ".bias", count, out.bias);
    first += static_cast<std::size_t>(count);
  }
}

void WeightReader::columns(const std::string& name, std::int64_t depth, std::int64_t count, Linear& out) {
  if (checking_) store_.require(name + ".weight", {depth, count});
  const traces::ElementType type = store_.type_of(name + ".weight");
  allocate(count, depth, type, out.matrix);
  if (!checking_) {
    store_.for_each_row(name + ".weight", type, [&](std::size_t k, auto row) { out.matrix.set_column(k, row); });
  }
  vector(name + ".bias", count, out.bias);
}

void WeightReader::llama_block(const TransformerConfig& c, const std::string& prefix, TransformerBlock& out) {
  const std::int64_t queries = c.heads * c.head_size;
  const std::int64_t keys = c.key_value_heads * c.head_size;
  rows({{prefix + "self_attn.q_proj", queries},
        {prefix + "self_attn.k_proj", keys},
        {prefix + "self_attn.v_proj", keys}},
       c.width, c.attention_bias, out.query_key_value);
  rows({{prefix + "self_attn.o_proj", c.width}}, queries, c.attention_bias, out.attention_output);
  rows({{prefix + "mlp.gate_proj", c.feed_forward}, {prefix + "mlp.up_proj", c.feed_forward}}, c.width,
       c.feed_forward_bias, out.feed_forward_input);
  rows({{prefix + "mlp.down_proj", c.width}}, c.feed_forward, c.feed_forward_bias, out.feed_forward_output);
  norm_weight(prefix + "input_layernorm.weight", c.width, out.attention_norm.weight);
  norm_weight(prefix + "post_attention_layernorm.weight", c.width, out.feed_forward_norm.weight);
}

}  // namespace specdec::sim
