#include "traces/formats/prompts.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/streams.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::traces {
namespace {

using nlohmann::json;

/// Reads one line; every error names the file and the line.
class LineReader {
 public:
  LineReader(const std::filesystem::path& path, std::int64_t line) : path_(path), line_(line) {}

  Prompt read(const std::string& text) const {
    const auto once = unique_keys(
        [&](const std::string& key) { refuse(printable(key), "there twice", "there once in its object"); });
    const json object = json::parse(text, once, false);
    if (!object.is_object()) refuse("line", excerpt(text), "a JSON object");
    Prompt prompt;
    if (object.contains("text") == object.contains("tokens")) {
      refuse("prompt", object.contains("text") ? "both text and tokens" : "neither text nor tokens",
             "exactly one of text and tokens");
    }
    if (object.contains("task")) prompt.task = read_string(object, "task");
    if (object.contains("text")) {
      prompt.text = read_string(object, "text");
    } else {
      prompt.tokens = read_tokens(object["tokens"]);
    }
    return prompt;
  }

 private:
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const {
    throw FileError(path_, FileError::line(line_), std::move(field), std::move(found), std::move(expected));
  }

  static std::string excerpt(const std::string& text) {
    constexpr std::size_t longest = 60;
    if (text.empty()) return "empty";
    return text.size() <= longest ? text : text.substr(0, longest) + "...";
  }

  static std::string excerpt(const json& value) {
    return excerpt(value.dump(-1, ' ', true, json::error_handler_t::replace));
  }

  std::string read_string(const json& object, const char* key) const {
    const json& value = object[key];
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      refuse(key, excerpt(value), "a string that is not empty");
    }
    return value.get<std::string>();
  }

  std::vector<std::int32_t> read_tokens(const json& value) const {
    if (!value.is_array() || value.empty()) refuse("tokens", excerpt(value), "an array of token ids that is not empty");
    std::vector<std::int32_t> tokens;
    tokens.reserve(value.size());
    for (const json& id : value) {
      constexpr std::uint64_t largest = std::numeric_limits<std::int32_t>::max();
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > largest) {
        refuse(fmt::format("tokens[{}]", tokens.size()), excerpt(id), "an integer in [0, 2147483647]");
      }
      tokens.push_back(id.get<std::int32_t>());
    }
    return tokens;
  }

  const std::filesystem::path& path_;
  std::int64_t line_;
};

}  // namespace

std::vector<Prompt> read_prompts(const std::filesystem::path& path) {
  const KeptStreams streams;
  std::ifstream file(readable_path(path));
  std::vector<Prompt> prompts;
  const bool plain_text = path.extension() == ".txt";
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!plain_text) {
      prompts.push_back(LineReader(path, number).read(line));
    } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
      if (!is_utf8(line)) throw FileError(path, FileError::line(number), "text", printable(line), "UTF-8");
      if (line.back() == '\r') line.pop_back();
      prompts.emplace_back().text = line;
    }
  }
  if (!file.eof()) {
    throw FileError(path, FileError::whole_file(), "file",
                    "unreadable (" + std::generic_category().message(errno) + ")", "a readable file");
  }
  if (prompts.empty()) throw FileError(path, FileError::whole_file(), "file", "empty", "at least one prompt");
  return prompts;
}

}  // namespace specdec::traces
