/** Options of `toFloat16`, checked. */
import { checkOptions, readInput, refuseOption } from '../../caller_input.js'
import { TileworkError } from '../../errors.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import { nearestText } from '../../nearest_names.js'
import { valueText } from '../../value_text.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { OPERATOR_SLOTS } from '../onnx/infer/operator_slots.js'
import { type Clip, DEFAULT_CLIP, type HalfDtype } from './half_values.js'

export interface ToFloat16Options {
  /** Default `float16`. The CPU of onnxruntime runs almost no operator in bfloat16. */
  readonly dtype?: 'float16' | 'bfloat16'
  /** Whether inputs and outputs of the model stay float32: all (default), none, or those of the names. */
  readonly keepIo?: boolean | readonly string[]
  /**
   * What stays float32. `reference` (default): the operators that onnxruntime's tool leaves; `minimal`: only what has no
   * version for the type. Or operators and nodes by name, added to `reference`, or alone with `only`.
   */
  readonly block?: 'reference' | 'minimal' | Float16Block
  /** Magnitudes into which finite values are moved. Default: the smallest and the largest that the type represents. */
  readonly clip?: { readonly min?: number; readonly max?: number }
  readonly signal?: AbortSignal
}

/** Operators and nodes that stay float32. */
export interface Float16Block {
  readonly ops?: readonly string[]
  readonly nodes?: readonly string[]
  /** True: nothing else stays but what has no version for the type. */
  readonly only?: boolean
}

/** Operators that onnxruntime's tool leaves in float32; Resize has its scales as float32 by its signature. */
export const REFERENCE_BLOCK: readonly string[] = [
  'ArrayFeatureExtractor',
  'Binarizer',
  'CastMap',
  'CategoryMapper',
  'CumSum',
  'DictVectorizer',
  'FeatureVectorizer',
  'Imputer',
  'LabelEncoder',
  'LinearClassifier',
  'LinearRegressor',
  'Max',
  'Min',
  'NonMaxSuppression',
  'Normalizer',
  'OneHotEncoder',
  'RandomUniformLike',
  'Range',
  'RoiAlign',
  'SVMClassifier',
  'SVMRegressor',
  'Scaler',
  'TopK',
  'TreeEnsemble',
  'TreeEnsembleClassifier',
  'TreeEnsembleRegressor',
  'Upsample',
  'ZipMap',
]

export interface Float16Settings {
  readonly dtype: HalfDtype
  readonly keeps: (name: string) => boolean
  readonly blockedOps: ReadonlySet<string>
  readonly blockedNodes: ReadonlySet<string>
  readonly clip: Clip
  readonly signal: AbortSignal | undefined
}

const NAMES = ['dtype', 'keepIo', 'block', 'clip', 'signal'] as const

/** @throws TileworkError ERR_ARGUMENT */
export function checkFloat16Options(options: ToFloat16Options, model: OnnxModel): Float16Settings {
  checkOptions(options, 'toFloat16', NAMES)
  const given = readInput('The options of toFloat16', () => ({ ...options }))
  const { dtype = 'float16', keepIo = true, block = 'reference', signal } = given
  if (dtype !== 'float16' && dtype !== 'bfloat16') refuse('dtype', dtype, 'float16 or bfloat16')
  if (typeof keepIo !== 'boolean') checkTexts('keepIo', keepIo)
  const kept = typeof keepIo === 'boolean' ? undefined : new Set(keepIo)
  const { ops, nodes } = checkBlock(block, model)
  return {
    dtype,
    keeps: (name) => kept?.has(name) ?? keepIo === true,
    blockedOps: new Set(ops),
    blockedNodes: new Set(nodes),
    clip: checkClip(dtype, given.clip),
    signal,
  }
}

function checkBlock(
  block: NonNullable<ToFloat16Options['block']>,
  model: OnnxModel,
): Required<Omit<Float16Block, 'only'>> {
  if (block === 'reference') return { ops: REFERENCE_BLOCK, nodes: [] }
  if (block === 'minimal') return { ops: [], nodes: [] }
  if (typeof block !== 'object') refuse('block', block, 'reference, minimal, or { ops, nodes, only }')
  checkOptions(block, 'block of toFloat16', ['ops', 'nodes', 'only'])
  const { ops = [], nodes = [], only = false } = block
  checkTexts('block.ops', ops)
  checkTexts('block.nodes', nodes)
  refuseUnknownOperators(ops, model)
  return { ops: only ? ops : [...REFERENCE_BLOCK, ...ops], nodes }
}

/** A name of no operator is a typing error: what it should protect would be changed. */
function refuseUnknownOperators(ops: readonly string[], model: OnnxModel): void {
  if (ops.length === 0) return
  const known = new Set([...REFERENCE_BLOCK, ...Object.values(OPERATOR_SLOTS).flatMap(Object.keys)])
  for (const { nodes } of model.graphs()) for (const { opType } of nodes) known.add(opType)
  const unknown = ops.find((each) => !known.has(each))
  if (unknown === undefined) return
  const message = `${valueText(unknown)}, which is to stay float32, is an operator neither of the model nor of ONNX or onnxruntime`
  throw new TileworkError('ERR_ARGUMENT', message + nearestText(unknown, known))
}

function checkClip(dtype: HalfDtype, given: ToFloat16Options['clip'] = {}): Clip {
  checkOptions(given, 'clip of toFloat16', ['min', 'max'])
  const allowed = DEFAULT_CLIP[dtype]
  const { min = allowed.min, max = allowed.max } = given
  if (!(min >= allowed.min && min <= max && max <= allowed.max)) {
    refuse('clip', `${valueText(min)} to ${valueText(max)}`, `within ${allowed.min} to ${allowed.max}`)
  }
  return { min, max }
}

function refuse(option: string, value: unknown, allowed: string): never {
  refuseOption('toFloat16', option, typeof value === 'string' ? value : valueText(value), allowed)
}
