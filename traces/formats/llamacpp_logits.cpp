#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/little_endian.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr std::string_view logits_magic = "_logits_";
constexpr std::int64_t header_bytes = 20;
/// The size of the file left by a text shorter than two contexts: magic and n_ctx.
constexpr std::int64_t too_short_bytes = 12;
constexpr double largest_code = 65535;
/// Nats between the largest logit and the lowest floor.
constexpr double deepest_floor = 16;
/// Rounding of a row's floats, in addition to that of its codes.
constexpr double float_tolerance = 1e-5;

/// One row as stored in the file, with its header's bounds for its sum.
struct QuantisedRow {
  float scale;
  float min_log_prob;
  const std::byte* codes;

  std::uint16_t code(std::int64_t token) const { return load<std::uint16_t>(codes + 2 * token); }
};

/// Findings from decoding a row.
struct DecodedSum {
  double sum = 0;
  std::int64_t at_floor = 0;
};

/// exp(scale * code + min_log_prob) for all codes, from two tables of 256: one for each half of the code.
DecodedSum decode(const QuantisedRow& row, std::span<float> out) {
  if (row.scale == 0) {
    std::fill(out.begin(), out.end(), static_cast<float>(1.0 / static_cast<double>(out.size())));
    return {1, 0};
  }
  std::array<double, 256> low;
  std::array<double, 256> high;
  for (std::size_t i = 0; i < low.size(); ++i) {
    low[i] = std::exp(static_cast<double>(row.scale) * static_cast<double>(i));
    high[i] = std::exp(static_cast<double>(row.scale) * static_cast<double>(256 * i) + row.min_log_prob);
  }
  DecodedSum result;
  for (std::size_t token = 0; token < out.size(); ++token) {
    const std::uint16_t code = row.code(static_cast<std::int64_t>(token));
    const double probability = code == 0 ? 0 : high[code >> 8U] * low[code & 255U];
    result.at_floor += code == 0 ? 1 : 0;
    result.sum += probability;
    out[token] = static_cast<float>(probability);
  }
  return result;
}

/// One file whose header has been checked against its size.
class LogitsFile {
 public:
  explicit LogitsFile(std::filesystem::path path) : path_(std::move(path)), file_(path_) {
    read_header();
    check_size();
    check_tokens();
  }

  const std::filesystem::path& path() const { return path_; }
  std::int64_t context() const { return context_; }
  std::int64_t vocab() const { return vocab_; }
  std::int64_t chunks() const { return chunks_; }
  /// R, the number of scored places in a chunk.
  std::int64_t rows_per_chunk() const { return context_ - 1 - context_ / 2; }
  std::int64_t rows() const { return chunks_ * rows_per_chunk(); }

  std::int32_t token(std::int64_t i) const { return load<std::int32_t>(file_.bytes().data() + token_offset(i)); }
  /// The token that row `place` of `chunk` predicts.
  std::int32_t predicted(std::int64_t chunk, std::int64_t place) const {
    return token(chunk * context_ + context_ / 2 + place + 1);
  }

  /// Decodes row i into `out` and returns how far from 1 its sum may be.
  double read_row(std::int64_t i, std::span<float> out) const {
    const std::int64_t offset = row_offset(i);
    const std::byte* at = file_.bytes().data() + offset;
    const QuantisedRow row = {load<float>(at), load<float>(at + 4), at + 8};
    check_scale(row, i, offset);
    const DecodedSum decoded = decode(row, out);
    const double rounding = row.scale / 2 + float_tolerance;
    const double lost = static_cast<double>(decoded.at_floor) * std::exp(static_cast<double>(row.min_log_prob));
    if (decoded.sum <= 1 + rounding && decoded.sum + lost >= 1 - rounding) return lost + rounding;
    refuse(offset, row_name(i) + ": sum of probabilities", fmt::format("{:.6}", decoded.sum),
           fmt::format("in [{:.6}, {:.6}], as its scale, floor and {} tokens at the floor say",
                       std::max(0.0, 1 - rounding - lost), 1 + rounding, decoded.at_floor));
  }

  FileError refusal(std::int64_t row, std::string found, std::string expected) const {
    return {path_, FileError::byte(row_offset(row)), row_name(row), std::move(found), std::move(expected)};
  }

  /// Requires the other's header and tokens to be the same as this file's.
  void require_same_text(const LogitsFile& other) const {
    const auto require_same = [&](const char* field, std::int64_t theirs, std::int64_t ours, std::int64_t offset) {
      if (theirs == ours) return;
      other.refuse(offset, field, fmt::format("{}", theirs), fmt::format("{}, as in {}", ours, path_.string()));
    };
    require_same("n_vocab", other.vocab_, vocab_, 12);
    require_same("n_ctx", other.context_, context_, 8);
    require_same("n_chunk", other.chunks_, chunks_, 16);
    const auto block = [](const LogitsFile& file) {
      return file.file_.bytes().subspan(header_bytes, static_cast<std::size_t>(4 * file.chunks_ * file.context_));
    };
    const auto tokens = block(*this);
    const auto different = std::mismatch(tokens.begin(), tokens.end(), block(other).begin()).first;
    if (different == tokens.end()) return;
    const std::int64_t i = (different - tokens.begin()) / 4;
    other.refuse(token_offset(i), fmt::format("token {} of chunk {}", i % context_, i / context_),
                 fmt::format("{}", other.token(i)), fmt::format("{}, as in {}", token(i), path_.string()));
  }

 private:
  [[noreturn]] void refuse(std::int64_t offset, std::string field, std::string found, std::string expected) const {
    throw FileError(path_, FileError::byte(offset), std::move(field), std::move(found), std::move(expected));
  }
  [[noreturn]] void refuse_size(std::string expected) const {
    throw FileError(path_, "file size", fmt::format("{} bytes", size()), std::move(expected));
  }

  std::int64_t size() const { return static_cast<std::int64_t>(file_.bytes().size()); }
  std::int64_t row_bytes() const { return 2 * (2 * ((vocab_ + 1) / 2) + 4); }
  std::int64_t rows_offset() const { return token_offset(chunks_ * context_); }
  std::int64_t row_offset(std::int64_t i) const { return rows_offset() + i * row_bytes(); }
  static std::int64_t token_offset(std::int64_t i) { return header_bytes + 4 * i; }
  std::string row_name(std::int64_t i) const {
    return fmt::format("row {} of chunk {}", i % rows_per_chunk(), i / rows_per_chunk());
  }

  void read_header() {
    if (!is_llamacpp_logits(text_of(file_.bytes()))) {
      refuse(0, "magic", "something else", fmt::format("\"{}\"", logits_magic));
    }
    if (size() == too_short_bytes) {
      refuse_size("longer: the text must have at least twice as many tokens as the context, or nothing is scored");
    }
    if (size() < header_bytes) refuse_size(fmt::format("at least {} bytes for the header", header_bytes));
    context_ = read_count("n_ctx", 8, 3);
    vocab_ = read_count("n_vocab", 12, 1, largest_decoded_vocab);
    chunks_ = read_count("n_chunk", 16, 1);
  }

  std::int64_t read_count(const char* field, std::int64_t offset, std::int64_t smallest,
                          std::int64_t largest = std::numeric_limits<std::int32_t>::max()) const {
    const auto value = load<std::int32_t>(file_.bytes().data() + offset);
    if (smallest <= value && value <= largest) return value;
    refuse(offset, field, fmt::format("{}", value), fmt::format("in [{}, {}]", smallest, largest));
  }

  void check_size() const {
    std::int64_t expected = 0;
    const std::int64_t tokens = chunks_ * context_;
    const bool overflows = tokens > std::numeric_limits<std::int64_t>::max() / 8 ||
                           __builtin_mul_overflow(rows(), row_bytes(), &expected) ||
                           __builtin_add_overflow(expected, rows_offset(), &expected);
    if (!overflows && expected == size()) return;
    const auto needed = overflows ? "more than 2^63 bytes" : fmt::format("{} bytes", expected);
    const bool tokens_fit = tokens <= (size() - header_bytes) / 4;
    const std::int64_t whole_rows = tokens_fit ? (size() - rows_offset()) / row_bytes() : 0;
    refuse_size(fmt::format("{}, as n_ctx {}, n_vocab {} and n_chunk {} say ({} of {} rows are there)", needed,
                            context_, vocab_, chunks_, std::min(whole_rows, rows()), rows()));
  }

  void check_tokens() const {
    for (std::int64_t i = 0; i < chunks_ * context_; ++i) {
      if (0 <= token(i) && token(i) < vocab_) continue;
      refuse(token_offset(i), fmt::format("token {} of chunk {}", i % context_, i / context_),
             fmt::format("{}", token(i)), fmt::format("in [0, {}]", vocab_ - 1));
    }
  }

  void check_scale(const QuantisedRow& row, std::int64_t i, std::int64_t offset) const {
    constexpr double largest_scale = deepest_floor / largest_code * 1.001;
    if (!(0 <= row.scale && row.scale <= largest_scale)) {
      refuse(offset, row_name(i) + ": scale", fmt::format("{}", row.scale),
             fmt::format("in [0, {:.4}]", largest_scale));
    }
    if (!(std::numeric_limits<float>::lowest() <= row.min_log_prob && row.min_log_prob <= float_tolerance)) {
      refuse(offset + 4, row_name(i) + ": min_log_prob", fmt::format("{}", row.min_log_prob), "finite and at most 0");
    }
  }

  std::filesystem::path path_;
  MappedFile file_;
  std::int64_t context_ = 0;
  std::int64_t vocab_ = 0;
  std::int64_t chunks_ = 0;
};

/// The rows of one role for the current batch.
class DecodedRows {
 public:
  DecodedRows(const LogitsFile& file, std::int64_t positions)
      : file_(file), values_(static_cast<std::size_t>(positions * file.vocab())) {}

  void read(std::int64_t first, std::int64_t count, Rows& rows) {
    const auto vocab = static_cast<std::size_t>(file_.vocab());
    const std::span<float> values(values_);
    double tolerance = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto begin = static_cast<std::size_t>(i) * vocab;
      tolerance = std::max(tolerance, file_.read_row(first + i, values.subspan(begin, vocab)));
    }
    rows.space = RowSpace::probabilities;
    rows.type = ElementType::f32;
    rows.vocab = file_.vocab();
    rows.bytes = std::as_bytes(values.first(static_cast<std::size_t>(count) * vocab));
    rows.sum_tolerance = tolerance;
  }

 private:
  const LogitsFile& file_;
  std::vector<float> values_;
};

class LlamacppLogits : public PositionSource {
 public:
  LlamacppLogits(const std::filesystem::path& target, const std::filesystem::path& draft, TextSource text_source)
      : target_(target), draft_(draft) {
    target_.require_same_text(draft_);
    metadata_.vocab_size = target_.vocab();
    metadata_.engine = "llama.cpp";
    metadata_.logprob_space = LogprobSpace::raw;
    metadata_.path = text_source;
  }

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {target_.path(), draft_.path()}; }
  std::string format() const override { return "llama.cpp logits"; }
  std::vector<Note> notes() const override {
    return {
        {"first_token_may_be_bos",
         "llama.cpp evaluates each chunk's first token as the beginning-of-sequence token where the model adds one, "
         "and the files keep the original: the distributions belong to that prefix"}};
  }

  std::optional<std::int64_t> positions() const override { return target_.rows(); }
  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    return (role == Role::target ? target_ : draft_).refusal(position, std::move(found), std::move(expected));
  }

  bool read(PositionBatch& batch) override {
    batch = {};
    batch.first = next_;
    batch.size = std::min(batch_rows_, target_.rows() - next_);
    if (batch.size == 0) return false;
    batch.tier = Tier::full;
    read_columns(batch);
    target_rows_.read(next_, batch.size, batch.target_rows);
    draft_rows_.read(next_, batch.size, batch.draft_rows);
    next_ += batch.size;
    return true;
  }

 private:
  static std::int64_t rows_that_fit(std::int64_t vocab) {
    constexpr std::int64_t values_per_role = std::int64_t{1} << 21U;
    constexpr std::int64_t most = 1024;
    return std::clamp<std::int64_t>(values_per_role / vocab, 1, most);
  }

  void read_columns(PositionBatch& batch) {
    const auto size = static_cast<std::size_t>(batch.size);
    sequence_.resize(size);
    place_.resize(size);
    token_.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t row = next_ + static_cast<std::int64_t>(i);
      sequence_[i] = row / target_.rows_per_chunk();
      place_[i] = row % target_.rows_per_chunk();
      token_[i] = target_.predicted(sequence_[i], place_[i]);
    }
    batch.sequence = sequence_;
    batch.place = place_;
    batch.token = token_;
  }

  LogitsFile target_;
  LogitsFile draft_;
  TraceMetadata metadata_;
  std::int64_t batch_rows_ = std::min(rows_that_fit(target_.vocab()), target_.rows());
  DecodedRows target_rows_ = {target_, batch_rows_};
  DecodedRows draft_rows_ = {draft_, batch_rows_};
  std::int64_t next_ = 0;
  std::vector<std::int64_t> sequence_;
  std::vector<std::int64_t> place_;
  std::vector<std::int32_t> token_;
};

}  // namespace

bool is_llamacpp_logits(std::string_view head) { return head.starts_with(logits_magic); }

std::unique_ptr<PositionSource> open_llamacpp_logits(const std::filesystem::path& target,
                                                     const std::filesystem::path& draft, TextSource text_source) {
  return std::make_unique<LlamacppLogits>(target, draft, text_source);
}

}  // namespace specdec::traces
