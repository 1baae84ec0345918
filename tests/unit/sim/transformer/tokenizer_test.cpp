#include "sim/transformer/tokenizer.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/sim/transformer/fixtures.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using sim::Token;
using sim::Tokenizer;

TEST_CASE("text survives encoding and decoding, unseen characters by their bytes") {
  const Tokenizer tokenizer = Tokenizer::load(tests::transformer_fixture("tokenizer.model"));
  for (const std::string text : {"for (int i = 0; i < n; ++i)", "  two  spaces\nand a line", "\xe2\x82\xac 5", ""}) {
    CHECK(tokenizer.decode(tokenizer.encode(text, false)) == text);
    std::string pieces;
    for (const Token token : tokenizer.encode(text, true)) pieces += tokenizer.piece(token);
    CHECK(pieces == text);
  }
}

TEST_CASE("the beginning-of-sequence token stands in front only when asked for") {
  const Tokenizer tokenizer = Tokenizer::load(tests::transformer_fixture("tokenizer.model"));
  REQUIRE(tokenizer.begin_token() == 1);
  CHECK(tokenizer.end_token() == 2);
  const auto with = tokenizer.encode("int main", true);
  const auto without = tokenizer.encode("int main", false);
  CHECK(with.front() == 1);
  CHECK(std::vector<Token>(with.begin() + 1, with.end()) == without);
  CHECK(tokenizer.piece(1).empty());
}

TEST_CASE("a token outside the vocabulary is refused with the range") {
  const Tokenizer tokenizer = Tokenizer::load(tests::transformer_fixture("tokenizer.model"));
  const auto last = static_cast<Token>(tokenizer.vocab_size() - 1);
  CHECK_NOTHROW(tokenizer.piece(last));
  CHECK_THROWS_AS(tokenizer.piece(last + 1), std::domain_error);
  CHECK_THROWS_AS(tokenizer.decode(std::vector<Token>{1, -1}), std::domain_error);
}

TEST_CASE("a file that is missing or no SentencePiece model is refused") {
  const tests::TemporaryFolder folder;
  CHECK_THROWS_AS(Tokenizer::load(folder.path() / "tokenizer.model"), traces::FileError);
  CHECK_THROWS_AS(Tokenizer::load(folder.write("tokenizer.model", "nonsense")), traces::FileError);
}
