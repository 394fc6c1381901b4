/** Options of `tmfileToOnnx`. */
import { checkObject, checkOneOf, checkOptions, isList, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'

export interface TmfileToOnnxOptions {
  /**
   * Shapes of inputs by name, in the order of axes that the file has. An input needs one if the file leaves more open than its
   * first extent, which is 1 by default.
   */
  readonly inputShapes?: Readonly<Record<string, readonly number[]>>
  /**
   * First extent of every input: a number, or the name of a dimension that is set later. Reshape targets that begin with the
   * old one follow.
   */
  readonly batch?: number | string
  /** Element type of weights that are float16 in the file: converted (the default), or kept, with a Cast behind each. */
  readonly weights?: 'float32' | 'float16'
  /** Whether integer activations are quantized in ONNX too (`keep`, the default), or become floats. */
  readonly quantized?: 'keep' | 'dequantize'
  /** Element types of quantized inputs and outputs of the graph: those of the file (the default), or float32. */
  readonly ends?: 'stored' | 'float32'
  /** Order of axes of the inputs of an NHWC model. Default NCHW, as in the runtime. */
  readonly inputLayout?: 'NCHW' | 'NHWC'
  /** Whether constants whose data is not in the file become zeros (the default), or are refused. */
  readonly absentWeights?: 'zeros' | 'refuse'
}

export type Settings = Required<Omit<TmfileToOnnxOptions, 'batch'>> & Pick<TmfileToOnnxOptions, 'batch'>

const CALLER = 'tmfileToOnnx'

/** The choices of each option, the default first. */
const CHOICES = {
  weights: ['float32', 'float16'],
  quantized: ['keep', 'dequantize'],
  ends: ['stored', 'float32'],
  inputLayout: ['NCHW', 'NHWC'],
  absentWeights: ['zeros', 'refuse'],
} as const

/** Names of the options. */
export const TO_ONNX_OPTIONS = [
  'inputShapes',
  'batch',
  ...(Object.keys(CHOICES) as (keyof typeof CHOICES)[]),
] as const

/** @throws TileworkError ERR_ARGUMENT */
export function checkToOnnxOptions(options: TmfileToOnnxOptions): Settings {
  checkOptions(options, CALLER, TO_ONNX_OPTIONS)
  return readInput(`The options of ${CALLER}`, () => {
    const { inputShapes = {}, batch } = options
    checkShapes(inputShapes)
    if (batch !== undefined && !isBatch(batch)) {
      const message = `batch is ${valueText(batch)}; it must be an integer from 1, or the name of a dimension.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    const chosen = Object.entries(CHOICES).map(([name, choices]) => [name, choiceOf(name, choices, options)])
    return {
      ...(Object.fromEntries(chosen) as Omit<Settings, 'inputShapes' | 'batch'>),
      inputShapes: { ...inputShapes },
      ...(batch !== undefined && { batch }),
    }
  })
}

function checkShapes(shapes: Readonly<Record<string, readonly number[]>>): void {
  checkObject(shapes, 'inputShapes is an object of shapes by name')
  for (const [name, shape] of Object.entries(shapes)) {
    if (isList(shape) && shape.length > 0 && shape.every(isExtent)) continue
    const message = `inputShapes[${valueText(name)}] is ${valueText(shape)}; it must be a list of integers from 1.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
}

function isExtent(extent: unknown): boolean {
  return Number.isInteger(extent) && Number(extent) > 0 && Number(extent) < 2 ** 31
}

function isBatch(batch: unknown): boolean {
  return typeof batch === 'string' ? batch !== '' : isExtent(batch)
}

function choiceOf(name: string, choices: readonly string[], options: TmfileToOnnxOptions): string {
  const choice: unknown = options[name as keyof TmfileToOnnxOptions]
  return choice === undefined ? choices[0]! : checkOneOf(choice, name, choices)
}
