// Drafts that read the target's features: eagle heads and parallel heads, over random weights and the shipped ones.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>

#include "sim/decoding.hpp"
#include "sim/drafts/eagle.hpp"
#include "sim/drafts/parallel_heads.hpp"
#include "sim/verifiers/block_verification.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/safetensors_file.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using namespace specdec::sim;
using namespace specdec::test_support;

namespace {

enum class HeadKind { eagle, parallel };
constexpr HeadKind both_kinds[] = {HeadKind::eagle, HeadKind::parallel};

using Weights = std::shared_ptr<const TransformerWeights>;

/// Names and shapes of a file of heads for a target.
std::map<std::string, std::vector<std::int64_t>> tensors_of(HeadKind kind, const tests::Shape& s) {
  if (kind == HeadKind::parallel) {
    std::map<std::string, std::vector<std::int64_t>> tensors;
    for (int j = 1; j <= 3; ++j) {
      tensors[fmt::format("parallel.{}.weight", j)] = {s.width, s.width};
      tensors[fmt::format("parallel.{}.bias", j)] = {s.width};
    }
    return tensors;
  }
  return {{"eagle.fc.weight", {s.width, 2 * s.width}},
          {"eagle.layer.input_layernorm.weight", {s.width}},
          {"eagle.layer.self_attn.q_proj.weight", {s.width, s.width}},
          {"eagle.layer.self_attn.k_proj.weight", {s.width, s.width}},
          {"eagle.layer.self_attn.v_proj.weight", {s.width, s.width}},
          {"eagle.layer.self_attn.o_proj.weight", {s.width, s.width}},
          {"eagle.layer.post_attention_layernorm.weight", {s.width}},
          {"eagle.layer.mlp.gate_proj.weight", {s.feed_forward, s.width}},
          {"eagle.layer.mlp.up_proj.weight", {s.feed_forward, s.width}},
          {"eagle.layer.mlp.down_proj.weight", {s.width, s.feed_forward}},
          {"eagle.norm.weight", {s.width}}};
}

std::string format_of(HeadKind kind) {
  return kind == HeadKind::eagle ? "specdec-eagle-head" : "specdec-parallel-heads";
}

/// A way to spoil a file of heads.
struct Spoiling {
  std::string tensor = {};
  std::vector<std::int64_t> shape = {};
  float first_value = 0;
  bool left_out = false;
  /// Entries of the metadata that are other ones; an empty one is left out.
  std::map<std::string, std::string> metadata = {};
};

/// Random heads for a shape in a file; d2t says which tokens they know, see TensorStore::known_tokens.
void write_heads(HeadKind kind, const tests::Shape& shape, const std::filesystem::path& path,
                 const Spoiling& spoilt = {}, const std::vector<std::int64_t>& d2t = {}) {
  std::mt19937 generator(7);
  auto tensors = tensors_of(kind, shape);
  if (!spoilt.shape.empty()) tensors[spoilt.tensor] = spoilt.shape;
  if (spoilt.left_out) tensors.erase(spoilt.tensor);
  std::vector<std::vector<float>> values;
  std::vector<tests::TensorData> data;
  values.reserve(tensors.size());
  for (const auto& [name, dimensions] : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t n : dimensions) count *= n;
    std::normal_distribution<float> normal(0, 1.5F / std::sqrt(static_cast<float>(dimensions.back())));
    std::vector<float>& v = values.emplace_back(static_cast<std::size_t>(count));
    for (float& x : v) x = dimensions.size() == 1 ? 1 : normal(generator);
    if (name == spoilt.tensor && spoilt.first_value != 0) v.front() = spoilt.first_value;
    data.push_back({{name, traces::ElementType::f32, dimensions}, std::as_bytes(std::span(v))});
  }
  if (!d2t.empty())
    data.push_back({{"d2t", traces::ElementType::i64, {std::ssize(d2t)}}, std::as_bytes(std::span(d2t))});
  std::map<std::string, std::string> metadata{{"format", format_of(kind)},
                                              {"version", "1"},
                                              {"hidden_size", std::to_string(shape.width)},
                                              {"vocab_size", std::to_string(shape.vocab_size)},
                                              {"num_hidden_layers", std::to_string(shape.layers)}};
  for (const auto& [key, value] : spoilt.metadata) metadata[key] = value;
  std::erase_if(metadata, [](const auto& entry) { return entry.second.empty(); });
  tests::write_safetensors(path, data, metadata);
}

/// A random target with random heads.
class HeadedTarget {
 public:
  /// @param d2t  of the eagle head
  explicit HeadedTarget(const tests::Shape& shape, const std::vector<std::int64_t>& d2t = {})
      : weights(load_checkpoint(tests::RandomCheckpoint(shape).folder())) {
    const tests::TemporaryFolder folder;
    write_heads(HeadKind::eagle, shape, folder.path() / "eagle", {}, d2t);
    write_heads(HeadKind::parallel, shape, folder.path() / "parallel");
    eagle = load_eagle_head(folder.path() / "eagle", weights);
    parallel = load_parallel_heads(folder.path() / "parallel", weights);
  }

  Transformer model(int threads = 1) const { return Transformer(weights, {.threads = threads, .keep_features = true}); }
  std::unique_ptr<Draft> draft(HeadKind kind, const Transformer& target, Proposing proposing,
                               const core::Standardisation& standardisation = {}) const {
    if (kind == HeadKind::eagle) return std::make_unique<EagleDraft>(eagle, target, standardisation, proposing);
    return std::make_unique<ParallelHeadDraft>(parallel, target, standardisation, proposing);
  }

  Weights weights;
  std::shared_ptr<const EagleHead> eagle;
  std::shared_ptr<const ParallelHeads> parallel;
};

/// Proposes another token than the one that was drawn.
class ShiftedDraft final : public Draft {
 public:
  explicit ShiftedDraft(Draft& draft) : draft_(draft) {}
  std::int64_t vocab_size() const override { return draft_.vocab_size(); }
  std::int64_t max_length() const override { return draft_.max_length(); }
  void begin(std::span<const Token> prompt) override { draft_.begin(prompt); }
  void propose(const DraftRequest& request, Proposal& proposal) override {
    draft_.propose(request, proposal);
    for (Token& token : proposal.tokens) token = static_cast<Token>((token + 1) % vocab_size());
  }
  void keep(std::int64_t length) override { draft_.keep(length); }
  DraftWork work() const override { return draft_.work(); }

 private:
  Draft& draft_;
};

/// The largest error of a text's probability when the decoder is run in every way it can go.
double distance_from_target(const HeadedTarget& world, HeadKind kind, Proposing proposing, const CutRule& rule,
                            std::int64_t tokens, bool shifted = false) {
  Transformer target = world.model();
  const std::unique_ptr<Draft> draft = world.draft(kind, target, proposing);
  ShiftedDraft wrong(*draft);
  ExactUniforms uniforms;
  DecodingOptions options;
  options.gamma = 3;
  options.max_new_tokens = tokens;
  options.verifier = cutting(rule.verifier, rule.formulas, uniforms);
  options.policy.stops_before = [&](std::span<const double> row) {
    const std::vector<double> sums = cumulative({row.begin(), row.end()});
    for (std::int64_t slot = 0; slot < options.gamma; ++slot) uniforms.cut(slot, Purpose::draft, sums);
    return false;
  };
  const ExactLaw law = exact_law(uniforms, [&] {
    return decode_with_draft(target, shifted ? static_cast<Draft&>(wrong) : *draft, enumerated_prompt, options,
                             uniforms);
  });
  Transformer plain(world.weights);
  const auto vocab = static_cast<std::size_t>(plain.vocab_size());
  double worst = std::abs(law.total - 1);
  double covered = 0;
  for (const auto& [text, probability] : law.texts) {
    Tokens whole = enumerated_prompt;
    whole.insert(whole.end(), text.begin(), text.end());
    std::vector<double> rows(whole.size() * vocab);
    plain.roll_back(0);
    plain.score(whole, rows);
    double right = 1;
    for (std::size_t t = enumerated_prompt.size(); t < whole.size(); ++t)
      right *= rows[(t - 1) * vocab + static_cast<std::size_t>(whole[t])];
    covered += right;
    worst = std::max(worst, std::abs(probability - right));
  }
  return std::max(worst, std::abs(covered - 1));
}

Tokens some_tokens(std::size_t count, std::int64_t vocab) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<Token>((i * i * 7 + 3 * i + 1) % static_cast<std::size_t>(vocab)));
  return tokens;
}

std::filesystem::path shipped(const std::string& name) {
  return std::filesystem::path(tests::source_dir()) / "sim" / "models" / name;
}

std::unique_ptr<Draft> shipped_draft(HeadKind kind, const Weights& weights, const Transformer& target) {
  if (kind == HeadKind::eagle)
    return std::make_unique<EagleDraft>(load_eagle_head(shipped("eagle_head.safetensors"), weights), target,
                                        core::Standardisation{}, Proposing::greedy);
  const auto heads = load_parallel_heads(shipped("parallel_heads.safetensors"), weights);
  return std::make_unique<ParallelHeadDraft>(heads, target, core::Standardisation{}, Proposing::greedy);
}

template <class Number>
std::vector<Number> values_of(const traces::SafetensorsFile& file, const std::string& name) {
  const traces::Tensor& tensor = *file.find(name);
  std::vector<Number> values(static_cast<std::size_t>(tensor.elements()));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

const tests::Shape middle{48, 2, 3, 80, 90, 200};

}  // namespace

TEST_CASE("the shipped heads' rows agree with PyTorch to 1e-4 of the largest logit, at every depth and offset") {
  const Weights weights = load_checkpoint(shipped("target"));
  for (const HeadKind kind : both_kinds) {
    const traces::SafetensorsFile file(std::filesystem::path(tests::source_dir()) / "tests/fixtures/heads" /
                                       (kind == HeadKind::eagle ? "eagle.safetensors" : "parallel.safetensors"));
    const auto tokens = values_of<Token>(file, "tokens");
    const auto positions = values_of<std::int32_t>(file, "positions");
    const auto logits = values_of<float>(file, "logits");
    const auto heads = static_cast<std::size_t>(file.find("logits")->shape[1]);
    const auto columns = static_cast<std::size_t>(file.find("logits")->shape[2]);
    Transformer target(weights, {.keep_features = true});
    for (std::size_t place = 0; place < positions.size(); ++place) {
      const auto text = std::span(tokens).first(static_cast<std::size_t>(positions[place]) + 2);
      target.roll_back(0);
      target.score(text.first(text.size() - 1), {});
      double worst = 0;
      std::size_t row_number = place * heads;
      DraftingPolicy looking;
      looking.stops_before = [&](std::span<const double> row) {
        const std::span<const float> expected = std::span(logits).subspan(row_number++ * columns, columns);
        double largest = 0;
        for (const float logit : expected) largest = std::max(largest, std::abs(double{logit}));
        // Logits are known up to a constant of the row.
        for (std::size_t i = 0; i < columns; ++i)
          worst = std::max(worst, std::abs(std::log(row[i * (row.size() / columns)] / row[0]) -
                                           (double{expected[i]} - double{expected[0]})) /
                                      largest);
        return false;
      };
      Proposal proposal;
      const RandomStream uniforms(1, 0);
      const DraftRequest request{text, static_cast<std::int64_t>(heads), 0, looking, uniforms};
      const std::unique_ptr<Draft> draft = shipped_draft(kind, weights, target);
      draft->begin(text);
      draft->propose(request, proposal);
      CAPTURE(kind, place);
      CHECK(proposal.tokens.size() == heads);
      CHECK(worst <= 1e-4);
    }
  }
}

TEST_CASE("drafts by heads that read the target's features leave its law exactly as it is, by tokens and by blocks") {
  const CutRule token{"token", verify_tokens, algorithm_one};
  const CutRule block{"block", verify_block, block_rule};
  for (const std::int64_t vocab : {2, 3}) {
    const HeadedTarget world({16, 1, 2, 16, vocab, 16});
    for (const HeadKind kind : both_kinds) {
      for (const Proposing proposing : {Proposing::sampled, Proposing::greedy}) {
        for (const CutRule& rule : {token, block}) {
          CAPTURE(vocab, kind, proposing, rule.name);
          CHECK(distance_from_target(world, kind, proposing, rule, vocab == 2 ? 5 : 3) <= 1e-12);
        }
      }
      CHECK(distance_from_target(world, kind, Proposing::sampled, token, 3, true) > 1e-3);
    }
  }
}

TEST_CASE("a head that knows some of the tokens leaves the law as it is, and gives the others probability 0") {
  const tests::Shape shape{16, 1, 2, 16, 3, 16};
  const HeadedTarget world(shape, {0, 1});
  const CutRule token{"token", verify_tokens, algorithm_one};
  CHECK(distance_from_target(world, HeadKind::eagle, Proposing::sampled, token, 3) <= 1e-12);
  CHECK(distance_from_target(world, HeadKind::eagle, Proposing::greedy, token, 3) <= 1e-12);

  const HeadedTarget all(shape);
  const Tokens text{0, 1, 2, 1};
  const auto row_of = [&](const HeadedTarget& its) {
    Transformer target = its.model();
    target.score(std::span(text).first(3), {});
    const std::unique_ptr<Draft> draft = its.draft(HeadKind::eagle, target, Proposing::sampled);
    draft->begin(text);
    const RandomStream uniforms(1, 0);
    Proposal proposal;
    draft->propose({text, 1, 0, {}, uniforms}, proposal);
    return proposal.rows;
  };
  const std::vector<double> known = row_of(world);
  const std::vector<double> whole = row_of(all);
  CHECK(known[1] == 0);
  CHECK(known[0] == Approx(whole[0] / (whole[0] + whole[2])).epsilon(1e-6));
  CHECK(known[2] == Approx(whole[2] / (whole[0] + whole[2])).epsilon(1e-6));
}

TEST_CASE("a head whose known tokens do not increase, or are not the target's, is refused") {
  const tests::Shape shape{16, 1, 2, 16, 3, 16};
  for (const std::vector<std::int64_t>& d2t : {std::vector<std::int64_t>{1, -1}, {0, 2}, {-1}, {0, 0, 0, 0}}) {
    CAPTURE(d2t);
    CHECK_THROWS_AS(HeadedTarget(shape, d2t), traces::FileError);
  }
}

TEST_CASE("a draft that lived through rounds proposes as one that has just read the text, in any number of threads") {
  const HeadedTarget world(middle);
  const Tokens prompt = some_tokens(60, middle.vocab_size);
  for (const HeadKind kind : both_kinds) {
    for (int threads = 1; threads <= 3; ++threads) {
      Transformer target = world.model(threads);
      const std::unique_ptr<Draft> draft = world.draft(kind, target, Proposing::sampled, {.temperature = 0.7});
      Tokens text = prompt;
      std::int64_t kept = 0;
      for (std::int64_t round = 0; round < 12; ++round) {
        const RandomStream uniforms(3, 0);
        const DraftRequest request{text, 1 + round % 4, round, {}, uniforms};
        if (round == 0) {
          target.score(std::span(text).first(text.size() - 1), {});
          draft->begin(text);
        }
        Proposal grown;
        draft->propose(request, grown);
        Transformer other = world.model();
        other.score(std::span(text).first(text.size() - 1), {});
        const std::unique_ptr<Draft> fresh = world.draft(kind, other, Proposing::sampled, {.temperature = 0.7});
        fresh->begin(text);
        Proposal read;
        fresh->propose(request, read);
        CAPTURE(kind, threads, round);
        CHECK(grown.tokens == read.tokens);
        CHECK(grown.rows == read.rows);
        // The target reads all drafts, some of them stay, and another token follows.
        Tokens block{text.back()};
        block.insert(block.end(), grown.tokens.begin(), grown.tokens.end());
        target.score(block, {});
        kept = std::min<std::int64_t>(round % 3, static_cast<std::int64_t>(grown.tokens.size()));
        text.insert(text.end(), grown.tokens.begin(), grown.tokens.begin() + kept);
        target.roll_back(static_cast<std::int64_t>(text.size()));
        draft->keep(static_cast<std::int64_t>(text.size()));
        text.push_back(static_cast<Token>(round));
      }
    }
  }
}

TEST_CASE("heads count calls, positions and operations, the output matrix for every row") {
  const HeadedTarget world(middle);
  Transformer target = world.model();
  DecodingOptions options;
  options.gamma = 4;
  options.max_new_tokens = 80;
  const double width = 48;
  const double output = 2 * width * 90;
  for (const HeadKind kind : both_kinds) {
    const std::unique_ptr<Draft> draft = world.draft(kind, target, Proposing::sampled);
    const Generation run =
        decode_with_draft(target, *draft, some_tokens(20, middle.vocab_size), options, RandomStream(1, 0));
    const DraftWork work = draft->work();
    const auto drafted = static_cast<double>(run.counters.drafted);
    std::int64_t rounds = 0;
    for (const Step& step : run.steps) rounds += step.drafted > 0;
    if (kind == HeadKind::eagle) {
      // The text's positions once, but for the last round's, and the drafts that a further draft looks at.
      CHECK(work.calls == run.counters.drafted);
      CHECK(work.positions == work.calls - rounds + 80 - run.steps.back().emitted + 1 -
                                  (run.steps.back().drafted > 0 ? 0 : run.steps.end()[-2].emitted));
      const double block = 2 * (4 * width * width + 3 * width * 80 + 2 * width * width);
      CHECK(work.operations == static_cast<double>(work.positions) * block + drafted * output);
    } else {
      CHECK(work.calls == rounds);
      CHECK(work.positions == run.counters.drafted);
      CHECK(work.operations == drafted * (2 * width * width + output));
      CHECK(run.steps.front().drafted == 3);
    }
  }
}

TEST_CASE("heads propose nothing behind a single token, and as far as the policy says") {
  const HeadedTarget world(middle);
  for (const HeadKind kind : both_kinds) {
    Transformer target = world.model();
    const std::unique_ptr<Draft> draft = world.draft(kind, target, Proposing::sampled);
    const RandomStream uniforms(1, 0);
    DraftingPolicy policy;
    const Tokens text = some_tokens(8, middle.vocab_size);
    Proposal proposal;
    const auto proposed = [&](std::size_t length, std::int64_t limit) {
      target.roll_back(0);
      target.score(std::span(text).first(length - 1), {});
      draft->begin(std::span(text).first(length));
      draft->propose({std::span(text).first(length), limit, 0, policy, uniforms}, proposal);
      CHECK(proposal.rows.size() == proposal.tokens.size() * 90);
      return proposal.tokens.size();
    };
    CHECK(proposed(1, 4) == 0);
    CHECK(draft->work().calls == 0);
    CHECK(proposed(2, 2) == 2);
    CHECK(proposed(8, 0) == 0);
    CHECK(proposed(8, 9) == (kind == HeadKind::eagle ? 9 : 3));
    policy.stops_after = [](double, double) { return true; };
    CHECK(proposed(8, 9) == 1);
    policy.stops_before = [](std::span<const double>) { return true; };
    CHECK(proposed(8, 9) == 0);
  }
}

TEST_CASE("files of heads are refused by tensor, and targets that the heads were not made for") {
  const tests::TemporaryFolder folder;
  const tests::RandomCheckpoint checkpoint(middle);
  const Weights weights = load_checkpoint(checkpoint.folder());
  const auto path = folder.path() / "heads.safetensors";
  for (const HeadKind kind : both_kinds) {
    const std::string matrix = kind == HeadKind::eagle ? "eagle.layer.self_attn.k_proj.weight" : "parallel.2.weight";
    const auto refusal = [&](const Spoiling& spoilt) {
      write_heads(kind, middle, path, spoilt);
      return tests::message_of<traces::FileError>([&] {
        if (kind == HeadKind::eagle)
          load_eagle_head(path, weights);
        else
          load_parallel_heads(path, weights);
      });
    };
    using Catch::Matchers::Contains;
    CHECK(refusal({}).empty());
    CHECK_THAT(refusal({.tensor = matrix, .left_out = true}), Contains(".weight is missing") || Contains("present"));
    CHECK_THAT(refusal({.tensor = matrix, .shape = {48, 47}}),
               Contains(matrix + ".shape is [48, 47], but must be [48, 48], as the target demands"));
    CHECK_THAT(refusal({.tensor = matrix, .first_value = std::numeric_limits<float>::infinity()}),
               Contains(matrix + ", element 0 is inf, but must be finite"));
    CHECK_THAT(refusal({.tensor = "other", .shape = {2}}), Contains("other is present"));
    CHECK_THAT(refusal({.metadata = {{"format", "pt"}}}), Contains("metadata format is pt"));
    CHECK_THAT(refusal({.metadata = {{"hidden_size", "64"}}}),
               Contains("metadata hidden_size is 64, but must be 48, as the target has"));
    CHECK_THAT(refusal({.metadata = {{"vocab_size", ""}}}), Contains("metadata vocab_size is missing, but must be 90"));
    CHECK_THAT(refusal({.metadata = {{"num_hidden_layers", "3"}}}), Contains("num_hidden_layers is 3, but must be 2"));
  }
  const HeadedTarget world(middle);
  Transformer featureless(world.weights);
  const HeadedTarget small({16, 1, 2, 16, 90, 200});
  const Transformer another = small.model();
  for (const HeadKind kind : both_kinds) {
    CHECK_THROWS_AS(world.draft(kind, featureless, Proposing::sampled), std::invalid_argument);
    CHECK_THROWS_AS(world.draft(kind, another, Proposing::sampled), std::invalid_argument);
    const Transformer target = world.model();
    CHECK_THROWS_AS(world.draft(kind, target, Proposing::sampled, {.temperature = -1}), std::domain_error);
    const std::unique_ptr<Draft> draft = world.draft(kind, target, Proposing::sampled);
    Proposal proposal;
    const RandomStream uniforms(1, 0);
    CHECK_THROWS_AS(draft->propose({some_tokens(5, 90), 2, 0, {}, uniforms}, proposal), std::invalid_argument);
  }
}
