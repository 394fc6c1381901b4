"""Writes which inputs and outputs of operators may have which float type, from the schemas of the Python packages onnx and onnxruntime:
`python3 scripts/onnx_operator_slots.py > lib/models/onnx/infer/operator_slots.ts`."""

import re

import onnx
import onnxruntime
from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state

HEAD = """/**
 * Types of the inputs and outputs of operators, written by `scripts/onnx_operator_slots.py` from the schemas of the Python
 * packages onnx {onnx} and onnxruntime {onnxruntime}; do not edit.
 *
 * By domain and operator, versions separated by `|`, oldest first: `since inputs>outputs variables`. A slot is a type
 * variable, or a type. `*` behind it: it repeats; `%`: it repeats, each time with a type of its own. Variables name the kinds
 * of types that they allow: f float32, h float16, b bfloat16, d float64, q float8 and float4, i integers, B bool, s string,
 * c complex, S sequences, O others.
 */

// biome-ignore format: a table is read by its lines.
"""
LETTERS = {"float": "f", "float16": "h", "bfloat16": "b", "double": "d", "bool": "B", "string": "s"}


def letter_of(text):
    if not text.startswith("tensor("):
        return "S" if text.startswith("seq") else "O"
    name = text[7:-1]
    return LETTERS.get(name) or ("q" if name.startswith("float") else "c" if name.startswith("complex") else "i")


def slot_of(parameter):
    mark = ""
    if "Variadic" in str(parameter.option):
        mark = "*" if getattr(parameter, "is_homogeneous", getattr(parameter, "isHomogeneous", True)) else "%"
    text = getattr(parameter, "type_str", None) or parameter.typeStr
    return re.sub(r"^tensor\((\w+)\)$", r"\1", text).replace(" ", "") + mark


def row_of(schema):
    variables = (
        f"{each.type_param_str}={''.join(sorted({letter_of(text) for text in each.allowed_type_strs}))}"
        for each in schema.type_constraints
    )
    inputs, outputs = (",".join(slot_of(each) for each in slots) for slots in (schema.inputs, schema.outputs))
    return schema.since_version, f"{inputs}>{outputs} {','.join(sorted(variables))}".strip()


def main():
    standard = [each for each in defs.get_all_schemas_with_history() if "training" not in each.domain]
    own = onnxruntime_pybind11_state.get_all_operator_schema()
    table = {}
    for schema in [*standard, *(each for each in own if each.domain == "com.microsoft")]:
        table.setdefault(schema.domain, {}).setdefault(schema.name, []).append(row_of(schema))
    head = HEAD.replace("{onnx}", onnx.__version__).replace("{onnxruntime}", onnxruntime.__version__)
    print(head + "export const OPERATOR_SLOTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {")
    for domain, operators in sorted(table.items()):
        print(f"  '{domain}': {{")
        for name, rows in sorted(operators.items()):
            changes = []
            for since, row in sorted(rows):
                if not changes or changes[-1][1] != row:
                    changes.append((since, row))
            print(f"    {name}: '{'|'.join(f'{since} {row}' for since, row in changes)}',")
        print("  },")
    print("}")


main()
