#include "traces/memory_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "traces/formats/labels.hpp"
#include "traces/formats/log_probability.hpp"
#include "traces/formats/narrowed_rows.hpp"

namespace specdec::traces {
namespace {

/// Bytes of one model's rows in one batch, unless a single row is longer.
constexpr std::int64_t batch_bytes = std::int64_t{8} << 20U;
constexpr std::int64_t most_batch_positions = 65536;

[[noreturn]] void refuse(std::string_view member, const std::string& found, const std::string& expected) {
  throw std::invalid_argument(fmt::format("append: {} is {}, but must be {}", member, found, expected));
}

void require_length(std::string_view member, std::size_t length, std::int64_t size) {
  if (length == 0 || static_cast<std::int64_t>(length) == size) return;
  refuse(member, fmt::format("{} long", length), fmt::format("{} long, one for each position", size));
}

std::vector<float> log_probabilities(std::string_view member, const MemoryPositions& positions, const std::byte* from) {
  std::vector<float> logs;
  for (std::int64_t i = 0; i < positions.size; ++i) {
    const double value = number_at(positions.type, from + i * size_of(positions.type));
    const auto log = logprob_of(value, positions.space);
    if (!log)
      refuse(fmt::format("{} at position {}", member, i), fmt::format("{}", value),
             std::string(expected_in(positions.space)));
    logs.push_back(*log);
  }
  return logs;
}

void require_shapes(const MemoryPositions& positions) {
  if (positions.size < 1) refuse("size", fmt::format("{}", positions.size), "at least 1");
  if (positions.vocab < 0 || positions.vocab > largest_decoded_vocab)
    refuse("vocab", fmt::format("{}", positions.vocab), fmt::format("in [0, {}]", largest_decoded_vocab));
  if (positions.vocab == 0 && positions.space == RowSpace::logits)
    refuse("space", "logits", "probabilities or log-probabilities where there is one number a position");
  switch (positions.type) {
    case ElementType::f64:
    case ElementType::f32:
    case ElementType::f16:
    case ElementType::bf16:
      break;
    default:
      refuse("type", std::string(name_of(positions.type)), "F64, F32, F16 or BF16");
  }
  require_length("tokens", positions.tokens.size(), positions.size);
  require_length("sequences", positions.sequences.size(), positions.size);
  require_length("prompt", positions.prompt.size(), positions.size);
  const std::int64_t limit = positions.vocab > 0 ? positions.vocab : std::int64_t{1} << 31U;
  for (const std::int64_t token : positions.tokens)
    if (token < -1 || token >= limit)
      refuse("tokens", fmt::format("{}", token), fmt::format("in [0, {}], or -1 where unknown", limit - 1));
}

}  // namespace

/// The data of one append.
struct MemoryRecording::Piece {
  /// Without its tokens, which are stored in 32 bits below.
  MemoryPositions given;
  std::vector<std::int32_t> token;
  std::vector<std::int64_t> sequence;
  std::vector<std::int64_t> place;
  std::vector<std::int32_t> task;
  /// Used if there are no rows.
  std::vector<float> target_logs, draft_logs;
};

struct MemoryRecording::State {
  /// The state of the numbering of sequences.
  struct Last {
    std::int64_t sequence = -1, place = -1, prompt = no_prompt;
    std::optional<std::int64_t> label = {};
  };

  TraceMetadata metadata;
  std::vector<Piece> pieces;
  std::int64_t positions = 0;
  Last last;
  std::set<std::int64_t> labels;
  TaskIds task_ids;

  void require_alike(const MemoryPositions& next) const {
    if (pieces.empty()) return;
    const MemoryPositions& first = pieces.front().given;
    const bool had_tokens = !pieces.front().token.empty();
    if (next.vocab != first.vocab)
      refuse("vocab", fmt::format("{}", next.vocab), fmt::format("{}, as before", first.vocab));
    if (next.space != first.space) refuse("space", "another one", "what it was before");
    if (next.type != first.type)
      refuse("type", std::string(name_of(next.type)), fmt::format("{}, as before", name_of(first.type)));
    if (next.tokens.empty() == had_tokens)
      refuse("tokens", next.tokens.empty() ? "missing" : "given",
             had_tokens ? "given, as before" : "missing, as before");
    if (next.prompt.empty() != first.prompt.empty())
      refuse("prompt", next.prompt.empty() ? "missing" : "given",
             first.prompt.empty() ? "missing, as before" : "given, as before");
  }

  /// Assigns sequences and places to the positions.
  /// @param at  the state after them, once it returns
  /// @param begun  the labels of sequences that begin
  void number(Piece& piece, Last& at, std::set<std::int64_t>& begun) const {
    const MemoryPositions& given = piece.given;
    for (std::int64_t i = 0; i < given.size; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const auto label = given.sequences.empty() ? std::nullopt : std::optional(given.sequences[index]);
      const std::int64_t prompt = given.prompt.empty() ? no_prompt : given.prompt[index];
      if (label ? label != at.label : i == 0) {
        if (label && (labels.count(*label) > 0 || !begun.insert(*label).second))
          refuse("sequences", fmt::format("{} again", *label), "one run of positions for each sequence");
        ++at.sequence;
        at.place = -1;
      } else if (prompt != at.prompt) {
        refuse("prompt", fmt::format("another one at position {}", i), "the same for all of a sequence");
      }
      at.label = label;
      at.prompt = prompt;
      piece.sequence.push_back(at.sequence);
      piece.place.push_back(++at.place);
    }
  }
};

/// Views of the pieces, batch by batch.
class MemoryRecording::Reader final : public PositionSource {
 public:
  explicit Reader(const State& state) : state_(state) {}

  const TraceMetadata& metadata() const override { return state_.metadata; }
  std::vector<std::filesystem::path> files() const override { return {}; }
  std::string format() const override { return "memory"; }
  std::optional<std::int64_t> positions() const override { return state_.positions; }

  bool read(PositionBatch& batch) override {
    batch = {};
    if (piece_ == state_.pieces.size()) return false;
    const Piece& piece = state_.pieces[piece_];
    const MemoryPositions& given = piece.given;
    const std::int64_t row_bytes = std::max<std::int64_t>(1, given.vocab) * size_of(given.type);
    batch.first = read_;
    batch.size =
        std::min(given.size - next_, std::clamp<std::int64_t>(batch_bytes / row_bytes, 1, most_batch_positions));
    const auto part = [&](const auto& column) {
      return column.empty()
                 ? std::span(column)
                 : std::span(column).subspan(static_cast<std::size_t>(next_), static_cast<std::size_t>(batch.size));
    };
    batch.sequence = part(piece.sequence);
    batch.place = part(piece.place);
    batch.token = part(piece.token);
    if (!state_.metadata.task_names.empty()) batch.task = part(piece.task);
    batch.prompt = part(given.prompt);
    if (given.vocab > 0) {
      batch.tier = Tier::full;
      show(given, given.target, target_, batch.size, batch.target_rows);
      show(given, given.draft, draft_, batch.size, batch.draft_rows);
    } else {
      batch.target_token_logprob = part(piece.target_logs);
      batch.draft_token_logprob = part(piece.draft_logs);
    }
    next_ += batch.size;
    read_ += batch.size;
    if (next_ == given.size) {
      ++piece_;
      next_ = 0;
    }
    return true;
  }

 private:
  void show(const MemoryPositions& given, const std::byte* rows, std::vector<float>& narrowed, std::int64_t count,
            Rows& shown) const {
    const std::int64_t row_bytes = given.vocab * size_of(given.type);
    show_rows({rows + next_ * row_bytes, static_cast<std::size_t>(count * row_bytes)}, given.type, given.space,
              given.vocab, narrowed, shown);
  }

  const State& state_;
  std::size_t piece_ = 0;
  /// Positions of the piece, and of all, that were read.
  std::int64_t next_ = 0, read_ = 0;
  std::vector<float> target_, draft_;
};

MemoryRecording::MemoryRecording(TraceMetadata metadata) : state_(std::make_unique<State>()) {
  state_->metadata = std::move(metadata);
}

MemoryRecording::~MemoryRecording() = default;

void MemoryRecording::append(MemoryPositions positions) {
  require_shapes(positions);
  state_->require_alike(positions);
  Piece piece;
  if (positions.vocab == 0) {
    piece.target_logs = log_probabilities("target", positions, positions.target);
    piece.draft_logs = log_probabilities("draft", positions, positions.draft);
  }
  const std::vector<std::int64_t> tokens = std::move(positions.tokens);
  piece.token.assign(tokens.begin(), tokens.end());
  piece.given = std::move(positions);
  State::Last last = state_->last;
  std::set<std::int64_t> begun;
  state_->number(piece, last, begun);
  const auto task = state_->task_ids.id_of(piece.given.task, state_->metadata.task_names);
  if (!task) refuse("task", piece.given.task.substr(0, 40), TaskIds::expected());
  piece.task.assign(static_cast<std::size_t>(piece.given.size), *task);
  if (piece.given.vocab > 0) state_->metadata.vocab_size = piece.given.vocab;
  state_->last = last;
  state_->labels.merge(begun);
  state_->positions += piece.given.size;
  state_->pieces.push_back(std::move(piece));
}

std::int64_t MemoryRecording::positions() const { return state_->positions; }
std::int64_t MemoryRecording::sequences() const { return state_->last.sequence + 1; }
std::unique_ptr<PositionSource> MemoryRecording::open() const { return std::make_unique<Reader>(*state_); }

}  // namespace specdec::traces
