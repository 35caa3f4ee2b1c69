#!/usr/bin/env bash
# Sets up the peers that come from the Python registry, in `target/peers/venv`: ONNX Runtime with what its
# quantisers need, and oneDNN with its headers. Benchmarks that compare with them say so in a line where they are
# missing.
#
#   benches/peers/setup.sh [tensorflow] [models] [dist]
#
# With the first word, TensorFlow too, which is large; with the second tract and candle, which run models: they
# come from the registry of Rust's crates, and take some minutes to build. With the third tonic, likewise, for
# `cargo bench -p tfrt-dist --bench tasks`, whose other peers the system has: `libopenmpi-dev`, `openmpi-bin`,
# `python3-torch` of Debian.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv="${CARGO_TARGET_DIR:-target}/peers/venv"
packages=(
    numpy==2.3.5
    onnx==1.22.0
    onnxruntime==1.32.0
    onnx-ir==1.1.0
    onednn-cpu-gomp==2023.2.0
    onednn-devel-cpu-gomp==2023.2.0
)
is_asked() { case " $words " in *" $1 "*) ;; *) return 1 ;; esac; }
words="$*"
if is_asked tensorflow; then
    packages+=(tensorflow-cpu==2.21.0)
fi
if is_asked models; then
    # candle's messages are made by protoc.
    packages+=(grpcio-tools==1.85.1)
fi

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
if is_asked models; then
    protoc="$venv/bin/protoc"
    printf '#!/bin/sh\nexec "%s" -m grpc_tools.protoc "$@"\n' "$(realpath -s "$venv")/bin/python" >"$protoc"
    chmod +x "$protoc"
    PROTOC="$(realpath -s "$protoc")" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/peers/models" \
        cargo build --quiet --release --locked --manifest-path benches/peers/models/Cargo.toml
fi
echo "peers are in $venv"
if is_asked dist; then
    CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/peers/tonic" \
        cargo build --quiet --release --manifest-path benches/peers/tonic/Cargo.toml
fi
