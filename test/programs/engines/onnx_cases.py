"""Builds small ONNX models with random weights, and writes each with inputs and what onnxruntime computes from them.

A case is a folder with model.onnx, in0.npy ... and out0.npy ..., in the order of the inputs and outputs of the graph.
"""
import os
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32


def i64(*values):
    return np.array(values, np.int64)


def f32(*values):
    return np.array(values, F32)


def scalar(value):
    return np.array(value, F32)


class Net:
    """One model. Arrays among the inputs of an operator become initializers, tuples graph inputs of that shape."""

    def __init__(self, name, opset=13):
        self.name, self.opset = name, opset
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.initializers, self.inputs, self.outputs, self.data = [], [], [], [], {}
        self.count = 0

    def input(self, shape, low=-1.0, high=1.0, dims=None):
        name = f'x{len(self.inputs)}'
        self.data[name] = self.rng.uniform(low, high, shape).astype(F32)
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims or list(shape)))
        return name

    def const(self, array, name=None):
        name = name or f'w{len(self.initializers)}'
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(np.shape(array)), name))
        return name

    def weight(self, *shape):
        fan = max(1, int(np.prod(shape[1:])))
        return (self.rng.uniform(-1, 1, shape) * 1.5 / np.sqrt(fan)).astype(F32)

    def rand(self, *shape, low=-1.0, high=1.0):
        return self.rng.uniform(low, high, shape).astype(F32)

    def value(self, given):
        if isinstance(given, str):
            return given
        return self.input(given) if isinstance(given, tuple) else self.const(given)

    def op(self, operator, *inputs, outs=1, domain='', **attributes):
        names = [self.value(each) for each in inputs]
        outputs = [f'{operator.lower()}_{self.count}' + (f'_{i}' if i else '') for i in range(outs)]
        self.nodes.append(helper.make_node(operator, names, outputs, name=f'{operator}_{self.count}', domain=domain, **attributes))
        self.count += 1
        return outputs[0] if outs == 1 else outputs

    def constant(self, array):
        """A Constant node."""
        output = f'constant_{self.count}'
        self.count += 1
        self.nodes.append(helper.make_node('Constant', [], [output], value=numpy_helper.from_array(np.asarray(array), output)))
        return output

    def conv(self, x, cin, cout, k=3, stride=1, group=1, pad=None, bias=True, dilation=1):
        pad = dilation * (k // 2) if pad is None else pad
        weights = [self.weight(cout, cin // group, k, k)] + ([self.weight(cout)] if bias else [])
        return self.op('Conv', x, *weights, kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, group=group, dilations=[dilation] * 2)

    def bn(self, x, c):
        parameters = [self.rand(c, low=0.5, high=1.5), self.rand(c), self.rand(c), self.rand(c, low=0.5, high=1.5)]
        return self.op('BatchNormalization', x, *parameters, epsilon=1e-5)

    def out(self, *names):
        self.outputs += names
        return self


def write(net, folder):
    """Writes the case. Returns why it was left out, where onnx or onnxruntime refuse the model."""
    graph = helper.make_graph(net.nodes, net.name, net.inputs, [onnx.ValueInfoProto(name=name) for name in net.outputs], net.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', net.opset)], ir_version=8 if net.opset < 21 else 10)
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.output}
    del model.graph.output[:]
    for name in net.outputs:
        model.graph.output.append(inferred[name])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
        results = session.run(None, net.data)
    except Exception as error:
        return str(error).splitlines()[0]
    where = os.path.join(folder, net.name)
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, 'model.onnx'), 'wb') as file:
        file.write(model.SerializeToString(deterministic=True))
    for at, value in enumerate(net.inputs):
        np.save(os.path.join(where, f'in{at}.npy'), net.data[value.name])
    for at, value in enumerate(results):
        np.save(os.path.join(where, f'out{at}.npy'), value)
    return None
