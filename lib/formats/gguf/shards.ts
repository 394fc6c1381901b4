/**
 * Models of several files: `NAME-00001-of-00003.gguf` and so on, each a GGUF file with its number from 0 (`split.no`), the number
 * of files (`split.count`) and of all tensors (`split.tensors.count`). The first file has all other keys.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import type { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import type { Report } from '../report.js'
import type { GgufMetadata } from './metadata.js'
import { ALIGNMENT_KEY, tensorPath } from './schema.js'
import type { WalkedFile } from './tensor_list.js'
import { walkFile } from './walk.js'

export const SPLIT_NUMBER_KEY = 'split.no'
export const SPLIT_COUNT_KEY = 'split.count'
export const SPLIT_TENSORS_KEY = 'split.tensors.count'

/** Keys that describe the division into files; a file of all tensors has none of them. */
export const SPLIT_KEYS: readonly string[] = [SPLIT_NUMBER_KEY, SPLIT_COUNT_KEY, SPLIT_TENSORS_KEY]

/** The name of a shard: what is before its number, and the numbers. A query of a URL may follow. */
const SHARD_NAME = /([^/\\]*)-(\d{5})-of-(\d{5})\.gguf(?:[?#].*)?$/i

/** The name of shard `index`, from 0 on. */
export function shardName(prefix: string, index: number, count: number): string {
  const digits = (value: number): string => String(value).padStart(5, '0')
  return `${prefix}-${digits(index + 1)}-of-${digits(count)}.gguf`
}

/** What is before the numbers in the name of a shard; undefined for another name. */
export function shardPrefix(path: string | undefined): string | undefined {
  return path === undefined ? undefined : SHARD_NAME.exec(path)?.[1]
}

interface Split {
  readonly number: number
  readonly count: number
  readonly tensors: number | undefined
}

/** What the keys of a file say; undefined for a file of all tensors. */
export function splitOf(metadata: GgufMetadata): Split | undefined {
  const numberOf = (key: string): number | undefined => {
    const value = metadata.typeOf(key) === 'array' ? undefined : metadata.get(key)?.value
    return typeof value === 'number' ? value : undefined
  }
  const count = numberOf(SPLIT_COUNT_KEY)
  if (count === undefined || count <= 1) return undefined
  return { number: numberOf(SPLIT_NUMBER_KEY) ?? 0, count, tensors: numberOf(SPLIT_TENSORS_KEY) }
}

/** A file with the report on it. */
export interface ReportedFile extends WalkedFile {
  readonly report: Report
}

/**
 * The files of a model: the first and its shards. A shard that cannot be opened is reported, and its tensors are missing.
 *
 * @returns undefined where a header cannot be used, which is reported
 */
export async function walkShards(
  source: ByteSource,
  budget: Budget,
  report: Report,
  sibling: ReadOptions['sibling'],
): Promise<readonly ReportedFile[] | undefined> {
  const header = await walkFile(source, budget, report)
  if (!header) return undefined
  const first = { source, header, report }
  const split = splitOf(header.metadata)
  if (!split) return [first]
  const prefix = shardPrefix(source.label)
  if (split.number !== 0 || prefix === undefined) {
    const reason =
      split.number === 0
        ? 'the name of the file does not say those of the others'
        : 'open the first for the whole model'
    const message = `The file is shard ${split.number + 1} of ${split.count}, and only its tensors are listed: ${reason}.`
    report.omission('no rule', 'ERR_IO', message, { path: '', offset: 0 })
    return [first]
  }
  const files: ReportedFile[] = [first]
  for (let index = 1; index < split.count; index++) {
    const name = shardName(prefix, index, split.count)
    const shard = await openShard(name, sibling, report)
    if (!shard) continue
    const part = report.forPart(name)
    const walked = await walkFile(shard, budget, part)
    if (!walked) return undefined
    const file = { source: shard, header: walked, report: part }
    checkShard(file, index, files, split)
    files.push(file)
  }
  checkTotal(files, split, report)
  return files
}

async function openShard(
  name: string,
  sibling: ReadOptions['sibling'],
  report: Report,
): Promise<ByteSource | undefined> {
  try {
    return await sibling(name)
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    report.omission('a rule', error.code, `${name}: ${error.message}`, { path: name, offset: 0 })
    return undefined
  }
}

function checkShard(
  file: ReportedFile,
  index: number,
  before: readonly ReportedFile[],
  { count }: Split,
): void {
  const { header, report } = file
  const own = splitOf(header.metadata)
  if (own?.number !== index || own.count !== count) {
    const message = `The keys say shard ${own ? `${own.number + 1} of ${own.count}` : 'of no model'}; the name says ${index + 1} of ${count}.`
    report.deviation('ERR_VALUE', message, { path: '', offset: 0 })
  }
  const [first] = before
  // gguf-py pads all shards by the key of the first and writes it there alone: its own reader then reads padding as weights.
  if (header.alignment !== first!.header.alignment) {
    const message = `The alignment is ${header.alignment}, and ${first!.header.alignment} in the first shard; check that ${ALIGNMENT_KEY} is not missing here.`
    report.deviation('ERR_VALUE', message, { path: `metadata["${ALIGNMENT_KEY}"]`, offset: 0 })
  }
  for (let at = 0; at < header.table.length; at++) {
    const name = header.table.name(at)
    if (!before.some((other) => other.header.table.find(name) !== undefined)) continue
    const path = tensorPath(name, at)
    report.broken('ERR_DUPLICATE', `${path}: another shard has a tensor of this name.`, { path, offset: 0 })
  }
}

function checkTotal(files: readonly ReportedFile[], { count, tensors }: Split, report: Report): void {
  if (files.length < count || tensors === undefined) return
  let total = 0
  for (const { header } of files) total += header.table.length
  if (total === tensors) return
  const message = `${SPLIT_TENSORS_KEY} is ${tensors}; the ${count} shards have ${total} tensors.`
  report.deviation('ERR_VALUE', message, { path: `metadata["${SPLIT_TENSORS_KEY}"]`, offset: 0 })
}
