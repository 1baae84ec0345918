#include <algorithm>
#include <fstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/formats/safetensors_writer.hpp"
#include "traces/trace_reader.hpp"

namespace specdec::traces {
namespace {

/// Memory that no file backs, of this process.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  }
  return 0;
}

/// A trace whose data are one hole in the file: zeros that take no place on the disk.
std::filesystem::path write_sparse(const std::filesystem::path& path, const std::vector<TensorHeader>& tensors) {
  const std::string header = safetensors_header(tensors, {});
  std::ofstream(path, std::ios::binary) << header;
  std::uintmax_t size = header.size();
  for (const TensorHeader& tensor : tensors) {
    auto bytes = static_cast<std::uintmax_t>(size_of(tensor.type));
    for (const std::int64_t n : tensor.shape) bytes *= static_cast<std::uintmax_t>(n);
    size += bytes;
  }
  std::filesystem::resize_file(path, size);
  return path;
}

}  // namespace

TEST_CASE("memory use does not depend on the size of a trace") {
  constexpr std::int64_t allowed = std::int64_t{40} << 20U;
  const tests::TemporaryFolder folder;
  const std::int64_t before = anonymous_bytes();
  REQUIRE(before > 0);
  std::int64_t positions = 0;
  std::int64_t most = 0;
  PositionBatch batch;

  SECTION("whole rows of 20 GB") {
    const auto path = write_sparse(
        folder.path() / "full.safetensors",
        {{"p.logits", ElementType::f32, {20000, 131072}}, {"q.logits", ElementType::f32, {20000, 131072}}});
    const auto reader = read_trace(path);
    while (reader->read(batch)) {
      positions += batch.size;
      most = std::max(most, anonymous_bytes());
      CHECK(batch.target_rows.bytes.size() + batch.draft_rows.bytes.size() <= std::size_t{64} << 20U);
    }
    CHECK(positions == 20000);
  }
  SECTION("columns that are converted, 100 MB") {
    const auto path =
        write_sparse(folder.path() / "scalar.safetensors", {{"p.token_logprob", ElementType::f64, {5000000}},
                                                            {"q.token_logprob", ElementType::f64, {5000000}},
                                                            {"token", ElementType::i64, {5000000}}});
    const auto reader = read_trace(path);
    while (reader->read(batch)) {
      positions += batch.size;
      most = std::max(most, anonymous_bytes());
    }
    CHECK(positions == 5000000);
  }
  INFO("anonymous memory before: " << before << ", most: " << most);
  CHECK(most - before <= allowed);
}

}  // namespace specdec::traces
