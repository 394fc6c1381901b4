/** Refuses what is no model, for functions that take one. */
import { isInstance } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { OnnxModel } from './model.js'

/** @throws TileworkError ERR_ARGUMENT */
export function checkModel(model: OnnxModel, taker: string): void {
  if (isInstance(model, OnnxModel)) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${taker} takes an OnnxModel, such as \`onnx\` of an open file; ${valueText(model)} was given.`,
  )
}
