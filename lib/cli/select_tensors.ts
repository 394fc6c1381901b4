/** `--tensor NAME` and `--tensor '#INDEX'`. */
import { type Tensor, type TensorList, TileworkError } from '../index.js'
import { formatCount } from './byte_count.js'

/** Names that an error lists before it stops. */
const NAMES_IN_MESSAGE = 8

/**
 * The tensors that the selectors name, in the order of the selectors, each once; all of them without a selector.
 *
 * @throws TileworkError ERR_ARGUMENT for a selector that names nothing
 */
export function selectTensors(tensors: TensorList, selectors: readonly string[]): readonly Tensor[] {
  if (selectors.length === 0) return [...tensors]
  return [...new Set(selectors.map((selector) => selectOne(tensors, selector)))]
}

function selectOne(tensors: TensorList, selector: string): Tensor {
  const index = /^#(\d+)$/.exec(selector)?.[1]
  // A name wins, so that a tensor that is really called "#1" can be reached.
  const tensor = tensors.get(selector) ?? (index === undefined ? undefined : tensors.at(Number(index)))
  if (tensor) return tensor
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--tensor "${selector}" names no tensor; the file has ${formatCount(tensors.length, 'tensor')}${namesOf(tensors)}.`,
  )
}

function namesOf(tensors: TensorList): string {
  if (tensors.length === 0) return ''
  const names: string[] = []
  for (const tensor of tensors) {
    if (names.length === NAMES_IN_MESSAGE) break
    names.push(`"${tensor.name}"`)
  }
  const last = tensors.length === 1 ? '' : ` to '#${tensors.length - 1}'`
  return `: ${names.join(', ')}${tensors.length > names.length ? ', …' : ''} (or '#0'${last})`
}
