"""Other people's packages, run by onnxruntime or by ``tfrt.ort`` in its place: ``packages.py PACKAGE onnxruntime|tfrt``.

It writes what the package says, and how long it takes, as JSON.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import numpy as np


def timed(call, times: int = 5):
    """Returns what a call gives, and the least of some times in milliseconds."""
    result = call()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append((time.perf_counter() - begun) * 1e3)
    return result, min(taken)


def picture():
    """Draws lines of text."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (640, 160), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=36)
    draw.text((20, 20), "dataflow runtime 2026", fill="black", font=font)
    draw.text((20, 90), "ONNX models as programs", fill="black", font=font)
    return np.asarray(image)[:, :, ::-1].copy()


def rapidocr():
    """Reads the text of a picture: detection, classification and recognition."""
    from rapidocr import RapidOCR

    engine = RapidOCR()
    image = picture()
    found, milliseconds = timed(lambda: engine(image), 2)
    boxes = np.asarray(found.boxes).round().astype(int).tolist()
    scores = [round(float(score), 3) for score in found.scores]
    return {"texts": list(found.txts), "scores": scores, "boxes": boxes}, milliseconds


def magika():
    """Tells what kinds of files some texts are."""
    from magika import Magika

    own = Magika()
    texts = {
        "python": pathlib.Path(__file__).read_bytes(),
        "json": json.dumps({"a": [1, 2, 3], "b": {"c": "d"}} | {str(n): n for n in range(50)}).encode(),
        "html": b"<!DOCTYPE html><html><head><title>x</title></head><body>" + b"<p>some text</p>" * 50 + b"</body></html>",
        "rust": b"//! A file.\nuse std::fmt;\n\npub fn main() -> Result<(), fmt::Error> {\n    println!(\"{}\", 1);\n    Ok(())\n}\n" * 5,
    }

    def all_of():
        found = {name: own.identify_bytes(text) for name, text in texts.items()}
        return {name: [result.output.label, round(float(result.score), 3)] for name, result in found.items()}

    return timed(all_of)


def silero():
    """Tells where somebody speaks in a sound, chunk by chunk."""
    import torch
    from silero_vad import load_silero_vad

    model = load_silero_vad(onnx=True)
    rate = 16_000
    moments = np.arange(rate) / rate
    hum = sum(np.sin(2 * np.pi * 140 * n * moments) / n for n in range(1, 12))
    sound = (hum * (np.sin(2 * np.pi * 3 * moments) > 0) * 0.2).astype(np.float32)
    chunks = [torch.from_numpy(sound[at : at + 512]) for at in range(0, rate - 512, 512)]

    def all_of():
        model.reset_states()
        return [round(float(model(chunk, rate)), 4) for chunk in chunks]

    return timed(all_of)


def main() -> None:
    package, runtime = sys.argv[1:3]
    if runtime == "tfrt":
        import tfrt.ort

        sys.modules["onnxruntime"] = tfrt.ort
    said, milliseconds = {"rapidocr": rapidocr, "magika": magika, "silero": silero}[package]()
    print(json.dumps({"said": said, "milliseconds": round(milliseconds, 2)}))


if __name__ == "__main__":
    main()
