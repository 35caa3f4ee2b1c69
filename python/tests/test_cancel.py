"""Cancelling calls from other threads."""

import asyncio
import threading
import time

import models
import numpy as np
import pytest

import tfrt
import tfrt.ort as ort

LARGE = np.full((512, 512), 1e-3, np.float32)


def test_a_token_cancels_calls_that_wait():
    model = models.long(2000)
    token = tfrt.CancellationToken()
    threading.Timer(0.05, token.cancel).start()
    begun = time.monotonic()
    with pytest.raises(tfrt.Cancelled):
        model.run({"x": LARGE}, cancel=token)
    assert time.monotonic() - begun < 5 and token.is_cancelled
    with pytest.raises(tfrt.Cancelled):
        model.run({"x": np.ones((1, 1), np.float32)}, cancel=token)
    with pytest.raises(tfrt.Cancelled):
        asyncio.run(model.run_async({"x": LARGE}, cancel=token))
    # A kernel that ran when the call was cancelled may read a moment longer.
    deadline = time.monotonic() + 10
    while not LARGE.flags.writeable and time.monotonic() < deadline:
        time.sleep(0.01)
    assert LARGE.flags.writeable
    fresh = tfrt.CancellationToken()
    assert model.run({"x": np.ones((1, 1), np.float32)}, cancel=fresh)["y"].tolist() == [[1]]
    fresh.cancel()


def test_terminate_of_run_options_cancels_calls():
    session = ort.InferenceSession(str(models.LAYER))
    session._model = models.long(2000)
    options = ort.RunOptions()
    threading.Timer(0.05, lambda: setattr(options, "terminate", True)).start()
    with pytest.raises(ort.Fail):
        session.run(["y"], {"x": LARGE}, options)
    with pytest.raises(ort.Fail):
        session.run(["y"], {"x": np.ones((1, 1), np.float32)}, options)
    options.terminate = False
    assert session.run(["y"], {"x": np.ones((1, 1), np.float32)}, options)[0].tolist() == [[1]]
