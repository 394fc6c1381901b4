/** Results large enough for memory with huge pages. */
import { describe, expect, test } from 'vitest'
import { memoryBudget, reorder, serialize, setMemoryBudget, tensor } from '../../lib/index.js'
import { native } from '../../lib/native/addon.js'

/** More than 2 MiB, and not a multiple of the page size. */
const SHAPE = [3, 1031, 1021]
const values = Uint8Array.from({ length: 3 * 1031 * 1021 }, (_, i) => (i * 7 + (i >> 9)) & 255)
const planes = tensor(values, { shape: SHAPE, dtype: 'uint8' })
const pixels = reorder(planes, 'column_major')

function checkPixels(bytes: Uint8Array): void {
  expect(bytes.byteLength).toBe(values.byteLength)
  for (let plane = 0; plane < 3; plane++) {
    for (let y = 0; y < 1031; y += 103) {
      for (let x = 0; x < 1021; x += 51) {
        expect(bytes[(x * 1031 + y) * 3 + plane]).toBe(values[(plane * 1031 + y) * 1021 + x])
      }
    }
  }
}

describe('large results', () => {
  test('are correct and newly allocated, from run and runSync', async () => {
    const first = pixels.bytesSync()
    const second = await pixels.bytes()
    checkPixels(first)
    checkPixels(second)
    expect(second.buffer).not.toBe(first.buffer)
    expect(first.byteOffset).toBe(0)
    expect(first.buffer.byteLength).toBe(first.byteLength)
  })

  test('can be transferred', () => {
    const bytes = pixels.bytesSync()
    const moved = structuredClone(bytes, { transfer: [bytes.buffer as ArrayBuffer] })
    expect(bytes.byteLength).toBe(0)
    checkPixels(moved)
  })

  test('respect the memory budget', async () => {
    const before = memoryBudget()
    setMemoryBudget(2 ** 21)
    try {
      expect(() => pixels.bytesSync()).toThrow(expect.objectContaining({ code: 'ERR_LIMIT' }))
      await expect(serialize([planes], { format: 'btf' })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    } finally {
      setMemoryBudget(before)
    }
  })

  test('preparing pages keeps the bytes in them', () => {
    const bytes = new Uint8Array(5 * 2 ** 20).fill(3)
    for (const part of [bytes, bytes.subarray(1), bytes.subarray(7, 4096), bytes.subarray(0, 0)]) {
      native().preparePages(part)
    }
    expect(bytes.every((byte) => byte === 3)).toBe(true)
    expect(() => native().preparePages('bytes' as unknown as Uint8Array)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })
})
