"""What notebooks show: profiles and graphs as pages, models as tables."""

from __future__ import annotations

import html
import json
import os

from . import _tfrt


class Page:
    """A page of HTML that needs nothing from elsewhere, and the document that it shows.

    In a notebook it is shown as it is; ``save`` writes it to a file for a browser.
    """

    def __init__(self, content: str, document: str) -> None:
        self.html = content
        self._document = document

    @property
    def document(self) -> dict:
        """What the page shows, as numbers and texts."""
        return json.loads(self._document)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        # A frame of its own keeps the styles and scripts of the page and of the notebook apart.
        style = "width:100%;height:640px;border:1px solid #ccc"
        return f'<iframe style="{style}" srcdoc="{html.escape(self.html, quote=True)}"></iframe>'

    def __repr__(self) -> str:
        return f"<Page of {len(self.html)} bytes: save(path) writes it>"


def profile(self) -> Page:
    """Returns what kernels did since the runtime was made with ``record=True``, as a page."""
    return Page(*self._profile())


def inspect(source, *, dims=None, name=None) -> Page:
    """Returns the operations of a model as a page: its graph as the file has it, with the shapes that follow from the inputs.

    ``source`` is a path or bytes, as of ``tfrt.Model``; ``dims`` fixes sizes of symbolic dimensions.
    """
    return Page(*_tfrt.graph_page(source, dims=dims, name=name))


def _table(self) -> str:
    rows = [(kind, value) for kind, values in (("input", self.inputs), ("output", self.outputs)) for value in values]
    cells = "".join(
        f"<tr><td>{kind}</td><td><code>{html.escape(value.name)}</code></td><td>{html.escape(value.type)}</td></tr>"
        for kind, value in rows
    )
    return f"<table><thead><tr><th></th><th>name</th><th>type</th></tr></thead><tbody>{cells}</tbody></table>"


def save_variables(self, path: str | os.PathLike) -> None:
    """Writes the variables that have names to a file: ``.safetensors`` or ``.npz``."""
    content = self._save(_is_npz(path))
    with open(path, "wb") as file:
        file.write(content)


def load_variables(self, path: str | os.PathLike) -> int:
    """Assigns the tensors of a file to the variables of their names, which are made if they are not there; all or none are
    assigned. Returns their number.
    """
    with open(path, "rb") as file:
        return self._load(file.read(), _is_npz(path))


def _is_npz(path: str | os.PathLike) -> bool:
    ending = os.path.splitext(os.fspath(path))[1]
    if ending not in (".npz", ".safetensors"):
        raise ValueError(f"'{os.fspath(path)}': expected a path that ends with .safetensors or .npz")
    return ending == ".npz"


def _ops(self):
    """The operations, called one at a time on this runtime, with those of its plugins."""
    from .ops import Ops

    return Ops(self)


def add_methods(model, runtime) -> None:
    """Adds what is written in Python to the classes that the extension declares."""
    model._repr_html_ = _table
    runtime.ops = property(_ops)
    runtime.profile = profile
    runtime.save_variables = save_variables
    runtime.load_variables = load_variables
