#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "sim/transformer/transformer.hpp"

/// Requirements of drafts that read the target's features.
namespace specdec::sim {

/// @throws std::invalid_argument unless the target has this width and vocabulary and keeps its features
inline void require_features(std::string_view function, const Transformer& target, const TransformerConfig& trained) {
  const TransformerConfig& c = target.config();
  if (c.width != trained.width || c.vocab_size != trained.vocab_size)
    throw std::invalid_argument(
        fmt::format("{}: the target has width {} and {} tokens, but must have {} and {}, as "
                    "that of the heads",
                    function, c.width, c.vocab_size, trained.width, trained.vocab_size));
  if (!target.keeps_features())
    throw std::invalid_argument(
        fmt::format("{}: the target's option keep_features is false, but must be true", function));
}

/// @throws std::invalid_argument unless the target holds the text without its last token
inline void require_text(std::string_view function, const Transformer& target, std::span<const Token> text) {
  if (target.length() + 1 == static_cast<std::int64_t>(text.size())) return;
  throw std::invalid_argument(fmt::format("{}: the target holds {} tokens, but must hold {}, the text without its last",
                                          function, target.length(), static_cast<std::int64_t>(text.size()) - 1));
}

}  // namespace specdec::sim
