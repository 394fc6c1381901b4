/** Summarizes a model: its origin, operators, size and quantization. */
import { fusedActivation, isConstant, LAYOUTS, SOURCE_FORMATS } from '../../../formats/tmfile/enums.js'
import type { TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { checkModel, type TmfileModel } from './model.js'

/** An input or output tensor of the graph. */
export interface TmfileEndpoint {
  readonly name: string | null
  readonly dtype: string
  /** Null where it is unknown; -1 for a dimension that is set later. */
  readonly shape: readonly number[] | null
}

/** The `model` of `tilework inspect --json` for a tmfile. Fields may be added, but never changed. */
export interface TmfileSummary {
  readonly name: string | null
  /** Framework that the model was converted from. */
  readonly sourceFormat: string
  /** `NCHW`, `NHWC`, or any other number as text. */
  readonly graphLayout: string
  readonly modelLayout: string
  readonly nodes: number
  readonly tensors: number
  readonly buffers: number
  /** Number of nodes per operator, most frequent first. */
  readonly operators: Readonly<Record<string, number>>
  /** Activations fused into convolutions, which have no node of their own. */
  readonly fusedActivations: Readonly<Record<string, number>>
  readonly inputs: readonly TmfileEndpoint[]
  readonly outputs: readonly TmfileEndpoint[]
  readonly constants: {
    readonly count: number
    readonly byteLength: number
    /** Constants whose data is not in the file. */
    readonly withoutData: number
  }
  /** Numbers of tensors with one scale, with one scale per channel, with unknown scales (0), and with none. */
  readonly quantization: {
    readonly perTensor: number
    readonly perChannel: number
    readonly unknown: number
    readonly none: number
  }
  /** Device subgraphs; null for a model that is not partitioned. */
  readonly devices: readonly { readonly name: string | null; readonly nodes: number }[] | null
}

/**
 * Summarizes a model without reading data.
 *
 * @throws TileworkError ERR_ARGUMENT unless `model` is a TmfileModel
 */
export function summarizeTmfile(model: TmfileModel): TmfileSummary {
  checkModel(model, 'summarizeTmfile')
  const { graph, name, originalFormat } = model
  const constants = graph.tensors.filter(isConstant)
  return {
    name,
    sourceFormat: SOURCE_FORMATS[originalFormat] ?? `source ${originalFormat}`,
    graphLayout: layoutName(graph.graphLayout),
    modelLayout: layoutName(graph.modelLayout),
    nodes: graph.nodes.length,
    tensors: graph.tensors.length,
    buffers: graph.buffers.length,
    operators: countsOf(graph.nodes.map(({ operator }) => operator)),
    fusedActivations: countsOf(
      graph.nodes.map(fusedActivationOf).filter((activation) => activation !== undefined),
    ),
    inputs: graph.inputs.flatMap(({ outputs }) => outputs.map(endpointOf)),
    outputs: graph.outputs.flatMap(({ outputs }) => outputs.map(endpointOf)),
    constants: {
      count: constants.length,
      byteLength: graph.buffers.reduce((sum, { byteLength }) => sum + byteLength, 0),
      withoutData: constants.filter(({ buffer }) => !buffer?.data).length,
    },
    quantization: quantizationOf(graph.tensors),
    devices: graph.devices?.map((device) => ({ name: device.name, nodes: device.nodes.length })) ?? null,
  }
}

/** The activation fused into a convolution; undefined for none, and for other nodes. */
export function fusedActivationOf(node: TmfileNode): string | undefined {
  const isConvolution = node.operator === 'Convolution' || node.operator === 'Deconvolution'
  return isConvolution ? fusedActivation(node.params.activation) : undefined
}

function layoutName(layout: number): string {
  return LAYOUTS[layout] ?? String(layout)
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  const sorted = [...counts].sort(([one, few], [other, many]) => many - few || (one < other ? -1 : 1))
  return Object.fromEntries(sorted)
}

function endpointOf({ name, dtype, shape }: TmfileTensor): TmfileEndpoint {
  return { name, dtype, shape }
}

function quantizationOf(tensors: readonly TmfileTensor[]): TmfileSummary['quantization'] {
  const counts = { perTensor: 0, perChannel: 0, unknown: 0, none: 0 }
  for (const { quantization } of tensors) {
    if (!quantization || quantization.scales.length === 0) counts.none += 1
    else if (quantization.scales.every((scale) => scale === 0)) counts.unknown += 1
    else if (quantization.scales.length === 1) counts.perTensor += 1
    else counts.perChannel += 1
  }
  return counts
}
