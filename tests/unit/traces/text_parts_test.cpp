#include "traces/formats/text_parts.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/support/catch.hpp"

using namespace specdec::traces;

TEST_CASE("a number is the whole text, without blanks or a plus sign") {
  CHECK(number_in<std::int64_t>("-12") == -12);
  CHECK(number_in<double>("1.5e3") == 1500);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x10", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(number_in<std::int64_t>(text));
  }
  CHECK_FALSE(number_in<double>("1e400"));
  CHECK(std::isnan(number_in<double>("nan").value()));
}

TEST_CASE("a number that no double holds is 0 or infinite, by its sign") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(double_in("+22") == 22);
  CHECK(double_in("+Inf") == infinity);
  CHECK(double_in("1e400") == infinity);
  CHECK(double_in("-1e400") == -infinity);
  CHECK(double_in("1e-400") == 0);
  CHECK_FALSE(double_in("1e400x"));
  CHECK_FALSE(double_in("+"));
  CHECK_FALSE(double_in(""));
}

TEST_CASE("blanks at both ends of a text are cut off, and a byte order mark before it") {
  CHECK(trimmed(" \ta b\r") == "a b");
  CHECK(trimmed("\t") == "");
  CHECK(trimmed("\ta ", " ") == "\ta");
  CHECK(without_byte_order_mark("\xef\xbb\xbf{}") == "{}");
  CHECK(without_byte_order_mark("\xef\xbb") == "\xef\xbb");
}
