/**
 * Reports everything wrong with a safetensors file, or with an index and its shards: violations of the header rules, and of the
 * rules on payloads (booleans are 0 or 1, unused bits of 4-bit tensors are 0). Bad bytes become findings; only a source that
 * cannot be read throws.
 */
import { READER_WINDOW_BYTES } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import type { Finding } from '../../errors.js'
import { Budget } from '../budget.js'
import { FileHead } from '../file_head.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { isIndex } from './detect.js'
import type { Entry } from './entry_table.js'
import { DEFAULT_LIMITS, FORMAT_NAME, tensorPath } from './schema.js'
import { walkIndex } from './shard_index.js'
import type { WalkedFile } from './tensor_list.js'
import { walkFile } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits, sibling }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  const budget = new Budget(limits, DEFAULT_LIMITS)
  if (await isIndex(await FileHead.read(source))) {
    const walk = await walkIndex(source, budget, report, sibling)
    for (const [position, file] of walk?.files.entries() ?? []) {
      await checkPayloads(file, walk!.reports[position]!)
    }
  } else {
    const header = await walkFile(source, budget, report)
    if (header) await checkPayloads({ source, header }, report)
  }
  return report.findings()
}

async function checkPayloads({ source, header }: WalkedFile, report: Report): Promise<void> {
  for (const index of header.order) {
    const entry = header.table.at(index)!
    if (entry.begin === entry.end) continue
    if (entry.type.dtype === 'bool') await checkBooleans(source, entry, header.dataStart, report)
    if (entry.type.bits < 8) await checkLastBits(source, entry, header.dataStart, report)
  }
}

/** Bytes other than 0 and 1: legal in the file, but undefined behaviour in languages whose booleans are bytes. */
async function checkBooleans(
  source: ByteSource,
  { name, begin, end }: Entry,
  dataStart: number,
  report: Report,
): Promise<void> {
  for (let at = dataStart + begin; at < dataStart + end; at += READER_WINDOW_BYTES) {
    const window = await source.read(at, Math.min(dataStart + end, at + READER_WINDOW_BYTES))
    const found = window.findIndex((byte) => byte > 1)
    if (found < 0) continue
    const element = at + found - dataStart - begin
    const message = `${tensorPath(name)}: element ${element} is ${window[found]}; a boolean is 0 or 1.`
    report.note('ERR_DTYPE', message, { path: tensorPath(name), offset: at + found })
    return
  }
}

async function checkLastBits(
  source: ByteSource,
  { name, shape, type, end }: Entry,
  dataStart: number,
  report: Report,
): Promise<void> {
  const isFull = shape.some((extent) => extent % 2 === 0)
  if (isFull) return
  const offset = dataStart + end - 1
  const [last] = await source.read(offset, offset + 1)
  if (last! >> type.bits === 0) return
  const message = `${tensorPath(name)}: the unused bits of the last byte are not zero.`
  report.deviation('ERR_GAP', message, { path: `${tensorPath(name)}.padding`, offset })
}
