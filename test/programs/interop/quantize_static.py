"""Small models with Pad that onnxruntime's quantize_static quantizes, for interop_quantize.mjs: quantize_static.py write FOLDER COUNT SEED |
compare FOLDER.

`write`: `<n>.onnx`; its calibration caches in all forms; `<n>.tool.onnx`, quantized by the JSON cache, and `<n>.one.onnx` by ranges of one
number, as the other caches have; and models.json with the options of each. `compare`: `<n>.own.onnx` and `<n>.own-one.onnx` must have the
nodes and constants of the tool's, whatever their names, and the same outputs in every bit."""
import hashlib
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_static
from onnxruntime.quantization.calibrate import TensorsData, load_tensors_data, save_tensors_data
from onnxruntime.quantization.quant_utils import write_calibration_table

from plain_session import session

TYPES = {'int8': QuantType.QInt8, 'uint8': QuantType.QUInt8, 'int16': QuantType.QInt16, 'uint16': QuantType.QUInt16}
MODES = ('constant', 'reflect', 'edge', 'wrap')
BATCHES = 4


class Reader:
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


class Builder:
    """A chain of nodes, each of which takes the last value; every third at least is a Pad."""

    def __init__(self, random):
        self.random, self.nodes, self.constants = random, [], {}
        self.value, self.shape, self.opset = 'x', [1, int(random.integers(1, 4)), 6, 6], int(random.choice([18, 19, 21]))
        self.input_shape = list(self.shape)

    def constant(self, name, array):
        """An initializer, or the output of a Constant."""
        if self.random.random() < 0.3:
            self.nodes.append(helper.make_node('Constant', [], [name], f'make_{name}', value=numpy_helper.from_array(array)))
        else:
            self.constants[name] = array
        return name

    def add(self, op, inputs=(), **attributes):
        result = f'{op.lower()}{len(self.nodes)}'
        self.nodes.append(helper.make_node(op, [self.value, *inputs], [result], f'node_{result}', **attributes))
        self.value = result

    def pad(self):
        name, mode = f'{len(self.nodes)}', str(self.random.choice(MODES))
        sizes = self.random.integers(0, 3, 4)
        inputs = [self.constant(f'pads{name}', np.array([0, 0, *sizes[:2], 0, 0, *sizes[2:]], np.int64))]
        value = self.random.choice([None, 0.0, -0.75, 3.5]) if mode == 'constant' else None
        if value is not None:
            inputs.append(self.constant(f'value{name}', np.array(value, np.float32)))
        self.add('Pad', inputs, **({} if mode == 'constant' and self.random.random() < 0.5 else {'mode': mode}))
        self.shape[2] += int(sizes[0] + sizes[2])
        self.shape[3] += int(sizes[1] + sizes[3])

    def conv(self):
        name, channels = f'{len(self.nodes)}', int(self.random.integers(1, 5))
        weights = self.random.standard_normal((channels, self.shape[1], 3, 3)).astype(np.float32)
        self.constants[f'w{name}'] = weights
        inputs = [f'w{name}']
        if self.random.random() < 0.7:
            self.constants[f'b{name}'] = self.random.standard_normal(channels).astype(np.float32)
            inputs.append(f'b{name}')
        self.add('Conv', inputs, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        self.shape[1] = channels

    def other(self):
        op = str(self.random.choice(['Relu', 'MaxPool', 'Transpose', 'Add', 'Sigmoid', 'Mul']))
        if op == 'MaxPool':
            self.add(op, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        elif op == 'Transpose':
            self.add(op, perm=[0, 1, 3, 2])
            self.shape[2:] = self.shape[:1:-1]
        elif op in ('Add', 'Mul'):
            name = f'k{len(self.nodes)}'
            self.constants[name] = self.random.standard_normal((1, self.shape[1], 1, 1)).astype(np.float32)
            self.add(op, [name])
        else:
            self.add(op)

    def model(self):
        for step in range(int(self.random.integers(3, 8))):
            [self.pad, self.conv, self.other][step % 3 if self.random.random() < 0.7 else int(self.random.integers(3))]()
        inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, self.input_shape)]
        outputs = [helper.make_tensor_value_info(self.value, TensorProto.FLOAT, self.shape)]
        weights = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(self.nodes, 'g', inputs, outputs, weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=10)
        onnx.checker.check_model(made, full_check=True)
        return made


def feeds_of(model, seed):
    random = np.random.default_rng(seed)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return [{'x': random.standard_normal(shape).astype(np.float32)} for _ in range(BATCHES)]


def write(folder, count, seed):
    listed = []
    for at in range(count):
        random = np.random.default_rng([seed, at])
        model, path = Builder(random).model(), os.path.join(folder, f'{at}')
        onnx.save(model, f'{path}.onnx')
        activation = str(random.choice(list(TYPES)))
        # The tool takes no uint8 weights with int8 activations.
        weight = str(random.choice(['int8', 'uint8'])) if activation != 'int8' else 'int8'
        options = {'activationType': activation, 'weightType': weight, 'perChannel': bool(random.random() < 0.5),
                   'reduceRange': bool(random.random() < 0.2)}  # fmt: skip
        quantize(f'{path}.onnx', f'{path}.tool.onnx', options, f'{path}.json', Reader(feeds_of(model, at)))
        ranges = load_tensors_data(f'{path}.json')
        os.makedirs(f'{path}.tables')
        # As a dictionary in every second model, which it takes, too.
        write_calibration_table(ranges if at % 2 else ranges.data, f'{path}.tables')
        save_tensors_data(of_one_number(ranges), f'{path}.one.json')
        quantize(f'{path}.onnx', f'{path}.one.onnx', options, f'{path}.one.json')
        listed.append({'name': f'{at}', 'options': options})
    with open(os.path.join(folder, 'models.json'), 'w', encoding='utf-8') as file:
        json.dump(listed, file)


def quantize(source, target, options, cache, reader=None):
    quantize_static(source, target, reader, calibration_cache_path=cache, activation_type=TYPES[options['activationType']],
                    weight_type=TYPES[options['weightType']], per_channel=options['perChannel'], reduce_range=options['reduceRange'])  # fmt: skip


def of_one_number(ranges):
    """What the caches of one number for a value mean: from -n to n."""
    data = {}
    for name in ranges.keys():
        low, high = (float(np.asarray(each).item()) for each in ranges[name].range_value)
        most = np.array(abs(max(low, high)), np.float32)
        data[name] = (-most, most)
    return TensorsData(ranges.calibration_method, data)


def expressions(graph):
    """What outputs are computed from: operators, attributes, and constants by their bits. Names do not count."""
    known = {each.name: f'input {each.name}' for each in graph.input}
    known |= {each.name: constant(numpy_helper.to_array(each), each.data_type) for each in graph.initializer}
    for node in graph.node:
        if node.op_type == 'Constant':
            known[node.output[0]] = constant(numpy_helper.to_array(node.attribute[0].t), node.attribute[0].t.data_type)
            continue
        attributes = sorted(each.SerializeToString(deterministic=True) for each in node.attribute)
        inputs = [known[name] if name else '' for name in node.input]
        for at, output in enumerate(node.output):
            known[output] = digest(node.domain, node.op_type, attributes, inputs, at)
    return [known[each.name] for each in graph.output]


def constant(array, kind):
    return digest(kind, array.shape, array.tobytes())


def digest(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def compare(folder):
    with open(os.path.join(folder, 'models.json'), encoding='utf-8') as file:
        listed = json.load(file)
    for each in listed:
        path = os.path.join(folder, each['name'])
        original = onnx.load(f'{path}.onnx')
        feeds = feeds_of(original, int(each['name']))
        # From -n to n the tool drops a Relu, although the codes do not end at 0; tilework keeps it.
        has_relu = any(node.op_type == 'Relu' for node in original.graph.node)
        for own, tool in (('own', 'tool'),) if has_relu else (('own', 'tool'), ('own-one', 'one')):
            models = [onnx.load(f'{path}.{kind}.onnx') for kind in (own, tool)]
            what = f'{path}.{own}.onnx, {each["options"]}'
            outputs = [[session(model.SerializeToString()).run(None, feed)[0] for feed in feeds] for model in models]
            for found, expected in zip(*outputs):
                assert found.tobytes() == expected.tobytes(), f'{what}: outputs differ by {np.abs(found - expected).max()}'
            found, expected = (expressions(model.graph) for model in models)
            assert found == expected, f'{what}: other nodes or constants'


folder = sys.argv[2]
if sys.argv[1] == 'write':
    write(folder, int(sys.argv[3]), int(sys.argv[4]))
else:
    compare(folder)
