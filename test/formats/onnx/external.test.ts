/** External data in real folders: which files may be opened, which are refused, and what a copy of a model includes. */
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
import { check, convert, type DenseTensor, type OpenOptions, open, save, tensor } from '../../../lib/index.js'
import { OnnxModel } from '../../../lib/onnx.js'
import {
  field,
  graphProto,
  int,
  join as joinBytes,
  modelProto,
  nodeProto,
  sha1,
  tensorProto,
} from './onnx_bytes.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-onnx-external-'))
  mkdirSync(join(folder, 'model'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const DATA = Uint8Array.from({ length: 16 }, (_, at) => at)

const outside = (external: Record<string, string>, name = 'w') =>
  tensorProto({ dims: [4], type: 2, name, external })

/** A model in the folder `model` whose tensors have the given external data. */
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
  it('opens a file once for all its tensors, at any offset', async () => {
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

  it('refuses a symlink out of the folder, as file or as directory, unless symlinks are followed', async () => {
    const target = writeData('secret/w.bin')
    symlinkSync(target, join(folder, 'model', 'link.bin'))
    symlinkSync(dirname(target), join(folder, 'model', 'way'))
    for (const location of ['link.bin', 'way/w.bin']) {
      const path = writeModel({ location })
      expect(await refusalOf(path)).toBe('ERR_PATH_ESCAPE')
      expect(await refusalOf(path, { symlinks: 'follow' })).toBeUndefined()
    }
  })

  it('accepts a symlink to a file of the folder', async () => {
    writeData('model/blob')
    symlinkSync('blob', join(folder, 'model', 'w.bin'))
    expect(await refusalOf(writeModel({ location: 'w.bin' }), { level: 'strict' })).toBeUndefined()
  })

  it('refuses a file with a second hard link, unless these are allowed', async () => {
    linkSync(writeData('secret.bin'), join(folder, 'model', 'w.bin'))
    const path = writeModel({ location: 'w.bin' })
    expect(await refusalOf(path)).toBe('ERR_PATH_ESCAPE')
    expect(await refusalOf(path, { hardLinks: 'allow' })).toBeUndefined()
    expect(await refusalOf(path, { hardLinks: 'maybe' as never })).toBe('ERR_ARGUMENT')
  })

  it('does not count the bytes of a missing file among those that a small model may decode to', async () => {
    const dims = [40_000_000]
    const path = join(folder, 'model', 'm.onnx')
    const weights = tensorProto({ dims, type: 2, name: 'w', external: { location: 'gone.bin' } })
    writeFileSync(path, modelProto({ initializers: [weights] }))
    using file = await open(path)
    expect(file.findings.map(({ code }) => code)).toEqual(['ERR_IO'])
    expect([...file.tensors]).toMatchObject([{ shape: dims, hasData: false }])
  })

  it('gives tensors of a missing file no data, and strict refuses it', async () => {
    const path = writeModel({ location: 'gone.bin' }, { location: 'gone.bin', offset: '4' })
    using file = await open(path)
    expect(file.findings.map(({ code }) => code)).toEqual(['ERR_IO'])
    expect([...file.tensors].map(({ hasData }) => hasData)).toEqual([false, false])
    await expect(file.dense('w0').bytes()).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    expect(await refusalOf(path, { level: 'strict' })).toBe('ERR_IO')
    const output = join(folder, 'without.safetensors')
    await expect(convert(path, output)).rejects.toThrow(
      /"w0"\) has no data in its file\. "gone\.bin" cannot be opened/,
    )
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

  it('reports a length that is too long, and strict refuses it', async () => {
    writeData('model/w.bin')
    const path = writeModel({ location: 'w.bin', length: '5' })
    using file = await open(path)
    expect(file.findings.map(({ code }) => code)).toEqual(['ERR_GAP'])
    expect(await refusalOf(path, { level: 'strict' })).toBe('ERR_GAP')
  })

  it('compares checksums in a check', async () => {
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

describe('ranges of one file', () => {
  const location = 'w.bin'
  it.each([
    ['the same', ['0', '0'], []],
    ['that are adjacent', ['4', '0', '8'], []],
    ['that share some bytes', ['8', '0', '10'], ['ERR_OVERLAP']],
    ['that both share bytes with a third', ['0', '1', '2'], ['ERR_OVERLAP', 'ERR_OVERLAP']],
  ])('%s', async (_, offsets, expected) => {
    writeData('model/w.bin')
    const found = await check(writeModel(...offsets.map((offset) => ({ location, offset }))), {
      level: 'strict',
    })
    expect(found.map(({ code }) => code)).toEqual(expected)
  })
})

describe('tensors in attributes and subgraphs', () => {
  const attribute = (name: string, value: Uint8Array, type: number): Uint8Array =>
    joinBytes(field(1, name), value, int(20, type))
  const inner = graphProto({ initializers: [outside({ location: 'inner.bin' }, 'in')] })
  const nodes = [
    nodeProto({ attributes: [attribute('value', field(5, outside({ location: 'w.bin' }, 't')), 4)] }),
    nodeProto({ attributes: [attribute('body', field(6, inner), 5)] }),
  ]

  it('have their data, which a copy includes', async () => {
    const path = join(folder, 'model', 'm.onnx')
    writeFileSync(path, modelProto({ nodes }))
    writeData('model/w.bin')
    writeData('model/inner.bin', DATA.subarray(4))
    using file = await open(path, { level: 'strict' })
    const found = [...file.onnx!.allTensors()].map(({ tensor }) => tensor as DenseTensor)
    expect(await Promise.all(found.map((tensor) => tensor.bytes()))).toEqual([
      Uint8Array.of(0, 1, 2, 3),
      Uint8Array.of(4, 5, 6, 7),
    ])
    mkdirSync(join(folder, 'copy'))
    await save(join(folder, 'copy', 'm.onnx'), file)
    expect(readdirSync(join(folder, 'copy')).sort()).toEqual(['inner.bin', 'm.onnx', 'w.bin'])
  })

  it('are found between initializers and other fields of the graph', async () => {
    const path = join(folder, 'model', 'm.onnx')
    const nodeOf = (name: string): Uint8Array => {
      const value = field(5, outside({ location: `${name}.bin` }, name))
      return field(1, nodeProto({ attributes: [attribute('value', value, 4)] }))
    }
    const listed = field(5, outside({ location: 'w.bin' }, 'w'))
    const valueInfo = field(13, field(1, 'v'))
    const graph = joinBytes(nodeOf('a'), valueInfo, nodeOf('b'), listed, nodeOf('c'), valueInfo, nodeOf('d'))
    writeFileSync(path, modelProto(graph))
    const names = ['a', 'b', 'c', 'd', 'w']
    for (const [at, name] of names.entries()) writeData(`model/${name}.bin`, DATA.subarray(at))
    using file = await open(path)
    expect(file.parts.map(({ name }) => name).sort()).toEqual(names.map((name) => `${name}.bin`))
    const found = [...file.onnx!.allTensors()].map(({ tensor }) => tensor as DenseTensor)
    const first = await Promise.all(found.map(async (each) => [each.name, (await each.bytes())[0]]))
    expect(first.sort()).toEqual(names.map((name, at) => [name, at]))
  })

  it('must not name files outside of the folder', async () => {
    const path = join(folder, 'model', 'm.onnx')
    const value = attribute('value', field(5, outside({ location: '../w.bin' })), 4)
    writeFileSync(path, modelProto({ nodes: [nodeProto({ attributes: [value] })] }))
    writeData('w.bin')
    expect(await refusalOf(path)).toBe('ERR_PATH_ESCAPE')
  })
})

describe('a check of tensors in attributes', () => {
  const model = (...externals: Record<string, string>[]): string => {
    const path = join(folder, 'model', 'm.onnx')
    const nodes = externals.map((external, at) => {
      const value = joinBytes(field(1, 'value'), field(5, outside(external, 't')), int(20, 4))
      return nodeProto({ op: 'Constant', outputs: [`c${at}`], attributes: [value] })
    })
    writeFileSync(path, modelProto({ nodes }))
    return path
  }
  const location = 'w.bin'
  const [first, second] = ['graph.node[0].attribute[0].t', 'graph.node[1].attribute[0].t']

  it.each([
    ['a range beyond the end', [{ location, offset: '13' }], [['ERR_OFFSET_RANGE', first]]],
    [
      'a range that another has in part',
      [{ location }, { location, offset: '2' }],
      [['ERR_OVERLAP', second]],
    ],
    [
      'the same by another spelling',
      [{ location: './w.bin' }, { location, offset: '2' }],
      [['ERR_OVERLAP', second]],
    ],
    ['a wrong checksum', [{ location, checksum: sha1(DATA.subarray(1)) }], [['ERR_CHECKSUM', first]]],
    ['a correct checksum', [{ location, checksum: sha1(DATA) }], []],
  ])('reports %s', async (_, externals, expected) => {
    writeData('model/w.bin')
    const found = await check(model(...(externals as Record<string, string>[])), { level: 'strict' })
    const wanted = (expected as [string, string][]).map(([code, path]) => [code, `${path}.external_data`])
    expect(found.map(({ code, path }) => [code, path])).toEqual(wanted)
  })

  it('gives the reason why such a tensor has no data', async () => {
    writeData('model/w.bin')
    using file = await open(model({ location, offset: '13' }, { location: 'gone.bin' }))
    const [short, gone] = [...file.onnx!.allTensors()].map(({ tensor }) => tensor as DenseTensor)
    await expect(short!.bytes()).rejects.toThrow(
      '"w.bin" has 16 bytes; the tensor needs 4 bytes at offset 13',
    )
    await expect(gone!.bytes()).rejects.toThrow('"gone.bin" could not be opened')
  })
})

it('opens no more files than the limit, missing files included', async () => {
  const externals = Array.from({ length: 6000 }, (_, at) => ({ location: `gone${at}.bin` }))
  expect(await refusalOf(writeModel(...externals))).toBe('ERR_LIMIT')
})

describe('a resolver', () => {
  it('returns data in memory, a path, or undefined for the default', async () => {
    writeData('model/a.bin')
    const elsewhere = writeData('cache/blob', DATA.subarray(8))
    const model = writeModel({ location: 'a.bin' }, { location: 'sub/b.bin' }, { location: './c.bin' })
    const asked: string[] = []
    const given = new Map<string, string | Uint8Array>([
      ['sub/b.bin', elsewhere],
      ['c.bin', Uint8Array.of(9, 9, 9, 9)],
    ])
    const resolve = (name: string): string | Uint8Array | undefined => {
      asked.push(name)
      return given.get(name)
    }
    using file = await open(model, { level: 'strict', resolve })
    const values = await Promise.all(['w0', 'w1', 'w2'].map((name) => file.dense(name).bytes()))
    expect(values.map((bytes) => bytes[0])).toEqual([0, 8, 9])
    expect(asked).toEqual(['a.bin', 'sub/b.bin', 'c.bin'])
    given.set('a.bin', DATA)
    using inMemory = await open(readFileSync(model), {
      level: 'strict',
      resolve: async (name) => given.get(name),
    })
    expect(await inMemory.dense('w2').bytes()).toEqual(Uint8Array.of(9, 9, 9, 9))
    expect(await check(model, { level: 'strict', resolve })).toEqual([])
  })

  it('is not called for names outside of the folder, and must be a function', async () => {
    const path = writeModel({ location: '../w.bin' })
    const resolve = (): Uint8Array => DATA
    expect(await refusalOf(path, { resolve })).toBe('ERR_PATH_ESCAPE')
    expect(await refusalOf(path, { resolve: 1 as never })).toBe('ERR_ARGUMENT')
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

  it('does not touch the data where the copy is in the folder of the model', async () => {
    writeData('model/w.bin')
    using file = await open(writeModel({ location: 'w.bin' }))
    await save(join(folder, 'model', 'copy.onnx'), file)
    expect(readdirSync(join(folder, 'model')).sort()).toEqual(['copy.onnx', 'm.onnx', 'w.bin'])
  })

  it('takes another name where the folder has a different file of the same name', async () => {
    const values = Float32Array.from({ length: 512 }, (_, at) => at)
    const model = OnnxModel.create()
    model.graph.setInitializer('w', tensor(values))
    const source = join(folder, 'model', 'm.onnx')
    await save(source, model, { external: { location: 'w.bin' } })
    const other = writeData('copy/w.bin', Uint8Array.of(1))
    using file = await open(source)
    for (const [name, saved] of Object.entries({ unchanged: file, copied: file.onnx!.copy() })) {
      const target = join(folder, 'copy', `${name}.onnx`)
      await save(target, saved)
      using again = await open(target)
      expect([...again.onnx!.file.files.keys()]).toEqual([`${name}.onnx.data`])
      const found = again.onnx!.graph.initializer('w')
      expect(await (found as DenseTensor).toTypedArray()).toEqual(values)
    }
    expect(readFileSync(other)).toEqual(Buffer.from([1]))
  })

  it('replaces the data of the model that it replaces, where no other model names them', async () => {
    writeData('model/w.bin')
    mkdirSync(join(folder, 'copy'))
    const target = join(folder, 'copy', 'n.onnx')
    using file = await open(writeModel({ location: 'w.bin' }))
    for (const model of [file, file.onnx!.copy(), file.onnx!]) await save(target, model)
    expect(readdirSync(join(folder, 'copy')).sort()).toEqual(['n.onnx', 'w.bin'])
    const changed = writeData('copy/w.bin', new Uint8Array(DATA.length))
    await save(target, file)
    expect(readFileSync(changed)).toEqual(Buffer.from(DATA))
    await save(join(folder, 'copy', 'other.onnx'), (await open(target)).onnx!)
    writeData('copy/w.bin', new Uint8Array(DATA.length))
    await save(target, file)
    expect(readFileSync(changed)).toEqual(Buffer.alloc(DATA.length))
  })

  it('refuses to overwrite the data of the model', async () => {
    const data = writeData('model/w.bin')
    using file = await open(writeModel({ location: 'w.bin' }))
    for (const external of [undefined, false, { threshold: 0 }] as const) {
      const options = { format: 'onnx', ...(external !== undefined && { external }) } as const
      await expect(save(data, file, options)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
    expect(readFileSync(data)).toEqual(Buffer.from(DATA))
  })

  it('writes no data through a symlink out of the target folder', async () => {
    mkdirSync(join(folder, 'model', 'in'))
    writeData('model/in/w.bin')
    for (const name of ['copy', 'elsewhere']) mkdirSync(join(folder, name))
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'copy', 'in'))
    using file = await open(writeModel({ location: 'in/w.bin' }))
    await expect(save(join(folder, 'copy', 'm.onnx'), file)).rejects.toMatchObject({
      code: 'ERR_PATH_ESCAPE',
    })
    expect(readdirSync(join(folder, 'elsewhere'))).toEqual([])
  })

  it('stores external tensors in a new model of tensors', async () => {
    writeData('model/w.bin')
    using file = await open(writeModel({ location: 'w.bin', offset: '8' }))
    const target = join(folder, 'all.onnx')
    await save(target, [...file.tensors])
    using whole = await open(target, { level: 'strict' })
    expect(await whole.dense('w0').bytes()).toEqual(Uint8Array.of(8, 9, 10, 11))
  })
})
