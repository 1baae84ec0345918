#include "analysis/planning/engine_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "analysis/planning/engine_writer.hpp"

namespace specdec::planning {
namespace {

using cost::DraftKind;
using cost::NumberType;

bool is_never(double price) { return std::isinf(price); }

void require_schedule(Engine engine, const EngineRequest& request) {
  const std::vector<PlannedStretch>& schedule = request.schedule;
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
  const worlds::SchedulePrices prices = schedule_prices(engine, request.kind);
  const auto refuse = [&](std::string_view what) {
    throw std::invalid_argument(fmt::format("engine_config: {} {}", title_of(engine), what));
  };
  for (std::size_t i = 1; i < schedule.size(); ++i) {
    const std::int64_t before = schedule[i - 1].gamma, here = schedule[i].gamma;
    if (before == here) continue;
    if (is_never(prices.several) || request.tree)
      refuse("takes one draft length for all batches, and the schedule has several");
    if (is_never(prices.per_rise) && here > before) refuse("takes the longest drafts first, and the schedule rises");
    if (is_never(prices.per_pause) && (before == 0 || here == 0))
      refuse("drafts at every batch or at none, and the schedule at some alone");
  }
}

/// The engine's name for a type of the cache; empty if it has none.
std::string_view cache_type_of(Engine engine, NumberType type) {
  using Names = std::array<std::string_view, 4>;
  // vLLM, SGLang, TensorRT-LLM, llama.cpp; by the order of NumberType.
  constexpr std::array<Names, 8> by_type = {{{"", "", "", "f32"},
                                             {"", "", "", "f16"},
                                             {"bfloat16", "bf16", "", "bf16"},
                                             {"fp8", "fp8_e4m3", "fp8", ""},
                                             {"", "", "", "q8_0"},
                                             {"", "", "", "q4_0"},
                                             {"", "", "nvfp4", ""},
                                             {}}};
  return by_type[static_cast<std::size_t>(type)][static_cast<std::size_t>(engine)];
}

}  // namespace

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

std::vector<ScheduleStretch> joined(const std::vector<PlannedStretch>& schedule) {
  std::vector<ScheduleStretch> result;
  for (const PlannedStretch& step : schedule) append(step, result);
  return result;
}

std::int64_t largest_gamma(const std::vector<ScheduleStretch>& schedule) {
  std::int64_t largest = 0;
  for (const ScheduleStretch& step : schedule) largest = std::max(largest, step.gamma);
  return largest;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:=+,@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ParallelDraft family_of(const EngineRequest& request) {
  std::string name = request.draft_model;
  for (char& letter : name) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  if (name.find("dspark") != std::string::npos) return ParallelDraft::dspark;
  return name.find("dflash") != std::string::npos ? ParallelDraft::dflash : ParallelDraft::unnamed;
}

std::string EngineWriter::own_cache_type() const {
  return std::string(cache_type_of(config_.engine, *request_.cache_type));
}

/// True if the engine converts weights to that type when it loads others.
bool EngineWriter::quantizes_weights() const {
  return request_.weight_type == NumberType::fp8 &&
         (config_.engine == Engine::vllm || config_.engine == Engine::sglang);
}

/// The plan's assumptions on the server, apart from its drafts.
std::vector<std::string> EngineWriter::server_options() const {
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
std::int64_t EngineWriter::nodes() const {
  const std::int64_t gpus = request_.tensor_parallel.value_or(1), each = request_.gpus_per_node.value_or(gpus);
  return (gpus + each - 1) / each;
}

/// Options for each of several machines; empty for one, and if the engine's launcher has none.
std::string EngineWriter::node_options() const {
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

void EngineWriter::note_nodes() {
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
std::string EngineWriter::command(const std::string& text, const std::string& options) const {
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
bool EngineWriter::has_draft_gap() const {
  return (config_.text + config_.command).find(draft_gap) != std::string::npos;
}

/// Notes what the engine does above the last batch of the plan where nothing keeps the server from going there.
void EngineWriter::note_end() {
  if (request_.max_num_seqs || largest_gamma(schedule_) == 0) return;
  const std::int64_t gamma = gamma_above_ ? *gamma_above_ : schedule_.back().gamma;
  note(fmt::format(
      "the plan ends at batch {}, and the server may go on above: there it drafts {}, which is not planned; "
      "--max-num-seqs N plans up to N, and the command limits the server to that",
      schedule_.back().batch_high, gamma > 0 ? fmt::format("gamma {}", gamma) : std::string("nothing")));
}

void EngineWriter::note_assumptions() {
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

worlds::SchedulePrices schedule_prices(Engine engine, DraftKind kind) {
  constexpr double never = std::numeric_limits<double>::infinity();
  worlds::SchedulePrices prices;
  if (engine == Engine::vllm || engine == Engine::trtllm) prices.per_pause = never;
  if (engine == Engine::trtllm) prices.per_rise = never;
  const bool is_head = kind == DraftKind::eagle || kind == DraftKind::mtp;
  const bool drafts_longest = kind == DraftKind::model || kind == DraftKind::mirrored || kind == DraftKind::suffix;
  if (engine == Engine::llamacpp || (engine == Engine::sglang && !is_head) ||
      (engine == Engine::vllm && drafts_longest))
    prices.several = never;
  return prices;
}

std::string lacks_option(Engine engine, const EngineRequest& request) {
  if (request.tree && engine != Engine::sglang) {
    return "depth, topk and verified tokens, which are all that runs tell of a tree, are options of SGLang alone";
  }
  if (engine != Engine::vllm && request.kind == DraftKind::suffix)
    return fmt::format("{} looks up no suffixes in other texts; vLLM does, and the kind is suffix", name_of(engine));
  if (engine == Engine::trtllm && request.kind == DraftKind::parallel && family_of(request) == ParallelDraft::dspark) {
    return "TensorRT-LLM takes no drafts of DSpark; vLLM, SGLang and llama.cpp do";
  }
  if (engine == Engine::llamacpp && request.cache_type && cache_type_of(engine, *request.cache_type).empty()) {
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
  require_schedule(engine, request);
  const std::string lacking = lacks_option(engine, request);
  if (!lacking.empty()) throw std::invalid_argument("engine_config: " + lacking);
  return EngineWriter(engine, request).write();
}

}  // namespace specdec::planning
