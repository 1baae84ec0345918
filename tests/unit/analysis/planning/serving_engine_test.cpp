#include "analysis/planning/serving_engine.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/planning/engine_config.hpp"
#include "tests/support/catch.hpp"

using nlohmann::json;
using specdec::cost::DraftKind;
using specdec::planning::Engine;
using specdec::planning::engine_config;
using specdec::planning::engine_release;
using specdec::planning::EngineConfig;
using specdec::planning::EngineFeature;
using specdec::planning::EngineRequest;
using specdec::planning::lacks_option;
using specdec::planning::Support;
using specdec::traces::AcceptanceRule;

namespace {

using Names = std::set<std::string>;

constexpr DraftKind kinds[] = {DraftKind::model, DraftKind::mirrored, DraftKind::eagle,
                               DraftKind::mtp,   DraftKind::parallel, DraftKind::ngram};
const std::optional<AcceptanceRule> rules[] = {std::nullopt, AcceptanceRule::rejection, AcceptanceRule::greedy_draft,
                                               AcceptanceRule::greedy};

/// Keys read by a release of vLLM, transcribed from SpeculativeConfig (vllm/config/speculative.py) and arg_utils.py of
/// its source distribution: those beside the keys of all releases, the values of two, and whether it refuses draft
/// models.
struct VllmRelease {
  std::string release;
  Names keys, rejection_values, draft_values;
  bool drafts_by_model = true;
};

const std::vector<VllmRelease>& vllm_releases() {
  static const std::vector<VllmRelease> releases = {
      {"0.12.0", {}, {}, {}, false},
      {"0.13.0", {}, {}, {}, false},
      {"0.14.0", {}, {}, {}, false},
      {"0.16.0", {"parallel_drafting"}, {}, {}},
      {"0.17.0", {"parallel_drafting"}, {}, {}},
      {"0.18.0", {"parallel_drafting", "rejection_sample_method"}, {"strict", "probabilistic"}, {}},
      {"0.19.0", {"parallel_drafting", "rejection_sample_method"}, {"strict", "probabilistic", "synthetic"}, {}},
      {"0.20.0", {"parallel_drafting", "rejection_sample_method"}, {"strict", "probabilistic", "synthetic"}, {}},
      {"0.21.0",
       {"parallel_drafting", "rejection_sample_method", "draft_sample_method"},
       {"standard", "synthetic"},
       {"greedy", "gumbel"}},
      {"0.22.0",
       {"parallel_drafting", "rejection_sample_method", "draft_sample_method"},
       {"standard", "synthetic"},
       {"greedy", "probabilistic"}},
      {"0.23.0",
       {"parallel_drafting", "rejection_sample_method", "draft_sample_method"},
       {"standard", "synthetic"},
       {"greedy", "probabilistic"}},
      {"0.24.0",
       {"parallel_drafting", "rejection_sample_method", "draft_sample_method", "num_speculative_tokens_per_batch_size"},
       {"standard", "synthetic"},
       {"greedy", "probabilistic"}},
      {"0.33.0",
       {"parallel_drafting", "rejection_sample_method", "draft_sample_method", "num_speculative_tokens_per_batch_size"},
       {"standard", "synthetic", "block", "fly"},
       {"greedy", "probabilistic"}}};
  return releases;
}

const Names keys_of_all_releases = {"method", "model", "num_speculative_tokens", "draft_tensor_parallel_size",
                                    "prompt_lookup_max"};

EngineRequest request_of(Engine engine, const std::string& release) {
  EngineRequest request;
  request.schedule = {{1, 8, 4}, {9, 32, 2}};
  request.fixed = {3, 0.125, 32};
  request.target_model = "org/target";
  request.draft_model = "org/draft";
  request.release = engine_release(engine, release);
  REQUIRE(request.release);
  return request;
}

bool notes_say(const EngineConfig& config, const std::string& text) {
  return std::any_of(config.notes.begin(), config.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

void check_vllm_text(const VllmRelease& of, const EngineRequest& request) {
  const EngineConfig config = engine_config(Engine::vllm, request);
  REQUIRE(config.variants.size() == 1);
  CHECK(config.variants.front().releases == "vLLM " + of.release);
  const json text = json::parse(config.variants.front().text);
  for (const auto& [key, value] : text.items()) {
    INFO(key);
    CHECK(keys_of_all_releases.count(key) + of.keys.count(key) == 1);
    if (key == "rejection_sample_method") CHECK(of.rejection_values.count(value) == 1);
    if (key == "draft_sample_method") CHECK(of.draft_values.count(value) == 1);
  }
  const bool schedules = of.keys.count("num_speculative_tokens_per_batch_size") == 1;
  CHECK(text.contains("num_speculative_tokens_per_batch_size") == schedules);
  CHECK(text["num_speculative_tokens"] == (schedules ? 4 : 3));
  CHECK(config.runs.size() == (schedules ? 2 : 1));
  CHECK(notes_say(config, "gives away up to 12.5%") != schedules);
  // Without a name for it, a release samples greedily, so that nothing else may have been planned.
  if (request.rule && request.kind != DraftKind::ngram && of.rejection_values.empty()) {
    CHECK(request.rule != AcceptanceRule::rejection);
  }
}

}  // namespace

TEST_CASE("releases are read as engines write them, and ordered with candidates before and post-releases behind") {
  const std::vector<std::string> rising = {"0.5.12", "0.5.12.post1", "v0.5.13rc1", "0.5.13rc2",
                                           "0.5.13", "0.6",          "1.0.0"};
  for (std::size_t i = 1; i < rising.size(); ++i) {
    CHECK(*engine_release(Engine::sglang, rising[i - 1]) < *engine_release(Engine::sglang, rising[i]));
  }
  CHECK(engine_release(Engine::vllm, "0.24") == engine_release(Engine::vllm, "v0.24.0"));
  for (const char* text : {"9134", "v9134"}) {
    CHECK(engine_release(Engine::llamacpp, "b9134") == engine_release(Engine::llamacpp, text));
  }
  for (const char* text : {"v0.5.0", "0.5.0", "bv9134", "v", "b"}) CHECK_FALSE(engine_release(Engine::llamacpp, text));
  for (const char* text : {"", "1", "v", "0.x", "0.24.0.1", "0.24.0-dev", "0.-1", "-1.2", "b9134", "0.24rc", "0.2 "}) {
    CHECK_FALSE(engine_release(Engine::vllm, text));
  }
  for (const char* text : {"", "b", "0.5", "b-1", "bb1", "99999999999999999999"}) {
    CHECK_FALSE(engine_release(Engine::llamacpp, text));
  }
  CHECK(title_of(Engine::trtllm, *engine_release(Engine::trtllm, "1.3.0rc27")) == "TensorRT-LLM 1.3.0rc27");
  CHECK(title_of(Engine::sglang, *engine_release(Engine::sglang, "0.5.12.post1")) == "SGLang 0.5.12.post1");
  CHECK(title_of(Engine::llamacpp, *engine_release(Engine::llamacpp, "9134")) == "llama.cpp b9134");
}

TEST_CASE("a text for a release of vLLM has the keys and values of that release's own class and no other") {
  for (const VllmRelease& of : vllm_releases()) {
    for (const DraftKind kind : kinds) {
      for (const auto& rule : rules) {
        EngineRequest request = request_of(Engine::vllm, of.release);
        request.kind = kind;
        request.rule = rule;
        INFO(of.release << " kind " << static_cast<int>(kind));
        const bool by_model = kind == DraftKind::model || kind == DraftKind::mirrored || kind == DraftKind::parallel;
        const bool samples = rule == AcceptanceRule::rejection && kind != DraftKind::ngram;
        const bool cannot = (by_model && !of.drafts_by_model) || (samples && of.rejection_values.empty());
        CHECK(lacks_option(Engine::vllm, request).empty() != cannot);
        if (!cannot) check_vllm_text(of, request);
      }
    }
  }
}

TEST_CASE("SGLang's options are those of the release, as read in its server_args.py") {
  const auto lacking = [](const std::string& release, DraftKind kind, std::optional<AcceptanceRule> rule = {}) {
    EngineRequest request = request_of(Engine::sglang, release);
    request.kind = kind;
    request.rule = rule;
    return lacks_option(Engine::sglang, request);
  };
  CHECK(lacking("0.5.1", DraftKind::model) == "SGLang 0.5.1 knows no draft models; SGLang 0.5.2 does");
  CHECK(lacking("0.5.2", DraftKind::model).empty());
  CHECK_FALSE(lacking("0.5.2", DraftKind::ngram).empty());
  CHECK(lacking("0.5.3", DraftKind::ngram).empty());
  CHECK_FALSE(lacking("0.5.10.post1", DraftKind::parallel).empty());
  CHECK(lacking("0.5.11", DraftKind::parallel).empty());
  CHECK_FALSE(lacking("0.5.13", DraftKind::eagle, AcceptanceRule::rejection).empty());
  CHECK(lacking("0.5.14", DraftKind::eagle, AcceptanceRule::rejection).empty());
  for (const DraftKind kind : {DraftKind::eagle, DraftKind::mtp}) {
    EngineRequest request = request_of(Engine::sglang, "0.5.13.post1");
    request.kind = kind;
    const EngineConfig older = engine_config(Engine::sglang, request);
    REQUIRE(older.variants.size() == 1);
    CHECK(older.variants.front().command.find("--speculative-adaptive") == std::string::npos);
    CHECK(older.variants.front().text.find("--speculative-num-steps 3\n") != std::string::npos);
    CHECK(older.runs.size() == 1);
    CHECK(notes_say(older, "SGLang 0.5.13.post1 drafts one length at every batch, here 3"));
    request.release = engine_release(Engine::sglang, "0.5.14");
    const EngineConfig newer = engine_config(Engine::sglang, request);
    REQUIRE(newer.variants.size() == 1);
    CHECK(newer.variants.front().command.find("--speculative-adaptive-config") != std::string::npos);
    CHECK_FALSE(notes_say(newer, "gives away"));
  }
}

TEST_CASE("TensorRT-LLM's text is the older or the newer one of those that are written without a release") {
  for (const DraftKind kind : {DraftKind::model, DraftKind::eagle, DraftKind::mtp, DraftKind::ngram}) {
    EngineRequest request = request_of(Engine::trtllm, "1.3.0rc27");
    request.kind = kind;
    const EngineConfig newer = engine_config(Engine::trtllm, request);
    request.release = engine_release(Engine::trtllm, "1.2.1");
    const EngineConfig older = engine_config(Engine::trtllm, request);
    request.release.reset();
    const EngineConfig both = engine_config(Engine::trtllm, request);
    REQUIRE(both.variants.size() == 2);
    REQUIRE(newer.variants.size() == 1);
    REQUIRE(older.variants.size() == 1);
    CHECK(newer.variants.front().text == both.variants[0].text);
    CHECK(older.variants.front().text == both.variants[1].text);
  }
  EngineRequest between = request_of(Engine::trtllm, "1.3.0rc9");
  CHECK(
      lacks_option(Engine::trtllm, between) ==
      "it is not known here whether TensorRT-LLM 1.3.0rc9 knows names of newer releases; TensorRT-LLM 1.3.0rc27 does");
  EngineRequest first = request_of(Engine::trtllm, "1.0.0");
  const EngineConfig fixed = engine_config(Engine::trtllm, first);
  CHECK(fixed.variants.front().text.find("draft_len_schedule") == std::string::npos);
  CHECK(fixed.variants.front().text.find("max_draft_len: 3") != std::string::npos);
}

TEST_CASE("llama.cpp's text is the older or the newer one, and neither where it is not known which it reads") {
  EngineRequest request = request_of(Engine::llamacpp, "b8887");
  const EngineConfig older = engine_config(Engine::llamacpp, request);
  REQUIRE(older.variants.size() == 1);
  CHECK(older.variants.front().text.find("--draft-max 3\n") != std::string::npos);
  request.release = engine_release(Engine::llamacpp, "b9134");
  const EngineConfig newer = engine_config(Engine::llamacpp, request);
  REQUIRE(newer.variants.size() == 1);
  CHECK(newer.variants.front().text.find("--spec-draft-n-max 3\n") != std::string::npos);
  request.release = engine_release(Engine::llamacpp, "b9000");
  CHECK(lacks_option(Engine::llamacpp, request).find("it is not known here whether llama.cpp b9000") == 0);
  request.release = engine_release(Engine::llamacpp, "b9134");
  request.kind = DraftKind::mtp;
  CHECK(lacks_option(Engine::llamacpp, request) ==
        "llama.cpp b9134 knows no next-token modules as drafts (mtp); llama.cpp b9198 does");
}

TEST_CASE("a release above those that were read is taken for the newest, one below them is refused") {
  EngineRequest request = request_of(Engine::vllm, "0.99.0");
  CHECK(notes_say(engine_config(Engine::vllm, request), "is known up to vLLM 0.33.0"));
  CHECK(lacks_option(Engine::vllm, request_of(Engine::vllm, "0.11.2")) ==
        "what vLLM 0.11.2 reads is not known: the oldest release that is, is vLLM 0.12.0");
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::trtllm, Engine::llamacpp}) {
    const auto read = specdec::planning::read_releases(engine);
    CHECK(read.oldest < read.newest);
    CHECK(engine_release(engine, specdec::planning::release_example(engine)));
    for (int i = 0; i <= static_cast<int>(EngineFeature::synthetic_draft_tokens); ++i) {
      const auto feature = static_cast<EngineFeature>(i);
      CHECK(support(engine, read.newest, feature) == Support::yes);
    }
  }
  // Candidates of the first release with a feature may have it.
  CHECK(support(Engine::vllm, *engine_release(Engine::vllm, "0.24.0rc1"), EngineFeature::schedule) ==
        Support::not_known);
  CHECK(support(Engine::vllm, *engine_release(Engine::vllm, "0.23.9"), EngineFeature::schedule) == Support::no);
}
