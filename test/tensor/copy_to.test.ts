/** Storage bytes into memory of the caller, from every kind of source. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type DenseTensor, open, reorder, save, tensor } from '../../lib/index.js'

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
  test('windows of any size and place', async () => {
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

  test('refuses what lies outside, and closed files', async () => {
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
