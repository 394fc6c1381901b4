"""Models and peers of onnx_speeds.mjs: onnx_speeds.py make CASE PATH | run CASE PATH. A run prints CPU seconds after the imports."""
import json
import sys
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT
# About 194 MB, as a classifier of LightGBM in the package luscinia has.
TREE_NODES = 3_100_000
BLOCKS = 600


def value(name, shape):
    return helper.make_tensor_value_info(name, FLOAT, shape)


def model_of(nodes, weights, inputs, outputs, domains=()):
    graph = helper.make_graph(nodes, 'g', inputs, outputs, weights)
    opsets = [helper.make_opsetid('', 17), *[helper.make_opsetid(*each) for each in domains]]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def tree():
    """A chain of decisions in trees of 127 nodes; repeated numbers are not packed, as Python writes them."""
    at = np.arange(TREE_NODES)
    within = at % 127
    is_leaf = within >= 63
    attributes = {
        'n_targets': 1,
        'nodes_treeids': (at // 127).tolist(),
        'nodes_nodeids': within.tolist(),
        'nodes_featureids': np.where(is_leaf, 0, at % 200).tolist(),
        'nodes_values': np.random.default_rng(0).standard_normal(TREE_NODES).astype('f4').tolist(),
        'nodes_modes': np.where(is_leaf, 'LEAF', 'BRANCH_LEQ').tolist(),
        'nodes_truenodeids': np.where(is_leaf, 0, within * 2 + 1).tolist(),
        'nodes_falsenodeids': np.where(is_leaf, 0, within * 2 + 2).tolist(),
        'nodes_missing_value_tracks_true': np.zeros(TREE_NODES, int).tolist(),
        'nodes_hitrates': np.ones(TREE_NODES, 'f4').tolist(),
        'target_treeids': (at[is_leaf] // 127).tolist(),
        'target_nodeids': within[is_leaf].tolist(),
        'target_ids': np.zeros(is_leaf.sum(), int).tolist(),
        'target_weights': np.ones(is_leaf.sum(), 'f4').tolist(),
    }
    node = helper.make_node('TreeEnsembleRegressor', ['x'], ['y'], domain='ai.onnx.ml', **attributes)
    return model_of([node], [], [value('x', ['N', 200])], [value('y', ['N', 1])], [('ai.onnx.ml', 3)])


def network():
    """3,600 nodes in blocks of a product, a sum, a normalization in steps."""
    random = np.random.default_rng(0)
    nodes, weights, last = [], [], 'x'
    for block in range(BLOCKS):
        for name, shape in (('w', (64, 64)), ('b', (64,))):
            weights.append(numpy_helper.from_array(random.standard_normal(shape).astype('f4'), f'{name}{block}'))
        for op, inputs, output in (
            ('MatMul', [last, f'w{block}'], 'm'), ('Add', [f'm{block}', f'b{block}'], 'a'), ('Sigmoid', [f'a{block}'], 's'),
            ('Mul', [f'a{block}', f's{block}'], 'g'), ('Add', [f'g{block}', last], 'r'), ('Tanh', [f'r{block}'], 'x'),
        ):  # fmt: skip
            nodes.append(helper.make_node(op, inputs, [f'{output}{block}']))
        last = f'x{block}'
    return model_of(nodes, weights, [value('x', ['N', 64])], [value(last, ['N', 64])])


def numbers():
    random = np.random.default_rng(0)
    floats = random.standard_normal((1000, 1000)).astype('f4')
    weights = [numpy_helper.from_array(floats, 'w'), numpy_helper.from_array(random.integers(-(2**40), 2**40, 200_000), 'i')]
    node = helper.make_node('MatMul', ['x', 'w'], ['y'])
    return model_of([node], weights, [value('x', ['N', 1000])], [value('y', ['N', 1000])])


def run(name, path):
    if name == 'float16':
        import onnxruntime.transformers.float16 as tool

        model = onnx.load(path)
        return lambda: tool.convert_float_to_float16(model, keep_io_types=True)
    if name == 'print':
        model = onnx.load(path)
        return lambda: onnx.printer.to_text(model)
    return lambda: onnx.load(path)


action, name, path = sys.argv[1:4]
if action == 'make':
    onnx.save({'tree': tree, 'float16': network, 'print': numbers}[name](), path)
else:
    measured = run(name, path)
    start = time.process_time()
    result = measured()
    print(json.dumps({'seconds': time.process_time() - start}))
