#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "sim/language_model.hpp"

namespace specdec::sim {

/// Receives the models' two distributions before token t of a text; it may overwrite them.
using PrefixVisitor = std::function<void(std::size_t t, std::span<double> target_row, std::span<double> draft_row)>;

/// Scores a finished text with both models, in blocks, and visits the rows before each of its tokens in order. The rows
/// are those that a decoder saw, bit for bit. The models' prefixes are discarded.
///
/// @param prompt  at least one token
/// @param text    the tokens after it
void for_each_prefix(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                     std::span<const Token> text, const PrefixVisitor& visit);

}  // namespace specdec::sim
