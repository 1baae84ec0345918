#include "analysis/core/parsed_number.hpp"

#include <cmath>
#include <locale>
#include <sstream>
#include <string>

namespace specdec::core {

// Not std::from_chars, which the library of WebAssembly's compiler has for whole numbers alone.
std::optional<double> parsed_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789+-.eE") != std::string_view::npos || text.front() == '+')
    return std::nullopt;
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  double number = 0;
  if (!(in >> number) || in.peek() != std::istringstream::traits_type::eof() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

}  // namespace specdec::core
