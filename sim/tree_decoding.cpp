#include "sim/tree_decoding.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include "analysis/core/checks.hpp"
#include "sim/sampling.hpp"

namespace specdec::sim {
namespace {

constexpr std::int64_t most_nodes = 10'000'000;

/// The draft's most probable tokens, the lowest first in a tie.
std::vector<Token> most_probable(std::span<const double> row, std::size_t count) {
  std::vector<Token> tokens(row.size());
  std::iota(tokens.begin(), tokens.end(), Token{0});
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(std::min(count, tokens.size()));
  std::partial_sort(tokens.begin(), end, tokens.end(), [row](Token a, Token b) {
    const double p = row[static_cast<std::size_t>(a)];
    const double q = row[static_cast<std::size_t>(b)];
    return p > q || (p == q && a < b);
  });
  tokens.erase(end, tokens.end());
  return tokens;
}

/// A node of the tree drafted in a step.
struct DraftedNode {
  std::size_t in_tree = 0;
  Token token = 0;
  std::size_t parent = 0;
  std::int64_t depth = 0;
  std::vector<std::size_t> children = {};
  /// The round's row that is the draft's after the node; empty if no children were drafted.
  std::optional<std::size_t> row = {};
};

class TreeRun {
 public:
  TreeRun(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
          const TreeDecodingOptions& options, const UniformSource& uniforms)
      : target_(target),
        draft_(draft),
        options_(options),
        uniforms_(uniforms),
        vocab_(static_cast<std::size_t>(target.vocab_size())),
        children_in_tree_(options.parents.size()),
        text_(prompt.begin(), prompt.end()),
        draft_has_read_(length_of(prompt) - 1) {
    for (std::size_t i = 1; i < options.parents.size(); ++i)
      children_in_tree_[static_cast<std::size_t>(options.parents[i])].push_back(i);
    for (LanguageModel* model : {&target_, &draft_}) {
      model->roll_back(0);
      if (prompt.size() > 1) model->score(prompt.first(prompt.size() - 1), {});
    }
  }

  Generation finish() {
    Counters& counters = result_.counters;
    for (std::int64_t round = 0; !result_.ended && counters.tokens < options_.max_new_tokens; ++round) {
      draft_tree(round, options_.max_new_tokens - counters.tokens - 1);
      settle(walk(round));
    }
    counters.operations = draft_.operations_per_token() * static_cast<double>(counters.draft_positions) +
                          target_.operations_per_token() * static_cast<double>(counters.target_positions);
    return std::move(result_);
  }

 private:
  /// The nodes on the accepted path, and the token after the last one.
  struct Walk {
    std::vector<std::size_t> reached;
    Token extra = 0;
  };

  void draft_tree(std::int64_t round, std::int64_t deepest) {
    nodes_.assign(1, DraftedNode{});
    rows_in_use_ = 0;
    std::int64_t deepest_call = -1;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const std::size_t wanted = children_in_tree_[nodes_[n].in_tree].size();
      const std::int64_t depth = nodes_[n].depth;
      if (wanted == 0 || depth >= deepest) continue;
      const std::span<const double> row = row_behind(n);
      result_.counters.draft_calls += depth > deepest_call;
      deepest_call = std::max(deepest_call, depth);
      const std::vector<Token> tokens = propose(row, wanted, round);
      for (std::size_t j = 0; j < tokens.size(); ++j) {
        nodes_[n].children.push_back(nodes_.size());
        nodes_.push_back({children_in_tree_[nodes_[n].in_tree][j], tokens[j], n, depth + 1});
      }
    }
    draft_.roll_back(std::min(draft_.length(), length_of(text_)));
  }

  std::span<const double> row_behind(std::size_t node) {
    nodes_[node].row = rows_in_use_++;
    if (rows_in_use_ > rows_.size()) rows_.emplace_back(vocab_);
    const std::span<double> row = rows_[*nodes_[node].row];
    result_.counters.draft_positions += node == 0 ? length_of(text_) - draft_has_read_ : 1;
    std::vector<Token> unread;
    if (node == 0) {
      const auto held = static_cast<std::ptrdiff_t>(draft_.length());
      unread.assign(text_.begin() + held, text_.end());
    } else {
      draft_.roll_back(length_of(text_));
      for (std::size_t n = node; n != 0; n = nodes_[n].parent) unread.insert(unread.begin(), nodes_[n].token);
    }
    draft_.score(unread, row);
    core::standardise(row, options_.standardisation);
    return row;
  }

  /// The next nodes' tokens; the uniforms are those of their numbers.
  std::vector<Token> propose(std::span<const double> row, std::size_t count, std::int64_t round) const {
    const auto slot = static_cast<std::int64_t>(nodes_.size()) - 1;
    const auto wanted = static_cast<std::int64_t>(count);
    if (options_.siblings == SiblingDrafts::most_probable) return most_probable(row, count);
    if (options_.siblings == SiblingDrafts::without_replacement)
      return sample_without_replacement(row, wanted, uniforms_, round, slot);
    std::vector<Token> tokens;
    for (std::int64_t i = 0; i < wanted; ++i)
      tokens.push_back(sample(row, uniforms_.uniform(round, slot + i, Purpose::draft)));
    return tokens;
  }

  /// Walks from the root down while the target reads along. Its rows are the same as of one call over the tree.
  Walk walk(std::int64_t round) {
    Walk walk;
    std::vector<std::size_t> here{0};
    target_row_.resize(vocab_);
    const std::span<double> p = target_row_;
    Token last = text_.back();
    for (std::int64_t slot = 0;;) {
      target_.score(std::span(&last, 1), p);
      core::standardise(p, options_.standardisation);
      std::vector<std::size_t> children;
      std::vector<Token> tokens;
      for (const std::size_t node : here)
        for (const std::size_t child : nodes_[node].children) {
          children.push_back(child);
          tokens.push_back(nodes_[child].token);
        }
      if (children.empty()) {
        walk.extra = sample(p, uniforms_.uniform(round, slot, Purpose::bonus));
        return walk;
      }
      const std::vector<double>& q = rows_[*nodes_[nodes_[children.front()].parent].row];
      const CandidateVerdict verdict = options_.verifier({p, q, tokens}, uniforms_, round, slot);
      last = verdict.token;
      if (!verdict.accepted) {
        walk.extra = last;
        return walk;
      }
      walk.reached.push_back(children[*verdict.accepted]);
      slot += length_of(tokens);
      here.clear();
      for (const std::size_t child : children)
        if (nodes_[child].token == last) here.push_back(child);
    }
  }

  void settle(const Walk& walk) {
    const auto drafted = static_cast<std::int64_t>(nodes_.size()) - 1;
    result_.begin_step({drafted, static_cast<std::int64_t>(walk.reached.size()), 0, -1}, nodes_.back().depth);
    result_.counters.target_calls += 1;
    result_.counters.target_positions += drafted + 1;
    draft_has_read_ = nodes_.front().row ? length_of(text_) : draft_has_read_;
    for (const std::size_t node : walk.reached) {
      draft_has_read_ += nodes_[node].row.has_value();
      if (!result_.ended) emit(nodes_[node].token);
    }
    if (!result_.ended) emit(walk.extra);
  }

  void emit(Token token) {
    text_.push_back(token);
    result_.emit(token, options_.end_token);
  }

  LanguageModel& target_;
  LanguageModel& draft_;
  const TreeDecodingOptions& options_;
  const UniformSource& uniforms_;
  std::size_t vocab_;
  std::vector<std::vector<std::size_t>> children_in_tree_;
  std::vector<Token> text_;
  /// Number of tokens of the text that a draft that keeps the accepted path would have in its cache.
  std::int64_t draft_has_read_;
  std::vector<DraftedNode> nodes_;
  Generation result_;
  // Data of the current round, kept to reuse the memory.
  std::vector<std::vector<double>> rows_;
  std::size_t rows_in_use_ = 0;
  std::vector<double> target_row_;
};

}  // namespace

std::vector<std::int64_t> chains_tree(std::int64_t chains, std::int64_t gamma) {
  core::require_in("chains_tree", "chains", chains, 1, most_nodes);
  core::require_in("chains_tree", "gamma", gamma, 0, most_nodes / chains);
  std::vector<std::int64_t> parents{-1};
  for (std::int64_t i = 1; i <= chains * gamma; ++i) parents.push_back(std::max(std::int64_t{0}, i - chains));
  return parents;
}

std::vector<std::int64_t> full_tree(std::int64_t children, std::int64_t depth) {
  core::require_in("full_tree", "children", children, 1, most_nodes);
  core::require_in("full_tree", "depth", depth, 0, most_nodes);
  std::vector<std::int64_t> parents{-1};
  std::int64_t first = 0;
  for (std::int64_t level = 0; level < depth; ++level) {
    const auto end = static_cast<std::int64_t>(parents.size());
    core::require_in("full_tree", "nodes of a level", end - first, 1, (most_nodes - end) / children);
    for (std::int64_t parent = first; parent < end; ++parent)
      parents.insert(parents.end(), static_cast<std::size_t>(children), parent);
    first = end;
  }
  return parents;
}

Generation decode_with_tree(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                            const TreeDecodingOptions& options, const UniformSource& uniforms) {
  constexpr std::string_view function = "decode_with_tree";
  require_one_vocabulary(function, target.vocab_size(), draft.vocab_size());
  for (LanguageModel* const model : {&target, &draft})
    require_room_for_text(function, model->max_length(), prompt, options.max_new_tokens);
  core::require_in(function, "nodes", static_cast<std::int64_t>(options.parents.size()), 1, most_nodes);
  core::require_in(function, "parent of the root", options.parents.front(), -1, -1);
  for (std::size_t i = 1; i < options.parents.size(); ++i)
    core::require_in(function, "parent", options.parents[i], 0, static_cast<std::int64_t>(i) - 1);
  core::require_valid(options.standardisation);
  return TreeRun(target, draft, prompt, options, uniforms).finish();
}

}  // namespace specdec::sim
