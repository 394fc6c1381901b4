/**
 * Compares models as ONNX text with onnx.printer: `node test/programs/onnx_text.mjs [MODEL…]`. Requires `dist` and Python 3 with onnx;
 * without it the program prints the reason and exits with 0.
 * Each text must be that of the reference, byte for byte; texts of onnx.printer, and the text and JSON forms of protobuf, must be read as
 * the Python packages read them, and the latter must be written as models that they read as the same. The models are the node tests of onnx, built networks, one of random
 * numbers, and the files or folders of MODEL.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open, save } from '../../dist/index.js'
import { printModel } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_text.py', import.meta.url))
const READ_SCRIPT = fileURLToPath(new URL('interop/onnx_text_read.py', import.meta.url))

async function run() {
  const folder = makeWorkFolder('onnx-text')
  runPython([SCRIPT, folder, ...process.argv.slice(2)])
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'))
  let same = 0
  for (const [number, { name, text }] of expected.entries()) {
    const file = await open(join(folder, `${number}.onnx`))
    const printed = await printModel(file.onnx)
    await readTexts(folder, number, name)
    for (const kind of ['textproto', 'onnxjson']) await save(join(folder, `${number}.out.${kind}`), file)
    file.close()
    if (printed === text) same += 1
    else console.log(`${name}: ${firstDifference(printed, text)}`)
  }
  const different = expected.length - same
  console.log(`texts of ${expected.length} ONNX models: ${same} the same, ${different} different`)
  if (different > 0) process.exitCode = 1
  process.stdout.write(runPython([READ_SCRIPT, folder]))
}

/** Reads the three texts of a model and writes what they say as protobuf. */
async function readTexts(folder, number, name) {
  for (const kind of ['onnxtxt', 'textproto', 'onnxjson']) {
    try {
      const file = await open(join(folder, `${number}.${kind}`))
      await save(join(folder, `${number}.${kind}.onnx`), file)
      file.close()
    } catch (error) {
      // Texts with values that are left out are read by nobody.
      if (error.code !== 'ERR_NO_DATA') console.log(`${name}: ${kind}: ${error.code} ${error.message}`)
    }
  }
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
