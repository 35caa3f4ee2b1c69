"""The part of onnxruntime's interface that code uses, on tfrt.

Code that imports ``onnxruntime`` runs unmodified after::

    import sys, tfrt.ort
    sys.modules["onnxruntime"] = tfrt.ort

Options that decide how onnxruntime works inside are taken and mean nothing; those that would change results, or that nobody
has, are told once as a warning.
"""

from __future__ import annotations

from ._options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from ._session import InferenceSession, IOBinding, ModelMetadata, NodeArg
from ._status import (
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoModel,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)
from ._value import OrtDevice, OrtValue
from .. import __version__ as _own_version

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]

# The release whose interface this is: packages compare it.
__version__ = "1.22.0"
SessionIOBinding = IOBinding


def get_available_providers() -> list:
    """Returns the names of what models can run on: the processor's."""
    return ["CPUExecutionProvider"]


def get_all_providers() -> list:
    """Returns the names of what models can run on: the processor's."""
    return get_available_providers()


def get_device() -> str:
    return "CPU"


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return f"tfrt {_own_version}"


def set_seed(seed: int) -> None:
    """Takes a seed, and does nothing: operations that draw have their seeds in the model."""


def set_default_logger_severity(level: int) -> None:
    """Takes a level, and does nothing: nothing is logged."""


def set_default_logger_verbosity(level: int) -> None:
    """Takes a level, and does nothing: nothing is logged."""


def disable_telemetry_events() -> None:
    """Does nothing: there are no such events."""


def enable_telemetry_events() -> None:
    """Does nothing: there are no such events."""


def preload_dlls(*args, **kwargs) -> None:
    """Does nothing: there are no such libraries."""
