"""Pages of notebooks: profiles and graphs."""

import models
import numpy as np
import pytest

import tfrt


def test_profiles_tell_of_the_calls_of_a_runtime(tmp_path):
    runtime = tfrt.Runtime(threads=1, record=True)
    model = models.double(runtime=runtime)
    model(x=np.zeros(3, np.float32))
    page = runtime.profile()
    assert page.document["schema"] == "tfrt.profile/1"
    assert page._repr_html_().startswith("<iframe") and "</script>" not in page._repr_html_()
    page.save(tmp_path / "profile.html")
    assert (tmp_path / "profile.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(tfrt.Error, match="does not record"):
        tfrt.Runtime.shared().profile()


def test_graphs_are_those_of_the_file():
    page = tfrt.inspect(models.LAYER)
    assert page.document["schema"] == "tfrt.inspect-graph/1" and page.html.startswith("<!doctype html>")
    assert tfrt.inspect(models.LAYER.read_bytes(), dims={"N": 4}, name="four").document["file"] == "four"
    with pytest.raises(tfrt.OpenError):
        tfrt.inspect(b"\x08\x08\x3a\xff")
    with pytest.raises(tfrt.OpenError):
        tfrt.inspect("nowhere.onnx")


def test_models_are_shown_as_tables():
    table = tfrt.Model(models.LAYER)._repr_html_()
    assert "<td>input</td><td><code>x</code></td><td>f32 [N, 2]</td>" in table
