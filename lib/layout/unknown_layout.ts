/** Names that follow the grammar of layouts, so that they work, and that no layout of OpenVINO has. A typing error looks the same. */
import { nearestNames } from '../nearest_names.js'
import { LAYOUT_NAMES } from './catalogue.js'

/**
 * Says of a blocked layout that OpenVINO has none of this name; undefined of the others. Orders of whole axes have no blocks, and
 * their names are as plain as `bfvu`.
 *
 * @param name - canonical
 */
export function unknownLayoutNote(name: string): string | undefined {
  const known: readonly string[] = LAYOUT_NAMES
  if (!/\d/.test(name) || known.includes(name)) return undefined
  const [nearest] = nearestNames(name, known)
  return `OpenVINO has no layout of this name${nearest === undefined ? '' : `; nearest: ${nearest}`}.`
}
