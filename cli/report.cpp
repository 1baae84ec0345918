#include "cli/report.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "render/version.hpp"

namespace specdec::cli {

using nlohmann::ordered_json;

ordered_json with_envelope(std::string_view command, const ordered_json& inputs, Report& report) {
  std::string name(command);
  std::replace(name.begin(), name.end(), ' ', '.');
  ordered_json document = {{"schema", fmt::format("specdec.{}/2", name)},
                           {"version", render::version()},
                           {"decision", render::json_of(report.spoken.decision)},
                           {"inputs", inputs}};
  document["assumptions"] = report.assumptions;
  document["warnings"] = render::notes_json(report.warnings);
  for (auto& [key, value] : report.json.get_ref<ordered_json::object_t&>()) document[key] = std::move(value);
  if (report.more_json) report.more_json(document);
  return document;
}

}  // namespace specdec::cli
