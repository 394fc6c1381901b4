/** Signals to the commands of a queue, as processes: what they leave in the queue. Runs what `npm run build:lib` built. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { serialize, tensor } from '../../lib/index.js'
import { convertQueued, type FileQueue, openQueue, startWorker, submitFiles } from '../../lib/queue.js'
import { RangeServer } from '../bytes/remote/range_server.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
// @ts-expect-error a script without types
import { NO_REDIS, REDIS_PROGRAM, RedisServer } from './servers.mjs'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const isBuilt = existsSync(MAIN)
if (!isBuilt) console.log(`skipped: the command line is not built (${MAIN}); run "npm run build:all"`)
if (REDIS_PROGRAM === undefined) console.log(`queue: skipped, ${NO_REDIS}`)

const CANCELLED = 130
const inFolder = temporaryFolder()

/** Resolves when the child has printed `text` to stderr. */
async function printed(child: ChildProcessWithoutNullStreams, text: string): Promise<void> {
  let all = ''
  for await (const data of child.stderr) {
    all += String(data)
    if (all.includes(text)) return
  }
  throw new Error(`the process ended and printed: ${all}`)
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe.skipIf(!isBuilt || REDIS_PROGRAM === undefined)('signals', () => {
  let redis: { readonly url: string; stop(): Promise<void> }
  let control: FileQueue
  const server = new RangeServer()
  const children: ChildProcessWithoutNullStreams[] = []

  beforeAll(async () => {
    redis = await RedisServer.start()
    control = await openQueue({ url: redis.url })
    await server.listen()
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  })
  afterAll(async () => {
    await control?.close()
    await server.close()
    await redis?.stop()
  })

  function start(...args: string[]): ChildProcessWithoutNullStreams {
    const child = spawn(process.execPath, [MAIN, ...args, '--queue', redis.url], { stdio: 'pipe' })
    children.push(child)
    return child
  }

  it('a second SIGTERM ends a worker at once, and another worker gets its file', async () => {
    const outDir = inFolder('slow')
    mkdirSync(outDir)
    const options = { queue: { url: redis.url }, outDir, dtype: 'float16' } as const
    const vector = tensor(Float32Array.of(1, 2))
    const input = server.put('/a.npy', await serialize(vector, { format: 'npy' }))
    // Answers nothing, until it shall.
    const asked = new Promise<void>((resolve) => {
      server.fault = () => {
        resolve()
        return true
      }
    })
    const url = server.url('/')
    await submitFiles(input, options)
    const child = start('worker', '--root', url, '--root', outDir, '--lock', '1', '--grace', '600')
    const exited = once(child, 'exit')
    await printed(child, 'ready')
    await asked
    child.kill('SIGTERM')
    await new Promise((resolve) => setTimeout(resolve, 300))
    // The first lets it finish the file for ten minutes.
    expect(child.exitCode).toBe(null)
    child.kill('SIGTERM')
    expect(await exited).toEqual([CANCELLED, null])
    expect(await control.counts()).toMatchObject({ active: 1, waiting: 0 })
    server.fault = () => false
    const worker = await startWorker({ queue: { url: redis.url }, roots: [url, outDir], lockMs: 1000 })
    expect(await convertQueued(input, options)).toMatchObject({ written: 1 })
    await worker.stop()
    expect(readFileSync(join(outDir, 'a.npy')).byteLength).toBeGreaterThan(100)
  })

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s to the submitter takes back what no worker has',
    async (signal) => {
      const folder = inFolder(signal)
      mkdirSync(folder)
      const paths = Array.from({ length: 20 }, (_, at) => join(folder, `${at}.npy`))
      for (const path of paths) writeFileSync(path, 'nobody reads it')
      const child = start('convert', ...paths, '--out-dir', join(folder, 'out'), '--dtype', 'float16')
      const exited = once(child, 'exit')
      const message = printed(child, 'ERR_ABORTED')
      await until(async () => (await control.counts()).waiting === 20)
      child.kill(signal)
      await message
      expect(await exited).toEqual([CANCELLED, null])
      expect(await control.counts()).toMatchObject({ waiting: 0, active: 0, delayed: 0 })
    },
  )
})
