#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "sim/language_model.hpp"

namespace specdec::validation {

/// A language model together with its prefix, kept alive by this handle. Copies share the model.
class OwnedModel {
 public:
  template <sim::LanguageModel M>
  explicit OwnedModel(M model) : OwnedModel(std::make_shared<M>(std::move(model))) {}

  sim::LanguageModelRef ref() const { return ref_; }

 private:
  template <sim::LanguageModel M>
  explicit OwnedModel(std::shared_ptr<M> model) : ref_(*model), keep_alive_(std::move(model)) {}

  sim::LanguageModelRef ref_;
  std::shared_ptr<void> keep_alive_;
};

/// Makes a model with an empty prefix that computes on `threads` threads; called from one thread at a time.
using ModelFactory = std::function<OwnedModel(std::int64_t threads)>;

/// The two models that are held against each other. Their vocabularies are the same.
struct ModelPair {
  ModelFactory target;
  ModelFactory draft;
};

}  // namespace specdec::validation
