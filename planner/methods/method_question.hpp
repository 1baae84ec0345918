#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"
#include "planner/cost.hpp"
#include "planner/question_error.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::planner {

/// Largest number of children and of levels of a tree.
inline constexpr std::int64_t largest_tree_side = 64;

/// A tree of drafts in which every node has the same number of children.
struct TreeShape {
  std::int64_t children = 2;
  /// Levels below the root.
  std::int64_t depth = 3;
};

/// Source and parameters of methods. Members have the names of the options of `specdec compare`. A member that
/// is not given has the default value of validation::MethodSettings; one that is given and that no method uses is
/// refused.
struct MethodQuestion {
  /// "pair", of models and prompts; "synthetic", a random pair of tables; or "trace", a recording. A pair if empty.
  std::optional<std::string> source = {};
  /// A pair's folders of checkpoints, the draft's or n-gram tables, and a file of prompts; the shipped ones if empty.
  std::optional<std::string> target = {};
  std::optional<std::string> draft_model = {};
  std::optional<std::string> prompts = {};
  /// Tasks of the prompts; all if empty.
  std::vector<std::string> tasks = {};
  /// Texts in which n-grams are counted; the prompts if empty.
  std::optional<std::string> ngram_text = {};
  /// Files of what was trained on the target; the shipped target's if that is the target.
  std::optional<std::string> eagle_head = {};
  std::optional<std::string> parallel_heads = {};
  std::optional<std::string> exits = {};
  /// Laws of a synthetic source: "bigram", "fixed" or "iid". If empty iid with an alpha, fixed above 4096 tokens, else
  /// bigram.
  std::optional<std::string> laws = {};
  /// Tokens of its vocabulary; 64 if empty.
  std::optional<std::int64_t> vocab = {};
  /// Noise of its draft, in logits; 1 if empty.
  std::optional<double> noise = {};
  /// Acceptance of every draft, for iid laws.
  std::optional<double> alpha = {};
  /// The recording that methods are replayed over.
  std::optional<std::string> trace = {};

  std::optional<std::int64_t> gamma = {};
  std::optional<double> temperature = {};
  std::optional<double> lenience = {};
  std::optional<double> epsilon = {};
  std::optional<double> delta = {};
  std::optional<double> threshold = {};
  /// Gammas by batch, from batch 1 on without gaps, for the policy batch.
  std::optional<std::vector<planning::ScheduleStretch>> schedule = {};
  std::optional<std::int64_t> batch = {};
  std::optional<std::int64_t> drafts = {};
  std::optional<TreeShape> tree = {};
  std::optional<std::int64_t> tree_nodes = {};
  /// The probability that the child of each rank is the accepted one; they do not rise, and sum to 1 at most.
  std::optional<std::vector<double>> tree_acceptance = {};
  std::optional<std::int64_t> exit_layer = {};

  /// Tokens per method; as many as until_error takes if that alone is given.
  std::optional<std::int64_t> tokens = {};
  /// A method ends if its tokens per step are known to this share of them.
  std::optional<double> until_error = {};
  std::optional<std::int64_t> max_new_tokens = {};
  /// Ends a text that writes it.
  std::optional<std::int64_t> end_token = {};
  /// Decode texts one at a time, in turn with plain decoding, and time both.
  bool timed = false;
  std::int64_t seed = 1;
  /// >= 1; does not affect the answer.
  std::int64_t threads = 1;
  /// Without a c it is the ratio of operations, if the source knows that.
  StepTimes cost = {};
};

/// A method as it was asked for, which may be shorter than its name in answers.
struct NamedMethod {
  std::string name;
  validation::Method method;
};

/// A question about several methods.
struct ComparisonQuestion : MethodQuestion {
  /// Different ones, in the order of the answer; all that the source allows if empty.
  std::vector<NamedMethod> methods = {};
};

/// A question about one method: a draft, a verifier and a policy.
struct SimulationQuestion : MethodQuestion {
  /// Names of entries of the tables in sim/validation/methods.hpp; the first of each table if empty.
  std::optional<std::string> draft = {};
  std::optional<std::string> verifier = {};
  std::optional<std::string> policy = {};
};

/// Words of a question: the sources, and the laws of a synthetic one.
std::vector<std::string> method_sources();
std::vector<std::string> synthetic_laws();

/// The methods with these names, "block" or "copy+algorithm1+heuristic".
/// @param option  names the list in errors
/// @throws QuestionError for a name that is none, and for one that is there twice
std::vector<NamedMethod> methods_named(std::string_view option, const std::vector<std::string>& names);

/// The legal values of a member of MethodQuestion that is a number.
/// @param option  "--gamma"
/// @throws std::out_of_range if there is no such number
LegalRange range_of_parameter(std::string_view option);

}  // namespace specdec::planner
