"""Writes one small model for each variant of an operator: attributes, versions, ranks, broadcasts, constants as nodes.

    python onnx_variants.py FOLDER
"""
import sys

import numpy as np

from onnx_cases import F32, Net, f32, i64, scalar, write


def single(name, operator, *inputs, opset=13, outs=1, low=-1.0, high=1.0, **attributes):
    net = Net(name, opset)
    names = [net.input(each, low, high) if isinstance(each, tuple) else each for each in inputs]
    made = net.op(operator, *names, outs=outs, **attributes)
    return net.out(*([made] if outs == 1 else made))


def rand(*shape, seed=1, low=-1.0, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(F32)


def shape_text(shape):
    return 'x'.join(map(str, shape)) or 'scalar'


def elementwise():
    shapes = [(7,), (3, 5), (2, 3, 4), (1, 3, 4, 5), (2, 3, 4, 5), (1, 2, 3, 2, 2)]
    positive = {'Sqrt', 'Log', 'Reciprocal'}
    operators = {'Abs': 13, 'Neg': 13, 'Ceil': 13, 'Floor': 13, 'Sqrt': 13, 'Exp': 13, 'Log': 13, 'Sin': 7, 'Cos': 7, 'Tan': 7,
                 'Asin': 7, 'Acos': 7, 'Atan': 7, 'Reciprocal': 13, 'Round': 11, 'Relu': 14, 'LeakyRelu': 16, 'Elu': 6, 'Selu': 6,
                 'Sigmoid': 13, 'Tanh': 13, 'HardSigmoid': 6, 'HardSwish': 14, 'Softplus': 1, 'Mish': 18, 'Gelu': 20, 'Identity': 16}
    for operator, opset in operators.items():
        for shape in shapes:
            low, high = (0.2, 3) if operator in positive else (-0.99, 0.99) if operator[:2] == 'A' else (-3, 3)
            yield single(f'{operator}_{shape_text(shape)}', operator, shape, opset=max(7, opset), low=low, high=high)
    for shape in shapes:
        yield single(f'clip_{shape_text(shape)}', 'Clip', shape, scalar(-0.3), scalar(0.4))
        for axis in range(len(shape)):
            yield single(f'softmax11_{shape_text(shape)}_{axis}', 'Softmax', shape, opset=11, axis=axis)
            yield single(f'softmax13_{shape_text(shape)}_{axis}', 'Softmax', shape, opset=13, axis=axis - len(shape))
            yield single(f'logsoftmax_{shape_text(shape)}_{axis}', 'LogSoftmax', shape, opset=11 if axis % 2 else 13, axis=axis)
    yield single('softmax_default11', 'Softmax', (2, 3, 4), opset=11)
    yield single('softmax_default13', 'Softmax', (2, 3, 4))
    yield single('clip_none', 'Clip', (2, 3))
    yield single('clip_6_min', 'Clip', (2, 3), opset=6, min=0.1)
    yield single('clip_6_none', 'Clip', (2, 3), opset=6)


def broadcasts():
    pairs = [((1, 4, 6, 5), (4, 1, 1)), ((1, 4, 6, 5), (1, 4, 1, 1)), ((1, 4, 6, 5), (5,)), ((1, 4, 6, 5), (6, 5)), ((1, 4, 6, 5), (6, 1)),
             ((1, 4, 6, 5), (1, 1, 6, 5)), ((1, 4, 6, 5), (4, 1, 5)), ((1, 4, 6, 5), (4, 6, 1)), ((2, 4, 6, 5), (4, 1, 1)), ((2, 4, 6, 5), (2, 1, 1, 1)),
             ((2, 4, 3, 5), (2, 4, 1, 1)), ((1, 4, 2, 2), (2, 2)), ((1, 4, 4), (4, 1)), ((1, 4, 4), (4,)), ((1, 5, 8), (8,)), ((1, 5, 8), (5, 1)),
             ((2, 5, 8), (5, 1)), ((2, 5, 8), (2, 5, 1)), ((2, 5, 8), (8,)), ((3, 6), (6,)), ((3, 6), (3, 1)), ((3, 3), (3,)), ((3, 3), (3, 1)),
             ((6,), (1,)), ((6,), ()), ((1, 4, 6, 5), ()), ((1, 4, 6, 5), (1,)), ((1, 4, 6, 5), (1, 1, 1, 1, 1)), ((1, 2, 3, 4, 5), (4, 5)),
             ((1, 2, 3, 4, 5), (2, 1, 1, 1)), ((2, 2, 3, 4, 5), (2, 1, 1, 1)), ((1, 4, 1, 1), (1, 1, 3, 3)), ((4, 1), (1, 5)), ((1, 1, 1, 1), (1, 1, 1, 1)),
             ((1, 4, 1, 1), (4, 1, 1)), ((1, 1, 6, 5), (6, 5)), ((1, 16, 4, 4), (4, 4)), ((2, 3, 4, 4, 2), (2,)), ((1, 1, 1, 5), (1, 4, 1, 5)), ((5, 1), (5, 5))]
    for operator in ['Add', 'Sub', 'Mul', 'Div', 'Pow']:
        for one, other in pairs:
            for form in ['vv', 'vc', 'cv']:
                for swap in [False, True]:
                    left, right = (other, one) if swap else (one, other)
                    net = Net(f'{operator}_{shape_text(left)}_{shape_text(right)}_{form}')
                    low = 0.5 if operator in ('Div', 'Pow') else -1
                    operands = [net.input(s, low, 2) if f == 'v' else net.rand(*s, low=low, high=2) if s else scalar(1.3) for s, f in zip((left, right), form)]
                    yield net.out(net.op(operator, *operands))
    for operator in ['Max', 'Min', 'Mean', 'Sum']:
        for one, other in pairs[::3]:
            yield single(f'{operator}_{shape_text(one)}_{shape_text(other)}', operator, one, other, one)
            yield single(f'{operator}_{shape_text(one)}_{shape_text(other)}_c', operator, one, rand(*other) if other else scalar(0.2))
        yield single(f'{operator}_one', operator, (2, 3))
    for operator in ['Greater', 'Less', 'Equal', 'GreaterOrEqual', 'LessOrEqual']:
        for one, other in pairs[::4]:
            net = Net(f'where_{operator}_{shape_text(one)}_{shape_text(other)}', 16)
            x, y = net.input(one), net.input(other)
            yield net.out(net.op('Where', net.op(operator, x, y), x, y))
    for operator in ['And', 'Or', 'Xor']:
        net = Net(f'logic_{operator}', 13)
        x, y = net.input((2, 3, 4)), net.input((2, 3, 4))
        both = net.op(operator, net.op('Greater', x, scalar(0)), net.op('Less', y, scalar(0.2)))
        yield net.out(net.op('Where', net.op('Not', both), x, y))
        net = Net(f'cast_{operator}', 13)
        x, y = net.input((2, 3, 4)), net.input((1, 3, 1))
        both = net.op(operator, net.op('Greater', x, scalar(0)), net.op('Less', y, scalar(0.2)))
        yield net.out(net.op('Cast', both, to=1))
    for index, (shape, slope) in enumerate([((1, 4, 5, 5), (4, 1, 1)), ((2, 4, 5, 5), (4, 1, 1)), ((2, 4, 6), (4, 1)), ((3, 6), (6,)), ((3, 6), (1,)), ((1, 4, 5, 5), (5,)),
                                            ((2, 4, 5, 5), (1, 4, 5, 5)), ((7,), (7,)), ((1, 4, 5, 5), (1,)), ((1, 2, 3, 4, 5), (2, 1, 1, 1)), ((1, 1, 3, 3), (1, 1, 1))]):
        yield single(f'prelu_{index}', 'PRelu', shape, rand(*slope, low=0.1, high=0.5))
        yield single(f'prelu_variable_{index}', 'PRelu', shape, slope)


def convolutions():
    index = 0
    for k, stride, dilation, group in [(3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 1), (1, 2, 1, 1), (5, 2, 1, 2), (3, 2, 1, 4), (3, 1, 1, 4), (2, 2, 1, 1), (3, 2, 2, 1)]:
        for auto in ['NOTSET', 'SAME_UPPER', 'SAME_LOWER', 'VALID']:
            for batch in [1, 2]:
                index += 1
                net = Net(f'conv_{index}', 11)
                x = net.input((batch, 4, 10, 9))
                pads = {} if auto != 'NOTSET' else {'pads': [1, 0, 2, 1]}
                yield net.out(net.op('Conv', x, net.weight(8, 4 // group, k, k), net.weight(8), strides=[stride] * 2, dilations=[dilation] * 2, group=group, auto_pad=auto, **pads))
    yield single('conv_rect', 'Conv', (1, 3, 9, 12), rand(4, 3, 1, 5), strides=[2, 1], pads=[0, 2, 0, 2])
    yield single('conv_dilation_rect', 'Conv', (1, 3, 12, 12), rand(4, 3, 3, 3), dilations=[1, 2], pads=[1, 2, 1, 2])
    yield single('conv_1d_stride', 'Conv', (2, 3, 13), rand(4, 3, 3), rand(4), strides=[2], pads=[1, 0], dilations=[2])
    yield single('conv_1d_same', 'Conv', (1, 3, 13), rand(4, 3, 4), strides=[2], auto_pad='SAME_LOWER')
    yield single('conv_1d_depthwise', 'Conv', (1, 4, 13), rand(4, 1, 3), pads=[1, 1], group=4)
    for pads in [[0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 0, 0, 1, 1], [0, 0, 2, 1, 0, 0, 0, 3], [0, 1, 1, 1, 0, 0, 1, 1]]:
        net = Net(f'conv_behind_pad_{"".join(map(str, pads))}')
        x = net.op('Pad', (1, 3, 8, 8), i64(*pads))
        yield net.out(net.op('Conv', x, net.weight(4, 3 + pads[1], 3, 3), pads=[0, 0, 1, 0], strides=[2, 2]))
    for activation in ['Relu', 'Sigmoid', 'LeakyRelu']:
        net = Net(f'conv_bn_{activation}')
        yield net.out(net.op(activation, net.bn(net.conv((2, 3, 8, 8), 3, 6), 6)))
    net = Net('conv_constant_nodes')
    x = net.input((1, 3, 8, 8))
    yield net.out(net.op('Conv', x, net.constant(rand(4, 3, 3, 3)), net.constant(rand(4))))
    net = Net('conv_shared_weight')
    x, w = net.input((1, 3, 8, 8)), net.const(rand(3, 3, 3, 3))
    y = net.bn(net.op('Conv', x, w, pads=[1] * 4), 3)
    yield net.out(net.op('Conv', y, w, pads=[1] * 4))
    net = Net('conv_shared_weight_other_form')
    x, w = net.input((3, 3)), net.const(rand(3, 3))
    yield net.out(net.op('Gemm', net.op('Gemm', x, w), w, transB=1))
    for index, attributes in enumerate([
            dict(), dict(strides=[2, 2]), dict(strides=[2, 2], pads=[1, 1, 1, 1]), dict(strides=[2, 2], pads=[0, 1, 1, 0]), dict(strides=[2, 2], output_padding=[1, 1]),
            dict(strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 0]), dict(dilations=[2, 2]), dict(strides=[3, 2], auto_pad='SAME_UPPER'), dict(strides=[2, 2], auto_pad='SAME_LOWER'),
            dict(strides=[2, 2], output_shape=[10, 10]), dict(strides=[2, 2], output_shape=[9, 9]), dict(strides=[2, 2], output_shape=[10, 12]), dict(auto_pad='VALID', strides=[2, 2]),
            dict(strides=[3, 3], output_shape=[14, 15], auto_pad='SAME_UPPER'), dict(strides=[3, 3], output_shape=[14, 14], auto_pad='SAME_LOWER')]):
        for group in [1, 2]:
            for batch in [1, 2]:
                yield single(f'conv_transpose_{index}_{group}_{batch}', 'ConvTranspose', (batch, 4, 5, 5), rand(4, 3, 3, 3), rand(3 * group), group=group, opset=11, **attributes)
    yield single('conv_transpose_1d', 'ConvTranspose', (1, 4, 7), rand(4, 3, 4), rand(3), strides=[2], pads=[1, 1])
    yield single('conv_transpose_1d_dilated', 'ConvTranspose', (1, 4, 7), rand(4, 3, 3), dilations=[2])
    for group in [1, 2]:
        net = Net(f'conv_transpose_bn_{group}')
        yield net.out(net.op('Relu', net.bn(net.op('ConvTranspose', (1, 4, 5, 5), net.weight(4, 3, 2, 2), strides=[2, 2], group=group), 3 * group)))


def pools():
    index = 0
    for operator in ['MaxPool', 'AveragePool']:
        for k, stride, pads in [(2, 2, [0] * 4), (3, 2, [1] * 4), (3, 2, [0, 0, 1, 1]), (3, 1, [1] * 4), (3, 3, [1, 0, 1, 0]), (2, 2, [0, 1, 1, 0]), (5, 1, [2] * 4), (3, 2, [1, 1, 0, 0])]:
            for ceil in [0, 1]:
                for count in [0, 1] if operator == 'AveragePool' else [0]:
                    for size in [(8, 9), (7, 10)]:
                        index += 1
                        more = {'count_include_pad': count} if operator == 'AveragePool' else {}
                        yield single(f'{operator}_{index}_{k}_{stride}_{"".join(map(str, pads))}_{ceil}_{count}', operator, (2, 3, *size), opset=11, kernel_shape=[k, k], strides=[stride] * 2, pads=pads, ceil_mode=ceil, **more)
        for auto in ['SAME_UPPER', 'SAME_LOWER', 'VALID']:
            for k, stride in [(2, 2), (3, 2), (3, 1), (2, 1)]:
                for size in [(8, 9), (7, 10)]:
                    yield single(f'{operator}_{auto}_{k}_{stride}_{size[0]}', operator, (1, 3, *size), opset=11, kernel_shape=[k, k], strides=[stride] * 2, auto_pad=auto)
        yield single(f'{operator}_1d', operator, (2, 3, 11), kernel_shape=[3], strides=[2], pads=[1, 1])
        yield single(f'{operator}_no_stride', operator, (1, 3, 6, 6), kernel_shape=[2, 2])
        yield single(f'{operator}_whole', operator, (1, 3, 6, 6), kernel_shape=[6, 6])
        yield single(f'{operator}_rect', operator, (1, 3, 6, 8), kernel_shape=[1, 3], strides=[1, 2], pads=[0, 1, 0, 1])
    for operator in ['GlobalAveragePool', 'GlobalMaxPool']:
        for shape in [(1, 3, 5), (2, 3, 5, 6), (1, 2, 3, 4, 5)]:
            yield single(f'{operator}_{shape_text(shape)}', operator, shape)


def products():
    index = 0
    for trans_a in [0, 1]:
        for trans_b in [0, 1]:
            for c in [None, (), (1,), (4,), (1, 4), (3, 4), (3, 1)]:
                for form in ['c', 'v']:
                    index += 1
                    net = Net(f'gemm_{index}')
                    a = net.input((5, 3) if trans_a else (3, 5))
                    shape = (4, 5) if trans_b else (5, 4)
                    inputs = [a, net.rand(*shape) if form == 'c' else net.input(shape)]
                    if c is not None:
                        inputs.append(scalar(0.7) if c == () else net.rand(*c) if index % 3 else net.input(c))
                    yield net.out(net.op('Gemm', *inputs, transA=trans_a, transB=trans_b, alpha=0.5 if index % 2 else 1.0, beta=1.5 if index % 4 < 2 else 1.0))
    shapes = [((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((1, 2, 3, 5), (5, 4)), ((2, 3, 5), (2, 5, 4)), ((2, 3, 5), (1, 5, 4)), ((3, 5), (2, 5, 4)), ((2, 2, 3, 5), (2, 2, 5, 4)),
              ((2, 2, 3, 5), (2, 5, 4)), ((2, 1, 3, 5), (1, 2, 5, 4)), ((5,), (5, 4)), ((3, 5), (5,)), ((5,), (5,)), ((2, 3, 5), (5,)), ((5,), (2, 5, 4)), ((1, 1, 2, 3, 5), (1, 1, 2, 5, 4))]
    for one, other in shapes:
        for form in ['vv', 'vc', 'cv']:
            net = Net(f'matmul_{shape_text(one)}_{shape_text(other)}_{form}')
            yield net.out(net.op('MatMul', *[net.input(s) if f == 'v' else net.rand(*s) for s, f in zip((one, other), form)]))
    net = Net('matmul_bias_gelu')
    h = net.op('Add', net.op('MatMul', (1, 6, 8), net.weight(8, 12)), net.weight(12))
    e = net.op('Erf', net.op('Div', h, scalar(np.sqrt(2))))
    yield net.out(net.op('Mul', net.op('Mul', h, net.op('Add', e, scalar(1))), scalar(0.5)))
    net = Net('gelu_other_order')
    h = net.op('Add', net.op('MatMul', (1, 6, 8), net.weight(8, 12)), net.weight(12))
    e = net.op('Erf', net.op('Mul', h, scalar(np.sqrt(0.5))))
    yield net.out(net.op('Mul', net.op('Mul', h, scalar(0.5)), net.op('Add', scalar(1), e)))
    net = Net('gelu_third_order')
    h = net.input((2, 6, 8))
    e = net.op('Erf', net.op('Mul', h, net.constant(scalar(np.sqrt(0.5)))))
    yield net.out(net.op('Mul', h, net.op('Mul', net.op('Add', net.constant(scalar(1)), e), scalar(0.5))))


def normalizations():
    for shape in [(3, 4), (2, 4, 5), (1, 4, 5, 6), (2, 4, 5, 6), (1, 4, 2, 3, 2)]:
        for opset in [7, 9, 15]:
            yield single(f'bn_{shape_text(shape)}_{opset}', 'BatchNormalization', shape, *[rand(4, seed=s, low=0.5, high=1.5) for s in range(4)], opset=opset)
        if len(shape) > 2:
            yield single(f'in_{shape_text(shape)}', 'InstanceNormalization', shape, rand(4), rand(4))
        for axis in range(1, len(shape)):
            yield single(f'ln_{shape_text(shape)}_{axis}', 'LayerNormalization', shape, rand(*shape[axis:]), rand(*shape[axis:]), opset=17, axis=axis - len(shape))
        yield single(f'ln_{shape_text(shape)}_plain', 'LayerNormalization', shape, rand(shape[-1]), opset=17, epsilon=1e-3)
    for size, bias in [(3, 1.0), (5, 2.0), (1, 1.0)]:
        yield single(f'lrn_{size}_{bias}', 'LRN', (2, 6, 4, 4), size=size, alpha=0.01, beta=0.6, bias=bias)
    yield single('lrn_default', 'LRN', (1, 6, 4, 4), size=3)
    net = Net('layer_norm_written_out')
    x = net.input((2, 5, 8))
    d = net.op('Sub', x, net.op('ReduceMean', x, axes=[-1]))
    v = net.op('ReduceMean', net.op('Pow', d, scalar(2)), axes=[-1])
    y = net.op('Div', d, net.op('Sqrt', net.op('Add', v, scalar(1e-5))))
    yield net.out(net.op('Add', net.op('Mul', y, net.rand(8)), net.rand(8)))


def shapes():
    yield single('reshape_infer', 'Reshape', (2, 3, 4), i64(-1, 6))
    yield single('reshape_zero', 'Reshape', (2, 3, 4), i64(0, 0, 2, 2))
    yield single('reshape_flat', 'Reshape', (2, 3, 4), i64(-1))
    yield single('reshape_scalar', 'Reshape', (1, 1), np.array([], np.int64))
    yield single('reshape_rank6', 'Reshape', (2, 12, 5), i64(2, 2, 3, 2, 5, 1))
    for axis in [-3, -1, 0, 1, 2, 3]:
        yield single(f'flatten_{axis}', 'Flatten', (2, 3, 4), axis=axis)
    for opset in [11, 13]:
        given = lambda axes: ([i64(*axes)], {}) if opset == 13 else ([], {'axes': axes})
        for axes in [[0], [-1], [0, 2], [-1, 1]]:
            more, attributes = given(axes)
            yield single(f'unsqueeze_{opset}_{axes}', 'Unsqueeze', (3, 4), *more, opset=opset, **attributes)
        for axes in [[0], [-2], [0, 2]]:
            more, attributes = given(axes)
            yield single(f'squeeze_{opset}_{axes}', 'Squeeze', (1, 3, 1, 4), *more, opset=opset, **attributes)
        yield single(f'squeeze_all_{opset}', 'Squeeze', (1, 3, 1, 4), opset=opset)
    for perm in [[1, 0], [0, 2, 1], [2, 0, 1], [0, 2, 3, 1], [3, 1, 0, 2], [1, 0, 2, 3], [0, 1, 3, 2], [4, 2, 0, 1, 3], [0, 3, 1, 4, 2, 5], [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 6, 5, 4], [0, 6, 1, 2, 3, 4, 5]]:
        yield single(f'transpose_{"".join(map(str, perm))}', 'Transpose', tuple(range(2, 2 + len(perm))) if len(perm) < 6 else (2, 1, 3, 2, 2, 3, 2)[:len(perm)], perm=perm)
    yield single('transpose_rank4', 'Transpose', (2, 3, 4, 5))
    for rank, axis in [(1, 0), (2, 0), (2, -1), (3, 1), (4, 0), (4, 2), (5, 2), (5, -1)]:
        shape = (2, 3, 4, 5, 2)[:rank]
        yield single(f'concat_{rank}_{axis}', 'Concat', shape, shape, shape, axis=axis)
        yield single(f'concat_{rank}_{axis}_c', 'Concat', rand(*shape), shape, axis=axis)
    big = 2 ** 63 - 1
    for index, (shape, starts, ends, axes, steps) in enumerate([
            ((5, 7), [1], [4], [0], [1]), ((5, 7), [-3], [-1], [1], [1]), ((5, 7), [0], [big], [1], [2]), ((5, 7), [4], [-big], [0], [-1]), ((2, 5, 7), [1, 2], [5, 7], [1, 2], [2, 3]),
            ((1, 6, 5, 5), [-1], [-6], [1], [-2]), ((9,), [1], [100], [0], [3]), ((2, 3, 4, 5, 6), [1, 0], [4, 2], [3, 0], [2, 1]), ((4, 3, 2, 2), [1], [3], [0], [1]), ((1, 4, 6, 6), [0, 1], [3, 5], [-1, -2], [1, 2])]):
        yield single(f'slice_{index}', 'Slice', shape, i64(*starts), i64(*ends), i64(*axes), i64(*steps))
        if all(step == 1 for step in steps):
            yield single(f'slice_9_{index}', 'Slice', shape, opset=9, starts=starts, ends=ends, axes=axes)
    yield single('slice_no_axes', 'Slice', (3, 4), i64(1, 1), i64(3, 3))
    for rank, axis, sizes in [(1, 0, [2, 4]), (2, 1, [1, 5]), (3, -1, [3, 3]), (4, 1, [1, 2, 3]), (5, 2, [2, 4])]:
        shape = [2, 2, 2, 2, 2][:rank]
        shape[axis] = 6
        yield single(f'split_13_{rank}', 'Split', tuple(shape), i64(*sizes), outs=len(sizes), axis=axis)
        yield single(f'split_11_{rank}', 'Split', tuple(shape), opset=11, outs=len(sizes), axis=axis, split=sizes)
        yield single(f'split_18_{rank}', 'Split', tuple(shape), opset=18, outs=3, axis=axis, num_outputs=3)
        net = Net(f'split_used_{rank}')
        parts = net.op('Split', tuple(shape), i64(*sizes), outs=len(sizes), axis=axis)
        yield net.out(net.op('Relu', parts[-1]), parts[0])
    net = Net('split_one_output')
    parts = net.op('Split', (1, 6, 2, 2), i64(2, 4), outs=2, axis=1)
    yield net.out(parts[1])
    for index, (shape, indices, axis) in enumerate([((5, 3), [3, 0, 3], 0), ((5, 3), [2], 1), ((2, 5, 3), [-1, 0], 1), ((2, 5, 3, 4), [[0, 2], [3, 1]], 3), ((2, 5, 3, 4), [1, 0], 0), ((6,), [5, 2, 2], 0), ((2, 2, 3, 4, 5), [3, 1], -2), ((5, 4), [1, 2, 3], 0)]):
        yield single(f'gather_{index}', 'Gather', shape, np.array(indices, np.int64), axis=axis)
    for index, axis in enumerate([0, 1, -1]):
        yield single(f'gather_scalar_{index}', 'Gather', (4, 3, 5), np.array(-2, np.int64), axis=axis)
    for shape, target in [((1, 4, 1, 1), (1, 4, 3, 2)), ((3, 1), (2, 3, 4)), ((4,), (2, 3, 4)), ((1,), (3,)), ((2, 1, 3), (1, 1, 1)), ((1, 1, 2), (20, 3, 2)), ((1, 2, 1, 2, 1), (1, 2, 2, 2, 2))]:
        yield single(f'expand_{shape_text(shape)}_{shape_text(target)}', 'Expand', shape, i64(*target))
    for shape, repeats in [((2, 3), (2, 2)), ((4,), (3,)), ((1, 2, 3, 3), (2, 1, 1, 2)), ((2, 1, 2, 1, 2), (1, 3, 1, 2, 1)), ((1, 2), (17, 1))]:
        yield single(f'tile_{shape_text(shape)}_{shape_text(repeats)}', 'Tile', shape, i64(*repeats))
    for mode in ['constant', 'reflect', 'edge']:
        for index, (shape, pads) in enumerate([((1, 3, 5, 6), [0, 0, 1, 2, 0, 0, 1, 2]), ((1, 3, 5, 6), [0, 0, 1, 2, 0, 0, 3, 0]), ((2, 3, 5, 6), [0, 1, 0, 0, 0, 1, 0, 0]), ((4, 5), [1, 0, 2, 1]), ((7,), [2, 3]),
                                               ((1, 3, 5, 6), [0, 0, 2, 1, 0, 0, 0, 1]), ((2, 3, 4, 5, 6), [0, 0, 0, 1, 1, 0, 0, 0, 2, 1]), ((1, 3, 6, 6), [0, 0, -1, 1, 0, 0, 1, -2])]):
            if mode != 'constant' and min(pads) < 0:
                continue
            more = [scalar(0.5)] if mode == 'constant' and index % 2 else []
            yield single(f'pad_{mode}_{index}', 'Pad', shape, i64(*pads), *more, mode=mode)
            yield single(f'pad_{mode}_{index}_9', 'Pad', shape, opset=9, mode=mode, pads=pads)
        yield single(f'pad_{mode}_axes', 'Pad', (2, 3, 5), i64(1, 2), '', i64(-1), opset=18, mode=mode)
    for mode in ['DCR', 'CRD']:
        for batch in [1, 2]:
            yield single(f'd2s_{mode}_{batch}', 'DepthToSpace', (batch, 12, 3, 2), blocksize=2, mode=mode)
    yield single('s2d_2', 'SpaceToDepth', (2, 3, 6, 4), blocksize=2)
    yield single('topk_row', 'TopK', (1, 9), i64(4), outs=2)
    yield single('topk_row_1', 'TopK', (9,), i64(4), outs=2, axis=0)


def resizes():
    index = 0
    for coordinates in ['half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric']:
        for nearest in ['round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil']:
            for scales in [(2, 2), (3, 1), (1.5, 2), (0.5, 0.5), (4, 3)]:
                index += 1
                yield single(f'nearest_{index}_{coordinates}_{nearest}', 'Resize', (1, 2, 4, 6), '', f32(1, 1, *scales), mode='nearest', coordinate_transformation_mode=coordinates, nearest_mode=nearest)
                yield single(f'nearest_sizes_{index}', 'Resize', (2, 2, 4, 6), '', '', i64(2, 2, int(4 * scales[0]) + 1, int(6 * scales[1])), mode='nearest', coordinate_transformation_mode=coordinates, nearest_mode=nearest)
        for size in [(8, 12), (6, 9), (2, 3), (5, 7), (1, 2), (4, 6)]:
            if coordinates != 'asymmetric':
                yield single(f'linear_{coordinates}_{size[0]}', 'Resize', (2, 2, 4, 6), '', '', i64(2, 2, *size), mode='linear', coordinate_transformation_mode=coordinates)
    yield single('linear_flat', 'Resize', (1, 2, 1, 6), '', f32(1, 1, 3, 2), mode='linear')
    yield single('nearest_10', 'Resize', (1, 2, 4, 6), f32(1, 1, 2, 2), opset=10, mode='nearest')
    yield single('nearest_3d', 'Resize', (1, 2, 4), '', f32(1, 1, 2), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    yield single('upsample_7', 'Upsample', (1, 2, 4, 6), opset=7, mode='nearest', scales=[1.0, 1.0, 2.0, 3.0])
    yield single('upsample_9_fraction', 'Upsample', (1, 2, 4, 6), f32(1, 1, 1.5, 2), opset=9, mode='nearest')
    yield single('nearest_axes', 'Resize', (1, 2, 4, 6), '', f32(2, 3), opset=18, mode='nearest', axes=[2, 3], coordinate_transformation_mode='asymmetric', nearest_mode='floor')


def reductions():
    for operator in ['ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceProd', 'ReduceSumSquare', 'ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp']:
        low = 0.2 if operator == 'ReduceLogSum' else -1
        for shape, axes in [((6,), [0]), ((3, 4), [0]), ((3, 4), [1]), ((2, 3, 4), [-1, 0]), ((1, 3, 4, 5), [2, 3]), ((2, 3, 4, 5), [1]), ((2, 3, 4, 5), [0, 2]), ((2, 3, 4, 5), [3]), ((1, 2, 3, 2, 2), [2, 4]), ((2, 3, 4), None)]:
            for keep in [0, 1]:
                for opset in [11, 18]:
                    net = Net(f'{operator}_{shape_text(shape)}_{axes}_{keep}_{opset}', opset)
                    x = net.input(shape, low, 1)
                    attributes = {'axes': axes} if axes and opset == 11 else {}
                    inputs = [x, i64(*axes)] if axes and opset == 18 else [x]
                    yield net.out(net.op(operator, *inputs, keepdims=keep, **attributes))
    yield single('reduce_noop', 'ReduceSum', (2, 3), noop_with_empty_axes=1)


def patterns():
    net = Net('dynamic_reshape')
    x = net.input((2, 3, 4, 4), dims=['N', 3, 4, 4])
    n = net.op('Gather', net.op('Shape', x), np.array(0, np.int64))
    target = net.op('Concat', net.op('Unsqueeze', n, i64(0)), i64(-1), axis=0)
    net.data['x0'] = net.data['x0'][:1]
    yield net.out(net.op('Reshape', x, target))
    net = Net('resize_by_shape', 11)
    x = net.input((1, 3, 4, 5))
    y = net.op('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    hw = net.op('Slice', net.op('Shape', x), i64(2), i64(4), i64(0))
    nc = net.op('Slice', net.op('Shape', y), i64(0), i64(2), i64(0))
    yield net.out(net.op('Resize', y, np.array([], F32), np.array([], F32), net.op('Concat', nc, hw, axis=0), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'))
    net = Net('expand_by_shape')
    x, y = net.input((2, 3, 4)), net.input((1, 3, 1))
    yield net.out(net.op('Mul', net.op('Expand', y, net.op('Shape', x)), x))
    net = Net('constant_of_shape')
    x = net.input((2, 3, 4))
    yield net.out(net.op('Add', net.op('ConstantOfShape', net.op('Shape', x)), x))
    net = Net('weight_chain')
    x = net.input((2, 6))
    w = net.op('Mul', net.op('Transpose', net.rand(4, 6), perm=[1, 0]), scalar(0.5))
    yield net.out(net.op('MatMul', x, w))
    net = Net('weight_norm')
    v = net.const(net.rand(4, 3, 3, 3))
    norm = net.op('Sqrt', net.op('ReduceSum', net.op('Mul', v, v), i64(1, 2, 3), keepdims=1))
    yield net.out(net.op('Conv', (1, 3, 6, 6), net.op('Mul', net.op('Div', v, norm), net.rand(4, 1, 1, 1))))
    net = Net('float16_weights')
    x = net.input((1, 3, 6, 6))
    w = net.op('Cast', net.const(net.rand(4, 3, 3, 3).astype(np.float16)), to=1)
    yield net.out(net.op('Conv', x, w))
    net = Net('double_weights')
    w = net.op('Cast', net.const(net.rand(6, 3).astype(np.float64)), to=1)
    yield net.out(net.op('MatMul', (2, 6), w))
    net = Net('outputs_of_inputs')
    x = net.input((1, 3, 6, 6))
    y = net.op('Relu', x)
    z = net.op('Sigmoid', y)
    yield net.out(z, net.op('Identity', x), y, net.op('Identity', z), net.op('Identity', net.rand(2, 3)))
    net = Net('dropout_between', 13)
    x = net.conv((1, 3, 6, 6), 3, 4)
    yield net.out(net.op('Relu', net.op('Dropout', x, scalar(0.4))))
    for value in [-1e9, -np.inf]:
        net = Net(f'attention_mask_{value}')
        mask = net.const(np.tril(np.ones((1, 1, 5, 5), bool)))
        yield net.out(net.op('Softmax', net.op('Where', mask, (1, 2, 5, 5), scalar(value)), axis=-1))
        net = Net(f'attention_mask_variable_{value}')
        mask = net.op('Greater', net.input((1, 1, 5, 5)), scalar(-0.5))
        yield net.out(net.op('Softmax', net.op('Where', mask, net.input((1, 2, 5, 5)), scalar(value)), axis=-1))
    net = Net('constant_condition')
    mask = net.const(np.array([True, False, True]))
    x = net.input((2, 3))
    yield net.out(net.op('Where', net.op('And', net.op('Greater', x, scalar(0)), mask), x, net.op('Neg', x)))
    net = Net('hard_swish_written_out')
    x = net.input((1, 4, 5, 5), -4, 4)
    y = net.op('Clip', net.op('Add', x, net.constant(scalar(3))), scalar(0), scalar(6))
    yield net.out(net.op('Mul', x, net.op('Div', y, scalar(6))))
    net = Net('squeeze_excite')
    x = net.conv((1, 3, 8, 8), 3, 8)
    s = net.op('Relu', net.conv(net.op('GlobalAveragePool', x), 8, 2, 1))
    yield net.out(net.op('Mul', net.op('HardSigmoid', net.conv(s, 2, 8, 1)), x))
    net = Net('shared_scalar')
    x, c = net.input((2, 3)), net.const(scalar(0.5))
    yield net.out(net.op('Div', c, net.op('Add', net.op('Mul', x, x), c)))
    for steps, batch in [(1, 1), (4, 1), (4, 2)]:
        for operator, gates, more in [('LSTM', 4, {}), ('GRU', 3, {'linear_before_reset': 1}), ('GRU', 3, {'linear_before_reset': 0})]:
            if steps > 1 and more.get('linear_before_reset') == 0:
                continue
            for bias in [0, 1]:
                for which in [0, 1]:
                    net = Net(f'{operator}_{steps}_{batch}_{bias}_{which}_{more.get("linear_before_reset", 0)}', 14)
                    inputs = [net.input((steps, batch, 3)), net.weight(1, gates * 5, 3), net.weight(1, gates * 5, 5)] + ([net.rand(1, 2 * gates * 5)] if bias else [])
                    yield net.out(net.op(operator, *inputs, outs=2, hidden_size=5, **more)[which])


GROUPS = [elementwise, broadcasts, convolutions, pools, products, normalizations, shapes, resizes, reductions, patterns]

if __name__ == '__main__':
    for group in GROUPS:
        for case in group():
            reason = write(case, sys.argv[1])
            if reason:
                print(f'{case.name}: left out: {reason}')
