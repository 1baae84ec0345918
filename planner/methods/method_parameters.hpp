#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/methods/method_question.hpp"

/// The rules for the members of a question about methods: ranges, and which go together.
namespace specdec::planner {

/// Tokens of a synthetic vocabulary and noise of its draft if the question states none.
inline constexpr std::int64_t default_vocab = 64;
inline constexpr double default_noise = 1;

/// The kind of source: the stated one, else "pair".
std::string source_of_question(const MethodQuestion& question);
/// The laws of a synthetic source: the stated ones, else what other members leave.
std::string laws_of(const MethodQuestion& question);

/// @throws QuestionError if there is a word and it is none of these
void require_word(std::string_view option, const std::optional<std::string>& word,
                  const std::vector<std::string>& words);
/// @throws QuestionError if a number is outside its range
void require_ranges(const MethodQuestion& question);

/// Refuses members that belong to another source or to other laws than those stated, or left to their default.
/// @throws QuestionError
void require_source(const MethodQuestion& question);

/// Refuses members that none of the methods uses.
/// @param by_options  the method's parts are named by options, not in one word
/// @throws QuestionError
void require_used(const MethodQuestion& question, const std::vector<validation::Method>& methods,
                  const validation::MethodContext& context, bool by_options);

}  // namespace specdec::planner
