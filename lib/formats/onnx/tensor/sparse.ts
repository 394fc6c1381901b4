/**
 * Reads SparseTensorProtos. Values and indices are TensorProtos of any storage.
 *
 * Indices are rows of coordinates, or one linear (row-major) index per entry; both become the rows of a coordinate list.
 */
import { checkRange } from '../../../bytes/check_range.js'
import type { ByteSource } from '../../../bytes/source.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { CooTensor } from '../../../tensor/sparse.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { eachField, LENGTH, type Steps, VARINT, VARINT_BYTES, type WireCursor } from '../protobuf/wire.js'
import { FORMAT_NAME, fieldNumber } from '../schema.js'
import { addDim, type TensorHeader, walkTensor } from './header.js'
import { type CheckedTensor, checkTensor, type TensorPlace } from './rules.js'

const SPARSE = {
  values: fieldNumber('SparseTensorProto', 'values'),
  indices: fieldNumber('SparseTensorProto', 'indices'),
  dims: fieldNumber('SparseTensorProto', 'dims'),
}

const INDEX_BYTES = 8

/**
 * Rank limit for linear indices. 64 bits address at most 63 axes of two elements; further axes have extent 1 but cost
 * eight bytes per entry when the index becomes a row.
 */
const MAX_LINEAR_AXES = 64

/** A nested TensorProto and its range in the file. */
export interface TensorPart {
  readonly header: TensorHeader
  readonly start: number
  readonly end: number
}

export interface SparseHeader {
  readonly values?: TensorPart
  readonly indices?: TensorPart
  readonly dims: readonly (number | bigint)[]
  /** A part that occurs more than once. Protobuf merges the occurrences; no writer makes them. */
  readonly repeated?: 'values' | 'indices'
}

/** A part that passed its checks. */
export interface CheckedPart extends TensorPart {
  readonly checked: CheckedTensor
}

export interface CheckedSparse {
  readonly name: string
  readonly dtype: Exclude<Dtype, 'string'>
  readonly shape: readonly number[]
  readonly entryCount: number
  /** Whether indices are linear. */
  readonly isLinear: boolean
  readonly values: CheckedPart
  /** Absent for a tensor without entries. */
  readonly indices?: CheckedPart
}

/** Reads the SparseTensorProto from the cursor's position to `end`. @throws FileFault */
export function* walkSparse(cursor: WireCursor, end: number): Steps<SparseHeader> {
  let values: TensorPart | undefined
  let indices: TensorPart | undefined
  let repeated: SparseHeader['repeated']
  const dims: (number | bigint)[] = []
  function* part(start: number, partEnd: number): Steps<TensorPart> {
    cursor.position = start
    return { header: yield* walkTensor(cursor, partEnd), start, end: partEnd }
  }
  function* take(number: number, start: number, fieldEnd: number): Steps<void> {
    if (number === SPARSE.values) {
      if (values) repeated = 'values'
      values = yield* part(start, fieldEnd)
    }
    if (number === SPARSE.indices) {
      if (indices) repeated = 'indices'
      indices = yield* part(start, fieldEnd)
    }
    if (number === SPARSE.dims) yield* packed(start, fieldEnd)
  }
  function* packed(start: number, fieldEnd: number): Steps<void> {
    cursor.position = start
    while (cursor.position < fieldEnd) {
      if (!cursor.holds(VARINT_BYTES, fieldEnd)) yield VARINT_BYTES
      cursor.varint(fieldEnd)
      addDim(dims, cursor.int64())
    }
  }
  yield* eachField(cursor, end, () => {
    const { number, wireType, valueStart, position } = cursor
    if (number === SPARSE.dims && wireType === VARINT) addDim(dims, cursor.int64())
    return wireType === LENGTH ? take(number, valueStart, position) : undefined
  })
  return { ...(values && { values }), ...(indices && { indices }), dims, ...(repeated && { repeated }) }
}

/** Undefined for a tensor that cannot be listed, which is reported. @throws TileworkError where the report throws */
export function checkSparse(header: SparseHeader, where: TensorPlace): CheckedSparse | undefined {
  if (header.repeated) {
    const message = `A sparse tensor has ${header.repeated} more than once; they are not merged.`
    where.report.broken('ERR_DUPLICATE', message, {
      path: pathOf(where, header.repeated),
      offset: where.offset,
    })
    return undefined
  }
  const values = checkPart(header.values, 'values', where)
  const shape = checkDenseShape(header.dims, where)
  if (!values || !shape) return undefined
  const { dtype } = values.checked
  if (values.checked.shape.length !== 1) {
    return refuse(
      where,
      'values',
      `The values have the shape [${values.checked.shape}]; they must have one axis.`,
    )
  }
  if (dtype === 'string') {
    const message = 'The sparse tensor has dtype string; it is kept but not listed.'
    where.report.note('ERR_UNSUPPORTED', message, { path: where.path(), offset: where.offset })
    return undefined
  }
  const entryCount = values.checked.shape[0]!
  const about = { name: values.header.name, dtype, shape, entryCount, values }
  if (!header.indices && entryCount === 0) return { ...about, isLinear: false }
  const indices = checkPart(header.indices, 'indices', where)
  if (!indices) return undefined
  const indexShape = indices.checked.shape
  const isLinear = indexShape.length === 1
  const fits = isLinear || (indexShape.length === 2 && indexShape[1] === shape.length)
  if (indices.checked.dtype !== 'int64' || indexShape[0] !== entryCount || !fits) {
    const found = `${indices.checked.dtype} [${indexShape}]`
    const wanted = `int64 [${entryCount}] or [${entryCount}, ${shape.length}]`
    return refuse(where, 'indices', `The indices are ${found}; they must be ${wanted}.`)
  }
  if (isLinear && shape.length > MAX_LINEAR_AXES) {
    const message = `A sparse tensor with linear indices has ${shape.length} axes; the limit is ${MAX_LINEAR_AXES}.`
    return refuse(where, 'dims', message)
  }
  return { ...about, isLinear, indices }
}

function checkPart(
  part: TensorPart | undefined,
  name: 'values' | 'indices',
  where: TensorPlace,
): CheckedPart | undefined {
  if (!part) return refuse(where, name, `A sparse tensor has no ${name}.`)
  const path = (): string => pathOf(where, name)
  const checked = checkTensor(part.header, { report: where.report, path, offset: part.start })
  return checked && { ...part, checked }
}

function checkDenseShape(
  dims: readonly (number | bigint)[],
  where: TensorPlace,
): readonly number[] | undefined {
  const bad = dims.find((extent) => typeof extent === 'bigint' || extent < 0)
  if (bad !== undefined)
    return refuse(where, 'dims', `A sparse tensor has the extent ${bad}; it must be between 0 and 2^53 - 1.`)
  if (dims.length === 0)
    return refuse(where, 'dims', 'A sparse tensor has no dims; it must have at least one.')
  if (dims.length > MAX_AXES) {
    return refuse(where, 'dims', `A sparse tensor has too many axes; the limit is ${MAX_AXES}.`)
  }
  return dims as readonly number[]
}

function refuse(where: TensorPlace, field: string, message: string): undefined {
  where.report.broken('ERR_COO_SHAPE', message, { path: pathOf(where, field), offset: where.offset })
  return undefined
}

function pathOf({ path }: TensorPlace, field: string): string {
  return path() === '' ? field : `${path()}.${field}`
}

/**
 * Makes the tensor of a checked message.
 *
 * @param values - one axis
 * @param indices - int64; absent for a tensor without entries
 */
export function makeSparse(
  { name, dtype, shape, entryCount, isLinear }: CheckedSparse,
  values: DenseTensor,
  indices: DenseTensor | undefined,
  requiresOrder: boolean,
): CooTensor {
  const rows = indices && (isLinear ? new LinearRows(indices, shape) : partOf(indices))
  const rowBytes = entryCount * shape.length * INDEX_BYTES
  const source = new JoinedSource(rows ?? NO_BYTES, partOf(values), rowBytes, name)
  const place = { format: FORMAT_NAME, path: `tensor ${JSON.stringify(name.slice(0, 80))}` }
  const starts = { indicesStart: 0, valuesStart: rowBytes }
  return new CooTensor({ source, ...starts, entryCount, dtype, shape, name, requiresOrder, place })
}

/** A range of bytes that is read on demand. */
interface Part {
  readonly byteLength: number
  read(start: number, end: number): Promise<Uint8Array>
}

const NO_BYTES: Part = { byteLength: 0, read: async () => new Uint8Array(0) }

function partOf(tensor: DenseTensor): Part {
  return {
    byteLength: tensor.storage.byteLength,
    read: (start, end) => tensor.bytes({ start, end }),
  }
}

/** Rows of coordinates, computed from linear indices as they are read. */
class LinearRows implements Part {
  readonly byteLength: number
  readonly #linear: Part
  readonly #rank: number
  /** Axes with extent above 1, last first; on the others every index is 0. The first axis takes the quotient that remains. */
  readonly #steps: readonly { readonly axis: number; readonly extent: bigint }[]

  constructor(indices: DenseTensor, shape: readonly number[]) {
    this.#linear = partOf(indices)
    this.#rank = shape.length
    const steps = shape.map((extent, axis) => ({ axis, extent: BigInt(extent) }))
    this.#steps = steps.filter(({ axis, extent }) => axis > 0 && extent !== 1n).reverse()
    this.byteLength = this.#linear.byteLength * shape.length
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const rowBytes = INDEX_BYTES * this.#rank
    const [first, last] = [Math.floor(start / rowBytes), Math.ceil(end / rowBytes)]
    const linear = await this.#linear.read(first * INDEX_BYTES, last * INDEX_BYTES)
    const rows = allocateBytes((last - first) * rowBytes)
    const [from, to] = [linear, rows].map(({ buffer, byteOffset }) => new DataView(buffer, byteOffset))
    for (let entry = 0; entry < last - first; entry++) {
      this.#writeRow(from!.getBigInt64(entry * INDEX_BYTES, true), to!, entry * rowBytes)
    }
    return rows.subarray(start - first * rowBytes, end - first * rowBytes)
  }

  /** An index out of range stays out of range: the remaining quotient is stored on the first axis. */
  #writeRow(linear: bigint, rows: DataView, at: number): void {
    let remaining = linear
    for (const { axis, extent } of this.#steps) {
      if (remaining < 0n || extent === 0n) break
      const quotient = remaining / extent
      rows.setBigInt64(at + axis * INDEX_BYTES, remaining - quotient * extent, true)
      remaining = quotient
      if (remaining === 0n) return
    }
    rows.setBigInt64(at, remaining, true)
  }
}

/** Rows followed by values as one source, the layout that coordinate lists read. */
class JoinedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #rows: Part
  readonly #values: Part
  readonly #rowBytes: number

  constructor(rows: Part, values: Part, rowBytes: number, name: string) {
    this.#rows = rows
    this.#values = values
    this.#rowBytes = rowBytes
    this.byteLength = rowBytes + values.byteLength
    this.label = `sparse tensor ${JSON.stringify(name.slice(0, 80))}`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const split = this.#rowBytes
    if (end <= split) return this.#rows.read(start, end)
    if (start >= split) return this.#values.read(start - split, end - split)
    const bytes = allocateBytes(end - start)
    bytes.set(await this.#rows.read(start, split))
    bytes.set(await this.#values.read(0, end - split), split - start)
    return bytes
  }
}
