#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/counts_reading.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using tests::AllCounts;
using tests::counts_of;
using tests::counts_refusal;
using traces::CountUnit;
using traces::DraftShape;
using Counts = std::vector<double>;

namespace {

const std::string omlx_heads =
    "2026-09-20 21:40:17,329 - omlx.patches.mlx_lm_mtp.batch_generator - INFO - [-] - MTP[102] finish=stop tokens=561 "
    "cycles=207 tok/cycle=2.71 accept=352/454 (77.5%) depth[d1=155/200,d2=115/150,d3=82/104] d0=7 "
    "emits[init=2,draft=352,bonus=105,verify=102] timing[backbone=15232.2ms mtp=1043.5ms sample=8.5ms cache=76.8ms]\n";
const std::string omlx_draft_model =
    "omlx.scheduler - INFO - [-] - vlm_mtp stats: request=e2af9130 finish=stop rounds=1079 accepted=1414/2158 (65.5%) "
    "tokens_per_round=2.31 emitted=2493 block_size=3\n";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("oMLX's lines are finished requests with counts by depth") {
  const AllCounts counts = AllCounts({std::filesystem::path(tests::source_dir()) / "traces/samples/serving/omlx.log"});
  REQUIRE(counts.units.size() == 4);
  for (const traces::ServingCounts& unit : counts.units) {
    CHECK(unit.engine == "omlx");
    CHECK(unit.format == "oMLX log");
    CHECK(unit.unit == CountUnit::request);
    CHECK(unit.draft_method == "mtp");
    CHECK(unit.shape == DraftShape::chain);
  }
  const traces::ServingCounts& deep = counts.units[0];
  CHECK(deep.steps == 207);
  CHECK(deep.rounds == 200);
  CHECK(deep.accepted == 352);
  CHECK(deep.drafted == 454);
  CHECK(deep.accepted_at == Counts{155, 115, 82});
  CHECK(deep.drafted_at == Counts{200, 150, 104});
  CHECK(deep.gamma == 3);
  CHECK(counts.units[1].rounds == 9);
  CHECK(counts.units[1].gamma == 8);
  const traces::ServingCounts& single = counts.units[2];
  CHECK(single.rounds == 175);
  CHECK(single.drafted == 175);
  CHECK(single.accepted_at.empty());
  CHECK_FALSE(single.gamma);
  CHECK(counts.units[3].rounds == 1079);
  CHECK(counts.units[3].drafted == 2158);
  CHECK(counts.units[3].gamma == 2);
  CHECK(counts.warnings.empty());
}

TEST_CASE("lines of oMLX that contradict themselves are refused, and others that look alike are no counts") {
  CHECK(counts_refusal({with(omlx_heads, "77.5%", "67.5%")}) ==
        "1.txt:1: accept is 67.5, but must be 77.533, as the counts on the line say");
  CHECK_THAT(counts_refusal({with(omlx_heads, "d3=", "d4=")}), Contains("1.txt:1: depth is another list"));
  CHECK_THAT(counts_refusal({with(omlx_heads, "352/454", "352")}), Contains("1.txt:1: accept is no fraction"));
  CHECK_THAT(counts_refusal({with(omlx_heads, "d0=7", "d0=207")}), Contains("1.txt:1: d0 is every cycle"));
  CHECK(counts_refusal({with(omlx_draft_model, "=2.31", "=2.41")}) ==
        "1.txt:1: tokens_per_round is 2.41, but must be 2.31047, as the counts on the line say");
  CHECK_THAT(counts_refusal({with(omlx_draft_model, "block_size=3", "block_size=1")}),
             Contains("block_size is 1, but must be in [2, 1024]"));
  CHECK_THAT(counts_refusal({with(omlx_heads, "352/454 (77.5%)", "0/0 (n/a)")}),
             Contains("an engine's log in which nothing was drafted"));
  CHECK_THAT(counts_refusal({with(omlx_heads, "accept=", "full-accept=")}),
             Contains("an engine's log without speculative decoding"));
  CHECK(counts_of({omlx_heads + omlx_heads.substr(0, 160)}).warns("truncated_line"));
}

TEST_CASE("the last line of oMLX's log may be cut off anywhere") {
  for (const std::string& line : {omlx_heads, omlx_draft_model}) {
    for (std::size_t length = 0; length < line.size(); length += 5) {
      CAPTURE(length);
      const AllCounts counts = counts_of({omlx_heads + line.substr(0, length)});
      CHECK(counts.units.size() <= 2);
      CHECK(counts.warnings.size() <= 1);
    }
  }
}
