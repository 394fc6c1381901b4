"""Models of the kinds that exporters write, as ONNX text: `networks()` yields names and models."""

import onnx.parser

IMAGE = """
<ir_version: 8, opset_import: ["" : {opset}]>
image (float[{batch}, 3, {size}, {size}] x) => (y)
<float[8, 3, 3, 3] w1, float[8] b1, float[8] scale, float[8] mean, float[16, 8, 3, 3] w2, float[8, 1, 3, 3] w3, float[10, 16] fc,
 float[10] bias, float[16, 4, 2, 2] up, float[4] slope>
{{
  a = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x, w1, b1)
  b = BatchNormalization (a, scale, b1, mean, scale)
  c = Relu (b)
  d, places = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = {ceil}> (c)
  e = Conv <group = 8, auto_pad = "SAME_UPPER", strides = [2, 2]> (d, w3)
  f = Conv <dilations = [2, 2], pads = [2, 2, 2, 2]> (e, w2)
  g = AveragePool <kernel_shape = [2, 2], auto_pad = "VALID", count_include_pad = 1> (f)
  h = Sigmoid (f)
  i = Mul (f, h)
  j = GlobalAveragePool (i)
  k = Flatten (j)
  y = Gemm <transB = 1> (k, fc, bias)
  z = Softmax <axis = 1> (y)
  t = ConvTranspose <strides = [2, 2], output_padding = [1, 1]> (f, up)
  u = LeakyRelu (t)
  dim = Shape (c)
  first = Constant <value = int64[1] {{2}}> ()
  last = Constant <value = int64[1] {{4}}> ()
  tail = Slice (dim, first, last)
  two = Constant <value = int64[2] {{{batch_value}, 8}}> ()
  target = Concat <axis = 0> (two, tail)
  none = Constant <value = float[0] {{}}> ()
  r = Resize <mode = "nearest"> (d, none, none, target)
  twice = Constant <value = float[4] {{1.0, 1.0, 2.0, 2.0}}> ()
  s = Resize <mode = "nearest"> (d, none, twice)
  joined = Concat <axis = 1> (r, c)
  m = Clip (joined)
  pads = Constant <value = int64[8] {{0, 0, 1, 1, 0, 0, 2, 2}}> ()
  p = Pad (m, pads)
  q = DepthToSpace <blocksize = 2> (p)
}}
"""

TRANSFORMER = """
<ir_version: 8, opset_import: ["" : {opset}]>
transformer (int64[{batch}, {length}] ids, int64[{batch}, {length}] mask) => (y)
<float[100, 32] table, float[32, 32] wq, float[32, 32] wk, float[32, 32] wv, float[32, 64] w1, float[64, 32] w2, float[32] gamma,
 float[64, 32] positions>
{{
  words = Gather (table, ids)
  shape = Shape (ids)
  one = Constant <value = int64 {{1}}> ()
  zero = Constant <value = int64 {{0}}> ()
  zeros = Constant <value = int64[1] {{0}}> ()
  ones = Constant <value = int64[1] {{1}}> ()
  batch = Gather (shape, zero)
  length = Gather (shape, one)
  range = Range (zero, length, one)
  where = Gather (positions, range)
  x = Add (words, where)
  q1 = MatMul (x, wq)
  k1 = MatMul (x, wk)
  v1 = MatMul (x, wv)
  batch1 = Unsqueeze (batch, zeros)
  length1 = Unsqueeze (length, zeros)
  heads = Constant <value = int64[1] {{4}}> ()
  width = Constant <value = int64[1] {{8}}> ()
  minus = Constant <value = int64[1] {{-1}}> ()
  split = Concat <axis = 0> (batch1, length1, heads, width)
  q2 = Reshape (q1, split)
  k2 = Reshape (k1, split)
  v2 = Reshape (v1, split)
  q3 = Transpose <perm = [0, 2, 1, 3]> (q2)
  k3 = Transpose <perm = [0, 2, 3, 1]> (k2)
  v3 = Transpose <perm = [0, 2, 1, 3]> (v2)
  scores = MatMul (q3, k3)
  axes = Constant <value = int64[2] {{1, 2}}> ()
  mask2 = Unsqueeze (mask, axes)
  mask3 = Cast <to = 1> (mask2)
  masked = Add (scores, mask3)
  weights = Softmax <axis = -1> (masked)
  mixed = MatMul (weights, v3)
  back = Transpose <perm = [0, 2, 1, 3]> (mixed)
  total = Mul (heads, width)
  flat = Concat <axis = 0> (batch1, length1, total)
  merged = Reshape (back, flat)
  merged2 = Concat <axis = 0> (batch1, minus, total)
  other = Reshape (back, merged2)
  sum = Add (merged, x)
  axis = Constant <value = int64[1] {{-1}}> ()
  center = ReduceMean <axes = [-1]> (sum)
  centered = Sub (sum, center)
  squared = Pow (centered, gamma)
  normal = LayerNormalization (sum, gamma)
  h1 = MatMul (normal, w1)
  h2 = Erf (h1)
  h3 = Mul (h1, h2)
  y = MatMul (h3, w2)
  expanded_to = Expand (ones, heads)
  equal = Equal (split, minus)
  chosen = Where (equal, expanded_to, split)
  rows = Unsqueeze (y, zeros)
  tile = Concat <axis = 0> (heads, ones, ones, ones)
  many = Tile (rows, tile)
  a, b = Split <axis = 2> (y{split_sizes})
  ends = Constant <value = int64[1] {{9223372036854775807}}> ()
  later = Slice (y, ones, ends, ones)
  best, at = TopK (y, heads)
  parts = Squeeze (rows, zeros)
  folded = Einsum <equation = "bhld,bhde->bhle"> (q3, k3)
  some = NonZero (mask)
  double = Add (length, length)
  double1 = Unsqueeze (double, zeros)
  shape2 = Concat <axis = 0> (double1, width)
  filled = ConstantOfShape (shape2)
}}
"""

RECURRENT = """
<ir_version: 8, opset_import: ["" : {opset}]>
recurrent (float[{length}, {batch}, 6] x, float[{count}, {batch}, 5] state) => (y)
<float[{count}, 20, 6] w, float[{count}, 20, 5] r, float[{count}, 15, 6] w3, float[{count}, 15, 5] r3, float[{count}, 5, 6] w1,
 float[{count}, 5, 5] r1>
{{
  y, h, c = LSTM <hidden_size = 5, direction = "{direction}"> (x, w, r, , , state, state)
  g, gh = GRU <hidden_size = 5, direction = "{direction}", linear_before_reset = 1> (x, w3, r3)
  n, nh = RNN <hidden_size = 5, direction = "{direction}"> (x, w1, r1)
  t = Transpose <perm = [0, 2, 1, 3]> (y)
  shape = Constant <value = int64[3] {{0, 0, -1}}> ()
  flat = Reshape (t, shape)
  sums = ReduceSum <keepdims = 0> (g)
  best = ArgMax <axis = 2, keepdims = 0> (flat)
}}
"""

CONTROL = """
<ir_version: 8, opset_import: ["" : {opset}]>
control (bool cond, float[{batch}, 4] x, int64 count, float[{length}, {batch}, 4] rows) => (y)
{{
  y = If (cond) <
    then_branch = left () => (float[{batch}, 4] l) {{ l = Relu (x) }},
    else_branch = right () => (r) {{ r = Concat <axis = {axis}> (x, x) }}
  >
  always = Constant <value = bool {{1}}> ()
  last, every = Loop (count, , x) <body = body (int64 i, bool c, float[M, 4] s) => (bool c2, float[M, 4] s2, each) {{
    c2 = Identity (c)
    s2 = Add (s, x)
    each = ReduceMean <keepdims = 0, axes = [1]> (s2)
  }}>
  grown, more = Loop (count, always, x) <body = body2 (int64 i, bool c, s) => (c2, s2, each) {{
    c2 = Identity (c)
    s2 = Concat <axis = 0> (s, x)
    each = Shape (s2)
  }}>
  state, scanned = Scan <num_scan_inputs = 1, body = body3 (a, b) => (a2, out) {{
    a2 = Add (a, b)
    out = Mul (a2, b)
  }}> (x, rows)
  nested = If (cond) <
    then_branch = outer () => (o) {{
      o = If (cond) <then_branch = in1 () => (p) {{ p = Neg (y) }}, else_branch = in2 () => (q) {{ q = Abs (y) }}>
    }},
    else_branch = outer2 () => (o2) {{ o2 = Exp (y) }}
  >
}}
"""

FUNCTIONS = """
<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>
calls (float[{batch}, {length}, 8] x) => (y)
<float[8, 6] w>
{{
  a = local.dense (x, w)
  b = local.shaped <size = 3, kind = 7> (a)
  c = local.twice (b)
  d = local.typed (b)
  y = Identity (c)
}}
<domain: "local", opset_import: ["" : {opset}]>
dense (x, w) => (y) {{
  m = MatMul (x, w)
  y = Relu (m)
}}
<domain: "local", opset_import: ["" : {opset}]>
shaped <size, kind> (x) => (y) {{
  s = Constant <value_int: int = @size> ()
  zeros = Constant <value_ints = [0]> ()
  s1 = Unsqueeze (s, zeros)
  lead = Constant <value_ints = [0, 0, -1]> ()
  to = Concat <axis = 0> (lead, s1)
  r = Reshape (x, to)
  y = Cast <to: int = @kind> (r)
}}
<domain: "local", opset_import: ["" : {opset}, "local" : 1]>
twice (x) => (y) {{
  one = local.typed (x)
  y = Concat <axis = -1> (one, one)
}}
<domain: "local", opset_import: ["" : {opset}]>
typed (x) => (y) {{ y = Cast <to = 1> (x) }}
"""

SEQUENCES = """
<ir_version: 10, opset_import: ["" : {opset}]>
sequences (float[{batch}, 4] x, float[{batch}, 4] z, int64 at, int64[{batch}] parts) => (y)
{{
  list = SequenceConstruct (x, z)
  x2 = Concat <axis = 1> (x, z)
  mixed = SequenceConstruct (x, x2)
  y = SequenceAt (list, at)
  other = SequenceAt (mixed, at)
  longer = SequenceInsert (list, x)
  joined = ConcatFromSequence <axis = 1> (list)
  stacked = ConcatFromSequence <axis = 0, new_axis = 1> (list)
  count = SequenceLength (longer)
  pieces = SplitToSequence <axis = 1, keepdims = 0> (x)
  two = Constant <value = int64 {{2}}> ()
  halves = SplitToSequence <axis = 1> (x, two)
  piece = SequenceAt (halves, at)
  shorter = SequenceErase (halves, at)
  empty = SequenceEmpty <dtype = 7> ()
  some = Optional (x)
  got = OptionalGetElement (some)
  has = OptionalHasElement (some)
  mapped = SequenceMap (list) <body = body (float[{batch}, 4] e) => (float[{batch}, 4] o) {{ o = Relu (e) }}>
}}
"""

QUANTIZED = """
<ir_version: 10, opset_import: ["" : {opset}]>
quantized (float[{batch}, 3, 8, 8] x) => (y)
<uint8[4, 3, 3, 3] w, float s, uint8 z, int8[3, 4] w2, float[4] s4, int8[4] z4>
{{
  q = QuantizeLinear (x, s, z)
  c = QLinearConv (q, s, z, w, s, z, s, z)
  d = DequantizeLinear (c, s, z)
  plain = QuantizeLinear (x, s)
  dq = DequantizeLinear <axis = 1> (w2, s4, z4)
  dyn, ds, dz = DynamicQuantizeLinear (d)
  i = ConvInteger (dyn, w, dz)
  f = Cast <to = 1> (i)
  shape = Constant <value = int64[2] {{-1, 3}}> ()
  flat = Reshape (x, shape)
  qf = QuantizeLinear (flat, s, z)
  m = MatMulInteger (qf, w2)
  y = MatMul (flat, dq)
}}
"""

SIZES = [("N", "L"), (2, 7), ("batch", "past + 1"), (1, "seq")]


def networks():
    for opset in (13, 17, 21):
        for batch, length in SIZES:
            names = {"opset": opset, "batch": batch, "length": length}
            name = f"{opset}_{batch}_{length}".replace(" + ", "_")
            if opset < 18 and "+" not in str(length):
                yield f"transformer_{name}", parsed(TRANSFORMER, names, split_sizes="")
            for axis in (0, 1):
                if opset < 18 and "+" not in str(length):
                    yield f"control_{name}_{axis}", parsed(CONTROL, names, axis=axis)
            if "+" not in str(length):
                for direction, count in (("forward", 1), ("bidirectional", 2)):
                    if opset >= 14:
                        yield f"recurrent_{name}_{count}", parsed(RECURRENT, names, direction=direction, count=count)
                yield f"functions_{name}", parsed(FUNCTIONS, names)
            if opset >= 17:
                yield f"sequences_{name}", parsed(SEQUENCES, names)
            yield f"quantized_{name}", parsed(QUANTIZED, names)
            for size, ceil in ((32, 0), (33, 1), ("S", 0)):
                value = batch if isinstance(batch, int) else 1
                yield f"image_{name}_{size}", parsed(IMAGE, names, size=size, ceil=ceil, batch_value=value)


def parsed(text, names, **others):
    model = onnx.parser.parse_model(text.format(**names, **others))
    # The parser takes types without values, which stand for weights, as types of intermediate values.
    model.graph.input.extend(model.graph.value_info)
    del model.graph.value_info[:]
    return model
