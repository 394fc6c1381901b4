/**
 * Compares every reorder kernel with the reference for every ordered pair of layouts: `npm run test:exhaustive`.
 * exhaustive_cases.mjs generates the cases, and test/native/exhaustive.cc checks them in one process per core.
 *
 *   --share 0.02   run this fraction of the cases, chosen by the seed
 *   --seed 7       generate other shapes, paddings and ranges
 *   --case 4711    run one case
 *   --arm64        run under qemu; skipped where it is missing
 *   --sanitize     run under the address and undefined-behaviour sanitizers
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, jobs, seconds } from '../../scripts/toolchain.mjs'
import { EMULATOR, skipWithoutEmulator } from './emulator.mjs'
import { caseCount, caseOf, isInShare, layoutPairs } from './exhaustive_cases.mjs'
import { buildNativeTests } from './native_tests.mjs'

const { values } = parseArgs({
  options: {
    share: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    case: { type: 'string' },
    arm64: { type: 'boolean', default: false },
    sanitize: { type: 'boolean', default: false },
  },
})
const share = numberOption('share', 0, 1)
const seed = numberOption('seed', 0, 2 ** 32)
if (values.arm64) skipWithoutEmulator()

const kind = values.arm64 ? 'arm64' : values.sanitize ? 'sanitize' : 'plain'
const folder = await buildNativeTests(kind, { targets: ['exhaustive'] })
const started = performance.now()
const pairs = layoutPairs()
const tally = { pairs: new Set(), bits: new Map(), shapeless: 0 }
const shards = Array.from({ length: values.case === undefined ? jobs() : 1 }, startShard)
await feed()
const kernels = await finish()
report()

function numberOption(name, min, max) {
  const number = Number(values[name])
  if (number >= min && number <= max) return number
  return fail(`--${name} is "${values[name]}"; it must be a number from ${min} to ${max}.`)
}

function startShard() {
  const program = join(folder, 'test', 'native', 'exhaustive')
  const [command, ...args] = values.arm64 ? [...EMULATOR, program] : [program]
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  // The exit code of a shard that ends early, after too many failures, reports it.
  child.stdin.on('error', () => undefined)
  const shard = { child, output: '', ended: once(child, 'close') }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shard.output += text
  })
  return shard
}

/** Distributes the cases over the shards, with backpressure. */
async function feed() {
  let next = 0
  for (const number of numbers()) {
    const made = caseOf(pairs, number, seed)
    if (made === undefined) {
      tally.shapeless++
      continue
    }
    if (values.case !== undefined) console.log(`case ${number}: ${made.name}`)
    tally.pairs.add(made.name.slice(0, made.name.indexOf(',')))
    tally.bits.set(made.bits, (tally.bits.get(made.bits) ?? 0) + 1)
    const { child, ended } = shards[next++ % shards.length]
    if (child.exitCode !== null || child.signalCode !== null) break
    if (!child.stdin.write(`${made.line}\n`)) await Promise.race([drained(child.stdin), ended])
  }
  for (const { child } of shards) child.stdin.end()
}

/** Unlike `once`, ignores the error of a shard that has ended. */
function drained(stream) {
  return new Promise((resolve) => {
    stream.once('drain', resolve)
  })
}

function* numbers() {
  if (values.case !== undefined) return yield Number(values.case)
  const count = caseCount(pairs)
  for (let number = 0; number < count; number++) {
    if (share === 1 || isInShare(number, seed, share)) yield number
  }
}

/** Counts how often each kernel ran; exits where a shard failed. */
async function finish() {
  const ends = await Promise.all(shards.map(({ ended }) => ended))
  const bad = ends.find(([code]) => code !== 0)
  if (bad !== undefined) {
    fail(
      `exhaustive: failed (${bad[1] ?? `exit code ${bad[0]}`}); repeat one case with --seed ${seed} --case NUMBER.`,
    )
  }
  const runs = new Map()
  for (const line of shards.flatMap(({ output }) => output.trim().split('\n'))) {
    const [kernel, count] = line.split(' ')
    runs.set(kernel, (runs.get(kernel) ?? 0) + Number(count))
  }
  return runs
}

function report() {
  const cases = [...tally.bits.values()].reduce((a, b) => a + b, 0)
  const widths = [...tally.bits].sort(([a], [b]) => a - b).map(([bits, count]) => `${count} of ${bits} bit`)
  const idle = [...kernels].filter(([, runs]) => runs === 0).map(([kernel]) => kernel)
  console.log(
    `exhaustive: ${cases} cases passed (${widths.join(', ')}) over ${tally.pairs.size} of ${pairs.length} pairs, ` +
      `seed ${seed}, share ${share} (${seconds(started)})`,
  )
  if (tally.shapeless > 0) {
    console.log(
      `exhaustive: ${tally.shapeless} cases skipped: no shape fits both layouts in that element type`,
    )
  }
  if (values.case === undefined && idle.length > 0) console.log(`exhaustive: no case ran ${idle.join(', ')}`)
}
