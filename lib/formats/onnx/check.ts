/**
 * Checks everything in an ONNX file, including rules that need the payloads: counts of entries, booleans, sparse indices,
 * strings, checksums. Bad bytes become findings; only a source that cannot be read throws.
 */
import { createHash } from 'node:crypto'
import { READER_WINDOW_BYTES } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { StoredTensor } from '../../tensor/dense.js'
import { CooTensor } from '../../tensor/sparse.js'
import type { Tensor } from '../../tensor/tensor.js'
import { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import type { Report } from '../report.js'
import { chooseMessage } from './choose_message.js'
import { checkExternalRanges, ExternalRanges } from './external/ranges.js'
import { checkFunctions } from './function_rules.js'
import { checkGraphs } from './graph_rules.js'
import { FieldSource } from './protobuf/field_source.js'
import { DEFAULT_LIMITS, quote } from './schema.js'
import { StringFieldTensor } from './tensor/strings.js'
import type { TensorTable } from './tensor/table.js'
import { FileTensors, type ListedTensors } from './tensor/tensor_list.js'
import { validateFile } from './validate.js'
import { walkFile } from './walk.js'

/** What the rules for types need of a model whose bytes were checked. */
export interface CheckedModel {
  /** Open external data files by location. */
  readonly files: ReadonlyMap<string, ByteSource>
  /** Number of nodes, functions included. */
  readonly nodes: number
}

/**
 * Reports everything that is wrong with the bytes of a file and with the names of its graphs.
 *
 * @returns undefined where the file is no model or cannot be walked
 * @throws TileworkError errors of the source only: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED
 */
export async function checkBytes(
  source: ByteSource,
  options: ReadOptions,
  report: Report,
): Promise<CheckedModel | undefined> {
  const { limits, sibling } = options
  const message = await chooseMessage(source, options, report)
  if (message === undefined) return undefined
  const budget = new Budget(limits, DEFAULT_LIMITS)
  const ranges = new ExternalRanges()
  const listed = await walkFile(source, message, { budget, report, sibling, ranges })
  if (!listed) return undefined
  const { files } = listed
  await validateFile(source, message, { budget, report, files })
  checkExternalRanges(ranges, files.sources, report)
  await checkPayloads(listed, report)
  await checkChecksums(ranges, files.sources, report)
  if (message !== 'ModelProto') return undefined
  const nodes = await checkGraphs(source, budget, report)
  await checkFunctions(source, budget, report)
  return { files: files.byLocation, nodes }
}

async function checkPayloads(listed: ListedTensors, report: Report): Promise<void> {
  const tensors = new FileTensors(listed)
  for (let index = 0; index < tensors.length; index++) {
    if (!mayBeBad(listed.table, index)) continue
    const place = { path: `tensors[${index}]`, offset: 0 }
    try {
      await checkPayload(tensors.at(index)!, place, report)
    } catch (error) {
      // Values or indices of a sparse tensor are missing, which the walk has reported.
      if (error instanceof TileworkError && error.code === 'ERR_NO_DATA') continue
      if (!(error instanceof TileworkError) || !PAYLOAD_CODES.has(error.code)) throw error
      report.broken(error.code, error.message, { ...place, offset: error.offset ?? 0 })
    }
  }
}

/** False where no payload byte can break a rule, so that most of a million small tensors are never made. */
function mayBeBad(table: TensorTable, index: number): boolean {
  const { kind, start, end } = table.at(index)
  if (kind === 'none') return false
  if (kind === 'range') return table.header(index).dtype === 'bool'
  // The message is all header, and the walk found that it needs no entries.
  return kind !== 'fields' || table.headerBytes(index) < end - start
}

/** Codes that bad payload bytes cause; other errors come from the source. */
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
    const message = `String ${bad} of tensor ${quote(tensor.name)} is not valid UTF-8 or contains a NUL.`
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
  const message = `The values of ${source.label} have ${Math.abs(surplus)} entries ${surplus > 0 ? 'more' : 'fewer'} than its shape needs.`
  if (surplus < 0) report.broken('ERR_TRUNCATED', message, place)
  else report.deviation('ERR_GAP', message, place)
}

/** Reading any other byte as a `bool` is undefined behavior in C and C++ readers. */
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

/** Compares declared SHA-1 digests with the external files. */
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
