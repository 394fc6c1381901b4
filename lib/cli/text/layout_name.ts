/** Names of layouts as people type them. */
import { type Layout, parseLayout, TileworkError } from '../../index.js'

/**
 * The layout of a name. Names are in small letters; another is refused with what is known of the small one, for example
 * that nchw is written bfyx.
 *
 * @throws TileworkError ERR_LAYOUT_NAME
 */
export function layoutByName(name: string): Layout {
  const small = name.toLowerCase()
  if (small === name) return parseLayout(name)
  const { name: meant } = parseLayout(small)
  const advice = `"${name}" is no layout: names are in small letters. Did you mean "${meant}"?`
  throw new TileworkError('ERR_LAYOUT_NAME', advice)
}
