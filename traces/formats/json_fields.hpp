#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "traces/formats/json_lines.hpp"

namespace specdec::traces {

// A header of the library's own sources, as json_lines.hpp is: values of a document with the messages when they are not
// what they must be.

inline constexpr std::int64_t largest_token_id = std::numeric_limits<std::int32_t>::max();

/// Where a value stands in its document; only a message writes it out: `list[index]member`, without the middle where
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

/// The value of a key; refused where it is missing.
simdjson::dom::element member_of(const JsonLines& file, simdjson::dom::object object, std::string_view key,
                                 const JsonField& field);
/// The value of a key, or nothing where it is missing or null.
std::optional<simdjson::dom::element> find_member(simdjson::dom::object object, std::string_view key);

/// Whether the beginning of a JSON text has this key with a colon behind it, on whatever level.
bool mentions_key(std::string_view head, std::string_view key);

}  // namespace specdec::traces
