/**
 * The registry of formats: what detection reads, what is loaded when, and that a new format needs nothing but its folder
 * and its line.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import type { ByteSource } from '../../lib/bytes/source.js'
import { withSlashes } from '../../lib/bytes/windows_names.js'
import { FileHead, HEAD_BYTES } from '../../lib/formats/file_head.js'
import type { ModelFormat, ModelFormatEntry } from '../../lib/formats/format.js'
import { MODEL_FORMAT } from '../../lib/formats/model_brand.js'
import { check, type OpenFile, open, save, serialize, tensor } from '../../lib/index.js'
import { detectFormat, FORMATS, type FormatName } from '../../lib/pipeline/registry.js'

const code = (expected: string) => expect.objectContaining({ code: expected })

const FORMATS_FOLDER = 'lib/formats'
/** Of a format with models: the files that make them. */
const MODELS_FOLDER = 'lib/models'

const ENTRY_FILES = ['entry', 'index']

function expectFile(path: string): void {
  expect(existsSync(path), path).toBe(true)
}

it('every folder of a format is in the registry and has the files of a format', () => {
  const folders = readdirSync(FORMATS_FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
  // npz shares the folder of npy.
  expect(folders.sort()).toEqual(
    Object.keys(FORMATS)
      .filter((name) => name !== 'npz')
      .sort(),
  )
  for (const folder of folders) {
    const model = join(MODELS_FOLDER, folder)
    const own = existsSync(model) ? ['schema', 'check'] : [...ENTRY_FILES, 'schema', 'read', 'write', 'check']
    for (const part of own) expectFile(join(FORMATS_FOLDER, folder, `${part}.ts`))
    if (existsSync(model)) for (const part of ENTRY_FILES) expectFile(join(model, `${part}.ts`))
  }
})

it('the registry imports no reader, writer or check', () => {
  const imported = [...staticImports('lib/pipeline/registry.ts')].map(withSlashes)
  expect(imported).toContain('lib/formats/npy/schema.ts')
  const implementations = imported.filter((path) => /\/(index|read|write|check|walk)\.ts$/.test(path))
  expect(implementations).toEqual([])
})

/** Every file that is loaded with `path`, without those that a call imports later. */
function staticImports(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  const text = readFileSync(path, 'utf8')
  for (const [, specifier] of text.matchAll(/^(?:import|export)(?! type)[^'"]*?from '(\.[^']+)\.js'/gm)) {
    staticImports(join(dirname(path), `${specifier}.ts`), found)
  }
  return found
}

it.each(Object.keys(FORMATS))('%s loads an implementation', async (name) => {
  const format = await FORMATS[name as FormatName].load()
  expect(format).toMatchObject({
    read: expect.any(Function),
    check: expect.any(Function),
    plan: expect.any(Function),
  })
})

/** Counts the reads of a source. */
function counted(bytes: Uint8Array): { source: ByteSource; reads: [number, number][] } {
  const memory = new MemorySource(bytes)
  const reads: [number, number][] = []
  const source: ByteSource = {
    byteLength: bytes.byteLength,
    read: (start, end) => {
      reads.push([start, end])
      return memory.read(start, end)
    },
  }
  return { source, reads }
}

it('detection reads the head of a file once for all formats', async () => {
  const bytes = await serialize(tensor(new Float32Array(4096)), { format: 'npy' })
  const { source, reads } = counted(bytes)
  const detected = await detectFormat(source, 'x.btf')
  expect(detected?.entry.name).toBe('npy')
  expect(reads).toEqual([[0, HEAD_BYTES]])
})

it('the reader of an ONNX file reuses the messages that detection found', async () => {
  const bytes = await serialize(tensor(Float32Array.of(1, 2, 3), { name: 'x' }), { format: 'onnx' })
  const named = counted(bytes)
  await open(named.source, { format: 'onnx', message: 'ModelProto' })
  const detected = counted(bytes)
  await detectFormat(detected.source, 'x.onnx')
  const opened = counted(bytes)
  await open(opened.source)
  expect(opened.reads.length).toBe(detected.reads.length + named.reads.length)
})

it('a source that is shorter than it says is ERR_FILE_CHANGED', async () => {
  const source: ByteSource = { byteLength: 100, read: async () => new Uint8Array(10) }
  await expect(FileHead.read(source)).rejects.toThrow(code('ERR_FILE_CHANGED'))
})

// A format as its folder would have it: an entry, an implementation, a model.

class ToyModel {
  readonly values: number[]

  constructor(values: number[]) {
    this.values = values
  }

  get [MODEL_FORMAT](): 'toy' {
    return 'toy'
  }
}

const TOY_MAGIC = Buffer.from('TOY!')

const toy: ModelFormat<ToyModel> = {
  read: async (source) => {
    const bytes = await source.read(TOY_MAGIC.length, source.byteLength)
    const values = tensor(Uint8Array.from(bytes), { name: 'values' })
    const tensors = Object.assign([values], { get: () => values })
    return { tensors, findings: [], model: new ToyModel([...bytes]) }
  },
  check: async () => [{ severity: 'warning', code: 'ERR_GAP', path: '', offset: 0, message: 'A toy.' }],
  plan: async () => toy.planModel(new ToyModel([7])),
  nodesOf: () => 0,
  describe: () => ({ metadata: new Map(), graphs: [] }),
  weightsOf: ({ values }) => [tensor(Uint8Array.from(values), { name: 'values' })],
  planModel: async ({ values }) => {
    const bytes = Buffer.concat([TOY_MAGIC, Uint8Array.from(values)])
    return { byteLength: bytes.byteLength, segments: [{ kind: 'bytes', bytes }] }
  },
}

const toyEntry = {
  name: 'toy',
  extensions: ['.toy'],
  writeOptions: {},
  modelProperty: 'toy',
  detect: ({ bytes }: FileHead) => TOY_MAGIC.every((byte, at) => bytes[at] === byte),
  load: async () => toy,
} as const satisfies ModelFormatEntry<ToyModel>

/** Does what the one line in the registry does. */
function register(): void {
  Object.assign(FORMATS, { toy: toyEntry })
}

afterEach(() => {
  Reflect.deleteProperty(FORMATS, 'toy')
})

it('a format that is registered is opened, checked and saved, and its model is its own', async () => {
  register()
  const bytes = Buffer.from('TOY!\x01\x02')
  const file = (await open(bytes)) as OpenFile & { readonly toy?: ToyModel }
  expect(file.format).toBe('toy')
  expect(file.toy?.values).toEqual([1, 2])
  expect([file.tmfile, file.onnx]).toEqual([undefined, undefined])
  expect(await check(bytes)).toMatchObject([{ message: 'A toy.' }])
  file.toy!.values.push(3)
  expect(Buffer.from(await serialize(file)).toString('latin1')).toBe('TOY!\x01\x02\x03')
  const npy = await open(await serialize(file, { format: 'npy' }))
  expect([...(await npy.dense(0).toTypedArray())]).toEqual([1, 2, 3])
})

it('a format that is not registered is unknown', async () => {
  await expect(open(Buffer.from('TOY!\x01'))).rejects.toThrow(code('ERR_UNKNOWN_FORMAT'))
  await expect(save(resolve('x.toy'), tensor(Uint8Array.of(1)))).rejects.toThrow(code('ERR_ARGUMENT'))
})

it('the compiler refuses an entry that lacks something', () => {
  const { load, ...withoutLoad } = toyEntry
  // @ts-expect-error: no implementation
  expect(withoutLoad satisfies ModelFormatEntry<ToyModel>).toBeDefined()
  const { modelProperty, ...withoutProperty } = toyEntry
  // @ts-expect-error: a model that no open file would show
  expect(withoutProperty satisfies ModelFormatEntry<ToyModel>).toBeDefined()
  // @ts-expect-error: a writer's option that the registry does not know
  expect(toyEntry satisfies ModelFormatEntry<ToyModel, { readonly level?: number }>).toBeDefined()
})
