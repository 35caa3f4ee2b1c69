"""The command, by ``python -m tfrt``."""

import subprocess
import sys

import models


def run(*words):
    return subprocess.run([sys.executable, "-m", "tfrt", *words], capture_output=True, text=True, cwd=models.ROOT, timeout=60)


def test_command_runs_a_program():
    done = run("run", "examples/fizzbuzz.mlir")
    assert done.returncode == 0 and "FizzBuzz" in done.stdout + done.stderr


def test_command_checks_and_explains():
    assert run("check", "examples/layer.onnx").returncode == 0
    done = run("check", "nowhere.onnx")
    assert done.returncode == 1 and "TF0001" in done.stderr
    assert run("explain", "TF0201").returncode == 0
    assert run("no-such-command").returncode == 2
    assert "tfrt" in run("--version").stdout
