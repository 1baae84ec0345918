#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "traces/formats/json_lines.hpp"

namespace specdec::traces {

// Internal header of the library, like json_lines.hpp: values of a document, with error messages if they are not
// as required.

inline constexpr std::int64_t largest_token_id = std::numeric_limits<std::int32_t>::max();

/// The place of a value in its document, formatted only for a message: `list[index]member`, without the middle part if
/// index < 0.
struct JsonField {
  std::string_view list;
  std::int64_t index = -1;
  std::string_view member = {};

  std::string text() const;
};

/// A log-probability (log_probability_of). @throws FileError as do all of these
float read_log_probability(const JsonLines& file, simdjson::dom::element value, const JsonField& field);
/// The logarithm of a probability in [0, 1 + 1e-4].
float read_probability(const JsonLines& file, simdjson::dom::element value, const JsonField& field);
/// An integer in [0, 2^31).
std::int32_t read_token_id(const JsonLines& file, simdjson::dom::element value, const JsonField& field);
/// An integer in [0, 2^31); 0 for null.
std::int32_t read_rank(const JsonLines& file, simdjson::dom::element value, const JsonField& field);
std::string_view read_string(const JsonLines& file, simdjson::dom::element value, const JsonField& field);
simdjson::dom::array read_array(const JsonLines& file, simdjson::dom::element value, const JsonField& field);
simdjson::dom::object read_object(const JsonLines& file, simdjson::dom::element value, const JsonField& field);

/// The value of a key; an error if it is missing.
simdjson::dom::element member_of(const JsonLines& file, simdjson::dom::object object, std::string_view key,
                                 const JsonField& field);
/// The value of a key; empty if it is missing or null.
std::optional<simdjson::dom::element> find_member(simdjson::dom::object object, std::string_view key);

/// True if the beginning of a JSON text has this key followed by a colon, on any level.
bool mentions_key(std::string_view head, std::string_view key);

}  // namespace specdec::traces
