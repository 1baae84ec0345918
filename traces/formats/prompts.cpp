#include "traces/formats/prompts.hpp"

#include <string_view>

#include "traces/file_error.hpp"
#include "traces/formats/json_fields.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/mapped_file.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

std::string filled_string(const JsonLines& file, dom::element value, std::string_view key) {
  const std::string_view text = read_string(file, value, {key});
  if (text.empty()) file.refuse(std::string(key), "empty", "a string that is not empty");
  return std::string(text);
}

Prompt prompt_in(const JsonLines& file) {
  const dom::object object = read_object(file, file.document(), {"line"});
  const auto text = find_member(object, "text"), tokens = find_member(object, "tokens");
  if (text.has_value() == tokens.has_value()) {
    file.refuse("prompt", text ? "both text and tokens" : "neither text nor tokens", "exactly one of text and tokens");
  }
  Prompt prompt;
  if (const auto task = find_member(object, "task")) prompt.task = filled_string(file, *task, "task");
  if (text) {
    prompt.text = filled_string(file, *text, "text");
    return prompt;
  }
  JsonField field{"tokens"};
  for (const dom::element token : read_array(file, *tokens, field)) {
    ++field.index;
    prompt.tokens.push_back(read_token_id(file, token, field));
  }
  if (prompt.tokens.empty()) file.refuse("tokens", "empty", "an array of token ids that is not empty");
  return prompt;
}

std::vector<Prompt> lines_of(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::vector<Prompt> prompts;
  std::string_view text = text_of(file.bytes());
  for (std::int64_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_part(text);
    if (trimmed(line).empty()) continue;
    if (!is_utf8(line)) throw FileError(path, FileError::line(number), "text", printable(line), "UTF-8");
    if (line.ends_with('\r')) line.remove_suffix(1);
    prompts.emplace_back().text = line;
  }
  return prompts;
}

}  // namespace

std::vector<Prompt> read_prompts(const std::filesystem::path& path) {
  const KeptStreams streams;
  std::vector<Prompt> prompts;
  if (path.extension() == ".txt") {
    prompts = lines_of(path);
  } else {
    for (JsonLines file(path); file.next();) prompts.push_back(prompt_in(file));
  }
  if (prompts.empty()) throw FileError(path, "file", "empty", "at least one prompt");
  return prompts;
}

}  // namespace specdec::traces
