"""Models in ONNX's format, compiled to dataflow programs and run: ``tfrt.Model("model.onnx")(x=array)``.

``docs/python.md`` of the repository is the guide; ``tfrt.ort`` has the part of onnxruntime's interface that code uses.
"""

from __future__ import annotations

import importlib as _importlib
import os as _os

from . import _async
from ._errors import (
    Cancelled,
    DeadlineExceeded,
    Error,
    InvalidArgument,
    NotFound,
    OpenError,
    Problem,
    ResourceExhausted,
)
from ._tfrt import Model, Runtime, Session, Tensor, ValueInfo, __version__, from_dlpack, note_fork

__all__ = [
    "Cancelled",
    "DeadlineExceeded",
    "Error",
    "InvalidArgument",
    "Model",
    "NotFound",
    "OpenError",
    "Problem",
    "ResourceExhausted",
    "Runtime",
    "Session",
    "Tensor",
    "ValueInfo",
    "__version__",
    "from_dlpack",
]

_async.add_methods(Model)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=note_fork)
del _async, _os, note_fork


def __getattr__(name: str):
    # Most programs need none of these.
    if name in ("backend", "ops", "ort"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
