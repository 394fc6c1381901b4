/** An IR as names and texts, for the comparison of models and the page. */
import { Budget } from '../../formats/budget.js'
import type { GraphDescription, ModelDescription, NodeDescription } from '../../formats/model_description.js'
import { CONST_TYPES, DEFAULT_LIMITS } from '../../formats/openvino/schema.js'
import { type Edge, type GraphScope, type Layer, type Port, walkXml } from '../../formats/openvino/walk.js'
import type { OpenvinoModel } from './model.js'

/** Longest name in a path, in characters: every graph in a body repeats those around it. */
const MAX_LABEL = 200

/** A graph while its layers and edges are read. */
interface Reading {
  readonly graph: GraphScope
  readonly layers: Layer[]
  readonly edges: Edge[]
}

/** Attributes that say where the bytes of a constant are, which differ between files of one model. */
const PLACES: ReadonlySet<string> = new Set(['offset', 'size'])

export function describeOpenvino(model: OpenvinoModel): ModelDescription {
  const readings: Reading[] = []
  const at = (graph: GraphScope): Reading => (readings[graph.index] ??= { graph, layers: [], edges: [] })
  walkXml(model.files.bytes, new Budget({}, DEFAULT_LIMITS), {
    layer: (layer) => at(layer.graph).layers.push(layer),
    edge: (edge) => at(edge.graph).edges.push(edge),
  })
  const metadata = new Map([
    ['version', String(model.version)],
    ['name', model.name],
    ...Array.from(model.rtInfo, ([key, value]) => [`rt_info ${key}`, value] as const),
  ])
  return {
    metadata,
    graphs: readings.flatMap((reading) => (reading ? [describeGraph(reading, readings)] : [])),
  }
}

function describeGraph({ graph, layers, edges }: Reading, all: readonly Reading[]): GraphDescription {
  const names = valueNames(layers)
  const inputsOf = new Map<string, string>()
  for (const { fromLayer, fromPort, toLayer, toPort } of edges) {
    inputsOf.set(`${toLayer}:${toPort}`, names.get(`${fromLayer.text}:${fromPort.text}`) ?? '')
  }
  const nodes: NodeDescription[] = []
  const [inputs, outputs, values] = [
    new Map<string, string>(),
    new Map<string, string>(),
    new Map<string, string>(),
  ]
  for (const layer of layers) {
    const valueName = (port: Port): string => names.get(`${layer.id}:${port.id}`) ?? ''
    if (layer.type === 'Parameter')
      for (const port of layer.outputs) inputs.set(valueName(port), typeText(port))
    else if (layer.type === 'Result') for (const port of layer.inputs) outputs.set(layer.name, typeText(port))
    else for (const port of layer.outputs) values.set(valueName(port), typeText(port))
    if (layer.type === 'Parameter' || CONST_TYPES.has(layer.type)) continue
    nodes.push({
      name: layer.name,
      operator: layer.type,
      inputs: layer.inputs.map(({ id }) => inputsOf.get(`${layer.id}:${id}`) ?? ''),
      outputs: layer.outputs.map(valueName),
      attributes: new Map(
        layer.data.filter(({ name }) => !PLACES.has(name)).map(({ name, text }) => [name, text]),
      ),
    })
  }
  return { path: pathOf(graph), ...ownerOf(graph, all), nodes, inputs, outputs, values }
}

/** A name for each output port, by layer and port: that of the layer, with the port where there are several. */
function valueNames(layers: readonly Layer[]): Map<string, string> {
  const names = new Map<string, string>()
  for (const { id, name, outputs } of layers) {
    for (const port of outputs)
      names.set(`${id}:${port.id}`, outputs.length === 1 ? name : `${name}:${port.id}`)
  }
  return names
}

function typeText({ precision, dims }: Port): string {
  return `${precision?.text ?? ''}[${dims.map((dim) => (dim === '-1' ? '?' : dim)).join(',')}]`
}

function pathOf({ path }: GraphScope): string {
  const text = path.replace(/\/$/, '')
  return text.length <= MAX_LABEL ? text : `${text.slice(0, MAX_LABEL)}…`
}

function ownerOf({ owner }: GraphScope, all: readonly Reading[]): Pick<GraphDescription, 'owner'> {
  if (!owner) return {}
  const nodes = all[owner.graph.index]?.layers.filter(
    ({ type }) => type !== 'Parameter' && !CONST_TYPES.has(type),
  )
  const node = nodes?.findIndex(({ id }) => id === owner.id) ?? -1
  return node === -1 ? {} : { owner: { graph: owner.graph.index, node } }
}
