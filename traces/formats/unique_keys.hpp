#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace specdec::traces {

// Internal header of the library; it is not installed, so that users do not include nlohmann-json.

/// A callback for nlohmann::json::parse that calls `refuse`, which throws, with the path of a key that occurs twice in
/// its object: "model.layers". A document would keep one of the values and drop the other.
nlohmann::json::parser_callback_t unique_keys(std::function<void(const std::string& path)> refuse);

}  // namespace specdec::traces
