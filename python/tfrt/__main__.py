"""The command: ``python -m tfrt run model.onnx``."""

import sys

from ._tfrt import command

if __name__ == "__main__":
    sys.stdout.flush()
    sys.exit(command(["tfrt", *sys.argv[1:]]))
