/** Servers that hang or are not there: nothing waits for them without an end. The waits run at the same time. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { save, tensor } from '../../lib/index.js'
import { convertQueued, startWorker } from '../../lib/queue.js'
import { runCli } from '../cli/run_cli.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
// @ts-expect-error a script without types
import { freePort, NO_REDIS, REDIS_PROGRAM, RedisServer } from './servers.mjs'

if (REDIS_PROGRAM === undefined) console.log(`queue: skipped, ${NO_REDIS}`)

const inFolder = temporaryFolder()

describe.skipIf(REDIS_PROGRAM === undefined)('a server that hangs', () => {
  let redis: { readonly url: string; readonly pid: number; stop(): Promise<void> }
  beforeAll(async () => {
    redis = await RedisServer.start()
  })
  afterAll(() => redis?.stop())

  it.concurrent('is not waited for, by a worker that stops and by a submitter that starts', async () => {
    const folder = inFolder('hang')
    mkdirSync(folder)
    const path = join(folder, 'a.npy')
    await save(path, [tensor(Float32Array.of(1, 2))])
    const options = { queue: { url: redis.url }, outDir: join(folder, 'out'), dtype: 'float16' } as const
    const worker = await startWorker({ queue: options.queue, roots: [folder], graceMs: 0 })
    await convertQueued(path, options)
    process.kill(redis.pid, 'SIGSTOP')
    try {
      const started = Date.now()
      const run = expect(convertQueued(path, { ...options, force: true })).rejects.toMatchObject({
        code: 'ERR_IO',
        message: expect.stringContaining('cannot be used'),
      })
      await Promise.all([run, worker.stop()])
      expect(Date.now() - started).toBeLessThan(25_000)
    } finally {
      process.kill(redis.pid, 'SIGCONT')
    }
  })
})

it.concurrent('a command says in one sentence that nobody answers', async () => {
  const port: number = await freePort()
  const { code, stderr } = await runCli(['queue', 'status', '--queue', `redis://127.0.0.1:${port}`])
  expect(code).toBe(74)
  expect(stderr).toMatch(
    /^tilework: ERR_IO: The queue at redis:\/\/127\.0\.0\.1:\d+ cannot be used: .*ECONNREFUSED.*\n$/,
  )
})
