#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::cost {

// Internal header of the library; it is not installed.

/// A JSON document that must be an object, its objects and arrays at most so deep in each other.
/// @throws traces::FileError if it is not
nlohmann::json preset_document(std::string_view text, const std::filesystem::path& path, int deepest);

/// The numbers that a field may hold.
struct FieldRange {
  double least = core::least_positive, most = core::largest_double;
  /// "a number of bytes"
  std::string_view what = "a number";
};

/// One object of a preset, which must outlive this one. Every error is a traces::FileError that names the file and the
/// place of the value in it: `engines.vllm.all_reduces[1].seconds[3]`. Unlike in ConfigFields, null is a value.
class PresetFields {
 public:
  PresetFields(std::filesystem::path path, const nlohmann::json& object, std::string place = "");

  [[noreturn]] void refuse(std::string_view key, std::string found, std::string expected) const;
  /// Refuses the value of a key that is there.
  [[noreturn]] void refuse_value(std::string_view key, std::string expected) const;
  void require_keys(const std::vector<std::string_view>& known) const;

  bool has(std::string_view key) const;
  bool is_object(std::string_view key) const;
  std::vector<std::string> keys() const;

  /// @param expected  what to call an object that is not empty
  PresetFields object(std::string_view key, std::string expected = "an object that is not empty") const;
  std::vector<PresetFields> objects(std::string_view key) const;
  /// Not empty; in the second form empty where it is missing.
  std::string text(std::string_view key) const;
  std::string text_if_any(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  double number(std::string_view key, const FieldRange& range) const;
  double whole_number(std::string_view key, const FieldRange& range) const;
  /// At least one.
  std::vector<double> numbers(std::string_view key, const FieldRange& range) const;

 private:
  const nlohmann::json& value(std::string_view key) const;
  const nlohmann::json& array(std::string_view key) const;
  std::string text_of(std::string_view key, const nlohmann::json& value) const;
  double number_of(std::string_view key, const nlohmann::json& value, const FieldRange& range) const;

  std::filesystem::path path_;
  const nlohmann::json& object_;
  std::string place_;
};

}  // namespace specdec::cost
