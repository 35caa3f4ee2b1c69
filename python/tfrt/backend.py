"""ONNX's interface of backends: ``onnx.backend.test.BackendTest(tfrt.backend, __name__)`` runs its cases.

It needs the package ``onnx``.
"""

from __future__ import annotations

import onnx
import onnx.backend.base
import onnx.helper

from . import _errors, _tfrt

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class BackendRep(onnx.backend.base.BackendRep):
    """A model that is ready to be called."""

    def __init__(self, model: "_tfrt.Model") -> None:
        self.model = model

    def run(self, inputs, **kwargs):
        """Calls the model with inputs in order, or by name, and returns the outputs in their order."""
        if isinstance(inputs, dict):
            feed = inputs
        else:
            names = [info.name for info in self.model.inputs]
            if not isinstance(inputs, (list, tuple)):
                inputs = [inputs]
            if len(inputs) > len(names):
                raise _errors.InvalidArgument(
                    f"{len(inputs)} inputs are given in order, but the model takes {len(names)}"
                )
            feed = dict(zip(names, inputs))
        outputs = self.model.run(feed)
        values = [outputs[info.name] for info in self.model.outputs]
        return onnx.backend.base.namedtupledict("Outputs", list(outputs))(*values)


class Backend(onnx.backend.base.Backend):
    """The processor."""

    @classmethod
    def is_compatible(cls, model, device: str = "CPU", **kwargs) -> bool:
        """Returns whether a model can run."""
        if not cls.supports_device(device):
            return False
        try:
            cls.prepare(model, device, **kwargs)
        except _errors.Error:
            return False
        return True

    @classmethod
    def prepare(cls, model, device: str = "CPU", **kwargs) -> BackendRep:
        """Compiles a model: ``onnx.ModelProto``, its bytes, or a path."""
        content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        return BackendRep(_tfrt.Model(content))

    @classmethod
    def run_model(cls, model, inputs, device: str = "CPU", **kwargs):
        """Compiles and calls a model."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device: str = "CPU", outputs_info=None, **kwargs):
        """Calls a single node."""
        import numpy as np

        def info(name, array):
            kind = onnx.helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
            return onnx.helper.make_tensor_value_info(name, kind, np.shape(array))

        names = [name for name in node.input if name]
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [info(name, array) for name, array in zip(names, inputs)],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        return cls.run_model(onnx.helper.make_model(graph), dict(zip(names, inputs)), device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether models run on a device: on the processor they do."""
        return device.split(":")[0].upper() == "CPU"


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
