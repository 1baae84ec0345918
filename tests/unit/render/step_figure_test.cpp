#include "render/step_figure.hpp"
#include "render/text.hpp"

#include "tests/support/catch.hpp"

using specdec::render::figure_legend;
using specdec::render::figure_of_steps;
using specdec::render::FigureStep;
using specdec::render::visible;

TEST_CASE("visible text stays on its line: control characters and broken UTF-8 are escaped, the rest is kept") {
  CHECK(visible("a\nb\tc") == "a\\nb\\tc");
  CHECK(visible("\x1b[31m") == "\\x1b[31m");
  CHECK(visible("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(visible("\xc3") == "\\xc3");
  CHECK(visible("\xe2\x82z") == "\\xe2\\x82z");
  // Overlong, surrogate, beyond the last code point, and a control character of two bytes.
  CHECK(visible("\xc0\xaf") == "\\xc0\\xaf");
  CHECK(visible("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(visible("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(visible("\xc2\x9b") == "\\xc2\\x9b");
  CHECK(visible("") == "");
}

TEST_CASE("the figure has one line per step with the text so far, and marks where there is no colour") {
  const std::vector<FigureStep> steps{{"japan's", " bond", " benchmark"}, {" nikkei 22", "", "5"}};
  CHECK(figure_of_steps(steps, false) ==
        "<japan's>[- bond-]{+ benchmark+}\n"
        "japan's benchmark< nikkei 22>{+5+}\n");
}

TEST_CASE("the figure paints accepted drafts green, the rejected one red and the target's token blue") {
  CHECK(figure_of_steps({{"a", "b", "c"}}, true) == "\x1b[32ma\x1b[0m\x1b[31;9mb\x1b[0m\x1b[34mc\x1b[0m\n");
  CHECK(figure_of_steps({{"", "b", "c"}}, true) == "\x1b[31;9mb\x1b[0m\x1b[34mc\x1b[0m\n");
}

TEST_CASE("the legend names what the figure uses") {
  CHECK(figure_legend(true).find("Green") != std::string_view::npos);
  CHECK(figure_legend(false).find("[-") != std::string_view::npos);
}
