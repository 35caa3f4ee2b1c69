"""``OrtValue``: an input or an output that stays where it is between calls."""

from __future__ import annotations

import ctypes

import numpy as np

from .. import _tfrt
from ._status import Fail

# Names of types of elements in ONNX, by our names, with their numbers there.
ONNX_TYPES = {
    "f32": ("float", 1),
    "u8": ("uint8", 2),
    "i8": ("int8", 3),
    "u16": ("uint16", 4),
    "i16": ("int16", 5),
    "i32": ("int32", 6),
    "i64": ("int64", 7),
    "str": ("string", 8),
    "i1": ("bool", 9),
    "f16": ("float16", 10),
    "f64": ("double", 11),
    "u32": ("uint32", 12),
    "u64": ("uint64", 13),
    "complex64": ("complex64", 14),
    "complex128": ("complex128", 15),
    "bf16": ("bfloat16", 16),
    "f8e4m3fn": ("float8e4m3fn", 17),
    "f8e4m3fnuz": ("float8e4m3fnuz", 18),
    "f8e5m2": ("float8e5m2", 19),
    "f8e5m2fnuz": ("float8e5m2fnuz", 20),
    "u4": ("uint4", 21),
    "i4": ("int4", 22),
    "f4e2m1": ("float4e2m1", 23),
}

_BY_NUMPY = {
    "float32": "f32",
    "uint8": "u8",
    "int8": "i8",
    "uint16": "u16",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "object": "str",
    "bool": "i1",
    "float16": "f16",
    "float64": "f64",
    "uint32": "u32",
    "uint64": "u64",
    "complex64": "complex64",
    "complex128": "complex128",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "uint4": "u4",
    "int4": "i4",
    "float4_e2m1fn": "f4e2m1",
}
_BY_NUMBER = {number: name for name, (_, number) in ONNX_TYPES.items()}


def own_name(dtype) -> str:
    """Returns our name of a type of NumPy's, or of one that tensors tell by our name."""
    if isinstance(dtype, str) and dtype in ONNX_TYPES:
        return dtype
    dtype = np.dtype(dtype)
    return "str" if dtype.kind in "OUS" else _BY_NUMPY.get(dtype.name, dtype.name)


def numpy_type(element_type) -> np.dtype:
    """Returns NumPy's type of what callers give as a type of elements: NumPy's, or ONNX's number."""
    if isinstance(element_type, int):
        name = _BY_NUMBER.get(element_type)
        if name is None:
            raise Fail(f"expected the number of a type in ONNX, found {element_type}")
        known = next((numpy for numpy, own in _BY_NUMPY.items() if own == name), name)
        try:
            return np.dtype(known)
        except TypeError:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, known))
    return np.dtype(element_type)


class OrtDevice:
    """A device: the processor's memory, whatever its number."""

    def __init__(self, device_type: str = "cpu", device_id: int = 0) -> None:
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        _on_cpu(ort_device_name)
        return OrtDevice(ort_device_name, device_id)

    @staticmethod
    def cpu() -> int:
        return 0

    def device_type(self) -> str:
        return self._type

    def device_id(self) -> int:
        return self._id


def _on_cpu(device_type) -> None:
    if str(device_type).lower() not in ("cpu", "cpupinned", "cuda_pinned"):
        raise Fail(f"tfrt.ort has memory of the processor only, found device '{device_type}'")


class OrtValue:
    """A tensor, a sequence or a map. Arrays are seen where they are."""

    def __init__(self, value) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(numpy_obj, device_type="cpu", device_id: int = 0, vendor_id: int = -1) -> "OrtValue":
        _on_cpu(device_type.device_type() if isinstance(device_type, OrtDevice) else device_type)
        return OrtValue(np.asarray(numpy_obj))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data, onnx_element_type: int) -> "OrtValue":
        return OrtValue(np.ascontiguousarray(data).view(numpy_type(onnx_element_type)))

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type, device_type="cpu", device_id: int = 0, vendor_id: int = -1) -> "OrtValue":
        _on_cpu(device_type)
        return OrtValue(np.zeros(tuple(shape), numpy_type(element_type)))

    @staticmethod
    def from_dlpack(data, is_bool_tensor: bool = False) -> "OrtValue":
        tensor = _tfrt.from_dlpack(data)
        return OrtValue(tensor)

    def numpy(self):
        if not self.is_tensor():
            raise Fail("only tensors are arrays of NumPy")
        value = self._value
        return value.numpy() if isinstance(value, _tfrt.Tensor) else value

    def __array__(self, dtype=None, copy=None):
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **kwargs):
        kwargs.pop("stream", None)
        return self._value.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return (1, 0)

    def shape(self) -> list:
        return list(self._value.shape)

    def data_type(self) -> str:
        if not self.is_tensor():
            return "seq(tensor(float))" if isinstance(self._value, list) else "map"
        name = own_name(self._value.dtype)
        return f"tensor({ONNX_TYPES[name][0]})"

    def element_type(self) -> int:
        return ONNX_TYPES[own_name(self._value.dtype)][1]

    def tensor_size_in_bytes(self) -> int:
        return self._value.nbytes

    def device_name(self) -> str:
        return "cpu"

    def data_ptr(self) -> int:
        return self.numpy().ctypes.data

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, (np.ndarray, _tfrt.Tensor))

    def is_sparse_tensor(self) -> bool:
        return False

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def update_inplace(self, data) -> None:
        target = self.numpy()
        if target.shape != data.shape or target.dtype != data.dtype:
            raise Fail(
                f"expected an array of {target.dtype} {list(target.shape)}, found {data.dtype} {list(data.shape)}"
            )
        np.copyto(target, data)


def array_at(address: int, element_type, shape) -> np.ndarray:
    """Sees memory of the caller's as an array, which the caller keeps."""
    dtype = numpy_type(element_type)
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    buffer = (ctypes.c_uint8 * n_bytes).from_address(address)
    return np.frombuffer(buffer, dtype=dtype).reshape(tuple(shape))
