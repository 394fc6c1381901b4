"""Changes of one thing in a model that may make it invalid, for `onnx_check.py`: types, shapes, names, nodes, attributes, versions."""

import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

DTYPES = [TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.STRING, TensorProto.FLOAT16, TensorProto.UINT8]
EXTENTS = [0, 1, 2, 3, 4, 5, 8, "A", None]


def mutated(model, random):
    """The same with one to three changes, of which some may have no effect; their names."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    names = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        change = random.choice(CHANGES)
        graph = random.choice(graphs_of(changed.graph))
        if change(changed, graph, random):
            names.append(change.__name__)
    return changed, "+".join(names)


def graphs_of(graph):
    """The graph and its subgraphs."""
    found = [graph]
    for at in found:
        for node in at.node:
            for each in node.attribute:
                found += [each.g] if each.HasField("g") else list(each.graphs)
    return found


def names_of(graph):
    return [each.name for each in [*graph.input, *graph.initializer]] + [name for node in graph.node for name in node.output if name]


def picked(random, items):
    items = list(items)
    return random.choice(items) if items else None


def tensor_type(model, graph, random):
    each = picked(random, [*graph.input, *graph.output, *graph.value_info])
    return each.type.tensor_type if each is not None and each.type.HasField("tensor_type") else None


def change_dtype(model, graph, random):
    found = tensor_type(model, graph, random)
    if found is None:
        return False
    found.elem_type = random.choice(DTYPES)
    return True


def change_extent(model, graph, random):
    found = tensor_type(model, graph, random)
    dim = picked(random, found.shape.dim) if found is not None else None
    if dim is None:
        return False
    value = random.choice(EXTENTS)
    dim.Clear()
    if isinstance(value, int):
        dim.dim_value = value
    elif value is not None:
        dim.dim_param = value
    return True


def change_rank(model, graph, random):
    found = tensor_type(model, graph, random)
    if found is None:
        return False
    if found.shape.dim and random.randrange(2):
        del found.shape.dim[-1]
    else:
        found.shape.dim.add().dim_value = random.choice([1, 2, 3])
    return True


def change_kind(model, graph, random):
    each = picked(random, [*graph.input, *graph.output])
    if each is None or not each.type.HasField("tensor_type"):
        return False
    inner = onnx.TypeProto()
    inner.CopyFrom(each.type)
    each.type.CopyFrom(random.choice([helper.make_sequence_type_proto, helper.make_optional_type_proto])(inner))
    return True


def rename_input(model, graph, random):
    return rename_value(graph, random, lambda node: node.input)


def rename_output(model, graph, random):
    return rename_value(graph, random, lambda node: node.output)


def rename_value(graph, random, values_of):
    node = picked(random, [each for each in graph.node if values_of(each)])
    if node is None:
        return False
    values = values_of(node)
    values[random.randrange(len(values))] = random.choice([*names_of(graph), "unknown", ""])
    return True


def count_values(model, graph, random):
    node = picked(random, graph.node)
    if node is None:
        return False
    values = random.choice([node.input, node.output])
    if values and random.randrange(2):
        del values[random.randrange(len(values))]
    else:
        values.append(random.choice([*names_of(graph), "", "another"]))
    return True


def attribute(graph, random):
    node = picked(random, [each for each in graph.node if each.attribute])
    return (node, random.randrange(len(node.attribute))) if node is not None else (None, 0)


def change_number(model, graph, random):
    node, at = attribute(graph, random)
    if node is None:
        return False
    each = node.attribute[at]
    if each.type == AttributeProto.INT:
        each.i = random.choice([each.i + 1, each.i - 1, -each.i, 0, 1, 2, 99])
    elif each.type == AttributeProto.INTS and each.ints:
        each.ints[random.randrange(len(each.ints))] = random.choice([0, 1, 2, 3, -1, -2, 9])
    elif each.type == AttributeProto.STRING:
        each.s = random.choice([b"", b"zz", b"SAME_UPPER"])
    else:
        return False
    return True


def count_numbers(model, graph, random):
    node, at = attribute(graph, random)
    if node is None or node.attribute[at].type != AttributeProto.INTS:
        return False
    ints = node.attribute[at].ints
    if ints and random.randrange(2):
        ints.pop()
    else:
        ints.append(random.choice([0, 1, 2]))
    return True


def change_attributes(model, graph, random):
    node, at = attribute(graph, random)
    if node is None:
        return False
    kind = random.randrange(5)
    if kind == 0:
        del node.attribute[at]
    elif kind == 1:
        node.attribute.add().CopyFrom(node.attribute[at])
    elif kind == 2:
        node.attribute[at].name = random.choice(["unknown", "__own", "axis", ""])
    elif kind == 3:
        node.attribute[at].type = random.randrange(15)
    else:
        node.attribute[at].ref_attr_name = "outer"
    return True


def add_initializer(model, graph, random):
    """A constant for an input, which may have another type, in the graph or for it."""
    each = picked(random, graph.input)
    if each is None:
        return False
    found = each.type.tensor_type
    shape = [dim.dim_value or 1 for dim in found.shape.dim] if random.randrange(2) else random.choice([[], [1], [2], [2, 3]])
    dtype = found.elem_type if random.randrange(2) else random.choice(DTYPES[:4])
    size = 1
    for extent in shape:
        size *= extent
    if size > 1000 or dtype not in DTYPES or dtype == TensorProto.STRING:
        return False
    graph.initializer.append(helper.make_tensor(each.name, dtype, shape, [random.choice([0, 1, 2])] * size))
    if random.randrange(2):
        graph.input.remove(each)
    return True


def change_initializer(model, graph, random):
    each = picked(random, graph.initializer)
    if each is None or each.data_type == TensorProto.STRING:
        return False
    value = numpy_helper.to_array(each)
    kind = random.randrange(3)
    if kind == 0:
        value = value.reshape([*value.shape, 1])
    elif kind == 1:
        value = value.reshape(-1)[:-1]
    else:
        value = value.astype(random.choice(["float32", "int64", "bool"]))
    each.CopyFrom(numpy_helper.from_array(value, each.name))
    return True


def change_nodes(model, graph, random):
    at = random.randrange(len(graph.node)) if graph.node else None
    if at is None:
        return False
    kind = random.randrange(4)
    if kind == 0:
        del graph.node[at]
    elif kind == 1:
        graph.node.add().CopyFrom(graph.node[at])
    elif kind == 2:
        first = graph.node[0]
        moved = onnx.NodeProto()
        moved.CopyFrom(first)
        graph.node.remove(first)
        graph.node.append(moved)
    else:
        graph.node[at].name = "the same"
        graph.node[-1].name = "the same"
    return True


def change_operator(model, graph, random):
    node = picked(random, graph.node)
    if node is None:
        return False
    if random.randrange(4) == 0:
        node.domain = random.choice(["", "ai.onnx", "ai.onnx.ml", "own", "ai.onnx.preview"])
    else:
        node.op_type = random.choice(["Abs", "Add", "Identity", "Concat", "Softmax", "MatMul", "Reshape", "Unknown", "Cast", "Gather", ""])
    return True


def change_versions(model, graph, random):
    each = picked(random, model.opset_import)
    kind = random.randrange(5)
    if each is not None and kind < 3:
        each.version = random.choice([each.version - 1, each.version + 1, 1, 6, 9, 11, 13, 18, 21, 25, 0])
    elif each is not None and kind == 3:
        model.opset_import.remove(each)
    else:
        model.ir_version = random.choice([0, 2, 3, 4, 7, 10, 14, 15])
    return True


def change_values(model, graph, random):
    values = random.choice([graph.input, graph.output, graph.value_info])
    each = picked(random, values)
    if each is None:
        return False
    kind = random.randrange(5)
    if kind == 0:
        values.remove(each)
    elif kind == 1:
        values.add().CopyFrom(each)
    elif kind == 2:
        each.name = random.choice([*names_of(graph), "unknown", ""])
    elif kind == 3:
        each.ClearField("type")
    else:
        each.type.tensor_type.ClearField("shape")
    return True


def change_function(model, graph, random):
    each = picked(random, model.functions)
    if each is None:
        return False
    kind = random.randrange(5)
    if kind == 0 and each.node:
        del each.node[random.randrange(len(each.node))]
    elif kind == 1:
        each.input.append(random.choice([*each.input, "more"]))
    elif kind == 2 and each.opset_import:
        each.opset_import[0].version = random.choice([1, 9, 13, 17, 22])
    elif kind == 3:
        model.functions.add().CopyFrom(each)
    else:
        each.ClearField(random.choice(["name", "domain", "opset_import"]))
    return True


CHANGES = [
    change_dtype, change_extent, change_rank, change_kind, rename_input, rename_output, count_values, change_number, count_numbers,
    change_attributes, add_initializer, change_initializer, change_nodes, change_operator, change_versions, change_values,
    change_function,
]  # fmt: skip
