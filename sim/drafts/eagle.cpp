#include "sim/drafts/eagle.hpp"

#include <algorithm>
#include <utility>

#include "sim/drafts/target_features.hpp"
#include "sim/transformer/weight_reader.hpp"
#include "traces/file_error.hpp"

namespace specdec::sim {

struct EagleHead {
  /// Owns the output matrix that `block` refers to.
  std::shared_ptr<const TransformerWeights> target;
  /// A model of one block without an embedding, whose positions start as vectors; its final norm is the head's.
  TransformerWeights block;
  /// Rows: width; columns: embedding, then feature.
  Linear fc;
};

namespace {

void read_head(WeightReader& reader, EagleHead& head) {
  const TransformerConfig& c = head.block.config;
  TransformerBlock block;
  reader.rows({{"eagle.fc", c.width}}, 2 * c.width, false, head.fc);
  reader.llama_block(c, "eagle.layer.", block);
  reader.norm_weight("eagle.norm.weight", c.width, head.block.final_norm.weight);
  if (!head.block.known_tokens.empty())
    reader.rows_of(head.target->head.matrix, head.block.known_tokens, head.block.head.matrix);
  if (!reader.checking()) head.block.blocks.push_back(std::move(block));
}

}  // namespace

std::shared_ptr<const EagleHead> load_eagle_head(const std::filesystem::path& path,
                                                 std::shared_ptr<const TransformerWeights> target) {
  if (target->config.family != TransformerConfig::Family::llama)
    throw traces::FileError(path, "its target", "of the GPT-2 family", "of the Llama family");
  auto head = std::make_shared<EagleHead>();
  head->block.config = target->config;
  head->block.config.layers = 1;
  TensorStore store = TensorStore::of_heads(path, "specdec-eagle-head", target->config);
  head->target = std::move(target);
  head->block.known_tokens = store.known_tokens(std::nullopt, head->target->config.vocab_size);
  if (!head->block.known_tokens.empty()) head->block.config.known_tokens = length_of(head->block.known_tokens);
  WeightReader reader(store);
  read_head(reader, *head);
  store.require_nothing_else([](const std::string&) { return false; });
  reader.begin_reading(head->block.matrix_memory);
  read_head(reader, *head);
  if (head->block.known_tokens.empty()) head->block.head = head->target->head;
  return head;
}

double operations_of(const EagleHead& head) {
  return operations_of(head.fc) + operations_of(head.block.blocks.front()) + operations_of(head.block.head);
}

EagleDraft::EagleDraft(std::shared_ptr<const EagleHead> head, const Transformer& target,
                       const core::Standardisation& standardisation, Proposing proposing)
    : head_(std::move(head)),
      target_(target),
      standardisation_(standardisation),
      proposing_(proposing),
      width_(static_cast<std::size_t>(head_->block.config.width)),
      model_(std::shared_ptr<const TransformerWeights>(head_, &head_->block), {.keep_features = true}),
      pair_(1, 2 * width_),
      vector_(1, head_->fc.matrix.padded_rows()) {
  require_valid(standardisation);
  require_features("EagleDraft", target, head_->target->config);
}

void EagleDraft::begin(std::span<const Token> prompt) {
  work_ = {};
  keep(0);
  if (prompt.size() > 2) read(prompt, static_cast<std::int64_t>(prompt.size()) - 2, {});
}

void EagleDraft::propose(const DraftRequest& request, Proposal& proposal) {
  RowProposer rows(request, vocab_size(), standardisation_, proposing_, proposal);
  require_text("EagleDraft::propose", target_, request.text);
  const auto entries = static_cast<std::int64_t>(request.text.size()) - 1;
  if (entries == 0) return;
  const double per_position = operations_of(head_->fc) + operations_of(head_->block.blocks.front());
  while (rows.wants_more()) {
    const std::span<double> row = rows.next_row();
    std::int64_t positions = 1;
    if (proposal.tokens.empty()) {
      positions = read(request.text, entries, row);
    } else {
      vectors_.clear();
      add_vector(proposal.tokens.back(), model_.features(model_.length() - 1));
      model_.score_vectors(vectors_, row);
    }
    work_.calls += 1;
    work_.positions += positions;
    work_.operations += per_position * static_cast<double>(positions) + operations_of(head_->block.head);
    if (!rows.propose()) break;
  }
}

void EagleDraft::keep(std::int64_t length) {
  verified_ = std::min(verified_, std::max(length - 1, std::int64_t{0}));
  model_.roll_back(verified_);
}

std::int64_t EagleDraft::read(std::span<const Token> text, std::int64_t entries, std::span<double> row) {
  const std::int64_t first = verified_;
  vectors_.clear();
  for (std::int64_t t = first; t < entries; ++t) add_vector(text[static_cast<std::size_t>(t + 1)], target_.features(t));
  model_.score_vectors(vectors_, row);
  verified_ = entries;
  return entries - first;
}

void EagleDraft::add_vector(Token token, std::span<const float> feature) {
  const float* embedding = head_->target->token_embedding.data() + static_cast<std::size_t>(token) * width_;
  float* pair = pair_.row(0);
  std::copy_n(embedding, width_, pair);
  std::copy_n(feature.begin(), width_, pair + width_);
  const Panels panels = head_->fc.matrix.panels();
  multiply(panels, 0, panels.count(), 1, pair_.inputs(), vector_.rows(), false);
  vectors_.insert(vectors_.end(), vector_.row(0), vector_.row(0) + width_);
}

}  // namespace specdec::sim
