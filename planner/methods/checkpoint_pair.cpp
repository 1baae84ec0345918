#include "planner/methods/checkpoint_pair.hpp"

#include "planner/question_error.hpp"
#include "sim/drafts/eagle.hpp"
#include "sim/drafts/parallel_heads.hpp"
#include "sim/ngram_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using sim::Token;

fs::path tokenizer_beside(const fs::path& folder) { return folder / "tokenizer.model"; }

/// The files of a checkpoint: configuration, tokenizer, and the weights in one file or in shards with their index.
std::vector<fs::path> files_of(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json";
  std::vector<fs::path> files{folder / "config.json", tokenizer_beside(folder), folder / "model.safetensors"};
  if (fs::exists(files.back()) || !fs::exists(index)) return files;
  files.back() = index;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("model-")) files.push_back(entry.path());
  std::sort(files.begin() + 3, files.end());
  return files;
}

sim::ModelFactory transformer_factory(std::shared_ptr<const sim::TransformerWeights> weights) {
  return [weights = std::move(weights)](std::int64_t threads) {
    return std::make_shared<sim::Transformer>(weights, sim::TransformerOptions{.threads = static_cast<int>(threads)});
  };
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

const fs::path& require_shipped_models(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) return folder;
  throw QuestionError(
      fmt::format("the shipped models are missing (looked in {}), and what is asked for needs them or models of yours",
                  folder.string()));
}

CheckpointPair::CheckpointPair(const Paths& paths, fs::path shipped_models)
    : shipped_models_(std::move(shipped_models)), draft_option_(paths.draft_option) {
  const bool tables = paths.draft && tables_named(*paths.draft);
  if (paths.target && !paths.draft)
    throw QuestionError(fmt::format("--target needs {} beside it, a draft of the same vocabulary", draft_option_));
  if (paths.target && !paths.prompts) throw QuestionError("--target needs --prompts beside it");
  target_source_ = paths.target ? "user" : "default";
  draft_source_ = paths.draft ? "user" : "default";
  prompts_source_ = paths.prompts ? "user" : "default";
  target_folder_ = paths.target ? fs::path(*paths.target) : require_shipped_models(shipped_models_) / "target";
  prompts_file_ = paths.prompts ? fs::path(*paths.prompts) : require_shipped_models(shipped_models_) / "prompts.jsonl";
  target_ = sim::load_checkpoint(target_folder_);
  if (tables) {
    draft_ = table_draft(*paths.draft);
  } else {
    draft_ = checkpoint_draft(paths.draft ? fs::path(*paths.draft) : require_shipped_models(shipped_models_) / "draft");
  }
  if (fs::exists(tokenizer_beside(target_folder_))) tokenizer_ = sim::Tokenizer::load(tokenizer_beside(target_folder_));
  require_one_vocabulary();
}

std::optional<fs::path> CheckpointPair::tables_named(const std::string& draft) const {
  const std::size_t colon = draft.find(':');
  const std::string kind = draft.substr(0, colon);
  if (kind != "unigram" && kind != "bigram") return std::nullopt;
  return colon == std::string::npos ? require_shipped_models(shipped_models_) / "ngrams.safetensors"
                                    : fs::path(draft.substr(colon + 1));
}

CheckpointPair::Draft CheckpointPair::table_draft(const std::string& name) const {
  const fs::path path = *tables_named(name);
  const sim::NgramTables tables = sim::read_ngram_tables(path);
  const auto draft = [&](const auto& model) {
    return Draft{name, {path}, model.vocab_size(), model.max_length(), sim::factory_of(model), nullptr};
  };
  if (name.starts_with("unigram")) return draft(sim::unigram_model(tables.unigram));
  return draft(sim::NgramModel(tables));
}

CheckpointPair::Draft CheckpointPair::checkpoint_draft(const fs::path& folder) {
  const Weights weights = sim::load_checkpoint(folder);
  const sim::TransformerConfig& config = sim::config_of(*weights);
  return {folder.string(), files_of(folder), config.vocab_size, config.max_length, transformer_factory(weights),
          weights};
}

void CheckpointPair::require_one_vocabulary() const {
  const std::int64_t target = sim::config_of(*target_).vocab_size;
  if (sim::config_of(*target_).known_tokens != target)
    throw QuestionError(fmt::format("--target {}: draft_vocab_size is {}, but a target must know all {} tokens",
                                    target_folder_.string(), sim::config_of(*target_).known_tokens, target));
  if (draft_.vocab_size != target)
    throw QuestionError(fmt::format("{} {}: vocab_size is {}, but must be {} as in {}", draft_option_, draft_.name,
                                    draft_.vocab_size, target, target_folder_.string()));
  if (tokenizer_ && tokenizer_->vocab_size() > target)
    throw QuestionError(fmt::format("--target {}: tokenizer.model has {} tokens, but must have at most vocab_size, {}",
                                    target_folder_.string(), tokenizer_->vocab_size(), target));
  const fs::path other = tokenizer_beside(draft_.name);
  if (!tokenizer_ || !fs::exists(other)) return;
  if (content_of(other) != content_of(tokenizer_beside(target_folder_)))
    throw QuestionError(fmt::format("{} {}: tokenizer.model differs from the one in {}, but must be the same",
                                    draft_option_, draft_.name, target_folder_.string()));
}

sim::ModelPair CheckpointPair::models() const { return {transformer_factory(target_), draft_.make}; }

std::optional<fs::path> CheckpointPair::head_file(const std::optional<std::string>& named, const char* shipped) {
  if (!named && target_source_ == "user") return std::nullopt;
  head_files_.push_back(named ? fs::path(*named) : require_shipped_models(shipped_models_) / shipped);
  return head_files_.back();
}

void CheckpointPair::read_heads(const MethodQuestion& question, validation::MethodSource& source) {
  if (const auto file = head_file(question.eagle_head, "eagle_head.safetensors"))
    source.eagle_head = sim::load_eagle_head(*file, target_);
  if (const auto file = head_file(question.parallel_heads, "parallel_heads.safetensors"))
    source.parallel_heads = sim::load_parallel_heads(*file, target_);
  if (const auto file = head_file(question.exits, "exits.safetensors"))
    source.exits = sim::load_exits(*file, sim::config_of(*target_));
}

std::int64_t CheckpointPair::vocab_size() const { return sim::config_of(*target_).vocab_size; }

const sim::Tokenizer& CheckpointPair::tokenizer() const {
  if (!tokenizer_)
    throw QuestionError(
        fmt::format("--target {}: there is no tokenizer.model, which text needs", target_folder_.string()));
  return *tokenizer_;
}

std::int64_t CheckpointPair::longest_prompt(std::int64_t max_new_tokens, const char* option) const {
  const std::int64_t context = std::min(sim::config_of(*target_).max_length, draft_.max_length);
  if (max_new_tokens >= context)
    refuse(option, fmt::format("{}", max_new_tokens), fmt::format("below the models' context, {}", context));
  return context - max_new_tokens;
}

void CheckpointPair::Prompts::warn_of_cut(std::vector<Note>& warnings) const {
  if (cut == 0) return;
  warnings.push_back({"prompts_cut", fmt::format("{} prompts are longer than the models' context allows; "
                                                 "their last tokens were used",
                                                 cut)});
}

CheckpointPair::Prompts CheckpointPair::prompts(const std::vector<std::string>& tasks, std::int64_t longest) const {
  Prompts prompts;
  std::vector<std::string> found;
  for (const traces::Prompt& prompt : traces::read_prompts(prompts_file_)) {
    if (!contains(found, prompt.task)) found.push_back(prompt.task);
    if (!tasks.empty() && !contains(tasks, prompt.task)) continue;
    prompts.kept.push_back({prompt.task, tokens_of(prompt, "--prompts", prompts_file_.string())});
    std::vector<Token>& tokens = prompts.kept.back().tokens;
    if (tokens.empty())
      throw QuestionError(fmt::format("--prompts {}: a prompt has no tokens", prompts_file_.string()));
    if (static_cast<std::int64_t>(tokens.size()) <= longest) continue;
    // A text goes on beginning with the token that says so.
    const std::ptrdiff_t kept = !prompt.text.empty() && tokenizer().begin_token() == tokens.front() && longest > 1;
    tokens.erase(tokens.begin() + kept, tokens.end() - (longest - kept));
    ++prompts.cut;
  }
  for (const std::string& task : tasks)
    if (!contains(found, task)) refuse("--tasks", task, fmt::format("one of {}", fmt::join(found, ", ")));
  return prompts;
}

std::vector<std::vector<Token>> CheckpointPair::texts(const std::string& file) const {
  std::vector<std::vector<Token>> texts;
  for (const traces::Prompt& text : traces::read_prompts(file)) texts.push_back(tokens_of(text, "--ngram-text", file));
  return texts;
}

std::vector<Token> CheckpointPair::tokens_of(const traces::Prompt& prompt, const char* option,
                                             const std::string& file) const {
  if (prompt.tokens.empty()) return tokenizer().encode(prompt.text, true);
  const std::int64_t vocab = sim::config_of(*target_).vocab_size;
  for (const Token token : prompt.tokens)
    if (token >= vocab)
      throw QuestionError(fmt::format("{} {}: a token is {}, but must be in [0, {}]", option, file, token, vocab - 1));
  return prompt.tokens;
}

std::vector<Assumption> CheckpointPair::assumptions() const {
  return {{"target", target_folder_.string(), target_source_},
          {"draft", draft_.name, draft_source_},
          {"prompts", prompts_file_.string(), prompts_source_}};
}

std::vector<std::string> CheckpointPair::files() const {
  std::vector<fs::path> files = files_of(target_folder_);
  files.insert(files.end(), head_files_.begin(), head_files_.end());
  files.insert(files.end(), draft_.files.begin(), draft_.files.end());
  files.push_back(prompts_file_);
  std::vector<std::string> found;
  for (const fs::path& file : files)
    if (fs::exists(file)) found.push_back(file.string());
  return found;
}

}  // namespace specdec::planner
