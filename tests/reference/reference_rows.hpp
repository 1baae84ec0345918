#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

namespace specdec::test_support {

/// One line of closed_forms.txt: the function's name, its arguments, and the expected result at the end.
class ReferenceRow {
 public:
  explicit ReferenceRow(const std::string& line) : line_(line), words_(line) { words_ >> name_; }

  const std::string& name() const { return name_; }
  const std::string& line() const { return line_; }

  std::string word() {
    std::string next;
    if (!(words_ >> next)) throw std::runtime_error("too few fields: " + line_);
    return next;
  }
  double real() { return std::strtod(word().c_str(), nullptr); }
  long double value() { return std::strtold(word().c_str(), nullptr); }
  std::int64_t integer() { return std::stoll(word()); }
  core::AcceptanceRate rate() {
    const std::string text = word();
    const double number = std::strtod(text.c_str() + 2, nullptr);
    return text[0] == 'a' ? core::AcceptanceRate(number) : core::AcceptanceRate::from_rejection(number);
  }
  std::vector<double> reals(std::size_t count) {
    std::vector<double> numbers(count);
    for (double& number : numbers) number = real();
    return numbers;
  }
  std::vector<long double> values(std::size_t count) {
    std::vector<long double> numbers(count);
    for (long double& number : numbers) number = value();
    return numbers;
  }

 private:
  std::string line_;
  std::string name_;
  std::istringstream words_;
};

/// Calls check for every line of the named function, at least one.
inline void for_each_row(const std::string& name, const std::function<void(ReferenceRow&)>& check) {
  std::ifstream file(tests::source_dir() + "/tests/reference/closed_forms.txt");
  REQUIRE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    ReferenceRow row(line);
    if (row.name() != name) continue;
    ++rows;
    check(row);
  }
  INFO("rows of " << name);
  REQUIRE(rows > 0);
}

/// Relative error of a double; one unit of the smallest denormal is none, and infinity stands for what exceeds double.
inline long double relative_error(double actual, long double expected) {
  if (expected > static_cast<long double>(std::numeric_limits<double>::max())) return std::isinf(actual) ? 0 : 1;
  const long double difference = std::abs(actual - expected);
  if (difference <= std::numeric_limits<double>::denorm_min()) return 0;
  const long double error = difference / std::abs(expected);
  return std::isnan(error) ? std::numeric_limits<long double>::infinity() : error;
}

/// Keeps the largest error and the line it came from.
struct WorstError {
  long double error = 0;
  std::string line = "no line";

  void note(long double candidate, const std::string& where) {
    if (candidate > error || std::isnan(candidate)) {
      error = candidate;
      line = where;
    }
  }
  void require_below(long double limit) const {
    INFO("worst relative error " << error << " at: " << line);
    CHECK(error <= limit);
  }
};

}  // namespace specdec::test_support
