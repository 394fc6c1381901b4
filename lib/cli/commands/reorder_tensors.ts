/** The reorder and cast of `convert`: from what the stored elements are said to be, to what is to be written. */
import {
  asLayout,
  cast,
  type DenseTensor,
  type Dtype,
  reorder,
  type Tensor,
  TileworkError,
} from '../../index.js'
import type { Reordered } from '../text/undo_command.js'

/** The options that say which layouts are meant. */
export interface ReorderChoice {
  readonly layout?: string
  readonly fromLayout?: string
  readonly shape?: readonly number[]
  /** Of `layout` where it is given, else of `fromLayout`. */
  readonly padLower?: readonly number[]
  readonly padUpper?: readonly number[]
  /** Of `fromLayout`. */
  readonly fromPadLower?: readonly number[]
  readonly fromPadUpper?: readonly number[]
  readonly as?: 'weights'
  /** Element type to write. */
  readonly dtype?: Dtype
}

/** Tensors that an error names before it stops. */
const REFUSALS_IN_MESSAGE = 5

/** @throws TileworkError ERR_ARGUMENT for options that mean nothing together */
export function checkReorderOptions(choice: ReorderChoice): void {
  const { layout, fromLayout, shape, padLower, padUpper, fromPadLower, fromPadUpper, as } = choice
  if (fromLayout !== undefined && shape === undefined) {
    refuse('--from-layout needs --shape: the logical shape is not in the stored elements.')
  }
  if (fromLayout === undefined && (shape ?? fromPadLower ?? fromPadUpper) !== undefined) {
    refuse('--shape, --from-pad-lower and --from-pad-upper need --from-layout.')
  }
  if (layout === undefined && fromLayout === undefined && (padLower ?? padUpper ?? as) !== undefined) {
    refuse('--pad-lower, --pad-upper and --as need --layout or --from-layout.')
  }
  if (layout === undefined && (padLower ?? padUpper) && (fromPadLower ?? fromPadUpper)) {
    refuse(
      'Without --layout, --pad-lower and --pad-upper mean --from-pad-lower and --from-pad-upper; use one pair.',
    )
  }
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

/**
 * Every tensor with what it becomes, nothing computed yet.
 *
 * @throws TileworkError that names every tensor which does not fit, with the code of the first
 */
export function reorderAll(
  tensors: readonly Tensor[],
  choice: ReorderChoice,
  isSelection: boolean,
): Reordered[] {
  return each(tensors, isSelection, (tensor) => reorderOne(tensor, choice))
}

/**
 * Every tensor as `dtype`, in the layout it has; a tensor that has this type stays as it is.
 *
 * @throws TileworkError as `reorderAll`
 */
export function castAll(tensors: readonly Tensor[], dtype: Dtype, isSelection: boolean): Tensor[] {
  return each(tensors, isSelection, (tensor) => (tensor.dtype === dtype ? tensor : cast(tensor, dtype)))
}

function each<Result>(
  tensors: readonly Tensor[],
  isSelection: boolean,
  convert: (tensor: Tensor) => Result,
): Result[] {
  const refused: { readonly tensor: Tensor; readonly error: TileworkError }[] = []
  const done: Result[] = []
  for (const tensor of tensors) {
    try {
      done.push(convert(tensor))
    } catch (error) {
      // An unknown name is wrong for every tensor alike, so it is told as it is.
      if (!(error instanceof TileworkError) || error.code === 'ERR_LAYOUT_NAME') throw error
      refused.push({ tensor, error })
    }
  }
  if (refused.length > 0) throw refusal(refused, tensors.length, isSelection)
  return done
}

function reorderOne(tensor: Tensor, choice: ReorderChoice): Reordered {
  const stored = choice.fromLayout === undefined ? dense(tensor) : asStored(dense(tensor), choice)
  const before = choice.dtype === undefined ? stored : cast(stored, choice.dtype)
  const { layout, padLower, padUpper, as } = choice
  if (layout === undefined) return { before, after: reorder(before, 'row_major') }
  const after = reorder(before, layout, {
    ...(padLower && { lower: padLower }),
    ...(padUpper && { upper: padUpper }),
    ...(as && { as }),
  })
  return { before, after }
}

function asStored(tensor: DenseTensor, choice: ReorderChoice): DenseTensor {
  const isSourcePadding = choice.layout === undefined
  const lower = choice.fromPadLower ?? (isSourcePadding ? choice.padLower : undefined)
  const upper = choice.fromPadUpper ?? (isSourcePadding ? choice.padUpper : undefined)
  // checkReorderOptions has seen to it that both are there.
  return asLayout(tensor, choice.fromLayout!, choice.shape!, {
    ...(lower && { lower }),
    ...(upper && { upper }),
  })
}

function dense(tensor: Tensor): DenseTensor {
  if (tensor.kind === 'dense') return tensor
  throw new TileworkError('ERR_UNSUPPORTED', `A ${tensor.kind} tensor has no memory layout.`)
}

function refusal(
  refused: readonly { readonly tensor: Tensor; readonly error: TileworkError }[],
  total: number,
  isSelection: boolean,
): TileworkError {
  const first = refused[0]!.error
  const named = refused
    .slice(0, REFUSALS_IN_MESSAGE)
    .map(({ tensor, error }) => `"${tensor.name}": ${error.message.replace(/\.$/, '')}`)
  const more = refused.length > named.length ? `; and ${refused.length - named.length} more` : ''
  const advice = isSelection ? '' : " Select the tensors that fit with --tensor NAME or --tensor '#INDEX'."
  const what =
    total === 1
      ? 'The tensor cannot be converted'
      : `${refused.length} of ${total} tensors cannot be converted`
  return new TileworkError(first.code, `${what}: ${named.join('; ')}${more}.${advice}`, { cause: first })
}
