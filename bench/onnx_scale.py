"""One case of onnx_scale.mjs: onnx_scale.py onnx|onnx_ir PATH CASE SAVED. Prints CPU seconds after the imports and the peak memory."""
import json
import sys
import time

import onnx

peer, path, name, saved = sys.argv[1:5]
if peer == 'onnx_ir':
    import onnx_ir as ir
    from onnx_ir.passes.common import RemoveUnusedNodesPass, TopologicalSortPass


def with_onnx():
    if name == 'check':
        onnx.checker.check_model(path)
        return
    model = onnx.load(path)
    graph = model.graph
    if name == 'iterate':
        total = 0
        for node in graph.node:
            total += len(node.op_type) + len(node.name) + len(node.input) + len(node.output)
            for attribute in node.attribute:
                total += len(attribute.name) + (onnx.helper.get_attribute_value(attribute) is not None)
    elif name in ('rename one', 'rename all'):
        # A walk, as there is no index.
        names = {'value_5': 'other'} if name == 'rename one' else {f'value_{at}': f'renamed_{at}' for at in range(len(graph.node) + 1)}
        for node in graph.node:
            for values in (node.input, node.output):
                for at, value in enumerate(values):
                    if value in names:
                        values[at] = names[value]
        for values in (graph.value_info, graph.input, graph.output):
            for value in values:
                value.name = names.get(value.name, value.name)
    elif name == 'insert':
        graph.node.extend([onnx.helper.make_node('Neg', [f'value_{at}'], [f'n_{at}']) for at in range(len(graph.node))])
    elif name == 'remove':
        del graph.node[:-1]
    elif name == 'add types':
        for value in graph.value_info:
            value.type.CopyFrom(onnx.helper.make_tensor_type_proto(1, ['N', 4]))
    elif name == 'extract half, save':
        half = onnx.utils.Extractor(model).extract_model(['value_0'], [f'value_{len(graph.node) // 2}'])
        onnx.save(half, saved)
    elif name == 'save':
        graph.name = 'saved'
        onnx.save(model, saved)


def with_onnx_ir():
    model = ir.load(path)
    graph = model.graph
    if name == 'iterate':
        total = 0
        for node in graph:
            total += len(node.op_type) + len(node.name) + len(node.inputs) + len(node.outputs)
            for attribute in node.attributes.values():
                total += len(attribute.name) + (attribute.value is not None)
    elif name in ('rename one', 'rename all'):
        for at, node in enumerate(graph):
            if name == 'rename all' or at == 4:
                node.outputs[0].name = f'renamed_{at}'
    elif name == 'insert':
        graph.extend([ir.node('Neg', [node.outputs[0]]) for node in graph])
    elif name == 'remove':
        for node in list(graph)[:-1]:
            node.outputs[0].replace_all_uses_with(node.inputs[0])
            graph.remove(node, safe=True)
    elif name == 'sort':
        TopologicalSortPass()(model)
    elif name == 'remove unused':
        RemoveUnusedNodesPass()(model)
    elif name == 'uses':
        total = sum(len(list(value.uses())) for node in graph for value in node.outputs)
    elif name == 'add types':
        for node in graph:
            node.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
            node.outputs[0].shape = ir.Shape(['N', 4])
    elif name == 'save':
        graph.name = 'saved'
        ir.save(model, saved)


before = time.process_time()
with_onnx() if peer == 'onnx' else with_onnx_ir()
seconds = time.process_time() - before
# As in onnx_scale_one.mjs, without the memory of the parent.
with open('/proc/self/status', encoding='ascii') as status:
    peak_kib = int(next(line for line in status if line.startswith('VmHWM')).split()[1])
print(json.dumps({'seconds': seconds, 'peakMib': peak_kib / 1024}))
