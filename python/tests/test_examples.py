"""The scripts and notebooks of examples/python run, those of other packages where these are installed."""

import ast
import asyncio
import inspect
import json
import runpy

import models
import pytest

FOLDER = models.ROOT / "examples/python"
# What scripts import beside NumPy and this package: who has not all of it can't run them.
NEEDS = {
    "flax_module": ["flax.nnx"],
    "jax_function": ["jax"],
    "keras_model": ["keras", "tensorflow"],
    "torch_module": ["torch", "onnxscript"],
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_scripts_run(path, capsys):
    for name in NEEDS[path.stem]:
        pytest.importorskip(name)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[-1].startswith("as ")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_cells_of_notebooks_run(path, monkeypatch):
    monkeypatch.chdir(models.ROOT)
    cells = json.loads(path.read_text())["cells"]
    names = {"__name__": "notebook"}
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert sources
    for number, source in enumerate(sources):
        # The kernel of a notebook awaits what stands at the top of a cell.
        code = compile(source, f"{path.name}:cell {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            asyncio.run(result)
