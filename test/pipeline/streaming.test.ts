/** Saves of more than one chunk: from files, from sources of any kind, to files and to streams. */
import { createHash } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ByteSource } from '../../lib/bytes/source.js'
import {
  type DenseTensor,
  memoryBudget,
  open,
  reorder,
  save,
  serialize,
  setMemoryBudget,
  setThreads,
  slice,
  tensor,
  threads,
} from '../../lib/index.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-streaming-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** An odd number of channels and a tail, larger than several chunks. */
const SHAPE = [2, 37, 331, 301]

function noise(shape: readonly number[], seed = 1): DenseTensor {
  const values = new Uint32Array(shape.reduce((product, extent) => product * extent, 1))
  let state = seed
  for (let i = 0; i < values.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    values[i] = state
  }
  return tensor(values, { dtype: 'uint32', shape })
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
const digest = (path: string): string => sha256(readFileSync(path))

function collector(): { stream: WritableStream<Uint8Array>; bytes: () => Uint8Array; largest: () => number } {
  const chunks: Uint8Array[] = []
  return {
    stream: new WritableStream({ write: (chunk) => void chunks.push(chunk.slice()) }),
    bytes: () => Buffer.concat(chunks),
    largest: () => Math.max(...chunks.map((chunk) => chunk.byteLength)),
  }
}

/** A file of somebody else's storage, by ranges only. */
function remote(path: string): ByteSource & { largest: number } {
  const bytes = readFileSync(path)
  return {
    byteLength: bytes.byteLength,
    largest: 0,
    async read(start, end) {
      this.largest = Math.max(this.largest, end - start)
      return new Uint8Array(bytes.subarray(start, end))
    },
  }
}

describe('a large tensor', () => {
  test('is the same file from every source, to every target, with any number of threads', async () => {
    const path = join(folder, 'in.btf')
    await save(path, noise(SHAPE))
    const lazy = (file: Awaited<ReturnType<typeof open>>): DenseTensor =>
      reorder(slice(file.tensors.at(0)!, [null, { start: 1 }]), 'b_fs_yx_fsv16')
    const mapped = await open(path)
    const expected = sha256(await serialize(lazy(mapped)))
    const before = threads()
    for (const count of [1, 2, 7]) {
      setThreads(count)
      await save(join(folder, `${count}.btf`), lazy(mapped))
      expect(digest(join(folder, `${count}.btf`))).toBe(expected)
    }
    setThreads(before)
    const source = remote(path)
    for (const input of [
      await open(path, { mode: 'read' }),
      await open(source),
      await open(readFileSync(path)),
    ]) {
      await save(join(folder, 'out.btf'), lazy(input))
      expect(digest(join(folder, 'out.btf'))).toBe(expected)
      const { stream, bytes, largest } = collector()
      await save(stream, lazy(input))
      expect(sha256(bytes())).toBe(expected)
      expect(largest()).toBeLessThanOrEqual(2 * 1024 * 1024)
      input.close()
    }
    expect(source.largest).toBeLessThan(17 * 1024 * 1024)
    mapped.close()
  })

  test('that does not change is copied whole', async () => {
    const path = join(folder, 'in.btf')
    await save(path, [noise(SHAPE), noise([3]), noise([5, 7], 9)])
    for (const mode of ['map', 'read'] as const) {
      const file = await open(path, { mode })
      await save(join(folder, 'whole.btf'), file)
      await save(join(folder, 'tensors.btf'), [...file.tensors])
      expect(digest(join(folder, 'whole.btf'))).toBe(digest(path))
      expect(digest(join(folder, 'tensors.btf'))).toBe(digest(path))
      file.close()
    }
  })

  test('reports its progress', async () => {
    const path = join(folder, 'in.btf')
    await save(path, [noise(SHAPE), noise([3])])
    const file = await open(path)
    const seen: number[] = []
    const { stream } = collector()
    await save(stream, [reorder(file.tensors.at(0)!, 'byxf'), file.tensors.at(1)!], {
      onProgress: ({ bytesDone, tensorsDone, bytesPerSecond }) => {
        seen.push(bytesDone, tensorsDone)
        expect(bytesPerSecond).toBeGreaterThan(0)
      },
    })
    expect(seen.length).toBeGreaterThan(20)
    expect(seen.slice(-2)).toEqual([statSync(path).size, 2])
    file.close()
  })
})

test.each(['btf', 'npy', 'npz', 'safetensors'] as const)(
  'a tensor that changes its shape while it is saved never makes a broken %s file',
  async (format) => {
    const real = tensor(
      Uint32Array.from({ length: 100 }, (_, at) => at + 1),
      { name: 'a' },
    )
    const whole = await serialize(real, { format })
    const { name, kind, dtype, size, sizeExact, hasData, metadata, storage } = real
    const fixed = { name, kind, dtype, size, sizeExact, hasData, metadata, storage }
    const { bytes, bytesSync } = { bytes: real.bytes.bind(real), bytesSync: real.bytesSync.bind(real) }
    // Each look at the shape may be the last one at the old shape.
    for (let looks = 0; looks < 10; looks++) {
      for (const later of [[50], [200]]) {
        let asked = 0
        const shape = { get: () => (asked++ < looks ? [100] : later), enumerable: true }
        const changing = Object.defineProperty({ ...fixed, bytes, bytesSync }, 'shape', shape)
        const saved = serialize(changing as unknown as DenseTensor, { format })
        const outcome = await saved.catch((error: unknown) => error)
        if (outcome instanceof Uint8Array) expect(Buffer.compare(outcome, whole)).toBe(0)
        else expect(outcome).toMatchObject({ name: 'TileworkError' })
      }
    }
  },
)

test('one signal for many saves gets one listener, and none is left', async () => {
  const { signal } = new AbortController()
  const seen = new Set<number>()
  const onProgress = (): void => void seen.add(getEventListeners(signal, 'abort').length)
  const targets = Array.from({ length: 20 }, (_, at) => join(folder, `${at}.npz`))
  const named = tensor(new Uint8Array(100), { name: 'a' })
  await Promise.all(targets.map((target) => save(target, named, { signal, onProgress })))
  expect([...seen]).toEqual([1])
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('many small tensors are few writes', async () => {
  const small = Array.from({ length: 5000 }, (_, i) => noise([1 + (i % 7)], i))
  const { stream, bytes, largest } = collector()
  let writes = 0
  await save(stream, small, { onProgress: () => void writes++ })
  expect(sha256(bytes())).toBe(sha256(await serialize(small)))
  expect(largest()).toBeGreaterThan(100_000)
  expect(writes).toBeLessThan(10)
})

describe('an abort', () => {
  test('in the middle leaves nothing', async () => {
    const controller = new AbortController()
    const running = save(join(folder, 'out.btf'), reorder(noise(SHAPE), 'byxf'), {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error('enough')),
    })
    await expect(running).rejects.toMatchObject({ code: 'ERR_ABORTED', cause: { message: 'enough' } })
    expect(readdirSync(folder)).toEqual([])
  })

  test('ends a save to a stream that nobody reads', async () => {
    const stuck = new WritableStream<Uint8Array>({ write: () => new Promise(() => undefined) })
    const signal = AbortSignal.timeout(50)
    await expect(save(stuck, noise(SHAPE), { signal })).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  })

  test('ends a save from a source that never answers', async () => {
    const bytes = await serialize(noise([100, 1000]))
    let isStuck = false
    const source: ByteSource = {
      byteLength: bytes.byteLength,
      read: async (start, end) => (isStuck ? new Promise(() => undefined) : bytes.subarray(start, end)),
    }
    const file = await open(source)
    isStuck = true
    const signal = AbortSignal.timeout(50)
    await expect(save(join(folder, 'out.btf'), file, { signal })).rejects.toMatchObject({
      code: 'ERR_ABORTED',
    })
    expect(readdirSync(folder)).toEqual([])
  })
})

test('a source that fails in the middle fails the save, and the old file stays', async () => {
  const path = join(folder, 'out.btf')
  writeFileSync(path, 'old')
  const bytes = await serialize(noise(SHAPE))
  let reads = 0
  const source: ByteSource = {
    byteLength: bytes.byteLength,
    read: async (start, end) => {
      if (++reads > 12) throw new Error('the line is dead')
      return bytes.subarray(start, end)
    },
  }
  const file = await open(source)
  await expect(save(path, reorder(file.tensors.at(0)!, 'byxf'))).rejects.toMatchObject({
    code: 'ERR_IO',
    message: expect.stringContaining('the line is dead'),
  })
  expect(readFileSync(path, 'latin1')).toBe('old')
  expect(readdirSync(folder)).toEqual(['out.btf'])
})

describe('the memory budget', () => {
  afterEach(() => setMemoryBudget(Number.POSITIVE_INFINITY))

  test('does not hold a waiting save that is cancelled', async () => {
    const [long, short] = [noise([2000]), noise([100])]
    setMemoryBudget(4096)
    const first = new AbortController()
    const stuck = new WritableStream<Uint8Array>({ write: () => new Promise(() => undefined) })
    const running = save(stuck, long, { signal: first.signal })
    const second = new AbortController()
    const waiting = serialize(short, { signal: second.signal })
    second.abort()
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    first.abort()
    await expect(running).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    // Both have given back what they had.
    expect((await serialize(short)).length).toBeGreaterThan(400)
  })

  test('lets a source save something itself while it is saved', async () => {
    const bytes = await serialize(noise([1000]))
    setMemoryBudget(5000)
    let inner = 0
    const source: ByteSource = {
      byteLength: bytes.length,
      read: async (start, end) => {
        inner = (await serialize(noise([100]))).length
        return bytes.subarray(start, end)
      },
    }
    expect(Buffer.compare(await serialize(await open(source)), bytes)).toBe(0)
    expect(inner).toBeGreaterThan(400)
  })

  test('makes saves wait for each other, and refuses a larger result', async () => {
    expect(memoryBudget()).toBe(Number.POSITIVE_INFINITY)
    setMemoryBudget(1024 * 1024)
    const small = noise([100, 100])
    await Promise.all(Array.from({ length: 20 }, (_, i) => save(join(folder, `${i}.btf`), small)))
    expect(new Set(readdirSync(folder).map((name) => digest(join(folder, name)))).size).toBe(1)
    setMemoryBudget(10_000)
    await expect(serialize(small)).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    await expect(reorder(small, 'column_major').bytes()).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    await save(join(folder, '0.btf'), reorder(small, 'column_major'))
  })

  test.each([0, -1, 1.5, Number.NaN, '5'])('refuses %s', (bytes) => {
    expect(() => setMemoryBudget(bytes as number)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  })
})

test('a long run in memory yields to the event loop and can be aborted', async () => {
  const values = new Uint32Array(64 * 1024 * 256)
  const large = tensor(values, { dtype: 'uint32', shape: [1, 64, 1024, 256], name: 'large' })
  const controller = new AbortController()
  // A timer that is due already fires at the first yield to the event loop.
  setTimeout(() => controller.abort(), 0)
  const saved = serialize(reorder(large, 'byxf'), {
    format: 'npz',
    signal: controller.signal,
  })
  await expect(saved).rejects.toMatchObject({ code: 'ERR_ABORTED' })
})
