/** The passes after which compressions find every weight: a selection of `optimize`. */
import { checkOptions, readInput, refuseOption } from '../../caller_input.js'
import { valueText } from '../../value_text.js'
import { checkModel } from '../onnx/document/check_model.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { type OptimizeChange, type OptimizePass, optimize } from './optimize.js'

/** Options of `tidy`. */
export interface TidyOptions {
  /** What is folded: movements and casts of weights (default), arithmetic of fixed shapes as well, or nothing. */
  readonly fold?: 'weights' | 'all' | 'none'
  readonly signal?: AbortSignal
}

const TIDY: readonly OptimizePass[] = [
  'sort',
  'lift-constants',
  'remove-identity',
  'remove-dropout',
  'deduplicate-initializers',
  'merge-equal-nodes',
  'remove-unused',
]

const FOLDS = {
  weights: ['fold-weights'],
  all: ['fold-weights', 'fold-shapes'],
  none: [],
} as const satisfies Record<string, readonly OptimizePass[]>

/**
 * Prepares a model for a compression, in place: weights in Constant nodes, or behind Identity, Transpose, Reshape or Cast, become
 * initializers that a quantizer finds, equal ones are stored once, and what no output needs goes. Outputs stay the same.
 *
 * @returns what each pass changed, as `optimize`
 * @throws TileworkError as `optimize`
 */
export async function tidy(model: OnnxModel, options: TidyOptions = {}): Promise<readonly OptimizeChange[]> {
  checkModel(model, 'tidy')
  checkOptions(options, 'tidy', ['fold', 'signal'])
  const { fold = 'weights', signal } = readInput('The options of tidy', () => ({ ...options }))
  if (typeof fold !== 'string' || !Object.hasOwn(FOLDS, fold))
    refuseOption('tidy', 'fold', valueText(fold), 'weights, all or none')
  return optimize(model, { only: [...TIDY, ...FOLDS[fold]], ...(signal && { signal }) })
}
