#include "traces/serving/read_serving_counts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "traces/formats/streams.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

const std::string scrape = R"(vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 22.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 66.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 30.0
)";

/// Standard input comes from a file for as long as the object lives.
class StandardInput {
 public:
  explicit StandardInput(const std::filesystem::path& file) : kept_(::dup(STDIN_FILENO)) {
    const int descriptor = ::open(file.c_str(), O_RDONLY);
    ::dup2(descriptor, STDIN_FILENO);
    ::close(descriptor);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    if (kept_ < 0) {
      ::close(STDIN_FILENO);
    } else {
      ::dup2(kept_, STDIN_FILENO);
      ::close(kept_);
    }
  }

 private:
  int kept_;
};

}  // namespace

TEST_CASE("counts in no known format are refused with what is read") {
  CHECK_THAT(
      tests::counts_refusal({"hello\n"}),
      StartsWith("1.txt: content is in no known format (it begins \"hello\\x0a\"), but must be counters, a log"));
  CHECK_THAT(tests::counts_refusal({"acceptance,p_logprob,q_logprob\n-1,-2,-3\n"}),
             Contains("a recording, which `specdec analyze` reads"));
  CHECK_THAT(tests::counts_refusal({""}), StartsWith("1.txt: content is empty, but must be counters"));
  CHECK_THAT(tests::counts_refusal({scrape, std::string("\0\1\2", 3)}), StartsWith("2.txt: content is in no known"));
  CHECK_THAT(tests::counts_refusal({"\x28\xb5\x2f\xfd"
                                    "SpecDecoding metrics:"}),
             StartsWith("1.txt: content is zstd-compressed, but must be decompressed first, then counters"));
  const tests::TemporaryFolder folder;
  CHECK_THAT(tests::message_of<traces::FileError>([&] { tests::AllCounts counts({folder.path()}); }),
             Contains("file is a folder, but must be counters"));
  CHECK_THAT(tests::message_of<traces::FileError>([&] { tests::AllCounts counts({folder.path() / "none"}); }),
             Contains("no such file"));
}

TEST_CASE("a table without a header, or with other columns, is answered with the columns of runs") {
  CHECK_THAT(
      tests::counts_refusal({"1,0,20,,\n1,3,3.8,2.7,1000\n"}),
      StartsWith("1.txt:1: file is a table whose first line is numbers, but must be a table of runs, whose first "
                 "line names columns: gamma, or setting, output_tokens_per_second or ms_per_token, and"));
  CHECK_THAT(tests::counts_refusal({"foo,bar\n1,2\n"}),
             StartsWith("1.txt:1: file is a table of the columns foo,bar, "));
}

TEST_CASE("counts come from standard input under its name") {
  const tests::TemporaryFolder folder;
  {
    const StandardInput input(folder.write("scrape", scrape));
    const tests::AllCounts counts({"-"});
    REQUIRE(counts.units.size() == 1);
    CHECK(counts.units[0].file == "-");
    CHECK(counts.units[0].rounds == 22);
  }
  const StandardInput input(folder.write("broken", scrape + scrape));
  CHECK(
      tests::message_of<traces::FileError>([] { tests::AllCounts counts({"-"}); }) ==
      "-:4: vllm:spec_decode_num_drafts_total is given twice with the same labels, but must be given once in a scrape");
}

TEST_CASE("messages about a pipe name the pipe") {
  const tests::TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto before = folder.write("before", scrape);
  std::string later = scrape;
  later.replace(later.find("22.0"), 4, "9.0");
  std::thread writer([&] { folder.write("pipe", later); });
  const std::string message = tests::message_of<traces::FileError>([&] { tests::AllCounts counts({before, pipe}); });
  writer.join();
  CHECK(tests::without_folder(message, folder.path())
            .starts_with("pipe:1: vllm:spec_decode_num_drafts_total is 9, but must be at least 22, as by "));
}

TEST_CASE("a stream longer than its bound is refused") {
  const tests::TemporaryFolder folder;
  const StandardInput input(folder.write("long", std::string(100'000, 'x')));
  const traces::KeptStreams streams;
  CHECK(tests::message_of<traces::FileError>([] { traces::readable_path("-", 99'999); }) ==
        "-: file is longer than 99999 bytes, but must be shorter, or given as a file");
}

TEST_CASE("a device without an end is refused, and the empty one is empty") {
  const traces::KeptStreams streams;
  CHECK(tests::message_of<traces::FileError>([] { traces::readable_path("/dev/zero"); }) ==
        "/dev/zero: file is a device, but must be a file, a pipe or a terminal");
  CHECK(std::filesystem::file_size(traces::readable_path("/dev/null")) == 0);
}

TEST_CASE("a stream is read once, and is the same under all its names as long as it is kept") {
  const tests::TemporaryFolder folder;
  const StandardInput input(folder.write("scrape", scrape));
  const traces::KeptStreams outer;
  const auto path = traces::readable_path("-");
  {
    const traces::KeptStreams inner;
    CHECK(traces::readable_path("-") == path);
  }
  CHECK(traces::readable_path("-") == path);
  CHECK(std::filesystem::file_size(path) == scrape.size());
  CHECK(traces::identity_of("-") == traces::identity_of(folder.path() / "scrape"));
  CHECK(traces::identity_of(folder.path() / "none") == std::nullopt);
}

TEST_CASE("neighbouring files of one format are read together, and formats in their order") {
  std::string later = scrape;
  later.replace(later.find("22.0"), 4, "32.0");
  const std::string log = "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)\n";
  const tests::AllCounts together = tests::counts_of({scrape, later, log});
  REQUIRE(together.units.size() == 2);
  CHECK(together.units[0].unit == traces::CountUnit::window);
  CHECK(together.units[0].rounds == 10);
  CHECK(together.units[1].unit == traces::CountUnit::request);
  const tests::AllCounts apart = tests::counts_of({scrape, log, later});
  REQUIRE(apart.units.size() == 3);
  CHECK(apart.units[0].rounds == 22);
  CHECK(apart.units[2].unit == traces::CountUnit::total);
  CHECK(apart.units[2].rounds == 32);
}
