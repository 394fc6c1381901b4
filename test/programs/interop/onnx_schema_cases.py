"""Models of one node that follow from the schemas of all operators in all versions, for `onnx_check.py`.

For each schema a valid one, found by trying shapes and values, and its neighbours: every form of every attribute, every number
of inputs and outputs, every type of every value, other shapes and constant inputs, versions around the one that defined the
operator, and mistakes in models and functions.
"""

from itertools import product

import onnx
from onnx import AttributeProto, TensorProto, TypeProto, helper
from onnx.defs import OpSchema

FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING
OPTION = OpSchema.FormalParameterOption
TYPES = {name.lower(): code for name, code in TensorProto.DataType.items() if name != "UNDEFINED"}
# Candidates for the shape of all inputs, and for each of up to four.
SHAPES = [[2], [2, 2], [], [1], [2, 2, 2], [1, 2, 2, 2], [2, 2, 2, 2], [2, 3], [2, 2, 2, 2, 2], [4]]
# Values of required attributes for which none can be guessed from the type.
STRINGS = ["LEFT", "ii->i", "i->i", "i,i->i", "ij,ij->ij", "y", "TF", "pixel", "mean", "standard", "nesterov"]
# The next values for one that is the length of a list of names.
INTS = [1, 2, 0, 6]
LISTS = [[1], [1, 1], [2, 2], [0], [0, 0], [1, 1, 1], []]


def type_of(text, shape):
    """The TypeProto of a type as schemas write it."""
    kind, _, inside = text.partition("(")
    inside = inside[:-1]
    if kind == "tensor":
        return helper.make_tensor_type_proto(TYPES[inside], shape)
    if kind == "seq":
        return helper.make_sequence_type_proto(type_of(inside, shape))
    if kind == "optional":
        return helper.make_optional_type_proto(type_of(inside, shape))
    key, value = inside.split(", ", 1)
    return helper.make_map_type_proto(TYPES[key], helper.make_tensor_type_proto(TYPES[value], []))


ALL_TYPES = [f"tensor({name})" for name in TYPES] + [
    "seq(tensor(float))", "seq(tensor(int64))", "optional(tensor(float))", "optional(seq(tensor(float)))",
    "map(string, float)", "map(int64, float)", "seq(map(int64, float))",
]  # fmt: skip


def graph_for(node_inputs, outputs, extra=1):
    """A body with so many inputs and outputs: all outputs are constants."""
    nodes = []
    values = []
    for at, (dtype, shape) in enumerate(outputs):
        tensor = helper.make_tensor("v", dtype, shape, [1] * max(1, len(shape) and 2 ** len(shape)))
        nodes.append(helper.make_node("Constant", [], [f"b{at}"], value=tensor))
        values.append(helper.make_value_info(f"b{at}", helper.make_tensor_type_proto(dtype, shape)))
    return helper.make_graph(nodes, "body", [helper.make_value_info(name, kind) for name, kind in node_inputs], values)


def body_of(schema):
    tensor = helper.make_tensor_type_proto
    if schema.name == "If":
        return graph_for([], [(FLOAT, [2])])
    if schema.name == "Loop":
        return graph_for([("i", tensor(INT64, [])), ("c", tensor(BOOL, [])), ("s", tensor(FLOAT, [2]))], [(BOOL, []), (FLOAT, [2])])
    if schema.name == "Scan":
        return graph_for([("s", tensor(FLOAT, [2]))], [(FLOAT, [2])])
    return graph_for([("s", tensor(FLOAT, None))], [(FLOAT, [2])])


def candidates(schema, attribute):
    """Values of an attribute that may be valid."""
    kind = attribute.type.name
    if attribute.default_value.type != AttributeProto.UNDEFINED:
        return [helper.get_attribute_value(attribute.default_value)]
    if kind == "INT":
        return INTS
    if kind == "FLOAT":
        return [0.5, 1.0]
    if kind == "STRING":
        return STRINGS
    if kind == "INTS":
        return LISTS
    if kind == "FLOATS":
        return [[1.0], [1.0, 1.0], [0.5, 0.5, 0.5, 0.5]]
    if kind == "STRINGS":
        return [["a"], ["a", "b"], ["Tanh"], ["Sigmoid", "Tanh"]]
    if kind == "TENSOR":
        return [helper.make_tensor("t", code, shape, [1] * (shape[0] if shape else 1)) for code in (FLOAT, INT64) for shape in ([1], [], [2])] + [helper.make_tensor("t", TensorProto.UINT8, [1], [1])]
    if kind == "SPARSE_TENSOR":
        return [sparse()]
    if kind == "TYPE_PROTO":
        return [type_of("tensor(float)", [2]), type_of("seq(tensor(float))", [2])]
    return [body_of(schema)]


def sparse():
    return helper.make_sparse_tensor(helper.make_tensor("v", FLOAT, [1], [1.0]), helper.make_tensor("i", INT64, [1], [1]), [3])


def attribute_of(name, kind, value):
    attribute = helper.make_attribute(name, value, attr_type=getattr(AttributeProto, kind))
    return attribute


class Case:
    """A node as data, of which models are made."""

    def __init__(self, schema):
        self.schema = schema
        self.op_type, self.domain = schema.name, schema.domain
        self.version = schema.since_version
        self.inputs, self.outputs = [], []  # of (type text or None for an omitted value, shape)
        self.attributes = {}  # name: (type, value)
        self.constants = {}  # index of the input: values
        self.raw_attributes = []

    def copy(self, **changes):
        other = Case(self.schema)
        other.__dict__.update({key: value.copy() if hasattr(value, "copy") else value for key, value in self.__dict__.items()})
        other.__dict__.update(changes)
        return other

    def model(self):
        names = ["" if kind is None else f"x{at}" for at, (kind, _) in enumerate(self.inputs)]
        outputs = ["" if kind is None else f"y{at}" for at, (kind, _) in enumerate(self.outputs)]
        node = helper.make_node(self.op_type, names, outputs, domain=self.domain)
        for name, (kind, value) in self.attributes.items():
            node.attribute.append(attribute_of(name, kind, value))
        node.attribute.extend(self.raw_attributes)
        inputs, initializers, infos = [], [], []
        for at, (name, (kind, shape)) in enumerate(zip(names, self.inputs)):
            if kind is None:
                continue
            if at in self.constants:
                code = TYPES[kind[7:-1]]
                initializers.append(helper.make_tensor(name, code, shape, self.constants[at]))
            else:
                inputs.append(helper.make_value_info(name, type_of(kind, shape)))
        declared = [helper.make_value_info(name, type_of(kind, shape)) for name, (kind, shape) in zip(outputs, self.outputs) if kind not in (None, "?")]
        graph = helper.make_graph(
            [node], "g", inputs, declared, initializers
        )
        imports = [helper.make_opsetid(self.domain, self.version)]
        if self.domain != "":
            imports.append(helper.make_opsetid("", 22))
        return helper.make_model(graph, opset_imports=imports, ir_version=13)


def verdict(model):
    try:
        onnx.checker.check_model(model, full_check=True)
        return None
    except Exception as error:  # the checker raises several classes
        return str(error)[:300] or type(error).__name__


def parameters_of(schema, counts):
    """Parameters for so many values."""
    for what, count in zip((schema.inputs, schema.outputs), counts):
        yield [what[min(at, len(what) - 1)] for at in range(count)]


def types_of(schema, parameters, chosen):
    """A type for each parameter, the same for the same variable."""
    result = []
    for each in parameters:
        allowed = {constraint.type_param_str: list(constraint.allowed_type_strs) for constraint in schema.type_constraints}.get(each.type_str, [each.type_str])
        if each.type_str not in chosen:
            preferred = [kind for kind in ("tensor(float)", "tensor(int64)", "tensor(bool)") if kind in allowed]
            chosen[each.type_str] = (preferred or sorted(allowed))[0]
        result.append(chosen[each.type_str])
    return result


def valid_case(schema, counts):
    """A case that the checker accepts, or None."""
    inputs, outputs = parameters_of(schema, counts)
    required = [each for each in schema.attributes.values() if each.required]
    fixed = {}
    if schema.name == "Constant":
        name = "value"
        fixed[name] = ("TENSOR", helper.make_tensor("t", FLOAT, [2], [1.0, 2.0]))
        required = []
    shapes = [[shape] * len(inputs) for shape in SHAPES] if inputs else [[]]
    if 1 < len(inputs) <= 3:
        shapes += [list(each) for each in product(SHAPES[:6], repeat=len(inputs))]
    elif len(inputs) > 3:
        shapes += [[first] + [other] * (len(inputs) - 1) for first in SHAPES for other in SHAPES[:4]]
        shapes += [[[2, 2, 2], [2, 2, 2], *[[2, 2]] * (len(inputs) - 2)]]
    values = [candidates(schema, each)[:5] for each in required]
    combinations = list(product(*values))[:12]
    choices = [{}]
    for name in {each.type_str for each in [*inputs, *outputs]}:
        for constraint in schema.type_constraints:
            if constraint.type_param_str == name:
                wanted = [kind for kind in ("tensor(int64)", "tensor(int32)", "tensor(uint8)", "tensor(string)", "tensor(float)") if kind in constraint.allowed_type_strs]
                choices += [{name: kind} for kind in wanted]
    tried = 0
    for chosen in choices:
        for each in shapes:
            for combination in combinations:
                tried += 1
                if tried > 3000:
                    return None
                case = Case(schema)
                texts = dict(chosen)
                case.inputs = list(zip(types_of(schema, inputs, texts), each))
                case.outputs = [("?", None) for _ in outputs]
                case.attributes = {**fixed, **{attribute.name: (attribute.type.name, value) for attribute, value in zip(required, combination)}}
                if verdict(case.model()) is None:
                    return case
    return None


WRONG_VALUES = {
    "FLOAT": 1.5, "INT": 1, "STRING": "a", "FLOATS": [1.0], "INTS": [1], "STRINGS": ["a"],
    "TENSOR": helper.make_tensor("t", FLOAT, [1], [1.0]), "SPARSE_TENSOR": sparse(),
    "TENSORS": [helper.make_tensor("t", FLOAT, [1], [1.0])], "TYPE_PROTO": type_of("tensor(float)", [1]),
}  # fmt: skip


def attribute_neighbours(case):
    schema = case.schema
    for name, each in schema.attributes.items():
        kind = each.type.name
        own = case.attributes.get(name)
        for at, value in enumerate(candidates(schema, each) if own is None else [own[1]]):
            yield f"{name} value {at}", case.copy(attributes={**case.attributes, name: (kind, value)})
        if kind == "INT":
            for value in (-9, -2, -1, 0, 1, 2, 3, 9, 99):
                yield f"{name}={value}", case.copy(attributes={**case.attributes, name: (kind, value)})
        if kind == "INTS":
            for value in ([], [0], [1], [-1], [0, 0], [1, 1], [0, 1], [1, 0], [2, 3], [0, 9], [1, 1, 1, 1], [-1, -1]):
                yield f"{name}={value}", case.copy(attributes={**case.attributes, name: (kind, value)})
        if kind == "STRING":
            yield f"{name}=zz", case.copy(attributes={**case.attributes, name: (kind, "zz")})
        for other, value in WRONG_VALUES.items():
            if other != kind:
                yield f"{name} as {other}", case.copy(attributes={**case.attributes, name: (other, value)})
        value = own[1] if own else candidates(schema, each)[0]
        full = attribute_of(name, kind, value)
        rest = {key: each for key, each in case.attributes.items() if key != name}
        yield f"{name} twice", case.copy(attributes=rest, raw_attributes=[full, full])
        untyped = AttributeProto()
        untyped.CopyFrom(full)
        untyped.ClearField("type")
        yield f"{name} untyped", case.copy(attributes=rest, raw_attributes=[untyped])
        yield f"{name} empty", case.copy(attributes=rest, raw_attributes=[AttributeProto(name=name, type=full.type)])
        yield f"{name} reference", case.copy(attributes=rest, raw_attributes=[AttributeProto(name=name, type=full.type, ref_attr_name="q")])
        double = AttributeProto()
        double.CopyFrom(full)
        if kind == "INT":
            double.f = 1
        else:
            double.i = 1
        yield f"{name} of two values", case.copy(attributes=rest, raw_attributes=[double])
        if each.required:
            yield f"{name} missing", case.copy(attributes=rest)
    yield "unknown attribute", case.copy(attributes={**case.attributes, "unknown": ("INT", 1)})
    yield "internal attribute", case.copy(attributes={**case.attributes, "__internal": ("INT", 1)})
    yield "unnamed attribute", case.copy(raw_attributes=[AttributeProto(name="", type=AttributeProto.INT, i=1)])


def count_neighbours(case):
    extra = ("tensor(float)", [2])
    for what in ("inputs", "outputs"):
        values = getattr(case, what)
        more = extra if what == "inputs" else ("?", None)
        for count in range(len(values)):
            yield f"{count} {what}", case.copy(**{what: values[:count]})
        for added in (1, 2, 5):
            yield f"{len(values) + added} {what}", case.copy(**{what: values + [values[-1] if values else more] * added})
        for at in range(len(values)):
            yield f"{what} {at} omitted", case.copy(**{what: values[:at] + [(None, None)] + values[at + 1 :]})


def type_neighbours(case):
    for at, (_, shape) in enumerate(case.inputs):
        for kind in ALL_TYPES:
            yield f"input {at} {kind}", case.copy(inputs=case.inputs[:at] + [(kind, shape)] + case.inputs[at + 1 :])
    first = case.inputs[0][1] if case.inputs else []
    for at in range(len(case.outputs)):
        for kind in ALL_TYPES:
            yield f"output {at} {kind}", case.copy(outputs=case.outputs[:at] + [(kind, first)] + case.outputs[at + 1 :])
    # The same type for all inputs, as variables demand.
    for kind in ALL_TYPES:
        yield f"inputs {kind}", case.copy(inputs=[(kind, shape) for _, shape in case.inputs])


def shape_neighbours(case):
    for at, (kind, shape) in enumerate(case.inputs):
        for other in ([], [1], [2], [3], [2, 3], [3, 2], [2, 2], [2, 2, 3], [3, 2, 2], [2, 2, 2, 3], [1, 3, 4, 4], [2, 2, 2, 2, 2], [0], [None, 3], ["n", "n"]):
            if kind is not None:
                yield f"input {at} {other}", case.copy(inputs=case.inputs[:at] + [(kind, other)] + case.inputs[at + 1 :])
    for shapes in ([2, 2], [3, 2], [2, 3, 2], [1, 4, 4, 4], []):
        yield f"inputs {shapes}", case.copy(inputs=[(kind, shapes) for kind, _ in case.inputs])
    for at in range(len(case.outputs)):
        for kind in ("tensor(float)", "tensor(int64)"):
            for other in ([], [2], [3], [2, 2], [2, 3]):
                yield f"output {at} {kind} {other}", case.copy(outputs=case.outputs[:at] + [(kind, other)] + case.outputs[at + 1 :])


def constant_neighbours(case):
    """Inputs of integers and floats as constants: shapes, axes, counts."""
    for at, (kind, _) in enumerate(case.inputs):
        if kind not in ("tensor(int64)", "tensor(int32)", "tensor(float)") or at == 0:
            continue
        for values in ([], [0], [1], [-1], [2], [9], [-9], [0, 1], [1, 0], [1, 1], [-1, -1], [2, 3], [0, 0, 1, 1], [1, 1, 2, 2], [0, 0, 0, 0], [4, 4, 4]):
            shaped = case.inputs[:at] + [(kind, [len(values)])] + case.inputs[at + 1 :]
            yield f"input {at} = {values}", case.copy(inputs=shaped, constants={at: values})
        for value in (0, 1, -1, 5):
            scalar = case.inputs[:at] + [(kind, [])] + case.inputs[at + 1 :]
            yield f"input {at} = {value}", case.copy(inputs=scalar, constants={at: [value]})


def version_neighbours(case):
    newest = onnx.defs.C.schema_version_map()[case.domain][1]
    for version in sorted({case.version - 1, case.version + 1, 1, 6, 7, 9, 10, 11, 13, 18, 21, 22, newest, 0, -1}):
        yield f"version {version}", case.copy(version=version)


def schemas():
    return sorted(onnx.defs.get_all_schemas_with_history(), key=lambda each: (each.domain, each.name, each.since_version))


def cases_of(schema):
    """The cases of a schema with their names; None for one without a valid case."""
    title = f"{schema.domain}.{schema.name}-{schema.since_version}"
    if schema.deprecated:
        case = Case(schema)
        case.inputs, case.outputs = [("tensor(float)", [2, 2])], [("?", None)]
        yield f"{title} deprecated", case
        return
    least = (schema.min_input, schema.min_output or 1)
    most = (min(schema.max_input, len(schema.inputs) + 1), min(schema.max_output, len(schema.outputs) + 1))
    bases = [valid_case(schema, least)]
    if most != least:
        bases.append(valid_case(schema, most))
    bases = [each for each in bases if each]
    if not bases:
        yield f"{title} has no base", None
    for number, case in enumerate(bases):
        yield f"{title} base {number}", case
        for neighbours in NEIGHBOURS:
            for name, each in neighbours(case):
                yield f"{title} {number} {name}", each


NEIGHBOURS = (attribute_neighbours, count_neighbours, type_neighbours, shape_neighbours, constant_neighbours, version_neighbours)
