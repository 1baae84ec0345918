#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/language_model.hpp"

namespace specdec::sim {

using OwnedModel = std::shared_ptr<LanguageModel>;

/// Makes a model with an empty prefix that computes on `threads` threads; called from one thread at a time.
using ModelFactory = std::function<OwnedModel(std::int64_t threads)>;

/// Makes copies of a model that computes on one thread.
template <class Model>
ModelFactory factory_of(const Model& model) {
  return [model](std::int64_t) { return std::make_shared<Model>(model); };
}

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
