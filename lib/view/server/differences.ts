/** Compares two of the files, as `tilework diff` does. */
import { type Difference, diff } from '../../pipeline/diff.js'
import type { Parameters } from './parameters.js'
import type { KnownFiles } from './viewed_files.js'

/** A tensor of a difference, with its index in each file for heat maps. */
export interface IndexedDifference extends Difference {
  readonly places: readonly { readonly a: number; readonly b: number }[]
}

export async function differences(
  files: KnownFiles,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<IndexedDifference> {
  const [a, b] = [files.of(parameters, 'a').file, files.of(parameters, 'b').file]
  const tolerance = { absolute: parameters.number('absolute', 0), relative: parameters.number('relative', 0) }
  const found = await diff(a, b, { tolerance, signal })
  const [inA, inB] = [a, b].map(({ tensors }) => {
    const places = new Map<string, number>()
    let at = 0
    for (const { name } of tensors) places.set(name, at++)
    return places
  })
  const places = found.changed.map((each) => ({
    a: inA!.get(each.a.name) ?? -1,
    b: inB!.get(each.b.name) ?? -1,
  }))
  return { ...found, places }
}
