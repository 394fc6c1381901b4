/**
 * tmfile to ONNX: one model of every operator, the real files, and the cases of the other direction there and back. Compared are
 * Tengine and onnxruntime; cases that came from ONNX are compared with the outputs of their original.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { open, save, tensor } from '../../../dist/index.js'
import * as tmfile from '../../../dist/tmfile.js'
import { onnxToTmfile, setOutputs, tmfileToOnnx } from '../../../dist/tmfile.js'
import { generator } from '../../../scripts/seeded.mjs'
import { modelOf, OPERATOR_CASES } from '../../bridges/onnx_tmfile/operator_cases.mjs'
import { arraysOf, compareOutputs, difference, runEngine, TOLERANCE } from './compare.mjs'
import { OnnxRuntime } from './onnxruntime.mjs'
import { makeInputs, openFilled, realModels } from './real_models.mjs'

export const name = 'to-onnx'

/** Codes of quantized outputs may differ by so much: both engines round, and a deep network adds up. */
const MAX_CODES = 16

/** Relative difference of float outputs behind quantized layers. */
const MAX_BEHIND_CODES = 0.1

export async function run({ fixtures, folder, runner, only, python, verbose }) {
  const runtime = new OnnxRuntime(python)
  const counts = { operators: 0, 'not run by the engine': 0, 'there and back': 0, 'real files': 0 }
  const failures = []
  const context = { runtime, runner, folder: join(folder, 'to-onnx') }
  const report = (kind, label, problem) => {
    if (verbose) console.log(`${label}: ${problem ?? 'equal'}`)
    if (problem === undefined) counts[kind] += 1
    else failures.push(`${label}: ${problem}`)
  }
  try {
    for (const [at, each] of OPERATOR_CASES.entries()) {
      if (only && each.operator !== only) continue
      if (each.noEngine) counts['not run by the engine'] += 1
      else report('operators', `${each.operator} ${at}`, await compareOperator(each, context))
    }
    for (const name of readdirSync(join(fixtures, 'cases'))) {
      if (only && name !== only) continue
      const outcome = await thereAndBack(join(fixtures, 'cases', name), context)
      if (outcome !== 'refused') report('there and back', name, outcome)
    }
    for (const path of realModels(join(fixtures, '../tmfile'), only)) {
      report('real files', basename(path), await compareReal(path, context))
    }
  } finally {
    runtime.close()
  }
  return { counts, failures }
}

/** Both engines on one model. @returns what differs */
async function runBoth(model, inputs, { runtime, runner, folder }) {
  const [tmfile, onnx] = [join(folder, 'model.tmfile'), join(folder, 'model.onnx')]
  await save(tmfile, model, { mode: 'upgrade' })
  await save(onnx, (await tmfileToOnnx(model)).model)
  const given = Object.entries(inputs).map(([input, path]) => `${input}=${path}`)
  const made = runEngine(runner, tmfile, given, join(folder, 'engine'))
  const wanted = await runtime.run(onnx, inputs, join(folder, 'onnxruntime'))
  return { made, wanted, problem: made.problem ?? wanted.problem }
}

async function compareOperator({ inputs: shapes, range: [low, high] = [-1, 1], ...given }, context) {
  const folder = freshFolder(context)
  const model = modelOf({ inputs: shapes, ...given }, { ...tmfile, tensor })
  const random = generator(3)
  const inputs = {}
  for (const [at, shape] of shapes.entries()) {
    const count = shape.reduce((product, extent) => product * extent, 1)
    const values = Array.from({ length: count }, () => low + (high - low) * random())
    inputs[`input${at}`] = join(folder, `in${at}.npy`)
    await save(inputs[`input${at}`], tensor(values, { dtype: 'float32', shape }))
  }
  const { made, wanted, problem } = await runBoth(model, inputs, { ...context, folder })
  return problem ?? compareOutputs(made.outputs, wanted.outputs)
}

/** An ONNX model that became a tmfile, as ONNX again. */
async function thereAndBack(caseFolder, context) {
  const folder = freshFolder(context)
  const file = await open(join(caseFolder, 'model.onnx'))
  try {
    const tmfile = await onnxToTmfile(file.onnx).catch((error) => {
      if (error.code === 'ERR_UNSUPPORTED') return undefined
      throw error
    })
    if (!tmfile) return 'refused'
    const { model } = await tmfileToOnnx(tmfile.model)
    await save(join(folder, 'model.onnx'), model)
    const paths = arraysOf(caseFolder, 'in')
    const inputs = Object.fromEntries(model.graph.inputs.map((input, at) => [input.name, paths[at]]))
    const { outputs, problem } = await context.runtime.run(join(folder, 'model.onnx'), inputs, folder)
    return (
      problem ?? compareOutputs(outputs, arraysOf(caseFolder, 'out').slice(0, file.onnx.graph.outputs.length))
    )
  } finally {
    file.close()
  }
}

/** Outputs that no node reads; the engine overwrites the others. */
async function compareReal(path, context) {
  const folder = freshFolder(context)
  const file = await openFilled(path)
  try {
    endBeforeBoxes(file.tmfile)
    const read = readOutputs(file.tmfile)
    const inputs = await makeInputs(file.tmfile, folder)
    const { made, wanted, problem } = await runBoth(file.tmfile, inputs, { ...context, folder })
    if (problem) return problem
    const isQuantized = file.tmfile.graph.inputs.some(({ outputs }) => /int8$/.test(outputs[0].dtype))
    const problems = []
    for (const [at, output] of made.outputs.entries()) {
      if (read[at]) continue
      const { problem: differs, error } = await difference(output, wanted.outputs[at])
      const limit = (await isCodes(output)) ? MAX_CODES : isQuantized ? MAX_BEHIND_CODES : TOLERANCE
      if (differs) problems.push(`output ${at}: ${differs}`)
      else if (!(error <= limit)) problems.push(`output ${at}: error ${error}`)
    }
    return problems.length === 0 ? undefined : problems.join('; ')
  } finally {
    file.close()
  }
}

/** The converter ends a detector there as well. */
function endBeforeBoxes(model) {
  const boxes = model.graph.outputs.find(({ operator }) => operator === 'DetectionOutput')
  if (boxes) setOutputs(model, boxes.inputs)
}

function readOutputs({ graph }) {
  const read = new Set(graph.nodes.flatMap(({ inputs }) => inputs))
  return graph.outputs.flatMap(({ outputs }) => outputs.map((tensor) => read.has(tensor)))
}

async function isCodes(path) {
  const file = await open(path)
  const { dtype } = file.tensors.at(0)
  file.close()
  return !dtype.startsWith('float')
}

let folders = 0

function freshFolder({ folder }) {
  folders += 1
  const path = join(folder, String(folders))
  if (!existsSync(path)) mkdirSync(path, { recursive: true })
  return path
}
