"""Compares `tfrt serve` with NVIDIA's Triton: the same requests to both, over HTTP and gRPC, and how fast both answer.

    python -m venv v && v/bin/pip install nvidia-pytriton==0.7.0 'tritonclient[http,grpc]' onnx
    v/bin/python benches/peers/serve_triton.py target/release/tfrt            # requests, and what differs
    v/bin/python benches/peers/serve_triton.py target/release/tfrt --speed    # by `wrk` and `h2load`, in the same run

Triton 2.51 comes with the package `nvidia-pytriton`, without its program in a container: 55 MB. Where that is not installed
it says SKIPPED. Both servers have three models that give what they are given: `ident` (X, FP32 [-1, 4]), `types` (INT64,
BYTES, BOOL and INT8) and `pair` (two inputs). Answers are the same if status and content are, of errors the status;
differences that are meant to be are listed with their reason, and are checked, too. Ends with status 1 if others are found.
"""

import importlib.util
import json
import os
import platform
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

if not (importlib.util.find_spec("pytriton") and importlib.util.find_spec("tritonclient") and importlib.util.find_spec("onnx")):
    print("SKIPPED: the packages nvidia-pytriton, tritonclient and onnx are not all installed")
    sys.exit(0)

import grpc
import onnx
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2 as pb

MODELS = {
    "ident": [("X", "FP32", [-1, 4])],
    "types": [("I", "INT64", [-1]), ("S", "STRING", [-1]), ("B", "BOOL", [-1]), ("T", "INT8", [-1])],
    "pair": [("P", "FP32", [-1, 2]), ("Q", "FP32", [-1, 2])],
}
OF_ONNX = {"FP32": TensorProto.FLOAT, "INT64": TensorProto.INT64, "STRING": TensorProto.STRING, "BOOL": TensorProto.BOOL, "INT8": TensorProto.INT8}
BACKEND = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        names = {names!r}
        tensors = lambda r: [pb.Tensor("out_" + n, pb.get_input_tensor_by_name(r, n).as_numpy()) for n in names]
        return [pb.InferenceResponse(tensors(r)) for r in requests]
"""


def write_models(folder):
    """Writes the models for both servers."""
    for name, inputs in MODELS.items():
        ours, theirs = folder / "ours" / name / "1", folder / "theirs" / name / "1"
        ours.mkdir(parents=True)
        theirs.mkdir(parents=True)
        value = lambda own, kind, dims: helper.make_tensor_value_info(own, OF_ONNX[kind], [None if dim < 0 else dim for dim in dims])
        nodes = [helper.make_node("Identity", [own], [f"out_{own}"]) for own, *_ in inputs]
        ins = [value(*own) for own in inputs]
        outs = [value(f"out_{own}", kind, dims) for own, kind, dims in inputs]
        graph = helper.make_graph(nodes, name, ins, outs)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), ours / "model.onnx")
        config = [f'name: "{name}"', 'backend: "python"', "max_batch_size: 0"]
        for kind, prefix in (("input", ""), ("output", "out_")):
            lines = [f'{{ name: "{prefix}{own}" data_type: TYPE_{dtype} dims: {dims} }}' for own, dtype, dims in inputs]
            config.append(f"{kind} [{', '.join(lines)}]")
        (theirs.parent / "config.pbtxt").write_text("\n".join(config))
        (theirs / "model.py").write_text(BACKEND.format(names=[own for own, *_ in inputs]))


def free_port():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


class Server:
    """A server on two ports, and how long it took to be ready."""

    def __init__(self, name, start):
        self.name, self.http, self.grpc = name, free_port(), free_port()
        began = time.perf_counter()
        self.process = start(self.http, self.grpc)
        while self.ask("GET", "/v2/health/ready")[0] != 200:
            assert time.perf_counter() - began < 60 and self.process.poll() is None, f"{name} does not start"
            time.sleep(0.002)
        self.ready_ms = (time.perf_counter() - began) * 1000

    def ask(self, method, path, body=b"", headers=(), raw=None):
        """Returns status, headers and body; status 0 if there is no answer."""
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        if body or method == "POST":
            head += f"content-length: {len(body)}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers)
        try:
            with socket.create_connection(("127.0.0.1", self.http), timeout=10) as stream:
                stream.sendall(raw if raw is not None else head.encode() + b"\r\n" + body)
                read = b""
                while more := stream.recv(1 << 16):
                    read += more
        except OSError:
            if not locals().get("read"):
                return 0, {}, b""
        if b"\r\n\r\n" not in read:
            return 0, {}, b""
        head, body = read.split(b"\r\n\r\n", 1)
        lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        if fields.get("transfer-encoding") == "chunked":
            whole, rest = b"", body
            while rest and (length := int(rest.split(b"\r\n", 1)[0], 16)):
                rest = rest.split(b"\r\n", 1)[1]
                whole, rest = whole + rest[:length], rest[length + 2 :]
            body = whole
        return int(lines[0].split(" ")[1]), fields, body

    def call(self, method, message):
        """Returns the code of gRPC and the bytes of the answer."""
        with grpc.insecure_channel(f"127.0.0.1:{self.grpc}") as channel:
            same = lambda it: it
            try:
                return "OK", channel.unary_unary(f"/inference.GRPCInferenceService/{method}", same, same)(message, timeout=10)
            except grpc.RpcError as error:
                return error.code().name, error.details().encode()

    def memory(self):
        """Returns resident MiB and threads of the process and its children."""
        found, all_ids = [self.process.pid], [self.process.pid]
        while found:
            own = found.pop()
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(own)], capture_output=True, text=True).stdout.split()
            found += map(int, children)
            all_ids += map(int, children)
        of = lambda pid, name: int(re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))
        return sum(of(pid, "VmRSS") for pid in all_ids) / 1024, sum(of(pid, "Threads") for pid in all_ids)

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()


def start_ours(tfrt, folder):
    def start(http, rpc):
        command = [tfrt, "serve", "--repository", folder / "ours", "--allow-repository"]
        command += ["--listen", f"127.0.0.1:{http}", "--listen", f"127.0.0.1:{rpc}"]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL)

    return start


def start_theirs(folder):
    package = Path(importlib.util.find_spec("pytriton").submodule_search_locations[0])
    triton = package / "tritonserver"
    backend = folder / "backends/python"
    shutil.copytree(triton / "backends/python", backend)
    version = ".".join(platform.python_version_tuple()[:2])
    shutil.copy(triton / f"python_backend_stubs/{version}/triton_python_backend_stub", backend)
    libraries = [str(package.parent / "nvidia_pytriton.libs"), sysconfig.get_config_var("LIBDIR")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def start(http, rpc):
        command = [triton / "bin/tritonserver", f"--model-repository={folder / 'theirs'}", f"--backend-directory={folder / 'backends'}"]
        command += [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
        command += [f"--http-port={http}", f"--grpc-port={rpc}", f"--metrics-port={free_port()}"]
        command += ["--model-control-mode=explicit", "--load-model=*"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)

    return start


# Requests of HTTP: a name, a method, a path, headers and a body.


def tensor(name="X", datatype="FP32", shape=(1, 4), data=(1, 2, 3, 4), **more):
    own = {"name": name, "datatype": datatype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data": data, **more}
    return {key: value for key, value in own.items() if value is not None}


def infer(name, inputs, model="ident", headers=(), tail=b"", **more):
    document = json.dumps({"inputs": inputs, **more}).encode()
    headers = [(key, value if value is not None else len(document)) for key, value in headers]
    return name, "POST", f"/v2/models/{model}/infer", headers, document + tail


def generate(name, members, model="ident", way="generate"):
    body = members if isinstance(members, bytes) else json.dumps(members).encode()
    return name, "POST", f"/v2/models/{model}/{way}", (), body


LENGTH = "Inference-Header-Content-Length"
SIZED = {"data": None, "parameters": {"binary_data_size": 16}}
FLOATS = struct.pack("<4f", 1, 2, 3, 4)
ALL_TYPES = [
    tensor("I", "INT64", (2,), [1, -(2**63)]),
    tensor("S", "BYTES", (2,), ["a", "\u00e9"]),
    tensor("B", "BOOL", (2,), [True, False]),
    tensor("T", "INT8", (2,), [-128, 127]),
]
REQUESTS = [
    ("live", "GET", "/v2/health/live", (), b""),
    ("ready", "GET", "/v2/health/ready", (), b""),
    ("model", "GET", "/v2/models/ident", (), b""),
    ("model by version", "GET", "/v2/models/ident/versions/1", (), b""),
    ("model that is unknown", "GET", "/v2/models/nope", (), b""),
    ("version that is unknown", "GET", "/v2/models/ident/versions/9", (), b""),
    ("version that is no number", "GET", "/v2/models/ident/versions/x", (), b""),
    ("model ready", "GET", "/v2/models/ident/ready", (), b""),
    ("unknown model ready", "GET", "/v2/models/nope/ready", (), b""),
    ("configuration", "GET", "/v2/models/ident/config", (), b""),
    ("statistics of an unknown model", "GET", "/v2/models/nope/stats", (), b""),
    ("no path", "GET", "/v3", (), b""),
    ("root", "GET", "/", (), b""),
    ("another method", "GET", "/v2/models/ident/infer", (), b""),
    ("post to metadata", "POST", "/v2/models/ident", (), b"{}"),
    ("index", "POST", "/v2/repository/index", (), b""),
    ("index of what is ready", "POST", "/v2/repository/index", (), b'{"ready": true}'),
    ("load again", "POST", "/v2/repository/models/pair/load", (), b""),
    ("load of an unknown model", "POST", "/v2/repository/models/nope/load", (), b""),
    ("unload of an unknown model", "POST", "/v2/repository/models/nope/unload", (), b""),
    infer("flat", [tensor()]),
    infer("nested", [tensor(shape=(2, 4), data=[[1, 2, 3, 4], [5, 6, 7, 8]])]),
    infer("with an id", [tensor()], id="request 1"),
    infer("no rows", [tensor(shape=(0, 4), data=[])]),
    infer("all types", ALL_TYPES, model="types"),
    infer("two inputs in another order", [tensor("Q", shape=(1, 2), data=[3, 4]), tensor("P", shape=(1, 2), data=[1, 2])], model="pair"),
    infer("one output of two", [tensor("P", shape=(1, 2), data=[1, 2]), tensor("Q", shape=(1, 2), data=[3, 4])], model="pair", outputs=[{"name": "out_Q"}]),
    infer("integers for floats", [tensor(data=[1, 2, 3, 4.5])]),
    infer("members that are unknown", [tensor(more=7)], nothing=[1]),
    infer("parameters that are unknown", [tensor()], parameters={"mine": 7}),
    infer("binary", [tensor(**SIZED)], headers=[(LENGTH, None)], tail=FLOATS),
    infer("binary both ways", [tensor(**SIZED)], headers=[(LENGTH, None)], tail=FLOATS, outputs=[{"name": "out_X", "parameters": {"binary_data": True}}]),
    infer("binary output of all", [tensor()], parameters={"binary_data_output": True}),
    infer("strings as bytes", [tensor("S", "BYTES", (1,), None, parameters={"binary_data_size": 7}), *[it for it in ALL_TYPES if it["name"] != "S"]], model="types", headers=[(LENGTH, None)], tail=struct.pack("<I", 3) + b"abc"),
    ("raw", "POST", "/v2/models/ident/infer", [(LENGTH, 0)], FLOATS),
    ("raw of nothing", "POST", "/v2/models/ident/infer", [(LENGTH, 0)], b""),
    infer("16 MiB of binary", [tensor(shape=(1 << 20, 4), data=None, parameters={"binary_data_size": 16 << 20})], headers=[(LENGTH, None)], tail=bytes(16 << 20), parameters={"binary_data_output": True}),
    generate("members", {"X": [1, 2, 3, 4]}),
    generate("members of two rows, with an id and parameters", {"X": list(range(8)), "id": "a", "stop": "x", "parameters": {"top": 7, "fast": True}}),
    generate("members with an empty id", {"X": [1, 2, 3, 4.5], "id": ""}),
    generate("single values of all types", {"I": 7, "S": "a\u00e9", "B": True, "T": -1}, model="types"),
    generate("lists of all types", {"I": [7, 8], "S": ["a", "b"], "B": [True, False], "T": [-1, 2]}, model="types"),
    generate("an input among the parameters", {"P": [1, 2], "parameters": {"Q": [3, 4]}}, model="pair"),
    generate("an event", {"X": [1, 2, 3, 4]}, way="generate_stream"),
    generate("no members", {}),
    generate("nothing to generate of", b""),
    generate("a member that is missing", {"P": [1, 2]}, model="pair", way="generate_stream"),
    generate("values that fit no shape", {"X": [1, 2, 3]}),
    generate("values in lists of lists", {"X": [[1, 2, 3, 4]]}),
    generate("string for a number in a member", {"X": ["a", 2, 3, 4]}),
    generate("number for a string in a member", {"I": 7, "S": 1, "B": True, "T": -1}, model="types", way="generate_stream"),
    generate("a member twice", b'{"X": [1, 2, 3, 4], "X": [1, 2, 3, 4]}'),
    generate("a parameter that is an object", {"X": [1, 2, 3, 4], "deep": {"a": 1}}),
    generate("parameters that are no object", {"X": [1, 2, 3, 4], "parameters": 1}),
    generate("an id that is a number", {"X": [1, 2, 3, 4], "id": 7}),
    generate("no JSON to generate of", b"{"),
    generate("an unknown model to generate with", {"X": [1, 2, 3, 4]}, model="nope"),
    ("generate by another method", "GET", "/v2/models/ident/generate", (), b""),
    # Mistakes.
    ("no JSON", "POST", "/v2/models/ident/infer", (), b"{"),
    ("nothing", "POST", "/v2/models/ident/infer", (), b""),
    ("a list", "POST", "/v2/models/ident/infer", (), b"[]"),
    ("no inputs", "POST", "/v2/models/ident/infer", (), b"{}"),
    infer("inputs of nothing", []),
    infer("data too short", [tensor(data=[1])]),
    infer("data too long", [tensor(data=[1, 2, 3, 4, 5])]),
    infer("no data", [tensor(data=None)]),
    infer("string for a number", [tensor(data=["a", 2, 3, 4])]),
    infer("negative extent", [tensor(shape=(-1, 4))]),
    infer("fraction of an extent", [tensor(shape=[0.5, 4])]),
    infer("no shape", [tensor(shape=None)]),
    infer("shape that is none of the model's", [tensor(shape=(1, 3), data=[1, 2, 3])]),
    infer("rank that is none of the model's", [tensor(shape=(4,))]),
    infer("unknown input", [tensor("Z")]),
    infer("input twice", [tensor(), tensor()]),
    infer("one input of two", [tensor("P", shape=(1, 2), data=[1, 2])], model="pair"),
    infer("another type", [tensor(datatype="INT32")]),
    infer("type that is none", [tensor(datatype="FP8")]),
    infer("unknown output", [tensor()], outputs=[{"name": "W"}]),
    infer("integer over its range", [tensor("T", "INT8", (2,), [200, 1]), *ALL_TYPES[:3]], model="types"),
    infer("fraction for an integer", [tensor("I", "INT64", (2,), [1.5, 1]), *ALL_TYPES[1:]], model="types"),
    infer("number for a string", [tensor("S", "BYTES", (2,), [1, 2]), ALL_TYPES[0], *ALL_TYPES[2:]], model="types"),
    infer("number for truth", [tensor("B", "BOOL", (2,), [1, 0]), *ALL_TYPES[:2], ALL_TYPES[3]], model="types"),
    infer("unknown model", [tensor()], model="nope"),
    infer("head longer than the body", [tensor(**SIZED)], headers=[(LENGTH, 99999)], tail=FLOATS),
    infer("head of negative length", [tensor(**SIZED)], headers=[(LENGTH, -1)], tail=FLOATS),
    infer("head of no length", [tensor(**SIZED)], headers=[(LENGTH, "x")], tail=FLOATS),
    infer("binary too short", [tensor(**SIZED)], headers=[(LENGTH, None)], tail=FLOATS[:-1]),
    infer("binary too long", [tensor(**SIZED)], headers=[(LENGTH, None)], tail=FLOATS + b"x"),
    infer("size that is none of the shape's", [tensor(data=None, parameters={"binary_data_size": 12})], headers=[(LENGTH, None)], tail=FLOATS[:12]),
    infer("strings that are longer than they are", [tensor("S", "BYTES", (1,), None, parameters={"binary_data_size": 7}), *[it for it in ALL_TYPES if it["name"] != "S"]], model="types", headers=[(LENGTH, None)], tail=struct.pack("<I", 99) + b"abc"),
    infer("shared memory", [tensor(data=None, parameters={"shared_memory_region": "r", "shared_memory_byte_size": 16})]),
    infer("encoding that is unknown", [tensor()], headers=[("content-encoding", "br")]),
    infer("gzip that is none", [tensor()], headers=[("content-encoding", "gzip")]),
    ("NaN", "POST", "/v2/models/ident/infer", (), b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1,4],"data":[NaN,1,2,3]}]}'),
]

# Requests whose status differs, and why: a name, the other's status, ours.
MISTAKE = "a mistake of the client, which is never 5xx here"
AGREED = {
    name: (500, 400, MISTAKE)
    for name in ("no JSON", "a list", "no inputs", "data too short", "data too long", "string for a number", "negative extent")
    + ("fraction of an extent", "no shape", "fraction for an integer", "number for a string", "number for truth")
    + ("nothing to generate of", "no JSON to generate of", "string for a number in a member", "number for a string in a member")
    + ("parameters that are no object", "an id that is a number")
} | {
    name: (200, 200, "the body that KServe's specification has, and its client reads, where Triton's is empty")
    for name in ("live", "ready", "model ready")
} | {
    "configuration": (200, 200, "what is configured of the other's backends has no meaning here"),
    "statistics of an unknown model": (400, 404, "a name that nothing has"),
    "root": (404, 200, "the page"),
    "load of an unknown model": (500, 404, "a name that nothing has"),
    "nothing": (200, 400, "an empty body is taken for a tensor without rows there"),
    "integer over its range": (200, 400, "200 as an INT8 becomes -56 there"),
    "shared memory": (404, 501, "not offered: a remote caller would name the host's memory"),
    "encoding that is unknown": (501, 415, MISTAKE),
    "gzip that is none": (200, 400, "what can't be unpacked is taken for a tensor without rows there"),
}


def content(status, fields, body):
    """Returns what of an answer is compared."""
    if status != 200:
        return status
    length = fields.get(LENGTH.lower())
    text, tail = (body[: int(length)], body[int(length) :]) if length else (body, b"")
    if fields.get("content-type", "").startswith("text/event-stream"):
        return [content(status, {}, event.removeprefix(b"data: ")) for event in body.split(b"\n\n")]
    try:
        # `repr` compares what is no number as equal, and 1 and 1.0 as different floats are.
        document = json.loads(text, parse_int=float)
    except ValueError:
        document = text.decode("utf-8", "replace")
    return repr(normal(document)), tail


def normal(document):
    """Leaves out what names the server, and the order of entries."""
    if isinstance(document, dict):
        own = {key: normal(value) for key, value in document.items() if key != "platform"}
        return sorted(own.items())
    if isinstance(document, list):
        return [normal(value) for value in document] if not (document and isinstance(document[0], dict)) else sorted(map(normal, document), key=repr)
    return document


# Calls of gRPC: a name, a method and a message.


def message(kind, **members):
    return getattr(pb, kind)(**members).SerializeToString()


def rpc(name, raw=(FLOATS,), datatype="FP32", shape=(1, 4), own="X", model="ident", contents=None, **more):
    request = pb.ModelInferRequest(model_name=model, **more)
    if own is not None:
        one = request.inputs.add(name=own, datatype=datatype, shape=shape)
        for field, values in (contents or {}).items():
            getattr(one.contents, field).extend(values)
    request.raw_input_contents.extend(raw)
    return name, "ModelInfer", request.SerializeToString()


CALLS = [
    ("server live", "ServerLive", b""),
    ("server ready", "ServerReady", b""),
    ("model ready", "ModelReady", message("ModelReadyRequest", name="ident")),
    ("unknown model ready", "ModelReady", message("ModelReadyRequest", name="nope")),
    ("metadata", "ModelMetadata", message("ModelMetadataRequest", name="ident")),
    ("metadata of an unknown model", "ModelMetadata", message("ModelMetadataRequest", name="nope")),
    ("metadata of an unknown version", "ModelMetadata", message("ModelMetadataRequest", name="ident", version="9")),
    ("metadata of no version", "ModelMetadata", message("ModelMetadataRequest", name="ident", version="x")),
    ("statistics of an unknown model", "ModelStatistics", message("ModelStatisticsRequest", name="nope")),
    ("load of an unknown model", "RepositoryModelLoad", message("RepositoryModelLoadRequest", model_name="nope")),
    ("unknown method", "Nothing", b""),
    rpc("raw"),
    rpc("raw with an id", id="a"),
    rpc("contents", raw=(), contents={"fp32_contents": [1, 2, 3, 4]}),
    rpc("unknown model", model="nope"),
    rpc("unknown version", model_version="9"),
    rpc("version that is none", model_version="x"),
    rpc("unknown input", own="Z"),
    rpc("another type", datatype="INT32"),
    rpc("type that is none", datatype="FP8"),
    rpc("shape that is none of the model's", shape=(1, 3), raw=(FLOATS[:12],)),
    rpc("raw too short", raw=(FLOATS[:-1],)),
    rpc("raw too long", raw=(FLOATS + b"x",)),
    rpc("no data", raw=()),
    rpc("raw and contents", contents={"fp32_contents": [1, 2, 3, 4]}),
    rpc("contents of another type", raw=(), contents={"int_contents": [1, 2, 3, 4]}),
    rpc("contents too short", raw=(), contents={"fp32_contents": [1, 2, 3]}),
    rpc("two raw contents for one input", raw=(FLOATS, FLOATS)),
    rpc("no inputs", raw=(), own=None),
    rpc("negative extent", shape=(-1, 4)),
    ("message that is none", "ModelInfer", b"\xff\xff"),
]
AGREED_CALLS = {
    "statistics of an unknown model": ("INVALID_ARGUMENT", "NOT_FOUND", "a name that nothing has"),
    "load of an unknown model": ("INTERNAL", "NOT_FOUND", "a name that nothing has"),
    "message that is none": ("INTERNAL", "INVALID_ARGUMENT", MISTAKE),
    "two raw contents for one input": ("OK", "INVALID_ARGUMENT", "one of the two would be dropped without a word"),
}
ANSWERS = {"ModelInfer": "ModelInferResponse", "ModelMetadata": "ModelMetadataResponse", "ModelReady": "ModelReadyResponse", "ServerLive": "ServerLiveResponse", "ServerReady": "ServerReadyResponse"}


def meaning(method, code, body):
    if code != "OK" or method not in ANSWERS:
        return code
    answer = getattr(pb, ANSWERS[method])()
    answer.ParseFromString(body)
    if method == "ModelMetadata":
        answer.platform = ""
    return str(answer)


def compare(ours, theirs):
    counts = {"same": 0, "agreed": 0, "different": 0}

    def verdict(name, mine, other, agreed, words):
        if mine == other and name not in agreed:
            counts["same"] += 1
        elif name in agreed and agreed[name][:2] == words[1::-1][:2]:
            counts["agreed"] += 1
            print(f"agreed: {name}: {agreed[name][0]} there, {agreed[name][1]} here: {agreed[name][2]}")
        else:
            counts["different"] += 1
            print(f"DIFFERENT: {name}: {words[1]} there, {words[0]} here\n    there: {words[3][:300]}\n    here:  {words[2][:300]}")

    for name, method, path, headers, body in REQUESTS:
        mine, other = (server.ask(method, path, body, headers) for server in (ours, theirs))
        verdict(name, content(*mine), content(*other), AGREED, (mine[0], other[0], mine[2].decode("utf-8", "replace"), other[2].decode("utf-8", "replace")))
    for name, method, body in CALLS:
        mine, other = (server.call(method, body) for server in (ours, theirs))
        verdict(f"gRPC {name}", meaning(method, *mine), meaning(method, *other), {f"gRPC {own}": it for own, it in AGREED_CALLS.items()}, (mine[0], other[0], repr(mine[1]), repr(other[1])))
    print(f"{len(REQUESTS)} requests and {len(CALLS)} calls: {counts['same']} answered the same, {counts['agreed']} as agreed, {counts['different']} otherwise")
    return counts["different"] == 0


# Speed.


def by_wrk(server, folder, n_connections):
    """Returns requests a second, and the p50 in us."""
    script = folder / "body.lua"
    document = json.dumps({"inputs": [tensor()]})
    script.write_text(f"wrk.method = 'POST'\nwrk.body = [[{document}]]\nwrk.headers['content-type'] = 'application/json'\n")
    command = ["wrk", "-t1", f"-c{n_connections}", "-d3s", "--latency", "-s", script, f"http://127.0.0.1:{server.http}/v2/models/ident/infer"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in text, text
    value, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", text).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1)), float(value) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]


def by_h2load(server, folder, n_connections):
    path = folder / "message.bin"
    body = rpc("raw")[2]
    path.write_bytes(b"\0" + struct.pack(">I", len(body)) + body)
    command = ["h2load", "-t1", f"-c{n_connections}", "-m1", "--warm-up-time=1", "-D3", "-d", path, "-H", "content-type: application/grpc", "-H", "te: trailers"]
    text = subprocess.run([*command, f"http://127.0.0.1:{server.grpc}/inference.GRPCInferenceService/ModelInfer"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"2xx, 0 3xx, 0 4xx, 0 5xx", text), text
    return float(re.search(r"([\d.]+) req/s", text).group(1))


def large_ms(server):
    """Returns the median time of 16 MiB each way."""
    request = next(own for own in REQUESTS if own[0] == "16 MiB of binary")
    times = []
    for _ in range(15):
        began = time.perf_counter()
        status, _, body = server.ask(*request[1:3], request[4], request[3])
        times.append((time.perf_counter() - began) * 1e3)
        assert status == 200 and len(body) > 16 << 20
    return statistics.median(times)


def speed(servers, folder):
    figures = {server.name: [] for server in servers}
    idle = {server.name: server.memory() for server in servers}
    for _ in range(3):
        for server in servers:
            own = [by_wrk(server, folder, 1), by_wrk(server, folder, 16), by_h2load(server, folder, 1), by_h2load(server, folder, 16), large_ms(server)]
            figures[server.name].append([own[0][0], own[0][1], own[1][0], own[2], own[3], own[4]])
    median = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in figures.items()}
    names = [server.name for server in servers]
    print("| | " + " | ".join(names) + " | ratio |\n| --- " * 1 + "| --- " * (len(names) + 1) + "|")
    labels = ["JSON, 1 connection, requests/s", "JSON, 1 connection, p50 in us", "JSON, 16 connections, requests/s", "gRPC, 1 connection, requests/s", "gRPC, 16 connections, requests/s", "16 MiB of binary each way, ms"]
    lines = [(label, [median[name][index] for name in names]) for index, label in enumerate(labels)]
    lines += [("ready after, ms", [server.ready_ms for server in servers])]
    lines += [("resident when idle, MiB", [idle[name][0] for name in names]), ("threads", [idle[name][1] for name in names])]
    for label, values in lines:
        shown = " | ".join(f"{value:,.0f}" for value in values)
        print(f"| {label} | {shown} | {values[0] / values[1]:.2f} |")


def main():
    tfrt, *options = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="tfrt-triton-"))
    write_models(folder)
    servers = []
    try:
        for name, start in (("tfrt", start_ours(tfrt, folder)), ("Triton 2.51", start_theirs(folder))):
            servers.append(Server(name, start))
        if options == ["--speed"]:
            return speed(servers, folder)
        sys.exit(not compare(*servers))
    finally:
        for server in servers:
            server.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
