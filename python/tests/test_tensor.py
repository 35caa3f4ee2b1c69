"""Tensors: their views in NumPy, DLPack, buffers and pickles."""

import copy
import pickle

import numpy as np
import pytest

import tfrt


def address(array):
    return array.__array_interface__["data"][0]


def test_tensor_tells_what_it_is():
    tensor = tfrt.Tensor([[1, 2, 3]], dtype=np.int32)
    assert (tensor.dtype, tensor.shape, tensor.ndim, tensor.size, tensor.nbytes) == (np.int32, (1, 3), 2, 3, 12)
    assert repr(tensor) == "Tensor(i32 [1, 3], [1, 2, 3])"
    assert len(tensor) == 1 and tensor.tolist() == [[1, 2, 3]]
    assert tfrt.Tensor(5.5).item() == 5.5
    assert tensor.reshape(3, 1).shape == tensor.reshape((3, 1)).shape == (3, 1)


def test_tensor_is_a_copy_and_its_views_are_not():
    x = np.arange(4, dtype=np.float32)
    tensor = tfrt.Tensor(x)
    x[0] = 9
    assert tensor.tolist() == [0, 1, 2, 3] and x.flags.writeable
    view = tensor.numpy()
    assert address(view) == address(tensor.numpy()) == address(np.asarray(tensor))
    assert not view.flags.writeable
    assert np.array(tensor).flags.writeable
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64


def test_wrong_tensors_are_refused():
    with pytest.raises(tfrt.InvalidArgument, match="expected elements that are f32, found f64"):
        tfrt.Tensor(np.zeros(2), dtype=np.float32)
    with pytest.raises(tfrt.InvalidArgument):
        tfrt.Tensor(object())
    with pytest.raises(tfrt.InvalidArgument, match=r"\[4\]"):
        tfrt.Tensor([1, 2, 3, 4]).reshape(3)
    with pytest.raises(tfrt.InvalidArgument, match="one element"):
        tfrt.Tensor([1, 2]).item()
    with pytest.raises(TypeError):
        len(tfrt.Tensor(1))
    with pytest.raises((TypeError, tfrt.Error)):
        tfrt.Tensor([1], dtype="no such type")


def test_tensor_is_a_buffer_for_reading():
    tensor = tfrt.Tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    view = memoryview(tensor)
    assert (view.format, view.shape, view.readonly) == ("h", (2, 3), True)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    del tensor
    assert bytes(view) == np.arange(6, dtype=np.int16).tobytes()


@pytest.mark.parametrize("value", [[1.5, 2.5], ["a", "bé"], 7, np.zeros((0, 2), np.uint8)])
def test_tensor_is_pickled_and_copied(value):
    tensor = tfrt.Tensor(value)
    for again in [pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)]:
        assert (again.dtype, again.shape, again.tolist()) == (tensor.dtype, tensor.shape, tensor.tolist())


def test_dlpack_shares_memory_both_ways():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = tfrt.from_dlpack(x)
    assert tensor.__dlpack_device__() == (1, 0)
    back = np.from_dlpack(tensor)
    assert address(back) == address(x)
    assert not back.flags.writeable
    del x, tensor
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("make", [lambda x: x.T, lambda x: x[:, ::2], lambda x: x[::-1], lambda x: x[1:1], lambda x: x[:, 1]])
def test_dlpack_of_strided_arrays_is_put_in_order(make):
    x = make(np.arange(12, dtype=np.int64).reshape(3, 4))
    assert tfrt.from_dlpack(x).tolist() == x.tolist()


def test_capsule_is_taken_once():
    for versions in [{}, {"max_version": (1, 0)}]:
        capsule = np.arange(3, dtype=np.int64).__dlpack__(**versions)
        assert tfrt.from_dlpack(capsule).tolist() == [0, 1, 2]
        with pytest.raises(ValueError, match="used before"):
            tfrt.from_dlpack(capsule)


def test_capsule_that_nobody_takes_is_freed():
    tensor = tfrt.Tensor([1.0, 2.0])
    for _ in range(10):
        tensor.__dlpack__(max_version=(1, 1))
        tensor.__dlpack__(copy=True)
    assert tensor.tolist() == [1, 2]


def test_capsules_without_versions_are_copies():
    tensor = tfrt.Tensor([1.0, 2.0])
    again = tfrt.from_dlpack(tensor.__dlpack__())
    assert again.tolist() == [1, 2] and address(again.numpy()) != address(tensor.numpy())
    with pytest.raises(BufferError, match="copy"):
        tensor.__dlpack__(copy=False)
    with pytest.raises(BufferError, match="device"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="str"):
        tfrt.Tensor(["a"]).__dlpack__(max_version=(1, 0))


def test_what_speaks_no_dlpack_is_refused():
    import datetime

    for value in [object(), 3, [1.0], None, datetime.datetime_CAPI]:
        with pytest.raises((tfrt.InvalidArgument, ValueError), match="expected"):
            tfrt.from_dlpack(value)

    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError("it is not asked for memory of another device")

        def __dlpack_device__(self):
            return (2, 1)

    with pytest.raises(tfrt.InvalidArgument, match="device 1 of kind 2"):
        tfrt.from_dlpack(Elsewhere())

    class Liar:
        def __dlpack__(self, **_):
            return 7

    with pytest.raises(tfrt.InvalidArgument, match="found an object of type int"):
        tfrt.from_dlpack(Liar())


def test_bfloat16_goes_by_dlpack_and_by_name():
    tensor = tfrt.Tensor([1, 2, 3], dtype="bfloat16")
    assert repr(tensor) == "Tensor(bf16 [3], [1.0, 2.0, 3.0])"
    assert repr(tfrt.from_dlpack(tensor)) == repr(tensor)
