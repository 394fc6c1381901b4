/** Selects tensors of a file by name or index. */
import { TileworkError } from '../errors.js'
import type { TensorList } from '../formats/format.js'
import { nearestText } from '../nearest_names.js'
import type { AnyTensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'

/** Names listed in an error message; more would not be read. */
const MAX_LISTED_NAMES = 8

/**
 * The selected tensors in the order of the selectors, each once.
 *
 * @param selectors - names, or indices (below 0 from the end)
 * @throws TileworkError ERR_ARGUMENT for a selector without a tensor
 */
export function selectTensors(tensors: TensorList, selectors: readonly (string | number)[]): AnyTensor[] {
  const selected = new Map<string | number, AnyTensor>()
  for (const selector of selectors) {
    const tensor = selectTensor(tensors, selector)
    const key = typeof selector === 'number' && selector < 0 ? selector + tensors.length : selector
    if (!selected.has(key)) selected.set(key, tensor)
  }
  const isMixed = [...selected.keys()].some((key) => typeof key === 'number')
  return isMixed ? withoutNamesOf(selected, tensors) : [...selected.values()]
}

/** Drops tensors that are selected by name and by index from the names, so that each is selected once. */
function withoutNamesOf(selected: Map<string | number, AnyTensor>, tensors: TensorList): AnyTensor[] {
  const indices = new Map<string, number>()
  const names = [...selected.keys()].filter((key) => typeof key === 'string')
  if (names.length > 0) {
    let index = 0
    for (const { name } of tensors) {
      if (!indices.has(name)) indices.set(name, index)
      index++
    }
  }
  const taken = new Set<number | string>()
  return [...selected].flatMap(([key, tensor]) => {
    const index = typeof key === 'number' ? key : (indices.get(key) ?? key)
    if (taken.has(index)) return []
    taken.add(index)
    return [tensor]
  })
}

/** @throws TileworkError ERR_ARGUMENT if there is none */
export function selectTensor(tensors: TensorList, selector: string | number): AnyTensor {
  const tensor = typeof selector === 'number' ? tensors.at(selector) : tensors.get(selector)
  if (tensor) return tensor
  const which = typeof selector === 'number' ? `tensor at index ${selector}` : `tensor ${valueText(selector)}`
  const known = typeof selector === 'string' ? namesOf(tensors) : []
  const end = nearestText(selector, known, `; it has ${namesText(tensors)}`)
  throw new TileworkError('ERR_ARGUMENT', `The file has no ${which}${end}`)
}

function* namesOf(tensors: TensorList): Generator<string> {
  for (const { name } of tensors) yield name
}

function namesText(tensors: TensorList): string {
  const { length } = tensors
  if (length === 0) return 'no tensors'
  const names: string[] = []
  for (const { name } of tensors) {
    if (names.length === MAX_LISTED_NAMES) break
    names.push(`"${name}"`)
  }
  const more = length > names.length ? `, and ${length - names.length} more` : ''
  const count = length === 1 ? '1 tensor' : `${length} tensors`
  return `${count}: ${names.join(', ')}${more} (indices 0 to ${length - 1})`
}
