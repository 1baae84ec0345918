#include "traces/file_error.hpp"

#include "tests/support/catch.hpp"

using specdec::traces::FileError;

TEST_CASE("a file error says path, line, field, what was found and what was expected, in one line") {
  const FileError error("dir/prompts.jsonl", FileError::line(7), "task", "5", "a string");
  CHECK(std::string(error.what()) == "dir/prompts.jsonl:7: task is 5, but must be a string");
  CHECK(error.field() == "task");
}

TEST_CASE("a file error in a binary file names the byte offset") {
  const FileError error("w.safetensors", FileError::byte(8), "header length", "99", "at most 40");
  CHECK(std::string(error.what()) == "w.safetensors: byte 8: header length is 99, but must be at most 40");
}
