#pragma once

#include <fmt/format.h>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/planning/engine_config.hpp"

namespace specdec::planning {

// A header of the library's own sources; it is not installed.

inline constexpr std::string_view target_gap = "<TARGET>", draft_gap = "<DRAFT>", rank_gap = "<RANK>",
                                  address_gap = "<ADDRESS>";

/// Adds a stretch, or extends the last one if it continues that.
void append(ScheduleStretch step, std::vector<ScheduleStretch>& schedule);
/// The stretches, with neighbours of one gamma joined.
std::vector<ScheduleStretch> joined(const std::vector<PlannedStretch>& schedule);
std::int64_t largest_gamma(const std::vector<ScheduleStretch>& schedule);
/// `text` as one word of a shell's command line.
std::string shell_word(const std::string& text);

/// Drafts in one pass by whose they are, as the draft's name tells; engines have a method for each.
enum class ParallelDraft { unnamed, dflash, dspark };

ParallelDraft family_of(const EngineRequest& request);

/// The engines' files and notes, from one request.
class EngineWriter {
 public:
  EngineWriter(Engine engine, const EngineRequest& request) : request_(request), schedule_(joined(request.schedule)) {
    config_.engine = engine;
    config_.file = request.file;
  }

  EngineConfig write() {
    write_engine();
    note_end();
    note_assumptions();
    if (config_.text.find(draft_gap) != std::string::npos) {
      config_.not_to_be_written =
          fmt::format("{} stands for {} of the draft, which is not known", draft_gap, kind_of_name());
    }
    return std::move(config_);
  }

 private:
  using DraftKind = cost::DraftKind;
  using NumberType = cost::NumberType;
  using AcceptanceRule = traces::AcceptanceRule;
  using ordered_json = nlohmann::ordered_json;

  void write_engine() {
    if (largest_gamma(schedule_) == 0) {
      return configure_nothing(
          "the plan takes no gamma at any batch, so that nothing is to be configured: start the server without "
          "speculation");
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
  }

  std::string target() const { return request_.target_model.empty() ? std::string(target_gap) : request_.target_model; }
  std::string draft() const { return request_.draft_model.empty() ? std::string(draft_gap) : request_.draft_model; }
  void note(std::string text) { config_.notes.push_back(std::move(text)); }
  /// The engine's notion of the model.
  std::string_view kind_of_name() const {
    return config_.engine == Engine::llamacpp ? "the GGUF file" : "the repository or the file";
  }

  void configure_nothing(std::string_view why) {
    note(std::string(why));
    config_.not_to_be_written = why;
    set_text("");
  }

  /// @param options  options of the command, beside the text's file
  void set_text(const std::string& text, const std::string& options = "") {
    config_.text = text;
    config_.command = command(text, options);
  }

  std::string command(const std::string& text, const std::string& options) const;
  std::vector<std::string> server_options() const;
  std::int64_t nodes() const;
  std::string node_options() const;
  void note_nodes();
  bool names_draft() const { return request_.kind != DraftKind::mtp && !cost::looks_up(request_.kind); }
  bool is_unnamed_parallel() const {
    return request_.kind == DraftKind::parallel && family_of(request_) == ParallelDraft::unnamed;
  }
  std::string_view own_word() const;
  std::string sglang_options(std::int64_t gamma, char separator) const;
  void write_sglang_schedule();
  bool samples_rejection() const {
    return request_.rule == AcceptanceRule::rejection && !cost::looks_up(request_.kind);
  }
  std::string trtllm_text() const;
  std::string own_cache_type() const;
  bool quantizes_weights() const;
  bool has_draft_gap() const;
  void note_end();
  void note_assumptions();

  /// An engine's draft that samples greedily and accepts a draft token with the target's probability of it.
  void note_temperature_zero() {
    if (request_.rule != AcceptanceRule::greedy) return;
    note("the acceptance is that of greedy decoding: it holds for requests at temperature 0 only");
  }

  void note_unknown_rule(std::string_view default_rule) {
    if (request_.rule) return;
    note(fmt::format("the plan does not know its acceptance rule; the engine's default is {}", default_rule));
  }

  void name_vllm_sampling(ordered_json& json) const;
  void write_vllm();
  void write_sglang();
  void write_trtllm();
  void write_llamacpp();

  const EngineRequest& request_;
  /// The decided stretches.
  std::vector<ScheduleStretch> schedule_;
  /// The gamma that the engine drafts above the last batch, if it differs from the one there.
  std::optional<std::int64_t> gamma_above_;
  EngineConfig config_;
};

}  // namespace specdec::planning
