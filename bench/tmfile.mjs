/**
 * Opening a large tmfile and reading one of its weights, against reading the file: the time of both, and what the
 * resident memory of a new process grows by. The file is in memory of the system throughout.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open, save, threads } from '../dist/index.js'
import { TmfileModel } from '../dist/tmfile.js'
import { seededBytes } from '../scripts/seeded.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const MIB = 1024 * 1024
const CHANNELS = 512
const KERNEL = 3
const WEIGHT_BYTES = 4 * CHANNELS * CHANNELS * KERNEL * KERNEL
/** Most that a growth of memory may have beside the weight. */
const OTHER_MIB = 4
/** Processes whose growth is measured. */
const GROWTHS = 3

export function addTmfile(program) {
  program
    .command('tmfile')
    .description('opening a large model and reading one weight, against reading the file')
    .option('--mib <n>', 'size of the model', Number, 500)
    .option('--rounds <n>', 'rounds; the best counts', Number, 10)
    .option('--folder <path>', 'where the model is made', tmpdir())
    .option('--grow <path>', 'print what memory grows by when this model is opened')
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ mib, rounds, folder: parent, grow, json }) {
  if (grow !== undefined) {
    console.log(JSON.stringify(await growthOf(grow)))
    return
  }
  const folder = mkdtempSync(join(parent, 'tilework-bench-'))
  try {
    const path = join(folder, 'model.tmfile')
    await writeModel(path, Math.round((mib * MIB) / WEIGHT_BYTES))
    const best = await bestOfRounds(
      {
        'read the file, 1 MiB at a time': () => readInBlocks(path),
        'read the file into memory': () => {
          readFileSync(path)
        },
        'open it and read one weight': () => readOneWeight(path),
      },
      rounds,
    )
    const growths = Array.from({ length: GROWTHS }, () => growthApart(path))
    const seconds = best['open it and read one weight']
    const rows = Object.entries(best).map(([name, each]) => {
      return { case: name, milliseconds: round(1e3 * each), 'times as long': round(each / seconds) }
    })
    const memory = {
      'weight, MiB': round(WEIGHT_BYTES / MIB),
      'beside it, MiB': growths.map((growth) => round((growth - WEIGHT_BYTES) / MIB)),
      'at most, MiB': OTHER_MIB,
    }
    report(json ? [...rows, memory] : rows, { json })
    if (!json) {
      console.log(
        `A model of ${round(statSync(path).size / MIB)} MiB. Memory that a new process grows by:`,
        memory,
      )
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A chain of convolutions of one size, each with its weights and a bias. */
async function writeModel(path, count) {
  const numbers = seededBytes(WEIGHT_BYTES, 1)
  const source = { byteLength: numbers.byteLength, read: async (start, end) => numbers.subarray(start, end) }
  const graph = { nodes: [], tensors: [], buffers: [], inputs: [], outputs: [] }
  const tensor = (about) => {
    graph.tensors.push({
      dtype: 'float32',
      role: 'variable',
      layout: 0,
      quantization: null,
      buffer: null,
      ...about,
    })
    return graph.tensors.at(-1)
  }
  const node = (operator, operatorNumber, inputs, output, params = {}) => {
    const { name } = output
    const shared = { operatorVersion: 1, opaqueParams: null, attributes: [], dynamicShape: false }
    graph.nodes.push({ ...shared, name, operator, operatorNumber, params, inputs, outputs: [output] })
  }
  const constant = (name, shape) => {
    const byteLength = 4 * shape.reduce((product, extent) => product * extent)
    const buffer = { byteLength, data: { source, start: 0 } }
    graph.buffers.push(buffer)
    const weight = tensor({ name, shape, role: 'constant', buffer })
    node('Const', 4, [], weight)
    return weight
  }
  const shape = [1, CHANNELS, 14, 14]
  let last = tensor({ name: 'data', shape, role: 'input' })
  node('InputOp', 12, [], last)
  const sides = {
    pad_h0: 1,
    pad_w0: 1,
    pad_h1: 1,
    pad_w1: 1,
    stride_h: 1,
    stride_w: 1,
    dilation_h: 1,
    dilation_w: 1,
  }
  const size = {
    kernel_h: KERNEL,
    kernel_w: KERNEL,
    input_channel: CHANNELS,
    output_channel: CHANNELS,
    group: 1,
  }
  for (let at = 0; at < count; at++) {
    const weight = constant(`conv${at}/weight`, [CHANNELS, CHANNELS, KERNEL, KERNEL])
    const bias = constant(`conv${at}/bias`, [CHANNELS])
    const output = tensor({ name: `conv${at}`, shape })
    node('Convolution', 5, [last, weight, bias], output, { ...size, ...sides, activation: 0 })
    last = output
  }
  graph.inputs.push(graph.nodes[0])
  graph.outputs.push(graph.nodes.at(-1))
  await save(path, new TmfileModel(graph))
}

/** Into one small piece of memory: the least that reading all of it can take. */
function readInBlocks(path) {
  const block = new Uint8Array(MIB)
  const descriptor = openSync(path, 'r')
  while (readSync(descriptor, block) > 0);
  closeSync(descriptor)
}

async function readOneWeight(path) {
  const file = await open(path)
  const weight = await file.dense('conv7/weight').bytes()
  // A view of mapped memory is read when somebody looks: at one byte of each page.
  let sum = 0
  for (let at = 0; at < weight.byteLength; at += 4096) sum += weight[at]
  if (sum === 0 || weight.byteLength !== WEIGHT_BYTES) throw new Error('The weight is not what was written.')
  file.close()
}

/** Resident memory, compiled code included; the addon, some 2 MiB once a process, is there before. */
async function growthOf(path) {
  threads()
  const before = process.memoryUsage.rss()
  await readOneWeight(path)
  return process.memoryUsage.rss() - before
}

/** In a process of its own, where nothing was allocated before. */
function growthApart(path) {
  const main = fileURLToPath(new URL('main.mjs', import.meta.url))
  const options = { encoding: 'utf8' }
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'tmfile', '--grow', path], options)
  if (status !== 0) throw new Error(`The process that measures failed: ${stderr}`)
  return JSON.parse(stdout)
}

function round(value) {
  return Math.round(value * 100) / 100
}
