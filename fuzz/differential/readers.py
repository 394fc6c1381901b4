"""Reads cases with the reader of another project, or with one that is written from the format's description alone.

python3 readers.py FORMAT [FILE]: FILE holds cases, each after its length. Prints one JSON object a case: {"tensors": [...]}
or {"refused": reason}. Each tensor is a line: name, element type, shape, and the SHA-256 of its row-major bytes.
"""

import hashlib
import io
import json
import math
import struct
import sys
import warnings

MAX_VALUE_BYTES = 2**20


class Refused(Exception):
    pass


def line(name, dtype, shape, values=None):
    text = f"{json.dumps(name, ensure_ascii=False)} {dtype} [{','.join(str(extent) for extent in shape)}]"
    if values is None or len(values) > MAX_VALUE_BYTES:
        return text
    return f"{text} {hashlib.sha256(values).hexdigest()}"


def make_npy():
    import numpy

    def read(data):
        # numpy's own limit of headers is no rule of the format.
        array = numpy.lib.format.read_array(io.BytesIO(data), allow_pickle=False, max_header_size=10**6)
        if array.dtype.kind in "US":
            return [line("", "string", array.shape)]
        # Raw bytes of an element type that numpy does not name, and times, are integers for tilework.
        name = {"V": "uint16", "M": "int64"}.get(array.dtype.kind, array.dtype.name)
        values = numpy.ascontiguousarray(array)
        if values.dtype.byteorder == ">":
            values = values.astype(values.dtype.newbyteorder("<"))
        return [line("", name, array.shape, values.tobytes())]

    return read


SAFETENSORS = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16",
    "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32", "F64": "float64", "I64": "int64",
    "U64": "uint64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn", "C64": "complex64",
}  # fmt: skip


def make_safetensors():
    from safetensors import deserialize

    def read(data):
        lines = []
        for name, entry in deserialize(data):
            dtype = SAFETENSORS.get(entry["dtype"], entry["dtype"])
            lines.append(line(name, dtype, entry["shape"], bytes(entry["data"])))
        # By UTF-16 code units, as JavaScript sorts.
        return sorted(lines, key=lambda text: text.encode("utf-16-be"))

    return read


def make_onnx():
    import numpy
    import onnx

    names = {
        1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string",
        9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128",
        16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz",
        21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
    }  # fmt: skip

    def values(tensor):
        if tensor.data_type in (8, 21, 22, 23, 25, 26) or math.prod(tensor.dims) > MAX_VALUE_BYTES:
            return None
        if tensor.data_location != onnx.TensorProto.DEFAULT:
            return None
        try:
            array = onnx.numpy_helper.to_array(tensor)
        except Exception:
            return None
        return numpy.ascontiguousarray(array).tobytes()

    def read(data):
        model = onnx.ModelProto()
        model.ParseFromString(data)
        return [
            line(t.name, names.get(t.data_type, t.data_type), t.dims, values(t)) for t in model.graph.initializer
        ]

    return read


BTF = ["int8", "int16", "int32", "int64", "float32", "float64", "uint8", "uint16", "uint32", "uint64"]
BTF_BYTES = [1, 2, 4, 8, 4, 8, 1, 2, 4, 8]


def make_btf():
    def numbers(data, at, count):
        if count > len(data) or at + 8 * count > len(data):
            raise Refused("truncated")
        return list(struct.unpack_from(f"<{count}Q", data, at)), at + 8 * count

    def payload(data, at, rank, width):
        shape, at = numbers(data, at, rank)
        end = at + math.prod(shape) * width
        if end > len(data):
            raise Refused("truncated")
        return shape, data[at:end], end

    def record(data, at):
        (rank,), at = numbers(data, at, 1)
        if at + 8 > len(data):
            raise Refused("truncated")
        dtype, layout = data[at], data[at + 1]
        if dtype >= len(BTF) or layout > 2:
            raise Refused("code")
        width = BTF_BYTES[dtype]
        if layout == 0:
            shape, values, _ = payload(data, at + 8, rank, width)
            return BTF[dtype], shape, values
        shape, at = numbers(data, at + 8, rank)
        (entries, axes), _, at = payload(data, at, 2, 8)
        (count,), _, _ = payload(data, at, 1, width)
        if axes != rank or count != entries:
            raise Refused("sparse")
        return "sparse", shape, None

    def read(data):
        (count,), at = numbers(data, 0, 1)
        offsets, _ = numbers(data, at, count)
        return [line(str(index), *record(data, offset)) for index, offset in enumerate(offsets)]

    return read


# Element types by code, and their bytes.
TMFILE = [("float32", 4), ("float16", 2), ("int8", 1), ("uint8", 1), ("int32", 4), ("int16", 2)]
TMFILE_CONST = 2


def make_tmfile():
    def u32(data, at):
        if at + 4 > len(data):
            raise Refused("truncated")
        return struct.unpack_from("<I", data, at)[0]

    def vector(data, at, code="I"):
        count = u32(data, at)
        if at + 4 + 4 * count > len(data):
            raise Refused("truncated")
        return struct.unpack_from(f"<{count}{code}", data, at + 4)

    def blob(data, at):
        size, start = u32(data, at), u32(data, at + 4)
        if start + size > len(data):
            raise Refused("truncated")
        return data[start : start + size] if start else None

    def text(data, at):
        return (blob(data, at) or b"").removesuffix(b"\0").decode(errors="replace") if at else ""

    def tensor(data, at, index, buffers):
        buffer, dims, name, kind, code = (u32(data, at + field) for field in (4, 8, 12, 24, 28))
        if code >= len(TMFILE):
            raise Refused("data type")
        dtype, width = TMFILE[code]
        shape = vector(data, dims, "i") if dims else ()
        if any(extent < 0 for extent in shape):
            raise Refused("dims")
        values = None
        # A shape that is unknown until inference.
        if not dims:
            shape = (-1,)
        elif kind == TMFILE_CONST:
            if buffer >= len(buffers):
                raise Refused("buffer")
            values = blob(data, buffers[buffer])
            size = math.prod(shape) * width
            if values is not None and len(values) < size:
                raise Refused("short buffer")
            values = None if values is None else values[:size]
        return line(text(data, name) if name else f"tensor_{index}", dtype, shape, values)

    def read(data):
        if len(data) < 12 or struct.unpack_from("<H", data, 0)[0] != 2:
            raise Refused("version")
        graph = vector(data, u32(data, u32(data, 8) + 8))[0]
        tensors, buffers = (vector(data, u32(data, graph + field)) for field in (24, 28))
        return [tensor(data, at, index, buffers) for index, at in enumerate(tensors)]

    return read


READERS = {"btf": make_btf, "npy": make_npy, "onnx": make_onnx, "safetensors": make_safetensors, "tmfile": make_tmfile}


def main():
    warnings.simplefilter("ignore")
    read = READERS[sys.argv[1]]()
    if len(sys.argv) < 3:
        return
    with open(sys.argv[2], "rb") as file:
        cases = file.read()
    at = 0
    while at < len(cases):
        (length,) = struct.unpack_from("<I", cases, at)
        data = cases[at + 4 : at + 4 + length]
        at += 4 + length
        try:
            answer = {"tensors": read(data)}
        except Exception as error:
            answer = {"refused": f"{type(error).__name__} {str(error)[:40]}"}
        print(json.dumps(answer))


main()
