/** Rules of operators of `ai.onnx.ml`. Source: `onnx/defs/traditionalml/defs.cc`. */
import type { Dtype } from '../../../../dtype/dtypes.js'
import type { NodeView } from '../../infer/node_view.js'
import { type ExtentRule, rankProblem } from './rule.js'

const CAST_MAP_TYPES: ReadonlySet<string> = new Set(['TO_FLOAT', 'TO_INT64', 'TO_STRING'])

const castMap: ExtentRule = (node) => {
  const type = node.text('cast_to') ?? 'TO_FLOAT'
  return CAST_MAP_TYPES.has(type)
    ? undefined
    : `has "${type}" for cast_to; it takes ${[...CAST_MAP_TYPES].join(', ')}`
}

/** Lists of keys or values, of which a node has one. */
const LIST_TYPES = { strings: 'string', int64s: 'int64', floats: 'float32' } as const

interface LabelList {
  readonly dtype: Dtype
  readonly length: number
}

function listsOf(node: NodeView, what: 'keys' | 'values', since: number): readonly LabelList[] {
  const lists = Object.entries(LIST_TYPES).flatMap(([suffix, dtype]): LabelList[] => {
    const attribute = node.attribute(`${what}_${suffix}`)
    if (!attribute) return []
    return [{ dtype, length: Array.isArray(attribute.value) ? attribute.value.length : 0 }]
  })
  const [tensor] = (since < 4 ? undefined : node.attribute(`${what}_tensor`)?.tensors) ?? []
  return tensor ? [...lists, { dtype: tensor.dtype, length: tensor.shape[0] ?? 1 }] : lists
}

const labelEncoder: ExtentRule = (node, since) => {
  if (since < 2) return undefined
  const [keys, values] = [listsOf(node, 'keys', since), listsOf(node, 'values', since)]
  for (const [what, lists] of Object.entries({ keys, values })) {
    if (lists.length !== 1) return `has ${lists.length} lists of ${what}; it takes exactly one`
  }
  const [key, value] = [keys[0]!, values[0]!]
  const type = node.dtype(0)
  if (type !== undefined && type !== key.dtype)
    return `has the type ${type} for input 0; its keys are ${key.dtype}`
  if (since < 4) return undefined
  if (key.length !== value.length) return `has ${key.length} keys and ${value.length} values`
  const [otherwise] = node.attribute('default_tensor')?.tensors ?? []
  if (otherwise && otherwise.dtype !== value.dtype)
    return `has the type ${otherwise.dtype} for default_tensor; its values are ${value.dtype}`
  if (otherwise && (otherwise.shape.length !== 1 || otherwise.shape[0] !== 1))
    return `has a default_tensor of the shape [${otherwise.shape.join(', ')}]; it takes [1]`
  return undefined
}

export const CLASSIC_RULES: Readonly<Record<string, ExtentRule>> = {
  CastMap: castMap,
  LabelEncoder: labelEncoder,
  LinearClassifier: (node) => rankProblem(node, 0, 1, 2),
}
