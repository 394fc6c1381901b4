/** Reads the header of one record and checks every number of it against the file. */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { DTYPES, type Dtype } from '../../dtype/dtypes.js'
import type { Place, Report } from './report.js'
import {
  BYTES_LIMIT,
  DIM_LIMIT,
  DTYPE_BY_CODE,
  HEADER_BYTES,
  LAYOUT_COO,
  LAYOUT_COO_OF_DOCUMENT,
  LAYOUT_DENSE,
  MAX_RANK,
  RESERVED_BYTES,
  U64_BYTES,
} from './schema.js'

/** What a record's header says, checked: everything it names lies inside the file. */
export interface BtfRecord {
  readonly offset: number
  readonly dtype: Dtype
  readonly shape: readonly number[]
  /** Entries of a COO record; undefined for a dense one. */
  readonly entryCount: number | undefined
}

/** Byte offsets of a record's parts, all derived from its header. */
export interface RecordExtent {
  /** Dense elements, or the values of a COO record. */
  readonly dataStart: number
  /** Indices of a COO record; equal to `dataStart` for a dense one. */
  readonly indicesStart: number
  /** First byte after the data, before padding. */
  readonly end: number
  /** Bytes of indices and values, or of elements. */
  readonly payloadBytes: number
  /** Bytes of everything that is neither. */
  readonly headerBytes: number
}

/** Bytes of one element. All BTF types are whole bytes. */
export function itemBytes(dtype: Dtype): number {
  return DTYPES[dtype].bits / 8
}

export function extentOf(record: BtfRecord): RecordExtent {
  const { offset, shape, dtype, entryCount } = record
  const dimsEnd = offset + HEADER_BYTES + U64_BYTES * shape.length
  if (entryCount === undefined) {
    // Zero wins over any other extent: 0 * 2^80 is 0 here, and no product of a checked shape is infinite.
    const payloadBytes = shape.reduce((size, dim) => size * dim, 1) * itemBytes(dtype)
    const end = dimsEnd + payloadBytes
    return { dataStart: dimsEnd, indicesStart: dimsEnd, end, payloadBytes, headerBytes: dimsEnd - offset }
  }
  const indicesStart = dimsEnd + 2 * U64_BYTES
  const indexBytes = U64_BYTES * entryCount * shape.length
  const dataStart = indicesStart + indexBytes + U64_BYTES
  const valueBytes = entryCount * itemBytes(dtype)
  return {
    dataStart,
    indicesStart,
    end: dataStart + valueBytes,
    payloadBytes: indexBytes + valueBytes,
    headerBytes: indicesStart - offset + U64_BYTES,
  }
}

/** An exact whole number: a bigint above 2^53 - 1. The two compare with each other as numbers do. */
type Exact = number | bigint

/** Bigints cost, and most products are far below 2^53, where those of numbers are exact. */
function multiply(one: Exact, other: number): Exact {
  const product = Number(one) * other
  return product <= Number.MAX_SAFE_INTEGER ? product : BigInt(one) * BigInt(other)
}

/** How many cells a shape has. */
interface Cells {
  /** Product of the dimensions that are not zero. */
  readonly nonZero: Exact
  readonly isEmpty: boolean
}

/** Reads records in ascending order of their offsets, so that the window of the source only moves forward. */
export class RecordReader {
  readonly #reader: ByteReader
  /** For the second count of a COO record, which lies behind its indices, perhaps far away: reads 8 bytes. */
  readonly #farReader: ByteReader
  readonly #report: Report

  constructor(source: ByteSource, reader: ByteReader, report: Report) {
    this.#reader = reader
    this.#farReader = new ByteReader(source, U64_BYTES)
    this.#report = report
  }

  /**
   * The record at `offset`, which has room for a header; undefined when it cannot be read, which is then
   * reported. Answers at once when the window holds the header, because an await a record would be most of the time of
   * opening a million of them.
   */
  read(index: number, offset: number): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    this.#reader.seek(offset)
    if (!this.#reader.holds(HEADER_BYTES)) {
      return this.#reader.load(HEADER_BYTES).then(() => this.#readHeader(index, offset))
    }
    return this.#readHeader(index, offset)
  }

  #readHeader(index: number, offset: number): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const path = `tensors[${index}]`
    const reader = this.#reader
    const rank = reader.u64()
    const dtypeCode = reader.u8()
    const layoutCode = reader.u8()
    let reserved = 0
    for (let i = 0; i < RESERVED_BYTES; i++) reserved |= reader.u8()
    const isReadable = this.#checkCodes({ rank, dtypeCode, layoutCode }, { path, offset })
    if (reserved !== 0) {
      this.#report.deviation('ERR_GAP', `${path}: the reserved bytes of its header are not zero.`, {
        path: `${path}.reserved`,
        offset: offset + 10,
      })
    }
    if (!isReadable) return undefined
    const header = {
      path,
      offset,
      rank: rank as number,
      dtype: DTYPE_BY_CODE[dtypeCode]!,
      isCoo: layoutCode !== LAYOUT_DENSE,
    }
    const needed = U64_BYTES * (header.rank + (header.isCoo ? 2 : 0))
    if (needed > reader.remaining) {
      const message = `${path}: its dimensions need ${needed} bytes at ${reader.position} and the file ends at ${reader.byteLength}.`
      this.#report.broken('ERR_TRUNCATED', message, { path: `${path}.dims`, offset: reader.position })
      return undefined
    }
    if (!reader.holds(needed)) return reader.load(needed).then(() => this.#readDims(header))
    return this.#readDims(header)
  }

  #checkCodes(
    codes: { rank: number | bigint; dtypeCode: number; layoutCode: number },
    { path, offset }: Place,
  ): boolean {
    const { rank, dtypeCode, layoutCode } = codes
    const report = this.#report
    let isReadable = true
    if (rank > MAX_RANK) {
      const message = `${path}: its rank is ${rank}; the limit is ${MAX_RANK}.`
      report.broken('ERR_RANK', message, { path: `${path}.rank`, offset })
      isReadable = false
    }
    if (dtypeCode >= DTYPE_BY_CODE.length) {
      const message = `${path}: its dtype code is ${dtypeCode}; known are 0 to ${DTYPE_BY_CODE.length - 1}.`
      report.broken('ERR_DTYPE', message, { path: `${path}.dtype`, offset: offset + 8 })
      isReadable = false
    }
    const layoutPlace = { path: `${path}.layout`, offset: offset + 9 }
    if (layoutCode === LAYOUT_COO_OF_DOCUMENT) {
      const message = `${path}: its layout code is 2, the public document's number for COO; programs write 1.`
      report.deviation('ERR_UNSUPPORTED', message, layoutPlace, 'LAYOUT_CODE_2')
    } else if (layoutCode !== LAYOUT_DENSE && layoutCode !== LAYOUT_COO) {
      const message = `${path}: its layout code is ${layoutCode}; known are 0 (dense) and 1 (COO).`
      report.broken('ERR_UNSUPPORTED', message, layoutPlace)
      isReadable = false
    }
    return isReadable
  }

  #readDims(header: RecordHeader): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const dims: (number | bigint)[] = []
    for (let axis = 0; axis < header.rank; axis++) dims.push(this.#reader.u64())
    const cells = this.#checkDims(header, dims)
    if (!cells) return undefined
    const shape = dims as number[]
    return header.isCoo ? this.#readCoo(header, shape, cells) : this.#checkDense(header, shape, cells)
  }

  #checkDims({ path, offset, dtype }: RecordHeader, dims: (number | bigint)[]): Cells | undefined {
    const dimsOffset = offset + HEADER_BYTES
    let isReadable = true
    for (const [axis, dim] of dims.entries()) {
      if (typeof dim === 'number') continue
      const limit = dim >= DIM_LIMIT ? 'the format ends at 2^63 - 1' : 'numbers are exact up to 2^53 - 1'
      this.#report.broken('ERR_OVERFLOW', `${path}: dims[${axis}] is ${dim}; ${limit}.`, {
        path: `${path}.dims[${axis}]`,
        offset: dimsOffset + U64_BYTES * axis,
      })
      isReadable = false
    }
    if (!isReadable) return undefined
    const isEmpty = dims.includes(0)
    const nonZero = (dims as number[]).reduce<Exact>(
      (size, dim) => (dim === 0 ? size : multiply(size, dim)),
      1,
    )
    const isTooLarge =
      nonZero >= DIM_LIMIT || (!isEmpty && multiply(nonZero, itemBytes(dtype)) >= BYTES_LIMIT)
    if (!isTooLarge) return { nonZero, isEmpty }
    const message = `${path}: the product of its dimensions is ${nonZero}; it must stay below 2^63, and its bytes below 2^64.`
    this.#report.broken('ERR_OVERFLOW', message, { path: `${path}.dims`, offset: dimsOffset })
    return undefined
  }

  #checkDense(header: RecordHeader, shape: number[], cells: Cells): BtfRecord | undefined {
    const { path, offset, dtype } = header
    const start = offset + HEADER_BYTES + U64_BYTES * shape.length
    const needed = cells.isEmpty ? 0 : multiply(cells.nonZero, itemBytes(dtype))
    if (this.#isTruncated(needed, start, { path: `${path}.data`, offset: start }, 'its elements need')) {
      return undefined
    }
    return { offset, dtype, shape, entryCount: undefined }
  }

  #readCoo(
    header: RecordHeader,
    shape: number[],
    cells: Cells,
  ): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const { path, rank } = header
    const place = { path: `${path}.indices`, offset: this.#reader.position }
    const entryCount = this.#reader.u64()
    const indexRank = this.#reader.u64()
    if (indexRank !== rank) {
      const message = `${path}: its indices have ${indexRank} columns and its rank is ${rank}.`
      this.#report.broken('ERR_COO_SHAPE', message, place)
      return undefined
    }
    if (typeof entryCount === 'bigint') {
      const message = `${path}: it has ${entryCount} entries; numbers are exact up to 2^53 - 1.`
      this.#report.broken('ERR_OVERFLOW', message, place)
      return undefined
    }
    const start = this.#reader.position
    const indexBytes = multiply(entryCount, U64_BYTES * rank)
    // Behind the indices stands one more count; a bigint is beyond any file without it.
    const needed = typeof indexBytes === 'number' ? indexBytes + U64_BYTES : indexBytes
    if (this.#isTruncated(needed, start, place, `its ${entryCount} indices and the count of values need`)) {
      return undefined
    }
    if (!this.#checkEntryCount(entryCount, cells, path, place)) return undefined
    const countAt = start + U64_BYTES * entryCount * rank
    const rest = (values: number | bigint): BtfRecord | undefined =>
      this.#checkValues(header, shape, entryCount, { values, offset: countAt })
    return this.#valueCountAt(countAt, rest)
  }

  #checkEntryCount(entryCount: number, cells: Cells, path: string, place: Place): boolean {
    if (cells.isEmpty && entryCount > 0) {
      const message = `${path}: a dimension is 0, so each of its ${entryCount} entries lies outside.`
      this.#report.broken('ERR_COO_INDEX', message, place)
      return false
    }
    if (!cells.isEmpty && entryCount > cells.nonZero) {
      const message = `${path}: ${entryCount} entries for ${cells.nonZero} cells; some must repeat.`
      this.#report.deviation('ERR_COO_DUPLICATE', message, place)
    }
    return true
  }

  #valueCountAt<T>(offset: number, use: (count: number | bigint) => T): T | Promise<T> {
    this.#reader.seek(offset)
    if (this.#reader.holds(U64_BYTES)) return use(this.#reader.u64())
    this.#farReader.seek(offset)
    return this.#farReader.load(U64_BYTES).then(() => use(this.#farReader.u64()))
  }

  #checkValues(
    header: RecordHeader,
    shape: number[],
    entryCount: number,
    count: { values: number | bigint; offset: number },
  ): BtfRecord | undefined {
    const { path, offset, dtype } = header
    const place = { path: `${path}.values`, offset: count.offset }
    if (count.values !== entryCount) {
      const message = `${path}: it has ${entryCount} indices and ${count.values} values.`
      this.#report.broken('ERR_COO_SHAPE', message, place)
      return undefined
    }
    const needed = multiply(entryCount, itemBytes(dtype))
    if (this.#isTruncated(needed, count.offset + U64_BYTES, place, 'its values need')) return undefined
    return { offset, dtype, shape, entryCount }
  }

  #isTruncated(needed: Exact, start: number, place: Place, what: string): boolean {
    const { byteLength } = this.#reader
    if (needed <= byteLength - start) return false
    const record = place.path.slice(0, place.path.indexOf('.'))
    const message = `${record}: ${what} ${needed} bytes at ${start} and the file ends at ${byteLength}.`
    this.#report.broken('ERR_TRUNCATED', message, place)
    return true
  }
}

interface RecordHeader {
  readonly path: string
  readonly offset: number
  readonly rank: number
  readonly dtype: Dtype
  readonly isCoo: boolean
}
