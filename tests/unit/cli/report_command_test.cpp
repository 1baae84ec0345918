#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "analysis/cost/kernel_times.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "planner/known_inputs.hpp"
#include "planner/question_error.hpp"
#include "render/figures/chart_data.hpp"
#include "render/page/answer_page.hpp"
#include "render/page/chart_page.hpp"
#include "render/page/html.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec;
using nlohmann::ordered_json;
using tests::content_of;
using tests::run_specdec;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The page that these options make, as --static unless told otherwise.
std::string page_of(const std::string& options, const std::string& before = "") {
  const tests::ScratchFolder scratch;
  const std::string file = (scratch / "report.html").string();
  const std::string command = before + " " + specdec::tests::specdec_binary() + " report --static " + options +
                              " --output " + file + " >/dev/null 2>&1";
  REQUIRE(std::system(command.c_str()) == 0);
  return content_of(file);
}

}  // namespace

TEST_CASE("text on a page is never markup") {
  CHECK(render::escaped("<script>alert('a & \"b\"')</script>") ==
        "&lt;script&gt;alert(&#39;a &amp; &quot;b&quot;&#39;)&lt;/script&gt;");
  CHECK(render::escaped("a\nb\x01\xff") == "a\\nb\\x01\\xff");
  CHECK(render::script_json({{"name", "</script><!--"}}) == "{\"name\":\"\\u003c/script>\\u003c!--\"}");
}

TEST_CASE("a figure that is not drawn shows its data in an open table") {
  render::PageChart shown;
  shown.chart.name = "speed";
  shown.chart.title = "Speed";
  render::ChartPanel& panel = shown.chart.panels.emplace_back();
  panel.x.label = "gamma";
  panel.y.label = "speedup";
  render::ChartSeries& line = panel.series.emplace_back();
  line.name = "of <x>";
  line.x = {1, 2};
  line.y = {1.5, 1.25};
  const std::string html = render::figure_html(shown);
  CHECK(count_of(html, "<details open>") == 1);
  CHECK(count_of(html, "of &lt;x&gt;") == 1);
  CHECK(count_of(html, "<td class=\"n\">1.250</td>") == 1);
  const auto json = render::figure_json(shown.chart, true);
  CHECK(json["panels"][0]["series"][0]["y"] == std::vector<double>{1.5, 1.25});
}

TEST_CASE("a page without a script forbids to load or run anything") {
  const std::string page = page_of("--alpha 0.8 --c 0.05");
  CHECK(count_of(page, "http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; style-src") == 1);
  CHECK(count_of(page, "<script") == 0);
}

TEST_CASE("the page of an answer that is no plan shows what is printed and has its tables") {
  render::AnswerPage page;
  page.subject = "<x>";
  page.words = {"Both do."};
  page.text = "method  tokens\n<b>          3\n";
  page.inputs = ordered_json::object();
  const ordered_json first = {{"method", "<b>"}, {"speedup", nullptr}, {"tokens", 3}};
  const ordered_json second = {{"method", "b"}, {"speedup", 1.25}};
  page.tables.push_back(render::table_of_rows("results", ordered_json::array({first, second})));
  page.tables.push_back(render::table_of_rows("tasks", ordered_json::array()));
  page.tables.push_back(render::table_of_rows("trees", ordered_json::array({first})));
  const std::string html = render::html_of(page);
  CHECK(count_of(html, "<h2 id=\"recommendation\">Answer</h2>") == 1);
  CHECK(count_of(html, "<th scope=\"row\">&lt;b&gt;</th><td class=\"n\">3</td><td class=\"n\">-</td>") == 1);
  CHECK(count_of(html, "<pre><code>method  tokens\n&lt;b&gt;          3\n</code></pre>") == 1);
  CHECK(count_of(html, "<caption>") == 2);
  CHECK(count_of(html, "<details><summary>results</summary>") == 1);
  CHECK(count_of(html, "<details><summary>trees</summary>") == 1);
  CHECK(count_of(html, "tasks") == 0);
  CHECK(count_of(html, "How to make this page again") == 0);
}

TEST_CASE("what a page is handed of an acceptance and of the user's files comes back bit by bit") {
  planner::Acceptance acceptance;
  const auto rates = core::AcceptanceProfile::from_conditional(
      std::vector<core::AcceptanceRate>{core::AcceptanceRate(0.1), core::AcceptanceRate(1.0 / 3)});
  acceptance.curve = std::make_shared<planning::ProfileCurve>(rates);
  acceptance.clusters = 7;
  acceptance.text = "</script>";
  acceptance.alpha_ci95 = estimate::Interval{0.1, 1.0 / 3};
  acceptance.rule = traces::AcceptanceRule::greedy_draft;
  acceptance.warnings.push_back({"code", "message", true});
  const auto document = nlohmann::ordered_json::parse(render::script_json(planner::known_json(acceptance, 5)));
  const planner::Acceptance back = *planner::known_acceptance(document).acceptance;
  for (std::int64_t gamma = 0; gamma <= 5; ++gamma) {
    const estimate::TokensPerStep was = acceptance.curve->tokens_per_step(gamma),
                                  is = back.curve->tokens_per_step(gamma);
    CHECK(was.value == is.value);
    CHECK(was.ci95.hi == is.ci95.hi);
    CHECK(was.full_accepts == is.full_accepts);
    CHECK(was.extrapolated == is.extrapolated);
  }
  CHECK_THROWS_AS(back.curve->tokens_per_step(6), std::domain_error);
  CHECK(planner::known_json(back, 5) == document);
  auto wrong = document;
  wrong["by_gamma"][2]["value"] = 3.5;
  CHECK_THROWS_AS(planner::known_acceptance(wrong), planner::QuestionError);
  wrong["by_gamma"] = nlohmann::ordered_json::array();
  CHECK_THROWS_AS(planner::known_acceptance(wrong), planner::QuestionError);
  wrong.erase("by_gamma");
  CHECK_THROWS_WITH(planner::known_acceptance(wrong), "by_gamma in known is missing");

  planner::NamedSpecs specs;
  specs.hardware["a card.json"] = *cost::hardware_preset("h100-sxm");
  cost::ModelSpec& model = specs.models["m"] = *cost::model_preset("deepseek-v3");
  for (auto* layers : {&model.layers, &model.next_token_layers}) {
    for (cost::LayerGroup& group : *layers) {
      group.matrices.clear();
      group.expert_matrix = {};
    }
  }
  model.layers.front().unquantized_parameters = 7;
  model.unquantized_type = cost::NumberType::bf16;
  model.quantized_head = true;
  model.quantized_bits = 4.1;
  for (cost::KernelTimes& kernels : cost::kernel_times_of("h100-sxm"))
    if (kernels.engine == "vllm") specs.kernels["k.json"] = kernels;
  const auto written = planner::known_json(specs);
  const planner::NamedSpecs read = planner::known_specs(written);
  CHECK(planner::known_json(read) == written);
  CHECK(read.hardware.at("a card.json").peak_flops.at("fp8").value ==
        specs.hardware["a card.json"].peak_flops.at("fp8").value);
  CHECK(read.models.at("m").layers == specs.models["m"].layers);
  CHECK(read.models.at("m").quantized_bits == 4.1);
  const auto& verification = read.kernels.at("k.json").attention.at("bf16").verification;
  REQUIRE(verification);
  CHECK(verification->tile_seconds == specs.kernels["k.json"].attention.at("bf16").verification->tile_seconds);
  CHECK(read.models.at("m").next_token_layers == specs.models["m"].next_token_layers);
  CHECK(cost::total_parameters(read.models.at("m")) == cost::total_parameters(specs.models["m"]));
  CHECK(cost::cache_bytes(read.models.at("m"), 1000, 2) == cost::cache_bytes(specs.models["m"], 1000, 2));
}

TEST_CASE("a report needs a file to go to, and refuses what plan refuses") {
  tests::check_run_refused("report --alpha 0.8 --c 0.05",
                           "--output is missing: the page to write, for instance report.html");
  const tests::ScratchFolder scratch;
  const std::string file = (scratch / "report.html").string();
  tests::check_run_refused("report --alpha 2 --c 0.05 --output " + file,
                           "--alpha is 2, but must be a number in [0, 1]");
  CHECK(scratch.files() == 0);
}

TEST_CASE("a report says what plan says, first in words") {
  const std::string page = page_of("--alpha 0.7:0.8 --c 0.05 --gamma 3");
  CHECK(page.find("<p>Draft 7 tokens: about 2.7x plain decoding.</p>") < page.find("<table>"));
  CHECK(count_of(page, "sure to gain 5% over the 3 in use") == 1);
  CHECK(count_of(page, "<h1>") == 1);
  CHECK(count_of(page, "<script") == 0);
  CHECK(count_of(page, "<pre><code>specdec report --static --alpha 0.7:0.8 --c 0.05 --gamma 3 --output ") == 1);
  // Nothing but anchors and sources has an address, and nothing is loaded.
  for (const char* loads : {" src=", "@import", "url(http", "<iframe", "<object"}) CHECK(count_of(page, loads) == 0);
}

TEST_CASE("the gamma table of a report marks what plan marks, and shows no context that nobody asked for") {
  const std::string closed = page_of("--acceptance-length 2.92 --at 3 --c 0.04 --gamma 3");
  CHECK(closed.find("recommended, not measured") != std::string::npos);
  CHECK(closed.find("±0.00") == std::string::npos);
  const std::string points = page_of("--alpha 0.8 --c 0.05 --batch 1 --gamma 5");
  CHECK(points.find("in use</td>") != std::string::npos);
  CHECK(points.find(">Context<") == std::string::npos);
  CHECK(page_of("--alpha 0.8 --c 0.05 --batch 1 --context 100").find(">Context<") != std::string::npos);
}

TEST_CASE("a report holds inputs with their hashes, the configuration and the error of the back-test") {
  const std::string bench = tests::source_dir() + "/traces/samples/bench/";
  const std::string page = page_of("--bench " + bench + "c1-plain.json " + bench + "c1-k3.json " + bench +
                                   "c8-plain.json " + bench + "c8-k3.json --emit vllm");
  CHECK(count_of(page, "<th scope=\"col\">SHA-256</th>") == 1);
  CHECK(count_of(page, "c8-k3.json</th>") == 2);
  CHECK(count_of(page, "num_speculative_tokens") > 0);
  CHECK(count_of(page, "Each run&#39;s time per output token is predicted from all other runs") +
            count_of(page, "Each run's time per output token is predicted from all other runs") ==
        1);
  CHECK(count_of(page, "<caption>Assumptions</caption>") == 1);
}

TEST_CASE("a report shows the gamma in use however large") {
  const std::string in_use = page_of("--alpha 0.8 --c 0.05 --batch 1 --gamma 20");
  CHECK(count_of(in_use, "<td>in use</td></tr>") == 1);
}

TEST_CASE("without gnuplot a report shows data in the place of drawings and says so") {
  const std::string page = page_of("--alpha 0.8 --c 0.05", "PATH=/nowhere");
  CHECK(count_of(page, "<svg") == 0);
  CHECK(count_of(page, "<details open>") == 2);
  CHECK(count_of(page, "figures_not_drawn") == 1);
}

TEST_CASE("the same report is the same file to the bit") {
  const std::string once = page_of("--alpha 0.8 --c 0.05 --batch 1,8", "SOURCE_DATE_EPOCH=86400");
  CHECK(count_of(once, "Made on 1970-01-02") == 1);
}

TEST_CASE("a report on a recording shows what it gives, and names the figures that it cannot give") {
  const tests::ScratchFolder scratch;
  const std::string trace = (scratch / "t.safetensors").string();
  REQUIRE(run_specdec("trace generate --sequences 6 --tokens 40 --output " + trace).exit_code == 0);
  const std::string page = page_of("--trace " + trace + " --c 0.05");
  for (const char* name : {"speedup-over-gamma", "speedup-map", "position-acceptance", "tokens-over-gamma"}) {
    CHECK(count_of(page, std::string("<figure id=\"figure-") + name + "\">") == 1);
  }
  CHECK(page.size() < 2'000'000);
  for (const char* name : {"lenience", "calibration"}) {
    const bool drawn = count_of(page, std::string("<figure id=\"figure-") + name + "\">") == 1;
    CHECK(drawn != (count_of(page, std::string(name) + " (the recording has no whole rows") == 1));
  }
}
