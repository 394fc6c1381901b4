/**
 * Compares static quantization with onnxruntime's tool: `node test/programs/interop_quantize.mjs [--count N] [--seed N]`. Requires `dist`
 * and Python 3 with onnx, onnxruntime and flatbuffers; without them the program prints the reason and exits with 0.
 *
 * `interop/quantize_static.py` makes small models with Pad of every mode, and quantizes them by the calibration cache that it writes.
 * tilework reads that cache, and its three other forms, which must have the same ranges. Its models must have the nodes, constants
 * and outputs of the tool's.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { open, save } from '../../dist/index.js'
import { quantizeStatic, readRanges } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/quantize_static.py', import.meta.url))
/** Of `write_calibration_table`, beside the JSON of `calibration_cache_path`; the last two have one number for each value. */
const TABLES = ['calibration.json', 'calibration.flatbuffers', 'calibration.cache']

const { values: options } = parseArgs({
  options: { count: { type: 'string', default: '40' }, seed: { type: 'string', default: '1' } },
})

const missing = missingPython(
  'import flatbuffers; from onnxruntime.quantization.calibrate import load_tensors_data',
)
if (missing === undefined) await run()
else console.log(`interop with quantize_static: skipped, ${missing}`)

async function run() {
  const folder = makeWorkFolder('interop-quantize')
  runPython([SCRIPT, 'write', folder, options.count, options.seed])
  const listed = JSON.parse(readFileSync(join(folder, 'models.json'), 'utf8'))
  for (const { name, options: given } of listed) {
    const path = join(folder, name)
    const ranges = await readRanges(`${path}.json`)
    const one = await readRanges(`${path}.one.json`)
    const [json, ...others] = await Promise.all(
      TABLES.map((table) => readRanges(join(`${path}.tables`, table))),
    )
    assert.deepEqual(json, ranges, path)
    for (const each of others) assert.deepEqual(each, one, path)
    await quantized(path, 'own', { ...given, ranges })
    await quantized(path, 'own-one', { ...given, ranges: others[0] })
  }
  runPython([SCRIPT, 'compare', folder])
  console.log(
    `interop with quantize_static: ${listed.length} models and their caches in four forms, seed ${options.seed}: all equal`,
  )
}

async function quantized(path, kind, given) {
  const file = await open(`${path}.onnx`)
  // The tool raises the operator set for types of 16 bits.
  await quantizeStatic(file.onnx, { ...given, raiseOpset: given.activationType.endsWith('16') })
  await save(`${path}.${kind}.onnx`, file)
  file.close()
}
