"""Models in ONNX's format, compiled to dataflow programs and run: ``tfrt.Model("model.onnx")(x=array)``.

``docs/python.md`` of the repository is the guide; ``tfrt.ort`` has the part of onnxruntime's interface that code uses.
"""

from __future__ import annotations

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
from ._tfrt import Model, Runtime, Session, Tensor, ValueInfo, __version__, from_dlpack

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
del _async
