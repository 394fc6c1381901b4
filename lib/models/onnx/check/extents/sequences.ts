/** Axes and sizes of operators that split tensors into sequences, and join them. */
import { axisOf, dimsOf, isKnown } from '../../evaluate/dims.js'
import { axisProblem, constantOf, type ExtentRule } from './rule.js'

const splitToSequence: ExtentRule = (node) => {
  const [dims, axis] = [node.dims(0), node.int('axis', 0)]
  if (!dims) return undefined
  const wrong = axisProblem(axis, dims.length)
  const sizes = node.has(1) ? constantOf(node, 1) : undefined
  if (wrong !== undefined || !sizes) return wrong
  const length = dims[axisOf(axis, dims.length)!]!
  if (node.dims(1)?.length === 0)
    return sizes[0]! > 0 ? undefined : `splits into parts of ${sizes[0]}; at least 1 is needed`
  const sum = sizes.reduce((total, size) => total + size, 0)
  return !isKnown(length) || sum === length
    ? undefined
    : `has sizes with the sum ${sum} for an axis of ${length}`
}

const concatFromSequence: ExtentRule = (node) => {
  const isNew = node.int('new_axis', 0)
  if (isNew !== 0 && isNew !== 1) return `has ${isNew} for new_axis; it takes 0 or 1`
  const [type, axis] = [node.type(0), node.int('axis')]
  const dims = type?.kind === 'sequence' && type.of.kind === 'tensor' ? dimsOf(type.of.shape) : undefined
  return dims && axis !== undefined ? axisProblem(axis, dims.length + isNew) : undefined
}

export const SEQUENCE_RULES: Readonly<Record<string, ExtentRule>> = {
  ConcatFromSequence: concatFromSequence,
  SplitToSequence: splitToSequence,
}
