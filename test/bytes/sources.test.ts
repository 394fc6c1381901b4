/** The common contract of all sources, and the errors of opening. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DeferredSource } from '../../lib/bytes/deferred.js'
import { openSource } from '../../lib/bytes/open_source.js'
import type { ByteSource } from '../../lib/bytes/source.js'
import { checkViewLength, MAX_VIEW_BYTES } from '../../lib/bytes/view_limit.js'

const CONTENT = Uint8Array.from({ length: 1000 }, (_, i) => i % 251)
let folder: string
let path: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-bytes-'))
  path = join(folder, 'thousand bytes.bin')
  writeFileSync(path, CONTENT)
})
afterAll(() => rmSync(folder, { recursive: true }))

const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

const MAKERS: Record<string, () => Promise<ByteSource>> = {
  'mapped file': () => openSource(path),
  'file read by ranges': () => openSource(path, { mode: 'read' }),
  'file: URL': () => openSource(pathToFileURL(path)),
  Uint8Array: () => openSource(CONTENT),
  Buffer: () => openSource(Buffer.from(CONTENT)),
  ArrayBuffer: () => openSource(CONTENT.slice().buffer),
  "user's source": () =>
    openSource({ byteLength: 1000, read: async (start, end) => CONTENT.subarray(start, end) }),
}

describe.each(Object.entries(MAKERS))('%s', (_, make) => {
  it('returns any range, including the whole and empty ones', async () => {
    const source = await make()
    expect(source.byteLength).toBe(1000)
    for (const [start, end] of [
      [0, 1000],
      [0, 0],
      [1000, 1000],
      [17, 993],
    ] as const) {
      const bytes = await source.read(start, end)
      expect(Buffer.compare(bytes, CONTENT.subarray(start, end))).toBe(0)
      if (source.readSync) expect(Buffer.compare(source.readSync(start, end), bytes)).toBe(0)
    }
    source.close?.()
  })

  it.each([
    [-1, 5],
    [5, 4],
    [0, 1001],
    [0.5, 2],
    [0, Number.NaN],
    [0, Number.POSITIVE_INFINITY],
  ])('rejects the range [%d, %d)', async (start, end) => {
    const source = await make()
    await expect(source.read(start, end)).rejects.toThrow(code('ERR_RANGE'))
    source.close?.()
  })

  it('can be closed twice and not be used afterwards', async () => {
    const source = await make()
    source.close?.()
    source.close?.()
    source.close?.({ revoke: true })
    await expect(source.read(0, 1)).rejects.toThrow(code('ERR_CLOSED'))
    if (source.readSync) expect(() => source.readSync?.(0, 1)).toThrow(code('ERR_CLOSED'))
  })
})

describe('inputs that cannot be opened', () => {
  it.each(['map', 'read'] as const)('a missing file (%s) keeps the system code', async (mode) => {
    const missing = join(folder, 'missing')
    await expect(openSource(missing, { mode })).rejects.toThrow(code('ERR_IO'))
    await expect(openSource(missing, { mode })).rejects.toMatchObject({
      message: expect.stringContaining('ENOENT'),
      path: missing,
      cause: expect.anything(),
    })
  })

  it.each(['map', 'read'] as const)('a folder (%s)', async (mode) => {
    mkdirSync(join(folder, 'sub'), { recursive: true })
    await expect(openSource(join(folder, 'sub'), { mode })).rejects.toThrow(code('ERR_IO'))
  })

  it.skipIf(process.platform === 'win32').each(['map', 'read'] as const)(
    'a pipe (%s), without waiting for a writer',
    async (mode) => {
      const { execFileSync } = await import('node:child_process')
      const pipe = join(folder, `pipe-${mode}`)
      execFileSync('mkfifo', [pipe])
      await expect(openSource(pipe, { mode })).rejects.toThrow(code('ERR_ARGUMENT'))
    },
  )

  it.each([
    undefined,
    null,
    5,
    {},
    { byteLength: -1, read() {} },
    { byteLength: 5 },
    new URL('gopher://example.org/x'),
  ])('%s', async (input) => {
    await expect(openSource(input as never)).rejects.toThrow(code('ERR_ARGUMENT'))
  })

  it('an unknown mode', async () => {
    await expect(openSource(CONTENT, { mode: 'write' as never })).rejects.toThrow(code('ERR_ARGUMENT'))
  })
})

describe("a user's source", () => {
  it('must return the requested length', async () => {
    const source = await openSource({ byteLength: 10, read: async () => new Uint8Array(3) })
    await expect(source.read(0, 5)).rejects.toThrow(code('ERR_IO'))
    expect(source.readSync).toBeUndefined()
  })

  it('is checked by the true length of its bytes, not by the length property', async () => {
    const shown = Object.defineProperty(new Uint8Array(1), 'byteLength', { value: 5 })
    class Longer extends Uint8Array {
      override get byteLength(): number {
        return 5
      }
    }
    for (const bytes of [shown, new Longer(1), new Proxy(new Uint8Array(5), {})]) {
      const source = await openSource({ byteLength: 10, read: async () => bytes, readSync: () => bytes })
      await expect(source.read(0, 5)).rejects.toThrow(code('ERR_IO'))
      expect(() => source.readSync!(0, 5)).toThrow(code('ERR_IO'))
    }
  })

  it('may return bytes of any buffer; the result has a fixed length', async () => {
    const Resizable = ArrayBuffer as unknown as new (
      length: number,
      options: { maxByteLength: number },
    ) => ArrayBuffer & { resize(length: number): void }
    const buffer = new Resizable(5, { maxByteLength: 10 })
    const given = [new Uint8Array(buffer), Buffer.alloc(5), new Uint8Array(new SharedArrayBuffer(5))]
    for (const bytes of given) {
      const source = await openSource({ byteLength: 10, read: async () => bytes })
      const read = await source.read(0, 5)
      buffer.resize(1)
      expect(read).toEqual(new Uint8Array(5))
      expect(Object.getPrototypeOf(read)).toBe(Uint8Array.prototype)
    }
  })

  it('has a default label when the given one is not a string', async () => {
    for (const label of [5, {}, Symbol('remote')]) {
      const source = await openSource({
        byteLength: 1,
        label: label as never,
        read: async () => Uint8Array.of(1),
      })
      expect(source.label).toBe('source')
    }
  })

  it('has its errors wrapped and stays open for its owner', async () => {
    let isClosed = false
    const own: ByteSource = {
      byteLength: 10,
      label: 'remote',
      read: () => Promise.reject(new Error('503')),
      close: () => {
        isClosed = true
      },
    }
    const source = await openSource(own)
    await expect(source.read(0, 5)).rejects.toThrow('remote: 503')
    source.close?.()
    expect(isClosed).toBe(false)
  })
})

it('a deferred source loads once and checks the length', async () => {
  let loads = 0
  const load = async () => {
    loads += 1
    return Uint8Array.of(1, 2, 3)
  }
  const source = new DeferredSource({ byteLength: 3, label: 'device', load })
  expect(await source.read(1, 3)).toEqual(Uint8Array.of(2, 3))
  expect(await source.read(0, 1)).toEqual(Uint8Array.of(1))
  expect(loads).toBe(1)
  const wrong = new DeferredSource({ byteLength: 4, label: 'device', load })
  await expect(wrong.read(0, 4)).rejects.toThrow(code('ERR_ARGUMENT'))
})

it('an error for ranges above the maximum view length gives advice', () => {
  const fourGiB = 2 ** 32
  expect(() => checkViewLength(fourGiB, fourGiB)).not.toThrow()
  expect(() => checkViewLength(fourGiB + 1, fourGiB)).toThrow(code('ERR_VIEW_TOO_LARGE'))
  expect(() => checkViewLength(fourGiB + 1, fourGiB)).toThrow(
    'request smaller ranges, for example bytes({ start, end })',
  )
  if (process.versions.node.startsWith('20.')) expect(MAX_VIEW_BYTES).toBe(fourGiB)
})
