#include "traces/trace_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_file.hpp"

namespace specdec::traces {
namespace {

using tests::bfloats;
using tests::doubles;
using tests::floats;
using tests::ints;
using tests::longs;
using tests::message_of;
using tests::OwnedTensor;
using tests::TemporaryFolder;
using tests::WholeTrace;
using tests::write_tensors;

using Tensors = std::vector<OwnedTensor>;
using Strings = std::map<std::string, std::string>;
using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The least that is a trace, of n positions.
Tensors scalar_tensors(std::int64_t n) {
  const Floats logprobs(static_cast<std::size_t>(n), -1.0F);
  return {floats("p.token_logprob", {n}, logprobs), floats("q.token_logprob", {n}, logprobs)};
}

Tensors with(Tensors tensors, const Tensors& more) {
  for (const OwnedTensor& tensor : more) {
    const auto same =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == tensor.name; });
    if (same != tensors.end()) tensors.erase(same);
    tensors.push_back(tensor);
  }
  return tensors;
}

WholeTrace read_all(const std::filesystem::path& path, ReaderOptions options = {}) {
  const auto reader = read_trace(path, std::move(options));
  return WholeTrace(*reader);
}

/// The error of reading a file of these tensors, without the path in front.
std::string complaint(const Tensors& tensors, const Strings& metadata = {}) {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder.path() / "t.safetensors", tensors, metadata);
  const std::string message = message_of<FileError>([&] { read_all(path); });
  if (message.empty()) return message;
  REQUIRE(message.substr(0, path.string().size()) == path.string());
  return message.substr(path.string().size() + 2);
}

/// The same without the byte's number.
std::string value_complaint(const Tensors& tensors, const Strings& metadata = {}) {
  const std::string message = complaint(tensors, metadata);
  REQUIRE(message.substr(0, 5) == "byte ");
  return message.substr(message.find(": ") + 2);
}

std::vector<std::string> codes(const std::vector<Note>& notes) {
  std::vector<std::string> codes;
  for (const Note& note : notes) codes.push_back(note.code);
  return codes;
}

}  // namespace

TEST_CASE("the two columns of the scalar tier alone are a trace of one sequence") {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder.path() / "t.safetensors", {floats("p.token_logprob", {3}, {-1, -2, -infinity}),
                                                                    floats("q.token_logprob", {3}, {-1.5F, -9999, 0})});
  const auto reader = read_trace(path);
  CHECK(reader->positions() == 3);
  CHECK(reader->format() == "specdec-trace");
  CHECK(reader->files() == std::vector{path});
  CHECK(reader->metadata() == TraceMetadata{});
  const WholeTrace trace(*reader);
  CHECK(trace.tiers == std::vector{Tier::scalar});
  CHECK(trace.target_logprob == Floats{-1, -2, -infinity});
  CHECK(trace.draft_logprob == Floats{-1.5F, -9999, 0});
  CHECK(trace.sequence == Longs{0, 0, 0});
  CHECK(trace.place == Longs{0, 1, 2});
  CHECK(trace.token.empty());
  CHECK(reader->notes().empty());
}

TEST_CASE("every column of the scalar tier comes back as it was written") {
  const TemporaryFolder folder;
  const auto path =
      write_tensors(folder.path() / "t.safetensors",
                    with(scalar_tensors(3),
                         {longs("seq", {3}, {7, 7, 9}), longs("pos", {3}, {4, 5, 0}), ints("token", {3}, {3, -1, 0}),
                          ints("task", {3}, {1, 0, -1}), ints("step.drafted", {3}, {2, -1, 0}),
                          ints("step.accepted", {3}, {1, -1, 0}), longs("step.time_ns", {3}, {1000000000000, -1, 5}),
                          floats("overlap", {3}, {0.5F, nan, 1}), ints("p.token_rank", {3}, {1, 0, 4}),
                          ints("q.token_rank", {3}, {2, 3, 1}), ints("acc_len", {3}, {1, 2, 3})}),
                    {{"format", "specdec-trace"}, {"version", "1"}, {"vocab_size", "4"}, {"tasks", R"(["a","b"])"}});
  const auto reader = read_trace(path);
  const WholeTrace trace(*reader);
  CHECK(trace.sequence == Longs{0, 0, 1});
  CHECK(trace.place == Longs{0, 1, 0});
  CHECK(trace.token == Ints{3, -1, 0});
  CHECK(trace.task == Ints{1, 0, -1});
  CHECK(trace.drafted == Ints{2, -1, 0});
  CHECK(trace.accepted == Ints{1, -1, 0});
  CHECK(trace.step_time_ns == Longs{1000000000000, -1, 5});
  CHECK(trace.overlap[0] == 0.5F);
  CHECK(std::isnan(trace.overlap[1]));
  CHECK(trace.target_rank == Ints{1, 0, 4});
  CHECK(trace.draft_rank == Ints{2, 3, 1});
  CHECK(trace.accepted_length == Ints{1, 2, 3});
  CHECK(reader->metadata().vocab_size == 4);
  CHECK(reader->metadata().task_names == std::vector<std::string>{"a", "b"});
}

TEST_CASE("other element types are converted, and unaligned data are read") {
  const TemporaryFolder folder;
  // A single byte in front makes everything after it unaligned.
  const auto path = write_tensors(
      folder.path() / "t.safetensors",
      {tests::tensor_of_type<std::uint8_t>("task", ElementType::u8, {3}, {0, 1, 2}),
       doubles("p.token_logprob", {3}, {-1, -1e300, -0.1}), bfloats("q.token_logprob", {3}, {-1, -2, -0.5F}),
       longs("token", {3}, {5, 6, 7}), ints("pos", {3}, {0, 1, 2}), floats("overlap", {3}, {0.25F, 0.5F, 0.75F})});
  const WholeTrace trace = read_all(path);
  CHECK(trace.task == Ints{0, 1, 2});
  CHECK(trace.target_logprob == Floats{-1, -infinity, -0.1F});
  CHECK(trace.draft_logprob == Floats{-1, -2, -0.5F});
  CHECK(trace.token == Ints{5, 6, 7});
  CHECK(trace.place == Longs{0, 1, 2});
  CHECK(trace.overlap == Floats{0.25F, 0.5F, 0.75F});
}

TEST_CASE("rows of the full tier are views of the file, of whatever space and type") {
  const TemporaryFolder folder;
  const Floats p = {0.5F, 0.25F, 0.25F, 1, 0, 0};
  const auto path = write_tensors(
      folder.path() / "t.safetensors",
      {floats("p.probs", {2, 3}, p), bfloats("q.logits", {2, 3}, {1, 2, 3, 4, 5, 6}), ints("token", {2}, {0, 2})});
  const auto reader = read_trace(path);
  CHECK(reader->metadata().vocab_size == 3);
  PositionBatch batch;
  REQUIRE(reader->read(batch));
  CHECK(batch.tier == Tier::full);
  CHECK(batch.target_rows.space == RowSpace::probabilities);
  CHECK(batch.target_rows.type == ElementType::f32);
  CHECK(batch.draft_rows.space == RowSpace::logits);
  CHECK(batch.draft_rows.type == ElementType::bf16);
  CHECK(batch.draft_rows.vocab == 3);
  CHECK(batch.draft_vocab_map.empty());
  Floats second(3);
  std::memcpy(second.data(), batch.target_rows[1].data, 12);
  CHECK(second == Floats{1, 0, 0});
  CHECK(batch.draft_rows.bytes.size() == 12);
  CHECK_FALSE(reader->read(batch));
  CHECK_FALSE(reader->read(batch));
}

TEST_CASE("rows in F64 become F32") {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder.path() / "t.safetensors", {doubles("p.probs", {2, 2}, {0.5, 0.5, 0.1, 0.9}),
                                                                    doubles("q.probs", {2, 2}, {1, 0, 0.2, 0.8})});
  const auto reader = read_trace(path);
  PositionBatch batch;
  REQUIRE(reader->read(batch));
  CHECK(batch.target_rows.type == ElementType::f32);
  Floats values(4);
  REQUIRE(batch.target_rows.bytes.size() == 16);
  std::memcpy(values.data(), batch.target_rows.bytes.data(), 16);
  CHECK(values == Floats{0.5F, 0.5F, 0.1F, 0.9F});
}

TEST_CASE("a draft of a reduced vocabulary comes with its map and a tolerance that the metadata state") {
  const TemporaryFolder folder;
  const auto path = write_tensors(folder.path() / "t.safetensors",
                                  {floats("p.probs", {1, 3}, {0.2F, 0.3F, 0.5F}),
                                   floats("q.probs", {1, 2}, {0.5F, 0.5F}), longs("q.vocab_map", {2}, {2, 0})},
                                  {{"p.sum_tolerance", "0.001"}, {"q.sum_tolerance", "0.002"}});
  const auto reader = read_trace(path);
  PositionBatch batch;
  REQUIRE(reader->read(batch));
  CHECK(Ints(batch.draft_vocab_map.begin(), batch.draft_vocab_map.end()) == Ints{2, 0});
  CHECK(batch.target_rows.sum_tolerance == 0.001);
  CHECK(batch.draft_rows[0].sum_tolerance == 0.002);
  CHECK(reader->metadata().other.empty());
}

TEST_CASE("the top-k tier comes back with tails, cross-gathered values and padding") {
  const TemporaryFolder folder;
  const auto path = write_tensors(
      folder.path() / "t.safetensors",
      {longs("p.topk_ids", {2, 2}, {4, 1, 9, -1}), floats("p.topk_logprobs", {2, 2}, {-1, -2, -0.1F, -infinity}),
       floats("p.tail_logprob", {2}, {nan, -3}), floats("p.at_q_topk", {2, 3}, {-1, -2, -3, -4, -5, nan}),
       ints("q.topk_ids", {2, 3}, {1, 2, 3, 4, 5, 6}), floats("q.topk_logprobs", {2, 3}, {-1, -2, -3, -4, -5, -6}),
       floats("q.at_p_topk", {2, 2}, {-1, -2, -3, -infinity})});
  const WholeTrace trace = read_all(path);
  CHECK(trace.tiers == std::vector{Tier::top_k});
  CHECK(trace.target_ids == Ints{4, 1, 9, -1});
  CHECK(trace.draft_ids == Ints{1, 2, 3, 4, 5, 6});
  CHECK(trace.target_top == Floats{-1, -2, -0.1F, -infinity});
  CHECK(std::isnan(trace.target_tail[0]));
  CHECK(trace.target_tail[1] == -3);
  CHECK(trace.draft_tail.empty());
  CHECK(trace.target_at.size() == 6);
  CHECK(trace.draft_at == Floats{-1, -2, -3, -infinity});
}

TEST_CASE("a draft that reads its own states has a column for each depth") {
  const TemporaryFolder folder;
  const auto path =
      write_tensors(folder.path() / "t.safetensors",
                    with(scalar_tensors(3), {floats("q.token_logprob", {3, 2}, {-1, nan, -2, -3, -4, -5})}));
  const auto reader = read_trace(path);
  PositionBatch batch;
  REQUIRE(reader->read(batch));
  CHECK(batch.depths == 2);
  CHECK(batch.draft_token_logprob.size() == 6);
  CHECK(batch.draft_token_logprob[3] == -3);
  CHECK(value_complaint(with(scalar_tensors(2), {floats("q.token_logprob", {2, 2}, {-1, nan, -2, nan})})) ==
        "q.token_logprob row 1 column 1 is nan, but must be a log-probability: only depths beyond the sequence's begin "
        "are NaN");
}

TEST_CASE("the richest tier that both models have is read, and what is left over is noted") {
  const TemporaryFolder folder;
  const auto path = write_tensors(
      folder.path() / "t.safetensors",
      with(scalar_tensors(1), {floats("p.logits", {1, 2}, {0, 0}), floats("p.probs", {1, 2}, {0.5F, 0.5F}),
                               floats("extra", {2}, {1, 2}), ints("q.topk_ids", {1, 1}, {0})}));
  const auto reader = read_trace(path);
  const WholeTrace trace(*reader);
  CHECK(trace.tiers == std::vector{Tier::scalar});
  CHECK(trace.target_rows.empty());
  CHECK(codes(reader->notes()) == std::vector<std::string>(4, "tensor_not_read"));
  CHECK(reader->notes()[0].message == path.string() + ": p.probs is not read: p.logits is read instead");
}

TEST_CASE("tiers may be mixed over shards, which are read by name and numbered through") {
  const TemporaryFolder folder;
  write_tensors(folder.path() / "b.safetensors",
                {floats("p.probs", {1, 2}, {0.5F, 0.5F}), floats("q.probs", {1, 2}, {0.5F, 0.5F}),
                 longs("seq", {1}, {1}), longs("pos", {1}, {2})});
  write_tensors(folder.path() / "a.safetensors",
                with(scalar_tensors(3), {longs("seq", {3}, {0, 1, 1}), longs("pos", {3}, {0, 0, 1})}));
  write_tensors(folder.path() / "c.safetensors",
                {ints("acc_len", {2}, {2, 1}), longs("seq", {2}, {1, 2}), longs("pos", {2}, {3, 0})});
  const WholeTrace trace = read_all(folder.path());
  CHECK(trace.tiers == std::vector{Tier::scalar, Tier::full, Tier::accepted_length});
  CHECK(trace.sizes == Longs{3, 1, 2});
  CHECK(trace.sequence == Longs{0, 1, 1, 1, 1, 2});
  CHECK(trace.place == Longs{0, 0, 1, 2, 3, 0});
}

TEST_CASE("a sequence ends where seq changes or pos does not rise by one") {
  const TemporaryFolder folder;
  const auto numbered = [&](const Tensors& index, std::int64_t n) {
    return read_all(write_tensors(folder.path() / "t.safetensors", with(scalar_tensors(n), index)));
  };
  CHECK(numbered({longs("pos", {6}, {0, 1, 5, 6, 6, 7})}, 6).sequence == Longs{0, 0, 1, 1, 2, 2});
  CHECK(numbered({longs("seq", {5}, {3, 3, 1, 1, 3})}, 5).sequence == Longs{0, 0, 1, 1, 2});
  CHECK(numbered({longs("seq", {5}, {3, 3, 3, 4, 4}), longs("pos", {5}, {0, 1, 3, 4, 5})}, 5).sequence ==
        Longs{0, 0, 1, 2, 2});
  CHECK(numbered({}, 3).sequence == Longs{0, 0, 0});
  const auto reader = read_trace(
      write_tensors(folder.path() / "t.safetensors",
                    with(scalar_tensors(4), {longs("seq", {4}, {1, 0, 0, 1}), longs("pos", {4}, {0, 0, 2, 1})})));
  const WholeTrace read(*reader);
  CHECK(codes(reader->notes()) == std::vector<std::string>{"positions_jump", "sequences_unordered"});
}

TEST_CASE("a sequence goes from one named file into the next only where seq and pos both say so") {
  const TemporaryFolder folder;
  const Tensors first = with(scalar_tensors(2), {longs("seq", {2}, {0, 0})});
  const Tensors second = with(scalar_tensors(1), {longs("seq", {1}, {0})});
  const auto sequences = [&](const Tensors& a, const Tensors& b) {
    const std::vector paths = {write_tensors(folder.path() / "a.safetensors", a),
                               write_tensors(folder.path() / "b.safetensors", b)};
    const auto reader = read_trace(paths);
    return WholeTrace(*reader).sequence;
  };
  CHECK(sequences(first, second) == Longs{0, 0, 1});
  CHECK(sequences(with(first, {longs("pos", {2}, {4, 5})}), with(second, {longs("pos", {1}, {6})})) == Longs{0, 0, 0});
  CHECK(sequences(with(first, {longs("pos", {2}, {4, 5})}), with(second, {longs("pos", {1}, {0})})) == Longs{0, 0, 1});
  CHECK(read_all(folder.path()).sequence == Longs{0, 0, 1});
}

TEST_CASE("a shard without positions takes nothing, whatever its vocabulary") {
  const TemporaryFolder folder;
  constexpr std::int64_t vocab = std::int64_t{1} << 24U;
  write_tensors(folder.path() / "a.safetensors",
                {floats("p.logits", {0, vocab}, {}), floats("q.logits", {0, 1}, {}), ints("q.vocab_map", {1}, {0})});
  write_tensors(folder.path() / "b.safetensors", scalar_tensors(2));
  CHECK(read_all(folder.path()).sizes == Longs{2});
}

TEST_CASE("batches are bounded in positions and in bytes of wide columns") {
  const TemporaryFolder folder;
  const auto scalar = write_tensors(folder.path() / "s.safetensors", scalar_tensors(10));
  ReaderOptions options;
  options.batch_positions = 4;
  const WholeTrace trace = read_all(scalar, options);
  CHECK(trace.sizes == Longs{4, 4, 2});
  CHECK(trace.place == Longs{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Floats rows(12, 0.5F);
  const auto full = write_tensors(folder.path() / "f.safetensors",
                                  {floats("p.probs", {6, 2}, rows), floats("q.probs", {6, 2}, rows)});
  options.batch_bytes = 33;
  CHECK(read_all(full, options).sizes == Longs{2, 2, 2});
  options.batch_bytes = 1;
  CHECK(read_all(full, options).sizes == Longs(6, 1));
}

TEST_CASE("a row is complained of with its file, tensor, row and offset") {
  const TemporaryFolder folder;
  write_tensors(folder.path() / "a.safetensors",
                {floats("p.probs", {1, 2}, {1, 0}), floats("q.logprobs", {1, 2}, {0, -99})});
  const auto second = write_tensors(folder.path() / "b.safetensors", {floats("p.probs", {2, 2}, {1, 0, 1, 0}),
                                                                      floats("q.logprobs", {2, 2}, {0, -99, 0, 0})});
  const auto reader = read_trace(folder.path());
  PositionBatch batch;
  REQUIRE(reader->read(batch));
  REQUIRE(reader->read(batch));
  REQUIRE(batch.first == 1);
  const FileError error = reader->refusal(2, Role::draft, "summing to 2", "summing to 1");
  const std::int64_t offset = SafetensorsFile(second).find("q.logprobs")->offset + 8;
  CHECK(error.what() == second.string() + ": byte " + std::to_string(offset) +
                            ": q.logprobs row 1 is summing to 2, but must be summing to 1");
}

TEST_CASE("values that cannot be are refused with tensor and row") {
  const Tensors two = scalar_tensors(2);
  const Strings vocab = {{"vocab_size", "5"}};
  CHECK(value_complaint(with(two, {floats("p.token_logprob", {2}, {-1, nan})})) ==
        "p.token_logprob row 1 is nan, but must be a log-probability, at most 0");
  CHECK(value_complaint(with(two, {floats("q.token_logprob", {2}, {0.25F, -1})})) ==
        "q.token_logprob row 0 is 0.25, but must be a log-probability, at most 0");
  CHECK(value_complaint(with(two, {floats("q.token_logprob", {2}, {infinity, -1})})).find("is inf") !=
        std::string::npos);
  CHECK(complaint(with(two, {floats("q.token_logprob", {2}, {5e-6F, -1})})) == "");
  CHECK(value_complaint(with(two, {floats("overlap", {2}, {0.5F, 1.5F})})) ==
        "overlap row 1 is 1.5, but must be in [0, 1], or NaN where unknown");
  CHECK(value_complaint(with(two, {ints("token", {2}, {4, 5})}), vocab) == "token row 1 is 5, but must be in [-1, 4]");
  CHECK(value_complaint(with(two, {ints("token", {2}, {-2, 0})})) == "token row 0 is -2, but must be at least -1");
  CHECK(value_complaint(with(two, {longs("token", {2}, {0, 1LL << 40})})) ==
        "token row 1 is 1099511627776, but must be an integer of 32 bits");
  CHECK(value_complaint(with(two, {ints("task", {2}, {0, 1})}), {{"tasks", "[\"a\"]"}}) ==
        "task row 1 is 1, but must be in [-1, 0]");
  CHECK(value_complaint(with(two, {ints("p.token_rank", {2}, {-1, 1})})) ==
        "p.token_rank row 0 is -1, but must be at least 0");
  CHECK(value_complaint(with(two, {ints("q.token_rank", {2}, {6, 1})}), vocab) ==
        "q.token_rank row 0 is 6, but must be in [0, 5]");
  CHECK(value_complaint(with(two, {ints("acc_len", {2}, {0, 1})})) == "acc_len row 0 is 0, but must be at least 1");
  CHECK(value_complaint(with(two, {longs("pos", {2}, {-1, 0})})) == "pos row 0 is -1, but must be at least 0");
}

TEST_CASE("recorded rounds must fit into each other") {
  const auto rounds = [](Ints drafted, Ints accepted) {
    const auto n = static_cast<std::int64_t>(drafted.size());
    return with(scalar_tensors(n), {ints("step.drafted", {n}, drafted), ints("step.accepted", {n}, accepted)});
  };
  CHECK(complaint(rounds({-1, 3, -1, -1, 0, 2}, {-1, 2, -1, -1, 0, 2})) == "");
  CHECK(value_complaint(rounds({2}, {3})) == "step.accepted row 0 is 3, but must be in [0, 2] as step.drafted is");
  CHECK(value_complaint(rounds({2}, {-1})) == "step.accepted row 0 is -1, but must be in [0, 2] as step.drafted is");
  CHECK(value_complaint(rounds({-1}, {0})) == "step.accepted row 0 is 0, but must be -1 as step.drafted is");
  CHECK(value_complaint(rounds({3, -1, 3}, {2, -1, 2})) ==
        "step.drafted row 2 is 3, but must be -1: the round before emits 1 more");
  CHECK(value_complaint(with(scalar_tensors(1), {ints("step.drafted", {1}, {1})})) ==
        "step.drafted is alone, but must be together with step.drafted and step.accepted");
}

TEST_CASE("top-k ids and maps of a reduced vocabulary must name tokens, each once") {
  const auto top = [](Ints ids, Floats logprobs) -> Tensors {
    return {ints("p.topk_ids", {1, 2}, ids), floats("p.topk_logprobs", {1, 2}, logprobs),
            ints("q.topk_ids", {1, 1}, {0}), floats("q.topk_logprobs", {1, 1}, {-1})};
  };
  const Strings vocab = {{"vocab_size", "5"}};
  CHECK(value_complaint(top({1, 5}, {-1, -1}), vocab) == "p.topk_ids row 0 column 1 is 5, but must be in [-1, 4]");
  CHECK(value_complaint(top({3, 3}, {-1, -1})) ==
        "p.topk_ids row 0 column 1 is 3 again, but must be each id once in a row");
  CHECK(value_complaint(top({3, -1}, {-1, -1})) ==
        "p.topk_logprobs row 0 column 1 is -1, but must be -inf where the id is -1");
  CHECK(value_complaint(top({3, 4}, {-1, nan})) ==
        "p.topk_logprobs row 0 column 1 is nan, but must be a log-probability, at most 0");
  CHECK(value_complaint(with(top({3, 4}, {-1, -2}), {floats("q.tail_logprob", {1}, {1})})) ==
        "q.tail_logprob row 0 is 1, but must be a log-probability, at most 0, or NaN where unknown");
  const auto map = [](Ints ids) -> Tensors {
    return {floats("p.logits", {1, 3}, {0, 0, 0}), floats("q.logits", {1, 2}, {0, 0}), ints("q.vocab_map", {2}, ids)};
  };
  CHECK(value_complaint(map({0, 3})) == "q.vocab_map row 1 is 3, but must be in [0, 3), each once");
  CHECK(value_complaint(map({1, 1})) == "q.vocab_map row 1 is 1 again, but must be in [0, 3), each once");
  CHECK(value_complaint(map({-1, 1})) == "q.vocab_map row 0 is -1, but must be in [0, 3), each once");
}

TEST_CASE("tensors whose shapes or types do not fit are refused before anything is read") {
  CHECK(value_complaint(with(scalar_tensors(2), {ints("token", {3}, {0, 0, 0})})) ==
        "p.token_logprob.shape is [2], but must be [3 positions as token]");
  CHECK(value_complaint(with(scalar_tensors(2), {floats("token", {2}, {0, 0})})) ==
        "token.dtype is F32, but must be one of I64, I32, U8");
  CHECK(value_complaint(with(scalar_tensors(2), {ints("overlap", {2}, {0, 0})})) ==
        "overlap.dtype is I32, but must be one of F64, F32, F16, BF16");
  CHECK(value_complaint({floats("p.logits", {2}, {0, 0}), floats("q.logits", {2}, {0, 0})}) ==
        "p.logits.shape is [2], but must be [positions, 1 to 16777216]");
  CHECK(value_complaint({ints("p.topk_ids", {0, 1048577}, {})}) ==
        "p.topk_ids.shape is [0, 1048577], but must be [positions, 1 to 1048576]");
  CHECK(value_complaint({floats("p.logits", {1, 2}, {0, 0}), floats("q.logits", {1, 3}, {0, 0, 0})}) ==
        "q.logits.shape is [1, 3], but must be [1, 2] as p.logits is, or with q.vocab_map of its size");
  CHECK(value_complaint({floats("p.logits", {1, 2}, {0, 0}), floats("q.logits", {1, 2}, {0, 0})},
                        {{"vocab_size", "3"}}) ==
        "p.logits.shape is [1, 2], but must be [1, 3] as metadata vocab_size says");
  CHECK(value_complaint({ints("p.topk_ids", {1, 2}, {0, 1}), floats("p.topk_logprobs", {1, 1}, {-1}),
                         ints("q.topk_ids", {1, 1}, {0}), floats("q.topk_logprobs", {1, 1}, {-1})}) ==
        "p.topk_logprobs.shape is [1, 1], but must be [1, 2] as p.topk_ids");
  CHECK(complaint({floats("p.logits", {1, 2}, {0, 0})}) ==
        "content is only p.logits, but must be a trace: p.logits, .logprobs or .probs, or p.topk_ids and "
        "p.topk_logprobs, or p.token_logprob, and the same of q; or acc_len");
  CHECK(complaint(scalar_tensors(0)) == "trace is without positions, but must be at least one position long");
}

TEST_CASE("metadata outside what the format knows are refused with the key") {
  const auto refused = [](const char* key, const char* value) { return complaint(scalar_tensors(1), {{key, value}}); };
  CHECK(refused("format", "pt") == "");
  CHECK(refused("format", "gguf") == "metadata format is \"gguf\", but must be specdec-trace");
  CHECK(refused("version", "2") == "metadata version is \"2\", but must be 1");
  CHECK(refused("temperature", "-1") == "metadata temperature is \"-1\", but must be a number in [0, 1000000]");
  CHECK(refused("temperature", "nan") == "metadata temperature is \"nan\", but must be a number in [0, 1000000]");
  CHECK(refused("top_p", "1.5") == "metadata top_p is \"1.5\", but must be a number in (0, 1]");
  CHECK(refused("top_p", "0") == "metadata top_p is \"0\", but must be a number in (0, 1]");
  CHECK(refused("min_p", "-0.1") == "metadata min_p is \"-0.1\", but must be a number in [0, 1]");
  CHECK(refused("temperature_last", "yes") == "metadata temperature_last is \"yes\", but must be true or false");
  CHECK(refused("top_k", "ten") == "metadata top_k is \"ten\", but must be an integer in [0, 2147483647]");
  CHECK(refused("top_k", "1.5") == "metadata top_k is \"1.5\", but must be an integer in [0, 2147483647]");
  CHECK(refused("acceptance", "Greedy") ==
        "metadata acceptance is \"Greedy\", but must be one of rejection, greedy-draft, greedy");
  CHECK(refused("logprob_space", "") == "metadata logprob_space is \"\", but must be one of raw, processed, unknown");
  CHECK(refused("path", "draft") == "metadata path is \"draft\", but must be one of target, other, unknown");
  CHECK(refused("tasks", "a,b") == "metadata tasks is \"a,b\", but must be a JSON array of strings");
  CHECK(refused("tasks", "[1]") == "metadata tasks is \"[1]\", but must be a JSON array of strings");
  CHECK(refused("p.sum_tolerance", "1") == "metadata p.sum_tolerance is \"1\", but must be a number in [0, 0.1]");
}

TEST_CASE("metadata survive being written as strings") {
  TraceMetadata metadata;
  metadata.vocab_size = 32000;
  metadata.temperature = 0.7;
  metadata.top_k = 50;
  metadata.top_p = 0.95;
  metadata.min_p = 0.05;
  metadata.temperature_last = true;
  metadata.target_model = "big";
  metadata.draft_model = "small";
  metadata.engine = "vLLM";
  metadata.draft_kind = "eagle";
  metadata.acceptance = AcceptanceRule::greedy_draft;
  metadata.logprob_space = LogprobSpace::processed;
  metadata.path = TextSource::target;
  metadata.task_names = {"code", "chat, \"quoted\""};
  metadata.other = {{"note", "kept"}};
  CHECK(metadata_from_strings(to_strings(metadata), "file") == metadata);
  CHECK(metadata_from_strings(to_strings({}), "file") == TraceMetadata{});
}

TEST_CASE("shards that contradict each other are refused with both names") {
  const auto contradiction = [](const Tensors& a, const Strings& a_metadata, const Tensors& b,
                                const Strings& b_metadata) {
    const TemporaryFolder folder;
    write_tensors(folder.path() / "a.safetensors", a, a_metadata);
    write_tensors(folder.path() / "b.safetensors", b, b_metadata);
    const std::string message = message_of<FileError>([&] { read_all(folder.path()); });
    std::string text = message;
    for (auto at = text.find(folder.path().string()); at != std::string::npos; at = text.find(folder.path().string())) {
      text.erase(at, folder.path().string().size() + 1);
    }
    return text;
  };
  const Tensors one = scalar_tensors(1);
  const Tensors v2 = {floats("p.logits", {1, 2}, {0, 0}), floats("q.logits", {1, 2}, {0, 0})};
  const Tensors v3 = {floats("p.logits", {1, 3}, {0, 0, 0}), floats("q.logits", {1, 3}, {0, 0, 0})};
  CHECK(contradiction(one, {{"temperature", "1"}}, one, {{"temperature", "1.0"}}) == "");
  CHECK(contradiction(one, {{"temperature", "1"}}, one, {}) == "");
  CHECK(contradiction(one, {{"note", "1"}}, one, {{"note", "2"}}) == "");
  CHECK(contradiction(one, {{"temperature", "1"}}, one, {{"temperature", "0.5"}}) ==
        "b.safetensors: metadata temperature is 0.5, but must be 1, as a.safetensors says");
  CHECK(contradiction(one, {{"tasks", "[\"a\"]"}}, one, {{"tasks", "[\"a\",\"b\"]"}}) == "");
  CHECK(contradiction(one, {{"tasks", "[\"a\"]"}}, one, {{"tasks", "[\"b\"]"}}) ==
        "b.safetensors: metadata tasks, name 0 is b, but must be a, as a.safetensors says");
  CHECK(contradiction(v2, {}, v3, {}) == "b.safetensors: vocabulary is 3 tokens, but must be 2, as in a.safetensors");
  CHECK(contradiction(one, {{"vocab_size", "4"}}, v3, {}) ==
        "b.safetensors: vocabulary is 3 tokens, but must be 4, as in a.safetensors");
  CHECK(contradiction(with(one, {longs("seq", {1}, {0})}), {}, one, {}) ==
        "b.safetensors: seq is absent, but must be present, as in a.safetensors");
}

TEST_CASE("folders with strays and empty ones are refused, and unfinished shards are noted") {
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  const auto message = [&] { return message_of<FileError>([&] { read_all(folder.path()); }); };
  CHECK(message() == at + ": folder is without shards, but must be one with *.safetensors files");
  write_tensors(folder.path() / "a.safetensors", scalar_tensors(1));
  folder.write(".hidden", "");
  folder.write("b.safetensors.partial", "");
  const auto reader = read_trace(folder.path());
  CHECK(reader->positions() == 1);
  CHECK(codes(reader->notes()).size() == 2);
  folder.write("README.txt", "");
  CHECK(message() == at + ": entry is README.txt, but must be a shard, named *.safetensors: a trace's folder holds "
                          "nothing else");
  CHECK(message_of<FileError>([] { read_trace("/nonexistent/trace"); }) == "/nonexistent/trace: no such file");
}

TEST_CASE("a half-written shard is refused with the option that saves the others, and left out by it") {
  const TemporaryFolder folder;
  for (const char* name : {"a.safetensors", "b.safetensors", "c.safetensors"}) {
    write_tensors(folder.path() / name, with(scalar_tensors(2), {longs("seq", {2}, {0, 0})}));
  }
  const auto cut = folder.path() / "b.safetensors";
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 3);
  const std::string message = message_of<FileError>([&] { read_all(folder.path()); });
  CHECK(message.substr(0, cut.string().size()) == cut.string());
  CHECK(message.find("; --salvage reads the shards that are good") != std::string::npos);
  ReaderOptions options;
  options.salvage = true;
  const auto reader = read_trace(folder.path(), options);
  CHECK(reader->positions() == 4);
  CHECK(codes(reader->notes()) == std::vector<std::string>{"shard_left_out"});
  CHECK(reader->notes()[0].message.find(cut.string()) != std::string::npos);
  // The rows in between are lost, so the sequence does not go on.
  CHECK(WholeTrace(*reader).sequence == Longs{0, 0, 1, 1});
  for (const char* name : {"a.safetensors", "c.safetensors"}) std::filesystem::resize_file(folder.path() / name, 9);
  CHECK_FALSE(message_of<FileError>([&] { read_trace(folder.path(), options); }).empty());
}

TEST_CASE("a reader that is told to go on reports every inconsistency") {
  const TemporaryFolder folder;
  write_tensors(folder.path() / "a.safetensors", with(scalar_tensors(3), {floats("p.token_logprob", {3}, {nan, -1, 1}),
                                                                          ints("token", {3}, {0, -7, 0})}));
  folder.write("b.safetensors", "not safetensors");
  std::vector<std::string> fields;
  ReaderOptions options;
  options.on_error = [&](const FileError& error) { fields.push_back(error.field()); };
  CHECK(read_all(folder.path(), options).sizes == Longs{3});
  CHECK(fields ==
        std::vector<std::string>{"header length", "token row 1", "p.token_logprob row 0", "p.token_logprob row 2"});
}

}  // namespace specdec::traces
