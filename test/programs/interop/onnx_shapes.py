"""Writes models with the types that onnx.shape_inference infers: python3 onnx_shapes.py FOLDER MUTATIONS SEED [MODEL...]

The models are the node tests of onnx and models built by `onnx_networks.py`, without the types of their outputs and
intermediate values: as they are, with small integer inputs as initializers, and with a named first extent; then MUTATIONS of
them with other extents and attributes. MODEL names further files or folders. FOLDER gets the models and `expected.json`: by file, `inferred` types by value and, where the test has output
data, `actual` ones. A type is [code of the element type, shape] with extents as numbers, names or null, or an object for
others. `--fixture FILE` writes some of the built models and their inferred types as lines of JSON.
"""

import base64
import json
import os
import sys
import warnings
from pathlib import Path
from random import Random

import numpy
import onnx
import onnx_networks
from onnx import numpy_helper, shape_inference
from onnx.backend.test.case.node import collect_testcases

MAX_BYTES = 200_000

# Models of a child process.
CHUNK = 16


def node_tests():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or case.model.ByteSize() > MAX_BYTES:
            continue
        inputs, outputs = case.data_sets[0] if case.data_sets else ([], [])
        actual = {
            declared.name: [declared.type.tensor_type.elem_type, list(value.shape)]
            for declared, value in zip(case.model.graph.output, outputs)
            if isinstance(value, numpy.ndarray)
        }
        yield case.name, case.model, actual
        constant = with_constants(case.model, inputs)
        if constant.graph.initializer and constant.ir_version >= 4:
            yield f"{case.name}_constant", constant, actual


def with_constants(model, inputs):
    """The same with short lists as initializers instead of inputs."""
    constant = copy_of(model)
    graph = constant.graph
    for declared, value in list(zip(graph.input, inputs)):
        if isinstance(value, numpy.ndarray) and value.dtype.kind in "iuf" and value.size <= 64 and value.ndim <= 1:
            graph.initializer.append(numpy_helper.from_array(value, declared.name))
            graph.input.remove(declared)
    return constant


def symbolic(model):
    """The same with a named first extent of every input, and a name of its own for every second one."""
    named = copy_of(model)
    constants = {each.name for each in model.graph.initializer}
    for at, each in enumerate(named.graph.input):
        if each.name in constants:
            continue
        dims = each.type.tensor_type.shape.dim if each.type.HasField("tensor_type") else []
        if len(dims) > 0:
            dims[0].dim_param = "N"
        if len(dims) > 1:
            dims[1].dim_param = f"M{at}"
    return named


def mutated(model, random):
    """The same with a few other extents, attributes and versions of the operator set."""
    changed = copy_of(model)
    constants = {each.name for each in model.graph.initializer}
    inputs = [each.type.tensor_type for each in changed.graph.input if each.name not in constants]
    for each in random.sample(inputs, min(len(inputs), random.randrange(3))):
        mutate_shape(each, random)
    nodes = list(changed.graph.node)
    for node in random.sample(nodes, min(len(nodes), random.randrange(3))):
        mutate_attributes(node, random)
    if random.randrange(4) == 0:
        for each in changed.opset_import:
            each.version = max(1, each.version - random.randrange(8))
    return changed


def mutate_shape(tensor, random):
    if random.randrange(8) == 0:
        tensor.ClearField("shape")
        return
    for dim in tensor.shape.dim:
        kind = random.randrange(8)
        if kind == 0:
            dim.Clear()
        elif kind == 1:
            dim.dim_param = random.choice("ABC")
        elif kind == 2:
            dim.dim_value = random.choice([0, 1, 1, 2, 3, 4, 8])


def mutate_attributes(node, random):
    for each in list(node.attribute):
        if random.randrange(2) == 0:
            continue
        if each.type == onnx.AttributeProto.INT and each.name not in ("to", "dtype"):
            each.i = random.choice([each.i + 1, each.i - 1, -each.i, 0, 1, 2])
        elif each.type == onnx.AttributeProto.INTS and each.ints:
            each.ints[random.randrange(len(each.ints))] = random.choice([0, 1, 2, 3, -1, -2])
        elif random.randrange(4) == 0:
            node.attribute.remove(each)


def copy_of(model):
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied


def types_of(model):
    inferred = shape_inference.infer_shapes(model, data_prop=True).graph
    return {each.name: type_of(each.type) for each in [*inferred.value_info, *inferred.output]}


def type_of(found):
    if found.HasField("tensor_type"):
        tensor = found.tensor_type
        shape = [extent_of(dim) for dim in tensor.shape.dim] if tensor.HasField("shape") else None
        return [tensor.elem_type, shape]
    for kind in ("sequence", "optional"):
        if found.HasField(f"{kind}_type"):
            return {kind: type_of(getattr(found, f"{kind}_type").elem_type)}
    if found.HasField("map_type"):
        return {"map": [found.map_type.key_type, type_of(found.map_type.value_type)]}
    return None


def extent_of(dim):
    if dim.HasField("dim_value"):
        return dim.dim_value
    return None if dim.dim_param == "" or dim.dim_param.startswith("unk__") else dim.dim_param


def files(paths):
    for path in paths:
        for each in sorted(path.rglob("*.onnx")) if path.is_dir() else [path]:
            yield "-".join(each.with_suffix("").parts[-3:]), onnx.load(each, load_external_data=False), {}


def write_fixture(path):
    """Models built here with their types, in one file for the tests that run without Python."""
    chosen = [(name, model) for name, model in onnx_networks.networks() if name.split("_")[1] == "17"]
    records = []
    for name, model in chosen:
        strip(model)
        encoded = base64.b64encode(model.SerializeToString()).decode()
        records.append({"name": name, "model": encoded, "inferred": types_of(model)})
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records))


def strip(model):
    del model.graph.value_info[:]
    for each in model.graph.output:
        each.ClearField("type")


def types_or_none(model):
    try:
        return types_of(model)
    except Exception:  # noqa: BLE001 - models that the reference refuses are not compared
        return None


def in_child(compute):
    """The result of a child process; nothing where it crashes, as the reference does for some invalid attributes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as pipe:
            json.dump(compute(), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    return json.loads(text) if os.waitpid(child, 0)[1] == 0 else []


def main(folder, mutations, seed, paths):
    folder.mkdir(exist_ok=True)
    models = [*node_tests(), *((name, model, {}) for name, model in onnx_networks.networks()), *files(paths)]
    models += [(f"{name}_symbolic", symbolic(model), {}) for name, model, _ in models]
    random = Random(seed)
    chosen = [random.choice(models) for _ in range(mutations)]
    models += [(f"{name}_mutated_{at}", mutated(model, random), {}) for at, (name, model, _) in enumerate(chosen)]
    for _, model, _ in models:
        strip(model)
    expected = {}
    for start in range(0, len(models), CHUNK):
        chunk = models[start : start + CHUNK]
        for (name, model, actual), inferred in zip(chunk, in_child(lambda: [types_or_none(each[1]) for each in chunk])):
            if inferred is None:
                continue
            (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
            expected[f"{name}.onnx"] = {"inferred": inferred, "actual": actual}
    (folder / "expected.json").write_text(json.dumps(expected))


if sys.argv[1] == "--fixture":
    write_fixture(Path(sys.argv[2]))
else:
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), [Path(each) for each in sys.argv[4:]])
