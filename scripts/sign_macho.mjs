/**
 * Signs a macOS library ad hoc: a hash per page and no identity, as linkers do on a Mac. zig's linker signs for arm64 alone.
 * Fields are those of <mach-o/loader.h> and of xnu's cs_blobs.h, which are big-endian.
 */
import { createHash } from 'node:crypto'

const HEADER_BYTES = 32
const SEGMENT = 0x19
const CODE_SIGNATURE = 0x1d
const ARM64 = 0x0100000c

const EMBEDDED_SIGNATURE = 0xfade0cc0
const CODE_DIRECTORY = 0xfade0c02
const VERSION = 0x20400
const AD_HOC_BY_LINKER = 0x20002
const SHA256 = 2

/** The parts of the signature before its hashes: one entry in a list of blobs, and the code directory. */
const LIST_BYTES = 20
const DIRECTORY_BYTES = 88

/** The load commands of a 64-bit Mach-O file, with their places. @param {Buffer} bytes */
export function loadCommands(bytes) {
  const commands = []
  let at = HEADER_BYTES
  for (let left = bytes.readUInt32LE(16); left > 0; left--) {
    commands.push({ kind: bytes.readUInt32LE(at) & 0xff, at })
    at += bytes.readUInt32LE(at + 4)
  }
  return commands
}

/**
 * @param {Buffer} bytes - a library without a signature
 * @param {string} identifier - its name in the signature
 * @returns {Buffer} the library with one
 */
export function signed(bytes, identifier) {
  const start = Math.ceil(bytes.length / 16) * 16
  const size = signatureBytes(start, identifier, pageBits(bytes))
  const code = Buffer.alloc(start)
  bytes.copy(code)
  announce(code, bytes.length, start, size)
  return Buffer.concat([code, signature(code, identifier, size)])
}

/** @param {Buffer} bytes */
export function hasSignature(bytes) {
  return loadCommands(bytes).some(({ kind }) => kind === CODE_SIGNATURE)
}

/** Whether the library ends with exactly the signature that `signed` writes. @param {Buffer} bytes */
export function hasValidSignature(bytes) {
  const command = loadCommands(bytes).find(({ kind }) => kind === CODE_SIGNATURE)
  if (command === undefined) return false
  const start = bytes.readUInt32LE(command.at + 8)
  const size = bytes.readUInt32LE(command.at + 12)
  if (start + size !== bytes.length) return false
  const name = start + LIST_BYTES + DIRECTORY_BYTES
  const identifier = bytes.toString('utf8', name, bytes.indexOf(0, name))
  return signature(bytes.subarray(0, start), identifier, size).equals(bytes.subarray(start))
}

/** Pages have 16 KiB on arm64 and 4 KiB on x64. */
function pageBits(bytes) {
  return bytes.readUInt32LE(4) === ARM64 ? 14 : 12
}

function signatureBytes(start, identifier, bits) {
  const pages = Math.ceil(start / 2 ** bits)
  const used = LIST_BYTES + DIRECTORY_BYTES + Buffer.byteLength(identifier) + 1 + 32 * pages
  return Math.ceil(used / 8) * 8
}

/** Adds the load command, and makes the last segment hold the signature. */
function announce(code, end, start, size) {
  const commands = loadCommands(code)
  const linkedit = commands.find(({ kind, at }) => kind === SEGMENT && nameAt(code, at + 8) === '__LINKEDIT')
  const offset = Number(code.readBigUInt64LE(linkedit.at + 40))
  if (offset + Number(code.readBigUInt64LE(linkedit.at + 48)) !== end)
    throw new Error('__LINKEDIT is not last')
  const commandsBytes = code.readUInt32LE(20)
  const at = HEADER_BYTES + commandsBytes
  if (code.subarray(at, at + 16).some((byte) => byte !== 0)) throw new Error('no room for a load command')
  code.writeUInt32LE(commands.length + 1, 16)
  code.writeUInt32LE(commandsBytes + 16, 20)
  for (const [index, value] of [CODE_SIGNATURE, 16, start, size].entries())
    code.writeUInt32LE(value, at + 4 * index)
  const page = 2 ** pageBits(code)
  const total = start + size - offset
  code.writeBigUInt64LE(BigInt(Math.ceil(total / page) * page), linkedit.at + 32)
  code.writeBigUInt64LE(BigInt(total), linkedit.at + 48)
}

function signature(code, identifier, size) {
  const bits = pageBits(code)
  const pages = Math.ceil(code.length / 2 ** bits)
  const names = LIST_BYTES + DIRECTORY_BYTES
  const hashes = names + Buffer.byteLength(identifier) + 1
  const bytes = Buffer.alloc(size)
  const used = hashes + 32 * pages
  write(bytes, 0, [EMBEDDED_SIGNATURE, used, 1, 0, LIST_BYTES])
  const fromDirectory = [hashes, names].map((offset) => offset - LIST_BYTES)
  const sizes = [0, pages, code.length]
  write(bytes, LIST_BYTES, [
    CODE_DIRECTORY,
    used - LIST_BYTES,
    VERSION,
    AD_HOC_BY_LINKER,
    ...fromDirectory,
    ...sizes,
  ])
  bytes.set([32, SHA256, 0, bits], LIST_BYTES + 36)
  // The executable segment: __TEXT, from the beginning of the file.
  const text = loadCommands(code).find(
    ({ kind, at }) => kind === SEGMENT && nameAt(code, at + 8) === '__TEXT',
  )
  bytes.writeBigUInt64BE(code.readBigUInt64LE(text.at + 48), LIST_BYTES + 72)
  bytes.write(identifier, names)
  for (let page = 0; page < pages; page++) {
    const content = code.subarray(page << bits, (page + 1) << bits)
    bytes.set(createHash('sha256').update(content).digest(), hashes + 32 * page)
  }
  return bytes
}

function write(bytes, at, values) {
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, at + 4 * index)
}

function nameAt(bytes, at) {
  return bytes.toString('latin1', at, at + 16).replace(/\0+$/, '')
}
