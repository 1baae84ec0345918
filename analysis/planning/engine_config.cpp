#include "analysis/planning/engine_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace specdec::planning {
namespace {

using cost::DraftKind;
using cost::NumberType;
using nlohmann::ordered_json;
using traces::AcceptanceRule;

constexpr std::string_view plain_loses_least =
    "plain decoding loses least as one length at every batch, so that nothing is to be configured";

constexpr std::string_view target_gap = "<TARGET>", draft_gap = "<DRAFT>", rank_gap = "<RANK>",
                           address_gap = "<ADDRESS>";

void require_schedule(const std::vector<PlannedStretch>& schedule) {
  if (schedule.empty()) throw std::invalid_argument("engine_config: schedule is empty, but must cover batch 1");
  std::int64_t next = 1;
  for (const PlannedStretch& step : schedule) {
    if (step.batch_low != next || step.batch_high < step.batch_low || step.gamma < 0) {
      throw std::invalid_argument(
          fmt::format("engine_config: schedule has {}-{}:{}, but must go on at batch {} with gamma >= 0",
                      step.batch_low, step.batch_high, step.gamma, next));
    }
    next = step.batch_high + 1;
  }
}

/// Adds a stretch, or extends the last one if it continues that.
void append(ScheduleStretch step, std::vector<ScheduleStretch>& schedule) {
  if (step.batch_high < step.batch_low) return;
  if (!schedule.empty()) {
    ScheduleStretch& last = schedule.back();
    if (last.batch_high + 1 == step.batch_low && last.gamma == step.gamma) {
      last.batch_high = step.batch_high;
      return;
    }
  }
  schedule.push_back(step);
}

/// The stretches, with neighbours of one gamma joined.
std::vector<ScheduleStretch> joined(const std::vector<PlannedStretch>& schedule) {
  std::vector<ScheduleStretch> result;
  for (const PlannedStretch& step : schedule) append({step.batch_low, step.batch_high, step.gamma}, result);
  return result;
}

/// "at batch 9 to 30".
std::string batches_text(const ScheduleStretch& step) {
  return step.batch_low == step.batch_high ? fmt::format("at batch {}", step.batch_low)
                                           : fmt::format("at batch {} to {}", step.batch_low, step.batch_high);
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

/// Empty if it has none.
std::string_view llamacpp_cache_type(NumberType type) {
  switch (type) {
    case NumberType::fp32:
      return "f32";
    case NumberType::fp16:
      return "f16";
    case NumberType::bf16:
      return "bf16";
    case NumberType::int8:
      return "q8_0";
    case NumberType::int4:
      return "q4_0";
    default:
      return "";
  }
}

/// Drafts in one pass by whose they are, as the draft's name tells; engines have a method for each.
enum class ParallelDraft { unnamed, dflash, dspark };

ParallelDraft family_of(const EngineRequest& request) {
  std::string name = request.draft_model;
  for (char& letter : name) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  if (name.find("dspark") != std::string::npos) return ParallelDraft::dspark;
  return name.find("dflash") != std::string::npos ? ParallelDraft::dflash : ParallelDraft::unnamed;
}

/// The engines' files and notes, from one request.
class Writer {
 public:
  Writer(Engine engine, const EngineRequest& request)
      : request_(request), schedule_(joined(request.schedule)) {
    config_.engine = engine;
    config_.file = request.file;
    config_.runs = schedule_;
  }

  EngineConfig write() {
    write_engine();
    note_untold();
    note_end();
    note_assumptions();
    if (config_.text.find(draft_gap) != std::string::npos) {
      config_.not_to_be_written =
          fmt::format("{} stands for {} of the draft, which is not known", draft_gap, kind_of_name());
    }
    return std::move(config_);
  }

 private:
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
    for (ScheduleStretch& step : config_.runs) step.gamma = 0;
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
  std::string_view sglang_algorithm() const;
  std::string sglang_options(std::int64_t gamma, char separator) const;
  void write_sglang_schedule();
  bool samples_rejection() const {
    return request_.rule == AcceptanceRule::rejection && !cost::looks_up(request_.kind);
  }
  std::string_view trtllm_type() const;
  std::string trtllm_text(std::int64_t longest, const std::vector<ScheduleStretch>& schedule) const;
  std::string own_cache_type() const;
  bool quantizes_weights() const;
  bool has_draft_gap() const;
  void note_untold();
  void note_end();
  void note_assumptions();

  /// The engine drafts the fixed gamma at every batch; notes what that loses if the plan has more than one.
  void run_fixed(std::string_view engine) {
    const FixedGamma& fixed = request_.fixed;
    config_.runs = {{1, schedule_.back().batch_high, fixed.gamma}};
    if (schedule_.size() == 1 && schedule_.front().gamma == fixed.gamma) return;
    note(
        fmt::format("{} drafts one length at every batch, here {}; of the speedup of the schedule it gives away up to "
                    "{:.1f}%, most of it at batch {:.3g}",
                    engine, fixed.gamma, 100 * fixed.worst_regret, fixed.worst_batch));
    if (fixed.gamma == 0 || fixed.least_speedup >= 1) return;
    note(fmt::format(
        "gamma {} is slower than plain decoding, first at batch {:.3g} and most at batch {:.3g}, {:.3g}x; keep "
        "such batches from a server that drafts",
        fixed.gamma, fixed.slow_from, fixed.slowest_batch, fixed.least_speedup));
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

  void name_vllm_sampling(ordered_json& json) const;
  void write_vllm_parallel(ordered_json& json);
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

/// The engine's name for the type of the cache; empty if it has none.
std::string Writer::own_cache_type() const {
  const NumberType type = *request_.cache_type;
  switch (config_.engine) {
    case Engine::vllm:
      return type == NumberType::fp8 ? "fp8" : type == NumberType::bf16 ? "bfloat16" : "";
    case Engine::sglang:
      return type == NumberType::fp8 ? "fp8_e4m3" : type == NumberType::bf16 ? "bf16" : "";
    case Engine::trtllm:
      return type == NumberType::fp8 ? "fp8" : type == NumberType::nvfp4 ? "nvfp4" : "";
    case Engine::llamacpp:
      break;
  }
  return std::string(llamacpp_cache_type(type));
}

/// True if the engine converts weights to that type when it loads others.
bool Writer::quantizes_weights() const {
  return request_.weight_type == NumberType::fp8 &&
         (config_.engine == Engine::vllm || config_.engine == Engine::sglang);
}

/// The plan's assumptions on the server, apart from its drafts.
std::vector<std::string> Writer::server_options() const {
  struct Names {
    std::string_view tensor_parallel, max_num_seqs, cache_type;
  };
  constexpr std::array<Names, 4> names = {{{"--tensor-parallel-size", "--max-num-seqs", "--kv-cache-dtype"},
                                           {"--tensor-parallel-size", "--max-running-requests", "--kv-cache-dtype"},
                                           {"--tp_size", "--max_batch_size", ""},
                                           {"--split-mode row", "--parallel", "--cache-type-k"}}};
  const Names& own = names[static_cast<std::size_t>(config_.engine)];
  std::vector<std::string> options;
  if (request_.tensor_parallel.value_or(1) > 1) {
    options.emplace_back(own.tensor_parallel);
    if (config_.engine != Engine::llamacpp) options.back() += fmt::format(" {}", *request_.tensor_parallel);
  }
  if (request_.max_num_seqs) {
    options.push_back(fmt::format("{} {}", own.max_num_seqs, *request_.max_num_seqs));
    // Else every slot has its own part of the context, which no longer request fits into.
    if (config_.engine == Engine::llamacpp) options.emplace_back("--kv-unified");
    if (config_.engine == Engine::llamacpp && request_.cache_tokens)
      options.push_back(fmt::format("--ctx-size {}", *request_.cache_tokens));
  }
  if (request_.max_model_len && config_.engine == Engine::vllm)
    options.push_back(fmt::format("--max-model-len {}", *request_.max_model_len));
  if (request_.cache_type && !own_cache_type().empty() && !own.cache_type.empty()) {
    options.push_back(fmt::format("{} {}", own.cache_type, own_cache_type()));
    if (config_.engine == Engine::llamacpp) options.push_back("--cache-type-v " + own_cache_type());
  }
  if (quantizes_weights()) options.emplace_back("--quantization fp8");
  return options;
}

/// Number of machines that the target is spread over.
std::int64_t Writer::nodes() const {
  const std::int64_t gpus = request_.tensor_parallel.value_or(1), each = request_.gpus_per_node.value_or(gpus);
  return (gpus + each - 1) / each;
}

/// Options for each of several machines; empty for one, and if the engine's launcher has none.
std::string Writer::node_options() const {
  if (nodes() == 1) return "";
  const std::string rank = shell_word(std::string(rank_gap)), address = shell_word(std::string(address_gap));
  if (config_.engine == Engine::vllm) {
    return fmt::format(" --distributed-executor-backend mp --nnodes {} --node-rank {} --master-addr {}", nodes(), rank,
                       address);
  }
  if (config_.engine == Engine::sglang) {
    return fmt::format(" --nnodes {} --node-rank {} --dist-init-addr {}", nodes(), rank, address);
  }
  return "";
}

void Writer::note_nodes() {
  if (nodes() == 1) return;
  const std::string spread =
      fmt::format("the plan spreads the target over {} machines of {} GPUs", nodes(), *request_.gpus_per_node);
  const std::string everywhere = fmt::format("{}: start the command on each, with 0 to {} in the place of {} and the",
                                             spread, nodes() - 1, rank_gap);
  switch (config_.engine) {
    case Engine::vllm:
      return note(fmt::format("{} first one's address in that of {}; all but the first with --headless", everywhere,
                              address_gap));
    case Engine::sglang:
      return note(
          fmt::format("{} first one's address and a free port, HOST:PORT, in that of {}", everywhere, address_gap));
    case Engine::trtllm:
      return note(fmt::format(
          "{}: start it as one MPI job of {} tasks (srun or mpirun), with trtllm-llmapi-launch before the command",
          spread, *request_.tensor_parallel));
    case Engine::llamacpp:
      return note(fmt::format("{}; llama.cpp reaches other machines by its RPC servers alone (--rpc)", spread));
  }
}

/// @param text  the contents of the file that it starts the server with; empty: without drafts
/// @param options  if not empty, the last one takes that file
std::string Writer::command(const std::string& text, const std::string& options) const {
  constexpr std::array<std::string_view, 4> starts = {"vllm serve", "python -m sglang.launch_server --model-path",
                                                      "trtllm-serve", "llama-server -m"};
  std::string command = fmt::format("{} {}", starts[static_cast<std::size_t>(config_.engine)], shell_word(target()));
  for (const std::string& option : server_options()) command += ' ' + option;
  command += node_options();
  if (text.empty()) return command;
  const std::string file = shell_word(request_.file);
  if (!options.empty()) return fmt::format("{} {} {}", command, options, file);
  switch (config_.engine) {
    case Engine::vllm:
      return fmt::format("{} --speculative-config \"$(cat {})\"", command, file);
    case Engine::trtllm:
      return fmt::format("{} --extra_llm_api_options {}", command, file);
    case Engine::sglang:
    case Engine::llamacpp:
      break;
  }
  // The shell does not interpret quotes in its substitutions; xargs does.
  return text.find('\'') == std::string::npos ? fmt::format("{} $(cat {})", command, file)
                                              : fmt::format("xargs -a {} {}", file, command);
}

/// True if the output names a draft that is unknown.
bool Writer::has_draft_gap() const {
  return (config_.text + config_.command).find(draft_gap) != std::string::npos;
}

void Writer::note_untold() {
  std::vector<ScheduleStretch> untold;
  for (const PlannedStretch& step : request_.schedule) {
    if (step.gamma > 0 && worlds::certainty_of(step.share) > worlds::Certainty::likely)
      append({step.batch_low, step.batch_high}, untold);
  }
  if (untold.empty()) return;
  std::vector<std::string> parts;
  for (const ScheduleStretch& step : untold) parts.push_back(batches_text(step));
  note(fmt::format("{} drafts may well not gain what is asked for", fmt::join(parts, ", ")));
}

/// Notes what the engine does above the last batch of the plan where nothing keeps the server from going there.
void Writer::note_end() {
  if (request_.max_num_seqs || largest_gamma(config_.runs) == 0) return;
  const std::int64_t gamma = gamma_above_ ? *gamma_above_ : config_.runs.back().gamma;
  note(fmt::format(
      "the plan ends at batch {}, and the server may go on above: there it drafts {}, which is not planned; "
      "--max-num-seqs N plans up to N, and the command limits the server to that",
      schedule_.back().batch_high, gamma > 0 ? fmt::format("gamma {}", gamma) : std::string("nothing")));
}

void Writer::note_assumptions() {
  if (request_.target_model.empty()) {
    note(fmt::format("put {} of the model in the place of {}", kind_of_name(), target_gap));
  }
  if (has_draft_gap()) {
    note(fmt::format("put {} of the draft in the place of {}", kind_of_name(), draft_gap));
  }
  const auto note_type = [&](std::string_view what, NumberType type) {
    note(fmt::format("the plan assumes {} in {}: check that the server uses them", what, name_of(type)));
  };
  if (request_.cache_type && own_cache_type().empty()) note_type("keys and values", *request_.cache_type);
  if (request_.weight_type && !quantizes_weights()) note_type("the weights", *request_.weight_type);
  if (request_.draft_weight_type) note_type("the draft's weights", *request_.draft_weight_type);
  const std::int64_t gpus = request_.tensor_parallel.value_or(1);
  if (gpus > 1 && config_.engine == Engine::llamacpp) {
    note(fmt::format("the plan divides every layer over {} GPUs, and llama.cpp over all that it sees", gpus));
  }
  note_nodes();
  const bool says_draft = config_.engine == Engine::vllm;
  if (request_.tensor_parallel && request_.draft_tensor_parallel && !says_draft &&
      request_.draft_tensor_parallel != request_.tensor_parallel) {
    note(fmt::format("the plan spreads the draft over {} GPUs; {} has no option for that",
                     *request_.draft_tensor_parallel, name_of(config_.engine)));
  }
}

/// The keys of vLLM's speculative config that select the rule.
void Writer::name_vllm_sampling(ordered_json& json) const {
  json["rejection_sample_method"] = "standard";
  json["draft_sample_method"] = request_.rule == AcceptanceRule::rejection ? "probabilistic" : "greedy";
}

void Writer::write_vllm() {
  ordered_json json;
  switch (request_.kind) {
    case DraftKind::model:
    case DraftKind::mirrored:
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
    case DraftKind::suffix:
      json["method"] = "suffix";
      note(
          "num_speculative_tokens is the most that a match proposes; vLLM's second model runner verifies that many of "
          "every sequence unless enable_adaptive_verification is true");
      break;
    case DraftKind::eagle:
      json["method"] = "eagle3";
      note("for the heads of the first EAGLE the method is eagle");
      break;
    case DraftKind::parallel:
      write_vllm_parallel(json);
      break;
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

void Writer::write_vllm_parallel(ordered_json& json) {
  switch (family_of(request_)) {
    case ParallelDraft::dflash:
      json["method"] = "dflash";
      return;
    case ParallelDraft::dspark:
      json["method"] = "dspark";
      return;
    case ParallelDraft::unnamed:
      break;
  }
  json["method"] = "draft_model";
  json["parallel_drafting"] = true;
  note(
      "for the drafts of DFlash the method is dflash, of DSpark dspark, for Medusa's heads medusa, without "
      "parallel_drafting");
}

std::string_view Writer::sglang_algorithm() const {
  switch (request_.kind) {
    case DraftKind::model:
    case DraftKind::mirrored:
      return "STANDALONE";
    case DraftKind::eagle:
      return "EAGLE3";
    case DraftKind::mtp:
      return "NEXTN";
    case DraftKind::parallel:
      return family_of(request_) == ParallelDraft::dspark ? "DSPARK" : "DFLASH";
    case DraftKind::suffix:  // refused
    case DraftKind::ngram:
      break;
  }
  return "NGRAM";
}

/// @param separator  between two options
std::string Writer::sglang_options(std::int64_t gamma, char separator) const {
  std::vector<std::string> options = {fmt::format("--speculative-algorithm {}", sglang_algorithm())};
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

void Writer::write_sglang() {
  // Its schedules are of chains.
  const bool adapts = !request_.tree && (request_.kind == DraftKind::eagle || request_.kind == DraftKind::mtp);
  const bool scheduled = adapts && schedule_.size() > 1;
  if (!scheduled) run_fixed("SGLang");
  if (request_.kind == DraftKind::eagle) note("for the heads of the first EAGLE the algorithm is EAGLE");
  const std::int64_t fixed = request_.fixed.gamma;
  if (!scheduled && fixed == 0) return configure_nothing(plain_loses_least);
  note_unknown_rule("greedy drafting");
  note_temperature_zero();
  if (scheduled) return write_sglang_schedule();
  set_text(sglang_options(fixed, '\n') + '\n');
}

/// A file of one candidate for each stretch, so that its look-up has nothing to adapt.
void Writer::write_sglang_schedule() {
  ordered_json json;
  for (const ScheduleStretch& step : schedule_) {
    json[fmt::format("{}", step.batch_low)] = {{"candidate_steps", {step.gamma}}};
  }
  // The server starts with the length that it keeps where it cannot adapt; it must be one of the file.
  const std::int64_t fixed = request_.fixed.gamma;
  const bool has_fixed =
      fixed > 0 && std::any_of(schedule_.begin(), schedule_.end(), [&](const auto& step) { return step.gamma == fixed; });
  const std::int64_t start = has_fixed ? fixed : largest_gamma(schedule_);
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

std::string_view Writer::trtllm_type() const {
  switch (request_.kind) {
    case DraftKind::model:
    case DraftKind::mirrored:
      return "Draft_Target";
    case DraftKind::eagle:
      return "Eagle3";
    case DraftKind::mtp:
      return "MTP";
    case DraftKind::parallel:
      return family_of(request_) == ParallelDraft::dflash ? "DFlash" : "PARD";
    case DraftKind::suffix:  // refused
    case DraftKind::ngram:
      break;
  }
  return "NGram";
}

/// @param schedule  if empty, drafts the longest at every batch
std::string Writer::trtllm_text(std::int64_t longest, const std::vector<ScheduleStretch>& schedule) const {
  std::vector<std::string> lines;
  if (!schedule.empty()) lines.emplace_back("# the keys of draft_len_schedule are the largest batches");
  lines.emplace_back("speculative_config:");
  const auto put = [&](std::string_view key, const std::string& value) {
    lines.push_back(fmt::format("  {}: {}", key, value));
  };
  put("decoding_type", std::string(trtllm_type()));
  if (names_draft()) put("speculative_model", yaml_word(draft()));
  put("max_draft_len", fmt::format("{}", longest));
  if (request_.rule == AcceptanceRule::rejection) put("use_rejection_sampling", "true");
  if (!schedule.empty()) {
    std::vector<std::string> keys;
    for (const ScheduleStretch& step : schedule) keys.push_back(fmt::format("{}: {}", step.batch_high, step.gamma));
    put("draft_len_schedule", fmt::format("{{{}}}", fmt::join(keys, ", ")));
  }
  if (request_.cache_type && !own_cache_type().empty()) {
    lines.push_back(fmt::format("kv_cache_config:\n  dtype: {}", own_cache_type()));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

void Writer::write_trtllm() {
  if (request_.kind == DraftKind::parallel && family_of(request_) == ParallelDraft::unnamed) {
    note("for the drafts of DFlash the decoding_type is DFlash");
  }
  // The first length of a schedule must be max_draft_len, and none may exceed it.
  const std::int64_t first = schedule_.front().gamma;
  bool scheduled = schedule_.size() > 1;
  if (scheduled && first < largest_gamma(schedule_)) {
    if (first == 0) {
      scheduled = false;
      run_fixed("TensorRT-LLM, whose schedule must begin with its longest draft,");
    } else {
      for (ScheduleStretch& step : schedule_) step.gamma = std::min(step.gamma, first);
      note(
          fmt::format("the first draft length of TensorRT-LLM's schedule must be its longest, so that batches for "
                      "which the plan drafts more draft {}",
                      first));
    }
  }
  std::vector<ScheduleStretch> written;
  if (scheduled) {
    for (const ScheduleStretch& step : schedule_) append(step, written);
    config_.runs = written;
    gamma_above_ = 0;
  }
  const std::int64_t longest = largest_gamma(config_.runs);
  if (longest == 0) return configure_nothing(plain_loses_least);
  note_unknown_rule("exact matching with greedy drafting");
  note_temperature_zero();
  if (scheduled) note("draft_len_schedule excludes max_concurrency");
  set_text(trtllm_text(longest, written));
}

void Writer::write_llamacpp() {
  const std::int64_t gamma = request_.fixed.gamma;
  std::string type;
  switch (request_.kind) {
    case DraftKind::model:
    case DraftKind::mirrored:
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
      type = family_of(request_) == ParallelDraft::dspark ? "draft-dspark" : "draft-dflash";
      if (family_of(request_) == ParallelDraft::unnamed) {
        note("drafts in one pass are those of DFlash there, or with --spec-type draft-dspark those of DSpark");
      }
      break;
    case DraftKind::suffix:  // refused
      break;
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
    set_text(fmt::format("--spec-type ngram-mod\n--spec-ngram-mod-n-max {}\n--spec-ngram-mod-n-min 0\n", gamma));
    return;
  }
  note("a least probability of 0 keeps drafts at their full length, which the plan assumes");
  const std::string model =
      request_.kind == DraftKind::mtp && request_.draft_model.empty() ? "" : "\n--model-draft " + shell_word(draft());
  set_text(fmt::format("--spec-type {}{}\n--spec-draft-n-max {}\n--spec-draft-n-min 0\n--spec-draft-p-min 0\n", type,
                       model, gamma));
}

}  // namespace

std::string lacks_option(Engine engine, const EngineRequest& request) {
  if (request.tree && engine != Engine::sglang) {
    return "depth, topk and verified tokens, which are all that runs tell of a tree, are options of SGLang alone";
  }
  if (engine != Engine::vllm && request.kind == DraftKind::suffix)
    return fmt::format("{} looks up no suffixes in other texts; vLLM does, and the kind is suffix", name_of(engine));
  if (engine == Engine::trtllm && request.kind == DraftKind::parallel && family_of(request) == ParallelDraft::dspark) {
    return "TensorRT-LLM takes no drafts of DSpark; vLLM, SGLang and llama.cpp do";
  }
  if (engine == Engine::llamacpp && request.cache_type && llamacpp_cache_type(*request.cache_type).empty()) {
    return fmt::format("llama.cpp keeps keys and values in fp32, fp16, bf16, int8 and int4 alone, and the plan in {}",
                       cost::name_of(*request.cache_type));
  }
  const auto& gpus = request.draft_tensor_parallel;
  const bool is_model =
      request.kind == DraftKind::model || request.kind == DraftKind::mirrored || request.kind == DraftKind::parallel;
  if (engine == Engine::vllm && gpus && request.tensor_parallel && gpus != request.tensor_parallel &&
      (is_model || gpus != 1)) {
    return fmt::format("vLLM spreads the draft over {}{} GPUs alone, and the plan over {}", *request.tensor_parallel,
                       is_model ? "" : " or 1", *gpus);
  }
  return "";
}

EngineConfig engine_config(Engine engine, const EngineRequest& request) {
  require_schedule(request.schedule);
  const std::string lacking = lacks_option(engine, request);
  if (!lacking.empty()) throw std::invalid_argument("engine_config: " + lacking);
  return Writer(engine, request).write();
}

}  // namespace specdec::planning
