#include "tests/support/source_dir.hpp"
#include "traces/formats/recording_formats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/trace_reading.hpp"
#include "tests/support/zip_bytes.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::deflated_entry;
using tests::stored_entry;
using tests::zip_bytes;
using tests::ZipBytesEntry;
using traces::ArrayNames;
using traces::RowSpace;

namespace {

const std::filesystem::path samples = std::filesystem::path(tests::source_dir()) / "traces/samples/numpy";

/// The formula of the samples.
double sample_logit(bool target, int i, int j) {
  return target ? ((7 * i + 3 * j) % 11) / 4.0 : ((5 * i + 2 * j) % 7) / 2.0;
}
double sample_probability(bool target, int i, int j) {
  double sum = 0;
  for (int k = 0; k < 5; ++k) sum += std::exp(sample_logit(target, i, k));
  return std::exp(sample_logit(target, i, j)) / sum;
}

std::string npy_with_header(const std::string& header, const std::string& data, char major = 1) {
  std::string file = "\x93NUMPY";
  file += major;
  file += '\0';
  if (major == 1) {
    tests::append_bytes(file, static_cast<std::uint16_t>(header.size()));
  } else {
    tests::append_bytes(file, static_cast<std::uint32_t>(header.size()));
  }
  return file + header + data;
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data, char major = 1) {
  return npy_with_header(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", descr, shape), data,
                         major);
}

template <class T>
std::string npy_of(const std::string& descr, const std::string& shape, const std::vector<T>& values, char major = 1) {
  std::string data;
  for (const T value : values) tests::append_bytes(data, value);
  return npy(descr, shape, data, major);
}

const std::string half_rows = npy_of<float>("<f4", "(2, 2)", {0.5F, 0.5F, 0.5F, 0.5F});
const std::string two_numbers = npy_of<float>("<f4", "(2,)", {0.5F, 0.25F});

/// An archive of two models' numbers and further entries.
std::string archive_with(std::vector<ZipBytesEntry> more, const std::string& model = two_numbers) {
  std::vector<ZipBytesEntry> entries = {stored_entry("p.npy", model), stored_entry("q.npy", model)};
  entries.insert(entries.end(), more.begin(), more.end());
  return zip_bytes(entries);
}

std::string npz_refusal(const std::string& content, const ArrayNames& options = {}) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.npz", content);
  return tests::refusal_of(folder.path(), [&] { return traces::open_npz(path, options); });
}

/// The error in an NPY file that is read as both models of a pair.
std::string npy_refusal(const std::string& content, const ArrayNames& options = {}) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("p.npy", content);
  return tests::refusal_of(folder.path(), [&] { return traces::open_npy_pair(path, path, options); });
}

tests::WholeTrace read_npz(const std::string& content, const ArrayNames& options = {}) {
  const tests::TemporaryFolder folder;
  return tests::WholeTrace(*traces::open_npz(folder.write("x.npz", content), options));
}

}  // namespace

TEST_CASE("an archive that numpy stored gives rows, tokens, sequences and task names") {
  const auto source = traces::open_npz(samples / "stored.npz");
  CHECK(source->format() == "NPZ");
  CHECK(source->metadata().vocab_size == 5);
  CHECK(source->positions() == 6);
  CHECK(source->notes().empty());
  const tests::WholeTrace all(*source);
  CHECK(all.token == std::vector<std::int32_t>{4, 0, 3, 1, 2, 2});
  CHECK(all.sequence == std::vector<std::int64_t>{0, 0, 0, 1, 1, 2});
  CHECK(all.place == std::vector<std::int64_t>{0, 1, 2, 0, 1, 0});
  CHECK(all.task == std::vector<std::int32_t>{0, 0, 0, 1, 1, 2});
  CHECK(source->metadata().task_names == std::vector<std::string>{"prose", "code", "d\xc3\xa9j\xc3\xa0"});
  CHECK(all.last_target_rows.space == RowSpace::probabilities);
  REQUIRE(all.sequence.size() == 6);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 5; ++j) {
      CHECK(all.target_row(i)[j] == Approx(sample_probability(true, i, j)).epsilon(1e-6));
      CHECK(all.draft_row(i)[j] == Approx(sample_probability(false, i, j)).epsilon(1e-6));
    }
  }
}

TEST_CASE("an archive that numpy deflated gives logits up to a shift, and a note of what is not read") {
  const auto source = traces::open_npz(samples / "deflated.npz");
  REQUIRE(source->notes().size() == 1);
  CHECK(source->notes()[0].code == "arrays_not_read");
  CHECK(source->notes()[0].message == "not read: extra.npy");
  const tests::WholeTrace all(*source);
  CHECK(all.last_target_rows.space == RowSpace::logits);
  CHECK(all.token == std::vector<std::int32_t>{4, 0, 3, 1, 2, 2});
  CHECK(all.sequence == std::vector<std::int64_t>(6, 0));
  REQUIRE(all.sequence.size() == 6);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 5; ++j) {
      CHECK(all.target_row(i)[j] - all.target_row(i)[0] == sample_logit(true, i, j) - sample_logit(true, i, 0));
      CHECK(all.draft_row(i)[j] - all.draft_row(i)[0] == sample_logit(false, i, j) - sample_logit(false, i, 0));
    }
  }
}

TEST_CASE("a pair of NPY files is read as its names say") {
  const auto source = traces::open_npy_pair(samples / "p_logits.npy", samples / "q_logits.npy");
  CHECK(source->format() == "NPY pair");
  CHECK(source->files() == std::vector{samples / "p_logits.npy", samples / "q_logits.npy"});
  const tests::WholeTrace all(*source);
  CHECK(all.last_target_rows.space == RowSpace::logits);
  REQUIRE(all.sequence.size() == 6);
  CHECK(all.target_row(3)[4] == sample_logit(true, 3, 4));
  CHECK(all.draft_row(5)[1] == sample_logit(false, 5, 1));
  CHECK_THAT(source->refusal(2, traces::Role::draft, "summing to 2", "summing to 1").what(),
             Contains("q_logits.npy: q_logits.npy: row 2 is summing to 2, but must be summing to 1"));
}

TEST_CASE("what numpy writes and cannot be read is refused by its reason") {
  const auto refusal = [](const char* name) {
    return tests::refusal_of(samples, [&] {
      return traces::open_npy_pair(samples / name, samples / name, {RowSpace::probabilities, "", ""});
    });
  };
  CHECK(refusal("objects.npy") ==
        "objects.npy: byte 0: objects.npy: element type is \"|O\", but must be numbers, not Python objects");
  CHECK(
      refusal("fortran.npy") ==
      "fortran.npy: byte 0: fortran.npy: order is Fortran's, but must be C order, as numpy.ascontiguousarray makes it");
  CHECK_THAT(refusal("big_endian.npy"), Contains("element type is \">f4\", but must be little-endian"));
}

TEST_CASE("one number a position is a log-probability, or becomes one, and floors are probability 0") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string p = npy_of<double>("<f8", "(4,)", {0.5, 1, 0, 1.00005});
  const std::string q = npy_of<double>("<f8", "(4,)", {-0.25, -infinity, -9999, 5e-5});
  const tests::WholeTrace all = read_npz(zip_bytes({stored_entry("p.npy", p), deflated_entry("q_logprob.npy", q)}));
  const float none = -std::numeric_limits<float>::infinity();
  CHECK(all.target_logprob == std::vector<float>{std::log(0.5F), 0, none, 0});
  CHECK(all.draft_logprob == std::vector<float>{-0.25F, none, none, 0});
  CHECK(npz_refusal(zip_bytes({stored_entry("p.npy", npy_of<float>("<f4", "(2,)", {0.5F, -0.1F})),
                               stored_entry("q.npy", two_numbers)})) ==
        "x.npz: byte 35: p.npy: row 1 is -0.10000000149011612, but must be a probability");
  CHECK_THAT(npz_refusal(zip_bytes({stored_entry("log_p.npy", npy_of<float>("<f4", "(1,)", {std::nanf("")})),
                                    stored_entry("log_q.npy", npy_of<float>("<f4", "(1,)", {0}))})),
             Contains("row 0 is nan, but must be a log-probability, at most 0"));
  CHECK_THAT(npz_refusal(archive_with({}), {RowSpace::logits, "", ""}),
             Contains("of a single one the normaliser is lost"));
  // A row of p and one of q, whose dimension of positions was forgotten, are no probabilities of four tokens.
  const auto refused = [](const std::string& last) {
    return npz_refusal(
        zip_bytes({stored_entry("p.npy", npy_of<double>("<f8", "(4,)", {0.3, 0.2, 0.1, 0.4})),
                   stored_entry("q.npy", npy_of<double>("<f8", "(4,)", {0.4, 0.1, 0.1, std::stod(last)}))}));
  };
  CHECK_THAT(refused("0.4"),
             Contains("shape is [4], of a distribution that sums to 1, as the draft's does, but must be "
                      "[1, 4], a row for each position: p[None, :]"));
  CHECK(refused("0.3").empty());
}

TEST_CASE("long arrays come in batches that continue one another") {
  constexpr int positions = 150000;
  std::vector<float> numbers(positions);
  std::vector<std::int32_t> sequences(positions);
  for (int i = 0; i < positions; ++i) {
    numbers[i] = -static_cast<float>(i % 1000);
    sequences[i] = i / 100000;
  }
  const std::string shape = fmt::format("({},)", positions);
  const std::string model = npy_of("<f4", shape, numbers);
  const tests::WholeTrace all =
      read_npz(zip_bytes({deflated_entry("p_logprobs.npy", model), stored_entry("q_logprobs.npy", model),
                          deflated_entry("seq.npy", npy_of("<i4", shape, sequences))}));
  CHECK(all.sizes.size() == 3);
  CHECK(all.target_logprob == numbers);
  CHECK(all.draft_logprob == numbers);
  CHECK(all.sequence[99999] == 0);
  CHECK(all.place[99999] == 99999);
  CHECK(all.sequence[100000] == 1);
  CHECK(all.place[149999] == 49999);
}

TEST_CASE("float64 logits lose nothing near their largest") {
  const std::string logits = npy_of<double>("<f8", "(1, 2)", {1e6 + 0.001, 1e6});
  const tests::WholeTrace all =
      read_npz(zip_bytes({stored_entry("p_logits.npy", logits), stored_entry("q_logits.npy", logits)}));
  CHECK(all.target_row(0)[0] - all.target_row(0)[1] == Approx(0.001).epsilon(1e-6));
}

TEST_CASE("all three versions of NPY, all widths of integers and Python 2's sizes are read") {
  for (const char version : {'\1', '\2', '\3'}) {
    const std::string model = npy_of<float>("<f4", "(2L, 1)", {1, 1}, version);
    const std::string token = npy("|u1", "(2,)", std::string("\0\0", 2), version);
    CHECK(read_npz(archive_with({stored_entry("token.npy", token)}, model)).token == std::vector<std::int32_t>{0, 0});
  }
  const auto tokens = [](const std::string& array) {
    return read_npz(archive_with({stored_entry("tokens.npy", array)})).token;
  };
  const std::vector<std::int32_t> expected = {-1, 100};
  CHECK(tokens(npy_of<std::int8_t>("|i1", "(2,)", {-1, 100})) == expected);
  CHECK(tokens(npy_of<std::int16_t>("<i2", "(2,)", {-1, 100})) == expected);
  CHECK(tokens(npy_of<std::int32_t>("<i4", "(2,)", {-1, 100})) == expected);
  CHECK(tokens(npy_of<std::int64_t>("<i8", "(2,)", {-1, 100})) == expected);
  CHECK(tokens(npy_of<std::uint32_t>("<u4", "(2,)", {7, 100})) == std::vector<std::int32_t>{7, 100});
  CHECK_THAT(npz_refusal(archive_with({stored_entry("token.npy", npy_of<std::uint64_t>("<u8", "(2,)", {7, ~0ULL}))})),
             Contains("token.npy: row 1 is 9223372036854775807, but must be a token in [0, 2147483647]"));
}

TEST_CASE("places and tasks may be given as numbers") {
  const tests::WholeTrace all =
      read_npz(archive_with({stored_entry("pos.npy", npy_of<std::int64_t>("<i8", "(2,)", {5, 0})),
                             stored_entry("task.npy", npy_of<std::int64_t>("<i8", "(2,)", {30, -1}))}));
  CHECK(all.sequence == std::vector<std::int64_t>{0, 1});
  CHECK(all.place == std::vector<std::int64_t>{5, 0});
  CHECK(all.task == std::vector<std::int32_t>{0, -1});
  const tests::WholeTrace prompts =
      read_npz(archive_with({stored_entry("seq.npy", npy_of<std::int64_t>("<i8", "(2,)", {5, 6})),
                             stored_entry("prompt.npy", npy_of<std::int64_t>("<i8", "(2,)", {30, -1}))}));
  CHECK(prompts.prompt == std::vector<std::int64_t>{30, -1});
  const auto refusal = [](const char* name, const std::string& array) {
    return npz_refusal(archive_with({stored_entry(name, array)}));
  };
  CHECK_THAT(refusal("prompt.npy", npy_of<std::int64_t>("<i8", "(2,)", {30, -1})),
             Contains("prompt.npy: row 1 is -1, but must be the same for all rows of a sequence"));
  CHECK_THAT(refusal("pos.npy", npy_of<std::int32_t>("<i4", "(2,)", {0, 2})),
             Contains("pos.npy: row 1 is 2, but must be 1, one more than before it"));
  CHECK_THAT(refusal("task.npy", npy("<U300", "(2,)", std::string(2400, 'x'))), Contains("one of at most 4096 names"));
}

TEST_CASE("an archive's arrays may be named by hand, and the numbers' meaning too") {
  const std::string logprobs = npy_of<float>("<f4", "(1, 2)", {-0.7F, -0.7F});
  const std::string content = zip_bytes({stored_entry("big.npy", logprobs), stored_entry("small.npy", logprobs)});
  CHECK(read_npz(content, {RowSpace::log_probabilities, "big", "small"}).last_target_rows.space ==
        RowSpace::log_probabilities);
  CHECK(npz_refusal(content) ==
        "x.npz: the target's array is not among big.npy, small.npy, but must be named like p, p_logprobs or p_logits, "
        "or as "
        "target_array says");
  CHECK_THAT(npz_refusal(content, {{}, "large", "small"}), Contains("but must be large, as asked for"));
  CHECK_THAT(npz_refusal(content, {{}, "big", "small"}),
             Contains("big is a name that does not say what the numbers are, but must be one that ends in _probs"));
  const std::string two = zip_bytes({stored_entry("p.npy", half_rows), stored_entry("p_logits.npy", half_rows)});
  CHECK_THAT(npz_refusal(two), Contains("the target's array is p.npy or p_logits.npy, but must be one array"));
  CHECK_THAT(npz_refusal(zip_bytes({stored_entry("p_logits.npy", half_rows), stored_entry("q_logits.npy", half_rows)}),
                         {RowSpace::probabilities, "", ""}),
             Contains("p_logits is logits by name, but must be probabilities, as asked for"));
  CHECK_THAT(npz_refusal(zip_bytes({})), Contains("the target's array is not among no arrays"));
}

TEST_CASE("rows of several texts are one axis more, and so are their tokens") {
  const tests::TemporaryFolder folder;
  const std::string rows = npy_of<float>("<f4", "(3, 2, 2)", std::vector<float>(12, 0.5F));
  const std::string tokens = npy_of<std::int32_t>("<i4", "(3, 2)", {0, 1, 1, 0, 1, 1});
  const auto file = folder.write("texts.npz", archive_with({stored_entry("token.npy", tokens)}, rows));
  const auto source = traces::open_npz(file, {});
  traces::PositionBatch batch;
  REQUIRE(source->read(batch));
  CHECK(source->metadata().vocab_size == 2);
  CHECK(std::vector(batch.sequence.begin(), batch.sequence.end()) == std::vector<std::int64_t>{0, 0, 1, 1, 2, 2});
  CHECK(std::vector(batch.place.begin(), batch.place.end()) == std::vector<std::int64_t>{0, 1, 0, 1, 0, 1});
  CHECK(std::vector(batch.token.begin(), batch.token.end()) == std::vector<std::int32_t>{0, 1, 1, 0, 1, 1});
}

TEST_CASE("arrays that do not fit each other are refused") {
  const auto refusal = [](const char* name, const std::string& array) {
    return npz_refusal(archive_with({stored_entry(name, array)}));
  };
  CHECK_THAT(npz_refusal(zip_bytes({stored_entry("p.npy", half_rows), stored_entry("q.npy", two_numbers)})),
             Contains("q.npy: shape is [2], but must be [2, 2], as p.npy has"));
  CHECK_THAT(refusal("token.npy", npy_of<std::int32_t>("<i4", "(1,)", {1})),
             Contains("token.npy: shape is [1], but must be [2], one for each position of p.npy"));
  CHECK_THAT(refusal("token.npy", two_numbers), Contains("token.npy: element type is <f4, but must be an integer"));
  CHECK_THAT(
      npz_refusal(archive_with({stored_entry("token.npy", npy_of<std::int32_t>("<i4", "(2,)", {0, 2}))}, half_rows)),
      Contains("token.npy: row 1 is 2, but must be a token in [0, 1], or -1 where unknown"));
  CHECK_THAT(npz_refusal(archive_with({}, npy_of<std::int32_t>("<i4", "(2,)", {1, 2}))),
             Contains("p.npy: element type is <i4, but must be a float"));
  CHECK_THAT(npz_refusal(archive_with({}, npy_of<float>("<f4", "(1, 1, 1, 1)", {1}))),
             Contains("shape is [1, 1, 1, 1], but must be [positions, vocabulary], [texts, positions, vocabulary] or "
                      "[positions]"));
}

TEST_CASE("an NPY header that is damaged or claims what is not there is refused before anything is allocated") {
  CHECK(npy_refusal("") == "p.npy: byte 0: p.npy: size is 0 bytes, but must be at least 8 bytes");
  CHECK_THAT(npy_refusal("\x93NUMPX\1" + std::string(8, '\0')), Contains("magic is something else"));
  CHECK_THAT(npy_refusal(npy("<f4", "(1,)", "1234", '\4')), Contains("version is 4, but must be 1, 2 or 3"));
  CHECK_THAT(npy_refusal(std::string("\x93NUMPY\2\0\1", 9)), Contains("size is too small for a header"));
  CHECK_THAT(npy_refusal(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)),
             Contains("header length is 4294967295, but must be at most 2"));
  const auto header = [](const std::string& text) { return npy_refusal(npy_with_header(text, "1234")); };
  CHECK_THAT(header("[1]"), Contains("header is without 'descr'"));
  CHECK_THAT(header("{'descr': '<f4', }"), Contains("header is without 'shape'"));
  CHECK_THAT(header("{'descr': '<f4', 'shape': (1,)}"), Contains("header is without 'fortran_order'"));
  CHECK_THAT(header("{'descr' '<f4'}"), Contains("header is at 'descr' '<f4'}, but must be followed by ':'"));
  CHECK_THAT(header("{'descr': '<f4"), Contains("but must be a string that ends"));
  CHECK_THAT(header("{'descr': "), Contains("header is at 'descr' at its end, but must be a string that ends"));
  CHECK_THAT(header("{'descr': [('a', '<f4')]}"), Contains("element type is structured"));
  const auto rest = [&](const std::string& text) { return header("{'descr': '<f4', " + text); };
  CHECK_THAT(rest("'shape': (-1,)}"), Contains("header is at 'shape' -1, but must be a size in [0, 2^63)"));
  CHECK_THAT(rest("'shape': (99999999999999999999,)}"), Contains("but must be a size in [0, 2^63)"));
  CHECK_THAT(rest("'shape': (1,"), Contains("but must be a tuple of sizes"));
  CHECK_THAT(rest("'shape': (1,), 'fortran_order': Maybe}"),
             Contains("header is at 'fortran_order' Maybe}, but must be False"));
  CHECK(rest("'fortran_order': True, \"shape\": ( 1L, ), 'more': 1}").empty());
}

TEST_CASE("a zip archive with 64-bit fields is read like one without") {
  for (const bool zip64 : {false, true}) {
    const std::string content =
        zip_bytes({stored_entry("p.npy", half_rows), deflated_entry("q.npy", half_rows)}, zip64);
    CHECK(read_npz(content).draft_row(1) == std::vector<double>{0.5, 0.5});
  }
}

TEST_CASE("an archive that is cut off, or whose directory does not lie where it should, is refused") {
  const std::string content = archive_with({});
  CHECK_THAT(npz_refusal(""), Contains("end of the zip archive is missing, but must be there"));
  CHECK_THAT(npz_refusal(content.substr(0, content.size() - 1)), Contains("end of the zip archive is missing"));
  CHECK_THAT(npz_refusal(content + "x"), Contains("end of the zip archive is missing"));
  CHECK_THAT(npz_refusal("junk" + content), Contains("zip directory is "));
  std::string wrong_count = content;
  wrong_count[content.size() - 12] = 9;
  CHECK_THAT(npz_refusal(wrong_count), Contains("directory is 2 entries, but must be 9 entries"));
  std::string wrong_record = zip_bytes({stored_entry("p.npy", half_rows)}, true);
  wrong_record[wrong_record.size() - 22 - 12] = '\x7f';
  CHECK_THAT(npz_refusal(wrong_record), Contains("offset of the zip64 end record is "));
}

TEST_CASE("entries that overlap, run past their end, claim too much or are of another kind are refused") {
  const auto refusal = [](const auto& falsify) {
    return npz_refusal(zip_bytes({stored_entry("p.npy", half_rows), deflated_entry("q.npy", half_rows)}, true,
                                 [&](std::vector<ZipBytesEntry>& entries) { falsify(entries[0], entries[1]); }));
  };
  CHECK_THAT(refusal([](auto& p, auto&) { p.stored_size += 1; }), Contains("up to what follows"));
  CHECK_THAT(refusal([](auto& p, auto&) { p.stored_size = ~0ULL; }),
             Contains("p.npy is 18446744073709551615 bytes behind"));
  CHECK_THAT(refusal([](auto& p, auto& q) { q.offset = p.offset; }), Contains("a local zip header"));
  CHECK_THAT(refusal([](auto& p, auto&) { p.offset += 1; }),
             Contains("p.npy is something else, but must be a local zip"));
  CHECK_THAT(refusal([](auto&, auto& q) { q.offset = ~0ULL; }), Contains("q.npy is something else"));
  CHECK_THAT(refusal([](auto& p, auto&) { p.size += 1; }), Contains("p.npy is stored as "));
  CHECK_THAT(refusal([](auto&, auto& q) { q.size = 1ULL << 60U; }),
             Contains("q.npy is 1152921504606846976 bytes, but must be what "));
  CHECK_THAT(refusal([](auto& p, auto&) { p.flags = 1; }), Contains("p.npy is encrypted, but must be not encrypted"));
  CHECK_THAT(refusal([](auto&, auto& q) { q.method = 12; }), Contains("q.npy is compressed by method 12"));
  CHECK_THAT(refusal([](auto& p, auto&) { p.name = "r.npy"; }),
             Contains("r.npy is of another name in its local header"));
}

TEST_CASE("stored content of another checksum is refused") {
  ZipBytesEntry p = stored_entry("p.npy", half_rows);
  p.crc32 ^= 1U;
  CHECK_THAT(npz_refusal(zip_bytes({p, stored_entry("q.npy", half_rows)})), Contains("p.npy is of checksum "));
}

TEST_CASE("deflated content that is damaged, too short, too long or of another checksum is refused") {
  const auto refusal = [](const auto& falsify) {
    ZipBytesEntry q = deflated_entry("q.npy", half_rows);
    falsify(q);
    return npz_refusal(zip_bytes({stored_entry("p.npy", half_rows), q}));
  };
  const auto resized = [](ZipBytesEntry& q) { q.stored_size = q.content.size(); };
  CHECK_THAT(refusal([](ZipBytesEntry& q) { q.crc32 ^= 1U; }), Contains("q.npy is of checksum "));
  CHECK_THAT(refusal([](ZipBytesEntry& q) { q.content[0] = 7; }), Contains("q.npy is damaged (invalid block type)"));
  CHECK_THAT(refusal([&](ZipBytesEntry& q) {
               q.content.resize(q.content.size() - 3);
               resized(q);
             }),
             Contains("q.npy is deflated data that end after "));
}

TEST_CASE("an archive with an array of one model is refused as that, as an NPY file is") {
  CHECK_THAT(npz_refusal(zip_bytes({stored_entry("a.npy", half_rows)})),
             Contains("file is an array of one model, a.npy, but must be of both, such as p_logprobs and q_logprobs"));
}

TEST_CASE("names of arrays are shown on one line whatever bytes they hold") {
  CHECK_THAT(npz_refusal(zip_bytes({stored_entry("a\nb\xff.npy", half_rows)})),
             Contains("an array of one model, a\\x0ab\\xff.npy, but"));
}

TEST_CASE("NPY and NPZ files are told by their first bytes") {
  CHECK(traces::is_npy(half_rows));
  CHECK_FALSE(traces::is_npy("\x93NUMP"));
  CHECK(traces::is_npz(zip_bytes({})));
  CHECK(traces::is_npz(archive_with({})));
  CHECK_FALSE(traces::is_npz("PK"));
}
