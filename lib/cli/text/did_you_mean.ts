/** Advice for an unknown name. */
import { nearestNames } from '../../index.js'

/** `; did you mean "a" or "b"?`, or a full stop where no known name is near. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const near = nearestNames(name, known).map((each) => JSON.stringify(each))
  return near.length === 0 ? '.' : `; did you mean ${near.join(' or ')}?`
}
