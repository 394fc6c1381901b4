/** Options of `onnxToTmfile`. */
import { checkObject, checkOneOf, checkOptions, isList, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'

export interface OnnxToTmfileOptions {
  /**
   * Shapes of inputs by name. Every extent that the model leaves open needs one, except the first, which is 1 otherwise. A name of
   * a dimension that occurs in several inputs needs it once.
   */
  readonly inputShapes?: Readonly<Record<string, readonly number[]>>
  /** First extent of every input. */
  readonly batch?: number
  /** Element type of float weights. Default float32: builds of the engine for x86 CPUs run no others. */
  readonly weights?: 'float32' | 'float16'
  /**
   * What happens to QuantizeLinear and DequantizeLinear: `keep` (the default) writes an integer model, and refuses nodes that would
   * stay float; `dequantize` writes a float32 model.
   */
  readonly quantized?: 'keep' | 'dequantize'
}

export type Settings = Required<Omit<OnnxToTmfileOptions, 'batch'>> & Pick<OnnxToTmfileOptions, 'batch'>

const CALLER = 'onnxToTmfile'

/** @throws TileworkError ERR_ARGUMENT */
export function checkToTmfileOptions(given: OnnxToTmfileOptions): Settings {
  checkOptions(given, CALLER, ['inputShapes', 'batch', 'weights', 'quantized'])
  return readInput(`The options of ${CALLER}`, () => {
    const { inputShapes = {}, batch, weights = 'float32', quantized = 'keep' } = given
    checkObject(inputShapes, 'inputShapes is an object of shapes by name')
    for (const [name, shape] of Object.entries(inputShapes)) {
      if (isList(shape) && shape.every((extent) => isExtent(extent))) continue
      const message = `inputShapes[${valueText(name)}] is ${valueText(shape)}; it must be a list of integers from 1.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    if (batch !== undefined && !isExtent(batch)) {
      throw new TileworkError('ERR_ARGUMENT', `batch is ${valueText(batch)}; it must be an integer from 1.`)
    }
    checkOneOf(weights, 'weights', ['float32', 'float16'])
    checkOneOf(quantized, 'quantized', ['keep', 'dequantize'])
    return { inputShapes: { ...inputShapes }, weights, quantized, ...(batch !== undefined && { batch }) }
  })
}

function isExtent(extent: unknown): boolean {
  return Number.isSafeInteger(extent) && Number(extent) > 0
}
