/**
 * Converts many small files of an S3 server by workers of a queue, while everything fails: `npm run test:queue`. Workers are
 * killed (SIGKILL) and stopped (SIGTERM) at random moments, Redis is restarted, and the S3 server fails a share of the requests.
 *
 * Every good file must be converted, right by hash; each damaged one reported once with its code; and there must be no other
 * object. Then, without faults, the rates of one process with `--jobs` and of 1, 2 and 4 workers are measured.
 *
 * Needs `redis-server` (or `TILEWORK_REDIS_SERVER`) and the S3 gateway that `TILEWORK_VERSITYGW` names.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import {
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import { Command } from 'commander'
import { reorder, serialize, tensor } from '../../dist/index.js'
import { openQueue } from '../../dist/queue.js'
import { generator, seededBytes } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import {
  BUCKET,
  NO_REDIS,
  REDIS_PROGRAM,
  RedisServer,
  S3_PROGRAM,
  startFaultyProxy,
  startS3,
} from '../queue/servers.mjs'

const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const LAYOUT = 'byxf'
/** A few KiB per file. */
const CHANNELS = [3, 7, 19, 21]
const EDGE = 8
/** Seconds of a worker's lock: short, so that the files of killed ones come back during the run. */
const LOCK_SECONDS = 3
/** Requests to the S3 server at a time, where the program itself asks. */
const CONNECTIONS = 16
/** Damages, with the code that must be reported. */
const DAMAGES = [
  { code: 'ERR_TRUNCATED', apply: (bytes) => bytes.subarray(0, bytes.length - 100) },
  { code: 'ERR_UNKNOWN_FORMAT', apply: () => Buffer.from('no tensors here, only this sentence') },
]

const options = new Command('npm run test:queue --')
  .description(
    'Converts files by workers of a queue while workers, Redis and S3 fail, and checks every output.',
  )
  .option('--files <n>', 'number of files', Number, 20_000)
  .option('--damaged <n>', 'damaged files among them', Number, 200)
  .option('--kills <n>', 'workers killed by SIGKILL', Number, 40)
  .option('--stops <n>', 'workers stopped by SIGTERM', Number, 12)
  .option('--restarts <n>', 'restarts of Redis', Number, 2)
  .option('--failing <share>', 'share of the requests to S3 that fail', Number, 0.02)
  .option('--workers <n>', 'number of workers', Number, 4)
  .option('--jobs <n>', 'files of a worker at the same time', Number, 4)
  .option('--rate-files <n>', 'files of each measured rate; 0 measures none', Number, 2000)
  .option('--seed <n>', 'seed of the data and the moments', Number, 1)
  .parse()
  .opts()

const failures = []
async function main() {
  const random = generator(options.seed)
  const folder = makeWorkFolder('queue')
  const [redis, s3] = [await RedisServer.start(), await startS3()]
  const proxy = await startFaultyProxy(s3.port, options.failing, random)
  const context = { random, folder, redis, s3, proxy }
  try {
    const files = await makeFiles(context)
    await convertUnderFaults(files, context)
    if (options.rateFiles > 0) await measureRates(files, context)
  } finally {
    await proxy.stop()
    await s3.stop()
    await redis.stop()
  }
  for (const failure of failures.slice(0, 20)) console.log(`FAILED  ${failure}`)
  console.log(`queue: ${options.files} files, ${failures.length} failures (seed ${options.seed})`)
  process.exitCode = failures.length === 0 ? 0 : 1
}

/** Uploads the inputs, and computes what each must become. */
async function makeFiles({ s3, random }) {
  const damaged = new Set()
  while (damaged.size < Math.min(options.damaged, options.files))
    damaged.add(Math.floor(random() * options.files))
  const order = [...damaged]
  const indices = Array.from({ length: options.files }, (_, index) => index)
  return concurrently(indices, async (index) => {
    const name = `${String(index).padStart(6, '0')}.npy`
    const shape = [1, CHANNELS[index % CHANNELS.length], EDGE, EDGE]
    const length = shape.reduce((product, extent) => product * extent)
    const values = new Float32Array(seededBytes(4 * length, options.seed + index).buffer)
    const whole = tensor(values, { shape, name: 'x' })
    const damage = damaged.has(index) ? DAMAGES[order.indexOf(index) % DAMAGES.length] : undefined
    const bytes = Buffer.from(await serialize(whole, { format: 'npy' }))
    await s3.client.send(
      new PutObjectCommand({ Bucket: BUCKET, Key: `in/${name}`, Body: damage ? damage.apply(bytes) : bytes }),
    )
    const expected = damage ? undefined : hash(await serialize(reorder(whole, LAYOUT), { format: 'npy' }))
    return { name, url: `s3://${BUCKET}/in/${name}`, expected, code: damage?.code }
  })
}

async function convertUnderFaults(files, context) {
  const { random, folder, redis, s3, proxy } = context
  const out = `s3://${BUCKET}/out`
  const workers = new Workers(redis.url, s3.environment(proxy.port))
  for (let index = 0; index < options.workers; index++) workers.add()
  const schedule = new Schedule(files.length, random)
  schedule.add(options.kills, () => workers.kill(random))
  schedule.add(options.stops, () => workers.stop(random))
  let restarts = 0
  schedule.add(options.restarts, async () => {
    await redis.end(restarts++ % 2 === 0 ? 'SIGTERM' : 'SIGKILL')
    await new Promise((resolve) => setTimeout(resolve, 500))
    await redis.start()
  })
  const args = ['--out-dir', out, '--manifest', join(folder, 'manifest.jsonl'), '--queue', redis.url]
  const started = performance.now()
  const run = await convert(files, args, s3.environment(proxy.port), () => schedule.advance())
  const seconds = (performance.now() - started) / 1000
  await schedule.ended()
  checkLines(files, run)
  await checkObjects(files, 'out/', context)
  await checkQueue(redis.url)
  const { requests, failed } = proxy.counts
  console.log(
    `${files.length} files, ${options.damaged} damaged, by ${options.workers} workers in ${seconds.toFixed(1)} s; ` +
      `${workers.kills} killed, ${workers.stops} stopped, ${restarts} restarts of Redis, ` +
      `${failed} of ${requests} requests to S3 failed`,
  )
  if (files.length <= 1000) await checkSkipped(files, args, context)
  await workers.end()
}

/** A second run has nothing to do. */
async function checkSkipped(files, args, { s3 }) {
  const { lines } = await convert(files, args, s3.environment(), () => undefined)
  const skipped = lines.filter(({ status }) => status === 'skipped').length
  const good = files.filter(({ code }) => code === undefined).length
  if (skipped !== good) failures.push(`a second run skips ${skipped} of ${good} files`)
}

/** One process with `--jobs`, then 1, 2 and 4 workers with as many each, without faults. */
async function measureRates(all, { folder, redis, s3 }) {
  const files = all.filter(({ code }) => code === undefined).slice(0, options.rateFiles)
  const measure = async (name, more, before) => {
    const workers = new Workers(redis.url, s3.environment())
    for (let index = 0; index < before; index++) workers.add()
    if (before > 0) await workers.ready()
    const started = performance.now()
    const args = ['--out-dir', `s3://${BUCKET}/${name}`, '--manifest', join(folder, `${name}.jsonl`), ...more]
    const { lines } = await convert(files, args, s3.environment(), () => undefined)
    const ms = performance.now() - started
    await workers.end()
    const written = lines.filter(({ status }) => status === 'written').length
    if (written !== files.length) failures.push(`${name}: ${written} of ${files.length} files were written`)
    return ms
  }
  const local = await measure('local', ['--jobs', String(options.jobs)], 0)
  console.log(`one process, --jobs ${options.jobs}: ${rate(files, local)}`)
  for (const count of [1, 2, 4]) {
    const ms = await measure(`queue${count}`, ['--queue', redis.url], count)
    const overhead = ((ms - local) / files.length).toFixed(2)
    const note = count === 1 ? `; overhead ${overhead} ms a file` : ''
    console.log(
      `${count} ${count === 1 ? 'worker' : 'workers'}, --jobs ${options.jobs}: ${rate(files, ms)}${note}`,
    )
  }
}

function rate(files, ms) {
  return `${files.length} files in ${(ms / 1000).toFixed(1)} s, ${Math.round((files.length / ms) * 1000)} files/s`
}

/** Runs what `action` does at random shares of the files. */
class Schedule {
  #events = []
  #done = 0
  #running = []
  #files
  #random

  constructor(files, random) {
    this.#files = files
    this.#random = random
  }

  add(count, action) {
    for (let index = 0; index < count; index++) {
      const at = Math.floor(((index + 0.1 + this.#random() * 0.8) / count) * this.#files * 0.95)
      this.#events.push({ at, action })
    }
    this.#events.sort((one, other) => one.at - other.at)
  }

  /** One more file has ended. */
  advance() {
    this.#done++
    while (this.#events.length > 0 && this.#events[0].at <= this.#done) {
      const { action } = this.#events.shift()
      this.#running.push(Promise.resolve(action()))
    }
  }

  async ended() {
    await Promise.all(this.#running)
    if (this.#events.length > 0) failures.push(`${this.#events.length} faults did not happen`)
  }
}

/** Worker processes; each that ends is replaced. */
class Workers {
  kills = 0
  stops = 0
  #children = new Set()
  #url
  #environment

  constructor(url, environment) {
    this.#url = url
    this.#environment = environment
  }

  add() {
    const args = ['worker', '--queue', this.#url, '--root', `s3://${BUCKET}/`, '--lock', String(LOCK_SECONDS)]
    const child = spawn(process.execPath, [COMMAND, ...args, '--jobs', String(options.jobs)], {
      env: { ...process.env, ...this.#environment },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.text = ''
    child.ready = new Promise((resolve) => {
      child.stderr.on('data', (data) => {
        child.text += data
        if (child.text.includes('ready')) resolve()
      })
    })
    child.ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })))
    this.#children.add(child)
  }

  ready() {
    return Promise.all([...this.#children].map((child) => child.ready))
  }

  async kill(random) {
    const child = this.#take(random)
    child.kill('SIGKILL')
    this.kills++
    this.add()
  }

  /** A stopped worker ends by itself, with exit code 0, soon. */
  async stop(random) {
    const child = this.#take(random)
    await child.ready
    const started = performance.now()
    child.kill('SIGTERM')
    this.stops++
    this.add()
    const { code, signal } = await child.ended
    const seconds = (performance.now() - started) / 1000
    if (code !== 0) failures.push(`a stopped worker ended with ${code ?? signal}: ${child.text.slice(-400)}`)
    if (seconds > 25) failures.push(`a stopped worker needed ${seconds.toFixed(1)} s`)
  }

  #take(random) {
    const children = [...this.#children]
    const child = children[Math.floor(random() * children.length)]
    this.#children.delete(child)
    return child
  }

  async end() {
    for (const child of this.#children) child.kill('SIGTERM')
    await Promise.all([...this.#children].map((child) => child.ended))
  }
}

/** Runs `convert` over a list on stdin, and returns its lines of JSON and its exit code. */
async function convert(files, args, environment, onLine) {
  const all = [COMMAND, 'convert', '-', '--layout', LAYOUT, '--keep-going', '--json', ...args]
  const child = spawn(process.execPath, all, {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (data) => {
    errors = (errors + data).slice(-2000)
  })
  const ended = new Promise((resolve) => child.once('exit', (code) => resolve(code)))
  child.stdin.end(files.map(({ url }) => `${url}\n`).join(''))
  const lines = []
  for await (const line of createInterface({ input: child.stdout })) {
    const value = JSON.parse(line)
    lines.push(value)
    if (value.status) onLine()
  }
  return { lines, code: await ended, errors }
}

/** Each file has one line: written, or failed with the code of its damage. */
function checkLines(files, { lines, code, errors }) {
  const byInput = new Map()
  for (const line of lines.filter(({ input }) => input !== undefined)) {
    if (byInput.has(line.input)) failures.push(`${line.input} is reported twice`)
    byInput.set(line.input, line)
  }
  for (const { url, code: expected } of files) {
    const line = byInput.get(url)
    const found = line?.error?.code ?? line?.status
    if (found !== (expected ?? 'written')) {
      failures.push(
        `${url} is reported as ${found}, not ${expected ?? 'written'}: ${line?.error?.message ?? errors}`,
      )
    }
  }
  const exit = files.some(({ code: damage }) => damage !== undefined) ? 2 : 0
  if (code !== exit) failures.push(`the exit code is ${code}, not ${exit}: ${errors}`)
}

/** Every output by hash, none beside them, and no upload that was begun and not ended by a living worker. */
async function checkObjects(files, prefix, { s3 }) {
  const found = new Set(await keysBelow(s3.client, prefix))
  await concurrently(files, async ({ name, expected }) => {
    const Key = `${prefix}${name}`
    if (expected === undefined) {
      if (found.has(Key)) failures.push(`${Key} is there, and its input is damaged`)
      return
    }
    if (!found.delete(Key)) {
      failures.push(`${Key} is missing`)
      return
    }
    const { Body } = await s3.client.send(new GetObjectCommand({ Bucket: BUCKET, Key }))
    if (hash(await Body.transformToByteArray()) !== expected) failures.push(`${Key} has other bytes`)
  })
  for (const key of found) failures.push(`${key} is no output`)
  const { Uploads = [] } = await s3.client.send(new ListMultipartUploadsCommand({ Bucket: BUCKET }))
  if (Uploads.length > 0) failures.push(`${Uploads.length} uploads are not complete`)
}

async function keysBelow(client, Prefix) {
  const keys = []
  for (let ContinuationToken; ; ) {
    const request = { Bucket: BUCKET, Prefix, ...(ContinuationToken && { ContinuationToken }) }
    const { Contents = [], NextContinuationToken } = await client.send(new ListObjectsV2Command(request))
    keys.push(...Contents.map(({ Key }) => Key).filter((key) => !key.endsWith('/')))
    if (!NextContinuationToken) return keys
    ContinuationToken = NextContinuationToken
  }
}

/** Nothing is left in the queue but the failures. */
async function checkQueue(url) {
  const queue = await openQueue({ url })
  const { waiting, active, delayed, failed } = await queue.counts()
  await queue.close()
  if (waiting + active + delayed > 0)
    failures.push(`left: ${waiting} waiting, ${active} active, ${delayed} delayed`)
  if (failed !== options.damaged)
    failures.push(`${failed} jobs are in the failed set, not ${options.damaged}`)
}

async function concurrently(items, work) {
  const results = new Array(items.length)
  let next = 0
  const lane = async () => {
    while (next < items.length) {
      const index = next++
      results[index] = await work(items[index])
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, lane))
  return results
}

function hash(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}

if (REDIS_PROGRAM === undefined) console.log(`queue: skipped, ${NO_REDIS}`)
else if (S3_PROGRAM === undefined) console.log('queue: skipped, TILEWORK_VERSITYGW names no S3 gateway')
else await main()
