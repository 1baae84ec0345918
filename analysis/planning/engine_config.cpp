#include "analysis/planning/engine_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace specdec::planning {
namespace {

using cost::DraftKind;
using nlohmann::ordered_json;
using traces::AcceptanceRule;

constexpr std::array<std::pair<Engine, std::string_view>, 4> engine_names = {
    {{Engine::vllm, "vllm"}, {Engine::sglang, "sglang"}, {Engine::trtllm, "trtllm"}, {Engine::llamacpp, "llamacpp"}}};

constexpr std::string_view plain_loses_least =
    "plain decoding loses least as one length at every batch, so that nothing is to be configured";

void require_schedule(const std::vector<ScheduleStretch>& schedule) {
  if (schedule.empty()) throw std::invalid_argument("engine_config: schedule is empty, but must cover batch 1");
  std::int64_t next = 1;
  for (const ScheduleStretch& step : schedule) {
    if (step.batch_low != next || step.batch_high < step.batch_low || step.gamma < 0) {
      throw std::invalid_argument(
          fmt::format("engine_config: schedule has {}-{}:{}, but must go on at batch {} with gamma >= 0",
                      step.batch_low, step.batch_high, step.gamma, next));
    }
    next = step.batch_high + 1;
  }
}

/// The schedule with neighbours of one gamma joined.
std::vector<ScheduleStretch> joined(const std::vector<ScheduleStretch>& schedule) {
  std::vector<ScheduleStretch> result;
  for (const ScheduleStretch& step : schedule) {
    if (!result.empty() && result.back().gamma == step.gamma) {
      result.back().batch_high = step.batch_high;
    } else {
      result.push_back(step);
    }
  }
  return result;
}

std::int64_t largest_gamma(const std::vector<ScheduleStretch>& schedule) {
  std::int64_t largest = 0;
  for (const ScheduleStretch& step : schedule) largest = std::max(largest, step.gamma);
  return largest;
}

/// `text` as one word of a shell's command line.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:=+,@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// A YAML scalar; JSON's strings are YAML's.
std::string yaml_word(const std::string& text) { return ordered_json(text).dump(); }

/// The object with its values on one line each.
std::string one_key_a_line(const ordered_json& object) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : object.items()) {
    lines.push_back(fmt::format("  {}: {}", ordered_json(key).dump(), value.dump()));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
}

[[noreturn]] void refuse_kind(Engine engine, std::string_view kinds) {
  throw std::invalid_argument(
      fmt::format("engine_config: {} has no options for this kind of draft, but for {}", name_of(engine), kinds));
}

/// The engines' files and notes, from one request.
class Writer {
 public:
  Writer(Engine engine, const EngineRequest& request) : request_(request), schedule_(joined(request.schedule)) {
    config_.engine = engine;
    config_.runs = schedule_;
  }

  EngineConfig write() {
    if (largest_gamma(schedule_) == 0) {
      configure_nothing(
          "no gamma pays at any batch, so that nothing is to be configured: start the server without speculation");
      return config_;
    }
    switch (config_.engine) {
      case Engine::vllm:
        write_vllm();
        break;
      case Engine::sglang:
        write_sglang();
        break;
      case Engine::trtllm:
        write_trtllm();
        break;
      case Engine::llamacpp:
        write_llamacpp();
        break;
    }
    return config_;
  }

 private:
  std::string target() const { return request_.target_model.empty() ? "TARGET" : request_.target_model; }
  std::string draft() const { return request_.draft_model.empty() ? "DRAFT" : request_.draft_model; }
  void note(std::string text) { config_.notes.push_back(std::move(text)); }

  void configure_nothing(std::string_view why) {
    note(std::string(why));
    add_variant("every release", "");
  }

  void add_variant(const std::string& releases, const std::string& text) {
    config_.variants.push_back({releases, text, command(!text.empty())});
  }

  std::string command(bool speculative) const {
    const std::string model = shell_word(target());
    switch (config_.engine) {
      case Engine::vllm:
        return fmt::format("vllm serve {}{}", model, speculative ? " --speculative-config \"$(cat FILE)\"" : "");
      case Engine::sglang:
        return fmt::format("python -m sglang.launch_server --model-path {}{}", model,
                           speculative ? " $(cat FILE)" : "");
      case Engine::trtllm:
        return fmt::format("trtllm-serve {}{}", model, speculative ? " --extra_llm_api_options FILE" : "");
      case Engine::llamacpp:
        break;
    }
    return fmt::format("llama-server -m {}{}", model, speculative ? " $(cat FILE)" : "");
  }

  /// The engine drafts the fixed gamma at every batch; says what that loses where the plan has more than one.
  void run_fixed(std::string_view engine) {
    const FixedGamma& fixed = request_.fixed;
    config_.runs = {{1, schedule_.back().batch_high, fixed.gamma}};
    if (schedule_.size() == 1 && schedule_.front().gamma == fixed.gamma) return;
    note(
        fmt::format("{} drafts one length at every batch, here {}; of the speedup of the schedule it gives away up to "
                    "{:.1f}%, most of it at batch {:.3g}",
                    engine, fixed.gamma, 100 * fixed.worst_regret, fixed.worst_batch));
  }

  /// An engine's draft that samples greedily and accepts a draft token with the target's probability of it.
  void note_temperature_zero() {
    if (request_.rule != AcceptanceRule::greedy) return;
    note("the acceptance is that of greedy decoding: it holds for requests at temperature 0 only");
  }

  void note_unknown_rule(std::string_view default_rule) {
    if (request_.rule) return;
    note(fmt::format("the plan does not know its acceptance rule; the engine's default is {}", default_rule));
  }

  void write_vllm();
  void write_sglang();
  void write_trtllm();
  void write_llamacpp();

  const EngineRequest& request_;
  std::vector<ScheduleStretch> schedule_;
  EngineConfig config_;
};

void Writer::write_vllm() {
  ordered_json json;
  switch (request_.kind) {
    case DraftKind::model:
      json["method"] = "draft_model";
      break;
    case DraftKind::mtp:
      json["method"] = "mtp";
      break;
    case DraftKind::ngram:
      json["method"] = "ngram";
      json["prompt_lookup_max"] = 4;
      note("prompt_lookup_max 4 is not planned; take the value that the acceptance was measured with");
      break;
    case DraftKind::eagle:
      json["method"] = "eagle3";
      note("for the heads of the first EAGLE the method is eagle");
      break;
    case DraftKind::parallel:  // told from the draft's own configuration
      break;
  }
  if (request_.kind != DraftKind::mtp && request_.kind != DraftKind::ngram) json["model"] = draft();
  if (request_.draft_tensor_parallel) json["draft_tensor_parallel_size"] = *request_.draft_tensor_parallel;
  json["num_speculative_tokens"] = largest_gamma(schedule_);
  if (schedule_.size() > 1) {
    ordered_json& steps = json["num_speculative_tokens_per_batch_size"] = ordered_json::array();
    for (const ScheduleStretch& step : schedule_) steps.push_back({step.batch_low, step.batch_high, step.gamma});
    note(
        "with --data-parallel-size above 1 vLLM ignores the schedule and drafts num_speculative_tokens at every batch");
  }
  if (request_.rule && request_.kind != DraftKind::ngram) {
    json["rejection_sample_method"] = "standard";
    json["draft_sample_method"] = request_.rule == AcceptanceRule::rejection ? "probabilistic" : "greedy";
  }
  note_unknown_rule("greedy drafting");
  note_temperature_zero();
  add_variant(schedule_.size() > 1 ? "vLLM 0.24 and later, the first with num_speculative_tokens_per_batch_size"
                                   : "vLLM releases whose speculative config has draft_sample_method (2026)",
              one_key_a_line(json));
}

void Writer::write_sglang() {
  const std::int64_t gamma = request_.fixed.gamma;
  run_fixed("SGLang");
  std::string algorithm;
  bool chain = true;
  switch (request_.kind) {
    case DraftKind::model:
      algorithm = "STANDALONE";
      break;
    case DraftKind::eagle:
      algorithm = "EAGLE3";
      note("for the heads of the first EAGLE the algorithm is EAGLE");
      break;
    case DraftKind::mtp:
      algorithm = "NEXTN";
      break;
    case DraftKind::parallel:
      algorithm = "DFLASH";
      chain = false;
      break;
    case DraftKind::ngram:
      algorithm = "NGRAM";
      chain = false;
      break;
  }
  if (gamma == 0) return configure_nothing(plain_loses_least);
  std::string text = "--speculative-algorithm " + algorithm;
  if (request_.kind != DraftKind::mtp && request_.kind != DraftKind::ngram) {
    text += "\n--speculative-draft-model-path " + shell_word(draft());
  }
  if (chain) text += fmt::format("\n--speculative-num-steps {}\n--speculative-eagle-topk 1", gamma);
  text += fmt::format("\n--speculative-num-draft-tokens {}", gamma + 1);
  const bool rejection = request_.rule == AcceptanceRule::rejection && request_.kind != DraftKind::ngram;
  if (rejection) text += "\n--speculative-use-rejection-sampling";
  note_unknown_rule("greedy drafting");
  note_temperature_zero();
  add_variant(rejection ? "SGLang releases that know --speculative-use-rejection-sampling (2026)"
                        : fmt::format("SGLang releases that know --speculative-algorithm {}", algorithm),
              text + '\n');
}

void Writer::write_trtllm() {
  std::vector<std::string> lines = {"speculative_config:"};
  const auto put = [&](std::string_view key, const std::string& value) {
    lines.push_back(fmt::format("  {}: {}", key, value));
  };
  switch (request_.kind) {
    case DraftKind::model:
      put("decoding_type", "Draft_Target");
      break;
    case DraftKind::eagle:
      put("decoding_type", "Eagle3");
      break;
    case DraftKind::mtp:
      put("decoding_type", "MTP");
      break;
    case DraftKind::parallel:
      put("decoding_type", "PARD");
      note("for the drafts of DFlash the decoding_type is DFlash");
      break;
    case DraftKind::ngram:
      put("decoding_type", "NGram");
      break;
  }
  if (request_.kind != DraftKind::mtp && request_.kind != DraftKind::ngram) {
    put("speculative_model", yaml_word(draft()));
  }
  // The first length of a schedule must be max_draft_len, and none may exceed it.
  const std::int64_t first = schedule_.front().gamma;
  bool scheduled = schedule_.size() > 1;
  if (scheduled && first < largest_gamma(schedule_)) {
    if (first == 0) {
      scheduled = false;
      run_fixed("TensorRT-LLM, whose schedule must begin with its longest draft,");
    } else {
      for (ScheduleStretch& step : config_.runs) step.gamma = std::min(step.gamma, first);
      config_.runs = joined(config_.runs);
      note(
          fmt::format("the first draft length of TensorRT-LLM's schedule must be its longest, so that batches for "
                      "which the plan drafts more draft {}",
                      first));
    }
  }
  const std::int64_t longest = largest_gamma(config_.runs);
  if (longest == 0) return configure_nothing(plain_loses_least);
  put("max_draft_len", fmt::format("{}", longest));
  if (request_.rule == AcceptanceRule::rejection) put("use_rejection_sampling", "true");
  note_unknown_rule("exact matching with greedy drafting");
  note_temperature_zero();

  const auto text = [&](bool upper_ends) {
    std::vector<std::string> keys;
    for (const ScheduleStretch& step : config_.runs) {
      keys.push_back(fmt::format("{}: {}", upper_ends ? step.batch_high : step.batch_low, step.gamma));
    }
    std::vector<std::string> all = lines;
    if (scheduled) all.push_back(fmt::format("  draft_len_schedule: {{{}}}", fmt::join(keys, ", ")));
    return fmt::format("{}\n", fmt::join(all, "\n"));
  };
  if (!scheduled) {
    add_variant("TensorRT-LLM 1.x, PyTorch backend", text(true));
    return;
  }
  note("draft_len_schedule excludes max_concurrency; above its last batch newer releases draft nothing");
  add_variant("TensorRT-LLM since March 2026, where the keys are the largest batches", text(true));
  add_variant("TensorRT-LLM before March 2026, where the keys are the smallest batches", text(false));
}

void Writer::write_llamacpp() {
  const std::int64_t gamma = request_.fixed.gamma;
  std::string type;
  switch (request_.kind) {
    case DraftKind::model:
      type = "draft-simple";
      break;
    case DraftKind::eagle:
      type = "draft-eagle3";
      break;
    case DraftKind::mtp:
      type = "draft-mtp";
      break;
    case DraftKind::ngram:
      type = "ngram-mod";
      break;
    case DraftKind::parallel:
      refuse_kind(Engine::llamacpp, "model, eagle, mtp and ngram");
  }
  run_fixed("llama.cpp");
  if (request_.rule == AcceptanceRule::rejection) {
    note(
        "llama.cpp drafts greedily and compares tokens: the acceptance of rejection sampling does not hold there, so "
        "measure it again (draft acceptance in the server's log)");
  }
  note_unknown_rule("greedy drafting, and there is no other");
  note_temperature_zero();
  if (gamma == 0) return configure_nothing(plain_loses_least);
  if (request_.kind == DraftKind::ngram) {
    add_variant("llama.cpp since May 2026 (--spec-type in llama-server --help)",
                fmt::format("--spec-type ngram-mod\n--spec-ngram-mod-n-max {}\n--spec-ngram-mod-n-min 0\n", gamma));
    return;
  }
  note("a least probability of 0 keeps drafts at their full length, which the plan assumes");
  const std::string model =
      request_.kind == DraftKind::mtp && request_.draft_model.empty() ? "" : "\n--model-draft " + shell_word(draft());
  add_variant("llama.cpp since May 2026 (--spec-draft-n-max in llama-server --help)",
              fmt::format("--spec-type {}{}\n--spec-draft-n-max {}\n--spec-draft-n-min 0\n--spec-draft-p-min 0\n", type,
                          model, gamma));
  if (request_.kind == DraftKind::model) {
    add_variant(
        "llama.cpp before May 2026 (--draft-max in llama-server --help)",
        fmt::format("--model-draft {}\n--draft-max {}\n--draft-min 0\n--draft-p-min 0\n", shell_word(draft()), gamma));
  }
}

}  // namespace

std::string_view name_of(Engine engine) {
  return std::find_if(engine_names.begin(), engine_names.end(), [&](const auto& e) { return e.first == engine; })
      ->second;
}

std::optional<Engine> engine_named(std::string_view name) {
  for (const auto& [engine, its_name] : engine_names) {
    if (its_name == name) return engine;
  }
  return std::nullopt;
}

FixedGamma least_regret_gamma(const DraftPlan& plan) {
  if (plan.points.empty()) throw std::invalid_argument("least_regret_gamma: the plan has no points");
  std::map<std::int64_t, FixedGamma> by_gamma;
  std::map<std::int64_t, std::size_t> seen;
  for (const PointPlan& point : plan.points) {
    for (const DeploymentRow& row : point.rows) {
      FixedGamma& fixed = by_gamma[row.gamma];
      if (++seen[row.gamma] == 1 || row.regret > fixed.worst_regret) fixed = {row.gamma, row.regret, point.batch};
    }
  }
  const FixedGamma* best = nullptr;
  for (const auto& [gamma, fixed] : by_gamma) {
    if (seen[gamma] < plan.points.size()) continue;
    if (best == nullptr || fixed.worst_regret < best->worst_regret) best = &fixed;
  }
  return best == nullptr ? FixedGamma{} : *best;
}

EngineConfig engine_config(Engine engine, const EngineRequest& request) {
  require_schedule(request.schedule);
  return Writer(engine, request).write();
}

}  // namespace specdec::planning
