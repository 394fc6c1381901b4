"""Writes networks in the manner of known ones, small and with random weights.

    python onnx_networks.py FOLDER
"""
import sys

import numpy as np

from onnx_cases import F32, Net, f32, i64, scalar, write


def relu6(net, x):
    return net.op('Clip', x, scalar(0), scalar(6))


def hard_swish(net, x):
    y = net.op('Clip', net.op('Add', x, scalar(3)), scalar(0), scalar(6))
    return net.op('Div', net.op('Mul', x, y), scalar(6))


def silu(net, x):
    return net.op('Mul', x, net.op('Sigmoid', x))


def block(net, x, cin, cout, k=3, stride=1, group=1, act=lambda net, x: net.op('Relu', x)):
    y = net.bn(net.conv(x, cin, cout, k, stride, group, bias=False), cout)
    return act(net, y) if act else y


def classifier(net, x, channels, classes=10):
    y = net.op('Flatten', net.op('GlobalAveragePool', x))
    return net.op('Softmax', net.op('Gemm', y, net.weight(classes, channels), net.weight(classes), transB=1), axis=1)


def mobilenet_v1(batch=1):
    net = Net(f'mobilenet_v1_batch{batch}')
    x, c = block(net, net.input((batch, 3, 48, 48)), 3, 8, 3, 2), 8
    for cout, stride in [(16, 1), (24, 2), (24, 1), (48, 2)]:
        x = block(net, block(net, x, c, c, 3, stride, c), c, cout, 1)
        c = cout
    return net.out(classifier(net, x, c))


def mobilenet_v2():
    net = Net('mobilenet_v2', 11)
    x, c = block(net, net.input((1, 3, 48, 48)), 3, 8, 3, 2, act=relu6), 8
    for cout, stride, t in [(12, 1, 1), (16, 2, 6), (16, 1, 6), (24, 2, 6), (24, 1, 6)]:
        y = block(net, x, c, c * t, 1, act=relu6)
        y = block(net, y, c * t, c * t, 3, stride, c * t, act=relu6)
        y = block(net, y, c * t, cout, 1, act=None)
        x = net.op('Add', x, y) if stride == 1 and c == cout else y
        c = cout
    y = net.op('ReduceMean', x, axes=[2, 3], keepdims=0)
    return net.out(net.op('Gemm', y, net.weight(c, 10), net.weight(10)))


def squeeze_excite(net, x, c):
    s = net.op('Relu', net.conv(net.op('GlobalAveragePool', x), c, max(2, c // 4), 1))
    s = net.op('HardSigmoid', net.conv(s, max(2, c // 4), c, 1), alpha=1 / 6)
    return net.op('Mul', x, s)


def mobilenet_v3(opset):
    net = Net(f'mobilenet_v3_opset{opset}', opset)
    act = hard_swish if opset < 14 else lambda net, x: net.op('HardSwish', x)
    x, c = block(net, net.input((1, 3, 48, 48)), 3, 8, 3, 2, act=act), 8
    for cout, k, stride, t, se in [(12, 3, 1, 2, False), (16, 5, 2, 3, True), (16, 5, 1, 3, True), (24, 3, 2, 4, True)]:
        y = block(net, x, c, c * t, 1, act=act)
        y = block(net, y, c * t, c * t, k, stride, c * t, act=act)
        y = squeeze_excite(net, y, c * t) if se else y
        y = block(net, y, c * t, cout, 1, act=None)
        x = net.op('Add', y, x) if stride == 1 and c == cout else y
        c = cout
    return net.out(classifier(net, x, c))


def resnet(bottleneck, batch=1):
    net = Net(f'resnet_{"bottleneck" if bottleneck else "basic"}_batch{batch}')
    x = block(net, net.input((batch, 3, 40, 40)), 3, 8, 7, 2)
    x, c = net.op('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 8
    for cout, stride in [(8, 1), (16, 2), (32, 2)]:
        if bottleneck:
            y = block(net, block(net, block(net, x, c, cout // 2, 1), cout // 2, cout // 2, 3, stride), cout // 2, cout, 1, act=None)
        else:
            y = block(net, block(net, x, c, cout, 3, stride), cout, cout, act=None)
        short = x if c == cout and stride == 1 else block(net, x, c, cout, 1, stride, act=None)
        x, c = net.op('Relu', net.op('Add', y, short)), cout
    return net.out(classifier(net, x, c))


def squeezenet():
    net = Net('squeezenet', 10)
    x = net.op('Relu', net.conv(net.input((1, 3, 47, 47)), 3, 16, 3, 2, pad=0))
    x, c = net.op('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=0), 16
    for squeeze, expand in [(4, 8), (4, 8), (8, 16)]:
        s = net.op('Relu', net.conv(x, c, squeeze, 1))
        x = net.op('Concat', net.op('Relu', net.conv(s, squeeze, expand, 1)), net.op('Relu', net.conv(s, squeeze, expand, 3)), axis=1)
        c = 2 * expand
    x = net.op('Relu', net.conv(net.op('Dropout', x), c, 10, 1))
    return net.out(net.op('Softmax', net.op('Flatten', net.op('GlobalAveragePool', x))))


def shuffle(net, x, groups, c, size):
    y = net.op('Reshape', x, i64(-1, groups, c // groups, size, size))
    return net.op('Reshape', net.op('Transpose', y, perm=[0, 2, 1, 3, 4]), i64(-1, c, size, size))


def shufflenet_v1():
    net = Net('shufflenet_v1')
    x, c = net.op('MaxPool', block(net, net.input((1, 3, 32, 32)), 3, 12, 3, 2), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 12
    for _ in range(2):
        y = shuffle(net, block(net, x, c, c, 1, group=3), 3, c, 8)
        y = block(net, block(net, y, c, c, 3, 1, c, act=None), c, c, 1, group=3, act=None)
        x = net.op('Relu', net.op('Add', x, y))
    short = net.op('AveragePool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = net.op('Concat', short, block(net, x, c, c, 3, 2, c, act=None), axis=1)
    return net.out(classifier(net, x, 2 * c))


def shufflenet_v2():
    net = Net('shufflenet_v2', 13)
    x, c = block(net, net.input((1, 3, 32, 32)), 3, 16, 3, 2), 16
    for _ in range(2):
        left, right = net.op('Split', x, i64(c // 2, c // 2), outs=2, axis=1)
        y = block(net, block(net, block(net, right, c // 2, c // 2, 1), c // 2, c // 2, 3, 1, c // 2, act=None), c // 2, c // 2, 1)
        x = shuffle(net, net.op('Concat', left, y, axis=1), 2, c, 16)
    return net.out(classifier(net, x, c))


def yolo_v3_tiny():
    net = Net('yolo_v3_tiny', 11)
    leaky = lambda net, x: net.op('LeakyRelu', x, alpha=0.1)
    x, c, kept = net.input((1, 3, 64, 64)), 3, None
    for cout in [8, 16, 32, 48]:
        x, c = block(net, x, c, cout, act=leaky), cout
        kept = x if cout == 32 else kept
        x = net.op('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.op('MaxPool', x, kernel_shape=[2, 2], strides=[1, 1], auto_pad='SAME_UPPER')
    first = net.conv(block(net, x, 48, 48, act=leaky), 48, 21, 1)
    up = net.op('Resize', block(net, x, 48, 16, 1, act=leaky), f32(), f32(1, 1, 4, 4), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    second = net.conv(block(net, net.op('Concat', up, kept, axis=1), 48, 32, act=leaky), 32, 21, 1)
    return net.out(first, second)


def yolo_v5(decode):
    net = Net(f'yolo_v5_{"decoded" if decode else "raw"}', 12)
    x = net.input((1, 3, 64, 64))
    parts = [net.op('Slice', net.op('Slice', x, i64(a), i64(2 ** 63 - 1), i64(2), i64(2)), i64(b), i64(2 ** 63 - 1), i64(3), i64(2)) for a, b in [(0, 0), (1, 0), (0, 1), (1, 1)]]
    x = block(net, net.op('Concat', *parts, axis=1), 12, 16, act=silu)
    x = block(net, x, 16, 24, 3, 2, act=silu)
    y = block(net, block(net, x, 24, 12, 1, act=silu), 12, 12, act=silu)
    p3 = block(net, net.op('Concat', y, block(net, x, 24, 12, 1, act=silu), axis=1), 24, 24, 1, act=silu)
    x = block(net, p3, 24, 32, 3, 2, act=silu)
    pools = [x] + [net.op('MaxPool', x, kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4) for k in (5, 9, 13)]
    p4 = block(net, net.op('Concat', *pools, axis=1), 128, 32, 1, act=silu)
    up = net.op('Resize', p4, f32(), f32(1, 1, 2, 2), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    p3 = block(net, net.op('Concat', up, p3, axis=1), 56, 24, act=silu)
    made = []
    for level, (feature, c, size, stride) in enumerate([(p3, 24, 16, 4), (p4, 32, 8, 8)]):
        head = net.op('Reshape', net.conv(feature, c, 18, 1), i64(1, 3, 6, size, size))
        head = net.op('Transpose', head, perm=[0, 1, 3, 4, 2])
        if not decode:
            made.append(head)
            continue
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1).reshape(1, 1, size, size, 2).astype(F32)
        anchors = net.rand(1, 3, 1, 1, 2, low=1, high=9)
        s = net.op('Sigmoid', head)
        part = lambda a, b: net.op('Slice', s, i64(a), i64(b), i64(4))
        xy = net.op('Mul', net.op('Add', net.op('Sub', net.op('Mul', part(0, 2), scalar(2)), scalar(0.5)), grid), scalar(stride))
        wh = net.op('Mul', net.op('Pow', net.op('Mul', part(2, 4), scalar(2)), scalar(2)), anchors)
        made.append(net.op('Reshape', net.op('Concat', xy, wh, part(4, 6), axis=-1), i64(1, -1, 6)))
    return net.out(*(made if not decode else [net.op('Concat', *made, axis=1)]))


def yolo_x():
    net = Net('yolo_x_head', 11)
    x = block(net, block(net, net.input((1, 3, 64, 64)), 3, 16, 3, 2, act=silu), 16, 24, 3, 2, act=silu)
    made = []
    for size in [16, 8]:
        if size == 8:
            x = block(net, x, 24, 24, 3, 2, act=silu)
        cls, reg = block(net, x, 24, 16, act=silu), block(net, x, 24, 16, act=silu)
        out = net.op('Concat', net.conv(reg, 16, 4, 1), net.op('Sigmoid', net.conv(reg, 16, 1, 1)), net.op('Sigmoid', net.conv(cls, 16, 3, 1)), axis=1)
        made.append(net.op('Reshape', out, i64(1, 8, -1)))
    return net.out(net.op('Transpose', net.op('Concat', *made, axis=2), perm=[0, 2, 1]))


def yolo_v8():
    net = Net('yolo_v8_head', 13)
    x = block(net, block(net, net.input((1, 3, 64, 64)), 3, 16, 3, 2, act=silu), 16, 16, 3, 2, act=silu)
    one, other = net.op('Split', block(net, x, 16, 32, 1, act=silu), i64(16, 16), outs=2, axis=1)
    x = block(net, net.op('Concat', one, other, block(net, other, 16, 16, act=silu), axis=1), 48, 24, 1, act=silu)
    box, cls = net.conv(block(net, x, 24, 32, act=silu), 32, 64, 1), net.conv(block(net, x, 24, 16, act=silu), 16, 3, 1)
    both = net.op('Reshape', net.op('Concat', box, cls, axis=1), i64(1, 67, 256))
    box, cls = net.op('Split', both, i64(64, 3), outs=2, axis=1)
    dfl = net.op('Softmax', net.op('Transpose', net.op('Reshape', box, i64(1, 4, 16, 256)), perm=[0, 3, 1, 2]), axis=3)
    dist = net.op('Conv', net.op('Transpose', dfl, perm=[0, 3, 2, 1]), np.arange(16, dtype=F32).reshape(1, 16, 1, 1))
    dist = net.op('Reshape', dist, i64(1, 4, 256))
    grid = np.stack(np.meshgrid(np.arange(16) + 0.5, np.arange(16) + 0.5)).reshape(1, 2, 256).astype(F32)
    lt, rb = net.op('Slice', dist, i64(0), i64(2), i64(1)), net.op('Slice', dist, i64(2), i64(4), i64(1))
    low, high = net.op('Sub', grid, lt), net.op('Add', grid, rb)
    center = net.op('Div', net.op('Add', low, high), scalar(2))
    boxes = net.op('Mul', net.op('Concat', center, net.op('Sub', high, low), axis=1), scalar(4))
    return net.out(net.op('Concat', boxes, net.op('Sigmoid', cls), axis=1))


def unet(bilinear):
    net = Net(f'unet_{"bilinear" if bilinear else "transposed"}', 11)
    x, c, skips = net.input((1, 3, 32, 32)), 3, []
    for cout in [8, 16]:
        x, c = block(net, block(net, x, c, cout), cout, cout), cout
        skips.append(x)
        x = net.op('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2])
    x, c = block(net, x, 16, 32), 32
    for skip, cout in [(skips[1], 16), (skips[0], 8)]:
        if bilinear:
            x = net.conv(net.op('Resize', x, f32(), f32(1, 1, 2, 2), mode='linear', coordinate_transformation_mode='align_corners'), c, cout, 1)
        else:
            x = net.op('ConvTranspose', x, net.weight(c, cout, 2, 2), net.weight(cout), kernel_shape=[2, 2], strides=[2, 2])
        x, c = block(net, net.op('Concat', skip, x, axis=1), 2 * cout, cout), cout
    return net.out(net.op('Sigmoid', net.conv(x, 8, 1, 1)))


def retinaface():
    net = Net('retinaface', 11)
    leaky = lambda net, x: net.op('LeakyRelu', x, alpha=0.1)
    x = block(net, block(net, net.input((1, 3, 64, 64)), 3, 8, 3, 2, act=leaky), 8, 16, 3, 2, act=leaky)
    c1 = block(net, x, 16, 16, act=leaky)
    c2 = block(net, c1, 16, 32, 3, 2, act=leaky)
    p2 = block(net, c2, 32, 16, 1, act=leaky)
    up = net.op('Resize', p2, f32(), f32(1, 1, 2, 2), mode='nearest')
    p1 = block(net, net.op('Add', block(net, c1, 16, 16, 1, act=leaky), up), 16, 16, act=leaky)
    heads = {2: [], 4: [], 10: []}
    for feature in (p1, p2):
        a = block(net, feature, 16, 8, act=None)
        b = block(net, block(net, feature, 16, 4, act=leaky), 4, 8, act=None)
        ssh = net.op('Relu', net.op('Concat', a, b, axis=1))
        for width, made in heads.items():
            made.append(net.op('Reshape', net.op('Transpose', net.conv(ssh, 16, 2 * width, 1), perm=[0, 2, 3, 1]), i64(0, -1, width)))
    made = {width: net.op('Concat', *each, axis=1) for width, each in heads.items()}
    return net.out(made[4], net.op('Softmax', made[2], axis=2), made[10])


def linear(net, x, cin, cout):
    return net.op('Add', net.op('MatMul', x, net.weight(cin, cout)), net.weight(cout))


def layer_norm(net, x, d, opset):
    if opset >= 17:
        return net.op('LayerNormalization', x, net.rand(d, low=0.5, high=1.5), net.rand(d), axis=-1)
    axes = {'axes': [-1]}
    diff = net.op('Sub', x, net.op('ReduceMean', x, **axes))
    var = net.op('ReduceMean', net.op('Pow', diff, scalar(2)), **axes)
    y = net.op('Div', diff, net.op('Sqrt', net.op('Add', var, scalar(1e-5))))
    return net.op('Add', net.op('Mul', y, net.rand(d, low=0.5, high=1.5)), net.rand(d))


def gelu(net, x, opset):
    if opset >= 20:
        return net.op('Gelu', x)
    e = net.op('Add', net.op('Erf', net.op('Div', x, scalar(np.sqrt(2)))), scalar(1))
    return net.op('Mul', net.op('Mul', x, e), scalar(0.5))


def encoder(net, x, batch, tokens, d, heads, opset):
    y = layer_norm(net, x, d, opset)
    split = lambda t: net.op('Transpose', net.op('Reshape', t, i64(batch, tokens, heads, d // heads)), perm=[0, 2, 1, 3])
    q, k, v = [split(linear(net, y, d, d)) for _ in range(3)]
    scores = net.op('Div', net.op('MatMul', q, net.op('Transpose', k, perm=[0, 1, 3, 2])), scalar(np.sqrt(d // heads)))
    mixed = net.op('MatMul', net.op('Softmax', scores, axis=-1), v)
    mixed = net.op('Reshape', net.op('Transpose', mixed, perm=[0, 2, 1, 3]), i64(batch, tokens, d))
    x = net.op('Add', x, linear(net, mixed, d, d))
    return net.op('Add', x, linear(net, gelu(net, linear(net, layer_norm(net, x, d, opset), d, 2 * d), opset), 2 * d, d))


def vision_transformer(opset, batch=1):
    net, d = Net(f'vision_transformer_opset{opset}_batch{batch}', opset), 24
    x = net.op('Conv', net.input((batch, 3, 32, 32)), net.weight(d, 3, 8, 8), net.weight(d), kernel_shape=[8, 8], strides=[8, 8])
    x = net.op('Transpose', net.op('Reshape', x, i64(batch, d, 16)), perm=[0, 2, 1])
    cls = net.op('Expand', net.rand(1, 1, d), i64(batch, 1, d))
    x = net.op('Add', net.op('Concat', cls, x, axis=1), net.rand(1, 17, d))
    for _ in range(2):
        x = encoder(net, x, batch, 17, d, 3, opset)
    x = net.op('Gather', layer_norm(net, x, d, opset), np.array(0, np.int64), axis=1)
    return net.out(linear(net, x, d, 10))


def text_encoder():
    net = Net('text_encoder', 13)
    x = net.op('Add', net.input((1, 12, 16)), net.rand(12, 16))
    x = encoder(net, encoder(net, x, 1, 12, 16, 2, 13), 1, 12, 16, 2, 13)
    return net.out(x, net.op('Tanh', linear(net, net.op('ReduceMean', x, axes=[1], keepdims=0), 16, 8)))


def fused_attention():
    net, d = Net('fused_attention', 13), 16
    x = net.input((2, 9, d))
    qkv = net.op('Transpose', net.op('Reshape', linear(net, x, d, 3 * d), i64(2, 9, 3, 2, d // 2)), perm=[2, 0, 3, 1, 4])
    q, k, v = [net.op('Gather', qkv, np.array(at, np.int64), axis=0) for at in range(3)]
    scores = net.op('Mul', net.op('MatMul', q, net.op('Transpose', k, perm=[0, 1, 3, 2])), scalar(0.35))
    mixed = net.op('MatMul', net.op('Softmax', scores, axis=3), v)
    return net.out(linear(net, net.op('Reshape', net.op('Transpose', mixed, perm=[0, 2, 1, 3]), i64(2, 9, d)), d, d))


def convnext():
    net = Net('convnext', 17)
    x = net.op('Conv', net.input((1, 3, 32, 32)), net.weight(16, 3, 4, 4), net.weight(16), kernel_shape=[4, 4], strides=[4, 4])
    for _ in range(2):
        y = net.op('Transpose', net.conv(x, 16, 16, 7, group=16), perm=[0, 2, 3, 1])
        y = layer_norm(net, y, 16, 17)
        y = linear(net, gelu(net, linear(net, y, 16, 32), 17), 32, 16)
        x = net.op('Add', x, net.op('Transpose', net.op('Mul', y, net.rand(16)), perm=[0, 3, 1, 2]))
    return net.out(classifier(net, x, 16))


def crnn():
    net = Net('crnn', 13)
    x = net.op('MaxPool', block(net, net.input((1, 1, 16, 40)), 1, 8), kernel_shape=[2, 2], strides=[2, 2])
    x = net.op('Relu', net.op('Conv', x, net.weight(12, 8, 8, 1), net.weight(12)))
    x = net.op('Transpose', net.op('Squeeze', x, i64(2)), perm=[2, 0, 1])
    y, _ = net.op('LSTM', x, net.weight(1, 64, 12), net.weight(1, 64, 16), net.rand(1, 128), outs=2, hidden_size=16)
    y = net.op('Squeeze', y, i64(1))
    return net.out(net.op('LogSoftmax', linear(net, y, 16, 9), axis=2))


def super_resolution():
    net = Net('super_resolution')
    x = net.op('Relu', net.conv(net.input((1, 1, 12, 12)), 1, 16, 5))
    x = net.conv(net.op('Relu', net.conv(x, 16, 8)), 8, 9)
    x = net.op('Transpose', net.op('Reshape', x, i64(-1, 1, 3, 3, 12, 12)), perm=[0, 1, 4, 2, 5, 3])
    return net.out(net.op('Reshape', x, i64(-1, 1, 36, 36)))


def deeplab():
    net = Net('deeplab', 11)
    x = block(net, block(net, net.input((1, 3, 33, 33)), 3, 16, 3, 2), 16, 24, 3, 2)
    branches = [block(net, x, 24, 8, 1)]
    for rate in [2, 4]:
        branches.append(net.op('Relu', net.bn(net.conv(x, 24, 8, 3, dilation=rate, bias=False), 8)))
    pooled = block(net, net.op('GlobalAveragePool', x), 24, 8, 1)
    branches.append(net.op('Resize', pooled, f32(), f32(), i64(1, 8, 9, 9), mode='nearest'))
    y = net.conv(block(net, net.op('Concat', *branches, axis=1), 32, 16, 1), 16, 5, 1)
    return net.out(net.op('Resize', y, f32(), f32(), i64(1, 5, 33, 33), mode='linear'))


def inception():
    net = Net('inception', 9)
    x = block(net, net.input((1, 3, 35, 35)), 3, 16, 3, 2)
    x = net.op('LRN', net.op('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]), size=5, alpha=1e-3, beta=0.75)
    a, b = block(net, x, 16, 8, 1), block(net, block(net, x, 16, 8, 1), 8, 12)
    c = block(net, block(net, x, 16, 4, 1), 4, 8, 5)
    d = block(net, net.op('AveragePool', x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4, count_include_pad=1), 16, 8, 1)
    return net.out(classifier(net, net.op('Concat', a, b, c, d, axis=1), 36))


def densenet():
    net = Net('densenet')
    x, c = net.conv(net.input((1, 3, 24, 24)), 3, 8, 3, 2), 8
    for _ in range(3):
        y = net.conv(net.op('Relu', net.bn(x, c)), c, 6, 3, bias=False)
        x, c = net.op('Concat', x, y, axis=1), c + 6
    x = net.op('AveragePool', net.conv(net.op('Relu', net.bn(x, c)), c, 13, 1), kernel_shape=[2, 2], strides=[2, 2])
    return net.out(classifier(net, x, 13))


def efficientnet():
    net = Net('efficientnet', 13)
    x, c = block(net, net.input((1, 3, 40, 40)), 3, 8, 3, 2, act=silu), 8
    for cout, k, stride in [(12, 3, 2), (12, 5, 1)]:
        y = block(net, block(net, x, c, 4 * c, 1, act=silu), 4 * c, 4 * c, k, stride, 4 * c, act=silu)
        s = net.op('ReduceMean', y, axes=[2, 3], keepdims=1)
        s = net.op('Sigmoid', net.conv(silu(net, net.conv(s, 4 * c, 4, 1)), 4, 4 * c, 1))
        y = block(net, net.op('Mul', s, y), 4 * c, cout, 1, act=None)
        x = net.op('Add', x, y) if c == cout else y
        c = cout
    return net.out(classifier(net, x, c))


def style_transfer():
    net = Net('style_transfer', 11)
    x = net.op('Pad', net.input((1, 3, 20, 20)), i64(0, 0, 4, 4, 0, 0, 4, 4), mode='reflect')
    x = net.op('Relu', net.op('InstanceNormalization', net.conv(x, 3, 8, 9, pad=0), net.rand(8), net.rand(8)))
    y = net.op('Pad', x, i64(0, 0, 1, 1, 0, 0, 1, 1), mode='reflect')
    y = net.op('InstanceNormalization', net.conv(y, 8, 8, 3, pad=0), net.rand(8), net.rand(8))
    x = net.op('Resize', net.op('Add', x, y), f32(), f32(1, 1, 2, 2), mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    return net.out(net.op('Tanh', net.conv(net.op('PRelu', x, net.rand(8, 1, 1)), 8, 3)))


def conv_1d():
    net = Net('audio_conv_1d')
    x = net.input((1, 4, 64))
    for cin, cout in [(4, 8), (8, 8)]:
        x = net.op('Conv', x, net.weight(cout, cin, 5), net.weight(cout), kernel_shape=[5], strides=[2], pads=[2, 2])
        x = net.op('Relu', net.bn(x, cout))
    x = net.op('GlobalAveragePool', net.op('MaxPool', x, kernel_shape=[2], strides=[2]))
    return net.out(net.op('Gemm', net.op('Flatten', x), net.weight(5, 8), net.weight(5), transB=1))


NETWORKS = [
    mobilenet_v1(), mobilenet_v1(3), mobilenet_v2(), mobilenet_v3(11), mobilenet_v3(14), resnet(False), resnet(True), resnet(True, 2), squeezenet(), shufflenet_v1(),
    shufflenet_v2(), yolo_v3_tiny(), yolo_v5(False), yolo_v5(True), yolo_x(), yolo_v8(), unet(False), unet(True), retinaface(), vision_transformer(13), vision_transformer(17, 2),
    vision_transformer(20), text_encoder(), fused_attention(), convnext(), crnn(), super_resolution(), deeplab(), inception(), densenet(), efficientnet(), style_transfer(), conv_1d(),
]

if __name__ == '__main__':
    for network in NETWORKS:
        reason = write(network, sys.argv[1])
        if reason:
            print(f'{network.name}: left out: {reason}')
