"""Writes the schemas of all operators from those of the Python package onnx:
`python3 scripts/onnx_schemas.py > lib/models/onnx/schemas/schema_table.ts`."""

import collections
import re

import onnx
import onnx.checker
from onnx import AttributeProto, TensorProto
from onnx.defs import OpSchema

HEAD = """/**
 * Schemas of all operators of ONNX in all versions, written by `scripts/onnx_schemas.py` from those of the Python package onnx
 * {version}; do not edit. `schemas.ts` reads them.
 *
 * By domain and operator, versions separated by `|`, oldest first: `since;slots;variables;attributes`. An empty part is that of
 * the version before, `-` is an empty list. Behind `since`: `!` for a version that deprecates the operator, `~` for one without
 * rules of types and shapes, `?` for one that takes unknown attributes.
 *
 * - Slots: `inputs>outputs`, each a type variable, or `!` and a set of types. `?`: optional; `*`: repeats, at least as often as
 *   the number behind it; `%`: repeats, each time with a type of its own.
 * - Variables: `name=` and the index of a set of types in `TYPE_SETS`.
 * - Attributes: `name!type` is required, `name:type` has no default, `name=type:value` has one. Types are i (INT), f (FLOAT),
 *   s (STRING), t (TENSOR), g (GRAPH), p (SPARSE_TENSOR), y (TYPE_PROTO); in upper case a list of them.
 * - A set of types is a list of codes of TensorProto.DataType in base 36; those behind `S` are elements of sequences, behind `O`
 *   of optional values, behind `P` of optional sequences; pairs behind `M` are keys and values of maps, behind `Q` of sequences
 *   of maps.
 */

// biome-ignore format: a table is read by its lines.
"""
ATTRIBUTE_LETTERS = {
    "INT": "i", "FLOAT": "f", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "p", "TYPE_PROTO": "y",
    "INTS": "I", "FLOATS": "F", "STRINGS": "S", "TENSORS": "T", "GRAPHS": "G", "SPARSE_TENSORS": "P", "TYPE_PROTOS": "Y",
}  # fmt: skip
VALUES = {
    AttributeProto.INT: lambda value: f"{value.i}",
    AttributeProto.FLOAT: lambda value: f"{value.f:.9g}",
    AttributeProto.STRING: lambda value: value.s.decode(),
    AttributeProto.INTS: lambda value: ",".join(map(str, value.ints)),
    AttributeProto.STRINGS: lambda value: ",".join(each.decode() for each in value.strings),
}
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MARKS = [("S", "seq(tensor(%s))"), ("O", "optional(tensor(%s))"), ("P", "optional(seq(tensor(%s)))")]
PAIR_MARKS = [("M", "map(%s, %s)"), ("Q", "seq(map(%s, %s))")]


def code_of(name):
    return DIGITS[TensorProto.DataType.Value(name.upper())]


def code_names():
    return {name.lower(): code_of(name) for name in TensorProto.DataType.keys() if name != "UNDEFINED"}


def set_of(texts):
    """The set of types as text."""
    groups = collections.defaultdict(list)
    for text in texts:
        for mark, pattern in [("", "tensor(%s)"), *MARKS, *PAIR_MARKS]:
            expression = re.escape(pattern).replace("%s", r"(\w+)")
            if found := re.fullmatch(expression, text):
                groups[mark].append("".join(code_of(each) for each in found.groups()))
                break
        else:
            raise ValueError(text)
    return "".join(mark + "".join(sorted(groups[mark])) for mark in ["", "S", "O", "P", "M", "Q"] if groups[mark])


def slot_of(parameter, variables):
    text = parameter.type_str
    name = text if text in variables else "!" + set_of([text])
    if parameter.option == OpSchema.FormalParameterOption.Optional:
        return name + "?"
    if parameter.option == OpSchema.FormalParameterOption.Variadic:
        return f"{name}{'*' if parameter.is_homogeneous else '%'}{parameter.min_arity}"
    return name


def least_of(parameters):
    """How many values a node has at least, by its parameters."""
    least = 0
    for at, each in enumerate(parameters):
        if each.option == OpSchema.FormalParameterOption.Single:
            least = at + 1
        elif each.option == OpSchema.FormalParameterOption.Variadic:
            least = at + each.min_arity
    return least


def attribute_of(name, attribute):
    letter = ATTRIBUTE_LETTERS[attribute.type.name]
    if attribute.required:
        return f"{name}!{letter}"
    default = attribute.default_value
    if default.type == AttributeProto.UNDEFINED:
        return f"{name}:{letter}"
    value = VALUES[default.type](default)
    assert not re.search(r"[ ;|'\\]", value), value
    return f"{name}={letter}:{value}"


def parts_of(schema, sets):
    variables = {each.type_param_str: set_of(each.allowed_type_strs) for each in schema.type_constraints}
    used = {each.type_str for each in [*schema.inputs, *schema.outputs]}
    inputs, outputs = ([slot_of(each, variables) for each in slots] for slots in (schema.inputs, schema.outputs))
    if not schema.deprecated:
        assert (schema.min_input, schema.min_output) == (least_of(schema.inputs), least_of(schema.outputs)), schema.name
    return (
        f"{','.join(inputs)}>{','.join(outputs)}",
        ",".join(f"{name}={sets.setdefault(text, len(sets))}" for name, text in sorted(variables.items()) if name in used),
        " ".join(attribute_of(*each) for each in sorted(schema.attributes.items())),
    )


def marks_of(schema):
    node = onnx.NodeProto(op_type=schema.name, domain=schema.domain)
    node.input.extend(["x"] * schema.min_input)
    node.output.extend(["y"] * schema.min_output)
    node.attribute.append(onnx.helper.make_attribute("unknown", 1))
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {schema.domain: schema.since_version}
    try:
        onnx.checker.check_node(node, context)
        takes = True
    except onnx.checker.ValidationError as error:
        takes = "Unrecognized attribute" not in str(error)
    infers = schema.has_type_and_shape_inference_function or schema.has_function
    return ("" if infers else "~") + ("?" if takes else "")


def line_of(schemas, sets):
    """The versions of an operator as text."""
    rows, last = [], ("-", "-", "-")
    for schema in sorted(schemas, key=lambda each: each.since_version):
        if schema.deprecated:
            rows.append(f"{schema.since_version}!")
            continue
        parts = tuple(part or "-" for part in parts_of(schema, sets))
        changed = ("" if part == before else part for part, before in zip(parts, last))
        rows.append(";".join([f"{schema.since_version}{marks_of(schema)}", *changed]).rstrip(";"))
        last = parts
    return "|".join(rows)


def main():
    by_name = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        by_name[schema.domain, schema.name].append(schema)
    sets = {}
    table = collections.defaultdict(dict)
    for (domain, name), schemas in sorted(by_name.items()):
        table[domain][name] = line_of(schemas, sets)
    newest = {domain: versions[1] for domain, versions in onnx.defs.C.schema_version_map().items()}
    print(HEAD.replace("{version}", onnx.__version__) + "export const SCHEMAS: Readonly<Record<string, Readonly<Record<string, string>>>> = {")
    for domain, operators in table.items():
        print(f"  '{domain}': {{")
        for name, line in operators.items():
            print(f"    {name}: '{line}',")
        print("  },")
    print("}\n")
    print("/** Sets of types, by index. */\nexport const TYPE_SETS =\n  '" + " ".join(sets) + "'\n")
    print("/** The newest version of each domain. */\nexport const NEWEST_VERSIONS: Readonly<Record<string, number>> = {")
    for domain in table:
        print(f"  '{domain}': {newest[domain]},")
    print("}\n")
    print("/** The newest IR version. */\nexport const NEWEST_IR_VERSION =", onnx.IR_VERSION)


main()
