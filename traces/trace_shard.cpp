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
  throw FileError(path, FileError::whole_file(), fmt::format("metadata {}", key), fmt::format("\"{:.20}\"", text),
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
    bind_model(column::target, shard_.tensors_.target);
    bind_model(column::draft, shard_.tensors_.draft);
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
      shard_.tensors_.target.sum_tolerance = take_sum_tolerance(strings, column::target.sum_tolerance, path);
      shard_.tensors_.draft.sum_tolerance = take_sum_tolerance(strings, column::draft.sum_tolerance, path);
      shard_.metadata_ = metadata_from_strings(strings, path);
    } catch (const FileError& error) {
      report(error);
    }
  }

  void bind_index() {
    ShardTensors& t = shard_.tensors_;
    t.seq = column(column::seq, Kind::integer);
    t.pos = column(column::pos, Kind::integer);
    t.token = column(column::token, Kind::integer);
    t.task = column(column::task, Kind::integer);
    t.prompt = column(column::prompt, Kind::integer);
    t.step_drafted = column(column::step_drafted, Kind::integer);
    t.step_accepted = column(column::step_accepted, Kind::integer);
    t.step_time_ns = column(column::step_time_ns, Kind::integer);
    t.overlap = column(column::overlap, Kind::floating);
    t.accepted_length = column(column::accepted_length, Kind::integer);
    t.vocab_map = bound(column::vocab_map, Kind::integer);
    if (t.vocab_map != nullptr && t.vocab_map->shape.size() != 1) report_shape(*t.vocab_map, "[reduced vocabulary]");
  }

  void bind_model(const column::Model& names, ModelTensors& model) {
    for (const RowSpace space : {RowSpace::logits, RowSpace::log_probabilities, RowSpace::probabilities}) {
      if (model.rows != nullptr) {
        leave_out(names.rows(space), fmt::format("{} is read instead", model.rows->name));
      } else if ((model.rows = columns(names.rows(space), Kind::floating, largest_vocab)) != nullptr) {
        model.space = space;
      }
    }
    model.topk_ids = columns(names.topk_ids, Kind::integer);
    model.topk_logprobs = columns(names.topk_logprobs, Kind::floating);
    model.tail_logprob = column(names.tail_logprob, Kind::floating);
    model.at_other_topk = columns(names.at_other_topk, Kind::floating);
    model.token_rank = column(names.token_rank, Kind::integer);
    const bool by_depth = &model == &shard_.tensors_.draft && rank_of(names.token_logprob) == 2;
    model.token_logprob =
        by_depth ? columns(names.token_logprob, Kind::floating) : column(names.token_logprob, Kind::floating);
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

  void choose_tier() {
    ModelTensors& p = shard_.tensors_.target;
    ModelTensors& q = shard_.tensors_.draft;
    const bool scalar = p.token_logprob != nullptr && q.token_logprob != nullptr;
    if (p.rows != nullptr && q.rows != nullptr) {
      shard_.tier_ = Tier::full;
    } else if (p.has_topk() && q.has_topk()) {
      shard_.tier_ = Tier::top_k;
    } else if (scalar) {
      shard_.tier_ = Tier::scalar;
    } else if (shard_.tensors_.accepted_length != nullptr) {
      shard_.tier_ = Tier::accepted_length;
    } else if (shard_.good_) {
      report(FileError(shard_.file_.path(), FileError::whole_file(), "content", what_there_is(),
                       "a trace: p.logits, .logprobs or .probs, or p.topk_ids and p.topk_logprobs, or "
                       "p.token_logprob, and the same of q; or acc_len"));
    }
    if (!scalar) drop({&p.token_logprob, &q.token_logprob}, "the other model's is missing");
    if (shard_.tier_ != Tier::full) drop({&p.rows, &q.rows}, "the other model's rows are missing");
    if (shard_.tier_ != Tier::top_k) {
      drop({&p.topk_ids, &q.topk_ids, &p.topk_logprobs, &q.topk_logprobs, &p.tail_logprob, &q.tail_logprob,
            &p.at_other_topk, &q.at_other_topk},
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

  void drop(std::initializer_list<const Tensor**> slots, const char* reason) {
    for (const Tensor** slot : slots) {
      if (*slot != nullptr) shard_.unread_.emplace_back((*slot)->name, reason);
      *slot = nullptr;
    }
  }

  void check_vocabularies() {
    const Tensor* map = shard_.tensors_.vocab_map;
    const Tensor* p = shard_.tensors_.target.rows;
    const Tensor* q = shard_.tensors_.draft.rows;
    if (shard_.tier_ != Tier::full) {
      drop({&shard_.tensors_.vocab_map}, "there are no whole rows");
      return;
    }
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
    const std::array<const ModelTensors*, 2> models = {&shard_.tensors_.target, &shard_.tensors_.draft};
    for (std::size_t i = 0; i < 2; ++i) {
      const ModelTensors& model = *models[i];
      const ModelTensors& other = *models[1 - i];
      require_same_shape(*model.topk_logprobs, *model.topk_ids);
      if (model.at_other_topk != nullptr) require_same_shape(*model.at_other_topk, *other.topk_ids);
    }
  }

  void require_same_shape(const Tensor& tensor, const Tensor& like) {
    if (tensor.shape != like.shape) report_shape(tensor, fmt::format("{} as {}", shape_text(like.shape), like.name));
  }

  void check_steps() {
    ShardTensors& t = shard_.tensors_;
    if ((t.step_drafted == nullptr) != (t.step_accepted == nullptr)) {
      const Tensor& one = t.step_drafted == nullptr ? *t.step_accepted : *t.step_drafted;
      report(FileError(shard_.file_.path(), FileError::byte(one.offset), one.name, "alone",
                       "together with step.drafted and step.accepted"));
    }
  }

  TraceShard& shard_;
  const ErrorSink& sink_;
  std::set<const Tensor*> unbound_;
  std::string positions_like_;
};

TraceShard::TraceShard(const std::filesystem::path& path, const ErrorSink& sink) : file_(path) {
  Binder(*this, sink).bind();
}

std::optional<std::int64_t> TraceShard::vocab() const {
  if (tensors_.target.rows == nullptr) return std::nullopt;
  return tensors_.target.rows->shape[1];
}

}  // namespace specdec::traces
