#pragma once

#include <span>
#include <string>
#include <vector>

namespace specdec {

/// Something that the reader of a file, an estimate or an answer should know, and that is not an error.
struct Note {
  /// snake_case and stable, for scripts: "counter_reset", "not_timed".
  std::string code;
  /// One line; for a file, with its place.
  std::string message;
  /// Explains a null of the JSON answer; text output, which does not show that value, does not print it.
  bool explains_null = false;

  friend bool operator==(const Note&, const Note&) = default;
  template <class Archive>
  void exchange(Archive& archive) {
    archive(code, message, explains_null);
  }
};

inline void append(std::vector<Note>& notes, std::span<const Note> more) {
  notes.insert(notes.end(), more.begin(), more.end());
}

}  // namespace specdec
