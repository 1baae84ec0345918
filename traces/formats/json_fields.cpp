#include "traces/formats/json_fields.hpp"

#include <fmt/format.h>

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

}  // namespace

std::string JsonField::text() const {
  return index < 0 ? fmt::format("{}{}", list, member) : fmt::format("{}[{}]{}", list, index, member);
}

float read_log_probability(const JsonLines& file, dom::element value, const JsonField& field) {
  const auto number = number_of(value);
  const auto result = number ? log_probability_of(*number) : std::nullopt;
  if (!result) file.refuse(field.text(), value, "a log-probability, a number up to 0");
  return *result;
}

float read_probability(const JsonLines& file, dom::element value, const JsonField& field) {
  const auto number = number_of(value);
  const auto result = number ? log_of_probability(*number) : std::nullopt;
  if (!result) file.refuse(field.text(), value, "a probability, a number in [0, 1]");
  return *result;
}

std::int32_t read_token_id(const JsonLines& file, dom::element value, const JsonField& field) {
  std::int64_t id = -1;
  if (value.get(id) != simdjson::SUCCESS || id < 0 || id > largest_token_id) {
    file.refuse(field.text(), value, fmt::format("a token id, an integer in [0, {}]", largest_token_id));
  }
  return static_cast<std::int32_t>(id);
}

std::int32_t read_rank(const JsonLines& file, dom::element value, const JsonField& field) {
  if (value.is_null()) return 0;
  std::int64_t rank = -1;
  if (value.get(rank) != simdjson::SUCCESS || rank < 0 || rank > largest_token_id) {
    file.refuse(field.text(), value, "a rank, an integer from 1 on, or 0 where it is unknown");
  }
  return static_cast<std::int32_t>(rank);
}

std::string_view read_string(const JsonLines& file, dom::element value, const JsonField& field) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) file.refuse(field.text(), value, "a string");
  return text;
}

dom::array read_array(const JsonLines& file, dom::element value, const JsonField& field) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) file.refuse(field.text(), value, "an array");
  return array;
}

dom::object read_object(const JsonLines& file, dom::element value, const JsonField& field) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) file.refuse(field.text(), value, "an object");
  return object;
}

dom::element member_of(const JsonLines& file, dom::object object, std::string_view key, const JsonField& field) {
  dom::element value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) {
    const std::string where = field.text();
    file.refuse(where.empty() ? std::string(key) : fmt::format("{}.{}", where, key), "missing", "given");
  }
  return value;
}

std::optional<dom::element> find_member(dom::object object, std::string_view key) {
  dom::element value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

bool mentions_key(std::string_view head, std::string_view key) {
  const std::string quoted = fmt::format("\"{}\"", key);
  for (std::size_t i = head.find(quoted); i != std::string_view::npos; i = head.find(quoted, i + 1)) {
    const std::size_t next = head.find_first_not_of(" \t\r\n", i + quoted.size());
    if (next != std::string_view::npos && head[next] == ':') return true;
  }
  return false;
}

}  // namespace specdec::traces
