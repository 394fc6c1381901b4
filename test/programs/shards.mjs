/**
 * Runs a C++ test that reads cases from its input, one a line, in several processes. At its end each prints lines of a name
 * and a count.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { EMULATOR } from './emulator.mjs'

/**
 * @param {string} program - path
 * @param {readonly NodeJS.ProcessEnv[]} environments - one for each process, besides this one's
 * @param {Iterator<string>} lines
 * @param {{ emulated?: boolean }} [options] - emulated: the program is for 64-bit ARM
 * @returns {Promise<{ counts: Map<string, number>, failure?: string }>} counts of all processes; how the first bad one ended
 */
export async function runShards(program, environments, lines, { emulated = false } = {}) {
  const [command, ...args] = emulated ? [...EMULATOR, program] : [program]
  const shards = environments.map((env) => startShard(command, args, env))
  await Promise.all(shards.map((shard) => feed(shard, lines)))
  for (const { child } of shards) child.stdin.end()
  const ends = await Promise.all(shards.map(({ ended }) => ended))
  const bad = ends.find(([code]) => code !== 0)
  const counts = countsOf(shards.map(({ output }) => output))
  return bad === undefined ? { counts } : { counts, failure: bad[1] ?? `exit code ${bad[0]}` }
}

function startShard(command, args, env) {
  const child = spawn(command, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  // The exit code of a shard that ends early, after too many failures, reports it.
  child.stdin.on('error', () => undefined)
  const shard = { child, output: '', ended: once(child, 'close') }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shard.output += text
  })
  return shard
}

/** All shards take lines from one source, each when it has read the ones before: cases differ by a thousand times in size. */
async function feed({ child, ended }, lines) {
  for (let next = lines.next(); !next.done; next = lines.next()) {
    if (child.exitCode !== null || child.signalCode !== null) return
    if (child.stdin.write(`${next.value}\n`)) await nextTurn()
    else await Promise.race([drained(child.stdin), ended])
  }
}

/** Lets another shard take a line. */
function nextTurn() {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}

/** Unlike `once`, ignores the error of a shard that has ended. */
function drained(stream) {
  return new Promise((resolve) => {
    stream.once('drain', resolve)
  })
}

function countsOf(outputs) {
  const counts = new Map()
  for (const line of outputs.flatMap((output) => output.trim().split('\n'))) {
    const [name, count] = line.split(' ')
    counts.set(name, (counts.get(name) ?? 0) + Number(count))
  }
  return counts
}
