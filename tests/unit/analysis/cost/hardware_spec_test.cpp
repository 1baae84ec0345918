#include "analysis/cost/hardware_spec.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cost/preset_files.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using cost::HardwareSpec;
using cost::NumberType;
using cost::SourcedNumber;

namespace {

using NamedFigures = std::vector<std::pair<std::string, SourcedNumber>>;

NamedFigures figures_of(const HardwareSpec& hardware) {
  NamedFigures figures = {{"memory_bytes", hardware.memory_bytes},
                          {"memory_bandwidth_bytes_per_second", hardware.memory_bandwidth_bytes_per_second}};
  for (const auto& [type, peak] : hardware.peak_flops) figures.emplace_back(type, peak);
  if (hardware.link_bytes_per_second) figures.emplace_back("link_bytes_per_second", *hardware.link_bytes_per_second);
  if (hardware.watts) figures.emplace_back("watts", *hardware.watts);
  if (hardware.gpus_per_node) figures.emplace_back("gpus_per_node", *hardware.gpus_per_node);
  return figures;
}

/// "1,792 GB/s" -> 1.792e12.
double printed_value(std::string quoted) {
  static const std::map<std::string, double> units = {{"", 1},
                                                      {"W", 1},
                                                      {"Watt", 1},
                                                      {"kW", 1e3},
                                                      {"GB", 1e9},
                                                      {"GiB", 1073741824.0},
                                                      {"MiB", 1048576.0},
                                                      {"GB/s", 1e9},
                                                      {"GBps", 1e9},
                                                      {"Gbps", 1e9 / 8},
                                                      {"TB/s", 1e12},
                                                      {"TBps", 1e12},
                                                      {"TFLOPS", 1e12},
                                                      {"TFLOPs", 1e12},
                                                      {"TOPS", 1e12},
                                                      {"TOPs", 1e12},
                                                      {"POPS", 1e15},
                                                      {"PFLOPS", 1e15},
                                                      {"PFLOP", 1e15},
                                                      {"petaFLOP", 1e15},
                                                      {"teraflops", 1e12},
                                                      {"teraFLOPS", 1e12}};
  quoted.erase(std::remove(quoted.begin(), quoted.end(), ','), quoted.end());
  std::size_t end = 0;
  const double number = std::stod(quoted, &end);
  std::string unit = quoted.substr(end);
  unit.erase(std::remove(unit.begin(), unit.end(), ' '), unit.end());
  const auto found = units.find(unit);
  return found == units.end() ? 0 : number * found->second;
}

const HardwareSpec& preset(const std::string& name) {
  const HardwareSpec* found = cost::hardware_preset(name);
  REQUIRE(found != nullptr);
  return *found;
}

std::string refusal(const std::string& content) {
  const tests::TemporaryFolder folder;
  const auto path = folder.write("device.json", content);
  const std::string message = tests::message_of<traces::FileError>([&] { cost::read_hardware_spec(path); });
  const std::size_t name = message.find("device.json");
  return name == std::string::npos ? message : message.substr(name);
}

std::string device(const std::string& memory, const std::string& peaks, const std::string& more = "") {
  return R"({"name": "mine", "memory_bytes": )" + memory + R"(, "memory_bandwidth_bytes_per_second": 1e12,
             "peak_flops": )" +
         peaks + more + "}";
}

}  // namespace

TEST_CASE("every figure of every hardware preset has the address of a page and agrees with what that page prints") {
  CHECK(cost::hardware_presets().size() == cost::hardware_preset_files().size());
  std::size_t figures = 0;
  for (const HardwareSpec& hardware : cost::hardware_presets()) {
    CHECK_FALSE(hardware.vendor.empty());
    for (const auto& [name, figure] : figures_of(hardware)) {
      INFO(hardware.name << " " << name << ": " << figure.value << ", printed " << figure.quoted);
      CHECK(figure.value > 0);
      CHECK(figure.source.rfind("https://", 0) == 0);
      const double value = printed_value(figure.quoted);
      if (figure.note.find("half") != std::string::npos || figure.note.find("halved") != std::string::npos)
        CHECK(figure.value == Approx(value / 2));
      else if (figure.note.find("times the six neighbours") != std::string::npos)
        CHECK(figure.value == Approx(6 * value));
      else if (figure.note.find("times that of FP64") != std::string::npos ||
               figure.note.find("twice that of FP64") == 0)
        CHECK(figure.value == Approx((name == "fp16" ? 4 : 2) * value));
      else
        CHECK(figure.value == Approx(value));
      ++figures;
    }
  }
  CHECK(figures > 150);
}

TEST_CASE(
    "most figures of hardware presets stand on a second page too, and differ from it only where their note says so") {
  std::size_t figures = 0, alone = 0;
  for (const HardwareSpec& hardware : cost::hardware_presets()) {
    for (const auto& [name, figure] : figures_of(hardware)) {
      INFO(hardware.name << " " << name << ": " << figure.value << ", elsewhere " << figure.second_quoted);
      ++figures;
      CHECK(figure.second_source.empty() == figure.second_quoted.empty());
      if (figure.second_source.empty()) {
        ++alone;
        continue;
      }
      CHECK(figure.second_source.rfind("https://", 0) == 0);
      CHECK(figure.second_source != figure.source);
      if (figure.note.find("that of FP64") != std::string::npos) continue;  // both pages print FP64's
      const double second = printed_value(figure.second_quoted);
      CHECK(second > 0);
      const bool is_noted = figure.note.find("second page") != std::string::npos;
      CHECK((std::abs(figure.value / second - 1) <= 0.015 || is_noted));
    }
  }
  CHECK(figures > 220);
  CHECK(4 * alone <= figures);
}

// Grace with 960 GB: https://docs.nvidia.com/dccpu/grace-perf-tuning-guide; the MI325X: its data sheet's 1,307.4
// TFLOPS.
TEST_CASE("the size of Grace that is listed has its own bandwidth, and the MI325X the peaks of its data sheet") {
  CHECK(preset("grace").memory_bytes.value == 960e9);
  CHECK(preset("grace").memory_bandwidth_bytes_per_second.value == 768e9);
  for (const char* type : {"fp16", "bf16"}) CHECK(preset("mi325x").peak_flops.at(type).value == 1307.4e12);
  for (const char* type : {"fp8", "int8"}) CHECK(preset("mi325x").peak_flops.at(type).value == 2614.9e12);
}

TEST_CASE("names and aliases of hardware presets are each one device's, in order and found in any spelling") {
  std::set<std::string> keys;
  std::string previous;
  for (const HardwareSpec& hardware : cost::hardware_presets()) {
    CHECK(previous < hardware.name);
    previous = hardware.name;
    std::vector<std::string> names = hardware.aliases;
    names.push_back(hardware.name);
    for (const std::string& name : names) {
      std::string key;
      for (const char c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) key += static_cast<char>(std::tolower(c));
      INFO(name);
      CHECK(keys.insert(key).second);
      CHECK(cost::hardware_preset(name) == &hardware);
    }
  }
  CHECK(cost::hardware_preset("H100") == cost::hardware_preset("h100 SXM"));
  CHECK(cost::hardware_preset("nvidia_a100_80gb_pcie") == cost::hardware_preset("a100-80gb-pcie"));
  CHECK(cost::hardware_preset("h1000") == nullptr);
}

// Peaks from other pages than the files': A100, H100, L4 and the TPU from
// https://github.com/Lightning-AI/pytorch-lightning/blob/1526f8408e1f/src/lightning/fabric/utilities/throughput.py,
// H200 from https://github.com/astroC86/gpu-datasheet (1979 with sparsity), L40S from
// https://www.mullet.se/product.html?product_id=355414 (733 with sparsity), MI300X from
// https://github.com/pytorch/pytorch/blob/00604d0f7e9a/torch/_inductor/analysis/device_info.py, B200 from
// https://github.com/pytorch/torchtitan/blob/02581674d9db/torchtitan/tools/utils.py, eight B300 (36 PFLOPS with
// sparsity) from https://fibermall.com/blog/?p=17161 and the bandwidth from
// https://github.com/datacrunch-research/blogs/blob/f5752e891796/b300_comparison_b200/b300_comparison_b200.md, 72 GB300
// from https://github.com/datacrunch-research/blogs/blob/f5752e891796/gb300-technical-report/gb300_technical_report.md
TEST_CASE("peaks of hardware presets are the dense ones") {
  struct DenseSheet {
    const char* name;
    double bf16, bandwidth;
  };
  for (const DenseSheet& sheet : {DenseSheet{"a100", 312e12, 2.039e12}, DenseSheet{"a100-80gb-pcie", 312e12, 1.935e12},
                                  DenseSheet{"h100", 989.4e12, 3.35e12}, DenseSheet{"h100-pcie", 756e12, 2e12},
                                  DenseSheet{"h200", 1979e12 / 2, 4.8e12}, DenseSheet{"b200", 2250e12, 8e12},
                                  DenseSheet{"b300", 18e15 / 8, 7.7e12}, DenseSheet{"gb300", 180e15 / 72, 576e12 / 72},
                                  DenseSheet{"l4", 121e12, 300e9}, DenseSheet{"l40s", 733e12 / 2, 864e9},
                                  DenseSheet{"mi300x", 1307.4e12, 5.3e12}, DenseSheet{"tpu-v5e", 197e12, 819e9}}) {
    INFO(sheet.name);
    const HardwareSpec& hardware = preset(sheet.name);
    // Tables of whole and of half figures differ by rounding, the sheet of the L40S by 1.2%.
    CHECK(cost::peak_flops_for(hardware, NumberType::bf16) == Approx(sheet.bf16).epsilon(0.013));
    CHECK(hardware.memory_bandwidth_bytes_per_second.value == Approx(sheet.bandwidth));
  }
  // The knees F/(2 BW) per weight byte that are printed for bf16 on an H100 and an H200 and for fp8 on an H200.
  const auto knee = [](const HardwareSpec& hardware, NumberType type) {
    return cost::stored_bits(type) / 8 * cost::peak_flops_for(hardware, type) /
           (2 * hardware.memory_bandwidth_bytes_per_second.value);
  };
  CHECK(knee(preset("h100"), NumberType::bf16) == Approx(295.343).epsilon(2e-6));
  CHECK(knee(preset("h200"), NumberType::bf16) == Approx(206.125).epsilon(2e-6));
  CHECK(knee(preset("h200"), NumberType::fp8) == Approx(206.135).epsilon(3e-6));
}

// Changes of a generation: https://verda.com/blog/gb300-nvl72-architecture, and GH200's two memories.
TEST_CASE("neighbours of a family differ by what their makers changed") {
  for (const auto& [newer, older] : {std::pair{"b300", "b200"}, std::pair{"gb300", "gb200"}}) {
    INFO(newer);
    for (const char* type : {"fp16", "bf16", "fp8"})
      CHECK(preset(newer).peak_flops.at(type).value == preset(older).peak_flops.at(type).value);
    CHECK(preset(newer).memory_bytes.value / preset(older).memory_bytes.value == Approx(1.5).epsilon(0.01));
    CHECK(preset(newer).peak_flops.at("fp4").value / preset(older).peak_flops.at("fp4").value ==
          Approx(1.53).epsilon(0.03));
    CHECK(preset(newer).peak_flops.at("int8").value < 0.04 * preset(older).peak_flops.at("int8").value);
  }
  CHECK(cost::hardware_preset("gh200") == cost::hardware_preset("gh200-96gb"));
  CHECK(preset("gh200-144gb").peak_flops.at("bf16").value ==
        Approx(preset("h200").peak_flops.at("bf16").value).epsilon(1e-3));
  CHECK(preset("rtx-pro-6000-workstation").memory_bandwidth_bytes_per_second.value ==
        preset("rtx-5090").memory_bandwidth_bytes_per_second.value);
}

TEST_CASE("formats of 16 bits have one peak, since tensor cores multiply both alike") {
  for (const HardwareSpec& hardware : cost::hardware_presets()) {
    INFO(hardware.name);
    const auto fp16 = hardware.peak_flops.find("fp16"), bf16 = hardware.peak_flops.find("bf16");
    if (fp16 == hardware.peak_flops.end() || bf16 == hardware.peak_flops.end()) continue;
    CHECK(fp16->second.value == bf16->second.value);
  }
}

TEST_CASE("weights that the device cannot multiply take the peak of the type that they are widened to") {
  const HardwareSpec& a100 = preset("a100");
  CHECK(cost::peak_flops_for(a100, NumberType::fp8) == a100.peak_flops.at("bf16").value);
  CHECK(cost::peak_flops_for(a100, NumberType::int8) == a100.peak_flops.at("int8").value);
  CHECK(cost::peak_flops_for(a100, NumberType::int4) == a100.peak_flops.at("bf16").value);
  CHECK(cost::peak_flops_for(preset("b200"), NumberType::nvfp4) == 9e15);
  CHECK(cost::peak_flops_for(preset("h100"), NumberType::mxfp4) == 989.4e12);
  CHECK(cost::peak_flops_for(preset("tpu-v5e"), NumberType::fp16) == 197e12);
  // As where it can, but slower: Blackwell Ultra has few units for int8.
  CHECK(cost::peak_flops_for(preset("b300"), NumberType::int8) == 2250e12);
  CHECK(cost::peak_flops_for(preset("b200"), NumberType::int8) == 4500e12);
  // Not at that of FP64, which says nothing of shorter types.
  CHECK(cost::peak_flops_for(preset("grace"), NumberType::bf16) == 28.4e12);
  HardwareSpec only_fp64;
  only_fp64.peak_flops["fp64"].value = 7.1e12;
  CHECK_THROWS_WITH(cost::peak_flops_for(only_fp64, NumberType::bf16),
                    Catch::Contains("must have one of bf16, fp16, fp32"));
  HardwareSpec only_bytes;
  only_bytes.peak_flops["int8"].value = 1e12;
  CHECK_THROWS_WITH(cost::peak_flops_for(only_bytes, NumberType::bf16),
                    "peak_flops_for: the hardware has no peak for bf16 weights, but must have one of bf16, fp16, fp32");
}

TEST_CASE("a user's hardware file gives bare numbers or figures with their sources") {
  const tests::TemporaryFolder folder;
  const HardwareSpec read = cost::read_hardware_spec(folder.write(
      "mine.json", device(R"({"value": 24e9, "source": "a drawer", "note": "measured"})", R"({"bf16": 1e14})",
                          R"(, "gpus_per_node": 4, "aliases": ["ours"], "watts": 75.5)")));
  CHECK(read.name == "mine");
  CHECK(read.aliases == std::vector<std::string>{"ours"});
  CHECK(read.memory_bytes.value == 24e9);
  CHECK(read.memory_bytes.source == "a drawer");
  CHECK(read.memory_bytes.note == "measured");
  CHECK(read.memory_bandwidth_bytes_per_second.value == 1e12);
  CHECK(read.memory_bandwidth_bytes_per_second.source.empty());
  CHECK(read.peak_flops.at("bf16").value == 1e14);
  CHECK(read.gpus_per_node->value == 4);
  CHECK(read.watts->value == 75.5);
  CHECK_FALSE(read.link_bytes_per_second);
}

TEST_CASE("a preset is a file that a user may start from") {
  const tests::TemporaryFolder folder;
  for (const core::EmbeddedFile& file : cost::hardware_preset_files()) {
    const HardwareSpec read = cost::read_hardware_spec(folder.write("copy.json", file.content));
    CHECK(std::string(file.name) == read.name + ".json");
    CHECK(figures_of(read).size() == figures_of(preset(read.name)).size());
  }
}

TEST_CASE("a hardware file that is not what it must be is refused with the place and what was expected") {
  const std::string peaks = R"({"bf16": 1e14})";
  CHECK(refusal("") == "device.json: byte 1: document is not JSON from there on, but must be a JSON object");
  CHECK(refusal("[]").find("document is [], but must be a JSON object") != std::string::npos);
  CHECK(refusal(R"({"name": "x"})").find("memory_bytes is missing, but must be present") != std::string::npos);
  CHECK(refusal(device("1", peaks, R"(, "tdp": 3)")).find("key is tdp, but must be one of name, aliases, vendor, ") !=
        std::string::npos);
  CHECK(refusal(device("80e9", R"({"fp6": 1})"))
            .find("peak_flops.key is fp6, but must be one of bf16, fp16, fp32, fp4, fp64, fp8, int8") !=
        std::string::npos);
  CHECK(refusal(device("80e9", "{}")).find("peak_flops is {}, but must be an object with at least one of bf16") !=
        std::string::npos);
  CHECK(refusal(device("0", peaks)).find("memory_bytes is 0, but must be a number of bytes in [10000, 1e+18]") !=
        std::string::npos);
  CHECK(refusal(device("\"80 GB\"", peaks)).find("memory_bytes is \"80 GB\", but must be a number") !=
        std::string::npos);
  CHECK(refusal(device(R"({"source": "https://x"})", peaks)).find("memory_bytes.value is missing") !=
        std::string::npos);
  CHECK(refusal(device(R"({"value": 1, "url": "https://x"})", peaks))
            .find("memory_bytes.key is url, but must be one of value, quoted, source, second_quoted, "
                  "second_source, note") != std::string::npos);
  CHECK(refusal(device("80e9", peaks, R"(, "watts": -3)")).find("watts is -3, but must be a number in (0, inf)") !=
        std::string::npos);
  CHECK(refusal(device("80e9", peaks, R"(, "gpus_per_node": 2.5)"))
            .find("gpus_per_node is 2.5, but must be a whole number") != std::string::npos);
  CHECK(refusal(device("1", peaks, R"(, "name": "y")")).find("name is there twice") != std::string::npos);
  CHECK(refusal(device("1e400", peaks)).find("memory_bytes is \"Infinity\", but must be a number") !=
        std::string::npos);
  const std::string deep = std::string(100, '[') + "1" + std::string(100, ']');
  CHECK(refusal(device(deep, peaks)).find("nested deeper, but must be nested at most 64 deep") != std::string::npos);
  CHECK(refusal(std::string((1U << 20U) + 1, ' ')).find("longer, but must be of at most 1048576 bytes") !=
        std::string::npos);
  const tests::TemporaryFolder folder;
  CHECK_THROWS_AS(cost::read_hardware_spec(folder.path() / "missing.json"), traces::FileError);
  CHECK_THROWS_AS(cost::read_hardware_spec(folder.path()), traces::FileError);
}

TEST_CASE("figures of a hardware file in another unit are refused with the unit and what any machine is within") {
  const auto machine = [](const std::string& memory, const std::string& bandwidth, const std::string& peak,
                          const std::string& link) {
    return R"({"name": "mine", "memory_bytes": )" + memory + R"(, "memory_bandwidth_bytes_per_second": )" + bandwidth +
           R"(, "peak_flops": {"fp8": )" + peak + R"(}, "link_bytes_per_second": {"value": )" + link + "}}";
  };
  // TB/s, GB, TFLOP/s and GB/s.
  CHECK(refusal(machine("80e9", "1.6", "1e15", "450e9")) ==
        "device.json: memory_bandwidth_bytes_per_second is 1.6, but must be a number of bytes/s in [1000000, 1e+20]");
  CHECK(
      refusal(machine("80", "1.6e12", "1e15", "450e9")).find("memory_bytes is 80, but must be a number of bytes in ") !=
      std::string::npos);
  CHECK(refusal(machine("80e9", "1.6e12", "989", "450e9"))
            .find("peak_flops.fp8 is 989, but must be a number of FLOP/s in [100000, 1e+24]") != std::string::npos);
  CHECK(refusal(machine("80e9", "1.6e12", "1e15", "450"))
            .find("link_bytes_per_second.value is 450, but must be a number of bytes/s in [10000, 1e+20]") !=
        std::string::npos);
  const tests::TemporaryFolder folder;
  // A microcontroller, and a hundred wafers of today.
  CHECK_NOTHROW(cost::read_hardware_spec(folder.write("small.json", machine("264e3", "5e8", "1e6", "1e5"))));
  CHECK_NOTHROW(cost::read_hardware_spec(folder.write("large.json", machine("4.4e12", "2.1e18", "1.25e19", "1e16"))));
}

TEST_CASE("the assumed share of the peak is that of the type that weights are multiplied in") {
  const cost::EfficiencyDefaults& usual = cost::efficiency_defaults();
  const auto on = [](const char* hardware, cost::NumberType type) {
    return &cost::compute_efficiency_for(*cost::hardware_preset(hardware), type);
  };
  CHECK(on("h100-sxm", cost::NumberType::bf16) == &usual.compute_efficiency);
  CHECK(on("h100-sxm", cost::NumberType::fp8) == &usual.fp8_compute_efficiency);
  CHECK(on("b200", cost::NumberType::nvfp4) == &usual.fp4_compute_efficiency);
  // Weights that are widened to a type that the device has.
  CHECK(on("a100-80gb-sxm", cost::NumberType::fp8) == &usual.compute_efficiency);
  CHECK(on("h100-sxm", cost::NumberType::int4) == &usual.compute_efficiency);
  CHECK(usual.fp4_compute_efficiency.value < usual.fp8_compute_efficiency.value);
  CHECK(usual.fp8_compute_efficiency.value < usual.compute_efficiency.value);
}

TEST_CASE("what is assumed of a deployment that was not calibrated is a range with the pages behind it") {
  const cost::EfficiencyDefaults& defaults = cost::efficiency_defaults();
  for (const cost::SourcedRange* range :
       {&defaults.bandwidth_efficiency, &defaults.compute_efficiency, &defaults.fp8_compute_efficiency,
        &defaults.fp4_compute_efficiency, &defaults.link_efficiency, &defaults.all_reduce_latency_seconds,
        &defaults.launch_seconds, &defaults.draft_launch_seconds, &defaults.layer_seconds,
        &defaults.scheduling_seconds}) {
    CHECK(range->low <= range->value);
    CHECK(range->value <= range->high);
    CHECK_FALSE(range->note.empty());
    CHECK_FALSE(range->sources.empty());
    for (const std::string& source : range->sources) CHECK(source.rfind("https://", 0) == 0);
  }
  CHECK(defaults.bandwidth_efficiency.low > 0);
  CHECK(defaults.bandwidth_efficiency.high <= 1);
  CHECK(defaults.compute_efficiency.low > 0);
  CHECK(defaults.compute_efficiency.high <= 1);
  CHECK(defaults.fp8_compute_efficiency.high <= 1);
  CHECK(defaults.fp4_compute_efficiency.high <= 1);
  CHECK(defaults.link_efficiency.low > 0);
  CHECK(defaults.link_efficiency.high <= 1);
  // Microseconds of an all-reduce or a layer, not milliseconds; less than a millisecond for launching and scheduling.
  CHECK(defaults.all_reduce_latency_seconds.high < 1e-4);
  CHECK(defaults.layer_seconds.high < 1e-3);
  CHECK(defaults.launch_seconds.high < 1e-3);
  CHECK(defaults.draft_launch_seconds.high < 1e-2);
  CHECK(defaults.scheduling_seconds.high < 1e-3);
}
