"""Sessions, bindings and values, where code looks for them."""

from tfrt.ort import IOBinding, InferenceSession, OrtDevice, OrtValue  # noqa: F401
