"""Writes results of QuantizeLinear and DequantizeLinear by onnx's reference implementation, for interop_casts.mjs.

Each case has four files (input, scales, zero points, output) and a line in quantize.json. Quotients stay below 2^31,
because numpy's cast of larger values to int32 depends on the processor.
"""
import json
import sys

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

folder = sys.argv[1]
# Two-bit types came with it.
OPSET = 25
SHAPE = (3, 10, 7)
BLOCK = 4
INTEGERS = {
    "int8": (np.int8, -128, 127),
    "uint8": (np.uint8, 0, 255),
    "int16": (np.int16, -32768, 32767),
    "uint16": (np.uint16, 0, 65535),
    "int4": (ml_dtypes.int4, -8, 7),
    "uint4": (ml_dtypes.uint4, 0, 15),
    "int2": (ml_dtypes.int2, -2, 1),
    "uint2": (ml_dtypes.uint2, 0, 3),
}
FLOATS = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}
ELEMENTS = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "uint16": TensorProto.UINT16,
    "int32": TensorProto.INT32,
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
    "int2": TensorProto.INT2,
    "uint2": TensorProto.UINT2,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": TensorProto.FLOAT8E5M2FNUZ,
    "float4_e2m1fn": TensorProto.FLOAT4E2M1,
}
random = np.random.default_rng(1967)
# float16 overflows to infinity, on both sides.
np.seterr(over="ignore")


def run(op, inputs, dtypes, **attributes):
    """One operator by the reference implementation."""
    names = [f"in{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["out"], **attributes)
    values = [helper.make_tensor_value_info(n, ELEMENTS[d], None) for n, d in zip(names, dtypes)]
    result = helper.make_tensor_value_info("out", TensorProto.UNDEFINED, None)
    graph = helper.make_graph([node], "g", values, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))[0]


def granularities():
    """Attributes and shapes of scales: for the tensor, an axis, and blocks along it."""
    yield {}, ()
    yield {"axis": 1}, (SHAPE[1],)
    yield {"axis": 0}, (SHAPE[0],)
    yield {"axis": 1, "block_size": BLOCK}, (SHAPE[0], -(-SHAPE[1] // BLOCK), SHAPE[2])


def numbers(scale_shape, spread):
    """Multiples of half a scale, which are ties, beside others."""
    halves = random.integers(-2 * spread, 2 * spread, SHAPE).astype(np.float32) / 2
    noise = random.normal(0, spread / 2, SHAPE).astype(np.float32)
    return np.where(random.random(SHAPE) < 0.5, halves, noise).astype(np.float32)


def scales(shape):
    """Powers of two half of the time, so that ties stay ties."""
    powers = np.float32(2.0) ** random.integers(-4, 4, shape)
    others = random.uniform(0.01, 4, shape).astype(np.float32)
    return np.where(random.random(shape) < 0.5, powers, others).astype(np.float32)


cases = []


def codes(array):
    """Codes one an element: as they are, or the bits of floats."""
    if array.dtype.name in FLOATS:
        return array.view(np.uint8)
    return array.astype(np.int8 if array.dtype.name in ("int4", "int2") else
                        np.uint8 if array.dtype.name in ("uint4", "uint2") else array.dtype)


def record(kind, from_type, to_type, granularity, saturate, **arrays):
    name = f"q{len(cases)}"
    for role, array in arrays.items():
        np.ascontiguousarray(array).tofile(f"{folder}/{name}.{role}")
    cases.append({"name": name, "kind": kind, "from": from_type, "to": to_type, "shape": SHAPE,
                  "count": int(np.prod(SHAPE)), "saturate": saturate, **granularity})


def quantize_cases():
    for from_type, array_type in (("float32", np.float32), ("float16", np.float16), ("int32", np.int32)):
        for granularity, shape in granularities():
            for to_type, (code_type, low, high) in INTEGERS.items():
                spread = min(high - low, 20000)
                x = numbers(shape, spread).astype(array_type)
                scale = scales(shape)
                zero = random.integers(low, high + 1, shape).astype(code_type)
                y = run("QuantizeLinear", [x, scale, zero], [from_type, "float32", to_type], **granularity)
                record("quantize", from_type, to_type, granularity, True, x=x, scale=scale,
                       zero=np.asarray(zero).astype(np.float32), y=codes(y))
            for to_type, code_type in FLOATS.items():
                for saturate in (True, False):
                    x = numbers(shape, 2000).astype(array_type)
                    scale = scales(shape)
                    zero = np.zeros(shape, np.float32).astype(code_type)
                    y = run("QuantizeLinear", [x, scale, zero], [from_type, "float32", to_type],
                            saturate=int(saturate), **granularity)
                    record("quantize", from_type, to_type, granularity, saturate, x=x, scale=scale,
                           zero=np.zeros(shape, np.float32), y=codes(y))


def dequantize_cases():
    for granularity, shape in granularities():
        for to_type, scale_type in (("float32", np.float32), ("float16", np.float16)):
            for from_type, (code_type, low, high) in INTEGERS.items():
                x = random.integers(low, high + 1, SHAPE).astype(code_type)
                scale = scales(shape).astype(scale_type)
                zero = random.integers(low, high + 1, shape).astype(code_type)
                y = run("DequantizeLinear", [x, scale, zero], [from_type, to_type, from_type], **granularity)
                record("dequantize", from_type, to_type, granularity, True, x=codes(x),
                       scale=scale.astype(np.float32), zero=np.asarray(zero).astype(np.float32), y=y)
            for from_type, code_type in FLOATS.items():
                x = random.uniform(-6, 6, SHAPE).astype(np.float32).astype(code_type)
                scale = scales(shape).astype(scale_type)
                y = run("DequantizeLinear", [x, scale], [from_type, to_type], **granularity)
                record("dequantize", from_type, to_type, granularity, True, x=codes(x),
                       scale=scale.astype(np.float32), zero=np.zeros(shape, np.float32), y=y)


quantize_cases()
dequantize_cases()
with open(f"{folder}/quantize.json", "w", encoding="utf-8") as file:
    json.dump(cases, file)
