"""Arguments of any kind: each call ends in an answer or in an exception."""

import models
import numpy as np
import pytest

import tfrt
import tfrt.ort
from tfrt import ops

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

LAYER = tfrt.Model(models.LAYER)
SESSION = tfrt.ort.InferenceSession(str(models.LAYER))


class Odd:
    """An object that claims to be an array, and is none."""

    def __init__(self, name, result):
        self.name, self.result = name, result

    def __getattr__(self, name):
        if name == self.__dict__["name"]:
            if isinstance(self.__dict__["result"], Exception):
                raise self.__dict__["result"]
            return self.__dict__["result"]
        raise AttributeError(name)


class Protocol:
    """An object whose methods of protocols give anything."""

    def __init__(self, result):
        self.result = result

    def __dlpack__(self, *args, **kwargs):
        return self.result

    def __dlpack_device__(self):
        return self.result

    def __array__(self, *args, **kwargs):
        return self.result


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(max_size=5), st.binary(max_size=5)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Odd, st.sampled_from(["__array_interface__", "__array__", "__dlpack__", "dtype", "shape"]), inner),
        st.builds(Protocol, inner),
    ),
    max_leaves=8,
)
dtypes = st.sampled_from(
    ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", ">f4", "U3", "S3", "O", "M8[s]", "V3", "f4,i4"]
)
shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)
arrays = st.builds(lambda shape, dtype: np.zeros(shape, dtype), shapes, dtypes)
strided = st.builds(
    lambda array, step, is_turned: (array.T if is_turned else array)[(slice(None, None, step),) * min(array.ndim, 1)],
    arrays,
    st.sampled_from([-2, -1, 1, 2]),
    st.booleans(),
)
numbers = arrays.filter(lambda array: array.dtype.kind in "biufc")
anything = st.one_of(values, arrays, strided, st.just(object()), st.just(int), numbers.map(memoryview))
EXPECTED = (tfrt.Error, TypeError, ValueError, AttributeError, OverflowError, BufferError, NotImplementedError)


def answers(call):
    try:
        return call()
    except EXPECTED:
        return None


@settings(max_examples=300, deadline=None)
@given(anything)
def test_any_input_is_answered(value):
    answers(lambda: LAYER(x=value))
    answers(lambda: LAYER(value))
    answers(lambda: LAYER.run(value))
    answers(lambda: SESSION.run(None, {"x": value}))
    assert LAYER(x=[[1, 2]])["y"].tolist() == [[2, 5]]


@settings(max_examples=150, deadline=None)
@given(anything, anything)
def test_any_argument_is_answered(value, other):
    x = np.zeros((1, 2), np.float32)
    answers(lambda: LAYER.run({"x": x}, outputs=value))
    answers(lambda: LAYER.run({"x": x}, memory=other))
    if not isinstance(value, (float, int)):
        answers(lambda: LAYER.run({"x": x}, deadline=value))
    answers(lambda: tfrt.Model(value, dims=other))
    answers(lambda: tfrt.Tensor(value, dtype=other))
    answers(lambda: tfrt.from_dlpack(value))
    answers(lambda: ops.add(value, other))
    answers(lambda: ops.concat(value, axis=other))
    answers(lambda: tfrt.Runtime(threads=value) if not isinstance(value, int) else None)
    answers(lambda: LAYER.session(value))
    assert x.flags.writeable


@settings(max_examples=100, deadline=None)
@given(arrays)
def test_array_of_any_type_comes_back_or_is_refused(array):
    tensor = answers(lambda: tfrt.Tensor(array))
    if tensor is not None and array.dtype.kind not in "OUS":
        np.testing.assert_array_equal(tensor.numpy(), array.astype(array.dtype.newbyteorder("=")))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_no_model_or_one(content):
    answers(lambda: tfrt.Model(content))
