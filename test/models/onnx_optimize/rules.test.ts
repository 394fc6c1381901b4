/**
 * The rules of `optimize`: what each makes of a small model, what it has to leave, and that each is needed for a case. The graphs are
 * the smallest ones that give the same bits; onnxruntime compares them in test/programs/onnx_simplify.mjs.
 */
import { describe, expect, it } from 'vitest'
import { open, serialize, tensor } from '../../../lib/index.js'
import { PASSES, rulesOfAllPasses } from '../../../lib/models/onnx_optimize/optimize.js'
import type { RewriteNode } from '../../../lib/models/onnx_optimize/rewrite/rewrite_graph.js'
import { type NodeRule, Rewriter } from '../../../lib/models/onnx_optimize/rewrite/rewriter.js'
import { optimize } from '../../../lib/onnx.js'
import { graphOf } from './graph_text.js'
import { type ModelText, modelOf, textsOf } from './model_text.js'

const f = (...values: number[]) => tensor(Float32Array.from(values), { shape: [values.length] })
const f0 = (value: number) => tensor(value, { dtype: 'float32' })
const l = (...values: number[]) => tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })
const l0 = (value: number) => tensor(value, { dtype: 'int64' })
const b0 = (value: boolean) => tensor(value, { dtype: 'bool' })
const END = 2n ** 63n - 1n
const ends = (...values: (number | bigint)[]) =>
  tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })

interface Case extends ModelText {
  /** Rules without which the result is another one; none for what has to stay. */
  readonly rules: readonly string[]
  /** Nodes that are left; the given ones where they have to stay. */
  readonly left?: readonly string[]
  /** Values of constants that were made. */
  readonly constants?: Readonly<Record<string, readonly number[]>>
}

const X = { x: 'float32 N 4' }
const FIXED = { x: 'float32 2 3 4' }
const LONGS = { x: 'int64 N 4' }

const SIMPLER: Readonly<Record<string, Case>> = {
  'a product with 1': {
    rules: ['neutral-operand'],
    inputs: X,
    weights: { k: f0(1) },
    nodes: 'a = Mul(k, x); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'a quotient by ones of a row': {
    rules: ['neutral-operand'],
    inputs: X,
    weights: { k: f(1, 1, 1, 1) },
    nodes: 'a = Div(x, k); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'a difference of 0 and a sum with -0': {
    rules: ['neutral-operand'],
    inputs: X,
    weights: { z: f0(0), m: f0(-0) },
    nodes: 'a = Sub(x, z); b = Add(a, m); y = Relu(b)',
    left: ['y = Relu(x)'],
  },
  'integers with 0 and 1': {
    rules: ['neutral-operand'],
    inputs: LONGS,
    weights: { z: l0(0), o: l0(1) },
    nodes: 'a = Add(z, x); b = Mul(a, o); c = Sub(b, z); y = Neg(c)',
    left: ['y = Neg(x)'],
  },
  'a power of 1 and a slope of 1': {
    rules: ['neutral-operand', 'leaky-relu-one'],
    inputs: X,
    weights: { o: f0(1), s: f(1) },
    nodes: 'a = Pow(x, o); b = PRelu(a, s); c = LeakyRelu<alpha=1.0>(b); y = Relu(c)',
    left: ['y = Relu(x)'],
  },
  'neutral truths': {
    rules: ['neutral-operand', 'inverse-pair'],
    inputs: { x: 'bool N' },
    weights: { t: b0(true), n: b0(false) },
    nodes: 'a = And(t, x); b = Or(a, n); c = Xor(n, b); d = Not(c); y = Not(d)',
    left: ['y = Identity(x)'],
  },
  'joins of one': {
    rules: ['join-of-one'],
    inputs: X,
    nodes: 'a = Sum(x); b = Max(a); c = Min(b); d = Mean(c); e = Concat<axis=0>(d); y = Relu(e)',
    left: ['y = Relu(x)'],
  },
  'casts to the same type': {
    rules: ['cast-to-same', 'cast-like'],
    inputs: { ...X, k: 'float32 2' },
    nodes: 'a = Cast<to=1>(x); b = CastLike(a, k); y = Relu(b)',
    left: ['y = Relu(x)'],
  },
  'a cast to the type of a value': {
    rules: ['cast-like'],
    inputs: { ...X, k: 'float16 2' },
    nodes: 'y = CastLike(x, k)',
    left: ['y = Cast<to=10>(x)'],
  },
  'a transpose in order': {
    rules: ['transpose-in-order'],
    inputs: FIXED,
    nodes: 'a = Transpose<perm=[0,1,2]>(x); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'reshapes to the shape': {
    rules: ['reshape-to-same', 'flatten-matrix'],
    inputs: { x: 'float32 N 4' },
    weights: { k: l(0, 4) },
    nodes: 'a = Reshape(x, k); b = Flatten<axis=1>(a); y = Relu(b)',
    left: ['y = Relu(x)'],
  },
  'an Unsqueeze of no axis': {
    rules: ['unsqueeze-nothing'],
    inputs: X,
    weights: { k: l() },
    nodes: 'a = Unsqueeze(x, k); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'copies of one': {
    rules: ['expand-to-same', 'tile-once'],
    inputs: X,
    weights: { e: l(1, 4), t: l(1, 1) },
    nodes: 'a = Expand(x, e); b = Tile(a, t); y = Relu(b)',
    left: ['y = Relu(x)'],
  },
  'paddings of nothing': {
    rules: ['pad-nothing'],
    inputs: X,
    weights: { k: l(0, 0, 0, 0) },
    nodes: 'a = Pad<mode=reflect>(x, k); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'whole slices': {
    rules: ['slice-all'],
    inputs: X,
    weights: { p: l(0, -9), q: ends(END, 4) },
    nodes: 'a = Slice(x, p, q); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'indices of all': {
    rules: ['gather-all'],
    inputs: X,
    weights: { k: l(0, -3, 2, -1) },
    nodes: 'a = Gather<axis=1>(x, k); y = Relu(a)',
    left: ['y = Relu(x)'],
  },
  'reductions of nothing': {
    rules: ['reduce-nothing'],
    inputs: X,
    weights: { k: l() },
    opset: 18,
    nodes:
      'a = ReduceSum<noop_with_empty_axes=1>(x); b = ReduceMax<noop_with_empty_axes=1>(a, k); y = Relu(b)',
    left: ['y = Relu(x)'],
  },
  'joins with nothing': {
    rules: ['concat-empty'],
    inputs: { ...X, e: 'float32 0 4' },
    nodes: 'a = Concat<axis=0>(e, x, x); y = Concat<axis=0>(a, e)',
    left: ['y = Concat<axis=0>(x, x)'],
  },
  'choices that are made': {
    rules: ['where-constant'],
    inputs: { ...LONGS, z: 'int64 N 4', c: 'bool N 4' },
    weights: { t: b0(true), n: b0(false) },
    nodes: 'a = Where(t, x, z); b = Where(n, x, z); d = Where(c, a, a); y = Sub(d, b)',
    left: ['y = Sub(x, z)'],
  },
  'identities and dropouts': {
    rules: ['identity', 'dropout'],
    inputs: X,
    weights: { r: f0(0.5), t: b0(false) },
    nodes: 'a = Identity(x); b, m = Dropout(a, r, t); c = Relu(b); y = Identity(c)',
    left: ['y = Relu(x)'],
  },
  'inverse pairs': {
    rules: ['inverse-pair'],
    inputs: X,
    nodes: 'a = Neg(x); b = Neg(a); y = Exp(b)',
    left: ['y = Exp(x)'],
  },
  'operators applied twice': {
    rules: ['idempotent'],
    inputs: X,
    nodes: 'a = Relu(x); b = Relu(a); c = Ceil(b); y = Ceil(c)',
    left: ['a = Relu(x)', 'y = Ceil(a)'],
  },
  'clips of separate ranges': {
    rules: ['clip-clip'],
    inputs: X,
    weights: { p: f0(0), q: f0(1), r: f0(2), s: f0(3) },
    nodes: 'a = Clip(x, p, q); y = Clip(a, r, s)',
    left: ['y = Clip(x, r, r)'],
  },
  'casts through a wider type': {
    rules: ['cast-cast'],
    inputs: X,
    outputs: 'y z',
    nodes: 'a = Cast<to=11>(x); b = Cast<to=1>(a); c = Cast<to=11>(x); z = Cast<to=10>(c); y = Relu(b)',
    left: ['z = Cast<to=10>(x)', 'y = Relu(x)'],
  },
  'casts of truths and integers': {
    rules: ['cast-cast'],
    inputs: { x: 'bool N', i: 'int8 N' },
    outputs: 'y z',
    nodes: 'a = Cast<to=1>(x); b = Cast<to=9>(a); y = Not(b); c = Cast<to=7>(i); z = Cast<to=1>(c)',
    left: ['y = Not(x)', 'z = Cast<to=1>(i)'],
  },
  'a reduction and its squeeze': {
    rules: ['reduce-squeeze'],
    inputs: FIXED,
    weights: { k: l(-2) },
    nodes: 'a = ReduceMean<axes=[1],keepdims=1>(x); y = Squeeze(a, k)',
    left: ['y = ReduceMean<axes=[1],keepdims=0>(x)'],
  },
  'what was quantized already': {
    rules: ['dequantize-quantize'],
    inputs: { x: 'uint8 N' },
    weights: { s: f0(0.1), t: f0(0.1), z: tensor(128, { dtype: 'uint8' }) },
    nodes: 'a = DequantizeLinear(x, s, z); b = QuantizeLinear(a, t, z); y = DequantizeLinear(b, s, z)',
    left: ['y = DequantizeLinear(x, s, z)'],
  },
  'transposes that join': {
    rules: [],
    inputs: FIXED,
    outputs: 'y z',
    nodes:
      'a = Transpose<perm=[1,2,0]>(x); b = Transpose<perm=[1,2,0]>(a); y = Relu(b); c = Transpose(x); d = Transpose(c); z = Exp(d)',
    left: ['b = Transpose<perm=[2,0,1]>(x)', 'y = Relu(b)', 'z = Exp(x)'],
  },
  'operators between transposes': {
    rules: ['transposes-around'],
    inputs: { x: 'float32 N 3 4 5' },
    weights: { k: f0(2) },
    nodes: 'a = Transpose<perm=[0,2,3,1]>(x); b = Mul(k, a); c = Tanh(b); y = Transpose<perm=[0,3,1,2]>(c)',
    left: ['y_1 = Mul(k, x)', 'y = Tanh(y_1)'],
  },
  'cycles of axes around an operator': {
    rules: ['transposes-around'],
    inputs: FIXED,
    nodes: 'a = Transpose<perm=[1,2,0]>(x); b = Relu(a); y = Transpose<perm=[1,2,0]>(b)',
    left: ['y_1 = Relu(x)', 'y = Transpose<perm=[2,0,1]>(y_1)'],
  },
  'inverse transposes of which others use the first': {
    rules: ['transpose-transpose'],
    inputs: FIXED,
    outputs: 'y z',
    nodes: 'a = Transpose(x); y = Relu(a); b = Transpose(a); z = Exp(b)',
    left: ['a = Transpose(x)', 'y = Relu(a)', 'z = Exp(x)'],
  },
  'a row of transposes, and the part of one that others do not use': {
    rules: ['transpose-transpose'],
    inputs: FIXED,
    outputs: 'y z w',
    nodes:
      'a = Transpose<perm=[1,2,0]>(x); b = Transpose<perm=[1,2,0]>(a); c = Transpose<perm=[0,2,1]>(b); y = Relu(c); d = Transpose<perm=[1,2,0]>(x); e = Transpose<perm=[0,2,1]>(d); g = Transpose<perm=[0,2,1]>(e); h = Transpose<perm=[1,0,2]>(e); z = Exp(g); w = Abs(h)',
    left: [
      'c = Transpose<perm=[2,1,0]>(x)',
      'y = Relu(c)',
      'g = Transpose<perm=[1,2,0]>(x)',
      'z = Exp(g)',
      'w = Abs(x)',
    ],
  },
  'a constant along an axis and an operand between transposes': {
    rules: ['transposes-around'],
    inputs: { x: 'float32 N 3 4 5', z: 'float32 N 4 5 3' },
    weights: { k: f(1, 2, 3), o: f(4) },
    nodes:
      'a = Transpose<perm=[0,2,3,1]>(x); b = Add(k, a); c = Div(b, o); d = Sub(c, z); y = Transpose<perm=[0,3,1,2]>(d)',
    left: [
      'y_1 = Add(y_4, x)',
      'y_2 = Div(y_1, o)',
      'y_3 = Transpose<perm=[0,3,1,2]>(z)',
      'y = Sub(y_2, y_3)',
    ],
    constants: { y_4: [1, 2, 3] },
  },
  'reductions of two elements, of integers and a slice between transposes': {
    rules: ['transposes-around'],
    inputs: { x: 'float32 N 3 4 2', z: 'int64 N 3 4' },
    outputs: 'y w',
    weights: { m: l(-1), p: l(1), q: l(3), o: l(1) },
    nodes:
      'a = Transpose<perm=[0,2,1,3]>(x); b = Mul(a, a); c = ReduceSum<keepdims=0>(b, m); d = Slice(c, p, q, o); y = Transpose<perm=[0,2,1]>(d); e = Transpose<perm=[2,0,1]>(z); g = ReduceMax<axes=[0]>(e); w = Transpose<perm=[1,2,0]>(g)',
    left: [
      'y_1 = Mul(x, x)',
      'y_2 = ReduceSum<keepdims=0>(y_1, y_3)',
      'y = Slice(y_2, y_4, y_3, y_6)',
      'w = ReduceMax<axes=[2]>(z)',
    ],
    constants: { y_3: [3], y_4: [1], y_6: [2] },
  },
  'operands that are transposed alike': {
    rules: ['transposed-operands'],
    inputs: { x: 'float32 N 3 4', z: 'float32 1 3 4' },
    nodes: 'a = Transpose<perm=[0,2,1]>(x); b = Transpose<perm=[0,2,1]>(z); y = Sub(a, b)',
    left: ['y_1 = Sub(x, z)', 'y = Transpose<perm=[0,2,1]>(y_1)'],
  },
  'parts of a Concat that are transposed alike': {
    rules: ['transposed-parts'],
    inputs: { x: 'float32 N 3 4', z: 'float32 N 3 5' },
    nodes: 'a = Transpose<perm=[2,0,1]>(x); b = Transpose<perm=[2,0,1]>(z); y = Concat<axis=-3>(a, b)',
    left: ['y_1 = Concat<axis=2>(x, z)', 'y = Transpose<perm=[2,0,1]>(y_1)'],
  },
  'parts that have a new axis behind their transpose': {
    rules: ['transposed-parts'],
    inputs: { x: 'float32 N 3 4', z: 'float32 N 3 4' },
    weights: { p: l(1) },
    nodes:
      'a = Transpose<perm=[0,2,1]>(x); b = Unsqueeze(a, p); c = Transpose<perm=[0,2,1]>(z); d = Unsqueeze(c, p); y = Concat<axis=1>(b, d)',
    left: [
      'y_1 = Unsqueeze(x, y_4)',
      'y_2 = Unsqueeze(z, y_4)',
      'y_3 = Concat<axis=1>(y_1, y_2)',
      'y = Transpose<perm=[0,1,3,2]>(y_3)',
    ],
    constants: { y_4: [1] },
  },
  'axes that go with the order in which a transpose has them': {
    rules: ['transposed-axes'],
    inputs: { x: 'int32 N 3 4', z: 'float32 N 4 M' },
    outputs: 'y w',
    weights: { k: l(0), p: l(1) },
    nodes:
      'a = Transpose<perm=[0,2,1]>(x); y = ReduceMin<axes=[1],keepdims=0>(a); b = Unsqueeze(z, k); c = Transpose<perm=[1,0,2,3]>(b); d = Abs(c); e = Squeeze(d, p); w = Relu(e)',
    left: ['y = ReduceMin<axes=[2],keepdims=0>(x)', 'e = Abs(z)', 'w = Relu(e)'],
  },
  'a transpose and a reshape that moves axes of one element': {
    rules: ['transpose-reshape'],
    inputs: { x: 'float32 N 3 1 5' },
    weights: { k: l(-1, 5, 3, 1) },
    nodes: 'a = Transpose<perm=[0,2,3,1]>(x); b = Reshape(a, k); y = Relu(b)',
    left: ['b = Transpose<perm=[0,3,1,2]>(x)', 'y = Relu(b)'],
  },
  'operators between a Squeeze and its Unsqueeze': {
    rules: ['reshapes-around'],
    inputs: { x: 'float32 1 N M' },
    weights: { k: l(0), m: l(-3) },
    nodes: 'a = MaxPool<kernel_shape=[2]>(x); b = Squeeze(a, m); c = Elu(b); y = Unsqueeze(c, k)',
    left: ['a = MaxPool<kernel_shape=[2]>(x)', 'y = Elu(a)'],
  },
  'reshapes that join': {
    rules: ['reshape-reshape'],
    inputs: FIXED,
    weights: { p: l(6, 4), q: l(0, 2, -1) },
    nodes: 'a = Reshape(x, p); b = Reshape(a, q); y = Relu(b)',
    left: ['b = Reshape(x, b_1)', 'y = Relu(b)'],
    constants: { b_1: [6, 2, -1] },
  },
  'a transpose of axes of one element before a reshape': {
    rules: ['reshape-reshape'],
    inputs: { x: 'float32 S 1 N 8' },
    weights: { k: l(0, 0, -1) },
    nodes: 'a = Transpose<perm=[0,2,1,3]>(x); b = Reshape(a, k); y = Relu(b)',
    left: ['b = Squeeze(x, b_1)', 'y = Relu(b)'],
    constants: { b_1: [1] },
  },
  'a transpose of a new axis': {
    rules: ['reshape-reshape'],
    inputs: { x: 'float32 S N 8' },
    weights: { k: l(1) },
    nodes: 'a = Unsqueeze(x, k); b = Transpose<perm=[1,0,2,3]>(a); y = Relu(b)',
    left: ['b = Unsqueeze(x, b_1)', 'y = Relu(b)'],
    constants: { b_1: [0] },
  },
  'a transpose of an axis that a Squeeze removes': {
    rules: ['transposed-axes'],
    inputs: { x: 'float32 N 4 1' },
    weights: { k: l(1) },
    nodes: 'a = Transpose<perm=[0,2,1]>(x); b = Squeeze(a, k); y = Relu(b)',
    left: ['b = Squeeze(x, b_1)', 'y = Relu(b)'],
    constants: { b_1: [2] },
  },
  'operators between reshapes': {
    rules: ['reshapes-around'],
    inputs: { x: 'float32 2 N 4' },
    weights: { p: l(2, -1), k: l(2, -1, 4) },
    nodes: 'a = Flatten<axis=2>(x); b = Sigmoid(a); y = Reshape(b, k)',
    left: ['y = Sigmoid(x)'],
  },
  'axes of 1 that come and go': {
    rules: ['unsqueeze-squeeze'],
    inputs: X,
    weights: { p: l(0), q: l(1), k: l(0, 1) },
    nodes: 'a = Unsqueeze(x, p); b = Squeeze(a, p); c = Unsqueeze(b, q); d = Unsqueeze(c, p); y = Relu(d)',
    left: ['d = Unsqueeze(x, d_1)', 'y = Relu(d)'],
    constants: { d_1: [0, 2] },
  },
  'an axis that two more are put behind': {
    rules: ['unsqueeze-squeeze'],
    inputs: X,
    outputs: 'y z',
    weights: { p: l(0), q: l(2), r: l(3) },
    nodes: 'a = Unsqueeze(x, p); b = Unsqueeze(a, q); c = Unsqueeze(a, r); y = Relu(b); z = Exp(c)',
    left: ['b = Unsqueeze(x, b_1)', 'c = Unsqueeze(x, c_1)', 'y = Relu(b)', 'z = Exp(c)'],
    constants: { b_1: [0, 2], c_1: [0, 3] },
  },
  'slices of one axis and of two': {
    rules: ['slice-slice'],
    inputs: { x: 'float32 N 10 6' },
    weights: { p: l(1), q: l(9), o: l(1), r: l(-3), s: ends(END), t: l(2), u: l(0) },
    nodes: 'a = Slice(x, p, q, o); b = Slice(a, r, s, o, t); y = Slice(b, p, s, t)',
    left: ['y = Slice(x, y_1, y_2, y_3, y_4)'],
    constants: { y_1: [6, 1], y_3: [1, 2], y_4: [2, 1] },
  },
  'joins of joins': {
    rules: ['concat-concat'],
    inputs: { ...X, z: 'float32 N 2' },
    nodes: 'a = Concat<axis=1>(x, z); y = Concat<axis=-1>(z, a)',
    left: ['y = Concat<axis=1>(z, x, z)'],
  },
  'parts that are joined': {
    rules: ['split-concat'],
    inputs: X,
    weights: { k: l(1, 3) },
    nodes: 'a, b = Split<axis=1>(x, k); c = Concat<axis=-1>(a, b); y = Relu(c)',
    left: ['y = Relu(x)'],
  },
  'joined parts': {
    rules: ['concat-split'],
    inputs: { ...X, z: 'float32 N 2' },
    outputs: 'y w',
    weights: { k: l(4, 2) },
    nodes: 'c = Concat<axis=1>(x, z); a, b = Split<axis=1>(c, k); y = Relu(a); w = Neg(b)',
    left: ['y = Relu(x)', 'w = Neg(z)'],
  },
  sequences: {
    rules: ['sequence-element', 'sequence-concat'],
    inputs: { ...X, z: 'float32 N 4' },
    outputs: 'y w',
    weights: { i: l0(-1) },
    nodes:
      's = SequenceConstruct(x, z); a = SequenceAt(s, i); y = Relu(a); w = ConcatFromSequence<axis=1>(s)',
    left: ['y = Relu(z)', 'w = Concat<axis=1>(x, z)'],
  },
  'the shape of an elementwise operator': {
    rules: ['shape-of-elementwise'],
    inputs: X,
    nodes: 'a = Exp(x); y = Shape(a)',
    left: ['y = Shape(x)'],
  },
  'a part of a shape': {
    rules: ['slice-of-shape'],
    inputs: { x: 'float32 N M 4' },
    weights: { p: l(0), q: l(2) },
    nodes: 's = Shape(x); y = Slice(s, p, q)',
    left: ['y = Shape<end=2>(x)'],
  },
  'a target of extents of the input': {
    rules: ['reshape-target'],
    inputs: { x: 'float32 N S 12' },
    weights: { i: l(0, 1), h: l(3, 4) },
    nodes: 's = Shape(x); d = Gather<axis=0>(s, i); t = Concat<axis=0>(d, h); y = Reshape(x, t)',
    left: ['y = Reshape(x, y_1)'],
    constants: { y_1: [0, 0, 3, 4] },
  },
  'a target with one open extent': {
    rules: ['reshape-target'],
    inputs: { x: 'float32 N 6' },
    weights: { i: l(0), h: l(3, 2) },
    nodes: 's = Shape(x); d = Gather<axis=0>(s, i); t = Concat<axis=0>(h, d); y = Reshape(x, t)',
    left: ['y = Reshape(x, y_1)'],
    constants: { y_1: [3, 2, -1] },
  },
  'a target of extents that have no name': {
    rules: ['reshape-target'],
    inputs: { x: 'float32 N ? 3 4' },
    weights: { i: l0(0), j: l(1), k: l(0), r: l(-1) },
    nodes: `s = Shape(x); g = Gather<axis=0>(s, i); u = Unsqueeze(g, k); h = Gather<axis=0>(s, j);
      t = Concat<axis=0>(u, h, r); y = Reshape(x, t)`,
    left: ['y = Reshape(x, y_1)'],
    constants: { y_1: [0, 0, -1] },
  },
  'a target with one open extent that copies no extent': {
    rules: ['reshape-target'],
    inputs: { x: 'float32 N 6' },
    weights: { i: l(0), h: l(3, 2) },
    nodes: 's = Shape(x); d = Gather<axis=0>(s, i); t = Concat<axis=0>(d, h); y = Reshape<allowzero=1>(x, t)',
    left: ['y = Reshape(x, y_1)'],
    constants: { y_1: [-1, 3, 2] },
  },
  'arithmetic of constants': {
    rules: ['fold-constants'],
    inputs: FIXED,
    weights: { i: l0(2) },
    nodes: 's = Shape(x); g = Gather<axis=0>(s, i); c = Cast<to=1>(g); r = Sqrt(c); y = Mul(x, r)',
    left: ['y = Mul(x, r)'],
    constants: { r: [2] },
  },
  'a constant that is an output': {
    rules: ['fold-constants'],
    inputs: FIXED,
    nodes: 'y = Shape(x)',
    left: ['y = Constant()'],
  },
  'weights that are cut and joined': {
    rules: ['fold-weights'],
    inputs: { x: 'float32 N 96' },
    weights: {
      w: tensor(
        Float32Array.from({ length: 96 * 96 }, (_, at) => at),
        { shape: [96, 96] },
      ),
      p: l(0),
      q: l(48),
      r: l(96),
      o: l(0),
    },
    nodes:
      'a = Slice(w, p, q, o); b = Slice(w, q, r, o); c = Concat<axis=0>(b, a); d = Transpose<perm=[1,0]>(c); y = MatMul(x, d)',
    left: ['y = MatMul(x, d)'],
  },
  'equal nodes': {
    rules: ['equal-nodes'],
    inputs: { ...X, z: 'float32 N 4' },
    nodes: 'a = Add(x, z); b = Add(z, x); y = Sub(a, b)',
    left: ['a = Add(x, z)', 'y = Sub(a, a)'],
  },
  'a branch that is always taken': {
    rules: ['if-constant'],
    inputs: X,
    weights: { c: b0(false) },
    graphs: { yes: graphOf('r = Neg(x)', 'r'), no: graphOf('q = Exp(x); r = Abs(q)', 'r') },
    nodes: 'a = If<then_branch=@yes,else_branch=@no>(c); y = Relu(a)',
    left: ['q = Exp(x)', 'r_1 = Abs(q)', 'y = Relu(r_1)'],
  },
  'loops that run never and once': {
    rules: ['loop-constant'],
    inputs: X,
    weights: { z: l0(0), o: l0(1), k: f0(3) },
    graphs: {
      body: graphOf('d = Identity(c); w = Mul(v, k)', 'd w', { i: 'int64', c: 'bool', v: 'float32 N 4' }),
    },
    nodes: 'a = Loop<body=@body>(z, , x); y = Loop<body=@body>(o, , a)',
    left: ['y = Mul(x, k)'],
  },
}

const KEPT: Readonly<Record<string, Omit<Case, 'rules'>>> = {
  'reductions of transposed floats that engines compute in another order': {
    inputs: { x: 'float32 N 3 4', z: 'float32 N 2 4', o: 'float32 1 N' },
    outputs: 'y w v u',
    weights: { m: l(1) },
    nodes:
      'a = Transpose<perm=[0,2,1]>(x); y = ReduceMax<axes=[1],keepdims=0>(a); b = Transpose<perm=[1,0,2]>(x); w = ReduceMean<axes=[2],keepdims=0>(b); c = Transpose<perm=[0,2,1]>(z); d = ReduceSum(c, m); v = Transpose<perm=[0,2,1]>(d); e = Transpose<perm=[1,0]>(o); u = ReduceSum<keepdims=0>(e, m)',
  },
  'transposes that others use, and operands that would need as many': {
    inputs: { x: 'float32 N 3 4', z: 'float32 N 4 3' },
    outputs: 'y w a',
    nodes:
      'a = Transpose<perm=[0,2,1]>(x); b = Relu(a); y = Transpose<perm=[0,2,1]>(b); c = Transpose<perm=[1,2,0]>(x); d = Transpose<perm=[2,1,0]>(z); e = Add(c, d); w = Relu(e)',
  },
  'a transpose that moves an axis of more than one element': {
    inputs: { x: 'float32 S 2 N 8' },
    weights: { k: l(0, 0, -1) },
    nodes: 'a = Transpose<perm=[0,2,1,3]>(x); b = Reshape(a, k); y = Relu(b)',
  },
  'a transpose of one element that others use': {
    inputs: { x: 'float32 S 1 N 8' },
    weights: { k: l(0, 0, -1) },
    nodes: 'a = Transpose<perm=[0,2,1,3]>(x); y = Reshape(a, k); z = Relu(a)',
  },
  'a target of an extent in another place': {
    inputs: { x: 'float32 ? ? 3 4' },
    weights: { i: l(0), j: l(1), r: l(-1) },
    nodes: `s = Shape(x); g = Gather<axis=0>(s, i); h = Gather<axis=0>(s, j);
      t = Concat<axis=0>(h, g, r); y = Reshape(x, t)`,
  },
  'a target of an extent of another value': {
    inputs: { x: 'float32 ? ? 3 4', z: 'float32 ? ? 3 4' },
    weights: { i: l(0), j: l(1), r: l(-1) },
    nodes: `s = Shape(z); g = Gather<axis=0>(s, i); h = Gather<axis=0>(s, j);
      t = Concat<axis=0>(g, h, r); y = Reshape(x, t)`,
  },
  'a target that may be of no elements and copies no extent': {
    inputs: { x: 'float32 N ? 6' },
    weights: { i: l(0), h: l(6), r: l(-1) },
    nodes: `s = Shape(x); g = Gather<axis=0>(s, i);
      t = Concat<axis=0>(g, h, r); y = Reshape<allowzero=1>(x, t)`,
  },
  'sums with 0, where -0 becomes 0': {
    inputs: X,
    weights: { z: f0(0), m: f0(-0) },
    nodes: 'a = Add(x, z); y = Sub(a, m)',
  },
  'products with 0 and differences of a value and itself': {
    inputs: X,
    weights: { z: f0(0) },
    nodes: 'a = Mul(x, z); b = Sub(x, x); y = Add(a, b)',
  },
  'ones that enlarge': {
    inputs: X,
    weights: { k: f(1, 1, 1, 1), o: tensor(new Float32Array([1, 1, 1]), { shape: [3, 1, 1] }) },
    nodes: 'a = Mul(x, o); b = Unsqueeze<axes=[0]>(x); y = Div(a, b)',
    opset: 12,
  },
  'ones against a symbolic extent': {
    inputs: { x: 'float32 N' },
    weights: { k: f(1, 1, 1) },
    nodes: 'y = Mul(x, k)',
  },
  'casts that lose': {
    inputs: { x: 'float32 N', i: 'int64 N' },
    outputs: 'y z u',
    nodes:
      'a = Cast<to=6>(x); y = Cast<to=1>(a); b = Cast<to=1>(i); z = Cast<to=7>(b); d = Cast<to=9>(i); u = Cast<to=7>(d)',
  },
  'a float through a wider one to an integer': {
    inputs: { x: 'float32 N' },
    nodes: 'a = Cast<to=11>(x); y = Cast<to=6>(a)',
  },
  'a Clip without bounds, a Not of Less, a pool of one': {
    inputs: { x: 'float32 N 2 3 3' },
    outputs: 'y z',
    nodes: 'a = Clip(x); b = MaxPool<kernel_shape=[1,1]>(a); c = Less(b, x); y = Not(c); z = Softmax(b)',
  },
  'operands that are transposed in other ways': {
    inputs: { x: 'float32 2 2 2' },
    nodes: 'a = Transpose<perm=[0,2,1]>(x); b = Transpose<perm=[2,1,0]>(x); y = Add(a, b)',
  },
  'a Squeeze and an Unsqueeze of other axes': {
    inputs: { x: 'float32 1 N M' },
    weights: { k: l(0), m: l(1) },
    nodes: 'a = Squeeze(x, k); b = Elu(a); y = Unsqueeze(b, m)',
  },
  'reversed, clamped and symbolic slices': {
    inputs: X,
    outputs: 'y z',
    weights: { p: l(-1), q: ends(-END), o: l(0), m: l(-1), n: l(2) },
    nodes: 'y = Slice(x, p, q, o, m); z = Slice(x, o, n, o)',
  },
  'padding that sums to nothing': {
    inputs: { x: 'float32 4 3' },
    weights: { k: l(1, 0, -1, 0) },
    nodes: 'y = Pad(x, k)',
  },
  'parts in another order, along another axis': {
    inputs: { x: 'float32 N 4' },
    outputs: 'y z',
    weights: { k: l(2, 2) },
    nodes: 'a, b = Split<axis=1>(x, k); y = Concat<axis=1>(b, a); z = Concat<axis=0>(a, b)',
  },
  'a mask that is used': { inputs: X, nodes: 'a, m = Dropout(x); c = Cast<to=1>(m); y = Add(a, c)' },
  'random nodes': { inputs: X, nodes: 'a = RandomUniformLike(x); b = RandomUniformLike(x); y = Sub(a, b)' },
  'choices that enlarge': {
    inputs: { x: 'int64 3' },
    weights: { m: tensor(new Uint8Array([1, 1]), { dtype: 'bool', shape: [2, 1] }), k: l0(1) },
    nodes: 'y = Where(m, x, k)',
  },
  'a first operand of floats that is chosen': {
    inputs: X,
    weights: { t: b0(true) },
    nodes: 'y = Where(t, x, x)',
  },
  'a Squeeze without axes': { inputs: X, weights: { k: l(0) }, nodes: 'a = Unsqueeze(x, k); y = Squeeze(a)' },
  'long results': {
    inputs: { x: 'float32 N 400' },
    weights: { s: l(1, 400) },
    nodes: 'z = ConstantOfShape(s); y = Add(x, z)',
  },
  'another scale, and a scale without all bits': {
    inputs: { x: 'uint8 N' },
    outputs: 'y w',
    weights: { s: f0(0.1), t: f0(0.2), u: f0(1e-40), z: tensor(1, { dtype: 'uint8' }) },
    nodes:
      'a = DequantizeLinear(x, s, z); y = QuantizeLinear(a, t, z); b = DequantizeLinear(x, u, z); w = QuantizeLinear(b, u, z)',
  },
  'a target of which one is open beside a copied one': {
    inputs: { x: 'float32 N S 3' },
    weights: { i: l(0), j: l(1), h: l(3) },
    nodes:
      's = Shape(x); n = Gather(s, i); m = Gather(s, j); k = Mul(m, h); t = Concat<axis=0>(n, k); y = Reshape(x, t)',
  },
  'a Loop whose condition is false at the start, with a scan': {
    inputs: X,
    outputs: 'y s',
    weights: { o: l0(1), c: b0(true), k: f0(3) },
    graphs: {
      body: graphOf('d = Identity(t); w = Mul(v, k); u = Abs(v)', 'd w u', {
        i: 'int64',
        t: 'bool',
        v: 'float32 N 4',
      }),
    },
    nodes: 'y, s = Loop<body=@body>(o, c, x)',
  },
}

const matrix = (rows: number, columns: number) =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, at) => at / 7),
    { shape: [rows, columns] },
  )
const filters = (...shape: number[]) =>
  tensor(
    Float32Array.from({ length: shape.reduce((product, extent) => product * extent, 1) }, (_, at) => at / 7),
    { shape },
  )
/** Elements of `filters`, each times a number of its place. */
function scaledFilters(factorOf: (place: readonly number[]) => number, ...shape: number[]): number[] {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return Array.from({ length: count }, (_, at) => {
    let rest = at
    const place = shape.map(() => 0)
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      place[axis] = rest % shape[axis]!
      rest = Math.floor(rest / shape[axis]!)
    }
    return Math.fround(at / 7) * factorOf(place)
  })
}
const column = (...values: number[]) => tensor(Float32Array.from(values), { shape: [1, values.length, 1, 1] })
const IMAGE = { x: 'float32 N 3 6 6' }
const NORMALIZATION = { s: f(1, 2, 3, 4), b: f(0, 1, 0, 1), m: f(0.5, 0, 0, 0), v: f(1, 1, 4, 1) }

const GELU = { r: f0(Math.SQRT2), o: f0(1), h: f0(0.5) }
const INVERSE = { ...GELU, r: f0(Math.SQRT1_2) }
const TANH = { t: f0(3), k: f0(0.044715), p: f0(Math.sqrt(2 / Math.PI)), o: f0(1), h: f0(0.5) }
const CUBIC = 'c = Pow(x, t); d = Mul(k, c); e = Add(x, d); g = Mul(p, e); i = Tanh(g); j = Add(i, o)'
const CENTRED = { two: f0(2), e: f0(1e-5), s: f(1, 2, 3, 4), b: f(0, 0, 0, 1) }

/** Under their own names: what is rounded otherwise. */
const FUSED: Readonly<Record<string, Case>> = {
  'a batch normalization behind Conv': {
    rules: ['batch-normalization'],
    inputs: IMAGE,
    weights: { w: filters(4, 3, 3, 3), c: f(1, 2, 3, 4), ...NORMALIZATION },
    nodes: 'a = Conv(x, w, c); y = BatchNormalization(a, s, b, m, v)',
    left: ['y = Conv(x, y_1, y_2)'],
    constants: { y_2: [0.5, 5, 4.5, 17] },
  },
  'a batch normalization behind ConvTranspose in groups': {
    rules: ['batch-normalization'],
    inputs: { x: 'float32 N 4 5 5' },
    weights: { w: filters(4, 2, 2, 2), ...NORMALIZATION },
    nodes: 'a = ConvTranspose<group=2>(x, w); y = BatchNormalization(a, s, b, m, v)',
    left: ['y = ConvTranspose<group=2>(x, y_1, y_2)'],
  },
  'a batch normalization behind Gemm': {
    rules: ['batch-normalization'],
    inputs: X,
    weights: { w: matrix(4, 4), c: f(1, 2, 3, 4), ...NORMALIZATION },
    nodes: 'a = Gemm<transB=1>(x, w, c); y = BatchNormalization(a, s, b, m, v)',
    left: ['y = Gemm<transB=1>(x, y_1, y_2)'],
  },
  'products and sums by channel': {
    rules: ['channel-product', 'channel-sum'],
    inputs: IMAGE,
    weights: { w: filters(4, 3, 3, 3), k: column(1, 2, 3, 4), j: column(4, 3, 2, 1) },
    nodes: 'a = Conv(x, w); b = Mul(k, a); y = Add(b, j)',
    left: ['y = Conv(x, b_1, y_1)'],
    constants: { y_1: [4, 3, 2, 1] },
  },
  'a factor in front of Conv': {
    rules: ['factor-of-input'],
    inputs: IMAGE,
    weights: { k: f0(0.5), w: filters(4, 3, 3, 3), c: f(1, 2, 3, 4) },
    nodes: 'a = Relu(x); b = Mul(a, k); y = Conv<pads=[1,1,1,1]>(b, w, c)',
    left: ['a = Relu(x)', 'y = Conv<pads=[1,1,1,1]>(a, y_1, c)'],
    constants: { y_1: scaledFilters(() => 0.5, 4, 3, 3, 3) },
  },
  'factors by channel in front of Conv in groups': {
    rules: ['factor-of-input'],
    inputs: { x: 'float32 N 4 5 5' },
    weights: { k: column(2, 4, 8, 16), w: filters(6, 2, 2, 2) },
    nodes: 'b = Mul(k, x); y = Conv<group=2>(b, w)',
    left: ['y = Conv<group=2>(x, y_1)'],
    // Filters 0 to 2 have the input channels 0 and 1, the others 2 and 3.
    constants: {
      y_1: scaledFilters(([filter, channel]) => 2 ** ((filter! < 3 ? 1 : 3) + channel!), 6, 2, 2, 2),
    },
  },
  'factors by channel in front of ConvTranspose': {
    rules: ['factor-of-input'],
    inputs: { x: 'float32 N 3 5 5' },
    weights: { k: column(2, 4, 8), w: filters(3, 2, 2, 2) },
    nodes: 'b = Mul(x, k); y = ConvTranspose(b, w)',
    left: ['y = ConvTranspose(x, y_1)'],
    constants: { y_1: scaledFilters(([channel]) => 2 ** (channel! + 1), 3, 2, 2, 2) },
  },
  'a divisor in front of MatMul': {
    rules: ['factor-of-input'],
    inputs: X,
    weights: { k: f(8, 4, 2, 1), w: matrix(4, 3) },
    nodes: 'a = Div(x, k); y = MatMul(a, w)',
    left: ['y = MatMul(x, y_1)'],
    constants: { y_1: scaledFilters(([row]) => 2 ** (row! - 3), 4, 3) },
  },
  'a factor by column in front of a transposed matrix of Gemm': {
    rules: ['factor-of-input'],
    inputs: X,
    weights: { k: f(2, 4, 8, 16), w: matrix(3, 4), c: f(1, 2, 3) },
    nodes: 'a = Mul(x, k); y = Gemm<alpha=2.0,beta=3.0,transB=1>(a, w, c)',
    left: ['y = Gemm<transB=1>(x, y_1, c)'],
    constants: { y_1: scaledFilters(([, column]) => 2 ** (column! + 1), 3, 4) },
  },
  'padding that Conv does': {
    rules: ['pad-into'],
    inputs: IMAGE,
    weights: { k: l(0, 0, 1, 2, 0, 0, 3, 4), z: f0(0), w: filters(4, 3, 3, 3) },
    nodes: 'a = Pad<mode=constant>(x, k, z); y = Conv<pads=[1,1,1,1]>(a, w)',
    left: ['y = Conv<pads=[2,3,4,5]>(x, w)'],
  },
  'a product and a sum': {
    rules: ['matmul-add'],
    inputs: X,
    weights: { w: matrix(4, 3), c: f(1, 2, 3) },
    nodes: 'a = MatMul(x, w); y = Add(c, a)',
    left: ['y = Gemm(x, w, c)'],
  },
  'transposed factors': {
    rules: ['transposed-factor'],
    inputs: { x: 'float32 4 N', z: 'float32 5 4' },
    nodes: 'a = Transpose<perm=[1,0]>(x); b = Transpose<perm=[1,0]>(z); y = Gemm(a, b)',
    left: ['y = Gemm<transA=1,transB=1>(x, z)'],
  },
  'Gelu by a quotient': {
    rules: ['gelu-1'],
    opset: 20,
    inputs: X,
    weights: GELU,
    nodes: 'a = Div(x, r); b = Erf(a); c = Add(b, o); d = Mul(x, c); y = Mul(d, h)',
    left: ['y = Gelu(x)'],
  },
  'Gelu of a half': {
    rules: ['gelu-2'],
    opset: 20,
    inputs: X,
    weights: GELU,
    nodes: 'a = Div(x, r); b = Erf(a); c = Add(o, b); d = Mul(h, x); y = Mul(d, c)',
    left: ['y = Gelu(x)'],
  },
  'Gelu with the half inside': {
    rules: ['gelu-3'],
    opset: 20,
    inputs: X,
    weights: GELU,
    nodes: 'a = Div(x, r); b = Erf(a); c = Add(o, b); d = Mul(h, c); y = Mul(d, x)',
    left: ['y = Gelu(x)'],
  },
  'Gelu by a product': {
    rules: ['gelu-4'],
    opset: 20,
    inputs: X,
    weights: INVERSE,
    nodes: 'a = Mul(r, x); b = Erf(a); c = Add(b, o); d = Mul(x, c); y = Mul(d, h)',
    left: ['y = Gelu(x)'],
  },
  'Gelu of a half by a product': {
    rules: ['gelu-5'],
    opset: 20,
    inputs: X,
    weights: INVERSE,
    nodes: 'a = Mul(x, r); b = Erf(a); c = Add(o, b); d = Mul(x, h); y = Mul(c, d)',
    left: ['y = Gelu(x)'],
  },
  'Gelu with the half inside by a product': {
    rules: ['gelu-6'],
    opset: 20,
    inputs: X,
    weights: INVERSE,
    nodes: 'a = Mul(x, r); b = Erf(a); c = Add(o, b); d = Mul(c, h); y = Mul(x, d)',
    left: ['y = Gelu(x)'],
  },
  'Gelu by Tanh': {
    rules: ['gelu-tanh-1'],
    opset: 20,
    inputs: X,
    weights: TANH,
    nodes: `${CUBIC}; m = Mul(x, j); y = Mul(m, h)`,
    left: ['y = Gelu(x)'],
  },
  'Gelu by Tanh of a half': {
    rules: ['gelu-tanh-2'],
    opset: 20,
    inputs: X,
    weights: TANH,
    nodes: `${CUBIC}; m = Mul(x, h); y = Mul(m, j)`,
    left: ['y = Gelu(x)'],
  },
  'Gelu by Tanh with the half inside': {
    rules: ['gelu-tanh-3'],
    opset: 20,
    inputs: X,
    weights: TANH,
    nodes: `${CUBIC}; m = Mul(j, h); y = Mul(x, m)`,
    left: ['y = Gelu(x)'],
  },
  'a layer normalization by Pow': {
    rules: ['layer-normalization-1'],
    inputs: X,
    weights: CENTRED,
    nodes:
      'm = ReduceMean<axes=[-1]>(x); d = Sub(x, m); p = Pow(d, two); v = ReduceMean<axes=[1]>(p); a = Add(v, e); q = Sqrt(a); n = Div(d, q); g = Mul(n, s); y = Add(b, g)',
    left: ['y = LayerNormalization(x, s, b)'],
  },
  'a layer normalization by Mul': {
    rules: ['layer-normalization-2'],
    inputs: X,
    weights: CENTRED,
    nodes:
      'm = ReduceMean<axes=[-1]>(x); d = Sub(x, m); p = Mul(d, d); v = ReduceMean<axes=[1]>(p); a = Add(v, e); q = Sqrt(a); n = Div(d, q); g = Mul(n, s); y = Add(b, g)',
    left: ['y = LayerNormalization(x, s, b)'],
  },
  'a layer normalization by Pow, axes as input': {
    rules: ['layer-normalization-3'],
    opset: 18,
    inputs: X,
    weights: { ...CENTRED, ax: l(-1) },
    nodes:
      'm = ReduceMean(x, ax); d = Sub(x, m); p = Pow(d, two); v = ReduceMean(p, ax); a = Add(e, v); q = Sqrt(a); n = Div(d, q); g = Mul(s, n); y = Add(g, b)',
    left: ['y = LayerNormalization(x, s, b)'],
  },
  'a layer normalization by Mul, axes as input': {
    rules: ['layer-normalization-4'],
    opset: 18,
    inputs: X,
    weights: { ...CENTRED, ax: l(-1) },
    nodes:
      'm = ReduceMean(x, ax); d = Sub(x, m); p = Mul(d, d); v = ReduceMean(p, ax); a = Add(e, v); q = Sqrt(a); n = Div(d, q); g = Mul(s, n); y = Add(g, b)',
    left: ['y = LayerNormalization(x, s, b)'],
  },
  'HardSwish by a quotient': {
    rules: ['hard-swish-1'],
    inputs: X,
    weights: { t: f0(3), z: f0(0), k: f0(6) },
    nodes: 'a = Add(x, t); b = Clip(a, z, k); c = Mul(b, x); y = Div(c, k)',
    left: ['y = HardSwish(x)'],
  },
  'HardSwish with the quotient inside': {
    rules: ['hard-swish-2'],
    inputs: X,
    weights: { t: f0(3), z: f0(0), k: f0(6) },
    nodes: 'a = Add(t, x); b = Clip(a, z, k); c = Div(b, k); y = Mul(x, c)',
    left: ['y = HardSwish(x)'],
  },
  'HardSwish by HardSigmoid': {
    rules: ['hard-swish-3'],
    inputs: X,
    nodes: 'a = HardSigmoid<alpha=0.16666667>(x); y = Mul(a, x)',
    left: ['y = HardSwish(x)'],
  },
}

/** What fusions leave. */
const APART: Readonly<Record<string, Omit<Case, 'rules'>>> = {
  'a Conv that others use': {
    inputs: IMAGE,
    outputs: 'y z',
    weights: { w: filters(4, 3, 3, 3), ...NORMALIZATION },
    nodes: 'a = Conv(x, w); y = BatchNormalization(a, s, b, m, v); z = Relu(a)',
  },
  'factors of an input that others use, of transposed rows, of other axes, and of an image with one channel':
    {
      inputs: { ...IMAGE, p: 'float32 4 N', q: 'float32 N 1 6 6' },
      outputs: 'y z g h u',
      weights: {
        k: f0(0.5),
        w: filters(4, 3, 3, 3),
        r: column(1, 2, 3),
        s: f(1, 2, 3, 4, 5, 6),
        m: matrix(4, 3),
      },
      nodes:
        'a = Mul(x, k); y = Conv(a, w); z = Relu(a); b = Mul(p, k); g = Gemm<transA=1>(b, m); c = Mul(x, s); h = Conv(c, w); d = Mul(q, r); u = Conv(d, w)',
    },
  'a variance below 0, and a normalization in training': {
    inputs: IMAGE,
    outputs: 'y z',
    weights: { w: filters(4, 3, 3, 3), u: filters(4, 3, 1, 1), ...NORMALIZATION, n: f(-1, 1, 1, 1) },
    nodes:
      'a = Conv(x, w); y = BatchNormalization(a, s, b, m, n); c = Conv(x, u); z = BatchNormalization<training_mode=1>(c, s, b, m, v)',
  },
  'sums that are not by channel': {
    inputs: IMAGE,
    weights: { w: filters(4, 3, 3, 3), k: f(1, 2, 3, 4) },
    nodes: 'a = Conv(x, w); y = Add(a, k)',
  },
  'padding of channels, and with another value': {
    inputs: IMAGE,
    outputs: 'y z',
    weights: {
      w: filters(4, 3, 3, 3),
      u: filters(4, 4, 3, 3),
      k: l(0, 0, 1, 1, 0, 0, 1, 1),
      j: l(0, 1, 0, 0, 0, 0, 0, 0),
      o: f0(1),
    },
    nodes: 'a = Pad(x, k, o); y = Conv(a, w); b = Pad(x, j); z = Conv(b, u)',
  },
  'a sum that enlarges a product': {
    inputs: { x: 'float32 1 4' },
    weights: { w: matrix(4, 3), c: matrix(2, 3) },
    nodes: 'a = MatMul(x, w); y = Add(a, c)',
  },
  'Gelu of an earlier operator set, and of another root': {
    inputs: X,
    outputs: 'y',
    weights: GELU,
    nodes: 'a = Div(x, r); b = Erf(a); c = Add(b, o); d = Mul(x, c); y = Mul(d, h)',
  },
}

function rewrite(text: ModelText, fuse: boolean, without?: string) {
  const model = modelOf(text)
  const rules = rulesOfAllPasses(model, fuse).filter(({ name }) => name !== without)
  let rewriter: Rewriter
  do {
    rewriter = new Rewriter(model, true)
    rewriter.run(rules)
  } while (rewriter.write())
  return model.graph
}

async function expectSimpler(
  { left, constants = {}, ...text }: Omit<Case, 'rules'>,
  fuse: boolean,
): Promise<void> {
  const model = modelOf(text)
  await optimize(model, { fuse })
  expect(textsOf(model.graph).map((each) => each.replace(/ = Constant.*/, ' = Constant()'))).toEqual(left)
  for (const [name, values] of Object.entries(constants)) {
    const found = model.graph.initializer(name)!
    const elements = found.kind === 'dense' ? Array.from(await found.toTypedArray(), Number) : []
    expect(elements).toHaveLength(values.length)
    for (const [at, value] of values.entries()) expect(elements[at]).toBeCloseTo(value, 3)
  }
}

describe('rules that simplify', () => {
  it.each(Object.entries(SIMPLER))('%s', async (_, { rules: _rules, ...each }) => {
    await expectSimpler(each, false)
  })
})

describe('rules that leave', () => {
  it.each(Object.entries(KEPT))('%s', (_, text) => {
    const before = textsOf(modelOf(text).graph)
    expect(textsOf(rewrite(text, false))).toEqual(before)
  })
})

describe('fusions', () => {
  it.each(Object.entries(FUSED))('%s', async (_, { rules: _rules, ...each }) => {
    await expectSimpler(each, true)
  })

  it.each(Object.entries(FUSED))('are not made without fuse: %s', (_, { rules: _rules, ...text }) => {
    expect(textsOf(rewrite(text, false))).toHaveLength(modelOf(text).graph.nodes.length)
  })

  it.each(Object.entries(APART))('leave %s', (_, text) => {
    const before = textsOf(modelOf(text).graph)
    expect(textsOf(rewrite(text, true))).toEqual(before)
  })

  it('say how large the error of new weights is', async () => {
    const { rules: _rules, ...text } = FUSED['a batch normalization behind Conv']!
    const changes = await optimize(modelOf(text), { fuse: true })
    const { largestError } = changes.find(({ pass }) => pass === 'fuse-conv-bn')!
    expect(largestError).toBeGreaterThan(0)
    expect(largestError).toBeLessThan(1e-7)
  })
})

describe('nodes that are gone', () => {
  it('take those of the branch that is not taken with them, which no rule looks at', async () => {
    const yes = graphOf('r = Neg(x)', 'r')
    const no = graphOf('p = Mul(k, one); q = Relu(p); s = Exp(q); r = Exp(s); t = Neg(r); u = Neg(t)', 'u')
    const weights = { c: b0(true), k: f(2, 3, 4, 5), one: f0(1) }
    const nodes = 'y = If<then_branch=@yes,else_branch=@no>(c)'
    const model = modelOf({ inputs: X, weights, graphs: { yes, no }, nodes })
    const rewriter = new Rewriter(model, true)
    const applied: string[] = []
    rewriter.run(rulesOfAllPasses(model, false), ({ name }) => applied.push(name))
    rewriter.write()
    expect(applied).toEqual(['if-constant'])
    expect([textsOf(model.graph), model.graph.initializerNames]).toEqual([['y = Neg(x)'], []])
  })

  it('leave their attributes, also those of which the file does not say the type', async () => {
    const model = modelOf({
      inputs: FIXED,
      nodes: 't = Transpose(x); a = Elu<alpha=2.0>(t); y = Transpose(a)',
    })
    model.graph.nodes[1]!.attribute('alpha')!.message.clear('type')
    await optimize(model, { only: ['merge-neighbours'] })
    expect(textsOf(model.graph)).toEqual(['y = Elu(x)'])
    const [alpha] = model.graph.nodes[0]!.attributes
    expect([alpha!.name, alpha!.type]).toEqual(['alpha', 'UNDEFINED'])
  })
})

describe('types and elements', () => {
  const nodes = 'a = Add(x, w); b = Relu(a); c = Transpose<perm=[1,0]>(b); d = Sub(w, c); y = Mul(d, w)'
  const inputs = { x: 'float32 4 4' }

  it('are inferred only where a rule needs them', () => {
    const rewriter = new Rewriter(modelOf({ inputs, weights: { w: matrix(4, 4) }, nodes }), true)
    const seen: RewriteNode[] = []
    const probe: NodeRule = {
      name: 'probe',
      operators: 'all',
      apply: (node) => {
        seen.push(node)
        return undefined
      },
    }
    rewriter.run([...rulesOfAllPasses(modelOf({ inputs: X, nodes: 'y = Relu(x)' }), false), probe])
    const inferred = seen.filter(({ outputs }) => outputs.some((value) => value?.isInferred))
    expect([seen.length, inferred.map(({ opType }) => opType)]).toEqual([5, []])
  })

  it('follow in the run in which a rule makes an operand a constant', () => {
    const model = modelOf({
      inputs: X,
      weights: { k: f0(3) },
      nodes: 'a = Neg(x); b = Add(a, k); y = Mul(b, k)',
    })
    const two: NodeRule = {
      name: 'two',
      operators: [{ opType: 'Neg', domain: '' }],
      apply: (_, { constant }) => constant(f0(2)),
    }
    const rewriter = new Rewriter(model, true)
    const applied: string[] = []
    rewriter.run([two, ...rulesOfAllPasses(model, false)], ({ name }) => applied.push(name))
    expect(applied).toEqual(['two', 'fold-constants', 'fold-constants'])
  })
})

describe('every rule', () => {
  const model = modelOf({ inputs: X, nodes: 'y = Relu(x)' })
  const exact = new Set(rulesOfAllPasses(model, false).map(({ name }) => name))
  const names = [...new Set(rulesOfAllPasses(model, true).map(({ name }) => name))]
  const needingOf = (name: string) =>
    Object.entries(exact.has(name) ? SIMPLER : FUSED).filter(([, { rules }]) => rules.includes(name))
  // The titles are the table of rules and of the cases that fail without them: --reporter=verbose prints it.
  it.each(
    names.map((name) => [
      name,
      needingOf(name)
        .map(([title]) => title)
        .join(', '),
    ]),
  )('%s is needed for: %s', (name) => {
    const fuse = !exact.has(name)
    const needing = needingOf(name)
    expect(needing).not.toEqual([])
    for (const [title, text] of needing)
      expect(textsOf(rewrite(text, fuse, name)), title).not.toEqual(textsOf(rewrite(text, fuse)))
  })
})

/** Models in ONNX text that only the pass makes other ones. */
const OF_PASSES: Readonly<Record<string, string>> = {
  sort: 'g (float[2] x) => (float[2] y) { y = Exp (a) a = Sin (x) }',
  'inline-functions':
    'g (float[2] x) => (float[2] y) { y = own.F (x) } <domain: "own", opset_import: ["": 21]> F (a) => (b) { b = Exp (a) }',
  'remove-unused-functions':
    'g (float[2] x) => (float[2] y) { y = Exp (x) } <domain: "own", opset_import: ["": 21]> F (a) => (b) { b = Exp (a) }',
  'lift-constants':
    'g (float[2] x) => (float[2] y) { k = Constant <value = float[2] {1, 2}> () y = Pow (x, k) }',
  'lift-initializers':
    'g (float[2] x, bool c) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] r) <float[2] k = {1, 2}> { r = Pow (x, k) }, else_branch = e () => (float[2] r) { r = Exp (x) }> }',
  'remove-default-attributes': 'g (float[2] x) => (float[2] y) { y = Elu <alpha = 1.0> (x) }',
  'deduplicate-initializers':
    'g (float[2] x) => (float[2] y) <float[2] k = {2, 3}, float[2] j = {2, 3}> { a = Pow (x, k) y = Pow (a, j) }',
  'remove-unused': 'g (float[2] x) => (float[2] y) { a = Sin (x) y = Exp (x) }',
  'remove-optional-outputs':
    'g (float[1,1,2,2] x) => (float[1,1,1,1] y) { y, i = MaxPool <kernel_shape = [2, 2]> (x) }',
  'remove-unused-opsets': 'g (float[2] x) => (float[2] y) { y = Exp (x) }',
  'add-default-attributes': 'g (float[2] x) => (float[2] y) { y = Elu (x) }',
  'fix-names': 'g (float[2] x) => (float[2] y) { y = Exp (x) }',
  'fix-outputs': 'g (float[2] x) => (float[2] x) {}',
  'clear-metadata': 'g (float[2] x) => (float[2] y) { y = Exp (x) }',
}

describe('every pass without rules', () => {
  const named = PASSES.filter(({ rules }) => rules === undefined).map(({ name }) => name)
  it.each(named)('%s is needed for a model', async (name) => {
    const source = `<ir_version: 10, opset_import: ["": 21, "own": 1, "unused": 1]> ${OF_PASSES[name]}`
    const results = [true, false].map(async (isOn) => {
      using file = await open(Buffer.from(source))
      const model = file.onnx!
      model.graph.docString = 'noted'
      const usual = PASSES.filter(({ runs }) => runs === undefined).map((each) => each.name)
      await optimize(model, { only: [...usual, name].filter((each) => isOn || each !== name) })
      return Buffer.from(await serialize(model)).toString('latin1')
    })
    const [on, off] = await Promise.all(results)
    expect(on).not.toBe(off)
  })
})
