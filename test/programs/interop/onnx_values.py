"""Writes graphs of constants and what they are: python3 onnx_values.py FOLDER COUNT SEED [OPERATOR...], or --fixture FILE COUNT SEED

COUNT random graphs of one to four nodes, with values that onnxruntime computes, and in the folder also the node tests of onnx with
their inputs as initializers. FOLDER gets `graphs.jsonl`: by line {name, model, values} with the model in base64, and by name of a
value [dtype, shape, bytes in base64]. Floats are those of a run without optimizations and without repacked weights.
"""
import base64
import json
import os
import sys
import warnings
from random import Random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from plain_session import session

REALS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, -7.25, 1e4, 65504.0, 1e30, -1e30, 1e-42, 3e-8,
         float('inf'), float('-inf'), float('nan'), 16777217.0, 2147483648.0, 0.1, 1 / 3]
WHOLE = [0, 1, -1, 2, -2, 3, 5, 7, -7, 31, 63, 100, 127, -128, 255, 256, -300, 32767, -32768, 65535, 65536, 2**31 - 1,
         -(2**31), 2**32 + 3, 2**53 + 1, -(2**62), 2**63 - 1, -(2**63)]
FLOATS = ['float32', 'float64', 'float16']
SIGNED = ['int32', 'int64']
INTEGERS = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ['bool']


class Maker:
    def __init__(self, seed):
        self.random = Random(seed)
        self.opset = self.random.choice([7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 22])

    def pick(self, values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def shape(self, low=0, high=3):
        return [self.pick([1, 1, 2, 2, 3, 3, 4, 0 if self.chance(0.1) else 2]) for _ in range(self.random.randint(low, high))]

    def array(self, dtype, shape, calm=False):
        size = int(np.prod(shape, dtype=np.int64))
        if dtype == 'bool':
            values = [self.pick([True, False]) for _ in range(size)]
        elif dtype.startswith('float'):
            pool = [0.0, 1.0, -2.0, 2.5, 0.75, 3.0, -0.5] if calm else REALS
            values = [self.pick(pool) if self.chance(0.7) else self.random.uniform(-5, 5) for _ in range(size)]
        else:
            pool = [0, 1, 2, 3, 5] if calm else WHOLE
            values = [self.pick(pool) for _ in range(size)]
            bits = np.dtype(dtype).itemsize * 8
            values = [value % 2**bits for value in values]
            return np.array(values, dtype=f'uint{bits}').view(dtype).reshape(shape)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return np.array(values, dtype=np.float64 if dtype.startswith('float') else bool).astype(dtype).reshape(shape)

    def ints(self, values):
        return np.array(values, dtype=np.int64)

    def like(self, shape):
        """A shape that broadcasts with another one."""
        cut = self.random.randint(0, len(shape))
        return [1 if self.chance(0.3) else extent for extent in shape[cut:]]

    def axis(self, rank):
        return self.random.randint(-rank, rank - 1)

    def axes(self, rank):
        chosen = self.random.sample(range(rank), self.random.randint(1, rank)) if rank else []
        return [axis - rank if self.chance(0.3) else axis for axis in chosen]


def rank_of(x, least):
    return None if x.ndim < least else x.ndim


def binary(dtypes, attributes=lambda m: {}, since=7):
    def make(m, x):
        if str(x.dtype) not in dtypes or m.opset < since:
            return None
        other = m.array(str(x.dtype), m.like(x.shape))
        return ([x, other] if m.chance(0.6) else [other, x]), attributes(m)
    return make


def unary(dtypes, since=1):
    return lambda m, x: ([x], {}) if str(x.dtype) in dtypes and m.opset >= since else None


def variadic(dtypes, since=8):
    def make(m, x):
        if str(x.dtype) not in dtypes or m.opset < since:
            return None
        return [x] + [m.array(str(x.dtype), m.like(x.shape)) for _ in range(m.random.randint(0, 3))], {}
    return make


def listed(name, since, make_list):
    """A list by an attribute, or from a version on by the second input."""
    def make(m, x):
        values = make_list(m, x)
        if values is None:
            return None
        return ([x], {name: values}) if m.opset < since else ([x, m.ints(values)], {})
    return make


def unsqueeze(m, x):
    count = m.random.randint(1, 2)
    rank = x.ndim + count
    chosen = m.random.sample(range(rank), count)
    return [axis - rank if m.chance(0.3) else axis for axis in chosen]


def squeeze(m, x):
    ones = [axis for axis, extent in enumerate(x.shape) if extent == 1]
    chosen = [axis - x.ndim if m.chance(0.3) and m.opset >= 11 else axis for axis in ones if m.chance(0.7)]
    return chosen or None


def slices(m, x):
    if x.ndim == 0:
        return None
    axes = [axis % x.ndim if m.opset < 10 else axis for axis in m.axes(x.ndim)]
    far = [-(2**63), 2**63 - 1, 2**31 - 1]
    bound = lambda: m.random.choice(far) if m.chance(0.2) else m.random.randint(-5, 5)
    starts, ends = [[bound() for _ in axes] for _ in range(2)]
    if m.opset < 10:
        return [x], {'starts': starts, 'ends': ends, 'axes': axes}
    steps = [m.pick([1, 1, 2, -1, -2, 3]) for _ in axes]
    return [x, m.ints(starts), m.ints(ends), m.ints(axes), m.ints(steps)], {}


def reduction(dtypes, since=18):
    def make(m, x):
        if str(x.dtype) not in dtypes or 0 in x.shape:
            return None
        attributes = {'keepdims': m.pick([0, 1])}
        axes = m.axes(x.ndim)
        if m.opset < 11:
            axes = [axis % x.ndim for axis in axes]
        if not axes or m.chance(0.3):
            if m.opset >= since and m.chance(0.5):
                attributes['noop_with_empty_axes'] = 1
            return [x], attributes
        return ([x], {**attributes, 'axes': axes}) if m.opset < since else ([x, m.ints(axes)], attributes)
    return make


def reshape(m, x):
    size = int(x.size)
    if size == 0:
        return None
    divisors = [each for each in range(1, size + 1) if size % each == 0]
    first = m.pick(divisors)
    target = m.pick([[-1], [first, -1], [first, size // first], [1, -1, first]])
    if x.ndim and m.chance(0.3):
        target = [0, -1]
    return [x, m.ints(target)], {}


def cast(m, x):
    return [x], {'to': helper.np_dtype_to_tensor_dtype(np.dtype(m.pick(ALL)))}


def gather(m, x):
    if x.ndim == 0:
        return None
    axis = m.axis(x.ndim) if m.opset >= 11 else m.random.randint(0, x.ndim - 1)
    extent = x.shape[axis]
    if extent == 0:
        return None
    least = -extent if m.opset >= 11 else 0
    shape = m.shape(0, 2)
    indices = [m.random.randint(least, extent - 1) for _ in range(int(np.prod(shape, dtype=np.int64)))]
    return [x, np.array(indices, dtype=m.pick(SIGNED)).reshape(shape)], {'axis': axis}


def gather_elements(m, x):
    if x.ndim == 0 or 0 in x.shape or m.opset < 11:
        return None
    axis = m.axis(x.ndim)
    shape = [m.random.randint(1, extent) for extent in x.shape]
    shape[axis] = m.random.randint(1, 4)
    indices = [m.random.randint(-x.shape[axis], x.shape[axis] - 1) for _ in range(int(np.prod(shape)))]
    return [x, np.array(indices, dtype=np.int64).reshape(shape)], {'axis': axis}


def rows(m, x, batch=0):
    depth = m.random.randint(1, x.ndim - batch)
    lead = list(x.shape[:batch]) + [m.random.randint(1, 3)]
    count = int(np.prod(lead))
    indices = [[m.random.randint(-extent, extent - 1) for extent in x.shape[batch:batch + depth]] for _ in range(count)]
    return np.array(indices, dtype=np.int64).reshape(lead + [depth])


def gather_nd(m, x):
    if x.ndim == 0 or 0 in x.shape or m.opset < 11:
        return None
    batch = m.random.randint(0, x.ndim - 1) if m.opset >= 12 and m.chance(0.4) else 0
    return [x, rows(m, x, batch)], ({'batch_dims': batch} if batch else {})


def scatter_nd(m, x):
    if x.ndim == 0 or 0 in x.shape or m.opset < 11:
        return None
    # One row, so that the order of writes does not matter.
    indices = rows(m, x)[:1]
    inner = list(x.shape[indices.shape[-1]:])
    return [x, indices, m.array(str(x.dtype), [1] + inner)], {}


def scatter_elements(m, x):
    if x.ndim == 0 or 0 in x.shape or m.opset < 11:
        return None
    axis = m.axis(x.ndim)
    shape = [m.random.randint(1, extent) for extent in x.shape]
    shape[axis] = 1
    indices = [m.random.randint(-x.shape[axis], x.shape[axis] - 1) for _ in range(int(np.prod(shape)))]
    return [x, np.array(indices, dtype=np.int64).reshape(shape), m.array(str(x.dtype), shape)], {'axis': axis}


def concat(m, x):
    if x.ndim == 0:
        return None
    axis = m.axis(x.ndim) if m.opset >= 11 else m.random.randint(0, x.ndim - 1)
    others = []
    for _ in range(m.random.randint(0, 2)):
        shape = list(x.shape)
        shape[axis] = m.random.randint(0, 3)
        others.append(m.array(str(x.dtype), shape))
    return [x] + others, {'axis': axis}


def split(m, x):
    if x.ndim == 0:
        return None
    axis = m.axis(x.ndim) if m.opset >= 11 else m.random.randint(0, x.ndim - 1)
    extent = x.shape[axis]
    first = m.random.randint(0, extent)
    sizes = [first, extent - first]
    if m.opset < 13:
        return [x], {'axis': axis, 'split': sizes}, 2
    if m.opset >= 18 and m.chance(0.5) and extent > 1:
        return [x], {'axis': axis, 'num_outputs': 2}, 2
    return [x, m.ints(sizes)], {'axis': axis}, 2


def tile(m, x):
    return [x, m.ints([m.random.randint(0, 2) if m.chance(0.2) else m.random.randint(1, 2) for _ in x.shape])], {}


def expand(m, x):
    if m.opset < 8:
        return None
    target = [m.random.randint(1, 3) if extent == 1 else m.pick([1, extent]) for extent in x.shape]
    return [x, m.ints(([m.random.randint(1, 2)] if m.chance(0.4) else []) + target)], {}


def pad(m, x):
    if 0 in x.shape or x.ndim == 0:
        return None
    mode = m.pick(['constant', 'constant', 'edge', 'reflect'] + (['wrap'] if m.opset >= 19 else []))
    low = -1 if mode == 'constant' and m.chance(0.3) else 0
    limit = [2 if mode == 'constant' else extent - 1 for extent in x.shape]
    pads = [m.random.randint(low, max(low, each)) for each in limit + limit]
    if m.opset < 11:
        return ([x], {'mode': mode, 'pads': pads, 'value': 1.5}) if str(x.dtype) == 'float32' else None
    inputs = [x, m.ints(pads)]
    if mode == 'constant' and m.chance(0.5):
        inputs.append(m.array(str(x.dtype), []))
    if m.opset >= 18 and m.chance(0.4):
        chosen = m.random.sample(range(x.ndim), m.random.randint(1, x.ndim))
        inputs[1] = m.ints([pads[axis] for axis in chosen] + [pads[axis + x.ndim] for axis in chosen])
        inputs += [None] * (3 - len(inputs)) + [m.ints([axis - x.ndim if m.chance(0.3) else axis for axis in chosen])]
    return inputs, {'mode': mode}


def clip(m, x):
    kind = str(x.dtype)
    if m.opset < 11:
        return ([x], {'min': -1.5, 'max': m.pick([2.5, -2.0])}) if kind == 'float32' else None
    if m.opset < 12 and kind not in FLOATS:
        return None
    calm = lambda: m.array(kind, [], calm=True)
    return m.pick([[x], [x, calm()], [x, calm(), calm()], [x, None, calm()]]), {}


def one_hot(m, x):
    kind = m.pick(['float32', 'int64', 'int32'])
    if str(x.dtype) not in ('int32', 'int64', 'float32') or m.opset < 9:
        return None
    indices = m.array(str(x.dtype), x.shape, calm=True)
    if str(x.dtype) == 'float32':
        indices = np.floor(indices)
    return [indices, np.array(m.pick([3, 4]), dtype=np.int64), m.array(kind, [2])], {'axis': m.axis(x.ndim + 1)}


def top_k(m, x):
    if x.ndim == 0 or 0 in x.shape or (m.opset < 11 and str(x.dtype) not in FLOATS):
        return None
    axis = m.axis(x.ndim) if m.opset >= 11 else m.random.randint(0, x.ndim - 1)
    k = m.random.randint(1, x.shape[axis])
    if m.opset < 10:
        return [x], {'axis': axis, 'k': k}, 2
    attributes = {'largest': m.pick([0, 1])} if m.opset >= 11 else {}
    return [x, m.ints([k])], {'axis': axis, **attributes}, 2


def argument(m, x):
    if x.ndim == 0 or 0 in x.shape:
        return None
    axis = m.axis(x.ndim) if m.opset >= 11 else m.random.randint(0, x.ndim - 1)
    last = {'select_last_index': m.pick([0, 1])} if m.opset >= 12 else {}
    return [x], {'axis': axis, 'keepdims': m.pick([0, 1]), **last}


def cumsum(m, x):
    if x.ndim == 0 or m.opset < 11:
        return None
    return [x, m.ints(m.axis(x.ndim))], {'exclusive': m.pick([0, 1]), 'reverse': m.pick([0, 1])}


def compress(m, x):
    if x.ndim == 0 or m.opset < 9:
        return None
    if m.chance(0.5):
        axis = m.axis(x.ndim) if m.opset >= 11 else m.random.randint(0, x.ndim - 1)
        return [x, m.array('bool', [x.shape[axis]])], {'axis': axis}
    return [x, m.array('bool', [max(0, x.size - 1)])], {}


def range_of(m, x):
    kind = m.pick(['float32', 'float64', 'int32', 'int64', 'int16'])
    if m.opset < 11:
        return None
    step = m.pick([1, 2, -1, 0.1, 0.3] if kind.startswith('float') else [1, 2, -1, 3])
    values = [m.random.randint(-3, 3), m.random.randint(-3, 12), step]
    return [np.array(value, dtype=kind) for value in values], {}


def matmul(m, x):
    if x.ndim < 2 or str(x.dtype) not in ('int32', 'int64', 'uint32', 'uint64') or m.opset < 9:
        return None
    return [x, m.array(str(x.dtype), [x.shape[-1], m.random.randint(1, 3)])], {}


def where(m, x):
    if m.opset < 9:
        return None
    return [m.array('bool', m.like(x.shape)), x, m.array(str(x.dtype), m.like(x.shape))], {}


def quantize(m, x):
    if str(x.dtype) != 'float32' or m.opset < 10:
        return None
    kind = m.pick(['int8', 'uint8'] + (['int16', 'uint16'] if m.opset >= 21 else []))
    per_axis = x.ndim > 1 and m.opset >= 13 and m.chance(0.5)
    shape = [x.shape[1]] if per_axis else []
    scale = np.full(shape, m.pick([0.1, 0.25, 3.0]), dtype=np.float32)
    return [x, scale, m.array(kind, shape)], ({'axis': 1} if per_axis else {})


def dequantize(m, x):
    if str(x.dtype) not in ('int8', 'uint8') or m.opset < 10:
        return None
    per_axis = x.ndim > 1 and m.opset >= 13 and m.chance(0.5)
    shape = [x.shape[1]] if per_axis else []
    scale = np.abs(m.array('float32', shape, calm=True)) + np.float32(0.1)
    return [x, scale.astype(np.float32), m.array(str(x.dtype), shape)], ({'axis': 1} if per_axis else {})


def constant_of_shape(m, x):
    if m.opset < 9:
        return None
    value = m.array(m.pick(ALL), [1])
    return [m.ints(m.shape(0, 3))], ({'value': numpy_helper.from_array(value)} if m.chance(0.7) else {})


def flatten(m, x):
    if x.ndim == 0:
        return None
    return [x], {'axis': m.random.randint(0 if m.opset < 11 else -x.ndim, x.ndim)}


def transpose(m, x):
    perm = list(range(x.ndim))
    m.random.shuffle(perm)
    return [x], ({'perm': perm} if m.chance(0.7) else {})


def shape_of(m, x):
    return [x], ({'start': m.random.randint(-3, 3), 'end': m.random.randint(-3, 3)} if m.opset >= 15 else {})


def trilu(m, x):
    if x.ndim < 2 or m.opset < 14:
        return None
    return [x] + ([np.array(m.random.randint(-2, 2), dtype=np.int64)] if m.chance(0.6) else []), {'upper': m.pick([0, 1])}


def eye_like(m, x):
    if x.ndim != 2 or m.opset < 9:
        return None
    return [x], {'k': m.random.randint(-2, 2), 'dtype': helper.np_dtype_to_tensor_dtype(np.dtype(m.pick(['float32', 'int64'])))}


def power(m, x):
    if str(x.dtype) not in ('float32', 'float64', 'int32', 'int64'):
        return None
    exponents = np.array(2, dtype=x.dtype) if m.chance(0.7) else m.array(str(x.dtype), m.like(x.shape), calm=True)
    return [x, exponents], {}


def cast_like(m, x):
    return None if m.opset < 15 else ([x, m.array(m.pick(ALL), [])], {})


def shift(m, x):
    if m.opset < 11 or not str(x.dtype).startswith('uint'):
        return None
    return [x, m.array(str(x.dtype), m.like(x.shape), calm=True)], {'direction': m.pick(['LEFT', 'RIGHT'])}


def modulus(m, x):
    kind = str(x.dtype)
    if m.opset < 10:
        return None
    other = m.array(kind, m.like(x.shape))
    return [x, other], {'fmod': 1 if kind in FLOATS else m.pick([0, 1])}


KINDS = {
    'Add': binary(NUMBERS), 'Sub': binary(NUMBERS), 'Mul': binary(NUMBERS), 'Div': binary(NUMBERS), 'Mod': modulus,
    'Pow': power, 'BitShift': shift, 'BitwiseAnd': binary(INTEGERS, since=18), 'BitwiseOr': binary(INTEGERS, since=18),
    'BitwiseXor': binary(INTEGERS, since=18), 'BitwiseNot': unary(INTEGERS, since=18), 'And': binary(['bool']),
    'Or': binary(['bool']), 'Xor': binary(['bool']), 'Not': unary(['bool']), 'Equal': binary(ALL), 'Greater': binary(NUMBERS),
    'GreaterOrEqual': binary(NUMBERS, since=12), 'Less': binary(NUMBERS), 'LessOrEqual': binary(NUMBERS, since=12),
    'Min': variadic(NUMBERS), 'Max': variadic(NUMBERS), 'Sum': variadic(FLOATS), 'Where': where, 'Clip': clip,
    'IsInf': unary(FLOATS, since=10), 'IsNaN': unary(FLOATS, since=9), 'Neg': unary(NUMBERS), 'Abs': unary(NUMBERS),
    'Sign': unary(NUMBERS, since=9), 'Relu': unary(FLOATS), 'Floor': unary(FLOATS), 'Ceil': unary(FLOATS),
    'Round': unary(FLOATS, since=11), 'Sqrt': unary(FLOATS), 'Reciprocal': unary(FLOATS), 'Shape': shape_of,
    'Size': unary(ALL), 'Identity': unary(ALL), 'Dropout': unary(FLOATS), 'Reshape': reshape, 'Flatten': flatten,
    'Squeeze': listed('axes', 13, squeeze), 'Unsqueeze': listed('axes', 13, unsqueeze), 'Transpose': transpose,
    'Concat': concat, 'Slice': slices, 'Gather': gather, 'GatherElements': gather_elements, 'GatherND': gather_nd,
    'ScatterND': scatter_nd, 'ScatterElements': scatter_elements, 'Split': split, 'Tile': tile, 'Expand': expand,
    'ConstantOfShape': constant_of_shape, 'Pad': pad, 'EyeLike': eye_like, 'Trilu': trilu, 'OneHot': one_hot,
    'NonZero': lambda m, x: ([x], {}) if x.ndim and m.opset >= 9 else None, 'Compress': compress, 'Range': range_of,
    'ReduceMax': reduction(NUMBERS), 'ReduceMin': reduction(NUMBERS), 'ReduceSum': reduction(NUMBERS, since=13),
    'ReduceProd': reduction(NUMBERS), 'ReduceMean': reduction(FLOATS), 'ArgMax': argument, 'ArgMin': argument,
    'CumSum': cumsum, 'TopK': top_k, 'MatMul': matmul, 'Cast': cast, 'CastLike': cast_like,
    'DequantizeLinear': dequantize, 'QuantizeLinear': quantize,
}


class Graph:
    """Nodes with their values, as onnxruntime computes each."""

    def __init__(self, opset):
        self.opset, self.nodes, self.initializers, self.values = opset, [], [], {}

    def named(self, value):
        for name, known in self.values.items():
            if known is value:
                return name
        name = f'c{len(self.initializers)}'
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def model(self, nodes, initializers, outputs):
        # A node of a chain reads values of nodes before it.
        declared = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs]
        for each in declared:
            each.ClearField('type')
        graph = helper.make_graph(nodes, 'constants', [], declared, initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=8)

    def add(self, op, inputs, attributes, count):
        """False where onnxruntime has no kernel, or refuses the node."""
        first = len(self.initializers)
        names = ['' if each is None else self.named(each) for each in inputs]
        outputs = [f'v{len(self.nodes)}_{at}' for at in range(count)]
        # An empty list has no type.
        node = helper.make_node(op, names, outputs, **{key: each for key, each in attributes.items() if each != []})
        values = [numpy_helper.from_array(self.values[name], name) for name in set(names) if name in self.values]
        try:
            single = self.model([node], self.initializers + values, outputs)
            results = session(single.SerializeToString(), prepacking=False).run(outputs, {})
        except Exception:
            del self.initializers[first:]
            return False
        self.nodes.append(node)
        self.values.update(zip(outputs, results))
        return True


def random_graph(seed, operators, first):
    """Without nodes where the random value does not suit the first operator."""
    m = Maker(seed)
    graph = Graph(m.opset)
    x = m.array(m.pick(ALL), m.shape())
    for number in range(m.random.randint(1, 4)):
        op = m.pick(operators) if number else first
        made = KINDS[op](m, x)
        if made is None:
            if number == 0:
                break
            continue
        inputs, attributes, count = made if len(made) == 3 else (*made, 1)
        if graph.add(op, inputs, attributes, count):
            x = graph.values[graph.nodes[-1].output[0]]
            if x.size > 400:
                break
    return graph


def record(name, model, values):
    return {
        'name': name,
        'model': base64.b64encode(model.SerializeToString()).decode(),
        'values': {key: [str(value.dtype), list(value.shape), base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()]
                   for key, value in values.items()},
    }


def random_records(count, seed, operators):
    number = made = misses = 0
    while made < count:
        graph = random_graph(seed * 1_000_003 + number, operators, operators[made % len(operators)])
        number += 1
        misses += 1
        if graph.nodes or misses > 100:
            made += 1
            misses = 0
        if graph.nodes:
            yield record(f'random {number - 1}', graph.model(graph.nodes, graph.initializers, list(graph.values)), graph.values)


def node_records():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or not case.data_sets or case.model.ByteSize() > 200_000 or case.model.ir_version < 4:
            continue
        inputs, outputs = case.data_sets[0]
        plain = [*inputs, *outputs]
        if not all(isinstance(each, np.ndarray) and each.dtype.kind in 'iufb' for each in plain):
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        given = [numpy_helper.from_array(value, each.name) for each, value in zip(model.graph.input, inputs)]
        del model.graph.input[:]
        model.graph.initializer.extend(given)
        values = {each.name: value for each, value in zip(model.graph.output, outputs)}
        yield record(case.name, model, values)


def main():
    is_fixture = sys.argv[1] == '--fixture'
    place, count, seed, *operators = sys.argv[2 if is_fixture else 1:]
    path = place if is_fixture else os.path.join(place, 'graphs.jsonl')
    with open(path, 'w') as file:
        for each in random_records(int(count), int(seed), operators or list(KINDS)):
            file.write(json.dumps(each, separators=(',', ':')) + '\n')
        if not is_fixture:
            for each in node_records():
                file.write(json.dumps(each, separators=(',', ':')) + '\n')


main()
