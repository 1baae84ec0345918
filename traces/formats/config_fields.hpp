#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// A JSON document that must be an object, at most 64 deep. Infinity and NaN, as Python writes them, are texts.
/// @throws FileError if it is not, or if the text is not JSON
nlohmann::json parse_config(std::string_view text, const std::filesystem::path& where);

/// The numbers that a field may hold.
struct FieldRange {
  double least = std::numeric_limits<double>::denorm_min(), most = std::numeric_limits<double>::max();
  /// "a number of bytes"
  std::string_view what = "a number";
};

/// One object of a configuration, which must outlive this one. Every error is a FileError that names the file and the
/// field with its enclosing objects (`text_config.head_dim`). null counts as absent, as Hugging Face writes it.
class ConfigFields {
 public:
  ConfigFields(std::filesystem::path path, const nlohmann::json& object, std::string prefix = "");

  [[noreturn]] void refuse(std::string_view name, std::string found, std::string expected) const;

  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool is_object(std::string_view name) const;
  /// True if the key is present, even with null.
  bool names(std::string_view name) const;
  std::vector<std::string> keys() const;

  /// An integer in [1, 2^31); an error if it is missing, unless there is a value for that case.
  std::int64_t size(std::string_view name) const;
  std::int64_t size(std::string_view name, std::optional<std::int64_t> otherwise) const;
  std::optional<std::int64_t> find_size(std::string_view name) const;
  /// An integer in [0, 2^31).
  std::int64_t count(std::string_view name, std::int64_t otherwise) const;

  double number(std::string_view name, const FieldRange& range) const;
  /// At least one.
  std::vector<double> numbers(std::string_view name, const FieldRange& range) const;
  double positive(std::string_view name) const;
  double positive(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  /// True for a number below 0, which some files write for a missing value.
  bool is_negative(std::string_view name) const;
  std::string word(std::string_view name) const;
  std::string word(std::string_view name, std::string_view otherwise) const;
  /// An array of strings, or of integers in [0, 2^31); empty if it is missing.
  std::vector<std::string> words(std::string_view name) const;
  std::vector<std::int64_t> counts(std::string_view name) const;
  ConfigFields object(std::string_view name) const;
  /// An array of objects.
  std::vector<ConfigFields> objects(std::string_view name) const;

  /// Refuses all other keys.
  void require_keys(const std::vector<std::string_view>& known) const;
  void require_word(std::string_view name, std::string_view otherwise, std::string_view supported) const;
  void require_flag(std::string_view name, bool supported) const;
  void require_absent(std::string_view name) const;

 private:
  const nlohmann::json* find(std::string_view name) const;
  const nlohmann::json& require(std::string_view name) const;
  double read_number(std::string_view name, const nlohmann::json& value, const FieldRange& range) const;
  std::int64_t read_integer(std::string_view name, const nlohmann::json& value, std::uint64_t smallest) const;

  std::filesystem::path path_;
  const nlohmann::json& object_;
  std::string prefix_;
};

}  // namespace specdec::traces
