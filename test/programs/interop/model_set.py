"""The models of test/programs/models.mjs: `models()` yields (name, model, feeds) of every kind that exporters write.

They are built by the packages onnx, onnxruntime, onnxscript and skl2onnx, on top of the nets of compress_models.py and
onnx_networks.py and the model tests of onnx. A part whose package is missing is left out.
"""
import os
import tempfile
import warnings

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

import compress_models
import onnx_networks
from compress_models import Net

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def random_of(name):
    return np.random.default_rng(abs(compress_models.hash_of(name)))


def built(name, build, opset=21, ir=10, **options):
    net = Net(name, opset)
    build(net, **options)
    model = net.model()
    model.ir_version = ir
    if ir < 4:
        for each in model.graph.initializer:
            model.graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, list(each.dims)))
    return name, model, net.feeds


# ---------------------------------------------------------------- IR versions and operator sets
def perceptron(net, width=12):
    x = net.input('x', [3, width])
    w = net.weight(width, width)
    y = net.op('Gemm', x, w, net.weight(width, scale=0.1))
    y = net.op('Relu', net.op('Identity', y))
    y = net.op('MatMul', net.op('Add', y, y), w)
    y = net.op('Transpose', net.op('Transpose', y, perm=[1, 0]), perm=[1, 0])
    net.output(net.op('Softmax', net.op('Dropout', y), axis=1))


def convolutions(net):
    x = net.input('image', [1, 3, 12, 12])
    y = net.op('Conv', x, net.weight(4, 3, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=1)
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    y = net.op('BatchNormalization', y, net.const(ones), net.const(zeros), net.const(zeros), net.const(ones), epsilon=1e-5)
    y = net.op('LeakyRelu', net.op('MaxPool', y, kernel_shape=[2, 2], strides=[2, 2]), alpha=0.1)
    y = net.op('Concat', y, net.op('Sigmoid', y), axis=1)
    net.output(net.op('Flatten', net.op('GlobalAveragePool', y), axis=1))


def versions():
    for ir in range(3, 15):
        yield built(f'ir-{ir}-perceptron', perceptron, 9 if ir < 8 else 17, ir)
        yield built(f'ir-{ir}-convolutions', convolutions, 7 if ir < 4 else 12, ir)
    for opset in range(7, 27):
        yield built(f'opset-{opset}-perceptron', perceptron, opset)
        if opset % 3 == 1:
            yield built(f'opset-{opset}-convolutions', convolutions, opset)


# ---------------------------------------------------------------- control flow, as text
TEXTS = {
    'scan-sum': (21, 'float[4, 3] x', """<float[3] start = {0.0, 0.0, 0.0}> {
        last, all = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] e) => (float[3] s2, float[3] o) {
            s2 = Add (s, e)  o = Mul (s2, s2) }> (start, x)
        y = Add (all, last) }"""),
    'scan-backwards': (21, 'float[4, 3] x', """<float[3] start = {1.0, 0.0, 2.0}> {
        last, y = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = step (float[3] s, float[3] e) => (float[3] s2, float[3] o) {
            s2 = Max (s, e)  o = Identity (s2) }> (start, x) }"""),
    'if-outer': (17, 'float[2, 3] x, bool c', """<float[3] b = {1.0, 2.0, 3.0}> {
        r = Relu (x)
        y = If (c) <then_branch = t () => (float[2, 3] p) { p = Add (r, b) }, else_branch = e () => (float[2, 3] q) { n = Neg (r) q = Identity (n) }> }"""),
    'if-constant': (17, 'float[2, 3] x', """{
        c = Constant <value = bool {1}> ()
        y = If (c) <then_branch = t () => (float[2, 3] p) { p = Exp (x) }, else_branch = e () => (float[2, 3] q) { q = Abs (x) }> }"""),
    'if-outer-output': (17, 'float[2, 3] x, bool c', """{
        r = Relu (x) n = Neg (x) i = Identity (n)
        y = If (c) <then_branch = t () => (float[2, 3] p) { p = Identity (r) }, else_branch = e () => (float[2, 3] q) { q = Identity (i) }> }"""),
    'if-nested': (13, 'float[2, 3] x, bool c', """{
        d = Not (c)
        y = If (c) <then_branch = t () => (float[2, 3] p) {
              p = If (d) <then_branch = t2 () => (float[2, 3] a) { a = Sin (x) }, else_branch = e2 () => (float[2, 3] b) { m = Cos (x) b = Mul (m, x) }> },
            else_branch = e () => (float[2, 3] q) { q = Abs (x) }> }"""),
    'if-same-names': (13, 'float[2, 3] x, bool c', """{
        y = If (c) <then_branch = t () => (float[2, 3] p) { h = Sin (x) p = Mul (h, x) }, else_branch = e () => (float[2, 3] p) { h = Cos (x) p = Mul (h, x) }> }"""),
    'loop-state': (15, 'float[1, 3] x, int64 n', """<bool go = {1}> {
        f, y = Loop (n, go, x) <body = b (int64 i, bool c, float[1, 3] s) => (bool c2, float[1, 3] s2, float[1, 3] o) {
            c2 = Identity (c)  k = Constant <value = float {0.5}> ()  t = Mul (s, k)  s2 = Add (t, x)  o = Relu (s2) }> }"""),
    'loop-until': (15, 'float[3] x', """<int64 n = {9}, bool go = {1}> {
        y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] s2) {
            s2 = Add (s, s)  m = ReduceMax <keepdims = 0> (s2)  k = Constant <value = float {20.0}> ()  c2 = Less (m, k) }> }"""),
    'loop-sequence': (17, 'float[2, 3] x', """<int64 n = {3}, bool go = {1}> {
        e = SequenceEmpty <dtype = 1> ()
        l = Loop (n, go, e) <body = b (int64 i, bool c, seq(float) s) => (bool c2, seq(float) s2) {
            c2 = Identity (c)  f = Cast <to = 1> (i)  v = Add (x, f)  s2 = SequenceInsert (s, v) }>
        y = ConcatFromSequence <axis = 0> (l) }"""),
    'loop-nested': (17, 'float[3] x', """<int64 n = {2}, bool go = {1}> {
        y = Loop (n, go, x) <body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] s2) {
            c2 = Identity (c)
            s2 = Loop (n, c, s) <body = b2 (int64 j, bool d, float[3] r) => (bool d2, float[3] r2) { d2 = Identity (d)  r2 = Add (r, x) }> }> }"""),
    'sequence-split': (17, 'float[6, 2] x', """<int64[3] parts = {1, 2, 3}, int64 at = {1}> {
        s = SplitToSequence <axis = 0> (x, parts)  a = SequenceAt (s, at)  t = SequenceInsert (s, a)  u = SequenceErase (t, at)
        y = ConcatFromSequence <axis = 0> (u) }"""),
    'sequence-out': (17, 'float[6, 2] x', """{ y = SplitToSequence <axis = 1> (x) }"""),
    'sequence-map': (17, 'float[4, 2] x', """<int64 two = {2}> {
        s = SplitToSequence <axis = 0> (x, two)
        m = SequenceMap (s) <body = b (float[k, 2] e) => (float[k, 2] o) { o = Exp (e) }>
        y = ConcatFromSequence <axis = 0> (m) }"""),
    'optional': (18, 'float[3] x', """{ o = Optional (x)  h = OptionalHasElement (o)  g = OptionalGetElement (o)  f = Cast <to = 1> (h)  y = Mul (g, f) }"""),
    'strings': (10, 'string[4] x', """{ y = StringNormalizer <case_change_action = "UPPER", stopwords = ["b"], locale = "C"> (x) }"""),
    'shape-chain': (17, 'float[2, 3, 4] x', """<int64 zero = {0}, int64[1] axes = {0}, int64[1] minus = {-1}> {
        s = Shape (x)  b = Gather (s, zero)  b1 = Unsqueeze (b, axes)  t = Concat <axis = 0> (b1, minus)  y = Reshape (x, t) }"""),
    'shape-arithmetic': (17, 'float[2, 3, 4] x', """<int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}> {
        s = Shape (x)  tail = Slice (s, one, three)  p = ReduceProd <keepdims = 1> (tail)  h = Div (p, two)  d = Mul (two, two)
        t = Concat <axis = 0> (h, d)  y = Reshape (x, t) }"""),
    'constant-fold': (17, 'float[2, 4] x', """<float[4, 4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> {
        t = Transpose <perm = [1, 0]> (w)  k = Constant <value = int64[2] {4, 4}> ()  r = Reshape (t, k)  y = MatMul (x, r) }"""),
    'cast-weight': (17, 'float[2, 2] x', """<double[2, 2] w = {0.1, 0.2, 0.3, 0.4}> { t = Cast <to = 1> (w)  y = MatMul (x, t) }"""),
    'equal-nodes': (17, 'float[2, 4] x', """{ a = Exp (x)  b = Exp (x)  c = Relu (a)  d = Relu (b)  e = Add (c, d)  f = Sub (a, b)  y = Add (e, f) }"""),
    'equal-weights': (17, 'float[2, 2] x', """<float[2, 2] a = {1, 2, 3, 4}, float[2, 2] b = {1, 2, 3, 4}, float[2, 2] c = {1, 2, 3, -0.0}, float[2, 2] d = {1, 2, 3, 0.0}> {
        p = MatMul (x, a)  q = MatMul (x, b)  r = Div (p, c)  s = Div (q, d)  y = Sub (r, s) }"""),
    'unused': (17, 'float[2, 2] x, float[2] unused', """<float[2, 2] w = {1, 2, 3, 4}, float[9] gone = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
        a = Exp (x)  dead = Log (a)  dead2, at = MaxPoolLess (dead)  y = MatMul (a, w) }""".replace("dead2, at = MaxPoolLess (dead)", "dead2 = Abs (dead)")),
    'identity-chain': (17, 'float[2, 2] x', """{ a = Identity (x)  b = Identity (a)  c = Relu (b)  d = Identity (c)  e = Identity (d)  y = Identity (e) }"""),
    'input-to-output': (17, 'float[2, 2] x', """{ y = Identity (x) }"""),
    'optional-outputs': (17, 'float[1, 1, 4, 4] x', """{ a, at = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)  b, mask = Dropout (a)  v, i, j, n = Unique <sorted = 1> (b)  y = Exp (v) }"""),
    'gru-lengths': (14, 'float[4, 2, 3] x', """<float[1, 12, 3] w, float[1, 12, 4] r, int32[2] n = {4, 2}> { a, y = GRU <hidden_size = 4, linear_before_reset = 1> (x, w, r, , n) }"""),
    'lstm-peepholes': (14, 'float[4, 2, 3] x', """<float[1, 16, 3] w, float[1, 16, 4] r, float[1, 32] b, float[1, 2, 4] h, float[1, 2, 4] c, float[1, 12] p> {
        a, y, z = LSTM <hidden_size = 4> (x, w, r, b, , h, c, p) }"""),
    'einsum': (17, 'float[2, 3, 4] x', """<float[4, 5] w> { y = Einsum <equation = "bij,jk->bik"> (x, w) }"""),
    'topk-scatter': (17, 'float[3, 6] x', """<int64[1] k = {2}> { v, i = TopK <axis = 1> (x, k)  z = Sub (x, x)  y = ScatterElements <axis = 1> (z, i, v) }"""),
    'nonzero': (17, 'float[3, 6] x', """<float zero = {0.0}> { m = Greater (x, zero)  i = NonZero (m)  t = Transpose <perm = [1, 0]> (i)  y = GatherND (x, t) }"""),
    'half': (17, 'float[2, 4] x', """<float16[4, 3] w> { h = Cast <to = 10> (x)  m = MatMul (h, w)  y = Cast <to = 1> (m) }"""),
    'double': (17, 'double[2, 4] x', """<double[4, 3] w> { m = MatMul (x, w)  y = Tanh (m) }"""),
    'integers': (17, 'int32[2, 4] x', """<int32[4] k = {1, 2, 3, 4}> { a = Mul (x, k)  b = Add (a, x)  c = Cast <to = 7> (b)  y = ReduceSum <keepdims = 0> (c) }"""),
    'layer-norm': (17, 'float[2, 4] x', """<float[4] g, float[4] b> { y, mean, inv = LayerNormalization (x, g, b) }"""),
    'pixel-shuffle': (13, 'float[1, 8, 2, 2] x', """{ a = DepthToSpace <blocksize = 2, mode = "CRD"> (x)  y = SpaceToDepth <blocksize = 2> (a) }"""),
    'attention-op': (23, 'float[1, 2, 3, 4] x', """{ y = Attention (x, x, x) }"""),
    'old-softmax': (11, 'float[2, 3, 4] x', """{ y = Softmax <axis = 1> (x) }"""),
    'old-squeeze': (11, 'float[2, 1, 4] x', """{ a = Squeeze <axes = [1]> (x)  b = ReduceSum <axes = [1], keepdims = 1> (a)  y = Unsqueeze <axes = [0]> (b) }"""),
    'old-clip-slice': (9, 'float[4, 5] x', """{ a = Clip <min = -1.0, max = 1.0> (x)  y = Slice <axes = [0], starts = [1], ends = [3]> (a) }"""),
    'old-upsample': (9, 'float[1, 1, 2, 2] x', """<float[4] s = {1, 1, 2, 2}> { y = Upsample <mode = "nearest"> (x, s) }"""),
    'old-pad': (10, 'float[2, 3] x', """{ y = Pad <pads = [0, 1, 0, 1], value = 1.5> (x) }"""),
    'function-plain': (17, 'float[2, 4] x', '<float[4, 4] w> { a = local.dense (x, w)  y = local.dense (a, w) }',
                       'dense (x, w) => (y) { m = MatMul (x, w)  y = Relu (m) }'),
    'function-attributes': (17, 'float[2, 4] x', '{ a = local.leaky <slope = 0.25> (x)  y = local.leaky <slope = 0.5> (a) }',
                            'leaky <slope> (x) => (y) { y = LeakyRelu <alpha: float = @slope> (x) }'),
    'function-nested': (17, 'float[2, 4] x', '{ a = local.outer (x)  y = local.inner (a) }',
                        'outer (x) => (y) { a = local.inner (x)  b = local.inner (a)  y = Add (a, b) }', 'inner (x) => (y) { t = Tanh (x)  y = Mul (t, x) }'),
    'function-if': (17, 'float[2, 4] x, bool c', '{ y = local.choose (x, c) }',
                    'choose (x, c) => (y) { y = If (c) <then_branch = t () => (p) { p = Exp (x) }, else_branch = e () => (q) { s = Neg (x)  q = Identity (s) }> }'),
    'function-in-if': (17, 'float[2, 4] x, bool c', """{ y = If (c) <then_branch = t () => (float[2, 4] p) { p = local.twice (x) }, else_branch = e () => (float[2, 4] q) { q = Abs (x) }> }""",
                       'twice (x) => (y) { y = Add (x, x) }'),
    'function-many-outputs': (17, 'float[2, 4] x', '{ a, b = local.both (x)  y = Sub (a, b) }', 'both (x) => (s, p) { s = Add (x, x)  p = Mul (x, x) }'),
    'function-omitted-input': (17, 'float[2, 4] x', '{ y = local.clipped (x) }', 'clipped (x, low) => (y) { y = Clip (x, low) }'),
    'function-unused': (17, 'float[2, 4] x', '{ y = Exp (x) }', 'never (x) => (y) { y = Log (x) }'),
    'function-constant': (17, 'float[2, 4] x', '{ y = local.scaled (x) }', 'scaled (x) => (y) { k = Constant <value = float {3.0}> ()  y = Mul (x, k) }'),
}


def texts():
    for name, (opset, inputs, body, *functions) in TEXTS.items():
        domain = ', "local" : 1' if functions else ''
        head = f'<ir_version: {10 if opset > 9 else 4}, opset_import: ["" : {opset}{domain}]>'
        parts = ''.join(f'\n<domain: "local", opset_import: ["" : {opset}{domain}]>\n{each}' for each in functions)
        model = onnx.parser.parse_model(f'{head}\ng ({inputs}) => (y) {body}{parts}')
        yield name, weighted(name, untyped(model)), feeds_of(name, model)


def untyped(model):
    """The parser gives outputs without a type an empty one, which is not legal: onnxruntime infers it."""
    for each in model.graph.output:
        if each.type.WhichOneof('value') is None or each.type.tensor_type.elem_type == 0:
            each.ClearField('type')
    return model


def weighted(name, model):
    """Types without values, which the parser puts among the types of intermediate values, become weights."""
    random = random_of(name)
    for each in model.graph.value_info:
        kind = helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        values = random.standard_normal(shape) * 0.3 if kind.kind == 'f' else random.integers(0, 4, shape)
        model.graph.initializer.append(numpy_helper.from_array(values.astype(kind), each.name))
    del model.graph.value_info[:]
    return model


EXTENTS = {'N': 2, 'L': 3, 'batch': 2, 'seq': 4, 'S': 16, 'M': 2}
HIGHEST = {'ids': 100, 'mask': 2, 'at': 1, 'n': 4, 'count': 3}


def feeds_of(name, model, extents={}):
    random, feeds = random_of(f'{name} inputs'), {}
    extents = {**EXTENTS, **extents}
    held = {each.name for each in model.graph.initializer}
    for each in model.graph.input:
        if each.name in held:
            continue
        tensor = each.type.tensor_type
        shape = [dim.dim_value or extents.get(dim.dim_param, 2) for dim in tensor.shape.dim]
        kind = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if each.name == 'parts':
            value = np.ones(shape, np.int64)
        elif kind.kind == 'O':
            value = np.array(['a', 'b', 'c', 'd'][: shape[0]], object)
        elif kind == bool:
            value = random.integers(0, 2, shape).astype(bool)
        elif kind.kind in 'iu':
            value = random.integers(0, HIGHEST.get(each.name, 5), shape).astype(kind)
        else:
            value = random.standard_normal(shape).astype(kind)
        feeds[each.name] = np.asarray(value)
    return feeds


# ---------------------------------------------------------------- networks of the shape inference, with weights
OWN_INPUTS = {'x', 'ids', 'mask', 'state', 'cond', 'count', 'rows', 'z', 'at', 'parts'}


def networks():
    for name, model in onnx_networks.networks():
        # Convolutions of those that are named quantized have too many channels for onnxruntime.
        if not any(part in name for part in ('_N_L', '_2_7')) or name.startswith('quantized'):
            continue
        weights = [each for each in model.graph.input if each.name not in OWN_INPUTS]
        own = [each for each in model.graph.input if each.name in OWN_INPUTS]
        del model.graph.input[:]
        model.graph.input.extend(own)
        model.graph.value_info.extend(weights)
        weighted(name, untyped(model))
        # Images are resized to a batch of one.
        yield f'network-{name}', model, feeds_of(name, model, {'N': 1} if name.startswith('image') else {})


# ---------------------------------------------------------------- model tests of onnx
def onnx_tests():
    from onnx.backend.test.loader import load_model_tests
    for kind in ('simple', 'pytorch-operator'):
        for case in load_model_tests(kind=kind):
            if case.model_dir is None:
                continue
            model = onnx.load(os.path.join(case.model_dir, 'model.onnx'))
            folder = os.path.join(case.model_dir, 'test_data_set_0')
            feeds = {}
            held = {each.name for each in model.graph.initializer}
            for at, each in enumerate(each for each in model.graph.input):
                path = os.path.join(folder, f'input_{at}.pb')
                if os.path.exists(path) and each.name not in held:
                    feeds[each.name] = read_value(path, each.type)
            yield f'onnx-{case.name[5:] if case.name.startswith("test_") else case.name}', model, feeds


def read_value(path, kind):
    data = open(path, 'rb').read()
    if kind.WhichOneof('value') == 'sequence_type':
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


# ---------------------------------------------------------------- onnxscript
def scripts():
    import model_set_scripts
    yield from model_set_scripts.models()


# ---------------------------------------------------------------- quantized by onnxruntime
def quantized():
    import logging
    logging.disable(logging.WARNING)
    from onnxruntime import quantization as q
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    class Reader(q.CalibrationDataReader):
        def __init__(self, feeds):
            self.left = [feeds, {k: v * 0.5 for k, v in feeds.items()}]

        def get_next(self):
            return self.left.pop() if self.left else None

    nets = compress_models.MODELS
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, 'source.onnx'), os.path.join(folder, 'target.onnx')

        def result(name, net, quantize):
            onnx.save(net.model(), source)
            quantize()
            return name, onnx.load(target), net.feeds

        for key in ('vision-plain-13', 'vision-residual', 'vision-depthwise', 'upscale-transposed', 'products-gemm'):
            for form in (q.QuantFormat.QDQ, q.QuantFormat.QOperator):
                yield result(f'static-{form.name}-{key}', nets[key], lambda: q.quantize_static(
                    source, target, Reader(nets[key].feeds), quant_format=form, per_channel=key == 'vision-residual'))
        for key in ('encoder-17', 'recurrent-LSTM', 'products-odd', 'decoder-own-cache', 'vision-plain-17'):
            yield result(f'dynamic-{key}', nets[key], lambda: q.quantize_dynamic(source, target, weight_type=q.QuantType.QUInt8 if 'vision' in key else q.QuantType.QInt8))
        for key in ('encoder-21', 'tied-64', 'products-big'):
            for form in (q.QuantFormat.QOperator, q.QuantFormat.QDQ):
                def quantize(key=key, form=form):
                    quantizer = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True, quant_format=form)
                    quantizer.process()
                    quantizer.model.save_model_to_file(target)
                yield result(f'nbits-{form.name}-{key}', nets[key], quantize)


# ---------------------------------------------------------------- ai.onnx.ml
def classical():
    from skl2onnx import to_onnx
    from sklearn import cluster, compose, ensemble, feature_extraction, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree
    random = np.random.default_rng(5)
    x = random.standard_normal((60, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64) + (x[:, 2] > 1)
    plain = {'zipmap': False}
    estimators = {
        'linear-regression': (linear_model.LinearRegression(), None), 'logistic': (linear_model.LogisticRegression(), plain),
        'logistic-zipmap': (linear_model.LogisticRegression(), {}), 'svc': (svm.SVC(probability=True), plain),
        'svr': (svm.SVR(), None), 'tree': (tree.DecisionTreeClassifier(max_depth=4, random_state=0), plain),
        'forest': (ensemble.RandomForestClassifier(8, max_depth=4, random_state=0), plain),
        'forest-regressor': (ensemble.RandomForestRegressor(8, max_depth=4, random_state=0), None),
        'boosting': (ensemble.GradientBoostingClassifier(n_estimators=6, random_state=0), plain),
        'neighbors': (neighbors.KNeighborsClassifier(3), plain), 'means': (cluster.KMeans(3, n_init=1, random_state=0), None),
        'bayes': (naive_bayes.GaussianNB(), plain), 'perceptron': (neural_network.MLPClassifier((8,), max_iter=50, random_state=0), plain),
        'pipeline': (pipeline.make_pipeline(preprocessing.StandardScaler(), preprocessing.PolynomialFeatures(2), linear_model.LogisticRegression(max_iter=500)), plain),
        'scaler': (preprocessing.MinMaxScaler(), None), 'normalizer': (preprocessing.Normalizer(), None), 'binarizer': (preprocessing.Binarizer(), None),
        'buckets': (preprocessing.KBinsDiscretizer(3, encode='onehot-dense', quantile_method='averaged_inverted_cdf'), None),
    }
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for name, (estimator, options) in estimators.items():
            estimator.fit(x, y)
            model = to_onnx(estimator, x[:1], target_opset={'': 18, 'ai.onnx.ml': 3}, options={id(estimator): options} if options is not None else None)
            yield f'ml-{name}', model, {model.graph.input[0].name: x[:5]}
        labels = preprocessing.OneHotEncoder(sparse_output=False).fit(np.array([['a'], ['b'], ['c']], object))
        from skl2onnx.common.data_types import StringTensorType
        model = to_onnx(labels, initial_types=[('x', StringTensorType([None, 1]))], target_opset={'': 18, 'ai.onnx.ml': 3})
        yield 'ml-one-hot-strings', model, {'x': np.array([['b'], ['a'], ['c']], object)}
    nodes = [helper.make_node('LabelEncoder', ['x'], ['y'], domain='ai.onnx.ml', keys_strings=['a', 'b'], values_int64s=[3, 5], default_int64=-1)]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.STRING, ['N'])], [helper.make_tensor_value_info('y', INT64, ['N'])])
    yield 'ml-label-encoder', helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid('', 18), helper.make_opsetid('ai.onnx.ml', 3)]), {'x': np.array(['b', 'q', 'a'], object)}


# ---------------------------------------------------------------- storages of initializers
def storages():
    def model_of(name, nodes, initializers, opset=21, ir=10, sparse=()):
        graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info('x', FLOAT, [2, 4])], [onnx.ValueInfoProto(name='y')], initializers, sparse_initializer=list(sparse))
        return name, helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=ir), {'x': random_of(name).standard_normal((2, 4)).astype(np.float32)}
    add = [helper.make_node('Add', ['x', 'w'], ['y'])]
    yield model_of('float-data', add, [helper.make_tensor('w', FLOAT, [4], [1.0, 2.0, 3.0, -0.0])])
    sparse = helper.make_sparse_tensor(helper.make_tensor('w', FLOAT, [2], [1.5, 2.5]), helper.make_tensor('w_at', INT64, [2], [0, 3]), [4])
    yield model_of('sparse-initializer', add, [], sparse=[sparse])
    for kind in ('UINT4', 'INT4', 'UINT8', 'INT8', 'INT16', 'FLOAT8E4M3FN', 'FLOAT8E5M2'):
        code = TensorProto.DataType.Value(kind)
        weight = helper.make_tensor('q', code, [4], [1, 2, 3, 4])
        scale = helper.make_tensor('s', FLOAT, [], [0.25])
        nodes = [helper.make_node('DequantizeLinear', ['q', 's'], ['w']), *add]
        yield model_of(f'stored-{kind.lower()}', nodes, [weight, scale])
    for kind in ('FLOAT16', 'BFLOAT16', 'DOUBLE', 'INT32', 'BOOL', 'UINT64'):
        code = TensorProto.DataType.Value(kind)
        weight = helper.make_tensor('q', code, [4], [1, 0, 1, 1])
        yield model_of(f'stored-{kind.lower()}', [helper.make_node('Cast', ['q'], ['w'], to=FLOAT), *add], [weight])
    constants = [helper.make_node('Constant', [], ['w'], value_floats=[1.0, 2.0, 3.0, 4.0])]
    yield model_of('constant-floats', constants + add, [])
    constants = [helper.make_node('Constant', [], ['a'], value_float=1.5), helper.make_node('Constant', [], ['k'], value_ints=[4]), helper.make_node('Expand', ['a', 'k'], ['w'])]
    yield model_of('constant-numbers', constants + add, [])
    name, model, feeds = model_of('annotated', add, [helper.make_tensor('w', FLOAT, [4], [1.0, 2.0, 3.0, 4.0]), helper.make_tensor('w_scale', FLOAT, [], [0.5])])
    note = model.graph.quantization_annotation.add(tensor_name='w')
    note.quant_parameter_tensor_names.add(key='SCALE_TENSOR', value='w_scale')
    helper.set_model_props(model, {'stage': '1'})
    model.doc_string = model.graph.doc_string = model.graph.node[0].doc_string = 'A text\nof two lines.'
    yield name, model, feeds


# ---------------------------------------------------------------- large ones
def large():
    """Weights of 200 MB; models.mjs stores them outside."""
    for name, hidden, opset in (('large-perceptron', 3584, 17), ('large-encoder', 1024, 21)):
        if name == 'large-perceptron':
            def build(net):
                y = net.op('Relu', net.op('MatMul', net.input('x', [1, hidden]), net.weight(hidden, hidden)))
                y = net.op('Identity', net.op('MatMul', y, net.weight(hidden, hidden)))
                y = net.op('Gemm', y, net.weight(hidden, hidden), net.weight(hidden), transB=1)
                net.output(net.op('MatMul', y, net.op('Transpose', net.weight(hidden, hidden), perm=[1, 0])))
            yield built(name, build, opset)
        else:
            yield built(name, compress_models.encoder, opset, hidden=hidden, heads=8, layers=4, words=500)


def compressed():
    for name, net in compress_models.MODELS.items():
        yield name, net.model(), net.feeds


def models(report):
    """@param report is called with the reason where a part is left out"""
    for part in (compressed, versions, texts, networks, storages, onnx_tests, scripts, quantized, classical, large):
        try:
            yield from part()
        except ImportError as missing:
            report(f'{part.__name__}: {missing}')
