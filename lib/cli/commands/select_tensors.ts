/** `--tensor NAME`, `--tensor '#INDEX'`, and `--tensor name:NAME` for a name that looks like one of the others. */
import { type Tensor, type TensorList, TileworkError } from '../../index.js'
import { formatCount } from '../text/byte_count.js'

/** What follows is a name, whatever it looks like. */
const NAME_PREFIX = 'name:'

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
  const tensor = find(tensors, selector)
  if (tensor) return tensor
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--tensor "${selector}" names no tensor; the file has ${formatCount(tensors.length, 'tensor')}${namesOf(tensors)}.`,
  )
}

function find(tensors: TensorList, selector: string): Tensor | undefined {
  // An index even where a tensor has that name: printed undo commands select by index and know no names.
  const index = /^#(\d+)$/.exec(selector)?.[1]
  if (index !== undefined) return tensors.at(Number(index))
  return tensors.get(selector.startsWith(NAME_PREFIX) ? selector.slice(NAME_PREFIX.length) : selector)
}

/** A name as `--tensor` takes it. */
function selectorOf(name: string): string {
  return name.startsWith('#') || name.startsWith(NAME_PREFIX) ? NAME_PREFIX + name : name
}

function namesOf(tensors: TensorList): string {
  if (tensors.length === 0) return ''
  const names: string[] = []
  for (const tensor of tensors) {
    if (names.length === NAMES_IN_MESSAGE) break
    names.push(`"${selectorOf(tensor.name)}"`)
  }
  const last = tensors.length === 1 ? '' : ` to '#${tensors.length - 1}'`
  return `: ${names.join(', ')}${tensors.length > names.length ? ', …' : ''} (or '#0'${last})`
}
