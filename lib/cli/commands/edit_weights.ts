/** Matches the tensors of a weights file with the constants of a model, and checks that they fit. */
import { type DenseTensor, type Dtype, type OpenFile, reorder, TileworkError } from '../../index.js'
import { nearestText } from '../../internal.js'
import { formatCount } from '../text/byte_count.js'

/** A constant of the model: what a replacement must be like. */
export interface Constant {
  readonly name: string
  readonly dtype: Dtype
  /** Null where the model does not know it. */
  readonly shape: readonly number[] | null
  /** True where no option changes its dtype and shape. */
  readonly isFixed?: boolean
}

/** A constant and its new values. */
export interface Replacement {
  readonly name: string
  readonly numbers: DenseTensor
}

/**
 * Refuses values of another shape or dtype, which the consumers do not expect.
 *
 * @param where - where the values come from
 * @throws TileworkError ERR_ARGUMENT
 */
export function checkFits(constant: Constant, numbers: DenseTensor, where: string, force?: boolean): void {
  const { name, dtype, shape, isFixed = false } = constant
  if (
    (force && !isFixed) ||
    (numbers.dtype === dtype && (shape === null || String(numbers.shape) === String(shape)))
  )
    return
  const found = `${numbers.dtype} [${numbers.shape.join(', ')}]`
  const wanted = `${dtype} [${shape?.join(', ') ?? '?'}]`
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${where} is ${found} and the constant ${JSON.stringify(name)} is ${wanted}${isFixed ? '.' : '; --force replaces it anyway.'}`,
  )
}

/**
 * Pairs the tensors of `file` with the constants of the same names.
 *
 * @param path - of the file, for messages
 * @throws TileworkError ERR_ARGUMENT for a tensor without a constant (unless `force`, which skips it), for a tensor that does
 * not fit, and where no name matches
 */
export function weightsOf(
  file: OpenFile,
  path: string,
  constants: ReadonlyMap<string, Constant>,
  force?: boolean,
): Replacement[] {
  const unknown: string[] = []
  const replacements: Replacement[] = []
  for (const tensor of file.tensors) {
    const constant = constants.get(tensor.name)
    if (!constant) {
      unknown.push(tensor.name)
      continue
    }
    const where = `${path}#${tensor.name}`
    if (tensor.kind !== 'dense') {
      throw new TileworkError(
        'ERR_UNSUPPORTED',
        `${where} is a ${tensor.kind} tensor; weights must be dense.`,
      )
    }
    const numbers = tensor.storage.layout === 'row_major' ? tensor : reorder(tensor, 'row_major')
    checkFits(constant, numbers, where, force)
    replacements.push({ name: tensor.name, numbers })
  }
  if (unknown.length > 0 && (!force || replacements.length === 0)) {
    const first = unknown[0]!
    const all =
      unknown.length === 1 ? 'a tensor that is' : `${formatCount(unknown.length, 'tensor')} that are`
    const advice = replacements.length > 0 ? ' --force skips such tensors.' : ''
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${path} has ${all} not constants of the model, such as ${JSON.stringify(first)}${nearestText(first, constants.keys())}${advice}`,
    )
  }
  return replacements
}
