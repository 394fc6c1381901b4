/** What people ask of a model first: where it comes from, what it runs, how large and how quantized it is. */
import { fusedActivation, isConstant, LAYOUTS, SOURCE_FORMATS } from './enums.js'
import type { TmfileModel } from './model/model.js'
import type { TmfileNode, TmfileTensor } from './model/types.js'

/** An input or output of the graph. */
export interface TmfileEnd {
  readonly name: string | null
  readonly dtype: string
  /** Null where it is not known; -1 for an extent that is set later. */
  readonly shape: readonly number[] | null
}

/** The `model` of `tilework inspect --json` for a tmfile. Fields may be added, never changed. */
export interface TmfileSummary {
  readonly name: string | null
  /** Framework that the model came from. */
  readonly sourceFormat: string
  /** `NCHW`, `NHWC`, or the number where it is neither. */
  readonly graphLayout: string
  readonly modelLayout: string
  readonly nodes: number
  readonly tensors: number
  readonly buffers: number
  /** Nodes by operator, the most frequent first. */
  readonly operators: Readonly<Record<string, number>>
  /** Activations that convolutions have swallowed, which no node shows. */
  readonly fusedActivations: Readonly<Record<string, number>>
  readonly inputs: readonly TmfileEnd[]
  readonly outputs: readonly TmfileEnd[]
  readonly constants: {
    readonly count: number
    readonly byteLength: number
    /** Those whose numbers are not in the file. */
    readonly withoutData: number
  }
  /** Tensors with one set of quantization parameters, with one a channel, with scales that are unknown (0), and none. */
  readonly quantization: {
    readonly perTensor: number
    readonly perChannel: number
    readonly unknown: number
    readonly none: number
  }
  /** Parts for devices; null where the model is not partitioned. */
  readonly devices: readonly { readonly name: string | null; readonly nodes: number }[] | null
}

export function summarise({ graph, name, originalFormat }: TmfileModel): TmfileSummary {
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
      graph.nodes.map(activationWithin).filter((activation) => activation !== undefined),
    ),
    inputs: graph.inputs.flatMap(({ outputs }) => outputs.map(endOf)),
    outputs: graph.outputs.flatMap(({ outputs }) => outputs.map(endOf)),
    constants: {
      count: constants.length,
      byteLength: graph.buffers.reduce((sum, { byteLength }) => sum + byteLength, 0),
      withoutData: constants.filter(({ buffer }) => !buffer?.data).length,
    },
    quantization: quantizationOf(graph.tensors),
    devices: graph.devices?.map((device) => ({ name: device.name, nodes: device.nodes.length })) ?? null,
  }
}

/** The activation that a convolution has swallowed; undefined for none, and for all other nodes. */
export function activationWithin(node: TmfileNode): string | undefined {
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

function endOf({ name, dtype, shape }: TmfileTensor): TmfileEnd {
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
