#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using tests::AllCounts;
using tests::counts_of;
using tests::counts_refusal;
using traces::CountUnit;

namespace {

std::string answer(const std::string& type, const std::string& result) {
  return fmt::format(R"({{"status":"success","data":{{"resultType":"{}","result":[{}]}}}})", type, result);
}

std::string series(const std::string& name, const std::string& instance, const std::string& samples) {
  return fmt::format(
      R"({{"metric":{{"__name__":"vllm:spec_decode_num_{}_total","instance":"{}","model_name":"m"}},{}}})", name,
      instance, samples);
}

}  // namespace

TEST_CASE("a vector of a Prometheus server gives totals by instance") {
  const AllCounts counts =
      counts_of({answer("vector", series("drafts", "a", R"("value":[1756736798.5,"22"])") + "," +
                                      series("draft_tokens", "a", R"("value":[1756736798.5,"66"])") + "," +
                                      series("accepted_tokens", "a", R"("value":[1756736798.5,"3e+01"])") + "," +
                                      series("drafts", "b", R"("value":[1756736798.5,"7"])") + "," +
                                      R"({"metric":{"__name__":"up","instance":"a"},"value":[1,"x"]})")});
  REQUIRE(counts.units.size() == 2);
  CHECK(counts.units[0].format == "Prometheus API");
  CHECK(counts.units[0].unit == CountUnit::total);
  CHECK(counts.units[0].engine == "vllm");
  CHECK(counts.units[0].label("instance") == "a");
  CHECK(counts.units[0].rounds == 22);
  CHECK(counts.units[0].accepted == 30);
  CHECK(counts.units[0].end_s == 1756736798.5);
  CHECK(counts.units[1].label("instance") == "b");
}

TEST_CASE("a matrix gives the windows in which rounds advanced, those of each instance's restarts left out") {
  const AllCounts counts = counts_of({answer(
      "matrix",
      series("drafts", "a", R"("values":[[100,"10"],[130,"20"],[160,"20"],[190,"5"],[220,"9"]])") + "," +
          series("draft_tokens", "a", R"("values":[[100,"30"],[130,"60"],[160,"60"],[190,"15"],[220,"27"]])") + "," +
          series("accepted_tokens", "a", R"("values":[[100,"12"],[130,"20"],[160,"20"],[190,"6"],[220,"9"]])") + "," +
          series("drafts", "b", R"("values":[[100,"1"],[130,"4"]])"))});
  REQUIRE(counts.units.size() == 3);
  const auto check = [&](std::size_t i, double begin, double end, double rounds) {
    CAPTURE(i);
    CHECK(counts.units[i].unit == CountUnit::window);
    CHECK(counts.units[i].begin_s == begin);
    CHECK(counts.units[i].end_s == end);
    CHECK(counts.units[i].rounds == rounds);
  };
  check(0, 100, 130, 10);
  check(1, 190, 220, 4);
  check(2, 100, 130, 3);
  CHECK(counts.units[0].drafted == 30);
  CHECK(counts.units[0].accepted == 8);
  CHECK(counts.units[1].accepted == 3);
  CHECK(counts.units[2].label("instance") == "b");
  REQUIRE(counts.warnings.size() == 1);
  CHECK(counts.warnings[0].code == "counter_reset");
}

TEST_CASE("series that were queried one by one are joined by their times") {
  const std::string drafts = answer("matrix", series("drafts", "a", R"("values":[[100,"10"],[130,"20"]])"));
  const std::string drafted = answer("matrix", series("draft_tokens", "a", R"("values":[[100,"30"],[130,"60"]])"));
  const AllCounts files = counts_of({drafts, drafted});
  const AllCounts lines = counts_of({drafts + "\n" + drafted});
  for (const AllCounts* counts : {&files, &lines}) {
    REQUIRE(counts->units.size() == 1);
    CHECK(counts->units[0].rounds == 10);
    CHECK(counts->units[0].drafted == 30);
    CHECK(counts->warnings.empty());
  }
  const AllCounts moments = counts_of({answer("vector", series("drafts", "a", R"("value":[100.125,"10"])")),
                                       answer("vector", series("draft_tokens", "a", R"("value":[100.375,"30"])"))});
  REQUIRE(moments.units.size() == 1);
  CHECK(moments.units[0].drafted == 30);
  REQUIRE(moments.warnings.size() == 1);
  CHECK(moments.warnings[0].code == "queried_at_different_times");
  CHECK_THAT(moments.warnings[0].message, Contains("2.txt:1: ") && Contains("were read 0.250 s after the others"));
}

TEST_CASE("answers of a Prometheus server that hold no counters are refused") {
  CHECK(counts_refusal({R"({"status":"error","errorType":"bad_data","error":"parse error: unexpected }"})"}) ==
        "1.txt:1: status is \"error\": bad_data: parse error: unexpected }, but must be \"success\"");
  CHECK_THAT(counts_refusal({answer("vector", "")}),
             StartsWith("1.txt: content is metrics without speculative decoding (0 other samples)"));
  CHECK(counts_refusal({R"({"status":"success","data":{"resultType":"scalar","result":[1,"2"]}})"}) ==
        "1.txt:1: data.resultType is \"scalar\", but must be \"vector\" or \"matrix\"");
  CHECK(counts_refusal({answer("vector", R"({"metric":{},"value":[1,"2"]})")}) ==
        "1.txt:1: data.result.metric.__name__ is missing, but must be the name of a series: query the counters "
        "themselves, not a sum() or rate() of them");
}

TEST_CASE("hostile answers of a Prometheus server are refused by field") {
  const auto refusal = [](const std::string& samples) {
    return counts_refusal({answer("matrix", series("drafts", "a", samples))});
  };
  const std::string list = "1.txt:1: vllm:spec_decode_num_drafts_total.values";
  CHECK(refusal(R"("value":[1,"2"])") == list + " is missing, but must be given");
  CHECK(refusal(R"("values":7)") == list + " is 7, but must be an array");
  CHECK(refusal(R"("values":[7])") == list + "[0] is 7, but must be an array");
  CHECK(refusal(R"("values":[[1,"2"],[1]])") == list + "[1] is an array of 1, but must be [time, \"value\"]");
  CHECK(refusal(R"("values":[["x","2"]])") == list + "[0][0] is \"x\", but must be a time in Unix seconds");
  CHECK(refusal(R"("values":[[1,2]])") == list + "[0][1] is 2, but must be a string");
  CHECK(refusal(R"("values":[[1,"2x"]])") == list + "[0][1] is \"2x\", but must be a number as a string");
  CHECK_THAT(refusal(R"("values":[[1,"1e999"]])"), Contains("is inf, but must be the value of a counter"));
  CHECK_THAT(refusal(R"("values":[[1,"0.33"]])"), Contains("is 0.33, but must be the value of a counter"));
  CHECK_THAT(refusal(R"("values":[[1,"2"],[1,"2"]])"), Contains("given twice"));
  CHECK_THAT(counts_refusal({answer("matrix", R"({"metric":{"__name__":7}})")}),
             Contains("data.result.metric.__name__ is 7, but must be a string"));
  const std::string good = answer("matrix", series("drafts", "a", R"("values":[[100,"10"],[130,"20"]])"));
  CHECK_THAT(counts_refusal({good.substr(0, good.size() - 9)}), StartsWith("1.txt:1: "));
}
