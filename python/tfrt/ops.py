"""Operations, called one at a time: ``tfrt.ops.matmul(a, b)``.

Each row of the table of operations is a function: ``tfrt.ops.relu``, and of one format ``tfrt.ops.onnx.NonMaxSuppression``
and ``tfrt.ops.tf.BiasAdd``. Operands are arrays or tensors, attributes keywords; the result is a tensor, or several.
``docs/graph.md`` and ``docs/ops.md`` of the repository list them.
"""

from __future__ import annotations

import functools

from . import _errors, _tfrt


@functools.lru_cache(maxsize=None)
def _op(name: str):
    return _tfrt.Op(name)


@functools.lru_cache(maxsize=None)
def _names(prefix: str) -> tuple:
    names = (name[len(prefix) :] for name in _tfrt.op_names() if name.startswith(prefix))
    return tuple(name for name in names if "." not in name)


class _Family:
    """The operations of one format."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str):
        return _found(self._prefix + name)

    def __dir__(self):
        return _names(self._prefix)


def _found(name: str):
    try:
        return _op(name)
    except _errors.NotFound as error:
        raise AttributeError(str(error)) from None


# Names that are usual elsewhere.
_ALIASES = {"matmul": "dot", "subtract": "sub", "multiply": "mul", "divide": "div", "maximum": "max", "minimum": "min"}

onnx = _Family("onnx.")
tf = _Family("tf.")


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    # Names that Python keeps for itself, such as `and`, have a line behind them here.
    name = name[:-1] if name.endswith("_") and not name.startswith("_") else name
    return _found(_ALIASES.get(name, name))


def __dir__():
    return sorted(["onnx", "tf", *_ALIASES, *_names("")])
