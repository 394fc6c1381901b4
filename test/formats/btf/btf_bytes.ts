/** Builds BTF files byte by byte, independently of the writer under test, and joins a plan into bytes. */
import type { Level } from '../../../lib/errors.js'
import type { Limits, ReadOptions, WritePlan } from '../../../lib/formats/format.js'

/** Options for a reader of a single file, without siblings. */
export function readOptions(level: Level, limits: Limits = {}): ReadOptions {
  return { level, limits, sibling: () => Promise.reject(new Error('BTF has no other files')) }
}

export type Field = { u64: bigint | number } | { bytes: readonly number[] } | { data: Uint8Array }

export const u64 = (value: bigint | number): Field => ({ u64: value })
export const raw = (...bytes: number[]): Field => ({ bytes })
export const data = (array: ArrayBufferView): Field => ({
  data: new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
})

/** Concatenates fields. */
export function joinFields(...fields: Field[]): Uint8Array {
  const chunks = fields.map((field) => {
    if ('bytes' in field) return Uint8Array.from(field.bytes)
    if ('data' in field) return field.data
    const view = new DataView(new ArrayBuffer(8))
    view.setBigUint64(0, BigInt.asUintN(64, BigInt(field.u64)), true)
    return new Uint8Array(view.buffer)
  })
  return new Uint8Array(Buffer.concat(chunks))
}

export interface DenseRecord {
  dtype?: number
  layout?: number
  reserved?: readonly number[]
  dims: readonly (number | bigint)[]
  data?: ArrayBufferView
}

/** Header, dimensions, data; no padding. */
export function denseRecord({
  dtype = 2,
  layout = 0,
  reserved,
  dims,
  data: values,
}: DenseRecord): Uint8Array {
  return joinFields(
    u64(dims.length),
    raw(dtype, layout, ...(reserved ?? [0, 0, 0, 0, 0, 0])),
    ...dims.map(u64),
    ...(values ? [data(values)] : []),
  )
}

export interface CooRecord {
  dtype?: number
  layout?: number
  dims: readonly (number | bigint)[]
  /** Default: the number of index rows and the rank. */
  indexDims?: readonly [number | bigint, number | bigint]
  indices: readonly (readonly (number | bigint)[])[]
  valueCount?: number | bigint
  values: ArrayBufferView
}

export function cooRecord(record: CooRecord): Uint8Array {
  const { dtype = 4, layout = 1, dims, indices, values } = record
  const [entries, rank] = record.indexDims ?? [indices.length, dims.length]
  return joinFields(
    u64(dims.length),
    raw(dtype, layout, 0, 0, 0, 0, 0, 0),
    ...dims.map(u64),
    u64(entries),
    u64(rank),
    ...indices.flat().map(u64),
    u64(record.valueCount ?? indices.length),
    data(values),
  )
}

/** A file of the records as TFRT writes it: table, records padded to 8 bytes. */
export function btfFile(...records: Uint8Array[]): Uint8Array {
  const padded = records.map((record) => joinFields(data(record), raw(...Array(-record.length & 7).fill(0))))
  let position = 8 + 8 * records.length
  const offsets = padded.map((record) => {
    const at = position
    position += record.length
    return at
  })
  return joinFields(u64(records.length), ...offsets.map(u64), ...padded.map(data))
}

/** The two tensors of the worked example of a sparse record: 272 bytes. */
export function sheetExample(): Uint8Array {
  return btfFile(
    denseRecord({ dtype: 0, dims: [3, 5], data: Int8Array.from({ length: 15 }, (_, i) => i) }),
    cooRecord({
      dtype: 3,
      dims: [2, 4],
      indices: [
        [0, 1],
        [0, 2],
        [0, 3],
        [1, 1],
        [1, 2],
        [1, 3],
      ],
      values: BigInt64Array.of(1n, 2n, 3n, 5n, 6n, 7n),
    }),
  )
}

/** The bytes of a planned file. */
export async function bytesOfPlan(plan: WritePlan): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for (const segment of plan.segments) {
    if (segment.kind === 'bytes') chunks.push(segment.bytes)
    else if (segment.kind === 'tensor') chunks.push(await segment.tensor.bytes())
    else if (segment.kind === 'computed') chunks.push(await segment.compute(undefined))
    else chunks.push(await segment.source.read(segment.start, segment.end))
  }
  const bytes = new Uint8Array(Buffer.concat(chunks))
  if (bytes.byteLength !== plan.byteLength) {
    throw new Error(`the plan promises ${plan.byteLength} bytes and gives ${bytes.byteLength}`)
  }
  return bytes
}
