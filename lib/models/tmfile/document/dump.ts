/**
 * A whole model as plain data for other programs: `graph` of `tilework inspect --json`. Nodes, tensors and buffers refer to
 * each other by index. docs/tmfile.md has the schema; fields may be added, but never changed.
 */
import { LAYOUTS, PARAMETER_VALUES } from '../../../formats/tmfile/enums.js'
import { operatorByNumber } from '../../../formats/tmfile/operators.js'
import type { TmfileBuffer, TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { checkModel, type TmfileModel } from './model.js'
import { fusedActivationOf } from './summary.js'

/** JSON has no representation for these numbers. */
type NotFinite = 'NaN' | 'Infinity' | '-Infinity'
type DumpedNumber = number | NotFinite
type DumpedParameter = DumpedNumber | string | null | readonly DumpedParameter[]

export interface DumpedNode {
  readonly name: string | null
  /** `operator 104` for an unknown operator number. */
  readonly operator: string
  readonly operatorNumber: number
  readonly operatorVersion: number
  /** Indices of tensors. */
  readonly inputs: readonly number[]
  readonly outputs: readonly number[]
  /** Every field of the operator, with defaults for fields that the file lacks. */
  readonly params: Readonly<Record<string, DumpedParameter>>
  /** Names of the enumerated values in `params`. */
  readonly meanings: Readonly<Record<string, string>>
  /** Hexadecimal bytes of a block with unknown fields. */
  readonly opaqueParams: string | null
  readonly attributes: readonly { readonly name: string; readonly type: number; readonly value: string }[]
  readonly dynamicShape: boolean
}

export interface DumpedTensor {
  readonly name: string | null
  readonly dtype: string
  readonly shape: readonly number[] | null
  readonly role: string
  /** `NCHW`, `NHWC`, or any other number as text. */
  readonly layout: string
  /** Index of the buffer; null except for constants. */
  readonly buffer: number | null
  readonly quantization: {
    readonly scales: readonly DumpedNumber[]
    readonly zeroPoints: readonly number[]
  } | null
  /** Indices of nodes. */
  readonly producer: number | null
  readonly consumers: readonly number[]
}

export interface DumpedBuffer {
  readonly byteLength: number
  /** Byte offset in the file; null where the file has no data. */
  readonly offset: number | null
}

export interface DumpedDevice {
  readonly id: number
  readonly name: string | null
  readonly inputWaitCount: number
  readonly dataType: number
  readonly nodes: readonly number[]
  readonly inputs: readonly number[]
  readonly outputs: readonly number[]
}

export interface TmfileDump {
  readonly version: readonly number[]
  readonly originalFormat: number
  readonly subFormat: number
  readonly subgraph: { readonly id: number; readonly name: string | null }
  readonly nodes: readonly DumpedNode[]
  readonly tensors: readonly DumpedTensor[]
  readonly buffers: readonly DumpedBuffer[]
  /** Indices of nodes. */
  readonly inputs: readonly number[]
  readonly outputs: readonly number[]
  readonly devices: readonly DumpedDevice[] | null
}

/**
 * The whole graph as plain objects for JSON: nodes, tensors and buffers refer to each other by index.
 *
 * @throws TileworkError ERR_ARGUMENT unless `model` is a TmfileModel
 */
export function dumpTmfile(model: TmfileModel): TmfileDump {
  checkModel(model, 'dumpTmfile')
  const { graph, version, originalFormat, subFormat } = model
  const indices = {
    nodes: indexed(graph.nodes),
    tensors: indexed(graph.tensors),
    buffers: indexed(graph.buffers),
  }
  const links = model.links()
  return {
    version,
    originalFormat,
    subFormat,
    subgraph: { id: graph.id, name: graph.name },
    nodes: graph.nodes.map((node) => dumpNode(node, indices.tensors)),
    tensors: graph.tensors.map((tensor) => {
      const { producer, consumers } = links.get(tensor)!
      return {
        ...dumpTensor(tensor, indices.buffers),
        producer: producer ? indices.nodes.get(producer)! : null,
        consumers: indicesOf(consumers, indices.nodes),
      }
    }),
    buffers: graph.buffers.map(({ byteLength, data }) => {
      return { byteLength, offset: data && 'start' in data ? data.start : null }
    }),
    inputs: indicesOf(graph.inputs, indices.nodes),
    outputs: indicesOf(graph.outputs, indices.nodes),
    devices:
      graph.devices?.map(({ id, name, inputWaitCount, dataType, nodes, inputs, outputs }) => ({
        ...{ id, name, inputWaitCount, dataType },
        nodes: indicesOf(nodes, indices.nodes),
        inputs: indicesOf(inputs, indices.tensors),
        outputs: indicesOf(outputs, indices.tensors),
      })) ?? null,
  }
}

function dumpNode(node: TmfileNode, tensors: ReadonlyMap<TmfileTensor, number>): DumpedNode {
  const { name, operator, operatorNumber, operatorVersion, opaqueParams, attributes, dynamicShape } = node
  return {
    ...{ name, operator, operatorNumber, operatorVersion },
    inputs: indicesOf(node.inputs, tensors),
    outputs: indicesOf(node.outputs, tensors),
    params: Object.fromEntries(
      Object.entries(node.params).map(([field, value]) => [field, dumpParameter(value)]),
    ),
    meanings: meaningsOf(node),
    opaqueParams: opaqueParams && hexOf(opaqueParams),
    attributes: attributes.map((each) => ({ name: each.name, type: each.type, value: hexOf(each.value) })),
    dynamicShape,
  }
}

function meaningsOf(node: TmfileNode): Record<string, string> {
  const { operatorNumber, params } = node
  const activation = fusedActivationOf(node)
  const meanings: Record<string, string> = activation === undefined ? {} : { activation }
  for (const [name, field] of Object.entries(operatorByNumber(operatorNumber)?.fields ?? {})) {
    const value = (params as Readonly<Record<string, unknown>>)[name]
    const meaning =
      field.values === undefined ? undefined : PARAMETER_VALUES[field.values]?.get(value as number)
    if (meaning !== undefined) meanings[name] = meaning
  }
  return meanings
}

function dumpTensor(
  { name, dtype, shape, role, layout, buffer, quantization }: TmfileTensor,
  buffers: ReadonlyMap<TmfileBuffer, number>,
): Omit<DumpedTensor, 'producer' | 'consumers'> {
  return {
    ...{ name, dtype, shape, role },
    layout: LAYOUTS[layout] ?? String(layout),
    buffer: buffer ? (buffers.get(buffer) ?? null) : null,
    quantization: quantization && {
      scales: Array.from(quantization.scales, dumpNumber),
      zeroPoints: Array.from(quantization.zeroPoints),
    },
  }
}

function dumpParameter(value: unknown): DumpedParameter {
  if (Array.isArray(value)) return value.map(dumpParameter)
  return typeof value === 'number' ? dumpNumber(value) : (value as string | null)
}

function dumpNumber(value: number): DumpedNumber {
  return Number.isFinite(value) ? value : (String(value) as NotFinite)
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function indexed<T>(list: readonly T[]): ReadonlyMap<T, number> {
  return new Map(list.map((entry, index): [T, number] => [entry, index]))
}

function indicesOf<T>(entries: readonly T[], indices: ReadonlyMap<T, number>): number[] {
  return entries.map((entry) => indices.get(entry)!)
}
