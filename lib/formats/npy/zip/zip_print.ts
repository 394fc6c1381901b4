/** Encodes the records of an archive: local headers, directory, end records. */
import {
  DIRECTORY_ENTRY,
  END,
  EXTRA_ALIGNMENT,
  EXTRA_ZIP64,
  FLAG_UTF8,
  LOCAL_HEADER,
  STORED,
  U16_ESCAPE,
  U32_ESCAPE,
  ZIP64_END,
  ZIP64_LOCATOR,
} from '../../../zip/schema.js'
import { MEMBER_ALIGNMENT } from './npz_schema.js'

/** A stored member to be written. */
export interface StoredMember {
  readonly name: Uint8Array
  /** Bytes of the content. */
  readonly byteLength: number
  /** Offset of the local header. */
  readonly offset: number
  /** Bytes of the alignment field, or 0. */
  readonly padding: number
  /** True to write 64-bit fields that the numbers do not need. */
  readonly forcesZip64: boolean
}

type Unpadded = Omit<StoredMember, 'padding'>

/** Version 2.0 is ZIP with folders and deflate, 4.5 has 64-bit fields. The upper byte 3 means Unix. */
const VERSION = 20
const VERSION_ZIP64 = 45
const MADE_ON_UNIX = 3 << 8

/** Unix mode of a regular file: read and write for the owner, read for all others. */
const FILE_MODE = 0o100644

/** 1980-01-01 00:00, the first date of ZIP: the same tensors give the same bytes. */
const DOS_DATE = (1 << 5) | 1
const DOS_TIME = 0

/** Tag, length, and two 64-bit sizes. */
const LOCAL_ZIP64_BYTES = 20

/** Minimum size of an alignment field: tag, length and alignment. */
const ALIGNMENT_FIELD_BYTES = 6

/** A member whose content starts at a multiple of 64. */
export function storedMember(
  name: Uint8Array,
  byteLength: number,
  offset: number,
  forcesZip64: boolean,
): StoredMember {
  const padding = paddingBefore({ name, byteLength, offset, forcesZip64 })
  return { name, byteLength, offset, padding, forcesZip64 }
}

/** Size of the alignment field that aligns the content to 64 bytes; 0 where none is needed. */
function paddingBefore(member: Unpadded): number {
  const dataStart = member.offset + LOCAL_HEADER.bytes + member.name.byteLength + localZip64Bytes(member)
  const missing = -dataStart & (MEMBER_ALIGNMENT - 1)
  if (dataStart % MEMBER_ALIGNMENT === 0) return 0
  return missing < ALIGNMENT_FIELD_BYTES ? missing + MEMBER_ALIGNMENT : missing
}

function needsZip64({ byteLength, forcesZip64 }: Unpadded): boolean {
  return forcesZip64 || byteLength >= U32_ESCAPE
}

function localZip64Bytes(member: Unpadded): number {
  return needsZip64(member) ? LOCAL_ZIP64_BYTES : 0
}

/** Writes little-endian numbers one after the other. */
class Printer {
  readonly #bytes: Buffer
  #at = 0

  constructor(byteLength: number) {
    this.#bytes = Buffer.alloc(byteLength)
  }

  u16(...values: number[]): this {
    for (const value of values) this.#at = this.#bytes.writeUInt16LE(value, this.#at)
    return this
  }

  u32(...values: number[]): this {
    for (const value of values) this.#at = this.#bytes.writeUInt32LE(value, this.#at)
    return this
  }

  u64(...values: number[]): this {
    for (const value of values) this.#at = this.#bytes.writeBigUInt64LE(BigInt(value), this.#at)
    return this
  }

  bytes(bytes: Uint8Array): this {
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.byteLength
    return this
  }

  skip(count: number): this {
    this.#at += count
    return this
  }

  finish(): Uint8Array {
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength)
  }
}

/** Length of the local header with name and extra fields. */
export function localHeaderBytes(member: StoredMember): number {
  return LOCAL_HEADER.bytes + member.name.byteLength + localZip64Bytes(member) + member.padding
}

/** The local header with name and extra fields. */
export function localHeader(member: StoredMember, crc: number): Uint8Array {
  const { name, byteLength, padding } = member
  const isLong = needsZip64(member)
  const extraBytes = localZip64Bytes(member) + padding
  const size = isLong ? U32_ESCAPE : byteLength
  const out = new Printer(localHeaderBytes(member))
  out.u32(LOCAL_HEADER.signature)
  out.u16(isLong ? VERSION_ZIP64 : VERSION, flagsOf(name), STORED, DOS_TIME, DOS_DATE)
  out.u32(crc, size, size).u16(name.byteLength, extraBytes).bytes(name)
  if (isLong) out.u16(EXTRA_ZIP64, 16).u64(byteLength, byteLength)
  if (padding > 0)
    out.u16(EXTRA_ALIGNMENT, padding - 4, MEMBER_ALIGNMENT).skip(padding - ALIGNMENT_FIELD_BYTES)
  return out.finish()
}

/** Names beyond ASCII get the UTF-8 flag; without it numpy reads them as code page 437. */
function flagsOf(name: Uint8Array): number {
  return name.some((byte) => byte > 0x7f) ? FLAG_UTF8 : 0
}

/** The 64-bit numbers of a directory entry. */
function directoryZip64(member: StoredMember): readonly number[] {
  const { byteLength, offset, forcesZip64 } = member
  const isFar = forcesZip64 || offset >= U32_ESCAPE
  return [...(needsZip64(member) ? [byteLength, byteLength] : []), ...(isFar ? [offset] : [])]
}

/** Length of a directory entry with name and extra field. */
export function directoryEntryBytes(member: StoredMember): number {
  const { length } = directoryZip64(member)
  return DIRECTORY_ENTRY.bytes + member.name.byteLength + (length === 0 ? 0 : 4 + 8 * length)
}

/** The directory entry with name and extra field. */
export function directoryEntry(member: StoredMember, crc: number): Uint8Array {
  const { name, byteLength, offset, forcesZip64 } = member
  const isFar = forcesZip64 || offset >= U32_ESCAPE
  const zip64 = directoryZip64(member)
  const extraBytes = zip64.length === 0 ? 0 : 4 + 8 * zip64.length
  const version = zip64.length === 0 ? VERSION : VERSION_ZIP64
  const size = needsZip64(member) ? U32_ESCAPE : byteLength
  const out = new Printer(directoryEntryBytes(member))
  out.u32(DIRECTORY_ENTRY.signature)
  out.u16(MADE_ON_UNIX | version, version, flagsOf(name), STORED, DOS_TIME, DOS_DATE)
  // No comment, part 0, no internal attributes.
  out.u32(crc, size, size).u16(name.byteLength, extraBytes, 0, 0, 0)
  out.u32(FILE_MODE * 2 ** 16, isFar ? U32_ESCAPE : offset).bytes(name)
  // biome-ignore lint/plugin: at most three sizes and offsets
  if (extraBytes > 0) out.u16(EXTRA_ZIP64, extraBytes - 4).u64(...zip64)
  return out.finish()
}

/** The end records of an archive whose directory has `byteLength` bytes from `start`. */
export function endRecords(
  count: number,
  byteLength: number,
  start: number,
  forcesZip64: boolean,
): Uint8Array {
  const isLong = forcesZip64 || count >= U16_ESCAPE || byteLength >= U32_ESCAPE || start >= U32_ESCAPE
  const out = new Printer((isLong ? ZIP64_END.bytes + ZIP64_LOCATOR.bytes : 0) + END.bytes)
  if (isLong) {
    // The length does not count itself and the signature.
    out.u32(ZIP64_END.signature).u64(ZIP64_END.bytes - 12)
    out
      .u16(MADE_ON_UNIX | VERSION_ZIP64, VERSION_ZIP64)
      .u32(0, 0)
      .u64(count, count, byteLength, start)
    out
      .u32(ZIP64_LOCATOR.signature, 0)
      .u64(start + byteLength)
      .u32(1)
  }
  const shortCount = isLong ? U16_ESCAPE : count
  out.u32(END.signature).u16(0, 0, shortCount, shortCount)
  out.u32(isLong ? U32_ESCAPE : byteLength, isLong ? U32_ESCAPE : start).u16(0)
  return out.finish()
}
