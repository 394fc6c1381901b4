/**
 * Compares reorders as large as users' are with an oracle: `npm run test:sizes`. sizes_cases.mjs draws the layouts and
 * shapes, and test/native/sizes.cc runs and checks them in one process per core.
 *
 *   --cases 3000     how many cases
 *   --seed 7         others
 *   --first 0        number of the first one
 *   --case 4711      one case
 *   --isa avx2,…     runs --cases cases for each of these instruction sets; default: the best one
 *   --arm64          run under qemu; skipped where it is missing
 *   --sanitize       run under the address and undefined-behaviour sanitizers
 *   --ways           count the ways that were taken and the comparisons with thresholds, and say what no case did;
 *                    by default with every instruction set
 *   --write FILE     write the cases to a file instead, for another program
 */
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fail, jobs, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { skipWithoutEmulator } from './emulator.mjs'
import { buildNativeTests } from './native_tests.mjs'
import { runShards } from './shards.mjs'
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

function seedOf(isa) {
  return seed + Math.max(isas.indexOf(isa), 0)
}

/** Lines of cases, but for those without a shape. Each instruction set has others. */
function* lines(isa) {
  const drawn = seedOf(isa)
  for (let number = first; number < first + count; number++) {
    const made = sizesCase(number, drawn, thresholds)
    if (made === undefined) continue
    if (values.case !== undefined) console.log(`case ${number}: ${made.name}`)
    yield made.line
  }
}

async function writeCases(file) {
  for (const line of lines()) if (!file.write(`${line}\n`)) await once(file, 'drain')
  file.end()
  await once(file, 'close')
}

async function run(program) {
  const scratch = mkdtempSync(join(tmpdir(), 'tilework-sizes-'))
  try {
    const ways = []
    for (const isa of isas) {
      const started = performance.now()
      const environments = Array.from({ length: count === 1 ? 1 : jobs() }, (_, at) => ({
        TILEWORK_WAYS_FILE: join(scratch, `ways-${isa}-${at}`),
        ...(isa !== undefined && { TILEWORK_MAX_ISA: isa }),
      }))
      const { counts, failure } = await runShards(program, environments, lines(isa), {
        emulated: values.arm64,
      })
      if (failure !== undefined)
        fail(`sizes: failed (${failure}); repeat one case with --seed ${seedOf(isa)} --case NUMBER.`)
      report(counts, isa, started)
      ways.push(...environments.map((each) => each.TILEWORK_WAYS_FILE))
    }
    if (values.ways) process.exitCode = reportWays(ways) ? 0 : 1
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function report(counts, isa, started) {
  const kernels = values.arm64 ? 'neon' : (isa ?? process.env.TILEWORK_MAX_ISA ?? 'the best one')
  console.log(
    `sizes: ${counts.get('cases')} cases passed (${counts.get('casts')} with casts, ${counts.get('files')} from files, ` +
      `${counts.get('refused')} refused), instruction set: ${kernels}, seed ${seedOf(isa)} ` +
      `(${seconds(started)})`,
  )
}
