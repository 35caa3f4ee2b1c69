"""ONNX's own cases, by its runner: some here; ``TFRT_ONNX_CASES=all pytest tests/test_backend.py`` runs all."""

import os

import pytest

pytest.importorskip("onnx")

import onnx.backend.test  # noqa: E402

import tfrt.backend  # noqa: E402

# What draws at random, and pictures that decoders may decode differently in the last bits.
DRAWN = ["bernoulli", "image_decoder_decode_jpeg"]
# ONNX's runner has no comparison for a sequence that begins with a tensor without dimensions.
NOT_COMPARED = ["loop16_seq_none"]
# A case of these operators is enough to see that values of all kinds go in and come out.
SOME = r"test_(add|relu|matmul|conv|softmax|cast_FLOAT_to_(FLOAT16|BFLOAT16)|string|sequence|optional|identity|if|loop|strnorm|split|gru|attention_3d)"

tests = onnx.backend.test.BackendTest(tfrt.backend, __name__)
tests.exclude("_cuda$")
for name in DRAWN + NOT_COMPARED:
    tests.exclude(name)
# These are downloaded.
tests.exclude("OnnxBackendRealModelTest")
for name in ["bvlc_alexnet", "densenet121", "inception", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"]:
    tests.exclude(f"test_{name}")
if os.environ.get("TFRT_ONNX_CASES") != "all":
    tests.include(SOME)

globals().update(tests.test_cases)
