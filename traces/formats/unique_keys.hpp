#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace specdec::traces {

// A header of the library's own sources; it is not installed, so that nlohmann-json stays out of what others include.

/// A callback for nlohmann::json::parse that calls `refuse`, which throws, with the path of a key that its object holds
/// twice: "model.layers". Of such a key a document would keep one value and drop the other.
nlohmann::json::parser_callback_t unique_keys(std::function<void(const std::string& path)> refuse);

}  // namespace specdec::traces
