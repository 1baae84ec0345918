#include "sim/transformer/early_exit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "sim/transformer/kernels.hpp"
#include "sim/transformer/transformer_pass.hpp"

namespace specdec::sim {
namespace {

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0;
  double a_square = 0;
  double b_square = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += double{a[i]} * double{b[i]};
    a_square += double{a[i]} * double{a[i]};
    b_square += double{b[i]} * double{b[i]};
  }
  return product / std::sqrt(a_square * b_square);
}

/// The largest entry minus the second largest.
double lead(std::span<const double> probabilities) {
  double first = 0;
  double second = 0;
  for (const double p : probabilities) {
    second = std::max(second, std::min(first, p));
    first = std::max(first, p);
  }
  return first - second;
}

}  // namespace

class EarlyExitTransformer::Forward {
 public:
  Forward(std::shared_ptr<const TransformerWeights> weights, const EarlyExitOptions& options)
      : options_(options), layers_(weights->config.layers), pass_(std::move(weights), options.threads, layers_) {
    constexpr std::string_view function = "EarlyExitTransformer";
    core::require_in(function, "options.max_length", options.max_length, 0, config().max_length);
    core::require_in(function, "options.threshold", options.threshold, 0, 1);
    max_length_ = options.max_length == 0 ? config().max_length : options.max_length;
    exits_.resize(size(layers_) + 1);
    for (std::int64_t blocks = 1; blocks < layers_; ++blocks) {
      if (!options.exits || options.exits->heads.contains(blocks))
        exits_[size(blocks)] = {true, exit_behind(blocks, config(), options.exits)};
    }
  }

  const TransformerConfig& config() const { return pass_.config(); }
  std::int64_t vocab_size() const { return config().vocab_size; }
  std::int64_t max_length() const { return max_length_; }
  std::int64_t length() const { return static_cast<std::int64_t>(blocks_run_.size()); }

  std::int64_t blocks_run(std::int64_t position) const {
    core::require_in("EarlyExitTransformer::blocks_run", "position", position, 0, length() - 1);
    return blocks_run_[size(position)];
  }

  double operations(std::int64_t blocks) const {
    core::require_in("EarlyExitTransformer::operations", "blocks", blocks, 1, layers_);
    const TransformerWeights& weights = pass_.weights();
    const double keys_and_values = 2 * static_cast<double>(2 * config().key_value_heads * config().head_size) *
                                   static_cast<double>(config().width);
    double sum = 0;
    for (std::int64_t i = 0; i < layers_; ++i)
      sum += i < blocks ? operations_of(weights.blocks[size(i)]) : keys_and_values;
    const bool asks_all = options_.confidence == ExitConfidence::softmax_response;
    for (std::int64_t i = asks_all ? 1 : blocks; i <= blocks; ++i) {
      const Exit& exit = exits_[size(i)];
      if (exit.exists || i == layers_) sum += operations_of(weights.head);
      if (exit.head) sum += operations_of(exit.head->projection);
    }
    return sum;
  }

  double operations_per_token() const {
    if (length() <= first_to_leave_) return operations(layers_);
    double sum = 0;
    for (std::int64_t i = first_to_leave_; i < length(); ++i) sum += operations(blocks_run_[size(i)]);
    return sum / static_cast<double>(length() - first_to_leave_);
  }

  void run_all_blocks_before(std::int64_t position) {
    core::require_in("EarlyExitTransformer::run_all_blocks_before", "position", position, 0, max_length_);
    blocks_run_.clear();
    first_to_leave_ = position;
  }

  void append(std::span<const Token> block, std::span<double> rows) {
    constexpr std::string_view function = "EarlyExitTransformer::score";
    const std::size_t silent = block.size() - row_count(function, vocab_size(), block.size(), rows.size());
    require_tokens(function, block, vocab_size());
    require_room(function, length(), block.size(), max_length_);
    const std::int64_t before = length();
    pass_.reserve(size(before) + block.size());
    const auto row_of = [&](std::size_t token) {
      return token < silent ? std::span<double>()
                            : rows.subspan((token - silent) * size(vocab_size()), size(vocab_size()));
    };
    try {
      const std::size_t full =
          size(std::clamp<std::int64_t>(first_to_leave_ - before, 0, static_cast<std::int64_t>(block.size())));
      for (std::size_t first = 0; first < full; first += TransformerPass::most_tokens)
        run_all_blocks(block.subspan(first, std::min(TransformerPass::most_tokens, full - first)),
                       [&](std::size_t t) { return row_of(first + t); });
      for (std::size_t t = full; t < block.size(); ++t) run_until_sure(block.subspan(t, 1), row_of(t));
    } catch (...) {
      blocks_run_.resize(size(before));
      throw;
    }
  }

  void roll_back(std::int64_t length) {
    core::require_in("EarlyExitTransformer::roll_back", "length", length, 0, this->length());
    blocks_run_.resize(size(length));
  }

 private:
  /// The exit after a number of blocks.
  struct Exit {
    bool exists = false;
    /// Null for a plain exit.
    std::shared_ptr<const ExitHead> head;
  };

  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  template <class RowOf>
  void run_all_blocks(std::span<const Token> tokens, const RowOf& row_of) {
    const std::size_t position = blocks_run_.size();
    pass_.embed(tokens, position);
    for (std::size_t i = 0; i < size(layers_); ++i) pass_.run_block(i, tokens.size(), position);
    blocks_run_.resize(position + tokens.size(), layers_);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const std::span<double> row = row_of(t);
      if (row.empty()) continue;
      pass_.normalise(pass_.weights().final_norm, t, 1);
      pass_.write_logits(t, 1);
      write_row(row);
    }
  }

  void run_until_sure(std::span<const Token> token, std::span<double> row) {
    const std::size_t position = blocks_run_.size();
    const std::size_t layers = size(layers_);
    pass_.embed(token, position);
    std::size_t blocks = 0;
    for (bool leaves = false; blocks < layers && !leaves;) {
      const std::span<const float> state = pass_.state(0);
      if (options_.confidence == ExitConfidence::state_saturation) before_block_.assign(state.begin(), state.end());
      pass_.run_block(blocks, 1, position);
      ++blocks;
      leaves = exits_[blocks].exists && is_sure(blocks);
    }
    for (std::size_t skipped = blocks; skipped < layers; ++skipped) pass_.store_keys_and_values(skipped, position);
    blocks_run_.push_back(static_cast<std::int64_t>(blocks));
    if (row.empty()) return;
    // The softmax response of the block at which the token left has already computed its row.
    if (blocks == layers || options_.confidence == ExitConfidence::state_saturation) distribute(blocks);
    std::copy(probabilities_.begin(), probabilities_.end(), row.begin());
  }

  bool is_sure(std::size_t blocks) {
    if (options_.confidence == ExitConfidence::state_saturation)
      return blocks >= 2 && cosine(before_block_, pass_.state(0)) >= options_.threshold;
    distribute(blocks);
    return lead(probabilities_) >= options_.threshold;
  }

  /// Writes the distribution after this many blocks to probabilities_; the state is unchanged.
  void distribute(std::size_t blocks) {
    const std::span<float> state = pass_.state(0);
    state_.assign(state.begin(), state.end());
    if (exits_[blocks].head) pass_.take_exit(*exits_[blocks].head, 1);
    pass_.normalise(pass_.weights().final_norm, 0, 1);
    pass_.write_logits(0, 1);
    std::copy(state_.begin(), state_.end(), state.begin());
    probabilities_.resize(size(vocab_size()));
    write_row(probabilities_);
  }

  void write_row(std::span<double> row) {
    const std::span<float> logits = pass_.logits(0);
    if (!all_finite(logits))
      throw std::domain_error("EarlyExitTransformer::score: a logit overflows, but must be finite");
    softmax(logits, row);
  }

  EarlyExitOptions options_;
  std::int64_t layers_;
  TransformerPass pass_;
  std::int64_t max_length_ = 0;
  std::int64_t first_to_leave_ = 0;
  /// [blocks]; there is none after all blocks.
  std::vector<Exit> exits_;
  /// For the tokens of the prefix.
  std::vector<std::int64_t> blocks_run_;
  // Data of the current token, kept to reuse the memory.
  std::vector<float> before_block_;
  std::vector<float> state_;
  std::vector<double> probabilities_;
};

EarlyExitTransformer::EarlyExitTransformer(std::shared_ptr<const TransformerWeights> weights, EarlyExitOptions options)
    : forward_(std::make_unique<Forward>(std::move(weights), options)) {}
EarlyExitTransformer::EarlyExitTransformer(EarlyExitTransformer&&) noexcept = default;
EarlyExitTransformer& EarlyExitTransformer::operator=(EarlyExitTransformer&&) noexcept = default;
EarlyExitTransformer::~EarlyExitTransformer() = default;

void EarlyExitTransformer::run_all_blocks_before(std::int64_t position) { forward_->run_all_blocks_before(position); }
const TransformerConfig& EarlyExitTransformer::config() const { return forward_->config(); }
std::int64_t EarlyExitTransformer::vocab_size() const { return forward_->vocab_size(); }
std::int64_t EarlyExitTransformer::max_length() const { return forward_->max_length(); }
std::int64_t EarlyExitTransformer::length() const { return forward_->length(); }
std::int64_t EarlyExitTransformer::blocks_run(std::int64_t position) const { return forward_->blocks_run(position); }
double EarlyExitTransformer::operations(std::int64_t blocks) const { return forward_->operations(blocks); }
double EarlyExitTransformer::operations_per_token() const { return forward_->operations_per_token(); }
void EarlyExitTransformer::score(std::span<const Token> block, std::span<double> rows) {
  forward_->append(block, rows);
}
void EarlyExitTransformer::roll_back(std::int64_t length) { forward_->roll_back(length); }

EarlyExitText measure_early_exit(EarlyExitTransformer& early, LanguageModelRef full, std::span<const Token> prompt,
                                 std::span<const Token> text, const core::Standardisation& standardisation) {
  const auto vocab = static_cast<std::size_t>(early.vocab_size());
  core::require_same_size("measure_early_exit", "early's vocabulary", vocab, "full's vocabulary",
                          static_cast<std::size_t>(full.vocab_size()));
  core::require_in("measure_early_exit", "prompt length", static_cast<std::int64_t>(prompt.size()), 1,
                   std::numeric_limits<std::int64_t>::max());
  EarlyExitText result;
  result.blocks_run.resize(static_cast<std::size_t>(early.config().layers));
  early.run_all_blocks_before(static_cast<std::int64_t>(prompt.size()) - 1);
  full.roll_back(0);
  if (text.empty()) return result;
  std::vector<Token> read(prompt.begin(), prompt.end());
  read.insert(read.end(), text.begin(), text.end() - 1);
  std::vector<double> early_rows(text.size() * vocab);
  std::vector<double> full_rows(text.size() * vocab);
  early.score(read, early_rows);
  full.score(read, full_rows);
  for (std::size_t t = 0; t < text.size(); ++t) {
    const std::span<double> o = std::span(early_rows).subspan(t * vocab, vocab);
    const std::span<double> p = std::span(full_rows).subspan(t * vocab, vocab);
    core::standardise(o, standardisation);
    core::standardise(p, standardisation);
    for (std::size_t x = 0; x < vocab; ++x) {
      result.total_variation += std::abs(o[x] - p[x]) / 2;
      if (o[x] > 0) result.kullback_leibler += o[x] * std::log(o[x] / p[x]);
    }
    const std::int64_t blocks = early.blocks_run(static_cast<std::int64_t>(prompt.size() - 1 + t));
    result.blocks_run[static_cast<std::size_t>(blocks - 1)] += 1;
    result.operations += early.operations(blocks);
  }
  return result;
}

}  // namespace specdec::sim
