#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/safetensors_file.hpp"
#include "traces/position_source.hpp"

namespace specdec::tests {

/// A tensor that owns its data.
struct OwnedTensor {
  std::string name;
  traces::ElementType type = traces::ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

template <class T>
OwnedTensor tensor_of_type(std::string name, traces::ElementType type, std::vector<std::int64_t> shape,
                           const std::vector<T>& values) {
  OwnedTensor tensor{std::move(name), type, std::move(shape), {}};
  tensor.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

inline OwnedTensor floats(std::string name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return tensor_of_type(std::move(name), traces::ElementType::f32, std::move(shape), values);
}
inline OwnedTensor doubles(std::string name, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  return tensor_of_type(std::move(name), traces::ElementType::f64, std::move(shape), values);
}
inline OwnedTensor ints(std::string name, std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values) {
  return tensor_of_type(std::move(name), traces::ElementType::i32, std::move(shape), values);
}
inline OwnedTensor longs(std::string name, std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
  return tensor_of_type(std::move(name), traces::ElementType::i64, std::move(shape), values);
}
/// bfloat16 by cutting off the lower half.
inline OwnedTensor bfloats(std::string name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
  std::vector<std::uint16_t> halves;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    halves.push_back(static_cast<std::uint16_t>(bits >> 16U));
  }
  return tensor_of_type(std::move(name), traces::ElementType::bf16, std::move(shape), halves);
}

inline std::filesystem::path write_tensors(const std::filesystem::path& path, const std::vector<OwnedTensor>& tensors,
                                           const std::map<std::string, std::string>& metadata = {}) {
  std::vector<TensorData> data;
  for (const OwnedTensor& tensor : tensors) data.push_back({{tensor.name, tensor.type, tensor.shape}, tensor.bytes});
  write_safetensors(path, data, metadata);
  return path;
}

/// The numbers of a row.
inline std::vector<double> row_values(const traces::Row& row) {
  const auto size = static_cast<std::int64_t>(row.vocab * traces::size_of(row.type));
  const std::span<const std::byte> bytes(row.data, static_cast<std::size_t>(size));
  std::vector<float> values(static_cast<std::size_t>(row.vocab));
  traces::read_floats({"row", row.type, {row.vocab}, 0, bytes}, 0, values);
  return {values.begin(), values.end()};
}

/// All batches of a source, their columns copied behind each other.
struct WholeTrace {
  std::vector<std::int64_t> sizes;
  std::vector<traces::Tier> tiers;
  std::vector<std::int64_t> sequence, place, prompt, step_time_ns;
  std::vector<std::int32_t> token, task, vocab_map, target_rank, draft_rank, drafted, accepted, accepted_length;
  std::vector<float> target_logprob, draft_logprob, overlap;
  std::vector<std::byte> target_rows, draft_rows;
  traces::TargetRows last_target_rows;  ///< without bytes: what the rows are
  traces::DraftRows last_draft_rows;
  std::vector<std::int32_t> target_ids, draft_ids;
  std::vector<float> target_top, draft_top, target_tail, draft_tail, target_at, draft_at;

  explicit WholeTrace(traces::PositionSource& source) {
    traces::PositionBatch b;
    while (source.read(b)) {
      sizes.push_back(b.size);
      tiers.push_back(b.tier);
      append(sequence, b.sequence);
      append(place, b.place);
      append(step_time_ns, b.step_time_ns);
      append(token, b.token);
      append(task, b.task);
      append(prompt, b.prompt);
      vocab_map.assign(b.draft_vocab_map.begin(), b.draft_vocab_map.end());
      append(target_rank, b.target_token_rank);
      append(draft_rank, b.draft_token_rank);
      append(drafted, b.step_drafted);
      append(accepted, b.step_accepted);
      append(accepted_length, b.accepted_length);
      append(target_logprob, b.target_token_logprob);
      append(draft_logprob, b.draft_token_logprob);
      append(overlap, b.overlap);
      append(target_rows, b.target_rows.bytes);
      append(draft_rows, b.draft_rows.bytes);
      if (!b.target_rows.empty()) last_target_rows = b.target_rows;
      if (!b.draft_rows.empty()) last_draft_rows = b.draft_rows;
      append(target_ids, b.target_top_k.ids);
      append(draft_ids, b.draft_top_k.ids);
      append(target_top, b.target_top_k.logprobs);
      append(draft_top, b.draft_top_k.logprobs);
      append(target_tail, b.target_top_k.tail_logprob);
      append(draft_tail, b.draft_top_k.tail_logprob);
      append(target_at, b.target_top_k.at_other);
      append(draft_at, b.draft_top_k.at_other);
    }
  }

  /// A whole row as doubles.
  std::vector<double> target_row(std::int64_t i) const { return row_values(row_of(last_target_rows, target_rows, i)); }
  std::vector<double> draft_row(std::int64_t i) const { return row_values(row_of(last_draft_rows, draft_rows, i)); }

 private:
  template <class TheRows>
  static traces::Row row_of(TheRows rows, std::span<const std::byte> bytes, std::int64_t i) {
    rows.bytes = bytes;
    return rows[i];
  }

  template <class T>
  static void append(std::vector<T>& to, std::span<const T> from) {
    to.insert(to.end(), from.begin(), from.end());
  }
};

}  // namespace specdec::tests
