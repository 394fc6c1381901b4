"""
The Python side of test/programs/interop_npy.mjs.

    npy.py write FOLDER   saves arrays of every type, order and shape, and arrays.json, which lists their contents
    npy.py read FOLDER    reads files that are listed in written.json and compares them bit for bit

Values are compared as hexadecimal little-endian bytes in C order, so that NaN and -0 are compared too.
"""

import json
import os
import sys
import zipfile

import numpy as np

SHAPES = [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 1, 3, 2, 2)]
NUMBERS = ["?", "i1", "u1"] + [
    order + code
    for code in ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[ns]", "m8[25s]", "U3"]
    for order in "<>"
]
RAW = ["S4", "V1", "V2", "V4", "V8"]


def sample(dtype, shape):
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "b":
        values = np.arange(count) % 2 == 1
    elif dtype.kind == "U":
        values = np.array(["ab", "\u00e9\U0001d11e", "", "xyz"])[np.arange(count) % 4]
    elif dtype.kind == "S":
        values = np.array([b"ab", b"\xff\x00b", b"", b"wxyz"])[np.arange(count) % 4]
    else:
        raw = (np.arange(count * dtype.itemsize, dtype=np.uint64) * 37 + 11).astype(np.uint8)
        return raw.view(dtype.newbyteorder("=")).astype(dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


def hexadecimal(array):
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.kind not in "SV" else array
    return np.ascontiguousarray(little).tobytes().hex()


def describe(name, array):
    return {
        "name": name,
        "kind": array.dtype.kind,
        "descr": array.dtype.newbyteorder("<").str if array.dtype.kind not in "SV" else array.dtype.str,
        "shape": list(array.shape),
        "hex": hexadecimal(array),
        "fortran": bool(array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous),
    }


def arrays():
    for code in NUMBERS + RAW:
        for shape in SHAPES:
            for order in "CF" if len(shape) > 1 else "C":
                name = "{}_{}_{}".format(code, "x".join(map(str, shape)), order)
                name = name.replace("<", "l").replace(">", "b").replace("?", "bool").replace("/", "_")
                # A copy of its own: `reshape` of the above may be a view.
                yield name, np.array(sample(code, shape), order=order)


def write(folder):
    listed = []
    named = dict(arrays())
    for name, array in named.items():
        np.save(os.path.join(folder, name + ".npy"), array)
        listed.append({"file": name + ".npy", "arrays": [describe("arr_0", array)]})
    described = [describe(name, array) for name, array in named.items()]
    np.savez(os.path.join(folder, "stored.npz"), **named)
    np.savez_compressed(os.path.join(folder, "compressed.npz"), **named)
    large = {"zeros": np.zeros((600, 700)), "\u00e9/noise": np.random.default_rng(1).random((300, 301)).T}
    np.savez_compressed(os.path.join(folder, "large.npz"), **large)
    listed += [{"file": name, "arrays": described} for name in ("stored.npz", "compressed.npz")]
    listed.append({"file": "large.npz", "arrays": [describe(name, array) for name, array in large.items()]})
    with open(os.path.join(folder, "arrays.json"), "w", encoding="utf-8") as file:
        json.dump(listed, file)


def compare(where, array, expected):
    found = describe(expected["name"], array)
    for key in ("descr", "shape", "hex"):
        if found[key] != expected[key]:
            sys.exit("{}: {} is {}, not {}".format(where, key, str(found[key])[:200], str(expected[key])[:200]))


def header_of(data):
    return data[: 10 + int.from_bytes(data[8:10], "little")]


def read(folder):
    with open(os.path.join(folder, "written.json"), encoding="utf-8") as file:
        listed = json.load(file)
    for entry in listed:
        path = os.path.join(folder, entry["file"])
        if path.endswith(".npz"):
            if zipfile.ZipFile(path).testzip() is not None:
                sys.exit(path + ": a checksum differs")
            with np.load(path) as archive:
                if archive.files != [expected["name"] for expected in entry["arrays"]]:
                    sys.exit("{}: {}".format(path, archive.files))
                for expected in entry["arrays"]:
                    compare(path + " " + expected["name"], archive[expected["name"]], expected)
            continue
        array = np.load(path)
        compare(path, array, entry["arrays"][0])
        if array.size > 0:
            np.load(path, mmap_mode="r")
        if entry["sameBytes"]:
            again = os.path.join(folder, "again.npy")
            np.save(again, array)
            with open(path, "rb") as one, open(again, "rb") as other:
                mine, numpys = one.read(), other.read()
            if mine != numpys:
                sys.exit("{}: numpy writes {}, not {}".format(path, header_of(numpys), header_of(mine)))


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
