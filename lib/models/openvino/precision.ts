/**
 * Which constants `save_model` of OpenVINO keeps in float32 because of the layers around them. Source: openvino 2026.4.1, run with
 * a constant at each input of each operator that is listed, and of 50 others.
 */
import { Budget } from '../../formats/budget.js'
import { ConstantKeys } from '../../formats/openvino/constants.js'
import { CONST_TYPES } from '../../formats/openvino/schema.js'
import {
  type Edge,
  findAttribute,
  type GraphScope,
  type Layer,
  walkXml,
} from '../../formats/openvino/walk.js'

/** Inputs that are shapes, paddings, scales or counts: what they are computed from stays as it is. */
const PRECISE_INPUTS: Readonly<Record<string, readonly string[]>> = {
  BatchToSpace: ['1', '2', '3'],
  Broadcast: ['1'],
  ConvolutionBackpropData: ['2'],
  GroupConvolutionBackpropData: ['2'],
  OneHot: ['1'],
  Pad: ['1', '2'],
  Reshape: ['1'],
  SpaceToBatch: ['1', '2', '3'],
  StridedSlice: ['1', '2', '3'],
  Tile: ['1'],
  TopK: ['1'],
}

/** Of the versions of Interpolate only the one of opset 4 has both sizes and scales. */
const INTERPOLATE = 'Interpolate'
const PRECISE_INPUTS_OF_INTERPOLATE: Readonly<Record<string, readonly string[]>> = { opset4: ['1', '2'] }

/** Layers of models that are quantized: no constant of such a model becomes float16. */
const QUANTIZERS: ReadonlySet<string> = new Set(['FakeQuantize', 'FakeConvert'])

/** Element types of weights that are compressed already, where a Convert and a Multiply follow them. */
const COMPRESSED_TYPES: ReadonlySet<string> = new Set(['i4', 'u4', 'i8', 'u8', 'nf4', 'f8e4m3', 'f8e5m2'])

/** A layer, and the layers that make its inputs, by port. */
interface LinkedLayer {
  readonly type: string
  readonly preciseInputs: readonly string[]
  /** Of a constant: its name, and its element type. */
  readonly key?: string
  readonly elementType?: string
  readonly inputs: Map<string, LinkedLayer>
}

export interface Precision {
  /** Names of constants that shapes are computed from. */
  readonly precise: ReadonlySet<string>
  /** Why no constant may change; undefined where they may. */
  readonly keepsAll?: string
}

export function findPrecision(bytes: Uint8Array): Precision {
  const precise = new Set<string>()
  const graphs = linkedGraphs(bytes, precise)
  for (const layers of graphs) for (const layer of layers) addPrecise(layer, precise)
  const main = graphs[0] ?? []
  const quantizer = main.find(({ type }) => QUANTIZERS.has(type))
  if (quantizer) return { precise, keepsAll: `the model is quantized: it has ${quantizer.type}` }
  const isCompressed = main.some(isCompressedWeight)
  return { precise, ...(isCompressed && { keepsAll: 'the model has compressed weights' }) }
}

function linkedGraphs(bytes: Uint8Array, precise: Set<string>): LinkedLayer[][] {
  const graphs: Map<string, LinkedLayer>[] = []
  const edges: Edge[] = []
  const budget = new Budget({}, {})
  const keys = new ConstantKeys(budget)
  walkXml(bytes, budget, {
    layer: (layer: Layer) => {
      const { type, id, graph, data } = layer
      const elementType = findAttribute(data, 'element_type')?.text
      const constant = CONST_TYPES.has(type) && {
        key: keys.of(layer),
        ...(elementType !== undefined && { elementType }),
      }
      of(graphs, graph).set(id, {
        type,
        preciseInputs: preciseInputsOf(layer),
        ...constant,
        inputs: new Map(),
      })
      if (constant && layer.isPrecise) precise.add(constant.key)
    },
    edge: (edge) => edges.push(edge),
  })
  for (const { graph, fromLayer, toLayer, toPort } of edges) {
    const layers = of(graphs, graph)
    const from = layers.get(fromLayer.text)
    if (from) layers.get(toLayer)?.inputs.set(toPort, from)
  }
  return Array.from(graphs, (layers) => [...(layers?.values() ?? [])])
}

function of(graphs: Map<string, LinkedLayer>[], { index }: GraphScope): Map<string, LinkedLayer> {
  const known = graphs[index]
  if (known) return known
  const layers = new Map<string, LinkedLayer>()
  graphs[index] = layers
  return layers
}

function preciseInputsOf({ type, attributes }: Layer): readonly string[] {
  if (type === INTERPOLATE) {
    return PRECISE_INPUTS_OF_INTERPOLATE[findAttribute(attributes, 'version')?.text ?? ''] ?? ['1']
  }
  return Object.hasOwn(PRECISE_INPUTS, type) ? PRECISE_INPUTS[type]! : []
}

/** Adds the constants before the precise inputs of a layer, up to the layers that give shapes. */
function addPrecise(layer: LinkedLayer, precise: Set<string>): void {
  const open = layer.preciseInputs.flatMap((port) => layer.inputs.get(port) ?? [])
  const seen = new Set(open)
  for (let next = open.pop(); next; next = open.pop()) {
    if (next.type === 'ShapeOf') continue
    if (next.key !== undefined) precise.add(next.key)
    for (const input of next.inputs.values()) {
      if (seen.has(input)) continue
      seen.add(input)
      open.push(input)
    }
  }
}

/** Whether a layer is the Multiply of `Multiply(Convert(weight) [- zero point], scale)`. */
function isCompressedWeight({ type, inputs }: LinkedLayer): boolean {
  if (type !== 'Multiply') return false
  const [one, other] = ['0', '1'].map((port) => inputs.get(port))
  return (isScaled(one) && isConstant(other)) || (isScaled(other) && isConstant(one))
}

function isScaled(layer: LinkedLayer | undefined): boolean {
  if (layer?.type !== 'Subtract') return isConvertedWeight(layer)
  const zeroPoint = layer.inputs.get('1')
  const isKnown =
    isConstant(zeroPoint) || (zeroPoint?.type === 'Convert' && isConstant(zeroPoint.inputs.get('0')))
  return isKnown && isConvertedWeight(layer.inputs.get('0'))
}

function isConvertedWeight(layer: LinkedLayer | undefined): boolean {
  const weight = layer?.type === 'Convert' ? layer.inputs.get('0') : undefined
  return isConstant(weight) && COMPRESSED_TYPES.has(weight?.elementType ?? '')
}

function isConstant(layer: LinkedLayer | undefined): boolean {
  return layer?.key !== undefined
}
