/**
 * Opens a large tmfile and reads one of its weights, compared with reading the whole file: the time of both, and the growth
 * of resident memory of a new process. The file stays in the page cache.
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
/** Maximum growth of memory in addition to the weight. */
const OTHER_MIB = 4
/** Number of processes whose growth is measured. */
const GROWTHS = 3

export function addTmfile(program) {
  program
    .command('tmfile')
    .description('opening a large model and reading one weight, compared with reading the file')
    .option('--mib <n>', 'size of the model', Number, 500)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 10)
    .option('--folder <path>', 'folder for the model', tmpdir())
    .option('--grow <path>', 'internal: print the memory growth for opening this model')
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
    const growths = Array.from({ length: GROWTHS }, () => growthInNewProcess(path))
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
      console.log(`Model of ${round(statSync(path).size / MIB)} MiB. Memory growth of new processes:`, memory)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A graph without nodes, and functions that add to it; constants share one source. */
function emptyGraph() {
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
  return { graph, tensor, node, constant }
}

/** Writes a chain of equal convolutions, each with weights and a bias. */
async function writeModel(path, count) {
  const { graph, tensor, node, constant } = emptyGraph()
  const shape = [1, CHANNELS, 14, 14]
  let last = tensor({ name: 'data', shape, role: 'input' })
  node('InputOp', 12, [], last)
  const window = {
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
    node('Convolution', 5, [last, weight, bias], output, { ...size, ...window, activation: 0 })
    last = output
  }
  graph.inputs.push(graph.nodes[0])
  graph.outputs.push(graph.nodes.at(-1))
  await save(path, new TmfileModel(graph))
}

/** Reads into one small buffer: the minimum time for reading the whole file. */
function readInBlocks(path) {
  const block = new Uint8Array(MIB)
  const descriptor = openSync(path, 'r')
  while (readSync(descriptor, block) > 0);
  closeSync(descriptor)
}

async function readOneWeight(path) {
  const file = await open(path)
  const weight = await file.dense('conv7/weight').bytes()
  // A view of mapped memory is loaded on access, so this reads one byte per page.
  let sum = 0
  for (let at = 0; at < weight.byteLength; at += 4096) sum += weight[at]
  if (sum === 0 || weight.byteLength !== WEIGHT_BYTES)
    throw new Error('The weight differs from the written one.')
  file.close()
}

/** Growth of resident memory, including compiled code; the addon (about 2 MiB) is loaded before. */
async function growthOf(path) {
  threads()
  const before = process.memoryUsage.rss()
  await readOneWeight(path)
  return process.memoryUsage.rss() - before
}

/** Measures in a new process, where nothing was allocated before. */
function growthInNewProcess(path) {
  const main = fileURLToPath(new URL('main.mjs', import.meta.url))
  const options = { encoding: 'utf8' }
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'tmfile', '--grow', path], options)
  if (status !== 0) throw new Error(`The process that measures failed: ${stderr}`)
  return JSON.parse(stdout)
}

function round(value) {
  return Math.round(value * 100) / 100
}
