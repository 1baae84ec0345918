#include "traces/open_trace.hpp"
#include "tests/support/source_dir.hpp"

#include <stdexcept>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"

namespace specdec::traces {
namespace {

namespace fs = std::filesystem;

using tests::floats;
using tests::message_of;
using tests::TemporaryFolder;

fs::path write_trace(const fs::path& path) {
  return tests::write_tensors(path, {floats("p.token_logprob", {1}, {-1}), floats("q.token_logprob", {1}, {-1})});
}

std::string refusal(const std::vector<fs::path>& files, const OpenOptions& options = {}) {
  return message_of<FileError>([&] { open_trace(files, options); });
}

}  // namespace

TEST_CASE("a trace is told by its content and not by its name, a folder is one too") {
  const TemporaryFolder folder;
  const auto file = write_trace(folder.path() / "a.json");
  CHECK(open_trace(std::vector{file})->format() == "specdec-trace");
  fs::create_directory(folder.path() / "trace");
  write_trace(folder.path() / "trace" / "a.safetensors");
  const auto source = open_trace(std::vector{folder.path() / "trace", file});
  CHECK(source->positions() == 2);
  CHECK(source->files().size() == 2);
}

TEST_CASE(
    "content in no known format is shown and answered with what is read, and that of another command with its name") {
  const TemporaryFolder folder;
  const auto file = folder.write("a.safetensors", "GGUF\x01\n and more that is not shown");
  const std::string message = refusal({file});
  CHECK(message.find(file.string() +
                     ": content is in no known format (it begins \"GGUF\\x01\\x0a and more \"), but must "
                     "be a recording, such as arrays p_logprobs") == 0);
  CHECK(message.find("docs/reference/formats.md") != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(refusal({folder.write("empty", "")}).find("content is empty, but must be a recording") != std::string::npos);
  CHECK(refusal({folder.write("scrape", "vllm:spec_decode_num_drafts_total 100\n")})
            .find("content is counts, which `specdec counters` reads") != std::string::npos);
  CHECK(refusal({"http://localhost/metrics"}).find("no such file; `specdec counters --scrape`") != std::string::npos);
  CHECK(refusal({"/nonexistent/a"}) ==
        "/nonexistent/a: no such file");
}

TEST_CASE("a table without a header, or with other columns, is answered with the columns that a recording has") {
  const TemporaryFolder folder;
  const auto numbers = folder.write("numbers.csv", "-0.1,-0.2\n-0.3,-0.4\n");
  CHECK(refusal({numbers}).find(numbers.string() +
                                ":1: file is a table whose first line is numbers, but must be a table whose first line "
                                "names the target's and the draft's column, such as p_logprob and q_logprob") == 0);
  CHECK(refusal({folder.write("foreign.csv", "foo;bar\n1;2\n")}).find("file is a table of the columns foo,bar, but") !=
        std::string::npos);
  CHECK(refusal({folder.write("prose.txt", "one, two\nand three\n")}).find("in no known format") != std::string::npos);
}

TEST_CASE("compressed files are named so and answered with what to do") {
  const TemporaryFolder folder;
  const auto compression = [&](const std::string& bytes) {
    return std::string(FileHead::of(folder.write("file", bytes)).compression());
  };
  CHECK(compression("\x1f\x8b\x08rest") == "gzip");
  CHECK(compression("\x28\xb5\x2f\xfd...") == "zstd");
  CHECK(compression("PK\x03\x04...") == "zip");
  CHECK(compression("\xfd"
                    "7zXZ...") == "xz");
  CHECK(compression("BZh91AY") == "bzip2");
  CHECK(compression("{}").empty());
  CHECK(compression("\x1f").empty());
  CHECK(refusal({folder.write("trace.gz", "\x1f\x8b\x08rest")})
            .find("trace.gz: content is gzip-compressed, but must be decompressed first, then a recording") !=
        std::string::npos);
}

TEST_CASE("files or a pair are named, and not both") {
  const auto refused = [](const std::vector<fs::path>& files, const char* target, const char* draft) {
    OpenOptions options;
    options.target = target;
    options.draft = draft;
    return message_of<std::invalid_argument>([&] { open_trace(files, options); });
  };
  CHECK(refused({}, "", "") == "open_trace: files is 0 of them, but must be at least one, or a pair");
  CHECK(refused({"a"}, "p", "q") == "open_trace: files is 1 of them, but must be none beside a pair");
  CHECK(refused({}, "p", "") == "open_trace: a pair is one file, but must be a target's and a draft's");
}

TEST_CASE("a trace is no half of a pair") {
  const TemporaryFolder folder;
  OpenOptions options;
  options.target = write_trace(folder.path() / "p.safetensors");
  options.draft = write_trace(folder.path() / "q.safetensors");
  CHECK(refusal({}, options) ==
        options.target.string() +
            ": file is a specdec-trace, no half of a pair, but must be one model's, as NPY, llama.cpp logits and the "
            "answers of engines are: a specdec-trace holds both models and is given alone");
}

TEST_CASE("arrays, logits of llama.cpp, token pairs and position traces are told by their content") {
  const fs::path samples = fs::path(tests::source_dir()) / "traces/samples";
  const auto pair_format = [&](const char* target, const char* draft) {
    OpenOptions options;
    options.target = samples / target;
    options.draft = samples / draft;
    return open_trace({}, options)->format();
  };
  CHECK(pair_format("llamacpp/target.kld", "llamacpp/draft.kld") == "llama.cpp logits");
  CHECK(pair_format("numpy/p_logits.npy", "numpy/q_logits.npy") == "NPY pair");
  CHECK(open_trace(std::vector{samples / "numpy/deflated.npz"})->format() == "NPZ");

  const TemporaryFolder folder;
  const auto csv = folder.write("a.txt", "p,q\n0.5,0.25\n");
  CHECK(open_trace(std::vector{csv})->format() == "CSV of token pairs");
  const auto two_csvs = open_trace(std::vector{csv, csv});
  const tests::WholeTrace all(*two_csvs);
  CHECK(all.sequence == std::vector<std::int64_t>{0, 1});
  const auto pairs = folder.write("b.txt", " {\"p_logprobs\":[-1,-2],\"q_logprobs\":[-3,-4]}");
  CHECK(open_trace(std::vector{pairs})->format() == "JSONL of token pairs");
  const auto lengths = folder.write("c.txt", "{\"acc_a\":{\"acc_len\":[1]},\"acc_b\":{\"acc_len\":[2]}}");
  OpenOptions options;
  options.draft_array = "b";
  CHECK(open_trace(std::vector{lengths}, options)->metadata().draft_kind == "b");
}

TEST_CASE("files of one model are refused alone and files of both as half of a pair") {
  const TemporaryFolder folder;
  const auto csv = folder.write("a.csv", "p,q\n0.5,0.25\n");
  OpenOptions options;
  options.target = csv;
  options.draft = csv;
  CHECK(
      refusal({}, options) ==
      csv.string() +
          ": file is CSV of token pairs, no half of a pair, but must be one model's, as NPY, llama.cpp logits and the "
          "answers of engines are: CSV of token pairs holds both models and is given alone");
  const auto logits = folder.write("a.kld", "_logits_");
  CHECK(refusal({logits}) == logits.string() +
                                 ": file is llama.cpp logits of one model, but must be given as a pair, "
                                 "the target's and the draft's");
}

TEST_CASE(
    "a table that names one model only is refused for the other's column, and may be told by the names that are "
    "given") {
  const TemporaryFolder folder;
  const auto one = folder.write("a.csv", "target_logprob,other\n-0.5,-1\n");
  CHECK(refusal({one}) == one.string() +
                              ":1: the draft's column is missing, but must be named like q, draft_logprob or "
                              "q_prob, or as draft_array says");
  OpenOptions options;
  options.draft_array = "other";
  options.space = RowSpace::log_probabilities;
  CHECK(open_trace(std::vector{one}, options)->format() == "CSV of token pairs");
  const auto object = folder.write("a.jsonl", "{\"x\":-1,\"q_logprob\":-3}");
  CHECK_THAT(refusal({object}), Catch::Matchers::Contains("the target's column is missing"));
  options.target_array = "x";
  options.draft_array = "";
  CHECK(open_trace(std::vector{object}, options)->format() == "JSONL of token pairs");
}

TEST_CASE("the head of a file shows JSON behind blanks and a byte order mark") {
  const auto json = [](std::string bytes) {
    FileHead head;
    head.bytes = std::move(bytes);
    return std::string(head.json());
  };
  CHECK(json("\xef\xbb\xbf \n{\"a\":1}") == "{\"a\":1}");
  CHECK(json("[1]") == "[1]");
  CHECK(json("a,b").empty());
  CHECK(json("").empty());
}

}  // namespace specdec::traces
