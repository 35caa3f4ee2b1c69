"""Frames of HTTP/2 and messages of gRPC as bytes, written by hand so that they may be wrong."""

import struct
import time

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def fields(pairs):
    """Writes fields of a head literally, without a table."""
    text = lambda it: bytes([len(it)]) + it.encode()
    return b"".join(b"\0" + text(name) + text(value) for name, value in pairs)


def get_head(path="/v2"):
    return fields([(":method", "GET"), (":scheme", "http"), (":authority", "x"), (":path", path)])


def call_head(method, more=()):
    path = f"/inference.GRPCInferenceService/{method}"
    begin = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", path)]
    return fields(begin + [("content-type", "application/grpc"), ("te", "trailers"), *more])


def message(content):
    return b"\0" + struct.pack(">I", len(content)) + content


def speak(stream, frames):
    """Sends frames and returns in words how the connection ends: by the server with a code, or by nobody."""
    stream.settimeout(2)
    try:
        stream.sendall(PREFACE + frame(SETTINGS, 0, 0))
        batch = b""
        for one in frames:
            batch += one
            if len(batch) > 1 << 16:
                stream.sendall(batch)
                batch = b""
        stream.sendall(batch)
    except (ConnectionError, TimeoutError):
        pass
    read = b""
    try:
        while more := stream.recv(1 << 16):
            read += more
    except TimeoutError:
        return ended(read) or "goes on"
    except ConnectionError:
        return ended(read) or "closed"
    return ended(read) or "closed"


def ended(read):
    """Returns the code of the frame that ends a connection, if there is one."""
    codes = {0: "NO_ERROR", 1: "PROTOCOL_ERROR", 3: "FLOW_CONTROL_ERROR", 6: "FRAME_SIZE_ERROR", 9: "COMPRESSION_ERROR", 11: "ENHANCE_YOUR_CALM"}
    while len(read) >= 9:
        length = int.from_bytes(read[:3], "big")
        if read[3] == GOAWAY and len(read) >= 17:
            code = int.from_bytes(read[13:17], "big")
            return codes.get(code, f"code {code}")
        read = read[9 + length :]
    return ""


def opened(stream, method, body, more=()):
    """Makes a call, and returns its status as `curl` would print it."""
    with stream:
        stream.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, call_head(method, more)) + frame(DATA, 1, 1, body))
        read, until = b"", time.monotonic() + 10
        while time.monotonic() < until:
            more_bytes = stream.recv(1 << 16)
            if not more_bytes:
                return "closed"
            read += more_bytes
            rest = read
            while len(rest) >= 9:
                length = int.from_bytes(rest[:3], "big")
                if rest[3] == HEADERS and rest[4] & 1:
                    return f"status {status_of(rest[9 : 9 + length])}"
                rest = rest[9 + length :]
        return "no answer"


def status_of(block):
    """Finds `grpc-status` in a head; its name is written as Huffman's code, which it stands for always."""
    name = bytes.fromhex("9acac8b21234da8f")
    at = block.find(name)
    if at < 0:
        return "unknown"
    value = block[at + len(name) :]
    length = value[0] & 127
    raw = value[1 : 1 + length]
    if not value[0] & 128:
        return raw.decode()
    digits = {format(n, "05b"): str(n) for n in range(3)} | {format(0b011001 + n, "06b"): str(3 + n) for n in range(7)}
    bits, text = "".join(format(byte, "08b") for byte in raw), ""
    while bits and not set(bits) == {"1"}:
        width = 5 if bits[:5] in digits else 6
        text, bits = text + digits[bits[:width]], bits[width:]
    return text
