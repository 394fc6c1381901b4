/** Models of `test/fixtures/onnx-compress`: before, and as the reference tools made them. */
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DTYPES, open } from '../../../lib/index.js'
import type { Graph, OnnxModel, QuantizeStaticOptions } from '../../../lib/onnx.js'

const FOLDER = resolve(import.meta.dirname, '../../fixtures/onnx-compress')

export const CASES = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

export function recordedPath(name: string, variant: string): string {
  return join(FOLDER, name, `${variant}.onnx`)
}

/** Cases that have a variant. */
export function casesWith(variant: string): string[] {
  return CASES.filter((name) => existsSync(recordedPath(name, variant)))
}

export async function recorded(name: string, variant = 'before'): Promise<OnnxModel> {
  return (await open(recordedPath(name, variant))).onnx!
}

/** Operators of a graph and its subgraphs, sorted. */
export function operatorsOf(graph: Graph): string[] {
  return [...graph.allNodes()].map(({ opType }) => opType).sort()
}

export interface StoredValue {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
}

/** Initializers of a graph and its subgraphs by name. */
export async function initializersOf(graph: Graph): Promise<ReadonlyMap<string, StoredValue>> {
  const values = new Map<string, StoredValue>()
  for (const each of [graph, ...graph.subgraphs()]) {
    for (const tensor of each.initializers()) {
      if (tensor.kind !== 'dense') continue
      const bytes = Uint8Array.from(await tensor.bytes())
      values.set(tensor.name, { dtype: tensor.dtype, shape: tensor.shape, bytes })
    }
  }
  return values
}

/** Types of activations and weights of a static variant, which are in its name: `u16s4` is uint16 and int4. */
export function recordedTypes(
  variant: string,
): Required<Pick<QuantizeStaticOptions, 'activationType' | 'weightType'>> {
  const [, activation = '', weight = ''] = /-([us]\d+)([us]\d+)/.exec(variant) ?? []
  const typeOf = (short: string): string => short.replace('u', 'uint').replace('s', 'int')
  return { activationType: typeOf(activation), weightType: typeOf(weight) } as ReturnType<
    typeof recordedTypes
  >
}

/**
 * Ranges of values that give the scales and zero points of a statically quantized model: those that its QuantizeLinear nodes
 * can represent.
 */
export async function recordedRanges({
  graph,
}: OnnxModel): Promise<Record<string, { min: number; max: number }>> {
  const ranges: Record<string, { min: number; max: number }> = {}
  for (const node of graph.nodes.filter(({ opType }) => opType === 'QuantizeLinear')) {
    const [scale, zero] = [graph.initializer(node.inputs[1]!), graph.initializer(node.inputs[2]!)]
    if (scale?.kind !== 'dense' || zero?.kind !== 'dense') continue
    const [step, at] = [Number(scale.at()), Number(zero.at())]
    const { bits } = DTYPES[zero.dtype]
    const first = zero.dtype.startsWith('u') ? 0 : -(2 ** (bits - 1))
    const last = first + 2 ** bits - 1
    const name = node.inputs[0]!.replace(/_QuantizeLinear_Input$/, '')
    ranges[name] = { min: step * (first - at), max: step * (last - at) }
  }
  return ranges
}
