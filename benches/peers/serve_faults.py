"""Does to `tfrt serve` what clients, disks and operators do by mistake or on purpose, and prints a table: the deed, what came
back, and the memory, threads and descriptors of the server before, at most, and after.

    cargo build --release -p tfrt --features tfrt/serve,tfrt/tls
    python benches/peers/serve_faults.py target/release/tfrt [WORD ..]    # rows with one of the words, all by default

Each row has a server of its own, whose requests are answered before and after. Needs Linux and nothing but Python; rows on
TLS need `openssl`. Takes three minutes, since some rows wait for limits of 75 s. Ends with status 1 if a row is not as
expected: the server has ended, another client is not answered, memory grows by more than the row may take, or threads or
descriptors are left.
"""

import contextlib
import gzip
import json
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from serve_frames import (
    CONTINUATION,
    DATA,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    call_head,
    frame,
    get_head,
    message,
    opened,
    speak,
)

LAYER = Path(__file__).resolve().parents[2] / "examples/layer.onnx"
GOOD = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,2]}]}'
INFER = b"/v2/models/layer/infer"
ROWS = []


def row(deed, mib=8, options=(), **more):
    """Adds a row: a function that is given a server, and returns what came back. `mib` is what memory may grow by."""

    def add(function):
        ROWS.append((deed, function, mib, list(options), more))
        return function

    return add


class Server:
    """A server, which is killed in the end."""

    def __init__(self, tfrt, options, **more):
        self.folder = Path(tempfile.mkdtemp(prefix="tfrt-faults-"))
        shutil.copy(LAYER, self.folder / "layer.onnx")
        self.is_encrypted = "--tls-cert" in options
        options = [option.replace("DIR", str(self.folder)) for option in options]
        address = self.folder / "address"
        command = [tfrt, "serve", "--repository", str(self.folder), "--listen", "127.0.0.1:0", "--address-file", str(address)]
        if prepare := more.pop("before", None):
            prepare(self.folder)
        more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more}
        self.process = subprocess.Popen(command + options, **more)
        until = time.monotonic() + 20
        while not (address.exists() and address.read_text().endswith("\n")):
            assert time.monotonic() < until and self.process.poll() is None, "the server does not start"
            time.sleep(0.005)
        host, port = address.read_text().split()[0].split(":")
        self.address = (host, int(port))

    def connect(self, timeout=10):
        return socket.create_connection(self.address, timeout=timeout)

    def state(self):
        """Returns memory now and at most in MiB, threads and descriptors."""
        path = Path(f"/proc/{self.process.pid}")
        lines = dict(line.split(":", 1) for line in (path / "status").read_text().splitlines())
        of = lambda name: int(lines[name].split()[0])
        return of("VmRSS") / 1024, of("VmHWM") / 1024, of("Threads"), len(os.listdir(path / "fd"))

    def ask(self, request, timeout=10):
        """Sends bytes on a connection of their own, and returns the status and the message of the answer."""
        with self.connect(timeout) as stream:
            return ask(stream, request)

    def is_well(self):
        if self.is_encrypted:
            context = ssl.create_default_context(cafile=str(self.folder / "cert.pem"))
            with context.wrap_socket(self.connect(), server_hostname="localhost") as stream:
                return ask(stream, post(GOOD))[0] == 200
        return self.ask(post(GOOD))[0] == 200

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def post(body, path=INFER, headers=b"", length=None):
    length = len(body) if length is None else length
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n" % (path, length, headers) + body


def ask(stream, request):
    """Returns the status and the message of the answer; 0 and a word if the connection ends without one."""
    try:
        stream.sendall(request)
    except (ConnectionError, TimeoutError):
        pass  # The answer may be there.
    read = b""
    try:
        while b"\r\n\r\n" not in read:
            more = stream.recv(65536)
            if not more:
                return 0, "closed"
            read += more
        head, body = read.split(b"\r\n\r\n", 1)
        lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        while lengths and len(body) < int(lengths[0]):
            more = stream.recv(65536)
            if not more:
                break
            body += more
    except TimeoutError:
        return 0, "no answer"
    except ConnectionError:
        return 0, "reset"
    try:
        text = json.loads(body).get("error", "")
    except (ValueError, AttributeError):
        text = ""
    return int(head.split(b" ")[1]), text


def all_at_once(n, work):
    with ThreadPoolExecutor(min(n, 64)) as pool:
        return list(pool.map(work, range(n)))


def counted(answers):
    """Returns answers as text: how often each status came."""
    found = {}
    for answer in answers:
        found[answer] = found.get(answer, 0) + 1
    return ", ".join(f"{status} ({n} times)" if n > 1 else f"{status}" for status, n in sorted(found.items(), key=str))


# Clients of HTTP/1.


@row("200 heads that come byte by byte for 100 s")
def slow_heads(server):
    began = time.monotonic()
    streams = [server.connect() for _ in range(200)]
    head = b"GET /v2 HTTP/1.1\r\nhost: " + b"x" * 500
    ended = set()
    for at in range(100):
        for index, stream in enumerate(streams):
            try:
                stream.sendall(head[at : at + 1])
            except ConnectionError:
                ended.add(index)
        if len(ended) == 200:
            break
        time.sleep(1)
    assert len(ended) == 200, len(ended)
    return f"all closed within {time.monotonic() - began:.0f} s"


@row("200 bodies of which a byte comes each second")
def slow_bodies(server):
    streams = [server.connect(30) for _ in range(200)]
    for stream in streams:
        stream.sendall(post(GOOD, length=1000))
    began = time.monotonic()
    answers = [ask(stream, b"")[0] for stream in streams]
    assert set(answers) == {408}, answers
    return f"408 after {time.monotonic() - began:.1f} s"


@row("2,000 clients that hang up in the middle of a body")
def hang_ups(server):
    for index in range(2000):
        with server.connect() as stream:
            stream.sendall(post(GOOD)[: -1 - index % (len(GOOD) - 1)])
    return "nothing, to nobody"


@row("a head of 1 MiB; 10,000 headers; a path of 60 KB")
def huge_heads(server):
    heads = [
        b"GET /v2 HTTP/1.1\r\na: " + b"x" * (1 << 20) + b"\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
        b"GET /" + b"x" * 60_000 + b" HTTP/1.1\r\n\r\n",
    ]
    answers = [server.ask(head)[0] for head in heads]
    # A client that is still sending may hear nothing but the end.
    assert all(answer in (0, 414, 431) for answer in answers), answers
    return counted(answers)


@row("a body of 1 TB by its length; one of 100 MB in chunks", mib=72)
def huge_bodies(server):
    chunked = b"POST %s HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" % INFER
    chunks = (b"10000\r\n" + b" " * 65536 + b"\r\n") * 1600
    answers = [server.ask(post(b"", length=10**12))[0], server.ask(chunked + chunks)[0]]
    assert answers[0] == 413 and answers[1] in (0, 413), answers
    return counted(answers)


@row("lengths and chunks that contradict each other: 8 requests")
def smuggled(server):
    begin = b"POST %s HTTP/1.1\r\nhost: x\r\n" % INFER
    requests = [
        begin + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        begin + b"content-length: 5, 6\r\n\r\nabcdef",
        begin + b"content-length: -1\r\n\r\n",
        begin + b"content-length: 99999999999999999999999\r\n\r\n",
        begin + b"content-length: x\r\n\r\n",
        begin + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        begin + b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        begin + b"transfer-encoding: identity, gzip\r\n\r\n",
    ]
    answers = [server.ask(request)[0] for request in requests]
    assert set(answers) <= {400, 411}, answers
    both = begin + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"
    answers.append(server.ask(both)[0])
    return counted(answers)


@row("64 bodies of gzip at once that become 1 GiB each, and 3 that are broken, under --max-bytes 128 MiB", mib=160, options=["--max-bytes", "134217728"])
def bombs(server):
    zeros = gzip.compress(bytes(1 << 20)) * 1024
    gzipped = b"content-encoding: gzip\r\n"
    answers = all_at_once(64, lambda _: server.ask(post(zeros, headers=gzipped), 60)[0])
    assert set(answers) <= {413, 503, 0}, answers
    whole = gzip.compress(GOOD)
    broken = [server.ask(post(body, headers=gzipped))[0] for body in (whole[:-9], b"x" * 100, whole[:20] + b"\xff" * 9)]
    assert broken == [400] * 3, broken
    return counted(answers + broken)


@row("16 bodies in chunks, of 8 MB each, under --max-bytes 1 MB", mib=32, options=["--max-bytes", "1000000"])
def uncounted(server):
    body = b"POST %s HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" % INFER
    body += (b"10000\r\n" + b" " * 65536 + b"\r\n") * 128
    answers = all_at_once(16, lambda _: server.ask(body)[0])
    assert answers.count(503) + answers.count(0) >= 14, answers
    return counted(answers)


@row("10,000 connections that say nothing, for 80 s", mib=120)
def idle_connections(server):
    streams, n_closed = [], 0
    for _ in range(10_000):
        stream = server.connect()
        stream.setblocking(False)
        streams.append(stream)
    time.sleep(1)
    closed_now = sum(is_closed(stream) for stream in streams)
    time.sleep(80)
    n_closed = sum(is_closed(stream) for stream in streams)
    for stream in streams:
        stream.close()
    assert n_closed == 10_000, n_closed
    return f"{closed_now} closed at once, all after 80 s"


def is_closed(stream):
    try:
        return stream.recv(100) is not None
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@row("32 clients that send 8 MiB, ask for as much, and read nothing", mib=544)
def unread(server):
    before, n_rows = server.state()[3], 1 << 20
    body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,2],"parameters":{"binary_data_size":%d}}],"parameters":{"binary_data_output":true}}'
    head = body % (n_rows, n_rows * 8)
    request = post(head + bytes(n_rows * 8), headers=b"inference-header-content-length: %d\r\n" % len(head))
    streams = [server.connect(60) for _ in range(32)]
    for stream in streams:
        stream.sendall(request)
    began = time.monotonic()
    while server.state()[3] > before + 1:
        assert time.monotonic() - began < 90, "still held"
        time.sleep(0.5)
    return f"closed after {time.monotonic() - began:.0f} s"


# Tensors that are none.


@row("28 wrong tensors: lengths, types, names, shapes, JSON")
def wrong_tensors(server):
    def tensor(**changes):
        it = {"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]} | changes
        return json.dumps({"inputs": [{key: value for key, value in it.items() if value is not None}]}).encode()

    bodies = [tensor(shape=shape) for shape in ([-1, 2], [2**62, 4], [1] * 200, [0.5], "x", None, [3, 2], [2])]
    bodies += [tensor(datatype=datatype) for datatype in ("FP64", "", "fp32", "BYTES", 7, None, "FP16")]
    bodies += [tensor(data=data) for data in ([], [1], [1, 2, 3], ["a", 1], {}, "1", [[1], [2, [3]]], None, [1e999, 1])]
    bodies += [b"", b"{", b"[]", b"{}"]
    found = [server.ask(post(body))[0] for body in bodies]
    head = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":%d}}]}'
    for size, length, n_bytes in ((8, 10**9, 8), (8, -5, 8), (2**63, None, 8), (-8, None, 8), (8, None, 7), (8, None, 9), (8, 3, 8)):
        json_part = head % size
        length = len(json_part) if length is None else length
        header = b"inference-header-content-length: %d\r\n" % length
        found.append(server.ask(post(json_part + bytes(n_bytes), headers=header))[0])
    deep = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":' + b"[" * 100_000
    found.append(server.ask(post(deep))[0])
    # 1e999 is read as infinity, as Python writes and reads it, or refused.
    assert sum(status == 400 for status in found) >= len(found) - 1, found
    return counted(found)


@row("5 million empty strings in 16 MB", mib=32)
def strings(server):
    many = b",".join([b'""'] * 5_000_000)
    body = b'{"inputs":[{"name":"x","datatype":"BYTES","shape":[5000000],"data":[' + many + b"]}]}"
    answer = server.ask(post(body))
    assert answer[0] == 400, answer
    return f"{answer[0]}"


@row("random changes of good requests on 20,000 connections", mib=24)
def near_requests(server):
    generator = random.Random(7)
    starts = [post(GOOD), PREFACE + frame(SETTINGS, 0, 0), PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 5, 1, get_head())]
    starts.append(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, call_head("ModelInfer")) + frame(DATA, 1, 1, message(b"\n\5layer")))
    kinds = {}

    def one(index):
        bytes_ = bytearray(starts[index % len(starts)])
        for _ in range(1 + index % 5):
            at = generator.randrange(len(bytes_))
            match generator.randrange(3):
                case 0:
                    bytes_[at] ^= 1 << generator.randrange(8)
                case 1:
                    bytes_[at] = generator.choice([0, 1, 127, 128, 255])
                case _:
                    del bytes_[at : at + generator.randrange(9)]
        with server.connect() as stream:
            with contextlib.suppress(OSError):
                stream.sendall(bytes_)
                stream.shutdown(socket.SHUT_WR)
                answer = stream.recv(12)
                kind = answer[9:12].decode() if answer.startswith(b"HTTP") else "frames" if answer else "closed"
                kinds[kind] = kinds.get(kind, 0) + 1

    all_at_once(20_000, one)
    return ", ".join(f"{kind} ({n} times)" for kind, n in sorted(kinds.items()))


# Frames of HTTP/2.


def attack(server, frames, seconds=2):
    """Opens a connection, sends frames, and returns in words how it ended."""
    with server.connect(seconds) as stream:
        return speak(stream, frames)


@row("100,000 streams that are reset as they are opened")
def rapid_reset(server):
    frames = (frame(HEADERS, 5, 1 + 2 * n, get_head()) + frame(RST_STREAM, 0, 1 + 2 * n, bytes(4)) for n in range(100_000))
    return attack(server, frames)


@row("the same with calls of models, on 8 connections")
def rapid_reset_of_calls(server):
    def one(_):
        each = lambda n: (
            frame(HEADERS, 4, 1 + 2 * n, call_head("ModelInfer")) + frame(DATA, 1, 1 + 2 * n, message(b"\n\5layer")) + frame(RST_STREAM, 0, 1 + 2 * n, bytes(4))
        )
        return attack(server, map(each, range(20_000)))

    return counted(all_at_once(8, one))


@row("500,000 settings; 500,000 pings; 1,000,000 windows; nothing is read")
def floods(server):
    found = []
    for each, n in (
        (frame(SETTINGS, 0, 0, b"\0\4\0\1\0\0"), 500_000),
        (frame(PING, 0, 0, bytes(8)), 500_000),
        (frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"), 1_000_000),
    ):
        with server.connect(2) as stream:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                stream.sendall(PREFACE + frame(SETTINGS, 0, 0))
                for _ in range(n // 1000):
                    stream.sendall(each * 1000)
                found.append("taken")
            except TimeoutError:
                found.append("not read on")
            except ConnectionError:
                found.append("closed")
            assert server.is_well(), "others are not answered"
    return ", ".join(found)


@row("a head without end in 100 MB of continuations; empty ones; 16 KiB of fields each")
def continuations(server):
    begin = frame(HEADERS, 0, 1, get_head())
    padding = b"\0\1a\x7f\xff\x7e" + b"x" * 16_000
    found = [attack(server, [begin] + [frame(CONTINUATION, 0, 1, padding[:16_000])] * 6400)]
    found.append(attack(server, [begin] + [frame(CONTINUATION, 0, 1, b"")] * 200_000))
    fields = b"".join(b"\0\2a%c\x64" % (97 + n % 26) + b"y" * 100 for n in range(150))
    found.append(attack(server, [begin] + [frame(CONTINUATION, 0, 1, fields)] * 2000))
    return ", ".join(found)


@row("data beyond windows; frames of 16 MiB; even streams; broken HPACK; empty data")
def malformed(server):
    opened_ = frame(HEADERS, 4, 1, get_head())
    found = [
        attack(server, [opened_] + [frame(DATA, 0, 1, bytes(16_000))] * 2000),
        attack(server, [b"\xff\xff\xff\0\0\0\0\0\1" + bytes(1000)]),
        attack(server, [frame(HEADERS, 5, 2, get_head())]),
        attack(server, [frame(HEADERS, 5, 1, b"\xff" * 40)]),
        attack(server, [opened_] + [frame(DATA, 0, 1, b"")] * 300_000),
    ]
    return ", ".join(found)


@row("100 streams that ask for /v2 and let nothing through their windows, 50 connections", mib=48)
def no_window(server):
    settings = frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0")
    streams = []
    for _ in range(50):
        stream = server.connect()
        stream.sendall(PREFACE + settings + b"".join(frame(HEADERS, 5, 1 + 2 * n, get_head()) for n in range(100)))
        streams.append(stream)
    time.sleep(1)
    assert server.is_well()
    for stream in streams:
        stream.close()
    return "heads alone"


# Calls of gRPC.


@row("half messages on 1,152 streams", mib=24)
def half_messages(server):
    streams = []
    for _ in range(9):
        stream = server.connect(20)
        call = lambda n: frame(HEADERS, 4, 1 + 2 * n, call_head("ModelInfer")) + frame(DATA, 0, 1 + 2 * n, b"\0\0\0\1\0abc")
        stream.sendall(PREFACE + frame(SETTINGS, 0, 0) + b"".join(map(call, range(128))))
        streams.append(stream)
    time.sleep(1)
    during = server.ask(post(GOOD))[0]
    time.sleep(6)
    after = server.ask(post(GOOD))[0]
    assert after == 200, after
    return f"another client: {during} meanwhile, {after} after 7 s"


@row("messages of 4 GiB by their length, compressed, broken, with a shape of 2^40 in 30 bytes")
def wrong_messages(server):
    tensor = b"\n\1x\x12\4FP32\x1a\6\x80\x80\x80\x80\x80\x20"
    bodies = [b"\0\xff\xff\xff\xffabc", b"\1\0\0\0\3abc", message(b"\xff" * 20), message(b"\n\5layer\x2a" + bytes([len(tensor)]) + tensor)]
    return ", ".join(opened(server.connect(10), "ModelInfer", body) for body in bodies)


# Models and the disk.


def change(name, verb=b"load"):
    return post(b"", path=b"/v2/repository/models/%s/%s" % (name, verb))


@row("models that vanish, are broken, empty, folders or fine again, each loaded again", options=["--allow-repository"], mib=16)
def models(server):
    path, fine = server.folder / "layer.onnx", LAYER.read_bytes()
    found = []
    for content in (fine[:60], b"", b"nothing", None, fine):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        found.append(server.ask(change(b"layer"))[0])
        assert server.is_well(), content
    path.unlink()
    path.mkdir()
    found.append(server.ask(change(b"layer"))[0])
    assert server.is_well()
    path.rmdir()
    path.write_bytes(fine)
    assert found[-2] == 200 and all(status in (400, 404) for status in found[:4] + found[5:]), found
    return counted(found) + "; the old one is served on"


@row("a model that is written over in place while it is called and loaded, 300 times", options=["--allow-repository"], mib=24)
def overwritten(server):
    path, fine = server.folder / "layer.onnx", LAYER.read_bytes()
    is_over, answers = threading.Event(), []

    def calls():
        while not is_over.is_set():
            answers.append(server.ask(post(GOOD))[0])

    thread = threading.Thread(target=calls)
    thread.start()
    loads = []
    for n in range(300):
        path.write_bytes(fine[: n % len(fine)])
        loads.append(server.ask(change(b"layer"))[0])
        path.write_bytes(fine)
        loads.append(server.ask(change(b"layer"))[0])
    is_over.set()
    thread.join()
    assert set(answers) == {200} and loads[1::2] == [200] * 300, (counted(answers), counted(loads))
    return f"calls: {counted(answers)}; loads: {counted(loads)}"


def compiled(folder):
    subprocess.run([sys.argv[1], "compile", str(LAYER), "-o", str(folder / "own.bef")], check=True)


@row("a compiled model whose file is cut, and filled with noise, while it is served", options=["--allow-repository"], before=compiled)
def cut_artifact(server):
    path = server.folder / "own.bef"
    whole = path.read_bytes()
    call = post(GOOD, path=b"/v2/models/own/infer")
    found = [server.ask(call)[0]]
    for content in (b"", whole[:100], random.Random(1).randbytes(len(whole))):
        with open(path, "r+b") as file:
            file.truncate(0)
            file.write(content)
        found += [server.ask(call)[0], server.ask(change(b"own"))[0]]
    path.write_bytes(whole)
    found.append(server.ask(change(b"own"))[0])
    return counted(found)


@row("its messages go to a disk that is full", stdout=open("/dev/full", "wb"), stderr=open("/dev/full", "wb"), options=["--allow-repository"])
def full_disk(server):
    found = [server.ask(change(b"nope"))[0], server.ask(change(b"layer"))[0], server.ask(post(b"{"))[0]]
    server.process.send_signal(signal.SIGTERM)
    return f"{counted(found)}; it ends with {server.process.wait(10)}"


# Limits, deadlines and the end.


@row("40 descriptors in all, 100 connections", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)), options=["--allow-repository"])
def descriptors(server):
    streams = [server.connect() for _ in range(100)]
    with contextlib.suppress(OSError):
        found = server.ask(post(GOOD), 2)
    for stream in streams:
        stream.close()
    time.sleep(0.5)
    return f"meanwhile {found[1] or found[0]}, then answered"


@row("64 requests at once where 4 may be", options=["--max-in-flight", "4", "--deadline", "20s"], mib=48)
def over_capacity(server):
    rows = 20_000
    body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,2],"data":[%s]}]}' % (rows, b",".join([b"1.5"] * rows * 2))
    answers = all_at_once(64, lambda _: server.ask(post(body))[0])
    assert set(answers) <= {200, 503} and 200 in answers, answers
    return counted(answers)


@row("a deadline of 1 us: by parameter, and by grpc-timeout")
def deadlines(server):
    body = GOOD[:-1] + b',"parameters":{"timeout":1}}'
    status = server.ask(post(body))[0]
    assert status == 504, status
    tensor = b"\n\1x\x12\4FP32\x1a\2\1\2"
    whole = message(b"\n\5layer\x2a" + bytes([len(tensor)]) + tensor + b"\x3a\x08" + bytes(8))
    return f"{status}; {opened(server.connect(10), 'ModelInfer', whole, [('grpc-timeout', '1u')])}"


@row("SIGTERM while 8 clients call on connections that they keep")
def shutdown(server):
    answers, is_over = [], threading.Event()

    def calls(_):
        while not is_over.is_set():
            try:
                stream = server.connect()
            except ConnectionRefusedError:
                return
            with stream:
                while (status := ask(stream, post(GOOD))[0]) == 200:
                    answers.append(status)
                if status != 0:
                    answers.append(status)

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(calls, n) for n in range(8)]
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(20)
        is_over.set()
        [future.result() for future in futures]
    assert status == 0 and set(answers) == {200}, (status, counted(answers))
    return f"calls: 200 (each of {len(answers) // 1000 * 1000} and more); it ends with {status}"


@row("a second signal while a client does not let it end", options=["--drain-timeout", "60s"])
def second_signal(server):
    stream = server.connect()
    stream.sendall(post(GOOD, length=100_000))
    time.sleep(0.2)
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert server.process.poll() is None
    server.process.send_signal(signal.SIGTERM)
    status = server.process.wait(5)
    assert status == 130, status
    return f"it ends at once, with {status}"


# TLS.


def certificate(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True,
        capture_output=True,
    )


@row("TLS: plain HTTP, noise, TLS 1.2, half of 500 handshakes, a renegotiation of nothing", mib=48, options=["--tls-cert", "DIR/cert.pem", "--tls-key", "DIR/key.pem"], before=certificate)
def tls(server):
    found = [server.ask(request)[1] for request in (post(GOOD), random.Random(3).randbytes(1000), b"\x16\3\1\xff\xff" + bytes(100))]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.wrap_socket(server.connect())
        found.append("TLS 1.2 agreed")
    except OSError as error:
        found.append(f"TLS 1.2: {getattr(error, 'reason', error)}")
    context.maximum_version = ssl.TLSVersion.MAXIMUM_SUPPORTED
    hello, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    half = context.wrap_bio(hello, out)
    with contextlib.suppress(ssl.SSLWantReadError):
        half.do_handshake()
    hello = out.read()
    streams = [server.connect(20) for _ in range(500)]
    for index, stream in enumerate(streams):
        stream.sendall(hello[: len(hello) - index % 2 * 20])
    assert server.is_well()
    time.sleep(6)
    for stream in streams:
        stream.settimeout(1)
        while stream.recv(65536):
            pass
    found.append("handshakes closed within 6 s")
    return ", ".join(found)


def run(tfrt, deed, function, mib, options, more):
    server = Server(tfrt, options, **more)
    try:
        assert server.is_well(), "a good request is not answered"
        before = server.state()
        came = function(server)
        if server.process.poll() is not None:
            assert function in (full_disk, shutdown, second_signal), f"it has ended with {server.process.poll()}"
            return f"| {deed} | {came} | {before[0]:.0f} | | | |", True
        until = time.monotonic() + 15
        while True:
            assert server.is_well(), "a good request is not answered"
            after = server.state()
            left = [after[2] > before[2], after[3] > before[3] + 1]
            if not any(left) or time.monotonic() > until:
                break
            time.sleep(0.5)
        is_fine = after[1] - before[0] <= mib and not any(left)
        note = "" if is_fine else " **too much**"
        figures = f"{before[0]:.0f} / {after[1]:.0f} / {after[0]:.0f}{note} | {before[2]} / {after[2]} | {before[3]} / {after[3]}"
        return f"| {deed} | {came} | {figures} |", is_fine
    except Exception as error:
        return f"| {deed} | **FAILED**: {type(error).__name__}: {error} | | | |", False
    finally:
        server.end()


def main():
    tfrt, words = sys.argv[1], sys.argv[2:]
    rows = [row for row in ROWS if not words or any(word in row[0] or word in row[1].__name__ for word in words)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("| Deed | Came back | MiB before / at most / after | threads | descriptors |\n| --- | --- | --- | --- | --- |")
    n_failed = 0
    with ThreadPoolExecutor(4) as pool:
        for line, is_fine in pool.map(lambda row: run(tfrt, *row), rows):
            n_failed += not is_fine
            print(line, flush=True)
    print(f"\n{len(rows) - n_failed} of {len(rows)} rows are as expected")
    sys.exit(n_failed > 0)


if __name__ == "__main__":
    main()
