/** Attributes of a type that their operator does not have: each is read by a typed reader, so that none ends in a TypeError. */
import { expect, it } from 'vitest'
import { open, TileworkError } from '../../../lib/index.js'
import {
  convertOpset,
  inferTypes,
  type OnnxModel,
  optimize,
  printModel,
  quantizeDynamic,
  setBatch,
  toFloat16,
} from '../../../lib/onnx.js'
import { onnxToTmfile } from '../../../lib/tmfile.js'
import { type Bytes, field, int, join } from '../../formats/onnx/onnx_bytes.js'
import { randomNumbers } from '../random_numbers.js'

const named = (name: string, type: number, ...values: Bytes[]): Bytes =>
  field(5, join(field(1, name), ...values, int(20, type)))

/** An attribute of each type, and one without a type. */
const KINDS: Readonly<Record<string, (name: string) => Bytes>> = {
  float: (name) => named(name, 1, Uint8Array.of(0x15, 0, 0, 0x80, 0x3f)),
  int: (name) => named(name, 2, int(3, 1)),
  'large int': (name) => named(name, 2, int(3, 2 ** 40)),
  string: (name) => named(name, 3, field(4, 'x')),
  tensor: (name) => named(name, 4, field(5, join(int(1, 2), int(2, 1)))),
  graph: (name) => named(name, 5, field(6, field(2, 'g'))),
  ints: (name) => named(name, 7, int(8, 1), int(8, 0)),
  'no ints': (name) => named(name, 7),
  strings: (name) => named(name, 8, field(9, 'x')),
  'no type': (name) => field(5, field(1, name)),
}

const NAMES =
  'perm axis axes kernel_shape strides pads dilations group auto_pad keepdims to alpha epsilon mode value split starts ends shape transA num_outputs direction hidden_size ceil_mode blocksize equation activations dtype largest body then_branch block_size output_shape output_padding batch_dims noop_with_empty_axes'.split(
    ' ',
  )

const OPERATORS =
  'Transpose Concat Softmax Conv ConvTranspose MaxPool AveragePool LpPool ReduceMean Squeeze Unsqueeze Split Slice Pad Reshape Gemm Cast Constant ConstantOfShape Resize Upsample LSTM GRU RNN TopK OneHot ArgMax CumSum DepthToSpace SpaceToDepth Einsum LayerNormalization BatchNormalization LRN Flatten Gather GatherND If Loop Scan QuantizeLinear DequantizeLinear Shape Expand EyeLike Clip Elu PRelu Dropout Multinomial NonMaxSuppression RoiAlign SplitToSequence Trilu Unique GridSample DFT Col2Im GroupNormalization Attention'.split(
    ' ',
  )

const CALLS: Readonly<Record<string, (model: OnnxModel) => unknown>> = {
  convertOpset: (model) => convertOpset(model, 21),
  'convertOpset to an earlier one': (model) => convertOpset(model, 13),
  inferTypes,
  onnxToTmfile,
  optimize: (model) => optimize(model),
  printModel,
  quantizeDynamic: (model) => quantizeDynamic(model),
  setBatch: (model) => setBatch(model, 2),
  toFloat16: (model) => toFloat16(model),
}

function modelOf(opType: string, attribute: Bytes): Bytes {
  const node = join(field(1, 'x'), field(1, 'x'), field(1, 'x'), field(2, 'y'), field(4, opType), attribute)
  const dims = join(...[1, 4, 8, 8].map((dim) => field(1, int(1, dim))))
  const input = join(field(1, 'x'), field(2, field(1, join(int(1, 1), field(2, dims)))))
  const graph = join(field(1, node), field(2, 'g'), field(11, input), field(12, field(1, 'y')))
  return join(int(1, 8), field(7, graph), field(8, join(field(1, ''), int(2, 17))))
}

async function faultOf(call: (model: OnnxModel) => unknown, bytes: Bytes): Promise<string | undefined> {
  try {
    await call((await open(bytes, { format: 'onnx' })).onnx!)
    return undefined
  } catch (error) {
    return error instanceof TileworkError ? undefined : String(error)
  }
}

async function faultsOf(opType: string, name: string, kind: string): Promise<string[]> {
  const bytes = modelOf(opType, KINDS[kind]!(name))
  const faults: string[] = []
  for (const [called, call] of Object.entries(CALLS)) {
    const fault = await faultOf(call, bytes)
    if (fault !== undefined) faults.push(`${called}: ${opType}.${name} of type ${kind}: ${fault}`)
  }
  return faults
}

it('Transpose with a perm of every type ends in a model or a TileworkError', async () => {
  const faults = await Promise.all(Object.keys(KINDS).map((kind) => faultsOf('Transpose', 'perm', kind)))
  expect(faults.flat()).toEqual([])
})

it('so do operators with any attribute of any type', async () => {
  const random = randomNumbers(8)
  const pick = (list: readonly string[]): string => list[random(list.length)]!
  const faults: string[] = []
  for (let count = 0; count < 400; count++)
    for (const fault of await faultsOf(pick(OPERATORS), pick(NAMES), pick(Object.keys(KINDS))))
      faults.push(fault)
  expect(faults).toEqual([])
}, 60_000)
