/** The models of a comparison: what the caller gives, opened. */
import { isInstance } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { OnnxModel } from '../../models/onnx/index.js'
import { valueText } from '../../value_text.js'
import {
  type Input,
  type OpenFile,
  type OpenOptions,
  open,
  openedFile,
  pathOf,
  remoteUrlOf,
} from '../open.js'

/** A model to run. */
export type ComparedModel = Input | OpenFile | OnnxModel

export interface Side {
  readonly model: OnnxModel
  /** The file of the model, where it is one of this machine. */
  readonly path: string | undefined
  close(): void
}

/**
 * @param name - of the model, in errors
 * @throws TileworkError as `open`; ERR_UNSUPPORTED for a file without an ONNX model; ERR_NO_DATA for weights without values
 */
export async function openModel(
  given: ComparedModel,
  name: string,
  options: OpenOptions = {},
): Promise<Side> {
  if (isInstance(given, OnnxModel)) {
    checkData(given, name)
    return { model: given, path: undefined, close: () => undefined }
  }
  const isOpen = openedFile(given) !== undefined
  const file = isOpen ? (given as OpenFile) : await open(given as Input, options)
  const close = (): void => {
    if (!isOpen) file.close()
  }
  try {
    if (!file.onnx) {
      throw new TileworkError(
        'ERR_UNSUPPORTED',
        `${name} is ${file.format} without an ONNX model; onnxruntime runs ONNX models.`,
      )
    }
    checkData(file.onnx, name)
    // Files of the caller's own are not in the folder of the model, where the runtime looks for them.
    const isFile = !isOpen && options.resolve === undefined && !remoteUrlOf(given)
    return { model: file.onnx, path: isFile ? pathOf(given) : undefined, close }
  } catch (error) {
    close()
    throw error
  }
}

/** A runtime would refuse the model with a text that names no weight. */
function checkData({ graph }: OnnxModel, name: string): void {
  for (const each of [graph, ...graph.subgraphs()]) {
    for (const initializer of each.initializers()) {
      if (initializer.hasData) continue
      throw new TileworkError(
        'ERR_NO_DATA',
        `The weight ${valueText(initializer.name)} of ${name} has no values, so the model does not run.`,
      )
    }
  }
}
