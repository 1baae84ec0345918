"""The exceptions of the package."""

from __future__ import annotations


class QuestionError(ValueError):
    """A question that cannot be answered as it is put: a value outside its range, something missing, or two things that
    exclude each other.

    Attributes
    ----------
    parameter : str or None
        The parameter that the message is about; None where it is about none alone.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter or None

    def __reduce__(self) -> tuple[type[QuestionError], tuple[str, str | None]]:
        return type(self), (str(self), self.parameter)


class FileError(Exception):
    """A file whose content is not what its format promises.

    Attributes
    ----------
    path : str
    place : tuple of (str, int), or None
        ``("line", n)``, from 1, or ``("byte", n)``, from 0; None for the file as a whole.
    field, found, expected : str
        What the message says of it.
    """

    def __init__(
        self, message: str, path: str, place: tuple[str, int] | None, field: str, found: str, expected: str
    ) -> None:
        super().__init__(message)
        self.path = path
        self.place = place
        self.field = field
        self.found = found
        self.expected = expected

    def __reduce__(self) -> tuple[type[FileError], tuple[str, str, tuple[str, int] | None, str, str, str]]:
        return type(self), (str(self), self.path, self.place, self.field, self.found, self.expected)
