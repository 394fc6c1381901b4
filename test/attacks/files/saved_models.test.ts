/**
 * Models of several files under concurrent writers, kills and crowds: the files are those of one save, and none is left over.
 * `TILEWORK_ATTACK_SECONDS` sets the time of the random attacks; `npm run test:file-attacks` takes long. Child processes run
 * the built library.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type DenseTensor, open, type SaveOptions, save, tensor } from '../../../lib/index.js'

const SECONDS = Number(process.env.TILEWORK_ATTACK_SECONDS ?? 1.5)
const TIMEOUT = SECONDS * 1000 + 60_000
const LIBRARY = pathToFileURL(resolve(import.meta.dirname, '../../../dist/index.js')).href
const COUNT = 50_000
const PARTS = 4

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-models-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const at = (name: string): string => join(folder, name)
const names = (): string[] => readdirSync(folder).sort()

/** Each fills two files beside the main one. */
const KINDS: Readonly<Record<string, { readonly target: string; readonly options: SaveOptions }>> = {
  'external data': { target: 'm.onnx', options: { external: { shardBytes: COUNT * 8 } } },
  'external data under one name': { target: 'm.onnx', options: { external: { location: 'w.bin' } } },
  shards: { target: 'm.safetensors.index.json', options: { maxShardBytes: COUNT * 8 + 1000 } },
}

function model(value: number): DenseTensor[] {
  return Array.from({ length: PARTS }, (_, part) =>
    tensor(new Float32Array(COUNT).fill(value), { shape: [COUNT], name: `w${part}` }),
  )
}

/** A process that saves `model(value)` again and again for each value that it is sent. */
class Writer {
  readonly #child: ChildProcess

  constructor(target: string, options: SaveOptions) {
    const script = `
      import * as tilework from ${JSON.stringify(LIBRARY)}
      process.on('message', async (value) => {
        const tensors = Array.from({ length: ${PARTS} }, (_, part) =>
          tilework.tensor(new Float32Array(${COUNT}).fill(value), { shape: [${COUNT}], name: 'w' + part }))
        const outcome = await tilework.save(${JSON.stringify(target)}, tensors, ${JSON.stringify(options)})
          .then(() => 'saved', ({ code, message }) => code + ' ' + message)
        process.send(outcome)
      })
      process.send('ready')`
    this.#child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
  }

  /** The next message; undefined where the process has ended. */
  answer(): Promise<unknown> {
    return new Promise((done) => {
      this.#child.once('message', done)
      this.#child.once('exit', () => done(undefined))
    })
  }

  save(value: number): Promise<unknown> {
    const answer = this.answer()
    this.#child.send(value, () => undefined)
    return answer
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const ended = new Promise((done) => this.#child.once('exit', done))
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    this.#child.kill(signal)
    await ended
  }
}

/** The one value of all tensors of a model. */
async function soleValueOf(path: string): Promise<number> {
  using file = await open(path, { level: 'strict' })
  expect(file.tensors.length).toBe(PARTS)
  const values = new Set<unknown>()
  for (const each of file.tensors) {
    for (const value of await (each as DenseTensor).toTypedArray()) values.add(value)
  }
  expect(values.size).toBe(1)
  return [...values][0] as number
}

/** The main file and the files that it names. */
async function filesOf(target: string): Promise<string[]> {
  using file = await open(at(target))
  return [target, ...file.parts.map(({ name }) => name)].sort()
}

describe.each(Object.entries(KINDS))('%s', (_, { target, options }) => {
  test(
    'two processes that save one model leave one of the two, whole',
    async () => {
      const writers = [new Writer(at(target), options), new Writer(at(target), options)]
      try {
        await Promise.all(writers.map((writer) => writer.answer()))
        const end = performance.now() + (SECONDS * 1000) / 3
        for (let value = 1; performance.now() < end || value < 4; value += 2) {
          if (value % 5 === 0) for (const name of names()) rmSync(at(name))
          const saved = await Promise.all(writers.map((writer, index) => writer.save(value + index)))
          expect(saved).toEqual(['saved', 'saved'])
          expect([value, value + 1]).toContain(await soleValueOf(at(target)))
          expect(names()).toEqual(await filesOf(target))
        }
      } finally {
        await Promise.all(writers.map((writer) => writer.kill('SIGKILL')))
      }
    },
    TIMEOUT,
  )

  test(
    'a killed save leaves a whole model, and nothing after the next save',
    async () => {
      // A kill between two names can mix models under a name that the caller gave: docs/security.md.
      const isMixable = options.external !== undefined && 'location' in Object(options.external)
      await save(at(target), model(1), options)
      let current = 1
      const end = performance.now() + SECONDS * 1000
      for (let value = 2; performance.now() < end; value++) {
        const writer = new Writer(at(target), options)
        await writer.answer()
        const saving = writer.save(value)
        const signal = value % 3 === 0 ? 'SIGTERM' : 'SIGKILL'
        setTimeout(() => writer.kill(signal), 4 + Math.random() * 50)
        await saving
        await writer.kill('SIGKILL')
        if (isMixable) continue
        const found = await soleValueOf(at(target))
        expect([current, value]).toContain(found)
        current = found
      }
      await save(at(target), model(0), options)
      expect(await soleValueOf(at(target))).toBe(0)
      expect(names()).toEqual(await filesOf(target))
    },
    TIMEOUT,
  )

  test('concurrent saves of one process end as one of them', async () => {
    await Promise.all([1, 2, 3].map((value) => save(at(target), model(value), options)))
    expect([1, 2, 3]).toContain(await soleValueOf(at(target)))
    expect(names()).toEqual(await filesOf(target))
  })
})

describe('data of a replaced model', () => {
  const external = { external: { threshold: 0 } } as const
  const small = (value: number): DenseTensor => tensor(new Float32Array([value]), { name: 'w' })

  test('are removed, whatever the new model is', async () => {
    await save(at('m.onnx'), [small(1)], external)
    expect(names()).toEqual(['m.onnx', 'm.onnx.data'])
    await save(at('m.onnx'), [small(2)], external)
    expect(names()).toEqual(['m.onnx', 'm.onnx-1.data'])
    await save(at('m.onnx'), [small(3)])
    expect(names()).toEqual(['m.onnx'])
  })

  test('are kept on request', async () => {
    await save(at('m.onnx'), [small(1)], external)
    await save(at('m.onnx'), [small(2)], { ...external, keepOldData: true })
    expect(names()).toEqual(['m.onnx', 'm.onnx-1.data', 'm.onnx.data'])
    await expect(save(at('m.onnx'), [small(2)], { keepOldData: 1 as never })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  })

  test('are kept while another model names them, or may name them', async () => {
    await save(at('m.onnx'), [small(1)], external)
    copyFileSync(at('m.onnx'), at('other.onnx'))
    await save(at('m.onnx'), [small(2)], external)
    expect(names()).toEqual(['m.onnx', 'm.onnx-1.data', 'm.onnx.data', 'other.onnx'])
    writeFileSync(at('other.onnx'), 'unreadable')
    await save(at('m.onnx'), [small(3)], external)
    expect(names()).toContain('m.onnx-1.data')
  })

  test('are kept where they are not ours', async () => {
    await save(at('m.onnx'), [small(1)], { external: { threshold: 0, location: 'mine.bin' } })
    await save(at('m.onnx'), [small(2)], external)
    expect(names()).toEqual(['m.onnx', 'm.onnx.data', 'mine.bin'])
    linkSync(at('m.onnx.data'), at('second'))
    await save(at('m.onnx'), [small(3)])
    expect(names()).toEqual(['m.onnx', 'm.onnx.data', 'mine.bin', 'second'])
  })

  test('are replaced under a name that the caller gives', async () => {
    const options = { external: { threshold: 0, location: 'w.bin' } }
    await save(at('m.onnx'), [small(1)], options)
    await save(at('m.onnx'), [small(2)], options)
    expect(names()).toEqual(['m.onnx', 'w.bin'])
    // The data of another model are not.
    await save(at('n.onnx'), [small(3)], options)
    expect(names()).toEqual(['m.onnx', 'n.onnx', 'w-1.bin', 'w.bin'])
    using file = await open(at('m.onnx'))
    expect(await file.dense('w').toTypedArray()).toEqual(new Float32Array([2]))
  })
})

describe('the journal of a killed save', () => {
  const external = { external: { threshold: 0 } } as const
  const small = [tensor(new Float32Array([1]), { name: 'w' })]
  const JOURNAL = '.m.onnx.tilework-save'

  function writeJournal(...files: readonly string[]): void {
    const listed = files.map((name) => {
      const { dev, ino, size, mtimeNs } = lstatSync(at(name), { bigint: true })
      const identity = { device: `${dev}`, inode: `${ino}`, size: `${size}`, modified: `${mtimeNs}` }
      return { name, identity }
    })
    writeFileSync(at(JOURNAL), JSON.stringify({ files: listed }), { mode: 0o600 })
  }

  test('lists what the next save removes', async () => {
    await save(at('m.onnx'), small, external)
    mkdirSync(at('sub'))
    for (const name of ['m.onnx-1.data', 'sub/left.bin', 'kept']) writeFileSync(at(name), 'left')
    writeJournal('m.onnx.data', 'm.onnx-1.data', 'sub/left.bin')
    await save(at('m.onnx'), small)
    expect(names()).toEqual(['kept', 'm.onnx', 'sub'])
    expect(readdirSync(at('sub'))).toEqual([])
  })

  test('removes nothing that is in use, has changed, or lies elsewhere', async () => {
    await save(at('m.onnx'), small, external)
    mkdirSync(at('elsewhere'))
    for (const name of ['changed', 'linked', 'elsewhere/file']) writeFileSync(at(name), 'mine')
    linkSync(at('linked'), at('second'))
    const outside = mkdtempSync(join(tmpdir(), 'tilework-outside-'))
    writeFileSync(join(outside, 'file'), 'mine')
    symlinkSync(outside, at('way'))
    writeJournal('m.onnx.data', 'changed', 'linked', 'way/file')
    const text = readFileSync(at(JOURNAL), 'utf8')
    writeFileSync(at(JOURNAL), text.replace('way/file', `../${outside.split('/').at(-1)}/file`))
    writeFileSync(at('changed'), 'changed since')
    await save(at('m.onnx'), small, { ...external, keepOldData: true })
    expect(names()).toEqual(
      expect.arrayContaining(['changed', 'linked', 'm.onnx', 'm.onnx.data', 'second', 'way']),
    )
    writeJournal('way/file')
    await save(at('m.onnx'), small)
    expect(existsSync(join(outside, 'file'))).toBe(true)
    rmSync(outside, { recursive: true })
  })

  async function expectIgnored(change: () => void): Promise<void> {
    await save(at('m.onnx'), small, external)
    writeFileSync(at('left'), 'left')
    writeJournal('left')
    change()
    await save(at('m.onnx'), small)
    expect(names()).toContain('left')
  }

  test('is ignored where it has a second name', () =>
    expectIgnored(() => linkSync(at(JOURNAL), at('second'))))

  test('is ignored where it is a link', () =>
    expectIgnored(() => {
      renameSync(at(JOURNAL), at('second'))
      symlinkSync('second', at(JOURNAL))
    }))

  test.skipIf(process.platform === 'win32')('is ignored where others may write it', () =>
    expectIgnored(() => chmodSync(at(JOURNAL), 0o620)),
  )

  test.skipIf(process.geteuid?.() !== 0)('is ignored where it is of another user (needs root)', () =>
    expectIgnored(() => chownSync(at(JOURNAL), 12_345, -1)),
  )

  test('is ignored where it is damaged', async () => {
    for (const text of ['', '{', '{"files":[{}]}', '{"files":[{"name":"x","identity":{"device":"y"}}]}']) {
      writeFileSync(at(JOURNAL), text, { mode: 0o600 })
      await save(at('m.onnx'), small, external)
      expect(names()).toEqual(await filesOf('m.onnx'))
    }
  })
})

test.skipIf(process.platform === 'win32')(
  '1,500 parallel saves fit into 300 descriptors',
  async () => {
    const script = `
    import * as tilework from ${JSON.stringify(LIBRARY)}
    const one = (index) => tilework.save(${JSON.stringify(folder)} + '/' + index + '.npy',
      [tilework.tensor(new Float32Array(100).fill(index), { name: 'w' })])
    const outcomes = await Promise.allSettled(Array.from({ length: 1500 }, (_, index) => one(index)))
    console.log(outcomes.filter(({ status }) => status === 'fulfilled').length, outcomes.find(({ reason }) => reason)?.reason)`
    const limited = [
      '-c',
      'ulimit -n 300; exec "$@"',
      'sh',
      process.execPath,
      '--input-type=module',
      '-e',
      script,
    ]
    const child = spawn('sh', limited, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (text) => {
      output += String(text)
    })
    await new Promise((done) => child.once('close', done))
    expect(output).toBe('1500 undefined\n')
    expect(names()).toHaveLength(1500)
  },
  60_000,
)

test.each([
  ['write', { write: () => new Promise<void>(() => undefined) }],
  ['close', { close: () => new Promise<void>(() => undefined) }],
  [
    'abort',
    { write: () => new Promise<void>(() => undefined), abort: () => new Promise<void>(() => undefined) },
  ],
])('an abort ends a save to a stream that is stuck in %s', async (_, sink) => {
  const stopper = new AbortController()
  const saving = save(new WritableStream(sink), model(1), { signal: stopper.signal })
  setTimeout(() => stopper.abort(), 20)
  await expect(saving).rejects.toMatchObject({ code: 'ERR_ABORTED' })
})
