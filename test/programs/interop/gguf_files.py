"""gguf-py's side of interop_gguf.mjs. `make FOLDER COUNT SEED`: for each type a file with COUNT blocks of random bits and their numbers,
and where gguf-py quantizes, numbers with their blocks. `read FOLDER`: compares the files that tilework wrote of them."""
import json
import os
import sys

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

QUANTIZED = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "TQ1_0", "TQ2_0", "MXFP4"]
QUIET_NAN = 0x7FC00000
# A row is one block of every type.
ROW = 256

np.seterr(all="ignore")


def path_of(folder, name):
    return os.path.join(folder, name)


def numbers_of(random, rows):
    """Finite numbers of many magnitudes, ties of rounding and rows of zeros among them."""
    numbers = random.standard_normal((rows, ROW)) * 10.0 ** random.integers(-6, 4, (rows, 1))
    halves = random.integers(-127, 128, (rows, ROW)) / 2
    kind = random.integers(0, 8, (rows, 1))
    numbers = np.where(kind == 0, halves, numbers)
    return np.where(kind == 1, 0, numbers).astype(np.float32)


def write_file(path, blocks, kind):
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("blocks", blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(folder, count, seed):
    random = np.random.default_rng(seed)
    made = []
    for kind in GGMLQuantizationType:
        elements, size = GGML_QUANT_SIZES.get(kind, (1, 1))
        if elements == 1:
            continue
        blocks = random.integers(0, 256, (count, size), np.uint8)
        try:
            numbers = dequantize(blocks, kind)
        except NotImplementedError:
            continue
        bits = numbers.astype(np.float32).view(np.uint32)
        bits[np.isnan(numbers)] = QUIET_NAN
        bits.tofile(path_of(folder, f"{kind.name}.numbers"))
        write_file(path_of(folder, f"{kind.name}.gguf"), blocks, kind)
        made.append(kind.name)
    numbers = numbers_of(random, max(1, count * 32 // ROW))
    numbers.tofile(path_of(folder, "finite"))
    for name in QUANTIZED:
        quantize(numbers, GGMLQuantizationType[name]).tofile(path_of(folder, f"{name}.blocks"))
    print(json.dumps({"types": made, "quantized": QUANTIZED}))


def value_of(field):
    contents = field.contents()
    return contents.tolist() if isinstance(contents, np.ndarray) else contents


def read(folder):
    with open(path_of(folder, "written.json"), encoding="utf8") as file:
        expected = json.load(file)
    reader = GGUFReader(path_of(folder, "written.gguf"))
    for key, value in expected["metadata"].items():
        found = value_of(reader.fields[key])
        assert found == value, (key, found, value)
    names = [tensor.name for tensor in reader.tensors]
    assert names == expected["tensors"], names
    for tensor in reader.tensors:
        blocks = np.fromfile(path_of(folder, f"{tensor.tensor_type.name}.blocks"), np.uint8)
        assert np.array_equal(np.asarray(tensor.data).view(np.uint8).ravel(), blocks), tensor.name
    print(json.dumps({"tensors": len(names), "keys": len(expected["metadata"])}))


if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    read(sys.argv[2])
