"""Compares models on a simulated GPU with the processor: onnx_gpu.py target/debug/tfrt [MODEL]..

The command is one with the feature `gpu`. Models are those of `onnx_tools_models.py`, at reduced size: a residual
network, a mobile one, a U-net, an encoder, a decoder and others; or files that are named. Each runs once on the
processor, and under each of the five orders on a simulated GPU, which interprets all kernels of nodes that are there
and checks what they do. A line for each says how many nodes run there, and the most that an element differs, as a part
of the larger of itself and 1; the exit status is 1 if that is more than 1e-5, or if the simulator has found anything.

It needs numpy and onnx, and takes about two minutes.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy

ORDERS = ["eager", "lazy", "random", "longest-first", "starving"]
MOST = 1e-5
OPSET = 17


def made(folder):
    """Writes the models, and returns their files."""
    import onnx
    import onnx_tools_models

    for name, make in onnx_tools_models.MODELS.items():
        onnx.save(make(OPSET), folder / f"{name}.onnx")
    return sorted(folder.glob("*.onnx"))


def run(tfrt, model, folder, *options):
    """Runs a model on what its name and a seed give; returns its results by name, and what was told."""
    folder.mkdir(exist_ok=True)
    words = [tfrt, "run", model, "--random", "--seed", "3", "--output-dir", folder, "--output-format", "npy", *options]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()}")
    return {path.name: numpy.load(path) for path in folder.glob("*.npy")}, done.stderr


def difference(ours, theirs):
    """Returns the most that elements differ."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return float("inf")
    if ours.size == 0:
        return 0.0
    ours, theirs = ours.astype("f8"), theirs.astype("f8")
    worst = numpy.abs(ours - theirs) / numpy.maximum(1, numpy.abs(theirs))
    same = (ours == theirs) | (numpy.isnan(ours) & numpy.isnan(theirs))
    worst = numpy.where(same, 0.0, worst).max()
    return float("inf") if numpy.isnan(worst) else float(worst)


def compare(tfrt, model, folder):
    """Returns the line for a model, and whether it passed."""
    try:
        here, _ = run(tfrt, model, folder / f"{model.stem}-cpu")
        worst, told = 0.0, ""
        for order in ORDERS:
            options = ["--device", "gpu:0", "--gpu-driver", f"sim:{order}:7"]
            there, told = run(tfrt, model, folder / f"{model.stem}-{order}", *options)
            if there.keys() != here.keys():
                return f"{sorted(here)} on the processor, {sorted(there)} on the GPU", False
            worst = max([worst, *(difference(there[name], here[name]) for name in here)])
    except RuntimeError as error:
        return str(error), False
    placed = next((line for line in told.splitlines() if "nodes run on" in line), told.strip())
    return f"{worst:.1e}; {placed.removeprefix('note: ')}", worst <= MOST


def main():
    tfrt, files = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    all_passed = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in files or made(folder):
            line, passed = compare(tfrt, model, folder)
            print(f"{'passed' if passed else 'FAILED'} {model.stem}: {line}", flush=True)
            all_passed &= passed
    sys.exit(0 if all_passed else 1)


main()
