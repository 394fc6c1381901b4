/** What the engine allows of shapes, and lists along an axis that a conversion makes. */
import { RUNTIME_LIMITS } from '../../../formats/tmfile/schema.js'
import { countOf, type Shape } from '../../../models/onnx/evaluate/arrays.js'
import { refuse } from './refusal.js'

/** Why the engine has no tensor of a shape; undefined where it has. */
export function whyNotShape(shape: Shape): string | undefined {
  const { dims, elements } = RUNTIME_LIMITS
  if (shape.length > dims) return `rank ${shape.length}; the engine has at most ${dims}`
  if (shape.includes(0)) return 'the result is empty'
  const size = countOf(shape)
  if (!shape.every((extent) => extent > 0 && Number.isSafeInteger(extent))) return `the shape [${shape}]`
  return size < elements ? undefined : `${size} elements; the engine has less than ${elements} in a tensor`
}

/** Positions along one axis that a conversion lists, so that a small file cannot ask for gigabytes (CWE-770). */
const MAX_POSITIONS = 2 ** 22

/** One number for each of `count` positions along an axis. */
export function positions(count: number, numberAt: (at: number) => number): number[] {
  if (count > MAX_POSITIONS) refuse(`${count} positions along an axis; at most ${MAX_POSITIONS} are listed`)
  return Array.from({ length: count }, (_, at) => numberAt(at))
}
