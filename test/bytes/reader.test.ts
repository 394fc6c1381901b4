import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import { ByteReader } from '../../lib/bytes/reader.js'

const bytes = Uint8Array.from({ length: 40 }, (_, i) => i)
const code = (name: string) => expect.objectContaining({ code: name })

describe('ByteReader', () => {
  it('reads fields from its window and reports the bytes left in it', async () => {
    const reader = new ByteReader(new MemorySource(bytes), 16)
    expect(reader.holds(1)).toBe(false)
    await reader.load(8)
    expect([reader.u8(), reader.u8()]).toEqual([0, 1])
    expect([...reader.bytes(3)]).toEqual([2, 3, 4])
    expect(reader.position).toBe(5)
    expect([reader.holds(11), reader.holds(12)]).toEqual([true, false])
    reader.seek(30)
    expect(() => reader.u8()).toThrow(code('ERR_RANGE'))
    await reader.load(10)
    expect(reader.remaining).toBe(10)
  })

  it('reads unsigned 64-bit numbers exactly', async () => {
    const numbers = [0n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 64n - 1n]
    const reader = new ByteReader(new MemorySource(new Uint8Array(BigUint64Array.from(numbers).buffer)))
    await reader.load(40)
    const read = numbers.map(() => reader.u64())
    expect(read).toEqual([0, 2 ** 32, Number.MAX_SAFE_INTEGER, 2n ** 53n, 2n ** 64n - 1n])
  })

  it('reports the end of the source', async () => {
    const reader = new ByteReader(new MemorySource(bytes))
    reader.seek(36)
    await expect(reader.load(8)).rejects.toThrow(code('ERR_TRUNCATED'))
    await reader.load(4)
    expect(() => reader.u64()).toThrow(code('ERR_TRUNCATED'))
    expect(() => reader.seek(41)).toThrow(code('ERR_RANGE'))
    expect(() => reader.seek(-1)).toThrow(code('ERR_RANGE'))
  })
})
