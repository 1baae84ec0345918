#include "analysis/core/parsed_number.hpp"

#include <string>

#include "tests/support/catch.hpp"

using specdec::core::parsed_number;

TEST_CASE("a number is the whole text, finite and in decimal") {
  CHECK(parsed_number("0") == 0.0);
  CHECK(parsed_number("-12.5") == -12.5);
  CHECK(parsed_number(".5") == 0.5);
  CHECK(parsed_number("1e3") == 1000.0);
  CHECK(parsed_number("0.1") == 0.1);
  for (const char* text : {"", " 1", "1 ", "+1", "1,5", "0x10", "inf", "nan", "1e999", "-", "1.2.3", "1e", "twelve"}) {
    INFO(text);
    CHECK_FALSE(parsed_number(text));
  }
}
