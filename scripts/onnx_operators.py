"""Writes the table of output types of all operators from the schemas of the Python package onnx:
`python3 scripts/onnx_operators.py > lib/models/onnx/infer/operator_types.ts`, then `npm run format`."""

import collections

import onnx
from onnx.defs import OpSchema

HEAD = """/**
 * Types of the outputs of all operators of ONNX, written by `scripts/onnx_operators.py` from the schemas of the Python package
 * onnx {version}; do not edit.
 *
 * By domain and rule: names of operators, with `@` and the version of the operator set from which on the rule holds, where an
 * older version has another. A rule has one part for each output: `=1`: the type of input 1; `tensor(int64)`: that type;
 * `?`: it depends on an attribute or on a subgraph. `*` after the last part: it holds for all further outputs.
 */

// biome-ignore format: a table is read by its lines.
"""
VARIADIC = OpSchema.FormalParameterOption.Variadic


def part_of(schema, output):
    allowed = {each.type_param_str: list(each.allowed_type_strs) for each in schema.type_constraints}
    text = output.type_str
    if text not in allowed:
        return text
    # Other inputs than the first may be omitted.
    if len(allowed[text]) == 1 and not (schema.inputs and schema.inputs[0].type_str == text):
        return allowed[text][0]
    if output.option == VARIADIC and not output.is_homogeneous:
        return "?"
    for index, each in enumerate(schema.inputs):
        if each.type_str == text and (each.is_homogeneous or each.option != VARIADIC):
            return f"={index}"
    return "?"


def rule_of(schema):
    parts = [part_of(schema, each) for each in schema.outputs]
    if schema.outputs and schema.outputs[-1].option == VARIADIC:
        parts[-1] += "*"
    return " ".join(parts)


def main():
    by_name = collections.defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        by_name[schema.domain, schema.name].append(schema)
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    for (domain, name), schemas in sorted(by_name.items()):
        last = None
        for schema in sorted(schemas, key=lambda each: each.since_version):
            rule = rule_of(schema)
            if rule != last:
                since = "" if last is None else f"@{schema.since_version}"
                table[domain][rule].append(name + since)
            last = rule
    print(HEAD.replace("{version}", onnx.__version__) + "export const OPERATOR_TYPES = {")
    for domain, rules in table.items():
        print(f"  '{domain}': {{")
        for rule, names in rules.items():
            print(f"    '{rule}': '{' '.join(names)}',")
        print("  },")
    print("} as const")


main()
