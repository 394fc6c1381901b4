/** External data in real folders: what may be opened, what is refused, and what a copy of a model takes with it. */
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { check, type OpenOptions, open, save } from '../../../lib/index.js'
import { modelProto, sha1, tensorProto } from './onnx_bytes.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-onnx-external-'))
  mkdirSync(join(folder, 'model'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const DATA = Uint8Array.from({ length: 16 }, (_, at) => at)

const outside = (external: Record<string, string>, name = 'w') =>
  tensorProto({ dims: [4], type: 2, name, external })

/** A model in the folder `model` whose tensors lie where `externals` say. */
function writeModel(...externals: Record<string, string>[]): string {
  const path = join(folder, 'model', 'm.onnx')
  const initializers = externals.map((external, at) => outside(external, `w${at}`))
  writeFileSync(path, modelProto({ initializers }))
  return path
}

function writeData(name: string, bytes: Uint8Array = DATA): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  return path
}

const refusalOf = (path: string, options: OpenOptions = {}) =>
  open(path, options).then(
    (file) => {
      file.close()
      return undefined
    },
    (error) => error.code,
  )

describe('reading', () => {
  it('opens one file once for all tensors in it, at any offset', async () => {
    writeData('model/data/w.bin')
    const location = 'data/w.bin'
    const path = writeModel(
      { location },
      { location, offset: '12', length: '4' },
      { location: './data/w.bin', offset: '1' },
    )
    using file = await open(path, { level: 'strict' })
    expect(await file.dense('w0').bytes()).toEqual(Uint8Array.of(0, 1, 2, 3))
    expect(await file.dense('w1').bytes()).toEqual(Uint8Array.of(12, 13, 14, 15))
    expect(await file.dense('w2').bytes()).toEqual(Uint8Array.of(1, 2, 3, 4))
    const sources = [0, 1].map((at) => (file.tensors.at(at) as unknown as { source: unknown }).source)
    expect(sources[0]).toBe(sources[1])
  })

  it.each([
    ['../w.bin'],
    ['data/../../w.bin'],
    ['..'],
    ['data/../data/w.bin'],
    ['/etc/hostname'],
    ['C:\\w.bin'],
    ['data\\..\\w.bin'],
    ['w.bin\0.txt'],
    ['*/_ORT_MEM_ADDR_/*'],
  ])('refuses the location %j', async (location) => {
    writeData('w.bin')
    writeData('model/data/w.bin')
    const path = writeModel({ location, offset: '0', length: '4' })
    for (const options of [{}, { level: 'strict' }, { symlinks: 'follow', hardLinks: 'allow' }] as const) {
      expect(await refusalOf(path, options)).toBe('ERR_PATH_ESCAPE')
    }
    expect((await check(path)).map(({ code, severity }) => [code, severity])).toContainEqual([
      'ERR_PATH_ESCAPE',
      'error',
    ])
  })

  it('refuses a link that leads out of the folder, last or on the way, unless links are to be followed', async () => {
    const target = writeData('secret/w.bin')
    symlinkSync(target, join(folder, 'model', 'link.bin'))
    symlinkSync(dirname(target), join(folder, 'model', 'way'))
    for (const location of ['link.bin', 'way/w.bin']) {
      const path = writeModel({ location })
      expect(await refusalOf(path)).toBe('ERR_PATH_ESCAPE')
      expect(await refusalOf(path, { symlinks: 'follow' })).toBeUndefined()
    }
  })

  it('takes a link to a file of the folder', async () => {
    writeData('model/blob')
    symlinkSync('blob', join(folder, 'model', 'w.bin'))
    expect(await refusalOf(writeModel({ location: 'w.bin' }), { level: 'strict' })).toBeUndefined()
  })

  it('refuses a file with a second name, unless these are allowed', async () => {
    linkSync(writeData('secret.bin'), join(folder, 'model', 'w.bin'))
    const path = writeModel({ location: 'w.bin' })
    expect(await refusalOf(path)).toBe('ERR_PATH_ESCAPE')
    expect(await refusalOf(path, { hardLinks: 'allow' })).toBeUndefined()
    expect(await refusalOf(path, { hardLinks: 'maybe' as never })).toBe('ERR_ARGUMENT')
  })

  it('leaves tensors without data where a file is missing, which strict refuses', async () => {
    const path = writeModel({ location: 'gone.bin' }, { location: 'gone.bin', offset: '4' })
    using file = await open(path)
    expect(file.findings.map(({ code }) => code)).toEqual(['ERR_IO'])
    expect([...file.tensors].map(({ hasData }) => hasData)).toEqual([false, false])
    await expect(file.dense('w0').bytes()).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    expect(await refusalOf(path, { level: 'strict' })).toBe('ERR_IO')
    const inMemory = await open(readFileSync(path))
    expect(inMemory.findings.map(({ code }) => code)).toEqual(['ERR_UNSUPPORTED'])
  })

  it.each([
    [{ offset: '13' }, 'ERR_OFFSET_RANGE'],
    [{ offset: '9007199254740991' }, 'ERR_OFFSET_RANGE'],
    [{ offset: '18446744073709551616' }, 'ERR_OVERFLOW'],
    [{ offset: '-1' }, 'ERR_HEADER'],
    [{ offset: '0x1' }, 'ERR_HEADER'],
    [{ offset: ' 1' }, 'ERR_HEADER'],
    [{ offset: '1e1' }, 'ERR_HEADER'],
    [{ offset: '' }, 'ERR_HEADER'],
    [{ length: '3' }, 'ERR_TRUNCATED'],
    [{ length: '0' }, 'ERR_TRUNCATED'],
    [{ length: '-4' }, 'ERR_HEADER'],
  ])('refuses %j', async (keys, code) => {
    writeData('model/w.bin')
    expect(await refusalOf(writeModel({ location: 'w.bin', ...keys } as Record<string, string>))).toBe(code)
  })

  it('tells a length that is too long, and strict refuses it', async () => {
    writeData('model/w.bin')
    const path = writeModel({ location: 'w.bin', length: '5' })
    using file = await open(path)
    expect(file.findings.map(({ code }) => code)).toEqual(['ERR_GAP'])
    expect(await refusalOf(path, { level: 'strict' })).toBe('ERR_GAP')
  })

  it('compares checksums when it checks', async () => {
    writeData('model/w.bin')
    const good = writeModel({ location: 'w.bin', checksum: sha1(DATA).toUpperCase() })
    expect(await check(good, { level: 'strict' })).toEqual([])
    const bad = writeModel({ location: 'w.bin', checksum: sha1(DATA.subarray(1)) })
    expect((await check(bad)).map(({ code, severity }) => [code, severity])).toEqual([
      ['ERR_CHECKSUM', 'warning'],
    ])
    expect((await check(bad, { level: 'strict' })).map(({ severity }) => severity)).toEqual(['error'])
  })
})

describe('saving', () => {
  it('copies a model and its data byte for byte', async () => {
    writeData('model/w.bin')
    const path = writeModel({ location: 'w.bin', checksum: 'kept', extra: 'kept too' })
    mkdirSync(join(folder, 'copy'))
    using file = await open(path)
    await save(join(folder, 'copy', 'n.onnx'), file)
    expect(readFileSync(join(folder, 'copy', 'n.onnx'))).toEqual(readFileSync(path))
    expect(readFileSync(join(folder, 'copy', 'w.bin'))).toEqual(Buffer.from(DATA))
  })

  it('leaves the data alone where the copy lies beside the model', async () => {
    writeData('model/w.bin')
    using file = await open(writeModel({ location: 'w.bin' }))
    await save(join(folder, 'model', 'copy.onnx'), file)
    expect(readdirSync(join(folder, 'model')).sort()).toEqual(['copy.onnx', 'm.onnx', 'w.bin'])
  })

  it('refuses a folder that has other data under the name', async () => {
    writeData('model/w.bin')
    const other = writeData('copy/w.bin', Uint8Array.of(1))
    using file = await open(writeModel({ location: 'w.bin' }))
    await expect(save(join(folder, 'copy', 'm.onnx'), file)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    expect(readFileSync(other)).toEqual(Buffer.from([1]))
    expect(readdirSync(join(folder, 'copy'))).toEqual(['w.bin'])
  })

  it('puts external tensors into a new model of tensors', async () => {
    writeData('model/w.bin')
    using file = await open(writeModel({ location: 'w.bin', offset: '8' }))
    const target = join(folder, 'all.onnx')
    await save(target, [...file.tensors])
    using whole = await open(target, { level: 'strict' })
    expect(await whole.dense('w0').bytes()).toEqual(Uint8Array.of(8, 9, 10, 11))
  })
})
