/** The targets of `compress --to`: their steps, and the file suffix that transformers.js uses. */
import type {
  CompressReport,
  OnnxModel,
  QuantizeDynamicOptions,
  QuantizeStaticOptions,
  QuantizeWeightsOptions,
  ToFloat16Options,
  ToFloat32Options,
  WeightErrorOptions,
} from '../../onnx.js'
import {
  convertOpset,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
  toFloat16,
  toFloat32,
} from '../../onnx.js'

/** Flags that change a target, as options of the library. */
export interface TargetOptions {
  /** Version of the operator set to which the model is converted first. */
  readonly opset?: number
  readonly float32: ToFloat32Options
  readonly float16: ToFloat16Options
  readonly weights: QuantizeWeightsOptions
  readonly dynamic: QuantizeDynamicOptions
  /** Absent without ranges. */
  readonly static?: QuantizeStaticOptions
}

type Step = (model: OnnxModel, options: TargetOptions) => Promise<CompressReport>

export interface Target {
  readonly suffix: string
  /** Form of the quantized weights, for `--sensitivity`; absent where weights lose nothing. */
  readonly form?: WeightErrorOptions['form']
  /** Bits of blocks; default 4. */
  readonly bits?: 2
  readonly steps: readonly Step[]
  /** What a model lacks if the target changes nothing; completes "the model has no …". */
  readonly wants: string
  /** Largest error of an output that `--verify` takes, relative to the largest value of the output. */
  readonly tolerance: number
}

/** Rounding to 11 bits (2^-11) at every node: at most 0.002 in most nets, 0.018 in one that begins with a Fourier transform. */
const FLOAT16_TOLERANCE = 0.02
/** Weights and activations of 8 bits: 0.03 in nine of ten nets. */
const CODES_TOLERANCE = 0.1
/**
 * Weights of 4 bits: 0.06 to 0.3 in most nets. The same for 2 bits: weights that were trained for them lose no more, and those of
 * others cannot be told from wrong ones.
 */
const BLOCKS_TOLERANCE = 0.4

const FULL = 'float16 or bfloat16 value that can be float32'
const HALF = 'float32 value that can be float16'
const BLOCKS = 'MatMul with a float weight that is a matrix'
const CODES = 'MatMul, Gemm, Conv, Gather or LSTM with a float32 weight'

const full: Step = (model, { float32 }) => toFloat32(model, float32)

const half: Step = (model, { float16 }) => toFloat16(model, float16)

const blocks =
  (preset: QuantizeWeightsOptions): Step =>
  (model, { weights }) =>
    quantizeWeights(model, { ...preset, ...weights })

const codes =
  (preset: QuantizeDynamicOptions): Step =>
  (model, { dynamic }) =>
    quantizeDynamic(model, { ...preset, ...dynamic })

/** With ranges, activations are quantized, too. */
const standard: Step = (model, options) =>
  options.static ? quantizeStatic(model, options.static) : blocks({ format: 'qdq' })(model, options)

export const TARGETS = {
  fp32: { suffix: '_fp32', wants: FULL, tolerance: FLOAT16_TOLERANCE, steps: [full] },
  fp16: { form: 'float16', suffix: '_fp16', wants: HALF, tolerance: FLOAT16_TOLERANCE, steps: [half] },
  q8: {
    form: 'int8',
    suffix: '_quantized',
    wants: CODES,
    tolerance: CODES_TOLERANCE,
    steps: [codes({ weightType: 'auto' })],
  },
  int8: {
    form: 'int8',
    suffix: '_int8',
    wants: CODES,
    tolerance: CODES_TOLERANCE,
    steps: [codes({ weightType: 'int8' })],
  },
  uint8: {
    form: 'uint8',
    suffix: '_uint8',
    wants: CODES,
    tolerance: CODES_TOLERANCE,
    steps: [codes({ weightType: 'uint8' })],
  },
  q4: { form: 'blocks', suffix: '_q4', wants: BLOCKS, tolerance: BLOCKS_TOLERANCE, steps: [blocks({})] },
  q4f16: {
    form: 'blocks',
    suffix: '_q4f16',
    wants: `${BLOCKS}, and no ${HALF}`,
    tolerance: BLOCKS_TOLERANCE,
    steps: [blocks({}), half],
  },
  q2: {
    form: 'blocks',
    bits: 2,
    suffix: '_q2',
    wants: BLOCKS,
    tolerance: BLOCKS_TOLERANCE,
    steps: [blocks({ bits: 2 })],
  },
  q2f16: {
    form: 'blocks',
    bits: 2,
    suffix: '_q2f16',
    tolerance: BLOCKS_TOLERANCE,
    wants: `${BLOCKS}, and no ${HALF}`,
    steps: [blocks({ bits: 2 }), half],
  },
  bnb4: {
    form: 'bnb4',
    suffix: '_bnb4',
    wants: BLOCKS,
    tolerance: BLOCKS_TOLERANCE,
    steps: [blocks({ format: 'bnb4' })],
  },
  qdq: {
    form: 'blocks',
    suffix: '_qdq',
    wants: 'node that qdq quantizes',
    tolerance: BLOCKS_TOLERANCE,
    steps: [standard],
  },
} as const satisfies Record<string, Target>

export type TargetName = keyof typeof TARGETS

export const TARGET_NAMES = Object.keys(TARGETS) as TargetName[]

/** Applies all steps of a target to the model. The report is the sum of the reports of the steps. */
export async function compressTo(
  model: OnnxModel,
  name: TargetName,
  options: TargetOptions,
): Promise<CompressReport> {
  const reports: CompressReport[] = []
  const raised = options.opset === undefined ? undefined : convertOpset(model, options.opset)
  for (const step of TARGETS[name].steps) reports.push(await step(model, options))
  const opset = raised ? { from: raised.from, to: options.opset! } : reports.find((each) => each.opset)?.opset
  return {
    ...(opset && { opset }),
    nodes: reports.flatMap(({ nodes }) => nodes),
    tensors: reports.flatMap(({ tensors }) => tensors),
    bytesBefore: reports[0]!.bytesBefore,
    bytesAfter: reports.at(-1)!.bytesAfter,
  }
}

/** @param weightType - of static quantization, which is qdq with ranges; weights of 4 bits lose what those in blocks lose */
export function toleranceOf(name: TargetName, weightType: string | undefined): number {
  if (name !== 'qdq' || weightType === undefined) return TARGETS[name].tolerance
  return weightType.endsWith('int4') ? BLOCKS_TOLERANCE : CODES_TOLERANCE
}
