#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace specdec::planner {

/// A question that cannot be answered as asked: a value outside its range, something missing, or two members that
/// exclude each other. Parameters have one name everywhere: the member `draft_model` of a structure is the option
/// `--draft-model` of the command line.
class QuestionError : public std::invalid_argument {
 public:
  /// @param message  one line in which parameters are named as options: "--draft-model is missing: ..."
  explicit QuestionError(const std::string& message);

  /// The parameter at the start of the message, "draft_model"; empty if there is none.
  const std::string& parameter() const { return parameter_; }
  /// The original message, for readers who use options; what() names members.
  const std::string& with_options() const { return with_options_; }

 private:
  std::string parameter_;
  std::string with_options_;
};

/// `--option is TEXT, but must be EXPECTED`: the form of every complaint about a value. A long text is cut.
/// @throws QuestionError
[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view expected);

/// Legal numbers. The usual upper end leaves room for any ratio and any time in seconds, and none for sums and products
/// of such numbers that overflow. Infinite ends are open.
struct LegalRange {
  double lo = 0;
  double hi = 1e9;
  bool lo_open = false;

  bool contains(double value) const;
  /// "(0, 1]", "[1, inf)".
  std::string to_string() const;
  /// "[1, 16]", "[0, 2^63)".
  std::string of_integers() const;
};
inline constexpr double unbounded = std::numeric_limits<double>::infinity();

/// @throws QuestionError for a number outside of the range, as refuse
void require_in(std::string_view option, double value, const LegalRange& range);
void require_in(std::string_view option, std::int64_t value, const LegalRange& range);
/// An empty value is legal.
template <class Value>
requires std::is_arithmetic_v<Value>
void require_in(std::string_view option, const std::optional<Value>& value, const LegalRange& range) {
  if (value) require_in(option, *value, range);
}

/// "--draft-model is missing" in terms of members: "draft_model is missing".
std::string with_members(std::string_view text);

}  // namespace specdec::planner
