/** Queues on a real Redis server: the same result as on one machine, whatever happens to workers and the server. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { check, convertMany, type FileOutcome, save, serialize, tensor } from '../../lib/index.js'
import { JOB_NAME, jobId } from '../../lib/queue/job_data.js'
import {
  type ConvertQueuedOptions,
  convertQueued,
  openQueue,
  type QueueWorker,
  startWorker,
  submitFiles,
  type WorkerEvent,
  type WorkerOptions,
} from '../../lib/queue.js'
import { RetryableError, registerScheme } from '../../lib/remote.js'
import { MemoryStore } from '../bytes/remote/memory_store.js'
import { runCli } from '../cli/run_cli.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
// @ts-expect-error a script without types
import { freePort, NO_REDIS, REDIS_PROGRAM, RedisServer } from './servers.mjs'

if (REDIS_PROGRAM === undefined) console.log(`queue: skipped, ${NO_REDIS}`)

interface Server {
  readonly url: string
  readonly port: number
  start(): Promise<void>
  end(signal?: string): Promise<void>
  stop(): Promise<void>
}

const inFolder = temporaryFolder()
let folders = 0
/** A new folder whose subfolder `in` has a number of good inputs and a damaged one. */
async function inputs(count: number): Promise<string> {
  const folder = inFolder(`files${folders++}`)
  mkdirSync(join(folder, 'in'), { recursive: true })
  for (let index = 0; index < count; index++) {
    const values = Float32Array.from({ length: 24 }, (_, at) => at + index)
    const path = join(folder, 'in', `${index}.npy`)
    await save(path, [tensor(values, { shape: [1, 2, 3, 4] })])
    // A file that is being written proves nothing, so a fresh one is never skipped.
    utimesSync(path, 1e9, 1e9)
  }
  writeFileSync(join(folder, 'in', 'bad.npy'), 'no tensors')
  return folder
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('the condition did not come true')
}

describe.skipIf(REDIS_PROGRAM === undefined)('a queue', () => {
  let redis: Server
  let names = 0
  let place = { url: '', name: '' }
  const workers: QueueWorker[] = []
  const raw: Queue[] = []
  const clients: Redis[] = []

  beforeAll(async () => {
    redis = await RedisServer.start()
    place = { url: redis.url, name: 'queue0' }
  })
  afterEach(async () => {
    await Promise.all(workers.splice(0).map((worker) => worker.stop()))
    await Promise.all(raw.splice(0).map((queue) => queue.close()))
    for (const client of clients.splice(0)) client.disconnect()
    // A queue of its own for each test.
    place = { url: redis.url, name: `queue${++names}` }
  })
  afterAll(() => redis.stop())

  async function work(
    root: string,
    more: Partial<WorkerOptions> = {},
  ): Promise<{ readonly events: WorkerEvent[]; readonly worker: QueueWorker }> {
    const events: WorkerEvent[] = []
    const onEvent = (event: WorkerEvent): void => void events.push(event)
    const worker = await startWorker({ queue: place, roots: [root], graceMs: 0, onEvent, ...more })
    workers.push(worker)
    return { events, worker }
  }

  function queue(): Queue {
    const opened = new Queue(place.name, { connection: { host: '127.0.0.1', port: redis.port } })
    raw.push(opened)
    return opened
  }

  /** For what BullMQ itself would not do. */
  function redisClient(): Redis {
    const client = new Redis(redis.url)
    clients.push(client)
    return client
  }

  function options(folder: string, more: Partial<ConvertQueuedOptions> = {}): ConvertQueuedOptions {
    return { queue: place, outDir: join(folder, 'out'), layout: 'byxf', keepGoing: true, ...more }
  }

  const pattern = (folder: string): string => join(folder, 'in', '*.npy')

  it('gives the files, the summary, the outcomes and the manifest of one machine', async () => {
    const folder = await inputs(12)
    await work(folder, { jobs: 3 })
    const outcomes = new Map<string, string>()
    const onFile = (outcome: FileOutcome): void => void outcomes.set(basename(outcome.input), outcome.status)
    const summary = await convertQueued(pattern(folder), options(folder, { onFile }))
    const alone = join(folder, 'alone')
    const expected = await convertMany(pattern(folder), { outDir: alone, layout: 'byxf', keepGoing: true })
    expect(summary).toEqual(expected)
    expect(summary.failures).toMatchObject([{ code: 'ERR_UNKNOWN_FORMAT', count: 1 }])
    expect([...outcomes.values()].toSorted()).toEqual(['failed', ...new Array(12).fill('written')])
    for (const name of readdirSync(alone).filter((name) => name.endsWith('.npy'))) {
      expect(readFileSync(join(folder, 'out', name)).equals(readFileSync(join(alone, name)))).toBe(true)
    }
    // Either may go on where the other was.
    const next = { outDir: join(folder, 'out'), layout: 'byxf', keepGoing: true } as const
    expect(await convertMany(pattern(folder), next)).toMatchObject({ written: 0, skipped: 12, failed: 1 })
    expect(await convertQueued(pattern(folder), options(folder))).toMatchObject({
      written: 0,
      skipped: 12,
      failed: 1,
    })
  })

  it('has one job for a target, however often it is submitted', async () => {
    const folder = await inputs(5)
    for (let times = 0; times < 3; times++) {
      expect(await submitFiles(pattern(folder), options(folder))).toEqual({ files: 6 })
    }
    const control = await openQueue(place)
    expect(await control.counts()).toMatchObject({ waiting: 6, active: 0, isPaused: false })
    await control.drain()
    expect(await control.counts()).toMatchObject({ waiting: 0 })
    await control.close()
  })

  it('collects what was finished while nobody waited, and converts a changed input again', async () => {
    const folder = await inputs(4)
    await submitFiles(pattern(folder), options(folder))
    const { events } = await work(folder)
    const control = await openQueue(place)
    await until(async () => (await control.counts()).completed === 4)
    await control.close()
    writeFileSync(
      join(folder, 'in', '0.npy'),
      await serialize(tensor(new Float32Array(24), { shape: [1, 4, 3, 2] }), { format: 'npy' }),
    )
    expect(await convertQueued(pattern(folder), options(folder))).toMatchObject({ written: 4, failed: 1 })
    // The changed one, and the damaged one, which every run tries again.
    expect(events.filter(({ kind }) => kind === 'written')).toHaveLength(5)
    expect(events.filter(({ kind }) => kind === 'failed')).toHaveLength(2)
  })

  it('converts a file again whose output is gone or was changed since it was finished', async () => {
    const folder = await inputs(3)
    await submitFiles(pattern(folder), options(folder))
    const { events } = await work(folder)
    const control = await openQueue(place)
    await until(async () => (await control.counts()).completed === 3)
    await control.close()
    rmSync(join(folder, 'out', '0.npy'))
    writeFileSync(join(folder, 'out', '1.npy'), 'something else')
    expect(await convertQueued(pattern(folder), options(folder))).toMatchObject({ written: 3, failed: 1 })
    expect(events.filter(({ kind }) => kind === 'written')).toHaveLength(5)
    for (const index of [0, 1, 2]) expect(await check(join(folder, 'out', `${index}.npy`))).toEqual([])
  })

  it('does not take the result of other options', async () => {
    const folder = await inputs(2)
    await submitFiles(pattern(folder), options(folder, { dtype: 'float16' }))
    await work(folder)
    expect(await convertQueued(pattern(folder), options(folder))).toMatchObject({ written: 2, failed: 1 })
    const alone = join(folder, 'alone')
    await convertMany(pattern(folder), { outDir: alone, layout: 'byxf', keepGoing: true })
    expect(readFileSync(join(folder, 'out', '1.npy')).equals(readFileSync(join(alone, '1.npy')))).toBe(true)
  })

  it('stops at the first failure without keepGoing, and takes back what nobody has', async () => {
    const folder = await inputs(40)
    const { events } = await work(folder)
    const { keepGoing: _, ...first } = options(folder)
    const names = [join(folder, 'in', 'bad.npy'), pattern(folder)]
    await expect(convertQueued(names, { ...first, priority: 5 })).rejects.toMatchObject({
      code: 'ERR_UNKNOWN_FORMAT',
    })
    await until(async () => (await queue().getJobCountByTypes('waiting', 'prioritized')) === 0)
    expect(events.filter(({ kind }) => kind === 'failed')).toHaveLength(1)
  })

  it('can be cancelled: what nobody has is taken back, and the next run goes on', async () => {
    const folder = await inputs(6)
    const controller = new AbortController()
    const run = convertQueued(pattern(folder), options(folder, { signal: controller.signal }))
    const waiting = queue()
    await until(async () => (await waiting.getWaitingCount()) === 7)
    controller.abort()
    await expect(run).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    expect(await waiting.getWaitingCount()).toBe(0)
    await work(folder)
    expect(await convertQueued(pattern(folder), options(folder))).toMatchObject({ written: 6, failed: 1 })
  })

  it('is paused and resumed', async () => {
    const folder = await inputs(1)
    const control = await openQueue(place)
    await control.pause()
    const { events } = await work(folder)
    const run = convertQueued(pattern(folder), options(folder))
    await until(async () => (await control.counts()).waiting === 2)
    expect((await control.counts()).isPaused).toBe(true)
    expect(events).toEqual([])
    await control.resume()
    expect(await run).toMatchObject({ written: 1, failed: 1 })
    await control.close()
  })

  it('says once why nobody takes files', async () => {
    const folder = await inputs(1)
    const control = await openQueue(place)
    const stalls: string[] = []
    const waits = convertQueued(
      pattern(folder),
      options(folder, { onStall: (reason) => void stalls.push(reason) }),
    )
    await until(() => stalls.length > 0)
    expect(stalls).toEqual(['no worker'])
    expect(await control.counts()).toMatchObject({ waiting: 2, workers: 0 })
    await work(folder)
    expect(await waits).toMatchObject({ written: 1, failed: 1 })
    expect(await control.counts()).toMatchObject({ waiting: 0, workers: 1 })
    await control.pause()
    const flags = ['--out-dir', join(folder, 'again'), '--keep-going', '--queue', place.url]
    const onMessage = (): void => void control.resume()
    const run = runCli(['convert', pattern(folder), ...flags, '--queue-name', place.name], { onMessage })
    expect((await run).stderr.match(/.*paused.*/g)).toEqual([
      'tilework: the queue is paused; "tilework queue resume --queue URL" lets workers take files.',
    ])
    expect(stalls).toHaveLength(1)
    await control.close()
  }, 30_000)

  it('survives a server that forgets everything', async () => {
    const folder = await inputs(5)
    const run = convertQueued(pattern(folder), options(folder))
    const waiting = queue()
    await until(async () => (await waiting.getWaitingCount()) === 6)
    await redisClient().flushall()
    await work(folder)
    expect(await run).toMatchObject({ written: 5, failed: 1 })
  })

  it('survives a restart of the server', async () => {
    const folder = await inputs(30)
    const run = convertQueued(pattern(folder), options(folder))
    await work(folder, { jobs: 2 })
    await redis.end('SIGKILL')
    await redis.start()
    expect(await run).toMatchObject({ written: 30, failed: 1 })
  })

  describe('tries again', () => {
    let failures = 0
    registerScheme('flaky', {
      open: async () => {
        if (failures-- > 0) throw new RetryableError('the server is busy')
        const bytes = await serialize(tensor(Float32Array.of(1, 2)), { format: 'npy' })
        return {
          byteLength: bytes.byteLength,
          label: 'flaky',
          read: async (start, end) => bytes.subarray(start, end),
        }
      },
    })

    it.each([
      ['what may pass, and succeeds', 1, 3, 'written'],
      ['as often as it may', 9, 2, 'ERR_IO'],
    ])('%s', async (_, failing, attempts, expected) => {
      failures = failing
      const folder = await inputs(0)
      const { events } = await work(folder, { allowSchemes: ['flaky'], remote: { retries: 0 } })
      const outcomes: FileOutcome[] = []
      const onFile = (outcome: FileOutcome): void => void outcomes.push(outcome)
      await convertQueued('flaky://host/a.npy?key=secret', {
        ...options(folder, { onFile, attempts }),
        layout: undefined as never,
      })
      const [outcome] = outcomes
      const found = outcome?.status === 'failed' ? (outcome.error as { code: string }).code : outcome?.status
      expect(found).toBe(expected)
      const retried = events.filter((event) => event.kind === 'failed' && event.isRetried)
      expect(retried).toHaveLength(1)
      expect(JSON.stringify([events, outcomes])).not.toContain('secret')
    })
  })

  it('a pattern of URLs is converted below a URL, and only changed objects a second time', async () => {
    const store = new MemoryStore()
    let version = 0
    const vector = (value: number) => serialize(tensor(Float32Array.of(value)), { format: 'npy' })
    const versions = new Map<Uint8Array, string>()
    const versionOf = (bytes: Uint8Array): string => {
      if (!versions.has(bytes)) versions.set(bytes, `v${++version}`)
      return versions.get(bytes)!
    }
    registerScheme('queued', {
      open: async (url) => ({
        ...(await store.open(url)),
        version: versionOf(store.objects.get(url.pathname)!),
      }),
      create: store.create,
      list: async function* () {
        for (const [path, { byteLength }] of store.objects) {
          yield { url: new URL(`queued://host${path}`), byteLength }
        }
      },
    })
    store.objects.set('/in/a.npy', await vector(1)).set('/in/deep/b%20c.npy', await vector(2))
    const folder = await inputs(0)
    await work(folder, { roots: ['queued://host/'] })
    const run = () =>
      convertQueued('queued://host/in/**/*.npy', {
        ...{ queue: place, outDir: 'queued://host/out', dtype: 'float16', format: 'safetensors' },
        manifest: join(folder, 'done.jsonl'),
      })
    expect(await run()).toMatchObject({ files: 2, written: 2 })
    expect([...store.objects.keys()]).toContain('/out/deep/b%20c.safetensors')
    expect(await run()).toMatchObject({ skipped: 2, written: 0 })
    store.objects.set('/in/a.npy', await vector(3))
    expect(await run()).toMatchObject({ skipped: 1, written: 1 })
    store.objects.set('/out/a.safetensors', new Uint8Array(10))
    expect(await run()).toMatchObject({ skipped: 1, written: 1 })
  })

  it('hands a file back when the worker stops, without a counted attempt, and ends', async () => {
    const folder = await inputs(0)
    const values = new Float32Array(24_000_000)
    await save(join(folder, 'in', 'large.npy'), [tensor(values, { shape: [4, 6, 1000, 1000] })])
    const first = await work(folder)
    const run = convertQueued(join(folder, 'in', 'large.npy'), options(folder))
    await until(() => first.events.some(({ kind }) => kind === 'started'))
    await first.worker.stop()
    await first.worker.closed
    if (first.events.some(({ kind }) => kind === 'returned')) {
      const job = (await queue().getJob(jobId(join(folder, 'out', 'large.npy')))) as Job
      expect(job).toMatchObject({ attemptsMade: 0, stalledCounter: 0 })
      expect(existsSync(join(folder, 'out', 'large.npy'))).toBe(false)
      await work(folder)
    } else expect(first.events.some(({ kind }) => kind === 'written')).toBe(true)
    expect(await run).toMatchObject({ written: 1 })
  })

  it('gives the files of a dead worker to others', async () => {
    const folder = await inputs(1)
    await submitFiles(join(folder, 'in', '0.npy'), options(folder))
    // Takes the job and never answers again, as a killed process.
    const dead = new Worker(place.name, null, {
      connection: { host: '127.0.0.1', port: redis.port },
      lockDuration: 500,
    })
    await dead.getNextJob('token')
    const { events } = await work(folder, { lockMs: 1000 })
    expect(await convertQueued(join(folder, 'in', '0.npy'), options(folder))).toMatchObject({ written: 1 })
    expect(events.map(({ kind }) => kind)).toContain('recovered')
    await dead.close(true)
  })

  it('ends a file that kills its workers with ERR_WORKER_LOST, and no other', async () => {
    const folder = await inputs(1)
    await submitFiles(join(folder, 'in', '0.npy'), options(folder))
    const id = jobId(join(folder, 'out', '0.npy'))
    const opened = queue()
    const client = redisClient()
    const set = (...fields: string[]): Promise<number> => client.hset(`bull:${place.name}:${id}`, ...fields)
    // As three processes leave it that had only this file and died.
    await set('stc', '4', 'progress', JSON.stringify({ deathsAlone: 3 }))
    await work(folder)
    await until(async () => (await opened.getFailedCount()) === 1)
    expect((await opened.getJob(id))!.failedReason).toContain('ERR_WORKER_LOST')
    // A file that was beside it when they died is converted.
    await set('stc', '4', 'progress', JSON.stringify({ deathsAlone: 1 }))
    await (await opened.getJob(id))!.retry()
    await until(async () => (await opened.getCompletedCount()) === 1)
  })

  it('refuses hostile jobs with their code, writes nothing for them, and goes on', async () => {
    const folder = await inputs(1)
    const root = join(folder, 'root')
    mkdirSync(root)
    writeFileSync(join(root, 'a.npy'), readFileSync(join(folder, 'in', '0.npy')))
    const good = {
      version: 1,
      input: join(root, 'a.npy'),
      output: join(root, 'b.npy'),
      settings: 's',
      options: {},
    }
    const jobs: [string, string, unknown][] = [
      ['ERR_PATH_ESCAPE', JOB_NAME, { ...good, output: join(folder, 'escaped.npy') }],
      ['ERR_PATH_ESCAPE', JOB_NAME, { ...good, input: '/etc/passwd' }],
      ['ERR_PATH_ESCAPE', JOB_NAME, { ...good, output: `${root}/../escaped.npy` }],
      ['ERR_PATH_ESCAPE', JOB_NAME, { ...good, input: 'http://169.254.169.254/latest' }],
      ['ERR_ARGUMENT', JOB_NAME, { ...good, options: { external: true } }],
      ['ERR_ARGUMENT', JOB_NAME, null],
      ['ERR_ARGUMENT', 'evil', good],
      ['ERR_LIMIT', JOB_NAME, { ...good, options: { tensors: ['x'.repeat(300_000)] } }],
      [
        'ERR_LIMIT',
        JOB_NAME,
        { ...good, options: { layout: 'bfyx', lower: [0, 0, 1000, 1000], upper: [0, 0, 1000, 1000] } },
      ],
      ['ERR_LAYOUT_NAME', JOB_NAME, { ...good, options: { layout: 'no layout' } }],
    ]
    const opened = queue()
    for (const [index, [, name, data]] of jobs.entries()) {
      await opened.add(name, data, {
        jobId: `job-${index}`,
        attempts: 1000,
        backoff: { type: 'evil' },
        removeOnFail: true,
      })
    }
    const client = redisClient()
    // Data that are no JSON.
    await client.hset(
      `bull:${place.name}:broken`,
      'name',
      JOB_NAME,
      'data',
      '{',
      'opts',
      '{}',
      'timestamp',
      '1',
    )
    await client.lpush(`bull:${place.name}:wait`, 'broken')
    const { events } = await work(root, { maxOutputBytes: 1_000_000 })
    await opened.add(JOB_NAME, good, { jobId: 'good' })
    await until(async () => (await opened.getCompletedCount()) === 1)
    const failed = await Promise.all(
      jobs.map(async (_, index) => (await opened.getJob(`job-${index}`))!.failedReason),
    )
    expect(failed.map((text) => (JSON.parse(text) as { code: string }).code)).toEqual(
      jobs.map(([code]) => code),
    )
    expect(events.filter((event) => event.kind === 'failed' && event.isRetried)).toEqual([])
    expect(readdirSync(folder).toSorted()).toEqual(['in', 'root'])
    expect(readdirSync(root).toSorted()).toEqual(['a.npy', 'b.npy'])
  })

  it('says why it cannot be used, without the password', async () => {
    const locked: Server = await RedisServer.start(['--requirepass', 'right-secret'])
    try {
      const url = locked.url.replace('//', '//:wrong-secret@')
      const error: Error = await openQueue({ url }).then(
        () => new Error('it was opened'),
        (reason: Error) => reason,
      )
      expect(error).toMatchObject({
        code: 'ERR_IO',
        message: expect.stringMatching(/WRONGPASS|invalid password/),
      })
      expect(JSON.stringify(error) + error.message).not.toContain('wrong-secret')
      const open = await openQueue({ url: locked.url.replace('//', '//:right-secret@') })
      expect(await open.counts()).toMatchObject({ waiting: 0 })
      await open.close()
    } finally {
      await locked.stop()
    }
  })

  it('is used by the commands', async () => {
    const folder = await inputs(3)
    const queueFlags = ['--queue', place.url, '--queue-name', place.name]
    const controller = new AbortController()
    const port: number = await freePort()
    const workerFlags = ['--root', folder, '--jobs', '2', '--memory', '64MiB', '--metrics', String(port)]
    const worker = runCli(['worker', ...queueFlags, ...workerFlags, '--json'], { signal: controller.signal })
    const flags = ['--out-dir', join(folder, 'out'), '--layout', 'byxf', '--keep-going', ...queueFlags]
    const { code, stdout, stderr } = await runCli(['convert', pattern(folder), ...flags, '--json'])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('ERR_UNKNOWN_FORMAT') })
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { summary?: object })
    expect(lines.at(-1)!.summary).toMatchObject({ written: 3, failed: 1, byCode: { ERR_UNKNOWN_FORMAT: 1 } })
    const status = await runCli(['queue', 'status', ...queueFlags])
    expect(status).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('0 waiting, 0 active, 0 delayed'),
    })
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    for (const line of [
      'tilework_files_total{status="written"} 3',
      'tilework_failures_total{code="ERR_UNKNOWN_FORMAT"} 1',
      'tilework_queue_wait_seconds_count 4',
    ]) {
      expect(metrics.split('\n')).toContain(line)
    }
    controller.abort()
    const ended = await worker
    expect(ended.code).toBe(0)
    const summary = JSON.parse(ended.stdout.trim().split('\n').at(-1)!) as { summary: object }
    expect(summary.summary).toMatchObject({ written: 3, failed: 1, returned: 0 })
  })
})

describe('the commands of a queue', () => {
  it.each([
    ['worker without a root', ['worker', '--queue', 'redis://127.0.0.1:1']],
    ['a URL of another scheme', ['worker', '--queue', 'http://127.0.0.1:1', '--root', '.']],
    ['a URL with a query', ['queue', 'status', '--queue', 'redis://127.0.0.1:1?password=x']],
    [
      '--jobs of the submitter',
      ['convert', 'a', '--out-dir', 'b', '--queue', 'redis://127.0.0.1:1', '--jobs', '2'],
    ],
    [
      '--symlinks of the submitter',
      ['convert', 'a', '--out-dir', 'b', '--queue', 'redis://h', '--symlinks', 'follow'],
    ],
    ['--priority without a queue', ['convert', 'a', '--out-dir', 'b', '--priority', '2']],
    ['--queue without --out-dir', ['convert', 'a', 'b', '--queue', 'redis://127.0.0.1:1']],
    ['a rate that is none', ['worker', '--queue', 'redis://127.0.0.1:1', '--root', '.', '--rate', 'fast']],
    [
      'memory that is no number',
      ['worker', '--queue', 'redis://127.0.0.1:1', '--root', '.', '--memory', 'much'],
    ],
    ['0 jobs', ['worker', '--queue', 'redis://127.0.0.1:1', '--root', '.', '--jobs', '0']],
  ])('refuse %s', async (_, args) => {
    const { code, stderr } = await runCli(args)
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining('ERR_ARGUMENT') })
  })
})
