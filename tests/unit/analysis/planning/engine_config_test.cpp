#include "analysis/planning/engine_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/planning/served_model.hpp"
#include "tests/support/catch.hpp"

using nlohmann::json;
using specdec::cost::DraftKind;
using specdec::planning::DraftPlan;
using specdec::planning::Engine;
using specdec::planning::engine_config;
using specdec::planning::engine_named;
using specdec::planning::EngineConfig;
using specdec::planning::EngineRequest;
using specdec::planning::PlannedStretch;
using specdec::planning::PriceBasis;
using specdec::traces::AcceptanceRule;

namespace {

constexpr Engine engines[] = {Engine::vllm, Engine::sglang, Engine::trtllm, Engine::llamacpp};

EngineRequest request_for(std::vector<PlannedStretch> schedule) {
  EngineRequest request;
  request.schedule = std::move(schedule);
  request.rule = AcceptanceRule::rejection;
  request.target_model = "org/target";
  request.draft_model = "org/draft";
  return request;
}

const std::vector<PlannedStretch> falling = {{1, 8, 4}, {9, 32, 2}, {33, 256, 1}}, constant = {{1, 256, 2}};

/// vLLM's gamma at a batch by its own reading: inclusive ranges.
std::int64_t vllm_gamma(const json& config, std::int64_t batch) {
  if (!config.contains("num_speculative_tokens_per_batch_size")) return config["num_speculative_tokens"];
  std::int64_t found = -1;
  for (const json& step : config["num_speculative_tokens_per_batch_size"]) {
    if (step[0] <= batch && batch <= step[1]) {
      REQUIRE(found == -1);
      found = step[2];
    }
  }
  return found;
}

/// The lines "  key: value" below "speculative_config:", which a comment may precede.
std::map<std::string, std::string> yaml_keys(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line.rfind("# ", 0) == 0) std::getline(lines, line);
  REQUIRE(line == "speculative_config:");
  std::map<std::string, std::string> keys;
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(": ");
    REQUIRE(line.rfind("  ", 0) == 0);
    REQUIRE(colon != std::string::npos);
    keys[line.substr(2, colon - 2)] = line.substr(colon + 2);
  }
  return keys;
}

/// "{4: 4, 8: 2}".
std::map<std::int64_t, std::int64_t> int_map(const std::string& flow) {
  std::map<std::int64_t, std::int64_t> result;
  std::istringstream parts(flow.substr(1, flow.size() - 2));
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t colon = part.find(':');
    result[std::stoll(part.substr(0, colon))] = std::stoll(part.substr(colon + 1));
  }
  return result;
}

/// Newer releases: the draft length of the smallest key that is at least the batch, else 0.
std::int64_t by_upper_ends(const std::map<std::int64_t, std::int64_t>& keys, std::int64_t batch) {
  const auto at = keys.lower_bound(batch);
  return at == keys.end() ? 0 : at->second;
}

template <class Stretch>
std::int64_t gamma_of(const std::vector<Stretch>& schedule, std::int64_t batch) {
  for (const Stretch& step : schedule) {
    if (step.batch_low <= batch && batch <= step.batch_high) return std::optional(step.gamma).value();
  }
  return -1;
}

/// SGLang's own rule for the batches for which it captures CUDA graphs of rounds, where memory allows `max_bs`.
/// Transcribed from generate_decode_cuda_graph_batch_sizes of SGLang 0.5.23.
std::vector<std::int64_t> sglang_graphs_of(std::int64_t max_bs) {
  std::vector<std::int64_t> sizes;
  const auto range = [&](std::int64_t from, std::int64_t to, std::int64_t step) {
    for (std::int64_t n = from; n < to; n += step) {
      if (n <= max_bs) sizes.push_back(n);
    }
  };
  range(1, 9, 1);
  range(10, 33, 2);
  range(40, 65, 4);
  range(72, 257, 8);
  range(272, max_bs + 1, 16);
  if (sizes.back() != max_bs) sizes.push_back(max_bs);
  return sizes;
}

/// SGLang's gamma at a batch: AdaptiveSpeculativeParams.get_steps_for_batch of SGLang 0.5.23, whose first look-up
/// is in the sorted CUDA graphs (bisect_left) and whose second in the sorted keys (bisect_right). A slot of one
/// candidate stays at it, whatever was accepted. `graphs` is empty without CUDA graphs.
std::int64_t sglang_gamma(const json& config, const std::vector<std::int64_t>& graphs, std::int64_t batch) {
  std::map<std::int64_t, std::int64_t> slots;
  for (const auto& [key, entry] : config.items()) {
    REQUIRE(entry.size() == 1);
    REQUIRE(entry.at("candidate_steps").size() == 1);
    REQUIRE(entry.at("candidate_steps")[0].is_number_unsigned());
    slots[std::stoll(key)] = entry.at("candidate_steps")[0];
  }
  const auto padded = std::lower_bound(graphs.begin(), graphs.end(), batch);
  const auto above = slots.upper_bound(padded == graphs.end() ? batch : *padded);
  return (above == slots.begin() ? above : std::prev(above))->second;
}

/// The value behind an option of a command line.
std::string option(const std::string& text, const std::string& name) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word != name) continue;
    words >> word;
    return word;
  }
  return "";
}

/// The numbers behind an option of a command line.
std::vector<std::int64_t> numbers(const std::string& text, const std::string& name) {
  std::istringstream words(text);
  std::vector<std::int64_t> found;
  bool behind = false;
  for (std::string word; words >> word;) {
    if (behind && word.find_first_not_of("0123456789") != std::string::npos) break;
    if (behind) found.push_back(std::stoll(word));
    behind = behind || word == name;
  }
  return found;
}

bool notes_say(const EngineConfig& config, const std::string& words) {
  for (const std::string& note : config.notes) {
    if (note.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the names of the engines are read back") {
  for (const Engine engine : engines) CHECK(engine_named(name_of(engine)) == engine);
  CHECK_FALSE(engine_named("vLLM"));
}

TEST_CASE("vLLM's configuration drafts at every batch what the schedule says, and never more than its maximum") {
  for (const auto& schedule : {falling, std::vector<PlannedStretch>{{1, 1, 1}, {2, 7, 3}, {8, 9, 3}, {10, 64, 5}}}) {
    EngineRequest request = request_for(schedule);
    request.kind = DraftKind::eagle;
    const EngineConfig config = engine_config(Engine::vllm, request);
    const json parsed = json::parse(config.text);
    for (std::int64_t batch = 1; batch <= schedule.back().batch_high; ++batch) {
      CHECK(vllm_gamma(parsed, batch) == gamma_of(schedule, batch));
      CHECK(vllm_gamma(parsed, batch) <= parsed["num_speculative_tokens"]);
    }
    CHECK(parsed["num_speculative_tokens_per_batch_size"][0][0] == 1);
    CHECK(notes_say(config, "--data-parallel-size"));
  }
}

TEST_CASE("vLLM's configuration selects the acceptance rule that was planned for") {
  EngineRequest request = request_for(constant);
  const auto parsed = [&] { return json::parse(engine_config(Engine::vllm, request).text); };
  CHECK(parsed()["draft_sample_method"] == "probabilistic");
  CHECK(parsed()["rejection_sample_method"] == "standard");
  CHECK(parsed()["method"] == "draft_model");
  CHECK(parsed()["model"] == "org/draft");
  request.rule = AcceptanceRule::greedy_draft;
  CHECK(parsed()["draft_sample_method"] == "greedy");
  request.rule = AcceptanceRule::greedy;
  CHECK(parsed()["draft_sample_method"] == "greedy");
  CHECK(notes_say(engine_config(Engine::vllm, request), "temperature 0"));
  request.rule.reset();
  CHECK_FALSE(parsed().contains("draft_sample_method"));
  CHECK(notes_say(engine_config(Engine::vllm, request), "does not know its acceptance rule"));
}

TEST_CASE("one gamma at every batch needs no schedule") {
  const EngineRequest request = request_for({{1, 4, 2}, {5, 128, 2}});
  const json vllm = json::parse(engine_config(Engine::vllm, request).text);
  CHECK_FALSE(vllm.contains("num_speculative_tokens_per_batch_size"));
  CHECK(vllm["num_speculative_tokens"] == 2);
  const EngineConfig trtllm = engine_config(Engine::trtllm, request);
  CHECK(yaml_keys(trtllm.text).count("draft_len_schedule") == 0);
}

TEST_CASE("what an engine's schedules cannot be is priced out of plans, and refused where it is asked for") {
  using specdec::planning::schedule_prices;
  const auto refused = [](Engine engine, std::vector<PlannedStretch> schedule, const std::string& words,
                          DraftKind kind = DraftKind::model) {
    EngineRequest request = request_for(std::move(schedule));
    request.kind = kind;
    CHECK_THROWS_WITH(engine_config(engine, request), Catch::Contains(words));
  };
  refused(Engine::llamacpp, falling, "llama.cpp takes one draft length for all batches");
  refused(Engine::sglang, falling, "SGLang takes one draft length for all batches");
  refused(Engine::trtllm, {{1, 8, 2}, {9, 32, 4}}, "TensorRT-LLM takes the longest drafts first");
  refused(Engine::trtllm, {{1, 8, 2}, {9, 32, 0}}, "drafts at every batch or at none, and the schedule at some alone");
  refused(Engine::vllm, {{1, 8, 2}, {9, 32, 0}}, "drafts at every batch or at none, and the schedule at some alone",
          DraftKind::eagle);
  refused(Engine::vllm, falling, "vLLM takes one draft length for all batches");
  CHECK(std::isinf(schedule_prices(Engine::llamacpp, DraftKind::eagle).several));
  CHECK(std::isinf(schedule_prices(Engine::sglang, DraftKind::model).several));
  CHECK(schedule_prices(Engine::sglang, DraftKind::eagle).several == 0);
  CHECK(schedule_prices(Engine::vllm, DraftKind::eagle).several == 0);
  CHECK(std::isinf(schedule_prices(Engine::vllm, DraftKind::model).several));
  CHECK(std::isinf(schedule_prices(Engine::trtllm, DraftKind::eagle).per_rise));
}

TEST_CASE("the keys of TensorRT-LLM's schedules are the upper ends, also of heads, modules and parallel drafts") {
  for (const DraftKind kind :
       {DraftKind::model, DraftKind::eagle, DraftKind::mtp, DraftKind::parallel, DraftKind::ngram}) {
    EngineRequest request = request_for(falling);
    request.kind = kind;
    const EngineConfig config = engine_config(Engine::trtllm, request);
    CHECK(config.text.rfind("# the keys of draft_len_schedule are the largest batches\n", 0) == 0);
    const auto keys = yaml_keys(config.text);
    CHECK(keys.at("draft_len_schedule") == "{8: 4, 32: 2, 256: 1}");
    for (std::int64_t batch = 1; batch <= 256; ++batch)
      CHECK(by_upper_ends(int_map(keys.at("draft_len_schedule")), batch) == gamma_of(falling, batch));
    CHECK(keys.at("max_draft_len") == "4");
    CHECK(keys.at("use_rejection_sampling") == "true");
    CHECK(keys.count("max_concurrency") == 0);
    const bool names_draft = kind != DraftKind::mtp && kind != DraftKind::ngram;
    CHECK(keys.count("speculative_model") == (names_draft ? 1 : 0));
    if (names_draft) CHECK(keys.at("speculative_model") == "\"org/draft\"");
  }
}

TEST_CASE("suffixes are a method of vLLM's, and no other engine's") {
  EngineRequest request = request_for({{1, 256, 8}});
  request.kind = DraftKind::suffix;
  const std::string text = engine_config(Engine::vllm, request).text;
  CHECK_THAT(text, Catch::Contains("\"method\": \"suffix\"") && Catch::Contains("\"num_speculative_tokens\": 8"));
  CHECK_THAT(text, !Catch::Contains("\"model\"") && !Catch::Contains("prompt_lookup"));
  CHECK(specdec::planning::lacks_option(Engine::vllm, request).empty());
  for (const Engine other : {Engine::sglang, Engine::trtllm, Engine::llamacpp})
    CHECK_THAT(specdec::planning::lacks_option(other, request),
               Catch::Contains("looks up no suffixes in other texts; vLLM does"));
}

TEST_CASE("a server on several machines is started on each, with gaps for what tells them apart") {
  EngineRequest request = request_for({{1, 64, 3}});
  request.tensor_parallel = 16;
  request.gpus_per_node = 8;
  const auto config = [&](Engine engine) { return engine_config(engine, request); };
  CHECK(config(Engine::vllm).command ==
        "vllm serve org/target --tensor-parallel-size 16 --distributed-executor-backend mp --nnodes 2 --node-rank "
        "'<RANK>' --master-addr '<ADDRESS>' --speculative-config \"$(cat FILE)\"");
  CHECK(config(Engine::sglang).command ==
        "python -m sglang.launch_server --model-path org/target --tensor-parallel-size 16 --nnodes 2 --node-rank "
        "'<RANK>' --dist-init-addr '<ADDRESS>' $(cat FILE)");
  for (const Engine engine : engines) {
    CHECK(notes_say(config(engine), "the plan spreads the target over 2 machines of 8 GPUs"));
    CHECK(config(engine).not_to_be_written.empty());
  }
  CHECK(notes_say(config(Engine::vllm), "with 0 to 1 in the place of <RANK>"));
  CHECK(notes_say(config(Engine::trtllm), "as one MPI job of 16 tasks"));
  for (const std::optional<std::int64_t> each : {std::optional<std::int64_t>(16), std::optional<std::int64_t>()}) {
    request.gpus_per_node = each;
    CHECK(config(Engine::vllm).command.find("nnodes") == std::string::npos);
    CHECK_FALSE(notes_say(config(Engine::vllm), "machines"));
  }
}

TEST_CASE("TensorRT-LLM matches exactly unless rejection sampling was planned for") {
  EngineRequest request = request_for(falling);
  request.rule = AcceptanceRule::greedy_draft;
  CHECK(yaml_keys(engine_config(Engine::trtllm, request).text).count("use_rejection_sampling") == 0);
}

TEST_CASE("SGLang gets one chain of the gamma for all batches") {
  EngineRequest request = request_for(constant);
  const EngineConfig config = engine_config(Engine::sglang, request);
  const std::string& text = config.text;
  CHECK(option(text, "--speculative-algorithm") == "STANDALONE");
  CHECK(option(text, "--speculative-num-steps") == "2");
  CHECK(option(text, "--speculative-eagle-topk") == "1");
  CHECK(option(text, "--speculative-num-draft-tokens") == "3");
  CHECK(text.find("--speculative-use-rejection-sampling") != std::string::npos);
  request.rule = AcceptanceRule::greedy_draft;
  CHECK(engine_config(Engine::sglang, request).text.find("rejection") == std::string::npos);
}

TEST_CASE("SGLang drafts heads at every batch as the schedule says, by its own look-up, whatever graphs it captures") {
  const std::vector<std::vector<PlannedStretch>> schedules = {
      falling,
      {{1, 12, 3}, {13, 47, 2}, {48, 62, 1}},
      {{1, 1, 5}, {2, 33, 0}, {34, 34, 2}, {35, 39, 4}},
      {{1, 8, 4}, {9, 9, 3}, {10, 300, 2}, {301, 600, 0}}};
  std::size_t with_own_graphs = 0;
  for (const auto& schedule : schedules) {
    EngineRequest request = request_for(schedule);
    request.kind = DraftKind::eagle;
    const EngineConfig config = engine_config(Engine::sglang, request);
    const json parsed = json::parse(config.text);
    const auto asked = numbers(config.command, "--cuda-graph-bs-decode");
    // Batches at which the engine would leave the plan, and what it is said to run, with these graphs.
    const auto astray = [&](const std::vector<std::int64_t>& graphs) {
      std::int64_t batches = 0;
      for (const PlannedStretch& step : schedule) {
        for (std::int64_t batch = step.batch_low; batch <= step.batch_high; ++batch) {
          const std::int64_t gamma = sglang_gamma(parsed, graphs, batch);
          if (gamma != step.gamma) ++batches;
        }
      }
      return batches;
    };
    CHECK(astray({}) == 0);
    with_own_graphs += asked.empty() ? 1 : 0;
    if (asked.empty()) {
      for (const std::int64_t most : {8, 24, 35, 50, 160, 256, 512}) CHECK(astray(sglang_graphs_of(most)) == 0);
    } else {
      CHECK(astray(asked) == 0);
      CHECK(astray(sglang_graphs_of(512)) > 0);
      CHECK(std::is_sorted(asked.begin(), asked.end()));
      CHECK(asked.back() == schedule.back().batch_high);
    }
  }
  CHECK(with_own_graphs == 1);
}

TEST_CASE("SGLang's command has the schedule's file, and starts with the longest drafts") {
  EngineRequest request = request_for(falling);
  request.kind = DraftKind::eagle;
  request.file = "steps.json";
  const EngineConfig config = engine_config(Engine::sglang, request);
  CHECK(config.text ==
        "{\n  \"1\": {\"candidate_steps\":[4]},\n  \"9\": {\"candidate_steps\":[2]},\n"
        "  \"33\": {\"candidate_steps\":[1]}\n}\n");
  CHECK(config.command ==
        "python -m sglang.launch_server --model-path org/target --speculative-algorithm EAGLE3 "
        "--speculative-draft-model-path org/draft --speculative-num-steps 4 --speculative-eagle-topk 1 "
        "--speculative-num-draft-tokens 5 --speculative-use-rejection-sampling --speculative-adaptive "
        "--speculative-adaptive-config steps.json");
  CHECK(notes_say(config, "warns at its start, ignores the schedule and drafts 4 at every batch"));
  request.kind = DraftKind::mtp;
  CHECK(option(engine_config(Engine::sglang, request).command, "--speculative-algorithm") == "NEXTN");
}

TEST_CASE("SGLang's schedule of a head that is not known can be written, and its command has the gap") {
  EngineRequest request = request_for(falling);
  request.kind = DraftKind::eagle;
  request.draft_model.clear();
  const EngineConfig config = engine_config(Engine::sglang, request);
  CHECK(config.not_to_be_written.empty());
  CHECK(option(config.command, "--speculative-draft-model-path") == "'<DRAFT>'");
  CHECK(notes_say(config, "in the place of <DRAFT>"));
}

TEST_CASE("llama.cpp gets its options, and a warning where it knows no such acceptance rule") {
  const EngineConfig config = engine_config(Engine::llamacpp, request_for(constant));
  CHECK(option(config.text, "--spec-draft-n-max") == "2");
  CHECK(option(config.text, "--spec-draft-n-min") == "0");
  CHECK(option(config.text, "--spec-draft-p-min") == "0");
  CHECK(notes_say(config, "measure it again"));
}

TEST_CASE("every kind of draft has options in every engine") {
  for (const Engine engine : engines) {
    for (const DraftKind kind :
         {DraftKind::model, DraftKind::eagle, DraftKind::mtp, DraftKind::parallel, DraftKind::ngram}) {
      EngineRequest request = request_for(constant);
      request.kind = kind;
      const EngineConfig config = engine_config(engine, request);
      CHECK_FALSE(config.text.empty());
      const bool needs_model = kind != DraftKind::ngram && (kind != DraftKind::mtp || engine == Engine::llamacpp);
      const std::string whole = config.text + config.command;
      CHECK((whole.find("org/draft") != std::string::npos) == needs_model);
    }
  }
}

TEST_CASE("where no batch gains, no engine is told to speculate") {
  for (const Engine engine : engines) {
    const EngineConfig config = engine_config(engine, request_for({{1, 64, 0}}));
    CHECK(config.text.empty());
    CHECK(config.command.find("FILE") == std::string::npos);
    CHECK(notes_say(config, "without speculation"));
  }
}

TEST_CASE("a schedule with gaps, overlap or another beginning than batch 1 is refused") {
  for (const std::vector<PlannedStretch>& schedule : {std::vector<PlannedStretch>{},
                                                      {{2, 8, 1}},
                                                      {{1, 8, 1}, {10, 12, 0}},
                                                      {{1, 8, 1}, {8, 12, 0}},
                                                      {{1, 0, 1}},
                                                      {{1, 4, -1}}}) {
    CHECK_THROWS_AS(engine_config(Engine::vllm, request_for(schedule)), std::invalid_argument);
  }
}

TEST_CASE("names of models cannot break out of their place") {
  EngineRequest request = request_for({{1, 8, 2}});
  request.draft_model = "a \"b\" 'c'; rm";
  CHECK(json::parse(engine_config(Engine::vllm, request).text)["model"] == request.draft_model);
  CHECK(engine_config(Engine::sglang, request).text.find("'a \"b\" '\\''c'\\''; rm'") !=
        std::string::npos);
  CHECK(json::parse(yaml_keys(engine_config(Engine::trtllm, request).text)["speculative_model"]) ==
        request.draft_model);
}

TEST_CASE("commands say what the plan assumed of the server") {
  EngineRequest request = request_for({{1, 64, 3}});
  request.tensor_parallel = 4;
  request.draft_tensor_parallel = 4;
  request.max_num_seqs = 64;
  request.cache_type = specdec::cost::NumberType::fp8;
  request.weight_type = specdec::cost::NumberType::fp8;
  request.file = "my config.json";
  const auto command = [&](Engine engine) { return engine_config(engine, request).command; };
  CHECK(command(Engine::vllm) ==
        "vllm serve org/target --tensor-parallel-size 4 --max-num-seqs 64 --kv-cache-dtype fp8 --quantization fp8 "
        "--speculative-config \"$(cat 'my config.json')\"");
  CHECK(command(Engine::sglang) ==
        "python -m sglang.launch_server --model-path org/target --tensor-parallel-size 4 --max-running-requests 64 "
        "--kv-cache-dtype fp8_e4m3 --quantization fp8 $(cat 'my config.json')");
  CHECK(command(Engine::trtllm) ==
        "trtllm-serve org/target --tp_size 4 --max_batch_size 64 --extra_llm_api_options 'my config.json'");
  CHECK(engine_config(Engine::trtllm, request).text.find("kv_cache_config:\n  dtype: fp8\n") !=
        std::string::npos);
  CHECK(notes_say(engine_config(Engine::trtllm, request), "the plan assumes the weights in fp8"));
  request.target_model = "target.gguf";
  request.cache_type = specdec::cost::NumberType::int8;
  CHECK(command(Engine::llamacpp) ==
        "llama-server -m target.gguf --split-mode row --parallel 64 --kv-unified --cache-type-k q8_0 --cache-type-v "
        "q8_0 $(cat 'my "
        "config.json')");
  CHECK(notes_say(engine_config(Engine::llamacpp, request), "over 4 GPUs"));
  CHECK(notes_say(engine_config(Engine::vllm, request), "the plan assumes keys and values in int8"));
  // Quotes that stand in the file are read by xargs and not by the shell.
  request.draft_model = "a draft.gguf";
  CHECK(command(Engine::llamacpp).rfind("xargs -a 'my config.json' llama-server -m target.gguf", 0) == 0);
}

TEST_CASE("a type of the cache that llama.cpp does not know is refused") {
  EngineRequest request = request_for({{1, 64, 3}});
  request.cache_type = specdec::cost::NumberType::fp8;
  CHECK_THROWS_WITH(engine_config(Engine::llamacpp, request),
                    Catch::Contains("llama.cpp keeps keys and values in fp32, fp16, bf16, int8 and int4 alone, and the "
                                    "plan in fp8"));
  CHECK(specdec::planning::lacks_option(Engine::vllm, request).empty());
}

TEST_CASE("vLLM drafts in parallel where the draft does") {
  EngineRequest request = request_for({{1, 64, 3}});
  CHECK_FALSE(json::parse(engine_config(Engine::vllm, request).text).contains("parallel_drafting"));
  request.kind = DraftKind::parallel;
  const EngineConfig config = engine_config(Engine::vllm, request);
  const json parsed = json::parse(config.text);
  CHECK(parsed["method"] == "draft_model");
  CHECK(parsed["parallel_drafting"] == true);
  CHECK(notes_say(config, "for the drafts of DFlash the method is dflash"));
}

TEST_CASE("drafts of DFlash and DSpark have each engine's own method, by the draft's name") {
  EngineRequest request = request_for({{1, 64, 3}});
  request.kind = DraftKind::parallel;
  const auto text_of = [&](Engine engine, const std::string& draft) {
    request.draft_model = draft;
    return engine_config(engine, request).text;
  };
  for (const auto& [draft, vllm, sglang, llamacpp] :
       {std::array<std::string, 4>{"z-lab/Qwen3-8B-DFlash-b16", "dflash", "DFLASH", "draft-dflash"},
        std::array<std::string, 4>{"deepseek-ai/dspark_qwen3_8b", "dspark", "DSPARK", "draft-dspark"}}) {
    const json of_vllm = json::parse(text_of(Engine::vllm, draft));
    CHECK(of_vllm["method"] == vllm);
    CHECK_FALSE(of_vllm.contains("parallel_drafting"));
    CHECK(option(text_of(Engine::sglang, draft), "--speculative-algorithm") == sglang);
    CHECK(option(text_of(Engine::llamacpp, draft), "--spec-type") == llamacpp);
  }
  CHECK(text_of(Engine::trtllm, "z-lab/Qwen3-8B-DFlash-b16").find("decoding_type: DFlash") != std::string::npos);
  CHECK(text_of(Engine::trtllm, "org/pard").find("decoding_type: PARD") != std::string::npos);
  CHECK_THROWS_WITH(text_of(Engine::trtllm, "org/DSpark"), Catch::Contains("TensorRT-LLM takes no drafts of DSpark"));
}

TEST_CASE("what an engine does above the last batch of a plan is said unless the command limits the server to it") {
  EngineRequest request = request_for({{1, 8, 4}, {9, 62, 1}});
  request.kind = DraftKind::eagle;
  const std::string end = "the plan ends at batch 62, and the server may go on above: there it drafts ";
  CHECK(notes_say(engine_config(Engine::vllm, request), end + "gamma 1, which is not planned"));
  CHECK(notes_say(engine_config(Engine::trtllm, request), end + "nothing,"));
  request.schedule = {{1, 62, 2}};
  CHECK(notes_say(engine_config(Engine::sglang, request), end + "gamma 2,"));
  CHECK(notes_say(engine_config(Engine::llamacpp, request), "--max-num-seqs N plans up to N"));
  request.max_num_seqs = 62;
  for (const Engine engine : engines) CHECK_FALSE(notes_say(engine_config(engine, request), "the plan ends"));
  const EngineConfig plain = engine_config(Engine::vllm, request_for({{1, 62, 0}}));
  CHECK_FALSE(notes_say(plain, "the plan ends"));
}

TEST_CASE("vLLM runs a draft model on the GPUs of the target, and heads on one or on these") {
  EngineRequest request = request_for({{1, 64, 3}});
  request.tensor_parallel = 4;
  request.draft_tensor_parallel = 1;
  for (const DraftKind kind : {DraftKind::mirrored, DraftKind::model}) {
    request.kind = kind;
    CHECK_THROWS_WITH(engine_config(Engine::vllm, request),
                      Catch::Contains("vLLM spreads the draft over 4 GPUs alone, and the plan over 1"));
  }
  CHECK(notes_say(engine_config(Engine::sglang, request), "spreads the draft over 1 GPUs"));
  request.kind = DraftKind::eagle;
  CHECK(json::parse(engine_config(Engine::vllm, request).text)["draft_tensor_parallel_size"] == 1);
  request.draft_tensor_parallel = 4;
  CHECK_FALSE(
      json::parse(engine_config(Engine::vllm, request).text).contains("draft_tensor_parallel_size"));
}

TEST_CASE("what is not known is a marked gap, and a text with one is not to be written") {
  EngineRequest request = request_for({{1, 64, 3}});
  CHECK(engine_config(Engine::vllm, request).not_to_be_written.empty());
  request.target_model.clear();
  const EngineConfig no_target = engine_config(Engine::vllm, request);
  CHECK(no_target.command.find("vllm serve '<TARGET>'") == 0);
  CHECK(notes_say(no_target, "in the place of <TARGET>"));
  CHECK(no_target.not_to_be_written.empty());
  request.draft_model.clear();
  for (const Engine engine : engines) {
    const EngineConfig config = engine_config(engine, request);
    CHECK(config.text.find("<DRAFT>") != std::string::npos);
    CHECK(notes_say(config, "in the place of <DRAFT>"));
    CHECK(config.not_to_be_written.find("<DRAFT>") != std::string::npos);
  }
  request.schedule = {{1, 64, 0}};
  CHECK(engine_config(Engine::vllm, request).not_to_be_written.find("the plan takes no gamma at any batch") == 0);
}

TEST_CASE("models are told to engines by repository or path, and by no other name") {
  using specdec::planning::served_model;
  CHECK(served_model(Engine::vllm, "llama-3.3-70b").name == "meta-llama/Llama-3.3-70B-Instruct");
  CHECK(served_model(Engine::vllm, "llama-3.2-1b").name == "meta-llama/Llama-3.2-1B-Instruct");
  // A repository that was named is the one served, however it is written.
  CHECK(served_model(Engine::vllm, "meta-llama/llama-3.2-1b").name == "meta-llama/Llama-3.2-1B");
  CHECK(served_model(Engine::vllm, "meta-llama/llama-3.2-1b").alike.empty());
  CHECK(served_model(Engine::vllm, "llama-3.2-1b").alike == std::vector<std::string>{"meta-llama/Llama-3.2-1B"});
  CHECK(served_model(Engine::vllm, "meta-llama/Llama-3.2-1B").name == "meta-llama/Llama-3.2-1B");
  CHECK(served_model(Engine::sglang, "gemma-3-4b").name == "google/gemma-3-4b-it");
  CHECK(served_model(Engine::vllm, "llama-68m").name == "JackFram/llama-68m");
  CHECK(served_model(Engine::vllm, "eagle3-qwen3-8b").name.empty());
  CHECK(served_model(Engine::vllm, "org/own").name == "org/own");
  CHECK(served_model(Engine::vllm, "/models/own").name == "/models/own");
  CHECK(served_model(Engine::vllm, "own").name.empty());
  CHECK(served_model(Engine::vllm, "configs/own.json").name.empty());
  CHECK(served_model(Engine::vllm, "").name.empty());
  CHECK(served_model(Engine::llamacpp, "llama-3.3-70b").name.empty());
  CHECK(served_model(Engine::llamacpp, "models/own.gguf").name == "models/own.gguf");
}
