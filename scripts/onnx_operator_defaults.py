"""Writes default attributes and optional outputs of all operators from the schemas of the Python package onnx:
`python3 scripts/onnx_operator_defaults.py > lib/models/onnx/schemas/operator_defaults.ts`."""

import collections

import onnx
from onnx import AttributeProto
from onnx.defs import OpSchema

HEAD = """/**
 * Default attributes and optional outputs of all operators of ONNX, written by `scripts/onnx_operator_defaults.py` from the
 * schemas of the Python package onnx {version}; do not edit.
 *
 * By domain and operator, versions separated by `|`, oldest first: `since outputs attributes`. `outputs` are the indices of the
 * optional ones, or `-`. An attribute is `name=type:value`; the types are i (INT), f (FLOAT), s (STRING), and I, S for lists.
 */

// biome-ignore format: a table is read by its lines.
"""
VALUES = {
    AttributeProto.INT: lambda value: f"i:{value.i}",
    AttributeProto.FLOAT: lambda value: f"f:{value.f:.9g}",
    AttributeProto.STRING: lambda value: f"s:{value.s.decode()}",
    AttributeProto.INTS: lambda value: f"I:{','.join(map(str, value.ints))}",
    AttributeProto.STRINGS: lambda value: f"S:{','.join(each.decode() for each in value.strings)}",
}


def row_of(schema):
    optional = OpSchema.FormalParameterOption.Optional
    outputs = ",".join(str(at) for at, each in enumerate(schema.outputs) if each.option == optional)
    attributes = [
        f"{name}={VALUES[each.default_value.type](each.default_value)}"
        for name, each in sorted(schema.attributes.items())
        if not each.required and each.default_value.type != AttributeProto.UNDEFINED
    ]
    return " ".join([outputs or "-", *attributes])


def main():
    by_name = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        by_name[schema.domain, schema.name].append(schema)
    table = collections.defaultdict(dict)
    for (domain, name), schemas in sorted(by_name.items()):
        rows = []
        for schema in sorted(schemas, key=lambda each: each.since_version):
            row = row_of(schema)
            if not rows or rows[-1][1] != row:
                rows.append((schema.since_version, row))
        if any(row != "-" for _, row in rows):
            table[domain][name] = "|".join(f"{since} {row}" for since, row in rows)
    print(HEAD.replace("{version}", onnx.__version__) + "export const OPERATOR_DEFAULTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {")
    for domain, operators in table.items():
        print(f"  '{domain}': {{")
        for name, rows in operators.items():
            print(f"    {name}: '{rows}',")
        print("  },")
    print("}")


main()
