#include <fstream>
#include <limits>

#include "cli/files.hpp"
#include "cli/report.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/text.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec::cli;
using namespace specdec::render;
using nlohmann::ordered_json;
using specdec::tests::content_of;
using specdec::tests::ScratchFolder;

TEST_CASE("numbers that are not finite are null with a note beside them") {
  ordered_json object;
  put_number(object, "finite", 1.5);
  put_number(object, "above", std::numeric_limits<double>::infinity());
  put_number(object, "below", -std::numeric_limits<double>::infinity());
  put_number(object, "undefined", std::numeric_limits<double>::quiet_NaN());
  CHECK(object.dump() ==
        R"({"finite":1.5,"above":null,"above_note":"infinite","below":null,"below_note":"minus infinity",)"
        R"("undefined":null,"undefined_note":"not a number"})");
}

TEST_CASE("doubles in JSON read back as the same doubles") {
  for (const double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.123456789}) {
    CHECK(ordered_json::parse(ordered_json(value).dump()).get<double>() == value);
  }
  CHECK(ordered_json(0.1).dump() == "0.1");
}

TEST_CASE("CSV gives an interval two columns also where it is null") {
  const ordered_json rows = {{{"speedup_ci95", nullptr}, {"alpha_bounds", {0, 1}}},
                             {{"speedup_ci95", {1, 2}}, {"alpha_bounds", nullptr}}};
  CHECK(to_csv(rows) ==
        "speedup_ci95_low,speedup_ci95_high,alpha_bounds_low,alpha_bounds_high\n"
        ",,0,1\n"
        "1,2,,\n");
}

TEST_CASE("CSV flattens estimates, joins arrays, quotes what needs it and leaves null empty") {
  const ordered_json rows = {{{"task", "a,\"b\""},
                              {"alpha", {{"value", 0.5}, {"ci95", {0.25, 0.75}}, {"method", "batches"}}},
                              {"gammas", {1, 2}}},
                             {{"task", "plain"}, {"alpha", nullptr}, {"gammas", ordered_json::array()}}};
  CHECK(to_csv(rows) ==
        "task,alpha_value,alpha_ci95_low,alpha_ci95_high,alpha_method,gammas\n"
        "\"a,\"\"b\"\"\",0.5,0.25,0.75,batches,1;2\n"
        "plain,,,,,\n");
  const ordered_json none = {{{"task", "plain"}, {"alpha", nullptr}, {"gammas", ordered_json::array()}}};
  CHECK(to_csv(none, ordered_json::array({rows[0]})) ==
        "task,alpha_value,alpha_ci95_low,alpha_ci95_high,alpha_method,gammas\nplain,,,,,\n");
}

TEST_CASE("CSV leaves out lists of objects, which no cell can hold") {
  const ordered_json rows = {{{"name", "a"}, {"points", {{{"batch", 1}}, {{"batch", 2}}}}, {"gammas", {1, 2}}}};
  CHECK(to_csv(rows) == "name,gammas\na,1;2\n");
}

TEST_CASE("what a spreadsheet would compute is marked as text, options and numbers are not") {
  ordered_json rows = ordered_json::array();
  for (const char* name : {"=1+1", "+1", "@SUM(A1)", "-1+1", "--k", "-", "a"})
    rows.push_back({{"name", name}, {"x", -1}});
  CHECK(to_csv(rows) == "name,x\n'=1+1,-1\n'+1,-1\n'@SUM(A1),-1\n'-1+1,-1\n--k,-1\n-,-1\na,-1\n");
}

TEST_CASE("a table within the rows of another is printed with their keys, and left out of theirs") {
  const ordered_json document = {{"points",
                                  {{{"batch", 1}, {"c", 0.5}, {"rows", {{{"gamma", 1}}, {{"gamma", 2}}}}},
                                   {{"batch", 8}, {"c", 0.7}, {"rows", ordered_json::array()}},
                                   {{"batch", 9}, {"c", 0.8}, {"rows", {{{"gamma", 1}}}}}}}};
  const std::vector<CsvTable> tables = {{"points", "/points"}, {"rows", "/points/*/rows", {"batch"}}};
  CHECK(to_csv(rows_of(document, tables[0], tables)) == "batch,c\n1,0.5\n8,0.7\n9,0.8\n");
  CHECK(to_csv(rows_of(document, tables[1], tables)) == "batch,gamma\n1,1\n1,2\n9,1\n");
}

TEST_CASE("text is broken at blanks before column 100 and indented from the second line on") {
  const std::string word(40, 'a');
  CHECK(wrapped(word + " " + word + " " + word, 2) == word + " " + word + "\n  " + word);
  CHECK(wrapped("") == "");
}

TEST_CASE("answers have colours, and the terminal's width, on a terminal that shows them and nowhere else") {
  const ScratchFolder scratch;
  const auto on_terminal = [&](const std::string& setting, const std::string& arguments) {
    const std::string command =
        "stty cols 72 rows 40; " + setting + " " + specdec::tests::specdec_binary() + " " + arguments;
    const std::string shown = (scratch / "shown").string();
    REQUIRE(std::system(("script -qec '" + command + "' /dev/null >" + shown + " </dev/null").c_str()) == 0);
    return content_of(shown);
  };
  const auto longest_line = [](const std::string& text) {
    std::size_t longest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
  };
  const std::string plan = "plan --alpha 0.8 --c 0.1";
  const std::string coloured = on_terminal("TERM=xterm", plan);
  CHECK_THAT(coloured, Catch::Contains("\x1b[1mDraft 6 tokens: about"));
  CHECK_THAT(on_terminal("TERM=xterm", "list hardware"), Catch::Contains(" devices.\x1b[0m"));
  const std::string plain = on_terminal("TERM=xterm NO_COLOR=1", plan);
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(longest_line(plain) <= 73);  // the terminal ends lines by two characters
  CHECK(longest_line(specdec::tests::run_specdec(plan).out) > 90);
  const std::string file = (scratch / "plan.txt").string();
  on_terminal("TERM=xterm", plan + " --output " + file);
  CHECK(content_of(file) == specdec::tests::run_specdec(plan).out);
}

TEST_CASE("numbers for humans keep a few digits") {
  CHECK(brief(0.123456) == "0.1235");
  CHECK(brief(2.0) == "2");
  CHECK(in_column(2.0) == "2.000");
  CHECK(in_column(0.000123456) == "0.0001235");
  CHECK(in_column(1.23456e9) == "1.235e+09");
  CHECK(fixed(1.23456) == "1.235");
  CHECK(fixed(std::optional(1.23456), 1) == "1.2");
  CHECK(fixed(std::optional<double>()) == "-");
}

TEST_CASE("an interval is half of it where it lies evenly around the value, else its ends") {
  using specdec::estimate::Interval;
  CHECK(with_interval({1.5, Interval{1.45, 1.552}, ""}, 3) == "1.500 +-0.051");
  CHECK(with_interval({1.98, Interval{1.90, 2.0}, ""}, 2) == "1.98 [1.90, 2.00]");
  CHECK(with_interval({1, Interval{0.93, 1}, ""}, 3) == "1.000 [0.930, 1.000]");
  CHECK(with_interval({1, Interval{1, 1}, ""}, 3) == "1.000 +-0.000");
  CHECK(with_interval({1.25, std::nullopt, ""}, 2) == "1.25");
}

TEST_CASE("nearly everything is not 100 per cent") {
  CHECK(percent(1) == "100%");
  CHECK(percent(0.99996) == ">99.9%");
  CHECK(percent(0.9968) == "99.7%");
  CHECK(percent(0.9949) == "99%");
  CHECK(percent(0.0123) == "1.2%");
  CHECK(percent(0) == "0%");
}

TEST_CASE("an output file replaces the earlier one as a whole, through links") {
  const ScratchFolder scratch;
  std::ofstream(scratch / "real") << "earlier";
  std::filesystem::create_symlink(scratch / "real", scratch / "link");
  write_whole("--output", (scratch / "link").string(), "later");
  CHECK(content_of(scratch / "real") == "later");
  CHECK(std::filesystem::is_symlink(scratch / "link"));
  CHECK(scratch.files() == 2);
}

// SHA-256 of "abc": FIPS 180-4, Appendix B.1.
TEST_CASE("an input file is identified by size, time and hash") {
  const ScratchFolder scratch;
  std::ofstream(scratch / "abc") << "abc";
  const ordered_json facts = file_facts("--prompts", (scratch / "abc").string());
  CHECK(facts["size_bytes"] == 3);
  CHECK(facts["sha256"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(facts["modified"].get<std::string>().size() == std::string("2026-01-01T00:00:00Z").size());
  CHECK_THROWS_WITH(file_facts("--prompts", "/nonexistent"),
                    "prompts: /nonexistent cannot be read: No such file or directory");
}

TEST_CASE("values are read whole, without regard to the locale") {
  CHECK(parse_number("--x", "1e-3", {}) == 1e-3);
  CHECK(parse_integer("--n", "9223372036854775807", 0, std::numeric_limits<std::int64_t>::max()) ==
        std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_WITH(parse_number("--x", "1,5", {}), "x is 1,5, but must be a number in [0, 1000000000]: 1.5");
  CHECK_THROWS_WITH(parse_number("--x", "0", {0, 1, true}), "x is 0, but must be a number in (0, 1]");
  CHECK_THROWS_WITH(parse_integer("--n", "9223372036854775808", 0, std::numeric_limits<std::int64_t>::max()),
                    "n is 9223372036854775808, but must be an integer in [0, 2^63)");
  CHECK(split("a,,b", ',') == std::vector<std::string_view>{"a", "", "b"});
}
