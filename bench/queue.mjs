/**
 * What a queue costs its Redis server: memory of a job, jobs submitted a second, time to the first file, and of each file and
 * each idle worker the commands, bytes and processor time. The server is one of its own on loopback; files are in memory.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delayed } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { convertQueued, openQueue, submitFiles } from '../dist/queue.js'
import { registerScheme } from '../dist/remote.js'
import { peakBytes } from '../scripts/peak_memory.mjs'
import { NO_REDIS, REDIS_PROGRAM, RedisServer } from '../test/queue/servers.mjs'
import { report } from './rounds.mjs'

const WORKER = fileURLToPath(new URL('queue_worker.mjs', import.meta.url))
/** As long as keys of object stores usually are. */
const FOLDER = 'bench://models-of-a-company/nightly/2026-11-26'
/** Long enough for every timer of an idle worker. */
const IDLE_MS = 60_000

export function addQueue(program) {
  program
    .command('queue')
    .description('memory, submit rate and commands of a queue on a Redis server of its own')
    .option('--files <n>', 'jobs in the queue', Number, 1_000_000)
    .option('--converted <n>', 'files that are converted to measure what a file costs', Number, 5000)
    .option('--jobs <n>', 'files of the worker at the same time', Number, 4)
    .option('--redis <option...>', 'settings of the server, such as "hash-max-listpack-value 1024"')
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ files, converted, jobs, redis: settings = [], json }) {
  if (REDIS_PROGRAM === undefined) throw new Error(NO_REDIS)
  // The submitter only names the files.
  registerScheme('bench', { open: async () => Promise.reject(new Error('workers open it')) })
  const server = await RedisServer.start(settings.flatMap((text) => `--${text}`.split(' ')))
  const client = new Redis(server.url)
  try {
    const rows = [...(await fill(server.url, client, files)), ...(await firstOfFull(server.url))]
    await client.flushall()
    rows.push(
      ...(await idle(server.url, client, jobs)),
      ...(await convert(server.url, client, converted, jobs)),
    )
    report(rows, { json })
  } finally {
    client.disconnect()
    await server.stop()
  }
}

/** A list as the command reads it from stdin. */
function* listOf(count) {
  for (let at = 0; at < count; at++) yield new URL(`${FOLDER}/model-${String(at).padStart(7, '0')}.npy`)
}

/** The way of every file to Redis: list, outputs, jobs. */
const optionsOf = (url) => ({
  queue: { url },
  outDir: `${FOLDER}/blocked`,
  layout: 'byxf',
  dtype: 'float16',
  manifest: false,
})

/** Submits all files while one worker waits, which ends after its first. */
async function fill(url, client, count) {
  const worker = startWorker(url, 1)
  await worker.ready
  const [before, started] = [await infoOf(client), performance.now()]
  const first = worker.written.then(() => {
    worker.end()
    return performance.now() - started
  })
  await submitFiles(listOf(count), optionsOf(url))
  const ms = performance.now() - started
  const firstMs = await first
  await worker.ended
  const after = await infoOf(client)
  const queue = await openQueue({ url })
  const { waiting } = await queue.counts()
  await queue.close()
  const bytes = after.used_memory - before.used_memory
  return [
    row('jobs that wait', waiting, ''),
    row('memory of the server', bytes / 1024 ** 2, 'MiB'),
    row('memory of a job', bytes / waiting, 'bytes'),
    row('submitted', count / (ms / 1000), 'jobs/s'),
    row(
      'processor time of the server for a submitted job',
      (1000 * (cpuOf(after) - cpuOf(before))) / count,
      'ms',
    ),
    row('submit of the list until the first file is done', firstMs / 1000, 's'),
    row('memory of the submitting process, at most', peakBytes() / 1024 ** 2, 'MiB'),
  ]
}

/** A worker that starts where a million files wait. */
async function firstOfFull(url) {
  const started = performance.now()
  const worker = startWorker(url, 1)
  await worker.written
  const ms = performance.now() - started
  worker.end()
  await worker.ended
  return [row('start of a worker on the full queue until its first file is done', ms / 1000, 's')]
}

async function idle(url, client, jobs) {
  const none = await infoOf(client)
  const worker = startWorker(url, jobs)
  await worker.ready
  const before = await infoOf(client)
  await delayed(IDLE_MS)
  const after = await infoOf(client)
  worker.end()
  await worker.ended
  const seconds = IDLE_MS / 1000
  return [
    row('connections of a worker', after.connected_clients - none.connected_clients, ''),
    row('idle worker', perUnit(before, after, 'total_commands_processed', seconds), 'commands/s'),
    row('idle worker', perUnit(before, after, 'total_net_input_bytes', seconds), 'bytes/s in'),
    row('idle worker', perUnit(before, after, 'total_net_output_bytes', seconds), 'bytes/s out'),
    row('memory of the server for a worker', (after.used_memory - none.used_memory) / 1024, 'KiB'),
  ]
}

/** Files of no size by one worker, so that nearly all time is the queue's. */
async function convert(url, client, count, jobs) {
  const worker = startWorker(url, jobs)
  await worker.ready
  const [before, started] = [await infoOf(client), performance.now()]
  const { written } = await convertQueued(listOf(count), optionsOf(url))
  const seconds = (performance.now() - started) / 1000
  const after = await infoOf(client)
  worker.end()
  await worker.ended
  if (written !== count) throw new Error(`${written} of ${count} files were written`)
  return [
    row(`files of one worker with --jobs ${jobs}`, count / seconds, 'files/s'),
    row('a file', perUnit(before, after, 'total_commands_processed', count), 'commands'),
    row('a file', perUnit(before, after, 'total_net_input_bytes', count), 'bytes in'),
    row('a file', perUnit(before, after, 'total_net_output_bytes', count), 'bytes out'),
    row('processor time of the server for a file', (1000 * (cpuOf(after) - cpuOf(before))) / count, 'ms'),
  ]
}

function startWorker(url, jobs) {
  const child = fork(WORKER, [url, String(jobs)], { env: { ...process.env, NODE_NO_WARNINGS: '1' } })
  const told = (text) => {
    const promise = new Promise((resolve, reject) => {
      child.on('message', (message) => message === text && resolve())
      child.once('exit', () => reject(new Error(`the worker ended before it had ${text}`)))
    })
    // An idle worker never writes, and nobody waits for it.
    promise.catch(() => undefined)
    return promise
  }
  return {
    ready: told('ready'),
    written: told('written'),
    ended: once(child, 'exit'),
    end: () => child.disconnect(),
  }
}

/** The numbers of the command INFO. */
async function infoOf(client) {
  const lines = (await client.info()).split('\r\n').map((line) => line.split(':'))
  return Object.fromEntries(lines.map(([name, value]) => [name, Number(value)]))
}

const cpuOf = ({ used_cpu_sys: system, used_cpu_user: user }) => system + user

/** This program's own INFO is one command. */
function perUnit(before, after, name, units) {
  return (after[name] - before[name]) / units
}

function row(what, value, unit) {
  return { what, value: Number(value.toPrecision(4)), unit }
}
