/** Checks a single entry: its fields, their numbers, and that they agree with each other and with the file. */
import type { ErrorCode } from '../../errors.js'
import { nearestText } from '../../nearest_names.js'
import { type Exact, exactByteLength, multiply } from '../exact_size.js'
import type { Report } from '../report.js'
import type { Field, HeaderEntry, Spelled } from './header_events.js'
import { COUNT_LIMIT, MAX_RANK, quote, RANK_OF_CODE, TENSOR_CODES, tensorPath } from './schema.js'

/** A checked entry, whose range is inside the file. */
export interface CheckedEntry {
  readonly name: string
  readonly nameAt: number
  readonly shape: readonly number[]
  readonly begin: number
  readonly end: number
  /** Index of the type in `TENSOR_CODES`; undefined for an unknown type. */
  readonly typeRank: number | undefined
}

/** Checks an entry; undefined where it is invalid, which is reported. */
export function checkEntry(
  entry: HeaderEntry,
  bufferBytes: number,
  report: Report,
): CheckedEntry | undefined {
  const { dtype, shape, offsets, name, nameAt } = entry
  if (!dtype || !shape || !offsets) {
    const lacking = dtype ? (shape ? 'data_offsets' : 'shape') : 'dtype'
    const kind = lacking === 'dtype' ? 'text' : 'list'
    const path = tensorPath(name)
    report.broken('ERR_HEADER', `${path} has no ${kind} ${lacking}.`, { path, offset: nameAt })
    return undefined
  }
  const extents = checkShape(shape, name, report)
  const range = checkOffsets(offsets, bufferBytes, name, report)
  if (!extents || !range) return undefined
  const rank = RANK_OF_CODE.get(dtype.value)
  if (rank === undefined) {
    const path = tensorPath(name)
    const end = nearestText(
      dtype.value,
      RANK_OF_CODE.keys(),
      `; safetensors has ${[...RANK_OF_CODE.keys()].join(', ')}`,
    )
    const message = `${path} has the unknown dtype ${quote(dtype.value)}${end}`
    report.omission('a rule', 'ERR_DTYPE', message, { path: `${path}.dtype`, offset: dtype.at })
    return { name, nameAt, shape: [], ...range, typeRank: undefined }
  }
  const { bits, code } = TENSOR_CODES[rank]!
  if (!checkSize({ extents, bits, code, at: offsets.at }, range, name, report)) return undefined
  return { name, nameAt, shape: extents, ...range, typeRank: rank }
}

type List = Field<Spelled[]> & { count: number }

function checkShape({ value, at, count }: List, name: string, report: Report): number[] | undefined {
  if (count > MAX_RANK) {
    const path = tensorPath(name)
    const message = `${path} has ${count} dimensions; the limit is ${MAX_RANK}.`
    report.broken('ERR_RANK', message, { path: `${path}.shape`, offset: at })
    return undefined
  }
  return value.every((extent, axis) => checkNumber(extent, name, `shape[${axis}]`, at, report))
    ? (value as number[])
    : undefined
}

function checkNumber(number: Spelled, name: string, field: string, offset: number, report: Report): boolean {
  if (typeof number === 'number') return true
  const path = `${tensorPath(name)}.${field}`
  if (number === undefined) {
    const message = `${path} must be a whole number from 0, written in digits only.`
    report.broken('ERR_HEADER', message, { path, offset })
  } else {
    const message = `${path} is ${number >= COUNT_LIMIT ? '2^64 or more' : number}; numbers are exact up to 2^53 - 1.`
    report.broken('ERR_OVERFLOW', message, { path, offset })
  }
  return false
}

function checkOffsets(
  { value, at, count }: List,
  bufferBytes: number,
  name: string,
  report: Report,
): { begin: number; end: number } | undefined {
  const refuse = (code: ErrorCode, message: string): undefined => {
    const path = tensorPath(name)
    report.broken(code, `${path} ${message}`, { path: `${path}.data_offsets`, offset: at })
  }
  if (count !== 2) return refuse('ERR_HEADER', `has ${count} data_offsets; expected 2.`)
  if (!value.every((number, side) => checkNumber(number, name, `data_offsets[${side}]`, at, report))) {
    return undefined
  }
  const [begin, end] = value as [number, number]
  if (begin > end) return refuse('ERR_OFFSET_RANGE', `starts at ${begin} and ends before that, at ${end}.`)
  if (end > bufferBytes) {
    return refuse(
      'ERR_TRUNCATED',
      `ends at offset ${end} of the byte buffer, which has ${bufferBytes} bytes.`,
    )
  }
  return { begin, end }
}

interface Sized {
  readonly extents: readonly number[]
  readonly bits: number
  readonly code: string
  readonly at: number
}

/** Whether the length of the range matches shape and type. */
function checkSize(
  { extents, bits, code, at }: Sized,
  { begin, end }: { begin: number; end: number },
  name: string,
  report: Report,
): boolean {
  const { elements, wraps } = inOrderSizeOf(extents, bits)
  const needed = exactByteLength(elements, bits)
  const isWhole = bits >= 8 || BigInt(multiply(elements, bits)) % 8n === 0n
  if (!wraps && end - begin === needed && isWhole) return true
  const path = tensorPath(name)
  const place = { path: `${path}.shape`, offset: at }
  if (wraps && elements === 0) {
    const message = `${path} is empty, but its dimensions before the 0 have a product of 2^64 or more.`
    report.deviation('ERR_OVERFLOW', message, place)
  } else if (wraps) {
    report.broken('ERR_OVERFLOW', `${path} has 2^64 elements or bits, or more.`, place)
    return false
  }
  if (end - begin !== needed) {
    const message = `${path} has ${end - begin} bytes at ${begin}; ${code} and its shape need ${needed}.`
    report.broken('ERR_OFFSET_RANGE', message, { path: `${path}.data_offsets`, offset: at })
    return false
  }
  if (!isWhole) {
    const message = `${path} ends inside a byte: it has ${elements} elements of ${bits} bits.`
    report.deviation('ERR_MISALIGNED', message, place)
  }
  return true
}

/** `wraps` is true where the number of bits, multiplied in order as in the reference, exceeds 64 bits at any step. */
function inOrderSizeOf(extents: readonly number[], bits: number): { elements: Exact; wraps: boolean } {
  let elements: Exact = 1
  for (const extent of extents) {
    elements = multiply(elements, extent)
    if (elements >= COUNT_LIMIT) return { elements: extents.includes(0) ? 0 : elements, wraps: true }
  }
  return { elements, wraps: multiply(elements, bits) >= COUNT_LIMIT }
}
