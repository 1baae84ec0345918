#include "render/table.hpp"
#include "render/page/html.hpp"
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
      make_table(drafts, {{"name", {Align::left}, &Draft::name}, {"n", tokens_of}, {"note", {Align::left}, note}});
  CHECK(text_of(table) ==
        "name      n  note\n"
        "a       100  x\n"
        "longer    7\n");
}

TEST_CASE("a column that a table lacks has neither heading nor cells, and its cells are not asked for") {
  const auto unknown = [](const Draft&) -> std::string { throw std::logic_error("not known"); };
  const Table table =
      make_table(drafts, {{"name", &Draft::name}, {"cost", {.shown = false}, unknown}, {"n", tokens_of}}, "Drafts");
  REQUIRE(table.headings.size() == 2);
  CHECK(table.headings[1].text == "n");
  CHECK(table.rows[0].cells == std::vector<std::string>{"a", "100"});
  CHECK(text_of(table) == "  name    n\n     a  100\nlonger    7\n");
}

TEST_CASE("columns for pages alone take no room in text") {
  const Table table = make_table(
      drafts, {{"file", {.page_only = true}, [](const Draft&) { return std::string(60, 'f'); }}, {"n", tokens_of}});
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
    return text_of(make_table(named, {{"name", {.align = Align::left, .widest = widest}, &Draft::name}}));
  };
  CHECK(cut_to(0) == "name\na\\nb\\x1b[1m\nh\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\n");
  // What is left of the middle ends between characters of two bytes.
  CHECK(cut_to(8) == "name\na\\n...1m\nh\xc3\xa4...\xc3\xa4\n");
}

TEST_CASE("a table has a line for each row, and rows can be marked") {
  const Table table = make_table(drafts, {{"name", {Align::left}, &Draft::name}, {"n", tokens_of}}, "Drafts",
                           [](const Draft& draft) { return draft.tokens < 10; });
  CHECK(text_of(table) ==
        "name      n\n"
        "a       100\n"
        "longer    7\n");
  CHECK_FALSE(table.rows[0].is_marked);
  CHECK(table.rows[1].is_marked);
}

TEST_CASE("a table on a page has a caption, headings for columns and rows, and marks") {
  const Table table = make_table(drafts,
                           {{"name of it", {Align::left}, [](const Draft& draft) { return "<" + draft.name + ">"; }},
                            {"n", {.title = "Tokens & more"}, tokens_of},
                            {"file", {.align = Align::left, .page_only = true}, [](const Draft&) { return "a\nb"; }},
                            {"cost", {.shown = false}, tokens_of}},
                           "A & B", [](const Draft& draft) { return draft.tokens < 10; });
  CHECK(html_of(table) ==
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"A &amp; B\">\n"
        "<table>\n<caption>A &amp; B</caption>\n"
        "<thead><tr><th scope=\"col\">Name of it</th><th scope=\"col\" class=\"n\">Tokens &amp; more</th>"
        "<th scope=\"col\">File</th></tr></thead>\n<tbody>\n"
        "<tr><th scope=\"row\">&lt;a&gt;</th><td class=\"n\">100</td><td>a\\nb</td></tr>\n"
        "<tr class=\"mark\"><th scope=\"row\">&lt;longer&gt;</th><td class=\"n\">7</td><td>a\\nb</td></tr>\n"
        "</tbody>\n</table>\n</div>\n");
}

TEST_CASE("a table without rows leaves no trace on a page") {
  CHECK(html_of(make_table(std::vector<Draft>{}, {{"name", &Draft::name}}, "Drafts")) == "");
}

TEST_CASE("cells on a page are whole, however few bytes of them text shows") {
  const Table table = make_table(drafts, {{"name", {.widest = 5}, &Draft::name}}, "Drafts");
  CHECK(text_of(table) == " name\n    a\nl...r\n");
  CHECK(html_of(table).find(">longer<") != std::string::npos);
}
