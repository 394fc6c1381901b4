import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { TileworkError } from '../../../lib/errors.js'
import { safetensors } from '../../../lib/formats/safetensors/index.js'
import { StoredTensor } from '../../../lib/tensor/dense.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import {
  bytesOfPlan,
  type Folder,
  folderOfPlan,
  headerText,
  readOptions,
  safetensorsFile,
} from './safetensors_bytes.js'

const INDEX = 'model.safetensors.index.json'
const folder = mkdtempSync(join(tmpdir(), 'tilework-shards-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const bytesTensor = (name: string, length: number, metadata?: Map<string, string>): StoredTensor =>
  new StoredTensor({
    source: new MemorySource(new Uint8Array(length).fill(name.charCodeAt(0))),
    start: 0,
    dtype: 'uint8',
    shape: [length],
    name,
    ...(metadata && { metadata }),
  })

const TENSORS = [bytesTensor('d', 6), bytesTensor('b', 5), bytesTensor('c', 40), bytesTensor('a', 3)]

const writeIndex = async (tensors = TENSORS, maxShardBytes = 12): Promise<Folder> =>
  folderOfPlan(await safetensors.plan(tensors, { maxShardBytes }, { path: join(folder, INDEX) }), INDEX)

const read = (files: Folder, level: 'strict' | 'lenient' = 'strict', limits = {}) =>
  safetensors.read(new MemorySource(files[INDEX]!), readOptions(level, files, limits))

const check = (files: Folder, level: 'strict' | 'lenient' = 'strict') =>
  safetensors.check(new MemorySource(files[INDEX]!), readOptions(level, files))

const indexFile = (index: unknown): Uint8Array => new Uint8Array(Buffer.from(JSON.stringify(index)))

const one = (name: string): Uint8Array =>
  safetensorsFile(headerText([{ name, dtype: 'U8', shape: [1], offsets: [0, 1] }]), [1])

describe('writing', () => {
  it('names shards and index as Hugging Face does', async () => {
    const files = await writeIndex()
    expect(Object.keys(files)).toEqual([
      INDEX,
      'model-00001-of-00003.safetensors',
      'model-00002-of-00003.safetensors',
      'model-00003-of-00003.safetensors',
    ])
    expect(Buffer.from(files[INDEX]!).toString()).toBe(
      `${JSON.stringify(
        {
          metadata: { total_size: 54 },
          weight_map: {
            a: 'model-00003-of-00003.safetensors',
            b: 'model-00001-of-00003.safetensors',
            c: 'model-00002-of-00003.safetensors',
            d: 'model-00001-of-00003.safetensors',
          },
        },
        null,
        2,
      )}\n`,
    )
    for (const [name, bytes] of Object.entries(files)) {
      if (name !== INDEX) expect(await safetensors.check(new MemorySource(bytes), readOptions())).toEqual([])
    }
  })

  it('makes one plain file of tensors that fit', async () => {
    const target = { path: join(folder, 'model.safetensors') }
    const plan = await safetensors.plan(TENSORS, { maxShardBytes: 54 }, target)
    expect(plan.siblings).toBeUndefined()
    expect(await bytesOfPlan(plan)).toEqual(await bytesOfPlan(await safetensors.plan(TENSORS)))
  })

  it('makes an index of a single shard for an index path', async () => {
    const plan = await safetensors.plan(TENSORS, {}, { path: join(folder, INDEX) })
    expect(plan.siblings?.map(({ name }) => name)).toEqual(['model-00001-of-00001.safetensors'])
  })

  it('refuses shards without an index path', async () => {
    const options = { maxShardBytes: 12 }
    await expect(safetensors.plan(TENSORS, options)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    await expect(
      safetensors.plan(TENSORS, options, { path: join(folder, 'model.safetensors') }),
    ).rejects.toMatchObject({ code: 'ERR_ARGUMENT', message: expect.stringContaining(INDEX) })
    for (const maxShardBytes of [0, -1, 1.5, Number.NaN]) {
      await expect(safetensors.plan(TENSORS, { maxShardBytes })).rejects.toMatchObject({
        code: 'ERR_ARGUMENT',
      })
    }
    const many = Array.from({ length: 4097 }, (_, at) => bytesTensor(`t${at}`, 1))
    await expect(
      safetensors.plan(many, { maxShardBytes: 1 }, { path: join(folder, INDEX) }),
    ).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  })

  it('chooses new names where the folder has such files', async () => {
    const place = mkdtempSync(join(folder, 'again-'))
    const names = async () => {
      const plan = await safetensors.plan(TENSORS, { maxShardBytes: 12 }, { path: join(place, INDEX) })
      return plan.siblings!.map(({ name }) => name)
    }
    writeFileSync(join(place, 'Model-00002-of-00003.safetensors'), '')
    // Where case has no meaning, it is a shard that a killed save left.
    const suffix = existsSync(join(place, 'model-00002-of-00003.safetensors')) ? '' : '-1'
    expect(await names()).toEqual([
      `model-00001-of-00003${suffix}.safetensors`,
      `model-00002-of-00003${suffix}.safetensors`,
      `model-00003-of-00003${suffix}.safetensors`,
    ])
    for (const ending of ['', '-1'])
      writeFileSync(join(place, `model-00001-of-00003${ending}.safetensors`), '')
    const first = 'model-00001-of-00003'
    const other = { weight_map: { a: `${first}.safetensors`, b: `${first}-1.safetensors` } }
    writeFileSync(join(place, 'other.index.json'), JSON.stringify(other))
    expect((await names())[0]).toBe('model-00001-of-00003-2.safetensors')
  })
})

describe('reading', () => {
  it('gives the tensors of all shards in the order of the weight map', async () => {
    const { tensors, findings } = await read(await writeIndex())
    expect(findings).toEqual([])
    expect([...tensors].map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
    expect(tensors.length).toBe(4)
    expect(tensors.at(-1)?.name).toBe('d')
    expect(tensors.at(9)).toBeUndefined()
    expect(tensors.get('x')).toBeUndefined()
    expect(await (tensors.get('c') as DenseTensor).bytes()).toEqual(new Uint8Array(40).fill(0x63))
  })

  it('keeps metadata and layouts across shards', async () => {
    const blocked = new StoredTensor({
      source: new MemorySource(new Uint8Array(2 * 16)),
      start: 0,
      dtype: 'uint8',
      shape: [1, 19, 1, 1],
      layout: 'b_fs_yx_fsv16',
      name: 'blocked',
      metadata: new Map([['format', 'pt']]),
    })
    const { tensors } = await read(await writeIndex([blocked, bytesTensor('plain', 12)]))
    expect(tensors.get('blocked')).toMatchObject({
      shape: [1, 19, 1, 1],
      storage: { layout: 'b_fs_yx_fsv16' },
    })
    expect([...tensors.get('plain')!.metadata]).toEqual([['format', 'pt']])
  })

  it('accepts a total size written as a float, and an index without one', async () => {
    const text = '{"metadata":{"total_size":1.0,"other":[1]},"weight_map":{"a":"s"},"more":{"a":["s"]}}'
    expect((await read({ [INDEX]: Buffer.from(text), s: one('a') })).findings).toEqual([])
    expect((await read({ [INDEX]: indexFile({ weight_map: { a: 's' } }), s: one('a') })).findings).toEqual([])
  })
})

describe('an index that disagrees with its shards', () => {
  const cases: [string, unknown, Folder, string][] = [
    ['a shard that is missing', { weight_map: { a: 's', b: 't' } }, { s: one('a') }, 'ERR_IO'],
    ['a tensor that is missing', { weight_map: { a: 's', b: 's' } }, { s: one('a') }, 'ERR_NO_DATA'],
    ['a tensor that is not in the index', { weight_map: { a: 's' } }, { s: twice() }, 'ERR_HEADER'],
    [
      'a tensor in two shards',
      { weight_map: { a: 's', b: 't' } },
      { s: one('a'), t: twice() },
      'ERR_DUPLICATE',
    ],
    [
      'a wrong total size',
      { metadata: { total_size: 2 }, weight_map: { a: 's' } },
      { s: one('a') },
      'ERR_HEADER',
    ],
    [
      'a total size in words',
      { metadata: { total_size: 'one' }, weight_map: { a: 's' } },
      { s: one('a') },
      'ERR_HEADER',
    ],
  ]

  function twice(): Uint8Array {
    const entries = ['a', 'b'].map((name, at) => ({ name, dtype: 'U8', shape: [1], offsets: [at, at + 1] }))
    return safetensorsFile(headerText(entries), [1, 2])
  }

  it.each(cases)('%s: strict refuses, lenient reads the rest', async (_, index, shards, code) => {
    const files = { [INDEX]: indexFile(index), ...shards }
    await expect(read(files)).rejects.toMatchObject({ code })
    const { tensors, findings } = await read(files, 'lenient')
    expect(findings.map((finding) => finding.code)).toContain(code)
    expect(findings.every(({ severity }) => severity === 'warning')).toBe(true)
    expect((tensors.get('a') as DenseTensor).at(0)).toBe(1)
    for (const tensor of tensors) await (tensor as DenseTensor).bytes()
    expect((await check(files)).filter(({ severity }) => severity === 'error')[0]?.code).toBe(code)
    expect((await check(files, 'lenient')).map((finding) => finding.code)).toContain(code)
  })

  it.each(['../s', '..', '.', '', '/etc/passwd', 'a/b', 'a\\b', 'C:s', 's\0', 'x'.repeat(300)])(
    'the file name %j is refused before anything is opened',
    async (name) => {
      const files = { [INDEX]: indexFile({ weight_map: { a: 's', b: name } }), s: one('a') }
      let opened = 0
      const sibling = async () => {
        opened += 1
        return new MemorySource(one('a'))
      }
      for (const level of ['strict', 'lenient'] as const) {
        const options = { ...readOptions(level), sibling }
        await expect(safetensors.read(new MemorySource(files[INDEX]!), options)).rejects.toMatchObject({
          code: 'ERR_PATH_ESCAPE',
        })
        expect(await safetensors.check(new MemorySource(files[INDEX]!), options)).toMatchObject([
          { code: 'ERR_PATH_ESCAPE', severity: 'error', path: 'weight_map["b"]' },
        ])
      }
      expect(opened).toBe(0)
    },
  )

  it('a link that leads out of the folder is refused', async () => {
    const sibling = async (): Promise<never> => {
      throw new TileworkError('ERR_PATH_ESCAPE', 's leads out of the folder.')
    }
    const source = new MemorySource(indexFile({ weight_map: { a: 's' } }))
    await expect(safetensors.read(source, { ...readOptions('lenient'), sibling })).rejects.toMatchObject({
      code: 'ERR_PATH_ESCAPE',
    })
  })

  it('a shard that cannot be opened for another reason is never omitted', async () => {
    const files = { [INDEX]: indexFile({ weight_map: { a: 's' } }) }
    const failing = (code: 'ERR_IO' | 'ERR_UNSUPPORTED') => ({
      ...readOptions('lenient'),
      sibling: async (): Promise<never> => {
        throw new TileworkError(code, 'No.', { cause: { code: 'EMFILE' } })
      },
    })
    const source = new MemorySource(files[INDEX]!)
    await expect(safetensors.read(source, failing('ERR_IO'))).rejects.toMatchObject({ code: 'ERR_IO' })
    await expect(safetensors.check(source, failing('ERR_IO'))).rejects.toMatchObject({ code: 'ERR_IO' })
    const inMemory = failing('ERR_UNSUPPORTED')
    await expect(safetensors.read(source, inMemory)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    expect(await safetensors.check(source, inMemory)).toMatchObject([
      { code: 'ERR_UNSUPPORTED', severity: 'error' },
    ])
  })

  it('too many shards are refused before anything is opened', async () => {
    const weights = Object.fromEntries(Array.from({ length: 4097 }, (_, at) => [`t${at}`, `s${at}`]))
    await expect(read({ [INDEX]: indexFile({ weight_map: weights }) }, 'lenient')).rejects.toMatchObject({
      code: 'ERR_LIMIT',
    })
  })

  it('a finding in a shard names its file', async () => {
    const files = { [INDEX]: indexFile({ weight_map: { a: 's' } }), s: one('a').subarray(0, 30) }
    await expect(read(files, 'lenient')).rejects.toMatchObject({
      code: 'ERR_TRUNCATED',
      message: expect.stringMatching(/^s: /),
    })
    expect(await check(files)).toMatchObject([{ code: 'ERR_TRUNCATED', path: 's: ' }])
  })

  it('limits hold for all shards together', async () => {
    const weights = { a: 's', b: 't' }
    const files = { [INDEX]: indexFile({ weight_map: weights }), s: one('a'), t: one('b') }
    const code = 'ERR_LIMIT'
    await expect(read(files, 'lenient', { tensors: 1 })).rejects.toMatchObject({ code })
    await expect(read(files, 'lenient', { headerBytes: 100 })).rejects.toMatchObject({ code })
    await expect(read(files, 'lenient', { totalBytes: 1 })).rejects.toMatchObject({ code })
    expect((await read(files, 'lenient', { tensors: 2, totalBytes: 2 })).tensors.length).toBe(2)
  })

  it('limits hold for the names of the weight map, in a shard or not', async () => {
    const weights = { a: 's', b: 's', c: 's' }
    const files = { [INDEX]: indexFile({ weight_map: weights }), s: one('a') }
    const code = 'ERR_LIMIT'
    await expect(read(files, 'lenient', { tensors: 2 })).rejects.toMatchObject({ code })
    expect((await read(files, 'lenient', { tensors: 3 })).tensors.length).toBe(1)
  })
})
