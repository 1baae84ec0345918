#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "planner/recordings/analysis.hpp"
#include "render/analysis.hpp"
#include "sim/synthetic_traces.hpp"
#include "tests/support/trace_file.hpp"
#include "traces/trace_writer.hpp"

/// Recordings of every kind, and their answers to the last digit, for what keeps summaries of them in files.
namespace specdec::tests::kept {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "specdec-parts-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Texts of two tasks, with prompts that two of them continue each: the sequences of a synthetic recording.
inline std::filesystem::path synthetic(const std::filesystem::path& path, const sim::SyntheticLaw& easy,
                                       const sim::SyntheticLaw& hard,
                                       const sim::SyntheticOptions& size = {.sequences = 23, .tokens = 41}) {
  const auto source = sim::synthetic_trace({{"easy", easy}, {"hard", hard}}, size);
  traces::TraceWriter writer(path, source->metadata(), {.shard_positions = size.sequences * size.tokens / 3});
  traces::PositionBatch batch;
  std::vector<std::int64_t> prompt;
  while (source->read(batch)) {
    prompt.clear();
    for (const std::int64_t sequence : batch.sequence) prompt.push_back(sequence / 2);
    batch.prompt = prompt;
    writer.write(batch);
  }
  writer.finish();
  return path;
}

inline std::filesystem::path full(const std::filesystem::path& path) {
  sim::LogitNoiseLaw easy, hard;
  easy.alpha = 0.85;
  hard.alpha = 0.6;
  easy.vocab = hard.vocab = 50;
  easy.contexts = hard.contexts = 40;
  return synthetic(path, easy, hard);
}

inline std::filesystem::path scalar(const std::filesystem::path& path) {
  return synthetic(path, sim::MarkovLaw{}, sim::BetaLaw{.alpha = 0.6});
}

/// The two most probable tokens of random pairs, at some positions with the overlap: brackets beside exact numbers.
inline std::filesystem::path top_k(const std::filesystem::path& path) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<> uniform(0.05, 0.45);
  std::vector<std::int32_t> p_ids, q_ids, token;
  std::vector<float> p, q, overlap;
  std::vector<std::int64_t> sequence;
  constexpr std::int64_t positions = 19 * 30;
  for (std::int64_t i = 0; i < positions; ++i) {
    for (const std::int32_t id : {1, 2}) p_ids.push_back(id);
    for (const std::int32_t id : {1, 3}) q_ids.push_back(id);
    for (auto* logprobs : {&p, &p, &q, &q}) logprobs->push_back(static_cast<float>(std::log(uniform(random))));
    for (auto* logprobs : {&p, &q}) std::sort(logprobs->end() - 2, logprobs->end(), std::greater<>());
    token.push_back(i % 3 == 0 ? 2 : 1);
    overlap.push_back(i % 2 == 0 ? std::nanf("") : 0.5F);
    sequence.push_back(i / 30);
  }
  return tests::write_tensors(
      path, {tests::ints("p.topk_ids", {positions, 2}, p_ids), tests::floats("p.topk_logprobs", {positions, 2}, p),
             tests::ints("q.topk_ids", {positions, 2}, q_ids), tests::floats("q.topk_logprobs", {positions, 2}, q),
             tests::ints("token", {positions}, token), tests::floats("overlap", {positions}, overlap),
             tests::longs("seq", {positions}, sequence)});
}

/// Acceptance by the depth in the round.
inline std::filesystem::path of_depths(const std::filesystem::path& path) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<> uniform(0.1, 1);
  std::vector<float> p, q;
  std::vector<std::int64_t> sequence;
  constexpr std::int64_t positions = 17 * 25;
  for (std::int64_t i = 0; i < positions; ++i) {
    p.push_back(std::log(0.5F));
    for (std::int64_t depth = 0; depth < 3; ++depth) {
      q.push_back(depth <= i % 25 ? static_cast<float>(std::log(0.5 * uniform(random))) : std::nanf(""));
    }
    sequence.push_back(i / 25);
  }
  return tests::write_tensors(
      path, {tests::floats("p.token_logprob", {positions}, p), tests::floats("q.token_logprob", {positions, 3}, q),
             tests::longs("seq", {positions}, sequence)});
}

inline std::filesystem::path accepted_lengths(const std::filesystem::path& path) {
  std::mt19937_64 random(6);
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> sequence;
  constexpr std::int64_t positions = 13 * 20;
  for (std::int64_t i = 0; i < positions; ++i) {
    lengths.push_back(1 + static_cast<std::int32_t>(random() % 5));
    sequence.push_back(i / 20);
  }
  return tests::write_tensors(
      path, {tests::ints("acc_len", {positions}, lengths), tests::longs("seq", {positions}, sequence)});
}

/// Whole rows, then two numbers a token, in two files.
inline planner::RecordingFiles of_two_tiers(const Folder& folder) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<> uniform(0.1, 1);
  std::vector<float> p, q;
  std::vector<std::int64_t> sequence, place;
  constexpr std::int64_t positions = 9 * 35;
  for (std::int64_t i = 0; i < positions; ++i) {
    p.push_back(std::log(0.5F));
    q.push_back(static_cast<float>(std::log(0.5 * uniform(random))));
    sequence.push_back(100 + i / 35);
    place.push_back(i % 35);
  }
  const std::filesystem::path numbers = tests::write_tensors(
      folder / "b.safetensors",
      {tests::floats("p.token_logprob", {positions}, p), tests::floats("q.token_logprob", {positions}, q),
       tests::longs("seq", {positions}, sequence), tests::longs("pos", {positions}, place)});
  return {{full(folder / "a").string(), numbers.string()}};
}

/// Every number of the answer, in all its digits.
inline std::string text_of(const planner::Analysis& analysis) {
  nlohmann::ordered_json json = render::json_of(analysis);
  json["assumptions"] = analysis.assumptions;
  for (const Note& note : analysis.warnings) json["warnings"].push_back({note.code, note.message});
  return json.dump(1);
}

inline planner::AnalysisQuestion with_cost() {
  planner::AnalysisQuestion question;
  question.cost.c = 0.05;
  question.gamma = {1, 2, 4, 8};
  return question;
}

}  // namespace specdec::tests::kept
