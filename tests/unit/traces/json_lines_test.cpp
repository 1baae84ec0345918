#include "traces/formats/json_lines.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::EndsWith;
using traces::JsonLines;

namespace {

/// The documents of a file as "line:JSON", or what is wrong with it as the last.
std::vector<std::string> documents(std::string_view content) {
  const tests::TemporaryFolder folder;
  std::vector<std::string> result;
  try {
    JsonLines file(folder.write("f", content));
    while (file.next()) result.push_back(std::to_string(file.line()) + ":" + simdjson::minify(file.document()));
  } catch (const traces::FileError& error) {
    const std::string text = error.what();
    result.push_back(text.substr(folder.path().string().size() + 1));
  }
  return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("documents stand one a line, in an array, or over several lines") {
  CHECK(documents("") == Texts{});
  CHECK(documents(" \n\n") == Texts{});
  CHECK(documents("{\"a\":1}") == Texts{"1:{\"a\":1}"});
  CHECK(documents("\xef\xbb\xbf{\"a\":1}\r\n\n{\"b\":[2, 3]}\r\n") == Texts{"1:{\"a\":1}", "3:{\"b\":[2,3]}"});
  CHECK(documents("[]") == Texts{});
  CHECK(documents("[{\"a\":\"]\"},\n [2],3 , \"x,\"\n]\n") == Texts{"1:{\"a\":\"]\"}", "2:[2]", "2:3", "2:\"x,\""});
  CHECK(documents("{\n\"a\": \"\\\"}\\\\\",\n\"b\": {}\n}\n\n{\n}\n{\"c\": 1}") ==
        Texts{"1:{\"a\":\"\\\"}\\\\\",\"b\":{}}", "6:{}", "8:{\"c\":1}"});
}

TEST_CASE("words that Python writes and JSON does not know become strings that are read as numbers") {
  CHECK(documents(
            "{\"a\": [NaN, Infinity,-Infinity, -1e400, 1e400, 1e-400, -0.5], \"NaN\": \"a NaN, \\\" -Infinity\"}") ==
        Texts{"1:{\"a\":[\"NaN\",\"Infinity\",\"-Infinity\",\"-Infinity\",\"Infinity\",0.0,-0.5],"
              "\"NaN\":\"a NaN, \\\" -Infinity\"}"});
  CHECK(documents("{\"a\": [-inf, nan, 123456789012345678901234567890]}") ==
        Texts{"1:{\"a\":[\"-Infinity\",\"NaN\",1.2345678901234568e+29]}"});
  const tests::TemporaryFolder folder;
  JsonLines file(folder.write("f", "[-Infinity, NaN, 1e999, 7, \"x\", null]"));
  std::vector<std::optional<double>> numbers;
  while (file.next()) numbers.push_back(traces::number_of(file.document()));
  REQUIRE(numbers.size() == 6);
  CHECK(*numbers[0] == -INFINITY);
  CHECK(std::isnan(*numbers[1]));
  CHECK(*numbers[2] == INFINITY);
  CHECK(*numbers[3] == 7);
  CHECK_FALSE(numbers[4]);
  CHECK_FALSE(numbers[5]);
}

TEST_CASE("what is no JSON is refused with its line and column") {
  CHECK(documents("{\"a\":1}\n{\"a\":tru}\n").back() == "f:2: column 9 is }, but must be JSON");
  CHECK(documents("{\"a\":1}\n{\"a\":[1,2}\n").back() == "f:2: column 10 is }, but must be JSON");
  CHECK(documents("{\"a\":1}\n{\"a\":").back() == "f:2: the JSON is cut off at column 6, but must be whole");
  CHECK(documents("{\"a\":1} {\"b\":2}").back() == "f:1: column 9 is {\"b\":2}, but must be JSON");
  CHECK(documents("{\"a\":1}\nNaN2\n").back() == "f:2: column 1 is NaN2, but must be JSON");
  CHECK(documents("{\"a\":1}\n{\"a\":\"\xff\"}").back() == "f:2: column 7 is \\xff\"}, but must be JSON");
  CHECK(documents("{\n\"a\":1").back() == "f:1: document is cut off, but must be closed before the end of the file");
  CHECK(documents("[{}").back() == "f:1: array is cut off, but must be closed by ]");
  CHECK(documents("[{},").back() == "f:1: document is cut off, but must be closed before the end of the file");
  CHECK(documents("[{}\n{}]").back() == "f:2: array is going on with {}], but must be going on with , or ]");
  CHECK(documents("[{}]\nx").back() == "f:2: array is followed by x, but must be the whole file");
  std::string deep = "{\"a\":1}\n";
  deep.append(2000, '[').append(2000, ']');
  CHECK(documents(deep).back() == "f:2: document is nested deeper, but must be at most 1024 deep");
  CHECK(documents(std::string("{\"a\":1}\0\n", 9)).back() == "f:1: column 8 is \\x00, but must be JSON");
}

TEST_CASE("a key that an object holds twice is refused with its line and path, however deep it stands") {
  const std::string expected = " is there twice, but must be there once in its object";
  CHECK(documents("{\"a\": 1}\n{\"mean_tpot_ms\": 1, \"b\": 2, \"mean_tpot_ms\": 9}\n") ==
        Texts{"1:{\"a\":1}", "f:2: mean_tpot_ms" + expected});
  CHECK(documents("{\"a\": [1, {\"b\": {\"c\": 1, \"c\": 1}}]}") == Texts{"f:1: a.b.c" + expected});
  // Also where Python's words make it no JSON, and where the key is escaped.
  CHECK(documents("{\"a\": NaN, \"a\": 1}") == Texts{"f:1: a" + expected});
  CHECK(documents("{\"a\": 1, \"\\u0061\": 1}") == Texts{"f:1: a" + expected});
  // Keys that differ, and equal ones of different objects, are no repetition.
  CHECK(documents("{\"a\": {\"a\": 1}, \"b\": [{\"a\": 1}, {\"a\": 2}], \"A\": 3}").front().starts_with("1:"));
}

TEST_CASE("a document longer than the limit is refused before it is parsed") {
  std::string text = "{\"a\":\"";
  text.append(JsonLines::longest_document, 'x').append("\"}");
  CHECK(documents(text).back() ==
        "f:1: document is longer than 32 MiB, but must be shorter: one request a line, or an array of requests");
  CHECK(documents(text.insert(0, 1, '[').append(1, ']')).back() ==
        "f:1: document is longer than 32 MiB, but must be shorter: one request a line, or an array of requests");
}

TEST_CASE("a reader of JSON documents returns to the place of a document") {
  const tests::TemporaryFolder folder;
  for (const char* content : {"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "[{\"a\":1},\n{\"a\":2},\n{\"a\":3}]"}) {
    JsonLines file(folder.write("f", content));
    REQUIRE(file.next());
    REQUIRE(file.next());
    const auto place = file.place();
    while (file.next()) {
    }
    file.seek(place);
    REQUIRE(file.next());
    CHECK(simdjson::minify(file.document()) == "{\"a\":2}");
    CHECK(file.line() == 2);
    REQUIRE(file.next());
    CHECK(file.line() == 3);
    CHECK_FALSE(file.next());
    file.rewind();
    REQUIRE(file.next());
    CHECK(file.line() == 1);
  }
}

TEST_CASE("log-probabilities at or below the floor are probability 0") {
  CHECK(traces::log_probability_of(-0.5) == -0.5F);
  CHECK(traces::log_probability_of(-9998.5) == -9998.5F);
  CHECK(traces::log_probability_of(-9999) == -INFINITY);
  CHECK(traces::log_probability_of(-3.4028235e38) == -INFINITY);
  CHECK(traces::log_probability_of(-INFINITY) == -INFINITY);
  CHECK(traces::log_probability_of(5e-5) == 0);
  CHECK_FALSE(traces::log_probability_of(0.01));
  CHECK_FALSE(traces::log_probability_of(NAN));
}
