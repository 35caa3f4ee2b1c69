"""The interface of onnxruntime: what code asks of it."""

import sys
import threading

import models
import numpy as np
import pytest

import tfrt
import tfrt.ort as ort

X = np.array([[1, 2]], np.float32)
Y = np.array([[2, 5]], np.float32)


@pytest.fixture()
def session():
    return ort.InferenceSession(str(models.LAYER), providers=["CPUExecutionProvider"])


def test_session_runs_by_names_or_for_all(session):
    assert [(node.name, node.type, node.shape) for node in session.get_inputs()] == [("x", "tensor(float)", ["N", 2])]
    assert [node.name for node in session.get_outputs()] == ["y"]
    for names in [None, [], ["y"]]:
        (y,) = session.run(names, {"x": X})
        np.testing.assert_array_equal(y, Y)
    assert session.run(None, {"x": [[1, 2]]})[0].tolist() == Y.tolist()
    assert session.get_modelmeta().producer_name == "tfrt"
    assert session.get_providers() == ort.get_available_providers() == ["CPUExecutionProvider"]


def test_options_are_taken(session):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_free_dimension_override_by_name("N", 1)
    session = ort.InferenceSession(models.LAYER.read_bytes(), options)
    assert session.get_inputs()[0].shape == [1, 2]
    np.testing.assert_array_equal(session.run(["y"], {"x": X}, ort.RunOptions())[0], Y)


def test_what_is_not_there_is_told_once():
    with pytest.warns(RuntimeWarning, match="CUDAExecutionProvider"):
        ort.InferenceSession(str(models.LAYER), providers=[("CUDAExecutionProvider", {}), "CPUExecutionProvider"])


def test_mistakes_have_the_names_of_onnxruntime(session):
    with pytest.raises(ort.InvalidArgument, match=r"f32 \[N, 2\], found f64 \[1, 2\]"):
        session.run(None, {"x": X.astype(np.float64)})
    with pytest.raises(ValueError, match="missing"):
        session.run(None, {})
    with pytest.raises(ort.InvalidArgument, match="no output 'z'"):
        session.run(["z"], {"x": X})
    with pytest.raises(ort.NoSuchFile):
        ort.InferenceSession("nowhere.onnx")
    with pytest.raises(ort.InvalidProtobuf):
        ort.InferenceSession(b"\x08\x08\x3a\xff")
    with pytest.raises(tfrt.Error):
        ort.InferenceSession(b"")


def test_bindings_keep_inputs_and_outputs(session):
    binding = session.io_binding()
    target = np.zeros((1, 2), np.float32)
    binding.bind_cpu_input("x", X)
    binding.bind_output("y", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target, Y)
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], Y)
    assert binding.get_outputs()[0].shape() == [1, 2]
    with pytest.raises(ort.InvalidArgument, match="no input 'z'"):
        binding.bind_cpu_input("z", X)
    value = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding.bind_ortvalue_output("y", value)
    with pytest.raises(ort.InvalidArgument, match="bound"):
        session.run_with_iobinding(binding)


def test_values_are_arrays(session):
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    assert (value.shape(), value.data_type(), value.element_type()) == ([1, 2], "tensor(float)", 1)
    assert value.is_tensor() and value.has_value() and value.device_name() == "cpu"
    (y,) = session.run_with_ort_values(["y"], {"x": value})
    np.testing.assert_array_equal(y.numpy(), Y)
    np.testing.assert_array_equal(np.from_dlpack(y), Y)
    value.update_inplace(2 * X)
    assert session.run(None, {"x": value})[0].shape == (1, 2)
    assert ort.OrtValue.from_dlpack(X).numpy().tolist() == X.tolist()


def test_asynchronous_runs_call_back(session):
    said = threading.Event()
    heard = []

    def callback(outputs, user_data, error):
        heard.append((outputs, user_data, error))
        said.set()

    session.run_async(None, {"x": X}, callback, 7)
    assert said.wait(10)
    assert heard[0][0][0].tolist() == Y.tolist() and heard[0][1:] == (7, "")


def test_module_stands_in_for_onnxruntime(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnxruntime", ort)
    import onnxruntime
    from onnxruntime import InferenceSession
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument

    assert onnxruntime.InferenceSession is InferenceSession is ort.InferenceSession
    assert (Fail, InvalidArgument) == (ort.Fail, ort.InvalidArgument)
