#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::cli {

/// The name in a line of a configuration file: an option, "plan.alpha", or a section, "plan".
struct ConfigKey {
  std::string name;
  std::int64_t line = 1;
  bool is_section = false;
};

struct ConfigText {
  /// The lines of the file with each list of texts, `name = ["a", "b"]`, on one line or several, as a line for each
  /// text, `name = "a"`, as options that take several values are read. Everything else stays as it is, lists of numbers
  /// and what is no complete list too.
  std::string lines;
  /// In the order of the file. A section "default" is none.
  std::vector<ConfigKey> keys;
};

ConfigText config_text(std::string_view toml);

}  // namespace specdec::cli
