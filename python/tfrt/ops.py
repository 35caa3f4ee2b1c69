"""Operations, called one at a time: ``tfrt.ops.matmul(a, b)``.

Each row of the table of operations is a function: ``tfrt.ops.relu``, and of one format ``tfrt.ops.onnx.NonMaxSuppression``.
``tfrt.ops.tf`` has TensorFlow's, such as ``tfrt.ops.tf.ResourceApplyAdam``. Operands are arrays, tensors or variables,
attributes keywords; the result is a tensor, or several. ``docs/graph.md`` and ``docs/ops.md`` of the repository list them.

``runtime.ops`` has the same operations on another runtime than that of the process, and those of its plugins.
"""

from __future__ import annotations

from . import _errors, _tfrt

# Names that are usual elsewhere.
_ALIASES = {"matmul": "dot", "subtract": "sub", "multiply": "mul", "divide": "div", "maximum": "max", "minimum": "min"}


class Family:
    """The operations of one format, on one runtime."""

    def __init__(self, prefix: str, runtime=None) -> None:
        self._prefix = prefix
        self._runtime = runtime
        self._found: dict = {}

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        op = self._found.get(name)
        if op is None:
            # Names that Python keeps for itself, such as `and`, have a line behind them here.
            called = name[:-1] if name.endswith("_") and not name.startswith("_") else name
            row = called if self._prefix else _ALIASES.get(called, called)
            try:
                op = _tfrt.Op(self._prefix + row, self._prefix + called, self._runtime)
            except _errors.NotFound as error:
                raise AttributeError(str(error)) from None
            self._found[name] = op
        return op

    def __dir__(self):
        n_prefix = len(self._prefix)
        names = _tfrt.op_names(self._runtime)
        names = (name[n_prefix:] for name in names if name.startswith(self._prefix))
        return sorted(name for name in names if "." not in name)


class Ops(Family):
    """All operations of one runtime."""

    def __init__(self, runtime=None) -> None:
        super().__init__("", runtime)
        self.onnx = Family("onnx.", runtime)
        self.tf = Family("tf.", runtime)

    def __dir__(self):
        return sorted(["onnx", "tf", *_ALIASES, *super().__dir__()])


_shared = Ops()
onnx = _shared.onnx
tf = _shared.tf


def __getattr__(name: str):
    return getattr(_shared, name)


def __dir__():
    return dir(_shared)
