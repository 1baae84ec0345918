#include "render/table.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::render;

namespace {

struct Draft {
  std::string name;
  int tokens;
};

const std::vector<Draft> drafts = {{"a", 100}, {"longer", 7}};

std::string tokens_of(const Draft& draft) { return std::to_string(draft.tokens); }

}  // namespace

TEST_CASE("columns of a table as text line up and lines carry no blanks at their end") {
  const auto note = [](const Draft& draft) { return draft.tokens > 9 ? "x" : ""; };
  const Table table =
      make_table(drafts, {{"name", &Draft::name, {Align::left}}, {"n", tokens_of}, {"note", note, {Align::left}}});
  CHECK(text_of(table) ==
        "name      n  note\n"
        "a       100  x\n"
        "longer    7\n");
}

TEST_CASE("a column that a table lacks has neither heading nor cells, and its cells are not asked for") {
  const auto unknown = [](const Draft&) -> std::string { throw std::logic_error("not known"); };
  const Table table =
      make_table(drafts, {{"name", &Draft::name}, {"cost", unknown, {.shown = false}}, {"n", tokens_of}}, "Drafts");
  REQUIRE(table.headings.size() == 2);
  CHECK(table.headings[1].text == "n");
  CHECK(table.rows[0].cells == std::vector<std::string>{"a", "100"});
  CHECK(text_of(table) == "  name    n\n     a  100\nlonger    7\n");
}

TEST_CASE("columns for pages alone take no room in text") {
  const Table table = make_table(
      drafts, {{"file", [](const Draft&) { return std::string(60, 'f'); }, {.page_only = true}}, {"n", tokens_of}});
  CHECK(text_of(table) == "  n\n100\n  7\n");
  CHECK(table.rows[0].cells.size() == 2);
}

TEST_CASE("a table without rows is its headings as text, and one without columns an empty line") {
  CHECK(text_of(make_table(std::vector<Draft>{}, {{"name", &Draft::name}, {"n", tokens_of}})) == "name  n\n");
  CHECK(text_of(make_table(std::vector<Draft>{}, {})) == "\n");
}

TEST_CASE("text of a table shows control characters and cuts long cells between characters") {
  const std::vector<Draft> named = {{"a\nb\x1b[1m", 1}, {"h\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 2}};
  const auto cut_to = [&](std::size_t widest) {
    return text_of(make_table(named, {{"name", &Draft::name, {.align = Align::left, .widest = widest}}}));
  };
  CHECK(cut_to(0) == "name\na\\x0ab\\x1b[1m\nh\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\n");
  // Five of eight bytes end within the third character of two bytes.
  CHECK(cut_to(8) == "name\na\\x0a...\nh\xc3\xa4\xc3\xa4...\n");
}

TEST_CASE("a heading across the columns stands above its row, and rows can be marked") {
  Table table = make_table(drafts, {{"name", &Draft::name, {Align::left}}, {"n", tokens_of}}, "Drafts",
                           [](const Draft& draft) { return draft.tokens < 10; });
  table.rows[1].above = "of another kind:";
  CHECK(text_of(table) ==
        "name      n\n"
        "a       100\n"
        "of another kind:\n"
        "longer    7\n");
  CHECK_FALSE(table.rows[0].is_marked);
  CHECK(table.rows[1].is_marked);
}
