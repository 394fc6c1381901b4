"""Sessions of onnxruntime that run a model node by node, as it is written."""
import onnxruntime as ort


def session(model, prepacking=True):
    """`model` is a path or bytes. Without prepacking a weight takes the same product as equal values that a node computes."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Optimizations join other nodes after an edit, and so round differently.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if not prepacking:
        options.add_session_config_entry('session.disable_prepacking', '1')
    return ort.InferenceSession(model, options, providers=['CPUExecutionProvider'])
