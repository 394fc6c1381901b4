"""Casts every type of numpy and ml_dtypes to every other, for test/programs/interop_casts.mjs.

Writes sources and results as packed little-endian bytes, and casts.json, which lists them. Undefined conversions are
omitted: NaN and out-of-range floats to integers, and float8_e8m0fnu as a target, where implementations disagree.
"""
import json
import os
import sys

import ml_dtypes
import numpy as np

FLOATS = ["float64", "float32", "float16"]
SMALL_FLOATS = [
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SMALL_INTEGERS = ["int4", "uint4", "int2", "uint2"]
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
SEED = 20240611
PATTERNS = 100_000


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name) if name in SMALL_FLOATS + SMALL_INTEGERS else name)


def source_of(name, random):
    """All codes of a type of up to 16 bits; of a wider one seeded patterns and numbers near the ties of narrow ones."""
    dtype = dtype_of(name)
    bits = BITS.get(name, dtype.itemsize * 8)
    if bits < 8:
        codes = np.arange(2**bits, dtype=np.uint8)
        if name.startswith("int"):
            return (codes.astype(np.int8) - (codes >= 2 ** (bits - 1)).astype(np.int8) * 2**bits).astype(dtype)
        return codes.astype(dtype) if name.startswith("uint") else codes.view(dtype)
    if bits <= 16:
        return np.arange(2**bits, dtype=f"uint{bits}").view(dtype)
    patterns = random.integers(0, 2**bits, PATTERNS, dtype=f"uint{bits}").view(dtype)
    if "int" in name:
        shifts = random.integers(0, bits, PATTERNS)
        return np.concatenate([patterns, patterns >> shifts.astype(dtype)])
    halves = np.arange(2**16, dtype=np.uint16)
    near = np.concatenate([halves.view(np.float16).astype(dtype), halves.view(ml_dtypes.bfloat16).astype(dtype)])
    return np.concatenate([patterns, near, np.nextafter(near, dtype.type(np.inf)), np.nextafter(near, dtype.type(0))])


def held_by(values, target):
    """Which floats an integer type defines."""
    if "int" not in target:
        return np.ones(values.shape, bool)
    info = ml_dtypes.iinfo(dtype_of(target)) if target in SMALL_INTEGERS else np.iinfo(target)
    wide = values.astype(np.float64)
    return np.isfinite(wide) & (wide > float(info.min) - 1) & (wide < float(info.max) + 1)


def packed(name, values):
    bits = BITS.get(name, 8)
    codes = np.ascontiguousarray(values).view(np.uint8)
    if bits == 8:
        return codes.tobytes()
    stream = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :bits].reshape(-1)
    return np.packbits(stream, bitorder="little").tobytes()


def main(folder):
    random = np.random.default_rng(SEED)
    targets = FLOATS + [name for name in SMALL_FLOATS if name != "float8_e8m0fnu"] + INTEGERS + SMALL_INTEGERS + ["bool"]
    listed = []
    for source in FLOATS + SMALL_FLOATS + INTEGERS + SMALL_INTEGERS:
        values = source_of(source, random)
        for target in targets:
            if target == source:
                continue
            is_float = source in FLOATS + SMALL_FLOATS
            kept = values[held_by(values, target)] if is_float else values
            try:
                with np.errstate(all="ignore"):
                    cast = kept.astype(dtype_of(target))
            except TypeError:
                # ml_dtypes has no casts between some of its own types.
                continue
            name = f"{source}_to_{target}"
            with open(os.path.join(folder, f"{name}.from"), "wb") as file:
                file.write(packed(source, kept))
            with open(os.path.join(folder, f"{name}.to"), "wb") as file:
                file.write(packed(target, cast))
            listed.append({"name": name, "from": source, "to": target, "count": len(kept)})
    with open(os.path.join(folder, "casts.json"), "w", encoding="utf-8") as file:
        json.dump(listed, file)


main(sys.argv[1])
