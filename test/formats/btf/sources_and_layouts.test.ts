/** BTF through each kind of source, and what the writer makes of sparse and blocked tensors. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { openSource } from '../../../lib/bytes/open_source.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import { TileworkError } from '../../../lib/errors.js'
import { btf } from '../../../lib/formats/btf/index.js'
import { asLayout } from '../../../lib/tensor/as_layout.js'
import { tensor } from '../../../lib/tensor/from_values.js'
import { CooTensor, sparseFromDense } from '../../../lib/tensor/sparse.js'
import type { DenseTensor, SparseTensor } from '../../../lib/tensor/tensor.js'
import { seedFiles } from '../../attacks/btf/attacks.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../../shared_fixtures.js'
import { bytesOfPlan, readOptions } from './btf_bytes.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-btf-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const lenient = readOptions('lenient')

/** Everything that a reader reports about a file. */
async function describeFile(source: ByteSource): Promise<unknown> {
  const opened = await btf.read(source, lenient).catch((error: unknown) => error)
  const checked = await btf.check(source, lenient)
  if (opened instanceof TileworkError) return { refused: opened.code, path: opened.path, checked }
  const { tensors, findings } = opened as Awaited<ReturnType<typeof btf.read>>
  const described = []
  for (const each of tensors) {
    const stored =
      each.kind === 'dense'
        ? await each.bytes()
        : await (await (each as SparseTensor).toDense({ maxBytes: 4096 })).bytes()
    const { name, kind, dtype, shape } = each
    described.push({ name, kind, dtype, shape, digest: createHash('sha256').update(stored).digest('hex') })
  }
  return { tensors: described, findings, checked }
}

async function throughEverySource(path: string, bytes: Uint8Array): Promise<unknown[]> {
  const sources = [
    await openSource(path, { mode: 'map' }),
    await openSource(path, { mode: 'read' }),
    await openSource(bytes),
    await openSource({
      byteLength: bytes.length,
      read: async (start, end) => bytes.slice(start, end),
    }),
  ]
  const described = await Promise.all(sources.map(describeFile))
  for (const source of sources) source.close?.()
  return described
}

describe("a mapped file, a read file, memory and a caller's source give the same", () => {
  it.each(seedFiles().map((bytes, number) => ({ bytes, number })))(
    'of made file $number',
    async ({ bytes, number }) => {
      const path = join(folder, `${number}.btf`)
      writeFileSync(path, bytes)
      const [first, ...others] = await throughEverySource(path, bytes)
      for (const other of others) expect(other).toEqual(first)
    },
  )

  it.each(thirdPartyFiles('btf').map(({ path }) => path))('of %s', THIRD_PARTY, async (name) => {
    const whole = await openSource(thirdPartyPath(name), { mode: 'read' })
    const bytes = await whole.read(0, whole.byteLength)
    whole.close?.()
    const [first, ...others] = await throughEverySource(thirdPartyPath(name), bytes)
    for (const other of others) expect(other).toEqual(first)
  })
})

/** A sparse int16 tensor of the given rows of indices, unsorted. */
function sparse(shape: number[], rows: number[][], values: number[]): CooTensor {
  const indices = BigInt64Array.from(rows.flat().map(BigInt))
  const bytes = new Uint8Array(indices.byteLength + 2 * values.length)
  bytes.set(new Uint8Array(indices.buffer))
  bytes.set(new Uint8Array(Int16Array.from(values).buffer), indices.byteLength)
  const source = new MemorySource(bytes)
  const starts = { indicesStart: 0, valuesStart: indices.byteLength }
  return new CooTensor({ source, ...starts, entryCount: rows.length, dtype: 'int16', shape, name: 's' })
}

async function writeAndRead(
  content: DenseTensor | SparseTensor,
): Promise<{ bytes: Uint8Array; result: unknown }> {
  const bytes = await bytesOfPlan(await btf.plan([content]))
  const { tensors } = await btf.read(new MemorySource(bytes), readOptions('strict'))
  expect(await btf.check(new MemorySource(bytes), readOptions('strict'))).toEqual([])
  return { bytes, result: tensors.at(0) }
}

describe('writing sparse tensors', () => {
  const sorted = [
    [0, 1],
    [0, 2],
    [2, 0],
  ]

  it('sorts entries; the last of several at one index stays', async () => {
    const clean = await writeAndRead(sparse([3, 3], sorted, [5, 6, 7]))
    const rows = [
      [2, 0],
      [0, 1],
      [0, 2],
      [0, 1],
    ]
    const messy = await writeAndRead(sparse([3, 3], rows, [7, 1, 6, 5]))
    expect(messy.bytes).toEqual(clean.bytes)
    expect((messy.result as SparseTensor).entryCount).toBe(3)
  })

  it('keeps explicit zeros, and takes sparseFromDense', async () => {
    const { result } = await writeAndRead(sparse([3, 3], sorted, [0, 6, 0]))
    expect((result as SparseTensor).entryCount).toBe(3)
    const dense = tensor(
      [
        [0, 1],
        [0, 2],
      ],
      { dtype: 'float32' },
    )
    const back = (await writeAndRead(await sparseFromDense(dense))).result as SparseTensor
    const again = await back.toDense({ maxBytes: 16 })
    expect(await again.toTypedArray()).toEqual(Float32Array.of(0, 1, 0, 2))
  })

  it("takes a caller's sparse tensor", async () => {
    const inner = sparse([3, 3], sorted, [5, 6, 7])
    const own: SparseTensor = {
      kind: 'sparse',
      name: 'mine',
      dtype: 'int16',
      shape: [3, 3],
      size: 9,
      sizeExact: 9n,
      hasData: true,
      metadata: new Map(),
      entryCount: 3,
      entries: () => inner.entries(),
      indices: () => inner.indices(),
      values: () => inner.values(),
      toDense: (options) => inner.toDense(options),
    }
    expect((await writeAndRead(own)).bytes).toEqual((await writeAndRead(inner)).bytes)
  })

  it('refuses indices outside the shape', async () => {
    await expect(btf.plan([sparse([3, 3], [[3, 0]], [1])])).rejects.toMatchObject({ code: 'ERR_COO_INDEX' })
  })
})

it('a blocked tensor is stored under the shape of its digits, and asLayout undoes that', async () => {
  const shape = [2, 19, 5, 7]
  const elements = 2 * 2 * 5 * 7 * 16
  const values = Int32Array.from({ length: elements }, (_, i) => i)
  const blocked = asLayout(tensor(values), 'b_fs_yx_fsv16', shape)
  const { result } = await writeAndRead(blocked)
  const stored = result as DenseTensor
  expect(stored.shape).toEqual([2, 2, 5, 7, 16])
  expect(await stored.toTypedArray()).toEqual(values)
  const back = asLayout(stored, 'b_fs_yx_fsv16', shape)
  expect(await back.toTypedArray()).toEqual(await blocked.toTypedArray())
})
