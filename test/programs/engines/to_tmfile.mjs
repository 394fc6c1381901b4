/** ONNX to tmfile: every case of the fixtures on the engine. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { check, open, save } from '../../../dist/index.js'
import { onnxToTmfile } from '../../../dist/tmfile.js'
import { arraysOf, compareOutputs, runEngine } from './compare.mjs'

export const name = 'to-tmfile'

export async function run({ fixtures, folder, runner, only, verbose }) {
  const { results } = JSON.parse(readFileSync(join(fixtures, 'results.json'), 'utf8'))
  const refusals = new Set(
    results.filter(({ target }) => target.converts === 'refuses').map((each) => each.case),
  )
  const counts = { equal: 0, refused: 0 }
  const failures = []
  for (const caseName of readdirSync(join(fixtures, 'cases'))) {
    if (only !== undefined && caseName !== only) continue
    const outcome = await convertAndRun(join(fixtures, 'cases', caseName), join(folder, caseName), runner)
    const isExpected = outcome.refused ? refusals.has(caseName) : outcome.problem === undefined
    if (verbose) console.log(`${caseName}: ${outcome.refused ?? outcome.problem ?? outcome.operators}`)
    if (isExpected) counts[outcome.refused ? 'refused' : 'equal'] += 1
    else failures.push(`${caseName}: ${outcome.refused ?? outcome.problem}`)
  }
  return { counts, failures }
}

/** @returns `refused` with the message, `problem` with what differs, or neither */
export async function convertAndRun(caseFolder, target, runner, options = {}) {
  const path = `${target}.tmfile`
  const file = await open(join(caseFolder, 'model.onnx'))
  let names
  let operators
  // Some folders hold the outputs of two runs; the first belong to the graph.
  const count = file.onnx.graph.outputs.length
  try {
    const { model } = await onnxToTmfile(file.onnx, options)
    names = model.graph.inputs.map(({ outputs }) => outputs[0].name)
    operators = [...new Set(model.graph.nodes.map(({ operator }) => operator))]
      .filter((each) => !/^(Const|InputOp)$/.test(each))
      .join(' ')
    await save(path, model)
  } catch (error) {
    if (error.code === 'ERR_UNSUPPORTED') return { refused: error.message }
    return { problem: error.stack }
  } finally {
    file.close()
  }
  const findings = await check(path)
  if (findings.length > 0) return { problem: `check: ${findings[0].message}` }
  const inputs = arraysOf(caseFolder, 'in').map((input, at) => `${names[at]}=${input}`)
  const { outputs, problem } = runEngine(runner, path, inputs, target)
  return {
    operators,
    problem: problem ?? (await compareOutputs(outputs, arraysOf(caseFolder, 'out').slice(0, count))),
  }
}
