/** Opens a GGUF file and counts its tensors and tokens: `node bench/gguf_open_one.mjs [PATH]`; without a file only loads tilework. */
import { open } from '../dist/index.js'
import { peakBytes } from '../scripts/peak_memory.mjs'

const [path] = process.argv.slice(2)
const started = process.hrtime.bigint()
let counted = 0
if (path !== undefined) {
  const file = await open(path)
  for (const { shape } of file.tensors) counted += shape.length
  counted += file.gguf.metadata.size
  file.close()
}
const ms = Number(process.hrtime.bigint() - started) / 1e6
console.log(JSON.stringify({ ms, peakMib: peakBytes() / 1024 ** 2, counted }))
