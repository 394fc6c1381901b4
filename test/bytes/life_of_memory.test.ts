/** Files that close, change or are huge while someone still uses their bytes. */
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync, gzip } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MappedFileSource } from '../../lib/bytes/mapped_file.js'
import { openSource } from '../../lib/bytes/open_source.js'
import { btf } from '../../lib/formats/btf/index.js'
import { native } from '../../lib/native/addon.js'
import type { DenseTensor } from '../../lib/tensor/tensor.js'
import { btfFile, denseRecord, readOptions } from '../formats/btf/btf_bytes.js'

const MEBIBYTE = 2 ** 20
const FOUR_GIB = 2 ** 32
const CONTENT = Uint8Array.from({ length: MEBIBYTE }, (_, i) => (i * 31) % 253)
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })
let folder: string
let path: string
let number = 0

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-life-'))
})
afterAll(() => rmSync(folder, { recursive: true }))
beforeEach(() => {
  // A name of its own, because Windows lets nobody write a file that a failed test left mapped.
  number += 1
  path = join(folder, `content-${number}.bin`)
  writeFileSync(path, CONTENT)
})

const isSame = (bytes: Uint8Array, expected: Uint8Array): boolean => Buffer.compare(bytes, expected) === 0

describe.each([
  ['with external buffers', true],
  ['without external buffers, as in Electron', false],
] as const)('a mapped file %s', (_, allowed) => {
  beforeEach(() => native().setExternalBuffers(allowed))
  afterEach(() => native().setExternalBuffers(true))

  it('keeps a view alive after close', async () => {
    const source = await openSource(path, { mode: 'map' })
    const view = source.view!(0, MEBIBYTE)
    source.close?.()
    expect(isSame(view, CONTENT)).toBe(true)
    await expect(source.read(0, 1)).rejects.toThrow(code('ERR_CLOSED'))
    expect(() => source.view?.(0, 1)).toThrow(code('ERR_CLOSED'))
  })

  it('can be closed while zlib and a write use its view', async () => {
    const source = await openSource(path, { mode: 'map' })
    const view = source.view!(0, MEBIBYTE)
    const target = join(folder, 'copy.bin')
    const zipping = promisify(gzip)(view)
    const writing = writeFile(target, view)
    source.close?.()
    const zipped = await zipping
    await writing
    expect(isSame(gunzipSync(zipped), CONTENT)).toBe(true)
    expect(isSame(readFileSync(target), CONTENT)).toBe(true)
  })

  it('revoke detaches views and keeps copies', async () => {
    const source = await openSource(path, { mode: 'map' })
    const view = source.view!(0, MEBIBYTE)
    source.close?.({ revoke: true })
    if (allowed) expect(view.byteLength).toBe(0)
    else expect(isSame(view, CONTENT)).toBe(true)
  })

  it('is private: writing into a view never changes the file', async () => {
    const source = await openSource(path, { mode: 'map' })
    const view = source.view!(0, MEBIBYTE)
    view.fill(255)
    source.close?.()
    expect(isSame(readFileSync(path), CONTENT)).toBe(true)
  })
})

/** Windows lets nobody truncate or rewrite a file that is mapped. */
const keepsMapped = process.platform === 'win32'

describe.each(['map', 'read'] as const)('mode %s', (mode) => {
  it('reports that the file grew', async () => {
    const source = await openSource(path, { mode })
    await source.read(0, 10)
    appendFileSync(path, 'more')
    await expect(source.read(0, 10)).rejects.toThrow(code('ERR_FILE_CHANGED'))
    if (source.readSync) expect(() => source.readSync?.(0, 10)).toThrow(code('ERR_FILE_CHANGED'))
    source.close?.()
  })

  it.skipIf(keepsMapped && mode === 'map')('reports that the file was truncated', async () => {
    const source = await openSource(path, { mode })
    truncateSync(path, 100)
    await expect(source.read(50_000, 60_000)).rejects.toThrow(code('ERR_FILE_CHANGED'))
    await expect(source.read(0, 10)).rejects.toThrow(code('ERR_FILE_CHANGED'))
    source.close?.()
  })

  it.skipIf(keepsMapped && mode === 'map')(
    'reports that the file was rewritten with the same length',
    async () => {
      const source = await openSource(path, { mode })
      writeFileSync(path, CONTENT)
      utimesSync(path, new Date(), new Date(Date.now() + 5000))
      await expect(source.read(0, 10)).rejects.toThrow(code('ERR_FILE_CHANGED'))
      source.close?.()
    },
  )

  it('opens a file above 4 GiB and reads both ends', async () => {
    const huge = join(folder, `huge-${mode}.bin`)
    const length = FOUR_GIB + 2 * MEBIBYTE
    const descriptor = openSync(huge, 'w')
    ftruncateSync(descriptor, length)
    writeSync(descriptor, 'head', 0)
    writeSync(descriptor, 'tail', length - 4)
    closeSync(descriptor)
    const source = await openSource(huge, { mode })
    expect(source.byteLength).toBe(length)
    expect(Buffer.from(await source.read(0, 4)).toString()).toBe('head')
    expect(Buffer.from(await source.read(length - 4, length)).toString()).toBe('tail')
    if (process.versions.node.startsWith('20.')) {
      await expect(source.read(0, length)).rejects.toThrow(code('ERR_VIEW_TOO_LARGE'))
    }
    source.close?.()
    rmSync(huge)
  })

  it('throws ERR_CLOSED for the tensors of a closed file', async () => {
    writeFileSync(path, btfFile(denseRecord({ dims: [2], data: Int32Array.of(4, 5) })))
    const source = await openSource(path, { mode })
    const { tensors } = await btf.read(source, readOptions('strict'))
    const tensor = tensors.at(0) as DenseTensor
    expect(tensor.at(1)).toBe(5)
    source.close?.()
    await expect(tensor.bytes()).rejects.toThrow(code('ERR_CLOSED'))
    await expect(tensor.toTypedArray()).rejects.toThrow(code('ERR_CLOSED'))
    expect(() => tensor.bytesSync()).toThrow(code('ERR_CLOSED'))
    expect(() => tensor.at(0)).toThrow(code('ERR_CLOSED'))
  })

  it('opens an empty file', async () => {
    writeFileSync(path, '')
    const source = await openSource(path, { mode })
    expect(source.byteLength).toBe(0)
    expect((await source.read(0, 0)).byteLength).toBe(0)
    source.close?.()
  })
})

it.skipIf(keepsMapped)(
  'a guarded map of a truncated file reads zeros, then always reports ERR_FILE_CHANGED',
  async () => {
    const source = new MappedFileSource(path, { guard: true })
    const view = source.view(0, MEBIBYTE)
    truncateSync(path, 0)
    expect(view.every((byte) => byte === 0)).toBe(true)
    writeFileSync(path, CONTENT)
    await expect(source.read(0, 10)).rejects.toThrow(code('ERR_FILE_CHANGED'))
    source.close()
  },
)

it('a pending read completes after the file is closed', async () => {
  const source = await openSource(path, { mode: 'read' })
  const reads = [source.read(0, MEBIBYTE), source.read(10, 20)]
  source.close?.()
  const [all, some] = await Promise.all(reads)
  expect(isSame(all!, CONTENT)).toBe(true)
  expect(isSame(some!, CONTENT.subarray(10, 20))).toBe(true)
})
