/** Copies storage bytes into the caller's memory, from every kind of source. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { asTensor, cast, type DenseTensor, open, reorder, save, stats, tensor } from '../../lib/index.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-copy-to-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, 'in.btf')
const values = new Uint16Array(1_000_003).map((_, i) => i * 40503)
await save(path, tensor(values, { dtype: 'uint16', shape: [values.length] }))

const sources = {
  'a mapped file': () => open(path),
  'a file that is read': () => open(path, { mode: 'read' }),
  memory: () => open(readFileSync(path)),
}

describe.each(Object.entries(sources))('from %s', (_, openFile) => {
  test('windows of any size and offset', async () => {
    const file = await openFile()
    const stored = file.tensors.at(0) as DenseTensor
    const all = new Uint8Array(values.buffer)
    for (const candidate of [stored, reorder(reorder(stored, 'bfyx'), 'row_major')]) {
      for (const [start, length] of [
        [0, 10],
        [3, 5],
        [999, 1_500_000],
        [all.length - 1, 1],
        [all.length, 0],
      ] as const) {
        const target = new Uint8Array(length)
        await candidate.copyTo(target, { start })
        expect(Buffer.compare(target, all.subarray(start, start + length))).toBe(0)
        candidate.copyToSync(target.fill(0), { start })
        expect(Buffer.compare(target, all.subarray(start, start + length))).toBe(0)
      }
    }
    file.close()
  })

  test('rejects ranges outside and closed files', async () => {
    const file = await openFile()
    const stored = file.tensors.at(0) as DenseTensor
    const outside = { start: values.byteLength - 3 }
    await expect(stored.copyTo(new Uint8Array(4), outside)).rejects.toMatchObject({ code: 'ERR_RANGE' })
    const closed = (): void => stored.copyToSync(new Uint8Array(4))
    await expect(stored.copyTo([] as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    file.close()
    expect(closed).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }))
    await expect(stored.copyTo(new Uint8Array(4))).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })
})

/** A resizable buffer larger than one copy step. */
function resizable(byteLength: number): Uint8Array<ArrayBuffer> {
  const options = { maxByteLength: 2 * byteLength }
  return new Uint8Array(Reflect.construct(ArrayBuffer, [byteLength, options]) as ArrayBuffer)
}

describe.each(Object.entries(sources))('from %s, memory that its owner', (_, openFile) => {
  const all = new Uint8Array(values.buffer)
  const candidates = (stored: DenseTensor) => [stored, reorder(stored, 'row_major'), cast(stored, 'int32')]

  test('may resize is filled like any other', async () => {
    const file = await openFile()
    const target = resizable(all.length)
    for (const candidate of candidates(file.dense(0)).slice(0, 2)) {
      await candidate.copyTo(target.fill(0))
      expect(Buffer.compare(target, all)).toBe(0)
      candidate.copyToSync(target.fill(0))
      expect(Buffer.compare(target, all)).toBe(0)
    }
    file.close()
  })

  test('took away is refused, before and meanwhile', async () => {
    const file = await openFile()
    for (const candidate of candidates(file.dense(0))) {
      const gone = new Uint8Array(64)
      structuredClone(gone.buffer, { transfer: [gone.buffer] })
      await expect(candidate.copyTo(gone)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
      expect(() => candidate.copyToSync(gone)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
      const going = new Uint8Array(64)
      const copied = candidate.copyTo(going)
      structuredClone(going.buffer, { transfer: [going.buffer] })
      await expect(copied).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
    file.close()
  })
})

test('a tensor in resizable memory can be reordered, cast and summarized', async () => {
  const memory = resizable(4 * 19 * 35)
  new Float32Array(memory.buffer, 0, 19 * 35).set(Float32Array.from({ length: 19 * 35 }, (_, i) => i))
  const stored = asTensor(new Float32Array(memory.buffer, 0, 19 * 35), { shape: [1, 19, 5, 7] })
  const plain = asTensor(new Float32Array(memory.buffer).slice(0, 19 * 35), { shape: [1, 19, 5, 7] })
  for (const change of [
    (x: DenseTensor) => reorder(x, 'b_fs_yx_fsv16'),
    (x: DenseTensor) => cast(reorder(x, 'byxf'), 'float16'),
  ]) {
    expect(Buffer.compare(await change(stored).bytes(), await change(plain).bytes())).toBe(0)
    expect(Buffer.compare(change(stored).bytesSync(), change(plain).bytesSync())).toBe(0)
  }
  expect(await stats(stored)).toEqual(await stats(plain))
})

test('a part of a computed tensor is computed into the target', async () => {
  const lazy = reorder(
    tensor(values.subarray(0, 2 * 19 * 35), { dtype: 'uint16', shape: [2, 19, 5, 7] }),
    'b_fs_yx_fsv16',
  )
  const all = await lazy.bytes()
  const target = new Uint8Array(101)
  for (const start of [0, 2, 7]) {
    await lazy.copyTo(target, { start })
    expect(target).toEqual(all.slice(start, start + 101))
  }
})
