#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/round_cost.hpp"
#include "analysis/planning/engine_config.hpp"
#include "planner/question_error.hpp"
#include "traces/acceptance_rules.hpp"

/// JSON of structures whose members are listed once, for writing and for reading:
///
///     template <class Members>
///     void list_members(Members& members, Point& point) {
///       members("x", point.x);             // always there
///       members.optional("y", point.y);    // left out where it is what it is by default
///     }
///
/// A value whose JSON has a form of its own brings `written_value(place, value)` and `read_value(json, place, bounds,
/// value)`, an enumeration `name_of(value)` and `all_values(place, value)`; all of them stand in this namespace, but
/// for name_of. Reading refuses unknown keys, wrong types and values out of range.
namespace specdec::planner::json {

using nlohmann::ordered_json;
inline constexpr LegalRange any_number = {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
inline constexpr LegalRange probability = {0, 1};

/// Where a value stands: "alpha", "gamma in acceptance_length".
struct Place {
  std::string name;

  Place within(std::string_view key) const {
    return {name.empty() ? std::string(key) : fmt::format("{} in {}", key, name)};
  }
  /// @throws QuestionError that names the place, what is there and what should be
  [[noreturn]] void refuse(const ordered_json& found, std::string_view expected) const {
    const std::string text = found.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    std::string option = name.empty() ? "the question" : name;
    if (option.find(' ') == std::string::npos) {
      // A member by its option, which is how questions name parameters.
      option = "--" + option;
      std::replace(option.begin(), option.end(), '_', '-');
    }
    planner::refuse(option, text, expected);
  }
};

inline std::span<const traces::AcceptanceRule> all_values(const Place&, traces::AcceptanceRule) {
  return traces::acceptance_rules;
}
inline auto all_values(const Place&, cost::NumberType) {
  using enum cost::NumberType;
  return std::array{fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4};
}
inline auto all_values(const Place&, cost::DraftKind) {
  using enum cost::DraftKind;
  return std::array{model, mirrored, eagle, mtp, parallel, ngram, suffix};
}
inline auto all_values(const Place&, planning::Engine) {
  using enum planning::Engine;
  return std::array{vllm, sglang, trtllm, llamacpp};
}

template <class Value>
concept HasOwnForm = requires(const Value& value, Value& target, const ordered_json& json, const Place& place,
                              const LegalRange& bounds) {
  written_value(place, value);
  read_value(json, place, bounds, target);
};

class Writer {
 public:
  template <class Member>
  void operator()(const char* key, const Member& member, const LegalRange& = any_number) {
    object[key] = written(member);
  }
  template <class Member>
  void optional(const char* key, const Member& member, const LegalRange& = any_number, const Member& usual = {}) {
    const ordered_json value = written(member);
    if (value != written(usual)) object[key] = value;
  }

  template <class Value>
  static ordered_json written(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
      return value;
    } else if constexpr (std::is_enum_v<Value>) {
      return name_of(value);
    } else if constexpr (HasOwnForm<Value>) {
      return written_value(Place{}, value);
    } else {
      Writer members;
      // Members are listed of what can be changed, for the reader.
      Value copy = value;
      list_members(members, copy);
      return std::move(members.object);
    }
  }
  template <class Value>
  static ordered_json written(const std::optional<Value>& value) {
    return value ? written(*value) : ordered_json();
  }
  template <class Value>
  static ordered_json written(const std::vector<Value>& values) {
    ordered_json list = ordered_json::array();
    for (const Value& value : values) list.push_back(written(value));
    return list;
  }
  template <class Value, class Order>
  static ordered_json written(const std::map<std::string, Value, Order>& values) {
    ordered_json by_name = ordered_json::object();
    for (const auto& [name, value] : values) by_name[name] = written(value);
    return by_name;
  }

  ordered_json object = ordered_json::object();
};

class Reader {
 public:
  Reader(const ordered_json& object, Place place) : object_(object), place_(std::move(place)) {
    if (!object.is_object()) place_.refuse(object, "an object");
  }

  template <class Member>
  void operator()(const char* key, Member& member, const LegalRange& bounds = any_number) {
    keys_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) throw QuestionError(fmt::format("{} is missing", place_.within(key).name));
    read(*found, place_.within(key), bounds, member);
  }
  template <class Member>
  void optional(const char* key, Member& member, const LegalRange& bounds = any_number, const Member& = {}) {
    if (object_.contains(key)) return (*this)(key, member, bounds);
    keys_.emplace_back(key);
  }

  /// @throws QuestionError for a key that is none of the members'
  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) continue;
      std::string known;
      for (const std::string& one : keys_) known += (known.empty() ? "" : ", ") + one;
      place_.within(key).refuse(value, "left out: the keys here are " + known);
    }
  }

  template <class Value>
  static void read(const ordered_json& from, const Place& place, const LegalRange& bounds, Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      if (!from.is_boolean()) place.refuse(from, "true or false");
      value = from.get<bool>();
    } else if constexpr (std::is_integral_v<Value>) {
      read_integer(from, place, bounds, value);
    } else if constexpr (std::is_floating_point_v<Value>) {
      read_number(from, place, bounds, value);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      if (!from.is_string()) place.refuse(from, "a text");
      value = from.get<std::string>();
    } else if constexpr (std::is_enum_v<Value>) {
      read_name(from, place, value);
    } else if constexpr (HasOwnForm<Value>) {
      read_value(from, place, bounds, value);
    } else {
      Reader members(from, place);
      list_members(members, value);
      members.finish();
    }
  }
  template <class Value>
  static void read(const ordered_json& from, const Place& place, const LegalRange& bounds,
                   std::optional<Value>& value) {
    value.reset();
    if (!from.is_null()) read(from, place, bounds, value.emplace());
  }
  template <class Value>
  static void read(const ordered_json& from, const Place& place, const LegalRange& bounds, std::vector<Value>& values) {
    if (!from.is_array()) place.refuse(from, "a list");
    values.clear();
    for (const ordered_json& one : from) read(one, place, bounds, values.emplace_back());
  }
  template <class Value, class Order>
  static void read(const ordered_json& from, const Place& place, const LegalRange& bounds,
                   std::map<std::string, Value, Order>& values) {
    if (!from.is_object()) place.refuse(from, "an object");
    values.clear();
    for (const auto& [name, one] : from.items()) read(one, place.within(name), bounds, values[name]);
  }

 private:
  template <class Value>
  static void read_number(const ordered_json& from, const Place& place, const LegalRange& bounds, Value& value) {
    const bool legal = from.is_number() && bounds.contains(from.get<double>());
    if (legal) {
      value = from.get<Value>();
    } else {
      place.refuse(from, bounds.hi == any_number.hi ? "a number" : "a number in " + bounds.to_string());
    }
  }
  template <class Value>
  static void read_integer(const ordered_json& from, const Place& place, const LegalRange& bounds, Value& value) {
    // An unsigned number beyond the signed ones is no legal one, either.
    const bool fits = from.is_number_integer() &&
                      (!from.is_number_unsigned() ||
                       from.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<Value>::max()));
    if (fits && bounds.contains(from.get<double>())) {
      value = from.get<Value>();
    } else {
      place.refuse(from, bounds.hi == any_number.hi ? "an integer" : "an integer in " + bounds.to_string());
    }
  }
  template <class Value>
  static void read_name(const ordered_json& from, const Place& place, Value& value) {
    std::string names;
    for (const Value one : all_values(place, value)) {
      if (from.is_string() && from.get<std::string>() == name_of(one)) {
        value = one;
        return;
      }
      names += (names.empty() ? "" : ", ") + std::string(name_of(one));
    }
    place.refuse(from, "one of " + names);
  }

  const ordered_json& object_;
  Place place_;
  std::vector<std::string> keys_;
};

/// The members of an object, all of them and no other.
/// @throws QuestionError
template <class Value>
Value read_object(const ordered_json& from, const Place& place = {}) {
  Value value;
  Reader::read(from, place, any_number, value);
  return value;
}

}  // namespace specdec::planner::json
