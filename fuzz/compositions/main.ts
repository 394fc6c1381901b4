/**
 * `npm run fuzz -- --compositions [--cases N] [--seed N] [--large]`: compositions of tensor operations, compared with an own reference in
 * all bits. Cases have up to 16 KiB, with `--large` log-uniform sizes up to 16 MiB. A finding prints its seed and steps; exit code 1.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type * as Tilework from '../../lib/index.js'
import { Random } from '../random.js'
import { runCase } from './case.js'

const { values } = parseArgs({
  options: {
    compositions: { type: 'boolean' },
    cases: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    large: { type: 'boolean', default: false },
  },
})
const library = (await import(process.env.TILEWORK_ENTRY as string)) as typeof Tilework
const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
const cases = Number(values.cases)
const maxBytes = values.large ? 16 * 2 ** 20 : 16 * 2 ** 10
const started = performance.now()
let [findings, refused, steps] = [0, 0, 0]
for (let each = 0; each < cases && findings < 20; each++) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-compositions-'))
  try {
    const done = await runCase(new Random(seed + each), { library, folder, maxBytes })
    refused += done.refused
    steps += done.steps.length - 1
  } catch (error) {
    findings++
    console.log(`FINDING --seed ${seed + each}: ${error instanceof Error ? error.message : String(error)}`)
    if (error instanceof Error && error.cause) console.log(error.cause)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
const rate = Math.round(cases / ((performance.now() - started) / 1000))
console.log(
  `compositions: ${cases} cases from seed ${seed}, ${rate} a second; ${steps} steps, ${refused} refused, ${findings} findings`,
)
process.exit(findings > 0 ? 1 : 0)
