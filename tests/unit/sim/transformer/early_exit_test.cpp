// Leaving a transformer early, against a forward pass in double that is written down here from the definitions alone.

#include "sim/transformer/early_exit.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/transformer/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/safetensors.hpp"
#include "traces/formats/safetensors_writer.hpp"

using namespace specdec;
using sim::EarlyExitOptions;
using sim::EarlyExitTransformer;
using sim::ExitConfidence;
using sim::Token;
using sim::Transformer;
using Values = std::vector<double>;

namespace {

const tests::Shape small{32, 4, 2, 48, 50, 120};

std::vector<Token> token_walk(std::size_t n) {
  std::vector<Token> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<Token>((i * i * 7 + 3 * i + 1) % 50);
  return tokens;
}

const std::map<std::string, std::string> of_small{{"format", "specdec-exits"},
                                                  {"version", "1"},
                                                  {"hidden_size", "32"},
                                                  {"vocab_size", "50"},
                                                  {"num_hidden_layers", "4"}};

/// Exits of `small` behind the named numbers of blocks, with made-up weights, in a file.
class ExitFile {
 public:
  explicit ExitFile(const std::vector<int>& behind) {
    for (const int k : behind) {
      const std::string name = "exits." + std::to_string(k);
      add(name + ".norm.weight", {32});
      add(name + ".proj.weight", {32, 32});
    }
    write();
  }

  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::vector<float> values(static_cast<std::size_t>(shape.size() == 1 ? shape[0] : shape[0] * shape[1]));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(std::sin(static_cast<double>(i * i + 7 * tensors_.size()))) / 8 +
                  (shape.size() == 1 ? 1.0F : 0.0F);
    tensors_.push_back({name, shape, values});
  }

  void write(const std::map<std::string, std::string>& metadata = of_small) {
    std::vector<traces::TensorData> data;
    for (const tests::NamedTensor& tensor : tensors_)
      data.push_back({{tensor.name, traces::ElementType::f32, tensor.shape}, std::as_bytes(std::span(tensor.values))});
    traces::write_safetensors(path(), data, metadata);
  }

  std::filesystem::path path() const { return folder_.path() / "exits.safetensors"; }
  std::vector<tests::NamedTensor>& tensors() { return tensors_; }

 private:
  tests::TemporaryFolder folder_;
  std::vector<tests::NamedTensor> tensors_;
};

/// The definitions, token after token, in double.
class Definition {
 public:
  struct Out {
    Values probabilities;
    std::int64_t blocks = 0;
    /// The confidence nearest to the threshold lay so far from it.
    double margin = 1;
  };

  Definition(const std::vector<tests::NamedTensor>& model, const std::vector<tests::NamedTensor>& exits) {
    for (const auto* tensors : {&model, &exits})
      for (const tests::NamedTensor& t : *tensors) values_[t.name] = Values(t.values.begin(), t.values.end());
    keys_.resize(4);
    stored_.resize(4);
  }

  /// @param threshold  nothing: all blocks. A token that must leave behind `last` blocks does.
  Out next(Token token, ExitConfidence confidence, std::optional<double> threshold, std::int64_t last = 4) {
    const Values& embedding = values_.at("model.embed_tokens.weight");
    Values x(embedding.begin() + token * 32, embedding.begin() + token * 32 + 32);
    Out out;
    for (std::int64_t l = 0; l < 4; ++l) {
      const Values before = x;
      if (out.blocks == 0) {
        block(l, x);
        if (l == 3)
          leave(out, 4, x);
        else if (l + 1 == last)
          leave(out, last, x);
        else if (threshold && is_sure(l + 1, x, before, confidence, *threshold, out))
          leave(out, l + 1, x);
      } else {
        store(l, rms(x, name(l, "input_layernorm")));
      }
    }
    return out;
  }

 private:
  static std::string name(std::int64_t l, const std::string& part) {
    return "model.layers." + std::to_string(l) + "." + part + ".weight";
  }

  Values rms(const Values& x, const std::string& weight) const {
    double square = 0;
    for (const double v : x) square += v * v / 32;
    Values y(32);
    for (std::size_t i = 0; i < 32; ++i) y[i] = x[i] / std::sqrt(square + 1e-5) * values_.at(weight)[i];
    return y;
  }

  Values times(const std::string& matrix, const Values& x) const {
    const Values& m = values_.at(matrix);
    Values y(m.size() / x.size());
    for (std::size_t i = 0; i < m.size(); ++i) y[i / x.size()] += m[i] * x[i % x.size()];
    return y;
  }

  /// Two heads of 16; the pair (i, i + 8) turns by position / 10000^(i / 8).
  static void turn(Values& heads, double position) {
    for (std::size_t h = 0; h < 32; h += 16) {
      for (std::size_t i = h; i < h + 8; ++i) {
        const double angle = position * std::pow(10000.0, -static_cast<double>(i - h) / 8);
        const double a = heads[i];
        const double b = heads[i + 8];
        heads[i] = a * std::cos(angle) - b * std::sin(angle);
        heads[i + 8] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }

  void store(std::int64_t l, const Values& normed) {
    Values key = times(name(l, "self_attn.k_proj"), normed);
    turn(key, static_cast<double>(keys_[static_cast<std::size_t>(l)].size()));
    keys_[static_cast<std::size_t>(l)].push_back(key);
    stored_[static_cast<std::size_t>(l)].push_back(times(name(l, "self_attn.v_proj"), normed));
  }

  void block(std::int64_t l, Values& x) {
    const Values normed = rms(x, name(l, "input_layernorm"));
    store(l, normed);
    const auto& keys = keys_[static_cast<std::size_t>(l)];
    Values query = times(name(l, "self_attn.q_proj"), normed);
    turn(query, static_cast<double>(keys.size() - 1));
    Values attended(32);
    for (std::size_t h = 0; h < 32; h += 16) {
      double total = 0;
      Values sums(16);
      for (std::size_t s = 0; s < keys.size(); ++s) {
        double product = 0;
        for (std::size_t i = h; i < h + 16; ++i) product += query[i] * keys[s][i];
        const double weight = std::exp(product / 4);
        total += weight;
        for (std::size_t i = 0; i < 16; ++i) sums[i] += weight * stored_[static_cast<std::size_t>(l)][s][h + i];
      }
      for (std::size_t i = 0; i < 16; ++i) attended[h + i] = sums[i] / total;
    }
    add(x, times(name(l, "self_attn.o_proj"), attended));
    const Values fed = rms(x, name(l, "post_attention_layernorm"));
    Values gate = times(name(l, "mlp.gate_proj"), fed);
    const Values up = times(name(l, "mlp.up_proj"), fed);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    add(x, times(name(l, "mlp.down_proj"), gate));
  }

  static void add(Values& x, const Values& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  Values distribution(std::int64_t blocks, Values x) const {
    const std::string exit = "exits." + std::to_string(blocks);
    if (values_.count(exit + ".proj.weight") > 0) add(x, times(exit + ".proj.weight", rms(x, exit + ".norm.weight")));
    Values p = times("model.embed_tokens.weight", rms(x, "model.norm.weight"));
    double total = 0;
    for (double& v : p) total += v = std::exp(v);
    for (double& v : p) v /= total;
    return p;
  }

  bool is_sure(std::int64_t blocks, const Values& x, const Values& before, ExitConfidence confidence, double threshold,
               Out& out) const {
    double sure = 0;
    if (confidence == ExitConfidence::softmax_response) {
      Values p = distribution(blocks, x);
      std::sort(p.begin(), p.end());
      sure = p[p.size() - 1] - p[p.size() - 2];
    } else {
      if (blocks == 1) return false;
      Values sums(3);
      for (std::size_t i = 0; i < 32; ++i) add(sums, {x[i] * before[i], x[i] * x[i], before[i] * before[i]});
      sure = sums[0] / std::sqrt(sums[1] * sums[2]);
    }
    out.margin = std::min(out.margin, std::abs(sure - threshold));
    return sure >= threshold;
  }

  void leave(Out& out, std::int64_t blocks, const Values& x) const {
    out.blocks = blocks;
    out.probabilities = distribution(blocks, x);
  }

  std::map<std::string, Values> values_;
  std::vector<std::vector<Values>> keys_;
  std::vector<std::vector<Values>> stored_;
};

std::vector<double> rows_of(EarlyExitTransformer& model, const std::vector<Token>& tokens, std::size_t block) {
  std::vector<double> rows(tokens.size() * 50);
  for (std::size_t first = 0; first < tokens.size(); first += block) {
    const std::size_t n = std::min(block, tokens.size() - first);
    model.score(std::span(tokens).subspan(first, n), std::span(rows).subspan(first * 50, n * 50));
  }
  return rows;
}

}  // namespace

TEST_CASE("tokens leave where the definition says, by either measure, with trained exits and without") {
  const tests::RandomCheckpoint checkpoint(small);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  ExitFile file({1, 2, 3});
  const auto exits = sim::load_exits(file.path(), sim::config_of(*weights));
  CHECK(sim::exits_of(*exits) == std::vector<std::int64_t>{1, 2, 3});
  const std::vector<Token> tokens = token_walk(90);
  for (const bool trained : {false, true}) {
    for (const auto confidence : {ExitConfidence::softmax_response, ExitConfidence::state_saturation}) {
      const double threshold = confidence == ExitConfidence::softmax_response ? 0.0327 : 0.86;
      CAPTURE(trained, confidence);
      EarlyExitTransformer model(
          weights, {.confidence = confidence, .threshold = threshold, .exits = trained ? exits : nullptr});
      model.run_all_blocks_before(10);
      const std::vector<double> rows = rows_of(model, tokens, 90);
      Definition definition(checkpoint.tensors(), trained ? file.tensors() : std::vector<tests::NamedTensor>{});
      std::vector<int> left(5);
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        const auto out = definition.next(tokens[t], confidence, t < 10 ? std::nullopt : std::optional(threshold));
        CAPTURE(t, out.margin);
        REQUIRE(out.margin > 1e-5);
        REQUIRE(model.blocks_run(static_cast<std::int64_t>(t)) == out.blocks);
        left[static_cast<std::size_t>(out.blocks)] += t >= 10;
        for (std::size_t x = 0; x < 50; ++x) REQUIRE(std::abs(rows[t * 50 + x] - out.probabilities[x]) < 2e-5);
      }
      CAPTURE(left);
      CHECK(std::count_if(left.begin(), left.end(), [](int n) { return n > 5; }) >= 3);
    }
  }
}

TEST_CASE("the target's first blocks and an exit are what the definition says, and count what they multiply") {
  const tests::RandomCheckpoint checkpoint(small);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  ExitFile file({1, 2});
  const auto exits = sim::load_exits(file.path(), sim::config_of(*weights));
  const std::vector<Token> tokens = token_walk(60);
  std::vector<double> rows(60 * 50);
  for (const bool trained : {false, true}) {
    Transformer model(weights, {.layers = 2, .exits = trained ? exits : nullptr});
    model.score(tokens, rows);
    Definition definition(checkpoint.tensors(), trained ? file.tensors() : std::vector<tests::NamedTensor>{});
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const auto out = definition.next(tokens[t], ExitConfidence::softmax_response, std::nullopt, 2);
      for (std::size_t x = 0; x < 50; ++x) REQUIRE(std::abs(rows[t * 50 + x] - out.probabilities[x]) < 2e-5);
    }
    CHECK(model.operations_per_token() == 2.0 * (2 * (4 * 32 * 32 + 3 * 32 * 48) + 50 * 32 + (trained ? 32 * 32 : 0)));
  }
  CHECK_THROWS_AS(Transformer(weights, {.layers = 3, .exits = exits}), std::domain_error);
  CHECK_NOTHROW(Transformer(weights, {.exits = exits}));
  const tests::RandomCheckpoint wider({48, 3, 2, 48, 50, 120});
  CHECK_THROWS_AS(Transformer(sim::load_checkpoint(wider.folder()), {.layers = 1, .exits = exits}),
                  std::invalid_argument);
}

TEST_CASE("the shipped exits give PyTorch's logits to 1e-4 of each row's largest") {
  const auto source = std::filesystem::path(tests::source_dir());
  const auto weights = sim::load_checkpoint(source / "sim" / "models" / "target");
  const auto exits = sim::load_exits(source / "sim" / "models" / "exits.safetensors", sim::config_of(*weights));
  // Made by tests/fixtures/make_head_fixtures.py. Shape: logits (places, exits, vocabulary / 16).
  const traces::SafetensorsFile file(source / "tests" / "fixtures" / "heads" / "exits.safetensors");
  std::vector<Token> tokens(60);
  std::vector<Token> places(3);
  const auto integers = [&](const char* name, std::vector<Token>& out) {
    REQUIRE(file.find(name)->bytes.size() == out.size() * sizeof(Token));
    std::memcpy(out.data(), file.find(name)->bytes.data(), out.size() * sizeof(Token));
  };
  integers("tokens", tokens);
  integers("positions", places);
  constexpr std::size_t listed = 2048 / 16;
  std::vector<float> expected(3 * 5 * listed);
  traces::read_floats(*file.find("logits"), 0, expected);
  std::vector<float> logits(60 * 2048);
  for (std::int64_t k = 1; k <= 5; ++k) {
    Transformer model(weights, {.layers = k, .exits = exits});
    model.score_logits(tokens, logits);
    for (std::size_t i = 0; i < 3; ++i) {
      const float* row = expected.data() + (i * 5 + static_cast<std::size_t>(k - 1)) * listed;
      const float largest =
          std::abs(*std::max_element(row, row + listed, [](float a, float b) { return std::abs(a) < std::abs(b); }));
      for (std::size_t x = 0; x < listed; ++x) {
        const float found = logits[static_cast<std::size_t>(places[i]) * 2048 + 16 * x];
        REQUIRE(std::abs(found - row[x]) <= 1e-4F * largest);
      }
    }
  }
}

TEST_CASE("who never leaves is the full model, who always leaves its first block, and rows do not depend on blocks") {
  const tests::RandomCheckpoint checkpoint(small);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  const std::vector<Token> tokens = token_walk(70);
  std::vector<double> full_rows(70 * 50);
  std::vector<double> first_rows(70 * 50);
  Transformer full(weights);
  Transformer first(weights, {.layers = 1});
  full.score(tokens, full_rows);
  first.score(tokens, first_rows);
  EarlyExitTransformer never(weights, {.threshold = 1});
  CHECK(rows_of(never, tokens, 20) == full_rows);
  EarlyExitTransformer always(weights, {.threshold = 0});
  CHECK(rows_of(always, tokens, 20) == first_rows);

  EarlyExitTransformer model(weights, {.threshold = 0.02});
  model.run_all_blocks_before(55);
  const std::vector<double> expected = rows_of(model, tokens, 1);
  CHECK(std::equal(expected.begin(), expected.begin() + 55 * 50, full_rows.begin()));
  CHECK(expected != full_rows);
  for (int threads = 1; threads <= 2; ++threads) {
    EarlyExitTransformer other(weights, {.threads = threads, .threshold = 0.02});
    other.run_all_blocks_before(55);
    CHECK(rows_of(other, tokens, 7) == expected);
    other.score(token_walk(9), {});
    other.roll_back(60);
    std::vector<double> last(4 * 50);
    other.score(std::span(tokens).subspan(60), last);
    CHECK(std::equal(last.begin(), last.end(), expected.end() - 200));
  }
}

TEST_CASE("a text's operations are those of the blocks that its tokens ran, and its divergence that of the rows") {
  const tests::RandomCheckpoint checkpoint(small);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  constexpr double block = 2.0 * (4 * 32 * 32 + 3 * 32 * 48);
  constexpr double head = 2.0 * 50 * 32;
  constexpr double stored = 2.0 * 2 * 32 * 32;
  for (const auto confidence : {ExitConfidence::softmax_response, ExitConfidence::state_saturation}) {
    const bool asks_all = confidence == ExitConfidence::softmax_response;
    const double threshold = asks_all ? 0.02 : 0.86;
    EarlyExitTransformer model(weights, {.confidence = confidence, .threshold = threshold});
    CHECK(model.operations(4) == 4 * block + (asks_all ? 4 : 1) * head);
    CHECK(model.operations(2) == 2 * block + 2 * stored + (asks_all ? 2 : 1) * head);
    CHECK(model.operations_per_token() == model.operations(4));

    const std::vector<Token> prompt = token_walk(12);
    model.run_all_blocks_before(11);
    sim::DecodingOptions options;
    options.max_new_tokens = 50;
    const sim::Generation run = sim::decode_autoregressively(model, prompt, options, sim::RandomStream(3, 0));
    Transformer full(weights);
    const sim::EarlyExitText text = sim::measure_early_exit(model, full, prompt, run.tokens, options.standardisation);
    double operations = 0;
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      operations += static_cast<double>(text.blocks_run[i]) * model.operations(static_cast<std::int64_t>(i + 1));
      tokens += text.blocks_run[i];
    }
    CHECK(tokens == 50);
    CHECK(text.operations == Approx(operations).epsilon(1e-12));
    CHECK(run.counters.operations == Approx(operations).epsilon(1e-12));
    CHECK(text.total_variation > 0);
    // Pinsker's inequality, for each token and so for the sums.
    CHECK(text.kullback_leibler >= 2 * text.total_variation * text.total_variation / 50);

    EarlyExitTransformer never(weights, {.confidence = ExitConfidence::softmax_response, .threshold = 1});
    const sim::EarlyExitText same = sim::measure_early_exit(never, full, prompt, run.tokens, options.standardisation);
    CHECK(same.total_variation == 0);
    CHECK(same.kullback_leibler == 0);
    CHECK(same.blocks_run.back() == 50);
  }
}

TEST_CASE("files that hold no exits of this model are refused with the tensor's name, and bad calls with the range") {
  const tests::RandomCheckpoint checkpoint(small);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  const auto refused_for = [&](ExitFile& file) -> std::string {
    try {
      sim::load_exits(file.path(), sim::config_of(*weights));
    } catch (const traces::FileError& error) {
      return error.field();
    }
    return "nothing";
  };
  ExitFile file({1});
  CHECK(refused_for(file) == "nothing");
  for (const char* key : {"format", "version", "hidden_size", "vocab_size", "num_hidden_layers"}) {
    std::map<std::string, std::string> metadata = of_small;
    metadata[key] = "2";
    file.write(metadata);
    CHECK(refused_for(file) == std::string("metadata ") + key);
  }
  file.tensors()[1].values[40] = std::numeric_limits<float>::infinity();
  file.write();
  CHECK(refused_for(file) == "exits.1.proj.weight, element 40");
  for (const char* name : {"exits.4.norm.weight", "exits.0.norm.weight", "exits.02.norm.weight", "exits.2.bias"}) {
    ExitFile other({1});
    other.add(name, {32});
    other.write();
    CHECK(refused_for(other) == name);
  }
  ExitFile shape({});
  shape.add("exits.1.norm.weight", {31});
  shape.write();
  CHECK(refused_for(shape) == "exits.1.norm.weight.shape");
  ExitFile half({1});
  half.add("exits.2.norm.weight", {32});
  half.write();
  CHECK(refused_for(half) == "exits.2.proj.weight");
  ExitFile empty({});
  CHECK(refused_for(empty) == "exits");

  CHECK_THROWS_AS(EarlyExitTransformer(weights, {.threshold = 1.01}), std::domain_error);
  CHECK_THROWS_AS(EarlyExitTransformer(weights, {.max_length = 121}), std::domain_error);
  EarlyExitTransformer model(weights, {.max_length = 5});
  CHECK_THROWS_AS(model.run_all_blocks_before(6), std::domain_error);
  CHECK_THROWS_AS(model.operations(0), std::domain_error);
  CHECK_THROWS_AS(model.blocks_run(0), std::domain_error);
  std::vector<double> row(50);
  CHECK_THROWS_AS(model.score(token_walk(6), {}), std::domain_error);
  CHECK_THROWS_AS(model.score(std::vector<Token>{50}, row), std::domain_error);
  CHECK_THROWS_AS(model.score({}, row), std::invalid_argument);
  CHECK_THROWS_AS(model.roll_back(1), std::domain_error);
  CHECK(model.length() == 0);
}
