#include "python/bindings.hpp"

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "planner/question_error.hpp"
#include "traces/file_error.hpp"

namespace nb = nanobind;

namespace specdec::python {
namespace {

template <class... Arguments>
void raise(const char* kind, const Arguments&... arguments) {
  const nb::object type = nb::module_::import_("specdec._errors").attr(kind);
  PyErr_SetObject(type.ptr(), type(arguments...).ptr());
}

/// "alpha" of "expected_tokens: alpha is 2, but must be in [0, 1]", "acceptance_length" of an acceptance length; empty
/// where the message has another form.
std::string parameter_in(const std::string& message) {
  const std::size_t colon = message.find(": ");
  const std::size_t end = message.find(" is ");
  if (colon == std::string::npos || end == std::string::npos || end < colon) return "";
  std::string name = message.substr(colon + 2, end - colon - 2);
  if (std::count(name.begin(), name.end(), ' ') > 1) return "";
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// Bytes of a path that are no UTF-8 are kept as Python keeps them.
nb::object text_of(const std::string& bytes) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

nb::object place_of(const traces::FileError::Location& location) {
  using Kind = traces::FileError::Location::Kind;
  if (location.kind == Kind::whole_file) return nb::none();
  const char* const what = location.kind == Kind::line ? "line" : "byte";
  return nb::make_tuple(what, location.number);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const planner::QuestionError& error) {
    raise("QuestionError", text_of(error.what()), text_of(error.parameter()));
  } catch (const traces::FileError& error) {
    if (error.path().empty()) {  // a recording in memory
      const std::string message =
          fmt::format("{} is {}, but must be {}", error.field(), error.found(), error.expected());
      return raise("QuestionError", text_of(message), nb::none());
    }
    raise("FileError", text_of(error.what()), text_of(error.path().string()), place_of(error.location()),
          text_of(error.field()), text_of(error.found()), text_of(error.expected()));
  } catch (const std::domain_error& error) {
    raise("QuestionError", text_of(error.what()), text_of(parameter_in(error.what())));
  } catch (const std::invalid_argument& error) {
    raise("QuestionError", text_of(error.what()), text_of(parameter_in(error.what())));
  } catch (const std::filesystem::filesystem_error& error) {
    nb::object type = nb::borrow(PyExc_OSError);
    const nb::object raised =
        type(error.code().value(), text_of(error.code().message()), text_of(error.path1().string()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  }
}

}  // namespace

void translate_errors() { nb::register_exception_translator(translate); }

}  // namespace specdec::python
