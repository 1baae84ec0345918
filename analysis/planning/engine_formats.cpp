#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "analysis/planning/engine_writer.hpp"

namespace specdec::planning {
namespace {

using nlohmann::ordered_json;

/// A YAML scalar; JSON's strings are YAML's.
std::string yaml_word(const std::string& text) { return ordered_json(text).dump(); }

/// The object with one key per line.
std::string one_key_a_line(const ordered_json& object) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : object.items()) {
    lines.push_back(fmt::format("  {}: {}", ordered_json(key).dump(), value.dump()));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(lines, ",\n"));
}

/// The batches for which SGLang captures a CUDA graph of rounds by itself, as far as memory allows: those up to `last`.
/// Source: generate_decode_cuda_graph_batch_sizes of SGLang 0.5.23, the same since 0.5.14
std::vector<std::int64_t> sglang_own_graphs(std::int64_t last) {
  struct Range {
    std::int64_t first, last, step;
  };
  const Range ranges[] = {{1, 8, 1}, {10, 32, 2}, {40, 64, 4}, {72, 256, 8}, {272, last, 16}};
  std::vector<std::int64_t> batches;
  for (const Range& range : ranges) {
    for (std::int64_t batch = range.first; batch <= std::min(range.last, last); batch += range.step) {
      batches.push_back(batch);
    }
  }
  return batches;
}

/// The batches that need a CUDA graph so that none is padded to one that belongs to the next stretch; empty if SGLang's
/// own ones do. However few of these it captures, a batch that is one of them is padded to no other.
std::vector<std::int64_t> sglang_graphs(const std::vector<ScheduleStretch>& steps) {
  std::vector<std::int64_t> batches = sglang_own_graphs(steps.back().batch_high);
  const std::size_t own = batches.size();
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    const std::int64_t end = steps[i].batch_high;
    const auto at = std::lower_bound(batches.begin(), batches.end(), end);
    if (at == batches.end() || *at != end) batches.insert(at, end);
  }
  if (batches.size() == own) return {};
  if (batches.back() < steps.back().batch_high) batches.push_back(steps.back().batch_high);
  return batches;
}

}  // namespace

/// The keys of vLLM's speculative config that select the rule.
void EngineWriter::name_vllm_sampling(ordered_json& json) const {
  json["rejection_sample_method"] = "standard";
  json["draft_sample_method"] = request_.rule == AcceptanceRule::rejection ? "probabilistic" : "greedy";
}

/// What the engine calls the drafts; empty where it is refused.
std::string_view EngineWriter::own_word() const {
  using Words = std::array<std::string_view, 4>;
  constexpr Words none = {};
  // vLLM, SGLang, TensorRT-LLM, llama.cpp.
  constexpr Words model = {"draft_model", "STANDALONE", "Draft_Target", "draft-simple"};
  constexpr std::array<Words, 7> by_kind = {model,
                                            model,
                                            {{"eagle3", "EAGLE3", "Eagle3", "draft-eagle3"}},
                                            {{"mtp", "NEXTN", "MTP", "draft-mtp"}},
                                            none,
                                            {{"ngram", "NGRAM", "NGram", "ngram-mod"}},
                                            {{"suffix", "", "", ""}}};
  constexpr std::array<Words, 3> by_family = {{{"draft_model", "DFLASH", "PARD", "draft-dflash"},
                                               {"dflash", "DFLASH", "DFlash", "draft-dflash"},
                                               {"dspark", "DSPARK", "", "draft-dspark"}}};
  const Words& words = request_.kind == DraftKind::parallel ? by_family[static_cast<std::size_t>(family_of(request_))]
                                                            : by_kind[static_cast<std::size_t>(request_.kind)];
  return words[static_cast<std::size_t>(config_.engine)];
}

void EngineWriter::write_vllm() {
  ordered_json json = {{"method", own_word()}};
  if (request_.kind == DraftKind::ngram) {
    json["prompt_lookup_max"] = 4;
    note("prompt_lookup_max 4 is not planned; take the value that the acceptance was measured with");
  } else if (request_.kind == DraftKind::suffix) {
    note(
        "num_speculative_tokens is the most that a match proposes; vLLM's second model runner verifies that many of "
        "every sequence unless enable_adaptive_verification is true");
  } else if (request_.kind == DraftKind::eagle) {
    note("for the heads of the first EAGLE the method is eagle");
  } else if (is_unnamed_parallel()) {
    json["parallel_drafting"] = true;
    note(
        "for the drafts of DFlash the method is dflash, of DSpark dspark, for Medusa's heads medusa, without "
        "parallel_drafting");
  }
  if (names_draft()) json["model"] = draft();
  if (const auto gpus = request_.draft_tensor_parallel) {
    const bool as_target = gpus == request_.tensor_parallel;
    if (!as_target) json["draft_tensor_parallel_size"] = *gpus;
  }
  json["num_speculative_tokens"] = largest_gamma(schedule_);
  if (schedule_.size() > 1) {
    ordered_json& steps = json["num_speculative_tokens_per_batch_size"] = ordered_json::array();
    for (const ScheduleStretch& step : schedule_) steps.push_back({step.batch_low, step.batch_high, step.gamma});
    note(
        "with --data-parallel-size above 1 vLLM ignores the schedule and drafts num_speculative_tokens at every batch");
  }
  // How drafts that are looked up are sampled has no key.
  if (request_.rule && !cost::looks_up(request_.kind)) name_vllm_sampling(json);
  note_unknown_rule("greedy drafting");
  note_temperature_zero();
  set_text(one_key_a_line(json));
}

/// @param separator  between two options
std::string EngineWriter::sglang_options(std::int64_t gamma, char separator) const {
  std::vector<std::string> options = {fmt::format("--speculative-algorithm {}", own_word())};
  if (names_draft()) options.push_back("--speculative-draft-model-path " + shell_word(draft()));
  const cost::DraftTree shape = request_.tree.value_or(cost::DraftTree{gamma, 1, gamma + 1});
  if (request_.kind != DraftKind::parallel && !cost::looks_up(request_.kind)) {
    options.push_back(fmt::format("--speculative-num-steps {}", shape.depth));
    options.push_back(fmt::format("--speculative-eagle-topk {}", shape.top_k));
  }
  options.push_back(fmt::format("--speculative-num-draft-tokens {}", shape.verified));
  if (samples_rejection()) options.emplace_back("--speculative-use-rejection-sampling");
  return fmt::format("{}", fmt::join(options, std::string(1, separator)));
}

void EngineWriter::write_sglang() {
  if (request_.kind == DraftKind::eagle) note("for the heads of the first EAGLE the algorithm is EAGLE");
  note_unknown_rule("greedy drafting");
  note_temperature_zero();
  if (schedule_.size() > 1) return write_sglang_schedule();
  set_text(sglang_options(schedule_.front().gamma, '\n') + '\n');
}

/// A file of one candidate for each stretch, so that its look-up has nothing to adapt.
void EngineWriter::write_sglang_schedule() {
  ordered_json json;
  for (const ScheduleStretch& step : schedule_) {
    json[fmt::format("{}", step.batch_low)] = {{"candidate_steps", {step.gamma}}};
  }
  // The server starts with the length that it keeps where it cannot adapt; it must be one of the file.
  const std::int64_t start = largest_gamma(schedule_);
  std::string options = sglang_options(start, ' ');
  const std::vector<std::int64_t> graphs = sglang_graphs(schedule_);
  if (!graphs.empty()) {
    options += fmt::format(" --cuda-graph-bs-decode {}", fmt::join(graphs, " "));
    note(
        "SGLang takes the gamma of the CUDA graph to which a batch is padded, so that --cuda-graph-bs-decode has the "
        "last batch of each gamma; rounds of more requests than its last one run without a graph");
  }
  options += " --speculative-adaptive --speculative-adaptive-config";
  note(
      fmt::format("with data-parallel attention, several EAGLE layers, two-batch overlap or pdmux SGLang warns at its "
                  "start, ignores the schedule and drafts {} at every batch",
                  start));
  set_text(one_key_a_line(json), options);
}

std::string EngineWriter::trtllm_text() const {
  std::vector<std::string> lines;
  const bool scheduled = schedule_.size() > 1;
  if (scheduled) lines.emplace_back("# the keys of draft_len_schedule are the largest batches");
  lines.emplace_back("speculative_config:");
  const auto put = [&](std::string_view key, const std::string& value) {
    lines.push_back(fmt::format("  {}: {}", key, value));
  };
  put("decoding_type", std::string(own_word()));
  if (names_draft()) put("speculative_model", yaml_word(draft()));
  put("max_draft_len", fmt::format("{}", largest_gamma(schedule_)));
  if (request_.rule == AcceptanceRule::rejection) put("use_rejection_sampling", "true");
  if (scheduled) {
    std::vector<std::string> keys;
    for (const ScheduleStretch& step : schedule_) keys.push_back(fmt::format("{}: {}", step.batch_high, step.gamma));
    put("draft_len_schedule", fmt::format("{{{}}}", fmt::join(keys, ", ")));
  }
  if (request_.cache_type && !own_cache_type().empty()) {
    lines.push_back(fmt::format("kv_cache_config:\n  dtype: {}", own_cache_type()));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

void EngineWriter::write_trtllm() {
  if (is_unnamed_parallel()) note("for the drafts of DFlash the decoding_type is DFlash");
  const bool scheduled = schedule_.size() > 1;
  if (scheduled) gamma_above_ = 0;
  note_unknown_rule("exact matching with greedy drafting");
  note_temperature_zero();
  if (scheduled) note("draft_len_schedule excludes max_concurrency");
  set_text(trtllm_text());
}

void EngineWriter::write_llamacpp() {
  const std::int64_t gamma = schedule_.front().gamma;
  if (is_unnamed_parallel())
    note("drafts in one pass are those of DFlash there, or with --spec-type draft-dspark those of DSpark");
  if (request_.rule == AcceptanceRule::rejection) {
    note(
        "llama.cpp drafts greedily and compares tokens: the acceptance of rejection sampling does not hold there, so "
        "measure it again (draft acceptance in the server's log)");
  }
  note_unknown_rule("greedy drafting, and there is no other");
  note_temperature_zero();
  if (request_.kind == DraftKind::ngram) {
    set_text(fmt::format("--spec-type ngram-mod\n--spec-ngram-mod-n-max {}\n--spec-ngram-mod-n-min 0\n", gamma));
    return;
  }
  note("a least probability of 0 keeps drafts at their full length, which the plan assumes");
  const std::string model =
      request_.kind == DraftKind::mtp && request_.draft_model.empty() ? "" : "\n--model-draft " + shell_word(draft());
  set_text(fmt::format("--spec-type {}{}\n--spec-draft-n-max {}\n--spec-draft-n-min 0\n--spec-draft-p-min 0\n",
                       own_word(), model, gamma));
}

}  // namespace specdec::planning
