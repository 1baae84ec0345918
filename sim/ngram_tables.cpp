#include "sim/ngram_tables.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/safetensors.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::sim {
namespace {

using traces::ElementType;
using traces::FileError;
using traces::SafetensorsFile;
using traces::Tensor;

/// The allowed range of a tensor's integers.
struct IntegerRange {
  std::int64_t lo;
  std::int64_t hi;
};

const Tensor& tensor_of(const SafetensorsFile& file, std::string_view name, ElementType type) {
  const Tensor* tensor = file.find(name);
  const std::string expected = fmt::format("a tensor of type {}", name_of(type));
  if (tensor == nullptr) throw FileError(file.path(), std::string(name), "missing", expected);
  if (tensor->type != type)
    throw FileError(file.path(), FileError::byte(tensor->offset), std::string(name), std::string(name_of(tensor->type)),
                    expected);
  return *tensor;
}

template <class Stored>
std::vector<std::int64_t> integers_of(const SafetensorsFile& file, const Tensor& tensor, std::int64_t length,
                                      IntegerRange range) {
  const std::vector<std::int64_t> shape{length};
  if (tensor.shape != shape)
    throw FileError(file.path(), FileError::byte(tensor.offset), tensor.name + ".shape",
                    traces::shape_text(tensor.shape), traces::shape_text(shape));
  std::vector<std::int64_t> values(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + i * sizeof stored, sizeof stored);
    if (stored < range.lo || stored > range.hi)
      throw FileError(file.path(), FileError::byte(tensor.offset + static_cast<std::int64_t>(i * sizeof stored)),
                      fmt::format("{}[{}]", tensor.name, i), std::to_string(stored),
                      fmt::format("in [{}, {}]", range.lo, range.hi));
    values[i] = stored;
  }
  return values;
}

std::string metadata_of(const SafetensorsFile& file, const std::string& key) {
  const auto entry = file.metadata().find(key);
  return entry == file.metadata().end() ? "missing" : entry->second;
}

void require_table_metadata(const SafetensorsFile& file, const std::string& key, const std::string& expected) {
  const std::string found = metadata_of(file, key);
  if (found != expected) throw FileError(file.path(), "metadata " + key, found, expected);
}

double discount_of(const SafetensorsFile& file) {
  const std::string text = metadata_of(file, "discount");
  const auto discount = traces::number_in<double>(text);
  if (discount && 0 <= *discount && *discount <= 1) return *discount;
  throw FileError(file.path(), "metadata discount", text, "a number in [0, 1]");
}

std::vector<double> unigram_of(const SafetensorsFile& file, const Tensor& counts_tensor) {
  constexpr std::int64_t largest = std::int64_t{1} << 53;
  const std::int64_t vocab = counts_tensor.elements();
  const std::vector<std::int64_t> counts = integers_of<std::int64_t>(file, counts_tensor, vocab, {0, largest});
  std::vector<double> unigram(counts.begin(), counts.end());
  const double total = std::accumulate(unigram.begin(), unigram.end(), 0.0);
  if (!(total > 0))
    throw FileError(file.path(), FileError::byte(counts_tensor.offset), "sum of unigram.counts", "0", "at least 1");
  for (double& p : unigram) p /= total;
  return unigram;
}

BigramCounts bigram_of(const SafetensorsFile& file, std::int64_t vocab) {
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  const Tensor& offsets = tensor_of(file, "bigram.row_offsets", ElementType::i32);
  const Tensor& tokens = tensor_of(file, "bigram.tokens", ElementType::i32);
  const Tensor& counts = tensor_of(file, "bigram.counts", ElementType::i32);
  const std::int64_t entries = tokens.elements();

  BigramCounts bigram;
  bigram.row_starts = integers_of<std::int32_t>(file, offsets, vocab + 1, {0, entries});
  const auto require = [&](bool holds, std::size_t row, std::string expected) {
    if (holds) return;
    throw FileError(file.path(), FileError::byte(offsets.offset + static_cast<std::int64_t>(4 * row)),
                    fmt::format("bigram.row_offsets[{}]", row), std::to_string(bigram.row_starts[row]),
                    std::move(expected));
  };
  require(bigram.row_starts.front() == 0, 0, "0");
  for (std::size_t row = 1; row < bigram.row_starts.size(); ++row) {
    require(bigram.row_starts[row - 1] <= bigram.row_starts[row], row,
            fmt::format("at least {}", bigram.row_starts[row - 1]));
  }
  require(bigram.row_starts.back() == entries, bigram.row_starts.size() - 1, fmt::format("{}, the entries", entries));
  for (const std::int64_t token : integers_of<std::int32_t>(file, tokens, entries, {0, vocab - 1}))
    bigram.tokens.push_back(static_cast<Token>(token));
  for (const std::int64_t count : integers_of<std::int32_t>(file, counts, entries, {1, largest}))
    bigram.counts.push_back(static_cast<double>(count));
  return bigram;
}

}  // namespace

NgramTables read_ngram_tables(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  require_table_metadata(file, "format", "specdec-ngrams");
  require_table_metadata(file, "version", "1");
  NgramTables tables;
  tables.discount = discount_of(file);
  tables.unigram = unigram_of(file, tensor_of(file, "unigram.counts", ElementType::i64));
  tables.bigram = bigram_of(file, static_cast<std::int64_t>(tables.unigram.size()));
  return tables;
}

}  // namespace specdec::sim
