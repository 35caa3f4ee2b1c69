"""The types that the package declares are those that it has."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")


def test_stubs_are_those_of_the_module():
    check = [sys.executable, "-m", "mypy.stubtest", "tfrt._tfrt", "--concise"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
