/**
 * Opens a model and reads one tensor of it several times: `node bench/onnx_open_one.mjs PATH NAME TIMES`. Prints the seconds
 * of the first and of the best time, the anonymous memory after the first, and the last value of the tensor.
 */
import { readFileSync } from 'node:fs'
import { open } from '../dist/index.js'
import { native } from '../scripts/internals.mjs'

const [path, name, times] = process.argv.slice(2)
native()

async function touch() {
  const started = process.hrtime.bigint()
  const file = await open(path)
  const values = await file.dense(name).toTypedArray()
  const seconds = Number(process.hrtime.bigint() - started) / 1e9
  file.close()
  return { seconds, value: values.at(-1) }
}

const { seconds: first, value } = await touch()
const status = readFileSync('/proc/self/status', 'utf8')
const anonymousMib = Math.round(Number(/^RssAnon:\s+(\d+) kB/m.exec(status)[1]) / 1024)
let best = first
for (let time = 1; time < Number(times); time++) best = Math.min(best, (await touch()).seconds)
console.log(JSON.stringify({ first, best, anonymousMib, value }))
