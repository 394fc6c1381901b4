/** Which weights have numbers that codes cannot represent: NaN, infinities, and ranges whose width float32 does not hold. */

import { stats } from '../../tensor/stats.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import type { Graph } from '../onnx/document/types.js'

const GREATEST_FLOAT32 = 3.4028234663852886e38

/** Reads each weight of a model once. */
export class FiniteWeights {
  readonly #signal: AbortSignal | undefined
  readonly #reasons = new Map<Graph, Map<string, string | undefined>>()

  constructor(signal: AbortSignal | undefined) {
    this.#signal = signal
  }

  /** Why a node with this initializer of the graph stays in float; undefined for a weight that codes can represent. */
  async whyNot(graph: Graph, tensor: DenseTensor): Promise<string | undefined> {
    const known = this.#reasons.get(graph) ?? new Map<string, string | undefined>()
    this.#reasons.set(graph, known)
    if (!known.has(tensor.name)) known.set(tensor.name, await whyNotFinite(tensor, this.#signal))
    return known.get(tensor.name)
  }
}

async function whyNotFinite(
  tensor: DenseTensor,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const { nans, infinities, min, max } = await stats(tensor, { bins: 2, ...(signal && { signal }) })
  const what = `its weight ${valueText(tensor.name)} has`
  if (nans > 0) return `${what} ${nans} ${nans === 1 ? 'value that is' : 'values that are'} NaN`
  if (infinities > 0) return `${what} ${infinities} infinite ${infinities === 1 ? 'value' : 'values'}`
  const width = Math.max(0, Number(max ?? 0)) - Math.min(0, Number(min ?? 0))
  return width > GREATEST_FLOAT32 ? `${what} a range that is wider than float32 holds` : undefined
}
