#include "sim/ngram_tables.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;

namespace {

/// Counts over three tokens: 0 is followed by 1 (3 times) and 2 (once), 1 by 0 (twice), 2 by nothing.
struct Tables {
  std::string metadata = R"({"format":"specdec-ngrams","version":"1","discount":"0.5"})";
  std::vector<std::int64_t> unigram{4, 3, 1};
  std::vector<std::int32_t> offsets{0, 2, 3, 3};
  std::vector<std::int32_t> tokens{1, 2, 0};
  std::vector<std::int32_t> counts{3, 1, 2};

  std::string file() const {
    std::string header = "{\"__metadata__\":";
    header += metadata;
    std::string data;
    const auto add = [&](const char* name, const char* type, const auto& values) {
      const std::size_t begin = data.size();
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
      header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name, type, values.size(),
                            begin, data.size());
    };
    add("unigram.counts", "I64", unigram);
    add("bigram.row_offsets", "I32", offsets);
    add("bigram.tokens", "I32", tokens);
    add("bigram.counts", "I32", counts);
    header += '}';
    const std::uint64_t length = header.size();
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes.append(header).append(data);
  }
};

std::string refusal(const Tables& tables) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("ngrams.safetensors", tables.file());
  return tests::message_of<traces::FileError>([&] { sim::read_ngram_tables(path); });
}

bool ends_with(const std::string& message, const std::string& end) { return message.ends_with(end); }

}  // namespace

TEST_CASE("an n-gram file becomes a unigram distribution and a bigram model discounted towards it") {
  const tests::TemporaryFolder folder;
  const sim::NgramTables tables = sim::read_ngram_tables(folder.write("ngrams.safetensors", Tables{}.file()));
  CHECK(tables.unigram == std::vector<double>{0.5, 0.375, 0.125});
  sim::BigramModel model(tables.unigram, tables.bigram, tables.discount);
  std::vector<double> row(3);
  model.score(std::vector<sim::Token>{0}, row);
  // By hand: (3 - 1/2)/4 and (1 - 1/2)/4 stay, the two halves taken off (1/4 in all) go to the unigram.
  CHECK(row[0] == Approx(0.25 * 0.5).epsilon(1e-15));
  CHECK(row[1] == Approx(0.625 + 0.25 * 0.375).epsilon(1e-15));
  CHECK(row[2] == Approx(0.125 + 0.25 * 0.125).epsilon(1e-15));
}

TEST_CASE("an n-gram file with a wrong entry is refused by name, value and expectation") {
  Tables other_format;
  other_format.metadata = R"({"version":"1","discount":"0.5"})";
  CHECK(ends_with(refusal(other_format), "metadata format is missing, but must be specdec-ngrams"));
  Tables other_discount;
  other_discount.metadata = R"({"format":"specdec-ngrams","version":"1","discount":"nan"})";
  CHECK(ends_with(refusal(other_discount), "metadata discount is nan, but must be a number in [0, 1]"));
  Tables token_out_of_range;
  token_out_of_range.tokens[2] = 3;
  CHECK(ends_with(refusal(token_out_of_range), "bigram.tokens[2] is 3, but must be in [0, 2]"));
  Tables no_count;
  no_count.counts[0] = 0;
  CHECK(ends_with(refusal(no_count), "bigram.counts[0] is 0, but must be in [1, 2147483647]"));
  Tables short_counts;
  short_counts.counts.pop_back();
  CHECK(ends_with(refusal(short_counts), "bigram.counts.shape is [2], but must be [3]"));
  Tables descending;
  descending.offsets = {0, 3, 2, 3};
  CHECK(ends_with(refusal(descending), "bigram.row_offsets[2] is 2, but must be at least 3"));
  Tables nothing_counted;
  nothing_counted.unigram = {0, 0, 0};
  CHECK(ends_with(refusal(nothing_counted), "sum of unigram.counts is 0, but must be at least 1"));
}
