/** ONNX models that inference, edits and compression enter: graphs of real operators, most of them valid, some absurd. */
import { joined, le, type Random } from '../random.js'
import { varint } from './onnx.js'

const OPERATORS =
  `Add Mul Where MatMul MatMul MatMul Gemm Gemm Conv Gather Gather Relu Cast Reshape Transpose Concat Split Slice Expand Tile Pad
  Squeeze Unsqueeze Flatten Shape Size ConstantOfShape Constant Identity Identity ReduceSum ArgMax TopK Einsum Resize MaxPool
  AveragePool ConvTranspose BatchNormalization LayerNormalization LSTM GRU Range OneHot NonZero GatherND ScatterND Attention
  DepthToSpace SequenceConstruct SequenceAt SplitToSequence ConcatFromSequence Optional OptionalGetElement Dropout CastLike
  QuantizeLinear DequantizeLinear MatMulInteger EyeLike Col2Im DFT STFT GroupNormalization If If Loop Loop Scan SequenceMap Twice
  constructor __proto__ toString`.split(/\s+/)

/** Attributes by name, with what the operators expect. */
const ATTRIBUTES = {
  int: `axis to keepdims allowzero group start end num_outputs blocksize hidden_size transA transB k batch_dims ceil_mode
    noop_with_empty_axes num_scan_inputs q_num_heads kv_num_heads stash_type largest dtype`.split(/\s+/),
  ints: 'axes perm pads strides dilations kernel_shape output_shape output_padding shape split'.split(' '),
  text: 'equation mode auto_pad direction reduction coordinate_transformation_mode'.split(' '),
  tensor: ['value'],
}
const TEXTS = [
  ...['ij,jk->ik', 'i...->...', '...ij->...ji', 'ii->', 'ij,', 'SAME_UPPER', 'VALID', 'bidirectional'],
  ...['reverse', 'linear', 'asymmetric', 'none', 'DCR'],
]

const BRANCHES: ReadonlyMap<string, readonly string[]> = new Map([
  ['If', ['then_branch', 'else_branch']],
  ['Loop', ['body']],
  ['Scan', ['body']],
  ['SequenceMap', ['body']],
])

/** 0.5 as float32. */
const HALF = [0, 0, 0, 0x3f]

const WEIGHT_EXTENTS = [1, 2, 3, 16, 32, 33, 64]

/** Values that nodes may use, in the order of their definition. */
type Names = readonly string[]

export function onnxModels(random: Random): Uint8Array {
  const opset = random.once(8) ? random.number(30) : BigInt(random.pick([11, 13, 17, 19, 21, 23]))
  const domains = ['', 'com.microsoft', 'local'].map((domain) =>
    text(8, joined(text(1, domain), field(2, 0, varint(domain === '' ? opset : 1n)))),
  )
  return joined(
    field(1, 0, varint(10n)),
    ...domains,
    field(7, 2, graph(random, [], 2, 'g')),
    ...(random.once(2) ? [field(25, 2, localFunction(random))] : []),
  )
}

/** A function of the operator `Twice`, which may call itself. */
function localFunction(random: Random): Uint8Array {
  const body = nodes(random, ['x'], 1, 'f')
  return joined(
    text(1, random.once(20) ? '' : 'Twice'),
    text(4, 'x'),
    text(5, body.names.at(-1)!),
    ...body.fields.map((bytes) => field(7, 2, bytes)),
    text(9, joined(field(2, 0, varint(17n)))),
    text(10, 'local'),
  )
}

function graph(random: Random, outer: Names, depth: number, prefix: string): Uint8Array {
  const inputs = random.times(2, (index) => `${prefix}x${index}`)
  const weights = random.times(3, (index) => `${prefix}w${index}`)
  const made = nodes(random, [...outer, ...inputs, ...weights], depth, prefix)
  const outputs = random.times(2, () => random.pick(made.names))
  return joined(
    ...made.fields.map((bytes) => field(1, 2, bytes)),
    text(2, prefix),
    ...weights.map((name) => field(5, 2, weight(random, name))),
    ...inputs.map((name) => field(11, 2, info(random, name))),
    ...[made.names.at(-1)!, ...outputs].map((name) => field(12, 2, info(random, name))),
    ...made.names.filter(() => random.once(6)).map((name) => field(13, 2, info(random, name))),
  )
}

function nodes(
  random: Random,
  known: Names,
  depth: number,
  prefix: string,
): { fields: Uint8Array[]; names: Names } {
  const names = [...known]
  const count = 1 + random.below(depth > 1 ? 8 : 3)
  const fields = Array.from({ length: count }, (_, index) => {
    const operator = random.pick(OPERATORS)
    // A later value makes a cycle.
    const used = random.times(4, () =>
      random.once(60) ? random.pick(['', 'nowhere', `${prefix}${index + 1}`]) : random.pick(['', ...names]),
    )
    const outputs = Array.from(
      { length: random.once(4) ? 1 + random.below(4) : 1 },
      (_, at) => `${prefix}${index}${at === 0 ? '' : `.${at}`}`,
    )
    names.push(...outputs)
    return node(random, operator, used, outputs, { names: [...names], depth, prefix: `${prefix}${index}/` })
  })
  return { fields, names }
}

interface Inside {
  readonly names: Names
  readonly depth: number
  readonly prefix: string
}

function node(
  random: Random,
  operator: string,
  used: Names,
  outputs: Names,
  { names, depth, prefix }: Inside,
): Uint8Array {
  const branches = depth > 0 ? (BRANCHES.get(operator) ?? []) : []
  return joined(
    ...used.map((name) => text(1, name)),
    ...outputs.map((name) => text(2, name)),
    text(3, random.pick(['', 'n', prefix])),
    text(4, operator),
    text(
      7,
      operator === 'Twice'
        ? 'local'
        : random.once(30)
          ? random.pick(['com.microsoft', '__proto__', 'ai.onnx.ml'])
          : '',
    ),
    ...random.times(3, () => field(5, 2, attribute(random))),
    ...branches.map((name) =>
      field(
        5,
        2,
        joined(text(1, name), field(6, 2, graph(random, names, depth - 1, prefix)), field(20, 0, varint(5n))),
      ),
    ),
  )
}

function attribute(random: Random): Uint8Array {
  const kind = random.pick(['int', 'ints', 'text', 'tensor', 'float'] as const)
  const name = text(1, random.pick(ATTRIBUTES[kind === 'float' ? 'int' : kind]))
  const value = {
    int: () => [field(3, 0, varint(random.number(12))), field(20, 0, varint(2n))],
    ints: () => [...random.times(5, () => field(8, 0, varint(random.number(4)))), field(20, 0, varint(7n))],
    float: () => [field(2, 5, random.once(2) ? HALF : le(random.number(), 4)), field(20, 0, varint(1n))],
    text: () => [text(4, random.pick(TEXTS)), field(20, 0, varint(3n))],
    tensor: () => [field(5, 2, weight(random, '')), field(20, 0, varint(4n))],
  }[kind]()
  return joined(name, ...value)
}

/** Mostly a matrix of floats, or a list of small numbers that says axes and shapes. */
function weight(random: Random, name: string): Uint8Array {
  const isFloat = !random.once(2)
  const dims = isFloat
    ? random.times(4, () => random.pick(WEIGHT_EXTENTS))
    : random.times(1, () => random.below(5))
  const count = dims.reduce((product, dim) => product * dim, 1)
  if (count > 4096) return weight(random, name)
  const bytes = isFloat
    ? Uint8Array.from({ length: 4 * count }, () => random.below(256))
    : joined(...Array.from({ length: count }, () => le(random.number(6), 8)))
  return joined(
    ...dims.map((dim) => field(1, 0, varint(BigInt(dim)))),
    field(2, 0, varint(isFloat ? 1n : 7n)),
    text(8, name),
    field(9, 2, bytes),
  )
}

function info(random: Random, name: string): Uint8Array {
  const dims = random.times(4, () =>
    random.once(4)
      ? text(2, random.pick(['N', 'T', '']))
      : field(1, 0, varint(random.once(20) ? random.number() : BigInt(random.pick(WEIGHT_EXTENTS)))),
  )
  const shape = joined(...dims.map((dim) => field(1, 2, dim)))
  const dtype = BigInt(random.pick([1, 1, 1, 6, 7, 9, 10]))
  const hasShape = !random.once(30)
  const tensor = joined(field(1, 0, varint(dtype)), ...(hasShape ? [field(2, 2, shape)] : []))
  const type = random.once(40) ? field(4, 2, field(1, 2, field(1, 2, tensor))) : field(1, 2, tensor)
  return joined(text(1, name), ...(random.once(60) ? [] : [field(2, 2, type)]))
}

function text(number: number, value: string | Uint8Array): Uint8Array {
  return field(number, 2, typeof value === 'string' ? Buffer.from(value) : value)
}

/** Never damaged: of a hundred fields nearly always one would be. */
function field(number: number, wireType: number, value: Uint8Array | readonly number[]): Uint8Array {
  const length = wireType === 2 ? varint(BigInt(value.length)) : []
  return joined(varint(BigInt(number * 8 + wireType)), length, value)
}
