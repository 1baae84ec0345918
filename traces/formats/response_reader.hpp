#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/formats/json_fields.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/scored_text.hpp"

namespace specdec::traces {

// A header of the library's own sources.

/// Which tokens of a response are the text: those it was given or those it wrote.
enum class ScoredPart { prompt, output };

/// The response of an engine that is being read: where it stands, and where its texts go.
class ResponseReader {
 public:
  explicit ResponseReader(const JsonLines& file) : file_(file) {}

  const JsonLines& file() const { return file_; }
  /// What stands before a field's name in messages, for instance "choices[0].".
  std::string prefix;
  /// Of every text that is added.
  std::string id;
  /// Tokens before the output, where the response counts them.
  std::optional<std::int64_t> prompt_tokens;

  std::string name(std::string_view field) const { return prefix + std::string(field); }
  [[noreturn]] void refuse(std::string_view field, std::string found, std::string expected) const {
    file_.refuse(name(field), std::move(found), std::move(expected));
  }

  ScoredText& add();
  /// Finishes the text that was added last; `list` names its lists, whose element `first` is the first position's.
  void finish(std::string_view list, ScoredText::Lists lists, std::int64_t first = 0);
  /// Tells the texts of one response, from the text `first` on, apart by their ids.
  void number_ids(std::size_t first);
  void clear() { used_ = 0; }
  /// The first size() are this document's; the others only keep memory.
  const std::vector<ScoredText>& texts() const { return texts_; }
  std::size_t size() const { return used_; }

  /// Which part a response that holds both is read for: an engine that is asked to score writes one token at least, so
  /// the output if it is longer. The first such response decides for the whole file.
  ScoredPart part_of(std::size_t output_positions);

 private:
  const JsonLines& file_;
  std::vector<ScoredText> texts_;
  std::size_t used_ = 0;
  std::optional<ScoredPart> part_;
};

/// The id of "token_id:17", or nothing for another text.
std::optional<std::int32_t> id_of_token_text(std::string_view text);

/// Number of elements. The count that simdjson keeps beside an array ends at 0xFFFFFF.
std::size_t length_of(simdjson::dom::array array);

}  // namespace specdec::traces
