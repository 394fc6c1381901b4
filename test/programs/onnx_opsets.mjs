/**
 * Converts models to later operator sets and compares the outputs in onnxruntime: `node test/programs/onnx_opsets.mjs [--target N] [MODEL…]`.
 * Requires `dist` and Python 3 with onnx and onnxruntime; without them the program prints the reason and exits with 0.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { open, save } from '../../dist/index.js'
import { convertOpset } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_opsets.py', import.meta.url))
const { values: options, positionals: paths } = parseArgs({
  options: { target: { type: 'string', multiple: true, default: ['21'] } },
  allowPositionals: true,
})

async function run() {
  const folder = makeWorkFolder('onnx-opsets')
  runPython([SCRIPT, 'make', folder, ...paths])
  const cases = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'))
  for (const text of options.target) {
    const target = join(folder, `to-${text}`)
    mkdirSync(target)
    const totals = { converted: 0, adapted: 0, refused: 0 }
    for (const [number, { name }] of cases.entries()) {
      const file = await open(join(folder, `${number}.onnx`))
      if (file.onnx.opsetImports.get('') < Number(text)) {
        try {
          const { adapted } = convertOpset(file.onnx, Number(text))
          await save(join(target, `${number}.onnx`), file)
          totals.converted += 1
          if (adapted.length > 0) totals.adapted += 1
        } catch (error) {
          if (error.code !== 'ERR_UNSUPPORTED') throw error
          totals.refused += 1
          console.log(`${name}: ${error.message}`)
        }
      }
      file.close()
    }
    const lines = runPython([SCRIPT, 'compare', folder, target]).split('\n')
    const results = lines.filter((line) => line !== '').map((line) => JSON.parse(line))
    const differences = results.filter(([, , hasNoKernel]) => !hasNoKernel)
    for (const [number, reason] of differences) console.log(`${cases[number].name} to ${text}: ${reason}`)
    const { converted, adapted, refused } = totals
    console.log(
      `models converted to operator set ${text}: ${converted}, ${adapted} of them with adapters, ${refused} refused, ${results.length - differences.length} without a kernel, ${differences.length} different`,
    )
    if (differences.length > 0) process.exitCode = 1
  }
}

const missing = missingPython(
  'import onnxruntime, onnx; assert tuple(map(int, onnx.__version__.split(".")[:2])) >= (1, 23)',
)
if (missing) console.log(`conversions of operator sets: skipped, ${missing}`)
else await run()
