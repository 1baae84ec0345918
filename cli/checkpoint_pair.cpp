#include "cli/checkpoint_pair.hpp"

#include "cli/files.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

namespace specdec::cli {
namespace {

namespace fs = std::filesystem;
using sim::Token;

// Beside an installed binary, else in the source tree.
fs::path shipped_models() {
  std::error_code error;
  const fs::path installed = fs::read_symlink("/proc/self/exe", error).parent_path() / "../share/specdec/models";
  return fs::exists(installed, error) ? installed.lexically_normal() : fs::path(SPECDEC_SHIPPED_MODELS);
}

fs::path tokenizer_beside(const fs::path& folder) { return folder / "tokenizer.model"; }

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

CheckpointPair::CheckpointPair(const Paths& paths) {
  if (paths.target.has_value() != paths.draft.has_value())
    throw UsageError("--target and --draft must be given together");
  if (paths.target && !paths.prompts) throw UsageError("--prompts must be given together with --target and --draft");
  const fs::path shipped = shipped_models();
  source_ = paths.target ? "user" : "default";
  prompts_source_ = paths.prompts ? "user" : "default";
  target_folder_ = paths.target ? fs::path(*paths.target) : shipped / "target";
  draft_folder_ = paths.draft ? fs::path(*paths.draft) : shipped / "draft";
  prompts_file_ = paths.prompts ? fs::path(*paths.prompts) : shipped / "prompts.jsonl";
  target_ = sim::load_checkpoint(target_folder_);
  draft_ = sim::load_checkpoint(draft_folder_);
  if (fs::exists(tokenizer_beside(target_folder_)))
    tokenizer_ = sim::Tokenizer::load(tokenizer_beside(target_folder_));
  require_one_vocabulary();
}

void CheckpointPair::require_one_vocabulary() const {
  const std::int64_t target = sim::config_of(*target_).vocab_size;
  const std::int64_t draft = sim::config_of(*draft_).vocab_size;
  if (target != draft)
    throw UsageError(fmt::format("--draft {}: vocab_size is {}, but must be {} as in {}", draft_folder_.string(), draft,
                                 target, target_folder_.string()));
  if (tokenizer_ && tokenizer_->vocab_size() > target)
    throw UsageError(fmt::format("--target {}: tokenizer.model has {} tokens, but must have at most vocab_size, {}",
                                 target_folder_.string(), tokenizer_->vocab_size(), target));
  if (!tokenizer_ || !fs::exists(tokenizer_beside(draft_folder_))) return;
  const auto hash = [](const char* option, const fs::path& folder) {
    return file_facts(option, tokenizer_beside(folder).string(), true).at("sha256");
  };
  if (hash("--draft", draft_folder_) != hash("--target", target_folder_))
    throw UsageError(fmt::format("--draft {}: tokenizer.model differs from the one in {}, but must be the same",
                                 draft_folder_.string(), target_folder_.string()));
}

validation::ModelPair CheckpointPair::models() const {
  const auto factory = [](const Weights& weights) -> validation::ModelFactory {
    return [weights](std::int64_t threads) {
      return validation::OwnedModel(sim::Transformer(weights, {.threads = static_cast<int>(threads)}));
    };
  };
  return {factory(target_), factory(draft_)};
}

const sim::Tokenizer& CheckpointPair::tokenizer() const {
  if (!tokenizer_)
    throw UsageError(fmt::format("--target {}: there is no tokenizer.model, which text needs", target_folder_.string()));
  return *tokenizer_;
}

std::int64_t CheckpointPair::longest_prompt(std::int64_t max_new_tokens) const {
  const std::int64_t context =
      std::min(sim::config_of(*target_).max_length, sim::config_of(*draft_).max_length);
  if (max_new_tokens >= context)
    refuse("--max-new-tokens", fmt::format("{}", max_new_tokens), fmt::format("below the models' context, {}", context));
  return context - max_new_tokens;
}

CheckpointPair::Prompts CheckpointPair::prompts(const std::vector<std::string>& tasks, std::int64_t longest) const {
  Prompts prompts;
  std::vector<std::string> found;
  for (const traces::Prompt& prompt : traces::read_prompts(prompts_file_)) {
    if (!contains(found, prompt.task)) found.push_back(prompt.task);
    if (!tasks.empty() && !contains(tasks, prompt.task)) continue;
    prompts.kept.push_back({prompt.task, tokens_of(prompt)});
    std::vector<Token>& tokens = prompts.kept.back().tokens;
    if (tokens.empty()) throw UsageError(fmt::format("--prompts {}: a prompt has no tokens", prompts_file_.string()));
    if (static_cast<std::int64_t>(tokens.size()) <= longest) continue;
    tokens.erase(tokens.begin(), tokens.end() - longest);
    ++prompts.cut;
  }
  for (const std::string& task : tasks)
    if (!contains(found, task)) refuse("--tasks", task, fmt::format("one of {}", fmt::join(found, ", ")));
  return prompts;
}

std::vector<Token> CheckpointPair::tokens_of(const traces::Prompt& prompt) const {
  if (prompt.tokens.empty()) return tokenizer().encode(prompt.text, true);
  const std::int64_t vocab = sim::config_of(*target_).vocab_size;
  for (const Token token : prompt.tokens)
    if (token >= vocab)
      throw UsageError(fmt::format("--prompts {}: a token is {}, but must be in [0, {}]", prompts_file_.string(), token,
                                   vocab - 1));
  return prompt.tokens;
}

std::vector<Assumption> CheckpointPair::assumptions() const {
  return {{"target", target_folder_.string(), source_},
          {"draft", draft_folder_.string(), source_},
          {"prompts", prompts_file_.string(), prompts_source_}};
}

std::vector<nlohmann::ordered_json> CheckpointPair::files() const {
  std::vector<nlohmann::ordered_json> facts;
  const auto add = [&](const char* option, const fs::path& path) {
    if (fs::exists(path)) facts.push_back(file_facts(option, path.string()));
  };
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.model"}) {
    add("--target", target_folder_ / name);
    add("--draft", draft_folder_ / name);
  }
  add("--prompts", prompts_file_);
  return facts;
}

}  // namespace specdec::cli
