/** Signatures of macOS libraries. That they are those of a linker is tested where there is one: test/programs/cross.mjs. */
import { describe, expect, test } from 'vitest'

// The scripts are plain JavaScript, which the type checker does not read.
const {
  hasSignature,
  hasValidSignature,
  loadCommands,
  signed,
}: {
  hasSignature(bytes: Buffer): boolean
  hasValidSignature(bytes: Buffer): boolean
  loadCommands(bytes: Buffer): { at: number }[]
  signed(bytes: Buffer, identifier: string): Buffer
} = await import(String(new URL('../../scripts/sign_macho.mjs', import.meta.url)))

const X64 = 0x01000007
const ARM64 = 0x0100000c
const SEGMENT_BYTES = 72

function segment(name: string, offset: number, size: number): Buffer {
  const bytes = Buffer.alloc(SEGMENT_BYTES)
  bytes.writeUInt32LE(0x19, 0)
  bytes.writeUInt32LE(SEGMENT_BYTES, 4)
  bytes.write(name, 8)
  bytes.writeBigUInt64LE(BigInt(offset), 40)
  bytes.writeBigUInt64LE(BigInt(size), 48)
  return bytes
}

/** A library of three pages of 16 KiB and 5 bytes, the last page its __LINKEDIT. */
function library({ cpu = X64, room = 16 } = {}): Buffer {
  const bytes = Buffer.alloc(3 * 16384 + 5, 0xaa)
  const commands = [segment('__TEXT', 0, 32768), segment('__LINKEDIT', 32768, 16389)]
  bytes.fill(0, 0, 32 + 2 * SEGMENT_BYTES + room)
  bytes.writeUInt32LE(0xfeedfacf, 0)
  bytes.writeUInt32LE(cpu, 4)
  bytes.writeUInt32LE(commands.length, 16)
  bytes.writeUInt32LE(commands.length * SEGMENT_BYTES, 20)
  Buffer.concat(commands).copy(bytes, 32)
  return bytes
}

describe.each([
  ['x64, pages of 4 KiB', X64, 13],
  ['arm64, pages of 16 KiB', ARM64, 4],
])('%s', (_, cpu, pages) => {
  const plain = library({ cpu })
  const bytes = signed(plain, 'tilework.node')
  const [, linkedit, command] = loadCommands(bytes).map(({ at }) => at)
  const start = bytes.readUInt32LE(command! + 8)

  test('the signature is valid and lies behind the code, in the last segment', () => {
    expect(hasSignature(plain)).toBe(false)
    expect(hasValidSignature(plain)).toBe(false)
    expect(hasValidSignature(bytes)).toBe(true)
    expect(start % 16).toBe(0)
    expect(start + bytes.readUInt32LE(command! + 12)).toBe(bytes.length)
    expect(bytes.readBigUInt64LE(linkedit! + 48)).toBe(BigInt(bytes.length - 32768))
    expect(bytes.subarray(200, plain.length).equals(plain.subarray(200))).toBe(true)
  })

  test('it has one hash per page', () => {
    expect(bytes.readUInt32BE(start + 20 + 28)).toBe(pages)
    expect(bytes.readUInt32BE(start + 20 + 32)).toBe(start)
  })

  test('a changed byte makes it invalid', () => {
    for (const at of [0, 100, plain.length - 1, start + 20, bytes.length - 20]) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= 1
      expect(hasValidSignature(changed), `byte ${at}`).toBe(false)
    }
    expect(hasValidSignature(bytes.subarray(0, -1))).toBe(false)
  })
})

test('a library without room for the load command is refused', () => {
  expect(() => signed(library({ room: 8 }), 'x')).toThrow('no room for a load command')
})

test('a library with bytes behind its last segment is refused', () => {
  expect(() => signed(Buffer.concat([library(), Buffer.of(1)]), 'x')).toThrow('__LINKEDIT is not last')
})
