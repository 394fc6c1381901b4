"""Models for test/programs/compress_models.mjs, and their comparison in onnxruntime.

compress_models.py make FOLDER      writes NAME.onnx, NAME.npz (inputs and float32 outputs) and NAME.json (ranges of values), and
                                    prints {models, saturates}: whether products of uint8 and int8 saturate on this processor
compress_models.py compare FOLDER   runs every NAME.TARGET.onnx, and prints JSON: a list of {name, target, error} or {…, failure}
"""
import glob
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

MODELS = {}


class Net:
    """A graph that grows node by node. Weights are seeded by the name of the model."""

    def __init__(self, name, opset=21, outer=None):
        self.name, self.opset, self.outer = name, opset, outer
        self.nodes, self.initializers, self.inputs, self.outputs, self.feeds = [], [], [], [], {}
        self.random = outer.random if outer else np.random.default_rng(abs(hash_of(name)))
        self.count = outer.count if outer else [0]

    def fresh(self, base):
        self.count[0] += 1
        return f'{base}_{self.count[0]}'

    def input(self, name, shape, kind='float', most=None):
        dtype = {'float': TensorProto.FLOAT, 'int': TensorProto.INT64, 'bool': TensorProto.BOOL}[kind]
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        value = {'float': lambda: self.random.standard_normal(shape).astype(np.float32),
                 'int': lambda: self.random.integers(0, most or 2, shape), 'bool': lambda: np.array(bool(most))}[kind]()
        self.feeds[name] = value
        return name

    def const(self, value, base='c'):
        name = self.fresh(base)
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, *shape, scale=None, base='w'):
        fan = shape[0] if len(shape) == 2 else int(np.prod(shape[1:])) or 1
        return self.const((self.random.standard_normal(shape) * (scale or fan ** -0.5)).astype(np.float32), base)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [self.fresh(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=self.fresh(f'/{self.name}/{kind}'), **attributes))
        return names[0] if outputs == 1 else names

    def output(self, name, kind=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    def graph(self):
        return helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.initializers)

    def model(self):
        return helper.make_model(self.graph(), opset_imports=[helper.make_opsetid('', self.opset)], ir_version=10)


def hash_of(text):
    value = 0
    for letter in text:
        value = (value * 131 + ord(letter)) % 2 ** 31
    return value


def add(name, build, opset=21, **options):
    net = Net(name, opset)
    build(net, **options)
    assert name not in MODELS, name
    MODELS[name] = net


# ---------------------------------------------------------------- small vision
def vision(net, channels=8, layers=2, group=1, norm=False, residual=False, pool='MaxPool', head='Gemm', act='Relu', bias=True):
    x = net.input('image', [2, 3, 16, 16])
    width = 3
    for layer in range(layers):
        groups = group if width % group == 0 else 1
        args = [net.weight(channels, width // groups, 3, 3)] + ([net.weight(channels, scale=0.1)] if bias else [])
        y = net.op('Conv', x, *args, pads=[1, 1, 1, 1], group=groups)
        if norm:
            ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
            y = net.op('BatchNormalization', y, net.const(ones), net.const(zeros), net.const(zeros), net.const(ones))
        y = net.op('Clip', y, net.const(np.float32(0)), net.const(np.float32(6))) if act == 'Clip' else net.op(act, y)
        x = net.op('Add', x, y) if residual and width == channels else y
        width = channels
        if pool != 'None' and layer == 0:
            x = net.op(pool, x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.op('Flatten', net.op('GlobalAveragePool', x))
    if head == 'Gemm':
        x = net.op('Gemm', x, net.weight(10, channels), net.weight(10, scale=0.1), transB=1)
    else:
        x = net.op('MatMul', x, net.weight(channels, 10))
    net.output(net.op('Softmax', x, axis=-1))


def upscaler(net, mode='nearest', transpose=False):
    x = net.op('Conv', net.input('image', [1, 3, 8, 8]), net.weight(8, 3, 3, 3), pads=[1, 1, 1, 1])
    if transpose:
        x = net.op('ConvTranspose', net.op('LeakyRelu', x, alpha=0.1), net.weight(8, 8, 2, 2, scale=0.2), strides=[2, 2])
    else:
        x = net.op('Resize', net.op('Relu', x), '', net.const(np.array([1, 1, 2, 2], np.float32)), mode=mode)
    net.output(net.op('Sigmoid', net.op('Conv', x, net.weight(3, 8, 3, 3), pads=[1, 1, 1, 1])))


for opset in (13, 17, 21):
    add(f'vision-plain-{opset}', vision, opset)
for key, options in {'norm': dict(norm=True), 'depthwise': dict(channels=6, group=3), 'residual': dict(residual=True, layers=4),
                     'average': dict(pool='AveragePool'), 'clip': dict(act='Clip'), 'sigmoid': dict(act='Sigmoid', layers=3),
                     'matmul-head': dict(head='MatMul'), 'no-bias': dict(bias=False), 'wide': dict(channels=64, layers=3)}.items():
    add(f'vision-{key}', vision, **options)
add('upscale-nearest', upscaler)
add('upscale-linear', upscaler, mode='linear')
add('upscale-transposed', upscaler, transpose=True)


# ---------------------------------------------------------------- transformers
def attention(net, x, hidden, heads, mask=None):
    def split(y, perm):
        shape = net.const(np.array([0, 0, heads, hidden // heads], np.int64))
        return net.op('Transpose', net.op('Reshape', y, shape), perm=perm)
    q, k, v = (net.op('Add', net.op('MatMul', x, net.weight(hidden, hidden)), net.weight(hidden, scale=0.1)) for _ in range(3))
    s = net.op('MatMul', split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]))
    s = net.op('Mul', s, net.const(np.float32((hidden // heads) ** -0.5)))
    if mask:
        s = net.op('Add', s, mask)
    a = net.op('MatMul', net.op('Softmax', s, axis=-1), split(v, [0, 2, 1, 3]))
    a = net.op('Reshape', net.op('Transpose', a, perm=[0, 2, 1, 3]), net.const(np.array([0, 0, hidden], np.int64)))
    return net.op('MatMul', a, net.weight(hidden, hidden))


def norm(net, x, hidden, spelled=False):
    if not spelled:
        return net.op('LayerNormalization', x, net.const(np.ones(hidden, np.float32)), net.const(np.zeros(hidden, np.float32)), axis=-1)
    axes = net.const(np.array([-1], np.int64))
    squares = net.op('Pow', x, net.const(np.float32(2)))
    mean = net.op('ReduceMean', squares, axes) if net.opset >= 18 else net.op('ReduceMean', squares, axes=[-1])
    return net.op('Div', x, net.op('Sqrt', net.op('Add', mean, net.const(np.float32(1e-6)))))


def encoder(net, hidden=64, heads=4, layers=2, words=100, head='classify', spelled=False, gemm=False, masked=False):
    ids = net.input('input_ids', [2, 7], 'int', words)
    table = net.weight(words, hidden, scale=1)
    x = net.op('Gather', table, ids)
    mask = None
    if masked:
        kept = net.op('Cast', net.input('attention_mask', [2, 7], 'int', 2), to=TensorProto.FLOAT)
        mask = net.op('Mul', net.op('Sub', net.const(np.float32(1)), kept), net.const(np.float32(-3.4028235e38)))
        mask = net.op('Unsqueeze', mask, net.const(np.array([1, 2], np.int64)))
    for _ in range(layers):
        x = net.op('Add', x, attention(net, norm(net, x, hidden, spelled), hidden, heads, mask))
        y = net.op('MatMul', norm(net, x, hidden, spelled), net.weight(hidden, 4 * hidden))
        y = net.op('Mul', y, net.op('Sigmoid', y))
        x = net.op('Add', x, net.op('MatMul', y, net.weight(4 * hidden, hidden)))
    if head == 'tied':
        net.output(net.op('MatMul', x, net.op('Transpose', table, perm=[1, 0])))
    elif head == 'classify':
        first = net.op('Gather', x, net.const(np.int64(0)), axis=1)
        net.output(net.op('Gemm', first, net.weight(hidden, 5), net.weight(5, scale=0.1)) if gemm else net.op('MatMul', first, net.weight(hidden, 5)))
    else:
        net.output(net.op('ReduceL2', x, keepdims=0) if net.opset < 18 else net.op('ReduceL2', x))
        net.output(x)


for opset in (14, 17, 18, 21, 23):
    add(f'encoder-{opset}', encoder, opset, spelled=opset < 17)
for key, options in {'spelled': dict(spelled=True), 'gemm': dict(gemm=True), 'masked': dict(masked=True), 'odd': dict(hidden=72, heads=3),
                     'small': dict(hidden=16, heads=2, layers=1), 'features': dict(head='features'), 'wide': dict(hidden=256, layers=1)}.items():
    add(f'encoder-{key}', encoder, **options)
for hidden in (32, 48, 64, 128):
    add(f'tied-{hidden}', encoder, hidden=hidden, head='tied', layers=1)
add('tied-masked', encoder, head='tied', masked=True)
add('tied-spelled-18', encoder, 18, head='tied', spelled=True)


def decoder(net, use_cache, hidden=64, capture=False, blocked=False):
    """A step of a merged decoder: both branches project with the same outer weight, or with weights of their own."""
    x = net.op('Gather', net.weight(60, hidden, scale=1), net.input('input_ids', [1, 4], 'int', 60))
    past = net.input('past', [1, 3, hidden])
    flag = net.input('use_cache', [], 'bool', use_cache)
    shared = net.weight(hidden, hidden)
    branches = []
    for cached in (True, False):
        branch = Net(f'{net.name}-{cached}', net.opset, net)
        keys = branch.op('MatMul', x, shared if capture else branch.weight(hidden, hidden))
        if blocked:
            keys = branch.op('Max', keys, branch.const(np.float32(-2)))
        branch.output(branch.op('Concat', past, keys, axis=1) if cached else branch.op('Identity', keys))
        branches.append(branch.graph())
    keys = net.op('If', flag, then_branch=branches[0], else_branch=branches[1])
    scores = net.op('Softmax', net.op('MatMul', x, net.op('Transpose', keys, perm=[0, 2, 1])), axis=-1)
    net.output(net.op('MatMul', net.op('MatMul', scores, keys), net.weight(hidden, 60)))
    net.output(keys)


for key, options in {'own': {}, 'shared': dict(capture=True), 'blocked': dict(blocked=True)}.items():
    for use_cache in (False, True):
        add(f'decoder-{key}-{"cache" if use_cache else "first"}', decoder, use_cache=use_cache, **options)


# ---------------------------------------------------------------- recurrent
def recurrent(net, kind='LSTM', direction='forward', hidden=24, bias=True):
    gates, ways = {'LSTM': 4, 'GRU': 3, 'RNN': 1}[kind], 2 if direction == 'bidirectional' else 1
    x = net.op('MatMul', net.input('frames', [5, 2, 20]), net.weight(20, 16))
    args = [net.weight(ways, gates * hidden, 16, scale=0.2), net.weight(ways, gates * hidden, hidden, scale=0.2)]
    if bias:
        args.append(net.weight(ways, 2 * gates * hidden, scale=0.1))
    y = net.op(kind, x, *args, outputs=2, hidden_size=hidden, direction=direction)[0]
    y = net.op('Squeeze', y, net.const(np.array([1], np.int64))) if ways == 1 else net.op('ReduceMean', y, net.const(np.array([1], np.int64)), keepdims=0)
    net.output(net.op('MatMul', y, net.weight(hidden, 8)))


for kind in ('LSTM', 'GRU', 'RNN'):
    add(f'recurrent-{kind}', recurrent, kind=kind)
    add(f'recurrent-{kind}-both', recurrent, kind=kind, direction='bidirectional')
add('recurrent-LSTM-back', recurrent, direction='reverse')
add('recurrent-LSTM-no-bias', recurrent, bias=False)


def loop(net, hidden=32, steps=4):
    body = Net(f'{net.name}-body', net.opset, net)
    for name, kind in (('i', TensorProto.INT64), ('go', TensorProto.BOOL)):
        body.inputs.append(helper.make_tensor_value_info(name, kind, []))
    body.inputs.append(helper.make_tensor_value_info('state', TensorProto.FLOAT, [1, hidden]))
    state = body.op('Tanh', body.op('MatMul', 'state', net.weight(hidden, hidden)))
    body.output(body.op('Identity', 'go'), TensorProto.BOOL)
    body.output(state)
    body.output(body.op('Identity', state))
    x = net.input('x', [1, hidden])
    last, every = net.op('Loop', net.const(np.int64(steps)), net.const(np.array(True)), x, outputs=2, body=body.graph())
    net.output(net.op('MatMul', last, net.weight(hidden, 5)))
    net.output(every)


add('loop-4', loop)
add('loop-64', loop, hidden=64, steps=2)


# ---------------------------------------------------------------- detection heads
def detector(net, boxes=12, classes=3, hidden=32, topk=False):
    x = net.input('features', [1, boxes, hidden])
    corners = net.op('Sigmoid', net.op('MatMul', x, net.weight(hidden, 4)))
    scores = net.op('Softmax', net.op('MatMul', x, net.weight(hidden, classes)), axis=-1)
    if topk:
        best, at = net.op('TopK', net.op('ReduceMax', scores, net.const(np.array([-1], np.int64)), keepdims=0), net.const(np.array([4], np.int64)), outputs=2, axis=-1)
        net.output(best)
        return
    chosen = net.op('NonMaxSuppression', corners, net.op('Transpose', scores, perm=[0, 2, 1]), net.const(np.int64(3)), net.const(np.float32(0.5)), net.const(np.float32(0.1)))
    net.output(corners)
    net.output(scores)
    net.output(chosen, TensorProto.INT64)


for boxes in (8, 20):
    add(f'detector-{boxes}', detector, boxes=boxes)
    add(f'detector-topk-{boxes}', detector, boxes=boxes, topk=True)
add('detector-64', detector, hidden=64, classes=7)


# ---------------------------------------------------------------- products of every kind, and graphs that need care
def products(net, k=40, n=24, leading=False, transposed=False, constant=False, identity=False, gemm=None, double=False):
    x = net.input('x', [3, k])
    if gemm:
        net.output(net.op('Gemm', x, net.weight(*((n, k) if gemm.get('transB') else (k, n))), net.weight(n, scale=0.1), **gemm))
        return
    if constant:
        value = numpy_helper.from_array((net.random.standard_normal((k, n)) * 0.2).astype(np.float32), 'value')
        w = net.op('Constant', value=value)
    else:
        w = net.weight(*((1, k, n) if leading else (n, k) if transposed else (k, n)))
    if transposed:
        w = net.op('Transpose', w, perm=[1, 0])
    if identity:
        w = net.op('Identity', w)
    y = net.op('MatMul', x, w)
    net.output(net.op('Add', y, net.op('MatMul', x, w)) if double else y)


for key, options in {'odd': dict(k=37, n=19), 'leading': dict(leading=True), 'transposed': dict(transposed=True, k=64), 'constant': dict(constant=True),
                     'identity': dict(identity=True), 'twice': dict(double=True), 'gemm': dict(gemm={}), 'gemm-transposed': dict(gemm=dict(transB=1)),
                     'gemm-scaled': dict(gemm=dict(alpha=0.5, beta=2.0)), 'big': dict(k=300, n=129)}.items():
    add(f'products-{key}', products, **options)


def shapes(net):
    x = net.input('x', [2, 6, 16])
    rows = net.op('Gather', net.op('Shape', x), net.const(np.int64(0)))
    shape = net.op('Concat', net.op('Unsqueeze', rows, net.const(np.array([0], np.int64))), net.const(np.array([96], np.int64)), axis=0)
    y = net.op('MatMul', net.op('Reshape', x, shape), net.weight(96, 32))
    step = net.op('Cast', net.op('Range', net.const(np.int64(0)), net.const(np.int64(32)), net.const(np.int64(1))), to=TensorProto.FLOAT)
    y = net.op('Where', net.op('Greater', y, net.const(np.float32(0))), net.op('Add', y, net.op('Mul', step, net.const(np.float32(0.01)))), y)
    net.output(net.op('Pad', y, net.const(np.array([0, 1, 0, 1], np.int64))))


add('shapes', shapes)
add('shapes-17', shapes, 17)


# With the option, onnxruntime 1.32 refuses two products of one weight behind DequantizeLinear ("Attempt to replace the existing
# tensor"), so results of `static` are run without it.
EXACT = {'q8', 'int8'}


def all_values(model):
    """A copy whose outputs are all float32 values of the main graph, for their ranges."""
    copy = onnx.shape_inference.infer_shapes(model)
    known = {v.name: v.type.tensor_type.elem_type for v in list(copy.graph.value_info) + list(copy.graph.output)}
    names = [o for n in copy.graph.node for o in n.output if known.get(o) == TensorProto.FLOAT]
    del copy.graph.output[:]
    copy.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    return copy, names


def session(model, exact=False):
    """exact: products of uint8 and int8 codes that would saturate are computed in another way, where onnxruntime can tell."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if exact:
        options.add_session_config_entry('session.x64quantprecision', '1')
    return ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])


def saturates():
    """Processors of x86-64 without VNNI add pairs of products in 16 bits, where 2 * 255 * 127 does not fit."""
    info, k = helper.make_tensor_value_info, 64
    codes = numpy_helper.from_array(np.full((k, k), 127, np.int8), 'w')
    node = helper.make_node('MatMulInteger', ['x', 'w'], ['y'])
    graph = helper.make_graph([node], 'saturates', [info('x', TensorProto.UINT8, [k, k])], [info('y', TensorProto.INT32, [k, k])], [codes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21)], ir_version=10)
    found = session(model.SerializeToString()).run(None, {'x': np.full((k, k), 255, np.uint8)})[0]
    return bool((found != k * 255 * 127).any())


def make(folder):
    for name, net in MODELS.items():
        model = net.model()
        path = os.path.join(folder, name)
        onnx.save(model, f'{path}.onnx')
        outputs = session(f'{path}.onnx').run(None, net.feeds)
        saved = {f'in/{k}': v for k, v in net.feeds.items()} | {f'out/{i}': v for i, v in enumerate(outputs)}
        np.savez(f'{path}.npz', **saved)
        wide, names = all_values(model)
        values = session(wide.SerializeToString()).run(names, net.feeds) if names else []
        floats = {n: v for n, v in list(zip(names, values)) + list(net.feeds.items()) if v.dtype == np.float32}
        with open(f'{path}.json', 'w') as file:
            json.dump({n: {'min': float(max(v.min(), -3e38)), 'max': float(v.max())} for n, v in floats.items() if v.size}, file)
    print(json.dumps({'models': len(MODELS), 'saturates': saturates()}))


def compare(folder):
    results = []
    for path in sorted(glob.glob(os.path.join(folder, '*.npz'))):
        name = os.path.basename(path)[:-4]
        saved = np.load(path)
        feeds = {k[3:]: saved[k] for k in saved.files if k.startswith('in/')}
        expected = [saved[f'out/{i}'] for i in range(sum(k.startswith('out/') for k in saved.files))]
        for result in sorted(glob.glob(os.path.join(folder, f'{name}.*.onnx'))):
            entry = {'name': name, 'target': os.path.basename(result)[len(name) + 1:-5]}
            try:
                run = session(result, exact=entry['target'] in EXACT)
                halves = {i.name for i in run.get_inputs() if i.type == 'tensor(float16)'}
                found = run.run(None, {k: v.astype(np.float16) if k in halves else v for k, v in feeds.items()})
                floats = [(a, b) for a, b in zip(found, expected) if b.dtype == np.float32]
                differences = [np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-6) for a, b in floats if a.shape == b.shape and b.size]
                entry['error'] = float(max(differences, default=0))
                if any(a.shape != b.shape for a, b in floats):
                    entry['failure'] = 'an output has another shape'
                elif not np.isfinite(entry['error']):
                    entry['failure'] = 'an output is not finite'
            except Exception as problem:  # noqa: BLE001, whatever the runtime says is the result
                entry['failure'] = str(problem).split('\n')[0][:300]
            results.append(entry)
    print(json.dumps(results))


if __name__ == '__main__':
    {'make': make, 'compare': compare}[sys.argv[1]](sys.argv[2])
