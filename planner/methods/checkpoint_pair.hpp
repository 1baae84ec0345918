#pragma once

#include "planner/assumption.hpp"
#include "planner/methods/method_question.hpp"
#include "sim/model_factory.hpp"
#include "sim/transformer/tokenizer.hpp"
#include "sim/transformer/transformer.hpp"
#include "sim/validation/method_source.hpp"
#include "traces/formats/prompts.hpp"
#include "traces/note.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace specdec::planner {

/// The folder of the models, prompts and the recording that come with the program, if it is there.
/// @throws QuestionError if it is missing
const std::filesystem::path& require_shipped_models(const std::filesystem::path& folder);

/// A target and a draft with one vocabulary, the tokenizer beside the target if there is one, and a file of prompts.
/// The target is a checkpoint; the draft is one too, or n-gram tables.
class CheckpointPair {
 public:
  using Weights = std::shared_ptr<const sim::TransformerWeights>;

  /// The paths that the user named; missing ones are the shipped pair's. A draft is a checkpoint's folder, "unigram" or
  /// "bigram" for the shipped tables, or "unigram:FILE" or "bigram:FILE".
  struct Paths {
    std::optional<std::string> target;
    std::optional<std::string> draft;
    std::optional<std::string> prompts;
    /// The command's name for the draft.
    const char* draft_option = "--draft";
  };

  /// @param shipped_models  folder of the shipped pair; need not exist if it is not needed
  /// @throws QuestionError, traces::FileError
  CheckpointPair(const Paths& paths, std::filesystem::path shipped_models);

  sim::ModelPair models() const;
  const Weights& target_weights() const { return target_; }
  /// Null where the draft is n-gram tables.
  const Weights& draft_weights() const { return draft_.weights; }

  /// Reads what was trained on this pair's target; what the question does not name is the shipped target's where that
  /// is the target, and else not there. files() lists them from then on. @throws traces::FileError
  void read_heads(const MethodQuestion& question, validation::MethodSource& source);
  /// The model of n-gram tables, named as a draft is. @throws traces::FileError
  sim::ModelFactory table_model(const std::string& name) const { return table_draft(name).make; }
  std::int64_t vocab_size() const;
  /// @throws QuestionError if there is none
  const sim::Tokenizer& tokenizer() const;

  /// Tokens of a prompt that leave room for `max_new_tokens` in both models, >= 1; `option` set these.
  /// @throws QuestionError
  std::int64_t longest_prompt(std::int64_t max_new_tokens, const char* option = "--max-new-tokens") const;

  struct Prompts {
    std::vector<sim::Prompt> kept;
    /// Prompts longer than asked for, of which the last tokens were kept.
    std::int64_t cut = 0;

    /// Appends a warning if there are any.
    void warn_of_cut(std::vector<Note>& warnings) const;
  };
  /// The prompts of some tasks, or of all where `tasks` is empty. @throws QuestionError, traces::FileError
  Prompts prompts(const std::vector<std::string>& tasks, std::int64_t longest) const;

  /// The texts of another such file, named by --ngram-text, as they stand there. @throws QuestionError,
  /// traces::FileError
  std::vector<std::vector<sim::Token>> texts(const std::string& file) const;

  /// The files that were read.
  std::vector<std::string> files() const;
  /// Which models and prompts these are, and who chose them.
  std::vector<Assumption> assumptions() const;

 private:
  struct Draft {
    /// As the user named it, or the shipped folder.
    std::string name;
    std::vector<std::filesystem::path> files;
    std::int64_t vocab_size = 0;
    std::int64_t max_length = 0;
    sim::ModelFactory make;
    Weights weights;
  };

  static Draft checkpoint_draft(const std::filesystem::path& folder);
  Draft table_draft(const std::string& name) const;
  std::optional<std::filesystem::path> tables_named(const std::string& draft) const;

  /// Notes the file for files(); empty if there is none.
  std::optional<std::filesystem::path> head_file(const std::optional<std::string>& named, const char* shipped);
  void require_one_vocabulary() const;
  std::vector<sim::Token> tokens_of(const traces::Prompt& prompt, const char* option, const std::string& file) const;

  std::filesystem::path shipped_models_;
  std::string target_source_;
  std::string draft_source_;
  const char* draft_option_;
  std::string prompts_source_;
  std::filesystem::path target_folder_;
  std::filesystem::path prompts_file_;
  std::vector<std::filesystem::path> head_files_;
  Weights target_;
  Draft draft_;
  std::optional<sim::Tokenizer> tokenizer_;
};

}  // namespace specdec::planner
