#include "traces/formats/safetensors.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using traces::ElementType;
using traces::FileError;
using traces::SafetensorsFile;

namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

std::string refusal(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.safetensors", content);
  const std::string message = tests::message_of<FileError>([&] { SafetensorsFile file(path); });
  const std::string prefix = path.string() + ": ";
  CHECK(message.starts_with(prefix));
  return message.substr(std::min(message.size(), prefix.size()));
}

}  // namespace

TEST_CASE("tensors come sorted by offset with name, type, shape and bytes, and metadata beside them") {
  const tests::TemporaryFolder folder;
  const auto path = folder.write(
      "x.safetensors",
      file_of(
          R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]},"__metadata__":{"format":"pt"},)"
          R"("a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},"s":{"dtype":"I64","shape":[],"data_offsets":[7,15]},)"
          R"("e":{"dtype":"F32","shape":[0,9],"data_offsets":[15,15]}}  )",
          15));
  const SafetensorsFile file(path);
  REQUIRE(file.tensors().size() == 4);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[1].name == "b");
  CHECK(file.find("a")->type == ElementType::f16);
  CHECK(file.find("a")->shape == std::vector<std::int64_t>{2, 1});
  CHECK(file.find("b")->bytes[2] == std::byte{6});
  CHECK(file.find("s")->elements() == 1);
  CHECK(file.find("e")->elements() == 0);
  CHECK(file.find("missing") == nullptr);
  CHECK(file.metadata().at("format") == "pt");
}

TEST_CASE("f32, f16 and bf16 are read as floats from any offset, other types are refused") {
  // 1.5 and -2 in f32; 1 and -0.5 in f16 (0x3c00, 0xb800); 3 in bf16 (0x4040); one byte in front, so nothing is
  // aligned.
  std::string content = file_of(R"({"p":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                R"("f":{"dtype":"F32","shape":[2],"data_offsets":[1,9]},)"
                                R"("h":{"dtype":"F16","shape":[2],"data_offsets":[9,13]},)"
                                R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[13,15]}})",
                                0);
  const std::array<unsigned char, 15> data = {0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0, 0, 0x3c, 0, 0xb8, 0x40, 0x40};
  content.append(reinterpret_cast<const char*>(data.data()), data.size());
  const tests::TemporaryFolder folder;
  const SafetensorsFile file(folder.write("x.safetensors", content));
  std::vector<float> two(2);
  std::vector<float> one(1);
  traces::read_floats(*file.find("f"), 0, two);
  CHECK(two == std::vector<float>{1.5F, -2});
  traces::read_floats(*file.find("h"), 0, two);
  CHECK(two == std::vector<float>{1, -0.5F});
  traces::read_floats(*file.find("h"), 1, one);
  CHECK(one[0] == -0.5F);
  traces::read_floats(*file.find("b"), 0, one);
  CHECK(one[0] == 3);
  CHECK_THROWS_AS(traces::read_floats(*file.find("p"), 0, one), std::invalid_argument);
  CHECK_THROWS_AS(traces::read_floats(*file.find("f"), 1, two), std::domain_error);
  CHECK_THROWS_AS(traces::read_floats(*file.find("f"), -1, one), std::domain_error);
}

TEST_CASE("a file that does not exist or is a folder is refused by name") {
  const tests::TemporaryFolder folder;
  CHECK_THAT(tests::message_of<FileError>([&] { SafetensorsFile file(folder.path() / "no.safetensors"); }),
             Contains("no.safetensors: no such file"));
  CHECK_THAT(tests::message_of<FileError>([&] { SafetensorsFile file(folder.path()); }),
             Contains("not a regular file"));
}

TEST_CASE("a header length that the file cannot hold is refused before anything is read") {
  CHECK(refusal("") == "byte 0: file size is 0 bytes, but must be at least 8 bytes for the header's length");
  CHECK(refusal(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10)) ==
        "byte 0: header length is 9223372036854775807, but must be in [2, 2] in a file of 10 bytes");
  CHECK(refusal(file_of("", 4)) == "byte 0: header length is 0, but must be in [2, 4] in a file of 12 bytes");
}

TEST_CASE("a header that is not the described JSON is refused with what is wrong") {
  CHECK(refusal(file_of("[]", 0)) == "byte 8: header's first byte is 0x5b, but must be '{'");
  CHECK_THAT(refusal(file_of("{\"a\":", 0)), Contains("header is not JSON from there on, but must be JSON"));
  CHECK_THAT(refusal(file_of("{\"a\": 1e999}", 0)),
             Contains("header is holding a number beyond the range of double, but must be JSON with numbers in range"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"dtype":"I8"}})", 0)),
             Contains("header is a.dtype twice, but must be every key once in its object"));
  CHECK_THAT(refusal(file_of(R"({"a":1})", 0)), Contains("a is 1, but must be an object with dtype, shape"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4)), Contains("a.data_offsets is missing"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1)),
             Contains(R"(a.dtype is "F8_E4M3", but must be one of F64, F32)"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1)),
             Contains("a.shape is [-1], but must be an array of sizes"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1)),
             Contains("a.shape is [1.5]"));
  CHECK_THAT(refusal(file_of(R"({"__metadata__":{"a":1}})", 0)), Contains("__metadata__.a is 1, but must be a string"));
}

TEST_CASE("a shape whose size overflows or exceeds the file is refused") {
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4)),
             Contains("a.shape is [4611686018427387904,4], but must be no more than the file's"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4)),
             Contains("a.shape is [18446744073709551615]"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)),
             Contains("a is 4 bytes long, but must be 8 bytes long, as F32 [2] is"));
}

TEST_CASE("offsets that run past the end, backwards, or over another tensor are refused, and so is a truncated file") {
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3)),
             Contains("file size is 64 bytes, but must be at least 65 bytes, as its header says: the file is cut off"));
  // Cut off within the first of two tensors, whose shape alone needs more than what is left.
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"F32","shape":[64],"data_offsets":[0,256]},)"
                             R"("b":{"dtype":"U8","shape":[9],"data_offsets":[256,265]}})",
                             10)),
             Contains("file size is 131 bytes, but must be at least 386 bytes"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551615]}})", 4)),
             Contains("but must be at least 18446744073709551615 bytes of data, as its header says"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4)),
             Contains("a.data_offsets is [4,0]"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                             4)),
             Contains("begin of b is data offset 2, but must be 3, where the tensor before it ends"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2)),
             Contains("begin of a is data offset 1, but must be 0"));
  CHECK_THAT(refusal(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2)),
             Contains("end of the last tensor is byte 62, but must be the end of the file, 63"));
}
