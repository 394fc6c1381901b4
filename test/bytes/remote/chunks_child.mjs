/** `node chunks_child.mjs DIST INPUT`: prints the result of `open` for a URL, or for a stream of `stream:BYTES` single bytes, and how far the peak memory grew. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { peakBytes } from '../../../scripts/peak_memory.mjs'

const [, , dist, input] = process.argv
const { open } = await import(pathToFileURL(join(dist, 'index.js')).href)

function singleBytes(count) {
  let sent = 0
  const pull = (controller) => {
    for (let part = 0; part < 10_000 && sent < count; part++, sent++) controller.enqueue(Uint8Array.of(120))
    if (sent === count) controller.close()
  }
  return new ReadableStream({ pull })
}

// Loads what the first call loads.
await open(new Blob(['x'])).catch(() => undefined)
const before = peakBytes()
const streamed = /^stream:(\d+)$/.exec(input)
const code = await open(streamed ? singleBytes(Number(streamed[1])) : input).catch((error) => error.code)
console.log(JSON.stringify({ code, grown: peakBytes() - before }))
