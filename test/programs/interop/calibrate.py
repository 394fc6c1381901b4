"""Ranges that the histogram collector of onnxruntime's quantization tool gives for seeded numbers, batch by batch: writes the fixture of
test/models/onnx_compress/calibrate.test.ts, `python3 test/programs/interop/calibrate.py > test/fixtures/calibration.json`."""
import contextlib
import io
import json

import numpy as np
import onnxruntime
from onnxruntime.quantization.calibrate import HistogramCollector

BATCH = 500

# Each takes two uniform numbers; later batches are larger where `growth` is above 1.
SHAPES = {
    'even': lambda u, v: u * 4 - 2,
    'peaked': lambda u, v: (u + v - 1) * (u + v - 1) * (u + v - 1) * 8,
    'positive': lambda u, v: u * v * 6,
    'outliers': lambda u, v: (u - 0.5) * (100 if v > 0.998 else 1),
    'relu': lambda u, v: (u - 0.5) * 3 if u > 0.5 else 0.0,
}


def numbers(seed, shape, scale):
    state, found = seed, []
    for _ in range(BATCH):
        state = (state * 1664525 + 1013904223) % 2**32
        u = state / 2**32
        state = (state * 1664525 + 1013904223) % 2**32
        found.append(np.float32(SHAPES[shape](u, state / 2**32) * scale))
    return np.array(found, np.float32)


def ranges(batches, method, percentile):
    bins = 128 if method == 'entropy' else 2048
    collector = HistogramCollector(method=method, symmetric=False, num_bins=bins, num_quantized_bins=128, percentile=percentile, scenario='same')
    with contextlib.redirect_stdout(io.StringIO()):
        for batch in batches:
            collector.collect({'x': batch})
        low, high = collector.compute_collection_result()['x'][:2]
    return [float(low), float(high)]


def main():
    cases = []
    for shape in SHAPES:
        for growth in (1, 1.7, 0.25):
            seed = len(cases) * 7919 + 1
            batches = [numbers(seed + at, shape, growth**at) for at in range(4)]
            expected = {'entropy': ranges(batches, 'entropy', 99.999)}
            for percentile in (99.999, 99.9, 99, 90):
                expected[str(percentile)] = ranges(batches, 'percentile', percentile)
            cases.append({'shape': shape, 'growth': growth, 'seed': seed, 'expected': expected})
    print(json.dumps({'onnxruntime': onnxruntime.__version__, 'batch': BATCH, 'batches': 4, 'cases': cases}, indent=1))


main()
