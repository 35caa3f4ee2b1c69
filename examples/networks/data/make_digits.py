#!/usr/bin/env python3
"""Makes digits.btf from the wheel of scikit-learn, which carries the data:

    pip download --no-deps scikit-learn==1.9.1
    examples/networks/data/make_digits.py scikit_learn-1.9.1-*.whl examples/networks/data/digits.btf

The file has two tensors in the binary tensor format: images u8 [1797, 8, 8], each pixel from 0 to 16, and
labels u8 [1797].
"""
import gzip
import struct
import sys
import zipfile

MEMBER = "sklearn/datasets/data/digits.csv.gz"
UI8 = 6


def record(extents, elements):
    header = struct.pack("<QBB6x", len(extents), UI8, 0)
    payload = struct.pack(f"<{len(extents)}Q", *extents) + bytes(elements)
    return header + payload + bytes(-len(payload) % 8)


def main():
    wheel, out = sys.argv[1:]
    with zipfile.ZipFile(wheel) as archive:
        lines = gzip.decompress(archive.read(MEMBER)).decode().split()
    rows = [[int(number) for number in line.split(",")] for line in lines]
    assert all(len(row) == 65 and max(row) <= 16 for row in rows)
    pixels = [pixel for row in rows for pixel in row[:64]]
    records = [record((len(rows), 8, 8), pixels), record((len(rows),), [row[64] for row in rows])]
    first = 8 * (1 + len(records))
    offsets = [first, first + len(records[0])]
    with open(out, "wb") as file:
        file.write(struct.pack("<3Q", len(records), *offsets) + b"".join(records))


main()
