/** One run of a model in the caller's onnxruntime, from tensors to tensors. */
import { TileworkError } from '../../errors.js'
import type { Graph, OnnxModel } from '../../models/onnx/index.js'
import { asTensor, type OnnxRuntimeTensor } from '../../tensor/adapters.js'
import type { DenseTensor, StringTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import {
  exposeValue,
  outputsOf,
  type RuntimeSession,
  type SessionOptions,
  type TensorRuntime,
  withSession,
} from './session.js'

/** What the runtime takes and returns. */
export type RunTensor = DenseTensor | StringTensor

export interface RunOptions extends SessionOptions {
  readonly runtime: TensorRuntime
  /** File of the model as it is. */
  readonly path: string | undefined
}

/** An error of the runtime, as opposed to one of tilework. */
export class RuntimeFailure extends Error {
  override readonly name = 'RuntimeFailure'

  /** @param isOfRun - whether the model was loaded, so that other inputs may help */
  constructor(
    readonly isOfRun: boolean,
    cause: unknown,
  ) {
    const reason = (cause instanceof Error ? cause.message : valueText(cause)).replace(/\.\s*$/, '')
    super(`onnxruntime does not ${isOfRun ? 'run' : 'load'} it: ${reason}`, { cause })
  }
}

/**
 * Runs a model once.
 *
 * @param names - outputs, or values inside the graph
 * @returns the tensors by these names, in memory of their own
 * @throws RuntimeFailure, and TileworkError of writing a copy
 */
export async function runModel(
  model: OnnxModel,
  inputs: ReadonlyMap<string, RunTensor>,
  names: readonly string[],
  options: RunOptions,
): Promise<ReadonlyMap<string, RunTensor>> {
  const isWhole = names.every((name) => model.graph.outputNames.has(name))
  const runnable = isWhole ? model : model.copy()
  const outputs = new Map(names.map((name) => [name, outputOf(runnable.graph, name)]))
  const feeds: Record<string, unknown> = Object.create(null)
  for (const [name, value] of inputs) feeds[name] = await feedOf(value, options.runtime)
  let isLoaded = false
  const use = async (session: RuntimeSession): Promise<ReadonlyMap<string, RunTensor>> => {
    isLoaded = true
    return copied(await outputsOf(session, feeds, [...new Set(outputs.values())]))
  }
  try {
    const results = await withSession(runnable, options, use, isWhole ? options.path : undefined)
    return new Map(Array.from(outputs, ([name, output]) => [name, results.get(output)!]))
  } catch (error) {
    throw error instanceof TileworkError ? error : new RuntimeFailure(isLoaded, error)
  }
}

function outputOf(graph: Graph, name: string): string {
  return exposeValue(graph, name, graph.typeOf(name), 'compared')
}

async function feedOf(value: RunTensor, { Tensor }: TensorRuntime): Promise<unknown> {
  const { dtype, shape } = value
  const data = await dataOf(value)
  try {
    return new Tensor(dtype as never, data as never, [...shape])
  } catch (cause) {
    throw new RuntimeFailure(false, cause)
  }
}

function dataOf(value: RunTensor): Promise<unknown> {
  if (value.kind === 'string') return value.strings()
  return value.dtype === 'float16' ? value.bits() : value.toTypedArray()
}

/** The memory of results may belong to the session, which is released after the run. */
function copied(results: Readonly<Record<string, { readonly data: unknown }>>): Map<string, RunTensor> {
  return new Map(
    Object.entries(results).map(([name, result]) => {
      const { type, dims, data } = result as OnnxRuntimeTensor
      const own = { type, dims: [...dims], data: (data as Uint8Array).slice() }
      return [name, asTensor(own, { name }) as RunTensor]
    }),
  )
}
