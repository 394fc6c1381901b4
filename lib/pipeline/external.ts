/** ONNX models with their values in files beside them, and in one file again. */
import type { Writable } from 'node:stream'
import { checkObject, checkOptions, readInput } from '../caller_input.js'
import type { ExternalOptions, OnnxModel } from '../formats/onnx/index.js'
import type { OpenFile } from './open.js'
import { type Saveable, type SaveOptions, save } from './save.js'

export type InternalizeOptions = Pick<SaveOptions, 'signal' | 'onProgress'>

export type ExternalizeOptions = ExternalOptions & InternalizeOptions

/**
 * Saves an ONNX model whose large initializers lie in files beside it, of any graph. What has external data already is
 * moved to the new files. Data files are complete before the model takes its name, and no file that is there is written
 * over but the model itself.
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
 * Saves an ONNX model with all values in it, wherever they lay.
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
