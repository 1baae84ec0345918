#include "analysis/core/row_statistics.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/kernels.hpp"
#include "analysis/theory/lenience.hpp"
#include "tests/support/catch.hpp"
#include "traces/formats/half_float.hpp"

namespace specdec::core {
namespace {

using traces::ElementType;
using traces::RowSpace;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The nearest number of the type: by trying the two neighbours of a truncation.
std::uint16_t half_bits(double value, ElementType type) {
  const auto back = [type](int bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    return double{type == ElementType::f16 ? traces::float_from_f16(pattern) : traces::float_from_bf16(pattern)};
  };
  const int infinite = type == ElementType::f16 ? 0x7c00 : 0x7f80;
  const double magnitude = std::abs(value);
  int low = 0;
  int high = infinite;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (back(middle) <= magnitude ? low : high) = middle;
  }
  int bits = high < infinite && back(high) - magnitude < magnitude - back(low) ? high : low;
  if (std::isinf(value)) bits = infinite;
  if (std::isnan(value)) bits = infinite + 1;
  return static_cast<std::uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
}

/// A row in bytes that begin at an odd address.
class Stored {
 public:
  Stored(const std::vector<double>& values, ElementType type, RowSpace space = RowSpace::probabilities)
      : type_(type), space_(space), size_(values.size()) {
    const auto width = static_cast<std::size_t>(traces::size_of(type));
    bytes_.resize(1 + size_ * width);
    for (std::size_t i = 0; i < size_; ++i) {
      const auto single = static_cast<float>(values[i]);
      const std::uint16_t half = type == ElementType::f32 ? std::uint16_t{0} : half_bits(values[i], type);
      if (type == ElementType::f32) {
        std::memcpy(&bytes_[1 + i * width], &single, width);
      } else {
        std::memcpy(&bytes_[1 + i * width], &half, width);
      }
    }
  }
  traces::TargetRow target() const { return {row()}; }
  traces::DraftRow draft() const { return {row()}; }

 private:
  traces::Row row() const {
    traces::Row row;
    row.space = space_;
    row.type = type_;
    row.vocab = static_cast<std::int64_t>(size_);
    row.data = bytes_.data() + 1;
    return row;
  }

  ElementType type_;
  RowSpace space_;
  std::size_t size_;
  std::vector<std::byte> bytes_;
};

struct Shape {
  /// Standard deviation of the target's logits, and of what the draft's differ by.
  double spread = 3;
  double noise = 0.7;
  /// Share of the tokens that have probability 0, drawn for each row.
  double zeros = 0;
};

/// Logits of a pair of rows over a vocabulary; the draft's are noisy copies.
struct Logits {
  std::vector<double> target;
  std::vector<double> draft;
};

Logits random_logits(std::size_t vocab, const Shape& shape, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Logits logits;
  for (std::size_t i = 0; i < vocab; ++i) {
    const double logit = shape.spread * normal(generator);
    const double noisy = logit + shape.noise * normal(generator);
    logits.target.push_back(i > 0 && uniform(generator) < shape.zeros ? -infinity : logit);
    logits.draft.push_back(i > 0 && uniform(generator) < shape.zeros ? -infinity : noisy);
  }
  return logits;
}

std::vector<double> softmax(std::vector<double> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  CompensatedSum sum;
  for (double& x : logits) sum.add(x = std::exp(x - most));
  for (double& x : logits) x /= sum.value();
  return logits;
}

std::vector<double> in_space(const std::vector<double>& logits, RowSpace space) {
  if (space == RowSpace::logits) return logits;
  std::vector<double> row = softmax(logits);
  if (space == RowSpace::log_probabilities) {
    for (double& x : row) x = std::log(x);
  }
  return row;
}

std::vector<double> probabilities_of(const traces::Row& row) {
  std::vector<double> out(static_cast<std::size_t>(row.vocab));
  REQUIRE_FALSE(read_probabilities(row, RowRole::target, out));
  return out;
}

/// By the definitions, in double.
RowStatistics by_definition(const std::vector<double>& p, const std::vector<double>& q, std::int64_t token) {
  RowStatistics out;
  CompensatedSum hp, acceptance, surprisal;
  const auto log = [](double x) { return x > 0 ? std::log(x) : -infinity; };
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] > 0) {
      hp.add(-p[i] * log(p[i]));
      surprisal.add(p[i] * log(p[i]) * log(p[i]));
      acceptance.add(p[i] * std::pow(std::min(1.0, q[i] / p[i]), 2));
    }
  }
  const TargetDistribution target(p, 1);
  const DraftDistribution draft(q, 1);
  out.overlap = overlap(target, draft);
  out.missing_mass = rejected_mass(TargetDistribution(q, 1), DraftDistribution(p, 1));
  out.rejected_mass = rejected_mass(target, draft);
  out.target_entropy = hp.value();
  out.acceptance_second_moment = acceptance.value();
  out.surprisal_second_moment = surprisal.value();
  out.target_argmax = std::max_element(p.begin(), p.end()) - p.begin();
  out.draft_argmax = std::max_element(q.begin(), q.end()) - q.begin();
  out.target_max = p[static_cast<std::size_t>(out.target_argmax)];
  out.draft_max = q[static_cast<std::size_t>(out.draft_argmax)];
  out.target_at_draft_argmax = p[static_cast<std::size_t>(out.draft_argmax)];
  out.target_token_logprob = log(p[static_cast<std::size_t>(token)]);
  out.draft_token_logprob = log(q[static_cast<std::size_t>(token)]);
  return out;
}

bool near(double a, double b, double relative, double absolute) {
  if (a == b) return true;
  return std::abs(a - b) <= std::max(relative * std::abs(b), absolute);
}

/// Checks the header's promises; where rows hold logarithms, their exponentials have errors of their own.
void check_equal(const RowStatistics& a, const RowStatistics& b, bool logarithms) {
  const double mass_floor = logarithms ? 1e-7 : 0;
  const double single = logarithms ? 2e-7 : 1e-15;
  CHECK(near(a.overlap, b.overlap, 1e-6, 0));
  INFO("missing " << a.missing_mass << " " << b.missing_mass << " rejected " << a.rejected_mass << " "
                  << b.rejected_mass);
  CHECK(near(a.missing_mass, b.missing_mass, 1e-6, mass_floor));
  CHECK(near(a.rejected_mass, b.rejected_mass, 1e-6, mass_floor));
  INFO("entropy " << a.target_entropy << " " << b.target_entropy);
  CHECK(near(a.target_entropy, b.target_entropy, 1e-6, 1e-30));
  CHECK(near(a.acceptance_second_moment, b.acceptance_second_moment, 1e-5, 0));
  CHECK(near(a.surprisal_second_moment, b.surprisal_second_moment, 1e-5, 1e-12));
  CHECK(a.target_argmax == b.target_argmax);
  CHECK(a.draft_argmax == b.draft_argmax);
  CHECK(near(a.target_max, b.target_max, single, 0));
  CHECK(near(a.draft_max, b.draft_max, single, 0));
  CHECK(near(a.target_at_draft_argmax, b.target_at_draft_argmax, single, 0));
  CHECK(near(a.target_token_logprob, b.target_token_logprob, 1e-15, single));
  CHECK(near(a.draft_token_logprob, b.draft_token_logprob, 1e-15, single));
}

void check_pair(const Stored& target, const Stored& draft, bool logarithms) {
  RowScratch scratch;
  RowStatistics statistics;
  const std::int64_t token = target.target().vocab / 3;
  const auto fault = row_statistics(target.target(), draft.draft(), token, scratch, statistics);
  REQUIRE_FALSE(fault);
  const RowStatistics expected =
      by_definition(probabilities_of(target.target()), probabilities_of(draft.draft()), token);
  check_equal(statistics, expected, logarithms);
}

/// Runs the body once for every instruction set that this machine has and the library was built for.
void for_each_target(const std::function<void()>& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO("instruction set " << hwy::TargetName(target));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

constexpr ElementType types[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr RowSpace spaces[] = {RowSpace::probabilities, RowSpace::log_probabilities, RowSpace::logits};

/// Rows of logarithms in half precision are normalised, so any such row of logits is a distribution.
bool sums_to_one(ElementType type, RowSpace space) { return type == ElementType::f32 || space == RowSpace::logits; }

}  // namespace

TEST_CASE("every statistic agrees with its definition in double, for every type and space and odd sizes") {
  for_each_target([] {
    for (const std::size_t vocab : {1, 2, 15, 17, 31, 33, 511, 513, 1500}) {
      for (const ElementType type : types) {
        for (const RowSpace space : spaces) {
          const Shape shape{.spread = 1, .noise = 0.5, .zeros = vocab % 2 == 0 ? 0 : 0.1};
          const Logits logits = random_logits(vocab, shape, static_cast<unsigned>(vocab));
          // Rounded log-probabilities of few tokens do not sum to 1 within the tolerance.
          if (!sums_to_one(type, space) && space == RowSpace::log_probabilities) continue;
          INFO("vocab " << vocab << " " << name_of(type) << " space " << static_cast<int>(space));
          check_pair(Stored(in_space(logits.target, space), type, space),
                     Stored(in_space(logits.draft, space), type, space), space != RowSpace::probabilities);
        }
      }
    }
  });
}

TEST_CASE("a vocabulary of 262144 tokens is summed to the promised accuracy, close pairs and peaked rows too") {
  struct Case {
    const char* name;
    Shape shape;
  };
  for (const Case& c : {Case{"plain", {3, 0.7, 0}}, Case{"close", {3, 0.002, 0}}, Case{"peaked", {12, 0.5, 0}},
                        Case{"flat", {0.001, 0.001, 0}}, Case{"with zeros", {3, 0.7, 0.3}}}) {
    const Logits logits = random_logits(262144, c.shape, 7);
    for (const RowSpace space : {RowSpace::probabilities, RowSpace::logits}) {
      INFO(c.name << ", space " << static_cast<int>(space));
      check_pair(Stored(in_space(logits.target, space), ElementType::f32, space),
                 Stored(in_space(logits.draft, space), ElementType::f32, space), space != RowSpace::probabilities);
    }
  }
}

TEST_CASE("rows of equal entries, the worst case of a sum, are summed to the promised accuracy") {
  for_each_target([] {
    for (const std::size_t vocab : {600, 5003, 10007}) {
      for (const double logit : {0.0, 1.7, -3.3}) {
        std::vector<double> draft(vocab, logit);
        draft[7] += 1;
        for (const RowSpace space : {RowSpace::probabilities, RowSpace::logits}) {
          INFO("vocab " << vocab << " logit " << logit << " space " << static_cast<int>(space));
          check_pair(Stored(in_space(std::vector<double>(vocab, logit), space), ElementType::f32, space),
                     Stored(in_space(draft, space), ElementType::f32, space), space != RowSpace::probabilities);
        }
      }
    }
  });
}

TEST_CASE("log-probabilities in half precision are normalised") {
  const Logits logits = random_logits(50000, {3, 0.7, 0}, 3);
  for (const ElementType type : types) {
    check_pair(Stored(in_space(logits.target, RowSpace::log_probabilities), type, RowSpace::log_probabilities),
               Stored(in_space(logits.draft, RowSpace::log_probabilities), type, RowSpace::log_probabilities), true);
  }
}

TEST_CASE("rows of different types and spaces are compared") {
  const Logits logits = random_logits(2000, {1, 0.7, 0.05}, 5);
  for (const RowSpace target_space : spaces) {
    for (const RowSpace draft_space : spaces) {
      check_pair(Stored(in_space(logits.target, target_space), ElementType::f32, target_space),
                 Stored(in_space(logits.draft, draft_space), ElementType::f32, draft_space), true);
    }
  }
  check_pair(Stored(in_space(logits.target, RowSpace::probabilities), ElementType::f32),
             Stored(in_space(logits.draft, RowSpace::probabilities), ElementType::bf16), false);
}

TEST_CASE("equal rows are accepted always") {
  const Logits logits = random_logits(1000, {3, 0, 0}, 2);
  for_each_target([&] {
    const Stored row(softmax(logits.target), ElementType::f32);
    RowScratch scratch;
    RowStatistics statistics;
    REQUIRE_FALSE(row_statistics(row.target(), row.draft(), -1, scratch, statistics));
    CHECK(statistics.rejected_mass == 0);
    CHECK(statistics.missing_mass == 0);
    CHECK(std::isnan(statistics.target_token_logprob));
  });
}

TEST_CASE("rows that are nearly certain keep the digits of what is left over") {
  for_each_target([] {
    for (const RowSpace space : {RowSpace::log_probabilities, RowSpace::logits}) {
      std::vector<double> target(600, -30);
      std::vector<double> draft(600, -31);
      target[99] = draft[99] = 0;
      target[100] = -17;
      draft[100] = -16;
      check_pair(Stored(target, ElementType::f32, space), Stored(draft, ElementType::f32, space), true);
      RowScratch scratch;
      RowStatistics s;
      REQUIRE_FALSE(row_statistics(Stored(target, ElementType::f32, space).target(),
                                   Stored(draft, ElementType::f32, space).draft(), 99, scratch, s));
      // 1 - q(99) - (1 - p(99)), by hand.
      const double expected = std::exp(-16) + 598 * std::exp(-31) - std::exp(-17) - 598 * std::exp(-30);
      CHECK(s.missing_mass == Approx(expected + 598 * (std::exp(-30) - std::exp(-31))).epsilon(1e-6));
    }
  });
}

TEST_CASE("floors and minus infinity mean probability 0") {
  for_each_target([] {
    for (const ElementType type : types) {
      for (const double floor : {-infinity, -9999.0, -1e4}) {
        RowScratch scratch;
        RowStatistics s;
        const Stored target({1, 0.5, floor, floor}, type, RowSpace::logits);
        const Stored draft({1, 0.5, 0.25, floor}, type, RowSpace::logits);
        REQUIRE_FALSE(row_statistics(target.target(), draft.draft(), 2, scratch, s));
        CHECK(s.target_token_logprob == -infinity);
        CHECK(std::isfinite(s.target_entropy));
      }
    }
  });
}

TEST_CASE("probabilities too small for single precision do no harm") {
  for_each_target([] {
    // Logits: exp(-200) is no float. Probabilities: the smallest floats there are.
    check_pair(Stored({0, -1, -200, -90}, ElementType::f32, RowSpace::logits),
               Stored({0, -1, -3, -2}, ElementType::f32, RowSpace::logits), true);
    check_pair(Stored({0.5, 0.5, 0, 0}, ElementType::f32), Stored({0.5, 1e-40, 0.5, 0}, ElementType::f32), false);
    check_pair(Stored({0.5, 0.5, 1e-45, 0}, ElementType::bf16), Stored({0.5, 1e-39, 0.5, 0}, ElementType::bf16), false);
  });
}

TEST_CASE("rows with zeros in some places, subnormals in others and neither elsewhere are summed as a whole") {
  Logits logits = random_logits(4000, {1, 0.5, 0}, 13);
  logits.target[2500] = logits.draft[2500] = -infinity;
  std::vector<double> draft = softmax(logits.draft);
  draft[3900] += draft[100] - 1e-40;
  draft[100] = 1e-40;
  for_each_target([&] {
    for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
      check_pair(Stored(softmax(logits.target), type), Stored(draft, type), false);
    }
  });
}

TEST_CASE("NaN among logits that all mean probability 0 is found") {
  for_each_target([] {
    for (const ElementType type : types) {
      for (const std::size_t at : {600, 703, 1023}) {
        std::vector<double> logits(1200, -infinity);
        logits[0] = 1;
        const Stored good(logits, type, RowSpace::logits);
        logits[at] = std::numeric_limits<double>::quiet_NaN();
        const Stored bad(logits, type, RowSpace::logits);
        RowScratch scratch;
        RowStatistics statistics;
        const auto fault = row_statistics(good.target(), bad.draft(), -1, scratch, statistics);
        REQUIRE(fault);
        CHECK(fault->kind == RowFault::Kind::not_a_number);
        CHECK(fault->index == static_cast<std::int64_t>(at));
      }
    }
  });
}

TEST_CASE("logits beyond any model's are still normalised") {
  check_pair(Stored({3e5, 2.99999e5, -3e5}, ElementType::f32, RowSpace::logits),
             Stored({-50, 2e6, 2e6 - 1}, ElementType::f32, RowSpace::logits), true);
}

TEST_CASE("what is no distribution is reported with its row, token and value") {
  using Kind = RowFault::Kind;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for_each_target([&] {
    for (const ElementType type : types) {
      for (const std::size_t at : {0, 700, 998}) {
        const auto fault_of = [&](RowSpace space, double value, bool in_target) {
          std::vector<double> good(999, space == RowSpace::probabilities ? 0.0 : -20.0);
          good[5] = space == RowSpace::probabilities ? 1 : 0;
          std::vector<double> bad = good;
          bad[at] = value;
          const Stored row(in_target ? bad : good, type, space);
          const Stored other(in_target ? good : bad, type, space);
          RowScratch scratch;
          RowStatistics statistics;
          INFO(name_of(type) << " space " << static_cast<int>(space) << " token " << at << " " << value << " "
                             << in_target);
          std::vector<LenienceStatistics> lenience(1);
          const std::vector<double> l = {0.5};
          const auto fault = row_statistics(row.target(), other.draft(), -1, scratch, statistics);
          REQUIRE(fault);
          CHECK(fault->role == (in_target ? RowRole::target : RowRole::draft));
          const auto third = lenience_statistics(row.target(), other.draft(), l, scratch, lenience);
          REQUIRE(third);
          CHECK(third->index == fault->index);
          return *fault;
        };
        const auto index = static_cast<std::int64_t>(at);
        for (const bool in_target : {true, false}) {
          for (const RowSpace space : spaces) {
            CHECK(fault_of(space, nan, in_target).kind == Kind::not_a_number);
            CHECK(fault_of(space, nan, in_target).index == index);
            CHECK(fault_of(space, infinity, in_target).kind == Kind::infinite);
            CHECK(fault_of(space, infinity, in_target).index == index);
          }
          CHECK(fault_of(RowSpace::probabilities, -infinity, in_target).kind == Kind::infinite);
          CHECK(fault_of(RowSpace::probabilities, -0.25, in_target).kind == Kind::negative);
          CHECK(fault_of(RowSpace::probabilities, -0.25, in_target).value == -0.25);
          CHECK(fault_of(RowSpace::probabilities, 0.25, in_target).kind == Kind::sum);
          CHECK(fault_of(RowSpace::probabilities, 0.25, in_target).value == 1.25);
          CHECK(fault_of(RowSpace::log_probabilities, -1, in_target).kind == Kind::sum);
        }
      }
      RowScratch scratch;
      RowStatistics statistics;
      const std::vector<double> floors(700, -infinity);
      const Stored nothing(floors, type, RowSpace::logits);
      CHECK(row_statistics(nothing.target(), nothing.draft(), -1, scratch, statistics)->kind == Kind::no_mass);
      const Stored zeros(std::vector<double>(700, 0.0), type);
      CHECK(row_statistics(zeros.target(), zeros.draft(), -1, scratch, statistics)->kind == Kind::no_mass);
    }
  });
}

TEST_CASE("a fault says what was found") {
  const RowFault sum{RowFault::Kind::sum, RowRole::draft, -1, 0.93, 2e-3};
  CHECK(found(sum) == "a sum of 0.93");
  CHECK(expected(sum) == "a sum of 1 within 0.002");
  CHECK(found({RowFault::Kind::not_a_number, RowRole::draft, 17, 0}) == "NaN at token 17");
}

TEST_CASE("a row's own tolerance replaces that of its type") {
  const Stored row({0.5, 0.51}, ElementType::f32);
  traces::TargetRow target = row.target();
  traces::DraftRow draft = row.draft();
  RowScratch scratch;
  RowStatistics statistics;
  CHECK(row_statistics(target, draft, -1, scratch, statistics)->kind == RowFault::Kind::sum);
  target.sum_tolerance = draft.sum_tolerance = 0.02;
  CHECK_FALSE(row_statistics(target, draft, -1, scratch, statistics));
  CHECK(statistics.target_sum == Approx(1.01).epsilon(1e-6));
}

TEST_CASE("lenience agrees with its formulas in double, for several at once and every space") {
  const std::vector<double> leniences = {1, 0.9, 0.5, 0.1, 0.75, 0.01};
  for_each_target([&] {
    for (const RowSpace space : spaces) {
      const Logits logits = random_logits(1500, {2, 0.6, 0.05}, 11);
      const Stored target(in_space(logits.target, space), ElementType::f32, space);
      const Stored draft(in_space(logits.draft, space), ElementType::f32, space);
      RowScratch scratch;
      std::vector<LenienceStatistics> out(leniences.size());
      REQUIRE_FALSE(lenience_statistics(target.target(), draft.draft(), leniences, scratch, out));
      const std::vector<double> p = probabilities_of(target.target());
      const std::vector<double> q = probabilities_of(draft.draft());
      const TargetDistribution tp(p);
      const DraftDistribution dq(q);
      for (std::size_t k = 0; k < leniences.size(); ++k) {
        INFO("l = " << leniences[k] << ", space " << static_cast<int>(space));
        const double l = leniences[k];
        CHECK(near(out[k].alpha, theory::lenient_acceptance(tp, dq, l).alpha(), 1e-6, 0));
        const double strict = theory::lenient_distance(tp, dq, l, theory::LenientResidual::strict);
        CHECK(near(out[k].distance_strict, strict, 1e-6, 1e-9));
        const double lenient = theory::lenient_distance(tp, dq, l, theory::LenientResidual::lenient);
        CHECK(near(out[k].distance_lenient, lenient, 1e-6, 1e-7));
      }
    }
  });
}

TEST_CASE("lenience of a row pair by hand") {
  // docs/theory.md#lenience: p = (1/2, 3/10, 1/5), q reversed, l = 3/4 and 1/2.
  const Stored p({0.5, 0.3, 0.2}, ElementType::f32);
  const Stored q({0.2, 0.3, 0.5}, ElementType::f32);
  RowScratch scratch;
  std::vector<LenienceStatistics> out(2);
  const std::vector<double> leniences = {0.75, 0.5};
  REQUIRE_FALSE(lenience_statistics(p.target(), q.draft(), leniences, scratch, out));
  CHECK(out[0].alpha == Approx(23.0 / 30).epsilon(1e-6));
  CHECK(out[0].distance_strict == Approx(1.0 / 15).epsilon(1e-6));
  CHECK(out[0].distance_lenient == Approx(11.0 / 102).epsilon(1e-6));
  CHECK(out[1].alpha == Approx(9.0 / 10).epsilon(1e-6));
  CHECK(out[1].distance_lenient == Approx(5.0 / 22).epsilon(1e-6));
}

TEST_CASE("drafted tokens are sorted into bins of their probability as in double, for every type and space") {
  for_each_target([] {
    for (const std::size_t vocab : {1, 17, 513, 3000}) {
      for (const ElementType type : types) {
        for (const RowSpace space : spaces) {
          if (!sums_to_one(type, space)) continue;
          const Logits logits =
              random_logits(vocab, {vocab > 1000 ? 4.0 : 1.5, 0.6, 0.05}, static_cast<unsigned>(vocab));
          const Stored target(in_space(logits.target, space), type, space);
          const Stored draft(in_space(logits.draft, space), type, space);
          const std::vector<double> p = probabilities_of(target.target());
          const std::vector<double> q = probabilities_of(draft.draft());
          for (const std::size_t count : {1, 3, 10, 200}) {
            INFO("vocab " << vocab << ' ' << name_of(type) << " space " << static_cast<int>(space) << " bins "
                          << count);
            std::vector<DraftConfidence> expected(count);
            for (std::size_t x = 0; x < vocab; ++x) {
              auto& bin = expected[std::min(count - 1, static_cast<std::size_t>(q[x] * static_cast<double>(count)))];
              bin.drafted += q[x];
              bin.confidence += q[x] * q[x];
              bin.accepted += std::min(p[x], q[x]);
            }
            RowScratch scratch;
            std::vector<DraftConfidence> bins(count, DraftConfidence{7, 7, 7});
            REQUIRE_FALSE(draft_confidence(target.target(), draft.draft(), scratch, bins));
            for (std::size_t b = 0; b < count; ++b) {
              CHECK(near(bins[b].drafted, expected[b].drafted, 1e-6, 0));
              CHECK(near(bins[b].confidence, expected[b].confidence, 1e-6, 0));
              CHECK(near(bins[b].accepted, expected[b].accepted, 1e-6, 0));
            }
          }
        }
      }
    }
  });
  const Stored row({0.5, 0.5}, ElementType::f32);
  RowScratch scratch;
  CHECK_THROWS_AS((void)draft_confidence(row.target(), row.draft(), scratch, {}), std::invalid_argument);
  std::vector<DraftConfidence> bins(2);
  const Stored broken({0.5, 0.6}, ElementType::f32);
  CHECK(draft_confidence(row.target(), broken.draft(), scratch, bins)->role == RowRole::draft);
}

TEST_CASE("a reduced vocabulary is spread over the target's, all other tokens getting probability 0") {
  RowScratch scratch;
  const std::vector<std::int32_t> map = {4, 0, 2};
  for (const ElementType type : types) {
    for (const RowSpace space : spaces) {
      const Stored reduced(in_space({0, std::log(2.0), 0}, space), type, space);
      const traces::DraftRow spread = spread_over_vocabulary(reduced.draft(), map, 5, scratch);
      const std::vector<double> expected = {0.5, 0, 0.25, 0, 0.25};
      std::vector<double> row(5);
      REQUIRE_FALSE(read_probabilities(spread, RowRole::draft, row));
      for (std::size_t i = 0; i < 5; ++i) CHECK(near(row[i], expected[i], 1e-2, 0));
    }
  }
  const Stored reduced({0.5, 0.25, 0.25}, ElementType::f32);
  CHECK_THROWS_AS(spread_over_vocabulary(reduced.draft(), map, 4, scratch), std::domain_error);
  CHECK_THROWS_AS(spread_over_vocabulary(reduced.draft(), std::vector<std::int32_t>{1}, 4, scratch),
                  std::invalid_argument);
}

TEST_CASE("rows of different sizes, of other types and without tokens are refused") {
  RowScratch scratch;
  RowStatistics statistics;
  const Stored two({0.5, 0.5}, ElementType::f32);
  const Stored three({0.5, 0.25, 0.25}, ElementType::f32);
  const auto run = [&](const traces::TargetRow& p, const traces::DraftRow& q, std::int64_t token) {
    return row_statistics(p, q, token, scratch, statistics).has_value();
  };
  CHECK_THROWS_AS(run(two.target(), three.draft(), -1), std::invalid_argument);
  CHECK_THROWS_AS(run(two.target(), two.draft(), 2), std::domain_error);
  traces::TargetRow bytes = two.target();
  bytes.type = ElementType::u8;
  CHECK_THROWS_AS(run(bytes, two.draft(), -1), std::invalid_argument);
  traces::TargetRow empty = two.target();
  empty.vocab = 0;
  CHECK_THROWS_AS(run(empty, two.draft(), -1), std::invalid_argument);
}

}  // namespace specdec::core
