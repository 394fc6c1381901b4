/** Advice for an unknown name. */
import { nearestNames } from '../../internal.js'

/** `; did you mean "a", "b" or "c"?`, or `otherwise` where no known name is near. */
export function didYouMean(name: string, known: Iterable<string>, otherwise = '.'): string {
  const near = nearestNames(name, known).map((each) => JSON.stringify(each))
  const last = near.pop()
  if (last === undefined) return otherwise
  return `; did you mean ${near.length === 0 ? last : `${near.join(', ')} or ${last}`}?`
}
