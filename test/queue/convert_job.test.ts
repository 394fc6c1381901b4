/** One job of a queue, without a server: whatever it says, it stays below the roots and within the limits of its worker. */
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { save, tensor } from '../../lib/index.js'
import type { PairOutcome } from '../../lib/pipeline/many/run_pairs.js'
import { convertJob, type JobSurroundings, pairOfJob } from '../../lib/queue/convert_job.js'
import { readJob } from '../../lib/queue/job_data.js'
import { failureOf } from '../../lib/queue/job_result.js'
import { Scope } from '../../lib/queue/scope.js'
import { isTransient } from '../../lib/queue/transient.js'
import { randomNumbers } from '../attacks/random_numbers.js'
import { RangeServer } from '../bytes/remote/range_server.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
let folders = 0

interface Place {
  readonly root: string
  readonly outside: string
  readonly surroundings: JobSurroundings
}

/** A root with a folder `in`, and a folder beside the root. */
function place(more: Partial<JobSurroundings> = {}): Place {
  const folder = inFolder(`job${folders++}`)
  const [root, outside] = [join(folder, 'root'), join(folder, 'outside')]
  mkdirSync(join(root, 'in'), { recursive: true })
  mkdirSync(outside)
  const surroundings: JobSurroundings = {
    scope: new Scope({ roots: [root], schemes: [] }),
    maxOutputBytes: 2 ** 30,
    folders: new Set(),
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...more,
  }
  return { root, outside, surroundings }
}

async function run(
  { surroundings }: Place,
  job: { readonly input: string; readonly output: string; readonly options?: object },
): Promise<PairOutcome> {
  try {
    const data = readJob({ version: 1, settings: 's', options: {}, ...job })
    return (await convertJob(data, pairOfJob(data, surroundings), surroundings)).outcome
  } catch (error) {
    return { status: 'failed', stage: 'open', error }
  }
}

function codeOf(outcome: PairOutcome): string {
  return outcome.status === 'failed' ? failureOf(outcome.error, outcome.stage, 's').code : outcome.status
}

const values = (count: number, value: number) => tensor(new Float32Array(count).fill(value), { name: 'w' })

describe('a job', () => {
  it.each([
    [
      'a block of 0 values',
      'b.onnx',
      { quantizeTo: { dtype: 'int4', axis: 0, blockSize: 0 } },
      'ERR_ARGUMENT',
    ],
    ['an output below a file', 'in/a.npy/b.npy', {}, 'ERR_IO'],
    ['an output below a folder that is a file', 'in/a.npy/c/d/b.npy', {}, 'ERR_IO'],
    ['a name of 300 characters', `${'x'.repeat(300)}.npy`, {}, 'ERR_IO'],
    ['a folder of 300 characters', `${'x'.repeat(300)}/b.npy`, {}, 'ERR_IO'],
    ['an output that is a folder', 'in', { format: 'npy' }, 'ERR_IO'],
  ])('fails once, with a code of its own, for %s', async (_, output, options, code) => {
    const at = place()
    await save(join(at.root, 'in', 'a.npy'), [tensor(new Float32Array(64), { shape: [8, 8] })])
    const outcome = await run(at, {
      input: join(at.root, 'in', 'a.npy'),
      output: join(at.root, output),
      options,
    })
    expect(codeOf(outcome)).toBe(code)
    expect(isTransient((outcome as { error: unknown }).error)).toBe(false)
  })

  it.each([
    ['within the disk', [20_000, 20_000, 0, 0]],
    ['beyond any disk', [1e6, 1e6, 0, 0]],
  ])('is refused before its output is allocated, where that is too long, %s', async (_, upper) => {
    const at = place({ maxOutputBytes: 64 * 2 ** 20 })
    let reports = 0
    const surroundings = { ...at.surroundings, onProgress: () => void reports++ }
    await save(join(at.root, 'in', 'a.npy'), [tensor(new Float32Array(64), { shape: [8, 8] })])
    const outcome = await run(
      { ...at, surroundings },
      {
        input: join(at.root, 'in', 'a.npy'),
        output: join(at.root, 'b.npy'),
        options: { layout: 'bfyx', upper },
      },
    )
    expect(codeOf(outcome)).toBe('ERR_LIMIT')
    expect(isTransient((outcome as { error: unknown }).error)).toBe(false)
    // The first report follows the allocation.
    expect(reports).toBe(0)
    expect(readdirSync(at.root)).toEqual(['in'])
  })

  it('ends at the deadline of the worker, once: a server that drips, and a long computation', async () => {
    const server = new RangeServer()
    await server.listen()
    try {
      server.fault = (_request, response) => {
        response.writeHead(206, { 'content-range': 'bytes 0-99999/100000' })
        const timer = setInterval(() => response.write('x'), 20)
        response.on('close', () => clearInterval(timer))
        return true
      }
      const roots = [server.url('/')]
      const late = place({ deadline: 200 })
      const scope = new Scope({ roots: [late.root, ...roots], schemes: [] })
      const surroundings = { ...late.surroundings, scope }
      const job = { input: server.url('/a.npy'), output: join(late.root, 'b.npy') }
      const dripped = await run({ ...late, surroundings }, job)
      expect(codeOf(dripped)).toBe('ERR_LIMIT')
      expect(isTransient((dripped as { error: unknown }).error)).toBe(false)
    } finally {
      await server.close()
    }
    const at = place({ deadline: 1 })
    const input = join(at.root, 'in', 'a.npy')
    await save(input, [tensor(new Float32Array(2 ** 22), { shape: [1, 4, 2 ** 10, 2 ** 10] })])
    const outcome = await run(at, { input, output: join(at.root, 'b.npy'), options: { layout: 'byxf' } })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'ERR_LIMIT' } })
    expect(readdirSync(at.root)).toEqual(['in'])
  })

  /** Values that a field may not have, beside values that it may have. */
  const FIELDS: Record<string, readonly unknown[]> = {
    tensors: [['w'], [0], [99], [''], ['none'], []],
    dtype: ['float16', 'int4', 'q8_0', 'x'],
    layout: ['bfyx', 'b_fs_yx_fsv16', 'row_major', 'x', 'byxf'],
    lower: [[0, 0, 1, 1], [1], [], [2 ** 53 - 1, 0, 0, 0]],
    upper: [[0, 0, 1, 1], [2 ** 53 - 1], [2 ** 32, 2 ** 32, 1, 1]],
    fromLayout: ['byxf', 'row_major', 'x'],
    shape: [[1, 1, 8, 8], [8, 8], [], [0], [2 ** 53 - 1, 2]],
    fromLower: [[0, 0, 1, 1], [1]],
    fromUpper: [[0, 0, 1, 1], [1]],
    as: ['weights'],
    format: ['npy', 'onnx', 'btf', 'gguf', 'safetensors', 'tmfile', 'npz', 'x', '__proto__'],
    weightsOnly: [true, false],
    keepIntegers: [true, false],
    replaceGraph: [true],
    keepOldData: [true],
    quantizeTo: [
      { dtype: 'int8' },
      { dtype: 'int4', blockSize: 0 },
      { dtype: 'int8', axis: 7 },
      { dtype: 'uint4', axis: -(2 ** 53 - 1), blockSize: 2 ** 53 - 1 },
      { dtype: 'float32' },
      { dtype: 'x' },
    ],
    countLosses: [true],
    inputShapes: [{ x: [1] }, { '': [] }],
    batch: [0, 1, 'n', 2 ** 53 - 1],
    quantized: ['keep', 'dequantize'],
    open: [{ format: 'npy' }, { format: 'x' }, { format: 'onnx' }, { message: 'x' }, { level: 'strict' }],
  }

  it('of any options that it may have ends in a code of its own', async () => {
    const at = place({ maxOutputBytes: 2 ** 20 })
    const input = join(at.root, 'in', 'a.npy')
    await save(input, [tensor(new Float32Array(64), { shape: [1, 1, 8, 8] })])
    const random = randomNumbers(53)
    const pick = <T>(list: readonly T[]): T => list[random(list.length)]!
    const names = Object.keys(FIELDS)
    const internal: string[] = []
    for (let count = 0; count < 300; count++) {
      const chosen = Array.from({ length: 1 + random(4) }, () => pick(names))
      const options = Object.fromEntries(chosen.map((name) => [name, pick(FIELDS[name]!)]))
      const output = join(
        at.root,
        `out.${pick(['npy', 'onnx', 'btf', 'tmfile', 'safetensors', 'gguf', 'npz'])}`,
      )
      const outcome = await run(at, { input, output, options })
      if (codeOf(outcome) === 'ERR_INTERNAL') internal.push(`${JSON.stringify(options)} ${output}`)
    }
    expect(internal).toEqual([])
  })
})

/** Bytes that no output of a job may hold. */
const SECRET = 666

/**
 * In a thread: again and again replaces `folder` and `file` below the root by links to what lies beside the root, by another name of
 * that file, and by what they were.
 */
const SWAPPER = `
  const fs = require('node:fs')
  const { root, outside, stop } = require('node:worker_threads').workerData
  const swap = (name, make) => {
    fs.rmSync(root + '/new', { force: true })
    make(root + '/new')
    fs.renameSync(root + '/new', root + '/' + name)
  }
  // A job may have made the folder anew meanwhile; without this the rest of the race would go on without a folder.
  const restore = (name) => {
    while (fs.existsSync(root + '/kept'))
      try {
        fs.rmSync(root + '/' + name, { recursive: true, force: true })
        fs.renameSync(root + '/kept', root + '/' + name)
      } catch {}
  }
  for (let turn = 0; !Atomics.load(stop, 0); turn++) {
    const folder = turn % 4 ? 'in' : 'out'
    try {
      if (turn % 4 < 2) {
        fs.renameSync(root + '/' + folder, root + '/kept')
        fs.symlinkSync(outside, root + '/' + folder)
        fs.unlinkSync(root + '/' + folder)
        fs.renameSync(root + '/kept', root + '/' + folder)
      } else {
        const link = turn % 4 === 2 ? fs.symlinkSync : fs.linkSync
        const name = turn % 8 < 4 ? 'a.npy' : 'm.onnx'
        swap('in/' + name, (path) => link(outside + '/' + name, path))
        swap('in/' + name, (path) => fs.copyFileSync(root + '/good/' + name, path))
        swap('out/b.npy', (path) => fs.symlinkSync(outside + '/written.npy', path))
      }
    } catch {}
    if (turn % 4 < 2) restore(folder)
  }
`

describe('a link that appears after the paths of a job were checked', () => {
  /** Replaces a folder below the root by a link to the folder beside it. */
  const linked =
    (name: string) =>
    ({ root, outside }: Place): void => {
      renameSync(join(root, name), join(root, 'kept'))
      symlinkSync(outside, join(root, name))
    }
  const replaced =
    (link: typeof linkSync) =>
    ({ root, outside }: Place): void => {
      rmSync(join(root, 'in', 'a.npy'))
      link(join(outside, 'a.npy'), join(root, 'in', 'a.npy'))
    }

  it.skipIf(process.platform === 'win32').each([
    ['the folder of the input', 'in/a.npy', 'out/b.npy', linked('in')],
    ['the folder of a model with external data', 'in/m.onnx', 'out/b.npy', linked('in')],
    ['the folder of the output', 'in/a.npy', 'out/b.npy', linked('out')],
    ['the folder of an output with external data', 'in/m.onnx', 'out/m.onnx', linked('out')],
    ['the parent of folders that are created', 'in/a.npy', 'out/new/b.npy', linked('out')],
    ['the input', 'in/a.npy', 'out/b.npy', replaced(symlinkSync)],
    ['the input, by a second name', 'in/a.npy', 'out/b.npy', replaced(linkSync)],
  ])('is not followed: %s', async (_, input, output, swap) => {
    const at = place()
    const { root, outside, surroundings } = at
    mkdirSync(join(root, 'out'))
    for (const folder of [join(root, 'in'), outside]) {
      await save(join(folder, 'a.npy'), [values(1000, 1)])
      await save(join(folder, 'm.onnx'), [values(1000, 1)], {
        external: { threshold: 0, location: 'd.data' },
      })
    }
    const before = readdirSync(outside)
    const data = readJob({
      version: 1,
      input: join(root, input),
      output: join(root, output),
      settings: 's',
      options: {},
    })
    const pair = pairOfJob(data, surroundings)
    swap(at)
    const { outcome } = await convertJob(data, pair, surroundings)
    expect(codeOf(outcome)).toBe('ERR_PATH_ESCAPE')
    expect(readdirSync(outside)).toEqual(before)
    expect(existsSync(join(root, 'out', 'b.npy'))).toBe(false)
  })

  it.skipIf(process.platform === 'win32')('is itself replaced where it is the output', async () => {
    const at = place()
    const { root, outside, surroundings } = at
    await save(join(root, 'in', 'a.npy'), [values(1000, 1)])
    writeFileSync(join(outside, 'b.npy'), 'outside')
    const data = readJob({
      version: 1,
      input: join(root, 'in', 'a.npy'),
      output: join(root, 'b.npy'),
      settings: 's',
      options: {},
    })
    const pair = pairOfJob(data, surroundings)
    symlinkSync(join(outside, 'b.npy'), join(root, 'b.npy'))
    expect(codeOf((await convertJob(data, pair, surroundings)).outcome)).toBe('written')
    expect(readFileSync(join(outside, 'b.npy'), 'utf8')).toBe('outside')
    expect(lstatSync(join(root, 'b.npy')).isFile()).toBe(true)
  })

  it('may be a second name where the worker allows it', async () => {
    const at = place({ open: { hardLinks: 'allow' } })
    await save(join(at.root, 'in', 'a.npy'), [values(1000, 1)])
    linkSync(join(at.root, 'in', 'a.npy'), join(at.root, 'in', 'second.npy'))
    const job = { input: join(at.root, 'in', 'a.npy'), output: join(at.root, 'b.npy') }
    expect(codeOf(await run(at, job))).toBe('written')
    const strict = { ...at, surroundings: { ...at.surroundings, open: {} } }
    expect(codeOf(await run(strict, job))).toBe('ERR_PATH_ESCAPE')
  })
})

describe('400 jobs and more, while links are swapped below the root', () => {
  it.skipIf(process.platform === 'win32')(
    'read and write nothing outside',
    async () => {
      const at = place()
      const { root, outside } = at
      for (const [folder, value] of [
        [join(root, 'good'), 1],
        [outside, SECRET],
      ] as const) {
        mkdirSync(folder, { recursive: true })
        await save(join(folder, 'a.npy'), [values(1000, value)])
        await save(join(folder, 'm.onnx'), [values(1000, value)], {
          external: { threshold: 0, location: 'd.data' },
        })
      }
      mkdirSync(join(root, 'out'))
      for (const name of readdirSync(join(root, 'good')))
        writeFileSync(join(root, 'in', name), readFileSync(join(root, 'good', name)))
      const before = stateOf(outside)
      const stop = new Int32Array(new SharedArrayBuffer(4))
      const swapper = new Worker(SWAPPER, { eval: true, workerData: { root, outside, stop } })
      const counts: Record<string, number> = {}
      const secrets: string[] = []
      // How often a job wins the race is the machine's affair; so it goes on until both have won some.
      const raced = () => {
        const { written = 0, ...refused } = counts
        return written > 20 && Object.values(refused).reduce((sum, count) => sum + count, 0) > 20
      }
      for (let count = 0; count < 400 || (count < 20_000 && !raced()); count++) {
        const [input, output] = count % 2 ? ['in/m.onnx', `out/${count}/c.onnx`] : ['in/a.npy', 'out/b.npy']
        const code = codeOf(await run(at, { input: join(root, input), output: join(root, output) }))
        counts[code] = (counts[code] ?? 0) + 1
      }
      Atomics.store(stop, 0, 1)
      await new Promise((resolve) => swapper.once('exit', resolve))
      for (const name of readdirSync(join(root, 'out'), { recursive: true, encoding: 'utf8' })) {
        const path = join(root, 'out', name)
        if (statSync(path, { throwIfNoEntry: false })?.isFile() && readFileSync(path).includes(SECRET_BYTES))
          secrets.push(name)
      }
      expect({ secrets, outside: stateOf(outside) }).toEqual({ secrets: [], outside: before })
      expect(counts.ERR_INTERNAL).toBeUndefined()
      expect(raced(), JSON.stringify(counts)).toBe(true)
    },
    120_000,
  )
})

const SECRET_BYTES = Buffer.from(Float32Array.of(SECRET, SECRET).buffer)

/** Names and bytes of the files in a folder. */
function stateOf(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'base64')]),
  )
}
