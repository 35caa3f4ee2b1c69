"""Exceptions: ``tfrt.Error``, and a class for each kind of failure that callers tell apart."""

from __future__ import annotations

from typing import NamedTuple, Optional, Union

__all__ = [
    "Cancelled",
    "DeadlineExceeded",
    "Error",
    "InvalidArgument",
    "NotFound",
    "OpenError",
    "Problem",
    "ResourceExhausted",
]


class Problem(NamedTuple):
    """One thing that is wrong with a model, or with a call of it."""

    code: Optional[str]
    """The number that ``python -m tfrt explain`` explains, such as ``TF1010``."""
    kind: Optional[str]
    """The kind of failure of a call, such as ``InvalidArgument``."""
    message: str
    location: Union[tuple, str, None]
    """The place in the user's source: a file, a line and a column."""
    node: Optional[str]
    """The node of the model, by the names of all that it is in."""
    kernel: Optional[str]
    """The kernel that failed."""
    notes: tuple


class Error(Exception):
    """The error of a model that can't be opened, or of a call that failed.

    ``code``, ``kind``, ``location``, ``node`` and ``kernel`` are those of the first of ``problems``; ``notes`` say what could
    be done.
    """

    problems: tuple = ()

    @property
    def message(self) -> str:
        return self.args[0] if self.args else ""

    def _first(self, field: str):
        found = (getattr(problem, field) for problem in self.problems)
        return next((value for value in found if value is not None), None)

    @property
    def code(self) -> Optional[str]:
        return self._first("code")

    @property
    def kind(self) -> Optional[str]:
        return self._first("kind")

    @property
    def location(self):
        return self._first("location")

    @property
    def node(self) -> Optional[str]:
        return self._first("node")

    @property
    def kernel(self) -> Optional[str]:
        return self._first("kernel")

    @property
    def notes(self) -> tuple:
        return tuple(note for problem in self.problems for note in problem.notes)

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" if self.code else self.message

    def __reduce__(self):
        return _again, (type(self), self.message, self.problems)

    def _about(self, subject: str) -> "Error":
        """Returns the error with the name of what it is about before its message."""
        problems = tuple(problem._replace(message=subject + problem.message) for problem in self.problems)
        return _again(type(self), subject + self.message, problems)


class OpenError(Error, ValueError):
    """The error of a file or of bytes that are no model which can run."""


class InvalidArgument(Error, ValueError):
    """The error of an input that does not fit: its name, its type, its shape."""


class NotFound(Error, LookupError):
    """The error of a name that there is not."""


class DeadlineExceeded(Error, TimeoutError):
    """The error of a call that was not over at its deadline."""


class Cancelled(Error):
    """The error of a call that was cancelled."""


class ResourceExhausted(Error, MemoryError):
    """The error of a call that would take more memory than it may."""


_KINDS = {
    "Cancelled": Cancelled,
    "DeadlineExceeded": DeadlineExceeded,
    "InvalidArgument": InvalidArgument,
    "NotFound": NotFound,
    "ResourceExhausted": ResourceExhausted,
}


def _again(kind: type, message: str, problems) -> Error:
    error = kind(message)
    error.problems = tuple(problems)
    for note in error.notes:
        error.add_note(note)
    return error


def _of_problems(message: str, problems) -> Error:
    """Makes the exception of an error; called by the extension."""
    problems = tuple(Problem(*problem) for problem in problems)
    first = problems[0].kind if problems else None
    kind = OpenError if first is None else _KINDS.get(first, Error)
    return _again(kind, message, problems)
