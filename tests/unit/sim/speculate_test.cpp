// Speculative execution over all ways its uniforms can fall: whatever f_star guesses, g's input has f's law. Which
// thread comes first is decided by latches, not by chance.

#include "sim/speculate.hpp"

#include <array>
#include <cmath>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "sim/validation/uniformity.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using Row = std::vector<double>;

namespace {

/// Where a call's uniform may matter.
using Cuts = std::function<Row(std::size_t call)>;

struct OutOfUniforms {};

/// Runs for every cell of the uniforms of up to `calls` calls; a run that wants more is given up.
/// @param run  returns where its probability belongs
Row law_of_runs(std::size_t values, std::size_t calls, const Cuts& cuts,
                const std::function<std::size_t(std::function<double()>&)>& run) {
  Row law(values);
  std::vector<std::size_t> cells;
  std::vector<Row> edges;
  do {
    std::size_t call = 0;
    double probability = 1;
    std::function<double()> uniform = [&] {
      if (call == calls) throw OutOfUniforms();
      if (call == cells.size()) {
        Row at = cuts(call);
        at.insert(at.end(), {0.0, 1.0});
        std::sort(at.begin(), at.end());
        at.erase(std::unique(at.begin(), at.end(), [](double a, double b) { return b - a < 1e-14; }), at.end());
        while (at.back() > 1) at.pop_back();
        if (at.back() < 1) at.push_back(1);
        cells.push_back(0);
        edges.push_back(at);
      }
      const double lo = edges[call][cells[call]], hi = edges[call][cells[call] + 1];
      ++call;
      probability *= hi - lo;
      return lo + (hi - lo) / 2;
    };
    try {
      const std::size_t value = run(uniform);
      law[value] += probability;
    } catch (const OutOfUniforms&) {
    }
    while (!cells.empty() && cells.back() + 2 == edges.back().size()) {
      cells.pop_back();
      edges.pop_back();
    }
    if (!cells.empty()) ++cells.back();
  } while (!cells.empty());
  return law;
}

Row normalised(Row row) {
  double total = 0;
  for (const double w : row) total += w;
  for (double& w : row) w /= total;
  return row;
}

Row sums_of(const Row& weights) {
  const Row p = normalised(weights);
  Row sums;
  double sum = 0;
  for (const double w : p) sums.push_back(sum += w);
  return sums;
}

double distance(const Row& a, const Row& b) {
  double worst = 0;
  for (std::size_t x = 0; x < a.size(); ++x) worst = std::max(worst, std::abs(a[x] - b[x]));
  return worst;
}

/// The cuts of a guess, its test and its residual, which is of weights or, value after value, by rejection.
Cuts cuts_of(const Row& p, const Row& q, bool by_rejection) {
  Row ratios, residual, kept;
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (q[x] > 0) ratios.push_back(p[x] / q[x]);
    residual.push_back(std::max(0.0, p[x] - q[x]));
    if (p[x] > 0) kept.push_back(1 - q[x] / p[x]);
  }
  if (distance(p, q) < 1e-12) residual = p;
  std::erase_if(ratios, [](double cut) { return cut > 1; });
  std::erase_if(kept, [](double cut) { return cut < 0; });
  return [=](std::size_t call) {
    if (call == 0) return sums_of(q);
    if (call == 1) return ratios;
    if (!by_rejection) return sums_of(residual);
    return call % 2 == 0 ? sums_of(p) : kept;
  };
}

enum class Who { f_star, f };

/// g(input) = input, with the given one first.
template <class P, class Q>
Row law_of_speculation(const P& p, const Q& q, Who first, std::size_t values, std::size_t calls, const Cuts& cuts) {
  return law_of_runs(values, calls, cuts, [&](std::function<double()>& uniform) {
    std::latch g_runs{1};
    const auto f = [&](int) {
      if (first == Who::f_star) g_runs.wait();
      return p;
    };
    const auto f_star = [&](int) {
      if (first == Who::f) g_runs.wait();
      return q;
    };
    const auto g = [&](const auto& input) {
      if (!g_runs.try_wait()) g_runs.count_down();
      return static_cast<std::size_t>(input);
    };
    const auto done = speculate(f, f_star, g, 0, uniform);
    CHECK(static_cast<std::size_t>(done.input) == done.result);
    CHECK(done.guessed == (first == Who::f_star));
    CHECK(done.guessed >= done.accepted);
    return done.result;
  });
}

enum class Colour { red, green, blue };

/// A law that says of itself no more than a density and a draw.
struct ColourLaw {
  using value_type = Colour;
  Row weights;
  /// The weights that it reports.
  Row told;

  double density(Colour colour) const { return told[static_cast<std::size_t>(colour)]; }
  template <class U>
  Colour sample(U& uniform) const {
    return static_cast<Colour>(draw_from(weights, uniform));
  }
};

ColourLaw colours(const Row& row) { return {row, row}; }

struct NormalLaw {
  using value_type = double;
  double mean;
  double deviation;

  double density(double x) const {
    const double z = (x - mean) / deviation;
    return std::exp(-z * z / 2) / (deviation * std::sqrt(2 * M_PI));
  }
  double probability_below(double x) const { return std::erfc((mean - x) / (deviation * std::sqrt(2.0))) / 2; }
  template <class U>
  double sample(U& uniform) const {
    const double u = 1 - uniform(), v = uniform();
    return mean + deviation * std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
  }
};

struct Pair {
  Row p;
  Row q;
};

Pair rows(std::size_t vocab, specdec::test_support::Likeness likeness, std::uint64_t seed) {
  const TablePair pair = specdec::test_support::random_pair(static_cast<std::int64_t>(vocab), 0, likeness, seed);
  const std::span<const double> p = pair.target.row({}), q = pair.draft.row({});
  return {{p.begin(), p.end()}, {q.begin(), q.end()}};
}

std::function<double()> numbers() {
  return [engine = std::mt19937_64(3)]() mutable { return std::ldexp(static_cast<double>(engine() >> 11), -53); };
}

}  // namespace

TEST_CASE("the input of g has f's law over all uniforms, whatever is guessed and whoever is first") {
  using specdec::test_support::Likeness;
  for (const Likeness likeness : {Likeness::independent, Likeness::equal, Likeness::disjoint}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(likeness, seed);
      const Pair pair = rows(3, likeness, seed);
      const Cuts cuts = cuts_of(pair.p, pair.q, false);
      CHECK(distance(law_of_speculation(pair.p, pair.q, Who::f_star, 3, 3, cuts), pair.p) <= 1e-12);
      const Cuts own = [&](std::size_t) { return sums_of(pair.p); };
      CHECK(distance(law_of_speculation(pair.p, pair.q, Who::f, 3, 1, own), pair.p) <= 1e-12);
      // Weights of another type, not normalised.
      const std::array<float, 3> scaled{static_cast<float>(std::round(pair.q[0] * 64)),
                                        static_cast<float>(std::round(pair.q[1] * 64)), 1};
      const Row q = normalised({scaled[0], scaled[1], scaled[2]});
      Row p = pair.p;
      for (double& w : p) w *= 7;
      CHECK(distance(law_of_speculation(p, scaled, Who::f_star, 3, 3, cuts_of(pair.p, q, false)), pair.p) <= 1e-12);
    }
  }
}

// Two values of p are looked at for the residual; what is then still open is (p - q)+ beta^2.
TEST_CASE("a law that knows its density alone has its residual drawn by rejection") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    const Pair pair = rows(3, specdec::test_support::Likeness::independent, seed);
    const Row found =
        law_of_speculation(colours(pair.p), colours(pair.q), Who::f_star, 3, 6, cuts_of(pair.p, pair.q, true));
    double beta = 0;
    for (std::size_t x = 0; x < 3; ++x) beta += std::min(pair.p[x], pair.q[x]);
    for (std::size_t x = 0; x < 3; ++x)
      CHECK(found[x] + std::max(0.0, pair.p[x] - pair.q[x]) * beta * beta == Approx(pair.p[x]).margin(1e-12));
  }
}

TEST_CASE("a guess drawn from another law than f_star says of itself moves the law") {
  const Pair pair{{0.5, 0.3, 0.2}, {0.2, 0.3, 0.5}};
  const Cuts cuts = cuts_of(pair.p, pair.q, true);
  const ColourLaw liar{{0.4, 0.3, 0.3}, pair.q};
  const Cuts lying_cuts = [&](std::size_t call) { return call == 0 ? sums_of(liar.weights) : cuts(call); };
  const auto settled = [&](const ColourLaw& q, const Cuts& at) {
    return law_of_speculation(colours(pair.p), q, Who::f_star, 3, 6, at);
  };
  const double right = 0.5 - 0.3 * 0.49;
  CHECK(settled(colours(pair.q), cuts)[0] == Approx(right).epsilon(1e-12));
  CHECK(std::abs(settled(liar, lying_cuts)[0] - right) > 0.05);
}

// Kolmogorov's bound: a right sampler fails with probability below 1e-6; the numbers are fixed.
TEST_CASE("a continuous law is kept, and the guess alone is told from it") {
  const NormalLaw p{0, 1}, q{0.5, 1.4};
  std::function<double()> uniform = numbers();
  constexpr int draws = 20000;
  const auto p_value = [&](const auto& draw) {
    Row transformed;
    for (int i = 0; i < draws; ++i) transformed.push_back(p.probability_below(draw()));
    return specdec::validation::kolmogorov_p_value(specdec::validation::kolmogorov_distance(transformed), draws);
  };
  CHECK(p_value([&] { return settle_guess(p, q, q.sample(uniform), uniform).value; }) > 1e-6);
  CHECK(p_value([&] { return q.sample(uniform); }) < 1e-6);
  const auto plain = [&] {
    const double guess = q.sample(uniform);
    return uniform() * q.density(guess) < p.density(guess) ? guess : p.sample(uniform);
  };
  CHECK(p_value(plain) < 1e-6);
  const auto through_threads = [&] {
    const auto f = [&](int) { return p; };
    const auto f_star = [&](int) { return q; };
    return speculate(
               f, f_star, [](double x) { return x; }, 0, uniform)
        .result;
  };
  Row transformed;
  for (int i = 0; i < 500; ++i) transformed.push_back(p.probability_below(through_threads()));
  CHECK(specdec::validation::kolmogorov_p_value(specdec::validation::kolmogorov_distance(transformed), 500) > 1e-6);
}

TEST_CASE("a discarded g is told to stop, a needed one is not") {
  std::atomic<int> stopped = 0, ended = 0;
  const Row p = {1, 0};
  for (const Row& q : {Row{0, 1}, Row{1, 0}}) {
    std::latch g_runs{1};
    const auto f = [&](int) {
      g_runs.wait();
      return p;
    };
    const auto g = [&](std::size_t input, const std::stop_token& stop) {
      if (!g_runs.try_wait()) g_runs.count_down();
      // Ends only because it is told to.
      while (input == 1 && !stop.stop_requested()) std::this_thread::yield();
      stopped += stop.stop_requested();
      ++ended;
      return std::to_string(input);
    };
    const auto done = speculate(
        f, [&](int) { return q; }, g, 0, numbers());
    CHECK(done.result == "0");
    CHECK(done.input == 0);
    CHECK(done.accepted == (q[0] == 1));
  }
  CHECK(stopped == 1);
  CHECK(ended == 3);
}

TEST_CASE("exceptions are those of what was needed, and nothing is left behind") {
  struct Counted {
    explicit Counted(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
    Counted(const Counted& other) : alive_(other.alive_) { ++*alive_; }
    ~Counted() { --*alive_; }
    std::atomic<int>* alive_;
  };
  std::atomic<int> alive = 0;
  /// The message that comes out: where f, f_star or g of an input throws.
  const auto message = [&](bool f_throws, bool f_star_throws, std::size_t g_throws_at, Who first) -> std::string {
    std::latch other_done{1};
    const auto release = [&] {
      if (!other_done.try_wait()) other_done.count_down();
    };
    const auto f = [&](int) {
      if (first == Who::f_star) other_done.wait();
      if (f_throws) {
        release();
        throw std::runtime_error("f");
      }
      return Row{1, 0};
    };
    const auto f_star = [&](int) {
      if (first == Who::f) other_done.wait();
      if (f_star_throws) {
        release();
        throw std::runtime_error("f_star");
      }
      return Row{0, 1};
    };
    const auto g = [&](std::size_t input) {
      release();
      if (input == g_throws_at) throw std::runtime_error("g");
      return Counted(alive);
    };
    try {
      const auto done = speculate(f, f_star, g, 0, numbers());
      CHECK(alive == 1);
      return done.accepted ? "accepted" : "rejected";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  for (const Who first : {Who::f_star, Who::f}) {
    CHECK(message(false, false, 9, first) == "rejected");
    CHECK(message(true, false, 9, first) == "f");
    CHECK(message(false, true, 9, first) == "f_star");
    CHECK(message(true, true, 9, first) == "f");
    CHECK(message(false, false, 0, first) == "g");
    // The guess was 1: its g was not needed.
    CHECK(message(false, false, 1, first) == "rejected");
    CHECK(message(false, true, 0, Who::f) == "f_star");
  }
  CHECK(alive == 0);
}

TEST_CASE("weights that are no law, and laws of different sizes, are refused") {
  std::function<double()> uniform = numbers();
  const auto given = [&](const Row& p, const Row& q) {
    return speculate([&](int) { return p; }, [&](int) { return q; }, [](std::size_t x) { return x; }, 0, uniform);
  };
  CHECK_THROWS_WITH(given({-1, 2}, {1, 1}), "speculate: weight is -1, but must be in [0, inf)");
  CHECK_THROWS_AS(draw_from(Row{std::nan(""), 1}, uniform), std::domain_error);
  CHECK_THROWS_AS(given({0, 0}, {1, 1}), std::domain_error);
  CHECK_THROWS_AS(settle_guess(Row{1, 1}, Row{1, 1, 1}, std::size_t{0}, uniform), std::invalid_argument);
  CHECK_THROWS_AS(density_at(Row{1, 1}, std::size_t{2}), std::domain_error);
  CHECK_THROWS_AS(density_at(colours({-1, 1, 1}), Colour::red), std::domain_error);
  // A law and one that equals it but for rounding.
  const Row p = {0.1, 0.2, 0.7}, same = {0.1 * 3, 0.2 * 3, 0.7 * 3};
  CHECK(given(p, same).result < 3);
}
