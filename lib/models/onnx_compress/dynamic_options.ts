/** Options of `quantizeDynamic`, checked. */
import { checkOptions, readInput, refuseOption } from '../../caller_input.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import { valueText } from '../../value_text.js'
import type { ByteType } from './code_parameters.js'
import type { OpsetOptions } from './require_opset.js'

/** Operators that `quantizeDynamic` knows. */
export type DynamicOperator = 'Conv' | 'MatMul' | 'Gemm' | 'Gather' | 'LSTM'

const DYNAMIC_OPERATORS: readonly DynamicOperator[] = ['Conv', 'MatMul', 'Gemm', 'Gather', 'LSTM']

export interface QuantizeDynamicOptions extends OpsetOptions {
  /** Element type of weights. `auto` (default): uint8 for models with Conv or fused attention, else int8. */
  readonly weightType?: 'int8' | 'uint8' | 'auto'
  /** One scale per column of a MatMul, which is more exact. Default false. */
  readonly perChannel?: boolean
  /** One bit less for weights, for x86 processors without VNNI. Default false. */
  readonly reduceRange?: boolean
  /** Operators to quantize. Default: all that are known. */
  readonly ops?: readonly DynamicOperator[]
  /** Names of nodes that stay. As for onnxruntime’s tool, a name that no node has is none to keep. */
  readonly exclude?: readonly string[]
  /** Whether graphs inside nodes are quantized, too. Default true. */
  readonly subgraphs?: boolean
  readonly signal?: AbortSignal
}

export interface DynamicSettings {
  readonly weightType: ByteType | 'auto'
  readonly perChannel: boolean
  readonly reduceRange: boolean
  readonly ops: ReadonlySet<string>
  readonly excludes: ReadonlySet<string>
  readonly subgraphs: boolean
  readonly raiseOpset: boolean
  readonly signal: AbortSignal | undefined
}

const NAMES = [
  'weightType',
  'perChannel',
  'reduceRange',
  'ops',
  'exclude',
  'subgraphs',
  'raiseOpset',
  'signal',
] as const

/** @throws TileworkError ERR_ARGUMENT */
export function checkDynamicOptions(options: QuantizeDynamicOptions): DynamicSettings {
  checkOptions(options, 'quantizeDynamic', NAMES)
  const given = readInput('The options of quantizeDynamic', () => ({ ...options }))
  const { weightType = 'auto', perChannel = false, reduceRange = false, subgraphs = true } = given
  const { raiseOpset = false, ops = DYNAMIC_OPERATORS, exclude = [], signal } = given
  if (!['int8', 'uint8', 'auto'].includes(weightType)) refuse('weightType', weightType, 'int8, uint8 or auto')
  for (const [name, value] of Object.entries({ perChannel, reduceRange, subgraphs, raiseOpset })) {
    if (typeof value !== 'boolean') refuse(name, value, 'true or false')
  }
  checkTexts('ops', ops)
  checkTexts('exclude', exclude)
  const unknown = ops.find((each) => !DYNAMIC_OPERATORS.includes(each))
  if (unknown !== undefined) refuse('ops', unknown, `of ${DYNAMIC_OPERATORS.join(', ')}`)
  return {
    weightType,
    perChannel,
    reduceRange,
    ops: new Set(ops),
    excludes: new Set(exclude),
    subgraphs,
    raiseOpset,
    signal,
  }
}

function refuse(option: string, value: unknown, allowed: string): never {
  refuseOption('quantizeDynamic', option, valueText(value), allowed)
}
