#include "traces/trace_writer.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"
#include "traces/trace_reader.hpp"

namespace specdec::traces {
namespace {

using tests::message_of;
using tests::TemporaryFolder;
using tests::WholeTrace;

using Longs = std::vector<std::int64_t>;

/// A batch with its data: `n` positions of the scalar tier in sequences of `length`.
struct ScalarBatch {
  Longs sequence, place;
  std::vector<float> p, q;

  explicit ScalarBatch(std::int64_t n, std::int64_t length = 1000000, std::int64_t first = 0) {
    for (std::int64_t i = first; i < first + n; ++i) {
      sequence.push_back(i / length);
      place.push_back(i % length);
      p.push_back(-static_cast<float>(i % 100));
      q.push_back(-static_cast<float>(i % 7));
    }
  }

  PositionBatch batch() const {
    PositionBatch batch;
    batch.size = static_cast<std::int64_t>(p.size());
    batch.sequence = sequence;
    batch.place = place;
    batch.target_token_logprob = p;
    batch.draft_token_logprob = q;
    return batch;
  }
};

WholeTrace read_all(const std::filesystem::path& path) {
  const auto reader = read_trace(path);
  return WholeTrace(*reader);
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("what a batch of any tier holds comes back from a single file") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "t.safetensors";
  const Longs two_longs = {0, 1}, places = {0, 0}, times = {5, -1};
  const std::vector<std::int32_t> two = {1, 0}, ones = {1, 1}, map = {1};
  const std::vector<float> logprobs = {-1, -2}, wide = {-1, -2, -3, -4}, tail = {std::nanf(""), -3},
                           overlap = {0.5F, std::nanf("")};
  const std::vector<std::int32_t> wide_ids = {0, 1, 1, 0};
  const std::vector<std::uint16_t> halves = {0x3800, 0x3800, 0x3c00, 0};

  PositionBatch batch;
  batch.size = 2;
  batch.sequence = two_longs;
  batch.place = places;
  batch.token = two;
  batch.task = two;
  batch.step_drafted = ones;
  batch.step_accepted = ones;
  batch.step_time_ns = times;
  batch.target_token_logprob = logprobs;
  batch.draft_token_logprob = wide;
  batch.depths = 2;
  batch.overlap = overlap;
  batch.target_token_rank = ones;
  batch.draft_token_rank = two;
  batch.accepted_length = ones;
  SECTION("full, with a reduced vocabulary and a tolerance") {
    batch.tier = Tier::full;
    batch.target_rows.type = ElementType::f16;
    batch.target_rows.vocab = 2;
    batch.target_rows.bytes = std::as_bytes(std::span(halves));
    batch.target_rows.sum_tolerance = 0.01;
    batch.draft_rows.space = RowSpace::log_probabilities;
    batch.draft_rows.vocab = 1;
    batch.draft_rows.bytes = std::as_bytes(std::span(logprobs));
    batch.draft_vocab_map = map;
  }
  SECTION("top-k") {
    batch.tier = Tier::top_k;
    batch.target_top_k.k = 2;
    batch.target_top_k.ids = wide_ids;
    batch.target_top_k.logprobs = wide;
    batch.target_top_k.tail_logprob = tail;
    batch.target_top_k.at_other = logprobs;
    batch.draft_top_k.k = 1;
    batch.draft_top_k.ids = two;
    batch.draft_top_k.logprobs = logprobs;
    batch.draft_top_k.at_other = wide;
  }
  SECTION("scalar") {}

  TraceMetadata metadata;
  metadata.engine = "test";
  TraceWriter writer(path, metadata);
  writer.write(batch);
  writer.set_task_names({"a", "b"});
  writer.finish();
  CHECK(files_in(folder.path()) == 1);

  const auto reader = read_trace(path);
  CHECK(reader->metadata().engine == "test");
  CHECK(reader->metadata().task_names == std::vector<std::string>{"a", "b"});
  PositionBatch back;
  REQUIRE(reader->read(back));
  CHECK(back.tier == batch.tier);
  CHECK(back.target_rows.sum_tolerance == batch.target_rows.sum_tolerance);
  CHECK(back.target_rows.type == batch.target_rows.type);
  CHECK(back.draft_rows.space == batch.draft_rows.space);
  CHECK(back.depths == 2);
  const auto same = [](const auto& a, const auto& b) { return std::ranges::equal(std::as_bytes(a), std::as_bytes(b)); };
  CHECK(same(back.sequence, batch.sequence));
  CHECK(same(back.place, batch.place));
  CHECK(same(back.token, batch.token));
  CHECK(same(back.task, batch.task));
  CHECK(same(back.step_time_ns, batch.step_time_ns));
  CHECK(same(back.target_token_logprob, batch.target_token_logprob));
  CHECK(same(back.draft_token_logprob, batch.draft_token_logprob));
  CHECK(same(back.target_token_rank, batch.target_token_rank));
  CHECK(same(back.draft_token_rank, batch.draft_token_rank));
  CHECK(same(back.accepted_length, batch.accepted_length));
  CHECK(same(back.target_rows.bytes, batch.target_rows.bytes));
  CHECK(same(back.draft_rows.bytes, batch.draft_rows.bytes));
  CHECK(same(back.draft_vocab_map, batch.draft_vocab_map));
  CHECK(same(back.target_top_k.ids, batch.target_top_k.ids));
  CHECK(same(back.target_top_k.logprobs, batch.target_top_k.logprobs));
  CHECK(same(back.target_top_k.tail_logprob, batch.target_top_k.tail_logprob));
  CHECK(same(back.target_top_k.at_other, batch.target_top_k.at_other));
  CHECK(same(back.draft_top_k.ids, batch.draft_top_k.ids));
  CHECK(same(back.draft_top_k.at_other, batch.draft_top_k.at_other));
  CHECK(same(back.overlap, batch.overlap));
  CHECK(same(back.step_drafted, batch.step_drafted));
  CHECK(same(back.step_accepted, batch.step_accepted));
}

TEST_CASE("shards end after so many positions or bytes, and sequences go on over them") {
  const TemporaryFolder folder;
  WriterOptions options;
  SECTION("positions") { options.shard_positions = 4; }
  SECTION("bytes") { options.shard_bytes = 4 * 24; }
  const auto path = folder.path() / "trace";
  TraceWriter writer(path, {}, options);
  for (std::int64_t first = 0; first < 21; first += 7) writer.write(ScalarBatch(7, 9, first).batch());
  CHECK(writer.positions() == 21);
  writer.finish();
  CHECK(files_in(path) == 6);
  const WholeTrace trace = read_all(path);
  CHECK(trace.sizes == Longs{4, 4, 4, 4, 4, 1});
  const ScalarBatch all(21, 9);
  CHECK(trace.target_logprob == all.p);
  CHECK(trace.draft_logprob == all.q);
  CHECK(trace.sequence == all.sequence);
  CHECK(trace.place == all.place);
}

TEST_CASE("shards can be made to end where sequences do") {
  const TemporaryFolder folder;
  WriterOptions options;
  options.shard_positions = 4;
  options.whole_sequences = true;
  TraceWriter writer(folder.path() / "t", {}, options);
  for (std::int64_t first = 0; first < 22; first += 2) writer.write(ScalarBatch(2, 6, first).batch());
  writer.write(ScalarBatch(14, 2, 50).batch());
  writer.finish();
  CHECK(read_all(folder.path() / "t").sizes == Longs{6, 6, 6, 4, 4, 4, 4, 2});
}

TEST_CASE("other columns begin another shard, and are refused in a single file") {
  const TemporaryFolder folder;
  const ScalarBatch data(3);
  PositionBatch with_overlap = data.batch();
  const std::vector<float> overlap = {0.5F, 0.5F, 0.5F};
  with_overlap.overlap = overlap;
  TraceWriter writer(folder.path() / "t", {});
  writer.write(data.batch());
  writer.write(with_overlap);
  writer.write(with_overlap);
  writer.finish();
  CHECK(read_all(folder.path() / "t").sizes == Longs{3, 6});

  const auto single = folder.path() / "t.safetensors";
  TraceWriter one_file(single, {});
  one_file.write(data.batch());
  CHECK(message_of<FileError>([&] { one_file.write(with_overlap); }) ==
        single.string() + ": trace is of columns that change at position 3, but must be a folder of shards, then");
}

TEST_CASE("a trace that was broken off is gone on with after its last shard") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace";
  TraceMetadata metadata;
  metadata.task_names = {"a"};
  {
    TraceWriter writer(path, metadata, {.shard_positions = 5});
    writer.write(ScalarBatch(5, 5, 0).batch());
    writer.write(ScalarBatch(5, 5, 5).batch());
  }
  // The shard that was never ended is lost; a partial one of a crash would be removed.
  std::ofstream(path / "shard-000001.safetensors.partial") << "half";
  CHECK(read_all(path).sizes == Longs{5});
  CHECK_FALSE(message_of<FileError>([&] { TraceWriter(path, metadata); }).empty());
  WriterOptions resume;
  resume.resume = true;
  {
    TraceWriter writer(path, metadata, resume);
    CHECK(writer.resumed_positions() == 5);
    CHECK(files_in(path) == 1);
    writer.write(ScalarBatch(3, 5, 5).batch());
    writer.finish();
  }
  CHECK(read_all(path).sequence == Longs{0, 0, 0, 0, 0, 1, 1, 1});
  metadata.path = TextSource::target;
  CHECK(message_of<FileError>([&] {
          TraceMetadata other = metadata;
          other.task_names = {"b"};
          TraceWriter(path, other, resume);
        }) == path.string() + ": metadata tasks, name 0 is a, but must be b to be gone on with");
}

TEST_CASE("a writer refuses what it cannot complete") {
  const TemporaryFolder folder;
  const auto message = [](const auto& f) { return message_of<FileError>(f); };
  CHECK(message([] { TraceWriter("/nonexistent/t.safetensors", {}); }) ==
        "/nonexistent/t.safetensors: file is not writable (No such file or directory), but must be writable");
  TraceWriter empty(folder.path() / "empty", {});
  CHECK(message([&] { empty.finish(); }).find("trace is without positions") != std::string::npos);

  folder.write("stray.txt", "");
  std::filesystem::remove(folder.path() / "empty");
  CHECK(message([&] { TraceWriter(folder.path(), {}); }) ==
        folder.path().string() + ": entry is stray.txt, but must be absent: the folder is not empty");

  const ScalarBatch data(3);
  PositionBatch batch = data.batch();
  batch.overlap = std::span(data.p).first(2);
  CHECK(message_of<std::invalid_argument>([&] { empty.write(batch); }) ==
        "TraceWriter::write: overlap is 8 bytes long, but must be 3 rows of 4 bytes");
  CHECK_FALSE(message_of<std::invalid_argument>([&] {
                TraceMetadata metadata;
                metadata.task_names = {"a"};
                TraceWriter(folder.path() / "names", metadata).set_task_names({"b"});
              }).empty());
}

TEST_CASE("a place has one writer at a time") {
  const TemporaryFolder folder;
  WriterOptions resume;
  resume.resume = true;
  for (const std::string name : {"trace", "trace.safetensors"}) {
    const std::string path = (folder.path() / name).string();
    const char* const what = name == "trace" ? "folder" : "file";
    {
      TraceWriter writer(path, {}, resume);
      writer.write(ScalarBatch(5, 5, 0).batch());
      CHECK(message_of<FileError>([&] { TraceWriter(path, {}, resume); }) ==
            path + ": " + what + " is being written by another run, but must be written by one at a time");
      writer.finish();
    }
    CHECK(message_of<FileError>([&] { TraceWriter(path, {}, resume); }).empty());
    CHECK(read_all(path).sizes == Longs{5});
  }
}

TEST_CASE("what the disk has no room for is refused before any of it is written") {
  const TemporaryFolder folder;
  WriterOptions endless;
  endless.expected_positions = std::int64_t{1} << 60U;
  for (const char* name : {"trace", "trace.safetensors"}) {
    TraceWriter writer(folder.path() / name, {}, endless);
    const std::string message = message_of<FileError>([&] { writer.write(ScalarBatch(5, 5, 0).batch()); });
    CHECK(message.find("free space is ") != std::string::npos);
    CHECK(message.find(" bytes for 1152921504606846976 positions") != std::string::npos);
    CHECK(writer.positions() == 0);
  }
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("shards far beyond what stays in memory are written whole") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "t.safetensors";
  const ScalarBatch data(100000, 1000);
  TraceWriter writer(path, {});
  for (int i = 0; i < 6; ++i) writer.write(data.batch());
  // Data that do not fit into memory stand in files without names, beside the one that keeps the place.
  CHECK(files_in(folder.path()) == 1);
  CHECK(std::filesystem::file_size(path.string() + ".partial") == 0);
  writer.finish();
  const auto reader = read_trace(path);
  CHECK(reader->positions() == 600000);
  PositionBatch batch;
  std::int64_t same = 0;
  while (reader->read(batch)) {
    for (std::int64_t i = 0; i < batch.size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto row = static_cast<std::size_t>((batch.first + i) % 100000);
      same += batch.target_token_logprob[at] == data.p[row] && batch.draft_token_logprob[at] == data.q[row] ? 1 : 0;
    }
  }
  CHECK(same == 600000);
}

TEST_CASE("a writer that is killed at any moment leaves whole shards only") {
  std::mt19937 generator(7);
  for (int trial = 0; trial < 8; ++trial) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "trace";
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      WriterOptions options;
      options.shard_positions = 20000;
      TraceWriter writer(path, {}, options);
      for (std::int64_t first = 0;; first += 5000) writer.write(ScalarBatch(5000, 100, first).batch());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<>(1000, 60000)(generator)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status));

    const std::string message = message_of<FileError>([&] {
      const WholeTrace trace = read_all(path);
      const auto n = static_cast<std::int64_t>(trace.target_logprob.size());
      const ScalarBatch expected(n, 100);
      CHECK(n % 20000 == 0);
      CHECK(trace.target_logprob == expected.p);
      CHECK(trace.sequence == expected.sequence);
      CHECK(trace.place == expected.place);
    });
    const bool killed_before_the_first_shard =
        message.empty() || message.find("without shards") != std::string::npos || !std::filesystem::exists(path);
    CHECK(killed_before_the_first_shard);
  }
}

}  // namespace specdec::traces
