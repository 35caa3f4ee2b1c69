"""Models in ONNX's format, compiled to dataflow programs and run: ``tfrt.Model("model.onnx")(x=array)``.

``docs/python.md`` of the repository is the guide; ``tfrt.ort`` has the part of onnxruntime's interface that code uses.
"""

from __future__ import annotations

import importlib as _importlib
import os as _os

from . import _async, _pages
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
from ._pages import Page, inspect
from ._tfrt import (
    CancellationToken,
    Model,
    Object,
    Runtime,
    Session,
    Tensor,
    ValueInfo,
    Variable,
    __version__,
    from_dlpack,
    note_fork,
)

__all__ = [
    "CancellationToken",
    "Cancelled",
    "DeadlineExceeded",
    "Error",
    "InvalidArgument",
    "Model",
    "NotFound",
    "Object",
    "OpenError",
    "Page",
    "Problem",
    "ResourceExhausted",
    "Runtime",
    "Session",
    "Tensor",
    "ValueInfo",
    "Variable",
    "__version__",
    "from_dlpack",
    "inspect",
]

_async.add_methods(Model)
_pages.add_methods(Model, Runtime)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=note_fork)
del _async, _os, _pages, note_fork


def __getattr__(name: str):
    # Most programs need none of these.
    if name in ("from_jax", "from_keras", "from_torch"):
        return getattr(_importlib.import_module(f"{__name__}._sources"), name)
    if name in ("backend", "ops", "ort"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
