#include "traces/formats/request_trace.hpp"
#include "tests/support/source_dir.hpp"

#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::EndsWith;

namespace {

traces::RequestTrace sample(const std::string& name) {
  return traces::read_request_trace(tests::source_dir() + "/traces/samples/requests/" + name);
}

traces::RequestTrace read(const std::string& content) {
  const tests::TemporaryFolder folder;
  return traces::read_request_trace(folder.write("requests", content));
}

std::string refusal(const std::string& content) {
  return tests::message_of<traces::FileError>([&] { read(content); });
}

const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
const std::string table = "seconds,prompt_tokens,output_tokens\n";
std::string mooncake(const std::string& time, const std::string& prompt, const std::string& output) {
  return R"({"timestamp": )" + time + R"(, "input_length": )" + prompt + R"(, "output_length": )" + output + "}\n";
}

}  // namespace

TEST_CASE("request traces are read as they were published") {
  const traces::RequestTrace code = sample("azure_2023.csv");
  CHECK(code.format == "azure");
  REQUIRE(code.requests.size() == 12);
  CHECK(code.requests[0].seconds == 0);
  CHECK(code.requests[0].prompt_tokens == 4808);
  CHECK(code.requests[0].output_tokens == 10);
  CHECK(code.requests[1].seconds == Approx(0.052).epsilon(1e-9));
  CHECK(code.requests[11].seconds == Approx(65.3790470 - 63.9799600).epsilon(1e-9));

  const traces::RequestTrace year = sample("azure_2024.csv");
  REQUIRE(year.requests.size() == 4);
  CHECK(year.requests[2].seconds == Approx(1 - 0.0125).epsilon(1e-12));

  const traces::RequestTrace conversation = sample("mooncake.jsonl");
  CHECK(conversation.format == "mooncake");
  REQUIRE(conversation.requests.size() == 8);
  CHECK(conversation.requests[7].seconds == 5.999);
  CHECK(conversation.requests[7].prompt_tokens == 5710);
  CHECK(conversation.requests[7].output_tokens == 745);

  const traces::RequestTrace own = sample("table.csv");
  CHECK(own.format == "request table");
  CHECK(own.requests[3].seconds == 1.5);
}

TEST_CASE("request traces may have quotes, CRLF, a byte order mark, other orders of columns, and begin at any time") {
  const auto same = [](const std::string& content) {
    const traces::RequestTrace trace = read(content);
    REQUIRE(trace.requests.size() == 2);
    CHECK(trace.requests[0].seconds == 0);
    CHECK(trace.requests[1].seconds == Approx(0.5).epsilon(1e-12));
    CHECK(trace.requests[1].prompt_tokens == 7);
    CHECK(trace.requests[1].output_tokens == 3);
  };
  same("\xef\xbb\xbf" + table + "1000,5,2\n1000.5,7,3");
  same("output_tokens;seconds;prompt_tokens\r\n2;\"0\";5\r\n\r\n3;0.5;7\r\n");
  same("TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-12-31 23:59:59.7500000,5,2\r\n2024-01-01 00:00:00.25,7,3");
  same(azure + "\"2024-02-29T12:00:00Z\",5,2\n2024-02-29T14:00:00.500+02:00,7,3\n");
  same(azure + "2024-02-29T12:00:00-00:30,5,2\n2024-02-29T12:30:00.5Z,7,3\n");
  same(mooncake("27482", "5", "2") + mooncake("27982", "7", "3"));
  same("[" + mooncake("0.5", "5", "2") + "," + mooncake("500.5", "7", "3") + "]");
  same(R"({"seconds": 0, "prompt_tokens": 5, "output_tokens": 2}
{"output_tokens": 3, "seconds": 5e-1, "prompt_tokens": 7})");
}

TEST_CASE("a bad request is refused with its line, the field, what stands there and what should") {
  const std::string first = "2023-11-16 18:17:04,1,1\n";
  CHECK_THAT(refusal(""), EndsWith("requests: the number of requests is 0, but must be 1 or more"));
  CHECK_THAT(refusal(azure), EndsWith("requests: the number of requests is 0, but must be 1 or more"));
  CHECK_THAT(refusal(azure + first + "2023-11-16 18:17:03.9,1,1\n"),
             EndsWith(":3: TIMESTAMP is 2023-11-16 18:17:03.9, but must be no earlier than that of the request before "
                      "it, on line 2"));
  CHECK_THAT(refusal(azure + first + "2023-11-16 18:17:05+00:00,1,1\n"),
             EndsWith(":3: TIMESTAMP is a time with an offset from UTC, but must be as in the first row"));
  for (const char* time : {"2023-11-31 18:17:04", "2023-11-16 24:00:00", "2023-11-16 18:17:60", "2023-11-16 18:17",
                           "2023-11-16 18:17:04.", "2023-11-16 18:17:04.1234567890", "2023-11-16 18:17:04+1", "soon",
                           "2023-11-16 18:17:04 x", "-023-11-16 18:17:04", "1700158623", ""}) {
    INFO(time);
    CHECK_THAT(
        refusal(azure + time + ",1,1\n"),
        EndsWith(std::string(":2: TIMESTAMP is ") + (*time == '\0' ? "empty" : time) +
                 ", but must be a time such as 2023-11-16 18:17:03.9799600 or 2024-05-10 00:00:00.009930+00:00"));
  }
  CHECK_THAT(refusal(azure + first + "2023-11-16 18:17:05,0,1\n"),
             EndsWith(":3: ContextTokens is 0, but must be a whole number, 1 to 1073741824"));
  CHECK_THAT(refusal(azure + "2023-11-16 18:17:05,1,2.5\n"),
             EndsWith(":2: GeneratedTokens is 2.5, but must be a whole number, 1 to 1073741824"));
  CHECK_THAT(refusal(azure + "2023-11-16 18:17:05,1\n"),
             EndsWith(":2: row is 2 fields long, but must be 3 fields long, as the header is"));
  CHECK_THAT(refusal(table + "-1,1,1\n"), EndsWith(":2: seconds is -1, but must be a number, 0 or above"));
  CHECK_THAT(refusal(table + "nan,1,1\n"), EndsWith(":2: seconds is nan, but must be a number, 0 or above"));
  CHECK_THAT(refusal(table + "1,1,1\n\n0.5,1,1\n"),
             EndsWith(":4: seconds is 0.5, but must be no earlier than that of the request before it, on line 2"));
  CHECK_THAT(refusal("seconds,prompt_tokens,output_tokens,user\n0,1,1,a\n"),
             EndsWith(":1: columns is seconds,prompt_tokens,output_tokens,user, but must be seconds, prompt_tokens, "
                      "output_tokens"));
  CHECK_THAT(refusal("when,prompt\n1,1\n"),
             EndsWith(":1: columns is when,prompt, but must be TIMESTAMP, ContextTokens and GeneratedTokens (Azure), "
                      "timestamp, input_length and output_length (Mooncake), or seconds, prompt_tokens and "
                      "output_tokens"));
  const std::string good = mooncake("5", "1", "1");
  CHECK_THAT(refusal(good + mooncake("4", "1", "1")),
             EndsWith(":2: timestamp is 4, but must be no earlier than that of the request before it, on line 1"));
  CHECK_THAT(refusal(mooncake("-4", "1", "1")), EndsWith(":1: timestamp is -4, but must be a number, 0 or above"));
  CHECK_THAT(refusal(mooncake("NaN", "1", "1")), EndsWith(":1: timestamp is NaN, but must be a number, 0 or above"));
  CHECK_THAT(refusal(good + mooncake("5", "1.5", "1")),
             EndsWith(":2: input_length is 1.5, but must be a whole number, 1 to 1073741824"));
  CHECK_THAT(refusal(mooncake("5", "1", "0")),
             EndsWith(":1: output_length is 0, but must be a whole number, 1 to 1073741824"));
  CHECK_THAT(refusal(R"({"timestamp": 1, "input_length": 2})"),
             EndsWith(":1: columns is timestamp,input_length, but must be TIMESTAMP, ContextTokens and GeneratedTokens "
                      "(Azure), timestamp, input_length and output_length (Mooncake), or seconds, prompt_tokens and "
                      "output_tokens"));
  CHECK_THAT(refusal(R"({"timestamp": 1, "timestamp": 2, "input_length": 2, "output_length": 2})"),
             EndsWith(":1: timestamp is there twice, but must be there once in its object"));
  CHECK_THAT(refusal(R"({"chat_id": 159, "timestamp": 61.114, "input_length": 521, "output_length": 132})"),
             EndsWith(":1: columns is chat_id,timestamp,input_length,output_length, but must be timestamp, "
                      "input_length, output_length, hash_ids"));
  CHECK_THAT(refusal("{\"a\": 1}\n"), EndsWith("or seconds, prompt_tokens and output_tokens"));
  CHECK_THAT(refusal("[1]\n"), EndsWith(":1: document is 1, but must be an object, or an array of objects"));
  CHECK_THAT(tests::message_of<traces::FileError>([] { traces::read_request_trace("/tmp"); }),
             EndsWith("path is a folder, but must be a file"));
}
