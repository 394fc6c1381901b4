"""Simplifies the models of PyPI packages by each tool in a process of its own; called by simplify.mjs.

simplify.py all CLI [PART…]: prints a line of JSON for each model and tool: {model, tool, nodes, seconds, bytes, outcome}. `seconds` is
CPU of the whole process, `bytes` its peak memory; outcome is "equal" (every bit of every output in onnxruntime, optimizations and
prepacking off), "close" with the largest error, or the failure. `grown`: the values of the result take 64 KiB and a tenth more.
simplify.py one TOOL INPUT OUTPUT: the process of one tool. simplify.py measure COMMAND…: what a command used.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'test', 'programs', 'interop'))

PEERS = ('onnxsim', 'onnxslim', 'onnxscript', 'onnxoptimizer', 'onnxruntime')
ORIGINAL, GROWTH = 'original', 64 * 1024
# Smaller outputs, such as probabilities of what is not there, have no relative error that says something.
LEAST_SCALE = 1e-3


def simplify(tool, source, target):
    import onnx
    if tool == 'onnxruntime':
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = target
        ort.InferenceSession(source, options, providers=['CPUExecutionProvider'])
        return
    model = onnx.load(source)
    if tool == 'onnxsim':
        import onnxsim
        model, _ = onnxsim.simplify(model)
    elif tool == 'onnxslim':
        import onnxslim
        model = onnxslim.slim(model)
    elif tool == 'onnxscript':
        import onnxscript.optimizer
        model = onnxscript.optimizer.optimize(model)
    elif tool == 'onnxoptimizer':
        import onnxoptimizer
        model = onnxoptimizer.optimize(model, onnxoptimizer.get_fuse_and_elimination_passes())
    onnx.save(model, target)


def nodes_of(nodes):
    """Nodes, those of subgraphs too, without constants."""
    count = 0
    for node in nodes:
        count += node.op_type != 'Constant'
        for attribute in node.attribute:
            for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField('g') else [])]:
                count += nodes_of(graph.node)
    return count


def bytes_of_values(graph):
    total = sum(tensor.ByteSize() for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            total += attribute.t.ByteSize() if attribute.HasField('t') else 0
            total += sum(bytes_of_values(each) for each in [*attribute.graphs, *([attribute.g] if attribute.HasField('g') else [])])
    return total


def run(path, feeds):
    from plain_session import session
    prepared = session(path, prepacking=False)
    names = {each.name for each in prepared.get_inputs()}
    return prepared.run(None, {name: value for name, value in feeds.items() if name in names})


def compare(found, expected):
    import numpy as np
    from run_models import difference
    same = lambda one, other: isinstance(one, np.ndarray) and np.array_equal(one, other, equal_nan=True) and np.array_equal(np.signbit(one), np.signbit(other))
    worst = None
    for one, other in zip(found, expected, strict=True):
        error = None if isinstance(one, np.ndarray) and one.dtype.kind == 'f' and same(one, other) else difference(one, other, LEAST_SCALE)
        worst = error if worst is None else max(worst, error or 0)
    return {'outcome': 'equal'} if worst is None else {'outcome': 'close' if worst < 1e-3 else 'wrong', 'error': worst}


def measure(tool, cli, source, target):
    if tool.startswith('tilework'):
        command = ['node', cli, 'optimize', source, '--output', target, *(['--fuse'] if 'fuse' in tool else [])]
    else:
        command = [sys.executable, __file__, 'one', tool, source, target]
    # A child counts the memory of the process that forks it, until it runs something else: a small one measures.
    result = subprocess.run([sys.executable, __file__, 'measure', *command], capture_output=True, text=True)
    return json.loads(result.stdout)


def measured(command):
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors='replace').strip().split('\n')[-1][:200]
    used = {'seconds': round(usage.ru_utime + usage.ru_stime, 3), 'bytes': usage.ru_maxrss * 1024}
    return used if process.returncode == 0 else {**used, 'outcome': f'fails: {text}'}


def rows(cli, parts):
    import onnx
    import package_models
    with tempfile.TemporaryDirectory() as folder:
        for name, path, feeds in package_models.models(folder, lambda reason: print(json.dumps({'left_out': reason}), flush=True)):
            if parts and not any(part in name for part in parts):
                continue
            expected, model = run(path, feeds), onnx.load(path)
            before = bytes_of_values(model.graph)
            yield {'model': name, 'tool': ORIGINAL, 'nodes': nodes_of(model.graph.node)}
            for tool in ('tilework', 'tilework --fuse', *PEERS):
                # Beside the model: a result may refer to the same data.
                target = os.path.join(os.path.dirname(path), f'simplified-{time.monotonic_ns()}.onnx')
                row = {'model': name, 'tool': tool, **measure(tool, cli, path, target)}
                if 'outcome' not in row:
                    try:
                        result = onnx.load(target)
                        row['nodes'] = nodes_of(result.graph.node) + sum(nodes_of(each.node) for each in result.functions)
                        row['grown'] = bytes_of_values(result.graph) > max(before * 1.1, before + GROWTH)
                        row.update(compare(run(target, feeds), expected))
                    except Exception as problem:
                        row['outcome'] = f'does not run: {" ".join(str(problem).split())[:160]}'
                for each in glob.glob(f'{target}*'):
                    os.remove(each)
                yield row


def main():
    if sys.argv[1] == 'one':
        simplify(*sys.argv[2:5])
        return
    if sys.argv[1] == 'measure':
        print(json.dumps(measured(sys.argv[2:])))
        return
    for row in rows(sys.argv[2], sys.argv[3:]):
        print(json.dumps(row), flush=True)


main()
