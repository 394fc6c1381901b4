/** GGUF by its grammar: a header of any version and byte order, keys with values of every type, infos, data. */
import { joined, le, type Random } from '../random.js'

/** ggml's number of a type, the elements of its blocks and their bytes. */
// biome-ignore format: a table is read by its columns.
const TYPES: readonly (readonly [number: number, elements: number, bytes: number])[] = [
  [0, 1, 4], [1, 1, 2], [30, 1, 2], [28, 1, 8], [24, 1, 1], [25, 1, 2], [26, 1, 4], [27, 1, 8],
  [2, 32, 18], [3, 32, 20], [6, 32, 22], [7, 32, 24], [8, 32, 34], [10, 256, 84], [11, 256, 110],
  [12, 256, 144], [13, 256, 176], [14, 256, 210], [15, 256, 292], [16, 256, 66], [17, 256, 74],
  [18, 256, 98], [19, 256, 50], [20, 32, 18], [21, 256, 110], [22, 256, 82], [23, 256, 136],
  [29, 256, 56], [34, 256, 54], [35, 256, 66], [39, 32, 17], [40, 64, 36], [41, 128, 18], [42, 64, 18],
]

const KEYS = ['general.architecture', 'tokenizer.ggml.tokens', 'split.no', 'split.count']

const STRING = 8
const ARRAY = 9
/** Bytes of a value by the number of its type; 0 for texts and arrays. */
const VALUE_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8]

/** Writes numbers in the byte order and with the widths of a file. */
class Form {
  readonly #isLittleEndian: boolean
  readonly #sizeBytes: number

  constructor(isLittleEndian: boolean, isOld: boolean) {
    this.#isLittleEndian = isLittleEndian
    this.#sizeBytes = isOld ? 4 : 8
  }

  number(value: bigint | number, width: number): Uint8Array {
    const bytes = le(value, width)
    return this.#isLittleEndian ? bytes : bytes.reverse()
  }

  size(value: bigint | number): Uint8Array {
    return this.number(value, this.#sizeBytes)
  }

  text(random: Random, text: string): Uint8Array {
    const bytes = random.once(30) ? random.bytes(8) : Buffer.from(text)
    return joined(this.size(random.once(40) ? random.number(40) : bytes.length), bytes)
  }
}

export function gguf(random: Random): Uint8Array {
  const version = random.once(30) ? Number(random.number() % 256n) : random.pick([1, 2, 3, 3, 3, 3])
  const form = new Form(!random.once(8), version === 1)
  const alignment = random.once(5) ? random.pick([1, 8, 16, 64, random.pick([0, 3, 2 ** 31])]) : 32
  const keys = random.times(5, (index) =>
    joined(form.text(random, uniqueName(random, index, KEYS)), typedValue(random, form, 0)),
  )
  if (alignment !== 32)
    keys.push(joined(form.text(random, 'general.alignment'), form.number(4, 4), form.number(alignment, 4)))
  let end = 0
  const infos = random.times(4, (index) => {
    const name = uniqueName(random, index, ['blk', 'w'])
    const [info, bytes] = tensorInfo(random, form, name, random.once(15) ? random.number(99) : BigInt(end))
    end = aligned(end + bytes, alignment)
    return info
  })
  const counts = [infos.length, keys.length].map((count) =>
    form.size(random.once(40) ? random.number() : count),
  )
  const magic = Buffer.from(random.once(60) ? random.pick(['ggjt', 'GGML', 'gguf', '\0\0\0\0']) : 'GGUF')
  const header = joined(magic, form.number(version, 4), ...counts, ...keys, ...infos)
  const padding = aligned(header.length, alignment) - header.length + (random.once(20) ? 1 : 0)
  const data = new Uint8Array(random.once(10) ? random.below(end + 40) : end).map(() => random.below(256))
  return joined(header, new Uint8Array(padding), data)
}

function aligned(size: number, alignment: number): number {
  return alignment > 64 || alignment === 0 ? size : Math.ceil(size / alignment) * alignment
}

/** Mostly without equals: a key that is there twice ends the case. */
function uniqueName(random: Random, index: number, names: readonly string[]): string {
  const name = random.once(3) ? random.name() : random.pick(names)
  return random.once(12) ? name : `${name}.${index}`
}

function typedValue(random: Random, form: Form, depth: number): Uint8Array {
  const type = random.once(40) ? Number(random.number() % 2n ** 32n) : random.below(VALUE_BYTES.length)
  return joined(form.number(type, 4), value(random, form, type, depth))
}

function value(random: Random, form: Form, type: number, depth: number): Uint8Array {
  if (type === STRING) return form.text(random, random.name())
  if (type !== ARRAY) return form.number(random.number(256), VALUE_BYTES[type] ?? 4)
  // Deeper than the limit of readers now and then.
  const items = random.once(2 + 3 * depth) ? ARRAY : random.pick([4, 5, 6, 7, STRING, 10])
  const list = random.times(depth > 6 ? 0 : 4, () => value(random, form, items, depth + 1))
  return joined(form.number(items, 4), form.size(random.once(30) ? random.number() : list.length), ...list)
}

/** @returns an info, and the bytes of its data */
function tensorInfo(random: Random, form: Form, name: string, offset: bigint): [Uint8Array, number] {
  const [number, elements, bytes] = random.pick(TYPES)
  const dims = random.times(4, (axis) => BigInt(random.below(3) + 1) * BigInt(axis === 0 ? elements : 1))
  const size = dims.reduce((product, dim) => product * dim, 1n)
  if (random.once(15) && dims.length > 0) dims[random.below(dims.length)] = random.number()
  const info = joined(
    form.text(random, name),
    form.number(random.once(40) ? random.number() : dims.length, 4),
    ...dims.map((dim) => form.size(dim)),
    form.number(random.once(30) ? random.number(50) : number, 4),
    form.number(offset, 8),
  )
  return [info, Math.ceil((Number(size) / elements) * bytes)]
}
