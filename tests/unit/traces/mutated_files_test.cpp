#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/trace_reading.hpp"
#include "traces/formats/recording_formats.hpp"

using namespace specdec;
namespace fs = std::filesystem;

namespace {

using Open = std::function<std::unique_ptr<traces::PositionSource>(const fs::path&)>;

constexpr int mutations = 300;

std::string mutated(std::string content, std::mt19937_64& random) {
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  switch (any(4)) {
    case 0:
      content.resize(any(content.size()));
      break;
    case 1:
      content.insert(any(content.size()), content.substr(any(content.size()), any(40)));
      break;
    default:
      for (std::size_t i = 0; i <= any(4); ++i) {
        // Bytes from the file itself keep a text a text; all others are tried too.
        const auto byte = any(2) == 0 ? content[any(content.size())] : static_cast<char>(any(256));
        content[any(content.size())] = byte;
      }
  }
  return content;
}

/// Reads mutations of a good file: each is read to its end or refused by a FileError of one line; anything else that is
/// thrown, and any finding of a sanitizer, fails the test.
void check_mutations(const std::string& good, const Open& open) {
  const tests::TemporaryFolder folder;
  std::mt19937_64 random(good.size());
  int refused = 0;
  for (int i = 0; i < mutations; ++i) {
    const auto path = folder.write("x", mutated(good, random));
    const std::string message = tests::refusal_of(folder.path(), [&] { return open(path); });
    CHECK(message.find('\n') == std::string::npos);
    refused += message.empty() ? 0 : 1;
  }
  CHECK(refused > mutations / 10);
}

std::string sample(const char* name) {
  return tests::read_text(fs::path(tests::source_dir()) / "traces/samples" / name);
}

}  // namespace

TEST_CASE("mutated archives of numpy are read or refused") {
  for (const char* name : {"numpy/stored.npz", "numpy/deflated.npz"}) {
    check_mutations(sample(name), [](const fs::path& path) { return traces::open_npz(path); });
  }
}

TEST_CASE("mutated arrays of numpy are read or refused") {
  check_mutations(sample("numpy/p_logits.npy"), [](const fs::path& path) {
    return traces::open_npy_pair(path, path, {traces::RowSpace::logits, "", ""});
  });
}

TEST_CASE("mutated logits of llama.cpp are read or refused") {
  // The header, and the first rows' tables: a whole sample would mostly be mutated in its codes, which are all valid.
  const std::string whole = sample("llamacpp/target.kld");
  constexpr std::size_t context_and_chunks = 20 + 4 * 64;
  std::string one_chunk = whole.substr(0, context_and_chunks) + whole.substr(20 + 4 * 256, 31 * 2 * 518);
  one_chunk[16] = 1;
  check_mutations(one_chunk, [](const fs::path& path) { return traces::open_llamacpp_logits(path, path); });
}

TEST_CASE("mutated texts of token pairs are read or refused") {
  check_mutations("seq,token,p_logprob,q_logprob,overlap,task\na,1,-1,-2,0.5,\"x,\"\"y\"\"\"\nb,2,-1e-3,-inf,,z\n",
                  [](const fs::path& path) { return traces::open_token_pairs_csv(path); });
  check_mutations("{\"seq\":1,\"p\":0.5,\"q\":0.25,\"task\":\"x\"}\n{\"seq\":2,\"p\":0,\"q\":NaN,\"task\":null}\n",
                  [](const fs::path& path) { return traces::open_token_pairs_jsonl(path); });
  check_mutations("{\"p_logprobs\":[-1,-Infinity],\"q_logprobs\":[-2,-3],\"tokens\":[1,2],\"p_rank\":[1,2]}\n",
                  [](const fs::path& path) { return traces::open_token_pairs_jsonl(path); });
}

TEST_CASE("mutated position traces are read or refused") {
  check_mutations("{\"generated_token_ids\":[7,9,3],\"acc_eagle\":{\"acc_len\":[3,2,1]},\"task\":\"a\"}\n",
                  [](const fs::path& path) { return traces::open_position_traces(path); });
}
