"""``InferenceSession``: a model under onnxruntime's interface; ``IOBinding``: inputs and outputs that are bound to it."""

from __future__ import annotations

import threading

import numpy as np

from .. import _tfrt
from ._options import GraphOptimizationLevel, SessionOptions, warn_once
from ._status import Fail, InvalidArgument, raised
from ._value import ONNX_TYPES, OrtValue, array_at

_runtimes: dict = {}
_lock = threading.Lock()


def _runtime(n_threads: int):
    """Returns the runtime that sessions with so many threads share; ``None`` for the one of the process."""
    if n_threads <= 0:
        return None
    with _lock:
        if n_threads not in _runtimes:
            _runtimes[n_threads] = _tfrt.Runtime(threads=n_threads)
        return _runtimes[n_threads]


def _onnx_type(text: str, element) -> str:
    """Writes a type as ONNX's users know it: ``tensor(float)``, ``seq(tensor(int64))``."""
    for prefix, name in (("sequence of ", "seq"), ("optional ", "optional")):
        if text.startswith(prefix):
            return f"{name}({_onnx_type(text[len(prefix):], None)})"
    if text.startswith("map from "):
        key, value = text[len("map from "):].split(" to ", 1)
        return f"map({ONNX_TYPES[key][0]},{_onnx_type(value, None)})"
    own = element or text.split(" ", 1)[0]
    return f"tensor({ONNX_TYPES[own][0]})" if own in ONNX_TYPES else "tensor()"


class NodeArg:
    """An input or an output: its name, its type and its shape."""

    def __init__(self, info) -> None:
        self.name = info.name
        self.type = _onnx_type(info.type, info.dtype_name if info.kind == "tensor" else None)
        self.shape = list(info.shape) if info.shape is not None else []

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __str__ = __repr__


class ModelMetadata:
    """The properties of a model."""

    def __init__(self, properties: dict) -> None:
        properties = dict(properties)
        self.producer_name = properties.pop("producer", "")
        self.graph_name = ""
        self.domain = ""
        self.description = ""
        self.graph_description = ""
        self.version = 9223372036854775807
        self.custom_metadata_map = properties


class InferenceSession:
    """A model that can be called, from any number of threads at once."""

    def __init__(
        self,
        path_or_bytes,
        sess_options=None,
        providers=None,
        provider_options=None,
        **kwargs,
    ) -> None:
        options = sess_options if sess_options is not None else SessionOptions()
        for provider in providers or []:
            name = provider[0] if isinstance(provider, (tuple, list)) else provider
            if name != "CPUExecutionProvider":
                warn_once(f"tfrt.ort has no {name}: the model runs on the processor")
        for name in kwargs:
            warn_once(f"tfrt.ort does not know the argument '{name}' of InferenceSession")
        if options.optimized_model_filepath:
            warn_once("tfrt.ort writes no optimized ONNX file: `tfrt compile` writes a compiled one")
        with raised():
            self._model = _tfrt.Model(
                path_or_bytes,
                runtime=_runtime(options.intra_op_num_threads),
                dims=dict(options._dims),
                optimize=options.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL,
            )
        self._options = options
        self._inputs = [NodeArg(info) for info in self._model.inputs]
        self._outputs = [NodeArg(info) for info in self._model.outputs]
        self._names = [output.name for output in self._outputs]

    def get_inputs(self) -> list:
        return self._inputs

    def get_outputs(self) -> list:
        return self._outputs

    def get_overridable_initializers(self) -> list:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return ModelMetadata(self._model.properties)

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list:
        return ["CPUExecutionProvider"]

    def get_provider_options(self) -> dict:
        return {"CPUExecutionProvider": {}}

    def set_providers(self, providers=None, provider_options=None) -> None:
        for provider in providers or []:
            name = provider[0] if isinstance(provider, (tuple, list)) else provider
            if name != "CPUExecutionProvider":
                warn_once(f"tfrt.ort has no {name}: the model runs on the processor")

    def disable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def enable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def end_profiling(self) -> str:
        raise Fail("the session was not profiled: `tfrt run --profile` shows what ran when")

    def _run(self, output_names, feed: dict, run_options=None) -> dict:
        token = run_options._token if run_options is not None else None
        with raised():
            return self._model.run(feed, outputs=output_names or None, cancel=token)

    def run(self, output_names, input_feed, run_options=None) -> list:
        """Calls the model, and returns the outputs of these names in their order; all of them for ``None``."""
        for value in input_feed.values():
            if type(value) is OrtValue:
                input_feed = {name: _plain(value) for name, value in input_feed.items()}
                break
        outputs = self._run(output_names, input_feed, run_options)
        return [outputs[name] for name in (output_names or self._names)]

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None) -> None:
        """Calls the model on another thread, which calls ``callback(outputs, user_data, error)`` in the end."""

        def work() -> None:
            try:
                outputs = self.run(output_names, input_feed, run_options)
            except Exception as error:
                callback([], user_data, str(error))
            else:
                callback(outputs, user_data, "")

        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None) -> list:
        feed = {name: _plain(value) for name, value in input_dict_ort_values.items()}
        outputs = self._run(output_names, feed, run_options)
        return [OrtValue(outputs[name]) for name in (output_names or self._names)]

    def io_binding(self) -> "IOBinding":
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: "IOBinding", run_options=None) -> None:
        iobinding._run(run_options)


def _plain(value):
    return value._value if isinstance(value, OrtValue) else value


class IOBinding:
    """Inputs and outputs that are bound to memory or to values, for call after call."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict = {}
        # Each output with the array that it is copied to, or `None`.
        self._targets: dict = {}
        self._results: dict = {}

    def _known(self, name: str, known: list, what: str) -> None:
        names = [argument.name for argument in known]
        if name not in names:
            raise InvalidArgument(f"the model has no {what} '{name}': there are {', '.join(names)}")

    def bind_cpu_input(self, name: str, arr_on_cpu) -> None:
        self._known(name, self._session.get_inputs(), "input")
        self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type, device_id: int, element_type, shape, buffer_ptr: int) -> None:
        self._known(name, self._session.get_inputs(), "input")
        self._inputs[name] = array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._known(name, self._session.get_inputs(), "input")
        self._inputs[name] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type="cpu",
        device_id: int = 0,
        element_type=None,
        shape=None,
        buffer_ptr=None,
    ) -> None:
        self._known(name, self._session.get_outputs(), "output")
        target = None
        if buffer_ptr is not None:
            target = array_at(buffer_ptr, element_type, shape)
        self._targets[name] = target

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._known(name, self._session.get_outputs(), "output")
        self._targets[name] = ortvalue.numpy()

    def _run(self, run_options=None) -> None:
        names = list(self._targets)
        feed = {name: _plain(value) for name, value in self._inputs.items()}
        outputs = self._session._run(names, feed, run_options)
        for name, target in self._targets.items():
            found = outputs[name]
            if target is None:
                continue
            if target.dtype != found.dtype or target.shape != found.shape:
                raise InvalidArgument(
                    f"output '{name}' is {found.dtype} {list(found.shape)}, "
                    f"but is bound to {target.dtype} {list(target.shape)}"
                )
        for name, target in self._targets.items():
            if target is not None:
                np.copyto(target, outputs[name])
                outputs[name] = target
        self._results = {name: outputs[name] for name in names}

    def get_outputs(self) -> list:
        return [OrtValue(value) for value in self._results.values()]

    def copy_outputs_to_cpu(self) -> list:
        return [np.array(value) if isinstance(value, np.ndarray) else value for value in self._results.values()]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._targets.clear()
        self._results.clear()

    def synchronize_inputs(self) -> None:
        """Does nothing: inputs are in the processor's memory."""

    def synchronize_outputs(self) -> None:
        """Does nothing: outputs are in the processor's memory."""
