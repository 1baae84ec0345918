#include "traces/check_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "traces/formats/streams.hpp"
#include "traces/prompt_id.hpp"
#include "traces/trace_columns.hpp"
#include "traces/trace_shard.hpp"
#include "traces/unpaired_file.hpp"

namespace specdec::traces {
namespace {

constexpr float floor_logprob = -9999;
/// For the k most probable tokens and the tail: engines round their logits, and the column's type does not show that.
constexpr double top_k_tolerance = 1e-2;

/// The error in a row, and the requirement.
struct Complaint {
  std::string found;
  std::string expected;
};

double mass_of(float logprob) { return logprob > floor_logprob ? std::exp(static_cast<double>(logprob)) : 0; }

std::optional<Complaint> complaint_about_sum(double sum, double tolerance) {
  if (std::abs(sum - 1) <= tolerance) return std::nullopt;
  return Complaint{fmt::format("summing to {:.9g}", sum), fmt::format("summing to 1 within {}", tolerance)};
}

/// Checks that rows are distributions.
class RowChecker {
 public:
  std::optional<Complaint> check(const Row& row) {
    values_.resize(static_cast<std::size_t>(row.vocab));
    Tensor tensor;
    tensor.type = row.type;
    tensor.bytes = {row.data, static_cast<std::size_t>(row.vocab * size_of(row.type))};
    read_floats(tensor, 0, values_);
    const double tolerance = std::max(row.sum_tolerance, row_sum_tolerance(row.type));
    switch (row.space) {
      case RowSpace::probabilities:
        return check_probabilities(tolerance);
      case RowSpace::log_probabilities:
        return check_log_probabilities(tolerance);
      case RowSpace::logits:
        break;
    }
    return check_logits();
  }

 private:
  template <class Ok>
  std::optional<Complaint> first_not(const Ok& ok, const char* expected) const {
    const auto found = std::find_if_not(values_.begin(), values_.end(), ok);
    if (found == values_.end()) return std::nullopt;
    return Complaint{fmt::format("{} in column {}", *found, found - values_.begin()), expected};
  }

  std::optional<Complaint> check_probabilities(double tolerance) const {
    const auto is_probability = [=](float value) { return 0 <= value && value <= 1 + tolerance; };
    if (auto complaint = first_not(is_probability, "of probabilities, in [0, 1]")) return complaint;
    double sum = 0;
    for (const float value : values_) sum += value;
    return complaint_about_sum(sum, tolerance);
  }

  std::optional<Complaint> check_log_probabilities(double tolerance) const {
    const auto is_logprob = [=](float value) { return value <= tolerance; };
    if (auto complaint = first_not(is_logprob, "of log-probabilities, at most 0")) return complaint;
    double sum = 0;
    for (const float value : values_) sum += mass_of(value);
    return complaint_about_sum(sum, tolerance);
  }

  std::optional<Complaint> check_logits() const {
    const auto is_logit = [](float value) { return value <= std::numeric_limits<float>::max(); };
    if (auto complaint = first_not(is_logit, "of logits, finite or -inf")) return complaint;
    if (std::any_of(values_.begin(), values_.end(), [](float value) { return std::isfinite(value); })) {
      return std::nullopt;
    }
    return Complaint{"-inf throughout", "of logits, one of which is finite"};
  }

  std::vector<float> values_;
};

std::optional<Complaint> check_top_k(const TopK& top, std::int64_t i) {
  double sum = 0;
  for (const float logprob :
       top.logprobs.subspan(static_cast<std::size_t>(i * top.k), static_cast<std::size_t>(top.k))) {
    sum += mass_of(logprob);
  }
  const float tail = top.tail_logprob.empty() ? std::nanf("") : top.tail_logprob[static_cast<std::size_t>(i)];
  if (!std::isnan(tail)) return complaint_about_sum(sum + mass_of(tail), top_k_tolerance);
  if (sum <= 1 + top_k_tolerance) return std::nullopt;
  return Complaint{fmt::format("summing to {:.9g}", sum), "summing to at most 1"};
}

/// Checks all rows of a batch.
class BatchChecker {
 public:
  BatchChecker(const PositionSource& source, const ErrorSink& sink) : source_(source), sink_(sink) {}

  void check(const PositionBatch& batch) {
    for (std::int64_t i = 0; i < batch.size; ++i) {
      const std::int64_t position = batch.first + i;
      if (!batch.target_rows.empty()) report(position, Role::target, rows_.check(batch.target_rows[i]));
      if (!batch.draft_rows.empty()) report(position, Role::draft, rows_.check(batch.draft_rows[i]));
      if (!batch.target_top_k.empty()) report(position, Role::target, check_top_k(batch.target_top_k, i));
      if (!batch.draft_top_k.empty()) report(position, Role::draft, check_top_k(batch.draft_top_k, i));
    }
  }

 private:
  void report(std::int64_t position, Role role, std::optional<Complaint> complaint) {
    if (!complaint) return;
    sink_(source_.refusal(position, role, std::move(complaint->found), std::move(complaint->expected)));
  }

  const PositionSource& source_;
  const ErrorSink& sink_;
  RowChecker rows_;
};

/// Counts a source's contents, batch by batch.
class Describer {
 public:
  explicit Describer(TraceDescription& description) : to_(description) {}

  void add(const PositionBatch& batch) {
    to_.positions += batch.size;
    TraceDescription::TierCount& tier = count_of(batch.tier);
    tier.positions += batch.size;
    std::int64_t before = batch.tier == tier_ ? sequence_ : -1;
    for (const std::int64_t sequence : batch.sequence) {
      tier.sequences += sequence == before ? 0 : 1;
      before = sequence;
      add_position(sequence);
    }
    tier_ = batch.tier;
    for (const std::int32_t task : batch.task) ++to_.tasks[task];
    if (batch.task.empty()) without_task_ += batch.size;
    add_prompts(batch);
    for (const BatchColumn& column : columns_of(batch)) add_column(column);
    if (!batch.draft_vocab_map.empty()) {
      to_.columns.emplace(column::vocab_map, fmt::format("I32 [{}]", batch.draft_vocab_map.size()));
    }
  }

  void finish() {
    end_sequence();
    if (!to_.tasks.empty() && without_task_ > 0) to_.tasks[-1] += without_task_;
    if (prompts_known_) to_.prompts = static_cast<std::int64_t>(prompts_.size());
  }

 private:
  void add_position(std::int64_t sequence) {
    if (sequence != sequence_) {
      end_sequence();
      sequence_ = sequence;
    }
    ++length_;
  }

  void add_prompts(const PositionBatch& batch) {
    prompts_known_ = prompts_known_ && !batch.prompt.empty();
    for (std::size_t i = 0; i < batch.prompt.size() && prompts_known_; ++i) {
      const std::int64_t prompt = batch.prompt[i];
      if (prompt == no_prompt) prompts_known_ = false;
      if (i == 0 || prompt != batch.prompt[i - 1]) prompts_.insert(prompt);
    }
  }

  void end_sequence() {
    if (length_ == 0) return;
    to_.shortest_sequence = to_.sequences == 0 ? length_ : std::min(to_.shortest_sequence, length_);
    to_.longest_sequence = std::max(to_.longest_sequence, length_);
    ++to_.sequences;
    length_ = 0;
  }

  TraceDescription::TierCount& count_of(Tier tier) {
    const auto found = std::find_if(to_.tiers.begin(), to_.tiers.end(), [&](const auto& t) { return t.tier == tier; });
    if (found != to_.tiers.end()) return *found;
    return to_.tiers.emplace_back(TraceDescription::TierCount{tier});
  }

  void add_column(const BatchColumn& column) {
    const auto [entry, inserted] = to_.columns.try_emplace(std::string(column.name));
    if (!inserted) return;
    entry->second = fmt::format("{} [positions", name_of(column.type));
    for (const std::int64_t size : column.inner_shape) entry->second += fmt::format(", {}", size);
    entry->second += "]";
  }

  TraceDescription& to_;
  Tier tier_ = Tier::scalar;
  std::int64_t sequence_ = -1;
  std::int64_t length_ = 0;
  std::int64_t without_task_ = 0;
  bool prompts_known_ = true;
  std::unordered_set<std::int64_t> prompts_;
};

}  // namespace

TraceCheck check_trace(std::span<const std::filesystem::path> files, const OpenOptions& options,
                       std::int64_t max_findings, const BatchSink& look) {
  TraceCheck check;
  const ErrorSink keep = [&](const FileError& error) {
    ++check.count;
    if (check.count <= max_findings) check.findings.push_back(error);
  };
  OpenOptions collecting = options;
  collecting.on_error = keep;
  try {
    const std::unique_ptr<PositionSource> source = open_trace(files, collecting);
    BatchChecker checker(*source, keep);
    PositionBatch batch;
    while (source->read(batch)) {
      check.positions += batch.size;
      checker.check(batch);
      if (look && check.count == 0) look(*source, batch);
    }
    check.notes = source->notes();
  } catch (const UnpairedFile&) {
    throw;
  } catch (const FileError& error) {
    keep(error);
  }
  return check;
}

void require_sound_rows(const PositionSource& source, const PositionBatch& batch) {
  const ErrorSink refuse = [](const FileError& error) { throw error; };
  BatchChecker(source, refuse).check(batch);
}

TraceDescription describe_trace(PositionSource& source) {
  TraceDescription description;
  description.format = source.format();
  for (const auto& path : source.files()) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(readable_path(path), error);
    description.files.push_back({path, error ? 0 : static_cast<std::int64_t>(bytes)});
  }
  Describer describer(description);
  PositionBatch batch;
  while (source.read(batch)) describer.add(batch);
  describer.finish();
  description.metadata = source.metadata();
  return description;
}

}  // namespace specdec::traces
