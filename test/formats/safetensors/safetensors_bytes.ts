/** Builds safetensors files byte by byte, independently of the writer under test, and joins a plan into bytes. */
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import { type Level, TileworkError } from '../../../lib/errors.js'
import type { Limits, ReadOptions, WritePlan } from '../../../lib/formats/format.js'

/** Length field, header verbatim, data. */
export function safetensorsFile(header: string | Uint8Array, data: ArrayLike<number> = []): Uint8Array {
  const text = typeof header === 'string' ? Buffer.from(header) : Buffer.from(header)
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return new Uint8Array(Buffer.concat([length, text, Uint8Array.from(data)]))
}

export interface EntryText {
  readonly name: string
  readonly dtype: string
  readonly shape: readonly (number | bigint)[]
  readonly offsets: readonly (number | bigint)[]
}

/** One entry of a header. */
export function entryText({ name, dtype, shape, offsets }: EntryText): string {
  return `${JSON.stringify(name)}:{"dtype":"${dtype}","shape":[${shape}],"data_offsets":[${offsets}]}`
}

/** A header of entries and, where given, metadata. */
export function headerText(entries: readonly EntryText[], metadata?: Record<string, string>): string {
  const texts = entries.map(entryText)
  if (metadata) texts.unshift(`"__metadata__":${JSON.stringify(metadata)}`)
  return `{${texts.join(',')}}`
}

/** Files of a folder in memory. */
export type Folder = Record<string, Uint8Array>

export function readOptions(level: Level = 'strict', folder: Folder = {}, limits: Limits = {}): ReadOptions {
  const sibling = async (name: string): Promise<ByteSource> => {
    if (!Object.hasOwn(folder, name)) {
      throw new TileworkError('ERR_IO', `${name}: ENOENT.`, { cause: { code: 'ENOENT' } })
    }
    return new MemorySource(folder[name]!)
  }
  return { level, limits, sibling }
}

/** The bytes of a planned file. */
export async function bytesOfPlan(plan: WritePlan): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for (const segment of plan.segments) {
    if (segment.kind === 'bytes') chunks.push(segment.bytes)
    else if (segment.kind === 'tensor') chunks.push(await segment.tensor.bytes())
    else throw new Error(`a safetensors plan has no segment of kind ${segment.kind}`)
  }
  const bytes = new Uint8Array(Buffer.concat(chunks))
  if (bytes.byteLength !== plan.byteLength) {
    throw new Error(`the plan promises ${plan.byteLength} bytes and gives ${bytes.byteLength}`)
  }
  return bytes
}

/** All files of a plan. */
export async function folderOfPlan(plan: WritePlan, name: string): Promise<Folder> {
  const folder: Folder = { [name]: await bytesOfPlan(plan) }
  for (const sibling of plan.siblings ?? []) folder[sibling.name] = await bytesOfPlan(sibling)
  return folder
}
