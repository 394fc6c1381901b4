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
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, jobs, seconds } from '../../scripts/toolchain.mjs'
import { skipWithoutEmulator } from './emulator.mjs'
import { caseCount, caseOf, isInShare, layoutPairs } from './exhaustive_cases.mjs'
import { buildNativeTests } from './native_tests.mjs'
import { runShards } from './shards.mjs'

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
const environments = Array.from({ length: values.case === undefined ? jobs() : 1 }, () => ({}))
const program = join(folder, 'test', 'native', 'exhaustive')
const { counts: kernels, failure } = await runShards(program, environments, lines(), {
  emulated: values.arm64,
})
if (failure !== undefined)
  fail(`exhaustive: failed (${failure}); repeat one case with --seed ${seed} --case NUMBER.`)
report()

function numberOption(name, min, max) {
  const number = Number(values[name])
  if (number >= min && number <= max) return number
  return fail(`--${name} is "${values[name]}"; it must be a number from ${min} to ${max}.`)
}

/** Lines of cases; those without a shape are counted. */
function* lines() {
  for (const number of numbers()) {
    const made = caseOf(pairs, number, seed)
    if (made === undefined) {
      tally.shapeless++
      continue
    }
    if (values.case !== undefined) console.log(`case ${number}: ${made.name}`)
    tally.pairs.add(made.name.slice(0, made.name.indexOf(',')))
    tally.bits.set(made.bits, (tally.bits.get(made.bits) ?? 0) + 1)
    yield made.line
  }
}

function* numbers() {
  if (values.case !== undefined) return yield Number(values.case)
  const count = caseCount(pairs)
  for (let number = 0; number < count; number++) {
    if (share === 1 || isInShare(number, seed, share)) yield number
  }
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
