/**
 * Checks a Windows binary that is to be shipped, without tools of Windows: size, imported libraries, exports, and that no
 * import names a program. Fields are those of Microsoft's "PE Format".
 */
import { readFileSync } from 'node:fs'
import { checkShipped, zeroTerminated } from './check_shipped.mjs'

/** Parts of every Windows from 10 on. */
const LIBRARIES = /^(kernel32|ntdll|advapi32|api-ms-win-crt-[a-z]+-l1-1-0)\.dll$/i

/** DYNAMIC_BASE, HIGH_ENTROPY_VA, NX_COMPAT */
const HARDENED = 0x0040 | 0x0020 | 0x0100

/** Ends this process where the binary may not be shipped. @param {string} path @returns {string} what was found */
export function checkPe(path) {
  const bytes = readFileSync(path)
  const pe = headers(bytes)
  const imports = importsOf(bytes, pe)
  const libraries = imports.map(({ library }) => library)
  const { kib, refuse } = checkShipped(path, { libraries, known: LIBRARIES, exported: exportsOf(bytes, pe) })
  if ((pe.characteristics & HARDENED) !== HARDENED) refuse('it may not be loaded at any address')
  const functions = imports.reduce((sum, { count }) => sum + count, 0)
  return `${kib}, needs ${libraries.join(' ')}, ${functions} functions`
}

function headers(bytes) {
  const start = bytes.readUInt32LE(0x3c)
  const optional = start + 24
  const sectionCount = bytes.readUInt16LE(start + 6)
  const table = optional + bytes.readUInt16LE(start + 20)
  const sections = Array.from({ length: sectionCount }, (_, index) => {
    const at = table + 40 * index
    return {
      address: bytes.readUInt32LE(at + 12),
      size: bytes.readUInt32LE(at + 16),
      offset: bytes.readUInt32LE(at + 20),
    }
  })
  const directory = (index) => bytes.readUInt32LE(optional + 112 + 8 * index)
  return {
    characteristics: bytes.readUInt16LE(optional + 70),
    exports: directory(0),
    imports: directory(1),
    /** The offset in the file of an address in memory. */
    offsetOf(address) {
      const section = sections.find((one) => address >= one.address && address < one.address + one.size)
      return address - section.address + section.offset
    },
  }
}

function importsOf(bytes, pe) {
  const imports = []
  for (let at = pe.offsetOf(pe.imports); bytes.readUInt32LE(at + 12) !== 0; at += 20) {
    const names = pe.offsetOf(bytes.readUInt32LE(at))
    let count = 0
    while (bytes.readBigUInt64LE(names + 8 * count) !== 0n) count++
    imports.push({ library: zeroTerminated(bytes, pe.offsetOf(bytes.readUInt32LE(at + 12))), count })
  }
  return imports
}

function exportsOf(bytes, pe) {
  if (pe.exports === 0) return []
  const at = pe.offsetOf(pe.exports)
  const names = pe.offsetOf(bytes.readUInt32LE(at + 32))
  return Array.from({ length: bytes.readUInt32LE(at + 24) }, (_, index) =>
    zeroTerminated(bytes, pe.offsetOf(bytes.readUInt32LE(names + 4 * index))),
  )
}
