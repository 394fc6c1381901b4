/** Sharded models that are saved over others: which names are chosen, which files are removed. */
import { spawnSync } from 'node:child_process'
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
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type DenseTensor, open, save, tensor } from '../../../lib/index.js'

const INDEX = 'm.safetensors.index.json'
const shardNames = (count: number, ending = ''): string[] =>
  Array.from({ length: count }, (_, at) => `m-0000${at + 1}-of-0000${count}${ending}.safetensors`)

let root: string
let folder: string
let number = 0
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'tilework-shard-folder-'))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))
beforeEach(() => {
  folder = join(root, String(number++))
  mkdirSync(folder)
})

const inFolder = (name: string): string => join(folder, name)
const files = (): string[] => readdirSync(folder).sort()

/** A model of `count` shards whose every byte is `value`. */
async function saveModel(path: string, value: number, count = 2): Promise<void> {
  const tensors = Array.from({ length: count }, (_, at) =>
    tensor(new Uint8Array(8).fill(value), { dtype: 'uint8', shape: [8], name: `t${at}` }),
  )
  await save(path, tensors, { maxShardBytes: 8 })
}

async function valuesOf(path: string): Promise<number[]> {
  using file = await open(path, { level: 'strict' })
  return Promise.all([...file.tensors].map(async (each) => (await (each as DenseTensor).bytes())[7]!))
}

describe('a model saved over another', () => {
  test('replaces the index and all shards, repeatedly', async () => {
    for (const value of [1, 2, 3, 4]) {
      await saveModel(inFolder(INDEX), value)
      expect(await valuesOf(inFolder(INDEX))).toEqual([value, value])
      const ending = value % 2 === 0 ? '-1' : ''
      expect(files()).toEqual([...shardNames(2, ending), INDEX].sort())
    }
    await saveModel(inFolder(INDEX), 5, 3)
    expect(files()).toEqual([...shardNames(3), INDEX])
  })

  test.each(['map', 'read'] as const)('leaves the old shards of an open file readable (%s)', async (mode) => {
    await saveModel(inFolder(INDEX), 1)
    using old = await open(inFolder(INDEX), { mode })
    await saveModel(inFolder(INDEX), 2)
    expect((await old.dense('t1').bytes())[0]).toBe(1)
    await save(inFolder(INDEX), [...old.tensors], { maxShardBytes: 8 })
    expect(await valuesOf(inFolder(INDEX))).toEqual([1, 1])
    // Windows without POSIX renames keeps replaced files that are open under names of their own, and cannot remove those
    // that are mapped: they stay in the journal.
    const left = process.platform === 'win32' ? /\.tilework-(old|save)$/ : /^$/
    expect(files().filter((name) => !left.test(name)).length).toBe(3)
  })

  test('accepts a one-shot iterable, concurrently with other saves', async () => {
    const saveOnce = (value: number): Promise<void> => {
      const tensors = (function* () {
        for (const name of ['t0', 't1'])
          yield tensor(new Uint8Array(8).fill(value), { dtype: 'uint8', shape: [8], name })
      })()
      return save(inFolder(INDEX), tensors, { maxShardBytes: 8 })
    }
    await Promise.all([1, 2, 3, 4, 5, 6].map(saveOnce))
    const values = await valuesOf(inFolder(INDEX))
    expect(values.length).toBe(2)
    expect(values[0]).toBe(values[1])
    expect(files().length).toBe(3)
  })

  test('keeps shards that another index names', async () => {
    await saveModel(inFolder(INDEX), 1)
    writeFileSync(inFolder('copy.safetensors.index.json'), readFileSync(inFolder(INDEX)))
    await saveModel(inFolder(INDEX), 2)
    await saveModel(inFolder(INDEX), 3)
    expect(await valuesOf(inFolder('copy.safetensors.index.json'))).toEqual([1, 1])
    expect(await valuesOf(inFolder(INDEX))).toEqual([3, 3])
    const names = [...shardNames(2), ...shardNames(2, '-2')]
    expect(files()).toEqual(['copy.safetensors.index.json', ...names, INDEX].sort())
  })

  test.each(['m.safetensors.index.fp16.json', 'broken.index.json', 'OTHER.INDEX.JSON'])(
    'removes and writes over nothing beside %s, which cannot be read',
    async (name) => {
      await saveModel(inFolder(INDEX), 1)
      writeFileSync(inFolder(name), '{"weight_map": {"a": ')
      await saveModel(inFolder(INDEX), 2)
      await saveModel(inFolder(INDEX), 3)
      const journal = files().filter((file) => file.endsWith('.tilework-save'))
      expect(files().length - journal.length).toBe(1 + 1 + 3 * 2)
      // The first save that can tell removes them.
      rmSync(inFolder(name))
      await saveModel(inFolder(INDEX), 4)
      expect(files().length).toBe(1 + 2)
    },
  )

  test('ignores files that only look like an index', async () => {
    await saveModel(inFolder(INDEX), 1)
    mkdirSync(inFolder('folder.index.json'))
    symlinkSync('nowhere', inFolder('link.index.json'))
    spawnSync('mkfifo', [inFolder('pipe.index.json')])
    writeFileSync(inFolder('texts.index.json'), '["m-00001-of-00002.safetensors"]')
    const before = files().length
    await saveModel(inFolder(INDEX), 2)
    expect(files().length).toBe(before)
  })

  test('removes only plain files with shard names', async () => {
    writeFileSync(inFolder('elsewhere'), 'x')
    const [first, second] = shardNames(2)
    symlinkSync('elsewhere', inFolder(first!))
    mkdirSync(inFolder(second!))
    const others = ['weights.safetensors', 'n-00001-of-00002.safetensors', 'm-1-of-2.safetensors', 'a.json']
    for (const name of others) writeFileSync(inFolder(name), 'x')
    mkdirSync(inFolder('sub'))
    writeFileSync(inFolder('sub/m-00001-of-00002.safetensors'), 'x')
    writeFileSync(join(root, 'm-00001-of-00009.safetensors'), 'x')
    const named = [
      ...[first, second, ...others, 'sub/m-00001-of-00002.safetensors', '../m-00001-of-00009.safetensors'],
      ...[join(root, 'm-00001-of-00009.safetensors'), INDEX, '', '.', '..', 'm-00001-of-00009.safetensors\0'],
    ]
    const weight_map = Object.fromEntries(named.map((name, at) => [`t${at}`, name]))
    writeFileSync(inFolder(INDEX), JSON.stringify({ weight_map }))
    const before = files()
    await saveModel(inFolder(INDEX), 2)
    expect(files()).toEqual([...before, ...shardNames(2, '-1')].sort())
    expect(readdirSync(inFolder('sub'))).toEqual(['m-00001-of-00002.safetensors'])
    expect(readdirSync(root)).toContain('m-00001-of-00009.safetensors')
    expect(readFileSync(inFolder('elsewhere'), 'utf8')).toBe('x')
  })

  test.each([
    '',
    '{',
    '[]',
    'null',
    '{"weight_map": [["m-00001-of-00002.safetensors"]]}',
    '{"weight_map": {"a": {"b": 1}, "c": 5}}',
    `${'['.repeat(100_000)}`,
    '{"weight_map": {"a": "m-00001-of-00002.safetensors", "a": "m-00002-of-00002.safetensors"}} x',
  ])('replaces an index of the text %.60j', async (text) => {
    writeFileSync(inFolder(INDEX), text)
    for (const name of shardNames(2)) writeFileSync(inFolder(name), 'x')
    await saveModel(inFolder(INDEX), 2)
    expect(await valuesOf(inFolder(INDEX))).toEqual([2, 2])
  })
})

describe('shards that no index names', () => {
  test('are overwritten: a killed save left them', async () => {
    await saveModel(inFolder(INDEX), 1)
    for (const name of shardNames(2, '-1')) writeFileSync(inFolder(name), 'left')
    await saveModel(inFolder(INDEX), 2)
    expect(files()).toEqual([...shardNames(2, '-1'), INDEX].sort())
    expect(await valuesOf(inFolder(INDEX))).toEqual([2, 2])
  })

  test('stay when they are links or have a second name', async () => {
    writeFileSync(inFolder('elsewhere'), 'x')
    linkSync(inFolder('elsewhere'), inFolder('m-00001-of-00002.safetensors'))
    symlinkSync('elsewhere', inFolder('m-00002-of-00002-1.safetensors'))
    await saveModel(inFolder(INDEX), 2)
    expect(files()).toContain('m-00001-of-00002-2.safetensors')
    expect(readFileSync(inFolder('m-00001-of-00002.safetensors'), 'utf8')).toBe('x')
    expect(readFileSync(inFolder('elsewhere'), 'utf8')).toBe('x')
  })
})

describe('an open model saved unchanged', () => {
  const source = (): string => join(folder, 'source', INDEX)
  beforeEach(async () => {
    mkdirSync(inFolder('source'))
    mkdirSync(inFolder('target'))
    await saveModel(source(), 7)
  })
  const target = (name = INDEX): string => join(folder, 'target', name)
  const targetFiles = (): string[] => readdirSync(inFolder('target')).sort()
  const copy = async (path = target(), options = {}): Promise<void> => {
    using file = await open(source(), options)
    await save(path, file)
  }

  test('keeps every byte where its names are free', async () => {
    await copy()
    for (const name of [INDEX, ...shardNames(2)]) {
      const bytes = readFileSync(join(folder, 'source', name))
      expect(Buffer.compare(readFileSync(target(name)), bytes)).toBe(0)
    }
  })

  test('gets new shard names over another model, whose shards are removed', async () => {
    await saveModel(target(), 1)
    await copy()
    expect(await valuesOf(target())).toEqual([7, 7])
    expect(targetFiles()).toEqual([...shardNames(2, '-1'), INDEX].sort())
    const text = readFileSync(source(), 'utf8').replaceAll('-of-00002.', '-of-00002-1.')
    expect(readFileSync(target(), 'utf8')).toBe(text)
    await copy()
    expect(readFileSync(target(), 'utf8')).toBe(readFileSync(source(), 'utf8'))
    expect(targetFiles()).toEqual([...shardNames(2), INDEX])
  })

  test('changes nothing but names in the text of an index', async () => {
    const [first, second] = shardNames(2)
    const text = `\n {"metadata" : {"total_size":1.6e1, "x": "${first}", "big": 12345678901234567890},
      "weight_map":{ "t1":"${second!.replace('m', '\\u006d')}" ,\t"t0": "${first}"}, "more":["${second}"]}`
    writeFileSync(source(), text)
    writeFileSync(target(first), 'not ours')
    const other = { weight_map: { a: first } }
    writeFileSync(target('other.index.json'), JSON.stringify(other))
    await copy()
    expect(readFileSync(target(), 'utf8')).toBe(
      `\n {"metadata" : {"total_size":1.6e1, "x": "${first}", "big": 12345678901234567890},
      "weight_map":{ "t1":"m-00001-of-00002-1.safetensors" ,\t"t0": "m-00002-of-00002-1.safetensors"}, "more":["${second}"]}`,
    )
    expect(await valuesOf(target())).toEqual([7, 7])
    expect(readFileSync(target(first), 'utf8')).toBe('not ours')
  })

  test('does not overwrite a file whose name is not a shard name', async () => {
    const stem = process.platform === 'win32' ? 'ünïcode part' : 'ünïcode "part"'
    const rename = (text: string): string => text.replaceAll('m-00001-of-00002', stem)
    writeFileSync(
      join(folder, 'source', rename('m-00001-of-00002.safetensors')),
      readFileSync(join(folder, 'source', shardNames(2)[0]!)),
    )
    const parsed = JSON.parse(readFileSync(source(), 'utf8'))
    parsed.weight_map.t0 = rename(parsed.weight_map.t0)
    writeFileSync(source(), JSON.stringify(parsed))
    writeFileSync(target(`${stem}.safetensors`), 'mine')
    await copy()
    expect(readFileSync(target(`${stem}.safetensors`), 'utf8')).toBe('mine')
    expect(await valuesOf(target())).toEqual([7, 7])
  })

  test('keeps its names over itself and beside itself', async () => {
    const before = readFileSync(source(), 'utf8')
    await copy(source())
    await copy(join(folder, 'source', 'second.safetensors.index.json'))
    expect(readFileSync(source(), 'utf8')).toBe(before)
    expect(await valuesOf(join(folder, 'source', 'second.safetensors.index.json'))).toEqual([7, 7])
    expect(readdirSync(join(folder, 'source')).length).toBe(4)
  })

  test('never adopts a shard of the other model for a missing one', async () => {
    rmSync(join(folder, 'source', shardNames(2)[1]!))
    await saveModel(target(), 1)
    await copy(target(), { level: 'lenient' })
    using file = await open(target())
    expect([...file.tensors].map(({ name }) => name)).toEqual(['t0'])
    expect(file.findings.map(({ code }) => code)).toContain('ERR_IO')
    expect(targetFiles()).toEqual([shardNames(2, '-1')[0], INDEX])
  })

  test('may have a name that differs from its shards', async () => {
    await saveModel(target('x.safetensors.index.json'), 1)
    await copy(target('x.safetensors.index.json'))
    expect(await valuesOf(target('x.safetensors.index.json'))).toEqual([7, 7])
    expect(targetFiles()).toEqual([...shardNames(2), 'x.safetensors.index.json'])
  })
})
