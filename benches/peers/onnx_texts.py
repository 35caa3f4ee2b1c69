"""Pipelines of scikit-learn on texts: our results beside those of ONNX Runtime.

    onnx_texts.py COMMAND

Fits vectorizers of words and characters, alone and with a classifier behind them, converts them by `skl2onnx`, and runs
the files on texts in ONNX Runtime and by `COMMAND run`; prints the worst deviation of each. Fails if one is above 1e-6.

    pip install numpy onnxruntime scikit-learn skl2onnx
    python benches/peers/onnx_texts.py target/debug/tfrt
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnxruntime
from onnx import helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import StringTensorType
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

warnings.simplefilter("ignore")
LEARNED = [
    "This is the first document.", "This document is the second document, isn't it?", "And this is a third one!",
    "Is this the first document? x y z", "Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich.", "a_b c-d e.f 12 3.5",
]
LABELS = [0, 1, 1, 0, 2, 2]
TEXTS = [*LEARNED, "", "nothing known q", "THE FIRST; THE SECOND", "  document\tdocument\n document  ", "Äpfel und über"]
PIPELINES = {
    "tfidf words": TfidfVectorizer(),
    "tfidf words to 3": TfidfVectorizer(ngram_range=(1, 3), sublinear_tf=False),
    "tfidf pairs, l1": TfidfVectorizer(ngram_range=(2, 2), norm="l1"),
    "tfidf no norm": TfidfVectorizer(norm=None, smooth_idf=False),
    "tfidf cased": TfidfVectorizer(lowercase=False),
    "tfidf pattern": TfidfVectorizer(token_pattern="[a-zA-Z]+"),
    "tfidf long words": TfidfVectorizer(token_pattern=r"\b[a-z]{3,}\b"),
    "tfidf characters": TfidfVectorizer(analyzer="char", ngram_range=(1, 3)),
    "tfidf stop words": TfidfVectorizer(stop_words=["the", "is"]),
    "counts": CountVectorizer(),
    "counts to 2": CountVectorizer(ngram_range=(1, 2)),
    "counts, there or not": CountVectorizer(binary=True),
    "counts of characters": CountVectorizer(analyzer="char", ngram_range=(2, 4)),
    "tfidf, regression": make_pipeline(TfidfVectorizer(), LogisticRegression()),
    "counts, bayes": make_pipeline(CountVectorizer(ngram_range=(1, 2)), MultinomialNB()),
    "characters, regression": make_pipeline(TfidfVectorizer(analyzer="char", ngram_range=(1, 2)), LogisticRegression()),
}


def rows(value):
    """A result as rows of numbers: of maps, which are pairs in JSON if their keys are numbers, the values."""
    if isinstance(value, list) and isinstance(value[0], dict):
        value = [list(one.values()) for one in value]
    found = numpy.asarray(value, numpy.float64)
    return found[:, :, 1] if found.ndim == 3 else found


def main():
    command, failed = pathlib.Path(sys.argv[1]).resolve(), False
    onnxruntime.set_default_logger_severity(4)
    for name, pipeline in PIPELINES.items():
        pipeline.fit(LEARNED, LABELS)
        try:
            proto = to_onnx(pipeline, initial_types=[("x", StringTensorType([None, 1]))])
        except Exception as error:
            print(f"{name}: no file: {str(error)[:200]}")
            continue
        for node in proto.graph.node:
            if node.op_type == "StringNormalizer":
                # Not every system has the default of ONNX Runtime, en_US.UTF-8.
                node.attribute.append(helper.make_attribute("locale", "C.UTF-8"))
        content = proto.SerializeToString()
        texts = numpy.array(TEXTS, object).reshape(-1, 1)
        try:
            session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            theirs = session.run(None, {"x": texts})
        except Exception as error:
            print(f"{name}: refused by ONNX Runtime: {str(error)[:200]}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "model.onnx").write_bytes(content)
            (folder / "x.json").write_text(json.dumps(texts.tolist()))
            arguments = [command, "run", "model.onnx", "--input", "x=x.json", "--output-dir", "out", "--output-format", "json"]
            ran = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
            if ran.returncode:
                print(f"{name}: {ran.stderr.strip()[:600]}")
                failed = True
                continue
            ours = [json.loads((folder / "out" / f"{output.name}.json").read_text()) for output in session.get_outputs()]
        pairs = [(rows(own), rows(other)) for own, other in zip(ours, theirs)]
        away = [numpy.abs(own - other).max(initial=0) if own.shape == other.shape else numpy.inf for own, other in pairs]
        failed |= max(away) > 1e-6
        print(f"{name}: {max(away):.1e}, {' and '.join(str(list(own.shape)) for own, _ in pairs)}")
    sys.exit(bool(failed))


main()
