"""Reads files of `bench -- remote` by fsspec; called by remote.mjs. Reads cases as JSON, prints seconds and SHA-256 per case."""
import hashlib
import json
import sys
import time

import fsspec
import numpy as np

try:
    import onnx
    from onnx import numpy_helper
except ImportError:
    onnx = None


def read_safetensors(fs, url, name):
    """The format by hand, on a file of fsspec: the package safetensors opens files of this machine only."""
    with fs.open(url) as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        if name is None:
            return header
        start, end = header[name]["data_offsets"]
        file.seek(8 + length + start)
        return np.frombuffer(file.read(end - start), np.uint8)


def read_safetensors_ranges(fs, url, name):
    """The same with ranges, as an expert writes it."""
    length = int.from_bytes(fs.cat_file(url, 0, 8), "little")
    header = json.loads(fs.cat_file(url, 8, 8 + length))
    if name is None:
        return header
    start, end = header[name]["data_offsets"]
    return np.frombuffer(fs.cat_file(url, 8 + length + start, 8 + length + end), np.uint8)


def read_npy(fs, url, name):
    with fs.open(url) as file:
        if name is None:
            np.lib.format.read_magic(file)
            return np.lib.format.read_array_header_1_0(file)
        return np.load(file)


def read_npz(fs, url, name):
    with fs.open(url) as file, np.load(file) as archive:
        return archive.files if name is None else archive[name]


def read_onnx(fs, url, name):
    with fs.open(url) as file:
        model = onnx.load_model(file, load_external_data=False)
    if name is None:
        return model
    value = next(each for each in model.graph.initializer if each.name == name)
    if value.data_location != onnx.TensorProto.EXTERNAL:
        return numpy_helper.to_array(value)
    # onnx reads external data from folders of this machine only.
    external = {each.key: each.value for each in value.external_data}
    folder, _, rest = url.rpartition("/")
    data = f"{folder}/{external['location']}?{rest.partition('?')[2]}"
    start = int(external["offset"])
    return np.frombuffer(fs.cat_file(data, start, start + int(external["length"])), np.uint8)


READERS = {
    "safetensors": {"fsspec file": read_safetensors, "fsspec ranges": read_safetensors_ranges},
    "npy": {"numpy.load": read_npy},
    "npz": {"numpy.load": read_npz},
    "onnx": {"onnx.load_model": read_onnx},
    "onnx, external": {"onnx.load_model": read_onnx},
}


def measure(case, label, read, rounds):
    best = float("inf")
    for _ in range(rounds):
        fs = fsspec.filesystem("http", skip_instance_cache=True)
        started = time.perf_counter()
        value = read(fs, f"{case['url']}?{case['key']}-{label.replace(' ', '-')}", case["name"])
        best = min(best, time.perf_counter() - started)
    sha = None if case["name"] is None else hashlib.sha256(np.ascontiguousarray(value)).hexdigest()
    return {"label": label, "seconds": best, "sha": sha}


def main():
    given = json.load(sys.stdin)
    results = []
    for case in given["cases"]:
        readers = READERS.get(case["format"], {})
        if onnx is None and case["format"].startswith("onnx"):
            readers = {}
        results.append([measure(case, label, read, given["rounds"]) for label, read in readers.items()])
    json.dump(results, sys.stdout)


main()
