/**
 * Runs models that tilework wrote with onnxruntime: `npm run test:onnxruntime -- --onnxruntime FOLDER`. FOLDER, or
 * TILEWORK_ONNXRUNTIME, has onnxruntime-node installed; without it the program prints the reason and exits with 0.
 *
 * A model with weights in the graph, in a subgraph and in an attribute is written in five ways: as one file, with external
 * data in one file, in several files with checksums, with aligned data, and with the data inside again. Real models are
 * tested too where they are available. All outputs must equal the outputs of the original, bit for bit.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { open, save, tensor } from '../../dist/index.js'
import { Graph, OnnxModel } from '../../dist/onnx.js'
import { importFrom } from '../../scripts/optional_package.mjs'
import { generator } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const FIXTURES = fileURLToPath(new URL('../../../shared/fixtures/onnx', import.meta.url))
const WIDTH = 512
const BATCH = 3
/** onnxruntime-node 1.20 and later support this IR version. */
const IR_VERSION = 10
/** Keeps shape tensors (rank 8 at most) inside the model: onnxruntime does not read them from external data. */
const THRESHOLD = 65

const { onnxruntime: folder } = new Command('npm run test:onnxruntime --')
  .option(
    '--onnxruntime <folder>',
    'folder with onnxruntime-node installed',
    process.env.TILEWORK_ONNXRUNTIME ?? '.',
  )
  .parse()
  .opts()

async function run() {
  const work = makeWorkFolder('onnxruntime')
  const made = join(work, 'made.onnx')
  await save(made, makeModel())
  const counts = [await compareWays(made, join(work, 'made'), { x: inputOf([BATCH, WIDTH]) })]
  const files = ['one-file', 'several-files'].map((way) => readdirSync(join(work, 'made', way)).length)
  assert.ok(
    files[0] === 2 && files[1] > 2,
    `the model lies in ${files} files, where its data should be beside it`,
  )
  const real = existsSync(FIXTURES) ? await realModels() : []
  if (real.length === 0) console.log(`onnxruntime: real models skipped, ${FIXTURES} does not exist`)
  for (const [at, { path, feeds }] of real.entries()) {
    counts.push(await compareWays(path, join(work, `real-${at}`), feeds))
  }
  const outputs = counts.reduce((sum, count) => sum + count, 0)
  console.log(`onnxruntime: ${counts.length} models, ${outputs} outputs of rewritten models; all equal`)
}

/** The largest weight exceeds 1 MiB, so that external data aligns it to a page. */
function makeModel() {
  const model = OnnxModel.create({ irVersion: IR_VERSION, opset: 21 })
  const { graph } = model
  const float = (shape) => ({ kind: 'tensor', dtype: 'float32', shape })
  graph.addInput('x', float(['N', WIDTH]))
  graph.setInitializer('w', weights([WIDTH, WIDTH], 1))
  graph.setInitializer('bias', weights([WIDTH], 2))
  graph.setInitializer('shape', tensor([-1n, 2n, BigInt(WIDTH / 2)], { dtype: 'int64' }))
  graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['product'] })
  graph.addNode({ opType: 'Add', inputs: ['product', 'bias'], outputs: ['sum'] })
  graph.addNode({ opType: 'Reshape', inputs: ['sum', 'shape'], outputs: ['halves'] })
  graph.addNode({
    opType: 'Constant',
    outputs: ['condition'],
    attributes: { value: { type: 'TENSOR', value: tensor(true, { dtype: 'bool' }) } },
  })
  graph.addNode({
    opType: 'If',
    inputs: ['condition'],
    outputs: ['y'],
    attributes: {
      then_branch: { type: 'GRAPH', value: branch('Mul', 3) },
      else_branch: { type: 'GRAPH', value: branch('Sub', 4) },
    },
  })
  graph.addOutput('y', float(['N', 2, WIDTH / 2]))
  graph.addOutput('sum', float(['N', WIDTH]))
  return model
}

function branch(opType, seed) {
  const graph = Graph.create(opType)
  graph.setInitializer(`scale_${opType}`, weights([WIDTH / 2], seed))
  graph.addNode({ opType, inputs: ['halves', `scale_${opType}`], outputs: [`y_${opType}`] })
  graph.addOutput(`y_${opType}`, { kind: 'tensor', dtype: 'float32', shape: ['N', 2, WIDTH / 2] })
  return graph
}

function values(count, seed) {
  const random = generator(seed)
  return Float32Array.from({ length: count }, () => 2 * random() - 1)
}

const sizeOf = (shape) => shape.reduce((product, extent) => product * extent, 1)
const weights = (shape, seed) => tensor(values(sizeOf(shape), seed), { shape })
const inputOf = (shape) => new onnxruntime.Tensor('float32', values(sizeOf(shape), 5), shape)

/** Real models with float32 inputs of known shape that onnxruntime can run. */
async function realModels() {
  const names = readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' })
  const models = []
  for (const name of names.filter((each) => each.endsWith('.onnx'))) {
    const path = join(FIXTURES, name)
    const feeds = await feedsOf(path)
    if (feeds && (await canRun(path, feeds))) models.push({ path, feeds })
  }
  return models
}

async function feedsOf(path) {
  const file = await open(path)
  try {
    const { graph } = file.onnx
    const inputs = graph.inputs.filter(({ name }) => !graph.hasInitializer(name))
    const isKnown = ({ type }) =>
      type.kind === 'tensor' &&
      type.dtype === 'float32' &&
      type.shape?.every((extent) => typeof extent === 'number')
    if (!inputs.every(isKnown)) return undefined
    return Object.fromEntries(inputs.map(({ name, type }) => [name, inputOf([...type.shape])]))
  } finally {
    file.close()
  }
}

/** False for models with functions or operators that onnxruntime does not support. */
async function canRun(path, feeds) {
  try {
    await outputsOf(path, feeds)
    return true
  } catch (error) {
    const reason = String(error.message).split('\n')[0].slice(0, 120)
    console.log(`onnxruntime: ${path} skipped, onnxruntime reports: ${reason}`)
    return false
  }
}

/** @returns {Promise<number>} number of compared outputs */
async function compareWays(original, folder, feeds) {
  const expected = await outputsOf(original, feeds)
  let compared = 0
  for (const path of await writeWays(original, folder)) {
    const found = await outputsOf(path, feeds)
    assert.deepEqual(Object.keys(found), Object.keys(expected), path)
    for (const [name, { dims, type, data }] of Object.entries(found)) {
      assert.deepEqual([type, dims], [expected[name].type, expected[name].dims], `${path} ${name}`)
      const [ours, theirs] = [data, expected[name].data].map(bytesOf)
      assert.ok(ours.equals(theirs), `${path} ${name} has other values`)
      compared += 1
    }
  }
  return compared
}

const bytesOf = (data) =>
  ArrayBuffer.isView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : Buffer.from(JSON.stringify(data))

async function writeWays(original, folder) {
  const file = await open(original)
  const to = (name) => {
    mkdirSync(join(folder, name), { recursive: true })
    return join(folder, name, 'model.onnx')
  }
  const [copied, one, many, back] = ['copied', 'one-file', 'several-files', 'back-inside'].map(to)
  await save(copied, file)
  await save(one, file, { external: { threshold: THRESHOLD } })
  await save(many, file, {
    external: { threshold: THRESHOLD, shardBytes: 64 * 1024, alignment: 65_536, checksum: true },
  })
  file.close()
  const moved = await open(many)
  await save(back, moved, { external: false })
  moved.close()
  return [copied, one, many, back]
}

async function outputsOf(path, feeds) {
  const session = await onnxruntime.InferenceSession.create(path, { logSeverityLevel: 4 })
  try {
    return await session.run(feeds)
  } finally {
    await session.release()
  }
}

const onnxruntime = await importFrom(folder, 'onnxruntime-node')
if (onnxruntime) await run()
else
  console.log(
    'onnxruntime: skipped, onnxruntime-node is not installed; --onnxruntime names a folder that has it',
  )
