#include "sim/drafts/parallel_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/drafts/target_features.hpp"
#include "sim/transformer/weight_reader.hpp"

namespace specdec::sim {

struct ParallelHeads {
  std::shared_ptr<const TransformerWeights> target;
  AlignedBytes matrix_memory;
  std::vector<Linear> projections;
};

std::shared_ptr<const ParallelHeads> load_parallel_heads(const std::filesystem::path& path,
                                                         std::shared_ptr<const TransformerWeights> target) {
  TensorStore store = TensorStore::of_heads(path, "specdec-parallel-heads", target->config);
  WeightReader reader(store);
  const auto weight = [](std::size_t j) { return fmt::format("parallel.{}", j); };
  auto heads = std::make_shared<ParallelHeads>();
  std::size_t count = 1;
  while (store.has(weight(count + 1) + ".weight")) ++count;
  heads->projections.resize(count);
  const std::int64_t width = target->config.width;
  const auto walk = [&] {
    for (std::size_t j = 1; j <= count; ++j) reader.rows({{weight(j), width}}, width, true, heads->projections[j - 1]);
  };
  walk();
  store.require_nothing_else([](const std::string&) { return false; });
  reader.begin_reading(heads->matrix_memory);
  walk();
  heads->target = std::move(target);
  return heads;
}

double operations_of(const ParallelHeads& heads) {
  double sum = operations_of(heads.target->head);
  for (const Linear& projection : heads.projections) sum += operations_of(projection);
  return sum;
}

ParallelHeadDraft::ParallelHeadDraft(std::shared_ptr<const ParallelHeads> heads, const Transformer& target,
                                     const core::Standardisation& standardisation, Proposing proposing)
    : heads_(std::move(heads)),
      target_(target),
      standardisation_(standardisation),
      proposing_(proposing),
      width_(static_cast<std::size_t>(heads_->target->config.width)),
      feature_(1, width_),
      ones_(1, width_),
      gate_(1, heads_->projections.front().matrix.padded_rows()),
      states_(heads_->projections.size(), width_),
      logits_(heads_->projections.size(), heads_->target->head.matrix.padded_rows()) {
  require_valid(standardisation);
  require_features("ParallelHeadDraft", target, heads_->target->config);
  std::fill_n(ones_.row(0), width_, 1.0F);
}

void ParallelHeadDraft::propose(const DraftRequest& request, Proposal& proposal) {
  RowProposer proposer(request, vocab_size(), standardisation_, proposing_, proposal);
  require_text("ParallelHeadDraft::propose", target_, request.text);
  const auto rows = std::min(request.limit, std::ssize(heads_->projections));
  if (rows == 0 || target_.length() == 0) return;
  const auto count = static_cast<std::size_t>(rows);
  compute(target_.features(target_.length() - 1), count);
  work_.calls += 1;
  work_.positions += rows;
  work_.operations +=
      (operations_of(heads_->projections.front()) + operations_of(heads_->target->head)) * static_cast<double>(rows);
  for (std::size_t j = 0; j < count; ++j) {
    softmax(logits(j), proposer.next_row());
    if (!proposer.propose()) break;
  }
}

void ParallelHeadDraft::compute(std::span<const float> feature, std::size_t count) {
  std::copy(feature.begin(), feature.end(), feature_.row(0));
  for (std::size_t j = 0; j < count; ++j) {
    const Linear& projection = heads_->projections[j];
    std::copy(projection.bias.begin(), projection.bias.end(), gate_.row(0));
    const Panels panels = projection.matrix.panels();
    multiply(panels, 0, panels.count(), 1, feature_.inputs(), gate_.rows(), true);
    swish_gate(gate_.row(0), ones_.row(0), states_.row(j), width_);
    for (std::size_t i = 0; i < width_; ++i) states_.row(j)[i] += feature[i];
  }
  const Panels output = heads_->target->head.matrix.panels();
  multiply(output, 0, output.count(), count, states_.inputs(), logits_.rows(), false);
  for (std::size_t j = 0; j < count; ++j) {
    if (!all_finite(logits(j)))
      throw std::domain_error("ParallelHeadDraft::propose: a logit overflows, but must be finite");
  }
}

}  // namespace specdec::sim
