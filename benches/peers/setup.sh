#!/usr/bin/env bash
# Sets up the peers that come from the Python registry, in `target/peers/venv`: ONNX Runtime, and oneDNN
# with its headers. Benchmarks that compare with them say so in a line where they are missing.
#
#   benches/peers/setup.sh [tensorflow]
#
# With the word, TensorFlow too, which is large.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv="${CARGO_TARGET_DIR:-target}/peers/venv"
packages=(
    numpy==2.3.5
    onnx==1.22.0
    onnxruntime==1.31.1
    onednn-cpu-gomp==2023.2.0
    onednn-devel-cpu-gomp==2023.2.0
)
if [ "${1:-}" = tensorflow ]; then
    packages+=(tensorflow-cpu==2.21.0)
fi

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
echo "peers are in $venv"
