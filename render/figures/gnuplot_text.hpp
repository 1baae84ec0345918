#pragma once

#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Lines of a script for gnuplot and the words in them.
namespace specdec::render {

/// A script, line by line.
class GnuplotText {
 public:
  template <class... Values>
  void say(fmt::format_string<Values...> form, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), form, std::forward<Values>(values)...);
    text_ += '\n';
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// `text` as a gnuplot string in single quotes, in which gnuplot substitutes nothing. Control characters and bytes
/// that are not UTF-8 are escaped, see visible.
std::string gnuplot_string(std::string_view text);

/// Several lines of text, one below the other, as a gnuplot expression.
std::string gnuplot_lines(const std::vector<std::string>& lines);

/// A string for the label of a tic, which gnuplot treats as a printf format.
std::string gnuplot_tic_label(std::string_view text);

/// A name as a gnuplot identifier.
std::string gnuplot_identifier(std::string name);

/// A number as it is; NaN, a gap, if it is not finite.
std::string gnuplot_number(double value);

}  // namespace specdec::render
