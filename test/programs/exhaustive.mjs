/**
 * Every kernel against the reference over every ordered pair of layouts: `npm run test:exhaustive`. TypeScript makes
 * the cases (test/programs/exhaustive_cases.mjs), a C++ program checks them (test/native/exhaustive.cc), one process a core.
 *
 *   --share 0.02   a part of the cases, chosen by the seed
 *   --seed 7       other shapes, paddings and ranges
 *   --case 4711    one case alone
 *   --arm64        under emulation; skipped where that is missing
 *   --sanitize     under the address and undefined-behaviour sanitizers
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
const folder = buildNativeTests(kind, { targets: ['exhaustive'] })
const started = performance.now()
const pairs = layoutPairs()
const tally = { pairs: new Set(), bits: new Map(), shapeless: 0 }
const shards = Array.from({ length: values.case === undefined ? jobs() : 1 }, startShard)
await feed()
const kernels = await finish()
report()

function numberOption(name, least, most) {
  const number = Number(values[name])
  if (number >= least && number <= most) return number
  return fail(`--${name} is "${values[name]}", not a number from ${least} to ${most}.`)
}

function startShard() {
  const program = join(folder, 'test', 'native', 'exhaustive')
  const [command, ...args] = values.arm64 ? [...EMULATOR, program] : [program]
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  // A shard that ends early, at too many failures, is seen by its exit code.
  child.stdin.on('error', () => undefined)
  const shard = { child, output: '', ended: once(child, 'close') }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shard.output += text
  })
  return shard
}

/** Cases go to the shards in turn, as fast as those take them. */
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

/** `once` would also take the error of a shard that ended for its own. */
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

/** How often each kernel ran; ends this process where a shard failed. */
async function finish() {
  const ends = await Promise.all(shards.map(({ ended }) => ended))
  const bad = ends.find(([code]) => code !== 0)
  if (bad !== undefined) {
    fail(
      `exhaustive: failed (${bad[1] ?? `exit code ${bad[0]}`}); one case again: --seed ${seed} --case NUMBER.`,
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
    console.log(`exhaustive: ${tally.shapeless} cases have no shape that both layouts take in that type`)
  }
  if (values.case === undefined && idle.length > 0) console.log(`exhaustive: no case met ${idle.join(', ')}`)
}
