#include "traces/check_trace.hpp"

#include <algorithm>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "traces/trace_reader.hpp"

namespace specdec::traces {
namespace {

using tests::floats;
using tests::ints;
using tests::longs;
using tests::OwnedTensor;
using tests::TemporaryFolder;
using tests::write_tensors;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The findings of checking one file: field, found and expected of each.
std::vector<std::string> findings(const std::vector<OwnedTensor>& tensors,
                                  const std::map<std::string, std::string>& metadata = {}) {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder.path() / "t.safetensors", tensors, metadata);
  const TraceCheck check = check_trace(std::vector{path});
  CHECK(check.count == static_cast<std::int64_t>(check.findings.size()));
  std::vector<std::string> lines;
  for (const FileError& error : check.findings) {
    CHECK(error.path() == path);
    lines.push_back(error.field() + " is " + error.found() + ", but must be " + error.expected());
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("rows of probabilities that are no distributions are found, each with what is wrong") {
  CHECK(findings({floats("p.probs", {5, 2}, {0.5F, 0.5F, 0.5F, 0.6F, -0.1F, 1.1F, nan, 1, 0, 1}),
                  floats("q.probs", {5, 2}, {0.5F, 0.5F, 1, 0, 0.5F, 0.499999F, 1, infinity, 0, 0})}) ==
        Lines{"p.probs row 1 is summing to 1.10000002, but must be summing to 1 within 1e-05",
              "p.probs row 2 is -0.1 in column 0, but must be of probabilities, in [0, 1]",
              "p.probs row 3 is nan in column 0, but must be of probabilities, in [0, 1]",
              "q.probs row 3 is inf in column 1, but must be of probabilities, in [0, 1]",
              "q.probs row 4 is summing to 0, but must be summing to 1 within 1e-05"});
}

TEST_CASE("rows of log-probabilities and logits are checked in their own way") {
  CHECK(findings({floats("p.logprobs", {3, 2}, {-0.6931472F, -0.6931472F, 0, -9999, -1, -1}),
                  floats("q.logits", {3, 2}, {1000, -infinity, -infinity, -infinity, infinity, 0})}) ==
        Lines{"q.logits row 1 is -inf throughout, but must be of logits, one of which is finite",
              "p.logprobs row 2 is summing to 0.735758882, but must be summing to 1 within 1e-05",
              "q.logits row 2 is inf in column 0, but must be of logits, finite or -inf"});
  CHECK(findings({floats("p.logprobs", {1, 2}, {-1, -0.4F}), floats("q.logits", {1, 2}, {0, 0})},
                 {{"p.sum_tolerance", "0.05"}})
            .empty());
}

TEST_CASE("top-k rows may miss mass unless the tail is known") {
  CHECK(findings({ints("p.topk_ids", {3, 2}, {0, 1, 0, 1, 0, 1}),
                  floats("p.topk_logprobs", {3, 2}, {-1, -2, -0.1F, -0.1F, -1, -2}),
                  floats("p.tail_logprob", {3}, {nan, nan, -0.5F}), ints("q.topk_ids", {3, 1}, {1, 2, 3}),
                  floats("q.topk_logprobs", {3, 1}, {-0.1F, -1, -9999})}) ==
        Lines{"p.topk_logprobs row 1 is summing to 1.80967483, but must be summing to at most 1",
              "p.topk_logprobs row 2 is summing to 1.10974538, but must be summing to 1 within 0.01"});
}

TEST_CASE("checking goes through all shards and keeps as many findings as asked for") {
  const TemporaryFolder folder;
  const std::vector<float> bad(30, nan), good(30, -1);
  write_tensors(folder.path() / "a.safetensors",
                {floats("p.token_logprob", {30}, bad), floats("q.token_logprob", {30}, good)});
  write_tensors(folder.path() / "b.safetensors",
                {floats("p.token_logprob", {30}, good), floats("q.token_logprob", {29}, std::vector<float>(29, -1))});
  write_tensors(folder.path() / "c.safetensors",
                {floats("p.token_logprob", {30}, good), floats("q.token_logprob", {30}, bad)},
                {{"temperature", "hot"}});
  folder.write("notes.txt", "");
  const TraceCheck check = check_trace(std::vector{folder.path()}, {}, 5);
  // The stray, b's shapes, c's temperature, a's values.
  CHECK(check.count == 33);
  REQUIRE(check.findings.size() == 5);
  CHECK(check.findings[0].found() == "notes.txt");
  CHECK(check.findings[1].field() == "q.token_logprob.shape");
  CHECK(check.findings[2].field() == "metadata temperature");
  CHECK(check.findings[3].field() == "p.token_logprob row 0");
  CHECK(check.positions == 30);

  const auto unknown = folder.write("unknown", "what is this");
  CHECK(check_trace(std::vector{unknown}).count == 1);
}

TEST_CASE("the description counts tiers, sequences, tasks and columns") {
  const TemporaryFolder folder;
  write_tensors(
      folder.path() / "a.safetensors",
      {floats("p.token_logprob", {3}, {-1, -1, -1}), floats("q.token_logprob", {3, 2}, {-1, nan, -1, -1, -1, nan}),
       longs("seq", {3}, {0, 0, 1}), longs("pos", {3}, {0, 1, 0}), ints("task", {3}, {1, 1, -1})},
      {{"tasks", R"(["a","b"])"}});
  write_tensors(folder.path() / "b.safetensors",
                {floats("p.probs", {2, 2}, {1, 0, 1, 0}), floats("q.logits", {2, 1}, {1, 0}),
                 ints("q.vocab_map", {1}, {1}), longs("seq", {2}, {1, 2}), longs("pos", {2}, {1, 0})});
  const auto reader = read_trace(folder.path());
  const TraceDescription is = describe_trace(*reader);
  CHECK(is.format == "specdec-trace");
  CHECK(is.positions == 5);
  CHECK(is.sequences == 3);
  CHECK(is.shortest_sequence == 1);
  CHECK(is.longest_sequence == 2);
  REQUIRE(is.tiers.size() == 2);
  CHECK(is.tiers[0].tier == Tier::scalar);
  CHECK(is.tiers[0].positions == 3);
  CHECK(is.tiers[0].sequences == 2);
  CHECK(is.tiers[1].tier == Tier::full);
  CHECK(is.tiers[1].sequences == 2);
  CHECK(is.tasks == std::map<std::int32_t, std::int64_t>{{-1, 3}, {1, 2}});
  CHECK(is.columns.at("q.token_logprob") == "F32 [positions, 2]");
  CHECK(is.columns.at("p.probs") == "F32 [positions, 2]");
  CHECK(is.columns.at("q.vocab_map") == "I32 [1]");
  CHECK(is.columns.at("seq") == "I64 [positions]");
  REQUIRE(is.files.size() == 2);
  CHECK(is.files[0].bytes == static_cast<std::int64_t>(std::filesystem::file_size(folder.path() / "a.safetensors")));
  CHECK(is.metadata.vocab_size == 2);
}

}  // namespace specdec::traces
