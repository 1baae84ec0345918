#include "sim/ngram_tables.hpp"

#include <string>
#include <vector>

#include "sim/ngram_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/ngram_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using tests::NgramFile;

namespace {

std::string refusal(const NgramFile& tables) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("ngrams.safetensors", tables.bytes());
  return tests::message_of<traces::FileError>([&] { sim::read_ngram_tables(path); });
}

bool ends_with(const std::string& message, const std::string& end) { return message.ends_with(end); }

}  // namespace

TEST_CASE("an n-gram file becomes a unigram distribution and a bigram model discounted towards it") {
  const tests::TemporaryFolder folder;
  const sim::NgramTables tables = sim::read_ngram_tables(folder.write("ngrams.safetensors", NgramFile{}.bytes()));
  CHECK(tables.unigram == std::vector<double>{0.5, 0.375, 0.125});
  sim::NgramModel model(tables);
  std::vector<double> row(3);
  model.score(std::vector<sim::Token>{0}, row);
  // By hand: (3 - 1/2)/4 and (1 - 1/2)/4 stay, the two halves taken off (1/4 in all) go to the unigram.
  CHECK(row[0] == Approx(0.25 * 0.5).epsilon(1e-15));
  CHECK(row[1] == Approx(0.625 + 0.25 * 0.375).epsilon(1e-15));
  CHECK(row[2] == Approx(0.125 + 0.25 * 0.125).epsilon(1e-15));
}

TEST_CASE("an n-gram file with a wrong entry is refused by name, value and expectation") {
  NgramFile other_format;
  other_format.metadata = R"({"version":"1","discount":"0.5"})";
  CHECK(ends_with(refusal(other_format), "metadata format is missing, but must be specdec-ngrams"));
  NgramFile other_discount;
  other_discount.metadata = R"({"format":"specdec-ngrams","version":"1","discount":"nan"})";
  CHECK(ends_with(refusal(other_discount), "metadata discount is nan, but must be a number in [0, 1]"));
  NgramFile token_out_of_range;
  token_out_of_range.tokens[2] = 3;
  CHECK(ends_with(refusal(token_out_of_range), "bigram.tokens[2] is 3, but must be in [0, 2]"));
  NgramFile no_count;
  no_count.counts[0] = 0;
  CHECK(ends_with(refusal(no_count), "bigram.counts[0] is 0, but must be in [1, 2147483647]"));
  NgramFile short_counts;
  short_counts.counts.pop_back();
  CHECK(ends_with(refusal(short_counts), "bigram.counts.shape is [2], but must be [3]"));
  NgramFile descending;
  descending.offsets = {0, 3, 2, 3};
  CHECK(ends_with(refusal(descending), "bigram.row_offsets[2] is 2, but must be at least 3"));
  NgramFile late;
  late.offsets = {1, 2, 2, 3};
  CHECK(ends_with(refusal(late), "bigram.row_offsets[0] is 1, but must be 0"));
  NgramFile unowned;
  unowned.offsets = {0, 1, 2, 2};
  CHECK(ends_with(refusal(unowned), "bigram.row_offsets[3] is 2, but must be 3, the entries"));
  NgramFile nothing_counted;
  nothing_counted.unigram = {0, 0, 0};
  CHECK(ends_with(refusal(nothing_counted), "sum of unigram.counts is 0, but must be at least 1"));
}
