#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "analysis/estimate/estimate.hpp"
#include "traces/note.hpp"

namespace specdec::render {

/// Sets `object[key]`; if the value is not finite, to null with the reason in `key_note`.
void put_number(nlohmann::ordered_json& object, const std::string& key, double value);

/// null if there is no value.
template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

/// [lo, hi], null if there is no interval.
nlohmann::ordered_json pair_of(const std::optional<estimate::Interval>& interval);

/// {value, ci95, method}, its members null without an estimate.
nlohmann::ordered_json estimate_json(const std::optional<estimate::Estimate>& estimate);

/// {value, bounds, ci95}: of a bracket a value where its ends are equal, else null and both ends.
nlohmann::ordered_json bracket_json(const std::optional<estimate::Interval>& ends,
                                    const std::optional<estimate::Interval>& ci95 = {});

/// null if there is no finite value.
nlohmann::ordered_json number_or_null(const std::optional<double>& value);

/// [{"code", "message"}]
nlohmann::ordered_json notes_json(std::span<const Note> notes);

}  // namespace specdec::render
