/** Checkpoints of PyTorch by their grammar: pickles of plain data, tensors and what is refused, in archives and in the old stream. */
import {
  call,
  dict,
  double,
  FALSE,
  get,
  global,
  int,
  legacy,
  list,
  NONE,
  type Part,
  pickle,
  put,
  storage,
  type TensorFields,
  TRUE,
  tensor,
  text,
  tuple,
} from '../../test/formats/pytorch/checkpoint_bytes.js'
import { damaged, joined, type Random } from '../random.js'
import { zip } from './npy.js'

const CLASSES: Readonly<Record<string, number>> = {
  ...{ FloatStorage: 4, DoubleStorage: 8, HalfStorage: 2, BFloat16Storage: 2, LongStorage: 8, IntStorage: 4 },
  ...{
    ShortStorage: 2,
    CharStorage: 1,
    ByteStorage: 1,
    BoolStorage: 1,
    ComplexFloatStorage: 8,
    UntypedStorage: 1,
  },
}

/** What pickles name; only some of it is data. */
const GLOBALS = [
  ...[
    'collections OrderedDict',
    'torch.nn.parameter Parameter',
    'torch._utils _rebuild_parameter',
    'torch Size',
  ],
  ...[
    'torch device',
    'torch float16',
    'os system',
    'builtins eval',
    '__builtin__ set',
    'numpy dtype',
    'a.b C',
  ],
]

/** Storages by key, with their class and their number of elements. */
type Storages = ReadonlyMap<string, readonly [storageClass: string, elements: number]>

export function pytorch(random: Random): Uint8Array {
  const storages: Storages = new Map(
    random.times(3, (index) => [
      String(index),
      [random.pick(Object.keys(CLASSES)), random.below(30)] as const,
    ]),
  )
  const content = damaged(random, pickle(state(random, storages)))
  const bytes = [...storages].map(([key, [storageClass, elements]]) => {
    const length = elements * CLASSES[storageClass]!
    return [
      key,
      new Uint8Array(random.once(12) ? random.below(length + 9) : length).fill(random.below(256)),
    ] as const
  })
  if (random.once(5)) {
    const stored = bytes.map(
      ([key, data]) => [key, [random.once(20) ? 99 : storages.get(key)![1], data]] as const,
    )
    return legacy(content, Object.fromEntries(stored))
  }
  const folder = random.once(6) ? random.name() : 'archive'
  const members = [
    { name: `${folder}/data.pkl`, content },
    { name: `${folder}/byteorder`, content: Buffer.from(random.once(8) ? 'big' : 'little') },
    ...bytes.map(([key, data]) => ({ name: `${folder}/data/${key}`, content: data })),
    { name: `${folder}/version`, content: Buffer.from('3\n') },
  ]
  if (random.once(8)) members.splice(random.below(members.length), 1)
  if (random.once(12)) members.push({ name: `${folder}/constants.pkl`, content: pickle(tuple()) })
  return zip(random, members, 8)
}

function state(random: Random, storages: Storages): Part {
  const entries = random.times(5, () => [text(random.name()), value(random, storages, 0)] as const)
  return random.once(6) ? value(random, storages, 0) : dict(...entries)
}

function value(random: Random, storages: Storages, depth: number): Part {
  const inner = () => (depth > 5 ? NONE : value(random, storages, depth + 1))
  if (random.once(3 + depth)) return rebuilt(random, storages)
  switch (random.below(14)) {
    case 0:
      return int(random.number() - (random.once(2) ? 2n ** 62n : 0n))
    case 1:
      return double(random.pick([0, -0, 1.5, Number.NaN, Number.POSITIVE_INFINITY]))
    case 2:
      return text(random.name())
    case 3:
      return random.pick([NONE, TRUE, FALSE])
    case 4:
      return tuple(...random.times(3, inner))
    case 5:
      return list(...random.times(3, inner))
    case 6:
      return dict(
        ...random.times(3, () => [random.once(5) ? inner() : text(random.name()), inner()] as const),
      )
    case 7:
      return joined(inner(), put(random.below(4)))
    case 8:
      return get(random.below(4))
    case 9: {
      const [module, name] = random.pick(GLOBALS).split(' ') as [string, string]
      return random.once(2) ? global(module, name) : call(global(module, name), ...random.times(3, inner))
    }
    case 10:
      // Protocol 4: short text, memoize, frame.
      return joined([0x8c, 1, 0x61, 0x94])
    case 11:
      // BUILD sets the state of an object.
      return joined(inner(), inner(), [0x62])
    case 12:
      return random.bytes(4)
    default:
      return inner()
  }
}

function rebuilt(random: Random, storages: Storages): Part {
  const key =
    random.once(15) || storages.size === 0 ? String(random.below(5)) : random.pick([...storages.keys()])
  const [storageClass, elements] = storages.get(key) ?? ['FloatStorage', 3]
  const shape = random.times(3, () => (random.once(20) ? random.number() : BigInt(random.below(4))))
  const strides = shape.map((_, axis) =>
    random.once(12) ? random.number(20) : shape.slice(axis + 1).reduce((product, dim) => product * dim, 1n),
  )
  const fields: TensorFields = {
    ...{ storageClass: random.once(30) ? 'OddStorage' : storageClass, key, shape },
    elements: random.once(20) ? random.below(40) : elements,
    strides: random.once(20) ? strides.slice(1) : strides,
    offset: random.once(6) ? random.number(9) : 0,
    requiresGrad: random.once(2),
  }
  return random.once(12) ? storage(fields) : tensor(fields)
}
