/**
 * Reads the index of a model in several files, which maps each tensor to a file of the same folder. Every file name is
 * checked before a file is opened, and only `sibling` opens files. safetensors and PyTorch have the same form.
 */
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import type { Budget } from './budget.js'
import { FileFault } from './file_fault.js'
import type { ReadOptions } from './format.js'
import { type JsonHandler, readJson } from './json_events.js'
import { quote } from './quote.js'
import { Report } from './report.js'

/** Maximum shards of an index. Each is an open file; the largest published models have a few hundred. */
export const MAX_SHARDS = 4096

/** Collects the content of an index. */
export class IndexEvents implements JsonHandler {
  /** By tensor in the order of the text: the shard and the offset of its name. */
  readonly weightMap = new Map<string, { shard: string; at: number }>()
  total: { text: string; at: number } | undefined
  hasWeightMap = false
  readonly #budget: Budget
  readonly #report: Report
  /** Keys from the root to the current value; undefined inside an array. */
  readonly #keys: (string | undefined)[] = []

  constructor(budget: Budget, report: Report) {
    this.#budget = budget
    this.#report = report
  }

  beginObject(at: number): void {
    if (this.#isWeightMap() && this.#keys.length === 1) this.hasWeightMap = true
    else this.#refuseNested(at)
    this.#keys.push('')
  }

  endObject(): void {
    this.#keys.pop()
  }

  beginArray(at: number): void {
    this.#refuseNested(at)
    this.#keys.push(undefined)
  }

  endArray(): void {
    this.#keys.pop()
  }

  key(name: string): void {
    this.#keys[this.#keys.length - 1] = name
  }

  value(kind: 'string' | 'number' | 'literal', text: string, at: number): void {
    const name = this.#keys[1]
    if (this.#keys.length === 2 && this.#keys[0] === 'metadata' && name === 'total_size') {
      this.total = { text: kind === 'number' ? text : '', at }
      return
    }
    if (!this.#isWeightMap() || this.#keys.length !== 2 || name === undefined) return
    if (kind !== 'string') {
      this.#refuse(name, at)
      return
    }
    if (this.weightMap.has(name)) {
      const message = `The weight map has the tensor ${quote(name)} twice; the last one counts.`
      this.#report.deviation('ERR_DUPLICATE', message, placeOf(name, at))
    }
    this.weightMap.set(name, { shard: text, at })
    // Checked here, because the largest index could have ten million short entries that take far more memory.
    this.#budget.require('tensors', this.weightMap.size, at)
  }

  #isWeightMap(): boolean {
    return this.#keys[0] === 'weight_map'
  }

  #refuseNested(at: number): void {
    const name = this.#keys[1]
    if (this.#isWeightMap() && this.#keys.length === 2 && name !== undefined) this.#refuse(name, at)
  }

  #refuse(name: string, at: number): void {
    const message = `The weight map entry of ${quote(name)} must be a file name.`
    this.#report.broken('ERR_HEADER', message, placeOf(name, at))
  }
}

export function placeOf(name: string, offset: number): { path: string; offset: number } {
  return { path: `weight_map[${quote(name)}]`, offset }
}

/**
 * The weight map alone, with the offsets of the shard names' opening quotes. Violations are ignored. Undefined where the
 * text cannot be read to its end; empty where the index has no weight map.
 */
export async function readWeightMap(
  source: ByteSource,
  budget: Budget,
): Promise<IndexEvents['weightMap'] | undefined> {
  const events = await readEvents(source, budget, new Report('index', 'lenient', 'collect'))
  return events?.weightMap
}

/** The index, or undefined where it cannot be read, which is reported. */
export async function readIndex(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<IndexEvents | undefined> {
  const events = await readEvents(source, budget, report)
  if (!events || events.hasWeightMap) return events
  report.broken('ERR_HEADER', 'The index has no weight_map object.', { path: '', offset: 0 })
  return undefined
}

async function readEvents(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<IndexEvents | undefined> {
  budget.addFile(source.byteLength)
  const excess = budget.spend('headerBytes', source.byteLength)
  if (excess !== undefined) {
    report.broken('ERR_LIMIT', excess, { path: '', offset: 0 })
    return undefined
  }
  const events = new IndexEvents(budget, report)
  try {
    await readJson(source, 0, source.byteLength, events)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
    return undefined
  }
  return events
}

/** File names with their offsets, in the order of their first tensors; undefined when one may not be opened. */
export function shardsOf({ weightMap }: IndexEvents, report: Report): Map<string, number> | undefined {
  const shards = new Map<string, number>()
  for (const [name, { shard, at }] of weightMap) {
    if (shards.has(shard)) continue
    const fault = faultOfName(shard)
    if (fault !== undefined) {
      const message = `The index names the file ${quote(shard)} for ${quote(name)}, which ${fault}.`
      report.broken('ERR_PATH_ESCAPE', message, placeOf(name, at))
      return undefined
    }
    shards.set(shard, at)
    if (shards.size > MAX_SHARDS) {
      report.broken('ERR_LIMIT', `The index names more than ${MAX_SHARDS} files.`, placeOf(name, at))
      return undefined
    }
  }
  return shards
}

/** Maximum length of a file name on common file systems. */
const MAX_NAME_BYTES = 255

/** Why a name from an index is not a file name in its folder; undefined where it is one. */
function faultOfName(name: string): string | undefined {
  if (name === '') return 'is empty'
  if (name === '.' || name === '..') return 'is a folder'
  if (/[/\\]/.test(name)) return 'has a path separator'
  if (name.includes('\0')) return 'contains NUL'
  // On Windows a colon names another drive or an alternate stream of the file.
  if (name.includes(':')) return 'has a colon'
  return Buffer.byteLength(name) > MAX_NAME_BYTES ? `is longer than ${MAX_NAME_BYTES} bytes` : undefined
}

export async function openShard(
  name: string,
  at: number,
  sibling: ReadOptions['sibling'],
  report: Report,
): Promise<ByteSource | undefined> {
  const place = { path: quote(name), offset: at }
  try {
    return await sibling(name)
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    if (error.code === 'ERR_PATH_ESCAPE' || error.code === 'ERR_UNSUPPORTED') {
      report.broken(error.code, error.message, place)
      return undefined
    }
    if (!isMissing(error)) throw error
    const message = `The shard ${quote(name)} does not exist, so its tensors are omitted: ${error.message}`
    report.omission('a rule', 'ERR_IO', message, place)
    return undefined
  }
}

/** Other failures, such as missing permission or too many open files, must not silently shrink a model. */
function isMissing({ code, cause }: TileworkError): boolean {
  const { code: reason } = Object(cause) as { code?: unknown }
  return code === 'ERR_IO' && reason === 'ENOENT'
}

/** Compares the total of an index, which not all have, with the bytes of the tensors. */
export function checkTotal({ total }: IndexEvents, bytes: number, report: Report): void {
  if (total === undefined) return
  // Some writers compute it as a float and write 16.0.
  if (total.text !== '' && Number(total.text) === bytes) return
  const message = `total_size is ${quote(total.text)}; the tensors have ${bytes} bytes.`
  report.deviation('ERR_HEADER', message, { path: 'metadata.total_size', offset: total.at })
}
