/**
 * `node chunks_child.mjs READER INPUT`: how far the peak memory grew while INPUT was read, a URL or `stream:BYTES`, a stream
 * of single bytes. READER is the folder of the built library, of which `open` reads, or `node`, whose own loop reads.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { peakBytes } from '../../../scripts/peak_memory.mjs'

const [, , reader, input] = process.argv

function singleBytes(count) {
  let sent = 0
  const pull = (controller) => {
    for (let part = 0; part < 10_000 && sent < count; part++, sent++) controller.enqueue(Uint8Array.of(120))
    if (sent === count) controller.close()
  }
  return new ReadableStream({ pull })
}

async function readByNode(source) {
  const stream = typeof source === 'string' ? (await fetch(source)).body : source
  let length = 0
  for await (const chunk of stream) length += chunk.byteLength
  return length
}

async function readByLibrary() {
  const { open } = await import(pathToFileURL(join(reader, 'index.js')).href)
  const codeOf = (source) => open(source).catch((error) => error.code)
  // Loads what the first call loads.
  await codeOf(new Blob(['x']))
  return codeOf
}

const read = reader === 'node' ? readByNode : await readByLibrary()
const before = peakBytes()
const streamed = /^stream:(\d+)$/.exec(input)
const result = await read(streamed ? singleBytes(Number(streamed[1])) : input)
console.log(JSON.stringify({ result, grown: peakBytes() - before }))
