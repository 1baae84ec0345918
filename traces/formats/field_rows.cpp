#include "traces/formats/field_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {

FieldRows::FieldRows(const FileHead& head, std::string_view columns) : columns_(columns) {
  if (head.json().empty()) {
    csv_.emplace(head.path);
    if (csv_->next()) take_header();
  } else {
    json_.emplace(head.path);
  }
}

bool FieldRows::next() { return csv_ ? next_record() : next_object(); }

const RowField* FieldRows::find(std::string_view name) const {
  const auto found = std::ranges::find(fields_, name, &RowField::name);
  return found == fields_.end() ? nullptr : &*found;
}

void FieldRows::refuse(std::string field, std::string found, std::string expected) const {
  if (csv_) csv_->refuse(std::move(field), std::move(found), std::move(expected));
  json_->refuse(std::move(field), std::move(found), std::move(expected));
}

void FieldRows::refuse_names(std::string expected) const {
  std::vector<std::string_view> names;
  for (const RowField& field : fields_) names.push_back(field.name);
  throw FileError(csv_ ? csv_->path() : json_->path(), FileError::line(csv_ ? header_ : line()), "columns",
                  names.empty() ? "none" : printable(fmt::format("{}", fmt::join(names, ","))), std::move(expected));
}

void FieldRows::take_header() {
  header_ = csv_->line();
  for (const std::string_view field : csv_->fields()) names_.emplace_back(trimmed(field));
  if (std::ranges::all_of(names_, [](const std::string& name) { return name.empty() || number_in<double>(name); }))
    refuse("line", "of numbers", fmt::format("the names of the columns, such as {}", columns_));
  for (const std::string& name : names_)
    if (std::ranges::count(names_, name) > 1)
      refuse(fmt::format("column {}", printable(name)), "there twice", "there once");
  for (const std::string& name : names_) fields_.push_back({name, {}});
}

bool FieldRows::next_record() {
  if (!csv_->next()) return false;
  const std::span<const std::string_view> texts = csv_->fields();
  if (texts.size() != fields_.size())
    refuse("row", fmt::format("{} fields long", texts.size()),
           fmt::format("{} fields long, as the header is", fields_.size()));
  for (std::size_t i = 0; i < texts.size(); ++i) fields_[i].text = trimmed(texts[i]);
  return true;
}

bool FieldRows::next_object() {
  if (!json_->next()) return false;
  simdjson::dom::object object;
  if (json_->document().get(object) != simdjson::SUCCESS)
    json_->refuse("document", json_->document(), "an object, or an array of objects");
  fields_.clear();
  texts_.clear();
  texts_.reserve(object.size());
  for (const auto& [key, value] : object) {
    if (value.is_null()) continue;
    RowField& field = fields_.emplace_back(RowField{key, {}});
    simdjson::dom::array list;
    if (value.get(list) == simdjson::SUCCESS) field.list = list;
    if (value.get(field.text) != simdjson::SUCCESS) field.text = texts_.emplace_back(excerpt(value));
  }
  return true;
}

}  // namespace specdec::traces
