#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/recorded_pair.hpp"
#include "tests/support/trace_file.hpp"

/// Small recordings in files, for the tests of the commands that read them.
namespace specdec::tests {

using Metadata = std::map<std::string, std::string>;

/// Log-probabilities that give these acceptances: the target's is log(1/2), the draft's lower by log a_t.
inline std::filesystem::path scalar_trace(const std::filesystem::path& path, const std::vector<double>& acceptance,
                                          const std::vector<std::int64_t>& sequence, const Metadata& metadata = {},
                                          const std::vector<float>& overlap = {},
                                          const std::vector<std::int32_t>& task = {},
                                          const std::vector<std::int64_t>& prompt = {}) {
  const auto size = std::ssize(acceptance);
  std::vector<float> target(acceptance.size(), static_cast<float>(std::log(0.5)));
  std::vector<float> draft;
  for (const double a : acceptance) draft.push_back(static_cast<float>(std::log(0.5) + std::log(a)));
  std::vector<OwnedTensor> tensors = {floats("p.token_logprob", {size}, target),
                                      floats("q.token_logprob", {size}, draft), longs("seq", {size}, sequence)};
  if (!overlap.empty()) tensors.push_back(floats("overlap", {size}, overlap));
  if (!task.empty()) tensors.push_back(ints("task", {size}, task));
  if (!prompt.empty()) tensors.push_back(longs("prompt", {size}, prompt));
  return write_tensors(path, tensors, metadata);
}

/// Whole rows of a random pair, as probabilities.
inline std::filesystem::path full_trace(const std::filesystem::path& path, const RecordedPair& pair,
                                        const Metadata& metadata = {}) {
  return write_tensors(path,
                       {floats("p.probs", {pair.positions, pair.vocab}, pair.target),
                        floats("q.probs", {pair.positions, pair.vocab}, pair.draft),
                        ints("token", {pair.positions}, pair.token), longs("seq", {pair.positions}, pair.sequence)},
                       metadata);
}

/// Two tokens of each distribution; what the others hold together is unknown. With `token_logprobs` the emitted tokens'
/// own log-probabilities stand beside them, so that the acceptance of these is known.
inline std::filesystem::path top_k_trace(const std::filesystem::path& path, std::int64_t positions,
                                         bool token_logprobs = false) {
  std::vector<std::int32_t> target_ids, draft_ids, token;
  std::vector<float> target, draft, tail, target_token, draft_token;
  std::vector<std::int64_t> sequence;
  for (std::int64_t i = 0; i < positions; ++i) {
    for (const std::int32_t id : {1, 2}) target_ids.push_back(id);
    for (const std::int32_t id : {1, 3}) draft_ids.push_back(id);
    for (const double p : {0.5, 0.3}) target.push_back(static_cast<float>(std::log(p)));
    for (const double q : {0.4, 0.2}) draft.push_back(static_cast<float>(std::log(q)));
    tail.push_back(std::nanf(""));
    token.push_back(i % 2 == 0 ? 1 : 2);
    target_token.push_back(static_cast<float>(std::log(i % 2 == 0 ? 0.5 : 0.3)));
    draft_token.push_back(static_cast<float>(std::log(i % 2 == 0 ? 0.4 : 0.15)));
    sequence.push_back(i / 10);
  }
  std::vector<OwnedTensor> tensors = {ints("p.topk_ids", {positions, 2}, target_ids),
                                      floats("p.topk_logprobs", {positions, 2}, target),
                                      floats("p.tail_logprob", {positions}, tail),
                                      ints("q.topk_ids", {positions, 2}, draft_ids),
                                      floats("q.topk_logprobs", {positions, 2}, draft),
                                      floats("q.tail_logprob", {positions}, tail),
                                      ints("token", {positions}, token),
                                      longs("seq", {positions}, sequence)};
  if (token_logprobs) {
    tensors.push_back(floats("p.token_logprob", {positions}, target_token));
    tensors.push_back(floats("q.token_logprob", {positions}, draft_token));
  }
  return write_tensors(path, tensors);
}

}  // namespace specdec::tests
