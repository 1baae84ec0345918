#include <algorithm>
#include <sstream>
#include <string>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/planning/published_acceptance.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/cli/run_specdec.hpp"

using namespace specdec;
using nlohmann::ordered_json;
using tests::check_run_refused;
using tests::document_of_run;
using tests::run_specdec;

TEST_CASE("list prints every device with the page of each of its figures") {
  const ordered_json listed = document_of_run("list hardware")["hardware"];
  REQUIRE(listed.size() == cost::hardware_presets().size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const cost::HardwareSpec& device = cost::hardware_presets()[i];
    INFO(device.name);
    CHECK(listed[i]["name"] == device.name);
    CHECK(listed[i]["memory_bytes"] == device.memory_bytes.value);
    for (const auto& [type, peak] : device.peak_flops) CHECK(listed[i]["peak_flops_" + type] == peak.value);
    std::size_t figures = 0;
    for (const auto& [key, value] : listed[i].items()) figures += value.is_number() ? 1 : 0;
    CHECK(listed[i]["sources"].size() == figures);
    for (const auto& source : listed[i]["sources"]) CHECK(listed[i].at(std::string(source["figure"])).is_number());
  }
}

TEST_CASE("list prints every model with what a token reads, computes and keeps") {
  const ordered_json listed = document_of_run("list models")["models"];
  REQUIRE(listed.size() == cost::model_presets().size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const cost::ModelSpec& model = cost::model_presets()[i];
    INFO(model.name);
    CHECK(listed[i]["name"] == model.name);
    CHECK(listed[i]["sources"] == model.sources);
    if (!has_shape(model)) {
      CHECK(listed[i]["parameters"] == *model.stated_parameters);
      for (const char* key : {"active_parameters", "kv_bytes_per_token", "layers", "width", "vocabulary"}) {
        CHECK(listed[i][key].is_null());
      }
      continue;
    }
    CHECK(listed[i]["parameters"] == total_parameters(model));
    CHECK(listed[i]["active_parameters"] == active_parameters(model));
    CHECK(listed[i]["kv_bytes_per_token"] == cache_bytes(model, 2, 2) - cache_bytes(model, 1, 2));
  }
}

TEST_CASE("a model whose shape nobody published is listed with what is known, and refused where it would be priced") {
  CHECK_THAT(run_specdec("list models lamda-2b").out,
             Catch::Contains("lamda-2b          2B       -") && Catch::Contains("cannot be priced"));
  CHECK_THAT(run_specdec("list models llama-3.1-8b").out, !Catch::Contains("cannot be priced"));
  check_run_refused("plan --alpha 0.7 --hardware h100 --model lamda-137b --draft-model lamda-2b",
                    "--draft-model is lamda-2b, but must be a model whose shape is known: nobody published that of "
                    "this one");
}

TEST_CASE("list prints every published rate with its interval and what was measured beside it") {
  const ordered_json listed = document_of_run("list published")["published"];
  REQUIRE(listed.size() == planning::published_acceptances().size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const planning::PublishedAcceptance& published = planning::published_acceptances()[i];
    INFO(published.name);
    CHECK(listed[i]["name"] == published.name);
    CHECK(listed[i]["alpha"] == published.alpha);
    CHECK(listed[i]["alpha_interval"][0] == published.interval.low.alpha());
    CHECK(listed[i]["gamma"].is_number() == published.measured.has_value());
    CHECK(listed[i]["measured_speedup"].is_number() == published.measured.has_value());
  }
}

TEST_CASE("list takes names and aliases in any spelling, in the order given") {
  const ordered_json models = document_of_run("list models 'Llama 3.1 70B' openai/GPT-OSS-20b deepseek_v3")["models"];
  REQUIRE(models.size() == 3);
  CHECK(models[0]["name"] == "llama-3.1-70b");
  CHECK(models[0]["kv_bytes_per_token"] == 2 * 80 * 8 * 128 * 2);  // keys and values, layers, heads, head size, bytes
  CHECK(models[0]["windowed_layers"] == 0);
  CHECK(models[0]["window"].is_null());
  CHECK(models[0]["experts"].is_null());
  CHECK(models[1]["window"] == 128);
  CHECK(models[1]["windowed_layers"] == 12);
  CHECK(models[1]["experts_per_token"] == 4);
  CHECK(models[1]["expert_weight_dtype"] == "mxfp4");
  CHECK(models[2]["kv_bytes_per_token"] == 61 * (512 + 64) * 2);  // the latent and the shared rotary key
  CHECK(models[2]["next_token_parameters"].is_number_integer());
  check_run_refused("list models gpt5", "NAME is gpt5, but must be a name or an alias of the list");
  check_run_refused("list models lama",
                    "NAME is lama, but must be a name or an alias of the list (near it: lamda, llama-68m, tinyllama)");
  check_run_refused(
      "list", "no command of list given, but one of hardware, models, published is needed; see specdec list --help");
}

TEST_CASE("list says in JSON which pages its figures are from, and fits into 100 columns as text") {
  const std::string page = cost::model_preset("llama-3.1-8b")->sources.front();
  CHECK_THAT(run_specdec("list models llama-3.1-8b").out, !Catch::Contains(page));
  CHECK(document_of_run("list models llama-3.1-8b")["models"][0]["sources"][0] == page);
  CHECK(
      document_of_run("list published eagle3-kimi-k2")["lengths"][0]["source"].get<std::string>().starts_with("https"));
  for (const char* what : {"list hardware", "list models", "list published"}) {
    std::istringstream lines(run_specdec(what).out);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
  }
}

TEST_CASE("list prints as CSV, the pages of devices as a table of their own") {
  const std::string pages = run_specdec("list hardware --format csv --table sources").out;
  CHECK(pages.rfind("name,figure,source,note,second_source\n", 0) == 0);
  const std::string devices = run_specdec("list hardware --format csv").out;
  CHECK(std::count(devices.begin(), devices.end(), '\n') == std::ssize(cost::hardware_presets()) + 1);
  CHECK_THAT(devices, Catch::Contains(",memory_bytes,") && !Catch::Contains("https://"));
  CHECK_THAT(run_specdec("list models --format csv").out, Catch::Contains("kv_bytes_per_token"));
}

TEST_CASE("list published has priors, each with the figures that it follows from") {
  const ordered_json listed = document_of_run("list published eagle3-llama-3.1-8b mtp");
  CHECK(listed["published"].empty());
  REQUIRE(listed["priors"].size() == 2);
  CHECK(listed["priors"][0]["name"] == "eagle3-llama-3.1-8b");
  CHECK(listed["priors"][0]["target_model"] == "llama-3.1-8b");
  CHECK(listed["priors"][1]["target_model"].is_null());
  std::size_t of_head = 0;
  for (const ordered_json& row : listed["lengths"]) of_head += row["method"] == "eagle3" ? 1 : 0;
  CHECK(of_head == 3 * listed["priors"][0]["figures"].get<std::size_t>());  // at 3, 5 and 7 drafts each
  check_run_refused("list published eagle3-lama-3.1-8b",
                    "NAME is eagle3-lama-3.1-8b, but must be a name or an alias of the list (near it: "
                    "eagle3-llama-3.1-8b, eagle3-llama-3.3-70b, eagle3)");
}
