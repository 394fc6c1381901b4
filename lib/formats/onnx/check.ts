/**
 * Everything wrong with an ONNX file: the rules of its messages and tensors, and what costs reading payloads: entries
 * that are counted, booleans that are neither 0 nor 1, indices, texts, checksums. Bad bytes become findings; only a
 * source that cannot be read throws.
 */
import { createHash } from 'node:crypto'
import { READER_WINDOW_BYTES } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { type Finding, TileworkError } from '../../errors.js'
import { StoredTensor } from '../../tensor/dense.js'
import { CooTensor } from '../../tensor/sparse.js'
import type { Tensor } from '../../tensor/tensor.js'
import { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { checkExternalRanges, ExternalRanges } from './external/ranges.js'
import { checkFunctions } from './function_rules.js'
import { checkGraphs } from './graph_rules.js'
import { FieldSource } from './protobuf/field_source.js'
import { chooseMessage } from './read.js'
import { DEFAULT_LIMITS, FORMAT_NAME, quote } from './schema.js'
import { StringFieldTensor } from './tensor/strings.js'
import type { TensorTable } from './tensor/table.js'
import { FileTensors, type ListedTensors } from './tensor/tensor_list.js'
import { validateFile } from './validate.js'
import { walkFile } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, options: ReadOptions): Promise<Finding[]> {
  const { level, limits, sibling } = options
  const report = new Report(FORMAT_NAME, level, 'collect')
  const message = await chooseMessage(source, options, report)
  if (message === undefined) return report.findings()
  const budget = new Budget(limits, DEFAULT_LIMITS)
  const ranges = new ExternalRanges()
  const listed = await walkFile(source, message, { budget, report, sibling, ranges })
  if (!listed) return report.findings()
  const { files } = listed
  await validateFile(source, message, { budget, report, files })
  checkExternalRanges(ranges, files.sources, report)
  await checkPayloads(listed, report)
  await checkChecksums(ranges, files.sources, report)
  if (message === 'ModelProto') {
    await checkGraphs(source, budget, report)
    await checkFunctions(source, budget, report)
  }
  return report.findings()
}

async function checkPayloads(listed: ListedTensors, report: Report): Promise<void> {
  const tensors = new FileTensors(listed)
  for (let index = 0; index < tensors.length; index++) {
    if (!mayBeBad(listed.table, index)) continue
    const place = { path: `tensors[${index}]`, offset: 0 }
    try {
      await checkPayload(tensors.at(index)!, place, report)
    } catch (error) {
      // A part of a sparse tensor without data, which the walk has told.
      if (error instanceof TileworkError && error.code === 'ERR_NO_DATA') continue
      if (!(error instanceof TileworkError) || !PAYLOAD_CODES.has(error.code)) throw error
      report.broken(error.code, error.message, { ...place, offset: error.offset ?? 0 })
    }
  }
}

/** False where no bytes of values could be wrong: of a million small tensors no object is made then. */
function mayBeBad(table: TensorTable, index: number): boolean {
  const { kind, start, end } = table.at(index)
  if (kind === 'none') return false
  if (kind === 'range') return table.header(index).dtype === 'bool'
  // The message has nothing but its header, which was found to need no entries.
  return kind !== 'fields' || table.headerBytes(index) < end - start
}

/** What bad bytes make reading a payload throw; all else is the source's. */
const PAYLOAD_CODES: ReadonlySet<string> = new Set(['ERR_TRUNCATED', 'ERR_HEADER', 'ERR_COO_INDEX'])

async function checkPayload(
  tensor: Tensor,
  place: { path: string; offset: number },
  report: Report,
): Promise<void> {
  if (!tensor.hasData) return
  if (tensor instanceof CooTensor) {
    const disorder = await tensor.firstDisorder()
    if (disorder) report.deviation(disorder.code, disorder.message, place)
  } else if (tensor instanceof StringFieldTensor) {
    const bad = await tensor.firstBad()
    const message = `String ${bad} of tensor ${quote(tensor.name)} is no UTF-8 text, or has a NUL in it.`
    if (bad !== undefined) report.note('ERR_DTYPE', message, place)
  } else if (tensor instanceof StoredTensor) {
    if (tensor.source instanceof FieldSource) await checkEntries(tensor.source, place, report)
    if (tensor.dtype === 'bool') await checkBooleans(tensor, place, report)
  }
}

async function checkEntries(
  source: FieldSource,
  place: { path: string; offset: number },
  report: Report,
): Promise<void> {
  const surplus = await source.surplus()
  if (surplus === 0) return
  const message = `The values of ${source.label} are ${Math.abs(surplus)} entries ${surplus > 0 ? 'more' : 'fewer'} than its shape has.`
  if (surplus < 0) report.broken('ERR_TRUNCATED', message, place)
  else report.deviation('ERR_GAP', message, place)
}

/** A byte of 2 is undefined behaviour in a language that keeps it as a boolean. */
async function checkBooleans(
  { source, start, name, storage, dtype }: StoredTensor,
  place: { path: string; offset: number },
  report: Report,
): Promise<void> {
  const end = start + storage.byteLength
  for (let at = start; at < end; at += READER_WINDOW_BYTES) {
    const window = await source.read(at, Math.min(end, at + READER_WINDOW_BYTES))
    const found = window.findIndex((byte) => byte > 1)
    if (found < 0) continue
    const message = `Element ${at + found - start} of tensor ${quote(name)} is ${window[found]}; a ${dtype} is 0 or 1.`
    report.note('ERR_DTYPE', message, place)
    return
  }
}

/** SHA-1 of whole files, where tensors declare one. */
async function checkChecksums(
  ranges: ExternalRanges,
  sources: readonly ByteSource[],
  report: Report,
): Promise<void> {
  const digests = new Map<number, string>()
  for (const { file, value, path, offset } of ranges.digests.values()) {
    const digest = digests.get(file) ?? (await sha1Of(sources[file]!))
    digests.set(file, digest)
    if (value.toLowerCase() === digest) continue
    const message = `${quote(sources[file]!.label ?? 'A file')} has the SHA-1 ${digest}; ${path} declares ${quote(value)}.`
    report.deviation('ERR_CHECKSUM', message, { path: `${path}.external_data`, offset })
  }
}

async function sha1Of(source: ByteSource): Promise<string> {
  const hash = createHash('sha1')
  for (let at = 0; at < source.byteLength; at += READER_WINDOW_BYTES) {
    hash.update(await source.read(at, Math.min(source.byteLength, at + READER_WINDOW_BYTES)))
  }
  return hash.digest('hex')
}
