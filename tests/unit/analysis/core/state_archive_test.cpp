#include "analysis/core/state_archive.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/exact_sum.hpp"
#include "tests/support/catch.hpp"

using specdec::core::ExactSum;
using specdec::core::StateReader;
using specdec::core::StateWriter;

namespace {

enum class Colour : std::uint8_t { red, green };
constexpr Colour last_enumerator(Colour) { return Colour::green; }

/// One of everything that a state may hold.
struct Everything {
  double number = 0;
  std::int64_t count = 0;
  bool truth = false;
  Colour colour = Colour::red;
  std::string text;
  std::array<double, 2> two{};
  std::vector<std::vector<double>> rows;
  std::optional<std::int64_t> there, missing = 1;
  std::map<std::pair<std::uint64_t, std::int32_t>, ExactSum> sums;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(number, count, truth, colour, text, two, rows, there, missing, sums);
  }
  friend bool operator==(const Everything&, const Everything&) = default;
};

Everything everything() {
  Everything e{0.1, -7, true, Colour::green, "text", {1.5, -2}, {{1, 2}, {}, {3}}, 5, std::nullopt, {}};
  e.sums[{3, -1}].add(-1e18);
  e.sums[{3, -1}].add(0x1p-60);
  e.sums[{9, 2}].add(2.5);
  return e;
}

}  // namespace

TEST_CASE("a state that is read is the one that was written, to the bit") {
  Everything written = everything(), read;
  StateWriter writer;
  writer(written);
  StateReader reader(writer.bytes());
  reader(read);
  CHECK(reader.at_end());
  CHECK((read == written));
  CHECK(read.sums.at({3, -1}).value() == written.sums.at({3, -1}).value());
}

TEST_CASE("a state that ends too soon is refused wherever it ends, and no length is believed") {
  Everything written = everything();
  StateWriter writer;
  writer(written);
  const std::string bytes = writer.bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    StateReader reader(cut);
    Everything read;
    CHECK_THROWS_AS(reader(read), std::out_of_range);
  }
  const std::string endless(8, '\xff');
  StateReader reader(endless);
  std::vector<double> values;
  CHECK_THROWS_AS(reader(values), std::out_of_range);
}

TEST_CASE("flags, enumerators, keys and fixed lengths that no state has are refused") {
  const auto read = [](const std::string& bytes, auto value) {
    StateReader reader(bytes);
    reader(value);
    return value;
  };
  using namespace std::string_literals;
  CHECK(read("\1"s, false));
  CHECK_THROWS_AS(read("\2"s, false), std::invalid_argument);
  CHECK_THROWS_AS(read("\xff"s, std::optional<double>()), std::invalid_argument);
  CHECK(read("\1"s, Colour::red) == Colour::green);
  CHECK_THROWS_AS(read("\2"s, Colour::red), std::invalid_argument);
  const std::string two = "\2"s + std::string(7, '\0');
  CHECK(read(two + "\3a\4b"s, std::map<std::int8_t, std::int8_t>()).size() == 2);
  CHECK_THROWS_AS(read(two + "\4a\4b"s, std::map<std::int8_t, std::int8_t>()), std::invalid_argument);
  CHECK_THROWS_AS(read(two + "\4a\3b"s, std::map<std::int8_t, std::int8_t>()), std::invalid_argument);

  const std::string bytes = two + "ab";
  std::vector<char> values(2);
  StateReader fits(bytes);
  fits(specdec::core::fixed_length(values));
  CHECK(values == std::vector<char>{'a', 'b'});
  values.resize(1);
  StateReader differs(bytes);
  CHECK_THROWS_AS(differs(specdec::core::fixed_length(values)), std::invalid_argument);
}
