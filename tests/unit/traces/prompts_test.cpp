#include "traces/formats/prompts.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::EndsWith;

namespace {

std::string refusal(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("prompts.jsonl", content);
  return tests::message_of<traces::FileError>([&] { traces::read_prompts(path); });
}

}  // namespace

TEST_CASE("each line of a plain text file that is not blank is a prompt") {
  const tests::TemporaryFolder folder;
  const auto prompts = traces::read_prompts(folder.write("prompts.txt", "{not JSON\r\n\n  \t\n  indented\n"));
  REQUIRE(prompts.size() == 2);
  CHECK(prompts[0].text == "{not JSON");
  CHECK(prompts[1].text == "  indented");
  CHECK(prompts[1].task == "all");
  const auto latin = folder.write("latin.txt", "one\ncaf\xe9\n");
  CHECK_THAT(tests::message_of<traces::FileError>([&] { traces::read_prompts(latin); }),
             EndsWith("latin.txt:2: text is caf\\xe9, but must be UTF-8"));
  const auto blank = folder.write("blank.txt", "\n\n");
  CHECK_THAT(tests::message_of<traces::FileError>([&] { traces::read_prompts(blank); }),
             EndsWith("file is empty, but must be at least one prompt"));
}

TEST_CASE("prompts hold a text or token ids, and a task that defaults to all") {
  const tests::TemporaryFolder folder;
  const auto prompts = traces::read_prompts(folder.write(
      "prompts.jsonl", "{\"task\": \"prose\", \"text\": \"caf\\u00e9\", \"id\": 7}\n{\"tokens\": [0, 2147483647]}\n"));
  REQUIRE(prompts.size() == 2);
  CHECK(prompts[0].task == "prose");
  CHECK(prompts[0].text == "caf\xc3\xa9");
  CHECK(prompts[0].tokens.empty());
  CHECK(prompts[1].task == "all");
  CHECK(prompts[1].tokens == std::vector<std::int32_t>{0, 2147483647});
}

TEST_CASE("a bad line of prompts is refused with its number, the key, what stands there and what should") {
  const std::string good = "{\"text\": \"a\"}\n";
  CHECK_THAT(refusal(good + "nonsense\n"), EndsWith("prompts.jsonl:2: column 2 is onsense, but must be JSON"));
  CHECK_THAT(refusal(good + "\n" + good + "7"), EndsWith(":4: line is 7, but must be an object"));
  CHECK_THAT(refusal(good + good + "[1]"), EndsWith(":3: line is an array, but must be an object"));
  CHECK_THAT(refusal("{}"),
             EndsWith(":1: prompt is neither text nor tokens, but must be exactly one of text and tokens"));
  CHECK_THAT(refusal(R"({"text": "a", "tokens": [1]})"),
             EndsWith(":1: prompt is both text and tokens, but must be exactly one of text and tokens"));
  CHECK_THAT(refusal(R"({"text": 5})"), EndsWith(":1: text is 5, but must be a string"));
  CHECK_THAT(refusal(R"({"text": ""})"), EndsWith(":1: text is empty, but must be a string that is not empty"));
  CHECK_THAT(refusal(R"({"task": "", "text": "a"})"),
             EndsWith(":1: task is empty, but must be a string that is not empty"));
  CHECK_THAT(refusal(R"({"text": "a", "task": "x", "text": "b"})"),
             EndsWith(":1: text is there twice, but must be there once in its object"));
  CHECK_THAT(refusal(R"({"tokens": []})"),
             EndsWith(":1: tokens is empty, but must be an array of token ids that is not empty"));
  CHECK_THAT(refusal(R"({"tokens": [1, -2]})"),
             EndsWith(":1: tokens[1] is -2, but must be a token id, an integer in [0, 2147483647]"));
  CHECK_THAT(refusal(R"({"tokens": [2147483648]})"),
             EndsWith(":1: tokens[0] is 2147483648, but must be a token id, an integer in [0, 2147483647]"));
}

TEST_CASE("a file of prompts that is missing, a folder or empty is refused") {
  const tests::TemporaryFolder folder;
  CHECK_THAT(tests::message_of<traces::FileError>([&] { traces::read_prompts(folder.path() / "no.jsonl"); }),
             EndsWith("no such file"));
  CHECK_THAT(tests::message_of<traces::FileError>([&] { traces::read_prompts(folder.path()); }),
             EndsWith("but must be a regular file"));
  CHECK_THAT(refusal(""), EndsWith("file is empty, but must be at least one prompt"));
}
