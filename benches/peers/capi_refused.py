"""Opens plugins as TensorFlow does, beside TensorFlow's libraries, and prints what the loader says of each.

    capi_refused.py FOLDER LIBRARY..

FOLDER has `libtensorflow_framework.so.2` and `libtensorflow_cc.so.2`, whose functions are all that a plugin may call; no
Python module of TensorFlow is needed. A line is `NAME: loads`, or `NAME: undefined symbol: FUNCTION`. `cargo xtask capi`
runs this for two versions, the newer of which has no functions for variables.
"""

import ctypes
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"


def main():
    folder, *plugins = sys.argv[1:]
    for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL)
    for plugin in plugins:
        try:
            ctypes.CDLL(os.path.abspath(plugin), mode=os.RTLD_NOW)
            told = "loads"
        except OSError as error:
            told = str(error).rsplit(".so: ", 1)[-1]
        print(f"{os.path.basename(plugin)}: {told}", flush=True)


if __name__ == "__main__":
    main()
