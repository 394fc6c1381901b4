/**
 * Quantized blocks of GGUF beside gguf-py, one thread, in CPU seconds, and the opening of a large model. Rounds are interleaved:
 * machines are shared.
 */
import { execFileSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  BLOCK_DTYPES,
  dequantize,
  open,
  QUANTIZED_BLOCK_DTYPES,
  quantize,
  setThreads,
  tensor,
} from '../dist/index.js'
import { makeWorkFolder } from '../scripts/work_folder.mjs'
import { pythonIn } from './peers.mjs'
import { cpuSeconds, report } from './rounds.mjs'

const SCRIPT = fileURLToPath(new URL('gguf_peer.py', import.meta.url))
const OPENER = fileURLToPath(new URL('gguf_open_one.mjs', import.meta.url))
const SHAPE = [1024, 4096]
const ELEMENTS = SHAPE[0] * SHAPE[1]
/** CPU time of the calls of a candidate in a round. */
const REPEAT_SECONDS = 0.05
/** Million elements a second that are enough, and the multiple of gguf-py's that is where that is slow. */
const ENOUGH = 2000
const MULTIPLE = 8

export function addGguf(program) {
  program
    .command('gguf')
    .description('blocks of GGUF to numbers and back beside gguf-py; opening a model of 10 GB')
    .option('--rounds <n>', 'rounds', Number, 10)
    .option('--types <list>', 'block types', (text) => text.split(','), Object.keys(BLOCK_DTYPES))
    .option('--python <command>', 'a Python with gguf', 'python3')
    .option('--json', 'print JSON')
    .action(run)
}

async function run({ rounds, types, python, json }) {
  setThreads(1)
  const folder = makeWorkFolder('gguf')
  const peer = pythonIn(python, SCRIPT, 'gguf-py')
  const cases = []
  for (const type of types) {
    const path = join(folder, `${type}.gguf`)
    if (await peer.ask({ write: path, type })) cases.push(await prepared(type, path, folder))
    else console.error(`${type} is skipped: gguf-py does not know it.`)
  }
  for (let round = 0; round < rounds; round++) {
    for (const each of cases) await measure(each, peer)
  }
  if (cases.length > 0) report(cases.map(rowOf), { json })
  const model = join(folder, 'model.gguf')
  if (await peer.ask({ model })) reportOpening(model, rounds)
  peer.end()
}

/** What is timed of the tensor in a file. */
async function prepared(type, path, folder) {
  const numbers = Float32Array.from({ length: ELEMENTS }, (_, at) => Math.sin(at * at))
  const numbersPath = join(folder, 'numbers')
  writeFileSync(numbersPath, numbers)
  const canQuantize = QUANTIZED_BLOCK_DTYPES.includes(type)
  const dense = tensor(numbers, { shape: SHAPE })
  const weight = (await open(path)).blocks('weight')
  const out = new Float32Array(ELEMENTS)
  const candidates = {
    ours: () => dequantize(weight).toTypedArray({ out }),
    copy: () => out.set(numbers),
    ...(canQuantize && { oursBack: () => quantize(dense, type).bytes() }),
  }
  const asked = { read: path, type, numbers: canQuantize ? numbersPath : null, seconds: REPEAT_SECONDS }
  return { type, candidates, asked, best: {} }
}

async function measure({ candidates, asked, best }, peer) {
  const keep = (name, seconds) => {
    best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, seconds)
  }
  for (const [name, run] of Object.entries(candidates)) keep(name, await cpuSeconds(run, REPEAT_SECONDS))
  for (const [name, seconds] of Object.entries(await peer.ask(asked))) keep(name, seconds)
}

function rowOf({ type, best }) {
  const speed = (seconds) => (seconds === undefined ? undefined : Math.round(ELEMENTS / seconds / 1e6))
  const ours = speed(best.ours)
  const theirs = speed(best.dequantize)
  const least = theirs && Math.min(ENOUGH, MULTIPLE * theirs)
  return {
    type,
    'M/s': ours,
    'gguf-py': theirs,
    least,
    reached: least && (ours >= least ? 'yes' : 'NO'),
    'copies of the output': Number((best.copy / best.ours).toPrecision(2)),
    'quantize M/s': speed(best.oursBack),
    'gguf-py quantizes': speed(best.quantize),
  }
}

/** Milliseconds and memory of opening a model, in processes of their own beside processes that open nothing. */
function reportOpening(path, rounds) {
  const best = { ms: Number.POSITIVE_INFINITY, mib: Number.POSITIVE_INFINITY }
  for (let round = 0; round < rounds; round++) {
    const [empty, opened] = [[], [path]].map((args) =>
      JSON.parse(execFileSync(process.execPath, [OPENER, ...args], { encoding: 'utf8' })),
    )
    best.ms = Math.min(best.ms, opened.ms - empty.ms)
    best.mib = Math.min(best.mib, opened.peakMib - empty.peakMib)
  }
  console.log(
    `open of ${(statSync(path).size / 1e9).toFixed(1)} GB with 500 tensors and 150,000 tokens: ${best.ms.toFixed(0)} ms, ${best.mib.toFixed(1)} MiB`,
  )
}
