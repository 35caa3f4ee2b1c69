"""Compiles the CUDA C of this folder to PTX by NVRTC: compile.py LIBRARY SOURCE TARGET.

LIBRARY is libnvrtc.so.12 of the wheel nvidia-cuda-nvrtc-cu12 12.0, whose PTX drivers from 525 on take. The first line of
what is written has the FNV-1a hash of the source, by which a test sees that both belong together.
"""

import ctypes
import sys
from pathlib import Path

OPTIONS = [b"--gpu-architecture=compute_75", b"--fmad=false", b"--restrict"]


def fnv(data: bytes) -> int:
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 % (1 << 64)
    return h


def main() -> None:
    library, source, target = sys.argv[1:]
    # What it loads itself lies beside it.
    builtins = Path(library).with_name("libnvrtc-builtins.so.12.0")
    ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(library)
    text = Path(source).read_bytes()
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
    call("nvrtcCreateProgram", ctypes.byref(program), text, name, 0, None, None)
    options = (ctypes.c_char_p * len(OPTIONS))(*OPTIONS)
    call("nvrtcCompileProgram", program, len(OPTIONS), options)
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
