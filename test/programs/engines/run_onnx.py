"""Runs ONNX models in onnxruntime: one JSON job a line on stdin, {model, inputs: {name: .npy}, out: folder}, one JSON result a line."""
import json
import os
import sys

import numpy
import onnxruntime

options = onnxruntime.SessionOptions()
options.log_severity_level = 3
# The fused integer kernels saturate on CPUs without VNNI, in original and converted models alike.
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def run(job):
    session = onnxruntime.InferenceSession(job["model"], options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    feeds = {name: numpy.load(job["inputs"][name]) for name in names}
    for at, output in enumerate(session.run(None, feeds)):
        numpy.save(os.path.join(job["out"], f"out{at}.npy"), output)


for line in sys.stdin:
    try:
        run(json.loads(line))
        print(json.dumps({}), flush=True)
    except Exception as error:
        print(json.dumps({"error": str(error)[:400]}), flush=True)
