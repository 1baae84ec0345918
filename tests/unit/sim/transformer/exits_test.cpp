// The first blocks of a transformer with an exit, against a forward pass in double that is written down here from the definitions alone.

#include "sim/transformer/exits.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "sim/transformer/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/safetensors_file.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/safetensors.hpp"

using namespace specdec;
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
    std::vector<tests::TensorData> data;
    for (const tests::NamedTensor& tensor : tensors_)
      data.push_back({{tensor.name, traces::ElementType::f32, tensor.shape}, std::as_bytes(std::span(tensor.values))});
    tests::write_safetensors(path(), data, metadata);
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
  Definition(const std::vector<tests::NamedTensor>& model, const std::vector<tests::NamedTensor>& exits) {
    for (const auto* tensors : {&model, &exits})
      for (const tests::NamedTensor& t : *tensors) values_[t.name] = Values(t.values.begin(), t.values.end());
    keys_.resize(4);
    stored_.resize(4);
  }

  /// The probabilities behind this many blocks.
  Values next(Token token, std::int64_t blocks) {
    const Values& embedding = values_.at("model.embed_tokens.weight");
    Values x(embedding.begin() + token * 32, embedding.begin() + token * 32 + 32);
    for (std::int64_t l = 0; l < blocks; ++l) block(l, x);
    return distribution(blocks, x);
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

  std::map<std::string, Values> values_;
  std::vector<std::vector<Values>> keys_;
  std::vector<std::vector<Values>> stored_;
};

}  // namespace

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
      const Values expected = definition.next(tokens[t], 2);
      for (std::size_t x = 0; x < 50; ++x) REQUIRE(std::abs(rows[t * 50 + x] - expected[x]) < 2e-5);
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

TEST_CASE("files that hold no exits of this model are refused with the tensor's name") {
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
}
