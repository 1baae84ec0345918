#pragma once

/// The libraries' exceptions, as those of specdec._errors.
namespace specdec::python {

/// From here on whatever a function of the module throws arrives in Python as the exception that a user expects: a
/// QuestionError names its parameter, a FileError its file.
void translate_errors();

}  // namespace specdec::python
