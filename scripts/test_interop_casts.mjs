/**
 * Compares tilework's casts with those of numpy and ml_dtypes, bit for bit: `node scripts/test_interop_casts.mjs`. Needs
 * `dist` and the addon, and Python 3 with numpy and ml_dtypes; without them it says so and ends well.
 *
 * ml_dtypes takes all sources through float32 and does not saturate, so that is what is compared: mode `onnx` without
 * saturation. NaN equals any NaN. docs/casts.md says what else is different.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asTensor, cast } from '../dist/index.js'
import { makeWorkFolder } from './work_folder.mjs'

const SCRIPT = fileURLToPath(new URL('interop/casts.py', import.meta.url))
/** Differences that are printed of a pair. */
const SHOWN = 3

const missing = missingPython()
if (missing === undefined) await run()
else console.log(`interop of casts: skipped, ${missing}`)

function missingPython() {
  const { status, stderr, error } = spawnSync('python3', ['-c', 'import numpy, ml_dtypes'], {
    encoding: 'utf8',
  })
  if (error) return `python3 cannot be run (${error.code})`
  return status === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? 'python3 failed')
}

async function run() {
  const folder = makeWorkFolder('interop-casts')
  const { status, stderr } = spawnSync('python3', [SCRIPT, folder], { encoding: 'utf8' })
  assert.equal(status, 0, `Python failed:\n${stderr}`)
  const listed = JSON.parse(readFileSync(join(folder, 'casts.json'), 'utf8'))
  let numbers = 0
  let different = 0
  for (const pair of listed) {
    numbers += pair.count
    different += await differences(folder, pair)
  }
  console.log(
    `interop of casts: ${listed.length} pairs of types, ${numbers} numbers, ${different} differences`,
  )
  process.exitCode = different === 0 ? 0 : 1
}

async function differences(folder, { name, from, to, count }) {
  const source = asTensor(readFileSync(join(folder, `${name}.from`)), { dtype: from, shape: [count] })
  const expected = asTensor(readFileSync(join(folder, `${name}.to`)), { dtype: to, shape: [count] })
  const found = await cast(source, to, { mode: 'onnx', saturate: false }).toTypedArray()
  const wanted = await expected.toTypedArray()
  const wrong = []
  for (let i = 0; i < count; i++) if (!Object.is(found[i], wanted[i])) wrong.push(i)
  for (const i of wrong.slice(0, SHOWN)) {
    console.log(`${from} ${source.at(i)} to ${to}: ${found[i]}, and ${wanted[i]} in Python`)
  }
  return wrong.length
}
