/**
 * Compares reorders as large as users' are with an oracle: `npm run test:sizes`. sizes_cases.mjs draws the layouts and
 * shapes, and test/native/sizes.cc runs and checks them in one process per core.
 *
 *   --cases 3000     how many cases
 *   --seed 7         others
 *   --first 0        number of the first one
 *   --case 4711      one case
 *   --isa avx2,…     so many cases with the kernels of each of these instruction sets; by default of the best one
 *   --arm64          run under qemu; skipped where it is missing
 *   --sanitize       run under the address and undefined-behaviour sanitizers
 *   --ways           count the ways that were taken and the comparisons with thresholds, and say what no case did;
 *                    by default with every instruction set
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
const isas = values.isa?.split(',') ?? (values.ways && !values.arm64 ? everyIsa() : [undefined])
if (values.write !== undefined) {
  await writeCases(createWriteStream(values.write))
} else {
  const kind = values.arm64 ? 'arm64' : values.sanitize ? 'sanitize' : values.ways ? 'counting' : 'plain'
  const folder = await buildNativeTests(kind, { targets: ['sizes'] })
  await run(join(folder, 'test', 'native', 'sizes'))
}

/** A set that this processor lacks stands for the best one that it has. */
function everyIsa() {
  return process.arch === 'x64' ? ['avx512', 'avx2', 'portable'] : ['neon', 'portable']
}

function numberOption(name) {
  const number = Number(values[name])
  if (Number.isInteger(number) && number >= 0 && number <= 2 ** 32) return number
  return fail(`--${name} is "${values[name]}"; it must be a whole number.`)
}

/** Lines of cases, but for those without a shape. Each instruction set has others. */
function* lines(isa) {
  const drawn = seed + Math.max(isas.indexOf(isa), 0)
  for (let number = first; number < first + count; number++) {
    const made = sizesCase(number, drawn, thresholds)
    if (made === undefined) continue
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
  const scratch = mkdtempSync(join(tmpdir(), 'tilework-sizes-'))
  try {
    const ways = []
    for (const isa of isas) {
      const started = performance.now()
      const shards = Array.from({ length: count === 1 ? 1 : jobs() }, (_, at) =>
        startShard(program, isa, join(scratch, `ways-${isa}-${at}`)),
      )
      await feed(shards, isa)
      report(await finish(shards), isa, started)
      ways.push(...shards.map((shard) => shard.ways))
    }
    if (values.ways) process.exitCode = reportWays(ways) ? 0 : 1
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function startShard(program, isa, ways) {
  const [command, ...args] = values.arm64 ? [...EMULATOR, program] : [program]
  const env = { ...process.env, TILEWORK_WAYS_FILE: ways }
  if (isa !== undefined) env.TILEWORK_MAX_ISA = isa
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
async function feed(shards, isa) {
  const source = lines(isa)
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

function report(counts, isa, started) {
  const kernels = values.arm64 ? 'neon' : (isa ?? process.env.TILEWORK_MAX_ISA ?? 'the best one')
  console.log(
    `sizes: ${counts.get('cases')} cases passed (${counts.get('casts')} with casts, ${counts.get('files')} from files, ` +
      `${counts.get('refused')} refused), instruction set: ${kernels}, seed ${seed} ` +
      `(${seconds(started)})`,
  )
}
