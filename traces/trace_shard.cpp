#include "traces/trace_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr double largest_sum_tolerance = 0.1;

/// Far beyond any model; the memory for one row stays bounded.
constexpr std::int64_t largest_vocab = std::int64_t{1} << 24U;
constexpr std::int64_t largest_top_k = std::int64_t{1} << 20U;

/// Takes a model's sum tolerance out of the metadata.
double take_sum_tolerance(std::map<std::string, std::string>& strings, const char* key,
                          const std::filesystem::path& path) {
  const auto node = strings.extract(key);
  if (node.empty()) return 0;
  const std::string& text = node.mapped();
  const auto value = number_in<double>(text);
  if (value && 0 <= *value && *value <= largest_sum_tolerance) return *value;
  throw FileError(path, fmt::format("metadata {}", key), fmt::format("\"{:.20}\"", text),
                  fmt::format("a number in [0, {}]", largest_sum_tolerance));
}

bool is_integer(ElementType type) {
  return type == ElementType::i64 || type == ElementType::i32 || type == ElementType::u8;
}
bool is_floating(ElementType type) { return !is_integer(type) && type != ElementType::boolean; }

}  // namespace

/// Finds the tensors of a shard and checks each one's type and shape, and all of them against each other.
class TraceShard::Binder {
 public:
  Binder(TraceShard& shard, const ErrorSink& sink) : shard_(shard), sink_(sink) {
    for (const Tensor& tensor : shard.file_.tensors()) unbound_.insert(&tensor);
  }

  void bind() {
    read_metadata();
    bind_index();
    bind_model(column::target, shard_.target_rows_);
    bind_model(column::draft, shard_.draft_rows_);
    note_unknown();
    choose_tier();
    if (!shard_.good_) return;
    check_vocabularies();
    check_top_k();
    check_steps();
  }

 private:
  enum class Kind { integer, floating };

  void report(const FileError& error) {
    shard_.good_ = false;
    sink_(error);
  }
  void report(const Tensor& tensor, const char* property, std::string found, std::string expected) {
    report(FileError(shard_.file_.path(), FileError::byte(tensor.offset), fmt::format("{}.{}", tensor.name, property),
                     std::move(found), std::move(expected)));
  }
  void report_shape(const Tensor& tensor, std::string expected) {
    report(tensor, "shape", shape_text(tensor.shape), std::move(expected));
  }

  void read_metadata() {
    auto strings = shard_.file_.metadata();
    const auto& path = shard_.file_.path();
    try {
      shard_.target_rows_.sum_tolerance = take_sum_tolerance(strings, column::target.sum_tolerance, path);
      shard_.draft_rows_.sum_tolerance = take_sum_tolerance(strings, column::draft.sum_tolerance, path);
      shard_.metadata_ = metadata_from_strings(strings, path);
    } catch (const FileError& error) {
      report(error);
    }
  }

  void bind_index() {
    for (const char* name : {column::seq, column::pos, column::token, column::task, column::prompt,
                             column::step_drafted, column::step_accepted, column::step_time_ns})
      take(column(name, Kind::integer));
    take(column(column::overlap, Kind::floating));
    take(column(column::accepted_length, Kind::integer));
    const Tensor* map = bound(column::vocab_map, Kind::integer);
    take(map);
    if (map != nullptr && map->shape.size() != 1) report_shape(*map, "[reduced vocabulary]");
  }

  void bind_model(const column::Model& names, ShardRows& rows) {
    for (const RowSpace space : {RowSpace::logits, RowSpace::log_probabilities, RowSpace::probabilities}) {
      if (rows.tensor != nullptr) {
        leave_out(names.rows(space), fmt::format("{} is read instead", rows.tensor->name));
      } else if ((rows.tensor = columns(names.rows(space), Kind::floating, largest_vocab)) != nullptr) {
        rows.space = space;
      }
    }
    take(columns(names.topk_ids, Kind::integer));
    take(columns(names.topk_logprobs, Kind::floating));
    take(column(names.tail_logprob, Kind::floating));
    take(columns(names.at_other_topk, Kind::floating));
    take(column(names.token_rank, Kind::integer));
    const bool by_depth = &names == &column::draft && rank_of(names.token_logprob) == 2;
    take(by_depth ? columns(names.token_logprob, Kind::floating) : column(names.token_logprob, Kind::floating));
  }

  void take(const Tensor* tensor) {
    if (tensor != nullptr) shard_.read_.emplace(tensor->name, tensor);
  }

  std::size_t rank_of(const char* name) const {
    const Tensor* tensor = shard_.file_.find(name);
    return tensor == nullptr ? 0 : tensor->shape.size();
  }

  /// The tensor with that name if it is present and of that kind of type.
  const Tensor* bound(const char* name, Kind kind) {
    const Tensor* tensor = shard_.file_.find(name);
    if (tensor == nullptr) return nullptr;
    unbound_.erase(tensor);
    if (kind == Kind::integer ? is_integer(tensor->type) : is_floating(tensor->type)) return tensor;
    report(*tensor, "dtype", std::string(name_of(tensor->type)),
           kind == Kind::integer ? "one of I64, I32, U8" : "one of F64, F32, F16, BF16");
    return nullptr;
  }

  /// A tensor with one number per position.
  const Tensor* column(const char* name, Kind kind) {
    const Tensor* tensor = bound(name, kind);
    if (tensor == nullptr) return nullptr;
    if (tensor->shape.size() == 1 && has_all_positions(*tensor)) return tensor;
    report_shape(*tensor, fmt::format("[{}]", positions_text()));
    return nullptr;
  }

  /// A tensor with several numbers per position.
  const Tensor* columns(const char* name, Kind kind, std::int64_t most = largest_top_k) {
    const Tensor* tensor = bound(name, kind);
    if (tensor == nullptr) return nullptr;
    const bool wide = tensor->shape.size() == 2 && 1 <= tensor->shape[1] && tensor->shape[1] <= most;
    if (wide && has_all_positions(*tensor)) return tensor;
    report_shape(*tensor, fmt::format("[{}, 1 to {}]", positions_text(), most));
    return nullptr;
  }

  bool has_all_positions(const Tensor& tensor) {
    if (!shard_.positions_) {
      shard_.positions_ = tensor.shape[0];
      positions_like_ = tensor.name;
    }
    return tensor.shape[0] == *shard_.positions_;
  }

  std::string positions_text() const {
    if (!shard_.positions_) return "positions";
    return fmt::format("{} positions as {}", *shard_.positions_, positions_like_);
  }

  void leave_out(const char* name, std::string reason) {
    const Tensor* tensor = shard_.file_.find(name);
    if (tensor == nullptr) return;
    unbound_.erase(tensor);
    shard_.unread_.emplace_back(name, std::move(reason));
  }

  void note_unknown() {
    for (const Tensor& tensor : shard_.file_.tensors()) {
      if (unbound_.count(&tensor) == 1) shard_.unread_.emplace_back(tensor.name, "specdec-trace has no such tensor");
    }
  }

  bool have(std::initializer_list<const char*> names) const {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return shard_.find(name) != nullptr; });
  }

  void choose_tier() {
    const column::Model &p = column::target, &q = column::draft;
    const bool scalar = have({p.token_logprob, q.token_logprob});
    if (shard_.target_rows_.tensor != nullptr && shard_.draft_rows_.tensor != nullptr) {
      shard_.tier_ = Tier::full;
    } else if (have({p.topk_ids, p.topk_logprobs, q.topk_ids, q.topk_logprobs})) {
      shard_.tier_ = Tier::top_k;
    } else if (scalar) {
      shard_.tier_ = Tier::scalar;
    } else if (have({column::accepted_length})) {
      shard_.tier_ = Tier::accepted_length;
    } else if (shard_.good_) {
      report(FileError(shard_.file_.path(), "content", what_there_is(),
                       "a trace: p.logits, .logprobs or .probs, or p.topk_ids and p.topk_logprobs, or "
                       "p.token_logprob, and the same of q; or acc_len"));
    }
    if (!scalar) drop({p.token_logprob, q.token_logprob}, "the other model's is missing");
    if (shard_.tier_ != Tier::full) {
      for (ShardRows* rows : {&shard_.target_rows_, &shard_.draft_rows_}) {
        if (rows->tensor != nullptr)
          shard_.unread_.emplace_back(rows->tensor->name, "the other model's rows are missing");
        rows->tensor = nullptr;
      }
    }
    if (shard_.tier_ != Tier::top_k) {
      drop({p.topk_ids, q.topk_ids, p.topk_logprobs, q.topk_logprobs, p.tail_logprob, q.tail_logprob, p.at_other_topk,
            q.at_other_topk},
           shard_.tier_ == Tier::full ? "whole rows are read instead" : "ids and log-probabilities of both are needed");
    }
  }

  std::string what_there_is() const {
    std::string names;
    for (const Tensor& tensor : shard_.file_.tensors()) {
      constexpr std::size_t longest = 100;
      if (names.size() > longest) return names + ", ...";
      names += fmt::format("{}{}", names.empty() ? "" : ", ", tensor.name.substr(0, longest));
    }
    return names.empty() ? "without tensors" : "only " + names;
  }

  void drop(std::initializer_list<const char*> names, const char* reason) {
    for (const char* name : names) {
      if (shard_.read_.erase(name) > 0) shard_.unread_.emplace_back(name, reason);
    }
  }

  void check_vocabularies() {
    if (shard_.tier_ != Tier::full) return drop({column::vocab_map}, "there are no whole rows");
    const Tensor* map = shard_.find(column::vocab_map);
    const Tensor *p = shard_.target_rows_.tensor, *q = shard_.draft_rows_.tensor;
    const std::int64_t draft_vocab = map == nullptr ? p->shape[1] : map->shape[0];
    if (q->shape[1] != draft_vocab) {
      report_shape(*q,
                   fmt::format("[{}, {}] as {} is{}", q->shape[0], draft_vocab, map == nullptr ? p->name : map->name,
                               map == nullptr ? ", or with q.vocab_map of its size" : ""));
    }
    const auto& vocab_size = shard_.metadata_.vocab_size;
    if (vocab_size && *vocab_size != p->shape[1]) {
      report_shape(*p, fmt::format("[{}, {}] as metadata vocab_size says", p->shape[0], *vocab_size));
    }
  }

  void check_top_k() {
    if (shard_.tier_ != Tier::top_k) return;
    for (const auto& [model, other] : {std::pair(column::target, column::draft), {column::draft, column::target}}) {
      require_same_shape(model.topk_logprobs, model.topk_ids);
      if (have({model.at_other_topk})) require_same_shape(model.at_other_topk, other.topk_ids);
    }
  }

  void require_same_shape(const char* name, const char* like_name) {
    const Tensor &tensor = *shard_.find(name), &like = *shard_.find(like_name);
    if (tensor.shape != like.shape) report_shape(tensor, fmt::format("{} as {}", shape_text(like.shape), like.name));
  }

  void check_steps() {
    const Tensor *drafted = shard_.find(column::step_drafted), *accepted = shard_.find(column::step_accepted);
    if ((drafted == nullptr) == (accepted == nullptr)) return;
    const Tensor& one = drafted == nullptr ? *accepted : *drafted;
    report(FileError(shard_.file_.path(), FileError::byte(one.offset), one.name, "alone",
                     "together with step.drafted and step.accepted"));
  }

  TraceShard& shard_;
  const ErrorSink& sink_;
  std::set<const Tensor*> unbound_;
  std::string positions_like_;
};

TraceShard::TraceShard(const std::filesystem::path& path, const ErrorSink& sink) : file_(path) {
  Binder(*this, sink).bind();
}

const Tensor* TraceShard::find(const char* name) const {
  const auto found = read_.find(name);
  return found == read_.end() ? nullptr : found->second;
}

std::optional<std::int64_t> TraceShard::vocab() const {
  if (target_rows_.tensor == nullptr) return std::nullopt;
  return target_rows_.tensor->shape[1];
}

}  // namespace specdec::traces
