/** A short run of the fuzzers, and the cases that once were findings. `npm run fuzz` runs them longer. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { exercise } from '../../fuzz/exercise.js'
import { targets } from '../../fuzz/targets.js'
import * as library from '../../lib/index.js'
import * as onnx from '../../lib/onnx.js'
import { fuzzSeed } from './random_numbers.js'

const CASES = 60
const CORPUS = 'fuzz/corpus'
const all = await targets(library)

describe.each(Object.entries(all))('%s', (name, { format, input, edits, make }) => {
  const how = { format, input, ...(edits && { onnx }) }

  it(`survives ${CASES} cases`, { timeout: 60_000 }, async () => {
    const first = fuzzSeed(1)
    for (let seed = first; seed < first + CASES; seed++) {
      try {
        await exercise(library, how, make(seed))
      } catch (error) {
        expect.fail(`npm run fuzz -- --once --target ${name} --seed ${seed}: ${String(error)}`)
      }
    }
  })

  it('makes the same bytes of a seed each time', () => {
    expect(Buffer.compare(make(7), make(7))).toBe(0)
  })

  const kept = readdirSync(CORPUS).filter((file) => file.startsWith(`${name}-`))
  it.each(kept)('survives %s', async (file) => {
    await exercise(library, { ...how, allEdits: true }, readFileSync(`${CORPUS}/${file}`))
  })
})
