"""Prints models as onnx.printer does: python3 onnx_text.py FOLDER [MODEL...]

The models are the node tests of onnx, those built by `onnx_networks.py`, and the files and folders of MODEL. FOLDER gets the
models, by number, also as texts of all three kinds, and `expected.json` with their names and texts. One more model has numbers of random bits.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy
import onnx
import onnx_networks
from google.protobuf import json_format, text_format
from onnx import helper, numpy_helper, printer
from onnx.backend.test.case.node import collect_testcases

MAX_BYTES = 4_000_000


def models(paths):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is not None and case.model.ByteSize() <= MAX_BYTES:
            yield case.name, case.model.SerializeToString()
    for name, model in onnx_networks.networks():
        yield name, model.SerializeToString()
    yield "random numbers", numbers().SerializeToString()
    for path in paths:
        for file in [Path(path)] if os.path.isfile(path) else sorted(Path(path).rglob("*.onnx")):
            if file.stat().st_size <= MAX_BYTES:
                yield str(file), file.read_bytes()


def numbers():
    """A model with numbers of random bits, powers of two and short decimals."""
    random = numpy.random.default_rng(1)
    single = random.integers(0, 2**32, 40_000, dtype=numpy.uint32).view(numpy.float32)
    powers = numpy.ldexp(numpy.float32(1), numpy.arange(-149, 128)).astype(numpy.float32)
    decimals = (random.integers(1, 10_000, 4_000) * 10.0 ** random.integers(-12, 12, 4_000)).astype(numpy.float32)
    double = random.integers(0, 2**64, 20_000, dtype=numpy.uint64).view(numpy.float64)
    values = {"single": single, "powers": powers, "decimals": decimals, "double": double}
    tensors = [numpy_helper.from_array(each, name) for name, each in values.items()]
    tensors.append(numpy_helper.from_array(decimals.astype(numpy.float64), "long_decimals"))
    graph = helper.make_graph([helper.make_node("Own", [], ["y"], floats=decimals.tolist())], "g", [], [], tensors)
    return helper.make_model(graph)


def main(folder, paths):
    expected = []
    for number, (name, data) in enumerate(models(paths)):
        model = onnx.ModelProto()
        model.ParseFromString(data)
        text = printer.to_text(model)
        Path(folder, f"{number}.onnx").write_bytes(data)
        forms = {"textproto": text_format.MessageToString(model), "onnxjson": json_format.MessageToJson(model)}
        for kind, form in {"onnxtxt": text, **forms}.items():
            Path(folder, f"{number}.{kind}").write_text(form)
        expected.append({"name": name, "text": text, "onnxtxt": text, **forms})
    Path(folder, "expected.json").write_text(json.dumps(expected))


main(sys.argv[1], sys.argv[2:])
