/** Names for tensors that have none, in formats that tell tensors apart by names. */
import type { Tensor } from '../tensor/tensor.js'

/**
 * The name of each tensor. One that has none gets `prefix` and its place in the list; underscores behind it where that is
 * the name of another. Names that two tensors bring stay as they are, for the format to refuse.
 */
export function madeNames(tensors: readonly Pick<Tensor, 'name'>[], prefix: string): string[] {
  const taken = new Set(tensors.map(({ name }) => name))
  return tensors.map(({ name }, index) => {
    if (name !== '') return name
    let made = `${prefix}${index}`
    while (taken.has(made)) made += '_'
    taken.add(made)
    return made
  })
}
