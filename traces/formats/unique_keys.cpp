#include "traces/formats/unique_keys.hpp"

#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace specdec::traces {

using nlohmann::json;

json::parser_callback_t unique_keys(std::function<void(const std::string& path)> refuse) {
  struct OpenObject {
    std::set<std::string> keys;
    std::string last;
  };
  // The callback is copied by the parser.
  const auto open = std::make_shared<std::vector<OpenObject>>();
  return [open, refuse = std::move(refuse)](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open->emplace_back();
    if (event == json::parse_event_t::object_end) open->pop_back();
    if (event != json::parse_event_t::key) return true;
    OpenObject& object = open->back();
    object.last = value.get<std::string>();
    if (object.keys.insert(object.last).second) return true;
    std::string path;
    for (const OpenObject& outer : *open) path += (path.empty() ? "" : ".") + outer.last;
    refuse(path);
    return true;
  };
}

}  // namespace specdec::traces
