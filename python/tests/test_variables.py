"""Variables, optimizers, objects, and operations of plugins."""

import os
import pathlib

import models
import numpy as np
import pytest

import tfrt
from tfrt import ops

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", models.ROOT / "target"))
PLUGIN = TARGET / "debug/libtfrt_example_plugin.so"


def test_variables_are_read_and_assigned():
    start = np.array([1, 2], np.float32)
    w = tfrt.Variable(start)
    start[0] = 7
    before = w.read()
    assert before.tolist() == [1, 2] and (w.dtype, w.shape, w.name) == (np.float32, (2,), None)
    w.assign([3, 4])
    assert w.numpy().tolist() == np.asarray(w).tolist() == [3, 4]
    assert before.tolist() == [1, 2]
    assert repr(w) == "Variable(f32 [2])"
    with pytest.raises(tfrt.InvalidArgument, match=r"f32 \[2\] can't hold f32 \[3\]"):
        w.assign(np.zeros(3, np.float32))
    with pytest.raises(tfrt.InvalidArgument, match="f32"):
        w.assign(np.zeros(2))
    assert tfrt.Variable([1, 2], np.int64).dtype == np.int64


def test_optimizers_change_variables():
    w, m, v = (tfrt.Variable(np.full(3, value, np.float32)) for value in (1, 0, 0))
    one = [np.float32(value) for value in (0.9, 0.999, 0.1, 0.9, 0.999, 1e-8)]
    gradient = np.array([1, -1, 0], np.float32)
    assert ops.tf.ResourceApplyAdam(w, m, v, *one, gradient) is None
    np.testing.assert_allclose(w.numpy(), [0.9, 1.1, 1], rtol=1e-5)
    np.testing.assert_allclose(m.numpy(), [0.1, -0.1, 0], rtol=1e-6)
    with pytest.raises(tfrt.Error, match="ResourceApplyAdam of a variable"):
        ops.tf.ResourceApplyAdam(w, m, v, *one, np.zeros(4, np.float32))
    assert ops.tf.ReadVariableOp(w, dtype=np.float32).shape == (3,)


@pytest.mark.parametrize("ending", ["safetensors", "npz"])
def test_named_variables_are_saved_and_loaded(tmp_path, ending):
    path = tmp_path / f"weights.{ending}"
    runtime = tfrt.Runtime(threads=1)
    w = tfrt.Variable([1.0, 2.0], np.float32, name="layer/w", runtime=runtime)
    runtime.save_variables(path)
    w.assign([0.0, 0.0])
    assert runtime.load_variables(path) == 1 and w.numpy().tolist() == [1, 2]
    other = tfrt.Runtime(threads=1)
    assert other.load_variables(path) == 1
    path.write_bytes(b"no such file")
    with pytest.raises(tfrt.InvalidArgument):
        runtime.load_variables(path)
    with pytest.raises(ValueError, match="expected a path that ends with"):
        runtime.save_variables(tmp_path / "weights.txt")
    assert w.numpy().tolist() == [1, 2]


def test_lists_of_tensors_are_objects():
    empty = ops.tf.EmptyTensorList([2], 10, element_dtype=np.float32)
    assert isinstance(empty, tfrt.Object) and "variant" in repr(empty)
    full = ops.tf.TensorListPushBack(empty, np.array([1, 2], np.float32))
    last = ops.tf.TensorListPopBack(full, [2], element_dtype=np.float32)[1]
    assert last.tolist() == [1, 2]
    with pytest.raises(tfrt.Error):
        ops.relu(full)


def test_operations_of_tensorflow_have_its_names_and_attributes():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(ops.tf.MatMul(a, a, transpose_b=True).numpy(), a @ a.T)
    assert ops.tf.Pack([a, a], axis=1).shape == (2, 2, 3)
    with pytest.raises(tfrt.InvalidArgument, match="expected bool, found str"):
        ops.tf.MatMul(a, a, transpose_b="yes")


@pytest.mark.skipif(not PLUGIN.exists(), reason="`cargo build -p tfrt-example-plugin` makes the plugin")
def test_operations_of_plugins_are_those_of_their_runtime():
    runtime = tfrt.Runtime(threads=1, plugins=[PLUGIN])
    names = dir(runtime.ops.tf)
    own = [name for name in names if name not in dir(ops.tf)]
    assert own, "the plugin has operations"
    op = getattr(runtime.ops.tf, own[0])
    assert own[0] in op.documentation
    with pytest.raises(AttributeError):
        getattr(ops.tf, own[0])


def test_plugins_that_are_none_are_refused(tmp_path):
    with pytest.raises(tfrt.InvalidArgument, match="nowhere.so"):
        tfrt.Runtime(plugins=["nowhere.so"])
    file = tmp_path / "text.so"
    file.write_text("no library")
    with pytest.raises(tfrt.InvalidArgument, match="text.so"):
        tfrt.Runtime(plugins=[pathlib.Path(file)])
