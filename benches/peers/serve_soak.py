"""Soaks `tfrt serve`: requests that come at a fixed rate, whether answers do or not, while models are loaded again and
clients misbehave. Nothing may be lost, and memory, threads and descriptors stay what they are.

    cargo build --release -p tfrt --features tfrt/serve,tfrt/tls
    python benches/peers/serve_soak.py target/release/tfrt [SECONDS [RATE]]    # 60 s of 500 requests a second by default

Needs Linux and nothing but Python. Requests are JSON, binary, TensorFlow Serving's, gzip and gRPC, to a model that is loaded
again every two seconds, from two files that give different answers, and to one whose requests are joined into batches.
Latencies are from the moment at which a request was due, so that a server which stops for a while does not hide it. Ends with
status 1 if an answer is missing or wrong, or memory grows by more than one part in fifty from the second quarter to the last.
"""

import asyncio
import gzip
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from serve_frames import DATA, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, call_head, frame, message

LAYER = Path(__file__).resolve().parents[2] / "examples/layer.onnx"
X = struct.pack("<2f", 1, 2)
LENGTH = b"inference-header-content-length: %d\r\n"


def post(path, body, headers=b""):
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n" % (path, len(body), headers) + body


def requests_of(name):
    """Returns requests for one row, each with a function that takes the output out of the body of an answer."""
    text = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}'
    binary = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":8}}],"parameters":{"binary_data_output":true}}'
    infer, predict = b"/v2/models/%s/infer" % name, b"/v1/models/%s:predict" % name
    of_json = lambda body: tuple(json.loads(body)["outputs"][0]["data"])
    return [
        (post(infer, text), of_json),
        (post(infer, binary + X, LENGTH % len(binary)), lambda body: struct.unpack("<2f", body[-8:])),
        (post(predict, b'{"instances":[[1,2]]}'), lambda body: tuple(json.loads(body)["predictions"][0])),
        (post(infer, gzip.compress(text), b"content-encoding: gzip\r\n"), of_json),
    ]


class Connections:
    """Connections of HTTP/1, as many as there are requests at once."""

    def __init__(self, address):
        self.address, self.free, self.n_opened = address, [], 0

    async def ask(self, request):
        """Returns the status and the body of the answer."""
        # The server closes those that rest for 75 s.
        while self.free and self.free[-1][0].at_eof():
            self.free.pop()[1].close()
        if self.free:
            reader, writer = self.free.pop()
        else:
            reader, writer = await asyncio.open_connection(*self.address)
            self.n_opened += 1
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        # Some are closed, so that connections come and go, too.
        if random.random() < 0.02:
            writer.close()
        else:
            self.free.append((reader, writer))
        return int(head[9:12]), body


class Calls:
    """A connection of gRPC, on which calls run beside each other."""

    async def open(self, address):
        self.reader, self.writer = await asyncio.open_connection(*address)
        self.writer.write(PREFACE + frame(SETTINGS, 0, 0))
        self.pending, self.next = {}, 1
        self.reading = asyncio.create_task(self.read())
        return self

    def call(self, name):
        tensor = b"\n\1x\x12\4FP32\x1a\2\1\2"
        body = b"\n" + bytes([len(name)]) + name + b"\x2a" + bytes([len(tensor)]) + tensor + b"\x3a\x08" + X
        stream, self.next = self.next, self.next + 2
        self.pending[stream] = future, data = asyncio.get_running_loop().create_future(), bytearray()
        self.writer.write(frame(HEADERS, 4, stream, call_head("ModelInfer")) + frame(DATA, 1, stream, message(body)))
        return future

    async def read(self):
        try:
            await self.read_frames()
        finally:
            # What waits for an answer is told at once, so that the loss of a connection is seen as such.
            for future, _ in self.pending.values():
                if not future.done():
                    future.set_exception(ConnectionError("the connection of gRPC has ended"))

    async def read_frames(self):
        while True:
            head = await self.reader.readexactly(9)
            payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == DATA and payload:
                self.pending[stream][1].extend(payload)
                self.writer.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
            elif kind == PING and not flags & 1:
                self.writer.write(frame(PING, 1, 0, payload))
            elif kind == SETTINGS and not flags & 1:
                self.writer.write(frame(SETTINGS, 1, 0))
            elif kind in (RST_STREAM, GOAWAY):
                raise ConnectionError(f"frame {kind}: {payload.hex()}")
            if kind in (HEADERS, DATA) and flags & 1:
                future, data = self.pending.pop(stream)
                # Nobody waits any more for an answer that took too long.
                if not future.done():
                    future.set_result(bytes(data))


class Soak:
    def __init__(self, tfrt, seconds, rate):
        self.tfrt, self.seconds, self.rate = tfrt, seconds, rate
        self.wrong, self.n_right, self.n_loads, self.n_bad = [], 0, 0, 0
        self.late_us = [0] * 2048  # By the logarithm of the time, 32 steps for each doubling.
        self.samples = []
        self.behind = 0  # Seconds by which a request was sent late, for lack of a processor.

    def note(self, due, found):
        elapsed = max(1, int((time.perf_counter() - due) * 1e6))
        exponent = elapsed.bit_length() - 1
        step = ((elapsed << 5) >> exponent) & 31
        self.late_us[(exponent << 5) | step] += 1
        if found in self.expected:
            self.n_right += 1
        else:
            self.wrong.append(found)

    def late(self, part):
        """Returns the latency that so many of all had at most, in ms."""
        left = sum(self.late_us) * part
        for index, n in enumerate(self.late_us):
            left -= n
            if left <= 0:
                return (1 << (index >> 5)) * (1 + (index & 31) / 32) / 1000
        return 0

    async def one(self, due, kind):
        try:
            name = random.choice((b"layer", b"joined"))
            if kind == 4:
                if self.calls.reading.done():
                    self.calls = await Calls().open(self.address)
                data = await asyncio.wait_for(self.calls.call(name), 30)
                at = data.rfind(b"\x32\x08")
                found = struct.unpack("<2f", data[at + 2 : at + 10]) if at > 0 else data
            else:
                request, output = self.requests[name][kind]
                status, body = await asyncio.wait_for(self.connections.ask(request), 30)
                found = output(body) if status == 200 else (status, body)
        except Exception as error:
            found = repr(error)
        self.note(due, found)

    async def loads(self):
        """Loads the model again and again, of one file and of the other."""
        path = self.folder / "models/layer.onnx"
        while True:
            await asyncio.sleep(2)
            other = self.folder / "new.onnx"
            other.write_bytes(self.files[self.n_loads % 2])
            other.rename(path)
            status, body = await self.connections.ask(post(b"/v2/repository/models/layer/load", b""))
            assert status == 200, body
            self.n_loads += 1

    async def mischief(self):
        """Hangs up, sends nonsense, and leaves requests unfinished."""
        request = self.requests[b"layer"][0][0]
        while True:
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection(*self.address)
            match self.n_bad % 4:
                case 0:
                    writer.write(request)
                case 1:
                    writer.write(request[: random.randrange(len(request))])
                case 2:
                    writer.write(random.randbytes(200))
                case _:
                    writer.write(post(b"/v2/models/layer/infer", b"{"))
                    await reader.read(12)
            writer.close()
            self.n_bad += 1

    async def watch(self):
        """Looks at memory, threads and descriptors twice a second."""
        path = Path(f"/proc/{self.process.pid}")
        while True:
            lines = dict(line.split(":", 1) for line in (path / "status").read_text().splitlines())
            of = lambda name: int(lines[name].split()[0])
            self.samples.append((of("VmRSS") / 1024, of("Threads"), len(os.listdir(path / "fd"))))
            await asyncio.sleep(0.5)

    async def run(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tfrt-soak-"))
        models = self.folder / "models"
        models.mkdir()
        fine = LAYER.read_bytes()
        # The same model with another weight.
        three, five = struct.pack("<f", 3), struct.pack("<f", 5)
        assert fine.count(three) == 1
        self.files = [fine.replace(three, five), fine]
        (models / "layer.onnx").write_bytes(fine)
        shutil.copy(LAYER, models / "joined.onnx")
        address = self.folder / "address"
        self.process = subprocess.Popen(
            [self.tfrt, "serve", "--repository", models, "--listen", "127.0.0.1:0", "--address-file", address]
            + ["--allow-repository", "--batch", "joined=16,1ms"],
            stderr=subprocess.DEVNULL,
        )
        while not (address.exists() and address.read_text().endswith("\n")):
            assert self.process.poll() is None, "the server does not start"
            await asyncio.sleep(0.01)
        host, port = address.read_text().split()[0].split(":")
        self.address = (host, int(port))
        self.connections, self.calls = Connections(self.address), await Calls().open(self.address)
        self.requests = {name: requests_of(name) for name in (b"layer", b"joined")}
        self.expected = set()
        for file in self.files:
            (models / "layer.onnx").write_bytes(file)
            assert (await self.connections.ask(post(b"/v2/repository/models/layer/load", b"")))[0] == 200
            request, output = self.requests[b"layer"][0]
            self.expected.add(output((await self.connections.ask(request))[1]))
        assert len(self.expected) == 2, self.expected
        beside = [asyncio.create_task(work()) for work in (self.loads, self.mischief, self.watch)]
        running, began = set(), time.perf_counter()
        n_due = int(self.seconds * self.rate)
        for index in range(n_due):
            due = began + index / self.rate
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            self.behind = max(self.behind, time.perf_counter() - due)
            task = asyncio.create_task(self.one(due, index % 5))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)
        failed = [task.exception() for task in beside if task.done()]
        for task in beside:
            task.cancel()
        self.calls.reading.cancel()
        metrics = (await self.connections.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"))[1].decode()
        self.calls.writer.close()
        for _, writer in self.connections.free:
            writer.close()
        self.process.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(self.process.wait, 40)
        shutil.rmtree(self.folder)
        return self.report(n_due, failed, metrics, status)

    def report(self, n_due, failed, metrics, status):
        quarter = len(self.samples) // 4
        mean = lambda samples: sum(sample[0] for sample in samples) / max(1, len(samples))
        second, last = mean(self.samples[quarter : 2 * quarter]), mean(self.samples[3 * quarter :])
        is_flat = last <= second * 1.02 + 0.5
        in_flight = [line for line in metrics.splitlines() if line.startswith("tfrt_in_flight")]
        print(f"{n_due} requests in {self.seconds:g} s, {self.rate:g} a second: {self.n_right} right, {len(self.wrong)} lost or wrong")
        for found, n in Counter(map(str, self.wrong)).most_common(5):
            print(f"  {n} times {found}")
        print(f"sent {self.behind * 1000:.0f} ms late at most, by this program itself")
        print(f"{self.n_loads} loads; {self.n_bad} clients that misbehaved; {self.connections.n_opened} connections")
        print("ms from when each was due: " + ", ".join(f"{name} {self.late(part):.2f}" for name, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("most", 1))))
        print(f"MiB: {self.samples[0][0]:.1f} at first, {second:.1f} in the second quarter, {last:.1f} in the last, {max(s[0] for s in self.samples):.1f} at most")
        print(f"threads: {min(s[1] for s in self.samples)} to {max(s[1] for s in self.samples)}; descriptors: {min(s[2] for s in self.samples)} to {max(s[2] for s in self.samples)}")
        print(f"at the end: {'; '.join(in_flight)}; the server ended with {status}")
        is_fine = not self.wrong and not failed and is_flat and status == 0 and self.n_right == n_due
        for error in failed:
            print(f"beside: {error!r}")
        print("all is well" if is_fine else "FAILED")
        return is_fine


if __name__ == "__main__":
    seconds, rate = [float(text) for text in (sys.argv[2:] + ["60", "500"][len(sys.argv) - 2 :])]
    sys.exit(not asyncio.run(Soak(sys.argv[1], seconds, rate).run()))
