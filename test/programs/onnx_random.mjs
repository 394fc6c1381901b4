/**
 * Optimizes random models and runs them before and after in onnxruntime:
 * `node test/programs/onnx_random.mjs --count N [--seed N] [--first N] [--fuse]`. Requires the addon, and Python 3 with onnx and onnxruntime;
 * without them the program prints the reason and exits with 0.
 *
 * All outputs have to be the same in every bit, with optimizations and prepacking of onnxruntime off, for inputs of three seeds, two of them
 * with special numbers. A second call must find nothing. With --fuse the outputs have to be close. A model that onnxruntime refuses is left
 * out; one that it refuses only after `optimize` is a fault. `--first N --count 1` repeats one case and prints it.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { open, save } from '../../dist/index.js'
import { optimize, printModel } from '../../dist/onnx.js'
import { caseSeed } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'
import { randomModel } from './random_models/model.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_random.py', import.meta.url))
const BATCH = 500
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    first: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    fuse: { type: 'boolean', default: false },
  },
})
const [count, first, seed] = [values.count, values.first, values.seed].map(Number)

const missing = missingPython('import onnx, onnxruntime')
if (missing !== undefined) console.log(`onnx_random: skipped, ${missing}`)
else await run()

async function run() {
  const folder = makeWorkFolder('onnx-random')
  const totals = { models: 0, refused: 0, nodes: 0, left: 0, faults: 0 }
  for (let at = first; at < first + count; at += BATCH) {
    const batch = join(folder, `${at}`)
    mkdirSync(batch)
    const cases = []
    for (let number = at; number < Math.min(at + BATCH, first + count); number++)
      cases.push(await writeCase(batch, number))
    writeFileSync(join(batch, 'cases.json'), JSON.stringify(cases))
    const { refused, faults } = JSON.parse(runPython([SCRIPT, batch, values.fuse ? 'fuse' : 'exact']))
    for (const fault of faults) console.log(`seed ${seed}, case ${fault.number}: ${fault.text}`)
    totals.models += cases.length
    totals.refused += refused
    totals.faults += faults.length
    for (const { nodes, left } of cases) {
      totals.nodes += nodes
      totals.left += left
    }
    rmSync(batch, { recursive: true })
    console.log(`${at + cases.length}: ${JSON.stringify(totals)}`)
  }
  if (totals.faults > 0) process.exitCode = 1
  else console.log(`onnx_random: ${totals.models - totals.refused} models equal (seed ${seed})`)
}

/** Writes the model and what `optimize` makes of it. */
async function writeCase(folder, number) {
  const { model, inputs } = randomModel(caseSeed(seed, number))
  const [original, result] = [join(folder, `${number}.onnx`), join(folder, `${number}.simple.onnx`)]
  await save(original, model)
  if (count === 1) console.log(await printModel(model))
  const file = await open(original)
  const nodes = file.onnx.graph.nodes.length
  try {
    await optimize(file.onnx, { fuse: values.fuse })
    const left = file.onnx.graph.nodes.length
    await save(result, file.onnx)
    if (count === 1) console.log(await printModel(file.onnx))
    const again = (await optimize(file.onnx, { fuse: values.fuse })).filter(({ changes }) => changes > 0)
    const fault = again.length > 0 ? `a second call changes it: ${again.map(({ pass }) => pass)}` : undefined
    return { number, inputs, nodes, left, fault }
  } catch (error) {
    return { number, inputs, nodes, left: nodes, fault: `${error.code ?? error.name}: ${error.message}` }
  } finally {
    file.close()
  }
}
