/** Reads the header of a record and checks every number in it against the file. */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { DTYPES, type Dtype } from '../../dtype/dtypes.js'
import type { ErrorCode } from '../../errors.js'
import { type Exact, exactByteLength, exactSizeOf, multiply, rangeFault } from '../exact_size.js'
import type { Report } from '../report.js'
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

/** A checked record header: everything it names lies inside the file. */
export interface BtfRecord {
  readonly offset: number
  readonly dtype: Dtype
  readonly shape: readonly number[]
  /** Entries of a COO record; undefined for a dense one. */
  readonly entryCount: number | undefined
}

/** Byte offsets of a record's parts, derived from its header. */
export interface RecordExtent {
  /** Dense elements, or the values of a COO record. */
  readonly dataStart: number
  /** Indices of a COO record; equal to `dataStart` for a dense one. */
  readonly indicesStart: number
  /** End offset of the data; padding follows. */
  readonly end: number
  /** Bytes of indices and values, or of elements. */
  readonly payloadBytes: number
  /** All other bytes, without padding. */
  readonly headerBytes: number
}

/** Bytes of one element; every BTF type has whole bytes. */
function itemBytes(dtype: Dtype): number {
  return DTYPES[dtype].bits / 8
}

export function extentOf(record: BtfRecord): RecordExtent {
  const { offset, shape, dtype, entryCount } = record
  const dimsEnd = offset + HEADER_BYTES + U64_BYTES * shape.length
  if (entryCount === undefined) {
    // Rounding in between does no harm: the product of a checked shape is below 2^53, or a dimension is 0.
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

/** Reads records in ascending order of offset, so that the window of the source only moves forward. */
export class RecordReader {
  readonly #reader: ByteReader
  /** Reads the second count of a COO record (8 bytes), which may be far away from the header. */
  readonly #farReader: ByteReader
  readonly #report: Report

  constructor(source: ByteSource, reader: ByteReader, report: Report) {
    this.#reader = reader
    this.#farReader = new ByteReader(source, U64_BYTES)
    this.#report = report
  }

  /**
   * The record at `offset`, where a header fits; undefined when it cannot be read, which is reported. Synchronous while
   * the window holds the header: an await per record would dominate the time of opening a million records.
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
      this.#report.deviation(
        'ERR_GAP',
        () => `tensors[${index}] has reserved bytes that are not zero.`,
        () => ({ path: `tensors[${index}].reserved`, offset: offset + RESERVED_START }),
      )
    }
    if (!isReadable) return undefined
    const dtype = DTYPE_BY_CODE[dtypeCode]!
    const header = { index, offset, rank: rank as number, dtype, isCoo: layoutCode !== LAYOUT_DENSE }
    const needed = U64_BYTES * (header.rank + (header.isCoo ? 2 : 0))
    if (needed > reader.remaining) {
      this.#isTruncated(header, 'dims', { needed, start: reader.position })
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
      report.broken(
        'ERR_RANK',
        () => `${record()} has rank ${rank}; the limit is ${MAX_RANK}.`,
        () => ({ path: `${record()}.rank`, offset }),
      )
      isReadable = false
    }
    if (dtypeCode >= DTYPE_BY_CODE.length) {
      report.broken(
        'ERR_DTYPE',
        () => `${record()} has the dtype code ${dtypeCode}; known are 0 to ${DTYPE_BY_CODE.length - 1}.`,
        () => ({ path: `${record()}.dtype`, offset: offset + DTYPE_START }),
      )
      isReadable = false
    }
    if (layoutCode <= LAYOUT_COO) return isReadable
    const layoutPlace = () => ({ path: `${record()}.layout`, offset: offset + LAYOUT_START })
    if (layoutCode === LAYOUT_COO_OF_DOCUMENT) {
      const message = () =>
        `${record()} has the layout code 2, the number for COO in TFRT's public document; programs write 1.`
      report.deviation('ERR_UNSUPPORTED', message, layoutPlace, 'LAYOUT_CODE_2')
      return isReadable
    }
    const message = () => `${record()} has the layout code ${layoutCode}; known are 0 (dense) and 1 (COO).`
    report.broken('ERR_UNSUPPORTED', message, layoutPlace)
    return false
  }

  #readDims(header: RecordHeader): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const dims: Exact[] = []
    for (let axis = 0; axis < header.rank; axis++) dims.push(this.#reader.u64())
    const checked = this.#checkDims(header, dims)
    if (!checked) return undefined
    return header.isCoo ? this.#readCoo(header, checked) : this.#checkDense(header, checked)
  }

  /** Undefined when the dimensions, their product or their bytes are out of range, which is reported. */
  #checkDims({ index, offset, dtype }: RecordHeader, dims: readonly Exact[]): CheckedDims | undefined {
    const dimsOffset = offset + HEADER_BYTES
    let isReadable = true
    for (const [axis, dim] of dims.entries()) {
      if (typeof dim === 'number') continue
      const limit =
        dim >= DIM_LIMIT ? 'the limit of the format is 2^63 - 1' : 'numbers are exact up to 2^53 - 1'
      this.#report.broken(
        'ERR_OVERFLOW',
        () => `tensors[${index}] has dims[${axis}] of ${dim}; ${limit}.`,
        () => ({ path: `tensors[${index}].dims[${axis}]`, offset: dimsOffset + U64_BYTES * axis }),
      )
      isReadable = false
    }
    if (!isReadable) return undefined
    const shape = dims as number[]
    const { elements, nonZero } = exactSizeOf(shape)
    const byteLength = exactByteLength(elements, DTYPES[dtype].bits)
    if (nonZero < DIM_LIMIT && byteLength < BYTES_LIMIT) return { shape, elements, byteLength }
    this.#report.broken(
      'ERR_OVERFLOW',
      () =>
        `tensors[${index}] has dimensions with the product ${nonZero}; it must be below 2^63, and its bytes below 2^64.`,
      () => ({ path: `tensors[${index}].dims`, offset: dimsOffset }),
    )
    return undefined
  }

  #checkDense(header: RecordHeader, { shape, byteLength }: CheckedDims): BtfRecord | undefined {
    const { offset, dtype } = header
    const start = offset + HEADER_BYTES + U64_BYTES * shape.length
    if (this.#isTruncated(header, 'data', { needed: byteLength, start })) return undefined
    return { offset, dtype, shape, entryCount: undefined }
  }

  #readCoo(
    header: RecordHeader,
    { shape, elements }: CheckedDims,
  ): BtfRecord | undefined | Promise<BtfRecord | undefined> {
    const { rank } = header
    const countsOffset = this.#reader.position
    const entryCount = this.#reader.u64()
    const indexRank = this.#reader.u64()
    const report = (kind: Problem['kind'], code: ErrorCode, text: () => string): void =>
      this.#reportPart(header, 'indices', countsOffset, { kind, code, text })
    if (indexRank !== rank) {
      report('broken', 'ERR_COO_SHAPE', () => `have ${indexRank} columns; its rank is ${rank}`)
      return undefined
    }
    if (typeof entryCount === 'bigint') {
      report('broken', 'ERR_OVERFLOW', () => `have ${entryCount} entries; numbers are exact up to 2^53 - 1`)
      return undefined
    }
    const start = this.#reader.position
    const indexBytes = multiply(entryCount, U64_BYTES * rank)
    // Another count follows the indices. Where `indexBytes` is a bigint, the indices alone exceed any file.
    const needed = typeof indexBytes === 'number' ? indexBytes + U64_BYTES : indexBytes
    if (this.#isTruncated(header, 'indices', { needed, start })) return undefined
    if (elements === 0 && entryCount > 0) {
      report(
        'broken',
        'ERR_COO_INDEX',
        () => `have ${entryCount} entries; a dimension is 0, so no index is valid`,
      )
      return undefined
    }
    if (entryCount > elements) {
      report('deviation', 'ERR_COO_DUPLICATE', () => `have ${entryCount} entries for ${elements} cells`)
    }
    const valueCountOffset = start + U64_BYTES * entryCount * rank
    return this.#valueCountAt(valueCountOffset, (valueCount) =>
      this.#checkValues(header, shape, entryCount, { valueCount, offset: valueCountOffset }),
    )
  }

  #valueCountAt<T>(offset: number, use: (count: Exact) => T): T | Promise<T> {
    this.#reader.seek(offset)
    if (this.#reader.holds(U64_BYTES)) return use(this.#reader.u64())
    this.#farReader.seek(offset)
    return this.#farReader.load(U64_BYTES).then(() => use(this.#farReader.u64()))
  }

  #checkValues(
    header: RecordHeader,
    shape: readonly number[],
    entryCount: number,
    { valueCount, offset: countOffset }: { valueCount: Exact; offset: number },
  ): BtfRecord | undefined {
    const { offset, dtype } = header
    if (valueCount !== entryCount) {
      const text = () => `have ${valueCount} entries; its indices have ${entryCount}`
      this.#reportPart(header, 'values', countOffset, { kind: 'broken', code: 'ERR_COO_SHAPE', text })
      return undefined
    }
    const needed = multiply(entryCount, itemBytes(dtype))
    if (this.#isTruncated(header, 'values', { needed, start: countOffset + U64_BYTES })) return undefined
    return { offset, dtype, shape, entryCount }
  }

  #isTruncated(
    header: RecordHeader,
    part: Part,
    { needed, start }: { needed: Exact; start: number },
  ): boolean {
    const fault = rangeFault(start, needed, this.#reader.byteLength)
    if (fault === undefined) return false
    const { index } = header
    this.#report.broken(
      'ERR_TRUNCATED',
      () => `tensors[${index}].${part} ${fault}.`,
      () => ({ path: `tensors[${index}].${part}`, offset: start }),
    )
    return true
  }

  /** Reports on a part of a record; `text` follows `The indices of tensors[3] `. */
  #reportPart({ index }: RecordHeader, part: Part, offset: number, problem: Problem): void {
    const { kind, code, text } = problem
    const message = () => `The ${part} of tensors[${index}] ${text()}.`
    this.#report[kind](code, message, () => ({ path: `tensors[${index}].${part}`, offset }))
  }
}

interface Problem {
  readonly kind: 'broken' | 'deviation'
  readonly code: ErrorCode
  readonly text: () => string
}

/** A part of a record, as paths name it. */
type Part = 'dims' | 'data' | 'indices' | 'values'

/** Dimensions that are exact numbers, and their product. */
interface CheckedDims {
  readonly shape: readonly number[]
  readonly elements: Exact
  readonly byteLength: Exact
}

/** Codes of a header as the file has them. */
interface Codes {
  readonly rank: Exact
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
