#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/model_recording.hpp"
#include "traces/formats/position_columns.hpp"
#include "traces/formats/printable.hpp"

namespace specdec::traces {
namespace {

/// A batch ends with the request that fills it: this many numbers, ids and log-probabilities together.
constexpr std::int64_t numbers_of_a_batch = 1 << 20;

/// The columns of a pair of texts; texts of one batch have the same.
struct Shape {
  std::int64_t target_k = 0;
  std::int64_t draft_k = 0;
  bool has_logprobs = true;

  Tier tier() const { return target_k > 0 && draft_k > 0 ? Tier::top_k : Tier::scalar; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// The positions of two texts that are the same token.
struct Overlap {
  std::int64_t target_first = 0;
  std::int64_t draft_first = 0;
  std::int64_t size = 0;
};

template <class T>
void append(std::vector<T>& column, const std::vector<T>& from, std::int64_t first, std::int64_t size) {
  column.insert(column.end(), from.begin() + first, from.begin() + first + size);
}

class PairedRecordings : public PositionSource {
 public:
  PairedRecordings(const std::filesystem::path& target, const std::filesystem::path& draft)
      : target_(target), draft_(draft) {
    metadata_.target_model = target_.model();
    metadata_.draft_model = draft_.model();
    metadata_.engine = target_.engine() == draft_.engine() ? std::string(target_.engine())
                                                           : fmt::format("{}, {}", target_.engine(), draft_.engine());
    metadata_.logprob_space = target_.space() == draft_.space() ? target_.space() : LogprobSpace::unknown;
    if (target_.generated()) {
      const SampledWith& sampled = target_.sampled();
      if (sampled.bias && target_.space() != LogprobSpace::processed) {
        target_.file().refuse(sampled.bias->field, sampled.bias->value,
                              "0: the log-probabilities are raw, and what changed them cannot be applied; ask for "
                              "post_sampling_probs");
      }
      metadata_.path = sampled.cuts_unknown ? TextSource::unknown : TextSource::target;
      metadata_.temperature = sampled.temperature;
      metadata_.top_k = sampled.top_k;
      metadata_.top_p = sampled.top_p;
      metadata_.min_p = sampled.min_p;
      metadata_.temperature_last = sampled.temperature_last;
    } else if (draft_.generated()) {
      metadata_.path = TextSource::other;
    }
  }

  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {target_.file().path(), draft_.file().path()}; }
  std::string format() const override { return "paired recordings"; }

  std::vector<Note> notes() const override {
    std::vector<Note> notes;
    if (tokens_by_text_) {
      notes.push_back(
          {"tokens_by_text", "the files name tokens by their text, so token ids mean something within a request only"});
    }
    if (target_.sampled().bans_ends && target_.space() != LogprobSpace::processed) {
      notes.push_back({"logit_bias",
                       "the tokens that end a text were banned before it was sampled (ignore_eos); the raw "
                       "log-probabilities do not show it"});
    }
    if (target_.sampled().cuts_unknown) {
      notes.push_back({"sampling_not_stated",
                       "the target's answers do not say how their text was sampled (generation_settings), and "
                       "llama-server cuts unless told otherwise (temperature 0.8, top-k 40, top-p 0.95, min-p 0.05); "
                       "the raw log-probabilities are taken for those that were sampled from"});
    }
    return notes;
  }

  bool read(PositionBatch& batch) override {
    columns_.clear();
    while (has_pair_ || next_pair()) {
      const Overlap overlap = align();
      const Shape shape = shape_of_pair();
      if (columns_.size() > 0 && shape != shape_) break;
      shape_ = shape;
      join(overlap);
      has_pair_ = false;
      if (columns_.size() * (4 + 2 * (shape_.target_k + shape_.draft_k)) >= numbers_of_a_batch) break;
    }
    batch = columns_.shown(shape_.tier());
    return batch.size > 0;
  }

  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    const PositionColumns::Lines lines = columns_.lines_of(position);
    const bool of_target = role == Role::target;
    return {(of_target ? target_ : draft_).file().path(), FileError::line(of_target ? lines.target : lines.draft),
            "log-probabilities", std::move(found), std::move(expected)};
  }

 private:
  bool next_pair() {
    target_text_ = target_.next();
    if (target_text_ == nullptr) {
      if (!by_id_ && draft_.next() != nullptr) refuse_count(draft_, target_, requests_);
      return false;
    }
    draft_text_ = next_draft();
    if (draft_text_ == nullptr) refuse_count(target_, draft_, requests_);
    ++requests_;
    has_pair_ = true;
    return true;
  }

  /// In order, until ids that both files have disagree; from then on by id.
  const ScoredText* next_draft() {
    const std::string& id = target_text_->id;
    const ScoredText* text = by_id_ ? nullptr : draft_.next();
    if (id.empty() || (text != nullptr && (text->id == id || text->id.empty()))) return text;
    by_id_ = true;
    text = draft_.find(id);
    if (text == nullptr) {
      target_.file().refuse("custom_id", id, "an id that is in " + draft_.file().path().string() + " too");
    }
    return text;
  }

  [[noreturn]] static void refuse_count(const ModelRecording& longer, const ModelRecording& shorter,
                                        std::int64_t count) {
    longer.file().refuse("request", fmt::format("number {}", count + 1),
                         fmt::format("the last, as {} holds {}", shorter.file().path().string(), count));
  }

  /// The positions that both texts have, whose tokens are then compared.
  Overlap align() {
    const ScoredText& target = *target_text_;
    const ScoredText& draft = *draft_text_;
    Overlap overlap;
    if (target.start && draft.start) {
      const std::int64_t target_end = *target.start + target.size();
      const std::int64_t draft_end = *draft.start + draft.size();
      if (target_end != draft_end) refuse_lengths(target_end, draft_end, "with its prompt");
      const std::int64_t begin = std::max(*target.start, *draft.start);
      overlap = {begin - *target.start, begin - *draft.start, std::max<std::int64_t>(target_end - begin, 0)};
    } else {
      const bool may_differ = target.start || draft.start || target.generated != draft.generated;
      if (!may_differ && target.size() != draft.size()) refuse_lengths(target.size(), draft.size(), "");
      overlap.size = std::min(target.size(), draft.size());
      overlap.target_first = target.size() - overlap.size;
      overlap.draft_first = draft.size() - overlap.size;
    }
    translate_texts();
    compare_tokens(overlap);
    return overlap;
  }

  [[noreturn]] void refuse_lengths(std::int64_t target, std::int64_t draft, std::string_view counted) const {
    const std::string_view separator = counted.empty() ? "" : " ";
    draft_.file().refuse(fmt::format("text of request {}", requests_),
                         fmt::format("{} tokens long{}{}", draft, separator, counted),
                         fmt::format("{}, as in {}", target, place_of_target()));
  }

  std::string place_of_target() const {
    return fmt::format("{}:{}", target_.file().path().string(), target_text_->line);
  }

  /// Numbers the draft's texts like the target's, so that equal texts have equal numbers.
  void translate_texts() {
    const ScoredText& target = *target_text_;
    const ScoredText& draft = *draft_text_;
    if (target.named_by_text() != draft.named_by_text() && target.size() > 0 && draft.size() > 0) {
      const auto kind = [](const ScoredText& text) { return text.named_by_text() ? "text" : "id"; };
      draft_.file().refuse(
          fmt::format("tokens of request {}", requests_), fmt::format("named by {}", kind(draft)),
          fmt::format("named by {}, as in {} (record both with token ids)", kind(target), place_of_target()));
    }
    translation_.clear();
    if (!draft.named_by_text()) return;
    tokens_by_text_ = true;
    std::int32_t next = static_cast<std::int32_t>(target.texts.size());
    for (std::size_t i = 0; i < draft.texts.size(); ++i) {
      const bool repeated = draft.number_of(draft.texts[i]) != static_cast<std::int32_t>(i);
      const std::int32_t same = repeated ? -1 : target.number_of(draft.texts[i]);
      translation_.push_back(same >= 0 ? same : next++);
    }
  }

  std::int32_t translated(std::int32_t token) const {
    return translation_.empty() ? token : translation_[static_cast<std::size_t>(token)];
  }

  static std::string shown(const ScoredText& text, std::int32_t token) {
    return text.named_by_text() ? printable(text.texts[static_cast<std::size_t>(token)]) : fmt::format("{}", token);
  }

  void compare_tokens(const Overlap& overlap) {
    for (std::int64_t i = 0; i < overlap.size; ++i) {
      const std::int32_t by_target = target_text_->token[static_cast<std::size_t>(overlap.target_first + i)];
      const std::int32_t by_draft = draft_text_->token[static_cast<std::size_t>(overlap.draft_first + i)];
      if (by_target != translated(by_draft)) {
        draft_.file().refuse(fmt::format("token {} of request {}", i, requests_), shown(*draft_text_, by_draft),
                             fmt::format("{}, as in {}", shown(*target_text_, by_target), place_of_target()));
      }
    }
  }

  Shape shape_of_pair() const {
    Shape shape;
    shape.has_logprobs = !target_text_->logprob.empty() && !draft_text_->logprob.empty();
    if (target_text_->k > 0 && draft_text_->k > 0) {
      shape.target_k = target_text_->k;
      shape.draft_k = draft_text_->k;
    } else if (!shape.has_logprobs && target_text_->size() > 0 && draft_text_->size() > 0) {
      draft_.file().refuse(fmt::format("request {}", requests_), "without lists or without the tokens' own numbers",
                           "with the same kind of numbers as " + place_of_target());
    }
    return shape;
  }

  void join(const Overlap& overlap) {
    append_model(*target_text_, overlap.target_first, overlap.size, shape_.target_k,
                 columns_.batch.target_token_logprob, columns_.batch.target_token_rank, columns_.batch.target_top_k);
    const std::size_t draft_ids = columns_.batch.draft_top_k.ids.size();
    append_model(*draft_text_, overlap.draft_first, overlap.size, shape_.draft_k, columns_.batch.draft_token_logprob,
                 columns_.batch.draft_token_rank, columns_.batch.draft_top_k);
    for (std::size_t i = draft_ids; i < columns_.batch.draft_top_k.ids.size(); ++i) {
      columns_.batch.draft_top_k.ids[i] = translated(columns_.batch.draft_top_k.ids[i]);
    }
    for (std::int64_t i = 0; i < overlap.size; ++i) {
      const std::int32_t by_target = target_text_->token[static_cast<std::size_t>(overlap.target_first + i)];
      const std::int32_t by_draft = draft_text_->token[static_cast<std::size_t>(overlap.draft_first + i)];
      columns_.batch.token.push_back(by_target >= 0 ? by_target : translated(by_draft));
    }
    columns_.end_sequence({}, target_text_->line, draft_text_->line);
  }

  void append_model(const ScoredText& text, std::int64_t first, std::int64_t size, std::int64_t k,
                    std::vector<float>& logprob, std::vector<std::int32_t>& rank,
                    OwnedBatch::TopKColumns& lists) const {
    if (shape_.has_logprobs) append(logprob, text.logprob, first, size);
    append(rank, text.rank, first, size);
    lists.k = k;
    if (k == 0) return;
    append(lists.ids, text.ids, first * k, size * k);
    append(lists.logprobs, text.logprobs, first * k, size * k);
    append(lists.tail_logprob, text.tail, first, size);
  }

  ModelRecording target_;
  ModelRecording draft_;
  TraceMetadata metadata_;
  PositionColumns columns_;
  Shape shape_;
  const ScoredText* target_text_ = nullptr;
  const ScoredText* draft_text_ = nullptr;
  bool has_pair_ = false;
  bool by_id_ = false;
  bool tokens_by_text_ = false;
  std::int64_t requests_ = 0;
  std::vector<std::int32_t> translation_;
};

}  // namespace

bool is_model_recording(std::string_view head) {
  constexpr std::array keys = {"choices",     "prompt_logprobs", "meta_info", "completion_probabilities",
                               "topk_logits", "logprobs_b64"};
  return std::any_of(keys.begin(), keys.end(), [head](const char* key) { return mentions_key(head, key); });
}

std::unique_ptr<PositionSource> open_paired_recordings(const std::filesystem::path& target,
                                                       const std::filesystem::path& draft) {
  return std::make_unique<PairedRecordings>(target, draft);
}

}  // namespace specdec::traces
