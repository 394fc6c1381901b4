/** SHA-256 on worker threads: equal to `node:crypto`, without blocking the JavaScript thread. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { createHasher, WORKER_THRESHOLD_BYTES } from '../../lib/bytes/hasher.js'
import { digest, reorder, sparseFromDense, stringTensor, tensor } from '../../lib/index.js'

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

function patterned(length: number, seed = 0): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + seed) ^ (index >> 8))
}

async function hashOf(bytes: Uint8Array, chunkBytes: number): Promise<string> {
  const hasher = createHasher(bytes.byteLength, chunkBytes)
  for (let start = 0; start < bytes.byteLength; start += chunkBytes) {
    const buffer = await hasher.buffer()
    const chunk = bytes.subarray(start, start + chunkBytes)
    buffer.set(chunk)
    hasher.push(buffer, chunk.byteLength)
  }
  return hasher.digest()
}

describe('a hasher', () => {
  it.each([0, 1, 1000, WORKER_THRESHOLD_BYTES - 1, WORKER_THRESHOLD_BYTES, WORKER_THRESHOLD_BYTES + 12345])(
    'of %d bytes gives the hash of node:crypto',
    async (length) => {
      const bytes = patterned(length)
      for (const chunkBytes of [64 * 1024, 1024 * 1024 + 1]) {
        expect(await hashOf(bytes, chunkBytes)).toBe(sha256(bytes))
      }
    },
  )

  it('separates concurrent streams, also more than workers', async () => {
    const streams = Array.from({ length: 12 }, (_, seed) => patterned(WORKER_THRESHOLD_BYTES + seed, seed))
    const hashes = await Promise.all(streams.map((bytes) => hashOf(bytes, 256 * 1024)))
    expect(hashes).toEqual(streams.map(sha256))
  })

  it('can be closed at any time; other hashers continue', async () => {
    const dropped = createHasher(WORKER_THRESHOLD_BYTES, 1024)
    dropped.push(await dropped.buffer(), 1024)
    dropped.close()
    const bytes = patterned(WORKER_THRESHOLD_BYTES)
    expect(await hashOf(bytes, 1024 * 1024)).toBe(sha256(bytes))
  })

  it('hashes while this thread does other work', async () => {
    const hasher = createHasher(64 * 1024 * 1024, 32 * 1024 * 1024)
    let turns = 0
    let counter = setImmediate(function count() {
      turns++
      counter = setImmediate(count)
    })
    for (let chunk = 0; chunk < 8; chunk++) hasher.push(await hasher.buffer(), 32 * 1024 * 1024)
    await hasher.digest()
    clearImmediate(counter)
    // Hashing 256 MiB on this thread would leave it a turn per chunk.
    expect(turns).toBeGreaterThan(200)
  })
})

describe('digest', () => {
  it('of a dense tensor hashes its storage, on a worker for a reordered one', async () => {
    const values = Float32Array.from({ length: 2 * 19 * 300 * 200 }, (_, index) => index)
    const made = tensor(values, { shape: [2, 19, 300, 200] })
    const read: number[] = []
    expect(await digest(made, { onBytes: (bytes) => void read.push(bytes) })).toBe(sha256(await made.bytes()))
    expect(read.reduce((sum, bytes) => sum + bytes, 0)).toBe(values.byteLength)
    const blocked = reorder(made, 'b_fs_yx_fsv16')
    expect(await digest(blocked)).toBe(sha256(await blocked.bytes()))
  })

  it('of a sparse tensor hashes its indices, then its values', async () => {
    const sparse = await sparseFromDense(tensor(new Int32Array([0, 7, 0, 9, 11]), { shape: [5] }))
    const indices = Buffer.from((await sparse.indices()).buffer)
    const values = Buffer.from(await sparse.values())
    expect(await digest(sparse)).toBe(sha256(Buffer.concat([indices, values])))
  })

  it('rejects string tensors and stops on abort', async () => {
    await expect(digest(stringTensor(['a']))).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const aborted = digest(tensor(new Uint8Array(1)), { signal: AbortSignal.abort() })
    await expect(aborted).rejects.toMatchObject({ code: 'ERR_ABORTED' })
  })

  const library = fileURLToPath(new URL('../../dist/index.js', import.meta.url))
  it.skipIf(!existsSync(library))('lets a process end by itself, with the hash', async () => {
    const program = `
      import { digest, tensor } from ${JSON.stringify(pathToFileURL(library))}
      console.log(await digest(tensor(new Uint8Array(16 * 1024 * 1024))))`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program])
    let stdout = ''
    child.stdout.on('data', (text) => {
      stdout += text
    })
    expect(await once(child, 'close')).toEqual([0, null])
    expect(stdout.trim()).toBe(sha256(new Uint8Array(16 * 1024 * 1024)))
  })
})
