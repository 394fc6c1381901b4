/**
 * `npm run fuzz -- --minutes N [--cases N] [--target NAME] [--seed N] [--keep]`: makes cases from consecutive seeds and exercises the library with
 * them. Prints how many cases each target took and where they ended; a finding ends with exit code 1, and its bytes are kept in
 * `fuzz/findings/`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type * as Tilework from '../lib/index.js'
import type * as Onnx from '../lib/onnx.js'
import { exercise } from './exercise.js'
import { targets } from './targets.js'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    /** Cases per target, in place of the minutes. */
    cases: { type: 'string' },
    target: { type: 'string' },
    seed: { type: 'string' },
    /** Runs the case of `--seed` alone. */
    once: { type: 'boolean', default: false },
    /** Keeps the shortest case of each way to end in `fuzz/corpus/`. */
    keep: { type: 'boolean', default: false },
  },
})
const library = (await import(process.env.TILEWORK_ENTRY as string)) as typeof Tilework
const onnx = (await import(new URL('onnx.js', process.env.TILEWORK_ENTRY).href)) as typeof Onnx
const all = await targets(library)
const names = values.target === undefined ? Object.keys(all) : values.target.split(',')
const unknown = names.find((name) => !(name in all))
if (unknown !== undefined)
  throw new Error(`unknown target "${unknown}"; expected ${Object.keys(all).join(', ')}`)
/** A case that takes more CPU time is a finding: all of them are small. A busy machine makes no difference. */
const MAX_CASE_MS = 5000

const milliseconds = (60_000 * Number(values.minutes)) / names.length
const maxCases = values.once ? 1 : values.cases === undefined ? undefined : Number(values.cases)
const firstSeed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
let findings = 0
for (const name of names) {
  const target = all[name]!
  const how = { format: target.format, input: target.input, ...(target.edits && { onnx }) }
  const counts = new Map<string, number>()
  const shortest = new Map<string, Uint8Array>()
  const started = performance.now()
  let seed = firstSeed
  const isOver = (): boolean =>
    maxCases === undefined ? performance.now() - started >= milliseconds : seed - firstSeed >= maxCases
  for (; !isOver(); seed++) {
    const bytes = target.make(seed)
    const began = process.cpuUsage()
    try {
      const end = await exercise(library, how, bytes)
      counts.set(end, (counts.get(end) ?? 0) + 1)
      if (bytes.length < (shortest.get(end)?.length ?? Number.POSITIVE_INFINITY)) shortest.set(end, bytes)
      const { user, system } = process.cpuUsage(began)
      const taken = (user + system) / 1000
      if (taken > MAX_CASE_MS) throw new Error(`took ${Math.round(taken)} ms`)
    } catch (error) {
      findings++
      mkdirSync('fuzz/findings', { recursive: true })
      writeFileSync(`fuzz/findings/${name}-${seed}.bin`, bytes)
      console.log(`FINDING ${name} --seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`)
      if (findings >= 20) process.exit(1)
    }
  }
  if (values.keep) {
    for (const [end, bytes] of shortest) {
      const ending = end.replace('refused: ERR_', '').toLowerCase().replaceAll('_', '-')
      writeFileSync(`fuzz/corpus/${name}-${ending}.bin`, bytes)
    }
  }
  const cases = seed - firstSeed
  const rate = Math.round(cases / ((performance.now() - started) / 1000))
  const ends = [...counts].sort(([, one], [, other]) => other - one).map(([end, count]) => `${end} ${count}`)
  console.log(`${name}: ${cases} cases from seed ${firstSeed}, ${rate} a second; ${ends.join(', ')}`)
}
process.exit(findings > 0 ? 1 : 0)
