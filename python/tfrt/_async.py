"""Calls that are awaited: how the end of a call reaches the event loop that waits for it."""

from __future__ import annotations

import itertools
import weakref

from . import _tfrt

_mailboxes: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


class _Waiting:
    """The calls that an event loop waits for."""

    def __init__(self, loop) -> None:
        self.mailbox = _tfrt.Mailbox()
        self.numbers = itertools.count()
        self.futures: dict = {}
        loop.add_reader(self.mailbox.fileno(), self.deliver)

    def deliver(self) -> None:
        for number in self.mailbox.take():
            future = self.futures.pop(number, None)
            if future is not None and not future.done():
                future.set_result(None)


def _waiting(loop) -> _Waiting:
    waiting = _mailboxes.get(loop)
    if waiting is None:
        waiting = _mailboxes[loop] = _Waiting(loop)
    return waiting


async def run_async(self, feed, *, outputs=None, deadline=None, memory=None, cancel=None):
    """Calls the model with inputs by name; the event loop goes on until the outputs are there.

    Cancelling the task stops the call: none of its kernels begins after that.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    waiting = _waiting(loop)
    number = next(waiting.numbers)
    future = waiting.futures[number] = loop.create_future()
    try:
        call = self._start(
            feed,
            waiting.mailbox,
            number,
            outputs=outputs,
            deadline=deadline,
            memory=memory,
            cancel=cancel,
        )
        if not call.is_over:
            try:
                await future
            except BaseException:
                call.cancel()
                raise
    finally:
        waiting.futures.pop(number, None)
    return call.result()


def add_methods(model) -> None:
    """Adds ``run_async`` to the class of models, which the extension declares."""
    model.run_async = run_async
