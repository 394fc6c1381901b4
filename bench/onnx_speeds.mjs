/**
 * What was slow on real ONNX models, beside the Python tools: `npm run bench -- onnx-speeds --python PYTHON`. Each candidate runs in a
 * process of its own, in turn with the other one, and the least CPU time of the rounds counts.
 */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeWorkFolder } from '../scripts/work_folder.mjs'

const OURS = fileURLToPath(new URL('onnx_speeds_one.mjs', import.meta.url))
const PYTHON = fileURLToPath(new URL('onnx_speeds.py', import.meta.url))

/** By case: the model, the peer, and the most CPU time as a multiple of the peer's. */
const CASES = {
  inspect: { model: 'tree', peer: 'load', peerName: 'onnx.load', most: 2 },
  'strict check': { model: 'tree', peer: 'load', peerName: 'onnx.load', most: 2 },
  float16: { model: 'float16', peer: 'float16', peerName: 'onnxruntime.transformers.float16', most: 1 },
  print: { model: 'print', peer: 'print', peerName: 'onnx.printer', most: 3 },
}

export function addOnnxSpeeds(program) {
  program
    .command('onnx-speeds')
    .description('a tree ensemble of 194 MB, float16 of 3,600 nodes and printed values beside Python')
    .requiredOption('--python <program>', 'Python 3 with onnx and onnxruntime')
    .option('--rounds <n>', 'rounds', Number, 5)
    .option('--json', 'print JSON')
    .action(run)
}

function run({ python, rounds, json }) {
  const folder = makeWorkFolder('onnx-speeds')
  const paths = new Map()
  for (const { model } of Object.values(CASES)) {
    if (paths.has(model)) continue
    paths.set(model, join(folder, `${model}.onnx`))
    started(python, [PYTHON, 'make', model, paths.get(model)])
  }
  const rows = Object.entries(CASES).map(([name, { model, peer, peerName, most }]) => {
    const path = paths.get(model)
    const least = { ours: Number.POSITIVE_INFINITY, theirs: Number.POSITIVE_INFINITY }
    for (let round = 0; round < rounds; round++) {
      least.ours = Math.min(least.ours, secondsOf(process.execPath, [OURS, name, path]))
      least.theirs = Math.min(least.theirs, secondsOf(python, [PYTHON, 'run', peer, path]))
    }
    const ratio = least.ours / least.theirs
    return {
      case: name,
      MB: Math.round(statSync(path).size / 1e6),
      s: Number(least.ours.toPrecision(3)),
      peer: peerName,
      'peer s': Number(least.theirs.toPrecision(3)),
      ratio: Number(ratio.toPrecision(2)),
      most,
    }
  })
  if (json) console.log(JSON.stringify(rows))
  else console.table(rows)
  if (rows.some(({ ratio, most }) => ratio > most)) process.exitCode = 1
}

function secondsOf(program, args) {
  return JSON.parse(started(program, args)).seconds
}

function started(program, args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status !== 0) throw new Error(`${args.slice(0, 3).join(' ')}: ${stderr}`)
  return stdout
}
