/** Moves the values of ONNX models into data files beside the model, and back into it. */
import type { Writable } from 'node:stream'
import { checkObject, checkOptions, readInput } from '../caller_input.js'
import type { ExternalOptions, OnnxModel } from '../formats/onnx/index.js'
import type { OpenFile } from './open.js'
import { type Saveable, type SaveOptions, save } from './save.js'

export type InternalizeOptions = Pick<SaveOptions, 'signal' | 'onProgress'>

export type ExternalizeOptions = ExternalOptions & InternalizeOptions

/**
 * Saves an ONNX model with its large initializers, of every graph, in files beside it. Existing external data moves to the
 * new files. Data files are complete before the model file appears. No existing file is overwritten but the model.
 *
 * @param content - a model, an open file, or tensors that become a model
 * @throws TileworkError as `save`, ERR_PATH_ESCAPE for a location that leads out of the folder of `target`
 */
export async function externalize(
  target: string | URL,
  content: Saveable,
  options: ExternalizeOptions = {},
): Promise<void> {
  checkObject(options, 'The options of externalize are those of the data files, signal and onProgress')
  const { signal, onProgress, ...external } = readInput('The options of externalize', () => ({ ...options }))
  await save(target, content, { format: 'onnx', external, ...running({ signal, onProgress }) })
}

/**
 * Saves an ONNX model as one file with all its values.
 *
 * @throws TileworkError as `save`, ERR_LIMIT for more than 2 GiB
 */
export async function internalize(
  target: string | URL | WritableStream<Uint8Array> | Writable,
  content: OpenFile | OnnxModel,
  options: InternalizeOptions = {},
): Promise<void> {
  checkOptions(options, 'internalize', ['signal', 'onProgress'])
  const { signal, onProgress } = readInput('The options of internalize', () => ({ ...options }))
  await save(target, content, { format: 'onnx', external: false, ...running({ signal, onProgress }) })
}

function running({
  signal,
  onProgress,
}: {
  [Name in keyof InternalizeOptions]: InternalizeOptions[Name] | undefined
}): InternalizeOptions {
  return { ...(signal !== undefined && { signal }), ...(onProgress !== undefined && { onProgress }) }
}
