"""Exceptions under onnxruntime's names. Each is a ``tfrt.Error``, with its code, place and notes."""

from __future__ import annotations

import contextlib

from .. import _errors

__all__ = [
    "EPFail",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
    "raised",
]


class Fail(_errors.Error, RuntimeError):
    """The error of a call that failed."""


class InvalidArgument(_errors.Error, ValueError):
    """The error of an input that does not fit."""


class NoSuchFile(_errors.Error, OSError):
    """The error of a file that can't be read."""

    # An error of the operating system has a form of its own for two arguments; here there is one.
    def __str__(self) -> str:
        return _errors.Error.__str__(self)


class InvalidProtobuf(_errors.Error):
    """The error of bytes that are no model."""


class InvalidGraph(_errors.Error):
    """The error of a model whose nodes don't fit each other."""


class NoModel(_errors.Error):
    """The error of what is no model."""


class NotImplemented(_errors.Error):
    """The error of an operation that there is no kernel for."""


class RuntimeException(_errors.Error, RuntimeError):
    """The error of a kernel."""


class EPFail(_errors.Error):
    """The error of a device."""


def _kind(error: _errors.Error) -> type:
    if isinstance(error, _errors.OpenError):
        code = error.code or ""
        if code.startswith("TF000"):
            return NoSuchFile
        if code.startswith("TF100"):
            return InvalidProtobuf
        return InvalidGraph
    if isinstance(error, (_errors.InvalidArgument, _errors.NotFound)):
        return InvalidArgument
    return Fail


@contextlib.contextmanager
def raised():
    """Raises errors under onnxruntime's names."""
    try:
        yield
    except _errors.Error as error:
        raise _errors._again(_kind(error), error.message, error.problems) from error
