"""Calls that are awaited, cancelled and interrupted."""

import asyncio
import os
import signal
import threading
import time

import models
import numpy as np
import pytest

import tfrt

EYE = np.eye(256, dtype=np.float32)


@pytest.fixture(scope="module")
def long():
    return models.long(4000)


def test_many_calls_are_awaited_at_once():
    model = models.double()

    async def main():
        calls = [model.run_async({"x": np.full(n, n, np.float32)}) for n in range(1000)]
        return await asyncio.gather(*calls)

    for n, outputs in enumerate(asyncio.run(main())):
        assert outputs["y"].shape == (n,) and (outputs["y"] == 2 * n).all()


def test_loop_goes_on_while_a_call_runs():
    model = models.long(400)

    async def main():
        task = asyncio.create_task(model.run_async({"x": EYE}))
        turns = 0
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        return turns, await task

    turns, outputs = asyncio.run(main())
    assert turns > 10
    np.testing.assert_array_equal(outputs["y"], EYE)


def test_cancelling_the_task_stops_the_call(long):
    async def main():
        task = asyncio.create_task(long.run_async({"x": EYE}))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(long.run_async({"x": EYE}), 0.05)

    asyncio.run(main())
    before = time.process_time()
    time.sleep(0.3)
    # A kernel that has begun ends; no further one begins.
    assert time.process_time() - before < 0.2


def test_mistakes_and_deadlines_are_raised_where_they_are_awaited(long):
    async def main():
        with pytest.raises(tfrt.InvalidArgument, match="it takes x"):
            await long.run_async({"z": EYE})
        with pytest.raises(tfrt.DeadlineExceeded):
            await long.run_async({"x": EYE}, deadline=0.02)
        with pytest.raises(tfrt.DeadlineExceeded):
            await long.run_async({"x": EYE}, deadline=-1)
        with pytest.raises(tfrt.NotFound):
            await long.run_async({"x": EYE}, outputs=["z"])

    asyncio.run(main())


def test_loops_of_several_threads_and_after_each_other():
    model = models.double()

    async def main():
        return (await model.run_async({"x": np.ones(1, np.float32)}))["y"][0]

    results = []
    threads = [threading.Thread(target=lambda: results.append(asyncio.run(main()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2] * 4
    assert [asyncio.run(main()) for _ in range(20)] == [2] * 20


def test_loop_that_ends_before_the_call_is_no_harm(long):
    async def main():
        asyncio.ensure_future(long.run_async({"x": EYE}))
        await asyncio.sleep(0.02)

    asyncio.run(main())


def test_interrupt_ends_a_long_call(long):
    def interrupt():
        nonlocal sent
        sent = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    sent = 0.0
    x = EYE.copy()
    timer = threading.Timer(0.1, interrupt)
    # Who is started in the background by a shell has the signal ignored, and Python leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            long.run({"x": x})
    finally:
        signal.signal(signal.SIGINT, before)
    # 5 ms on a machine with nothing else to do.
    assert time.perf_counter() - sent < 0.5
    timer.join()


def run(program):
    import subprocess
    import sys

    program = program.format(tests=os.path.dirname(__file__))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_interpreter_ends_during_a_call():
    program = """
import sys, threading
sys.path.insert(0, {tests!r})
import models, numpy as np
long = models.long(4000)
thread = threading.Thread(target=lambda: long(x=np.eye(256, dtype=np.float32)), daemon=True)
thread.start()
print("the end")
"""
    assert run(program) == "the end\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_is_told_that_it_lacks_threads():
    program = """
import os, sys
sys.path.insert(0, {tests!r})
import models, numpy as np, tfrt
model = models.double()
x = np.ones(1, np.float32)
model(x=x)
child = os.fork()
for call in [lambda: model(x=x), lambda: models.double(), lambda: tfrt.Runtime(), lambda: tfrt.ops.relu(x)]:
    try:
        call()
        if child == 0:
            os._exit(1)
    except tfrt.Error as error:
        if child != 0 or "forked" not in str(error):
            os._exit(2)
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert run(program) == "0\n"
