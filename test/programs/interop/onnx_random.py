"""Compares random models with what optimize made of them, in onnxruntime: onnx_random.py FOLDER exact|fuse.

FOLDER has cases.json, a list of {number, inputs, fault?}, and NUMBER.onnx and NUMBER.simple.onnx. Prints {refused, faults}.
"""
import json
import os
import sys

import numpy as np
from plain_session import session

folder, mode = sys.argv[1:3]
DTYPES = {'float32': np.float32, 'float64': np.float64, 'float16': np.float16, 'int32': np.int32, 'int64': np.int64, 'bool': np.bool_}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 65504.0, -3.5, 2.5, 1.0, -1.0]


def feed(dtype, shape, random, is_special):
    if dtype == 'bool':
        return random.integers(0, 2, shape).astype(bool)
    if dtype in ('int32', 'int64'):
        return random.integers(-3, 4, shape).astype(dtype)
    values = np.asarray(random.standard_normal(shape) * 2)
    if is_special and values.size:
        chosen = random.random(shape) < 0.5
        values = np.where(chosen, np.array(SPECIAL)[random.integers(0, len(SPECIAL), shape)], values)
    with np.errstate(over='ignore'):
        return values.astype(DTYPES[dtype])


def canonical(value):
    """Bits, in which every NaN is one NaN."""
    if value.dtype.kind == 'f' and np.isnan(value).any():
        value = value.copy()
        value[np.isnan(value)] = np.nan
    return (str(value.dtype), value.shape, np.ascontiguousarray(value).tobytes())


def is_close(one, other):
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != 'f':
        return np.array_equal(one, other)
    one, other = one.astype(np.float64), other.astype(np.float64)
    return np.allclose(one, other, rtol=1e-4, atol=1e-4, equal_nan=True)


def results(path, feeds):
    run = session(path, prepacking=False)
    names = {each.name for each in run.get_inputs()}
    return [run.run(None, {name: value for name, value in each.items() if name in names}) for each in feeds]


def fault_of(case):
    """A fault as a text; None where both models agree, False where onnxruntime refuses the original."""
    path = os.path.join(folder, f'{case["number"]}')
    feeds = []
    for seed in range(3):
        random = np.random.default_rng(case['number'] * 3 + seed)
        feeds.append({name: feed(each['dtype'], each['shape'], random, seed > 0) for name, each in case['inputs'].items()})
    fault = case.get('fault')
    try:
        expected = results(f'{path}.onnx', feeds)
    except Exception:
        # What onnxruntime refuses may be a faulty graph for optimize, too.
        return False if fault is None or 'ERR_GRAPH' in fault else fault
    if fault is not None:
        return fault
    try:
        found = results(f'{path}.simple.onnx', feeds)
    except Exception as problem:
        return f'does not run: {" ".join(str(problem).split())[:200]}'
    for at, (one, other) in enumerate(zip(expected, found)):
        if len(one) != len(other):
            return 'has another number of outputs'
        for place, (left, right) in enumerate(zip(one, other)):
            is_same = canonical(left) == canonical(right) if mode == 'exact' else is_close(left, right)
            if not is_same:
                return f'output {place} differs for inputs {at}: {left.ravel()[:6]} and {right.ravel()[:6]} of {left.shape} and {right.shape}'
    return None


with open(os.path.join(folder, 'cases.json')) as file:
    cases = json.load(file)
found = [(case['number'], fault_of(case)) for case in cases]
faults = [{'number': number, 'text': fault} for number, fault in found if fault]
print(json.dumps({'refused': sum(fault is False for _, fault in found), 'faults': faults}))
