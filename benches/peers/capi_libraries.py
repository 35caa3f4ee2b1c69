"""Gives published libraries to `tfrt plugin check`, loads them, and compares both verdicts.

    capi_libraries.py TFRT [FOLDER]

TFRT is the command, with plugins. `pip` gets the wheels of `PACKAGES` by name and version into FOLDER, by default
`target/capi/libraries`, which takes some 500 MB; a wheel that is there is not got again, and `cc` is asked for. A library
that the check lets pass is loaded by `tfrt plugin check --load`; one that it refuses is opened by the system's loader in a
process of its own, beside libraries of TensorFlow's names that have all functions of the C API that the library asks for
and none of TensorFlow's C++ classes. A line for each library says what both have told; it ends in `agree` or `DIFFER`, and
so does the script, by its exit status.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
import zipfile

# Package, version, tags of the wheel, the library's path in it.
PACKAGES = [
    ("intel-extension-for-tensorflow-lib", "2.15.0.0.0", ("3.11", "cp311"), "tensorflow-plugins/libitex_cpu.so"),
    ("zentf", "2.21.0.0", ("3.11", "cp311"), "libamdcpu_plugin.so"),
    ("tensorflow-directml-plugin", "0.4.0.dev230202", ("3.10", "cp310"), "libtfdml_plugin.so"),
    ("tensorflow-text", "2.21.1", ("3.11", "cp311"), "_wordpiece_tokenizer.so"),
    ("tensorflow-addons", "0.23.0", ("3.11", "cp311"), "_distort_image_ops.so"),
    ("tensorflow-io-gcs-filesystem", "0.37.1", ("3.11", "cp311"), "libtensorflow_io_gcs_filesystem.so"),
    ("tensorflow-io", "0.37.1", ("3.11", "cp311"), "libtensorflow_io_plugins.so"),
    ("tensorflow-decision-forests", "1.12.0", ("3.11", "cp311"), "inference.so"),
]

PLATFORMS = ["manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux_2_27_x86_64",
             "manylinux_2_28_x86_64", "manylinux_2_31_x86_64"]
EMPTY = ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2", "libtensorflow.so.2", "_pywrap_tensorflow_internal.so"]
OPEN = "import ctypes, os, sys; ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW)"


def fetch(folder, name, version, tags, path):
    """Returns the library, unpacked from the wheel; nothing if it can't be got."""
    pattern = os.path.join(folder, f"{name.replace('-', '_')}-{version}-*.whl")
    if not glob.glob(pattern):
        python, abi = tags
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder,
                   "--python-version", python, "--implementation", "cp", "--abi", abi]
        for platform in PLATFORMS:
            command += ["--platform", platform]
        subprocess.run(command + [f"{name}=={version}"], capture_output=True)
    found = glob.glob(pattern)
    if not found:
        return None
    to = os.path.join(folder, f"{name}-{version}")
    with zipfile.ZipFile(found[0]) as wheel:
        own = [entry for entry in wheel.namelist() if entry.endswith(path)]
        # What lies beside it may be asked for.
        wheel.extractall(to, [entry for entry in wheel.namelist() if ".so" in entry])
    return os.path.join(to, own[0]) if own else None


def empty_libraries(folder, functions):
    """Builds libraries of TensorFlow's names; the first has the functions."""
    source = os.path.join(folder, "functions.c")
    with open(source, "w") as file:
        file.writelines(f"void {name}(void) {{}}\n" for name in functions)
    for index, name in enumerate(EMPTY):
        with_functions = [source] if index == 0 else ["-x", "c", os.devnull]
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", os.path.join(folder, name)] + with_functions,
                       check=True)


def asked_functions(library):
    """Returns the functions of the C API that a library does not have itself."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True).stdout.split()
    return sorted({name.split("@")[0] for name in listed if name.startswith(("TF_", "TFE_", "SE_", "TSL_", "TFNPD_"))})


def opened(library):
    """Opens a library by the system's loader; returns what that says, nothing if it is open."""
    with tempfile.TemporaryDirectory() as folder:
        empty_libraries(folder, asked_functions(library))
        surroundings = os.environ | {"LD_LIBRARY_PATH": folder}
        run = subprocess.run([sys.executable, "-c", OPEN, library], env=surroundings, capture_output=True, text=True)
    return None if run.returncode == 0 else run.stderr.strip().splitlines()[-1].rsplit(": ", 1)[-1]


def verdict(command, library):
    """Returns whether the check lets a library pass, what it says, and whether loading says the same, with its words."""
    checked = subprocess.run([command, "plugin", "check", "--json", library], capture_output=True, text=True)
    report = json.loads(checked.stdout)
    if report["loads"]:
        loaded = subprocess.run([command, "plugin", "check", "--load", "--json", library], capture_output=True, text=True)
        told = json.loads(loaded.stdout).get("registered")
        if told is None:
            return "loads", False, loaded.stderr.strip()
        return "loads", True, f"{len(told['ops'])} operations, {len(told['kernels'])} kernels"
    why = opened(library)
    return "refused", why is not None, why or "opened"


def main():
    command = os.path.abspath(sys.argv[1])
    folder = os.path.abspath((sys.argv[2:] or ["target/capi/libraries"])[0])
    os.makedirs(folder, exist_ok=True)
    n_differ = 0
    for name, version, tags, path in PACKAGES:
        library = fetch(folder, name, version, tags, path)
        if library is None:
            print(f"{name} {version}: SKIPPED, pip does not get it", flush=True)
            continue
        checked, agrees, told = verdict(command, library)
        n_differ += not agrees
        print(f"{path} ({name} {version}): {checked}; loading: {told}: {'agree' if agrees else 'DIFFER'}", flush=True)
    sys.exit(n_differ > 0)


if __name__ == "__main__":
    main()
