/**
 * Compares models as ONNX text with onnx.printer: `node test/programs/onnx_text.mjs [MODEL…]`. Requires `dist` and Python 3 with onnx;
 * without it the program prints the reason and exits with 0.
 * Each text must be that of the reference, byte for byte. The models are the node tests of onnx, built networks, one of random
 * numbers, and the files or folders of MODEL.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from '../../dist/index.js'
import { printModel } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_text.py', import.meta.url))

async function run() {
  const folder = makeWorkFolder('onnx-text')
  runPython([SCRIPT, folder, ...process.argv.slice(2)])
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'))
  let same = 0
  for (const [number, { name, text }] of expected.entries()) {
    const file = await open(join(folder, `${number}.onnx`))
    const printed = await printModel(file.onnx)
    file.close()
    if (printed === text) same += 1
    else console.log(`${name}: ${firstDifference(printed, text)}`)
  }
  const different = expected.length - same
  console.log(`texts of ${expected.length} ONNX models: ${same} the same, ${different} different`)
  if (different > 0) process.exitCode = 1
}

/** Where the texts differ first, as tilework and as the reference print it. */
function firstDifference(one, other) {
  let at = 0
  while (one[at] === other[at]) at++
  return JSON.stringify([one, other].map((text) => text.slice(Math.max(0, at - 40), at + 40)))
}

const missing = missingPython(
  'import onnx.printer; assert tuple(map(int, onnx.__version__.split(".")[:2])) >= (1, 23)',
)
if (missing) console.log(`ONNX texts: skipped, ${missing}`)
else await run()
