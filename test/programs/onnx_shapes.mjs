/**
 * Compares the types that tilework infers for ONNX models with those of onnx.shape_inference:
 * `node test/programs/onnx_shapes.mjs [--unknown] [--mutations N] [--seed N] [MODEL…]`. Requires `dist` and Python 3 with onnx; without it the program
 * prints the reason and exits with 0.
 *
 * A type must be the same or unknown, never different. Where tilework knows more, the outputs that a test of onnx has decide.
 * `--unknown` lists the operators whose outputs the reference knows and tilework does not.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { open } from '../../dist/index.js'
import { inferTypes } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { compareTypes, typeRecord } from './interop/onnx_types.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_shapes.py', import.meta.url))
const { values: options, positionals: paths } = parseArgs({
  options: {
    unknown: { type: 'boolean', default: false },
    mutations: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
  },
  allowPositionals: true,
})

/** Where the reference is wrong, as the operator's specification and its implementations show: operator, value, why. */
const WRONG = [['Attention', 'qk_matmul_output', 'a past length and a symbolic one are added to 0']]

async function run() {
  const folder = makeWorkFolder('onnx-shapes')
  runPython([SCRIPT, folder, options.mutations, options.seed, ...paths])
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'))
  const totals = { same: 0, unknown: 0, more: 0, different: 0, wrong: 0 }
  const unknown = new Map()
  for (const [name, { inferred, actual }] of Object.entries(expected)) {
    const file = await open(join(folder, name))
    const types = inferTypes(file.onnx)
    const report = (value, wanted, how) => {
      const node = file.onnx.graph.producerOf(value)
      console.log(
        `${name}: ${value} of ${node?.opType ?? '?'}: ${JSON.stringify(typeRecord(types.get(value)))}, ${how} ${JSON.stringify(wanted)}`,
      )
    }
    for (const [value, wanted] of Object.entries(inferred)) {
      let outcome = compareTypes(typeRecord(types.get(value)), wanted)
      if (outcome === 'different' && isWrong(file.onnx.graph.producerOf(value), value)) outcome = 'wrong'
      totals[outcome] += 1
      if (outcome === 'different') report(value, wanted, 'the reference has')
      const key = file.onnx.graph.producerOf(value)?.opType
      if (outcome === 'unknown') unknown.set(key, [...(unknown.get(key) ?? []), name])
    }
    for (const [value, wanted] of Object.entries(actual)) {
      if (!['different', 'more'].includes(compareTypes(typeRecord(types.get(value)), wanted, true))) continue
      totals.different += 1
      report(value, wanted, 'the output is')
    }
    file.close()
  }
  if (options.unknown) {
    for (const [key, names] of [...unknown].sort((one, other) => other[1].length - one[1].length))
      console.log(`unknown: ${key}: ${names.length}, ${names.slice(0, 4).join(' ')}`)
  }
  const { same, unknown: open_, more, different, wrong } = totals
  const parts = [
    `${same} the same`,
    `${open_} unknown in part`,
    `${more} known in more parts`,
    `${wrong} where the reference is wrong`,
    `${different} different`,
  ]
  console.log(`types of ${Object.keys(expected).length} ONNX models: ${parts.join(', ')}`)
  if (different > 0) process.exitCode = 1
}

function isWrong(node, value) {
  return WRONG.some(([operator, name]) => node?.opType === operator && value === name)
}

const missing = missingPython('import onnx')
if (missing === undefined) await run()
else console.log(`types of ONNX models: skipped, ${missing}`)
