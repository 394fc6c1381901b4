"""Models written with onnxscript, for model_set.py; in a file of their own because onnxscript reads the source of functions."""
import numpy as np
from onnxscript import FLOAT, opset18 as op, script
from onnxscript.values import Opset

own = Opset('own', 1)


@script(own, default_opset=op)
def gelu(x):
    half = op.Constant(value_float=0.5)
    return op.Mul(op.Mul(x, half), op.Add(op.Erf(op.Mul(x, op.Constant(value_float=0.7071))), op.Constant(value_float=1.0)))


@script(own, default_opset=op)
def leaky(x, slope: float = 0.1):
    return op.LeakyRelu(x, alpha=slope)


@script(default_opset=op)
def calls(x: FLOAT[2, 4]) -> FLOAT[2, 4]:
    a = gelu(x)
    b = leaky(a, slope=0.3)
    return op.Add(gelu(b), x)


@script(default_opset=op)
def branches(x: FLOAT[2, 4]) -> FLOAT[2, 4]:
    total = op.ReduceSum(x, keepdims=0)
    if total > 0.0:
        y = gelu(x)
    else:
        y = op.Neg(x)
    return y


@script(default_opset=op)
def repeats(x: FLOAT[2, 4]) -> FLOAT[2, 4]:
    y = op.Identity(x)
    for i in range(3):
        y = op.Add(op.Mul(y, 0.5), x)
    return y


@script(default_opset=op)
def until(x: FLOAT[2, 4]) -> FLOAT[2, 4]:
    y = op.Abs(x)
    go = op.ReduceMax(y, keepdims=0) < 10.0
    while go:
        y = y + 1.5
        go = op.ReduceMax(y, keepdims=0) < 10.0
    return y


@script(default_opset=op)
def shapes(x: FLOAT['N', 'M']) -> FLOAT['K']:
    size = op.Shape(x)
    count = op.ReduceProd(size, keepdims=1)
    flat = op.Reshape(x, count)
    return op.Reshape(op.Concat(flat, flat, axis=0), op.Constant(value_ints=[-1]))


def models():
    x = np.random.default_rng(3).standard_normal((2, 4)).astype(np.float32)
    for function in (calls, branches, repeats, until, shapes):
        yield f'script-{function.name}', function.to_model_proto(), {'x': x}
