#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/scored_text.hpp"

namespace specdec::traces {

// Internal header of the library.

/// The tokens of a response that are the text: those it was given or those it wrote.
enum class ScoredPart { prompt, output };

/// The engine response that is being read: its place, and the destination of its texts.
class ResponseReader {
 public:
  explicit ResponseReader(const JsonLines& file) : file_(file) {}

  const JsonLines& file() const { return file_; }
  /// Prefix of field names in messages, for instance "choices[0].".
  std::string prefix;
  /// The id of every text that is added.
  std::string id;
  /// Number of tokens before the output, if the response counts them.
  std::optional<std::int64_t> prompt_tokens;

  std::string name(std::string_view field) const { return prefix + std::string(field); }
  [[noreturn]] void refuse(std::string_view field, std::string found, std::string expected) const {
    file_.refuse(name(field), std::move(found), std::move(expected));
  }

  ScoredText& add();
  /// Finishes the text that was added last; `list` names its lists, whose element `first` is the first position's.
  void finish(std::string_view list, ScoredText::Lists lists, std::int64_t first = 0);
  /// Distinguishes the texts of one response, from the text `first` on, by their ids.
  void number_ids(std::size_t first);
  void clear() { used_ = 0; }
  /// The first size() texts are this document's; the others only keep memory.
  const std::vector<ScoredText>& texts() const { return texts_; }
  std::size_t size() const { return used_; }

  /// The part for which a response with both is read: an engine that is asked to score writes at least one token, so
  /// it is the output if that is longer. The first such response decides for the whole file.
  ScoredPart part_of(std::size_t output_positions);

 private:
  const JsonLines& file_;
  std::vector<ScoredText> texts_;
  std::size_t used_ = 0;
  std::optional<ScoredPart> part_;
};

/// The id in "token_id:17"; empty for any other text.
std::optional<std::int32_t> id_of_token_text(std::string_view text);

/// Number of elements. The count that simdjson keeps with an array ends at 0xFFFFFF.
std::size_t length_of(simdjson::dom::array array);

}  // namespace specdec::traces
