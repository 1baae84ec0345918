#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// The state of objects as bytes, and back. A class whose objects are to be kept says once what their state is:
///
///   template <class Archive> void exchange(Archive& archive) { archive(count_, sums_); }
///
/// Numbers are little-endian and unpadded; strings, vectors and maps begin with their length in 64 bits, optionals with
/// one byte. What bytes mean is known to the version that wrote them alone: whoever keeps them, keeps the version too.
///
/// A reader believes no byte: flags are 0 or 1, keys rise, and memory grows with what was read, not with what lengths
/// promise. What else an object takes for granted it says: vectors that it sizes itself are kept as fixed_length(), the
/// largest value of an enumeration is what last_enumerator(Enum) returns, declared beside it, and the rest is
/// archive.require()d, which asks nothing of who writes.
namespace specdec::core {

static_assert(std::endian::native == std::endian::little);

/// A vector that has its length before it is read: a state with another length is refused.
template <class Value>
struct FixedLength {
  std::vector<Value>& values;
};
template <class Value>
FixedLength<Value> fixed_length(std::vector<Value>& values) {
  return {values};
}

/// Appends states to a string, or takes them from bytes in the order in which they were written.
template <bool reading>
class StateArchive {
 public:
  static constexpr bool reads = reading;

  StateArchive() = default;
  /// @param bytes  must outlive a reader
  explicit StateArchive(std::string_view bytes) : bytes_(bytes) {}

  /// @throws std::out_of_range if there are fewer bytes than a state takes
  /// @throws std::invalid_argument if they cannot be those of a state
  template <class... Values>
  void operator()(Values&&... values) {
    (exchange(values), ...);
  }
  /// @throws std::invalid_argument if what was read does not belong together
  void require(bool holds) const {
    if (reading && !holds) throw std::invalid_argument("StateReader: values do not belong together");
  }
  /// What was written.
  const std::string& bytes() const { return bytes_; }
  /// True if nothing is left to be read.
  bool at_end() const { return bytes_.empty(); }

 private:
  void exchange_bytes(void* data, std::size_t size) {
    if constexpr (reading) {
      if (bytes_.size() < size) throw std::out_of_range("StateReader: the bytes end within a state");
      std::memcpy(data, bytes_.data(), size);
      bytes_.remove_prefix(size);
    } else {
      bytes_.append(static_cast<const char*>(data), size);
    }
  }
  /// Every element takes a byte at least.
  std::size_t exchange_length(std::uint64_t length) {
    exchange(length);
    if (reading && bytes_.size() < length)
      throw std::out_of_range("StateReader: a length exceeds the bytes that are left");
    return length;
  }

  template <class Value>
  void exchange(Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      auto number = static_cast<std::underlying_type_t<Value>>(value);
      exchange(number);
      if (reading && (number < 0 || number > static_cast<std::underlying_type_t<Value>>(last_enumerator(Value{}))))
        throw std::invalid_argument("StateReader: an enumerator is unknown");
      value = static_cast<Value>(number);
    } else if constexpr (std::is_arithmetic_v<Value>) {
      exchange_bytes(&value, sizeof value);
    } else {
      value.exchange(*this);
    }
  }
  void exchange(bool& value) {
    std::uint8_t byte = value ? 1 : 0;
    exchange(byte);
    if (byte > 1) throw std::invalid_argument("StateReader: a flag is neither 0 nor 1");
    value = byte == 1;
  }
  void exchange(std::string& text) {
    text.resize(exchange_length(text.size()));
    exchange_bytes(text.data(), text.size());
  }
  template <class Value>
  void exchange(std::vector<Value>& values) {
    const std::size_t count = exchange_length(values.size());
    if (reading) values.clear();
    for (std::size_t i = 0; i < count; ++i) exchange(reading ? values.emplace_back() : values[i]);
  }
  template <class Value>
  void exchange(FixedLength<Value>& fixed) {
    require(exchange_length(fixed.values.size()) == fixed.values.size());
    for (Value& value : fixed.values) exchange(value);
  }
  template <class Value, std::size_t size>
  void exchange(std::array<Value, size>& values) {
    for (Value& value : values) exchange(value);
  }
  template <class Value>
  void exchange(std::optional<Value>& value) {
    bool has_value = value.has_value();
    exchange(has_value);
    if (!has_value) return value.reset();
    exchange(reading ? value.emplace() : *value);
  }
  template <class First, class Second>
  void exchange(std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class Key, class Value>
  void exchange(std::map<Key, Value>& entries) {
    std::size_t left = exchange_length(entries.size());
    if (reading) entries.clear();
    for (auto entry = entries.begin(); left > 0; --left) {
      Key key = reading ? Key{} : entry->first;
      exchange(key);
      require(entries.empty() || entries.rbegin()->first < key);
      if (reading) entry = entries.emplace_hint(entries.end(), key, Value{});
      exchange(entry++->second);
    }
  }

  std::conditional_t<reading, std::string_view, std::string> bytes_;
};

using StateWriter = StateArchive<false>;
using StateReader = StateArchive<true>;

}  // namespace specdec::core
