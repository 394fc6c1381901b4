/** Builds ZIP archives record by record, independently of the writer under test; any field can be falsified. */
import { crc32, deflateRawSync } from 'node:zlib'

/** Fields of both the local header and the directory entry. */
export interface HeaderFields {
  readonly name?: Uint8Array
  readonly flags?: number
  readonly method?: number
  readonly crc?: number
  readonly compressedBytes?: number
  readonly bytes?: number
  readonly extra?: Uint8Array
}

export interface MemberFields {
  readonly name: string
  readonly content: Uint8Array
  readonly method?: number
  readonly flags?: number
  /** Bytes in the archive; by default the content, deflated for method 8. */
  readonly stored?: Uint8Array
  /** Overrides in the local header only. */
  readonly local?: HeaderFields
  /** Overrides in the directory only. */
  readonly entry?: HeaderFields & {
    readonly offset?: number
    readonly disk?: number
    readonly signature?: number
  }
  /** Bytes after the data. */
  readonly descriptor?: Uint8Array
  /** Bytes before the local header. */
  readonly gap?: Uint8Array
}

export interface EndFields {
  readonly count?: number
  readonly countHere?: number
  readonly disk?: number
  readonly byteLength?: number
  readonly start?: number
  readonly comment?: Uint8Array
  /** Writes zip64 records too, with these overrides. */
  readonly zip64?: {
    readonly count?: bigint
    readonly byteLength?: bigint
    readonly start?: bigint
    readonly at?: bigint
    readonly signature?: number
    readonly length?: bigint
    readonly parts?: number
  }
  /** Bytes between the directory and the end records. */
  readonly gap?: Uint8Array
}

export const u16 = (...values: number[]): Uint8Array => new Uint8Array(Uint16Array.from(values).buffer)
export const u32 = (...values: number[]): Uint8Array => new Uint8Array(Uint32Array.from(values).buffer)
export const u64 = (...values: (number | bigint)[]): Uint8Array =>
  new Uint8Array(BigUint64Array.from(values, (value) => BigInt(value)).buffer)
export const join = (...chunks: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(chunks))
export const ascii = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'utf8'))

/** An extra field. */
export const extra = (tag: number, content: Uint8Array): Uint8Array => join(u16(tag, content.length), content)

const ESCAPE = 0xffffffff
const NOTHING = new Uint8Array(0)

export function zipBytes(members: readonly MemberFields[], end: EndFields = {}): Uint8Array {
  const chunks: Uint8Array[] = []
  const entries: Uint8Array[] = []
  let position = 0
  const add = (bytes: Uint8Array): void => {
    chunks.push(bytes)
    position += bytes.length
  }
  for (const member of members) {
    add(member.gap ?? NOTHING)
    const { method = 0, flags = 0, content } = member
    const stored = member.stored ?? (method === 8 ? new Uint8Array(deflateRawSync(content)) : content)
    const common = {
      name: ascii(member.name),
      flags,
      method,
      crc: crc32(content),
      compressedBytes: stored.length,
      bytes: content.length,
      extra: NOTHING,
    }
    entries.push(
      directoryEntry({ offset: position, disk: 0, signature: 0x02014b50, ...common, ...member.entry }),
    )
    add(localHeader({ ...common, ...member.local }))
    add(stored)
    add(member.descriptor ?? NOTHING)
  }
  const start = position
  for (const entry of entries) add(entry)
  const byteLength = position - start
  add(end.gap ?? NOTHING)
  if (end.zip64) add(zip64End(end.zip64, { count: members.length, byteLength, start, at: position }))
  const plain = end.zip64
    ? { count: 0xffff, byteLength: ESCAPE, start: ESCAPE }
    : { count: members.length, byteLength, start }
  const { comment = NOTHING } = end
  const fields = { disk: 0, ...plain, ...end }
  add(u32(0x06054b50))
  add(u16(fields.disk, 0, end.countHere ?? fields.count, fields.count))
  add(u32(fields.byteLength, fields.start))
  add(u16(comment.length))
  add(comment)
  return join(...chunks)
}

type AllHeaderFields = Required<HeaderFields>

function localHeader(fields: AllHeaderFields): Uint8Array {
  const { name, flags, method, crc, compressedBytes, bytes } = fields
  return join(
    u32(0x04034b50),
    u16(20, flags, method, 0, 33),
    u32(crc, compressedBytes, bytes),
    u16(name.length, fields.extra.length),
    name,
    fields.extra,
  )
}

function directoryEntry(
  fields: AllHeaderFields & { offset: number; disk: number; signature: number },
): Uint8Array {
  const { name, flags, method, crc, compressedBytes, bytes } = fields
  return join(
    u32(fields.signature),
    u16(20, 20, flags, method, 0, 33),
    u32(crc, compressedBytes, bytes),
    u16(name.length, fields.extra.length, 0, fields.disk, 0),
    u32(0, fields.offset),
    name,
    fields.extra,
  )
}

function zip64End(
  given: NonNullable<EndFields['zip64']>,
  own: { count: number; byteLength: number; start: number; at: number },
): Uint8Array {
  const { count, byteLength, start, at, signature, length, parts } = {
    signature: 0x06064b50,
    length: 44n,
    parts: 1,
    ...own,
    ...given,
  }
  return join(
    u32(signature),
    u64(length),
    u16(45, 45),
    u32(0, 0),
    u64(count, count, byteLength, start),
    u32(0x07064b50, 0),
    u64(at),
    u32(parts),
  )
}
