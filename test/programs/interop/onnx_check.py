"""Writes models with the verdict of onnx.checker: python3 onnx_check.py FOLDER SCHEMAS MUTANTS SEED [--onnxruntime] [MODEL...]

SCHEMAS is the share of the schemas of operators, chosen at random by SEED, of which all models of `onnx_schema_cases.py` are
made; MUTANTS the number of models that `onnx_mutants.py` makes of the node tests and model files of onnx, the networks of
`onnx_networks.py`, and the files of MODEL. FOLDER gets `models.bin` and `models.json`: name, byte range, the message of the
checker or null, with `--onnxruntime` that of onnxruntime's loading. 0 bytes stand for a schema without a valid case.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from random import Random

import onnx
import onnx_networks
from onnx.backend.test.case.node import collect_testcases
from onnx_mutants import mutated
from onnx_schema_cases import cases_of, schemas, verdict

MAX_BYTES = 200_000
# Mutants of a child process.
CHUNK = 200


def loading(data):
    """What onnxruntime says; nothing where it only lacks a kernel or does not know the version."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return None
    except Exception as error:
        text = str(error)
        unknown = ("NOT_IMPLEMENTED", "ONNX Runtime only *guarantees* support", "is under development", "Could not find an implementation", "Unsupported model IR version")
        return None if any(each in text for each in unknown) else text[:300]


def models_of(schema):
    for name, case in cases_of(schema):
        try:
            yield name, case and case.model()
        except Exception:  # a form that Python refuses to build
            continue


def mutants_of(models, random, count):
    for at in range(count):
        name, model = random.choice(models)
        try:
            changed, names = mutated(model, random)
        except Exception:  # the same
            continue
        yield f"{name} {at} {names}", changed


def whole_models(paths):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    found = [(each.name, each.model) for each in cases if each.model is not None]
    found += onnx_networks.networks()
    own = Path(onnx.__file__).parent / "backend/test/data"
    for path in [*sorted(own.rglob("*.onnx")), *paths]:
        found.append((f"{path.parent.name}/{path.name}", onnx.load(path, load_external_data=False)))
    return [(name, model) for name, model in found if model.ByteSize() < MAX_BYTES]


def rows_of(models, first, runs):
    """Bytes and verdicts of the models from a number on. Bytes are written first, since some models crash the checker."""
    for at, (name, model) in enumerate(models):
        if at < first:
            continue
        data = b"" if model is None else model.SerializeToString()
        yield name, data.hex()
        yield verdict(model) if model is not None else "no valid case", loading(data) if runs and model is not None else None


def in_child(models, first, runs):
    """The rows that a child process could make, and whether it made all."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as pipe:
            for row in rows_of(models(), first, runs):
                pipe.write(json.dumps(row) + "\n")
                pipe.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        rows = [json.loads(line) for line in pipe]
    return rows, os.waitpid(child, 0)[1] == 0


def verdicts(models, runs):
    """Name, bytes and verdicts; `models` gives the same at each call."""
    rows, is_done = [], False
    while not is_done:
        more, is_done = in_child(models, len(rows) // 2, runs)
        rows += more
        if len(rows) % 2 == 1:
            rows.append(["the checker crashes", None])
        elif not is_done:
            raise RuntimeError("a child process ended between two models")
    return [(*model, *result) for model, result in zip(rows[::2], rows[1::2])]


def all_models(share, mutants, seed, paths):
    random = Random(seed)
    for schema in schemas():
        if random.random() < share:
            yield lambda schema=schema: models_of(schema)
    models = whole_models(paths) if mutants > 0 else []
    for start in range(0, mutants, CHUNK):
        own = random.random()
        yield lambda start=start, own=own: mutants_of(models, Random(own), min(CHUNK, mutants - start))


def main(folder, share, mutants, seed, *others):
    runs = "--onnxruntime" in others
    paths = [Path(each) for each in others if each != "--onnxruntime"]
    table, offset = [], 0
    with open(Path(folder, "models.bin"), "wb") as output:
        for models in all_models(float(share), int(mutants), int(seed), paths):
            for name, text, checked, loaded in verdicts(models, runs):
                output.write(bytes.fromhex(text))
                table.append([name, offset, len(text) // 2, checked, loaded])
                offset += len(text) // 2
    Path(folder, "models.json").write_text(json.dumps(table))


if __name__ == "__main__":
    main(*sys.argv[1:])
