#include "tests/support/source_dir.hpp"
#include "traces/formats/recording_formats.hpp"

#include <algorithm>
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
using traces::PositionBatch;

namespace {

const std::filesystem::path samples = std::filesystem::path(tests::source_dir()) / "traces/samples/llamacpp";

constexpr float real_scale = 16.0F / 65535.0F;

struct FileRow {
  float scale = real_scale;
  float min_log_prob = 0;
  std::vector<std::uint16_t> codes;
};

std::string file_of(std::int32_t context, std::int32_t vocab, std::int32_t chunks,
                    const std::vector<std::int32_t>& tokens, const std::vector<FileRow>& rows) {
  std::string file = "_logits_";
  for (const std::int32_t field : {context, vocab, chunks}) tests::append_bytes(file, field);
  for (const std::int32_t token : tokens) tests::append_bytes(file, token);
  for (const FileRow& row : rows) {
    tests::append_bytes(file, row.scale);
    tests::append_bytes(file, row.min_log_prob);
    for (const std::uint16_t code : row.codes) tests::append_bytes(file, code);
    if (row.codes.size() % 2 == 1) tests::append_bytes(file, std::uint16_t{0xffff});
  }
  return file;
}

/// The header's example: one row over three tokens.
const FileRow example_row = {real_scale, -16 - std::log(2.0F), {0, 65535, 65535}};
const std::string example = file_of(4, 3, 1, {0, 1, 1, 2}, {example_row});

std::vector<double> only_row(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.kld", content);
  return tests::WholeTrace(*traces::open_llamacpp_logits(path, path)).target_row(0);
}

/// The error in the two contents.
std::string refusal(const std::string& target, const std::string& draft) {
  const tests::TemporaryFolder folder;
  const auto p = folder.write("p.kld", target);
  const auto q = folder.write("q.kld", draft);
  return tests::refusal_of(folder.path(), [&] { return traces::open_llamacpp_logits(p, q); });
}
std::string refusal(const std::string& content) { return refusal(content, content); }

std::int64_t argmax(const std::vector<double>& row) { return std::max_element(row.begin(), row.end()) - row.begin(); }

}  // namespace

TEST_CASE("the pair that llama.cpp wrote gives the figures of its README") {
  const auto source = traces::open_llamacpp_logits(samples / "target.kld", samples / "draft.kld");
  CHECK(source->format() == "llama.cpp logits");
  CHECK(source->metadata().vocab_size == 513);
  CHECK(source->positions() == 124);
  CHECK(source->metadata().path == traces::TextSource::other);
  REQUIRE(source->notes().size() == 1);
  CHECK(source->notes()[0].code == "first_token_may_be_bos");

  std::vector<double> betas;
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> sequences;
  double emitted = 0;
  double at_draft_top = 0;
  std::int64_t same_top = 0;
  for (PositionBatch batch; source->read(batch);) {
    CHECK(batch.first == static_cast<std::int64_t>(betas.size()));
    CHECK(batch.tier == traces::Tier::full);
    for (std::int64_t i = 0; i < batch.size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::vector<double> p = tests::row_values(batch.target_rows[i]);
      const std::vector<double> q = tests::row_values(batch.draft_rows[i]);
      double beta = 0;
      double sum = 0;
      for (std::size_t x = 0; x < p.size(); ++x) {
        beta += std::min(p[x], q[x]);
        sum += p[x];
      }
      CHECK(std::abs(sum - 1) <= 2e-5);
      CHECK(std::abs(sum - 1) <= batch.target_rows.sum_tolerance);
      CHECK(batch.place[at] == static_cast<std::int64_t>(betas.size()) % 31);
      const auto x = static_cast<std::size_t>(batch.token[at]);
      emitted += std::min(1.0, q[x] / p[x]);
      at_draft_top += p[static_cast<std::size_t>(argmax(q))];
      same_top += argmax(p) == argmax(q) ? 1 : 0;
      betas.push_back(beta);
      tokens.push_back(batch.token[at]);
      sequences.push_back(batch.sequence[at]);
    }
  }
  REQUIRE(betas.size() == 124);
  CHECK_THAT(source->refusal(32, traces::Role::draft, "x", "y").what(),
             Contains("draft.kld: byte 34196: row 1 of chunk 1 is x, but must be y"));
  CHECK(sequences[30] == 0);
  CHECK(sequences[31] == 1);
  CHECK(sequences[123] == 3);
  double mean = 0;
  for (const double beta : betas) mean += beta / 124;
  CHECK(mean == Approx(0.6115222520).margin(1e-9));
  CHECK(betas[0] == Approx(0.64272852).margin(1e-8));
  CHECK(betas[1] == Approx(0.58714308).margin(1e-8));
  CHECK(betas[2] == Approx(0.33175172).margin(1e-8));
  CHECK(emitted / 124 > 0.7972);
  CHECK(emitted / 124 < 0.7974);
  CHECK(at_draft_top / 124 == Approx(0.0762721292).margin(1e-9));
  CHECK(same_top == 36);
  CHECK(std::vector(tokens.begin(), tokens.begin() + 5) == std::vector<std::int32_t>{153, 132, 74, 114, 103});
}

TEST_CASE("the example of the header has 52 bytes, a row of 0, 1/2, 1/2 and the last token") {
  CHECK(example.size() == 52);
  const std::vector<double> row = only_row(example);
  CHECK(row[0] == 0);
  CHECK(row[1] == Approx(0.5).epsilon(1e-6));
  CHECK(row[2] == Approx(0.5).epsilon(1e-6));
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.kld", example);
  const auto source = traces::open_llamacpp_logits(path, path, traces::TextSource::target);
  CHECK(source->metadata().path == traces::TextSource::target);
  PositionBatch batch;
  REQUIRE(source->read(batch));
  CHECK(batch.token[0] == 2);
  CHECK_FALSE(source->read(batch));
}

TEST_CASE("every code is the exponential of scale times code plus floor, and code 0 is nothing") {
  // Two tokens of codes 65535 and c; the floor makes the two sum to 1.
  for (const std::uint16_t code : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{255}, std::uint16_t{256},
                                   std::uint16_t{40000}, std::uint16_t{65534}}) {
    const double exponent = static_cast<double>(real_scale) * code;
    const double top = static_cast<double>(real_scale) * 65535;
    const auto floor = static_cast<float>(-std::log(std::exp(exponent) + std::exp(top)));
    const std::vector<double> row = only_row(file_of(3, 2, 1, {0, 1, 0}, {{real_scale, floor, {code, 65535}}}));
    CHECK(row[0] == Approx(code == 0 ? 0 : std::exp(exponent + floor)).epsilon(1e-7));
    CHECK(row[1] == Approx(std::exp(top + floor)).epsilon(1e-7));
  }
}

TEST_CASE("scale 0 is the uniform row") {
  CHECK(only_row(file_of(3, 4, 1, {0, 1, 0}, {{0, -std::log(4.0F), {0, 0, 0, 0}}})) == std::vector<double>(4, 0.25));
}

TEST_CASE("mass at the floor stays missing and the tolerance says how much it can be") {
  // 1000 tokens at the floor of a row whose other token holds the rest.
  std::vector<std::uint16_t> codes(1001, 0);
  codes[7] = 65535;
  const auto floor = static_cast<float>(-16 - std::log1p(1000 * std::exp(-16.0)));
  const tests::TemporaryFolder folder;
  const auto path = folder.write("x.kld", file_of(3, 1001, 1, {0, 1, 0}, {{real_scale, floor, codes}}));
  const auto source = traces::open_llamacpp_logits(path, path);
  PositionBatch batch;
  REQUIRE(source->read(batch));
  double sum = 0;
  for (const double p : tests::row_values(batch.target_rows[0])) sum += p;
  const double missing = 1000 * std::exp(-16.0);
  CHECK(1 - sum == Approx(missing).epsilon(0.02));
  CHECK(batch.target_rows.sum_tolerance >= missing);
  CHECK(batch.target_rows.sum_tolerance < missing + 2e-4);
}

TEST_CASE("files that are not whole are refused with the size they should have") {
  CHECK(refusal("") == "p.kld: byte 0: magic is something else, but must be \"_logits_\"");
  CHECK(refusal(example.substr(0, 12)) ==
        "p.kld: file size is 12 bytes, but must be longer: the text must have at least twice as many tokens as the "
        "context, or nothing is scored");
  CHECK(refusal(example.substr(0, 19)) == "p.kld: file size is 19 bytes, but must be at least 20 bytes for the header");
  CHECK(refusal(example.substr(0, 51)) ==
        "p.kld: file size is 51 bytes, but must be 52 bytes, as n_ctx 4, n_vocab 3 and n_chunk 1 say (0 of 1 rows are "
        "there)");
  CHECK_THAT(refusal(example + "x"), Contains("file size is 53 bytes, but must be 52 bytes"));
}

TEST_CASE("counts below what a file needs, or larger than any file, are refused before anything is read") {
  CHECK(refusal(file_of(2, 3, 1, {}, {})) == "p.kld: byte 8: n_ctx is 2, but must be in [3, 2147483647]");
  CHECK(refusal(file_of(4, 0, 1, {}, {})) == "p.kld: byte 12: n_vocab is 0, but must be in [1, 16777216]");
  CHECK(refusal(file_of(4, 3, -1, {}, {})) == "p.kld: byte 16: n_chunk is -1, but must be in [1, 2147483647]");
  constexpr std::int32_t huge = std::numeric_limits<std::int32_t>::max();
  CHECK_THAT(refusal(file_of(huge, 1 << 24, huge, {}, {})),
             Contains("must be more than 2^63 bytes, as n_ctx 2147483647"));
  CHECK_THAT(refusal(file_of(huge, 1, 1, {}, {})), Contains("file size is 20 bytes, but must be 21474836484 bytes"));
}

TEST_CASE("two files over different texts or vocabularies are refused at the first difference") {
  const std::string other_text = file_of(4, 3, 1, {0, 1, 0, 2}, {example_row});
  CHECK(refusal(example, other_text) == "q.kld: byte 28: token 2 of chunk 0 is 0, but must be 1, as in p.kld");
  const std::string second_chunk = file_of(4, 3, 2, {0, 1, 1, 2, 0, 1, 2, 2}, {example_row, example_row});
  const std::string other_chunk = file_of(4, 3, 2, {0, 1, 1, 2, 0, 2, 2, 2}, {example_row, example_row});
  CHECK(refusal(second_chunk, other_chunk) == "q.kld: byte 40: token 1 of chunk 1 is 2, but must be 1, as in p.kld");
  CHECK(refusal(example, second_chunk) == "q.kld: byte 16: n_chunk is 2, but must be 1, as in p.kld");
  const std::string other_vocab =
      file_of(4, 4, 1, {0, 1, 1, 2}, {{real_scale, -16 - std::log(2.0F), {0, 0, 65535, 65535}}});
  CHECK(refusal(example, other_vocab) == "q.kld: byte 12: n_vocab is 4, but must be 3, as in p.kld");
  CHECK(refusal(file_of(3, 3, 1, {0, 1, 2}, {example_row}), example) ==
        "q.kld: byte 8: n_ctx is 4, but must be 3, as in p.kld");
}

TEST_CASE("a token outside the vocabulary is refused") {
  CHECK(refusal(file_of(4, 3, 1, {0, 3, 1, 2}, {example_row})) ==
        "p.kld: byte 24: token 1 of chunk 0 is 3, but must be in [0, 2]");
  CHECK_THAT(refusal(file_of(4, 3, 1, {0, 1, -1, 2}, {example_row})), Contains("token 2 of chunk 0 is -1"));
}

TEST_CASE("a row whose numbers cannot be is refused") {
  const auto with = [](float scale, float floor) {
    return refusal(file_of(4, 3, 1, {0, 1, 1, 2}, {{scale, floor, {0, 65535, 65535}}}));
  };
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(with(nan, -16) == "p.kld: byte 36: row 0 of chunk 0: scale is nan, but must be in [0, 0.0002444]");
  CHECK_THAT(with(-real_scale, -16), Contains("scale is -0.000244"));
  CHECK_THAT(with(infinity, -16), Contains("scale is inf"));
  CHECK_THAT(with(1, -16), Contains("scale is 1,"));
  CHECK(with(real_scale, nan) ==
        "p.kld: byte 40: row 0 of chunk 0: min_log_prob is nan, but must be finite and at most 0");
  CHECK_THAT(with(real_scale, -infinity), Contains("min_log_prob is -inf"));
  CHECK_THAT(with(real_scale, 1), Contains("min_log_prob is 1"));
  CHECK_THAT(with(real_scale, -16), Contains("row 0 of chunk 0: sum of probabilities is 2,"));
  CHECK_THAT(with(real_scale, -17), Contains("row 0 of chunk 0: sum of probabilities is 0.7357"));
}
