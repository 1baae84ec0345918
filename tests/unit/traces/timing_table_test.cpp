#include "traces/formats/timing_table.hpp"
#include "tests/support/source_dir.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using traces::TimedPass;
using traces::TimingAxis;
using traces::TimingTable;

namespace {

const std::filesystem::path samples = std::filesystem::path(tests::source_dir()) / "traces/samples/llamacpp";

TimingTable read(const std::string& content) {
  const tests::TemporaryFolder folder;
  return traces::read_timing_table(folder.write("timings", content));
}

std::string refusal(const std::string& content) {
  return tests::message_of<traces::FileError>([&] { read(content); });
}

/// The header of llama-bench's CSV, and a row of it, quoted as it quotes.
const std::string bench_header =
    "build_commit,build_number,cpu_info,gpu_info,backends,model_filename,model_type,model_size,model_n_params,n_batch,"
    "n_ubatch,n_threads,n_gpu_layers,n_prompt,n_gen,n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts\n";

std::string bench_row(int prompt, int generated, int depth, long long ns, int threads = 2) {
  return "\"61a52dab9\",\"7012\",\"A CPU, with a comma\",\"\",\"CPU\",\"small.gguf\",\"llama ?B all F32\",\"60816028\","
         "\"15191712\",\"2048\",\"512\",\"" +
         std::to_string(threads) + "\",\"99\",\"" + std::to_string(prompt) + "\",\"" + std::to_string(generated) +
         "\",\"" + std::to_string(depth) + "\",\"2026-10-04T18:22:35Z\",\"" + std::to_string(ns) + "\",\"" +
         std::to_string(ns / 100) + "\",\"100.000000\",\"1.000000\"\n";
}

std::string bench_object(int prompt, int generated, int depth, const std::string& samples_ns, long long ns) {
  return R"({"build_commit": "61a52dab9", "build_number": 7012, "model_filename": "small.gguf", "n_ubatch": 512, )"
         R"("n_threads": 2, "flash_attn": -1, "no_kv_offload": false, "n_prompt": )" +
         std::to_string(prompt) + R"(, "n_gen": )" + std::to_string(generated) + R"(, "n_depth": )" +
         std::to_string(depth) + R"(, "avg_ns": )" + std::to_string(ns) +
         R"(, "stddev_ns": 1000000, "samples_ns": [ )" + samples_ns + R"( ],"samples_ts": [ 1.5, 1.5 ]})";
}

void check_bench(const TimingTable& table) {
  CHECK(table.format == "llama-bench");
  REQUIRE(table.passes.size() == 3);
  CHECK(table.passes[0].axis == TimingAxis::verification);
  CHECK(table.passes[0].batch == 1);
  CHECK(table.passes[0].tokens == 1);
  CHECK(table.passes[0].context == 1024);
  CHECK(table.passes[0].seconds == Approx(0.010));
  CHECK(table.passes[1].tokens == 5);
  CHECK(table.passes[1].seconds == Approx(0.0125));
  CHECK(table.passes[2].axis == TimingAxis::generation);
  CHECK(table.passes[2].tokens == 1);
  CHECK(table.passes[2].context == 1024 + 31.5);
  CHECK(table.passes[2].seconds == Approx(0.011));
}

}  // namespace

TEST_CASE("a table of one's own is read from CSV with its columns in any order") {
  const TimingTable table = read(
      "seconds;batch;tokens;context;model;stddev_seconds;repetitions\n"
      "0.0112;1;1;1024;big;0.0001;7\n"
      "0.0119;2.5;5;0;big;;\n");
  CHECK(table.format == "timing table");
  REQUIRE(table.passes.size() == 2);
  CHECK(table.passes[0].axis == TimingAxis::grid);
  CHECK(table.passes[0].context == 1024);
  CHECK(table.passes[0].seconds == 0.0112);
  CHECK(table.passes[0].stddev_seconds == 0.0001);
  CHECK(table.passes[0].repetitions == 7);
  CHECK(table.passes[1].batch == 2.5);
  CHECK(table.passes[1].tokens == 5);
  CHECK_FALSE(table.passes[1].stddev_seconds);
  CHECK(table.passes[1].repetitions == 0);
  CHECK(table.passes[1].line == 3);
  CHECK(table.models() == std::vector<std::string>{"big"});
}

TEST_CASE("a table of one's own is read from JSON lines and from an array, repetitions listed or not") {
  const std::string first = R"({"model":"a","batch":1,"tokens":5,"context":0,"seconds":0.5})";
  const std::string second = R"({"model":"b","batch":1,"tokens":5,"context":0,"samples_seconds":[0.1,0.3]})";
  for (const std::string& content : {first + "\n" + second + "\n", "[" + first + ",\n" + second + "]"}) {
    const TimingTable table = read(content);
    REQUIRE(table.passes.size() == 2);
    CHECK(table.passes[0].seconds == 0.5);
    CHECK(table.passes[1].seconds == Approx(0.2));
    CHECK(table.passes[1].repetitions == 2);
    CHECK(table.models() == std::vector<std::string>{"a", "b"});
    CHECK(table.passes_of("b").size() == 1);
  }
}

TEST_CASE("bad rows of a timing table are refused with line and field") {
  const std::string header = "batch,tokens,context,seconds\n";
  CHECK_THAT(refusal(header + "1,1,0,0.1\n0,1,0,0.1\n"),
             EndsWith("timings:3: batch is 0, but must be a number above 0"));
  CHECK_THAT(refusal(header + "1,1,0,nan\n"), EndsWith("timings:2: seconds is nan, but must be a number above 0"));
  CHECK_THAT(refusal(header + "1,1,-1,0.1\n"), EndsWith("context is -1, but must be a number, 0 or above"));
  CHECK_THAT(refusal(header + "1,1,0\n"),
             EndsWith(":2: row is 3 fields long, but must be 4 fields long, as the header is"));
  CHECK_THAT(refusal("batch,tokens,seconds\n1,1,0.1\n"), EndsWith(":1: column context is missing, but must be there"));
  CHECK_THAT(refusal("batch,tokens,context,seconds,ms\n1,1,0,0.1,1\n"), Contains("field ms is there"));
  CHECK_THAT(
      refusal("1,1,0,0.1\n2,1,0,0.2\n"),
      Contains("1: line is of numbers, but must be the names of the columns, such as batch,tokens,context,seconds"));
  CHECK_THAT(refusal("batch,tokens,ctx,time\n1,1,0,0.1\n"),
             Contains("timings:1: columns is batch, ctx, time, tokens, but must be"));
  CHECK_THAT(refusal("1,0,20,,\n1,3,3.8,2.7,1000\n"), Contains("1: line is of numbers"));
  CHECK_THAT(refusal("batch,batch,tokens,context,seconds\n1,1,1,0,0.1\n"), Contains("column batch is there twice"));
  CHECK_THAT(refusal("a,b\n1,2\n"), Contains("llama-batched-bench"));
  CHECK_THAT(refusal(header), EndsWith("timings: the number of timings is 0, but must be 1 or more"));
  CHECK_THAT(refusal(""), EndsWith("the number of timings is 0, but must be 1 or more"));
  CHECK_THAT(refusal(R"({"batch":1,"tokens":1,"context":0,"samples_seconds":[0.1,0]})"),
             EndsWith("an element of samples_seconds is 0, but must be a number above 0"));
  CHECK_THAT(refusal(R"({"batch":1,"tokens":1,"context":0,"seconds":0.2,"samples_seconds":[0.1,0.1]})"),
             Contains("seconds is 0.2, but must be 0.1"));
  CHECK_THAT(refusal(R"({"batch":1,"tokens":1,"context":0,"seconds":)"), Contains("timings:1"));
}

TEST_CASE("llama-bench is read alike from CSV, JSON, JSON lines and markdown") {
  check_bench(read(bench_header + bench_row(1, 0, 1024, 10'000'000) + bench_row(5, 0, 1024, 12'500'000) +
                   bench_row(0, 64, 1024, 704'000'000)));
  const std::string one = bench_object(1, 0, 1024, "9000000, 11000000", 10'000'000);
  const std::string two = bench_object(5, 0, 1024, "12500000, 12500000", 12'500'000);
  const std::string three = bench_object(0, 64, 1024, "640000000, 768000000", 704'000'000);
  const TimingTable lines = read(one + "\n" + two + "\n" + three + "\n");
  check_bench(lines);
  REQUIRE(lines.passes[0].samples_seconds.size() == 2);
  CHECK(lines.passes[0].samples_seconds[0] == Approx(0.009));
  CHECK(lines.passes[0].repetitions == 2);
  CHECK(lines.passes[2].samples_seconds[1] == Approx(0.012));
  CHECK(*lines.passes[2].stddev_seconds == Approx(0.001 / 64));
  check_bench(read("[\n" + one + ",\n" + two + ",\n" + three + "\n]\n"));
  const TimingTable printed = read(
      "| model            |       size | threads |            test |                  t/s |\n"
      "| ---------------- | ---------: | ------: | --------------: | -------------------: |\n"
      "| llama ?B all F32 |  57.95 MiB |       2 |     pp1 @ d1024 |        100.00 \xc2\xb1 5.00 |\n"
      "| llama ?B all F32 |  57.95 MiB |       2 |     pp5 @ d1024 |        400.00 \xc2\xb1 0.00 |\n"
      "| llama ?B all F32 |  57.95 MiB |       2 |    tg64 @ d1024 |         90.91 \xc2\xb1 1.00 |\n"
      "\nbuild: 61a52dab9 (7012)\n");
  check_bench([&] {
    TimingTable rounded = printed;
    CHECK(rounded.passes[2].seconds == Approx(0.011).epsilon(1e-4));
    rounded.passes[2].seconds = 0.011;
    return rounded;
  }());
  CHECK(*printed.passes[0].stddev_seconds == Approx(0.0005));
  CHECK(printed.models() == std::vector<std::string>{"llama ?B all F32"});
}

TEST_CASE("two models of one type are told apart by size and parameters") {
  const TimingTable table = traces::read_timing_table(samples / "llama-bench.md");
  CHECK(table.models() ==
        std::vector<std::string>{"llama ?B all F32 (11.63 MiB / 3.05 M)", "llama ?B all F32 (0.57 MiB / 0.15 M)"});
  const auto generation = [&](const std::string& model) {
    const std::vector<TimedPass> passes = table.passes_of(model);
    REQUIRE(passes.size() == 7);
    return passes.back();
  };
  CHECK(generation(table.models()[0]).seconds == Approx(1 / 187.61).epsilon(1e-12));
  CHECK(generation(table.models()[1]).seconds == Approx(1 / 2802.74).epsilon(1e-12));
  CHECK(generation(table.models()[0]).context == 128 + 7.5);
}

TEST_CASE("tests of llama-bench that time no single pass are left out with a warning") {
  const TimingTable table = read(bench_header + bench_row(4, 0, 0, 12'000'000) + bench_row(513, 0, 0, 900'000'000) +
                                 bench_row(512, 16, 0, 990'000'000));
  CHECK(table.passes.size() == 1);
  REQUIRE(table.warnings.size() == 2);
  CHECK(table.warnings[0].code == "split_pass_excluded");
  CHECK_THAT(table.warnings[0].message, Contains("timings:3: 513 tokens are more than the 512 of one pass"));
  CHECK(table.warnings[1].code == "combined_test_excluded");
  const TimingTable printed = read(
      "| model | test | t/s |\n|---|---|---|\n| a | pp512+tg128 | 90.00 \xc2\xb1 1.00 |\n"
      "| a | pp8 | 90.00 \xc2\xb1 1.00 |\n");
  CHECK(printed.passes.size() == 1);
  CHECK(printed.warnings.front().code == "combined_test_excluded");
  CHECK_THAT(refusal(bench_header + bench_row(512, 16, 0, 990'000'000)),
             EndsWith("the number of usable timings is 0, but must be 1 or more"));
}

TEST_CASE("llama-bench -o sql is refused with the formats that are read") {
  CHECK_THAT(
      refusal("INSERT INTO llama_bench (n_prompt, avg_ns) VALUES ('5', '12500000');\n"),
      EndsWith("content is what llama-bench -o sql wrote, but must be of llama-bench -o csv, json, jsonl or md"));
}

TEST_CASE("llama-bench under two settings, or broken, is refused") {
  CHECK_THAT(refusal(bench_header + bench_row(1, 0, 0, 10'000'000, 2) + bench_row(2, 0, 0, 10'000'000, 4)),
             EndsWith("timings:3: n_threads is 4, but must be 2 as on line 2: one file holds one setting"));
  CHECK_THAT(refusal(bench_header + bench_row(1, 0, 0, 0)), EndsWith("avg_ns is 0, but must be a number above 0"));
  CHECK_THAT(refusal(bench_header + bench_row(0, 0, 0, 1)), EndsWith("n_prompt + n_gen is 0, but must be 1 or more"));
  CHECK_THAT(refusal("| model | test | t/s |\n|---|---|---|\n| a | qq8 | 90.00 |\n"), Contains("test is qq8"));
  CHECK_THAT(refusal("| model | test | t/s |\n|---|---|---|\n| a | pp8+ | 90.00 |\n"), Contains("test is pp8+"));
  CHECK_THAT(refusal("| model | test | t/s |\n|---|---|---|\n| a | pp8 |\n"),
             EndsWith(":3: row is 2 cells long, but must be 3 cells long, as the header is"));
}

TEST_CASE("the batch axis that llama-batched-bench measured is read from JSON lines and markdown") {
  const TimingTable lines = traces::read_timing_table(samples / "batched-bench.jsonl");
  CHECK(lines.format == "llama-batched-bench");
  REQUIRE(lines.passes.size() == 4);
  const std::vector<double> batches = {1, 2, 4, 8};
  const std::vector<double> seconds = {0.049187 / 16, 0.037583 / 16, 0.071035 / 16, 0.104956 / 16};
  const TimingTable printed = traces::read_timing_table(samples / "batched-bench.md");
  REQUIRE(printed.passes.size() == 4);
  const std::vector<double> printed_rates = {208.36, 576.92, 761.61, 1391.70};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(lines.passes[i].axis == TimingAxis::batch);
    CHECK(lines.passes[i].batch == batches[i]);
    CHECK(lines.passes[i].tokens == 1);
    CHECK(lines.passes[i].context == 16 + 7.5);
    CHECK(lines.passes[i].seconds == Approx(seconds[i]));
    CHECK(printed.passes[i].batch == batches[i]);
    CHECK(printed.passes[i].context == 16 + 7.5);
    CHECK(printed.passes[i].seconds == Approx(batches[i] / printed_rates[i]));
  }
  CHECK(lines.warnings.empty());
}

TEST_CASE("rows of llama-batched-bench that contradict themselves or generate nothing are noticed") {
  const std::string header =
      "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |\n"
      "|-------|--------|------|--------|----------|----------|----------|----------|\n";
  CHECK_THAT(refusal(header + "| 16 | 16 | 1 | 32 | 0.010 | 1581.03 | 0.097 | 208.36 |\n"),
             EndsWith(":3: T_TG s is 0.097, but must be 0.077, which S_TG t/s says"));
  const TimingTable table = read("main: n_kv_max = 2048, n_batch = 2048, n_ubatch = 4, flash_attn = -1\n\n" + header +
                                 "| 16 | 16 | 1 | 32 | 0.010 | 1581.03 | 0.077 | 208.36 |\n"
                                 "| 16 |  0 | 2 | 32 | 0.010 | 1581.03 | 0.000 | 0.00 |\n"
                                 "| 16 | 16 | 8 | 256 | 0.020 | 6417.97 | 0.092 | 1391.70 |\n");
  // A log may stand between rows.
  CHECK(read(header + "| 16 | 16 | 1 | 32 | 0.010 | 1581.03 | 0.077 | 208.36 |\n\nload: a | b\n"
                      "| 16 | 16 | 8 | 256 | 0.020 | 6417.97 | 0.092 | 1391.70 |\n")
            .passes.size() == 2);
  CHECK(table.passes.size() == 1);
  REQUIRE(table.warnings.size() == 2);
  CHECK(table.warnings[0].code == "no_generation_excluded");
  CHECK(table.warnings[1].code == "split_pass_excluded");
}

/// Two answers of a server that looks n-grams up and drafts by a model's own modules.
const std::string statistics_log =
    "0.31.456.700 I slot print_timing: id  3 | task 0 |        eval time =    2000.00 ms /   150 tokens\n"
    "0.31.456.721 I statistics     ngram-simple: #calls(b,g,a) =    1    99     4, #gen drafts =      4, #acc drafts ="
    "     3, #gen tokens =     16, #acc tokens =     8, dur(b,g,a) = 0.001, 0.872, 0.000 ms\n"
    "0.31.456.725 I statistics        draft-mtp: #calls(b,g,a) =    1    95    95, #gen drafts =     95, #acc drafts ="
    "    70, #gen tokens =    190, #acc tokens =   120, dur(b,g,a) = 0.005, 900.000, 0.517 ms\n"
    "0.41.456.725 I spec common_specu: statistics        draft-mtp: #calls(b,g,a) =    2    200    200, #gen drafts = "
    "   200, #acc drafts =   150, #gen tokens =    400, #acc tokens =   260, #mean acc len = 2.30, #acc rate/pos = "
    "(0.75, 0.55), dur(b,g,a) = 0.010, 2000.000, 1.1 ms\n";

TEST_CASE("what llama.cpp's drafts took is the mean of its last line of statistics, and lookups are no passes") {
  const TimingTable table = read(statistics_log);
  CHECK(table.format == "llama.cpp statistics");
  REQUIRE(table.passes.size() == 1);
  CHECK(table.passes[0].seconds == 2.0 / 400);
  CHECK(table.passes[0].repetitions == 400);
  CHECK(table.passes[0].line == 4);
  CHECK(table.passes[0].context == 0);
  CHECK(table.passes[0].model.empty());
  REQUIRE(table.warnings.size() == 1);
  CHECK(table.warnings[0].code == "context_unknown");
}

TEST_CASE("drafts of one pass count by draft, and each way to draft with a model is one") {
  const TimingTable table = read(
      "statistics dflash: #calls(b,g,a) = 1 10 10, #gen drafts = 10, #acc drafts = 4, #gen tokens = 70, #acc tokens = "
      "12, dur(b,g,a) = 1.0, 50.0, 3.0 ms\n"
      "statistics draft-simple: #calls = 10, #gen drafts = 10, #acc drafts = 4, #gen tokens = 40, #acc tokens = 12, "
      "dur(b,g,a) = 1.0, 80.0, 3.0 ms\n");
  CHECK(table.models() == std::vector<std::string>{"dflash", "draft-simple"});
  CHECK(table.passes[0].seconds == Approx(5e-3).epsilon(1e-14));
  CHECK(table.passes[1].seconds == Approx(2e-3).epsilon(1e-14));
}

TEST_CASE("statistics of drafts that lack a figure, or of lookups alone, are refused by line") {
  const std::string line = "x\nstatistics draft: #gen drafts = 9, #gen tokens = 18, dur(b,g,a) = 1.0, 50.0, 3.0 ms\n";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = line;
    return refusal(text.replace(text.find(from), from.size(), to));
  };
  CHECK_THAT(changed("#gen tokens = 18, ", ""), Contains(":2") && Contains("#gen tokens"));
  CHECK_THAT(changed("18", "1.5"), Contains("an integer"));
  CHECK_THAT(changed("50.0", "fast"), Contains("fast") && Contains("three numbers"));
  CHECK_THAT(changed("50.0", "-1"), Contains("0 or above"));
  CHECK_THAT(changed("1.0, 50.0", "1.0 50.0"), Contains("three numbers"));
  CHECK_THAT(changed("draft:", "ngram_mod:"), Contains("no draft that is a model"));
  CHECK_THAT(changed("18", "0"), Contains("no draft that is a model"));
  CHECK(refusal(line).empty());
}

TEST_CASE("mutated timings are read with values in their ranges or refused in one line") {
  const std::vector<std::string> good = {
      "batch,tokens,context,seconds,model,stddev_seconds,repetitions\n1,1,1024,0.0112,big,0.0001,7\n2.5,5,0,0.0119,,,"
      "\n",
      bench_header + bench_row(1, 0, 1024, 10'000'000) + bench_row(0, 64, 1024, 704'000'000),
      bench_object(1, 0, 1024, "9000000, 11000000", 10'000'000) + "\n",
      "| model | test | t/s |\n|---|---|---|\n| a | pp8 @ d16 | 90.00 \xc2\xb1 1.00 |\n| a | tg128 | 90.00 |\n",
      tests::read_text(samples / "batched-bench.jsonl"),
      tests::read_text(samples / "batched-bench.md")};
  std::mt19937_64 random(1);
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  int refused = 0;
  for (const std::string& text : good) {
    for (int i = 0; i < 200; ++i) {
      std::string mutant = text;
      if (any(4) == 0) mutant.resize(any(mutant.size()));
      for (std::size_t j = 0; j < any(4) && !mutant.empty(); ++j)
        mutant[any(mutant.size())] = any(2) == 0 ? text[any(text.size())] : static_cast<char>(any(256));
      try {
        for (const TimedPass& pass : read(mutant).passes) {
          CHECK((pass.batch > 0 && pass.tokens > 0 && pass.context >= 0 && pass.seconds > 0));
          CHECK(std::isfinite(pass.seconds));
        }
      } catch (const traces::FileError& error) {
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        ++refused;
      }
    }
  }
  CHECK(refused > 140);
}
