/**
 * Models in the caller's onnxruntime. tilework itself does not run models: it writes a copy of a model to a temporary folder, and
 * the runtime opens it.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TileworkError } from '../../errors.js'
import type { Graph, OnnxModel, ValueType } from '../../models/onnx/index.js'
import { valueText } from '../../value_text.js'
import { save } from '../save.js'

/** Tensors of the runtime by input name. */
export type Feeds = Readonly<Record<string, unknown>>

/** How models are loaded: as they are, and without messages on stderr, because errors are thrown as well. */
export interface RuntimeOptions {
  readonly graphOptimizationLevel: 'disabled'
  readonly logSeverityLevel: 4
}

/** The part of `onnxruntime-node` that runs models. */
export interface OnnxRuntime {
  readonly InferenceSession: {
    create(path: string, options: RuntimeOptions): Promise<RuntimeSession>
  }
}

/** The module with its class of tensors, by which inputs are made. */
export interface TensorRuntime extends OnnxRuntime {
  readonly Tensor: new (type: never, data: never, dims: readonly number[]) => unknown
}

export interface RuntimeSession {
  run(feeds: never, fetches: readonly string[]): Promise<Readonly<Record<string, { readonly data: unknown }>>>
  release?(): Promise<void>
}

/** Tensors of the runtime by output name. */
export type Results = Awaited<ReturnType<RuntimeSession['run']>>

/** @throws TileworkError ERR_ARGUMENT unless `runtime` has what the module onnxruntime-node has */
export function checkRuntime(runtime: OnnxRuntime | undefined, call: string): void {
  if (typeof runtime?.InferenceSession?.create !== 'function') throw notTheRuntime(call)
}

/** As `checkRuntime`, for runs whose inputs are made here. */
export function checkTensorRuntime(runtime: TensorRuntime | undefined, call: string): void {
  checkRuntime(runtime, call)
  if (typeof runtime?.Tensor !== 'function') throw notTheRuntime(call)
}

function notTheRuntime(call: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `runtime of ${call} must be the module onnxruntime-node.`)
}

export interface SessionOptions {
  readonly runtime: OnnxRuntime
  /** Name of the function that the caller called, for errors. */
  readonly call: string
  readonly signal: AbortSignal | undefined
}

type SessionUse<Result> = (session: RuntimeSession) => Promise<Result>

/**
 * Opens a model in the runtime, without graph optimization, while `use` runs. Values are beside the model file, because a protobuf
 * message holds at most 2 GiB.
 *
 * @param path - file of the model; where the runtime refuses it, for example because of links among its data files, or where it is
 * absent, the runtime opens a copy
 */
export async function withSession<Result>(
  model: OnnxModel,
  options: SessionOptions,
  use: SessionUse<Result>,
  path?: string,
): Promise<Result> {
  const session = path === undefined ? undefined : await openSession(path, options).catch(() => undefined)
  if (session) return useSession(session, use)
  const { signal, call } = options
  const folder = await mkdtemp(join(tmpdir(), `tilework-${call}-`))
  try {
    const copy = join(folder, 'model.onnx')
    await save(copy, model, { external: { location: 'weights' }, ...(signal && { signal }) })
    return await useSession(await openSession(copy, options), use)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function openSession(path: string, { runtime, call }: SessionOptions): Promise<RuntimeSession> {
  const session = await runtime.InferenceSession.create(path, {
    graphOptimizationLevel: 'disabled',
    logSeverityLevel: 4,
  })
  if (typeof session?.run !== 'function') throw notTheRuntime(call)
  return session
}

async function useSession<Result>(session: RuntimeSession, use: SessionUse<Result>): Promise<Result> {
  try {
    return await use(session)
  } finally {
    await session.release?.()
  }
}

/**
 * Some outputs of a model. Before 1.24, onnxruntime-node returns them under the names of the first outputs of the model.
 *
 * @throws TileworkError ERR_UNSUPPORTED where an output is missing; errors of the runtime
 */
export async function outputsOf(
  session: RuntimeSession,
  feeds: Feeds,
  names: readonly string[],
): Promise<Results> {
  const results = await session.run(feeds as never, names)
  const missing = names.find((name) => !Object.hasOwn(results, name))
  if (missing === undefined) return results
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `The runtime did not return the output ${valueText(missing)}; onnxruntime-node returns some of the outputs from 1.24 on.`,
  )
}

/**
 * Makes a value an output, so that a run returns it.
 *
 * @returns the name of the output, which is the value's own where it is an output already
 */
export function exposeValue(graph: Graph, name: string, type: ValueType, suffix: string): string {
  if (graph.outputNames.has(name)) return name
  const output = graph.uniqueName(`${name}_${suffix}`)
  graph.addNode({ opType: 'Identity', inputs: [name], outputs: [output] })
  graph.addOutput(output, type)
  return output
}
