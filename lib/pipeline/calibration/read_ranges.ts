/**
 * Reads ranges of values from a file: JSON, or a calibration cache in one of the forms that onnxruntime and TensorRT write. The
 * forms for TensorRT have one number for each value. Source: `write_calibration_table` of onnxruntime 1.32's quantization tools and
 * `ReadDynamicRange` of its TensorRT provider.
 */

import { MemorySource } from '../../bytes/memory.js'
import { openSource } from '../../bytes/open_source.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { FileFault } from '../../formats/file_fault.js'
import { Pages } from '../../formats/tflite/pages.js'
import { Table } from '../../formats/tflite/table.js'
import {
  checkRange,
  checkRanges,
  type ValueRange,
  type ValueRanges,
} from '../../models/onnx_compress/index.js'
import { valueText } from '../../value_text.js'

/** Histograms of a large model take some megabytes. */
const MAX_RANGES_BYTES = 2 ** 28

/** The first line of a table that TensorRT itself writes, for example `TRT-8601-EntropyCalibration2`. */
const TENSORRT_HEAD = /^TRT-/
/** TensorRT's scale is that of int8: the range divided by this. */
const TENSORRT_CODES = 127

/**
 * Ranges of values for `quantizeStatic` from a file: JSON of `{ "value": { "min": 0, "max": 1 } }`, or a calibration cache of onnxruntime
 * (`calibration.json`, `calibration.cache`, `calibration.flatbuffers`) or TensorRT. All but JSON have one number `n` for each value, which
 * stands for -n to n.
 *
 * @param input - a path, a URL or the bytes of the file, at most 256 MiB
 * @throws TileworkError ERR_ARGUMENT for a range that is not two finite numbers in order, by name; ERR_HEADER and ERR_OFFSET_RANGE for a
 * file in none of the forms; ERR_LIMIT, ERR_IO
 */
export async function readRanges(input: string | URL | Uint8Array): Promise<ValueRanges> {
  const source = await openSource(input)
  try {
    return Object.fromEntries(await rangesOf(source))
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    const { code, message, offset } = error
    throw new TileworkError(code, `${labelOf(source)}: ${message}`, { offset })
  } finally {
    source.close?.()
  }
}

async function rangesOf(source: ByteSource): Promise<ReadonlyMap<string, ValueRange>> {
  const { byteLength } = source
  if (byteLength > MAX_RANGES_BYTES)
    throw new FileFault('ERR_LIMIT', `${byteLength} bytes of ranges; the limit is ${MAX_RANGES_BYTES}.`, 0)
  const bytes = await source.read(0, byteLength)
  const text = textOf(bytes)
  if (text === undefined) return checked(await fromFlatBuffer(bytes))
  if (text.trimStart().startsWith('{')) return checkRanges(fromJson(text, source))
  return checked(fromLines(text))
}

function checked(ranges: ReadonlyMap<string, ValueRange>): ReadonlyMap<string, ValueRange> {
  for (const [name, range] of ranges) checkRange(name, range)
  return ranges
}

/** Undefined for bytes that are no text: offsets of a FlatBuffer have bytes 0. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

function fromJson(text: string, source: ByteSource): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new TileworkError('ERR_HEADER', `${labelOf(source)} is not JSON.`, { cause })
  }
}

/** Lines `name number` of onnxruntime, or `name: scale` of TensorRT, whose scale is the bits of a float32 in hexadecimal. */
function fromLines(text: string): ReadonlyMap<string, ValueRange> {
  const isTensorRt = TENSORRT_HEAD.test(text)
  const form = isTensorRt ? /^(.*): ?([0-9a-f]{8})$/i : /^(.*) (\S+)$/
  const ranges = new Map<string, ValueRange>()
  let offset = 0
  for (const [at, line] of text.split('\n').entries()) {
    const start = offset
    offset += Buffer.byteLength(line) + 1
    if (line.trim() === '' || (isTensorRt && at === 0)) continue
    const [, name, number] = form.exec(line.trimEnd()) ?? []
    if (name === undefined || number === undefined) {
      const allowed = isTensorRt ? '"name: scale" with a scale of 8 hexadecimal digits' : '"name number"'
      throw new FileFault('ERR_HEADER', `Line ${at + 1} is ${valueText(line)}; it must be ${allowed}.`, start)
    }
    ranges.set(name, isTensorRt ? aroundZero(scaleOf(number) * TENSORRT_CODES) : fromNumber(number))
  }
  return ranges
}

function scaleOf(digits: string): number {
  return Buffer.from(digits, 'hex').readFloatBE()
}

/** A table with a list of tables, each with a name and a number as text. */
async function fromFlatBuffer(bytes: Uint8Array): Promise<ReadonlyMap<string, ValueRange>> {
  const pages = new Pages(new MemorySource(bytes))
  const ranges = new Map<string, ValueRange>()
  try {
    const root = await pages.run(() => new Table(pages, pages.u32(0)))
    const list = await pages.run(() => root.vector(0, 4))
    for (let index = 0; index < (list?.count ?? 0); index++) {
      const [name, number] = await pages.run(() => {
        const entry = root.tableIn(list!, index)
        return [entry.text(0), entry.text(1)] as const
      })
      ranges.set(name, fromNumber(number))
    }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    const message = `neither JSON nor lines "name number" nor a FlatBuffer of onnxruntime. ${error.message}`
    throw new FileFault(error.code, message, error.offset)
  }
  return ranges
}

/** The number is the greater of both ends, so it is below 0 where all numbers are. */
function fromNumber(text: string): ValueRange {
  return aroundZero(text === '' ? Number.NaN : Number(text))
}

function aroundZero(number: number): ValueRange {
  const most = Math.abs(number)
  return { min: -most, max: most }
}

function labelOf({ label = 'memory' }: ByteSource): string {
  return label
}
