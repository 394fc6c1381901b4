/** One composition of tensor operations, by the library and by the reference. */
import { join } from 'node:path'
import type * as Tilework from '../../lib/index.js'
import type { DenseTensor } from '../../lib/index.js'
import type { Random } from '../random.js'
import {
  BITS,
  type CaseDtype,
  concatenated,
  indexAt,
  type Plain,
  padded,
  sizeOf,
  sliced,
  stacked,
  storageOf,
  transposed,
} from './reference.js'

/** A tensor of the library and what it must hold. */
interface Pair {
  readonly tensor: DenseTensor
  readonly plain: Plain
  readonly dtype: CaseDtype
}

export interface Surroundings {
  readonly library: typeof Tilework
  /** For files. */
  readonly folder: string
  readonly maxBytes: number
}

const DTYPES = Object.keys(BITS) as CaseDtype[]
const FORMATS = ['npy', 'btf', 'safetensors', 'onnx'] as const

/** Shapes of up to 4 axes with log-uniform sizes. */
function shapeOf(random: Random, maxElements: number): number[] {
  const shape = Array.from({ length: 1 + random.below(4) }, () => 1 + random.below(random.once(4) ? 40 : 7))
  const target = 2 ** ((random.below(1000) / 1000) * Math.log2(maxElements))
  shape[random.below(shape.length)] = Math.max(1, Math.floor(target / (sizeOf(shape) / shape[0]!)))
  while (sizeOf(shape) > maxElements) {
    const axis = shape.indexOf(shape.reduce((one, other) => Math.max(one, other)))
    shape[axis] = Math.max(1, shape[axis]! >> 1)
  }
  return shape
}

const valueIn = (random: Random, [min, max]: readonly [number, number]): number =>
  min + random.below(max - min + 1)

function fresh(random: Random, dtype: CaseDtype, shape: readonly number[], { library }: Surroundings): Pair {
  const { range } = BITS[dtype]
  const values = Array.from({ length: sizeOf(shape) }, () => valueIn(random, range))
  const tensor = library.tensor(givenValues(dtype, values), { dtype, shape, name: 'w' }) as DenseTensor
  return { tensor, plain: { shape, values }, dtype }
}

/** Parts along an axis, by the library and by the reference. */
function joined(
  parts: readonly Pair[],
  axis: number,
  operation: typeof Tilework.concat,
  reference: (parts: readonly Plain[], axis: number) => Plain,
): Pair {
  const tensor = operation(
    parts.map((part) => part.tensor),
    { axis },
  )
  const plain = reference(
    parts.map((part) => part.plain),
    axis,
  )
  return { tensor, plain, dtype: parts[0]!.dtype }
}

function givenValues(dtype: CaseDtype, values: readonly number[]): readonly (number | bigint | boolean)[] {
  if (dtype === 'bool') return values.map(Boolean)
  return /int64/.test(dtype) ? values.map(BigInt) : values
}

type Step = (pair: Pair, random: Random, surroundings: Surroundings) => Pair | Promise<Pair>

const STEPS: Readonly<Record<string, Step>> = {
  slice: ({ tensor, plain, dtype }, random, { library }) => {
    const ranges = plain.shape.map((dim) => {
      const start = random.below(dim)
      return [start, start + 1 + random.below(dim - start), 1 + random.below(3)] as const
    })
    return { tensor: library.slice(tensor, ranges), plain: sliced(plain, ranges), dtype }
  },
  transpose: ({ tensor, plain, dtype }, random, { library }) => {
    const axes = plain.shape.map((_, axis) => axis)
    for (let axis = axes.length - 1; axis > 0; axis--) {
      const other = random.below(axis + 1)
      ;[axes[axis], axes[other]] = [axes[other]!, axes[axis]!]
    }
    return { tensor: library.transpose(tensor, axes), plain: transposed(plain, axes), dtype }
  },
  pad: ({ tensor, plain, dtype }, random, { library }) => {
    const widths = plain.shape.map(() => [random.below(3), random.below(3)] as const)
    const value = valueIn(random, BITS[dtype].range)
    const given = /int64/.test(dtype) ? BigInt(value) : value
    return {
      tensor: library.pad(tensor, widths, { value: given }),
      plain: padded(plain, widths, value),
      dtype,
    }
  },
  concat: (pair, random, surroundings) => {
    const axis = random.below(pair.plain.shape.length)
    const shape = pair.plain.shape.with(axis, 1 + random.below(4))
    const parts = [pair, fresh(random, pair.dtype, shape, surroundings)]
    if (random.once(2)) parts.reverse()
    return joined(parts, axis, surroundings.library.concat, concatenated)
  },
  stack: (pair, random, surroundings) => {
    const axis = random.below(pair.plain.shape.length + 1)
    const parts = [pair, fresh(random, pair.dtype, pair.plain.shape, surroundings), pair]
    return joined(parts, axis, surroundings.library.stack, stacked)
  },
  split: ({ tensor, plain, dtype }, random, { library }) => {
    const axis = random.below(plain.shape.length)
    const dim = plain.shape[axis]!
    const at = random.below(dim + 1)
    const isFirst = at === dim || (at > 0 && random.once(2))
    const found = library.split(tensor, [at], { axis })[isFirst ? 0 : 1]!
    const ranges = plain.shape.map((each, other) =>
      other !== axis ? ([0, each, 1] as const) : isFirst ? ([0, at, 1] as const) : ([at, dim, 1] as const),
    )
    return { tensor: found, plain: sliced(plain, ranges), dtype }
  },
  cast: ({ tensor, plain }, random, { library }) => {
    const dtype = exactType(plain, random)
    return { tensor: library.cast(tensor, dtype), plain, dtype }
  },
  quantize: ({ tensor, plain, dtype }, random, { library }) => {
    if (!/^b?float(16|32|64)$/.test(dtype)) return { tensor, plain, dtype }
    const zeroPoint = random.below(20)
    const shifted = { shape: plain.shape, values: plain.values.map((value) => value / 2 + zeroPoint) }
    // Halves are rounded to even: only whole numbers prove a place.
    if (shifted.values.some((value) => !Number.isInteger(value) || value < -128 || value > 127))
      return { tensor, plain, dtype }
    return {
      tensor: library.quantize(tensor, 'int8', { scale: 2, zeroPoint }),
      plain: shifted,
      dtype: 'int8',
    }
  },
  reorder: ({ tensor, plain, dtype }, random, { library }) => {
    return { tensor: library.reorder(tensor, random.pick(library.LAYOUT_NAMES)), plain, dtype }
  },
  asLayout: ({ tensor, plain, dtype }, random, { library }) => {
    const layout = library.parseLayout(random.pick(library.LAYOUT_NAMES))
    const { digits, elements } = layout.storage(plain.shape, { dtype })
    if (!digits || elements > 8 * plain.values.length + 4096) return { tensor, plain, dtype }
    const slots = new Array<number>(elements).fill(0)
    for (const [at, value] of plain.values.entries())
      slots[layout.offsetOf(plain.shape, indexAt(at, plain.shape), { dtype })] = value
    const stored = library.tensor(givenValues(dtype, slots), {
      dtype,
      shape: digits.map(({ radix }) => radix),
    })
    return { tensor: library.asLayout(stored as DenseTensor, layout, plain.shape), plain, dtype }
  },
  file: async ({ tensor, plain, dtype }, random, { library, folder }) => {
    const path = join(folder, `${random.below(1e9)}.${random.pick(FORMATS)}`)
    await library.save(path, [tensor])
    const file = await library.open(path, { mode: random.pick(['map', 'read']) })
    const stored = file.tensors.at(0) as DenseTensor
    const isSame =
      stored.shape.length === plain.shape.length &&
      stored.shape.every((dim, axis) => dim === plain.shape[axis])
    return isSame && stored.dtype === dtype ? { tensor: stored, plain, dtype } : { tensor, plain, dtype }
  },
  threads: (pair, random, { library }) => {
    library.setThreads(1 + random.below(3))
    return pair
  },
}

/** A type that represents every value: the cast is exact. */
function exactType({ values }: Plain, random: Random): CaseDtype {
  let [min, max] = [0, 0]
  for (const value of values) [min, max] = [Math.min(min, value), Math.max(max, value)]
  return random.pick(DTYPES.filter((name) => BITS[name].range[0] <= min && max <= BITS[name].range[1]))
}

/**
 * Composes operations and compares all bits of the storage, holes included, also copied into memory that is not aligned.
 *
 * @returns the names of the steps, and how many were refused
 * @throws Error for a difference
 */
export async function runCase(
  random: Random,
  surroundings: Surroundings,
): Promise<{ readonly steps: string[]; readonly refused: number }> {
  const { library, maxBytes } = surroundings
  const first = random.pick(DTYPES)
  const maxElements = Math.max(1, Math.floor((maxBytes * 8) / BITS[first].bits))
  let pair = fresh(random, first, shapeOf(random, maxElements), surroundings)
  const steps: string[] = [`${first} [${pair.plain.shape.join(', ')}]`]
  let refused = 0
  for (let count = 1 + random.below(6); count > 0; count--) {
    const name = random.pick(Object.keys(STEPS))
    try {
      const next = await STEPS[name]!(pair, random, surroundings)
      if (sizeOf(next.plain.shape) > 4 * maxElements) continue
      await next.tensor.bytes()
      pair = next
      steps.push(`${name} > ${pair.dtype} [${pair.plain.shape.join(', ')}] ${pair.tensor.storage.layout}`)
    } catch (error) {
      if (!(error instanceof library.TileworkError))
        throw new Error(`${steps.join('; ')}; ${name}`, { cause: error })
      refused++
    }
  }
  await compare(pair, steps, random, library)
  return { steps, refused }
}

async function compare(
  { tensor, plain, dtype }: Pair,
  steps: readonly string[],
  random: Random,
  library: typeof Tilework,
): Promise<void> {
  const fail = (what: string): never => {
    throw new Error(`${what} after ${steps.join('; ')}`)
  }
  if (tensor.dtype !== dtype || tensor.shape.join() !== plain.shape.join())
    fail(`${tensor.dtype} [${tensor.shape.join(', ')}]`)
  const { layout: name, byteLength } = tensor.storage
  const bytes = await tensor.bytes()
  // Elements of 2 and 6 bits keep the layout in which they are stored.
  const isFixed = [2, 6].includes(BITS[dtype].bits) && name !== 'row_major'
  const row = name === 'row_major' || isFixed ? tensor : library.reorder(tensor, 'row_major')
  const rowBytes = storageOf(dtype, plain.values.length, plain.values.entries())
  if (!isFixed && Buffer.compare(await row.bytes(), rowBytes) !== 0) fail('row-major bytes differ')
  const layout = library.parseLayout(name)
  const isPadded = [...tensor.storage.lower, ...tensor.storage.upper].some((width) => width > 0)
  if (!isPadded) {
    const { elements } = layout.storage(plain.shape, { dtype })
    const places = plain.values.map(
      (value, at) => [layout.offsetOf(plain.shape, indexAt(at, plain.shape), { dtype }), value] as const,
    )
    if (Buffer.compare(bytes, storageOf(dtype, elements, places)) !== 0) fail(`bytes in ${name} differ`)
  }
  const shift = random.below(8)
  const memory = new Uint8Array(byteLength + 8).fill(0xee)
  await tensor.copyTo(memory.subarray(shift, shift + byteLength))
  if (Buffer.compare(memory.subarray(shift, shift + byteLength), bytes) !== 0)
    fail('the misaligned copy differs')
  const beside = [...memory.subarray(0, shift), ...memory.subarray(shift + byteLength)]
  if (beside.some((byte) => byte !== 0xee)) fail('bytes beside the misaligned copy were written')
}
