/**
 * Compares values that tilework computes of constant nodes with those of onnxruntime, and with the outputs of the node tests of
 * onnx: `node test/programs/onnx_values.mjs [--count N] [--seed N] [--missing] [OPERATOR…]`. Requires the addon and Python 3 with onnx and
 * onnxruntime; without them the program prints the reason and exits with 0.
 *
 * OPERATOR: those of the random graphs. A value must be the same bit for bit, or unknown; all NaN are the same. `--missing` lists the operators of which a value was not
 * computed although all inputs of its node were known.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { importInternal } from '../../scripts/internals.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { differenceOf } from './interop/onnx_values.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_values.py', import.meta.url))
const { values: options, positionals: operators } = parseArgs({
  options: {
    count: { type: 'string', default: '3000' },
    seed: { type: 'string', default: '1' },
    missing: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})

async function run() {
  const { open } = await importInternal('pipeline/open')
  const { inferModel } = await importInternal('models/onnx/infer/infer')
  const { Evaluator } = await importInternal('models/onnx/evaluate/evaluate')
  const folder = makeWorkFolder('onnx-values')
  runPython([SCRIPT, folder, options.count, options.seed, ...operators])
  const totals = { same: 0, unknown: 0, different: 0 }
  const missing = new Map()
  for (const line of readFileSync(join(folder, 'graphs.jsonl'), 'utf8').split('\n')) {
    if (line === '') continue
    const { name, model, values } = JSON.parse(line)
    const file = await open(Buffer.from(model, 'base64'))
    const { graph } = file.onnx
    const evaluator = new Evaluator({ maxElements: 2 ** 20, maxWork: 2 ** 24 })
    const visit = (node, outputs) => {
      const made = evaluator.outputsOf(node)
      return outputs.map((known, at) => known && { ...known, value: made?.[at] ?? known.value })
    }
    const { known: all } = inferModel(file.onnx, { isOpen: () => true, visit })
    const known = all.get(graph)
    for (const [value, expected] of Object.entries(values)) {
      const node = graph.producerOf(value)
      if (!node) continue
      const tensor = known.get(value)?.value?.toTensor()
      // Outputs of node tests are those of numpy, of which the sign of 0 may differ.
      const difference = tensor && differenceOf(tensor, expected, !name.startsWith('random'))
      totals[difference ? 'different' : tensor ? 'same' : 'unknown'] += 1
      if (difference) console.log(`${name}: ${value} of ${node.opType}: ${difference}`)
      const isLost =
        !tensor && node.inputs.every((input) => input === '' || known.get(input)?.value?.toTensor())
      if (isLost) missing.set(node.opType, (missing.get(node.opType) ?? 0) + 1)
    }
    file.close()
  }
  if (options.missing) {
    const rows = [...missing].sort(([, one], [, other]) => other - one)
    for (const [operator, count] of rows) console.log(`${operator}: ${count}`)
  }
  console.log(
    `values: ${totals.same} same, ${totals.unknown} unknown, ${totals.different} different; seed ${options.seed}`,
  )
  if (totals.different > 0 || totals.same === 0) process.exitCode = 1
}

const missing = missingPython('import onnxruntime, onnx')
if (missing) console.log(`values of constant nodes: skipped, ${missing}`)
else await run()
