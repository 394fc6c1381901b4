"""Compares models that tilework read from texts with what the Python packages read: python3 onnx_text_read.py FOLDER

FOLDER has `NUMBER.onnx` and `expected.json` of onnx_text.py, and what tilework made of the texts: `NUMBER.KIND.onnx` read from texts of
Python, and `NUMBER.out.KIND`, texts of tilework. Prints the counts, and the names of models that differ.
"""

import json
import sys
import warnings
from pathlib import Path

import onnx
from google.protobuf import json_format, text_format

READERS = {
    "onnxtxt": onnx.parser.parse_model,
    "textproto": lambda text: text_format.Parse(text, onnx.ModelProto()),
    "onnxjson": lambda text: json_format.Parse(text, onnx.ModelProto()),
}


def read(path):
    model = onnx.ModelProto()
    model.ParseFromString(path.read_bytes())
    return model


def parsed(text, kind):
    try:
        return READERS[kind](text)
    except Exception as error:  # noqa: BLE001 - the parser throws errors of C++, too.
        return str(error).splitlines()[0]


def equal(one, other):
    # NaN differs from itself, and its bytes do not.
    return one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)


def main(folder):
    counts = {}

    def count(kind, result, name):
        counts[f"{kind} {result}"] = counts.get(f"{kind} {result}", 0) + 1
        if result == "different":
            print(f"{name}: {kind}")

    for number, case in enumerate(json.loads(Path(folder, "expected.json").read_text())):
        for kind in READERS:
            made = Path(folder, f"{number}.{kind}.onnx")
            expected = parsed(case[kind], kind)
            if isinstance(expected, str):
                count(f"read {kind}", "unread by Python", case["name"])
            elif not made.exists():
                count(f"read {kind}", "different", case["name"])
            else:
                count(f"read {kind}", "equal" if equal(read(made), expected) else "different", case["name"])
            printed = Path(folder, f"{number}.out.{kind}")
            if kind == "onnxtxt" or not printed.exists():
                continue
            again = parsed(printed.read_text(), kind)
            same = not isinstance(again, str) and equal(again, read(Path(folder, f"{number}.onnx")))
            count(f"written {kind}", "equal" if same else "different", case["name"])
    for key, value in counts.items():
        print(f"{key}: {value}")
    sys.exit(any(key.endswith("different") for key in counts))


warnings.simplefilter("ignore")
main(sys.argv[1])
