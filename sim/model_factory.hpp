#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/language_model.hpp"

namespace specdec::sim {

/// A language model together with its prefix, kept alive by this handle. Copies share the model.
class OwnedModel {
 public:
  template <LanguageModel M>
  explicit OwnedModel(M model) : OwnedModel(std::make_shared<M>(std::move(model))) {}
  /// For callers that inspect the model itself.
  template <LanguageModel M>
  explicit OwnedModel(std::shared_ptr<M> model) : ref_(*model), keep_alive_(std::move(model)) {}

  LanguageModelRef ref() const { return ref_; }

 private:
  LanguageModelRef ref_;
  std::shared_ptr<void> keep_alive_;
};

/// Makes a model with an empty prefix that computes on `threads` threads; called from one thread at a time.
using ModelFactory = std::function<OwnedModel(std::int64_t threads)>;

/// The two models of speculative decoding, with the same vocabulary.
struct ModelPair {
  ModelFactory target;
  ModelFactory draft;
};

/// A text to continue, as token ids.
struct Prompt {
  std::string task;
  std::vector<Token> tokens;
};

}  // namespace specdec::sim
