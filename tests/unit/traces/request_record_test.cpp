#include "tests/support/source_dir.hpp"
#include "traces/formats/recording_formats.hpp"

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "tests/support/trace_reading.hpp"
#include "traces/open_trace.hpp"

using namespace specdec;

namespace {

const std::string header = R"({"format":"specdec-record","version":1})";

std::string refusal(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("r.jsonl", content);
  return tests::refusal_of(folder.path(), [&] { return traces::open_request_record(path); });
}

std::string refused_request(const std::string& line) { return refusal(header + "\n" + line + "\n"); }

}  // namespace

TEST_CASE("a record of requests gives two numbers and two ranks a token, by request and task") {
  const std::vector<std::filesystem::path> files = {tests::source_dir() + "/traces/samples/json/record.jsonl"};
  const auto source = traces::open_trace(files);
  CHECK(source->format() == "specdec-record");
  CHECK(source->files() == files);
  const traces::TraceMetadata& metadata = source->metadata();
  CHECK(metadata.target_model == "meta/big");
  CHECK(metadata.draft_model == "meta/small");
  CHECK(metadata.engine == "vllm");
  CHECK(metadata.temperature == 1);
  CHECK(metadata.logprob_space == traces::LogprobSpace::raw);
  CHECK(metadata.path == traces::TextSource::target);
  CHECK(metadata.other.at("seed") == "1");
  const tests::WholeTrace trace(*source);
  CHECK(trace.sequence == std::vector<std::int64_t>{0, 0, 0, 1});
  CHECK(trace.place == std::vector<std::int64_t>{0, 1, 2, 0});
  CHECK(trace.token == std::vector<std::int32_t>{16289, 28793, 5, 7});
  CHECK(trace.target_logprob == std::vector<float>{-0.25F, -3.5F, -INFINITY, -1.5F});
  CHECK(trace.draft_logprob == std::vector<float>{-0.75F, -9.25F, -0.125F, -INFINITY});
  CHECK(trace.target_rank == std::vector<std::int32_t>{1, 7, 900, 2});
  CHECK(trace.draft_rank == std::vector<std::int32_t>{2, 90, 1, 0});
  CHECK(trace.task == std::vector<std::int32_t>{0, 0, 0, 1});
  CHECK(metadata.task_names == std::vector<std::string>{"prose", "code"});
  const auto again = traces::open_trace(files);
  traces::PositionBatch batch;
  REQUIRE(again->read(batch));
  CHECK(std::string(again->refusal(3, traces::Role::draft, "1", "2").what()) ==
        files.front().string() + ":3: draft.logprobs is 1, but must be 2");
}

TEST_CASE("a record of many requests comes in several batches that go on where the one before ended") {
  const tests::TemporaryFolder folder;
  std::string content = header + "\n";
  const int requests = 15000;
  for (int i = 0; i < requests; ++i) {
    content +=
        R"({"token_ids":[1,2,3,4,5],"target":{"logprobs":[-1,-1,-1,-1,-1]},"draft":{"logprobs":[-2,-2,-2,-2,-2]}})"
        "\n";
  }
  const auto source = traces::open_request_record(folder.write("r.jsonl", content));
  const tests::WholeTrace trace(*source);
  CHECK(trace.sizes.size() == 2);
  CHECK(trace.sequence.size() == 5 * requests);
  CHECK(trace.sequence.back() == requests - 1);
  CHECK(trace.target_rank == std::vector<std::int32_t>(5 * requests, 0));
  CHECK(trace.task.empty());
}

TEST_CASE("a record that is not what it must be is refused with its line and key") {
  CHECK(refusal("") == "r.jsonl: file is empty, but must be a first line with format and version");
  CHECK(refusal("[1]") == "r.jsonl:1: line is 1, but must be an object");
  CHECK(refusal("{}") == "r.jsonl:1: format is missing, but must be given");
  CHECK(refusal(R"({"format":"x"})") == "r.jsonl:1: format is \"x\", but must be specdec-record");
  CHECK(refusal(R"({"format":"specdec-record","version":2})") == "r.jsonl:1: version is 2, but must be 1");
  CHECK(refusal(R"({"format":"specdec-record","version":1,"path":"x"})") ==
        "r.jsonl: metadata path is \"x\", but must be one of target, other, unknown");
  CHECK(refused_request("7") == "r.jsonl:2: line is 7, but must be an object");
  CHECK(refused_request("{}") == "r.jsonl:2: token_ids is missing, but must be given");
  CHECK(refused_request(R"({"token_ids":[1,-1]})") ==
        "r.jsonl:2: token_ids[1] is -1, but must be a token id, an integer in [0, 2147483647]");
  CHECK(refused_request(R"({"token_ids":[1]})") == "r.jsonl:2: target is missing, but must be given");
  CHECK(refused_request(R"({"token_ids":[1],"target":{}})") ==
        "r.jsonl:2: target.logprobs is missing, but must be given");
  CHECK(refused_request(R"({"token_ids":[1],"target":{"logprobs":[0.5]}})") ==
        "r.jsonl:2: target.logprobs[0] is 0.5, but must be a log-probability, a number up to 0");
  CHECK(refused_request(R"({"token_ids":[1],"target":{"logprobs":[NaN]}})") ==
        "r.jsonl:2: target.logprobs[0] is \"NaN\", but must be a log-probability, a number up to 0");
  CHECK(refused_request(R"({"token_ids":[1],"target":{"logprobs":[-1,-2]}})") ==
        "r.jsonl:2: target.logprobs is 2 long, but must be 1 long, as token_ids is");
  CHECK(refused_request(R"({"token_ids":[1],"target":{"logprobs":[-1],"ranks":[]}})") ==
        "r.jsonl:2: target.ranks is 0 long, but must be 1 long, as token_ids is");
  CHECK(refused_request(R"({"token_ids":[1],"target":{"logprobs":[-1],"ranks":[1.5]}})") ==
        "r.jsonl:2: target.ranks[0] is 1.5, but must be a rank, an integer from 1 on, or 0 where it is unknown");
  CHECK(refused_request(R"({"task":5,"token_ids":[],"target":{"logprobs":[]},"draft":{"logprobs":[]}})") ==
        "r.jsonl:2: task is 5, but must be a string");
  CHECK(refused_request(R"({"token_ids":[1],"target":{"log)") ==
        "r.jsonl:2: the JSON is cut off at column 32, but must be whole");
}
