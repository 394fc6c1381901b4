/**
 * What test/programs/models.mjs does to a model. An action changes `onnx` and returns what is saved and compared:
 * `{ onnx?, saving?, isPass?, request?, text? }`, see interop/run_models.py for `request`; undefined where the model has nothing to act on.
 */
import { existsSync, statSync } from 'node:fs'
import { open } from '../../../dist/index.js'
import {
  addPrefix,
  convertOpset,
  expandOutputDims,
  extract,
  inferShapes,
  inferTypes,
  initializersToConstants,
  mergeModels,
  optimize,
  printModel,
  setBatch,
  setInputShape,
  tidy,
} from '../../../dist/onnx.js'
import { importInternal } from '../../../scripts/internals.mjs'

const { PASSES } = await importInternal('models/onnx_optimize/optimize')

/** Rounding of the nodes that an adapter puts in the place of one. */
const ADAPTED = 1e-5

/** Fusions compute in another order, with weights that are rounded once more. */
const FUSED = 1e-5

/** onnxruntime packs large weights that are constant, and its products add in another order then. */
const PACKED = 2e-6

const passes = Object.fromEntries(
  PASSES.map(({ name, runs }) => [
    `pass ${name}`,
    {
      takesLarge: name.startsWith('fold'),
      tolerance: runs === 'with fuse' ? FUSED : name === 'fold-weights' ? PACKED : 0,
      run: ({ onnx }) => optimized(onnx, [name]),
    },
  ]),
)

/** Without those that round, and the one that another undoes. */
const WITH_REQUESTED = PASSES.filter(({ runs }) => runs !== 'with fuse')
  .map(({ name }) => name)
  .filter((name) => name !== 'remove-default-attributes')

export const ACTIONS = {
  'save unchanged': { takesLarge: true, run: () => ({}) },
  copy: { run: ({ onnx }) => ({ onnx: onnx.copy() }) },
  ...passes,
  'all passes': { takesLarge: true, tolerance: PACKED, run: ({ onnx }) => optimized(onnx) },
  'all passes and those on request': { run: ({ onnx }) => optimized(onnx, WITH_REQUESTED) },
  tidy: { takesLarge: true, tolerance: PACKED, run: ({ onnx }) => tidied(onnx) },
  'rename all': { takesLarge: true, run: renameAll },
  'add prefix': { takesLarge: true, run: prefixed },
  'sort shuffled': { run: ({ onnx, model }) => identities(onnx, model) },
  'identities there and back': { run: identitiesAndBack },
  'replace all nodes': { run: replaceNodes },
  'set attributes': { run: setAttributes },
  'set initializers': { takesLarge: true, run: setInitializers },
  'initializers to constants': {
    run: ({ onnx }) => (initializersToConstants(onnx) > 0 ? {} : undefined),
  },
  'add outputs': { run: addOutputs },
  'remove outputs': { run: removeOutputs },
  'reorder inputs and outputs': { run: reorder },
  'extract to a quarter': { takesLarge: true, run: ({ onnx }) => extractTo(onnx, 0.25) },
  'extract to a half': { run: ({ onnx }) => extractTo(onnx, 0.5) },
  'extract to three quarters': { run: ({ onnx }) => extractTo(onnx, 0.75) },
  'extract from a half': { refusals: ['ERR_ARGUMENT'], run: extractFrom },
  'infer shapes': { run: inferShapesOf },
  'set input shapes': { run: setShapes },
  'set batch': { refusals: ['ERR_GRAPH'], run: setBatchOf },
  'expand output dims': { refusals: ['ERR_GRAPH', 'ERR_UNSUPPORTED'], run: expandOutputs },
  'merge beside itself': { run: mergeBeside },
  'merge after itself': { run: mergeAfter },
  'operator set 21': {
    refusals: ['ERR_UNSUPPORTED', 'ERR_GRAPH'],
    tolerance: ADAPTED,
    run: ({ onnx }) => converted(onnx, 21),
  },
  'newest operator set': {
    refusals: ['ERR_UNSUPPORTED', 'ERR_GRAPH'],
    tolerance: ADAPTED,
    run: ({ onnx }) => converted(onnx, 26),
  },
  'external data': {
    takesLarge: true,
    run: () => ({ saving: { external: { threshold: 64, checksum: true } } }),
  },
  'external data in parts': {
    takesLarge: true,
    run: () => ({ saving: { external: { threshold: 256, shardBytes: 4096 } } }),
  },
  'internal data': { takesLarge: true, run: () => ({ saving: { external: false } }) },
  'texts and metadata': { run: setTexts },
  print: { refusals: ['ERR_UNSUPPORTED'], run: print },
}

/** onnx.printer takes long for the values of larger models. */
const MAX_PRINTED_BYTES = 50_000

async function print({ onnx, model }) {
  // The reference reads values outside of the model before it prints.
  if (hasData(model) || statSync(model.path).size > MAX_PRINTED_BYTES) return undefined
  return { text: await printModel(onnx) }
}

function hasData({ path }) {
  return existsSync(`${path}.data`) || existsSync(path.replace(/\.onnx$/, '.data'))
}

async function optimized(onnx, only) {
  await optimize(onnx, only && { only })
  const again = (await optimize(onnx, only && { only })).filter(({ changes }) => changes > 0)
  if (again.length > 0) throw new Error(`a second run of ${again[0].pass} changed ${again[0].changes}`)
  return { isPass: true }
}

async function tidied(onnx) {
  await tidy(onnx, { fold: 'all' })
  return { isPass: true }
}

/** What the values of a model are called now, as inputs and outputs of a request. */
function renamedEnds({ inputs, outputs }, nameOf) {
  const ends = (values) => Object.fromEntries(Object.keys(values).map((name) => [nameOf(name), name]))
  return { inputs: ends(inputs), outputs: ends(outputs) }
}

function renameAll({ onnx: { graph }, model }) {
  const names = new Map(graph.values().map(({ name }, at) => [name, `renamed.${at}`]))
  for (const [name, other] of names) graph.rename(name, other)
  for (const [at, node] of [...graph.allNodes()].entries()) node.name = `node.${at}`
  return { request: renamedEnds(model, (name) => names.get(name)) }
}

function prefixed({ onnx, model }) {
  addPrefix(onnx, 'p/')
  return { request: renamedEnds(model, (name) => `p/${name}`) }
}

/** Whether Identity of the operator set takes a value of that type. */
function takesIdentity(type, opset) {
  if (type?.kind === 'tensor') return true
  return opset >= 16 && (type?.kind === 'sequence' || type?.kind === 'optional') && type.of.kind === 'tensor'
}

/** An Identity after every computed value, before all other nodes, and then sorted. */
async function identities(onnx, model) {
  const { graph } = onnx
  const types = inferTypes(onnx)
  const opset = Number(onnx.opsetImports.get('') ?? 0)
  const renamed = new Map()
  // Operators such as Resize look for constants that are empty.
  const nodes = graph.nodes.filter(({ opType }) => opType !== 'Constant')
  for (const name of nodes.flatMap(({ outputs }) => outputs.filter((each) => each !== ''))) {
    if (!takesIdentity(types.get(name), opset)) continue
    const other = graph.uniqueName(`${name}_same`)
    graph.replaceAllUses(name, other)
    graph.addNode({ opType: 'Identity', inputs: [name], outputs: [other] }, 0)
    if (graph.outputNames.has(other)) renamed.set(name, other)
  }
  await optimize(onnx, { only: ['sort'] })
  return { request: renamedEnds(model, (name) => renamed.get(name) ?? name) }
}

async function identitiesAndBack({ onnx, model }) {
  const { request } = await identities(onnx, model)
  await optimize(onnx, { only: ['remove-identity'] })
  return { request }
}

/** Puts a new node with the same operator, inputs and attributes in the place of every node. */
function replaceNodes({ onnx: { graph }, model }) {
  const renamed = new Map()
  for (const node of graph.nodes) {
    const { opType, domain, name, inputs, outputs } = node
    if (domain !== '' || node.overload !== '') continue
    const others = outputs.map((output) => (output === '' ? '' : graph.uniqueName(`${output}_new`)))
    const given = node.attributes.filter(({ type }) => type !== 'UNDEFINED')
    const attributes = Object.fromEntries(
      given.map((each) => [each.name, { type: each.type, value: each.value }]),
    )
    const at = graph.nodes.indexOf(node)
    graph.addNode({ opType, domain, name, inputs, outputs: others, attributes }, at)
    for (const [index, output] of outputs.entries()) {
      if (output === '') continue
      graph.replaceAllUses(output, others[index])
      renamed.set(output, others[index])
    }
    graph.removeNode(node)
  }
  return { request: renamedEnds(model, (name) => renamed.get(name) ?? name) }
}

function setAttributes({ onnx: { graph } }) {
  for (const node of graph.allNodes())
    for (const { name, type, value } of node.attributes)
      if (type !== 'UNDEFINED' && value !== undefined) node.setAttribute(name, { type, value })
  return {}
}

function setInitializers({ onnx: { graph } }) {
  for (const name of graph.initializerNames) graph.setInitializer(name, graph.initializer(name))
  return graph.initializerNames.length > 0 ? {} : undefined
}

/** Whether onnx.checker takes the type as that of an output: a tensor has to have a shape. */
function isChecked(type) {
  if (type === undefined || type.kind === 'none' || type.kind === 'map') return false
  return type.kind === 'tensor' ? type.shape !== undefined : isChecked(type.of)
}

function addOutputs({ onnx, model }) {
  const { graph } = onnx
  const types = inferTypes(onnx)
  const added = {}
  for (const { name, producer, isOutput } of graph.values()) {
    const type = types.get(name)
    if (producer === undefined || isOutput || !isChecked(type)) continue
    graph.addOutput(name, type)
    added[name] = name
  }
  if (Object.keys(added).length === 0) return undefined
  const same = renamedEnds(model, (name) => name)
  return { request: { ...same, outputs: { ...same.outputs, ...added } } }
}

async function removeOutputs({ onnx, model }) {
  const { graph } = onnx
  const [first, ...others] = [...graph.outputNames]
  if (others.length === 0) return undefined
  for (const name of others) graph.removeOutput(name)
  await optimize(onnx, { only: ['remove-unused'] })
  return { request: { ...renamedEnds(model, (name) => name), outputs: { [first]: first } } }
}

function reorder({ onnx: { graph } }) {
  graph.reorderInputs([...graph.inputNames].reverse())
  graph.reorderOutputs([...graph.outputNames].reverse())
  return {}
}

/** A computed value of the main graph with a known type, by its place among all of them. */
function valueAt(onnx, share) {
  const types = inferTypes(onnx)
  const names = onnx.graph.nodes.flatMap(({ outputs }) =>
    outputs.filter((name) => isChecked(types.get(name))),
  )
  return names.length < 2 ? undefined : names[Math.floor(share * names.length)]
}

function extractTo(onnx, share) {
  const name = valueAt(onnx, share)
  if (name === undefined) return undefined
  const part = extract(
    onnx,
    onnx.graph.inputs.map((each) => each.name).filter((each) => !onnx.graph.hasInitializer(each)),
    [name],
  )
  const inputs = Object.fromEntries(part.graph.inputs.map((each) => [each.name, each.name]))
  return { onnx: part, request: { inputs, outputs: { [name]: name } } }
}

function extractFrom({ onnx, model }) {
  const name = valueAt(onnx, 0.5)
  if (name === undefined || onnx.graph.outputNames.has(name)) return undefined
  const given = [...onnx.graph.inputNames].filter((each) => !onnx.graph.hasInitializer(each))
  const part = extract(onnx, [...given, name], [...onnx.graph.outputNames])
  const same = renamedEnds(model, (each) => each)
  return { onnx: part, request: { ...same, inputs: { ...same.inputs, [name]: name } } }
}

function inferShapesOf({ onnx }) {
  inferShapes(onnx)
  return {}
}

function setShapes({ onnx, model }) {
  for (const [name, { shape }] of Object.entries(model.inputs))
    if (shape !== undefined && onnx.graph.typeOf(name).shape !== undefined) setInputShape(onnx, name, shape)
  return {}
}

function setBatchOf({ onnx }) {
  setBatch(onnx, 'Batch')
  return {}
}

function expandOutputs({ onnx }) {
  expandOutputDims(onnx, 0)
  return { request: { axis: 0 } }
}

async function mergeBeside({ onnx, model }) {
  const other = (await open(model.path)).onnx
  const merged = mergeModels(onnx, other, { prefix2: 'second/' })
  const [first, second] = [renamedEnds(model, (name) => name), secondEnds(model, [])]
  const inputs = { ...first.inputs, ...second.inputs }
  return { onnx: merged, request: { chain: {}, inputs, outputs: { ...first.outputs, ...second.outputs } } }
}

/** Ends of the second of two merged models, whose values are those of a second run. */
function secondEnds({ inputs, outputs }, connected) {
  const ends = (values) =>
    Object.fromEntries(
      Object.keys(values)
        .filter((name) => !connected.includes(name))
        .map((name) => [`second/${name}`, `second/${name}`]),
    )
  return { inputs: ends(inputs), outputs: ends(outputs) }
}

async function mergeAfter({ onnx, model }) {
  const describe = ({ dtype, shape }) => `${dtype} ${shape}`
  const found = Object.entries(model.outputs).flatMap(([output, kind]) =>
    Object.entries(model.inputs)
      .filter(([, each]) => kind.dtype !== undefined && describe(each) === describe(kind))
      .map(([input]) => [output, input]),
  )
  if (found.length === 0) return undefined
  const [[output, input]] = found
  const other = (await open(model.path)).onnx
  const merged = mergeModels(onnx, other, { ioMap: [[output, input]], prefix2: 'second/' })
  const first = renamedEnds(model, (name) => name)
  const second = secondEnds(model, [input])
  const { [output]: _, ...left } = first.outputs
  const request = {
    chain: { [input]: output },
    inputs: { ...first.inputs, ...second.inputs },
    outputs: { ...left, ...second.outputs },
  }
  return { onnx: merged, request }
}

function converted(onnx, version) {
  if (Number(onnx.opsetImports.get('') ?? version) >= version) return undefined
  convertOpset(onnx, version)
  return {}
}

function setTexts({ onnx }) {
  const { graph } = onnx
  for (const part of [onnx, graph, ...graph.allNodes()]) {
    part.setMetadata('key', 'väl\n')
    part.docString = 'a text'
  }
  onnx.producerName = 'maker'
  onnx.producerVersion = '2'
  onnx.domain = 'a.domain'
  onnx.modelVersion = 7
  return {}
}
