/**
 * Real tmfiles written again: canonical and upgraded files must give the outputs of the exact copy on the engine. A file whose older blocks the
 * engine reads wrongly would change by an upgrade; none of these does.
 */
import { mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { save } from '../../../dist/index.js'
import { arraysOf, difference, runEngine } from './compare.mjs'
import { makeInputs, openFilled, realModels } from './real_models.mjs'

export const name = 'rewrites'

const MODES = ['canonical', 'upgrade']

export async function run({ fixtures, folder, runner, only, verbose }) {
  const counts = { equal: 0 }
  const failures = []
  for (const path of realModels(join(fixtures, '../tmfile'), only)) {
    const file = await openFilled(path)
    const target = join(folder, 'rewrites', basename(path))
    mkdirSync(target, { recursive: true })
    const given = Object.entries(await makeInputs(file.tmfile, target)).map(
      ([input, array]) => `${input}=${array}`,
    )
    const outputs = {}
    for (const mode of ['exact', ...MODES]) {
      const model = join(target, `${mode}.tmfile`)
      await save(model, file.tmfile, { mode })
      const { problem } = runEngine(runner, model, given, join(target, mode))
      outputs[mode] = problem ?? arraysOf(join(target, mode), 'out')
    }
    file.close()
    for (const mode of MODES) {
      const problem = await compare(outputs.exact, outputs[mode])
      if (verbose) console.log(`${basename(path)} ${mode}: ${problem ?? 'equal'}`)
      if (problem === undefined) counts.equal += 1
      else failures.push(`${basename(path)} ${mode}: ${problem}`)
    }
  }
  return { counts, failures }
}

async function compare(before, after) {
  if (typeof before === 'string' || typeof after === 'string') {
    return String(before) === String(after) ? undefined : `${before}, then ${after}`
  }
  for (const [at, path] of before.entries()) {
    const { problem, error } = await difference(after[at], path, { exact: true })
    if (problem || error > 0) return `output ${at}: ${problem ?? error}`
  }
  return undefined
}
