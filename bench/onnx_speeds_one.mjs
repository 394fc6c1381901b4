/** One case of `onnx_speeds.mjs`: `node bench/onnx_speeds_one.mjs CASE PATH`. Prints CPU seconds after the imports. */
import { check, open, serialize } from '../dist/index.js'
import { printModel, summarizeOnnx, toFloat16 } from '../dist/onnx.js'

const [name, path] = process.argv.slice(2)

/** What is measured, after what is not. */
async function prepared() {
  if (name === 'inspect') {
    return async () => {
      const file = await open(path)
      return summarizeOnnx(file.onnx)
    }
  }
  if (name === 'strict check') return () => check(path, { level: 'strict' })
  const file = await open(path)
  if (name === 'print') return () => printModel(file.onnx, { maxElements: Number.POSITIVE_INFINITY })
  return async () => {
    await toFloat16(file.onnx)
    return serialize(file.onnx)
  }
}

const run = await prepared()
const before = process.cpuUsage()
await run()
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({ seconds: (user + system) / 1e6 }))
