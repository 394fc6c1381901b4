/**
 * What edits of a large graph cost, each in a process of its own that opens the model first, beside the Python packages onnx and
 * onnx_ir and beside protobufjs.
 */
import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { writeTypedChain } from './onnx_models.mjs'

const OURS = fileURLToPath(new URL('onnx_scale_one.mjs', import.meta.url))
const PYTHON = fileURLToPath(new URL('onnx_scale.py', import.meta.url))

/** Cases and the peers that have them. Each includes opening the model. */
const CASES = {
  open: ['onnx', 'onnx_ir', 'protobufjs'],
  iterate: ['onnx', 'onnx_ir', 'protobufjs'],
  check: ['onnx'],
  'rename one': ['onnx', 'onnx_ir'],
  'rename all': ['onnx', 'onnx_ir'],
  insert: ['onnx', 'onnx_ir'],
  remove: ['onnx', 'onnx_ir'],
  sort: ['onnx_ir'],
  'remove unused': ['onnx_ir'],
  uses: ['onnx_ir'],
  'add types': ['onnx', 'onnx_ir'],
  optimize: [],
  'extract half, save': ['onnx'],
  save: ['onnx', 'onnx_ir', 'protobufjs'],
}

/** @returns rows of CPU seconds and peak memory; ratios are of the peer to tilework */
export function measureScale(folder, { nodes, rounds, python, protobufjs }) {
  const plain = join(folder, 'chain.onnx')
  const shuffled = join(folder, 'shuffled.onnx')
  writeTypedChain(plain, nodes)
  writeTypedChain(shuffled, nodes, { isShuffled: true })
  const missing = new Set()
  const rows = Object.entries(CASES).map(([name, peers]) => {
    const args = [name === 'sort' ? shuffled : plain, name, join(folder, 'saved.onnx')]
    const row = {
      case: `${nodes} nodes: ${name}`,
      ...measured(rounds, process.execPath, [OURS, 'tilework', ...args]),
    }
    for (const peer of peers) {
      if (missing.has(peer)) continue
      const [program, script] = peer === 'protobufjs' ? [process.execPath, OURS] : [python, PYTHON]
      const found = measured(rounds, program, [script, peer, ...args, protobufjs])
      if (found === undefined) missing.add(peer)
      else
        Object.assign(row, {
          [`${peer} s`]: found.s,
          [`${peer} MiB`]: found.MiB,
          [`times ${peer}`]: ratio(found.s, row.s),
        })
    }
    return row
  })
  for (const peer of missing) console.error(`skipped: no ${peer}`)
  return [{ case: `the file: ${(statSync(plain).size / 2 ** 20).toFixed(1)} MiB` }, ...rows]
}

const ratio = (theirs, ours) => Number((theirs / ours).toPrecision(2))

/** The least CPU time of the rounds and the least peak memory; undefined where a package is missing. */
function measured(rounds, program, args) {
  const results = []
  for (let round = 0; round < rounds; round++) {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
    if (/ModuleNotFoundError|ERR_MODULE_NOT_FOUND|has no protobufjs/.test(stderr)) return undefined
    if (status !== 0) throw new Error(`${args.slice(1, 4).join(' ')}: ${stderr}`)
    results.push(JSON.parse(stdout))
  }
  const least = (key) => Math.min(...results.map((each) => each[key]))
  return { s: Number(least('seconds').toPrecision(3)), MiB: Math.round(least('peakMib')) }
}
