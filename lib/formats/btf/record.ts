/** Reads the header of one record and checks every number of it against the file. */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { DTYPES, type Dtype } from '../../dtype/dtypes.js'
import type { Description, Report } from './report.js'
import {
  BYTES_LIMIT,
  DIM_LIMIT,
  DTYPE_BY_CODE,
  DTYPE_START,
  HEADER_BYTES,
  LAYOUT_COO,
  LAYOUT_COO_OF_DOCUMENT,
  LAYOUT_DENSE,
  LAYOUT_START,
  MAX_RANK,
  RESERVED_BIT,
  RESERVED_START,
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
    let payloadBytes = itemBytes(dtype)
    for (const dim of shape) payloadBytes *= dim
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
    const reader = this.#reader
    const rank = reader.u64()
    const codes = reader.u64()
    // dtype, layout, then the six reserved bytes, lowest first.
    const isReserved = codes >= RESERVED_BIT
    const low = isReserved ? Number(BigInt(codes) % BigInt(RESERVED_BIT)) : (codes as number)
    const dtypeCode = low % 256
    const layoutCode = Math.floor(low / 256)
    const isReadable = this.#checkCodes(index, offset, { rank, dtypeCode, layoutCode })
    if (isReserved) {
      this.#report.deviation('ERR_GAP', () => ({
        message: `tensors[${index}]: the reserved bytes of its header are not zero.`,
        path: `tensors[${index}].reserved`,
        offset: offset + RESERVED_START,
      }))
    }
    if (!isReadable) return undefined
    const dtype = DTYPE_BY_CODE[dtypeCode]!
    const header = { index, offset, rank: rank as number, dtype, isCoo: layoutCode !== LAYOUT_DENSE }
    const needed = U64_BYTES * (header.rank + (header.isCoo ? 2 : 0))
    if (needed > reader.remaining) {
      this.#isTruncated(header, 'dims', { needed, start: reader.position, what: 'its dimensions need' })
      return undefined
    }
    if (!reader.holds(needed)) return reader.load(needed).then(() => this.#readDims(header))
    return this.#readDims(header)
  }

  #checkCodes(index: number, offset: number, { rank, dtypeCode, layoutCode }: Codes): boolean {
    const report = this.#report
    const record = (): string => `tensors[${index}]`
    let isReadable = true
    if (rank > MAX_RANK) {
      report.broken('ERR_RANK', () => ({
        message: `${record()}: its rank is ${rank}; the limit is ${MAX_RANK}.`,
        path: `${record()}.rank`,
        offset,
      }))
      isReadable = false
    }
    if (dtypeCode >= DTYPE_BY_CODE.length) {
      report.broken('ERR_DTYPE', () => ({
        message: `${record()}: its dtype code is ${dtypeCode}; known are 0 to ${DTYPE_BY_CODE.length - 1}.`,
        path: `${record()}.dtype`,
        offset: offset + DTYPE_START,
      }))
      isReadable = false
    }
    if (layoutCode <= LAYOUT_COO) return isReadable
    const layoutPlace = () => ({ path: `${record()}.layout`, offset: offset + LAYOUT_START })
    if (layoutCode === LAYOUT_COO_OF_DOCUMENT) {
      const why = "is 2, the public document's number for COO; programs write 1"
      const describe = () => ({ message: `${record()}: its layout code ${why}.`, ...layoutPlace() })
      report.deviation('ERR_UNSUPPORTED', describe, 'LAYOUT_CODE_2')
      return isReadable
    }
    const why = `is ${layoutCode}; known are 0 (dense) and 1 (COO)`
    report.broken('ERR_UNSUPPORTED', () => ({
      message: `${record()}: its layout code ${why}.`,
      ...layoutPlace(),
    }))
    return false
  }

  #readDims(header: RecordHeader): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const dims: (number | bigint)[] = []
    for (let axis = 0; axis < header.rank; axis++) dims.push(this.#reader.u64())
    const cells = this.#checkDims(header, dims)
    if (!cells) return undefined
    const shape = dims as number[]
    return header.isCoo ? this.#readCoo(header, shape, cells) : this.#checkDense(header, shape, cells)
  }

  #checkDims({ index, offset, dtype }: RecordHeader, dims: readonly (number | bigint)[]): Cells | undefined {
    const dimsOffset = offset + HEADER_BYTES
    let isReadable = true
    let isEmpty = false
    let nonZero: Exact = 1
    for (let axis = 0; axis < dims.length; axis++) {
      const dim = dims[axis]!
      if (dim === 0) isEmpty = true
      else if (typeof dim === 'number') nonZero = multiply(nonZero, dim)
      else {
        this.#report.broken('ERR_OVERFLOW', () => {
          const limit = dim >= DIM_LIMIT ? 'the format ends at 2^63 - 1' : 'numbers are exact up to 2^53 - 1'
          const path = `tensors[${index}].dims[${axis}]`
          const message = `tensors[${index}]: dims[${axis}] is ${dim}; ${limit}.`
          return { message, path, offset: dimsOffset + U64_BYTES * axis }
        })
        isReadable = false
      }
    }
    if (!isReadable) return undefined
    const isTooLarge =
      nonZero >= DIM_LIMIT || (!isEmpty && multiply(nonZero, itemBytes(dtype)) >= BYTES_LIMIT)
    if (!isTooLarge) return { nonZero, isEmpty }
    this.#report.broken('ERR_OVERFLOW', () => ({
      message: `tensors[${index}]: the product of its dimensions is ${nonZero}; it must stay below 2^63, and its bytes below 2^64.`,
      path: `tensors[${index}].dims`,
      offset: dimsOffset,
    }))
    return undefined
  }

  #checkDense(header: RecordHeader, shape: number[], cells: Cells): BtfRecord | undefined {
    const { offset, dtype } = header
    const start = offset + HEADER_BYTES + U64_BYTES * shape.length
    const needed = cells.isEmpty ? 0 : multiply(cells.nonZero, itemBytes(dtype))
    if (this.#isTruncated(header, 'data', { needed, start, what: 'its elements need' })) return undefined
    return { offset, dtype, shape, entryCount: undefined }
  }

  #readCoo(
    header: RecordHeader,
    shape: number[],
    cells: Cells,
  ): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const { rank } = header
    const countsAt = this.#reader.position
    const entryCount = this.#reader.u64()
    const indexRank = this.#reader.u64()
    const problem = (what: string) => () => describePart(header, 'indices', countsAt, what)
    if (indexRank !== rank) {
      const what = `its indices have ${indexRank} columns and its rank is ${rank}`
      this.#report.broken('ERR_COO_SHAPE', problem(what))
      return undefined
    }
    if (typeof entryCount === 'bigint') {
      this.#report.broken(
        'ERR_OVERFLOW',
        problem(`it has ${entryCount} entries; numbers are exact up to 2^53 - 1`),
      )
      return undefined
    }
    const start = this.#reader.position
    const indexBytes = multiply(entryCount, U64_BYTES * rank)
    // Behind the indices stands one more count; a bigint is beyond any file without it.
    const needed = typeof indexBytes === 'number' ? indexBytes + U64_BYTES : indexBytes
    const what = 'its indices and the count of values need'
    if (this.#isTruncated(header, 'indices', { needed, start, what })) return undefined
    if (!this.#checkEntryCount(header, entryCount, cells, countsAt)) return undefined
    const countAt = start + U64_BYTES * entryCount * rank
    const rest = (values: number | bigint): BtfRecord | undefined =>
      this.#checkValues(header, shape, entryCount, { values, offset: countAt })
    return this.#valueCountAt(countAt, rest)
  }

  #checkEntryCount(header: RecordHeader, entryCount: number, cells: Cells, offset: number): boolean {
    if (cells.isEmpty && entryCount > 0) {
      const what = `a dimension is 0, so each of its ${entryCount} entries lies outside`
      this.#report.broken('ERR_COO_INDEX', () => describePart(header, 'indices', offset, what))
      return false
    }
    if (!cells.isEmpty && entryCount > cells.nonZero) {
      const what = `${entryCount} entries for ${cells.nonZero} cells; some must repeat`
      this.#report.deviation('ERR_COO_DUPLICATE', () => describePart(header, 'indices', offset, what))
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
    const { offset, dtype } = header
    if (count.values !== entryCount) {
      const what = `it has ${entryCount} indices and ${count.values} values`
      this.#report.broken('ERR_COO_SHAPE', () => describePart(header, 'values', count.offset, what))
      return undefined
    }
    const needed = multiply(entryCount, itemBytes(dtype))
    const start = count.offset + U64_BYTES
    if (this.#isTruncated(header, 'values', { needed, start, what: 'its values need' })) return undefined
    return { offset, dtype, shape, entryCount }
  }

  #isTruncated(
    header: RecordHeader,
    part: string,
    { needed, start, what }: { needed: Exact; start: number; what: string },
  ): boolean {
    const { byteLength } = this.#reader
    if (needed <= byteLength - start) return false
    const sentence = `${what} ${needed} bytes at ${start} and the file ends at ${byteLength}`
    this.#report.broken('ERR_TRUNCATED', () => describePart(header, part, start, sentence))
    return true
  }
}

/** Codes of a header as they stand in the file. */
interface Codes {
  readonly rank: number | bigint
  readonly dtypeCode: number
  readonly layoutCode: number
}

interface RecordHeader {
  readonly index: number
  readonly offset: number
  readonly rank: number
  readonly dtype: Dtype
  readonly isCoo: boolean
}

function describePart({ index }: RecordHeader, part: string, offset: number, what: string): Description {
  return { message: `tensors[${index}]: ${what}.`, path: `tensors[${index}].${part}`, offset }
}
