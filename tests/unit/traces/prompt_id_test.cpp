#include "traces/prompt_id.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "tests/support/trace_reading.hpp"
#include "traces/batch_slice.hpp"
#include "traces/check_trace.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/open_trace.hpp"
#include "traces/trace_reader.hpp"
#include "traces/trace_writer.hpp"

namespace specdec::traces {
namespace {

using Longs = std::vector<std::int64_t>;

Longs prompts_of(PositionSource& source) {
  Longs prompts;
  for (PositionBatch batch; source.read(batch);)
    prompts.insert(prompts.end(), batch.prompt.begin(), batch.prompt.end());
  return prompts;
}

/// Three texts of two prompts.
std::filesystem::path written(const tests::TemporaryFolder& folder, const Longs& prompt = {8, 8, -5, 8}) {
  const Longs sequence = {0, 0, 1, 2};
  const Longs place = {0, 1, 0, 0};
  const std::vector<float> logprob = {-1, -1, -1, -1};
  PositionBatch batch;
  batch.size = 4;
  batch.sequence = sequence;
  batch.place = place;
  batch.prompt = prompt;
  batch.target_token_logprob = logprob;
  batch.draft_token_logprob = logprob;
  const auto path = folder.path() / "t.safetensors";
  TraceWriter writer(path, {});
  writer.write(batch);
  writer.finish();
  return path;
}

}  // namespace

TEST_CASE("a prompt's number is the integer that it is named by, or a hash beyond all that people count") {
  CHECK(prompt_id("17") == 17);
  CHECK(prompt_id("-3") == -3);
  CHECK(prompt_id("") == no_prompt);
  CHECK(prompt_id("17 ") >= std::int64_t{1} << 62);
  // FNV-1a of "a" is af63dc4c8601ec8c; MurmurHash3's finaliser of that, by Python's integers.
  CHECK(prompt_id("a") == 4801586351000440411);
  std::set<std::int64_t> ids;
  for (int i = 0; i < 10'000; ++i) ids.insert(prompt_id("question " + std::to_string(i)));
  CHECK(ids.size() == 10'000);
}

TEST_CASE("prompts come back from a trace as they were written, also from a part of it") {
  const tests::TemporaryFolder folder;
  const auto reader = read_trace(written(folder));
  PositionBatch batch;
  REQUIRE(reader->read(batch));
  CHECK(Longs(batch.prompt.begin(), batch.prompt.end()) == Longs{8, 8, -5, 8});
  const PositionBatch slice = slice_of(batch, 2, 2);
  CHECK(Longs(slice.prompt.begin(), slice.prompt.end()) == Longs{-5, 8});
  const auto again = read_trace(folder.path() / "t.safetensors");
  const TraceDescription description = describe_trace(*again);
  CHECK(description.prompts == 2);
  CHECK(description.columns.at("prompt") == "I64 [positions]");
}

TEST_CASE("a sequence that changes its prompt is refused") {
  const tests::TemporaryFolder folder;
  const auto reader = read_trace(written(folder, {8, 9, -5, 8}));
  PositionBatch batch;
  CHECK_THROWS_WITH(reader->read(batch),
                    Catch::Matchers::Contains("prompt row 1 is 9, but must be 8, as before it in the sequence"));
  const auto csv = folder.write("x.csv", "seq,prompt,p,q\n1,a,0.5,0.5\n1,b,0.5,0.5\n");
  const auto source = open_token_pairs_csv(csv, {});
  CHECK_THROWS_WITH(source->read(batch),
                    Catch::Matchers::Contains("prompt is b, but must be the same for all rows of a sequence"));
}

TEST_CASE("text formats name prompts by integers, strings or the prompt itself") {
  const tests::TemporaryFolder folder;
  const auto csv = folder.write("x.csv", "seq,prompt,p,q\n1,12,0.5,0.5\n2,abc,0.5,0.5\n3,,0.5,0.5\n");
  CHECK(prompts_of(*open_token_pairs_csv(csv, {})) == Longs{12, prompt_id("abc"), no_prompt});
  const auto jsonl = folder.write("x.jsonl", R"({"seq":1,"prompt":12,"p":[0.5,0.5],"q":[0.5,0.5]}
{"seq":2,"prompt":[1, 2],"p":[0.5],"q":[0.5]}
{"seq":3,"prompt":[{"role":"user"}],"p":[0.5],"q":[0.5]}
{"seq":4,"prompt":null,"p":[0.5],"q":[0.5]})");
  CHECK(prompts_of(*open_token_pairs_jsonl(jsonl, {})) ==
        Longs{12, 12, prompt_id("[1,2]"), prompt_id(R"([{"role":"user"}])"), no_prompt});
  const auto record = folder.write("r.jsonl", R"({"format":"specdec-record","version":1}
{"prompt":"abc","token_ids":[1],"target":{"logprobs":[-1]},"draft":{"logprobs":[-1]}}
{"prompt":4,"token_ids":[1],"target":{"logprobs":[-1]},"draft":{"logprobs":[-1]}}
{"token_ids":[1],"target":{"logprobs":[-1]},"draft":{"logprobs":[-1]}})");
  CHECK(prompts_of(*open_request_record(record)) == Longs{prompt_id("abc"), 4, no_prompt});
}

}  // namespace specdec::traces
