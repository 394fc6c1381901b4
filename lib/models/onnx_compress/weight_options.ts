/** Options of `quantizeWeights`, checked. */
import { checkOptions, readInput, refuseOption } from '../../caller_input.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import type { BlockBits } from '../../tensor/number_blocks.js'
import { valueText } from '../../value_text.js'
import type { Bnb4Kind } from './block_weights.js'
import type { OpsetOptions } from './require_opset.js'

export interface QuantizeWeightsOptions extends OpsetOptions {
  /** Bits of a code. Default 4. */
  readonly bits?: 2 | 4 | 8
  /** Weights that share a scale. A power of two from 16; default 32, for bnb4 64. */
  readonly blockSize?: number
  /** Whether 0 is the middle of the codes, without zero points. Default true. */
  readonly symmetric?: boolean
  /**
   * `matmulnbits` (default): onnxruntime's MatMulNBits. `qdq`: DequantizeLinear of ONNX (operator set 21) before the MatMul.
   * `bnb4`: onnxruntime's MatMulBnb4.
   */
  readonly format?: 'matmulnbits' | 'qdq' | 'bnb4'
  /** Codes of `bnb4`. Default `nf4`. */
  readonly bnb4?: 'fp4' | 'nf4'
  /** Whether tables of Gather are quantized, too. A table that a MatMul uses transposed is stored once. Default false. */
  readonly gather?: boolean
  /** Whether Gemm is quantized, too, as a product and an Add of its third input. Default false. */
  readonly gemm?: boolean
  /**
   * Whether Conv with a kernel of one element is quantized, too, as a product between two Transposes, which move the channels to the
   * last axis and back. Default false.
   */
  readonly conv?: boolean
  /** Least precision inside MatMulNBits: 0 unset (default), 1 float32, 2 float16, 3 bfloat16, 4 int8. */
  readonly accuracyLevel?: number
  readonly nodes?: {
    /** Names of nodes that stay. As for onnxruntime’s tool, a name that no node has is none to keep. */
    readonly exclude?: readonly string[]
    /** Names of the only nodes that are quantized. */
    readonly include?: readonly string[]
    /** Bits of single nodes, by name. */
    readonly bits?: Readonly<Record<string, 2 | 4 | 8>>
  }
  /** Ends the call. The save, which reads the weights again, takes a signal of its own. */
  readonly signal?: AbortSignal
}

export interface WeightSettings {
  readonly bits: BlockBits
  readonly blockSize: number
  readonly symmetric: boolean
  readonly format: 'matmulnbits' | 'qdq' | 'bnb4'
  readonly bnb4: Bnb4Kind
  readonly gather: boolean
  readonly gemm: boolean
  readonly conv: boolean
  readonly accuracyLevel: number
  readonly excludes: ReadonlySet<string>
  readonly includes: ReadonlySet<string> | undefined
  readonly bitsOf: ReadonlyMap<string, BlockBits>
  readonly raiseOpset: boolean
  readonly signal: AbortSignal | undefined
}

const NAMES = [
  'bits',
  'blockSize',
  'symmetric',
  'format',
  'bnb4',
  'gather',
  'gemm',
  'conv',
  'accuracyLevel',
  'nodes',
  'raiseOpset',
  'signal',
] as const
const BITS: readonly unknown[] = [2, 4, 8]

/** @throws TileworkError ERR_ARGUMENT */
export function checkWeightOptions(options: QuantizeWeightsOptions): WeightSettings {
  checkOptions(options, 'quantizeWeights', NAMES)
  const given = readInput('The options of quantizeWeights', () => ({ ...options }))
  const { bits = 4, symmetric = true, format = 'matmulnbits', bnb4 = 'nf4', gather = false } = given
  const { blockSize = format === 'bnb4' ? 64 : 32, accuracyLevel = 0, nodes = {} } = given
  const { gemm = false, conv = false, raiseOpset = false, signal } = given
  const require = (isRight: boolean, option: string, value: unknown, allowed: string): void => {
    if (!isRight) refuse(option, value, allowed)
  }
  require(BITS.includes(bits), 'bits', bits, '2, 4 or 8')
  require(isBlockSize(blockSize), 'blockSize', blockSize, 'a power of two from 16')
  require(['matmulnbits', 'qdq', 'bnb4'].includes(format), 'format', format, 'matmulnbits, qdq or bnb4')
  require(bnb4 === 'nf4' || bnb4 === 'fp4', 'bnb4', bnb4, 'nf4 or fp4')
  require([0, 1, 2, 3, 4].includes(accuracyLevel), 'accuracyLevel', accuracyLevel, 'an integer from 0 to 4')
  for (const [name, value] of Object.entries({ symmetric, gather, gemm, conv, raiseOpset })) {
    require(typeof value === 'boolean', name, value, 'true or false')
  }
  require(!(gather && format !== 'matmulnbits'), 'gather', gather, `false for ${format}`)
  checkOptions(nodes, 'nodes of quantizeWeights', ['exclude', 'include', 'bits'])
  const { exclude = [], include, bits: bitsOf = {} } = nodes
  checkTexts('nodes.exclude', exclude)
  if (include !== undefined) checkTexts('nodes.include', include)
  for (const [name, value] of Object.entries(bitsOf)) {
    require(BITS.includes(value), `nodes.bits of ${valueText(name)}`, value, '2, 4 or 8')
  }
  return {
    bits,
    blockSize,
    symmetric,
    format,
    bnb4,
    gather,
    gemm,
    conv,
    accuracyLevel,
    excludes: new Set(exclude),
    includes: include && new Set(include),
    bitsOf: new Map(Object.entries(bitsOf)),
    raiseOpset,
    signal,
  }
}

export function isBlockSize(value: unknown): boolean {
  return typeof value === 'number' && value >= 16 && Number.isInteger(Math.log2(value))
}

function refuse(option: string, value: unknown, allowed: string): never {
  refuseOption('quantizeWeights', option, valueText(value), allowed)
}
