"""Makes the models of test/programs/models.mjs and compares what was made of them, in onnxruntime: run_models.py FOLDER SOURCE

SOURCE is `built`, models that are written into FOLDER, or `packages`, those in packages of PyPI. Prints a line of JSON for each
model: its name and path, and types and shapes of inputs and outputs; then {"done": number}. After that it answers each line of stdin, a request, by a line:

{name, path, inputs, outputs, axis?, chain?, text?, leastScale?, readsSigmoids?}: runs the model `path`. `inputs` and `outputs` have the names of the values of
the model NAME by the names that they have in `path`; a name "second/…" is that of a second run of NAME, in which `chain` has
outputs of the first run by the inputs that take them. `axis`: outputs have one dimension more. `text`: a file that has to have the
text of onnx.printer.

{name, ranges}: answers {ranges} with the least and the largest element of every float value, for static quantization.

The answer is {}, or {failure} where the model does not run or has other outputs; {refusal} is that of onnx.checker where it takes NAME;
{difference} is the largest difference relative to the largest element, or to `leastScale`, where bits differ, with {packed: true} where
they do not when onnxruntime packs no weights. With `readsSigmoids`, outputs of a Sigmoid that are as near as its kernel computes are
compared by what the Sigmoid reads: a detector that finds nothing has outputs of a few steps of 2^-24. {missing} is a kernel that
onnxruntime does not have.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx
import onnx.printer

import model_set
import package_models
from plain_session import session

LARGE_BYTES = 100_000_000
CASES = {}


def bytes_of(path):
    """Bytes of a model with its data, as models() lays them down."""
    data = path.removesuffix('.onnx') + '.data'
    return os.path.getsize(path) + (os.path.getsize(data) if os.path.exists(data) else 0)


def built(folder, report):
    for name, model, feeds in model_set.models(report):
        path = os.path.join(folder, f'{name}.onnx')
        onnx.save(model, path, save_as_external_data=model.ByteSize() > LARGE_BYTES, location=f'{name}.data')
        yield name, path, feeds


class Case:
    def __init__(self, name, path, feeds):
        self.name, self.path, self.feeds = name, path, feeds
        self.checks = self.checked(path) if bytes_of(path) <= LARGE_BYTES else None
        run = session(self.path)
        self.outputs = dict(zip([each.name for each in run.get_outputs()], run.run(None, feeds)))
        self.inner, self.second = None, {}

    def checked(self, path):
        """Which checks of onnx.checker a model passes."""
        passed = []
        for full in (False, True):
            try:
                onnx.checker.check_model(path, full_check=full)
                passed.append(full)
            except Exception:
                break
        return passed

    def value(self, name, chain):
        if name.startswith('second/'):
            return self.second_run(chain)[name[len('second/'):]]
        if name in self.feeds:
            return self.feeds[name]
        return self.outputs[name] if name in self.outputs else self.values()[name]

    def second_run(self, chain):
        key = json.dumps(chain)
        if key not in self.second:
            feeds = {**self.feeds, **{name: self.outputs[output] for name, output in chain.items()}}
            run = session(self.path)
            self.second[key] = {**feeds, **dict(zip([each.name for each in run.get_outputs()], run.run(None, feeds)))}
        return self.second[key]

    def forget(self):
        self.inner, self.second = None, {}

    def values(self):
        if self.inner is None:
            copy = onnx.load(self.path)
            known = set(self.outputs)
            names = [name for node in copy.graph.node for name in node.output if name and name not in known]
            copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
            copy_path = f'{self.path}.values.onnx'
            large = copy.ByteSize() > LARGE_BYTES
            onnx.save(copy, copy_path, save_as_external_data=large, location=f'{self.name}.values.data')
            self.inner = dict(zip(names, session(copy_path).run(names, self.feeds)))
        return self.inner


def describe(value):
    return {'dtype': str(value.dtype), 'shape': list(value.shape)} if isinstance(value, np.ndarray) else {}


def difference(found, expected, least_scale=1e-30):
    """None where both are equal in every bit, else a number; raises where they cannot be compared."""
    if type(found) is not type(expected):
        raise ValueError(f'{type(found).__name__} instead of {type(expected).__name__}')
    if isinstance(expected, (list, tuple)):
        if len(found) != len(expected):
            raise ValueError('another number of elements')
        return max((each for each in (difference(*pair, least_scale) for pair in zip(found, expected)) if each is not None), default=None)
    if isinstance(expected, dict):
        if list(found) != list(expected):
            raise ValueError('other keys')
        return difference(list(found.values()), list(expected.values()), least_scale)
    if not isinstance(expected, np.ndarray):
        return None if found == expected else 1.0
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise ValueError(f'{found.dtype} {found.shape} instead of {expected.dtype} {expected.shape}')
    if expected.dtype == object:
        return None if found.tolist() == expected.tolist() else 1.0
    if found.tobytes() == expected.tobytes():
        return None
    if expected.dtype.kind != 'f':
        return 1.0
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return float('inf')
    finite = np.isfinite(expected)
    return float(np.abs(found[finite].astype(np.float64) - expected[finite]).max(initial=0) / max(np.abs(expected[finite]).max(initial=0), least_scale))


def ranges_of(case):
    values = {**case.feeds, **case.outputs, **case.values()}
    floats = {name: each for name, each in values.items() if isinstance(each, np.ndarray) and each.dtype == np.float32 and each.size}
    ends = {name: [float(each.min()), float(each.max())] for name, each in floats.items()}
    return {name: each for name, each in ends.items() if np.isfinite(each).all()}


def answer(case, request):
    if 'ranges' in request:
        return {'ranges': ranges_of(case)}
    path = request['path']
    if 'text' in request:
        with open(request['text'], encoding='utf-8', newline='') as file:
            found, expected = file.read(), onnx.printer.to_text(onnx.load(path))
        return {} if found.rstrip('\n') == expected.rstrip('\n') else {'failure': 'the text differs from that of onnx.printer'}
    return {**refusal_of(case, path), **compare(case, request)}


def refusal_of(case, path):
    for full in case.checks or ():
        try:
            onnx.checker.check_model(path, full_check=full)
        except Exception as problem:
            return {'refusal': f'onnx.checker{" (full)" if full else ""}: {first_line(problem)}'}
    return {}


def compare(case, request):
    path, chain = request['path'], request.get('chain', {})
    try:
        run = session(path)
        declared = [each.name for each in run.get_inputs()]
        wanted = request['inputs']
        missing = [name for name in declared if name not in wanted]
        if missing:
            return {'failure': f'the model has a further input {missing[0]}'}
        # onnxruntime does not list inputs that nothing uses before IR version 4.
        feeds = {name: case.value(wanted[name], chain) for name in declared}
        names = [each.name for each in run.get_outputs()]
        if set(request['outputs']) - set(names) or (len(names) != len(request['outputs']) and not request.get('some')):
            return {'failure': f'the outputs are {names}'}
        results = dict(zip(names, run.run(names, feeds)))
    except Exception as problem:
        text = first_line(problem)
        if 'NOT_IMPLEMENTED' in text or 'is under development and support for this is limited' in text or 'Unsupported model IR version' in text:
            return {'missing': text}
        return {'failure': text}
    worst = None
    for name, reference in request['outputs'].items():
        expected = case.value(reference, chain)
        if 'axis' in request:
            expected = np.expand_dims(expected, request['axis'])
        try:
            found = difference(results[name], expected, request.get('leastScale', 1e-30))
            if found is not None and request.get('readsSigmoids') and is_as_near_as_sigmoids(results[name], expected):
                found = difference_before_sigmoids(case, path, (name, reference), feeds, found)
        except ValueError as problem:
            return {'failure': f'{name}: {problem}'}
        if found is not None:
            worst = found if worst is None else max(worst, found)
    if worst is None:
        return {}
    # JSON has no infinity, which is the difference where one of both overflows.
    largest = {'difference': min(worst, sys.float_info.max)}
    return {**largest, 'packed': True} if equals_unpacked(case, request, feeds) else largest


# onnxruntime's Sigmoid of float32 was up to 1.6 steps of 2^-24 from the float64 one of its input, on outputs of PP-OCRv4.
SIGMOID_ERROR = 2 * 2**-24


def is_as_near_as_sigmoids(found, expected):
    is_float = isinstance(expected, np.ndarray) and expected.dtype == np.float32
    return is_float and bool((np.abs(found - expected) <= 2 * SIGMOID_ERROR).all())


def difference_before_sigmoids(case, path, names, feeds, found):
    """That of the values that both Sigmoids read; `found` where an output is of another node."""
    read = [sigmoid_input(model, name) for model, name in zip((path, case.path), names)]
    if None in read:
        return found
    model = onnx.load(path)
    model.graph.output.append(onnx.ValueInfoProto(name=read[0]))
    return difference(session(model.SerializeToString()).run([read[0]], feeds)[0], case.value(read[1], {})) or 0.0


def sigmoid_input(path, output):
    graph = onnx.load(path, load_external_data=False).graph
    producers = (node for node in graph.node if output in node.output)
    return next((node.input[0] for node in producers if node.op_type == 'Sigmoid' and not node.domain), None)


def equals_unpacked(case, request, feeds):
    """Whether outputs of the original, and not of a second run or in another shape, are equal where no weight is packed."""
    outputs = request['outputs']
    if 'chain' in request or 'axis' in request or not set(outputs.values()) <= set(case.outputs):
        return False
    expected = session(case.path, prepacking=False).run(list(outputs.values()), case.feeds)
    found = session(request['path'], prepacking=False).run(list(outputs), feeds)
    return all(difference(*pair) is None for pair in zip(found, expected))


def first_line(problem):
    return ' '.join(str(problem).split())[:300]


def make(folder, source):
    def report(reason):
        print(json.dumps({'left_out': reason}), flush=True)
    models = built(folder, report) if source == 'built' else package_models.models(folder, report)
    for name, path, feeds in models:
        assert name not in CASES, name
        try:
            case = Case(name, path, feeds)
        except Exception as problem:
            print(json.dumps({'left_out': f'{name}: onnxruntime does not run it: {first_line(problem)[:160]}'}))
            continue
        CASES[name] = case
        shapes = [{key: describe(value) for key, value in each.items()} for each in (feeds, case.outputs)]
        print(json.dumps({'name': name, 'path': case.path, 'inputs': shapes[0], 'outputs': shapes[1]}))
    print(json.dumps({'done': len(CASES)}), flush=True)


def serve():
    current = None
    for line in sys.stdin:
        request = json.loads(line)
        if request['name'] != current:
            # Values inside models are large; requests come model by model.
            if current is not None:
                CASES[current].forget()
            current = request['name']
        try:
            result = answer(CASES[request['name']], request)
        except Exception as problem:
            result = {'failure': f'the comparison failed: {type(problem).__name__} {first_line(problem)}'}
        print(json.dumps(result), flush=True)


if __name__ == '__main__':
    warnings.simplefilter('ignore')
    make(*sys.argv[1:3])
    serve()
