"""Memory: arrays in and out without a copy, and what is writable when."""

import gc
import threading
import time
import weakref

import models
import numpy as np
import pytest

import tfrt


def address(array):
    return array.__array_interface__["data"][0]


def is_let_go(kept):
    """Whether an array goes without a further call. A thread that lost its processor may have it for a while."""
    end = time.monotonic() + 10
    while kept() is not None and time.monotonic() < end:
        time.sleep(0.001)
    return kept() is None


def test_array_in_is_not_copied():
    model = models.double()
    x = np.arange(1 << 16, dtype=np.float32)
    tensor = tfrt.from_dlpack(x)
    assert address(tensor.numpy()) == address(x)
    np.testing.assert_array_equal(model(x=tensor)["y"], 2 * x)


def test_array_out_is_the_memory_of_the_output_and_may_be_written():
    y = models.double()(x=np.arange(4, dtype=np.float32))["y"]
    assert y.flags.writeable and y.flags.aligned and y.flags.c_contiguous and not y.flags.owndata
    y[0] = 7
    assert y.tolist() == [7, 2, 4, 6]
    assert type(y.base).__name__ == "Written"


def test_output_lives_longer_than_model_and_runtime():
    model = models.double(runtime=tfrt.Runtime(threads=1))
    y = model(x=np.arange(4, dtype=np.float32))["y"]
    view = y[1:]
    del model, y
    gc.collect()
    assert view.tolist() == [2, 4, 6]


def test_output_that_is_an_input_is_a_copy():
    model = models.same("tensor<?xf32>")
    x = np.arange(4, dtype=np.float32)
    y = model(x=x)["y"]
    y[0] = 9
    assert x.tolist() == [0, 1, 2, 3] and x.flags.writeable


def test_constant_stays_constant():
    kind = "tensor<2xf32>"
    body = '%y = "onnx.Constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>'
    model = models.of_text({"x": kind}, {"y": kind}, body)
    x = np.zeros(2, np.float32)
    y = model(x=x)["y"]
    y[:] = 0
    assert model(x=x)["y"].tolist() == [1, 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: x.reshape(2, -1).T.ravel()[:4],
        lambda x: x.astype(">f4"),
        lambda x: np.broadcast_to(x[:1], 5),
        lambda x: np.ma.masked_array(x),
        lambda x: x[:0],
    ],
)
def test_strided_arrays_are_copied_without_a_word(make):
    x = make(np.arange(8, dtype=np.float32))
    np.testing.assert_array_equal(models.double()(x=x)["y"], 2 * np.asarray(x))


def test_unaligned_arrays_are_copied():
    raw = np.zeros(17, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = [1, 2, 3, 4]
    assert not x.flags.aligned
    assert models.double()(x=x)["y"].tolist() == [2, 4, 6, 8]


def test_input_is_not_writable_during_a_call():
    long = models.long(400)
    x = np.eye(256, dtype=np.float32)
    seen = []
    thread = threading.Thread(target=lambda: long(x=x))
    thread.start()
    while thread.is_alive():
        seen.append(x.flags.writeable)
        time.sleep(0.001)
    thread.join()
    assert False in seen
    assert x.flags.writeable


def test_read_only_input_stays_so():
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    models.double()(x=x)
    assert not x.flags.writeable


def test_one_array_for_two_inputs_is_writable_after():
    kind = "tensor<?xf32>"
    add = models.of_text({"a": kind, "b": kind}, {"c": kind}, f'%c = "onnx.Add"(%a, %b) : ({kind}, {kind}) -> {kind}')
    x = np.arange(4, dtype=np.float32)
    assert add(a=x, b=x)["c"].tolist() == [0, 2, 4, 6]
    assert x.flags.writeable


def test_input_of_a_cancelled_call_is_kept_and_becomes_writable():
    long = models.long(4000)
    x = np.eye(256, dtype=np.float32)
    kept = weakref.ref(x)
    with pytest.raises(tfrt.DeadlineExceeded):
        long.run({"x": x}, deadline=0.02)
    for _ in range(1000):
        if x.flags.writeable:
            break
        time.sleep(0.005)
    assert x.flags.writeable
    del x
    assert is_let_go(kept)


@pytest.mark.parametrize("is_writable", [True, False])
def test_nothing_is_left_of_arrays(is_writable):
    model = models.double()
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = is_writable
    kept = weakref.ref(x)
    y = model(x=x)["y"]
    out = weakref.ref(y)
    del x, y
    assert out() is None
    assert is_let_go(kept)


def test_array_that_is_refused_is_let_go():
    x = np.arange(4, dtype=np.float32)
    kept = weakref.ref(x)
    with pytest.raises(tfrt.Error, match="expected elements that are i32"):
        tfrt.Tensor(x, dtype="int32")
    assert x.flags.writeable
    del x
    assert is_let_go(kept)


def test_array_that_is_let_go_during_a_call_lives_on():
    long = models.long(100)
    results = []
    thread = threading.Thread(target=lambda: results.append(long(x=np.eye(256, dtype=np.float32))))
    thread.start()
    gc.collect()
    thread.join()
    np.testing.assert_array_equal(results[0]["y"], np.eye(256))


NUMBERS = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
NUMBERS += [np.float16, np.float32, np.float64, np.complex64, np.complex128]
SPELLINGS = ["i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "f32", "f64", "complex<f32>", "complex<f64>"]


@pytest.mark.parametrize("dtype, spelling", list(zip(NUMBERS, SPELLINGS)))
def test_each_type_of_numpy_goes_in_and_comes_out(dtype, spelling):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    y = models.same(f"tensor<?x?x{spelling}>")(x=x)["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


SMALL = {"bfloat16": "bf16", "float8_e4m3fn": "f8E4M3FN", "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2"}
SMALL |= {"float8_e5m2fnuz": "f8E5M2FNUZ", "int4": "i4", "uint4": "ui4"}


@pytest.mark.parametrize("name, spelling", list(SMALL.items()))
def test_each_type_of_ml_dtypes_goes_in_and_comes_out(name, spelling):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = np.array([0, 1, 2, -3 if name != "uint4" else 3]).astype(dtype)
    y = models.same(f"tensor<?x{spelling}>")(x=x)["y"]
    assert y.dtype == dtype
    assert y.astype(np.float32).tolist() == x.astype(np.float32).tolist()


def test_c_types_of_one_size_are_taken():
    model = models.same("tensor<?xi64>")
    for dtype in ["l", "q", "i8"]:
        assert model(x=np.array([1, 2], dtype))["y"].tolist() == [1, 2]


def test_array_without_dimensions_and_without_elements():
    y = models.same("tensor<f32>")(x=np.float32(3))["y"]
    assert y.shape == () and y == 3
    y = models.same("tensor<?x?xf32>")(x=np.zeros((0, 3), np.float32))["y"]
    assert y.shape == (0, 3)
    for dtype, spelling in zip(NUMBERS, SPELLINGS):
        x = np.zeros((2, 0), dtype)
        assert models.same(f"tensor<?x?x{spelling}>")(x=x)["y"].shape == (2, 0)
        assert tfrt.from_dlpack(x).shape == (2, 0)
