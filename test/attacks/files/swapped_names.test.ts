/**
 * The names of a model's data are swapped with links to a file outside all the time while it is opened: the bytes outside must
 * never appear. `TILEWORK_ATTACK_SECONDS` sets the time of each attack; `npm run test:file-attacks` takes long.
 */
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { open, save, TileworkError, tensor } from '../../../lib/index.js'

const SECONDS = Number(process.env.TILEWORK_ATTACK_SECONDS ?? 0.7)
const COUNT = 1000
const GOOD = 1
const SECRET = 666

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-swapped-'))
  for (const name of ['in/sub', 'outside']) mkdirSync(join(folder, name), { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Each takes the good file away and gives it back. */
const SWAPS = {
  'a folder by a link': `
    fs.renameSync(at('in/sub'), at('in/away'));
    fs.symlinkSync('../outside', at('in/sub'));
    fs.unlinkSync(at('in/sub'));
    fs.renameSync(at('in/away'), at('in/sub'))`,
  'a file by a link': `
    fs.symlinkSync(at('outside/data'), at('in/sub/new'));
    fs.renameSync(at('in/sub/new'), data);
    fs.copyFileSync(at('good'), at('in/sub/new'));
    fs.renameSync(at('in/sub/new'), data)`,
  'a file by a hard link': `
    fs.linkSync(at('outside/data'), at('in/sub/new'));
    fs.renameSync(at('in/sub/new'), data);
    fs.copyFileSync(at('good'), at('in/sub/new'));
    fs.renameSync(at('in/sub/new'), data)`,
}

/** Runs a swap again and again on another thread until the returned function is called. */
function swapAllTheTime(data: string, swap: string): () => Promise<void> {
  const stopped = new Int32Array(new SharedArrayBuffer(4))
  const script = `const fs = require('node:fs'), { workerData } = require('node:worker_threads');
    const { folder, stopped } = workerData;
    const at = (name) => folder + '/' + name, data = at('in/sub/${data}');
    while (!Atomics.load(stopped, 0)) try { ${swap} } catch {}`
  const worker = new Worker(script, { eval: true, workerData: { folder, stopped } })
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  return () => {
    Atomics.store(stopped, 0, 1)
    return ended
  }
}

/** Opens the model until the time is over, and counts what it finds. */
async function outcomes(path: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = { secret: 0 }
  const count = (outcome: string): void => {
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  const end = performance.now() + SECONDS * 1000
  while (performance.now() < end) {
    try {
      using file = await open(path)
      const [found] = [...file.tensors]
      if (!found?.hasData) count('no data')
      else count((await file.dense(0).toTypedArray()).includes(SECRET as never) ? 'secret' : 'good')
    } catch (error) {
      if (!(error instanceof TileworkError)) throw error
      count(error.code)
    }
  }
  return counts
}

/** A secret file of the same length and structure, in which only the values differ. */
function writeSecret(good: string): void {
  const bytes = readFileSync(good)
  const values = new Float32Array(COUNT).fill(SECRET)
  bytes.set(new Uint8Array(values.buffer), bytes.length - values.byteLength)
  writeFileSync(join(folder, 'outside/data'), bytes)
  copyFileSync(good, join(folder, 'good'))
}

const values = (): ReturnType<typeof tensor> =>
  tensor(new Float32Array(COUNT).fill(GOOD), { shape: [COUNT], name: 'w' })

test.each(Object.entries(SWAPS))(
  'external data: %s',
  async (_, swap) => {
    const path = join(folder, 'in/m.onnx')
    await save(path, [values()], { external: { threshold: 0, location: 'sub/data' } })
    writeSecret(join(folder, 'in/sub/data'))
    const stop = swapAllTheTime('data', swap)
    const counts = await outcomes(path).finally(stop)
    expect(counts).toMatchObject({ secret: 0 })
  },
  SECONDS * 1000 + 20_000,
)

test(
  'a shard of safetensors: a file by a link',
  async () => {
    const path = join(folder, 'in/sub/m.safetensors.index.json')
    await save(path, [values()], { maxShardBytes: 2 ** 20 })
    const shard = 'm-00001-of-00001.safetensors'
    writeSecret(join(folder, 'in/sub', shard))
    const stop = swapAllTheTime(shard, SWAPS['a file by a link'])
    const counts = await outcomes(path).finally(stop)
    expect(counts).toMatchObject({ secret: 0 })
  },
  SECONDS * 1000 + 20_000,
)

test(
  'data are written below the folder',
  async () => {
    const path = join(folder, 'in/m.onnx')
    const stop = swapAllTheTime('data', SWAPS['a folder by a link'])
    const before = readdirSync(join(folder, 'outside'))
    const end = performance.now() + SECONDS * 1000
    try {
      while (performance.now() < end) {
        await save(path, [values()], { external: { threshold: 0, location: 'sub/data' } }).catch((error) =>
          expect(error).toBeInstanceOf(TileworkError),
        )
        expect(readdirSync(join(folder, 'outside'))).toEqual(before)
      }
    } finally {
      await stop()
    }
  },
  SECONDS * 1000 + 20_000,
)
