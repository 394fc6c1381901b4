/**
 * Compares tilework's casts with numpy and ml_dtypes, and quantize and dequantize with onnx's reference implementation, bit
 * for bit: `node test/programs/interop_casts.mjs`. Requires `dist`, the addon, and Python 3 with numpy, ml_dtypes and onnx;
 * without one of them it prints the reason and skips the comparisons that require it.
 *
 * ml_dtypes converts every source through float32 and does not saturate, so mode `onnx` without saturation is compared.
 * All NaN are equal. docs/casts.md lists the other differences.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asTensor, cast, dequantize, materialize, quantize } from '../../dist/index.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

/** Differences printed per pair of types. */
const SHOWN = 3

await compare('casts', 'numpy, ml_dtypes', differences)
await compare('quantize', 'numpy, ml_dtypes, onnx', quantizeDifferences)

/** Runs interop/NAME.py, and counts the differences of each case in its output NAME.json. */
async function compare(name, modules, differencesOf) {
  const reason = missingPython(`import ${modules}`)
  if (reason !== undefined) {
    console.log(`interop of ${name}: skipped, ${reason}`)
    return
  }
  const folder = makeWorkFolder(`interop-${name}`)
  const script = fileURLToPath(new URL(`interop/${name}.py`, import.meta.url))
  runPython([script, folder])
  const listed = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'))
  let numbers = 0
  let different = 0
  for (const each of listed) {
    numbers += each.count
    different += await differencesOf(folder, each)
  }
  console.log(`interop of ${name}: ${listed.length} cases, ${numbers} numbers, ${different} differences`)
  if (different > 0) process.exitCode = 1
}

async function differences(folder, { name, from, to, count }) {
  const source = asTensor(readFileSync(join(folder, `${name}.from`)), { dtype: from, shape: [count] })
  const expected = asTensor(readFileSync(join(folder, `${name}.to`)), { dtype: to, shape: [count] })
  const found = await cast(source, to, { mode: 'onnx', saturate: false }).toTypedArray()
  const wanted = await expected.toTypedArray()
  return report(found, wanted, (i) => `${from} ${source.at(i)} to ${to}`)
}

function report(found, wanted, textOf) {
  const wrong = []
  for (let i = 0; i < wanted.length; i++) if (!Object.is(found[i], wanted[i])) wrong.push(i)
  for (const i of wrong.slice(0, SHOWN)) {
    console.log(`${textOf(i)}: ${found[i]}, and ${wanted[i]} in Python`)
  }
  return wrong.length
}

async function quantizeDifferences(folder, { name, kind, from, to, shape, saturate, ...granularity }) {
  const bytes = (role) => readFileSync(join(folder, `${name}.${role}`))
  const numbers = (role) => new Float32Array(Uint8Array.from(bytes(role)).buffer)
  const source = await elements(bytes('x'), from, shape)
  const expected = await elements(bytes('y'), to, shape)
  const { axis, block_size: blockSize } = granularity
  const parameters = {
    scale: numbers('scale'),
    zeroPoint: numbers('zero'),
    ...(axis !== undefined && { axis }),
    ...(blockSize !== undefined && { blockSize }),
  }
  const result =
    kind === 'quantize'
      ? quantize(source, to, { ...parameters, saturate })
      : dequantize(source, { ...parameters, dtype: to })
  const values = await source.toTypedArray()
  return report(
    await result.toTypedArray(),
    await expected.toTypedArray(),
    (i) => `${kind} ${from} ${values[i]} to ${to} ${JSON.stringify(granularity)}`,
  )
}

/** A tensor from Python's output, which stores elements smaller than a byte one per byte. */
async function elements(bytes, dtype, shape) {
  const unpacked = { int4: 'int8', int2: 'int8', uint4: 'uint8', uint2: 'uint8', float4_e2m1fn: 'uint8' }[
    dtype
  ]
  if (!unpacked) return asTensor(bytes, { dtype, shape })
  const codes = asTensor(bytes, { dtype: unpacked, shape })
  if (dtype !== 'float4_e2m1fn') return materialize(cast(codes, dtype))
  return asTensor(await cast(codes, 'uint4').bytes(), { dtype, shape })
}
