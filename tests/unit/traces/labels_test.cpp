#include "traces/formats/labels.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec;
using traces::SequenceNumbers;
using traces::TaskIds;

namespace {

struct LabelledRow {
  std::optional<std::string_view> label;
  std::optional<std::int64_t> place;
};

/// "sequence/place" of each row, and what is wrong with the first bad one.
std::string numbered(const std::vector<LabelledRow>& rows) {
  SequenceNumbers numbers;
  std::string text;
  for (const LabelledRow& row : rows) {
    if (const auto error = numbers.next(row.label, row.place)) {
      return text + fmt::format("{} is {}, but must be {}", error->field, error->found, error->expected);
    }
    text += fmt::format("{}/{} ", numbers.sequence(), numbers.place());
  }
  return text;
}

}  // namespace

TEST_CASE("sequences are numbered by their labels, by their places, or as one") {
  CHECK(numbered({{"b", {}}, {"b", {}}, {"a", {}}, {"", {}}}) == "0/0 0/1 1/0 2/0 ");
  CHECK(numbered({{"7", 4}, {"7", 5}, {"9", 0}}) == "0/4 0/5 1/0 ");
  CHECK(numbered({{{}, 3}, {{}, 4}, {{}, 0}, {{}, 0}, {{}, 1}}) == "0/3 0/4 1/0 2/0 2/1 ");
  CHECK(numbered({{{}, {}}, {{}, {}}}) == "0/0 0/1 ");
}

TEST_CASE("a sequence in two pieces and a place out of step are refused") {
  CHECK(numbered({{"a", {}}, {"b", {}}, {"a", {}}}) ==
        "0/0 1/0 sequence is a again, but must be in one piece: all rows of a sequence stand together");
  CHECK(numbered({{"1", {}}, {"2", {}}, {"1", {}}}).ends_with("all rows of a sequence stand together"));
  CHECK(numbered({{"a", 0}, {"a", 2}}) == "0/0 pos is 2, but must be 1, one more than before it");
  CHECK(numbered({{"a", 1}, {"a", 1}}).ends_with("pos is 1, but must be 2, one more than before it"));
  CHECK(numbered({{{}, 0}, {{}, 2}}).ends_with("pos is 2, but must be 1, one more than before it"));
  CHECK(numbered({{{}, -1}}) == "pos is -1, but must be at least 0");
}

TEST_CASE("rising numbers need no memory, other names are limited") {
  SequenceNumbers numbers;
  for (std::size_t i = 0; i < SequenceNumbers::most_names; ++i) numbers.next(std::to_string(i), std::nullopt);
  CHECK_FALSE(numbers.next("1048576", std::nullopt));
  CHECK(numbers.sequence() == 1048576);
  CHECK(numbers.next("a", std::nullopt)->expected == "a rising number in a recording of more than 1048576 sequences");
  CHECK(numbers.next("3", std::nullopt)->found == "3");
}

TEST_CASE("tasks get ids in the order of their names' first use") {
  TaskIds ids;
  std::vector<std::string> names;
  CHECK(ids.id_of("prose", names) == 0);
  CHECK(ids.id_of("code", names) == 1);
  CHECK(ids.id_of("prose", names) == 0);
  CHECK(ids.id_of("", names) == -1);
  CHECK(names == std::vector<std::string>{"prose", "code"});
  CHECK_FALSE(ids.id_of(std::string(257, 'x'), names));
  for (std::size_t i = 2; i < TaskIds::most_tasks; ++i) ids.id_of(std::to_string(i), names);
  CHECK_FALSE(ids.id_of("one more", names));
  CHECK(ids.id_of("code", names) == 1);
  CHECK(TaskIds::expected() == "one of at most 4096 names of at most 256 bytes");
}
