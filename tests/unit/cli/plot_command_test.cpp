#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "render/figures/chart.hpp"
#include "render/figures/chart_data.hpp"
#include "render/figures/drawing.hpp"
#include "render/figures/gnuplot_script.hpp"
#include "render/figures/gnuplot_text.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/step_figure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec;
using namespace specdec::render;
using nlohmann::ordered_json;
using tests::check_run_refused;
using tests::content_of;
using tests::document_of_run;
using tests::Run;
using tests::run_specdec;
using tests::ScratchFolder;

namespace {

const std::string hostile = "it's \"$(touch x)\" `id` {a}^2_b 100% @x \\ & <b>\n";

Chart simple_chart() {
  ChartSeries line;
  line.name = hostile;
  line.x = {1, 2, 4};
  line.y = {3, std::numeric_limits<double>::quiet_NaN(), 5};
  ChartPanel panel;
  panel.x = {.key = "batch", .label = "batch (sequences)"};
  panel.y = {.key = "time_ms", .label = "time (ms)"};
  panel.series = {line};
  Chart chart;
  chart.name = "simple-chart";
  chart.title = hostile;
  chart.caption = "What is seen.";
  chart.panels = {panel};
  return chart;
}

/// A series of every mark, in two panels.
Chart chart_of_all_marks() {
  Chart chart = simple_chart();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto add = [&](ChartMark mark, ChartRole role) -> ChartSeries& {
    ChartSeries& series = chart.panels.front().series.emplace_back();
    series.name = name_of(mark);
    series.mark = mark;
    series.role = role;
    return series;
  };
  add(ChartMark::steps, ChartRole::highlight).x = {1, 2};
  chart.panels[0].series.back().y = {2, 3};
  for (const ChartMark mark : {ChartMark::points, ChartMark::bars}) {
    ChartSeries& series = add(mark, ChartRole::data);
    series.x = {1, 2};
    series.y = {4, 5};
    series.low = {3, -infinity};
    series.high = {5, infinity};
  }
  ChartSeries& band = add(ChartMark::band, ChartRole::data);
  band.x = {1, 2, 3, 4};
  band.low = {1, 1, std::numeric_limits<double>::quiet_NaN(), 1};
  band.high = {2, 2, 2, 2};
  ChartSeries& box = add(ChartMark::box, ChartRole::reference);
  box.x_low = {1};
  box.x_high = {infinity};
  box.low = {2};
  box.high = {3};
  add(ChartMark::vertical, ChartRole::reference).x = {3};
  add(ChartMark::horizontal, ChartRole::reference).y = {4};
  ChartSeries& text = add(ChartMark::text, ChartRole::data);
  text.x = {2};
  text.y = {4};
  text.labels = {hostile};
  ChartPanel& map = chart.panels.emplace_back(chart.panels.front());
  map.title = "map";
  map.x = {.key = "task", .label = "task"};
  map.x.categories = {"code", hostile};
  map.y = {.key = "c", .label = "c", .scale = AxisScale::logarithmic};
  map.z = ChartAxis{.key = "speedup", .label = "speedup"};
  ChartSeries cells;
  cells.name = "map";
  cells.mark = ChartMark::cells;
  cells.x = {0, 1, 0, 1};
  cells.y = {0.1, 0.1, 1, 1};
  cells.z = {1, 2, 3, 4};
  map.series = {cells};
  chart.columns = 2;
  return chart;
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++count;
  return count;
}

bool holds(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

struct PngChunk {
  std::string type;
  std::string content;
};

std::uint32_t big_endian_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// The chunks of a PNG, each with the right CRC.
std::vector<PngChunk> chunks_of(const std::string& png) {
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  std::vector<PngChunk> chunks;
  for (std::size_t at = 8; at < png.size();) {
    const std::size_t length = big_endian_at(png, at);
    const std::string body = png.substr(at + 4, length + 4);
    REQUIRE(crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())) ==
            big_endian_at(png, at + 8 + length));
    chunks.push_back({body.substr(0, 4), body.substr(4)});
    at += length + 12;
  }
  return chunks;
}

}  // namespace

TEST_CASE("a chart with nothing to draw, or with a place that its logarithmic axis cannot show, is refused") {
  const auto refused = [](auto spoil) {
    Chart chart = simple_chart();
    spoil(chart, chart.panels.front(), chart.panels.front().series.front());
    CHECK_THROWS_AS(require_drawable(chart), std::invalid_argument);
    CHECK_THROWS_AS(gnuplot_script(chart, {}, ""), std::invalid_argument);
  };
  CHECK_NOTHROW(require_drawable(simple_chart()));
  CHECK_NOTHROW(require_drawable(chart_of_all_marks()));
  refused([](Chart& chart, ChartPanel&, ChartSeries&) { chart.panels.clear(); });
  refused([](Chart&, ChartPanel& panel, ChartSeries&) { panel.series.clear(); });
  refused([](Chart&, ChartPanel&, ChartSeries& series) {
    series.x.clear();
    series.y.clear();
  });
  refused([](Chart&, ChartPanel& panel, ChartSeries& series) {
    panel.y.scale = AxisScale::logarithmic;
    series.y[0] = 0;
  });
}

TEST_CASE("the data of a chart say which look a series has: that of its name, references counted apart") {
  Chart chart = simple_chart();
  const auto add = [](ChartPanel& panel, const std::string& name, ChartRole role, std::optional<int> colour) {
    ChartSeries series = panel.series.front();
    series.name = name;
    series.role = role;
    series.colour = colour;
    panel.series.push_back(series);
  };
  ChartPanel first = chart.panels.front();
  add(first, "limit", ChartRole::reference, {});
  add(first, "second", ChartRole::highlight, {});
  add(first, "chosen", ChartRole::data, 5);
  ChartPanel other = chart.panels.front();
  add(other, "new", ChartRole::data, {});
  add(other, "second", ChartRole::data, {});
  chart.panels = {first, other};
  const ordered_json json = chart_json(chart);
  const auto looks = [&](std::size_t panel) {
    std::vector<int> numbers;
    for (const ordered_json& series : json["figure"]["panels"][panel]["series"]) numbers.push_back(series["look"]);
    return numbers;
  };
  CHECK(looks(0) == std::vector<int>{0, 0, 1, 5});
  CHECK(looks(1) == std::vector<int>{0, 2, 1});
}

TEST_CASE("a recording is called by its file or folder, by the number of its files, or what it is") {
  CHECK(name_of_recording({"/tmp/run.safetensors"}) == "run.safetensors");
  CHECK(name_of_recording({"shards/"}) == "shards");
  CHECK(name_of_recording({"a", "b"}) == "2 files");
  CHECK(name_of_recording({}) == "a recording in memory");
}

TEST_CASE("the rows of a chart have one set of columns, named by the axes, and null for what is not there") {
  const ordered_json json = chart_json(chart_of_all_marks());
  std::size_t marks = 0;
  for (const ordered_json& panel : json["figure"]["panels"]) {
    for (const ordered_json& series : panel["series"]) marks += series["marks"].get<std::size_t>();
  }
  REQUIRE(json["data"].size() == marks);
  std::vector<std::string> columns;
  for (const auto& [key, value] : json["data"][0].items()) columns.push_back(key);
  CHECK(columns == std::vector<std::string>{"panel", "series", "mark", "batch", "batch_low", "batch_high", "task",
                                            "time_ms", "time_ms_low", "time_ms_high", "c", "speedup", "label"});
  for (const ordered_json& row : json["data"]) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.push_back(key);
    CHECK(keys == columns);
  }
  CHECK(json["data"][0]["panel"] == "time (ms)");
  CHECK(json["data"][0]["time_ms"] == 3.0);
  CHECK(json["data"][1]["time_ms"].is_null());
  CHECK(json["data"].back()["panel"] == "map");
  CHECK(json["data"].back()["task"] == hostile);
  CHECK(json["data"].back()["speedup"] == 4.0);
}

TEST_CASE("names are text for gnuplot, whatever they hold") {
  CHECK(gnuplot_string("it's") == "'it''s'");
  CHECK(gnuplot_string("a\nb`c`") == "'a\\nb`c`'");
  const ScratchFolder scratch;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch / ".");
  const std::string svg = drawing_of(simple_chart(), {}, hostile);
  std::filesystem::current_path(before);
  CHECK(scratch.files() == 0);
  // Title and legend as gnuplot writes them, the title element and the command as the program does.
  CHECK(count_of(svg, "it's \"$(touch x)\" `id` {a}^2_b 100% @x \\ &amp; &lt;b>\\n</text>") == 2);
  CHECK(count_of(svg, "it&#39;s &quot;$(touch x)&quot; `id` {a}^2_b 100% @x \\ &amp; &lt;b&gt;\\n</") == 2);
}

TEST_CASE("a chart with every mark is drawn in every form and theme") {
  const Chart chart = chart_of_all_marks();
  for (const DrawingTheme theme : {DrawingTheme::light, DrawingTheme::dark}) {
    DrawingStyle style;
    style.theme = theme;
    style.kind = DrawingKind::pdf;
    const std::string pdf = drawing_of(chart, style, "specdec");
    CHECK(pdf.starts_with("%PDF-"));
    style.kind = DrawingKind::png;
    CHECK(chunks_of(drawing_of(chart, style, "specdec")).back().type == "IEND");
    style.kind = DrawingKind::svg;
    const std::string svg = drawing_of(chart, style, "specdec");
    CHECK(holds(svg, theme == DrawingTheme::dark ? "#14171c" : "#ffffff"));
  }
  DrawingStyle terminal;
  terminal.kind = DrawingKind::terminal;
  terminal.columns = 90;
  const std::string text = drawing_of(chart, terminal, "specdec");
  CHECK(holds(text, "batch (sequences)"));
  CHECK_FALSE(holds(text, "\x1b"));
  terminal.colour = true;
  CHECK(holds(drawing_of(chart, terminal, "specdec"), "\x1b["));
}

TEST_CASE("a drawing for a page takes the page's colour and ids of its own") {
  DrawingStyle style;
  style.theme = DrawingTheme::page;
  const std::string svg = drawing_of(chart_of_all_marks(), style, "specdec plot simple-chart");
  CHECK(holds(svg, "role=\"img\" aria-labelledby=\"simple-chart-title simple-chart-desc\""));
  CHECK(holds(svg, "<desc id=\"simple-chart-desc\">What is seen.</desc>"));
  CHECK(holds(svg, "<dc:source>specdec plot simple-chart</dc:source>"));
  CHECK(holds(svg, "fill=\"currentColor\""));
  CHECK_FALSE(holds(svg, "27,  27,  31"));
  CHECK_FALSE(holds(svg, "color=\"black\""));
  for (const std::string attribute : {"id='", "id=\"", "href='#", "url(#"}) {
    for (std::size_t at = 0; (at = svg.find(attribute, at)) != std::string::npos; at += attribute.size())
      CHECK(svg.substr(at + attribute.size(), 6) == "simple");
  }
}

TEST_CASE("an SVG shows the axes, the range and the series that the data have") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "tokens.svg").string();
  const Run run = run_specdec("plot expected-tokens --gamma 2,6 --output " + file);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.starts_with(file + ": Expected tokens per step."));
  const std::string svg = content_of(file);
  for (const std::string word : {"acceptance rate α", "tokens per step", "γ = 2", "γ = 6", "γ without end"})
    CHECK(count_of(svg, ">" + word + "</text>") == 1);
  CHECK(holds(svg, "<dc:source>specdec plot expected-tokens --gamma 2,6 --output " + file));
  CHECK(count_of(svg, "<text>0.8</text>") == 1);
  CHECK(count_of(svg, "<text>7</text>") == 1);
  CHECK(count_of(svg, "<text>8</text>") == 0);
  // Three lines with data, and three in the legend.
  const ordered_json data = document_of_run("plot expected-tokens --gamma 2,6")["data"];
  CHECK(data.size() == 3 * 101);
  CHECK(count_of(svg, "_plot_1c\"") == 1);
  CHECK(count_of(svg, "_plot_3c\"") == 1);
  CHECK(count_of(svg, "_plot_4c\"") == 0);
}

TEST_CASE("title and caption can be left out of a drawing, which says them in its metadata all the same") {
  const ScratchFolder folder;
  const std::string file = (folder / "figure.svg").string();
  const auto drawn = [&](const std::string& options) {
    REQUIRE(run_specdec("plot speedup-map --alpha 0.7:0.8 --output " + file + options).exit_code == 0);
    return content_of(file);
  };
  const std::string whole = drawn("");
  const std::string title = "Best speedup over acceptance rate and draft cost", caption = "Below a line this γ or a larger one is best";
  CHECK(count_of(whole, title) == 2);
  CHECK(count_of(whole, caption) >= 1);
  CHECK(count_of(drawn(" --no-title"), title) == 1);
  CHECK(count_of(drawn(" --no-caption"), title) == 2);
  CHECK(count_of(drawn(" --no-caption"), caption) == 1);
  check_run_refused("plot speedup-map --alpha 0.7:0.8 --no-title",
                    "--no-title is given, but goes with --output FILE.svg, .png or .pdf, or with --script for an SVG, "
                    "only");
}

TEST_CASE("a PNG is as wide as was asked for") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "trade.png").string();
  REQUIRE(run_specdec("plot speedup-and-operations --width 85mm --output " + file).exit_code == 0);
  CHECK(big_endian_at(chunks_of(content_of(file)).front().content, 0) == 1004);  // 85 mm at 300 dots an inch
}

TEST_CASE("the paper's figures hold the library's numbers") {
  const ordered_json optima = document_of_run("plot optimal-gamma --c 0.05 --points 20 --max-alpha 0.95")["data"];
  for (const ordered_json& row : optima) {
    const auto best = theory::optimal_gamma(core::AcceptanceRate(row["alpha"].get<double>()), 0.05);
    CHECK(row["gamma"] == static_cast<double>(best.gamma));
  }
  // Table 1: alpha 0.8, gamma 5: 1.63 times the operations, 3.69 times the speed.
  const ordered_json trade_off = document_of_run("plot speedup-and-operations --gamma 5 --points 6")["data"];
  for (const ordered_json& row : trade_off) {
    if (std::abs(row["alpha"].get<double>() - 0.8) > 1e-9) continue;
    if (!row["speedup"].is_null()) CHECK(row["speedup"].get<double>() == Approx(3.69).margin(0.005));
    if (!row["operations"].is_null()) CHECK(row["operations"].get<double>() == Approx(1.63).margin(0.005));
  }
  // gamma = 2 at alpha = 1: three tokens a step, so four steps of two drafts and a verification for twelve tokens.
  double drafts = 0, target = 0;
  const ordered_json calls = document_of_run("plot step-trace --gamma 2 --alpha 1 --c 0.25")["data"];
  for (const ordered_json& row : calls) {
    const double end = row["time_target_steps_high"];
    (row["series"] == "draft" ? drafts : target) += 1;
    if (row["decoding_low"] == 0.7) CHECK(end <= 4 * 1.5 + 1e-12);
  }
  CHECK(drafts == 8);
  CHECK(target == 4 + 12);
}

TEST_CASE("plot lists all figures") {
  const ordered_json listed = document_of_run("plot")["figures"];
  REQUIRE(listed.size() >= 4);
  CHECK(listed.back()["name"] == "steps");
}

TEST_CASE("the steps are a page whose pieces differ by more than their colour, and whose text is escaped") {
  const std::string page = steps_page("<p>", {{"a<b", "&", "c"}, {"", "", "d"}}, "2 steps", "specdec 'x'");
  CHECK(holds(page,
              "<li><span class=\"before\"></span><span class=\"accepted\" title=\"accepted\">a&lt;b</span>"
              "<del class=\"rejected\" title=\"rejected\">&amp;</del>"
              "<ins class=\"target\" title=\"target\">c</ins></li>\n"
              "<li><span class=\"before\">a&lt;bc</span><ins class=\"target\" title=\"target\">d</ins></li>"));
  CHECK(holds(page, "<q>&lt;p&gt;</q>"));
  CHECK(holds(page, "content=\"specdec &#39;x&#39;\""));
  const ScratchFolder scratch;
  const std::string file = (scratch / "steps.html").string();
  REQUIRE(run_specdec("plot steps --tokens 12 --gamma 3 --output " + file).exit_code == 0);
  const ordered_json steps = document_of_run("plot steps --tokens 12 --gamma 3")["steps"];
  CHECK(count_of(content_of(file), "<li>") == steps.size());
  const Run own = run_specdec("plot steps --prompt Once --gamma 3 --tokens 10");
  CHECK(holds(own.out, "{+"));
  CHECK_FALSE(holds(own.out, "\x1b"));
  CHECK(holds(own.out, "10 tokens by "));
  const std::string drawing = (scratch / "x.svg").string();
  check_run_refused("plot steps --output " + drawing, "--output is " + drawing +
                                                          ", but must be a file that ends in .html, or with "
                                                          "--format json or csv any other");
}

TEST_CASE("plot refuses what cannot be drawn, and leaves no file behind") {
  const ScratchFolder scratch;
  const std::string file = (scratch / "x.svg").string();
  check_run_refused("plot expected-tokens --theme paper --output " + file,
                    "--theme is paper, but must be one of light, dark, page");
  check_run_refused("plot expected-tokens --all",
                    "--all is not an option of plot expected-tokens; see specdec plot expected-tokens --help");
  check_run_refused("plot --nothing", "--nothing is not an option of plot; see specdec plot --help");
  const std::string photograph = (scratch / "x.jpg").string();
  check_run_refused("plot expected-tokens --output " + photograph,
                    "--output is " + photograph +
                        ", but must be a file that ends in .svg, .png or .pdf, or with --format json or csv any other");
  const std::string long_name = std::string(300, 'a') + ".svg";
  check_run_refused("plot expected-tokens --output " + long_name,
                    "--output: " + long_name + " cannot be written: File name too long");
  for (const char* const form : {"", " --terminal", " --format csv"})
    check_run_refused("plot expected-tokens --width 85mm" + std::string(form),
                      "--width is given, but goes with --output FILE.svg, .png or .pdf, or with --script for an SVG, "
                      "only");
  check_run_refused("plot steps --prompt Once --task code", "--tasks is given, but --prompt is the text to continue");
  check_run_refused("plot expected-tokens --script --width 85",
                    "--width is 85, but must be a length in mm or px, for instance "
                    "85mm");
  check_run_refused("plot expected-tokens --width 5mm --output " + file,
                    "--width in mm is 5, but must be a number in [50, 1000]");
  check_run_refused("plot expected-tokens --gamma 1,x --output " + file,
                    "--gamma is x, but must be an integer in [0, 1024]");
  check_run_refused("plot expected-tokens --min-alpha 0.5 --max-alpha 0.5",
                    "--max-alpha is 0.5, but must be above --min-alpha 0.5");
  check_run_refused("plot expected-tokens --script --format csv", "--script is given, but --format asks for the data");
  check_run_refused("plot expected-tokens --terminal --output " + file,
                    "--terminal is given, but --output " + file + " asks for a drawing of its own");
  CHECK(run_specdec("plot optimal_gamma")
            .err.starts_with(
                "specdec: error: optimal_gamma is not a command of plot (near it: optimal-gamma), but one of"));
  const std::string binary = specdec::tests::specdec_binary();
  const std::string without =
      "env PATH=/nowhere " + binary + " plot expected-tokens --output " + file + " 2>" + (scratch / "err").string();
  CHECK(WEXITSTATUS(std::system(without.c_str())) == 2);
  CHECK(content_of(scratch / "err") ==
        "specdec: error: gnuplot is needed to draw, but there is no such program; Debian's package is gnuplot-nox\n");
  CHECK(scratch.files() == 1);
}

TEST_CASE("the data of a figure go to a file, its script to standard output") {
  const ScratchFolder scratch;
  const std::string table = (scratch / "data.csv").string();
  REQUIRE(run_specdec("plot optimal-gamma --c 0.1 --points 3 --format csv --output " + table).exit_code == 0);
  CHECK(content_of(table).starts_with("panel,series,mark,alpha,gamma\n"));
  const Run script = run_specdec("plot optimal-gamma --script");
  CHECK(script.out.starts_with("# The best number of drafts\n# specdec plot optimal-gamma --script\n"));
  CHECK(holds(script.out, "set terminal svg size 720,"));
  CHECK(holds(run_specdec("plot optimal-gamma --terminal").out, "acceptance rate α"));
}

TEST_CASE("a figure that is given a recording without an option says which option takes it") {
  const std::string file = tests::source_dir() + "/sim/models/recording.safetensors";
  CHECK(run_specdec("plot lenience " + file).err == "specdec: error: " + file +
                                                        " is not an option of plot lenience; a recording is --trace " +
                                                        file + "; see specdec plot lenience --help\n");
}
