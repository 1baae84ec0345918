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

/// Appends states to a string.
class StateWriter {
 public:
  static constexpr bool reads = false;

  template <class... Values>
  void operator()(Values&&... values) {
    (put(values), ...);
  }
  void require(bool) const {}
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  void put_length(std::uint64_t length) { append(&length, sizeof length); }

  template <class Value>
  void put(Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      append(&value, sizeof value);
    } else {
      value.exchange(*this);
    }
  }
  void put(std::string& text) {
    put_length(text.size());
    append(text.data(), text.size());
  }
  template <class Value>
  void put(std::vector<Value>& values) {
    put_length(values.size());
    for (Value& value : values) put(value);
  }
  template <class Value>
  void put(FixedLength<Value>& fixed) {
    put(fixed.values);
  }
  template <class Value, std::size_t size>
  void put(std::array<Value, size>& values) {
    for (Value& value : values) put(value);
  }
  template <class Value>
  void put(std::optional<Value>& value) {
    bool has_value = value.has_value();
    put(has_value);
    if (value) put(*value);
  }
  template <class First, class Second>
  void put(std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class Key, class Value>
  void put(std::map<Key, Value>& entries) {
    put_length(entries.size());
    for (auto& [key, value] : entries) {
      Key copy = key;
      (*this)(copy, value);
    }
  }

  std::string bytes_;
};

/// Takes states from bytes, in the order in which they were written.
class StateReader {
 public:
  static constexpr bool reads = true;

  /// @param bytes  must outlive the reader
  explicit StateReader(std::string_view bytes) : left_(bytes) {}

  /// @throws std::out_of_range if there are fewer bytes than a state takes
  /// @throws std::invalid_argument if they cannot be those of a state
  template <class... Values>
  void operator()(Values&&... values) {
    (take(values), ...);
  }
  /// @throws std::invalid_argument if what was read does not belong together
  void require(bool holds) const {
    if (!holds) throw std::invalid_argument("StateReader: values do not belong together");
  }
  bool at_end() const { return left_.empty(); }

 private:
  void take_bytes(void* data, std::size_t size) {
    if (left_.size() < size) throw std::out_of_range("StateReader: the bytes end within a state");
    std::memcpy(data, left_.data(), size);
    left_.remove_prefix(size);
  }
  /// Every element takes a byte at least.
  std::size_t take_length() {
    std::uint64_t length = 0;
    take_bytes(&length, sizeof length);
    if (left_.size() < length) throw std::out_of_range("StateReader: a length exceeds the bytes that are left");
    return length;
  }

  template <class Value>
  void take(Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      std::underlying_type_t<Value> number{};
      take(number);
      if (number < 0 || number > static_cast<std::underlying_type_t<Value>>(last_enumerator(Value{})))
        throw std::invalid_argument("StateReader: an enumerator is unknown");
      value = static_cast<Value>(number);
    } else if constexpr (std::is_arithmetic_v<Value>) {
      take_bytes(&value, sizeof value);
    } else {
      value.exchange(*this);
    }
  }
  void take(bool& value) {
    std::uint8_t byte = 0;
    take_bytes(&byte, sizeof byte);
    if (byte > 1) throw std::invalid_argument("StateReader: a flag is neither 0 nor 1");
    value = byte == 1;
  }
  void take(std::string& text) {
    text.resize(take_length());
    take_bytes(text.data(), text.size());
  }
  template <class Value>
  void take(std::vector<Value>& values) {
    values.clear();
    for (std::size_t left = take_length(); left > 0; --left) take(values.emplace_back());
  }
  template <class Value>
  void take(FixedLength<Value>& fixed) {
    require(take_length() == fixed.values.size());
    for (Value& value : fixed.values) take(value);
  }
  template <class Value, std::size_t size>
  void take(std::array<Value, size>& values) {
    for (Value& value : values) take(value);
  }
  template <class Value>
  void take(std::optional<Value>& value) {
    bool has_value = false;
    take(has_value);
    value.reset();
    if (has_value) take(value.emplace());
  }
  template <class First, class Second>
  void take(std::pair<First, Second>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <class Key, class Value>
  void take(std::map<Key, Value>& entries) {
    entries.clear();
    for (std::size_t left = take_length(); left > 0; --left) {
      Key key{};
      take(key);
      require(entries.empty() || entries.rbegin()->first < key);
      take(entries.emplace_hint(entries.end(), key, Value{})->second);
    }
  }

  std::string_view left_;
};

}  // namespace specdec::core
