/** Builds GGUF files byte by byte, independently of the writer under test. */
import { MemorySource } from '../../../lib/bytes/memory.js'
import { type Level, TileworkError } from '../../../lib/errors.js'
import type { Limits, ReadOptions } from '../../../lib/formats/format.js'

export type Number64 = number | bigint

export interface InfoFields {
  readonly name: string | Uint8Array
  /** Fastest first. */
  readonly dims: readonly Number64[]
  readonly type: number
  readonly offset: Number64
  /** Number of dims that the info says. */
  readonly rank?: number
}

export interface FileFields {
  readonly version?: number
  readonly isBigEndian?: boolean
  /** Encoded keys: see `key`. */
  readonly keys?: readonly Uint8Array[]
  readonly infos?: readonly InfoFields[]
  readonly data?: Uint8Array
  readonly alignment?: number
  readonly tensorCount?: Number64
  readonly keyCount?: Number64
}

/** Encodes numbers and texts in one byte order; version 1 has lengths of 32 bits. */
export class Encoder {
  constructor(
    readonly isBigEndian = false,
    readonly isOld = false,
  ) {}

  number(value: Number64, bytes: number): Buffer {
    const buffer = Buffer.alloc(8)
    buffer.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)))
    const number = buffer.subarray(0, bytes)
    return this.isBigEndian ? Buffer.from(number).reverse() : number
  }

  size(value: Number64): Buffer {
    return this.number(value, this.isOld ? 4 : 8)
  }

  text(text: string | Uint8Array, length?: Number64): Buffer {
    const bytes = Buffer.from(text)
    return Buffer.concat([this.size(length ?? bytes.length), bytes])
  }

  /** @param value - encoded */
  key(name: string | Uint8Array, type: number, value: Uint8Array): Buffer {
    return Buffer.concat([this.text(name), this.number(type, 4), value])
  }

  array(items: number, values: readonly Uint8Array[], count?: Number64): Buffer {
    return Buffer.concat([this.number(items, 4), this.size(count ?? values.length), ...values])
  }
}

const LITTLE = new Encoder()

export const ARCHITECTURE = LITTLE.key('general.architecture', 8, LITTLE.text('test'))

export function alignmentKey(alignment: number, type = 4): Buffer {
  return LITTLE.key('general.alignment', type, LITTLE.number(alignment, 4))
}

export function ggufFile({
  version = 3,
  isBigEndian = false,
  keys = [ARCHITECTURE],
  infos = [],
  data = new Uint8Array(0),
  alignment = 32,
  tensorCount = infos.length,
  keyCount = keys.length,
}: FileFields): Uint8Array {
  const to = new Encoder(isBigEndian, version === 1)
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    to.number(version, 4),
    to.size(tensorCount),
    to.size(keyCount),
    ...keys,
    ...infos.flatMap(({ name, dims, type, offset, rank = dims.length }) => [
      to.text(name),
      to.number(rank, 4),
      ...dims.map((dim) => to.size(dim)),
      to.number(type, 4),
      to.number(offset, 8),
    ]),
  ])
  const padding = infos.length === 0 ? 0 : (alignment - (header.length % alignment)) % alignment
  return new Uint8Array(Buffer.concat([header, Buffer.alloc(padding), data]))
}

export function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer)
}

/** One float32 tensor of 8 elements. */
export function oneTensor(fields: FileFields = {}): Uint8Array {
  const infos = [{ name: 'a', dims: [8], type: 0, offset: 0 }]
  return ggufFile({ infos, data: floats(0, 1, 2, 3, 4, 5, 6, 7), ...fields })
}

export function readOptions(
  level: Level = 'strict',
  folder: Readonly<Record<string, Uint8Array>> = {},
  limits: Limits = {},
): ReadOptions {
  const sibling: ReadOptions['sibling'] = async (name) => {
    if (Object.hasOwn(folder, name)) return new MemorySource(folder[name]!, name)
    throw new TileworkError('ERR_IO', `${name}: ENOENT.`)
  }
  return { level, limits, sibling }
}
