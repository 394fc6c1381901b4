/** Builds npy files byte by byte, independently of the writer under test, and joins a plan into bytes. */
import type { ByteSource } from '../../../lib/bytes/source.js'
import { type Level, TileworkError } from '../../../lib/errors.js'
import type { ReadOptions, WritePlan } from '../../../lib/formats/format.js'

export const bytesOf = (array: ArrayBufferView): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

export interface ArrayFields {
  readonly descr?: string
  readonly fortran?: boolean
  readonly shape?: readonly (number | bigint)[]
  readonly data?: ArrayBufferView
  /** The whole literal; by default made of the fields above. */
  readonly text?: string
  readonly version?: readonly [number, number]
  /** Default: spaces and a line feed up to a multiple of 64. */
  readonly ending?: string
  /** Default: the length of the text. */
  readonly textBytes?: number
}

export function npyBytes(fields: ArrayFields = {}): Uint8Array {
  const { descr = '<i4', fortran = false, shape = [2], data = Int32Array.of(1, 2), version = [1, 0] } = fields
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(', ')
  const text =
    fields.text ??
    `{'descr': '${descr}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': (${extents}), }`
  const lengthBytes = version[0] === 1 ? 2 : 4
  const encoded = Buffer.from(text, version[0] === 3 ? 'utf8' : 'latin1')
  const used = 8 + lengthBytes + encoded.length + 1
  const ending = Buffer.from(fields.ending ?? `${' '.repeat(-used & 63)}\n`)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(fields.textBytes ?? encoded.length + ending.length)
  const prefix = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version[0], version[1])
  const chunks = [prefix, length.subarray(0, lengthBytes), encoded, ending, bytesOf(data)]
  return new Uint8Array(Buffer.concat(chunks))
}

/** The bytes of a planned file. */
export async function bytesOfPlan(plan: WritePlan): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for (const segment of plan.segments) {
    if (segment.kind === 'bytes') chunks.push(segment.bytes)
    else if (segment.kind === 'tensor') chunks.push(await segment.tensor.bytes())
    else if (segment.kind === 'computed') {
      const bytes = await segment.compute(undefined)
      if (bytes.byteLength !== segment.byteLength) throw new Error('a computed segment has another length')
      chunks.push(bytes)
    } else chunks.push(await segment.source.read(segment.start, segment.end))
  }
  const bytes = new Uint8Array(Buffer.concat(chunks))
  if (bytes.byteLength !== plan.byteLength) {
    throw new Error(`the plan promises ${plan.byteLength} bytes and gives ${bytes.byteLength}`)
  }
  return bytes
}

export const readOptions = (level: Level, limits: ReadOptions['limits'] = {}): ReadOptions => ({
  level,
  limits,
  sibling: async (): Promise<ByteSource> => {
    throw new TileworkError('ERR_UNSUPPORTED', 'The source has no folder.')
  },
})
