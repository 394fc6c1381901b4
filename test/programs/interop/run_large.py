"""Runs the transformer of bench/compress_model.mjs in onnxruntime, for test/programs/compress_large.mjs.

run_large.py MODEL OUTPUT [EXPECTED]    writes the output as OUTPUT (npy); prints its largest difference from EXPECTED, relative to
                                        the largest number there, as JSON
"""
import json
import sys

import numpy as np
import onnxruntime as ort


def main(model, output, expected=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    found = session.run(None, {'ids': np.arange(0, 20_000, 1999, dtype=np.int64)})[0].astype(np.float32)
    np.save(output, found)
    result = {'shape': list(found.shape), 'finite': bool(np.isfinite(found).all())}
    if expected:
        wanted = np.load(expected)
        result['error'] = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    print(json.dumps(result))


main(*sys.argv[1:])
