"""Models for conversions of the operator set: python3 onnx_opsets.py make FOLDER [MODEL...], then compare FOLDER TARGET

`make` writes NUMBER.onnx, inputs and outputs of onnxruntime: the models below, at least one for each adapter, and the node tests of
onnx in all operator sets in which they are valid. MODEL names folders of model.onnx with test data.
`compare` runs TARGET/NUMBER.onnx on the same inputs, checks them with onnx.checker, and prints a line of JSON for each
difference.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

OLD_VERSIONS = (7, 9, 10, 11, 12, 13, 17, 18, 19, 20)
MAX_BYTES = 200_000

# Operator set, inputs, outputs, initializers, nodes, and for sets without kernels the same nodes in another set.
WRITTEN = [
    (6, "float[2,3,4] a, float[3] b", "z", "int64[3] s = {1,3,1}", "z = Add <axis = 1, broadcast = 1> (a, b)", "t = Reshape (b, s) z = Add (a, t)"),
    (6, "float[2,3,4] a, float[3,4] b", "z", "", "z = Sub <broadcast = 1> (a, b)", "z = Sub (a, b)"),
    (6, "float[2,3,4] a, float[2,3] b", "z", "int64[3] s = {2,3,1}", "z = Pow <axis = -3, broadcast = 1> (a, b)", "t = Reshape (b, s) z = Pow (a, t)"),
    (5, "float[2,3] a, float[2,3] b", "z", "", "t = Mul <consumed_inputs = [0, 0]> (a, b) z = Relu (t)", "t = Mul (a, b) z = Relu (t)"),
    (6, "float[2,3] a", "z", "float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] c = {1,2,3,4}", "z = Gemm <broadcast = 1> (a, w, c)", "z = Gemm (a, w, c)"),
    (6, "float[1,2,3,3] a", "z", "float[2] s = {1,2}, float[2] b = {3,4}, float[2] m = {0.5,1}, float[2] v = {1,2}", "z = BatchNormalization <is_test = 1> (a, s, b, m, v)", "z = BatchNormalization (a, s, b, m, v)"),
    (6, "float[2,3] a", "z", "", "z = Dropout <is_test = 1> (a)", "z = Identity (a)"),
    (5, "float[2,3] a", "z", "", "z = Selu <consumed_inputs = [0]> (a)", "z = Selu <alpha = 1.6732, gamma = 1.0507> (a)"),
    (4, "float[2,3] a", "z", "", "z = Reshape <shape = [3, 2]> (a)", "t = Constant <value = int64[2] {3,2}> () z = Reshape (a, t)"),
    (3, "float[2,3] a", "z", "", "z = Concat (a, a)", "z = Concat <axis = 1> (a, a)"),
    (5, "float[2,3] a", "z", "", 't = Cast <to = "INT32"> (a) z = Cast <to = "FLOAT"> (t)', "t = Cast <to = 6> (a) z = Cast <to = 1> (t)"),
    (5, "float[2,3] a", "z", "float[1] n = {2}, float[1] x = {1}", "z = Tile (a, n, x)", "r = Constant <value = int64[2] {1,2}> () z = Tile (a, r)"),
    (1, "float[2,6] a", "z y", "", "z, y = Split <axis = 1, split = [2, 4]> (a)", "t = Constant <value = int64[2] {2,4}> () z, y = Split <axis = 1> (a, t)"),
    (1, "float[2,6] a", "z y", "float[2] l = {5,1}", "z, y = Split <axis = 1> (a, l)", "t = Constant <value = int64[2] {5,1}> () z, y = Split <axis = 1> (a, t)"),
    (1, "float[2,3] a", "z", "", 'z = Pad <mode = "constant", paddings = [0, 1, 2, 0], value = 1.5> (a)', 'p = Constant <value = int64[4] {0,1,2,0}> () v = Constant <value = float {1.5}> () z = Pad (a, p, v)'),
    (1, "float[1,2,4,4] a", "z", "", "z = LpPool <kernel_shape = [2, 2], p = 3.0> (a)", "z = LpPool <kernel_shape = [2, 2], p = 3> (a)"),
    (1, "float[1,2,4,4] a", "z", "", "z = GlobalLpPool <p = 1.0> (a)", "z = GlobalLpPool <p = 1> (a)"),
    (1, "float[1,1,2,2] a", "z", "", "z = Upsample <height_scale = 2.0, width_scale = 3.0> (a)", 't = Constant <value = float[4] {1,1,2,3}> () z = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (a, "", t)'),
    (1, "float[1,1,2,2] a", "z", "", 'z = Upsample <height_scale = 2.0, width_scale = 2.0, mode = "bilinear"> (a)', 't = Constant <value = float[4] {1,1,2,2}> () z = Resize <coordinate_transformation_mode = "asymmetric", mode = "linear"> (a, "", t)'),
    (8, "float[2,3] s, float[2,5,3] a", "z y", "", 'z, y = Scan <num_scan_inputs = 1, body = b (float[3] t, float[3] e) => (float[3] n, float[3] o) { n = Add (t, e) o = Mul (n, e) }> ("", s, a)'),
    (8, "float[2,5,3] a", "y", "float[3] c = {1,2,3}", 'y = Scan <num_scan_inputs = 1, directions = [1], body = b (float[3] e) => (float[3] o) { t = Add (e, c) o = Clip <max = 2.0> (t) }> ("", a)'),
    (18, "float[2,6,3] a", "z", "float[2] s = {1,2}, float[2] b = {3,4}", "z = GroupNormalization <num_groups = 2> (a, s, b)"),
    (18, "float16[2,6,3] a", "z", "float16[2] s = {1,2}, float16[2] b = {3,4}", "t = GroupNormalization <num_groups = 2, epsilon = 0.01> (a, s, b) z = Cast <to = 1> (t)"),
    (7, "float[1,2,3,3] a", "z", "float[2] s = {1,2}, float[2] b = {3,4}, float[2] m = {0.5,1}, float[2] v = {1,2}", "z = BatchNormalization <spatial = 1> (a, s, b, m, v)"),
    (7, "float[2,3] a", "z", "", "z = Dropout <ratio = 0.25> (a)"),
    (7, "float[1,1,2,2] a", "z", "", 'z = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 3.0]> (a)'),
    (7, "float[1,1,2,2] a", "z", "", 'z = Upsample <mode = "linear", scales = [1.0, 1.0, 2.0, 2.0]> (a)'),
    (9, "float[1,1,2,2] a", "z", "float[4] s = {1,1,2,2}", 'z = Upsample <mode = "nearest"> (a, s)'),
    (10, "float[1,1,2,3] a", "z", "float[4] s = {1,1,1.5,2}", 'z = Resize <mode = "nearest"> (a, s)'),
    (10, "float[1,1,4,4] a", "z", "float[4] s = {1,1,0.5,0.5}", 'z = Resize <mode = "linear"> (a, s)'),
    (9, "float[4,5] a", "z", "", "z = Slice <axes = [0, 1], starts = [1, -3], ends = [9, -1]> (a)"),
    (9, "float[4,5] a", "z", "", "z = Slice <starts = [1], ends = [3]> (a)"),
    (9, "float[3,7] a", "z y", "", "z, y = TopK <k = 3> (a)"),
    (9, "float[3,3] a, int64[2,3] i, float[2,3] u", "z", "", "z = Scatter <axis = 0> (a, i, u)"),
    (10, "float[2,3] a", "z", "", "z = Clip <min = -0.5, max = 0.5> (a)"),
    (10, "double[2,3] a", "z", "", "t = Cast <to = 1> (a) z = Clip <max = 0.5> (t)"),
    (10, "float[2,3] a", "z", "", 'z = Pad <mode = "constant", pads = [0, 1, 2, 0], value = 1.5> (a)'),
    (10, "float[3,4] a", "z", "", 'z = Pad <mode = "reflect", pads = [0, 1, 2, 0]> (a)'),
    (12, "float[2,3,4] a", "z", "", "z = Softmax (a)"),
    (12, "float[2,3,4] a", "z", "", "z = Softmax <axis = 2> (a)"),
    (11, "float[2,3,4] a", "z", "", "z = LogSoftmax <axis = -2> (a)"),
    (10, "float[2,3,4] a", "z", "", "z = Hardmax <axis = 0> (a)"),
    (12, "float[2,1,4] a", "z", "", "t = Squeeze <axes = [1]> (a) z = Unsqueeze <axes = [0, 3]> (t)"),
    (12, "float[1,2,1] a", "z", "", "z = Squeeze (a)"),
    (12, "float[2,6] a", "z y", "", "z, y = Split <axis = 1, split = [2, 4]> (a)"),
    (12, "float[2,6] a", "z y", "", "z, y = Split <axis = 1> (a)"),
    (13, "float[2,6] a", "z y", "int64[2] s = {4, 2}", "z, y = Split <axis = 1> (a, s)"),
    (12, "float[2,3,4] a", "z", "", "z = ReduceSum <axes = [0, 2], keepdims = 0> (a)"),
    (17, "float[2,3,4] a", "z", "", "z = ReduceSum (a)"),
    (12, "float[2,3,4] a", "z", "", "t = ReduceMean <axes = [-1]> (a) z = ReduceMax <axes = [1], keepdims = 0> (t)"),
    (12, "float[2,3,4] a", "z", "", "t = ReduceL1 <axes = [-1]> (a) s = ReduceL2 (t) z = ReduceLogSumExp <axes = [0]> (s)"),
    (12, "float[2,3,4] a", "z", "", "t = ReduceMin <axes = [0]> (a) s = ReduceProd <axes = [1]> (t) z = ReduceSumSquare (s)"),
    (9, "float[2,3] a", "z", "", "z = Erf (a)"),
    (17, "float[1,5,2] a", "z", "", "z = DFT (a)"),
    (17, "float[1,4,6,1] a", "z", "", "z = DFT <axis = 2> (a)"),
    (16, "float[1,1,4,4] a, float[1,2,2,2] g", "z", "", 'z = GridSample <mode = "bicubic"> (a, g)'),
    (16, "float[1,1,4,4] a, float[1,2,2,2] g", "z", "", "z = GridSample (a, g)"),
    (12, "float[2,3] a, bool c", "z", "", """z = If (c) <then_branch = g1 () => (float[N,M] p) { t = Softmax <axis = 0> (a) p = Clip (t) },
        else_branch = g2 () => (float[N,M] q) { t2 = Unsqueeze <axes = [0]> (a) q = Squeeze <axes = [0]> (t2) }>"""),
    (8, "float[2,3] a", "z", "", "t = Sum (a, a, a) s = Max (t, a) z = MaxPool1 (s)".replace("MaxPool1", "Neg")),
]
# A model with a function, whose nodes are converted too.
FUNCTION = """<ir_version: 8, opset_import: ["" : 12, "own" : 1]>
g (float[2,1,3] x) => (float[N,M] z) { z = own.F (x) }
<domain: "own", opset_import: ["" : 12]>
F (a) => (b) { t = Squeeze <axes = [1]> (a) b = ReduceMean <axes = [1]> (t) }"""


def written():
    for at, (opset, inputs, outputs, initializers, nodes, *same) in enumerate(WRITTEN):
        declared = ", ".join(f"float[] {name}" for name in outputs.split())
        head = f"g ({inputs}) => ({declared}) <{initializers}>"
        model = onnx.parser.parse_model(f'<ir_version: 4, opset_import: ["" : {opset}]> {head} {{ {nodes} }}')
        if "TopK" in nodes:
            model.graph.output[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
        values = [value_of(each) for each in model.graph.input]
        # onnxruntime has no kernels for the oldest operator sets; the same nodes in another set give the outputs.
        newer = onnx.parser.parse_model(f'<ir_version: 4, opset_import: ["" : 13]> {head} {{ {same[0]} }}') if same else model
        outputs = run(newer.SerializeToString(), values)
        for each, value in zip(model.graph.output, outputs):
            each.type.tensor_type.shape.SetInParent()
            for extent in value.shape:
                each.type.tensor_type.shape.dim.add().dim_value = extent
        yield f"written {at}: {nodes[:60]}", model, values, outputs
    model = onnx.parser.parse_model(FUNCTION)
    values = [value_of(each) for each in model.graph.input]
    yield "a function", model, values, run(model.SerializeToString(), values)


def value_of(declared):
    random = numpy.random.default_rng(len(declared.name))
    kind = onnx.helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type)
    shape = [dim.dim_value for dim in declared.type.tensor_type.shape.dim]
    if kind == numpy.int64:
        return random.integers(0, 2, shape)
    return random.normal(size=shape).astype(kind) if kind != bool else numpy.array(True)


def node_tests():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None or "bernoulli" in case.name or not case.data_sets or case.model.ByteSize() > MAX_BYTES:
            continue
        inputs = case.data_sets[0][0]
        if not all(isinstance(each, (numpy.ndarray, numpy.generic)) for each in inputs):
            continue
        declared = {each.domain: each for each in case.model.opset_import}
        if "" not in declared or case.model.functions:
            continue
        newest = declared[""].version
        for version in (*OLD_VERSIONS, newest):
            if version > newest:
                continue
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            model.ir_version = min(model.ir_version, 10)
            {each.domain: each for each in model.opset_import}[""].version = version
            try:
                onnx.checker.check_model(model)
                yield f"{case.name} {version}", model, inputs, run(model.SerializeToString(), inputs)
            except Exception:
                # A node test need not be valid in an older operator set.
                continue


def stored(paths):
    for path in paths:
        for file in sorted(Path(path).rglob("model.onnx")):
            data = sorted(file.parent.glob("test_data_set_0/input_*.pb"))
            results = sorted(file.parent.glob("test_data_set_0/output_*.pb"))
            inputs, outputs = ([numpy_helper.to_array(onnx.load_tensor(str(each))) for each in files] for files in (data, results))
            model = onnx.load(str(file))
            if any(opset.version > 6 for opset in model.opset_import):
                try:
                    run(model.SerializeToString(), inputs)
                except Exception:
                    continue
            if model.ByteSize() < 10_000_000 and outputs:
                yield str(file), model, inputs, outputs


def run(data, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs)))


def make(folder, paths):
    expected = []
    for maker in (written(), stored(paths), node_tests()):
        for name, model, inputs, outputs in maker:
            if not all(isinstance(each, numpy.ndarray) for each in outputs):
                continue
            data = model.SerializeToString()
            number = len(expected)
            Path(folder, f"{number}.onnx").write_bytes(data)
            numpy.savez(Path(folder, f"{number}.npz"), inputs=numpy.array(len(inputs)), **{f"i{at}": each for at, each in enumerate(inputs)}, **{f"o{at}": each for at, each in enumerate(outputs)})
            expected.append({"name": name, "outputs": len(outputs)})
    Path(folder, "expected.json").write_text(json.dumps(expected))


def differ(ones, others):
    for one, other in zip(ones, others):
        if one.dtype != other.dtype or one.shape != other.shape:
            return True
        if one.dtype.kind in "fc":
            if not numpy.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True):
                return True
        elif not numpy.array_equal(one, other):
            return True
    return False


def compare(folder, target):
    for number, case in enumerate(json.loads(Path(folder, "expected.json").read_text())):
        path = Path(target, f"{number}.onnx")
        if not path.exists():
            continue
        with numpy.load(Path(folder, f"{number}.npz"), allow_pickle=True) as data:
            inputs = [data[f"i{at}"] for at in range(int(data["inputs"]))]
            outputs = [data[f"o{at}"] for at in range(case["outputs"])]
        try:
            onnx.checker.check_model(str(path))
            if differ(outputs, run(path.read_bytes(), inputs)):
                print(json.dumps([number, "the outputs differ", False]))
        except Exception as error:
            # onnxruntime has no kernel for some operators of newer sets.
            reason = str(error)[:300]
            print(json.dumps([number, reason, "NOT_IMPLEMENTED" in reason]))


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3:])
else:
    compare(sys.argv[2], sys.argv[3])
