#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace specdec::planner {

/// A question that cannot be answered as it is put: a value outside its range, something missing, or two things that
/// exclude each other. Parameters have one name everywhere: the member `draft_model` of a structure is the option
/// `--draft-model` of the command line.
class QuestionError : public std::invalid_argument {
 public:
  /// @param message  one line that names parameters as options: "--draft-model is missing: ..."
  explicit QuestionError(const std::string& message);

  /// The parameter that the message begins with, "draft_model"; empty where it begins with none.
  const std::string& parameter() const { return parameter_; }
  /// The message as it was given, for whoever reads options; what() names members.
  const std::string& with_options() const { return with_options_; }

 private:
  std::string parameter_;
  std::string with_options_;
};

/// `--option is TEXT, but must be EXPECTED`: the form of every complaint about a value. A long text is cut.
/// @throws QuestionError
[[noreturn]] void refuse(std::string_view option, std::string_view text, std::string_view expected);

/// "--draft-model is missing" as a reader of members knows it: "draft_model is missing".
std::string with_members(std::string_view text);

}  // namespace specdec::planner
