#include "tests/support/source_dir.hpp"
#include "traces/formats/recording_formats.hpp"

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "tests/support/trace_reading.hpp"
#include "traces/open_trace.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using traces::LogprobSpace;
using traces::TextSource;
using traces::Tier;

namespace {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

std::filesystem::path sample(const std::string& name) {
  return std::filesystem::path(tests::source_dir() + "/traces/samples/json") / name;
}

std::unique_ptr<traces::PositionSource> open_samples(const std::string& target, const std::string& draft) {
  traces::OpenOptions options;
  options.target = sample(target);
  options.draft = sample(draft);
  return traces::open_trace({}, options);
}

/// A pair written to files t and d.
struct Pair {
  tests::TemporaryFolder folder;
  std::filesystem::path target;
  std::filesystem::path draft;

  Pair(const std::string& t, const std::string& d) : target(folder.write("t", t)), draft(folder.write("d", d)) {}
  std::unique_ptr<traces::PositionSource> open() const { return traces::open_paired_recordings(target, draft); }
  tests::WholeTrace read() const { return tests::WholeTrace(*open()); }
  std::string refusal() const {
    return tests::refusal_of(folder.path(), [this] { return open(); });
  }
};

/// The error in a file as both target and draft.
std::string refusal(const std::string& content) { return Pair(content, content).refusal(); }

/// One request's completion with token ids; optional fields before `choices`.
std::string completion(const std::string& ids, const std::string& logprobs, const std::string& before = "") {
  std::string tokens;
  for (std::size_t i = 0, end = 0; i < ids.size(); i = end + 1) {
    end = std::min(ids.find(',', i), ids.size());
    tokens += (tokens.empty() ? "\"token_id:" : ",\"token_id:") + ids.substr(i, end - i) + "\"";
  }
  return "{" + before + "\"choices\":[{\"logprobs\":{\"tokens\":[" + tokens + "],\"token_logprobs\":[" + logprobs +
         "],\"top_logprobs\":null}}]}\n";
}

std::string batch_line(const std::string& id, const std::string& body) {
  return "{\"custom_id\":\"" + id + "\",\"response\":{\"status_code\":200,\"body\":" + body.substr(0, body.size() - 1) +
         "},\"error\":null}\n";
}

float log_rest(double mass) { return static_cast<float>(std::log1p(-mass)); }

}  // namespace

TEST_CASE("vLLM's scored prompts give lists of the most probable tokens, the given token's number and its rank") {
  const auto source = open_samples("vllm_scored_target.jsonl", "vllm_scored_draft.jsonl");
  CHECK(source->format() == "paired recordings");
  CHECK(source->metadata().target_model == "meta/big");
  CHECK(source->metadata().draft_model == "meta/small");
  CHECK(source->metadata().engine == "OpenAI");
  CHECK(source->metadata().logprob_space == LogprobSpace::raw);
  CHECK(source->metadata().path == TextSource::unknown);
  const tests::WholeTrace trace(*source);
  CHECK(trace.tiers == std::vector<Tier>{Tier::top_k});
  CHECK(trace.sequence == std::vector<std::int64_t>{0, 0, 1});
  CHECK(trace.place == std::vector<std::int64_t>{0, 1, 0});
  CHECK(trace.token == Ids{7, 4, 9});
  CHECK(trace.target_logprob == Floats{-0.5F, -3, -1});
  CHECK(trace.draft_logprob == Floats{-1, -0.5F, -INFINITY});
  CHECK(trace.target_rank == Ids{1, 5, 2});
  CHECK(trace.draft_rank == Ids{2, 1, 30});
  CHECK(trace.target_ids == Ids{7, 9, 9, 7, 7, 9});
  CHECK(trace.target_top == Floats{-0.5F, -1.5F, -0.75F, -1.25F, -0.875F, -1});
  CHECK(trace.draft_ids == Ids{4, 7, 4, 7, 7, 4});
  CHECK(trace.draft_top == Floats{-0.625F, -1, -0.5F, -2, -0.25F, -1.75F});
  CHECK(trace.target_tail[0] == Approx(log_rest(std::exp(-0.5) + std::exp(-1.5))));
  CHECK(trace.draft_tail[2] == Approx(log_rest(std::exp(-0.25) + std::exp(-1.75))));
  CHECK(trace.target_at.empty());
  CHECK(source->notes().empty());
}

TEST_CASE("OpenAI's completions and chats without token ids are joined by text") {
  const auto source = open_samples("openai_completion.json", "openai_chat.json");
  CHECK(source->metadata().path == TextSource::target);
  CHECK(source->metadata().logprob_space == LogprobSpace::unknown);
  const tests::WholeTrace trace(*source);
  CHECK(trace.tiers == std::vector<Tier>{Tier::top_k});
  CHECK(trace.target_logprob == Floats{-0.5F, -1.25F});
  CHECK(trace.draft_logprob == Floats{-1, -2});
  // The target's lists have 2 and 3 tokens: one is longer because the written token is appended.
  CHECK(trace.target_top == Floats{-0.5F, -1.5F, -0.75F, -1});
  CHECK(trace.draft_top == Floats{-0.75F, -1, -4, -0.5F, -3, -3.5F});
  const Ids& p = trace.target_ids;
  const Ids& q = trace.draft_ids;
  CHECK(trace.token[0] == p[0]);
  CHECK(q[0] == p[1]);            // Yo
  CHECK(q[1] == p[0]);            // Hi
  CHECK(q[3] == p[2]);            // .
  CHECK(q[4] == q[2]);            // the piece of a character, by its text
  CHECK(q[5] != q[4]);            // another piece with the same text in one list
  CHECK(trace.token[1] != p[2]);  // !
  CHECK(trace.target_rank == Ids{1, 3});
  CHECK(trace.draft_rank == Ids{2, 4});
  REQUIRE(source->notes().size() == 1);
  CHECK(source->notes().front().code == "tokens_by_text");
}

TEST_CASE("a generation that leaves its prompt out is joined to a scoring of prompt and output") {
  const auto source = open_samples("sglang_generated.json", "sglang_scored.jsonl");
  CHECK(source->metadata().engine == "SGLang");
  CHECK(source->metadata().logprob_space == LogprobSpace::unknown);  // sampled from, and raw
  CHECK(source->metadata().path == TextSource::target);
  const tests::WholeTrace trace(*source);
  CHECK(trace.token == Ids{11, 12});
  CHECK(trace.target_logprob == Floats{-0.25F, -1.5F});
  CHECK(trace.draft_logprob == Floats{-0.75F, -3.25F});
  CHECK(trace.target_ids == Ids{11, 13, 14, 12});
  CHECK(trace.draft_ids == Ids{13, 11, 11, 14});
  CHECK(trace.target_rank == Ids{1, 2});
  CHECK(trace.draft_rank == Ids{2, 3});

  const auto reversed = open_samples("sglang_scored.jsonl", "sglang_generated.json");
  CHECK(reversed->metadata().path == TextSource::other);
  CHECK(tests::WholeTrace(*reversed).target_logprob == Floats{-0.75F, -3.25F});
}

namespace {

/// An answer of llama-server with its sampling settings.
std::string sampled_answer(const std::string& settings, bool after_sampling = false) {
  const std::string number = after_sampling ? R"("prob":0.5,"top_probs":[])" : R"("logprob":-0.5,"top_logprobs":[])";
  return R"({"model":"m","tokens_evaluated":3,"generation_settings":{)" + settings +
         R"(},"completion_probabilities":[{"id":11,"token":"Hi",)" + number + "}]}\n";
}

const std::string llama_defaults =
    R"("temperature":0.800000011920929,"dynatemp_range":0.0,"top_k":40,"top_p":0.949999988079071,)"
    R"("min_p":0.05000000074505806,"top_n_sigma":-1.0,"xtc_probability":0.0,"typical_p":1.0,"repeat_last_n":64,)"
    R"("repeat_penalty":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"dry_multiplier":0.0,"mirostat":0,)"
    R"("grammar":"","min_keep":0,"adaptive_target":-1.0)";
const std::string usual_order =
    R"(,"samplers":["penalties","dry","top_n_sigma","top_k","typ_p","top_p","min_p","xtc","temperature"])";

traces::TraceMetadata metadata_of_answers(const std::string& answers) {
  return Pair(answers, answers).open()->metadata();
}

}  // namespace

TEST_CASE("the samplers of llama-server that act are those of its list, in its order") {
  const traces::TraceMetadata usual = metadata_of_answers(sampled_answer(llama_defaults + usual_order));
  CHECK(usual.temperature == 0.8);
  CHECK(usual.top_k == 40);
  CHECK(usual.top_p == 0.95);
  CHECK(usual.min_p == 0.05);
  CHECK(usual.temperature_last == true);
  CHECK(metadata_of_answers(sampled_answer(llama_defaults)) == usual);
  // A top_k of 40 cuts nothing where no sampler reads it.
  const traces::TraceMetadata heated =
      metadata_of_answers(sampled_answer(llama_defaults + R"(,"samplers":["temperature"])"));
  CHECK(heated.temperature == 0.8);
  CHECK(heated.top_k == 0);
  CHECK(heated.top_p == 1.0);
  CHECK(heated.min_p == 0.0);
  CHECK(heated.temperature_last == false);
  const traces::TraceMetadata first =
      metadata_of_answers(sampled_answer(llama_defaults + R"(,"samplers":["temperature","top_k","min_p"])"));
  CHECK(first.temperature_last == false);
  CHECK(first.top_p == 1.0);
  CHECK(metadata_of_answers(sampled_answer("")).temperature == 1.0);
}

TEST_CASE("samplers that cannot be applied to raw numbers are refused, and kept silent of where they were applied") {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string settings = llama_defaults + usual_order;
    return refusal(sampled_answer(settings.replace(settings.find(from), from.size(), to)));
  };
  const std::string applicable =
      "the log-probabilities are raw, and only temperature, top-k, top-p and min-p can be applied to them; ask for "
      "post_sampling_probs";
  CHECK(refused(R"("typical_p":1.0)", R"("typical_p":0.9)") ==
        "t:1: generation_settings.typical_p is 0.9, but must be 1: " + applicable);
  for (const auto& [on, off] :
       std::vector<std::pair<std::string, std::string>>{{R"("repeat_penalty":1.0)", R"("repeat_penalty":1.1)"},
                                                        {R"("dry_multiplier":0.0)", R"("dry_multiplier":0.8)"},
                                                        {R"("top_n_sigma":-1.0)", R"("top_n_sigma":1.0)"},
                                                        {R"("xtc_probability":0.0)", R"("xtc_probability":0.5)"},
                                                        {R"("dynatemp_range":0.0)", R"("dynatemp_range":0.5)"},
                                                        {R"("mirostat":0)", R"("mirostat":2)"},
                                                        {R"("grammar":"")", R"("grammar":"root ::= \"a\"")"},
                                                        {R"("min_keep":0)", R"("min_keep":5)"}}) {
    CAPTURE(off);
    CHECK_THAT(refused(on, off), Contains(applicable));
  }
  CHECK(refused(R"("top_k":40)", R"("top_k":1.5)") == "t:1: generation_settings.top_k is 1.5, but must be an integer");
  CHECK(refused(R"("top_p":0.949999988079071)", R"("top_p":"NaN")") ==
        "t:1: generation_settings.top_p is \"NaN\", but must be a number");
  CHECK_THAT(refused(R"("xtc")", R"("foo")"),
             Contains("generation_settings.samplers is a list with foo, but must be of penalties, dry, top_n_sigma"));
  CHECK_THAT(refused(R"("xtc")", R"("top_k")"),
             Contains("generation_settings.samplers is a list with top_k twice, but must be a list with each once"));
  CHECK(refused(R"("min_keep":0)", R"("min_keep":0,"logit_bias":[{"bias":0,"token":1},{"bias":5.5,"token":2}])") ==
        "t:1: generation_settings.logit_bias[1].bias is 5.5, but must be 0: the log-probabilities are raw, and what "
        "changed them cannot be applied; ask for post_sampling_probs");
  CHECK_THAT(refused(R"("min_keep":0)", R"("min_keep":0,"logit_bias":[{"bias":null,"token":2}])"),
             Contains("generation_settings.logit_bias[0].bias is null, but must be 0"));
  CHECK_THAT(
      refused(R"("top_k","typ_p","top_p","min_p","xtc","temperature")", R"("top_p","temperature","min_p")"),
      Contains("generation_settings.samplers is penalties, dry, top_n_sigma, top_p, temperature, min_p, but must "
               "be top_k, top_p and min_p in this order, and temperature before or after them"));
  std::string settings = llama_defaults + usual_order;
  settings.replace(settings.find("\"typical_p\":1.0"), 15, "\"typical_p\":0.9");
  CHECK(metadata_of_answers(sampled_answer(settings, true)).logprob_space == LogprobSpace::processed);
  // Penalties of no token before are none, and texts of one file have one setting.
  settings = llama_defaults + usual_order;
  settings.replace(settings.find("\"repeat_last_n\":64,\"repeat_penalty\":1.0"), 39,
                   "\"repeat_last_n\":0,\"repeat_penalty\":1.1");
  CHECK(metadata_of_answers(sampled_answer(settings)).top_k == 40);
  CHECK_THAT(refusal(sampled_answer(llama_defaults) + sampled_answer(R"("temperature":1.0)")),
             Contains("t:2: text is sampled at temperature 1, top-k 0, top-p 1, min-p 0, but must be sampled "
                      "at temperature 0.8 after the cuts, top-k 40, top-p 0.95, min-p 0.05, as the first request's"));
}

TEST_CASE("values beyond a sampler's range are read as llama.cpp acts on them") {
  std::string settings = llama_defaults;
  settings.replace(settings.find("0.800000011920929"), 17, "-1");
  CHECK(metadata_of_answers(sampled_answer(settings)).temperature == 0);
  settings.replace(settings.find("0.05000000074505806"), 19, "2");
  CHECK(metadata_of_answers(sampled_answer(settings)).min_p == 1);
}

TEST_CASE("answers that differ in what changed logits are refused with the difference") {
  const std::string biased = sampled_answer(llama_defaults + R"(,"logit_bias":[{"bias":5,"token":11}])");
  CHECK_THAT(refusal(sampled_answer(llama_defaults) + biased),
             Contains("min-p 0.05, generation_settings.logit_bias[0].bias 5, but must be sampled at") &&
                 Contains("min-p 0.05, as the first request's"));
}

TEST_CASE("a draft's answers to a text that biases of its logits force are its own log-probabilities") {
  const std::string forced = sampled_answer(llama_defaults + R"(,"logit_bias":[{"bias":1000,"token":11}])");
  CHECK(Pair(sampled_answer(llama_defaults), forced).open()->metadata().path == traces::TextSource::target);
}

TEST_CASE("llama-server's ban of the tokens that end a text is noted") {
  const std::string answer =
      sampled_answer(llama_defaults + R"(,"ignore_eos":true,"logit_bias":[{"bias":null,"token":2}])");
  const auto source = Pair(answer, answer).open();
  CHECK(source->metadata().top_k == 40);
  REQUIRE(source->notes().size() == 1);
  CHECK(source->notes().front().code == "logit_bias");
}

TEST_CASE("raw answers of llama-server without their settings do not say that the text is the target's own") {
  const auto silent = open_samples("llama_server.json", "llama_server.json");
  CHECK(silent->metadata().path == traces::TextSource::unknown);
  REQUIRE(silent->notes().size() == 1);
  CHECK(silent->notes().front().code == "sampling_not_stated");
  const std::string chat =
      R"({"model":"m","choices":[{"logprobs":{"content":[{"id":7,"token":"Hi","logprob":-0.5,"top_logprobs":[]}]}}]})"
      "\n";
  CHECK(Pair(chat, chat).open()->metadata().path == traces::TextSource::unknown);
  CHECK(metadata_of_answers(sampled_answer(llama_defaults)).path == traces::TextSource::target);
  const auto sampled = open_samples("llama_server_sampled.json", "llama_server_sampled.json");
  CHECK(sampled->metadata().path == traces::TextSource::target);
  CHECK(sampled->notes().empty());
}

TEST_CASE("llama-server's log-probabilities, probabilities and old lists are read") {
  const auto source = open_samples("llama_server.json", "llama_server_sampled.json");
  CHECK(source->metadata().engine == "llama.cpp");
  CHECK(source->metadata().target_model == "big.gguf");
  const tests::WholeTrace trace(*source);
  CHECK(trace.token == Ids{11, 12});
  CHECK(trace.target_logprob == Floats{-0.5F, -INFINITY});
  CHECK(trace.draft_logprob[0] == Approx(std::log(0.75)));
  CHECK(trace.draft_logprob[1] == 0);
  CHECK(trace.target_ids == Ids{11, 13, 14, 11});
  CHECK(trace.draft_ids == Ids{11, 13, 12, 11});
  CHECK(trace.draft_top[3] == -INFINITY);
  CHECK(std::exp(trace.draft_tail[0]) < 1e-7);
  CHECK(trace.draft_tail[1] == -INFINITY);
  CHECK(open_samples("llama_server.json", "llama_server.json")->metadata().logprob_space == LogprobSpace::raw);
  CHECK(open_samples("llama_server_sampled.json", "llama_server_sampled.json")->metadata().logprob_space ==
        LogprobSpace::processed);

  const auto old = open_samples("llama_server_old.json", "openai_completion.json");
  const tests::WholeTrace by_text(*old);
  CHECK(by_text.target_logprob[0] == Approx(std::log(0.5)));
  CHECK(by_text.target_logprob[1] == Approx(std::log(0.125)));
  CHECK(by_text.target_rank == Ids{1, 2});
}

TEST_CASE("completions with ids as tokens or beside them give the scalar tier") {
  const std::string beside = R"({"choices":[{"token_ids":[5,6],"logprobs":{"tokens":["a","b"],)"
                             R"("token_logprobs":[-1,-2]}}]})";
  const tests::WholeTrace trace = Pair(completion("5,6", "-0.5,-Infinity"), beside).read();
  CHECK(trace.tiers == std::vector<Tier>{Tier::scalar});
  CHECK(trace.token == Ids{5, 6});
  CHECK(trace.target_logprob == Floats{-0.5F, -INFINITY});
  CHECK(trace.draft_logprob == Floats{-1, -2});
  CHECK(trace.target_rank == Ids{0, 0});
}

TEST_CASE("an echoed prompt is scored, or left out where more than a token was generated") {
  const std::string scored = completion("1,5,6,9", "null,-1,-2,-3", R"("usage":{"prompt_tokens":3},)");
  CHECK(Pair(scored, scored).read().token == Ids{5, 6});
  const std::string generated = completion("1,5,6,9", "null,-1,-2,-3", R"("usage":{"prompt_tokens":2},)");
  CHECK(Pair(generated, generated).read().token == Ids{6, 9});
  const std::string unknown = completion("1,5,6,9", "null,-1,-2,-3");
  CHECK(Pair(unknown, unknown).read().token == Ids{5, 6, 9});
}

TEST_CASE("the part of a response that is read is decided by its first request") {
  const auto both = [](const std::string& output) {
    return R"({"choices":[{"prompt_token_ids":[1,5],"prompt_logprobs":[null,{"5":{"logprob":-1}}],"logprobs":{"tokens":[)" +
           output + R"(],"token_logprobs":[-2)" + (output.size() > 14 ? ",-3" : "") + "]}}]}\n";
  };
  const std::string one = both(R"("token_id:7")");
  const std::string two = both(R"("token_id:7","token_id:8")");
  CHECK(Pair(one + two, one + two).read().token == Ids{5, 5});
  CHECK(Pair(two + one, two + one).read().token == Ids{7, 8, 7});
}

TEST_CASE("lists hold the most probable tokens only, whichever way the written one was added") {
  // vLLM's chats cut the list behind the written token: 2 entries, and where the written one comes last, the second
  // most probable token may be missing.
  const std::string chat =
      R"({"choices":[{"logprobs":{"content":[)"
      R"({"token":"token_id:5","logprob":-0.5,"top_logprobs":[{"token":"token_id:5","logprob":-0.5},)"
      R"({"token":"token_id:6","logprob":-1.5}]},)"
      R"({"token":"token_id:7","logprob":-4,"top_logprobs":[{"token":"token_id:7","logprob":-4},)"
      R"({"token":"token_id:6","logprob":-0.25}]}]}}]})";
  const tests::WholeTrace trace = Pair(chat, chat).read();
  CHECK(trace.target_ids == Ids{5, 6});
  CHECK(trace.target_rank == Ids{1, 2});
}

TEST_CASE("requests are joined in order, or by custom_id") {
  const std::string a = completion("1,2", "-1,-2");
  const std::string b = completion("3", "-3");
  CHECK(Pair(a + b, a + b).read().token == Ids{1, 2, 3});
  CHECK(Pair(batch_line("x", a) + batch_line("y", b), batch_line("x", a) + batch_line("y", b)).read().token ==
        Ids{1, 2, 3});
  CHECK(Pair(batch_line("x", a) + batch_line("y", b), batch_line("y", b) + batch_line("x", a)).read().token ==
        Ids{1, 2, 3});
  CHECK(Pair(batch_line("y", b), batch_line("x", a) + batch_line("z", a) + batch_line("y", b)).read().token == Ids{3});
  CHECK(Pair(batch_line("x", a), batch_line("y", b))
            .refusal()
            .find("t:1: custom_id is x, but must be an id that is in ") == 0);
  CHECK(Pair(batch_line("x", a), batch_line("y", b) + batch_line("y", b)).refusal() ==
        "d:2: custom_id is y, but must be one request's only");
  CHECK(Pair(a + b, a).refusal() == "t:2: request is number 2, but must be the last, as d holds 1");
  CHECK(Pair(a, a + b).refusal() == "d:2: request is number 2, but must be the last, as t holds 1");
}

TEST_CASE("the first token that differs between the files is named") {
  const std::string text = completion("1,2,3", "-1,-2,-3");
  CHECK(Pair(text, completion("1,4,5", "-1,-2,-3")).refusal() ==
        "d:1: token 1 of request 1 is 4, but must be 2, as in t:1");
  CHECK(Pair(text, completion("1,2", "-1,-2")).refusal() ==
        "d:1: text of request 1 is 2 tokens long, but must be 3, as in t:1");
  const std::string counted = R"("usage":{"prompt_tokens":4},)";
  CHECK(Pair(completion("1,2,3", "-1,-2,-3", counted), completion("1,2", "-1,-2", counted)).refusal() ==
        "d:1: text of request 1 is 6 tokens long with its prompt, but must be 7, as in t:1");
  const std::string named = R"({"choices":[{"logprobs":{"tokens":["a","\n"],"token_logprobs":[-1,-2]}}]})";
  const std::string other = R"({"choices":[{"logprobs":{"tokens":["a","c"],"token_logprobs":[-1,-2]}}]})";
  CHECK(Pair(named, other).refusal() == "d:1: token 1 of request 1 is c, but must be \\x0a, as in t:1");
  CHECK(Pair(completion("1,2", "-1,-2"), named).refusal() ==
        "d:1: tokens of request 1 is named by text, but must be named by id, as in t:1 (record both with token ids)");
}

TEST_CASE("one model's file alone is refused") {
  const std::vector<std::filesystem::path> files = {sample("sglang_scored.jsonl")};
  CHECK(
      tests::message_of<traces::FileError>([&] { traces::open_trace(files); }) ==
      files.front().string() +
          ": file is log-probabilities of one model, but must be one of two: the target's and the draft's of the same "
          "texts");
}

TEST_CASE("responses that are not what they must be are refused with line and field") {
  CHECK(refusal("") == "t: file is empty, but must be at least one response with log-probabilities");
  CHECK(refusal("7") == "t:1: document is 7, but must be an object");
  CHECK(refusal("{}").find("t:1: document is an object with no keys, but must be a response") == 0);
  CHECK(refusal(R"({"a":1,"b":2})").find("t:1: document is an object with the keys a, b, but must be a response") == 0);
  CHECK(refusal(R"({"custom_id":"a","response":null,"error":{}})") == "t:1: response is null, but must be an object");
  CHECK(refusal(R"({"choices":[{"text":"a"}]})") ==
        "t:1: choices[0].logprobs is missing, but must be given (ask the server for logprobs or prompt_logprobs)");
  CHECK(refusal(R"({"choices":[{"logprobs":{"tokens":["a"]}}]})") ==
        "t:1: choices[0].logprobs.token_logprobs is missing, but must be given");
  CHECK(refusal(R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":[]}}]})") ==
        "t:1: choices[0].logprobs.token_logprobs is 0 long, but must be 1 long, as tokens is");
  CHECK(refusal(R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":[0.25]}}]})") ==
        "t:1: choices[0].logprobs.token_logprobs[0] is 0.25, but must be a log-probability, a number up to 0");
  CHECK(refusal(R"({"choices":[{"logprobs":{"tokens":["token_id:1","b"],"token_logprobs":[-1,-1]}}]})") ==
        "t:1: choices[0].logprobs.tokens[1] is \"b\", but must be \"token_id:\" and the id, as the first token");
  CHECK(
      refusal(
          R"({"choices":[{"logprobs":{"tokens":["a"],"token_logprobs":[-1],"top_logprobs":[{"a":-1,"b":-0.25,"c":-0.5}]}}]})") ==
      "t:1: choices[0].logprobs.top_logprobs[0] is probabilities that sum to more than 1, but must be at most 1 in "
      "sum");
  CHECK(refusal(R"({"choices":[{"logprobs":{"content":[{"token":"a"}]}}]})") ==
        "t:1: choices[0].logprobs.content[0].logprob is missing, but must be given");
  CHECK(refusal(R"({"choices":[{"logprobs":{"content":[{"logprob":-1}]}}]})") ==
        "t:1: choices[0].logprobs.content[0].token is missing, but must be given");
  CHECK(refusal(R"({"completion_probabilities":[{"id":1,"logprob":-1},{"token":"b","logprob":-1}]})") ==
        "t:1: completion_probabilities[1] is without an id, but must be with one, as the tokens before");
  CHECK(refusal(R"({"completion_probabilities":[{"id":1,"prob":2}]})") ==
        "t:1: completion_probabilities[0].prob is 2, but must be a probability, a number in [0, 1]");
  CHECK(refusal(R"({"completion_probabilities":[{"content":"a","probs":[{"tok_str":"b","prob":1}]}]})") ==
        "t:1: completion_probabilities[0].probs is without the token that was written, but must be with it (a larger "
        "n_probs)");
  CHECK(refusal(R"({"prompt_logprobs":[null,{"a":{"logprob":-1}}]})") ==
        "t:1: prompt_logprobs[1] is with the key \"a\", but must be with token ids as keys");
  CHECK(refusal(R"({"prompt_logprobs":[null,{"5":{"rank":1}}]})") ==
        "t:1: prompt_logprobs[1].logprob is missing, but must be given");
  CHECK(refusal(R"({"prompt_logprobs":[null,{}]})") ==
        "t:1: prompt_logprobs[1] is empty, but must be the given token and perhaps others");
  CHECK(refusal(R"({"prompt_token_ids":[1,2],"prompt_logprobs":[null,{"5":{"logprob":-1}}]})") ==
        "t:1: prompt_logprobs[1] is without token 2, but must be the given token and perhaps others");
  CHECK(refusal(R"({"prompt_token_ids":[1],"prompt_logprobs":[null,{"5":{"logprob":-1}}]})") ==
        "t:1: prompt_token_ids is 1 long, but must be 2 long, as prompt_logprobs is");
  CHECK(refusal(R"({"prompt_logprobs":[null,{"5":{"logprob":-1}},null]})") ==
        "t:1: prompt_logprobs[2] is null, but must be an object");
  CHECK(refusal(R"({"meta_info":{}})") ==
        "t:1: meta_info is without log-probabilities, but must be with input_token_logprobs or output_token_logprobs "
        "(ask with return_logprob)");
  CHECK(refusal(R"({"meta_info":{"output_token_logprobs":[[-1]]}})") ==
        "t:1: meta_info.output_token_logprobs[0] is without a token id, but must be [log-probability, token id, text]");
  CHECK(refusal(R"({"meta_info":{"output_token_logprobs":[[-1,2,null],[null,3,null]]}})") ==
        "t:1: meta_info.output_token_logprobs[1] is without a log-probability, but must be with one");
  CHECK(refusal(R"({"meta_info":{"output_token_logprobs":[[-1,2,null]],"output_top_logprobs":[[],[]]}})") ==
        "t:1: meta_info.output_top_logprobs is 2 long, but must be 1 long, as the token log-probabilities are");
  CHECK(refusal(completion("1", "-1") + R"({"prompt_logprobs":[null,{"5":{"logprob":-1}}]})") ==
        "t:2: log-probabilities is raw, of what was given, but must be unknown, of what was generated, as the first "
        "request's");
}

TEST_CASE("samples that are cut off or changed anywhere are read or refused") {
  for (const char* name :
       {"vllm_scored_target.jsonl", "openai_completion.json", "openai_chat.json", "sglang_scored.jsonl",
        "llama_server.json", "llama_server_old.json"}) {
    const std::string content = tests::read_text(sample(name));
    const tests::TemporaryFolder folder;
    const auto read = [&](const std::string& changed) {
      const auto file = folder.write("f", changed);
      tests::refusal_of(folder.path(), [&] { return traces::open_paired_recordings(file, file); });
    };
    for (std::size_t i = 0; i < content.size(); i += 5) {
      read(content.substr(0, i));
      for (const char c : {'\0', '"', '[', '}', '9', '-'}) {
        std::string changed = content;
        changed[i] = c;
        read(changed);
      }
    }
  }
}
