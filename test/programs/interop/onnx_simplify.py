"""Compares optimized cases with their originals: onnx_simplify.py FIXTURES CASES OPTIMIZED exact|fuse.

FIXTURES has lib.py, which makes the inputs and counts nodes; CASES has cases.json beside the originals. Exits with 1 and the differences.
"""
import json
import os
import sys

fixtures, cases, optimized, mode = sys.argv[1:5]
sys.path.insert(0, fixtures)

import lib  # noqa: E402
import onnx  # noqa: E402

# Cases that stay larger than the smallest graph: where onnxruntime loses the sign of -0 in Where, the standard does not.
LARGER = {'where_same'}
# Each run draws other numbers.
RANDOM = {'trap_random_pair'}


def read(folder, case):
    with open(os.path.join(folder, case['name'] + '.onnx'), 'rb') as file:
        return file.read()


def is_equal(case, original, result):
    feeds = [lib.feed(each['spec'], each['seed'], each['special']) for each in case['feeds']]
    outputs = lib.run(result, feeds)
    if mode == 'exact' or case['kind'] == 'trap':
        return [lib.digest(each) for each in outputs] == case['hashes']
    base = lib.run(original, feeds)
    tolerance = case.get('tolerance', 1e-5)
    return max(lib.worst(one, other) for one, other in zip(base, outputs)) <= tolerance


def faults(case):
    original, result = read(cases, case), read(optimized, case)
    model = onnx.load_from_string(result)
    onnx.checker.check_model(model)
    if case['name'] not in RANDOM and not is_equal(case, original, result):
        yield 'gives other outputs'
    least = case.get('leastRounding', case['least']) if mode == 'fuse' else case['least']
    nodes = lib.nodes(model)
    if nodes > least and case['name'] not in LARGER:
        yield f'has {nodes} nodes; the least is {least}'
    if nodes < case.get('atLeast', 0):
        yield f'has {nodes} nodes, and needs {case["atLeast"]}'
    if mode == 'exact' and lib.payload(model) > case.get('maxPayload', 2**40):
        yield f'has {lib.payload(model)} bytes of constants; the limit is {case["maxPayload"]}'


with open(os.path.join(cases, 'cases.json')) as file:
    all_cases = json.load(file)
found = [f'{case["name"]}: {fault}' for case in all_cases for fault in faults(case)]
if found:
    sys.exit('\n'.join(found))
print(f'onnx_simplify: {len(all_cases)} cases passed ({mode})')
