"""Models of Keras, JAX and PyTorch: each is exported by its own package, and the export opened.

Arguments by keyword that an exporter does not take go to ``tfrt.Model``.
"""

from __future__ import annotations

import inspect
import os
import tempfile

from . import _tfrt

_OPTIONS = frozenset(inspect.signature(_tfrt.Model).parameters) - {"source"}


def _split(options: dict) -> tuple[dict, dict]:
    """Parts arguments for the exporter from those for the model."""
    ours = {name: value for name, value in options.items() if name in _OPTIONS}
    theirs = {name: value for name, value in options.items() if name not in _OPTIONS}
    return theirs, ours


def from_keras(model, **options) -> _tfrt.Model:
    """Opens a Keras 3 model, as its ``export`` writes it: a SavedModel, whose signature ``serving_default`` is called.

    Arguments by keyword, such as ``input_signature``, go to ``export``.
    """
    theirs, ours = _split(options)
    theirs.setdefault("verbose", False)
    with tempfile.TemporaryDirectory(prefix="tfrt-") as folder:
        path = os.path.join(folder, getattr(model, "name", None) or "model")
        model.export(path, format="tf_saved_model", **theirs)
        return _tfrt.Model(path, **ours)


def from_jax(f, *args, **options) -> _tfrt.Model:
    """Opens a function of JAX for arguments like these: what ``jax.jit(f).lower(*args)`` gives, in StableHLO.

    An argument may be an array, a ``jax.ShapeDtypeStruct``, or a tree of these. What the function closes over becomes a
    constant of the model.
    """
    import jax

    theirs, ours = _split(options)
    lowered = (f if hasattr(f, "lower") else jax.jit(f)).lower(*args, **theirs)
    name = getattr(f, "__name__", None) or type(f).__name__
    ours.setdefault("name", f"{name}.mlir")
    return _tfrt.Model(lowered.as_text().encode(), **ours)


def from_torch(module, *args, **options) -> _tfrt.Model:
    """Opens a module of PyTorch for arguments like these, as ``torch.onnx.export`` writes it.

    The module is exported as it is: call its ``eval()`` before, if it is not to be trained. Arguments by keyword, such as
    ``dynamic_shapes`` and ``input_names``, go to the exporter.
    """
    import torch

    theirs, ours = _split(options)
    with tempfile.TemporaryDirectory(prefix="tfrt-") as folder:
        path = os.path.join(folder, f"{type(module).__name__}.onnx")
        torch.onnx.export(module, args, path, **theirs)
        return _tfrt.Model(path, **ours)
