/** ONNX by its grammar: the protobuf messages of a model, with the fields that the schema gives each, in any order. */
import { joined, type Random } from '../random.js'

type Field = readonly [
  number: number,
  kind: 'int' | 'text' | 'bytes' | 'float' | 'packed' | 'dims' | MessageName,
]
type MessageName = keyof typeof MESSAGES

/** Field numbers of onnx.proto3, of the messages that a reader enters. */
const MESSAGES = {
  Model: [
    [1, 'int'],
    [2, 'text'],
    [3, 'text'],
    [4, 'text'],
    [5, 'int'],
    [6, 'text'],
    [7, 'Graph'],
    [8, 'Opset'],
    [14, 'Entry'],
    [20, 'Training'],
    [25, 'Function'],
  ],
  Opset: [
    [1, 'text'],
    [2, 'int'],
  ],
  Entry: [
    [1, 'text'],
    [2, 'text'],
  ],
  Training: [
    [1, 'Graph'],
    [2, 'Graph'],
    [3, 'Entry'],
    [4, 'Entry'],
  ],
  Graph: [
    [1, 'Node'],
    [2, 'text'],
    [5, 'Tensor'],
    [10, 'text'],
    [11, 'Info'],
    [12, 'Info'],
    [13, 'Info'],
    [14, 'Annotation'],
    [15, 'Sparse'],
    [16, 'Entry'],
  ],
  Node: [
    [1, 'text'],
    [2, 'text'],
    [3, 'text'],
    [4, 'text'],
    [5, 'Attribute'],
    [6, 'text'],
    [7, 'text'],
    [8, 'text'],
    [9, 'Entry'],
  ],
  Attribute: [
    [1, 'text'],
    [2, 'float'],
    [3, 'int'],
    [4, 'bytes'],
    [5, 'Tensor'],
    [6, 'Graph'],
    [7, 'packed'],
    [8, 'packed'],
    [9, 'bytes'],
    [10, 'Tensor'],
    [11, 'Graph'],
    [13, 'text'],
    [20, 'int'],
    [22, 'Sparse'],
    [14, 'Type'],
  ],
  Tensor: [
    [1, 'dims'],
    [2, 'int'],
    [4, 'packed'],
    [5, 'packed'],
    [6, 'bytes'],
    [7, 'packed'],
    [8, 'text'],
    [9, 'bytes'],
    [10, 'packed'],
    [11, 'packed'],
    [12, 'text'],
    [13, 'Entry'],
    [14, 'int'],
    [16, 'Entry'],
  ],
  Sparse: [
    [1, 'Tensor'],
    [2, 'Tensor'],
    [3, 'dims'],
  ],
  Info: [
    [1, 'text'],
    [2, 'Type'],
    [3, 'text'],
    [4, 'Entry'],
  ],
  Type: [
    [1, 'TensorType'],
    [4, 'Sequence'],
    [5, 'Map'],
    [6, 'text'],
    [8, 'TensorType'],
    [9, 'Sequence'],
  ],
  TensorType: [
    [1, 'int'],
    [2, 'Shape'],
  ],
  Sequence: [[1, 'Type']],
  Map: [
    [1, 'int'],
    [2, 'Type'],
  ],
  Shape: [[1, 'Dimension']],
  Dimension: [
    [1, 'int'],
    [2, 'text'],
    [3, 'text'],
  ],
  Annotation: [
    [1, 'text'],
    [2, 'Entry'],
  ],
  Function: [
    [1, 'text'],
    [4, 'text'],
    [5, 'text'],
    [6, 'text'],
    [7, 'Node'],
    [8, 'text'],
    [9, 'Opset'],
    [10, 'text'],
    [11, 'Attribute'],
    [12, 'Info'],
    [13, 'text'],
    [14, 'Entry'],
  ],
} as const

export function onnx(random: Random): Uint8Array {
  // What every model has; without it most cases would end at the first check.
  const head = random.once(15)
    ? []
    : [field(random, 1, 0, varint(8n)), field(random, 8, 2, field(random, 2, 0, varint(17n)))]
  const tail = random.once(15) ? [] : [field(random, 7, 2, message(random, 'Graph', 4))]
  return joined(...head, message(random, 'Model', 3), ...tail)
}

function message(random: Random, name: MessageName, depth: number): Uint8Array {
  if (name === 'Tensor' && !random.once(4)) return tensor(random)
  const fields = MESSAGES[name] as readonly Field[]
  const parts = random.times(depth > 0 ? 6 : 1, () => {
    const [number, kind] = random.pick(fields)
    return fieldOf(random, number, kind, depth)
  })
  if (random.once(30)) parts.push(field(random, 1 + random.below(40), random.below(8), random.bytes(9)))
  return joined(...parts)
}

function fieldOf(random: Random, number: number, kind: Field[1], depth: number): Uint8Array {
  switch (kind) {
    case 'int':
      return field(random, number, 0, varint(random.number(20)))
    case 'text':
      return field(
        random,
        number,
        2,
        random.once(20)
          ? random.bytes(4)
          : Buffer.from(random.once(3) ? random.pick(OPERATORS) : random.name()),
      )
    case 'bytes':
      return field(random, number, 2, random.bytes(16))
    case 'float':
      return field(random, number, 5, random.bytes(4))
    case 'packed':
      return random.once(3)
        ? field(random, number, random.pick([0, 1, 5]), varint(random.number()))
        : field(random, number, 2, random.bytes(16))
    case 'dims':
      return random.once(2)
        ? field(random, number, 0, varint(random.number(4)))
        : field(random, number, 2, joined(...random.times(3, () => varint(random.number(4)))))
    default:
      return depth > 0 ? field(random, number, 2, message(random, kind, depth - 1)) : new Uint8Array(0)
  }
}

const OPERATORS = [
  'Relu',
  'Constant',
  'If',
  'Loop',
  'Identity',
  'ai.onnx',
  'location',
  'offset',
  'length',
  'value',
  'then_branch',
  'weights.bin',
  '../weights.bin',
  'SCALE_TENSOR',
  '4',
  '0',
]

const WIDTHS: Readonly<Record<number, number>> = {
  1: 4,
  2: 1,
  3: 1,
  4: 2,
  5: 2,
  6: 4,
  7: 8,
  9: 1,
  10: 2,
  11: 8,
  12: 4,
  13: 8,
  14: 8,
  15: 16,
  16: 2,
  17: 1,
  21: 0.5,
  22: 0.5,
}

/** A tensor whose values fit its shape, or nearly. */
function tensor(random: Random): Uint8Array {
  const dtype = random.once(10) ? random.below(30) : Number(random.pick(Object.keys(WIDTHS)))
  const dims = random.times(3, () => (random.once(15) ? random.number() : BigInt(random.below(4))))
  const elements = Number(
    BigInt.asUintN(
      8,
      dims.reduce((product, dim) => product * dim, 1n),
    ),
  )
  const size = Math.ceil(elements * (WIDTHS[dtype] ?? 1))
  const parts = [
    ...dims.map((dim) => field(random, 1, 0, varint(dim))),
    field(random, 2, 0, varint(BigInt(dtype))),
  ]
  parts.push(field(random, 8, 2, Buffer.from(random.name())))
  if (dtype === 8) parts.push(...Array.from({ length: elements }, () => field(random, 6, 2, random.bytes(4))))
  else if (random.once(5))
    parts.push(
      field(
        random,
        5,
        2,
        joined(...Array.from({ length: elements }, () => varint(BigInt(random.below(300))))),
      ),
    )
  else
    parts.push(field(random, 9, 2, new Uint8Array(random.once(12) ? random.below(size + 9) : size).fill(1)))
  if (random.once(8))
    parts.push(
      field(random, 14, 0, [1]),
      field(
        random,
        13,
        2,
        joined(
          field(random, 1, 2, Buffer.from('location')),
          field(random, 2, 2, Buffer.from(random.pick(OPERATORS))),
        ),
      ),
    )
  if (random.once(5)) parts.reverse()
  return joined(...parts)
}

function field(
  random: Random,
  number: number,
  wireType: number,
  value: Uint8Array | readonly number[],
): Uint8Array {
  const tag = varint(BigInt(number * 8 + (random.once(200) ? random.below(8) : wireType)))
  if (wireType !== 2) return joined(tag, value)
  const length = random.once(150) ? random.number(40) : BigInt(value.length)
  return joined(tag, random.once(100) ? padded(length) : varint(length), value)
}

export function varint(value: bigint): Uint8Array {
  const bytes: number[] = []
  let remaining = BigInt.asUintN(64, value)
  for (; remaining >= 128n; remaining >>= 7n) bytes.push(Number(remaining & 127n) | 128)
  return Uint8Array.from([...bytes, Number(remaining)])
}

/** A longer spelling of the same number, which protobuf allows. */
function padded(value: bigint): Uint8Array {
  const bytes = varint(value)
  bytes[bytes.length - 1]! |= 128
  return joined(bytes, [128, 0])
}
