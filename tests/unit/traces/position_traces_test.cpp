#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/trace_reading.hpp"
#include "traces/prompt_id.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::WholeTrace;
using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

namespace {

const std::string example =
    R"({"prompt_token_ids":[1,15],"generated_token_ids":[7,9,3],"acc_eagle":{"acc_len":[3,2,1]}})";

WholeTrace read(const std::string& content, const std::string& draft = "") {
  const tests::TemporaryFolder folder;
  return WholeTrace(*traces::open_position_traces(folder.write("x.jsonl", content), {{}, {}, draft}));
}

std::string refusal(const std::string& content, const std::string& draft = "") {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.jsonl", content);
  return tests::refusal_of(folder.path(), [&] { return traces::open_position_traces(path, {{}, {}, draft}); });
}

}  // namespace

TEST_CASE("the header's example gives three places of one sequence") {
  const tests::TemporaryFolder folder;
  const auto source = traces::open_position_traces(folder.write("x.jsonl", example));
  CHECK(source->format() == "position traces");
  CHECK(source->metadata().draft_kind == "eagle");
  const WholeTrace all(*source);
  CHECK(all.tiers == std::vector{traces::Tier::accepted_length});
  CHECK(all.accepted_length == Ints{3, 2, 1});
  CHECK(all.token == Ints{7, 9, 3});
  CHECK(all.sequence == Longs{0, 0, 0});
  CHECK(all.place == Longs{0, 1, 2});
  CHECK(all.task.empty());
}

TEST_CASE("one of several drafts is read by its name, with or without acc_") {
  const std::string both = R"({"acc_eagle":{"acc_len":[2]},"acc_mtp":{"acc_len":[5,1]},"acc_note":"x"})";
  CHECK(read(both, "mtp").accepted_length == Ints{5, 1});
  CHECK(read(both, "acc_eagle").accepted_length == Ints{2});
  CHECK(refusal(both) == "x.jsonl:1: acc_NAME is acc_eagle, acc_mtp, but must be one of them (draft_array says which)");
  CHECK(refusal(both, "medusa") == "x.jsonl:1: acc_NAME is acc_eagle, acc_mtp, but must be medusa, as asked for");
}

TEST_CASE("tokens and tasks are optional, and sequences without places are passed over") {
  const WholeTrace all = read(R"({"acc_x":{"acc_len":[1,2]},"task":"code"}
{"acc_x":{"acc_len":[]},"generated_token_ids":[]}
{"acc_x":{"acc_len":[4]},"generated_token_ids":[5,6],"category":"prose"})");
  CHECK(all.accepted_length == Ints{1, 2, 4});
  CHECK(all.sequence == Longs{0, 0, 1});
  CHECK(all.token == Ints{-1, -1, 5});
  CHECK(all.task == Ints{0, 0, 1});
}

TEST_CASE("lines of one prompt say so") {
  const tests::TemporaryFolder folder;
  const auto source = traces::open_position_traces(folder.write("x.jsonl",
                                                                R"({"prompt":"a b","acc_x":{"acc_len":[1,2]}}
{"prompt_token_ids":[ 1, 15 ],"acc_x":{"acc_len":[3]}}
{"prompt_token_ids":[1,15],"prompt":null,"acc_x":{"acc_len":[3]}}
{"prompt":7,"acc_x":{"acc_len":[3]}}
{"acc_x":{"acc_len":[3]}})"));
  traces::PositionBatch batch;
  REQUIRE(source->read(batch));
  REQUIRE(batch.prompt.size() == 6);
  CHECK(batch.prompt[0] == traces::prompt_id("a b"));
  CHECK(batch.prompt[1] == batch.prompt[0]);
  CHECK(batch.prompt[2] == batch.prompt[3]);
  CHECK(batch.prompt[2] != batch.prompt[0]);
  CHECK(batch.prompt[4] == 7);
  CHECK(batch.prompt[5] == traces::no_prompt);
}

TEST_CASE("long sequences go on in the next batch") {
  std::string lengths = "1";
  for (int i = 1; i < 70000; ++i) lengths += fmt::format(",{}", i % 5 + 1);
  const WholeTrace all = read(fmt::format(R"({{"acc_x":{{"acc_len":[{}]}}}})", lengths));
  CHECK(all.sizes == Longs{65536, 70000 - 65536});
  CHECK(all.place[69999] == 69999);
  CHECK(all.sequence[69999] == 0);
  CHECK(all.accepted_length[69999] == 5);
}

TEST_CASE("lengths behind the end of the tokens are left out, and a note counts them") {
  const tests::TemporaryFolder folder;
  const auto file = folder.write("x.jsonl", R"({"acc_x":{"acc_len":[2,3,1,1]},"generated_token_ids":[4,5]}
{"acc_x":{"acc_len":[1]},"generated_token_ids":[6]})");
  const auto source = traces::open_position_traces(file);
  const WholeTrace all(*source);
  CHECK(all.accepted_length == Ints{2, 3, 1});
  CHECK(all.token == Ints{4, 5, 6});
  REQUIRE(source->notes().size() == 1);
  CHECK(source->notes()[0].code == "lengths_behind_the_end");
  CHECK(
      source->notes()[0].message ==
      "acc_x.acc_len goes on behind the end of generated_token_ids in 1 of the sequences; the 2 lengths there are left "
      "out");
}

TEST_CASE("what is no position trace is refused by line and key") {
  CHECK(refusal("") == "x.jsonl: file is empty, but must be an object for each sequence");
  CHECK_THAT(refusal("[3]"), Contains("x.jsonl:1: line is 3, but must be an object"));
  CHECK(refusal(R"({"acc_x":{}})") == "x.jsonl:1: acc_NAME is missing, but must be an object that holds acc_len");
  CHECK(refusal(example + "\n{}") == "x.jsonl:2: acc_eagle.acc_len is missing, but must be an array of integers");
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":7}})"), Contains("acc_x.acc_len is 7, but must be an array of integers"));
  CHECK(refusal(R"({"acc_x":{"acc_len":[1,0]}})") ==
        "x.jsonl:1: acc_x.acc_len[1] is 0, but must be an integer in [1, 2147483647]");
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":[1.5]}})"), Contains("acc_x.acc_len[0] is 1.5"));
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":[1]},"generated_token_ids":[-1]})"),
             Contains("generated_token_ids[0] is -1, but must be an integer in [0, 2147483647]"));
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":[1]},"task":3})"), Contains("task is 3, but must be a string"));
  CHECK_THAT(refusal(R"({"acc_x":{"acc_len":[1]},"prompt":{}})"),
             Contains("prompt is {}, but must be a prompt that is not empty"));
}

TEST_CASE("position traces are told by their first line") {
  CHECK(traces::is_position_traces(example));
  CHECK_FALSE(traces::is_position_traces(R"({"acc_len":[1]})"));
  CHECK_FALSE(traces::is_position_traces(R"({"acceptance":1})"));
  CHECK_FALSE(traces::is_position_traces(""));
  const std::string long_prompt = "{\"prompt_token_ids\":[" + std::string(65536, '1');
  CHECK(traces::is_position_traces(long_prompt));
  CHECK_FALSE(traces::is_position_traces(long_prompt + "]}\n"));
}
