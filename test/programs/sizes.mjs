/**
 * Compares reorders as large as users' are with an oracle: `npm run test:sizes`. sizes_cases.mjs draws the layouts and
 * shapes, and test/native/sizes.cc runs and checks them in one process per core.
 *
 *   --cases 3000     how many cases
 *   --seed 7         others
 *   --first 0        number of the first one
 *   --case 4711      one case
 *   --isa avx2       kernels of this instruction set at most
 *   --arm64          run under qemu; skipped where it is missing
 *   --sanitize       run under the address and undefined-behaviour sanitizers
 *   --ways           count the ways that were taken and the comparisons with thresholds, and say what no case did
 *   --write FILE     write the cases to a file instead, for another program
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, jobs, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { EMULATOR, skipWithoutEmulator } from './emulator.mjs'
import { buildNativeTests } from './native_tests.mjs'
import { readThresholds, sizesCase } from './sizes_cases.mjs'
import { reportWays } from './ways.mjs'

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '3000' },
    seed: { type: 'string', default: '1' },
    first: { type: 'string', default: '0' },
    case: { type: 'string' },
    isa: { type: 'string' },
    arm64: { type: 'boolean', default: false },
    sanitize: { type: 'boolean', default: false },
    ways: { type: 'boolean', default: false },
    write: { type: 'string' },
  },
})
const seed = numberOption('seed')
const first = values.case === undefined ? numberOption('first') : numberOption('case')
const count = values.case === undefined ? numberOption('cases') : 1
if (values.arm64) skipWithoutEmulator()

const thresholds = readThresholds(join(ROOT, 'native', 'policy', 'thresholds.def'))
const tally = { shapeless: 0 }
if (values.write !== undefined) {
  await writeCases(createWriteStream(values.write))
} else {
  const kind = values.arm64 ? 'arm64' : values.sanitize ? 'sanitize' : values.ways ? 'counting' : 'plain'
  const folder = await buildNativeTests(kind, { targets: ['sizes'] })
  await run(join(folder, 'test', 'native', 'sizes'))
}

function numberOption(name) {
  const number = Number(values[name])
  if (Number.isInteger(number) && number >= 0 && number <= 2 ** 32) return number
  return fail(`--${name} is "${values[name]}"; it must be a whole number.`)
}

/** Lines of cases; those without a shape are counted. */
function* lines() {
  for (let number = first; number < first + count; number++) {
    const made = sizesCase(number, seed, thresholds)
    if (made === undefined) {
      tally.shapeless++
      continue
    }
    if (values.case !== undefined) console.log(`case ${number}: ${made.name}`)
    yield `${made.line}\n`
  }
}

async function writeCases(file) {
  for (const line of lines()) if (!file.write(line)) await once(file, 'drain')
  file.end()
  await once(file, 'close')
}

async function run(program) {
  const started = performance.now()
  const scratch = mkdtempSync(join(tmpdir(), 'tilework-sizes-'))
  try {
    const shards = Array.from({ length: count === 1 ? 1 : jobs() }, (_, at) =>
      startShard(program, scratch, at),
    )
    await feed(shards)
    report(await finish(shards), started)
    if (values.ways) process.exitCode = reportWays(shards.map(({ ways }) => ways)) ? 0 : 1
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function startShard(program, scratch, at) {
  const [command, ...args] = values.arm64 ? [...EMULATOR, program] : [program]
  const ways = join(scratch, `ways-${at}`)
  const env = { ...process.env, TILEWORK_WAYS_FILE: ways }
  if (values.isa !== undefined) env.TILEWORK_MAX_ISA = values.isa
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env })
  // The exit code of a shard that ends early, after too many failures, reports it.
  child.stdin.on('error', () => undefined)
  const shard = { child, ways, output: '', ended: once(child, 'close') }
  child.stdout.setEncoding('utf8').on('data', (text) => {
    shard.output += text
  })
  return shard
}

/** Gives each case to the shard that reads first: cases differ by a thousand times in size. */
async function feed(shards) {
  const source = lines()
  const feedOne = async (shard) => {
    for (let next = source.next(); !next.done; next = source.next()) {
      if (shard.child.exitCode !== null || shard.child.signalCode !== null) return
      if (!shard.child.stdin.write(next.value)) {
        await Promise.race([new Promise((resolve) => shard.child.stdin.once('drain', resolve)), shard.ended])
      } else {
        // Another shard's turn.
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  }
  await Promise.all(shards.map(feedOne))
  for (const { child } of shards) child.stdin.end()
}

async function finish(shards) {
  const ends = await Promise.all(shards.map(({ ended }) => ended))
  const bad = ends.find(([code]) => code !== 0)
  if (bad !== undefined) {
    const how = bad[1] ?? `exit code ${bad[0]}`
    fail(`sizes: failed (${how}); repeat one case with --seed ${seed} --case NUMBER.`)
  }
  const counts = new Map()
  for (const line of shards.flatMap(({ output }) => output.trim().split('\n'))) {
    const [name, number] = line.split(' ')
    counts.set(name, (counts.get(name) ?? 0) + Number(number))
  }
  return counts
}

function report(counts, started) {
  const isa = values.arm64 ? 'neon' : (values.isa ?? process.env.TILEWORK_MAX_ISA ?? 'best')
  console.log(
    `sizes: ${counts.get('cases')} cases passed (${counts.get('casts')} with casts, ${counts.get('files')} from files, ` +
      `${tally.shapeless} without a shape, ${counts.get('refused')} refused), instruction set ${isa}, seed ${seed} ` +
      `(${seconds(started)})`,
  )
}
