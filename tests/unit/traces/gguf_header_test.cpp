#include "traces/formats/gguf_header.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/gguf_bytes.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::GgufBytes;
using traces::FileError;
using traces::GgufHeader;

namespace {

std::string refusal(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.gguf", content);
  const std::string message = tests::message_of<FileError>([&] { const GgufHeader header(path); });
  return message.substr(std::min(message.size(), path.string().size()));
}

GgufBytes small() {
  return GgufBytes()
      .text("general.architecture", "llama")
      .integer("llama.block_count", 3)
      .integers("per_layer", {5, 6, 7})
      .entry("flag", 7, std::string(1, '\1'))
      .entry("words", 9,
             GgufBytes::number(std::uint32_t{8}) + GgufBytes::number(std::uint64_t{2}) + GgufBytes::counted("a") +
                 GgufBytes::counted("bc"))
      .tensor("f32", {3, 2}, 0, 24)
      .tensor("q4_k", {512, 3}, 12, 864)
      .tensor("mxfp4", {64, 2, 2}, 39, 136);
}

}  // namespace

TEST_CASE("a GGUF header gives values by key and the bytes of each tensor by its type") {
  const tests::TemporaryFolder folder;
  const GgufHeader header(folder.write("x.gguf", small().file()));
  CHECK(header.text("general.architecture") == "llama");
  CHECK(header.integer("llama.block_count") == 3);
  CHECK(header.integers("per_layer") == std::vector<std::int64_t>{5, 6, 7});
  CHECK(header.integers("llama.block_count") == std::vector<std::int64_t>{3});
  CHECK(header.integer("flag") == 1);
  CHECK(header.has("words"));
  CHECK_FALSE(header.integer("missing").has_value());
  CHECK_FALSE(header.text("missing").has_value());
  CHECK(header.integers("missing").empty());
  CHECK_THROWS_WITH(header.integer("general.architecture"), Contains("general.architecture is something else"));
  CHECK_THROWS_WITH(header.integer("per_layer"), Contains("per_layer is an array, but must be an integer"));
  CHECK_THROWS_WITH(header.integers("words"), Contains("words is something else"));
  CHECK_THROWS_WITH(header.text("flag"), Contains("must be a string"));

  REQUIRE(header.tensors().size() == 3);
  CHECK(header.tensors()[0].elements == 6);
  CHECK(header.tensors()[0].bytes == 24);
  CHECK(header.tensors()[1].name == "q4_k");
  CHECK(header.tensors()[1].type == "Q4_K");
  CHECK(header.tensors()[1].elements == 1536);
  CHECK(header.tensors()[1].bytes == 864);
  CHECK(header.tensors()[2].shape == std::vector<std::int64_t>{64, 2, 2});
  CHECK(header.tensors()[2].elements == 256);
  CHECK(header.tensors()[2].bytes == 136);
}

TEST_CASE("a GGUF file is refused wherever it is cut") {
  const std::string whole = small().file();
  const std::size_t end_of_data = whole.size() - (160 - 136);  // the padding of the last tensor may be missing
  CHECK(refusal(whole.substr(0, end_of_data)).empty());
  for (std::size_t size = 0; size < end_of_data; size += size < 400 ? 1 : 97) {
    INFO(size);
    CHECK(refusal(whole.substr(0, size)).size() > 1);
  }
}

TEST_CASE("a GGUF file that claims what it cannot hold is refused before anything is allocated") {
  const std::string magic = "GGUF", version = GgufBytes::number(std::uint32_t{3});
  const std::string none = GgufBytes::number(std::uint64_t{0}), many = GgufBytes::number(std::uint64_t{1} << 60U);
  const std::string one = GgufBytes::number(std::uint64_t{1});
  CHECK_THAT(refusal("GGML" + version + none + none), Contains("magic is \"GGML\""));
  CHECK_THAT(refusal(magic + GgufBytes::number(std::uint32_t{1}) + none + none), Contains("version is 1"));
  CHECK_THAT(refusal(magic + GgufBytes::number(std::uint32_t{3U << 24U}) + none + none), Contains("little-endian"));
  CHECK_THAT(refusal(magic + version + many + none), Contains("number of tensors"));
  CHECK_THAT(refusal(magic + version + none + many), Contains("number of metadata entries"));
  CHECK_THAT(refusal(magic + version + none + one + many + std::string(64, 'x')), Contains("metadata key"));
  const auto with = [&](std::uint32_t type, const std::string& value) {
    return refusal(GgufBytes().entry("key", type, value).file());
  };
  CHECK_THAT(with(13, ""), Contains("type of key is 13"));
  CHECK_THAT(with(8, many), Contains("key is 1152921504606846976 bytes long"));
  CHECK_THAT(with(9, GgufBytes::number(std::uint32_t{0}) + many), Contains("length of key"));
  std::string nested;
  for (int depth = 0; depth < 9; ++depth) nested += GgufBytes::number(std::uint32_t{9}) + one;
  CHECK_THAT(with(9, nested), Contains("arrays within arrays"));
  CHECK_THAT(refusal(GgufBytes().integer("key", 1).integer("key", 2).file()), Contains("key for the second time"));
  CHECK_THAT(refusal(GgufBytes().integer("general.alignment", 7).file()), Contains("general.alignment is 7"));
}

TEST_CASE("a tensor of a GGUF file is refused where its shape, type or place cannot be") {
  const auto tensor = [](const std::vector<std::uint64_t>& shape, std::uint32_t type, std::uint64_t bytes) {
    return refusal(GgufBytes().tensor("t", shape, type, bytes).file());
  };
  CHECK(tensor({32}, 8, 34).empty());
  CHECK_THAT(tensor({}, 0, 0), Contains("dimensions of t is 0"));
  CHECK_THAT(tensor({1, 1, 1, 1, 1}, 0, 4), Contains("dimensions of t is 5"));
  CHECK_THAT(tensor({0}, 0, 0), Contains("shape of t is 0"));
  CHECK_THAT(tensor({33}, 8, 68), Contains("33 columns, but must be a multiple of 32"));
  CHECK_THAT(tensor({1}, 4, 4), Contains("type of t is 4"));
  CHECK_THAT(tensor({std::uint64_t{1} << 40U, std::uint64_t{1} << 40U}, 0, 4), Contains("larger than the file"));
  CHECK_THAT(tensor({20}, 0, 4), Contains("file is 96 bytes long"));
  std::string moved = GgufBytes().tensor("a", {8}, 0, 32).tensor("b", {8}, 0, 32).file();
  const std::size_t place = moved.find("b", 60) + 1 + 4 + 8 + 4;
  moved[place] = 64;
  CHECK_THAT(refusal(moved), Contains("offset of b is 64, but must be 32"));
}
