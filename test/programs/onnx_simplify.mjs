/**
 * Compares optimized models with their originals in onnxruntime: `node test/programs/onnx_simplify.mjs [--fuse]`. Requires the addon, Python 3
 * with onnx and onnxruntime, and the generator of cases in ../shared/fixtures/onnx-simplify; without them the program prints the reason and
 * exits with 0.
 *
 * An optimized case has to be valid, to give the same bits with the optimizer and the packing of weights of onnxruntime off, to have no more
 * nodes than the smallest graph that is known, no more bytes of constants than allowed, and to stay as it is when it is optimized again.
 * With --fuse the cases of fusions have to be within their tolerance, and as small as they can be then.
 */
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { open, save } from '../../dist/index.js'
import { optimize } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const FIXTURES = fileURLToPath(new URL('../../../shared/fixtures/onnx-simplify', import.meta.url))
const SCRIPT = fileURLToPath(new URL('interop/onnx_simplify.py', import.meta.url))
const { fuse } = parseArgs({ options: { fuse: { type: 'boolean', default: false } } }).values

const missing = missingPython('import onnx, onnxruntime')
if (missing !== undefined) console.log(`onnx_simplify: skipped, ${missing}`)
else if (!existsSync(FIXTURES)) console.log('onnx_simplify: skipped, the cases of ../shared are missing')
else await run()

async function run() {
  const folder = makeWorkFolder('onnx-simplify')
  const cases = join(folder, 'cases')
  const optimized = join(folder, 'optimized')
  runPython([join(FIXTURES, 'gen.py'), cases])
  mkdirSync(optimized)
  for (const name of readdirSync(cases).filter((each) => each.endsWith('.onnx'))) {
    await optimizeInto(join(cases, name), join(optimized, name))
    const again = await optimizeInto(join(optimized, name), join(folder, 'again.onnx'))
    if (again.length > 0) throw new Error(`${name}: a second call changes it: ${again}`)
  }
  process.stdout.write(runPython([SCRIPT, FIXTURES, cases, optimized, fuse ? 'fuse' : 'exact']))
}

/** @returns the passes that changed something */
async function optimizeInto(from, to) {
  const file = await open(from)
  try {
    const changes = await optimize(file.onnx, { fuse })
    await save(to, file.onnx)
    return changes.filter((each) => each.changes > 0).map(({ pass }) => pass)
  } finally {
    file.close()
  }
}
