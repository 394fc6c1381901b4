/** Opens an npy file: checks the header of its one array against the length of the file. */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { Budget } from '../budget.js'
import type { Limits, ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { TensorArray } from '../tensor_list.js'
import { tensorOf } from './array.js'
import { ArraySpan } from './array_span.js'
import { type NpyHeader, readHeader } from './header.js'
import { DEFAULT_LIMITS, FORMAT_NAME, UNNAMED } from './schema.js'

/** Bytes of the first read. numpy's headers of plain arrays have 118 bytes, or 182 with many axes. */
export const HEADER_WINDOW_BYTES = 512

/**
 * Reads the header of an npy file. Its tensor is named `arr_0`, numpy's name for an array without one.
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(source: ByteSource, { level, limits }: ReadOptions): Promise<ReadResult> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  const header = await readFileHeader(source, limits, report)
  // The report throws for an invalid header, so here `header` is always defined.
  const tensors = header ? [tensorOf(header, source, 0, UNNAMED)] : []
  return { tensors: new TensorArray(tensors), findings: report.findings() }
}

/** The whole file as an array. */
export function fileSpan({ byteLength }: ByteSource, report: Report): ArraySpan {
  return new ArraySpan({ start: 0, end: byteLength, report, offsetOf: (at) => Math.min(at, byteLength) })
}

/** Reads the header; undefined where it is invalid, which is reported. */
export async function readFileHeader(
  source: ByteSource,
  limits: Limits,
  report: Report,
): Promise<NpyHeader | undefined> {
  const place = { path: '', offset: 0 }
  const budget = new Budget(limits, DEFAULT_LIMITS)
  const tooMany = budget.spend('tensors', 1)
  if (tooMany !== undefined) {
    report.broken('ERR_LIMIT', tooMany, place)
    return undefined
  }
  const reader = new ByteReader(source, HEADER_WINDOW_BYTES)
  const header = await readHeader(reader, fileSpan(source, report), budget.limit('headerBytes'))
  const excess = header && budget.spend('totalBytes', header.dataBytes)
  if (excess === undefined) return header
  report.broken('ERR_LIMIT', excess, place)
  return undefined
}
