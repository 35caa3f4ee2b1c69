"""The examples of docs/python.md run, from first to last, in the folder of the repository."""

import re
import sys

import models
import pytest

PAGE = models.ROOT / "docs/python.md"


def test_examples_of_the_guide_run(monkeypatch, capsys):
    monkeypatch.chdir(models.ROOT)
    # An example puts a module in the place of another one.
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    text = PAGE.read_text()
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S))
    assert len(blocks) > 5
    names = {"__name__": "guide"}
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        # Lines of the page, so that a traceback tells them.
        code = "\n" * line + block.group(1)
        try:
            exec(compile(code, str(PAGE), "exec"), names)
        except Exception as error:
            pytest.fail(f"docs/python.md:{line}: {type(error).__name__}: {error}")
