"""Writes models and tensors of every element type in every storage with the Python packages onnx and onnx_ir, and reads
what tilework wrote of them. `write FOLDER` makes files and `files.json`; `read FOLDER` compares `written.json`.

Values are compared as packed little-endian bytes, so that -0, NaN and unused bits count.
"""

import json
import os
import sys

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import safetensors
from onnx import TensorProto, helper

# Element type of ONNX, the one of numpy or ml_dtypes that its values have there.
TYPES = {
    "FLOAT": np.float32, "UINT8": np.uint8, "INT8": np.int8, "UINT16": np.uint16, "INT16": np.int16,
    "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_, "FLOAT16": np.float16, "DOUBLE": np.float64,
    "UINT32": np.uint32, "UINT64": np.uint64, "COMPLEX64": np.complex64, "COMPLEX128": np.complex128,
    "BFLOAT16": ml_dtypes.bfloat16, "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "UINT4": ml_dtypes.uint4, "INT4": ml_dtypes.int4,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn, "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
    "UINT2": ml_dtypes.uint2, "INT2": ml_dtypes.int2,
}
BITS = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 3, 4)]


def codes_of(name, shape, seed):
    """Random bits of elements, one element an entry for types below a byte."""
    count = int(np.prod(shape, dtype=np.int64))
    random = np.random.default_rng(seed)
    if name in BITS:
        return random.integers(0, 2 ** BITS[name], count, dtype=np.uint8)
    if name == "BOOL":
        return random.integers(0, 2, count, dtype=np.uint8)
    return random.integers(0, 256, count * np.dtype(TYPES[name]).itemsize, dtype=np.uint8)


def packed(name, codes):
    if name not in BITS:
        return codes.tobytes()
    per_byte = 8 // BITS[name]
    filled = np.concatenate([codes, np.zeros(-len(codes) % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * BITS[name]
    return (filled << shifts).sum(axis=1).astype(np.uint8).tobytes()


def array_of(name, shape, codes):
    return codes.view(TYPES[name]).reshape(shape)


def ir_tensor(name, shape, seed, own_name):
    data_type = ir.DataType[name]
    array = array_of(name, shape, codes_of(name, shape, seed))
    return ir.Tensor(array, dtype=data_type, name=own_name)


def typed_proto(name, shape, codes, own_name):
    """Values in the field of their type: the bytes are taken from a message that the package has made with raw_data."""
    proto = TensorProto(name=own_name, data_type=TensorProto.DataType.Value(name), dims=shape)
    data = packed(name, codes)
    field = helper.tensor_dtype_to_field(proto.data_type)
    entry = {"float_data": "<f4", "double_data": "<f8", "int64_data": "<i8"}.get(field)
    if field == "uint64_data":
        entry = "<u8" if name == "UINT64" else "<u4"
    if field == "int32_data":
        size = 1 if name in BITS else np.dtype(TYPES[name]).itemsize
        signed = np.issubdtype(TYPES[name], np.signedinteger) if name not in BITS else False
        entry = ("<i" if signed else "<u") + str(size)
    getattr(proto, field).extend(np.frombuffer(data, entry).tolist() if entry[1] != "f" else np.frombuffer(data, entry))
    return proto


def described(name, shape, codes, own_name):
    return {"name": own_name, "dtype": TensorProto.DataType.Value(name), "shape": list(shape), "bytes": packed(name, codes).hex()}


def model_of(tensors):
    graph = helper.make_graph([], "g", [], [], initializer=tensors)
    model = helper.make_model(graph, producer_name="interop")
    model.ir_version = 13
    return model


def write(folder):
    files = []
    raw, typed, listed = [], [], []
    for seed, (name, shape) in enumerate((name, shape) for name in TYPES for shape in SHAPES):
        own_name = f"{name}_{'x'.join(map(str, shape))}"
        codes = codes_of(name, shape, seed)
        code = TensorProto.DataType.Value(name)
        raw.append(TensorProto(name=own_name, data_type=code, dims=shape, raw_data=packed(name, codes)))
        # A float that is a signalling NaN does not survive Python's own numbers.
        typed.append(typed_proto(name, shape, quiet(name, codes), own_name))
        listed.append((name, shape, codes, own_name))
        onnx.save_tensor(raw[-1], os.path.join(folder, f"{own_name}.pb"))
        files.append({"file": f"{own_name}.pb", "tensors": [described(*listed[-1])]})
    everything = [described(*each) for each in listed]
    onnx.save_model(model_of(raw), os.path.join(folder, "raw.onnx"))
    files.append({"file": "raw.onnx", "tensors": everything})
    onnx.save_model(model_of(typed), os.path.join(folder, "typed.onnx"))
    quieted = [described(name, shape, quiet(name, codes), own_name) for name, shape, codes, own_name in listed]
    files.append({"file": "typed.onnx", "tensors": quieted})
    onnx.save_model(
        model_of(raw), os.path.join(folder, "outside.onnx"), save_as_external_data=True,
        location="outside.bin", size_threshold=0,
    )
    files.append({"file": "outside.onnx", "tensors": everything})
    graph = ir.Graph([], [], nodes=[], initializers=[
        ir.Value(name=own_name, const_value=ir_tensor(name, shape, seed, own_name))
        for seed, (name, shape, _, own_name) in enumerate(listed)
    ], opset_imports={"": 24}, name="g")
    ir.save(ir.Model(graph, ir_version=13), os.path.join(folder, "ir.onnx"), external_data="ir.bin", size_threshold_bytes=8)
    files.append({"file": "ir.onnx", "tensors": everything})
    texts = helper.make_tensor("texts", TensorProto.STRING, [2], ["ä".encode(), b""])
    onnx.save_tensor(texts, os.path.join(folder, "texts.pb"))
    with open(os.path.join(folder, "files.json"), "w", encoding="utf8") as file:
        json.dump(files, file)


def quiet(name, codes):
    """The same bits without signalling NaN, which becomes a quiet one on the way through a C double."""
    width = {"FLOAT": 4, "COMPLEX64": 4}.get(name)
    if width is None:
        return codes
    values = codes.view(np.uint32).copy()
    values[np.isnan(values.view(np.float32))] = 0x7FC00000
    return values.view(np.uint8)


def read(folder):
    with open(os.path.join(folder, "written.json"), encoding="utf8") as file:
        written = json.load(file)
    for entry in written:
        path = os.path.join(folder, entry["file"])
        if entry["file"].endswith(".pb"):
            tensors = [ir.from_proto(onnx.load_tensor(path))]
        else:
            onnx.checker.check_model(path)
            tensors = [value.const_value for value in ir.load(path).graph.initializers.values()]
        assert len(tensors) == len(entry["tensors"]), path
        for tensor, expected in zip(tensors, entry["tensors"]):
            # An external tensor without elements asserts in tobytes() of onnx_ir.
            data = tensor.tobytes() if tensor.size > 0 else b""
            found = {"name": tensor.name, "dtype": int(tensor.dtype), "shape": list(tensor.shape), "bytes": data.hex()}
            assert found == expected, f"{path}: {found} is not {expected}"
    read_named(folder)


def read_named(folder):
    """Tensors of initializers and attributes in data files that are safetensors files."""
    path = os.path.join(folder, "named.onnx")
    onnx.checker.check_model(path)
    with open(os.path.join(folder, "named.json"), encoding="utf8") as file:
        entries = {each["name"]: each for each in json.load(file)}
    expected = {name: bytes.fromhex(each["bytes"]) for name, each in entries.items()}
    model = onnx.load(path)
    tensors = list(model.graph.initializer) + [node.attribute[0].t for node in model.graph.node]
    assert len(tensors) > len(expected), "no tensors of attributes"
    for tensor in tensors:
        assert tensor.raw_data == expected[tensor.name], f"{path}: {tensor.name}"
    named = {}
    for name in sorted(os.listdir(folder)):
        if name.startswith("named") and name.endswith(".safetensors"):
            with open(os.path.join(folder, name), "rb") as file:
                for key, entry in safetensors.deserialize(file.read()):
                    named[key] = bytes(entry["data"])
    for name, data in expected.items():
        if stays_inside(entries[name]):
            assert name not in named, f"{name} is a list from which shapes may follow, and outside the model"
        else:
            assert data == b"" or named[name] == data, f"{name} in the safetensors files"


def stays_inside(entry):
    """Whether shapes may follow from the values: a list of whole numbers below 1024 bytes, which docs/onnx.md keeps in the model."""
    is_list = entry["dtype"] in (TensorProto.INT32, TensorProto.INT64) and len(entry["shape"]) <= 1
    return is_list and len(entry["bytes"]) // 2 < 1024


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
