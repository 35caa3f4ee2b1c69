"""Compiles the CUDA C of this folder to PTX by NVRTC: compile.py LIBRARY SOURCE TARGET.

LIBRARY is libnvrtc.so.12 of the wheel nvidia-cuda-nvrtc-cu12 12.0, whose PTX drivers from 525 on take. The first line of
what is written has the FNV-1a hash of the source, with the files that it includes, by which a test sees that both belong
together.
"""

import ctypes
import re
import sys
from pathlib import Path

OPTIONS = [b"--gpu-architecture=compute_75", b"--fmad=false", b"--restrict"]


def fnv(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % (1 << 64)
    return h


def whole(source: Path) -> bytes:
    """Returns a source, each `#include "NAME"` of it replaced by that file of its folder."""
    lines = source.read_bytes().splitlines(keepends=True)
    included = [re.fullmatch(rb'#include "([^"]+)"\n', line) for line in lines]
    return b"".join(
        source.with_name(found[1].decode()).read_bytes() if found else line
        for line, found in zip(lines, included, strict=True)
    )


def main() -> None:
    library, source, target = sys.argv[1:]
    # What it loads itself lies beside it.
    builtins = Path(library).with_name("libnvrtc-builtins.so.12.0")
    ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    text = whole(Path(source))
    program = ctypes.c_void_p()

    def call(name, *arguments):
        code = getattr(nvrtc, name)(*arguments)
        if code != 0:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            sys.exit(f"{name} failed with {code} on {source}:\n{log.value.decode()}")

    name = Path(source).name.encode()
    # Functions stay only where they may be called from elsewhere.
    own = [*OPTIONS, b"--relocatable-device-code=true"] if b"__noinline__" in text else OPTIONS
    call("nvrtcCreateProgram", ctypes.byref(program), text, name, 0, None, None)
    options = (ctypes.c_char_p * len(own))(*own)
    call("nvrtcCompileProgram", program, len(own), options)
    size = ctypes.c_size_t()
    call("nvrtcGetPTXSize", program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    call("nvrtcGetPTX", program, ptx)
    lines = [" ".join(line.split("//")[0].split()) for line in ptx.value.decode().splitlines()]
    # Constants of a header that NVRTC has in itself, which nothing uses.
    lines = [line for line in lines if "nv6target" not in line]
    lines = [f"// {fnv(text):016x} {name.decode()}"] + [line for line in lines if line]
    Path(target).write_text("\n".join(lines) + "\n")


main()
