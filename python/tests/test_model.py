"""Models: what they say of themselves, how they are called, and what wrong calls are told."""

import pathlib
import threading
import time

import models
import numpy as np
import pytest

import tfrt


@pytest.fixture(scope="module")
def layer():
    return tfrt.Model(models.LAYER)


X = np.array([[1.0, 2.0]], np.float32)
Y = np.array([[2.0, 5.0]], np.float32)


def test_model_tells_names_types_and_symbolic_shapes(layer):
    (x,) = layer.inputs
    assert (x.name, x.dtype, x.shape, x.kind, x.type) == ("x", np.float32, ("N", 2), "tensor", "f32 [N, 2]")
    assert [output.name for output in layer.outputs] == ["y"]
    assert layer.properties["producer"] == "tfrt"
    assert repr(layer) == "Model(x: f32 [N, 2] -> y: f32 [N, 2])"
    fixed = tfrt.Model(models.LAYER, dims={"N": 3})
    assert fixed.inputs[0].shape == (3, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda layer: layer(X),
        lambda layer: layer(x=X),
        lambda layer: layer({"x": X}),
        lambda layer: layer.run({"x": X}),
        lambda layer: layer.run({"x": X}, outputs=["y"]),
        lambda layer: layer.run({"x": X}, outputs="y", deadline=60, memory=1 << 20),
        lambda layer: layer(x=[[1, 2]]),
        lambda layer: layer(x=tfrt.Tensor(X)),
        lambda layer: layer(x=tfrt.from_dlpack(X)),
        lambda layer: layer(x=memoryview(X)),
    ],
)
def test_model_is_called_in_many_ways(layer, call):
    outputs = call(layer)
    assert list(outputs) == ["y"]
    np.testing.assert_array_equal(outputs["y"], Y)


@pytest.mark.filterwarnings("ignore:precision bf16:RuntimeWarning")
def test_factors_are_rounded_where_the_processor_can():
    rounded = tfrt.Model(models.LAYER, precision="bf16")
    x = np.array([[1.0009765625, 2.0]], np.float32)
    np.testing.assert_allclose(rounded(x=x)["y"], Y, rtol=1 / 128)
    with pytest.raises(ValueError, match="precision: expected f32 or bf16, found 'f16'"):
        tfrt.Model(models.LAYER, precision="f16")


@pytest.mark.parametrize("source", [str(models.LAYER), models.LAYER, models.LAYER.read_bytes(), bytearray(models.LAYER.read_bytes())])
def test_model_is_opened_from_paths_and_bytes(source):
    np.testing.assert_array_equal(tfrt.Model(source)(x=X)["y"], Y)


@pytest.mark.parametrize(
    "feed, message",
    [
        ({}, "input 'x' is missing: the model takes f32 [N, 2]"),
        ({"z": X}, "the model has no input 'z': it takes x"),
        ({"x": X, "z": X}, "the model has no input 'z': it takes x"),
        ({"x": X.astype(np.float64)}, "input 'x' was expected to be f32 [N, 2], found f64 [1, 2]"),
        ({"x": X.T.copy()}, "input 'x' was expected to be f32 [N, 2], found f32 [2, 1]"),
        ({"x": [[0.5, 1, 2]]}, "input 'x' was expected to be f32 [N, 2], found f32 [1, 3]"),
        ({"x": X[0]}, "input 'x' was expected to be f32 [N, 2], found f32 [2]"),
        ({"x": "text"}, "input 'x' was expected to be f32 [N, 2], found str []"),
        ({"x": [["1", "2"]]}, "input 'x' was expected to be f32 [N, 2], found str [1, 2]"),
        ({"x": [[1j, 2]]}, "input 'x' was expected to be f32 [N, 2], found complex128 [1, 2]"),
        ({"x": None}, "input 'x': expected an array, found an object of type NoneType"),
        ({"x": object()}, "input 'x': expected an array, found an object of type object"),
        ({"x": {1: 2}}, "input 'x': expected an array, found an object of type dict"),
        ({"x": np.array([object()])}, "input 'x': expected strings or numbers, found an array of objects with an element of type object"),
        ({"x": np.array(["2020-01-01"], "M8[D]")}, "input 'x': expected numbers or strings, found an array of datetime64[D]"),
        ({1: X}, "expected names of inputs, found an object of type int"),
        ([X], "expected a dictionary of inputs by name, found an object of type list"),
        (None, "expected a dictionary of inputs by name, found an object of type NoneType"),
    ],
)
def test_wrong_inputs_are_refused_with_names_and_shapes(layer, feed, message):
    with pytest.raises(tfrt.InvalidArgument) as refused:
        layer.run(feed)
    assert str(refused.value) == message
    assert isinstance(refused.value, ValueError) and refused.value.kind == "InvalidArgument"
    assert X.flags.writeable


def test_wrong_calls_are_refused(layer):
    with pytest.raises(tfrt.InvalidArgument, match="2 inputs are given in order, but the model takes 1"):
        layer(X, X)
    with pytest.raises(tfrt.InvalidArgument, match="input 'x' is given twice"):
        layer(X, x=X)
    with pytest.raises(tfrt.NotFound, match="the model has no output 'z': it gives y"):
        layer.run({"x": X}, outputs=["y", "z"])
    with pytest.raises(tfrt.InvalidArgument, match="outputs: expected names"):
        layer.run({"x": X}, outputs=[1])
    with pytest.raises(TypeError):
        layer.run()


def test_extents_with_one_name_must_be_the_same():
    kind = {"x": "tensor<?xf32>", "y": "tensor<?xf32>"}
    add = models.of_text(kind, {"z": "tensor<?xf32>"}, '%z = "onnx.Add"(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>')
    with pytest.raises(tfrt.Error) as failed:
        add(x=np.zeros(2, np.float32), y=np.zeros(3, np.float32))
    assert "[2]" in str(failed.value) and "[3]" in str(failed.value)
    assert "test.mlir" in str(failed.value.location)


@pytest.mark.parametrize(
    "source, error, code",
    [
        ("nowhere.onnx", tfrt.OpenError, "TF0001"),
        (b"", tfrt.OpenError, None),
        (b"\x08\x08\x3a\xff", tfrt.OpenError, "TF1001"),
        (b"func.func @main() {\n  %x = tfrt.add.i32 %a, %a\n  tfrt.return\n}", tfrt.OpenError, "TF0201"),
        (b"\xff\xfe no model", tfrt.OpenError, None),
    ],
)
def test_what_is_no_model_is_refused_with_a_code(source, error, code):
    with pytest.raises(error) as refused:
        tfrt.Model(source, name="m.onnx")
    assert code is None or refused.value.code == code
    assert refused.value.problems


def test_place_of_a_mistake_is_a_field():
    with pytest.raises(tfrt.OpenError) as refused:
        tfrt.Model(b"func.func @main() {\n  %x = tfrt.add.i32 %a, %a\n  tfrt.return\n}", name="m.mlir")
    assert refused.value.location == ("m.mlir", 2, 21)
    assert "[TF0201]" in str(refused.value)


@pytest.mark.parametrize(
    "arguments, found",
    [((1,), "int"), ((None,), "NoneType"), (([],), "list"), (([1, 2],), "list"), ((np.zeros((2, 2))[::2],), "ndarray")],
)
def test_what_is_no_source_of_a_model_is_refused(arguments, found):
    with pytest.raises((tfrt.Error, TypeError)) as refused:
        tfrt.Model(*arguments)
    assert found in str(refused.value)


@pytest.mark.parametrize("dims", [{"M": 2}, {"N": 0}, {"N": -1}, {"N": "x"}, {1: 2}])
def test_dimensions_that_can_not_be_fixed_are_refused(dims):
    with pytest.raises(tfrt.Error, match="dim"):
        tfrt.Model(models.LAYER, dims=dims)


def test_errors_are_pickled():
    import pickle

    with pytest.raises(tfrt.OpenError) as refused:
        tfrt.Model(b"\x08\x08\x3a\xff")
    again = pickle.loads(pickle.dumps(refused.value))
    assert (type(again), str(again), again.problems) == (tfrt.OpenError, str(refused.value), refused.value.problems)


@pytest.mark.parametrize("deadline", [0, -1, -1e300, float("-inf")])
def test_deadline_in_the_past_fails_the_call(layer, deadline):
    with pytest.raises(TimeoutError) as failed:
        layer.run({"x": X}, deadline=deadline)
    assert isinstance(failed.value, tfrt.DeadlineExceeded)


@pytest.mark.parametrize("deadline", [float("nan"), "soon", object()])
def test_deadline_that_is_no_time_is_refused(layer, deadline):
    with pytest.raises(tfrt.InvalidArgument, match="deadline: expected seconds or a timedelta"):
        layer.run({"x": X}, deadline=deadline)


def test_deadlines_are_seconds_or_time_deltas(layer):
    import datetime

    for deadline in [None, 1e300, float("inf"), 60, datetime.timedelta(seconds=60)]:
        np.testing.assert_array_equal(layer.run({"x": X}, deadline=deadline)["y"], Y)
    long = models.long(4000)
    for deadline in [0.05, datetime.timedelta(milliseconds=50)]:
        with pytest.raises(tfrt.DeadlineExceeded):
            long.run({"x": np.eye(256, dtype=np.float32)}, deadline=deadline)


def test_memory_of_a_call_and_of_a_runtime_is_limited():
    x = np.zeros(1 << 20, np.float32)
    with pytest.raises(MemoryError) as failed:
        models.double().run({"x": x}, memory=1 << 10)
    assert isinstance(failed.value, tfrt.ResourceExhausted)
    with pytest.raises(tfrt.ResourceExhausted):
        models.double(runtime=tfrt.Runtime(threads=1, memory=1 << 20))(x=x)


def test_runtimes_have_threads():
    assert tfrt.Runtime(threads=3).threads == 3
    for threads in [0, 1 << 40]:
        with pytest.raises(tfrt.InvalidArgument, match="threads"):
            tfrt.Runtime(threads=threads)
    runtime = tfrt.Runtime(threads=2)
    assert models.double(runtime=runtime).runtime.threads == 2


def test_model_is_called_from_many_threads(layer):
    failures = []

    def work(n):
        try:
            for _ in range(50):
                x = np.full((n, 2), n, np.float32)
                assert layer(x=x)["y"].shape == (n, 2)
                # A thread of the runtime that is not given a processor lets go of an input later.
                until = time.monotonic() + 5
                while not x.flags.writeable and time.monotonic() < until:
                    layer(x=X)
                assert x.flags.writeable
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_other_threads_run_during_a_call():
    long = models.long(400)
    counted = 0
    over = threading.Event()

    def count():
        nonlocal counted
        while not over.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    long(x=np.eye(256, dtype=np.float32))
    over.set()
    thread.join()
    assert counted > 1000


def test_session_keeps_state():
    kind = "tensor<2xf32>"
    add = models.of_text({"x": kind, "h": kind}, {"hn": kind}, f'%hn = "onnx.Add"(%x, %h) : ({kind}, {kind}) -> {kind}')
    session = add.session({"h": "hn"}, initial={"h": np.array([10, 20], np.float32)})
    x = np.array([1, 2], np.float32)
    for _ in range(3):
        assert session.step(x=x) == {}
    assert session.read()["h"].tolist() == [13, 26]
    session.replace("h", np.zeros(2, np.float32))
    session.step(x)
    assert session.read()["h"].tolist() == [1, 2]
    session.reset()
    assert session.read()["h"].tolist() == [10, 20]
    with pytest.raises(tfrt.Error, match="there is an output 'hn'|no output 'zz'"):
        add.session({"h": "zz"})


def test_strings_go_in_and_come_out():
    model = models.same("tensor<?x!corert.string>")
    for words in [np.array(["to", "bé"]), np.array(["to", "bé"], object), ["to", "bé"], np.array([b"to", "bé".encode()], object)]:
        out = model(x=words)["y"]
        assert out.dtype == object and out.tolist() == ["to", "bé"]
    assert model(x=np.array([b"\xff"], object))["y"].tolist() == [b"\xff"]


def test_paths_of_other_kinds_are_taken(tmp_path):
    copy = tmp_path / "modèle.onnx"
    copy.write_bytes(models.LAYER.read_bytes())
    assert isinstance(copy, pathlib.Path)
    np.testing.assert_array_equal(tfrt.Model(copy)(x=X)["y"], Y)
