"""Operations that are called one at a time."""

import numpy as np
import pytest

import tfrt
from tfrt import ops

A = np.array([[1, 2], [3, 4]], np.float32)


def test_operations_are_functions_of_arrays():
    np.testing.assert_array_equal(np.asarray(ops.matmul(A, A)), A @ A)
    np.testing.assert_array_equal(np.asarray(ops.relu(-A)), np.zeros_like(A))
    np.testing.assert_array_equal(np.asarray(ops.add(A, 1)), A + 1)
    np.testing.assert_array_equal(np.asarray(ops.concat([A, A], axis=1)), np.concatenate([A, A], 1))
    np.testing.assert_allclose(np.asarray(ops.softmax(A, axis=-1)).sum(-1), [1, 1], rtol=1e-6)


def test_modules_of_the_package_are_found_when_they_are_asked_for():
    import subprocess
    import sys

    program = "import tfrt; print(tfrt.ops.relu([-1.0, 2.0]).tolist(), tfrt.ort.get_device())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[0.0, 2.0] CPU\n", done.stderr
    with pytest.raises(AttributeError, match="no_such"):
        tfrt.no_such


def test_results_are_operands_of_the_next():
    total = ops.add(ops.matmul(A, A), A)
    assert isinstance(total, tfrt.Tensor) and total.shape == (2, 2)
    np.testing.assert_array_equal(total.numpy(), A @ A + A)


def test_operations_of_a_format_have_its_name():
    assert "NonMaxSuppression" in dir(ops.onnx)
    np.testing.assert_array_equal(np.asarray(ops.tf.BiasAddGrad(A)), A.sum(0))


def test_shapes_that_do_not_fit_are_told_with_the_name():
    with pytest.raises(tfrt.InvalidArgument) as failed:
        ops.matmul(A, np.zeros((3, 2), np.float32))
    assert "matmul of" in str(failed.value) and "[2, 2]" in str(failed.value) and "[3, 2]" in str(failed.value)
    assert A.flags.writeable


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.matmul(),
        lambda: ops.matmul(A),
        lambda: ops.matmul(A, A, A),
        lambda: ops.matmul(A, object()),
        lambda: ops.matmul(A, A, no_such=1),
        lambda: ops.softmax(A, axis="x"),
        lambda: ops.concat([A, A], axis=1.5),
        lambda: ops.relu(None),
        lambda: ops.add(A, ["text"]),
        lambda: ops.add(type("Odd", (), {"dtype": None})(), A),
        lambda: ops.cast(A, to=[None]),
    ],
)
def test_wrong_calls_are_exceptions(call):
    with pytest.raises(tfrt.Error):
        call()


def test_what_is_no_operation_is_no_attribute():
    with pytest.raises(AttributeError, match="there is no operation 'matmull'"):
        ops.matmull
    with pytest.raises(AttributeError):
        ops.onnx.NoSuch


def test_operations_are_listed_with_their_documentation():
    names = dir(ops)
    assert len(names) > 100 and "matmul" in names
    assert "matmul(" in ops.matmul.documentation
    for name in names:
        assert getattr(ops, name) is not None
