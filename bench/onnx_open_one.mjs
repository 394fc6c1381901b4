/** Opens a model and touches one tensor of it: `node bench/onnx_open_one.mjs PATH NAME`. Prints time, memory and the last value. */
import { readFileSync } from 'node:fs'
import { open } from '../dist/index.js'
import { native } from '../dist/native.js'

const [path, name] = process.argv.slice(2)
native()
const started = process.hrtime.bigint()
const file = await open(path)
const values = await file.dense(name).toTypedArray()
const seconds = Number(process.hrtime.bigint() - started) / 1e9
const status = readFileSync('/proc/self/status', 'utf8')
const anonymousMib = Math.round(Number(/^RssAnon:\s+(\d+) kB/m.exec(status)[1]) / 1024)
console.log(JSON.stringify({ seconds, anonymousMib, value: values.at(-1) }))
