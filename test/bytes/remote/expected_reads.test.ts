/** Headers between payloads: a reader that knows where they are has them asked for at the same time, and no payload. */
import { expect, it } from 'vitest'
import { BLOCK_BYTES, CachedSource } from '../../../lib/bytes/remote/cached_source.js'
import { checkRemoteOptions } from '../../../lib/bytes/remote/remote_options.js'
import { check, open, serialize, tensor } from '../../../lib/index.js'
import { registerScheme } from '../../../lib/remote.js'

const KIB = 1024

/** An object that counts its requests, each of which takes a moment. */
class CountedObject {
  readonly ranges: [number, number][] = []
  atOnce = 0
  #pending = 0

  constructor(readonly bytes: Uint8Array) {}

  get byteLength(): number {
    return this.bytes.byteLength
  }

  get bytesRead(): number {
    return this.ranges.reduce((sum, [start, end]) => sum + end - start, 0)
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.ranges.push([start, end])
    this.atOnce = Math.max(this.atOnce, ++this.#pending)
    await new Promise((resolve) => setTimeout(resolve, 1))
    this.#pending--
    return this.bytes.subarray(start, end)
  }
}

const objects = new Map<string, CountedObject>()
registerScheme('counted', { open: async ({ pathname }) => objects.get(pathname)! })

const tensors = (count: number, values: number) =>
  Array.from({ length: count }, (_, at) =>
    tensor(new Float32Array(values).fill(at), { name: `t${at}`, shape: [values] }),
  )

it.each(['npz', 'btf', 'tmfile'] as const)('large tensors of %s', async (format) => {
  const object = new CountedObject(await serialize(tensors(40, 64 * KIB), { format }))
  objects.set('/large', object)
  const file = await open('counted://host/large')
  expect(file.tensors.length).toBe(40)
  expect(object.atOnce).toBe(6)
  // One or two blocks for each, beside the start and the table.
  expect(object.ranges.length).toBeLessThan(50)
  expect(object.bytesRead).toBeLessThan(40 * 2 * BLOCK_BYTES + 600 * KIB)
  expect(await file.dense(39).bytes()).toEqual(new Uint8Array(new Float32Array(64 * KIB).fill(39).buffer))
  file.close()
})

it.each(['npz', 'btf', 'tmfile'] as const)('small tensors of %s are neighbours', async (format) => {
  const object = new CountedObject(await serialize(tensors(400, 1 * KIB), { format }))
  objects.set('/small', object)
  const file = await open('counted://host/small')
  expect(file.tensors.length).toBe(400)
  expect(object.ranges.length).toBeLessThan(12)
  expect(object.bytesRead).toBeLessThan(object.byteLength + 200 * KIB)
  file.close()
})

it.each(['npz', 'btf', 'tmfile'] as const)('without a cache %s is read as well', async (format) => {
  const bytes = await serialize(tensors(20, 64 * KIB), { format })
  objects.set('/large', new CountedObject(bytes))
  const report = await check('counted://host/large', { level: 'strict', remote: { cacheBytes: 0 } })
  expect(report).toEqual(await check(bytes, { level: 'strict' }))
})

it('offsets that are hostile are left out, and no more is asked for than connections need', async () => {
  const object = new CountedObject(new Uint8Array(64 * 1024 * KIB))
  const source = new CachedSource(object, 'object', checkRemoteOptions())
  const step = 256 * KIB
  const wrong = [Number.NaN, -1, 2 ** 60, Number.POSITIVE_INFINITY]
  const starts = [...wrong, ...Array.from({ length: 256 }, (_, at) => at * step)]
  source.expectReads({ starts, byteLength: 100 })
  await source.read(0, 100)
  expect(object.ranges.length).toBeLessThanOrEqual(12)
  await source.read(20 * step, 20 * step + 100)
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(object.ranges.length).toBeLessThanOrEqual(12 + 1 + 12)
  expect(object.ranges.every(([start, end]) => start >= 0 && end <= object.byteLength)).toBe(true)
  source.close()
})

it('a failed request ahead is asked for again by the reader', async () => {
  const object = new CountedObject(new Uint8Array(4 * 1024 * KIB).fill(7))
  const { read } = object
  let failures = 1
  object.read = async (start, end) => {
    if (start === 1024 * KIB && failures-- > 0) throw new Error('gone for a moment')
    return read.call(object, start, end)
  }
  const source = new CachedSource(object, 'object', checkRemoteOptions({ retries: 0 }))
  source.expectReads({ starts: [0, 1024 * KIB], byteLength: 100 })
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await source.read(1024 * KIB, 1024 * KIB + 3)).toEqual(Uint8Array.of(7, 7, 7))
  source.close()
})
