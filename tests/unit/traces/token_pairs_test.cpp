#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/trace_reading.hpp"
#include "traces/formats/csv_records.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using tests::WholeTrace;
using traces::ArrayNames;
using traces::RowSpace;
using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

/// A recording in a file of its own.
class Recording {
 public:
  Recording(const std::string& content, bool json, const ArrayNames& options)
      : path_(folder_.write(json ? "x.jsonl" : "x.csv", content)),
        source_(json ? traces::open_token_pairs_jsonl(path_, options) : traces::open_token_pairs_csv(path_, options)) {}

  traces::PositionSource& source() { return *source_; }

 private:
  tests::TemporaryFolder folder_;
  std::filesystem::path path_;
  std::unique_ptr<traces::PositionSource> source_;
};

Recording csv(const std::string& content, const ArrayNames& options = {}) { return {content, false, options}; }
Recording jsonl(const std::string& content, const ArrayNames& options = {}) { return {content, true, options}; }
WholeTrace read_csv(const std::string& content, const ArrayNames& options = {}) {
  return WholeTrace(csv(content, options).source());
}
WholeTrace read_jsonl(const std::string& content, const ArrayNames& options = {}) {
  return WholeTrace(jsonl(content, options).source());
}

std::string csv_refusal(const std::string& content, const ArrayNames& options = {}) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.csv", content);
  return tests::refusal_of(folder.path(), [&] { return traces::open_token_pairs_csv(path, options); });
}
std::string jsonl_refusal(const std::string& content, const ArrayNames& options = {}) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.jsonl", content);
  return tests::refusal_of(folder.path(), [&] { return traces::open_token_pairs_jsonl(path, options); });
}

const std::string csv_example =
    "request_id,token,target_logprob,draft_logprob,task\n"
    "a,17,-0.25,-0.5,prose\n"
    "a,4,-1.75,-inf,prose\n"
    "b,17,-0.5,-0.125,code\n";
const std::string token_example =
    R"({"request_id":"a","token":17,"target_logprob":-0.25,"draft_logprob":-0.5,"task":"prose"})"
    "\n"
    R"({"request_id":"a","token":4,"target_logprob":-1.75,"draft_logprob":-Infinity,"task":"prose"})"
    "\n"
    R"({"request_id":"b","token":17,"target_logprob":-0.5,"draft_logprob":-0.125,"task":"code"})"
    "\n";
const std::string sequence_example =
    R"({"request_id":"a","tokens":[17,4],"target_logprobs":[-0.25,-1.75],"draft_logprobs":[-0.5,-9999],"task":"prose"})"
    "\n"
    R"({"request_id":"b","tokens":[17],"target_logprobs":[-0.5],"draft_logprobs":[-0.125],"task":"code"})"
    "\n";

void check_example(traces::PositionSource& source) {
  const WholeTrace all(source);
  CHECK(all.tiers == std::vector{traces::Tier::scalar});
  CHECK(all.target_logprob == Floats{-0.25F, -1.75F, -0.5F});
  CHECK(all.draft_logprob == Floats{-0.5F, none, -0.125F});
  CHECK(all.sequence == Longs{0, 0, 1});
  CHECK(all.place == Longs{0, 1, 0});
  CHECK(all.token == Ints{17, 4, 17});
  CHECK(all.task == Ints{0, 0, 1});
  CHECK(source.metadata().task_names == std::vector<std::string>{"prose", "code"});
  CHECK(source.notes().empty());
  CHECK(all.overlap.empty());
  CHECK(all.target_rank.empty());
}

}  // namespace

TEST_CASE("the header's three examples are the same recording") {
  check_example(csv(csv_example).source());
  check_example(jsonl(token_example).source());
  check_example(jsonl(sequence_example).source());
}

TEST_CASE("a CSV may use any of the separators, quotes, CRLF, a byte order mark and blank lines") {
  const auto check = [](const std::string& content) {
    const WholeTrace all = read_csv(content);
    CHECK(all.target_logprob == Floats{-1, -2});
    CHECK(all.draft_logprob == Floats{-3, -4});
  };
  check("p_logprob;q_logprob\n-1;-3\n-2;-4");
  check("p_logprob\tq_logprob\r\n-1\t-3\r\n\r\n-2\t-4\r\n");
  check("\xef\xbb\xbf\"p_logprob\",\"q_logprob\"\n\n\"-1\", -3 \n-2,\"-4\"\n\n");
  check("text,Log P,Log Q\n\"said \"\"a, b\"\"\nand c\",-1,-3\n,-2,-4\r");
  check("p_logprob,q_logprob\n-1e0,-0.3e+1\n-2.,-4.0\n");
}

TEST_CASE("every optional column of a CSV is read and others are named in a note") {
  Recording recording =
      csv("seq,pos,p_prob,q_prob,overlap,target_rank,q_rank,token,loss,time\n"
          "7,3,0.5,0.25,0.75,1,2,5,x,y\n"
          "7,4,1,0,,,,,x,y\n"
          "8,0,1e-400,0.5,nan,3,1,0,x,y\n");
  const WholeTrace all(recording.source());
  CHECK(all.target_logprob == Floats{std::log(0.5F), 0, none});
  CHECK(all.draft_logprob == Floats{std::log(0.25F), none, std::log(0.5F)});
  CHECK(all.sequence == Longs{0, 0, 1});
  CHECK(all.place == Longs{3, 4, 0});
  CHECK(all.overlap[0] == 0.75F);
  CHECK(std::isnan(all.overlap[1]));
  CHECK(std::isnan(all.overlap[2]));
  CHECK(all.target_rank == Ints{1, 0, 3});
  CHECK(all.draft_rank == Ints{2, 0, 1});
  CHECK(all.token == Ints{5, -1, 0});
  REQUIRE(recording.source().notes().size() == 1);
  CHECK(recording.source().notes()[0].message == "not read: loss, time");
}

TEST_CASE("columns called p and q hold what their first number other than 0 says, or what the options say") {
  CHECK(read_csv("p,q\n0,0\n0,0.5\n").draft_logprob == Floats{none, std::log(0.5F)});
  CHECK(read_csv("p,q\n0,0\n0,-0.5\n").draft_logprob == Floats{0, -0.5F});
  CHECK(read_csv("p,q\n0,-inf\n-1,0\n").target_logprob == Floats{0, -1});
  CHECK(read_csv("p,q\n0,0\n", {RowSpace::log_probabilities, "", ""}).target_logprob == Floats{0});
  CHECK(read_jsonl("{\"p\":[0,0],\"q\":[0,0.5]}").draft_logprob == Floats{none, std::log(0.5F)});
  CHECK(read_jsonl("{\"p\":0,\"q\":0}\n{\"p\":-1,\"q\":0}").target_logprob == Floats{0, -1});
  CHECK(csv_refusal("p,q\n0,0\n") ==
        "x.csv:3: p is 0 in every line, but must be said to be probabilities or log-probabilities");
  CHECK_THAT(jsonl_refusal("{\"p\":0,\"q\":0}"), Contains("p is 0 in every line"));
  CHECK(csv_refusal("p,q\n0.5,0.5\n0.5,-1\n") == "x.csv:3: q is -1, but must be a probability");
  CHECK(csv_refusal("p,q\n-0.5,-1\n0.5,-1\n") == "x.csv:3: p is 0.5, but must be a log-probability, at most 0");
}

TEST_CASE("floors of engines are probability 0 and NaN is refused") {
  const WholeTrace all = read_csv("p_logprob,q_logprob\n-9999,-3.4028235e38\n-1e400,-Infinity\n5e-5,-0\n");
  CHECK(all.target_logprob == Floats{none, none, 0});
  CHECK(all.draft_logprob == Floats{none, none, 0});
  CHECK(csv_refusal("p_logprob,q_logprob\n-1,nan\n") ==
        "x.csv:2: q_logprob is nan, but must be a log-probability, at most 0");
  CHECK_THAT(csv_refusal("p_logprob,q_logprob\n1e400,-1\n"), Contains("p_logprob is inf, but"));
  CHECK(jsonl_refusal("{\"p_logprob\":-1,\"q_logprob\":NaN}") ==
        "x.jsonl:1: q_logprob is nan, but must be a log-probability, at most 0");
}

TEST_CASE("which columns are the models' may be said by name") {
  const std::string content = "p_logprob,p_prob,q_logprob,mine\n-1,0.5,-2,0.25\n";
  CHECK(csv_refusal(content) ==
        "x.csv:1: columns is p_logprob and p_prob, but must be one of the two, as they mean the same (target_array "
        "says which)");
  const WholeTrace all = read_csv(content, {RowSpace::probabilities, "p_prob", "mine"});
  CHECK(all.target_logprob == Floats{std::log(0.5F)});
  CHECK(all.draft_logprob == Floats{std::log(0.25F)});
}

TEST_CASE("a CSV header without both models, with one twice or with logits is refused") {
  CHECK(csv_refusal("") == "x.csv: file is empty, but must be a line of column names");
  CHECK(csv_refusal("a,b\n") ==
        "x.csv:1: the target's column is missing, but must be named like p, target_logprob or p_prob, or as "
        "target_array says");
  CHECK_THAT(csv_refusal("p,b\n"), Contains("the draft's column is missing"));
  CHECK_THAT(csv_refusal("p,q,p\n"), Contains("columns is p and p, but must be one of the two"));
  CHECK(
      csv_refusal("p_logit,q_logit\n1,2\n") ==
      "x.csv:1: p_logit is a logit, but must be a probability or log-probability: of one logit the normaliser is lost");
  CHECK(csv_refusal("p,q\n") == "x.csv:2: file is at its end, but must be a line for each token");
}

TEST_CASE("CSV lines that do not hold what the header says are refused by line and column") {
  const std::string header = "seq,p_logprob,q_logprob,token,overlap,p_rank\n1,-1,-1,0,1,1\n";
  CHECK(csv_refusal(header + "1,-1,-1\n") ==
        "x.csv:3: line is of 3 fields, but must be of 6 fields, as the first line is");
  CHECK(csv_refusal(header + "1,-1,-1,0,1,1,\n") ==
        "x.csv:3: line is of 7 fields, but must be of 6 fields, as the first line is");
  CHECK(csv_refusal(header + "1,,-1,0,1,1\n") == "x.csv:3: p_logprob is empty, but must be a number");
  CHECK(csv_refusal(header + "1,-1,abc\x01,0,1,1\n") == "x.csv:3: q_logprob is abc\\x01, but must be a number");
  CHECK_THAT(csv_refusal(header + "1,-1,-1x,0,1,1\n"), Contains("q_logprob is -1x"));
  CHECK(csv_refusal(header + "1,-1,0.1,0,1,1\n") ==
        "x.csv:3: q_logprob is 0.1, but must be a log-probability, at most 0");
  CHECK(csv_refusal(header + "1,-1,-1,1.5,1,1\n") == "x.csv:3: token is 1.5, but must be an integer");
  CHECK(csv_refusal(header + "1,-1,-1,-2,1,1\n") == "x.csv:3: token is -2, but must be in [0, 2147483647]");
  CHECK(csv_refusal(header + "1,-1,-1,2147483648,1,1\n").substr(0, 26) == "x.csv:3: token is 21474836");
  CHECK(csv_refusal(header + "1,-1,-1,0,1.01,1\n") == "x.csv:3: overlap is 1.01, but must be in [0, 1]");
  CHECK(csv_refusal(header + "1,-1,-1,0,1,-1\n") == "x.csv:3: p_rank is -1, but must be in [1, 2147483647]");
  CHECK(csv_refusal(header + "2,-1,-1,0,1,1\n1,-1,-1,0,1,1\n") ==
        "x.csv:4: seq is 1 again, but must be in one piece: all rows of a sequence stand together");
  CHECK(csv_refusal("pos,p_logprob,q_logprob\n0,-1,-1\n2,-1,-1\n") ==
        "x.csv:3: pos is 2, but must be 1, one more than before it");
  CHECK(csv_refusal("p_logprob,q_logprob\n-1,\"-1\n") ==
        "x.csv:2: quoted field is without an end, but must be closed by a quotation mark");
  CHECK(csv_refusal("p_logprob,q_logprob\n\"-1\"x,-1\n") ==
        "x.csv:2: field is followed by x,-1\\x0a, but must be followed by ',' or the end of the line");
  CHECK_THAT(csv_refusal("p_logprob,q_logprob\n-1,-1" + std::string(1 << 20, ' ') + "\n"),
             Contains("x.csv:2: record is longer than that, but must be at most 1048576 bytes long"));
}

TEST_CASE("lines are counted through quoted fields") {
  CHECK_THAT(csv_refusal("text,p_logprob,q_logprob\n\"1\n2\n3\",-1,-1\n,-1,oh\n"),
             StartsWith("x.csv:5: q_logprob is oh"));
}

TEST_CASE("a long CSV comes in batches, and a refusal later on names the line") {
  std::string content = "seq,p_logprob,q_logprob\n";
  constexpr int tokens = 70000;
  for (int i = 0; i < tokens; ++i) content += fmt::format("{},-{},-1\n", i / 50000, i);
  Recording recording = csv(content);
  traces::PositionBatch batch;
  REQUIRE(recording.source().read(batch));
  CHECK(batch.size == 65536);
  REQUIRE(recording.source().read(batch));
  CHECK(batch.size == tokens - 65536);
  CHECK(batch.first == 65536);
  CHECK(batch.sequence[0] == 1);
  CHECK(batch.place[0] == 65536 - 50000);
  CHECK_THAT(recording.source().refusal(65537, traces::Role::draft, "x", "y").what(),
             Contains("x.csv:65539: q_logprob is x, but must be y"));
  CHECK_FALSE(recording.source().read(batch));
}

TEST_CASE("JSON arrays longer than a batch go on in the next one") {
  constexpr int tokens = 70000;
  std::string numbers = "0";
  for (int i = 1; i < tokens; ++i) numbers += fmt::format(",-{}", i % 1000);
  const std::string line = fmt::format(R"({{"p_logprobs":[{0}],"q_logprobs":[{0}]}})", numbers);
  const WholeTrace all = read_jsonl(line + "\n" + line + "\n");
  CHECK(all.sizes == Longs{65536, 65536, 2 * tokens - 2 * 65536});
  CHECK(all.sequence[tokens - 1] == 0);
  CHECK(all.place[tokens - 1] == tokens - 1);
  CHECK(all.sequence[tokens] == 1);
  CHECK(all.place[tokens] == 0);
  CHECK(all.target_logprob[tokens + 1999] == -999);
  CHECK(all.draft_logprob == all.target_logprob);
}

TEST_CASE("objects may lack what is optional, order their keys differently and label sequences by numbers") {
  const WholeTrace all = read_jsonl(R"({"seq":3,"p_logprob":-1,"q_logprob":-2,"token":null,"note":{"a":[1]}}
{"q_logprob":-3,"overlap":0.5,"p_logprob":-1,"seq":3}
{"q_logprob":-3,"p_logprob":-1,"seq":4,"task":7,"p_rank":1})");
  CHECK(all.draft_logprob == Floats{-2, -3, -3});
  CHECK(all.sequence == Longs{0, 0, 1});
  CHECK(all.token == Ints{-1, -1, -1});
  CHECK(all.task == Ints{-1, -1, 0});
  CHECK(all.target_rank == Ints{0, 0, 1});
  CHECK(all.overlap[1] == 0.5F);
  CHECK(read_jsonl(R"([{"p":[],"q":[]},{"p":[0.5],"q":[0.5]}])").sequence == Longs{0});
}

TEST_CASE("JSON objects that do not hold a pair are refused by line and key") {
  CHECK(jsonl_refusal("") == "x.jsonl: file is empty, but must be an object for each token or sequence");
  CHECK_THAT(jsonl_refusal("[1]"), Contains("x.jsonl:1: line is 1, but must be an object"));
  CHECK_THAT(jsonl_refusal(R"({"a":1})"), Contains("x.jsonl:1: the target's column is missing"));
  const std::string good = "{\"p_logprob\":-1,\"q_logprob\":-1}\n";
  CHECK(jsonl_refusal(good + R"({"p_logprob":-1})") ==
        "x.jsonl:2: q_logprob is missing or null, but must be a number, or an array of numbers");
  CHECK(jsonl_refusal(good + R"({"p_logprob":null,"q_logprob":-1})").substr(0, 25) == "x.jsonl:2: p_logprob is m");
  CHECK(jsonl_refusal(good + R"({"p_logprob":"x","q_logprob":-1})") ==
        "x.jsonl:2: p_logprob is \"x\", but must be a number");
  CHECK_THAT(jsonl_refusal(good + R"({"p_logprob":-1,"q_logprob":-1,"q_prob":1})"),
             Contains("x.jsonl:2: columns is q_logprob and q_prob"));
  CHECK(jsonl_refusal(R"({"p_logprob":[-1,-1],"q_logprob":[-1]})") ==
        "x.jsonl:1: q_logprob is 1 long, but must be 2 long, as p_logprob is");
  CHECK_THAT(jsonl_refusal(R"({"p_logprob":[-1],"q_logprob":-1})"), Contains("q_logprob is -1, but must be an array"));
  CHECK_THAT(jsonl_refusal(R"({"p_logprob":-1,"q_logprob":[-1]})"),
             Contains("q_logprob is an array, but must be a number"));
  CHECK(jsonl_refusal(R"({"p_logprob":[-1,-1],"q_logprob":[-1,null]})") ==
        "x.jsonl:1: q_logprob[1] is null, but must be a number (-Infinity or -9999 for probability 0)");
  CHECK_THAT(jsonl_refusal(R"({"p_logprob":[-1],"q_logprob":[-1],"tokens":5})"),
             Contains("tokens is 5, but must be an array"));
  CHECK(jsonl_refusal(R"({"p_logprob":[-1],"q_logprob":[-1],"tokens":[1.5]})") ==
        "x.jsonl:1: tokens[0] is 1.5, but must be an integer");
  CHECK_THAT(jsonl_refusal(R"({"p_logprob":-1,"q_logprob":-1,"seq":[1]})"),
             Contains("seq is an array, but must be a string"));
  CHECK_THAT(jsonl_refusal(R"([{"seq":1,"p":[0.5],"q":[0.5]},{"seq":1,"p":[0.5],"q":[0.5]}])"),
             Contains("seq[0] is 1 again, but must be in one piece"));
  for (const char* empty : {"{}", "[]"}) {
    CHECK(jsonl_refusal(fmt::format(R"({{"p_logprob":-1,"q_logprob":-1,"prompt":{}}})", empty)) ==
          fmt::format("x.jsonl:1: prompt is {}, but must be a prompt that is not empty", empty));
  }
  CHECK_THAT(jsonl_refusal("{\"p\":0.5,"), StartsWith("x.jsonl:1"));
}

TEST_CASE("texts of token pairs are told by their first line") {
  CHECK(traces::is_token_pairs_csv(csv_example));
  CHECK(traces::is_token_pairs_csv("\xef\xbb\xbf\"P\";\"Q\"\r\n"));
  CHECK_FALSE(traces::is_token_pairs_csv("p,r\n1,2"));
  CHECK_FALSE(traces::is_token_pairs_csv(""));
  CHECK_FALSE(traces::is_token_pairs_csv(token_example));
  CHECK(traces::is_token_pairs_jsonl(token_example));
  CHECK(traces::is_token_pairs_jsonl(sequence_example));
  CHECK(traces::is_token_pairs_jsonl("[ {\"text\":\"{\\\"\",\"p\" : 1,\"q\":[1"));
  CHECK_FALSE(traces::is_token_pairs_jsonl(R"({"a":{"p":1,"q":2}})"));
  CHECK_FALSE(traces::is_token_pairs_jsonl(R"({"a":"p","b":"q"}{"p":1,"q":1})"));
  CHECK_FALSE(traces::is_token_pairs_jsonl(csv_example));
  CHECK_FALSE(traces::is_token_pairs_jsonl("{\"target_model\":\"a\",\"draft_model\":\"b\"}"));
  CHECK(traces::is_token_pairs_jsonl("{\"p_logprobs\":[" + std::string(65536, '0')));
}
