"""Times casts of numpy and ml_dtypes, for bench/cast_in_python.mjs.

Reads cases as JSON, prints for each GB/s of the cast and of a copy of as many bytes, in interleaved rounds. Types of less than
a byte are left out: ml_dtypes keeps one element a byte.
"""
import json
import sys
import time

import ml_dtypes
import numpy as np

ROUNDS = 15
# A cast that is slower than this has few rounds.
LONG_SECONDS = 0.2
LEAST_ROUNDS = 2


def dtype_of(name):
    if hasattr(ml_dtypes, name):
        return np.dtype(getattr(ml_dtypes, name)), "ml_dtypes"
    return np.dtype(name), "numpy"


def is_packed(name):
    return name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn")


def seconds_of(run):
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def values_of(count):
    """Numbers between 2^-8 and 2^8 of both signs, as bench/native/cast_bench.cc has them."""
    random = np.random.default_rng(1)
    sizes = np.ldexp(random.uniform(1, 2, count), random.integers(-8, 8, count))
    return np.copysign(sizes, random.uniform(-1, 1, count)).astype(np.float32)


def measure(case):
    source_type, first = dtype_of(case["dtype"])
    target_type, second = dtype_of(case["castTo"])
    source = values_of(int(np.prod(case["shape"]))).astype(source_type)
    target = np.empty(source.shape, target_type)
    copied = np.ones(case["bytes"] // 2, np.uint8)
    copy_target = np.ones_like(copied)
    best_cast = best_copy = float("inf")
    rounds = ROUNDS
    for index in range(ROUNDS):
        if index >= rounds:
            break
        best_cast = min(best_cast, seconds_of(lambda: np.copyto(target, source, casting="unsafe")))
        best_copy = min(best_copy, seconds_of(lambda: np.copyto(copy_target, copied)))
        if best_cast > LONG_SECONDS:
            rounds = LEAST_ROUNDS
    rate = lambda seconds: case["bytes"] / seconds / 1e9
    library = "ml_dtypes" if "ml_dtypes" in (first, second) else "numpy"
    return {"library": library, "cast": rate(best_cast), "copy": rate(best_copy)}


np.seterr(all="ignore")
cases = [case for case in json.load(sys.stdin) if not is_packed(case["dtype"]) and not is_packed(case["castTo"])]
json.dump({case["name"]: measure(case) for case in cases}, sys.stdout)
