/**
 * One case of `onnx_scale.mjs`: `node bench/onnx_scale_one.mjs tilework|protobufjs PATH CASE SAVED [FOLDER]`. Prints CPU seconds after the
 * imports and the peak memory of the process.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { check, open, save } from '../dist/index.js'
import { extract, optimize } from '../dist/onnx.js'
import { importFrom } from '../scripts/optional_package.mjs'
import { peakBytes } from '../scripts/peak_memory.mjs'

const [peer, path, name, saved, folder] = process.argv.slice(2)
const WIDE = { kind: 'tensor', dtype: 'float32', shape: ['N', 4] }

const EDITS = {
  open: () => 1,
  iterate: ({ nodes }) =>
    nodes.reduce((sum, node) => {
      for (const { name: key, value } of node.attributes) sum += key.length + Number(value !== undefined)
      return sum + node.opType.length + node.name.length + node.inputs.length + node.outputs.length
    }, 0),
  'rename one': (graph) => graph.rename('value_5', 'other'),
  'rename all': (graph) => {
    const count = graph.nodes.length
    for (let at = 0; at <= count; at++) graph.rename(`value_${at}`, `renamed_${at}`)
  },
  insert: (graph) => {
    for (let at = graph.nodes.length - 1; at >= 0; at--)
      graph.addNode({ opType: 'Neg', inputs: [`value_${at}`], outputs: [`n_${at}`] })
  },
  remove: (graph) => {
    for (const node of graph.nodes.slice(0, -1)) {
      graph.replaceAllUses(node.outputs[0], node.inputs[0])
      graph.removeNode(node)
    }
  },
  sort: (_, model) => optimize(model, { only: ['sort'] }),
  'remove unused': (_, model) => optimize(model, { only: ['remove-unused'] }),
  uses: (graph) => graph.values().reduce((sum, value) => sum + value.uses.length, 0),
  'add types': (graph) => {
    const count = graph.nodes.length
    for (let at = 0; at <= count; at++) graph.setType(`value_${at}`, WIDE)
  },
}

async function tilework() {
  if (name === 'check') return check(path, { level: 'strict' })
  const file = await open(path)
  if (name === 'extract half, save') {
    const half = `value_${file.onnx.graph.nodes.length / 2}`
    return save(saved, extract(file.onnx, ['value_0'], [half]))
  }
  if (name === 'optimize') return optimize(file.onnx)
  if (name === 'save') {
    file.onnx.graph.name = 'saved'
    return save(saved, file)
  }
  return EDITS[name](file.onnx.graph, file.onnx)
}

async function makeProtobufjs() {
  const library = await importFrom(folder, 'protobufjs')
  if (!library) throw new Error(`${folder} has no protobufjs`)
  // Not imported above: it runs a bundler, whose memory would count for tilework.
  const { onnxTypes } = await import('./onnx_protobufjs.mjs')
  const type = onnxTypes(library).lookupType('ModelProto')
  return () => {
    const model = type.decode(readFileSync(path))
    if (name === 'save') writeFileSync(saved, type.encode(model).finish())
    if (name !== 'iterate') return model.graph.node.length
    return model.graph.node.reduce((sum, node) => {
      for (const attribute of node.attribute) sum += attribute.name.length + attribute.ints.length
      return sum + node.op_type.length + node.name.length + node.input.length + node.output.length
    }, 0)
  }
}

const run = peer === 'protobufjs' ? await makeProtobufjs() : tilework
const before = process.cpuUsage()
await run()
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({ seconds: (user + system) / 1e6, peakMib: peakBytes() / 1024 ** 2 }))
