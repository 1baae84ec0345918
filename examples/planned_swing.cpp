// Speculative execution in reinforcement learning: a planner beside the world that it acts in.
//
// A double pendulum is swung up by a torque between its two links. In every period a planner searches all torques of
// the coming periods and gives a law of the next one (f: a softmax of how high each can lead); the world then moves by
// a torque drawn from it, in steps so small that this takes about as long (g). Done one after the other, world and
// planner wait for each other. Here a coarse planner guesses (f_star), the world moves on the guess while the planner
// plans, and speculative sampling sees to it that the torques have the planner's law.
//
// usage: example_planned_swing [PERIODS]
// prints the time of both ways and the speedup that theory gives for the measured times and acceptance; exits with 1
// if fewer or more guesses stay than the two laws allow (5 standard errors: 6e-7 of sound runs)

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stop_token>
#include <string>

#include "sim/speculate.hpp"

namespace {

/// Angles from the vertical, the second one relative to the first, and their velocities.
using State = std::array<double, 4>;
constexpr std::size_t torques = 3;
using TorqueLaw = std::array<double, torques>;
constexpr double period_seconds = 0.2;

/// Two rods of length and mass 1, each with its mass in the middle, under g = 9.8.
State derivative(const State& s, double torque) {
  const double cosine = std::cos(s[1]), sine = std::sin(s[1]);
  const double d1 = 0.25 + (1 + 0.25 + cosine) + 2;
  const double d2 = 0.25 + 0.5 * cosine + 1;
  const double phi2 = 0.5 * 9.8 * std::cos(s[0] + s[1] - M_PI / 2);
  const double phi1 = -0.5 * s[3] * s[3] * sine - s[3] * s[2] * sine + 1.5 * 9.8 * std::cos(s[0] - M_PI / 2) + phi2;
  const double second = (torque + d2 / d1 * phi1 - 0.5 * s[2] * s[2] * sine - phi2) / (0.25 + 1 - d2 * d2 / d1);
  return {s[2], s[3], -(d2 * second + phi1) / d1, second};
}

State moved(const State& s, const State& slope, double time) {
  State there;
  for (std::size_t i = 0; i < 4; ++i) there[i] = s[i] + time * slope[i];
  return there;
}

/// Runge-Kutta of order 4; ends early, with a state of no use, when it is told to.
State after_period(State s, double torque, int steps, const std::stop_token& stop = {}) {
  const double h = period_seconds / steps;
  for (int i = 0; i < steps && !(i % 64 == 0 && stop.stop_requested()); ++i) {
    const State a = derivative(s, torque);
    const State b = derivative(moved(s, a, h / 2), torque);
    const State c = derivative(moved(s, b, h / 2), torque);
    const State d = derivative(moved(s, c, h), torque);
    for (std::size_t k = 0; k < 4; ++k) s[k] += h / 6 * (a[k] + 2 * b[k] + 2 * c[k] + d[k]);
  }
  return s;
}

double torque_of(std::size_t choice) { return static_cast<double>(choice) - 1; }

/// Height of the tip, from -2 to 2, with what the velocities can still add.
double height(const State& s) { return -std::cos(s[0]) - std::cos(s[0] + s[1]) + (s[2] * s[2] + s[3] * s[3]) / 20; }

struct Planner {
  int periods;
  int steps;

  double best(const State& s, int left) const {
    double highest = height(s);
    for (std::size_t torque = 0; left > 0 && torque < torques; ++torque)
      highest = std::max(highest, best(after_period(s, torque_of(torque), steps), left - 1));
    return highest;
  }

  TorqueLaw operator()(const State& s) const {
    TorqueLaw weights;
    for (std::size_t torque = 0; torque < torques; ++torque)
      weights[torque] = std::exp(best(after_period(s, torque_of(torque), steps), periods - 1) / 0.1);
    return weights;
  }
};

class Uniforms {
 public:
  explicit Uniforms(std::uint64_t seed) : engine_(seed) {}
  double operator()() { return std::ldexp(static_cast<double>(engine_() >> 11), -53); }

 private:
  std::mt19937_64 engine_;
};

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double overlap(const TorqueLaw& p, const TorqueLaw& q) {
  double beta = 0;
  for (std::size_t x = 0; x < torques; ++x)
    beta += std::min(specdec::sim::density_at(p, x), specdec::sim::density_at(q, x));
  return std::min(1.0, beta);
}

int run(int periods) {
  const Planner planner{7, 10};
  const Planner coarse{5, 4};
  constexpr int world_steps = 35'000;
  const auto world_after = [&](const State& s) {
    return [s](std::size_t torque, const std::stop_token& stop) {
      return after_period(s, torque_of(torque), world_steps, stop);
    };
  };

  // One after the other, each part by itself for its time.
  double f = 0;
  double f_star = 0;
  double g = 0;
  State s{};
  Uniforms serial_numbers(1);
  for (int i = 0; i < periods; ++i) {
    const Clock f_clock;
    const TorqueLaw p = planner(s);
    f += f_clock.seconds() / periods;
    const Clock f_star_clock;
    const TorqueLaw q = coarse(s);
    f_star += f_star_clock.seconds() / periods;
    if (!(q[0] > 0)) return 1;
    const Clock g_clock;
    s = world_after(s)(specdec::sim::draw_from(p, serial_numbers), {});
    g += g_clock.seconds() / periods;
  }

  // At once. A guess is missing where the other thread did not get going before f was through.
  int guesses = 0;
  double accepted = 0;
  double expected = 0;
  double variance = 0;
  double seconds = 0;
  Uniforms numbers(2);
  s = {};
  for (int i = 0; i < periods; ++i) {
    const Clock clock;
    const auto done = specdec::sim::speculate(planner, coarse, world_after(s), s, numbers);
    seconds += clock.seconds() / periods;
    if (done.guessed) {
      const double beta = overlap(planner(s), coarse(s));
      guesses += 1;
      expected += beta;
      variance += beta * (1 - beta);
      accepted += done.accepted;
    }
    s = done.result;
  }

  const double serial = f + g;
  const double kept = accepted / periods;
  const double at_once = kept * std::min(std::max(f, f_star + g), serial) + (1 - kept) * serial;
  std::printf("a period: f %.2f ms, f_star %.2f ms, g %.2f ms\n", 1e3 * f, 1e3 * f_star, 1e3 * g);
  std::printf("guesses that stay: %.0f of %d, expected %.1f +-%.1f\n", accepted, guesses, expected,
              std::sqrt(variance));
  std::printf("one after the other %.2f ms, at once %.2f ms\n", 1e3 * serial, 1e3 * seconds);
  std::printf("speedup %.3f, by theory %.3f\n", serial / seconds, serial / at_once);
  return std::abs(accepted - expected) <= 5 * std::sqrt(variance) + 1e-9 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const int periods = count > 1 ? std::stoi(arguments[1]) : 300;
    if (count > 2 || periods < 1) throw std::invalid_argument("usage: example_planned_swing [PERIODS]");
    return run(periods);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "example_planned_swing: %s\n", error.what());
    return 2;
  }
}
