#include "traces/formats/safetensors_writer.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/durable_file.hpp"

namespace specdec::traces {

using tests::floats;
using tests::ints;
using tests::message_of;
using tests::TemporaryFolder;
using tests::write_tensors;

TEST_CASE("tensors and metadata that were written are read back, with the data at a multiple of 64 bytes") {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder.path() / "t.safetensors",
                                  {floats("b", {2, 2}, {1, 2, 3, 4}), ints("a", {1}, {7}), floats("none", {0, 5}, {})},
                                  {{"key", "a \"quoted\" value"}});
  const SafetensorsFile file(path);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"key", "a \"quoted\" value"}});
  REQUIRE(file.tensors().size() == 3);
  const Tensor& b = *file.find("b");
  CHECK(b.offset % 64 == 0);
  CHECK(b.shape == std::vector<std::int64_t>{2, 2});
  std::vector<float> values(4);
  read_floats(b, 0, values);
  CHECK(values == std::vector<float>{1, 2, 3, 4});
  CHECK(file.find("a")->type == ElementType::i32);
  CHECK(file.find("none")->bytes.empty());
}

TEST_CASE("tensors of a wrong size and names that stand twice are refused, and no file is left") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "t.safetensors";
  CHECK(message_of<std::invalid_argument>([&] {
          write_tensors(path, {floats("a", {3}, {1, 2})});
        }) == "write_safetensors: a has bytes of another shape");
  CHECK(message_of<std::invalid_argument>([&] {
          write_tensors(path, {floats("a", {1}, {1}), ints("a", {1}, {1})});
        }) == "safetensors_header: name is a twice, but must be another");
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a durable file appears whole or not at all") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "file";
  const std::string text = "text";
  const auto bytes = std::as_bytes(std::span(text));
  {
    DurableFile file(path);
    file.write(bytes);
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK(std::filesystem::exists(path.string() + ".partial"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  folder.write("file", "what stood there before");
  DurableFile file(path);
  file.write(bytes);
  file.write(bytes);
  file.commit();
  CHECK(tests::read_text(path) == "texttext");
  CHECK_FALSE(std::filesystem::exists(path.string() + ".partial"));
}

TEST_CASE("a buffer gives back what was appended, in memory or spilled") {
  const TemporaryFolder folder;
  std::string expected;
  SpillingBuffer buffer(folder.path());
  for (int i = 0; i < 40; ++i) {
    const std::string part(static_cast<std::size_t>(i) * 4000, static_cast<char>('a' + i % 26));
    buffer.append(std::as_bytes(std::span(part)));
    expected += part;
  }
  CHECK(buffer.size() == static_cast<std::int64_t>(expected.size()));
  CHECK(std::filesystem::is_empty(folder.path()));
  DurableFile file(folder.path() / "file");
  buffer.copy_to(file);
  file.commit();
  const bool same = tests::read_text(folder.path() / "file") == expected;
  CHECK(same);
}

}  // namespace specdec::traces
