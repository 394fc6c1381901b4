/** Options of `mergeModels`, checked. */
import { checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkInt64, checkList, checkText, checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import { valueText } from '../../../value_text.js'

export interface MergeOptions {
  /** Outputs of the first model with the inputs of the second that take them, by the names without prefix. Default: none. */
  readonly ioMap?: readonly (readonly [output: string, input: string])[]
  /**
   * Inputs of the new model in their order, by the names with prefix. Default: the inputs of the first model, then the
   * unconnected ones of the second.
   */
  readonly inputs?: readonly string[]
  /**
   * Outputs of the new model in their order, by the names with prefix; what none of them needs is left out. Default: the
   * unconnected outputs of the first model, then the outputs of the second.
   */
  readonly outputs?: readonly string[]
  /** Put before all names of the first model; see `addPrefix`. */
  readonly prefix1?: string
  /** As `prefix1`, for the second model. */
  readonly prefix2?: string
  /** Name of the graph. Default: both names, joined by `_`. */
  readonly name?: string
  /** Default: both texts, joined by an empty line. */
  readonly docString?: string
  /** Default `tilework`. */
  readonly producerName?: string
  /** Default: none. */
  readonly producerVersion?: string
  /** Default: none. */
  readonly domain?: string
  /** Default 1. */
  readonly modelVersion?: number | bigint
}

const TEXTS = [
  'prefix1',
  'prefix2',
  'name',
  'docString',
  'producerName',
  'producerVersion',
  'domain',
] as const
const OPTIONS = ['ioMap', 'inputs', 'outputs', ...TEXTS, 'modelVersion'] as const

/** A copy of the options. @throws TileworkError ERR_ARGUMENT */
export function checkMergeOptions(options: MergeOptions): MergeOptions {
  checkOptions(options, 'mergeModels', OPTIONS)
  return readInput('The options of mergeModels', () => {
    const { ioMap, inputs, outputs, ...given } = { ...options }
    for (const name of TEXTS) if (given[name] !== undefined) checkText(`${name} of mergeModels`, given[name])
    if (given.modelVersion !== undefined) checkInt64('modelVersion of mergeModels', given.modelVersion)
    return {
      ...given,
      ...(ioMap !== undefined && { ioMap: Array.from(checkList('ioMap of mergeModels', ioMap), pairOf) }),
      ...(inputs !== undefined && { inputs: [...checkTexts('inputs of mergeModels', inputs)] }),
      ...(outputs !== undefined && { outputs: [...checkTexts('outputs of mergeModels', outputs)] }),
    }
  })
}

function pairOf(pair: unknown): readonly [string, string] {
  const [output, input, ...others] = checkTexts('ioMap of mergeModels', pair)
  if (output !== undefined && input !== undefined && others.length === 0) return [output, input]
  throw new TileworkError(
    'ERR_ARGUMENT',
    `ioMap of mergeModels has ${valueText(pair)}; it must have pairs [output of the first model, input of the second].`,
  )
}
